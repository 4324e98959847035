//! Kafka's wire protocol as a replicator needs it: bytes in, bytes out, no socket, no clock.
//!
//! Nothing here may panic on bytes from outside or allocate by a length that the wire names: every length is
//! compared with what is left of the frame first.

pub mod batch;
pub mod cursor;
mod error;
mod error_code;
pub mod fetch;
pub mod frame;
#[doc(hidden)]
pub mod fuzzing;
pub mod header;
pub mod message;
mod primitives;
pub mod produce;
pub mod record;
mod shared_fields;
pub mod versions;

/// The highest offset that is taken for one. At a billion records a second no log gets there in 70 years, and sums of offsets
/// below it cannot overflow.
pub const OFFSET_MAX: i64 = 1 << 61;

pub use error::{DecodeError, EncodeError};
pub use error_code::{ErrorCode, Retry};
pub use shared_fields::{NodeEndpoint, TopicRef};
