//! The records inside a batch: the slow path, for batches that cannot go on as they are.
//!
//! Forwarding reads no record. This is for trimming, for topics of our own, and for whoever has to look inside.

mod builder;
mod codec;
mod fields;
mod trim;

pub use builder::BatchBuilder;
pub use codec::{compress, decompress};
pub use fields::{Header, Record, Records, records};
pub use trim::trim;
