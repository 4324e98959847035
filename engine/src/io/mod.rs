//! Sockets: dialing, connections, the cluster client. Thin; what can be decided without a socket is decided in
//! [`crate::machine`].
//!
//! | from the top | |
//! |---|---|
//! | `cluster` | one cluster: bootstrap, metadata, whom to ask |
//! | `pool`, `lane`, `single_flight` | a node's lanes, opened on demand, and their client ids; one attempt at a time |
//! | `connection`, `handshake`, `throttle` | one connection: its task, versions, pauses |
//! | `link` | requests under way and the end of a connection, shared by handles and task |
//! | `reader`, `writer` | bytes |
//! | `memory` | how many of them the process may hold |
//! | `dial`, `bootstrap` | addresses |

pub mod bootstrap;
pub mod cluster;
pub mod connection;
pub mod dial;
pub mod error;
mod handshake;
pub mod lane;
mod link;
pub mod memory;
mod pool;
mod reader;
mod single_flight;
mod throttle;
mod writer;

#[cfg(test)]
pub(crate) mod tests;
