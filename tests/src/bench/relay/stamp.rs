//! The header under which the raw relay sends a batch, with a CRC that is computed by a pass over all of it.

use bytes::Bytes;
use twinlog_protocol::batch::{BatchHeader, Forwarded, HEADER_BYTES, ProducerStamp};

/// First byte that the CRC covers.
const CRC_COVERS_FROM: usize = 21;

/// The batch `bytes` as a producer sends it.
pub(super) fn stamp(mut header: BatchHeader, bytes: &Bytes, stamp: ProducerStamp) -> Forwarded {
    header.base_offset = 0;
    header.partition_leader_epoch = -1;
    header.producer_id = stamp.producer_id;
    header.producer_epoch = stamp.producer_epoch;
    header.base_sequence = stamp.base_sequence;
    let body = bytes.slice(HEADER_BYTES..);
    header.crc = crc32c::crc32c_append(crc32c::crc32c(&header.encode()[CRC_COVERS_FROM..]), &body);
    Forwarded { head: header.encode(), body }
}

#[cfg(test)]
mod tests {
    use twinlog_protocol::{
        batch::{BatchView, rewrite},
        record::BatchBuilder,
    };

    use super::*;

    #[test]
    fn the_relay_sends_what_twinlog_sends() {
        let mut builder = BatchBuilder::new().base_offset(5_000_000_000);
        for value in ["first", "second"] {
            builder
                .push(1_700_000_000_000, None, Some(Bytes::from_static(value.as_bytes())), Vec::new())
                .unwrap();
        }
        let view: BatchView = builder.build().unwrap();
        let ours = ProducerStamp { producer_id: 4000, producer_epoch: 2, base_sequence: 77 };
        assert_eq!(stamp(*view.header(), view.bytes(), ours), rewrite(&view, ours));
    }
}
