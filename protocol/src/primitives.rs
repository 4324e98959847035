//! Strings, arrays and tagged fields as Fetch and Produce have them, read and written in both dialects.
//!
//! A flexible version has compact lengths and ends each structure with tagged fields; an older one has fixed
//! lengths and no tags. Readers and writers know which they are in, so that a codec lists its fields once.
//!
//! # References
//! Kafka protocol guide, "Protocol Primitive Types"; KIP-482.

use std::ops::RangeInclusive;

use bytes::{BufMut, Bytes, BytesMut};

use crate::cursor::Cursor;
use crate::{DecodeError, EncodeError};

/// Reads the fields of one message.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) cursor: Cursor,
    flexible: bool,
}

impl Reader {
    pub(crate) fn new(body: Bytes, flexible: bool) -> Self {
        Self { cursor: Cursor::new(body), flexible }
    }

    /// A length or count; none for null.
    fn length(&mut self, field: &'static str, fixed: Fixed) -> Result<Option<i64>, DecodeError> {
        let length = match (self.flexible, fixed) {
            (true, _) => i64::from(self.cursor.uvarint(field)?) - 1,
            (false, Fixed::Short) => i64::from(self.cursor.i16(field)?),
            (false, Fixed::Long) => i64::from(self.cursor.i32(field)?),
        };
        Ok((length != -1).then_some(length))
    }

    fn required(&self, field: &'static str, length: Option<i64>) -> Result<i64, DecodeError> {
        let (at, left) = (self.cursor.at(), self.cursor.left());
        length.ok_or(DecodeError::LyingLength { field, at, length: -1, left })
    }

    /// Element count of an array whose elements take at least `unit` bytes each.
    pub(crate) fn count(&mut self, field: &'static str, unit: usize) -> Result<usize, DecodeError> {
        let count = self.length(field, Fixed::Long)?;
        let count = self.required(field, count)?;
        self.cursor.bounded(field, count, unit)
    }

    /// The same, 0 for null.
    pub(crate) fn nullable_count(&mut self, field: &'static str, unit: usize) -> Result<usize, DecodeError> {
        let count = self.length(field, Fixed::Long)?.unwrap_or(0);
        self.cursor.bounded(field, count, unit)
    }

    /// A string that may be null.
    pub(crate) fn nullable_string(&mut self, field: &'static str) -> Result<Option<String>, DecodeError> {
        let Some(length) = self.length(field, Fixed::Short)? else { return Ok(None) };
        let length = self.cursor.bounded(field, length, 1)?;
        let bytes = self.cursor.take(field, length)?;
        match str::from_utf8(&bytes) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(error) => Err(DecodeError::Refused { what: field, reason: error.to_string() }),
        }
    }

    /// A string.
    pub(crate) fn string(&mut self, field: &'static str) -> Result<String, DecodeError> {
        let (at, left) = (self.cursor.at(), self.cursor.left());
        self.nullable_string(field)?.ok_or(DecodeError::LyingLength { field, at, length: -1, left })
    }

    /// Bytes that may be null, as a slice of the message.
    pub(crate) fn nullable_bytes(&mut self, field: &'static str) -> Result<Option<Bytes>, DecodeError> {
        let Some(length) = self.length(field, Fixed::Long)? else { return Ok(None) };
        let length = self.cursor.bounded(field, length, 1)?;
        self.cursor.take(field, length).map(Some)
    }

    /// The tagged fields that end a structure: `known` reads those it knows to their end and says so.
    pub(crate) fn tags(
        &mut self,
        mut known: impl FnMut(u32, &mut Self) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        if !self.flexible {
            return Ok(());
        }
        let count = self.cursor.uvarint("tagged fields")?;
        for _ in 0..self.cursor.bounded("tagged fields", count.into(), 2)? {
            let tag = self.cursor.uvarint("tag")?;
            let size = self.cursor.uvarint("tagged field")?;
            let size = self.cursor.bounded("tagged field", size.into(), 1)?;
            let mut field = Self::new(self.cursor.take("tagged field", size)?, true);
            if known(tag, &mut field)? {
                field.end("tagged field")?;
            }
        }
        Ok(())
    }

    /// Tagged fields of which none is known.
    pub(crate) fn skip_tags(&mut self) -> Result<(), DecodeError> {
        self.tags(|_, _| Ok(false))
    }

    /// Fails unless everything was read.
    pub(crate) fn end(&self, what: &'static str) -> Result<(), DecodeError> {
        match self.cursor.left() {
            0 => Ok(()),
            left => Err(DecodeError::TrailingBytes { what, left }),
        }
    }
}

/// Makes room for the first elements of a list: as much as they take if they are few, for the count is the wire's word.
pub(crate) fn make_room<T>(list: &mut Vec<T>, count: usize) {
    const FEW: usize = 16;
    if list.is_empty() {
        list.reserve_exact(count.min(FEW));
    }
}

#[derive(Debug, Clone, Copy)]
enum Fixed {
    Short,
    Long,
}

/// Writes the fields of one message.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) out: BytesMut,
    flexible: bool,
}

impl Writer {
    pub(crate) fn new(flexible: bool) -> Self {
        Self { out: BytesMut::new(), flexible }
    }

    /// Element count of an array.
    pub(crate) fn count(&mut self, field: &'static str, count: usize) -> Result<(), EncodeError> {
        self.length(field, Some(count), Fixed::Long)
    }

    /// Length of bytes that follow.
    pub(crate) fn bytes_length(&mut self, field: &'static str, length: usize) -> Result<(), EncodeError> {
        self.length(field, Some(length), Fixed::Long)
    }

    /// A string, or null.
    pub(crate) fn string(&mut self, field: &'static str, text: Option<&str>) -> Result<(), EncodeError> {
        self.length(field, text.map(str::len), Fixed::Short)?;
        self.out.put_slice(text.unwrap_or_default().as_bytes());
        Ok(())
    }

    /// The end of a structure that has no tagged fields.
    pub(crate) fn no_tags(&mut self) {
        if self.flexible {
            self.out.put_u8(0);
        }
    }

    fn length(
        &mut self,
        field: &'static str,
        length: Option<usize>,
        fixed: Fixed,
    ) -> Result<(), EncodeError> {
        let signed = |limit: usize| match length {
            None => Ok(-1),
            Some(length) if length <= limit => Ok(i32::try_from(length).unwrap_or(i32::MAX)),
            Some(length) => Err(EncodeError::TooLong { field, length, limit }),
        };
        match (self.flexible, fixed) {
            (_, Fixed::Short) => {
                let length = signed(i16::MAX.cast_unsigned().into())?;
                if self.flexible {
                    put_uvarint(&mut self.out, (length + 1).cast_unsigned().into());
                } else {
                    self.out.put_i16(i16::try_from(length).unwrap_or(i16::MAX));
                }
            }
            (true, Fixed::Long) => {
                let length = signed(i32::MAX as usize - 1)?;
                put_uvarint(&mut self.out, (length + 1).cast_unsigned().into());
            }
            (false, Fixed::Long) => self.out.put_i32(signed(i32::MAX as usize)?),
        }
        Ok(())
    }
}

/// Bytes of length prefix and request header without the client id itself.
const HEADER_BYTES_FIXED: usize = 4 + 2 + 2 + 4 + 2 + 1;

/// Starts a request frame: room for the length prefix, then the request header, version 1 or, flexible, 2. Room for
/// `body_bytes` more is made at once; a longer body makes it grow.
pub(crate) fn begin_frame(
    api_key: i16,
    version: i16,
    flexible: bool,
    correlation_id: i32,
    client_id: &str,
    body_bytes: usize,
) -> Result<Writer, EncodeError> {
    // The client id keeps its fixed length in version 2 too, so that any broker can read it (KIP-482).
    let mut header = Writer::new(false);
    header.out.reserve(HEADER_BYTES_FIXED + client_id.len() + body_bytes);
    header.out.put_i32(0);
    header.out.put_i16(api_key);
    header.out.put_i16(version);
    header.out.put_i32(correlation_id);
    header.string("client id", Some(client_id))?;
    header.flexible = flexible;
    header.no_tags();
    Ok(header)
}

/// Sets the length prefix of a frame that is `frame_bytes` long, prefix included.
pub(crate) fn end_frame(prefix: &mut [u8], frame_bytes: usize) -> Result<(), EncodeError> {
    let (length, limit) = (frame_bytes - 4, i32::MAX as usize);
    let Ok(value) = i32::try_from(length) else {
        return Err(EncodeError::TooLong { field: "request frame", length, limit });
    };
    prefix[..4].copy_from_slice(&value.to_be_bytes());
    Ok(())
}

/// Fails unless this crate writes `version` of `api`.
pub(crate) fn check_written(
    api: &'static str,
    version: i16,
    versions: &RangeInclusive<i16>,
) -> Result<(), EncodeError> {
    if versions.contains(&version) {
        return Ok(());
    }
    let (first, last) = (*versions.start(), *versions.end());
    Err(EncodeError::UnknownVersion { api, version, first, last })
}

/// Fails unless this crate reads `version`.
pub(crate) fn check_read(
    field: &'static str,
    version: i16,
    versions: &RangeInclusive<i16>,
) -> Result<(), DecodeError> {
    if versions.contains(&version) {
        return Ok(());
    }
    let reason = "not a version that this codec reads";
    Err(DecodeError::BadValue { field, at: 0, value: version.into(), reason })
}

/// An unsigned varint.
pub(crate) fn put_uvarint(out: &mut impl BufMut, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.put_u8(low & 0x7f);
        }
        out.put_u8(low | 0x80);
    }
}

/// A zigzag varint; for the values of 32 bits the same bytes as Kafka's shorter type.
pub(crate) fn put_varint(out: &mut impl BufMut, value: i64) {
    put_uvarint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn varints_read_back(value in any::<i64>(), short in any::<i32>()) {
            let mut out = BytesMut::new();
            put_varint(&mut out, value);
            put_varint(&mut out, short.into());
            let mut cursor = Cursor::new(out.freeze());
            prop_assert_eq!(cursor.varlong("long"), Ok(value));
            prop_assert_eq!(cursor.varint("short"), Ok(short));
            prop_assert_eq!(cursor.left(), 0);
        }

        #[test]
        fn strings_and_counts_read_back(flexible in any::<bool>(), text in "\\PC{0,300}", count in 0usize..3) {
            let mut writer = Writer::new(flexible);
            writer.string("text", Some(&text)).unwrap();
            writer.string("null", None).unwrap();
            writer.count("count", count).unwrap();
            writer.no_tags();
            writer.out.put_bytes(0, count);
            let mut reader = Reader::new(writer.out.freeze(), flexible);
            prop_assert_eq!(reader.string("text"), Ok(text));
            prop_assert_eq!(reader.nullable_string("null"), Ok(None));
            prop_assert_eq!(reader.count("count", 1), Ok(count));
            reader.skip_tags().unwrap();
        }
    }

    #[test]
    fn null_where_a_value_must_be_is_an_error() {
        assert!(Reader::new(Bytes::from_static(&[0xff, 0xff]), false).string("name").is_err());
        assert!(Reader::new(Bytes::from_static(&[0]), true).string("name").is_err());
        assert!(Reader::new(Bytes::from_static(&[0]), true).count("array", 1).is_err());
        assert_eq!(Reader::new(Bytes::from_static(&[0xff; 4]), false).nullable_count("array", 1), Ok(0));
    }

    #[test]
    fn counts_beyond_the_message_are_lies() {
        let mut reader = Reader::new(Bytes::from_static(&[0x7f, 0xff, 0xff, 0xff]), false);
        assert!(matches!(reader.count("array", 1), Err(DecodeError::LyingLength { .. })));
        let mut reader = Reader::new(Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 0x0f]), true);
        assert!(matches!(reader.skip_tags(), Err(DecodeError::LyingLength { .. })));
    }

    #[test]
    fn a_known_tag_must_end_where_it_says() {
        let tags = Bytes::from_static(&[2, 0, 1, 9, 7, 2, 0, 0]);
        let mut reader = Reader::new(tags.clone(), true);
        assert_eq!(reader.tags(|tag, field| Ok(tag == 0 && field.cursor.i8("value")? == 9)), Ok(()));
        assert_eq!(reader.end("message"), Ok(()));
        let lazy = Reader::new(tags, true).tags(|_, _| Ok(true));
        assert!(matches!(lazy, Err(DecodeError::TrailingBytes { left: 1, .. })));
    }

    #[test]
    fn a_string_longer_than_its_length_field_is_refused() {
        let text = "x".repeat(32_768);
        for flexible in [false, true] {
            let error = Writer::new(flexible).string("name", Some(&text)).unwrap_err();
            assert_eq!(error, EncodeError::TooLong { field: "name", length: 32_768, limit: 32_767 });
        }
    }
}
