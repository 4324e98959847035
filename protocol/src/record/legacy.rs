//! Messages of magic 0 and 1, from before Kafka 0.11, as batches of today: alone, or several in a compressed wrapper.
//!
//! L1 Offset, key, value, order and codec are kept; the timestamp is what a consumer sees, -1 where magic 0 has none. L2 The CRC of each message was right, the wrapper's and those inside. L3 A wrapper unpacks
//! to no more than a limit.
//!
//! A wrapper has the offset of its last message. Inside, magic 0 has the offsets themselves; magic 1 counts from the
//! wrapper's first message, so that the broker need not pack it anew.
//!
//! # References
//! KIP-31 (relative offsets), KIP-32 (timestamps); `LegacyRecord`, `AbstractLegacyRecordBatch.DeepRecordsIterator`.

use bytes::{Bytes, BytesMut};
use twox_hash::XxHash32;

use super::builder::BatchBuilder;
use super::codec::decompress;
use super::dense::{Dense, Reencoded};
use super::fields::Record;
use crate::DecodeError;
use crate::batch::{Attributes, Compression};
use crate::cursor::Cursor;
use crate::primitives::Reader;

/// What consumers see where a message has no time.
const NO_TIMESTAMP: i64 = -1;
/// Where an LZ4 frame has its flags.
const LZ4_FLAGS_AT: usize = 4;
const LOG_APPEND_TIME: i8 = 1 << 3;

/// The records at or behind `first_offset` of a message, or of the wrapper that it is, as a dense batch, packed as they
/// were; none where none is there.
///
/// # Errors
/// [`DecodeError`] for a wrong CRC, lengths that do not fit, offsets that do not rise, a message of another magic or
/// another wrapper inside, and a wrapper that its codec refuses or that unpacks to more than `bytes_max` bytes.
pub fn upgrade(
    message: &Bytes,
    first_offset: i64,
    bytes_max: usize,
) -> Result<Option<Reencoded>, DecodeError> {
    let mut cursor = Cursor::new(message.clone());
    let outer = Message::read(&mut cursor)?;
    if cursor.left() > 0 {
        return Err(DecodeError::TrailingBytes { what: "message", left: cursor.left() });
    }
    let compression = outer.compression()?;
    let mut kept = Kept { compression, first_offset, dense: None };
    if compression == Compression::None {
        kept.push(outer)?;
    } else {
        unpack(&outer, bytes_max, |inner| kept.push(inner))?;
    }
    let finished = kept.dense.map(Dense::finish).transpose();
    finished.map_err(|error| refused(error.to_string()))
}

/// Hands on the messages of a wrapper, with the offsets and times that consumers see.
fn unpack(
    outer: &Message,
    bytes_max: usize,
    mut take: impl FnMut(Message) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let compression = outer.compression()?;
    let packed = outer.value.as_ref().ok_or_else(|| refused("a wrapper without a value".to_owned()))?;
    if compression == Compression::Lz4 && !has_end_mark(packed) {
        return Err(refused("an LZ4 frame without an end".to_owned()));
    }
    let payload = match (compression, outer.magic) {
        (Compression::Lz4, 0) => decompress(compression, &mended_lz4(packed), bytes_max)?,
        _ => decompress(compression, packed, bytes_max)?,
    };
    let base = if outer.magic == 0 { 0 } else { outer.offset.saturating_sub(last_offset(&payload)?) };
    let mut next_offset = 0;
    let mut cursor = Cursor::new(payload);
    while cursor.left() > 0 {
        let at = cursor.at();
        let bad = |field, value, reason| Err(DecodeError::BadValue { field, at, value, reason });
        let mut inner = Message::read(&mut cursor)?;
        if inner.magic != outer.magic {
            return bad("magic", inner.magic.into(), "a message has the magic of its wrapper");
        }
        if inner.compression()? != Compression::None {
            return bad("attributes", inner.attributes.into(), "a wrapper holds no other wrapper");
        }
        inner.offset = inner.offset.saturating_add(base);
        if inner.offset < next_offset || inner.offset > outer.offset {
            return bad("message offset", inner.offset, "offsets in a wrapper rise up to its own");
        }
        next_offset = inner.offset.saturating_add(1);
        if outer.attributes & LOG_APPEND_TIME != 0 {
            inner.timestamp_ms = outer.timestamp_ms;
        }
        take(inner)?;
    }
    if next_offset == outer.offset.saturating_add(1) {
        return Ok(());
    }
    let reason = "the last message in a wrapper has its offset";
    Err(DecodeError::BadValue { field: "message offset", at: 0, value: next_offset - 1, reason })
}

/// The offset that the last message of a payload names.
fn last_offset(payload: &Bytes) -> Result<i64, DecodeError> {
    let mut cursor = Cursor::new(payload.clone());
    let mut last = 0;
    while cursor.left() > 0 {
        last = cursor.i64("message offset")?;
        let bytes = cursor.i32("message size")?;
        let bytes = cursor.bounded("message size", bytes.into(), 1)?;
        cursor.skip("message", bytes)?;
    }
    Ok(last)
}

/// The decoder takes an LZ4 frame that ends between two blocks for a whole one. Nothing else would tell how many messages
/// there were.
fn has_end_mark(frame: &[u8]) -> bool {
    const CONTENT_CHECKSUM: u8 = 1 << 2;
    let has_checksum = frame.get(LZ4_FLAGS_AT).is_some_and(|flags| flags & CONTENT_CHECKSUM != 0);
    let behind_bytes = if has_checksum { 4 } else { 0 };
    frame.len().checked_sub(behind_bytes).is_some_and(|end| frame[..end].ends_with(&[0; 4]))
}

/// An LZ4 frame with the right checksum of its descriptor: up to magic 0 Kafka took the frame's magic number into it.
fn mended_lz4(frame: &Bytes) -> Bytes {
    let flag = |bit: u8, bytes: usize| {
        frame.get(LZ4_FLAGS_AT).map_or(0, |flags| usize::from(flags >> bit & 1) * bytes)
    };
    let checksum_at = LZ4_FLAGS_AT + 2 + flag(3, 8) + flag(0, 4);
    let mut mended = BytesMut::from(&frame[..]);
    if let Some((descriptor, [checksum, ..])) = mended.split_at_mut_checked(checksum_at) {
        *checksum = XxHash32::oneshot(0, &descriptor[LZ4_FLAGS_AT..]).to_be_bytes()[2];
    }
    mended.freeze()
}

struct Kept {
    compression: Compression,
    first_offset: i64,
    dense: Option<Dense>,
}

impl Kept {
    fn push(&mut self, message: Message) -> Result<(), DecodeError> {
        let Message { offset, timestamp_ms, key, value, .. } = message;
        if offset < self.first_offset {
            return Ok(());
        }
        let dense = self
            .dense
            .get_or_insert_with(|| Dense::begin(BatchBuilder::new().compression(self.compression), offset));
        dense
            .place(offset)
            .push_record(timestamp_ms, Record { key, value, ..Record::default() })
            .map_err(|error| refused(error.to_string()))
    }
}

fn refused(reason: String) -> DecodeError {
    DecodeError::Refused { what: "message of an old format", reason }
}

struct Message {
    offset: i64,
    magic: i8,
    attributes: i8,
    timestamp_ms: i64,
    key: Option<Bytes>,
    value: Option<Bytes>,
}

impl Message {
    fn read(cursor: &mut Cursor) -> Result<Self, DecodeError> {
        let at = cursor.at();
        let offset = cursor.i64("message offset")?;
        let bytes = cursor.i32("message size")?;
        let bytes = cursor.bounded("message size", bytes.into(), 1)?;
        let mut reader = Reader::new(cursor.take("message", bytes)?, false);
        let named = reader.cursor.u32("message crc")?;
        let mut crc = flate2::Crc::new();
        crc.update(reader.cursor.rest());
        if crc.sum() != named {
            let (value, reason) = (named.into(), "the message is damaged");
            return Err(DecodeError::BadValue { field: "message crc", at, value, reason });
        }
        let magic = reader.cursor.i8("magic")?;
        let attributes = reader.cursor.i8("message attributes")?;
        let timestamp_ms = match magic {
            0 => NO_TIMESTAMP,
            1 => reader.cursor.i64("message timestamp")?,
            _ => {
                let (value, reason) = (magic.into(), "messages are of magic 0 or 1");
                return Err(DecodeError::BadValue { field: "magic", at, value, reason });
            }
        };
        let (key, value) = (reader.nullable_bytes("key")?, reader.nullable_bytes("value")?);
        reader.end("message")?;
        Ok(Self { offset, magic, attributes, timestamp_ms, key, value })
    }

    fn compression(&self) -> Result<Compression, DecodeError> {
        match Attributes(self.attributes.into()).compression()? {
            Compression::Zstd => {
                let (value, reason) = (Compression::Zstd.id().into(), "zstd is younger than this format");
                Err(DecodeError::BadValue { field: "codec", at: 0, value, reason })
            }
            compression => Ok(compression),
        }
    }
}

#[cfg(test)]
mod tests;
