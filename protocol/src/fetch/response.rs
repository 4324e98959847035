//! `[1]` Walks a Fetch answer: per partition its state and the records as one slice of the answer.
//!
//! Every length is compared with what is left before it counts, nothing is reserved by the wire's word, and no byte
//! of a payload is copied.

use bytes::Bytes;

use super::{VERSIONS, is_flexible, knows_racks, names_topics_by_id};
use crate::DecodeError;
use crate::primitives::{Reader, check_read};
use crate::shared_fields::{NodeEndpoint, TopicRef, current_leader, endpoints_in_tags, partitions};

/// Least bytes of a partition, in the flexible dialect: what is fixed, two empty lists, no tags.
const PARTITION_BYTES_MIN: usize = 37;

/// An answer to a Fetch request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchResponse {
    /// How long the broker throttled the connection.
    pub throttle_time_ms: i32,
    /// Error of the whole request, 0 for none.
    pub error_code: i16,
    /// Fetch session, 0 for none.
    pub session_id: i32,
    /// The partitions of all topics, in the answer's order.
    pub partitions: Vec<FetchedPartition>,
    /// Where the leaders named in the partitions live (from version 16, KIP-951).
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// What an answer says of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedPartition {
    /// The topic: by name up to version 12, then by id.
    pub topic: TopicRef,
    /// Partition number.
    pub partition: i32,
    /// Error of the partition, 0 for none.
    pub error_code: i16,
    /// First offset that is not yet replicated everywhere, -1 for unknown.
    pub high_watermark: i64,
    /// First offset of the oldest open transaction, -1 for unknown.
    pub last_stable_offset: i64,
    /// First offset of the log, -1 for unknown.
    pub log_start_offset: i64,
    /// Where the log parts from the one that was read: epoch and its end offset (KIP-595).
    pub diverging_epoch: Option<(i32, i64)>,
    /// The leader's node id and epoch, where the broker says that the request was wrong about it.
    pub current_leader: Option<(i32, i32)>,
    /// Aborted transactions among the records, under read_committed only.
    pub aborted: Vec<AbortedTransaction>,
    /// Replica to read from instead, -1 for none (KIP-392).
    pub preferred_read_replica: i32,
    /// The batches, the last one possibly cut: a slice of the answer.
    pub records: Bytes,
}

/// Records of `producer_id` from `first_offset` to its abort marker are void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// Producer id.
    pub producer_id: i64,
    /// First offset of the transaction.
    pub first_offset: i64,
}

impl FetchResponse {
    /// Reads the body of an answer, behind its response header.
    ///
    /// # Errors
    /// [`DecodeError`] for a version outside [`VERSIONS`] and for bytes that are not such an answer from first to last.
    pub fn decode(version: i16, body: Bytes) -> Result<Self, DecodeError> {
        check_read("Fetch version", version, &VERSIONS)?;
        let mut reader = Reader::new(body, is_flexible(version));
        let throttle_time_ms = reader.cursor.i32("throttle time")?;
        let error_code = reader.cursor.i16("error code")?;
        let session_id = reader.cursor.i32("session id")?;
        let by_id = names_topics_by_id(version);
        let partitions = partitions(&mut reader, by_id, PARTITION_BYTES_MIN, |reader, topic| {
            FetchedPartition::read(reader, topic, knows_racks(version))
        })?;
        let node_endpoints = endpoints_in_tags(&mut reader, version >= 16)?;
        reader.end("Fetch response")?;
        Ok(Self { throttle_time_ms, error_code, session_id, partitions, node_endpoints })
    }
}

impl FetchedPartition {
    fn read(reader: &mut Reader, topic: TopicRef, knows_racks: bool) -> Result<Self, DecodeError> {
        let mut partition = Self {
            topic,
            partition: reader.cursor.i32("partition")?,
            error_code: reader.cursor.i16("partition error code")?,
            high_watermark: reader.cursor.offset("high watermark")?,
            last_stable_offset: reader.cursor.offset("last stable offset")?,
            log_start_offset: reader.cursor.offset("log start offset")?,
            diverging_epoch: None,
            current_leader: None,
            aborted: aborted(reader)?,
            preferred_read_replica: match knows_racks {
                true => reader.cursor.i32("preferred read replica")?,
                false => -1,
            },
            records: reader.nullable_bytes("records")?.unwrap_or_default(),
        };
        reader.tags(|tag, field| {
            match tag {
                0 => {
                    let epoch = field.cursor.i32("diverging epoch")?;
                    let end_offset = field.cursor.offset("end offset of the diverging epoch")?;
                    field.skip_tags()?;
                    partition.diverging_epoch = (epoch >= 0).then_some((epoch, end_offset));
                }
                1 => partition.current_leader = current_leader(field)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(partition)
    }
}

fn aborted(reader: &mut Reader) -> Result<Vec<AbortedTransaction>, DecodeError> {
    let mut aborted = Vec::new();
    for _ in 0..reader.nullable_count("aborted transactions", 16)? {
        let producer_id = reader.cursor.i64("aborted producer id")?;
        let first_offset = reader.cursor.offset("first offset of the aborted transaction")?;
        reader.skip_tags()?;
        aborted.push(AbortedTransaction { producer_id, first_offset });
    }
    Ok(aborted)
}
