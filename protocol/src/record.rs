//! The records inside a batch: the slow path, for batches that cannot go on as they are.
//!
//! Forwarding reads no record. This is for re-encoding, for merging, for topics of our own, and for whoever has to look
//! inside.

mod builder;
mod codec;
mod dense;
mod fields;
mod legacy;
mod merge;
mod reencode;
mod repack;
mod split;
mod unpack;
mod walk;

pub use builder::BatchBuilder;
pub use codec::{compress, decompress};
pub use dense::{OffsetRun, Reencoded};
pub use fields::{Header, Record, Records, records};
pub use legacy::upgrade;
pub use merge::{Merge, can_merge};
pub use reencode::reencode;
pub use repack::Repack;
pub use split::split;
