//! `[3]` What happens to a batch, decided from its header and the position of reading.
//!
//! Order of the rules: what consumers never see is dropped first, then what nobody can read is held; what is left goes
//! under a new header wherever that says all there is to say.

use std::fmt;

use super::layout::{BatchHeader, TimestampType};

/// What happens to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The payload goes on as it is, under a header of ours.
    HeaderOnly,
    /// The records from the position on go on as a batch written anew: some were taken by the cleaner, or lie below the
    /// position, or they have one time together that a header of ours would lose.
    Reencode,
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
    /// Of a transaction that was aborted, where committed records are read: told by the answer, not by the header.
    Aborted,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BelowPosition => "all its offsets were read before",
            Self::Control => "control batch, which consumers never see",
            Self::Empty => "compaction removed all its records",
            Self::Aborted => "its transaction was aborted",
        })
    }
}

/// Why a partition waits before a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// A codec that no Kafka has given out.
    UnknownCodec {
        /// Bits 0 to 2 of the attributes.
        id: i16,
    },
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownCodec { id } => write!(f, "batch packed with the unknown codec {id}"),
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
    if attributes.compression().is_err() {
        return Verdict::Hold(Unsupported::UnknownCodec { id: attributes.0 & 7 });
    }
    let is_whole = header.is_dense() && header.base_offset >= position;
    match attributes.timestamp_type() {
        TimestampType::CreateTime if is_whole => Verdict::HeaderOnly,
        TimestampType::CreateTime | TimestampType::LogAppendTime => Verdict::Reencode,
    }
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
        assert_eq!(verdict(&dense, 101), Verdict::Reencode);
        assert_eq!(verdict(&dense, 109), Verdict::Reencode);
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
    fn what_the_new_header_would_not_tell_is_written_into_the_records() {
        // Thinned, more records than offsets (which re-encoding refuses), log append time, both.
        for (attributes, records) in [(0, 9), (0, 1), (0x40, 9), (0, 11), (0x08, 10), (0x18, 3)] {
            assert_eq!(verdict(&header(attributes, records), 100), Verdict::Reencode);
        }
    }

    #[test]
    fn what_nobody_can_read_is_held_with_a_readable_reason() {
        let held = verdict(&header(6, 10), 105);
        assert_eq!(held, Verdict::Hold(Unsupported::UnknownCodec { id: 6 }));
        assert_eq!(Unsupported::UnknownCodec { id: 6 }.to_string(), "batch packed with the unknown codec 6");
    }

    #[test]
    fn a_transactional_batch_needs_its_header_changed_only() {
        assert_eq!(verdict(&header(0x54, 10), 0), Verdict::HeaderOnly);
    }
}
