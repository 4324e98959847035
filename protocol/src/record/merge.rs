//! Several small batches that follow on one another as one batch: the target has a header less to work for each.
//!
//! M1 Every record keeps its timestamp, key, value, headers and order; only its deltas are written anew, all that stands
//! behind them is copied byte for byte. M2 A source batch goes in under a CRC that is right: a damaged one is an error,
//! not a fresh CRC. M3 The records unpack to no more than a limit, and no more is reserved.
//!
//! # References
//! `DefaultRecord.writeTo`; `LogValidator`: offset deltas that follow on are what lets a broker append without rewriting.

use super::builder::{BatchBuilder, Held};
use super::codec::decompress;
use super::reencode::emptied;
use super::walk::{Encoded, walk};
use crate::batch::{Attributes, BatchHeader, BatchView, Compression, TimestampType};
use crate::{DecodeError, EncodeError};

/// Whether `next` can go into one batch behind `last`: both dense, offset by offset, with timestamps of their own, and both of
/// records that consumers see; of one codec, unless the one batch is packed with another `codec` anyway.
#[must_use]
pub fn can_merge(last: &BatchHeader, next: &BatchHeader, codec: Option<Compression>) -> bool {
    let codec_of = |header: &BatchHeader| {
        let own = mergeable(header).then(|| header.attributes.compression().ok()).flatten();
        own.map(|own| codec.unwrap_or(own))
    };
    codec_of(last).is_some() && codec_of(last) == codec_of(next) && last.next_offset() == next.base_offset
}

fn mergeable(header: &BatchHeader) -> bool {
    let Attributes(bits) = header.attributes;
    let is_plain = !header.attributes.is_control()
        && !header.attributes.has_delete_horizon()
        && header.attributes.timestamp_type() == TimestampType::CreateTime;
    // Bits that no Kafka has given out may change what a record means.
    is_plain && bits & !0x1f == 0 && header.is_dense() && header.record_count > 0
}

/// Batches on their way into one.
#[derive(Debug)]
pub struct Merge {
    new: BatchBuilder,
    /// Header of the last batch that went in.
    last: BatchHeader,
    codec: Option<Compression>,
    bytes_max: usize,
}

impl Merge {
    /// Begins with `first`. The one batch is packed with `codec` or, without one, as they all are; all records together
    /// unpack to at most `bytes_max` bytes.
    ///
    /// # Errors
    /// [`DecodeError::BadValue`] when the CRC is wrong, and for a batch that [`can_merge`] rules out; otherwise what a
    /// payload can have wrong, and records that take more than `bytes_max` bytes.
    pub fn begin(
        first: &BatchView,
        codec: Option<Compression>,
        bytes_max: usize,
    ) -> Result<Self, DecodeError> {
        let header = first.header();
        if !mergeable(header) {
            let (value, reason) = (header.attributes.0.into(), "a batch of this kind is not merged");
            return Err(DecodeError::BadValue { field: "attributes", at: 21, value, reason });
        }
        let mut merge = Self { new: emptied(header, codec), last: *header, codec, bytes_max };
        if merge.append(first)? {
            return Ok(merge);
        }
        Err(DecodeError::UnpacksTooLarge { what: "batch to merge", limit: bytes_max })
    }

    /// Puts `next` behind what is there. Tells whether it did: not where [`can_merge`] rules it out, and not where the
    /// limit would be passed. Then, and on an error, everything is as before.
    ///
    /// # Errors
    /// As [`Merge::begin`].
    pub fn push(&mut self, next: &BatchView) -> Result<bool, DecodeError> {
        if !can_merge(&self.last, next.header(), self.codec) || !self.append(next)? {
            return Ok(false);
        }
        self.last = *next.header();
        Ok(true)
    }

    /// Makes room for so many bytes of records, or for as many as the limit allows.
    pub fn reserve(&mut self, bytes: usize) {
        let held = self.new.held().payload_bytes;
        self.new.reserve(bytes.min(self.bytes_max.saturating_sub(held)));
    }

    /// The one batch, at the first one's base offset and without a producer.
    ///
    /// # Errors
    /// [`EncodeError`] as from [`BatchBuilder::build`].
    pub fn finish(self) -> Result<BatchView, EncodeError> {
        self.new.build()
    }

    /// Appends the records of `view`, or none of them.
    fn append(&mut self, view: &BatchView) -> Result<bool, DecodeError> {
        let held = self.new.held();
        let appended = self.try_append(view, held);
        if !matches!(appended, Ok(true)) {
            self.new.back_to(held);
        }
        appended
    }

    fn try_append(&mut self, view: &BatchView, held: Held) -> Result<bool, DecodeError> {
        view.check_crc()?;
        let header = view.header();
        let payload = decompress(header.attributes.compression()?, &view.body(), self.bytes_max)?;
        if payload.len() > self.bytes_max.saturating_sub(held.payload_bytes) {
            return Ok(false);
        }
        let mut expected = 0;
        walk(header.record_count, payload, |record| {
            self.append_record(record, header.base_timestamp, expected)?;
            expected += 1;
            // Deltas may have become longer.
            Ok(self.new.held().payload_bytes <= self.bytes_max)
        })
    }

    fn append_record(
        &mut self,
        record: &Encoded,
        base_timestamp: i64,
        expected: i32,
    ) -> Result<(), DecodeError> {
        record.require_delta(expected)?;
        let timestamp_ms = base_timestamp.wrapping_add(record.timestamp_delta);
        self.new
            .push_encoded(timestamp_ms, record.attributes, record.tail)
            .map_err(|error| DecodeError::Refused { what: "merged batch", reason: error.to_string() })
    }
}

#[cfg(test)]
mod tests;
