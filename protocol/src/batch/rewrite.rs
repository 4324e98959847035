//! `[4]` The header under which a batch goes to the target; the payload behind it is not touched.
//!
//! R1 Base offset 0 and leader epoch -1, as a producer sends them. R2 Our producer id, epoch and sequence. R3 The
//! transactional, log-append-time and delete-horizon bits are off: the first is refused outside a transaction, the
//! others a broker takes in silence and then misreads. R4 The CRC says of the payload what it said before.

use bytes::Bytes;

use super::crc;
use super::layout::{CRC_COVERS_FROM, HEADER_BYTES};
use super::view::BatchView;

/// What the target's leader knows a batch by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerStamp {
    /// Producer id.
    pub producer_id: i64,
    /// Producer epoch.
    pub producer_epoch: i16,
    /// Sequence of the batch's first record.
    pub base_sequence: i32,
}

impl ProducerStamp {
    /// No producer: whoever sends the batch says who he is.
    pub const NOBODY: Self = Self { producer_id: -1, producer_epoch: -1, base_sequence: -1 };
}

/// A batch on its way to the target: a header of ours and the payload as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarded {
    /// The header.
    pub head: [u8; HEADER_BYTES],
    /// The payload: a slice of the Fetch answer.
    pub body: Bytes,
}

impl Forwarded {
    /// Bytes of the whole batch.
    #[must_use]
    pub fn total_bytes(&self) -> usize {
        HEADER_BYTES + self.body.len()
    }
}

/// The batch of `view` as ours, under the numbers of `stamp`. Its record count has to be what the target will accept:
/// see [`verdict`](super::verdict()).
#[must_use]
pub fn rewrite(view: &BatchView, stamp: ProducerStamp) -> Forwarded {
    let old = view.header();
    let body = view.body();
    let mut header = *old;
    header.base_offset = 0;
    header.partition_leader_epoch = -1;
    header.attributes = old.attributes.as_produced();
    header.producer_id = stamp.producer_id;
    header.producer_epoch = stamp.producer_epoch;
    header.base_sequence = stamp.base_sequence;
    let mut head = header.encode();
    let crc = crc::patched(old.crc, view.head(), &head, body.len());
    head[CRC_COVERS_FROM - 4..CRC_COVERS_FROM].copy_from_slice(&crc.to_be_bytes());
    Forwarded { head, body }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::batch::{Attributes, BatchHeader};

    const STAMP: ProducerStamp = ProducerStamp { producer_id: 77, producer_epoch: 8191, base_sequence: 12 };

    fn view(attributes: i16, body: &[u8]) -> BatchView {
        let mut header = BatchHeader {
            base_offset: 5_000_000_000,
            batch_length: i32::try_from(49 + body.len()).unwrap(),
            partition_leader_epoch: 4,
            magic: 2,
            crc: 0,
            attributes: Attributes(attributes),
            last_offset_delta: 2,
            base_timestamp: 1_700_000_000_000,
            max_timestamp: 1_700_000_000_001,
            producer_id: 1,
            producer_epoch: 0,
            base_sequence: i32::MAX,
            record_count: 3,
        };
        header.crc = crc::computed(&header.encode(), body);
        BatchView::parse([&header.encode()[..], body].concat().into()).unwrap()
    }

    fn whole(forwarded: &Forwarded) -> BatchView {
        BatchView::parse([&forwarded.head[..], &forwarded.body].concat().into()).unwrap()
    }

    #[test]
    fn only_what_is_ours_to_set_changes() {
        let source = view(0x5c, b"payload");
        let forwarded = rewrite(&source, STAMP);
        let sent = whole(&forwarded);
        let expected = BatchHeader {
            base_offset: 0,
            partition_leader_epoch: -1,
            attributes: Attributes(0x04),
            producer_id: 77,
            producer_epoch: 8191,
            base_sequence: 12,
            crc: sent.header().crc,
            ..*source.header()
        };
        assert_eq!(*sent.header(), expected);
        assert_eq!(sent.check_crc(), Ok(()));
        assert_eq!(forwarded.body.as_ptr(), source.bytes()[HEADER_BYTES..].as_ptr());
    }

    #[test]
    fn a_payload_damaged_before_us_fails_at_the_target() {
        let mut bytes = view(0, &[7; 1000]).bytes().to_vec();
        bytes[900] ^= 0x10;
        let damaged = BatchView::parse(bytes.into()).unwrap();
        assert!(whole(&rewrite(&damaged, STAMP)).check_crc().is_err());
    }

    proptest! {
        #[test]
        fn the_patched_crc_is_the_computed_one(
            attributes in any::<i16>(),
            body in proptest::collection::vec(any::<u8>(), 0..200),
            repeats in 0usize..20_000,
            producer_id in any::<i64>(),
            producer_epoch in any::<i16>(),
            base_sequence in any::<i32>(),
        ) {
            let source = view(attributes, &body.repeat(repeats));
            let stamp = ProducerStamp { producer_id, producer_epoch, base_sequence };
            let sent = whole(&rewrite(&source, stamp));
            prop_assert_eq!(sent.header().crc, crc32c::crc32c(&sent.bytes()[CRC_COVERS_FROM..]));
        }
    }
}
