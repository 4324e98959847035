//! Sockets: dialing, connections, the cluster client. Thin; what can be decided without a socket is decided in
//! [`crate::machine`].

pub mod bootstrap;
pub mod cluster;
pub mod connection;
pub mod dial;
pub mod error;
#[cfg(test)]
mod fake_broker;
mod handshake;
mod link;
mod pool;
mod reader;
mod single_flight;
mod throttle;
mod writer;
