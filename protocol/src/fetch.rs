//! Fetch, versions 10 to 16: bounded codecs of our own, because records must come out as slices.
//!
//! # References
//! `FetchRequest.json`, `FetchResponse.json`; KIP-227 (7), KIP-110 (10), KIP-392 (11), KIP-595 (12), KIP-516 (13), KIP-903 (15),
//! KIP-951 (16).

use std::ops::RangeInclusive;

mod aborted;
mod request;
mod response;

pub use aborted::AbortedTransactions;
pub use request::{
    FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, IsolationLevel, encode_fetch, fetch_frame,
};
pub use response::{AbortedTransaction, FetchResponse, FetchedPartition};

/// Versions that these codecs speak.
pub const VERSIONS: RangeInclusive<i16> = 10..=16;

/// Compact lengths and tagged fields from here on.
fn is_flexible(version: i16) -> bool {
    version >= 12
}

/// The reader tells its rack, and the broker a nearer replica, from here on.
fn knows_racks(version: i16) -> bool {
    version >= 11
}

/// Topics go by id, not by name, from here on.
#[must_use]
pub fn names_topics_by_id(version: i16) -> bool {
    version >= 13
}
