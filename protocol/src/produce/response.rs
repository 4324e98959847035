//! The answer to a Produce request: per partition where the batch landed, or why it did not.

use bytes::Bytes;

use super::{VERSIONS, is_flexible, names_topics_by_id};
use crate::DecodeError;
use crate::primitives::{Reader, check_read};
use crate::shared_fields::{NodeEndpoint, TopicRef, current_leader, endpoints_in_tags, partitions};

/// Least bytes of a partition, those of version 3: number, error, base offset, log append time.
const PARTITION_BYTES_MIN: usize = 22;

/// An answer to a Produce request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProduceResponse {
    /// The partitions of all topics, in the answer's order.
    pub partitions: Vec<ProducedPartition>,
    /// How long the broker throttled the connection.
    pub throttle_time_ms: i32,
    /// Where the leaders named in the partitions live (from version 10, KIP-951).
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// What became of one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducedPartition {
    /// The topic: by name up to version 12, then by id.
    pub topic: TopicRef,
    /// Partition number.
    pub partition: i32,
    /// Error, 0 for none.
    pub error_code: i16,
    /// Downstream offset of the first record, -1 when it was not appended or the broker recognised an old repeat.
    pub base_offset: i64,
    /// Timestamp that the broker gave the records in ms, -1 when they keep theirs.
    pub log_append_time_ms: i64,
    /// First offset of the log, -1 for unknown and below version 5.
    pub log_start_offset: i64,
    /// Records that made the broker refuse the batch (from version 8, KIP-467).
    pub record_errors: Vec<RecordError>,
    /// Why the batch was refused, in the broker's words (from version 8).
    pub error_message: Option<String>,
    /// The leader's node id and epoch, where the broker says that it is another one (from version 10).
    pub current_leader: Option<(i32, i32)>,
}

/// A record that the broker did not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// Its place in the batch, from 0.
    pub batch_index: i32,
    /// Why, in the broker's words.
    pub message: Option<String>,
}

impl ProduceResponse {
    /// Reads the body of an answer, behind its response header.
    ///
    /// # Errors
    /// [`DecodeError`] for a version outside [`VERSIONS`] and for bytes that are not such an answer from first to last.
    pub fn decode(version: i16, body: Bytes) -> Result<Self, DecodeError> {
        check_read("Produce version", version, &VERSIONS)?;
        let mut reader = Reader::new(body, is_flexible(version));
        let by_id = names_topics_by_id(version);
        let partitions = partitions(&mut reader, by_id, PARTITION_BYTES_MIN, |reader, topic| {
            ProducedPartition::read(reader, version, topic)
        })?;
        let throttle_time_ms = reader.cursor.i32("throttle time")?;
        let node_endpoints = endpoints_in_tags(&mut reader, version >= 10)?;
        reader.end("Produce response")?;
        Ok(Self { partitions, throttle_time_ms, node_endpoints })
    }
}

impl ProducedPartition {
    fn read(reader: &mut Reader, version: i16, topic: TopicRef) -> Result<Self, DecodeError> {
        let mut partition = Self {
            topic,
            partition: reader.cursor.i32("partition")?,
            error_code: reader.cursor.i16("partition error code")?,
            base_offset: reader.cursor.offset("base offset")?,
            log_append_time_ms: reader.cursor.i64("log append time")?,
            log_start_offset: -1,
            record_errors: Vec::new(),
            error_message: None,
            current_leader: None,
        };
        if version >= 5 {
            partition.log_start_offset = reader.cursor.offset("log start offset")?;
        }
        if version >= 8 {
            for _ in 0..reader.count("record errors", 5)? {
                let batch_index = reader.cursor.i32("batch index")?;
                let message = reader.nullable_string("record error")?;
                reader.skip_tags()?;
                partition.record_errors.push(RecordError { batch_index, message });
            }
            partition.error_message = reader.nullable_string("error message")?;
        }
        reader.tags(|tag, field| {
            let known = version >= 10 && tag == 0;
            if known {
                partition.current_leader = current_leader(field)?;
            }
            Ok(known)
        })?;
        Ok(partition)
    }
}
