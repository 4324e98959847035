//! The 61 bytes in front of every batch of magic 2: their places, their meaning, what they may not say.
//!
//! ```text
//!  0 base offset i64          12 leader epoch i32   21 attributes i16      27 base timestamp i64   51 producer epoch i16
//!  8 batch length i32         16 magic i8           23 last offset delta   35 max timestamp i64    53 base sequence i32
//!    (bytes after this field) 17 crc u32               i32                 43 producer id i64      57 record count i32
//! ```
//! The CRC-32C covers byte 21 to the end: base offset and leader epoch are outside it, so that a broker can set them.
//!
//! # References
//! KIP-98 (the format), KIP-534 (delete horizon); `DefaultRecordBatch`.

use bytes::{Buf, BufMut};

use crate::DecodeError;

/// Bytes of a batch header.
pub const HEADER_BYTES: usize = 61;
/// First byte that the CRC covers.
pub(crate) const CRC_COVERS_FROM: usize = 21;
/// Bytes in front of the part that `batch_length` counts: base offset and the length itself.
pub(crate) const LENGTH_COUNTS_FROM: usize = 12;
/// The least that `batch_length` can be: a header without records.
pub(crate) const BATCH_LENGTH_MIN: i32 = 49;
/// Place of the magic byte, the same in all three formats.
pub(crate) const MAGIC_AT: usize = 16;

/// The header of a batch of magic 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record; a producer sends 0.
    pub base_offset: i64,
    /// Bytes after this field.
    pub batch_length: i32,
    /// Epoch of the leader that appended the batch; a producer sends -1.
    pub partition_leader_epoch: i32,
    /// Always 2.
    pub magic: i8,
    /// CRC-32C of everything behind it.
    pub crc: u32,
    /// Codec and flags.
    pub attributes: Attributes,
    /// Offset of the last record, also of one that compaction removed, minus the base offset.
    pub last_offset_delta: i32,
    /// Timestamp of the first record in ms, or the delete horizon.
    pub base_timestamp: i64,
    /// Largest timestamp of the batch in ms, -1 for none.
    pub max_timestamp: i64,
    /// Producer id, -1 for none.
    pub producer_id: i64,
    /// Producer epoch, -1 for none.
    pub producer_epoch: i16,
    /// Sequence of the first record, -1 for none.
    pub base_sequence: i32,
    /// Records that are in the batch.
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`; what follows it is not looked at.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] below 61 bytes; [`DecodeError::LyingLength`] for a batch length that no header
    /// fits into; [`DecodeError::BadValue`] for another magic and for offsets or counts below 0 or past the last offset.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Some(mut rest) = bytes.get(..HEADER_BYTES) else {
            let (wanted, left) = (HEADER_BYTES, bytes.len());
            return Err(DecodeError::Truncated { field: "batch header", at: 0, wanted, left });
        };
        let header = Self {
            base_offset: rest.get_i64(),
            batch_length: rest.get_i32(),
            partition_leader_epoch: rest.get_i32(),
            magic: rest.get_i8(),
            crc: rest.get_u32(),
            attributes: Attributes(rest.get_i16()),
            last_offset_delta: rest.get_i32(),
            base_timestamp: rest.get_i64(),
            max_timestamp: rest.get_i64(),
            producer_id: rest.get_i64(),
            producer_epoch: rest.get_i16(),
            base_sequence: rest.get_i32(),
            record_count: rest.get_i32(),
        };
        header.check(bytes.len())?;
        Ok(header)
    }

    fn check(&self, left: usize) -> Result<(), DecodeError> {
        let bad = |field, at, value, reason| Err(DecodeError::BadValue { field, at, value, reason });
        if self.magic != 2 {
            return bad("magic", MAGIC_AT, self.magic.into(), "this header is that of magic 2");
        }
        if self.batch_length < BATCH_LENGTH_MIN {
            let length = self.batch_length.into();
            return Err(DecodeError::LyingLength { field: "batch length", at: 8, length, left });
        }
        if self.base_offset < 0 {
            return bad("base offset", 0, self.base_offset, "an offset is at least 0");
        }
        if self.last_offset_delta < 0 {
            return bad("last offset delta", 23, self.last_offset_delta.into(), "a delta is at least 0");
        }
        if self.base_offset.checked_add(i64::from(self.last_offset_delta) + 1).is_none() {
            return bad(
                "base offset",
                0,
                self.base_offset,
                "the batch would end past the last possible offset",
            );
        }
        if self.record_count < 0 {
            return bad("record count", 57, self.record_count.into(), "a count is at least 0");
        }
        Ok(())
    }

    /// The 61 bytes of this header, the CRC as it stands in the field.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut out = &mut bytes[..];
        out.put_i64(self.base_offset);
        out.put_i32(self.batch_length);
        out.put_i32(self.partition_leader_epoch);
        out.put_i8(self.magic);
        out.put_u32(self.crc);
        out.put_i16(self.attributes.0);
        out.put_i32(self.last_offset_delta);
        out.put_i64(self.base_timestamp);
        out.put_i64(self.max_timestamp);
        out.put_i64(self.producer_id);
        out.put_i16(self.producer_epoch);
        out.put_i32(self.base_sequence);
        out.put_i32(self.record_count);
        bytes
    }

    /// Offset of the last record, also of one that compaction removed.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    /// Offset to read next after this batch, whatever its records say.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.last_offset() + 1
    }

    /// Sequence of the last record, past 2^31 - 1 from 0 again; -1 for a batch without sequences.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 { -1 } else { sequence_after(self.base_sequence, self.last_offset_delta) }
    }

    /// The timestamp, in ms, that a consumer sees at a record with this delta.
    #[must_use]
    pub fn timestamp_ms(&self, delta: i64) -> i64 {
        match self.attributes.timestamp_type() {
            // Kafka's readers add in wrapping arithmetic.
            TimestampType::CreateTime => self.base_timestamp.wrapping_add(delta),
            TimestampType::LogAppendTime => self.max_timestamp,
        }
    }

    /// Every offset of the batch holds a record: what a broker demands of a producer.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        i64::from(self.record_count) == i64::from(self.last_offset_delta) + 1
    }

    /// Bytes of the whole batch, header included.
    #[must_use]
    pub fn total_bytes(&self) -> usize {
        LENGTH_COUNTS_FROM + usize::try_from(self.batch_length).unwrap_or_default()
    }
}

/// The sequence `count` records after `sequence`; past 2^31 - 1 sequences go on from 0.
///
/// # References
/// `DefaultRecordBatch.incrementSequence`.
#[must_use]
pub fn sequence_after(sequence: i32, count: i32) -> i32 {
    // The mask is the modulus: sequences have 31 bits.
    sequence.wrapping_add(count) & i32::MAX
}

/// The attribute bits of a batch: codec in bits 0 to 2, then timestamp type, transactional, control, delete horizon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes(pub i16);

impl Attributes {
    const CODEC: i16 = 0x07;
    const LOG_APPEND_TIME: i16 = 1 << 3;
    const TRANSACTIONAL: i16 = 1 << 4;
    const CONTROL: i16 = 1 << 5;
    const DELETE_HORIZON: i16 = 1 << 6;

    /// The codec of the payload.
    ///
    /// # Errors
    /// [`DecodeError::BadValue`] for the ids 5 to 7, which no Kafka has given out.
    pub fn compression(self) -> Result<Compression, DecodeError> {
        match self.0 & Self::CODEC {
            0 => Ok(Compression::None),
            1 => Ok(Compression::Gzip),
            2 => Ok(Compression::Snappy),
            3 => Ok(Compression::Lz4),
            4 => Ok(Compression::Zstd),
            other => Err(DecodeError::BadValue {
                field: "codec in the attributes",
                at: CRC_COVERS_FROM,
                value: other.into(),
                reason: "Kafka knows 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd",
            }),
        }
    }

    /// A batch of a transaction marker or another record of the broker's own: not for consumers.
    #[must_use]
    pub fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// Written inside a transaction.
    #[must_use]
    pub fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// Who set the timestamps.
    #[must_use]
    pub fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// The base timestamp is the time from which the cleaner may remove tombstones (KIP-534).
    #[must_use]
    pub fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }

    /// The same, written inside a transaction.
    #[must_use]
    pub fn with_transactional(self) -> Self {
        Self(self.0 | Self::TRANSACTIONAL)
    }

    /// The same with another codec.
    #[must_use]
    pub fn with_compression(self, compression: Compression) -> Self {
        Self(self.0 & !Self::CODEC | compression.id())
    }

    /// The same as a producer sends it outside a transaction: with timestamps of its own, without a delete horizon.
    #[must_use]
    pub fn as_produced(self) -> Self {
        Self(self.0 & !(Self::TRANSACTIONAL | Self::LOG_APPEND_TIME | Self::DELETE_HORIZON))
    }
}

/// How the payload of a batch is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Compression {
    /// Records as they are.
    #[default]
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy, raw or in the blocks of snappy-java.
    Snappy,
    /// LZ4 frames of independent blocks.
    Lz4,
    /// RFC 8878.
    Zstd,
}

impl Compression {
    /// All codecs, in the order of their ids.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec's number in the attributes.
    #[must_use]
    pub fn id(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }
}

/// Who set the timestamps of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer, record by record.
    CreateTime,
    /// The broker: all records have the batch's max timestamp.
    LogAppendTime,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn header() -> BatchHeader {
        BatchHeader {
            base_offset: 7,
            batch_length: 49,
            partition_leader_epoch: 3,
            magic: 2,
            crc: 0xdead_beef,
            attributes: Attributes(0x54),
            last_offset_delta: 9,
            base_timestamp: 1,
            max_timestamp: 2,
            producer_id: 4000,
            producer_epoch: 5,
            base_sequence: 6,
            record_count: 10,
        }
    }

    #[test]
    fn each_field_has_its_place() {
        let bytes = header().encode();
        assert_eq!(bytes[7], 7);
        assert_eq!(bytes[11], 49);
        assert_eq!(bytes[15], 3);
        assert_eq!(bytes[16], 2);
        assert_eq!(bytes[17..21], [0xde, 0xad, 0xbe, 0xef]);
        assert_eq!(bytes[21..27], [0, 0x54, 0, 0, 0, 9]);
        assert_eq!((bytes[34], bytes[42], bytes[52], bytes[56], bytes[60]), (1, 2, 5, 6, 10));
        assert_eq!(BatchHeader::parse(&bytes), Ok(header()));
    }

    #[test]
    fn a_header_that_cannot_be_true_is_an_error() {
        let lies: [fn(&mut BatchHeader); 8] = [
            |h| h.batch_length = -1,
            |h| h.batch_length = 48,
            |h| h.magic = 3,
            |h| h.magic = -1,
            |h| h.base_offset = -1,
            |h| h.last_offset_delta = -1,
            |h| h.record_count = -1,
            |h| h.base_offset = i64::MAX - 9,
        ];
        for lie in lies {
            let mut lying = header();
            lie(&mut lying);
            assert!(BatchHeader::parse(&lying.encode()).is_err(), "{lying:?}");
        }
        assert!(matches!(
            BatchHeader::parse(&[0; 60]),
            Err(DecodeError::Truncated { wanted: 61, left: 60, .. })
        ));
    }

    #[test]
    fn sequences_go_on_from_zero_after_the_last() {
        let mut header = header();
        header.base_sequence = i32::MAX - 3;
        assert_eq!(header.last_sequence(), 5);
        header.base_sequence = i32::MAX - 9;
        assert_eq!(header.last_sequence(), i32::MAX);
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX, i32::MAX), i32::MAX - 1);
        header.base_sequence = -1;
        assert_eq!(header.last_sequence(), -1);
    }

    #[test]
    fn attribute_bits_are_those_of_kafka() {
        let all = Attributes(0x7c);
        assert!(all.is_control() && all.is_transactional() && all.has_delete_horizon());
        assert_eq!(all.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(all.compression(), Ok(Compression::Zstd));
        let cleared = all.as_produced();
        assert_eq!(cleared, Attributes(0x24));
        for codec in Compression::ALL {
            assert_eq!(all.with_compression(codec).compression(), Ok(codec));
        }
        assert!(Attributes(5).compression().is_err());
    }

    proptest! {
        #[test]
        fn what_parses_encodes_to_the_same_bytes(mut bytes in proptest::array::uniform32(any::<u8>()), tail in proptest::array::uniform29(any::<u8>())) {
            bytes[MAGIC_AT] = 2;
            let bytes = [&bytes[..], &tail[..]].concat();
            if let Ok(header) = BatchHeader::parse(&bytes) {
                prop_assert_eq!(&header.encode()[..], &bytes[..]);
                prop_assert!(header.next_offset() > header.base_offset);
            }
        }
    }
}
