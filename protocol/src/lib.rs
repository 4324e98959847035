//! Kafka's wire protocol as a replicator needs it: bytes in, bytes out, no socket, no clock.
//!
//! Nothing here may panic on bytes from outside or allocate by a length that the wire names: every length is
//! compared with what is left of the frame first.

pub mod cursor;
mod error;

pub use error::DecodeError;
