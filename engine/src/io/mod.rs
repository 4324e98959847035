//! Sockets: dialing, connections, the cluster client. Thin; what can be decided without a socket is decided in
//! [`crate::machine`].

pub mod bootstrap;
pub mod dial;
