//! A dense batch in another codec, piece by piece: 100 KB may unpack to 100 MB, of which no more than a piece is held.
//!
//! R1 Every record keeps its timestamp, key, value, headers, order and upstream offset. R2 Nothing is unpacked under a wrong
//! CRC. R3 Where the payload is damaged or a record too large, the records before it have come.
//!
//! # References
//! As [`reencode`](super::reencode()).

use super::dense::{Dense, Reencoded};
use super::reencode::{emptied, refused};
use super::unpack::{Raw, Unpacking};
use super::walk::{Encoded, read};
use crate::DecodeError;
use crate::batch::Compression;
use crate::cursor::Cursor;

/// A batch on its way into pieces.
#[derive(Debug)]
pub struct Repack {
    whole: Reencoded,
    codec: Compression,
    unpacking: Unpacking,
    /// The record at `index`, where it was looked at already.
    next: Option<Raw>,
    index: u32,
    fault: Option<DecodeError>,
}

impl Repack {
    /// Begins with the first record of `whole`. None may unpack to more than `record_bytes_max` bytes, nor any block that the
    /// codec unpacks at once.
    ///
    /// # Errors
    /// [`DecodeError::BadValue`] when the CRC is wrong, and what an unknown codec is refused with.
    pub fn begin(whole: Reencoded, codec: Compression, record_bytes_max: usize) -> Result<Self, DecodeError> {
        let unpacking = Unpacking::begin(&whole.view, record_bytes_max)?;
        Ok(Self { whole, codec, unpacking, next: None, index: 0, fault: None })
    }

    /// The next records as a dense batch, packed from at most `bytes_max` bytes, or a single larger one; none behind the
    /// last one.
    ///
    /// # Errors
    /// [`DecodeError::UnpacksTooLarge`] for a record that is too large; otherwise what a payload can have wrong. It is the same
    /// from then on.
    pub fn next_piece(&mut self, bytes_max: usize) -> Result<Option<Reencoded>, DecodeError> {
        let mut piece = None;
        while let Some(record) = self.look(piece.is_some())? {
            let held = piece.as_ref().map_or(0, Dense::payload_bytes);
            if held > 0 && held.saturating_add(record.bytes.len()) > bytes_max {
                self.next = Some(record);
                break;
            }
            if let Err(fault) = self.append(&record, &mut piece) {
                self.fault = Some(fault);
            }
        }
        piece.map(Dense::finish).transpose().map_err(|error| refused(&error))
    }

    /// Upstream offset of the first record that is in no piece yet.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.whole.offset_at(self.index)
    }

    /// The next record; none where the records end or, with some `before` it in the piece, cannot be read any further.
    fn look(&mut self, before: bool) -> Result<Option<Raw>, DecodeError> {
        if self.fault.is_none() && self.next.is_none() {
            match self.unpacking.next() {
                Ok(next) => self.next = next,
                Err(fault) => self.fault = Some(fault),
            }
        }
        match &self.fault {
            Some(fault) if !before => Err(fault.clone()),
            Some(_) => Ok(None),
            None => Ok(self.next.take()),
        }
    }

    fn append(&mut self, raw: &Raw, piece: &mut Option<Dense>) -> Result<(), DecodeError> {
        let mut cursor = Cursor::behind(raw.at, raw.bytes.clone());
        let record = read(&mut cursor)?;
        record.require_delta(self.index.cast_signed())?;
        let Encoded { timestamp_delta, attributes, tail, .. } = record;
        let (old, offset) = (self.unpacking.header(), self.whole.offset_at(self.index));
        let piece = piece.get_or_insert_with(|| Dense::begin(emptied(old, Some(self.codec)), offset));
        piece
            .place(offset)
            .push_encoded(old.timestamp_ms(timestamp_delta), attributes, tail)
            .map_err(|error| refused(&error))?;
        self.index += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
