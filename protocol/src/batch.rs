//! Record batches of magic 2, handled by their 61-byte headers alone.
//!
//! [`iter`] splits the records of a Fetch answer into [`BatchView`]s `[2]`, [`verdict()`] decides from a header what
//! happens to its batch `[3]`, [`rewrite()`] makes it a batch of ours `[4]`. None of the three reads a payload.

pub(crate) mod crc;
pub mod iter;
pub mod layout;
pub mod rewrite;
pub mod verdict;
mod view;

pub use iter::{Batches, Entry, Incomplete, batches};
pub use layout::{Attributes, BatchHeader, Compression, HEADER_BYTES, TimestampType, sequence_after};
pub use rewrite::{Forwarded, ProducerStamp, rewrite};
pub use verdict::{Dropped, Unsupported, Verdict, verdict};
pub use view::BatchView;
