//! The request: what to read from where, how much of it, and what a fetch session shall forget (KIP-227).

use bytes::{BufMut, Bytes};

use super::{VERSIONS, is_flexible, knows_racks, names_topics_by_id};
use crate::EncodeError;
use crate::primitives::{Writer, begin_frame, check_written, end_frame};
use crate::produce::Gather;

const API_KEY: i16 = 1;

/// Most bytes around the topics, around the partitions of one topic, and of one partition.
const REQUEST_BYTES_MAX: usize = 6 * 4 + 1 + 5 + 5 + 3 + 1;
const TOPIC_BYTES_MAX: usize = 16 + 5 + 1;
const PARTITION_BYTES: usize = 4 + 4 + 8 + 4 + 8 + 4 + 1;
/// Bytes of a partition that is forgotten.
const FORGOTTEN_BYTES: usize = 4;

/// Epoch of a request that is answered outside any session.
const NO_SESSION: i32 = -1;

/// Which records a broker gives out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IsolationLevel {
    /// Up to the high watermark, those of open and aborted transactions too.
    #[default]
    ReadUncommitted,
    /// Up to the last stable offset, with the list of aborted transactions.
    ReadCommitted,
}

impl IsolationLevel {
    /// As requests tell it.
    #[must_use]
    pub fn code(self) -> i8 {
        match self {
            Self::ReadUncommitted => 0,
            Self::ReadCommitted => 1,
        }
    }
}

/// A Fetch request of a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// How long the broker may wait for `min_bytes`.
    pub max_wait_ms: i32,
    /// Bytes that end the wait.
    pub min_bytes: i32,
    /// Bytes of the whole answer; the first batch comes whole even if it is larger.
    pub max_bytes: i32,
    /// Which records are given out.
    pub isolation_level: IsolationLevel,
    /// Session, 0 for none.
    pub session_id: i32,
    /// What the request is to its session: 0 begins one with what the request names, and ends the one of `session_id`; from
    /// 1 on it changes that one, and what it does not name stays as it was; -1 is for a request outside any.
    pub session_epoch: i32,
    /// What to read.
    pub topics: Vec<FetchTopic>,
    /// What the session shall no longer read.
    pub forgotten: Vec<ForgottenTopic>,
    /// Rack of the reader, empty for none (KIP-392).
    pub rack_id: String,
}

impl FetchRequest {
    /// A request outside any session for all records, answered as soon as there is one, or after `max_wait_ms`.
    #[must_use]
    pub fn full(max_wait_ms: i32, max_bytes: i32, topics: Vec<FetchTopic>) -> Self {
        Self {
            max_wait_ms,
            min_bytes: 1,
            max_bytes,
            isolation_level: IsolationLevel::ReadUncommitted,
            session_id: 0,
            session_epoch: NO_SESSION,
            topics,
            forgotten: Vec::new(),
            rack_id: String::new(),
        }
    }
}

/// What to read of one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchTopic {
    /// Name, on the wire up to version 12.
    pub name: String,
    /// Topic id, on the wire from version 13.
    pub id: u128,
    /// Its partitions.
    pub partitions: Vec<FetchPartition>,
}

/// Where to read in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchPartition {
    /// Partition number.
    pub partition: i32,
    /// Leader epoch as the reader knows it, -1 for unknown: an older one is fenced.
    pub current_leader_epoch: i32,
    /// First offset wanted.
    pub fetch_offset: i64,
    /// Leader epoch of the last batch read, -1 for none: lets the broker tell a diverging log (from version 12).
    pub last_fetched_epoch: i32,
    /// Log start of a follower; -1 for a consumer.
    pub log_start_offset: i64,
    /// Bytes of this partition's part; the first batch comes whole even if it is larger.
    pub partition_max_bytes: i32,
}

/// Partitions of one topic that a session shall no longer read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgottenTopic {
    /// Name, on the wire up to version 12.
    pub name: String,
    /// Topic id, on the wire from version 13.
    pub id: u128,
    /// Partition numbers.
    pub partitions: Vec<i32>,
}

/// The body of a Fetch request.
///
/// # Errors
/// [`EncodeError`] for a version outside [`VERSIONS`] and for names or lists that are too long.
pub fn encode_fetch(version: i16, request: &FetchRequest) -> Result<Bytes, EncodeError> {
    check_written("Fetch", version, &VERSIONS)?;
    let mut writer = Writer::new(is_flexible(version));
    put_body(&mut writer, version, request)?;
    Ok(writer.out.freeze())
}

/// A whole Fetch request, length prefix and header included.
///
/// # Errors
/// As [`encode_fetch`].
pub fn fetch_frame(
    version: i16,
    correlation_id: i32,
    client_id: &str,
    request: &FetchRequest,
) -> Result<Gather, EncodeError> {
    check_written("Fetch", version, &VERSIONS)?;
    let body_bytes = body_bytes_max(request);
    let mut writer =
        begin_frame(API_KEY, version, is_flexible(version), correlation_id, client_id, body_bytes)?;
    put_body(&mut writer, version, request)?;
    let frame_bytes = writer.out.len();
    end_frame(&mut writer.out, frame_bytes)?;
    Ok(Gather::from_iter([writer.out.freeze()]))
}

/// Most bytes that the body takes, so that one buffer of the right size holds it.
fn body_bytes_max(request: &FetchRequest) -> usize {
    let topic_bytes_max =
        |topic: &FetchTopic| TOPIC_BYTES_MAX + topic.name.len() + topic.partitions.len() * PARTITION_BYTES;
    let topics_bytes_max: usize = request.topics.iter().map(topic_bytes_max).sum();
    let forgotten_bytes_max = |topic: &ForgottenTopic| {
        TOPIC_BYTES_MAX + topic.name.len() + topic.partitions.len() * FORGOTTEN_BYTES
    };
    let forgotten_bytes_max: usize = request.forgotten.iter().map(forgotten_bytes_max).sum();
    REQUEST_BYTES_MAX + request.rack_id.len() + topics_bytes_max + forgotten_bytes_max
}

fn put_body(writer: &mut Writer, version: i16, request: &FetchRequest) -> Result<(), EncodeError> {
    if version < 15 {
        // Replica id: a consumer.
        writer.out.put_i32(-1);
    }
    writer.out.put_i32(request.max_wait_ms);
    writer.out.put_i32(request.min_bytes);
    writer.out.put_i32(request.max_bytes);
    writer.out.put_i8(request.isolation_level.code());
    writer.out.put_i32(request.session_id);
    writer.out.put_i32(request.session_epoch);
    writer.count("topics", request.topics.len())?;
    for topic in &request.topics {
        put_topic(writer, version, &topic.name, topic.id)?;
        writer.count("partitions", topic.partitions.len())?;
        for partition in &topic.partitions {
            writer.out.put_i32(partition.partition);
            writer.out.put_i32(partition.current_leader_epoch);
            writer.out.put_i64(partition.fetch_offset);
            if version >= 12 {
                writer.out.put_i32(partition.last_fetched_epoch);
            }
            writer.out.put_i64(partition.log_start_offset);
            writer.out.put_i32(partition.partition_max_bytes);
            writer.no_tags();
        }
        writer.no_tags();
    }
    writer.count("forgotten topics", request.forgotten.len())?;
    for topic in &request.forgotten {
        put_topic(writer, version, &topic.name, topic.id)?;
        writer.count("forgotten partitions", topic.partitions.len())?;
        topic.partitions.iter().for_each(|partition| writer.out.put_i32(*partition));
        writer.no_tags();
    }
    if knows_racks(version) {
        writer.string("rack id", Some(&request.rack_id))?;
    }
    writer.no_tags();
    Ok(())
}

fn put_topic(writer: &mut Writer, version: i16, name: &str, id: u128) -> Result<(), EncodeError> {
    if names_topics_by_id(version) {
        writer.out.put_u128(id);
        return Ok(());
    }
    writer.string("topic", Some(name))
}

#[cfg(test)]
mod tests {
    use bytes::{Buf, BytesMut};
    use kafka_protocol::messages::{ApiKey, RequestHeader, TopicName, fetch_request as theirs};
    use kafka_protocol::protocol::{Encodable, StrBytes};

    use super::*;

    fn request() -> FetchRequest {
        let partition = |partition| FetchPartition {
            partition,
            current_leader_epoch: 3,
            fetch_offset: 1 << 40,
            last_fetched_epoch: 2,
            log_start_offset: -1,
            partition_max_bytes: 1 << 20,
        };
        let topic = |name: &str, id| FetchTopic {
            name: name.to_owned(),
            id,
            partitions: vec![partition(0), partition(7)],
        };
        FetchRequest {
            max_wait_ms: 500,
            min_bytes: 1,
            max_bytes: 1 << 26,
            isolation_level: IsolationLevel::ReadCommitted,
            session_id: 77,
            session_epoch: 3,
            topics: vec![topic("orders", 1 << 100), topic("clicks", 9)],
            forgotten: vec![
                ForgottenTopic { name: "old".to_owned(), id: 1 << 90, partitions: vec![1, 1 << 20] },
                ForgottenTopic { name: "older".to_owned(), id: 2, partitions: vec![0] },
            ],
            rack_id: "rack".to_owned(),
        }
    }

    /// The same request by the message crate.
    fn twin(version: i16, ours: &FetchRequest) -> Bytes {
        let topic = |topic: &FetchTopic| {
            let partitions = topic.partitions.iter().map(|ours| {
                let twin = theirs::FetchPartition::default()
                    .with_partition(ours.partition)
                    .with_current_leader_epoch(ours.current_leader_epoch)
                    .with_fetch_offset(ours.fetch_offset)
                    .with_log_start_offset(ours.log_start_offset)
                    .with_partition_max_bytes(ours.partition_max_bytes);
                let knows_epoch = version >= 12;
                twin.with_last_fetched_epoch(if knows_epoch { ours.last_fetched_epoch } else { -1 })
            });
            let twin = theirs::FetchTopic::default().with_partitions(partitions.collect());
            if names_topics_by_id(version) {
                twin.with_topic_id(uuid::Uuid::from_u128(topic.id))
            } else {
                twin.with_topic(TopicName(StrBytes::from_string(topic.name.clone())))
            }
        };
        let forgotten = |topic: &ForgottenTopic| {
            let twin = theirs::ForgottenTopic::default().with_partitions(topic.partitions.clone());
            if names_topics_by_id(version) {
                twin.with_topic_id(uuid::Uuid::from_u128(topic.id))
            } else {
                twin.with_topic(TopicName(StrBytes::from_string(topic.name.clone())))
            }
        };
        let twin = theirs::FetchRequest::default()
            .with_max_wait_ms(ours.max_wait_ms)
            .with_min_bytes(ours.min_bytes)
            .with_max_bytes(ours.max_bytes)
            .with_isolation_level(1)
            .with_session_id(ours.session_id)
            .with_session_epoch(ours.session_epoch)
            .with_topics(ours.topics.iter().map(topic).collect())
            .with_forgotten_topics_data(ours.forgotten.iter().map(forgotten).collect());
        let rack_id = if knows_racks(version) { ours.rack_id.clone() } else { String::new() };
        let twin = twin.with_rack_id(StrBytes::from_string(rack_id));
        let mut bytes = BytesMut::new();
        twin.encode(&mut bytes, version).unwrap();
        bytes.freeze()
    }

    #[test]
    fn every_version_is_written_as_the_message_crate_writes_it() {
        for version in VERSIONS {
            let request = request();
            let body = encode_fetch(version, &request).unwrap();
            assert_eq!(body, twin(version, &request), "version {version}");
            let mut header = BytesMut::new();
            RequestHeader::default()
                .with_request_api_key(1)
                .with_request_api_version(version)
                .with_correlation_id(77)
                .with_client_id(Some(StrBytes::from_static_str("twinlog")))
                .encode(&mut header, ApiKey::Fetch.request_header_version(version))
                .unwrap();
            let mut frame = fetch_frame(version, 77, "twinlog", &request).unwrap();
            assert_eq!(frame.get_u32() as usize, header.len() + body.len());
            assert_eq!(frame.copy_to_bytes(frame.remaining()), [&header[..], &body].concat());
        }
    }

    #[test]
    fn other_versions_are_refused() {
        for version in [-1, 9, 17] {
            let error = encode_fetch(version, &request()).unwrap_err();
            assert_eq!(error, EncodeError::UnknownVersion { api: "Fetch", version, first: 10, last: 16 });
            assert_eq!(fetch_frame(version, 0, "", &request()), Err(error));
        }
    }
}
