//! One record of magic 2: its fields, read within bounds and written back to the same bytes.
//!
//! Headers are a list: their order, repeated keys and null values are part of the record. Keys of headers are kept as
//! bytes, so that nothing is lost on one that is not UTF-8.
//!
//! # References
//! KIP-98, KIP-82 (headers); `DefaultRecord`.

use bytes::{BufMut, Bytes, BytesMut};

use super::codec::decompress;
use crate::batch::BatchView;
use crate::cursor::Cursor;
use crate::primitives::put_varint;
use crate::{DecodeError, EncodeError};

/// Least bytes of a record: length, attributes, two deltas, key, value, header count.
pub(super) const RECORD_BYTES_MIN: usize = 7;

/// One record as it stands in its batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// Unused by Kafka so far.
    pub attributes: i8,
    /// Timestamp minus the batch's base timestamp, ms.
    pub timestamp_delta: i64,
    /// Offset minus the batch's base offset.
    pub offset_delta: i32,
    /// Key, none for null.
    pub key: Option<Bytes>,
    /// Value, none for null.
    pub value: Option<Bytes>,
    /// Headers in their order.
    pub headers: Vec<Header>,
}

/// One header of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Key; several headers may have the same.
    pub key: Bytes,
    /// Value, none for null.
    pub value: Option<Bytes>,
}

impl Record {
    /// Reads the record at `cursor` and moves behind it.
    ///
    /// # Errors
    /// [`DecodeError`] when a length does not fit, or the fields do not fill the record from first to last byte.
    pub fn decode(cursor: &mut Cursor) -> Result<Self, DecodeError> {
        let length = cursor.varint("record length")?;
        let length = cursor.bounded("record length", length.into(), 1)?;
        let mut cursor = Cursor::new(cursor.take("record", length)?);
        let mut record = Self {
            attributes: cursor.i8("record attributes")?,
            timestamp_delta: cursor.varlong("timestamp delta")?,
            offset_delta: cursor.varint("offset delta")?,
            key: nullable(&mut cursor, "key")?,
            value: nullable(&mut cursor, "value")?,
            headers: Vec::new(),
        };
        let count = cursor.varint("header count")?;
        for _ in 0..cursor.bounded("header count", count.into(), 2)? {
            record.headers.push(Header::decode(&mut cursor)?);
        }
        match cursor.left() {
            0 => Ok(record),
            left => Err(DecodeError::TrailingBytes { what: "record", left }),
        }
    }

    /// Appends the record to `out`, length first, as Kafka's own clients write it.
    ///
    /// # Errors
    /// [`EncodeError::TooLong`] for a field, a list or a record of more than 2^31 - 1 bytes.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let mut body = BytesMut::new();
        body.put_i8(self.attributes);
        put_varint(&mut body, self.timestamp_delta);
        put_varint(&mut body, self.offset_delta.into());
        put_nullable(&mut body, "key", self.key.as_ref())?;
        put_nullable(&mut body, "value", self.value.as_ref())?;
        put_length(&mut body, "headers", self.headers.len())?;
        for header in &self.headers {
            put_length(&mut body, "header key", header.key.len())?;
            body.put_slice(&header.key);
            put_nullable(&mut body, "header value", header.value.as_ref())?;
        }
        put_length(out, "record", body.len())?;
        out.unsplit(body);
        Ok(())
    }
}

impl Header {
    fn decode(cursor: &mut Cursor) -> Result<Self, DecodeError> {
        let length = cursor.varint("header key")?;
        let length = cursor.bounded("header key", length.into(), 1)?;
        let key = cursor.take("header key", length)?;
        Ok(Self { key, value: nullable(cursor, "header value")? })
    }
}

fn nullable(cursor: &mut Cursor, field: &'static str) -> Result<Option<Bytes>, DecodeError> {
    let length = cursor.varint(field)?;
    if length == -1 {
        return Ok(None);
    }
    let length = cursor.bounded(field, length.into(), 1)?;
    cursor.take(field, length).map(Some)
}

fn put_nullable(out: &mut BytesMut, field: &'static str, bytes: Option<&Bytes>) -> Result<(), EncodeError> {
    match bytes {
        None => put_varint(out, -1),
        Some(bytes) => {
            put_length(out, field, bytes.len())?;
            out.put_slice(bytes);
        }
    }
    Ok(())
}

pub(super) fn put_length(out: &mut BytesMut, field: &'static str, length: usize) -> Result<(), EncodeError> {
    let Ok(value) = i32::try_from(length) else {
        return Err(EncodeError::TooLong { field, length, limit: i32::MAX as usize });
    };
    put_varint(out, value.into());
    Ok(())
}

/// The records of a batch, unpacked into at most `bytes_max` bytes.
///
/// # Errors
/// [`DecodeError`] for an unknown codec, a payload that its codec refuses or that grows past `bytes_max`, and a record
/// count that the payload cannot hold.
pub fn records(view: &BatchView, bytes_max: usize) -> Result<Records, DecodeError> {
    let header = view.header();
    let payload = decompress(header.attributes.compression()?, &view.body(), bytes_max)?;
    let cursor = Cursor::new(payload);
    let left = cursor.bounded("record count", header.record_count.into(), RECORD_BYTES_MIN)?;
    Ok(Records { cursor, left, failed: false })
}

/// Iterator over the records of a batch; bytes after the last one are an error too.
#[derive(Debug, Clone)]
pub struct Records {
    cursor: Cursor,
    left: usize,
    failed: bool,
}

impl Iterator for Records {
    type Item = Result<Record, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = match (self.left, self.cursor.left()) {
            (0, 0) => return None,
            (0, left) => Err(DecodeError::TrailingBytes { what: "the batch's records", left }),
            _ => Record::decode(&mut self.cursor),
        };
        self.left = self.left.saturating_sub(1);
        self.failed = record.is_err();
        Some(record)
    }
}

impl std::iter::FusedIterator for Records {}

#[cfg(test)]
mod tests {
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn bytes() -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(any::<u8>(), 0..80).prop_map(Bytes::from)
    }

    prop_compose! {
        fn record()(
            attributes in any::<i8>(),
            timestamp_delta in any::<i64>(),
            offset_delta in any::<i32>(),
            key in option::of(bytes()),
            value in option::of(bytes()),
            headers in proptest::collection::vec((bytes(), option::of(bytes())), 0..4),
        ) -> Record {
            let headers = headers.into_iter().map(|(key, value)| Header { key, value }).collect();
            Record { attributes, timestamp_delta, offset_delta, key, value, headers }
        }
    }

    proptest! {
        #[test]
        fn a_record_reads_back_and_no_prefix_of_it_does(record in record()) {
            let mut out = BytesMut::new();
            record.encode(&mut out).unwrap();
            let bytes = out.freeze();
            let mut cursor = Cursor::new(bytes.clone());
            prop_assert_eq!(Record::decode(&mut cursor), Ok(record));
            prop_assert_eq!(cursor.left(), 0);
            for end in 0..bytes.len() {
                prop_assert!(Record::decode(&mut Cursor::new(bytes.slice(..end))).is_err());
            }
        }

        #[test]
        fn any_bytes_are_a_record_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut cursor = Cursor::new(Bytes::from(bytes));
            if let Ok(record) = Record::decode(&mut cursor) {
                prop_assert!(record.encode(&mut BytesMut::new()).is_ok());
            }
        }
    }

    #[test]
    fn the_layout_is_that_of_kafka() {
        let record = Record {
            timestamp_delta: 1,
            offset_delta: 2,
            value: Some(Bytes::from_static(b"v")),
            headers: vec![Header { key: Bytes::from_static(b"h"), value: None }],
            ..Record::default()
        };
        let mut out = BytesMut::new();
        record.encode(&mut out).unwrap();
        assert_eq!(out[..], [20, 0, 2, 4, 1, 2, b'v', 2, 2, b'h', 1]);
    }

    #[test]
    fn bytes_inside_a_record_behind_its_headers_are_an_error() {
        let bytes = Bytes::from_static(&[14, 0, 0, 0, 1, 1, 0, 0]);
        let decoded = Record::decode(&mut Cursor::new(bytes));
        assert_eq!(decoded, Err(DecodeError::TrailingBytes { what: "record", left: 1 }));
    }
}
