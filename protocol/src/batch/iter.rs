//! `[2]` The records of one partition in a Fetch answer, split into batches.
//!
//! A broker cuts the last batch where the fetch limit ends; that is no error ([`Batches::incomplete`]). Everything
//! else that does not fit ends the iteration with an error, once.
//!
//! # References
//! KIP-74 (only the first batch may exceed the limit); `RecordsUtil`, `ByteBufferLogInputStream`.

use bytes::Bytes;

use super::layout::{BATCH_LENGTH_MIN, LENGTH_COUNTS_FROM, MAGIC_AT};
use super::verdict::{Dropped, Verdict, verdict};
use super::view::BatchView;
use crate::cursor::NO_SUCH_OFFSET;
use crate::{DecodeError, OFFSET_MAX};

/// Magic 0 without key and value: crc, magic, attributes, two lengths.
const MESSAGE_LENGTH_MIN: i32 = 14;

/// Splits `records`, a slice of a Fetch answer.
#[must_use]
pub fn batches(records: Bytes) -> Batches {
    Batches { rest: records, at: 0, next_offset: 0, state: State::Walking }
}

/// One thing that a partition's log holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A batch of magic 2.
    Batch(BatchView),
    /// A message of magic 0 or 1, or a compressed wrapper of several: recognised, not decoded ([`upgrade`](crate::record::upgrade)).
    Legacy {
        /// 0 or 1.
        magic: i8,
        /// Offset of the message; in a wrapper that of its last message.
        offset: i64,
        /// The whole message, offset and size included.
        bytes: Bytes,
    },
}

impl Entry {
    /// What happens to it when reading stands at `position`.
    #[must_use]
    pub fn verdict(&self, position: i64) -> Verdict {
        match self {
            Self::Batch(view) => verdict(view.header(), position),
            Self::Legacy { offset, .. } if *offset < position => Verdict::Drop(Dropped::BelowPosition),
            Self::Legacy { .. } => Verdict::Reencode,
        }
    }

    /// All its bytes.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        match self {
            Self::Batch(view) => view.bytes(),
            Self::Legacy { bytes, .. } => bytes,
        }
    }

    /// First offset that is named: of a message from before magic 2 the last one, where it wraps several.
    #[must_use]
    pub fn offset(&self) -> i64 {
        match self {
            Self::Batch(view) => view.header().base_offset,
            Self::Legacy { offset, .. } => *offset,
        }
    }

    /// Offset to read next behind it.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        match self {
            Self::Batch(view) => view.header().next_offset(),
            Self::Legacy { offset, .. } => offset.saturating_add(1),
        }
    }

    /// Epoch of the leader that appended it, -1 where the format does not tell.
    #[must_use]
    pub fn leader_epoch(&self) -> i32 {
        match self {
            Self::Batch(view) => view.header().partition_leader_epoch,
            Self::Legacy { .. } => -1,
        }
    }
}

/// The batch at the end that the fetch limit cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incomplete {
    /// Its base offset, where as much of it is there.
    pub offset: Option<i64>,
    /// Bytes of the whole batch as its length names them (check before making a limit of it); the least that shows
    /// the length where the cut is before it.
    pub needed_bytes: usize,
}

/// Iterator over the batches of one partition in a Fetch answer.
#[derive(Debug, Clone)]
pub struct Batches {
    rest: Bytes,
    at: usize,
    next_offset: i64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Walking,
    Cut(Incomplete),
    Failed,
}

impl Batches {
    /// Bytes that were not walked yet.
    #[must_use]
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// The batch at the end that the limit cut; known once the iteration ended. As the only entry it means that the
    /// limit has to grow.
    #[must_use]
    pub fn incomplete(&self) -> Option<Incomplete> {
        match self.state {
            State::Cut(incomplete) => Some(incomplete),
            State::Walking | State::Failed => None,
        }
    }

    fn step(&mut self) -> Result<Option<Entry>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let offset = self.rest.first_chunk().map(|bytes| i64::from_be_bytes(*bytes));
        let length = self.rest.get(8..).and_then(<[u8]>::first_chunk).map(|bytes| i32::from_be_bytes(*bytes));
        let (Some(offset), Some(length)) = (offset, length) else {
            self.state = State::Cut(Incomplete { offset, needed_bytes: LENGTH_COUNTS_FROM });
            return Ok(None);
        };
        let magic = self.rest.get(MAGIC_AT).map(|byte| byte.cast_signed());
        let length_min = match magic {
            Some(2) => BATCH_LENGTH_MIN,
            None | Some(0 | 1) => MESSAGE_LENGTH_MIN,
            Some(magic) => {
                let (at, value) = (self.at + MAGIC_AT, magic.into());
                return Err(DecodeError::BadValue {
                    field: "magic",
                    at,
                    value,
                    reason: "Kafka knows 0, 1 and 2",
                });
            }
        };
        let total = match usize::try_from(length) {
            Ok(bytes) if length >= length_min => LENGTH_COUNTS_FROM + bytes,
            _ => return Err(self.lying(length)),
        };
        let Some(magic) = magic.filter(|_| total <= self.rest.len()) else {
            self.state = State::Cut(Incomplete { offset: Some(offset), needed_bytes: total });
            return Ok(None);
        };
        let at = self.at;
        let bytes = self.rest.split_to(total);
        self.at += total;
        let entry = if magic == 2 {
            Entry::Batch(BatchView::parse(bytes).map_err(|error| moved(error, at))?)
        } else {
            Entry::Legacy { magic, offset, bytes }
        };
        let value = entry.offset();
        if !(self.next_offset..=OFFSET_MAX).contains(&value) {
            let is_too_far = value > OFFSET_MAX;
            let reason = if is_too_far { NO_SUCH_OFFSET } else { "offsets of a log only grow" };
            return Err(DecodeError::BadValue { field: "base offset", at, value, reason });
        }
        self.next_offset = entry.next_offset();
        Ok(Some(entry))
    }

    fn lying(&self, length: i32) -> DecodeError {
        let left = self.rest.len() - LENGTH_COUNTS_FROM;
        DecodeError::LyingLength { field: "batch length", at: self.at + 8, length: length.into(), left }
    }
}

/// An error whose place counts from the start of a batch, counted from the start of the records.
fn moved(mut error: DecodeError, start: usize) -> DecodeError {
    if let DecodeError::Truncated { at, .. }
    | DecodeError::LyingLength { at, .. }
    | DecodeError::BadValue { at, .. } = &mut error
    {
        *at += start;
    }
    error
}

impl Iterator for Batches {
    type Item = Result<Entry, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state != State::Walking {
            return None;
        }
        let step = self.step();
        if step.is_err() {
            self.state = State::Failed;
        }
        step.transpose()
    }
}

impl std::iter::FusedIterator for Batches {}

#[cfg(test)]
mod tests;
