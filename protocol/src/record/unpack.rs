//! The records of a batch one by one, unpacked no further than they are looked at.
//!
//! U1 Held are the record that is looked at, a block behind it, and what the codec needs. U2 No length that the bytes name
//! is reserved before so many bytes are there.

use std::fmt;
use std::io::Read;

use bytes::{Bytes, BytesMut};

use super::codec::{refused, unpacker};
use crate::DecodeError;
use crate::batch::{BatchHeader, BatchView, Compression};
use crate::cursor::Cursor;

/// Bytes that are unpacked at once.
const BLOCK_BYTES: usize = 64 << 10;
/// A varint of 32 bits.
const LENGTH_BYTES_MAX: usize = 5;

/// A batch on its way out of its packing.
pub(super) struct Unpacking {
    header: BatchHeader,
    compression: Compression,
    reader: Box<dyn Read + Send>,
    unpacked: BytesMut,
    /// Place in the payload of the first byte that is held.
    at: usize,
    records_left: i32,
    record_bytes_max: usize,
}

/// A record with its length, and its place in the payload.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    pub(super) at: usize,
    pub(super) bytes: Bytes,
}

impl Unpacking {
    /// Begins with the first record. None may have more than `record_bytes_max` bytes.
    ///
    /// # Errors
    /// For a wrong CRC, and for an unknown codec.
    pub(super) fn begin(view: &BatchView, record_bytes_max: usize) -> Result<Self, DecodeError> {
        view.check_crc()?;
        let header = *view.header();
        let compression = header.attributes.compression()?;
        let reader = unpacker(compression, view.body(), record_bytes_max)
            .map_err(|error| refused(compression, record_bytes_max, &error))?;
        Ok(Self {
            header,
            compression,
            reader,
            unpacked: BytesMut::new(),
            at: 0,
            records_left: header.record_count,
            record_bytes_max,
        })
    }

    /// The header of the batch.
    pub(super) fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The next record, once; none behind the last one.
    pub(super) fn next(&mut self) -> Result<Option<Raw>, DecodeError> {
        if self.records_left <= 0 {
            self.fill(1)?;
            return match self.unpacked.len() {
                0 => Ok(None),
                left => Err(DecodeError::TrailingBytes { what: "the batch's records", left }),
            };
        }
        self.fill(LENGTH_BYTES_MAX)?;
        let start = &self.unpacked[..self.unpacked.len().min(LENGTH_BYTES_MAX)];
        let mut cursor = Cursor::behind(self.at, Bytes::copy_from_slice(start));
        let length = cursor.varint("record length")?;
        let bytes = usize::try_from(length).unwrap_or(0).saturating_add(cursor.at() - self.at);
        if bytes > self.record_bytes_max {
            return Err(DecodeError::UnpacksTooLarge { what: "record", limit: self.record_bytes_max });
        }
        self.fill(bytes)?;
        // Where fewer are there, reading the record tells.
        let bytes = self.unpacked.split_to(bytes.min(self.unpacked.len())).freeze();
        let at = self.at;
        self.at += bytes.len();
        self.records_left -= 1;
        Ok(Some(Raw { at, bytes }))
    }

    /// Bytes of memory for what is unpacked.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.unpacked.capacity()
    }

    /// Unpacks until so many bytes are held, or all that there are.
    fn fill(&mut self, wanted: usize) -> Result<(), DecodeError> {
        while self.unpacked.len() < wanted {
            let held = self.unpacked.len();
            self.unpacked.resize(held + BLOCK_BYTES, 0);
            let read = self.reader.read(&mut self.unpacked[held..]);
            self.unpacked.truncate(held + read.as_ref().map_or(0, |bytes| *bytes));
            match read {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(refused(self.compression, self.record_bytes_max, &error)),
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Unpacking {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Unpacking")
            .field("at", &self.at)
            .field("records_left", &self.records_left)
            .finish_non_exhaustive()
    }
}
