//! A batch whose records cannot go on as they stand, written anew: the cleaner took some of them, reading begins inside
//! it, or its records have one time together that a header of ours would lose.
//!
//! E1 What is kept keeps key, value, headers, order and the timestamp that a consumer sees, and the batch its codec; the new
//! batch is dense. E2 The new CRC covers what was read under the old one: a damaged batch is
//! an error, not a fresh CRC. E3 Which upstream offsets the records had is told, gap by gap.
//!
//! # References
//! `LogValidator` (a producer's batch has no gaps), `DefaultRecordBatch` (log append time), `LogCleaner`.

use super::builder::BatchBuilder;
use super::codec::decompress;
use super::dense::{Dense, Reencoded};
use super::walk::{Encoded, walk};
use crate::batch::{BatchHeader, BatchView, Compression, ProducerStamp};
use crate::{DecodeError, EncodeError};

/// The records of `view` from `first_offset` on as a dense batch, packed as they were; unpacked on the way into at most
/// `bytes_max` bytes. None where no record is left there.
///
/// # Errors
/// [`DecodeError::BadValue`] when the CRC is wrong, and for offsets that do not rise or leave the batch;
/// [`DecodeError::UnpacksTooLarge`] for records that take more than `bytes_max` bytes; otherwise what a payload can have
/// wrong.
pub fn reencode(
    view: &BatchView,
    first_offset: i64,
    bytes_max: usize,
) -> Result<Option<Reencoded>, DecodeError> {
    view.check_crc()?;
    let old = view.header();
    let payload = decompress(old.attributes.compression()?, &view.body(), bytes_max)?;
    let mut writing = Writing { old, first_offset, next_delta: 0, payload_bytes: payload.len(), kept: None };
    walk(old.record_count, payload, |record| writing.take(record).map(|()| true))?;
    writing.kept.map(Dense::finish).transpose().map_err(|error| refused(&error))
}

struct Writing<'a> {
    old: &'a BatchHeader,
    first_offset: i64,
    /// The least offset delta that the next record may have.
    next_delta: i32,
    /// Of all records, unpacked.
    payload_bytes: usize,
    kept: Option<Dense>,
}

impl Writing<'_> {
    fn take(&mut self, record: &Encoded) -> Result<(), DecodeError> {
        let (old, delta) = (self.old, record.offset_delta);
        if delta < self.next_delta || delta > old.last_offset_delta {
            let reason = "offsets in a batch rise up to its last one";
            let (at, value) = (record.at, delta.into());
            return Err(DecodeError::BadValue { field: "offset delta", at, value, reason });
        }
        self.next_delta = delta.saturating_add(1);
        let offset = old.base_offset + i64::from(delta);
        if offset >= self.first_offset {
            let timestamp_ms = old.timestamp_ms(record.timestamp_delta);
            let bytes_left = self.payload_bytes.saturating_sub(record.at);
            let kept = self.kept.get_or_insert_with(|| {
                // Memory that grows by doubling takes twice as much on the way.
                let mut new = emptied(old, None);
                new.reserve(bytes_left);
                Dense::begin(new, offset)
            });
            kept.place(offset)
                .push_encoded(timestamp_ms, record.attributes, record.tail)
                .map_err(|error| refused(&error))?;
        }
        Ok(())
    }
}

/// The same without records, without flags, and without a producer, packed with `codec` or as it was.
pub(super) fn emptied(old: &BatchHeader, codec: Option<Compression>) -> BatchBuilder {
    let new = BatchBuilder::like(&BatchHeader { attributes: old.attributes.as_produced(), ..*old });
    let new = if let Some(codec) = codec { new.compression(codec) } else { new };
    new.producer(ProducerStamp::NOBODY)
}

pub(super) fn refused(error: &EncodeError) -> DecodeError {
    DecodeError::Refused { what: "re-encoded batch", reason: error.to_string() }
}

#[cfg(test)]
mod tests;
