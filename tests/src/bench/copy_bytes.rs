//! A plain copying TCP relay: what passing bytes through user space costs when nobody looks at them.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
};

use anyhow::{Context, Result, anyhow};

/// Read and written with one call of the system at most.
const AT_ONCE: usize = 256 << 10;

/// Copies from one address to the other until the source ends, over so many connections at once.
///
/// # Errors
/// When one of them fails.
pub fn copy_bytes(source: &str, target: &str, connections: usize) -> Result<()> {
    let mut threads = Vec::new();
    for _ in 0..connections {
        let from = TcpStream::connect(source).with_context(|| format!("connect to {source}"))?;
        let to = TcpStream::connect(target).with_context(|| format!("connect to {target}"))?;
        threads.push(thread::spawn(move || copy(from, to)));
    }
    for thread in threads {
        thread.join().map_err(|_| anyhow!("a thread panicked"))??;
    }
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream) -> Result<()> {
    let mut bytes = vec![0; AT_ONCE];
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            count => to.write_all(&bytes[..count])?,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn every_byte_arrives_in_its_place() {
        let (source, target) =
            (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = [&source, &target].map(|listener| listener.local_addr().unwrap().to_string());
        let sent: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(3 * AT_ONCE + 7).collect();
        let expected = sent.clone();
        thread::spawn(move || source.accept().unwrap().0.write_all(&sent).unwrap());
        let relay = thread::spawn(move || copy_bytes(&addresses[0], &addresses[1], 1));
        let mut arrived = Vec::new();
        target.accept().unwrap().0.read_to_end(&mut arrived).unwrap();
        relay.join().unwrap().unwrap();
        assert!(arrived == expected);
    }
}
