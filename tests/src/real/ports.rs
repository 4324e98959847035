//! Ports that nobody else takes between the choice and the broker's bind.
//!
//! They lie below the range from which the system serves outgoing connections, and a lock file per port keeps other
//! test processes away for as long as the port is reserved, restarts of its broker included.

use std::{
    env,
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
};

use anyhow::{Context, Result, bail};

const FIRST: u16 = 15_000;
const LAST: u16 = 32_000;

/// A port on the loopback address, ours until this is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// Reserves a free port.
    ///
    /// # Errors
    /// When the lock files cannot be written, or no port is free.
    pub fn reserve() -> Result<Self> {
        let locks = env::temp_dir().join("twinlog-ports");
        fs::create_dir_all(&locks).with_context(|| format!("create {}", locks.display()))?;
        for _ in 0..1000 {
            let number = fastrand::u16(FIRST..LAST);
            let lock = File::create(locks.join(number.to_string()))?;
            if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Ok(Self { number, _lock: lock });
            }
        }
        bail!("no free port between {FIRST} and {LAST}")
    }

    /// The port number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    /// `127.0.0.1:number`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_is_not_given_twice() {
        let ports: Vec<Port> = (0..50).map(|_| Port::reserve().unwrap()).collect();
        let mut numbers: Vec<u16> = ports.iter().map(Port::number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 50);
    }
}
