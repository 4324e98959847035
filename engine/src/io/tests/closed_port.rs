//! A port where nobody listens, and nobody else can begin to.

use std::net::Ipv4Addr;

use tokio::net::TcpSocket;

use crate::machine::metadata::HostPort;

/// Connections to it are refused until this is dropped: a port that was merely given back can be another test's next.
pub(crate) struct ClosedPort {
    pub(crate) server: HostPort,
    _bound: TcpSocket,
}

impl ClosedPort {
    /// Must be called within a tokio runtime.
    pub(crate) fn reserve() -> Self {
        let bound = TcpSocket::new_v4().expect("a socket");
        bound.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
        let port = bound.local_addr().expect("a bound socket has an address").port();
        Self { server: HostPort::new("127.0.0.1", port), _bound: bound }
    }
}
