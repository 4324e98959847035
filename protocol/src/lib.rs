//! Kafka's wire protocol as a replicator needs it: bytes in, bytes out, no socket, no clock.
//!
//! Nothing here may panic on bytes from outside or allocate by a length that the wire names: every length is
//! compared with what is left of the frame first.

pub mod cursor;
mod error;
mod error_code;
pub mod frame;
pub mod header;
pub mod message;
pub mod versions;

pub use error::DecodeError;
pub use error_code::{ErrorCode, Retry};
