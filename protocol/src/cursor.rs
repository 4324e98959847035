//! Bounded reading: a place in a buffer that moves forward only over bytes that are there.
//!
//! A cursor works on [`Bytes`], so that a field taken out of a response is a slice of that response, not a copy.
//!
//! # References
//! Kafka protocol guide, "Protocol Primitive Types"; KIP-482 for compact lengths and tagged fields.

use bytes::{Buf, Bytes};

use crate::{DecodeError, OFFSET_MAX};

/// What is wrong with one above [`OFFSET_MAX`].
pub(crate) const NO_SUCH_OFFSET: &str = "no log has such an offset";

/// A place in a buffer. Every read names its field, so that an error says where the bytes went wrong.
#[derive(Debug, Clone)]
pub struct Cursor {
    rest: Bytes,
    length: usize,
}

macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident -> $type:ty, $get:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// [`DecodeError::Truncated`] when the bytes end before the field does.
        pub fn $name(&mut self, field: &'static str) -> Result<$type, DecodeError> {
            self.require(field, size_of::<$type>())?;
            Ok(self.rest.$get())
        }
    )*};
}

impl Cursor {
    /// A cursor at the first of `bytes`.
    #[must_use]
    pub fn new(bytes: Bytes) -> Self {
        let length = bytes.len();
        Self { rest: bytes, length }
    }

    /// A cursor at the first of `bytes`, before which there were `at` others.
    pub(crate) fn behind(at: usize, bytes: Bytes) -> Self {
        let length = at.saturating_add(bytes.len());
        Self { rest: bytes, length }
    }

    /// An offset, or -1 where there is none.
    ///
    /// # Errors
    /// [`DecodeError::BadValue`] for one that no log has ([`OFFSET_MAX`]), and as the numbers.
    pub fn offset(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        let at = self.at();
        let value = self.i64(field)?;
        if (-1..=OFFSET_MAX).contains(&value) {
            return Ok(value);
        }
        Err(DecodeError::BadValue { field, at, value, reason: NO_SUCH_OFFSET })
    }

    /// Bytes from the start of the buffer to here.
    #[must_use]
    pub fn at(&self) -> usize {
        self.length - self.rest.len()
    }

    /// Bytes from here to the end.
    #[must_use]
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Everything from here to the end, without moving.
    #[must_use]
    pub fn rest(&self) -> &Bytes {
        &self.rest
    }

    /// Fails unless `wanted` more bytes are there.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn require(&self, field: &'static str, wanted: usize) -> Result<(), DecodeError> {
        if self.left() < wanted {
            return Err(DecodeError::Truncated { field, at: self.at(), wanted, left: self.left() });
        }
        Ok(())
    }

    fixed! {
        /// One signed byte.
        i8 -> i8, get_i8;
        /// Two bytes, big-endian.
        i16 -> i16, get_i16;
        /// Four bytes, big-endian.
        i32 -> i32, get_i32;
        /// Eight bytes, big-endian.
        i64 -> i64, get_i64;
        /// Four bytes, big-endian, unsigned.
        u32 -> u32, get_u32;
        /// Sixteen bytes: a UUID.
        u128 -> u128, get_u128;
    }

    /// An unsigned varint of at most 32 bits (KIP-482 lengths and tags).
    ///
    /// # Errors
    /// [`DecodeError::Truncated`], [`DecodeError::LongVarint`].
    pub fn uvarint(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        let at = self.at();
        let value = self.base128(field, 5)?;
        u32::try_from(value).map_err(|_| DecodeError::LongVarint { field, at, limit: 5 })
    }

    /// A zigzag varint of at most 32 bits (record fields).
    ///
    /// # Errors
    /// [`DecodeError::Truncated`], [`DecodeError::LongVarint`].
    pub fn varint(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        let raw = self.uvarint(field)?;
        Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    /// A zigzag varint of at most 64 bits (record timestamps).
    ///
    /// # Errors
    /// [`DecodeError::Truncated`], [`DecodeError::LongVarint`].
    pub fn varlong(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        let raw = self.base128(field, 10)?;
        Ok((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    /// The next `length` bytes as a slice of the buffer.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn take(&mut self, field: &'static str, length: usize) -> Result<Bytes, DecodeError> {
        self.require(field, length)?;
        Ok(self.rest.split_to(length))
    }

    /// Moves over `length` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn skip(&mut self, field: &'static str, length: usize) -> Result<(), DecodeError> {
        self.require(field, length)?;
        self.rest.advance(length);
        Ok(())
    }

    /// Checks a length or count as the wire names it: at least 0, and `unit` bytes of each are there.
    ///
    /// # Errors
    /// [`DecodeError::LyingLength`].
    pub fn bounded(&self, field: &'static str, length: i64, unit: usize) -> Result<usize, DecodeError> {
        usize::try_from(length)
            .ok()
            .filter(|&count| count.checked_mul(unit).is_some_and(|bytes| bytes <= self.left()))
            .ok_or(DecodeError::LyingLength { field, at: self.at(), length, left: self.left() })
    }

    fn base128(&mut self, field: &'static str, limit: usize) -> Result<u64, DecodeError> {
        let at = self.at();
        let mut value = 0u64;
        for index in 0..limit {
            self.require(field, 1)?;
            let byte = self.rest.get_u8();
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                // The tenth byte of 64 bits carries one bit, no more.
                return if index == 9 && byte > 1 {
                    Err(DecodeError::LongVarint { field, at, limit })
                } else {
                    Ok(value)
                };
            }
        }
        Err(DecodeError::LongVarint { field, at, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(bytes: &[u8]) -> Cursor {
        Cursor::new(Bytes::copy_from_slice(bytes))
    }

    #[test]
    fn zigzag_values_read_back() {
        for (bytes, value) in [
            (&[0u8][..], 0),
            (&[1], -1),
            (&[2], 1),
            (&[0x80, 0x01], 64),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], i32::MIN),
        ] {
            assert_eq!(cursor(bytes).varint("v"), Ok(value));
            assert_eq!(cursor(bytes).varlong("v"), Ok(i64::from(value)));
        }
    }

    #[test]
    fn varint_that_never_ends_is_an_error() {
        assert!(matches!(cursor(&[0xff; 20]).varint("v"), Err(DecodeError::LongVarint { limit: 5, .. })));
        assert!(matches!(cursor(&[0xff; 20]).varlong("v"), Err(DecodeError::LongVarint { limit: 10, .. })));
        assert!(matches!(cursor(&[0xff, 0xff]).varint("v"), Err(DecodeError::Truncated { .. })));
        assert!(matches!(
            cursor(&[0xff, 0xff, 0xff, 0xff, 0x7f]).varint("v"),
            Err(DecodeError::LongVarint { .. })
        ));
    }

    #[test]
    fn lengths_beyond_the_buffer_are_lies() {
        let cursor = cursor(&[0; 8]);
        assert_eq!(cursor.bounded("n", 8, 1), Ok(8));
        for (length, unit) in [(9, 1), (-1, 1), (i64::MAX, 1), (2, 5), (i64::from(i32::MAX), usize::MAX)] {
            assert!(matches!(cursor.bounded("n", length, unit), Err(DecodeError::LyingLength { .. })));
        }
    }

    #[test]
    fn a_slice_points_into_the_buffer() {
        let buffer = Bytes::from_static(b"0123456789");
        let mut cursor = Cursor::new(buffer.clone());
        cursor.skip("head", 3).unwrap();
        let slice = cursor.take("body", 4).unwrap();
        assert_eq!(slice.as_ptr(), buffer[3..].as_ptr());
        assert_eq!((cursor.at(), cursor.left()), (7, 3));
        assert!(matches!(
            cursor.take("rest", 4),
            Err(DecodeError::Truncated { at: 7, wanted: 4, left: 3, .. })
        ));
    }
}
