//! Opens a TCP connection to a broker: every address of its name in turn, each with a time limit.
//!
//! All addresses count, as with `client.dns.lookup=use_all_dns_ips` (KIP-302); the resolver's order is kept.

use std::{fmt, io, net::SocketAddr, time::Duration};

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};

use crate::machine::metadata::HostPort;

/// A peer that vanished without a word is noticed by the kernel even while no request waits.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// Why no connection to a broker could be opened. Whom we wanted to reach is told by the error around it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The name could not be looked up.
    #[error("looking up the name failed: {0}")]
    Resolve(#[source] io::Error),
    /// The name was looked up and stands for nothing.
    #[error("the name has no address")]
    NoAddress,
    /// No address took the connection: each one tried and why it failed, in order.
    #[error("{}", Attempts(.0))]
    Refused(Vec<(SocketAddr, io::Error)>),
}

struct Attempts<'a>(&'a [(SocketAddr, io::Error)]);

impl fmt::Display for Attempts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (address, error)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{address}: {error}")?;
        }
        Ok(())
    }
}

/// Looks the name up and connects to the first address that answers. `timeout` limits the look-up and each
/// address by itself.
///
/// # Errors
/// [`DialError`] with every address and its reason.
pub async fn dial(server: &HostPort, timeout: Duration) -> Result<(TcpStream, SocketAddr), DialError> {
    let addresses = resolve(server, timeout).await?;
    dial_addresses(addresses, timeout).await
}

async fn resolve(server: &HostPort, timeout: Duration) -> Result<Vec<SocketAddr>, DialError> {
    let lookup = async { Ok(lookup_host((server.host.as_str(), server.port)).await?.collect::<Vec<_>>()) };
    let mut addresses: Vec<SocketAddr> = within(timeout, lookup).await.map_err(DialError::Resolve)?;
    let mut seen = Vec::with_capacity(addresses.len());
    addresses.retain(|address| {
        !seen.contains(address) && {
            seen.push(*address);
            true
        }
    });
    Ok(addresses)
}

async fn dial_addresses(
    addresses: Vec<SocketAddr>,
    timeout: Duration,
) -> Result<(TcpStream, SocketAddr), DialError> {
    if addresses.is_empty() {
        return Err(DialError::NoAddress);
    }
    let mut attempts = Vec::with_capacity(addresses.len());
    for address in addresses {
        match within(timeout, connect(address)).await {
            Ok(stream) => return Ok((stream, address)),
            Err(error) => attempts.push((address, error)),
        }
    }
    Err(DialError::Refused(attempts))
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // Requests are written whole: waiting for more to fill a segment only adds delay.
    stream.set_nodelay(true)?;
    SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_AFTER))?;
    Ok(stream)
}

async fn within<T>(timeout: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(timeout, work).await {
        Ok(result) => result,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {timeout:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use tokio::net::TcpListener;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    async fn listener(ip: &str) -> (TcpListener, u16) {
        let listener = TcpListener::bind((ip, 0)).await.expect("a free port");
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    fn both_loopbacks(port: u16, first_v6: bool) -> Vec<SocketAddr> {
        let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
        if first_v6 { vec![v6, v4] } else { vec![v4, v6] }
    }

    #[tokio::test]
    async fn the_second_address_listens() {
        for (ip, first_v6) in [("127.0.0.1", true), ("::1", false)] {
            let (_listener, port) = listener(ip).await;
            let (stream, address) = dial_addresses(both_loopbacks(port, first_v6), LIMIT).await.unwrap();
            assert_eq!(address.ip().to_string(), ip);
            assert!(stream.nodelay().unwrap());
        }
    }

    #[tokio::test]
    async fn every_address_is_named_with_its_reason() {
        let (listener, port) = listener("127.0.0.1").await;
        drop(listener);
        let error = dial_addresses(both_loopbacks(port, false), LIMIT).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("127.0.0.1:{port}: ")), "{error}");
        assert!(error.contains(&format!("; [::1]:{port}: ")), "{error}");
        assert_eq!(error.matches("refused").count(), 2, "{error}");
    }

    #[tokio::test]
    async fn a_name_and_both_kinds_of_literal_addresses() {
        for host in ["127.0.0.1", "::1", "localhost"] {
            let (_v4, port) = listener("127.0.0.1").await;
            let _v6 = TcpListener::bind(("::1", port)).await.expect("the same port on ::1");
            let (stream, _) = dial(&HostPort::new(host, port), LIMIT).await.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(stream.peer_addr().unwrap().port(), port);
        }
    }

    #[tokio::test]
    async fn the_zone_of_a_link_local_address() {
        let addresses = resolve(&HostPort::new("fe80::1%1", 9092), LIMIT).await.unwrap();
        let [SocketAddr::V6(address)] = addresses[..] else { panic!("{addresses:?}") };
        assert_eq!(address.scope_id(), 1);
    }

    #[tokio::test]
    async fn a_name_that_does_not_exist() {
        let error = dial(&HostPort::new("no-such-host.invalid", 9092), LIMIT).await.unwrap_err();
        assert!(matches!(error, DialError::Resolve(_)), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_never_answers() {
        let error = within(LIMIT, std::future::pending::<io::Result<()>>()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("5s"));
    }
}
