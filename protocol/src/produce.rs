//! Produce, versions 3 to 13: bounded codecs of our own, because payloads go out as slices.
//!
//! # References
//! `ProduceRequest.json`, `ProduceResponse.json`; KIP-467 (8), KIP-951 (10), KIP-516 (13).

use std::ops::RangeInclusive;

mod gather;
mod request;
mod response;

pub use gather::Gather;
pub use request::{ProducePartition, produce_frame};
pub use response::{ProduceResponse, ProducedPartition, RecordError};

/// Versions that these codecs speak.
pub const VERSIONS: RangeInclusive<i16> = 3..=13;

/// Compact lengths and tagged fields from here on.
fn is_flexible(version: i16) -> bool {
    version >= 9
}

/// Topics go by id, not by name, from here on.
#[must_use]
pub fn names_topics_by_id(version: i16) -> bool {
    version >= 13
}
