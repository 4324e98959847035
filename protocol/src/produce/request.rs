//! `[4]` A Produce request as a frame of slices: our few bytes in one buffer, each payload where it was received.

use std::sync::Arc;

use bytes::{BufMut, Bytes};

use super::gather::Gather;
use super::{VERSIONS, is_flexible, names_topics_by_id};
use crate::EncodeError;
use crate::batch::{Forwarded, HEADER_BYTES};
use crate::primitives::{Writer, begin_frame, check_written, end_frame};

const API_KEY: i16 = 0;

/// Most bytes of ours around the topics, around the partitions of one topic, and in front of and behind one payload.
const REQUEST_BYTES_MAX: usize = 2 + 2 + 4 + 5 + 1;
const TOPIC_BYTES_MAX: usize = 16 + 5 + 1;
const PARTITION_BYTES_MAX: usize = 4 + 5 + HEADER_BYTES + 1;

/// One batch and the partition it goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducePartition {
    /// Topic name, on the wire up to version 12.
    pub topic: Arc<str>,
    /// Topic id, on the wire from version 13.
    pub topic_id: u128,
    /// Partition number.
    pub partition: i32,
    /// The batch: a broker takes one per partition and request.
    pub batch: Forwarded,
}

/// A batch and its number in the call.
type Entry<'p> = (usize, &'p ProducePartition);

/// A whole Produce request outside transactions, length prefix and header included. Payloads are not copied.
///
/// `acks` is -1 for all in-sync replicas, 1 for the leader, 0 for no answer; `timeout_ms` is how long the leader waits
/// for the replicas. A topic's partitions stand together in the frame, wherever they are in `partitions`.
///
/// # Errors
/// [`EncodeError`] for a version outside [`VERSIONS`], for two batches to one partition, and for names or batches that
/// are too long.
pub fn produce_frame(
    version: i16,
    correlation_id: i32,
    client_id: &str,
    acks: i16,
    timeout_ms: i32,
    partitions: &[ProducePartition],
) -> Result<Gather, EncodeError> {
    check_written("Produce", version, &VERSIONS)?;
    let by_id = names_topics_by_id(version);
    let mut entries: Vec<Entry> = partitions.iter().enumerate().collect();
    let topics = by_topic(&mut entries, by_id)?;
    let flexible = is_flexible(version);
    let mut frame = Frame {
        writer: begin_frame(API_KEY, version, flexible, correlation_id, client_id, ours_bytes_max(&topics))?,
        bodies: Vec::with_capacity(partitions.len()),
    };
    frame.writer.string("transactional id", None)?;
    frame.writer.out.put_i16(acks);
    frame.writer.out.put_i32(timeout_ms);
    frame.writer.count("topics", topics.len())?;
    for topic in topics {
        frame.put_topic(topic, by_id)?;
    }
    frame.writer.no_tags();
    frame.finish()
}

/// The partitions of each topic together, topics and partitions in the order in which they came: brokers answer in it.
fn by_topic<'e, 'p>(
    entries: &'e mut [Entry<'p>],
    by_id: bool,
) -> Result<Vec<&'e mut [Entry<'p>]>, EncodeError> {
    let place = |entry: &Entry<'p>| (topic_of(entry.1, by_id), entry.1.partition);
    entries.sort_unstable_by_key(place);
    if let Some(two) = entries.windows(2).find(|two| place(&two[0]) == place(&two[1])) {
        let ProducePartition { topic, partition, .. } = two[0].1;
        let reason = format!("two batches go to {topic}-{partition}, a broker takes one");
        return Err(EncodeError::Invalid { what: "Produce request", reason });
    }
    let is_same_topic = |a: &Entry, b: &Entry| topic_of(a.1, by_id) == topic_of(b.1, by_id);
    let mut topics: Vec<&mut [Entry]> = entries.chunk_by_mut(is_same_topic).collect();
    for topic in &mut topics {
        topic.sort_unstable_by_key(|(number, _)| *number);
    }
    topics.sort_unstable_by_key(|topic| topic.first().map(|(number, _)| *number));
    Ok(topics)
}

/// What tells topics apart in a version.
fn topic_of(entry: &ProducePartition, by_id: bool) -> (u128, &str) {
    if by_id { (entry.topic_id, "") } else { (0, &entry.topic) }
}

/// Most bytes that the body takes besides its payloads, so that one buffer of the right size holds them.
fn ours_bytes_max(topics: &[&mut [Entry]]) -> usize {
    let topic_bytes_max = |together: &&mut [Entry]| {
        let name_bytes = together.first().map_or(0, |(_, first)| first.topic.len());
        TOPIC_BYTES_MAX + name_bytes + together.len() * PARTITION_BYTES_MAX
    };
    REQUEST_BYTES_MAX + topics.iter().map(topic_bytes_max).sum::<usize>()
}

/// A frame under way: our own bytes, and each payload with the place where it belongs between them.
struct Frame {
    writer: Writer,
    bodies: Vec<(usize, Bytes)>,
}

impl Frame {
    fn put_topic(&mut self, partitions: &[Entry], by_id: bool) -> Result<(), EncodeError> {
        let Some((_, first)) = partitions.first() else { return Ok(()) };
        if by_id {
            self.writer.out.put_u128(first.topic_id);
        } else {
            self.writer.string("topic", Some(&first.topic))?;
        }
        self.writer.count("partitions", partitions.len())?;
        for (_, entry) in partitions {
            self.writer.out.put_i32(entry.partition);
            self.writer.bytes_length("records", entry.batch.total_bytes())?;
            self.writer.out.put_slice(&entry.batch.head);
            self.bodies.push((self.writer.out.len(), entry.batch.body.clone()));
            self.writer.no_tags();
        }
        self.writer.no_tags();
        Ok(())
    }

    fn finish(mut self) -> Result<Gather, EncodeError> {
        let bodies_bytes: usize = self.bodies.iter().map(|(_, body)| body.len()).sum();
        let frame_bytes = self.writer.out.len() + bodies_bytes;
        end_frame(&mut self.writer.out, frame_bytes)?;
        let ours = self.writer.out.freeze();
        let mut pieces = Vec::with_capacity(2 * self.bodies.len() + 1);
        let mut from = 0;
        for (at, body) in self.bodies {
            pieces.push(ours.slice(from..at));
            pieces.push(body);
            from = at;
        }
        pieces.push(ours.slice(from..));
        Ok(pieces.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Buf, BytesMut};
    use kafka_protocol::messages::{ApiKey, RequestHeader, TopicName, produce_request as theirs};
    use kafka_protocol::protocol::{Encodable, StrBytes};
    use uuid::Uuid;

    use super::*;

    fn entry(topic: &str, topic_id: u128, partition: i32, body: &'static [u8]) -> ProducePartition {
        let batch = Forwarded { head: [7; 61], body: Bytes::from_static(body) };
        ProducePartition { topic: Arc::from(topic), topic_id, partition, batch }
    }

    /// Partitions of two topics, mixed, one with an empty body.
    fn entries() -> Vec<ProducePartition> {
        static LARGE: [u8; 70_000] = [9; 70_000];
        vec![
            entry("orders", 1 << 90, 0, b"first"),
            entry("clicks", 2, 0, &LARGE),
            entry("orders", 1 << 90, 8, b""),
            entry("clicks", 2, 1, b"last"),
        ]
    }

    /// The same request by the message crate, partitions grouped by hand.
    fn twin(version: i16, entries: &[ProducePartition]) -> Bytes {
        let topic = |places: [usize; 2]| {
            let partitions = places.map(|place| {
                let Forwarded { head, body } = &entries[place].batch;
                theirs::PartitionProduceData::default()
                    .with_index(entries[place].partition)
                    .with_records(Some([&head[..], body].concat().into()))
            });
            let twin = theirs::TopicProduceData::default().with_partition_data(partitions.into());
            let first = &entries[places[0]];
            if version >= 13 {
                twin.with_topic_id(Uuid::from_u128(first.topic_id))
            } else {
                twin.with_name(TopicName(StrBytes::from_string(first.topic.to_string())))
            }
        };
        let request = theirs::ProduceRequest::default()
            .with_acks(-1)
            .with_timeout_ms(5000)
            .with_topic_data(vec![topic([0, 2]), topic([1, 3])]);
        let mut bytes = BytesMut::new();
        RequestHeader::default()
            .with_request_api_version(version)
            .with_correlation_id(-2)
            .with_client_id(Some(StrBytes::from_static_str("twinlog")))
            .encode(&mut bytes, ApiKey::Produce.request_header_version(version))
            .unwrap();
        request.encode(&mut bytes, version).unwrap();
        bytes.freeze()
    }

    #[test]
    fn every_version_is_written_as_the_message_crate_writes_it() {
        for version in VERSIONS {
            let entries = entries();
            let mut frame = produce_frame(version, -2, "twinlog", -1, 5000, &entries).unwrap();
            assert_eq!(frame.get_u32() as usize, frame.remaining());
            assert!(frame.copy_to_bytes(frame.remaining()) == twin(version, &entries), "version {version}");
        }
    }

    #[test]
    fn payloads_are_the_slices_that_came_in() {
        let entries = entries();
        let frame = produce_frame(13, 0, "", -1, 5000, &entries).unwrap();
        for entry in entries.iter().filter(|entry| !entry.batch.body.is_empty()) {
            let body = &entry.batch.body;
            assert!(frame.pieces().any(|piece| (piece.as_ptr(), piece.len()) == (body.as_ptr(), body.len())));
        }
    }

    #[test]
    fn two_batches_to_one_partition_are_refused() {
        let twice = [entry("orders", 1, 3, b"a"), entry("clicks", 2, 3, b"b"), entry("orders", 1, 3, b"c")];
        for version in [12, 13] {
            let error = produce_frame(version, 0, "", -1, 0, &twice).unwrap_err();
            assert_eq!(error.to_string(), "Produce request: two batches go to orders-3, a broker takes one");
        }
        // Names do not count where ids do, and the other way round.
        let renamed = [entry("old", 1, 3, b"a"), entry("new", 1, 3, b"b")];
        assert!(produce_frame(12, 0, "", -1, 0, &renamed).is_ok());
        assert!(produce_frame(13, 0, "", -1, 0, &renamed).is_err());
    }

    #[test]
    fn other_versions_are_refused() {
        for version in [2, 14] {
            let error = produce_frame(version, 0, "", -1, 0, &[]).unwrap_err();
            assert_eq!(error, EncodeError::UnknownVersion { api: "Produce", version, first: 3, last: 13 });
        }
    }
}
