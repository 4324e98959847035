//! Produce, version 13: headers are looked at, payloads thrown away, but those of internal topics.

use std::io;

use bytes::Bytes;
use kafka_protocol::messages::{
    ProduceResponse,
    produce_response::{PartitionProduceResponse, TopicProduceResponse},
};
use twinlog_protocol::batch::{BatchHeader, HEADER_BYTES};
use uuid::Uuid;

use super::{
    inlet::Inlet,
    log::{Broker, Topic},
};

const UNKNOWN_TOPIC_ID: i16 = 100;

/// Reads the body of a request and appends its batches.
pub(super) fn produce(broker: &Broker, inlet: &mut Inlet) -> io::Result<ProduceResponse> {
    let transactional_id_bytes = inlet.uvarint()?.saturating_sub(1);
    inlet.skip(transactional_id_bytes)?;
    inlet.skip(2 + 4)?; // acks, timeout
    let mut topics = Vec::new();
    for _ in 1..inlet.uvarint()? {
        let id = u128::from_be_bytes(inlet.array()?);
        let topic = broker.by_id(id);
        let mut partitions = Vec::new();
        for _ in 1..inlet.uvarint()? {
            partitions.push(partition(broker, topic.as_deref(), inlet)?);
            no_tags(inlet)?;
        }
        no_tags(inlet)?;
        topics.push(
            TopicProduceResponse::default()
                .with_topic_id(Uuid::from_u128(id))
                .with_partition_responses(partitions),
        );
    }
    no_tags(inlet)?;
    Ok(ProduceResponse::default().with_responses(topics))
}

fn partition(
    broker: &Broker,
    topic: Option<&Topic>,
    inlet: &mut Inlet,
) -> io::Result<PartitionProduceResponse> {
    let number = i32::from_be_bytes(inlet.array()?);
    let bytes = inlet.uvarint()?.saturating_sub(1);
    let head: [u8; HEADER_BYTES] = inlet.array()?;
    let mut header = BatchHeader::parse(&head).map_err(|error| io::Error::other(error.to_string()))?;
    let body_bytes = bytes.checked_sub(HEADER_BYTES).ok_or(io::ErrorKind::InvalidData)?;
    let answer = PartitionProduceResponse::default().with_index(number).with_log_start_offset(0);
    let keeps = topic.is_some_and(Topic::is_internal);
    let body = if keeps { inlet.bytes(body_bytes)? } else { Vec::new() };
    if !keeps {
        inlet.skip(body_bytes)?;
        broker.note_taken(bytes as u64);
    }
    let Some(mut of) = topic.and_then(|topic| topic.partition(number)) else {
        return Ok(answer.with_error_code(UNKNOWN_TOPIC_ID).with_base_offset(-1));
    };
    header.base_offset = of.append(&header);
    if keeps {
        header.partition_leader_epoch = 0;
        of.kept.push((header, Bytes::from([&header.encode()[..], &body].concat())));
    }
    Ok(answer.with_base_offset(header.base_offset))
}

/// Nobody sends any.
fn no_tags(inlet: &mut Inlet) -> io::Result<()> {
    match inlet.uvarint()? {
        0 => Ok(()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
