//! One batch as several, cut between records, for a target that takes none as large.
//!
//! S1 Every record keeps its timestamp, key, value, headers, order and upstream offset; a batch of several records becomes at
//! least two, each dense and in the codec of the whole. S2 A batch is cut under a CRC that is right: a damaged one is an
//! error, not a fresh CRC. S3 Unpacked, a piece holds half of the whole and one record more at most, so that cutting again comes
//! to an end soon.
//!
//! # References
//! `LogValidator` and `UnifiedLog.analyzeAndValidateRecords` (`max.message.bytes` counts a batch as it is sent).

use super::codec::decompress;
use super::dense::{Dense, Reencoded};
use super::reencode::{emptied, refused};
use super::walk::walk;
use crate::DecodeError;
use crate::batch::HEADER_BYTES;

/// The records of `whole` in about equal batches of at most `bytes_max` bytes each, as far as their number and size allow.
/// How well a part packs is not known before, so that a piece may come out larger. Unpacked on the way into at most
/// `unpacked_bytes_max` bytes.
///
/// # Errors
/// [`DecodeError::BadValue`] when the CRC is wrong, and for offsets that leave gaps; [`DecodeError::UnpacksTooLarge`] for
/// records that take more than `unpacked_bytes_max` bytes; otherwise what a payload can have wrong.
pub fn split(
    whole: &Reencoded,
    bytes_max: usize,
    unpacked_bytes_max: usize,
) -> Result<Vec<Reencoded>, DecodeError> {
    let Reencoded { view, gaps: _ } = whole;
    view.check_crc()?;
    let old = view.header();
    let body = view.body();
    let payload = decompress(old.attributes.compression()?, &body, unpacked_bytes_max)?;
    let cuts = Cuts::new(payload.len(), body.len(), bytes_max.saturating_sub(HEADER_BYTES).max(1));
    let mut done = Vec::new();
    let mut piece: Option<Dense> = None;
    let (mut index, mut piece_from, mut last_end) = (0u32, 0, 0);
    walk(old.record_count, payload, |record| {
        record.require_delta(index.cast_signed())?;
        if cuts.has_end(piece_from, last_end, record.end) {
            finish(&mut piece, &mut done)?;
            piece_from = last_end;
        }
        let offset = whole.offset_at(index);
        let new = piece.get_or_insert_with(|| Dense::begin(emptied(old, None), offset));
        new.place(offset)
            .push_encoded(old.timestamp_ms(record.timestamp_delta), record.attributes, record.tail)
            .map_err(|error| refused(&error))?;
        index += 1;
        last_end = record.end;
        Ok(true)
    })?;
    finish(&mut piece, &mut done)?;
    Ok(done)
}

/// Packs a piece as soon as it is whole: several unpacked ones take more memory.
fn finish(piece: &mut Option<Dense>, done: &mut Vec<Reencoded>) -> Result<(), DecodeError> {
    if let Some(piece) = piece.take() {
        done.push(piece.finish().map_err(|error| refused(&error))?);
    }
    Ok(())
}

/// Where the unpacked records are cut.
struct Cuts {
    bytes: u64,
    pieces: u64,
    piece_bytes_max: u64,
}

impl Cuts {
    /// Of so many bytes, packed into `packed_bytes`: equal parts as far as records allow, none above its part of
    /// `packed_bytes_max`.
    fn new(bytes: usize, packed_bytes: usize, packed_bytes_max: usize) -> Self {
        // Below 2 GB each, so that products fit.
        let [bytes, packed_bytes, packed_bytes_max] =
            [bytes, packed_bytes, packed_bytes_max].map(|bytes| bytes as u64);
        let pieces = packed_bytes.div_ceil(packed_bytes_max).max(2);
        let piece_bytes_max = bytes.saturating_mul(packed_bytes_max) / packed_bytes.max(1);
        Self { bytes, pieces, piece_bytes_max: piece_bytes_max.min(bytes.saturating_sub(1)) }
    }

    /// Whether a piece that begins at `from` and reaches to `to` ends before the record that ends at `next`: it has its share,
    /// or would become too large.
    fn has_end(&self, from: usize, to: usize, next: usize) -> bool {
        // The one that begins nearest to it.
        let before = (from as u64).saturating_mul(self.pieces).saturating_add(self.bytes / 2);
        let share = before / self.bytes.max(1) + 1;
        let share_end = self.bytes.saturating_mul(share) / self.pieces;
        to > from && (to as u64 >= share_end || (next - from) as u64 > self.piece_bytes_max)
    }
}

#[cfg(test)]
pub(super) mod tests;
