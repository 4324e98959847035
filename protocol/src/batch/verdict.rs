//! `[3]` What happens to a batch, decided from its header and the position of reading.
//!
//! Order of the rules: what consumers never see is dropped first, then what cannot be forwarded yet is held, then
//! the position decides between trimming and the header-only path.

use std::fmt;

use super::layout::{BatchHeader, TimestampType};

/// What happens to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The payload goes on as it is, under a header of ours.
    HeaderOnly,
    /// Re-encoded without the records below `first_offset`.
    Trim {
        /// First upstream offset that is kept.
        first_offset: i64,
    },
    /// Nothing of it is forwarded; its offsets are a hole.
    Drop(Dropped),
    /// The partition waits: forwarding would be wrong or is not built.
    Hold(Unsupported),
}

/// Why nothing of a batch is forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// All its offsets are below the position.
    BelowPosition,
    /// A transaction marker or another record of the broker's own.
    Control,
    /// The cleaner removed all records and kept the header for the producer's state.
    Empty,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BelowPosition => "all its offsets were read before",
            Self::Control => "control batch, which consumers never see",
            Self::Empty => "compaction removed all its records",
        })
    }
}

/// Why a partition waits before a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// A target refuses a batch whose offsets are not all taken.
    Thinned {
        /// Records that are left.
        records: i32,
        /// Offsets that the batch spans.
        offsets: i64,
    },
    /// The records have one time in the header, which is lost under a header of ours.
    LogAppendTime,
    /// A codec that no Kafka has given out.
    UnknownCodec {
        /// Bits 0 to 2 of the attributes.
        id: i16,
    },
    /// A message format from before 0.11.
    Legacy {
        /// 0 or 1.
        magic: i8,
    },
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thinned { records, offsets } => write!(
                f,
                "batch thinned by compaction ({records} records in {offsets} offsets), not supported yet"
            ),
            Self::LogAppendTime => {
                f.write_str("batch with log append time (message.timestamp.type), not supported yet")
            }
            Self::UnknownCodec { id } => write!(f, "batch packed with the unknown codec {id}"),
            Self::Legacy { magic } => {
                write!(f, "message format {magic} from before Kafka 0.11, not supported yet")
            }
        }
    }
}

/// What happens to the batch of `header` when reading stands at `position`.
#[must_use]
pub fn verdict(header: &BatchHeader, position: i64) -> Verdict {
    let attributes = header.attributes;
    if header.last_offset() < position {
        return Verdict::Drop(Dropped::BelowPosition);
    }
    if attributes.is_control() {
        return Verdict::Drop(Dropped::Control);
    }
    if header.record_count == 0 {
        return Verdict::Drop(Dropped::Empty);
    }
    if !header.is_dense() {
        let offsets = i64::from(header.last_offset_delta) + 1;
        return Verdict::Hold(Unsupported::Thinned { records: header.record_count, offsets });
    }
    if attributes.timestamp_type() == TimestampType::LogAppendTime {
        return Verdict::Hold(Unsupported::LogAppendTime);
    }
    if attributes.compression().is_err() {
        return Verdict::Hold(Unsupported::UnknownCodec { id: attributes.0 & 7 });
    }
    if header.base_offset < position {
        return Verdict::Trim { first_offset: position };
    }
    Verdict::HeaderOnly
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Attributes;

    fn header(attributes: i16, record_count: i32) -> BatchHeader {
        BatchHeader {
            base_offset: 100,
            batch_length: 49,
            partition_leader_epoch: 0,
            magic: 2,
            crc: 0,
            attributes: Attributes(attributes),
            last_offset_delta: 9,
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count,
        }
    }

    #[test]
    fn position_cuts_a_dense_batch() {
        let dense = header(0, 10);
        assert_eq!(verdict(&dense, 0), Verdict::HeaderOnly);
        assert_eq!(verdict(&dense, 100), Verdict::HeaderOnly);
        assert_eq!(verdict(&dense, 101), Verdict::Trim { first_offset: 101 });
        assert_eq!(verdict(&dense, 109), Verdict::Trim { first_offset: 109 });
        assert_eq!(verdict(&dense, 110), Verdict::Drop(Dropped::BelowPosition));
    }

    #[test]
    fn what_is_below_the_position_is_dropped_whatever_it_is() {
        for batch in [header(0x20, 1), header(0x08, 10), header(7, 10), header(0, 3)] {
            assert_eq!(verdict(&batch, 110), Verdict::Drop(Dropped::BelowPosition));
        }
    }

    #[test]
    fn control_and_emptied_batches_leave_holes() {
        assert_eq!(verdict(&header(0x30, 1), 0), Verdict::Drop(Dropped::Control));
        assert_eq!(verdict(&header(0x30, 0), 105), Verdict::Drop(Dropped::Control));
        assert_eq!(verdict(&header(0x10, 0), 0), Verdict::Drop(Dropped::Empty));
    }

    #[test]
    fn what_is_not_built_is_held_with_a_readable_reason() {
        let reason = |attributes, records| match verdict(&header(attributes, records), 105) {
            Verdict::Hold(reason) => reason.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(reason(0, 9), "batch thinned by compaction (9 records in 10 offsets), not supported yet");
        assert_eq!(
            reason(0, 11),
            "batch thinned by compaction (11 records in 10 offsets), not supported yet"
        );
        assert!(reason(0x08, 10).contains("log append time"));
        assert_eq!(reason(6, 10), "batch packed with the unknown codec 6");
        assert!(Unsupported::Legacy { magic: 1 }.to_string().contains("format 1"));
    }

    #[test]
    fn a_transactional_batch_needs_its_header_changed_only() {
        assert_eq!(verdict(&header(0x54, 10), 0), Verdict::HeaderOnly);
    }
}
