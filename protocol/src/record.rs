//! The records inside a batch: the slow path, for batches that cannot go on as they are.
//!
//! Forwarding reads no record. This is for trimming, for merging, for topics of our own, and for whoever has to look
//! inside.

mod builder;
mod codec;
mod fields;
mod merge;
mod trim;

pub use builder::BatchBuilder;
pub use codec::{compress, decompress};
pub use fields::{Header, Record, Records, records};
pub use merge::{Merge, can_merge};
pub use trim::trim;
