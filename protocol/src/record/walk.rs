//! The records of a payload one after the other: their deltas are read, what stands behind them is left as bytes.
//!
//! # References
//! `DefaultRecord`.

use bytes::Bytes;

use super::fields::RECORD_BYTES_MIN;
use crate::DecodeError;
use crate::cursor::Cursor;

/// A record as it stands in its payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoded<'a> {
    /// Where it begins in the payload, behind its length.
    pub(super) at: usize,
    /// Where the next one begins, with its length.
    pub(super) end: usize,
    pub(super) attributes: i8,
    pub(super) timestamp_delta: i64,
    pub(super) offset_delta: i32,
    /// Key, value and headers.
    pub(super) tail: &'a [u8],
}

impl Encoded<'_> {
    /// Fails unless the record stands at this place of a dense batch.
    pub(super) fn require_delta(&self, expected: i32) -> Result<(), DecodeError> {
        if self.offset_delta == expected {
            return Ok(());
        }
        let reason = "offsets of a dense batch follow on";
        let (at, value) = (self.at, self.offset_delta.into());
        Err(DecodeError::BadValue { field: "offset delta", at, value, reason })
    }
}

/// Reads the record at the cursor, which moves up to its tail.
#[inline(always)] // Two callers, one of which reads every record of merged batches: a tenth of its instructions.
pub(super) fn read(cursor: &mut Cursor) -> Result<Encoded<'_>, DecodeError> {
    let length = cursor.varint("record length")?;
    let length = cursor.bounded("record length", length.into(), 1)?;
    let at = cursor.at();
    let attributes = cursor.i8("record attributes")?;
    let timestamp_delta = cursor.varlong("timestamp delta")?;
    let offset_delta = cursor.varint("offset delta")?;
    let read = cursor.at() - at;
    let Some(tail_bytes) = length.checked_sub(read) else {
        return Err(DecodeError::Truncated { field: "record", at, wanted: read, left: length });
    };
    let tail = &cursor.rest()[..tail_bytes];
    Ok(Encoded { at, end: at + length, attributes, timestamp_delta, offset_delta, tail })
}

/// Shows the `record_count` records of an unpacked payload as long as `visit` wants more. Tells whether it saw them all.
pub(super) fn walk(
    record_count: i32,
    payload: Bytes,
    mut visit: impl FnMut(&Encoded<'_>) -> Result<bool, DecodeError>,
) -> Result<bool, DecodeError> {
    let mut cursor = Cursor::new(payload);
    cursor.bounded("record count", record_count.into(), RECORD_BYTES_MIN)?;
    for _ in 0..record_count {
        let record = read(&mut cursor)?;
        let tail_bytes = record.tail.len();
        if !visit(&record)? {
            return Ok(false);
        }
        cursor.skip("record", tail_bytes)?;
    }
    match cursor.left() {
        0 => Ok(true),
        left => Err(DecodeError::TrailingBytes { what: "the batch's records", left }),
    }
}
