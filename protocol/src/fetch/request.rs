//! The request: what to read from where, and how much of it.
//!
//! No fetch session is kept (session 0, epoch -1 asks for a full answer), so that nothing is forgotten either.

use bytes::{BufMut, Bytes};

use super::{VERSIONS, is_flexible, names_topics_by_id};
use crate::EncodeError;
use crate::primitives::{Writer, begin_frame, check_written, end_frame};
use crate::produce::Gather;

const API_KEY: i16 = 1;

/// Which records a broker gives out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IsolationLevel {
    /// Up to the high watermark, those of open and aborted transactions too.
    #[default]
    ReadUncommitted,
    /// Up to the last stable offset, with the list of aborted transactions.
    ReadCommitted,
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
    /// Epoch of the session, -1 for a full fetch outside one.
    pub session_epoch: i32,
    /// What to read.
    pub topics: Vec<FetchTopic>,
    /// Rack of the reader, empty for none (KIP-392).
    pub rack_id: String,
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
    let mut writer = begin_frame(API_KEY, version, is_flexible(version), correlation_id, client_id)?;
    put_body(&mut writer, version, request)?;
    let frame_bytes = writer.out.len();
    end_frame(&mut writer.out, frame_bytes)?;
    Ok(Gather::from_iter([writer.out.freeze()]))
}

fn put_body(writer: &mut Writer, version: i16, request: &FetchRequest) -> Result<(), EncodeError> {
    if version < 15 {
        // Replica id: a consumer.
        writer.out.put_i32(-1);
    }
    writer.out.put_i32(request.max_wait_ms);
    writer.out.put_i32(request.min_bytes);
    writer.out.put_i32(request.max_bytes);
    writer.out.put_i8(match request.isolation_level {
        IsolationLevel::ReadUncommitted => 0,
        IsolationLevel::ReadCommitted => 1,
    });
    writer.out.put_i32(request.session_id);
    writer.out.put_i32(request.session_epoch);
    writer.count("topics", request.topics.len())?;
    for topic in &request.topics {
        if names_topics_by_id(version) {
            writer.out.put_u128(topic.id);
        } else {
            writer.string("topic", Some(&topic.name))?;
        }
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
    writer.count("forgotten topics", 0)?;
    writer.string("rack id", Some(&request.rack_id))?;
    writer.no_tags();
    Ok(())
}
