//! Keys and values of the state topic.
//!
//! ```text
//! key    version i8, kind i8, source cluster id STRING, then by kind
//!        identity   producer id i64, instance i64
//!        opened     partition, producer id i64, epoch i16, instance i64
//!        runs       partition, producer id i64, epoch i16, first number i64, instance i64
//!        progress   partition, instance i64
//!        settings   target topic STRING, instance i64
//!        heartbeat  instance i64
//!        mirror     target topic STRING, instance i64
//!        start      producer id i64, source topic STRING, first partition i32, instance i64
//! value  version i8, then by kind
//!        identity   replaced producer id i64
//!        opened     first sequence i32, upstream start i64, downstream start i64, source and target topic id UUID,
//!                   fingerprint i64, loss (from version 2 on)
//!        runs       count i32, each number i64, upstream i64, downstream i64
//!        progress   producer id i64, epoch i16, number i64, upstream i64, downstream i64, epoch (from version 2 on)
//!        settings   count i32, each name STRING, value STRING
//!        heartbeat  nothing
//!        mirror     nothing
//!        start      source topic id UUID, count i32, each offset i64
//! partition = source topic STRING, target topic STRING, partition i32
//! STRING    = length i16, UTF-8
//! loss, epoch: see `loss.rs`. The values of these two kinds are written as version 2, all else as version 1.
//! ```
//!
//! The writer's number stands in each key, so that compaction never merges what two instances wrote: which of two
//! entries counts is decided by their order in the log.

use bytes::{BufMut, Bytes, BytesMut};
use twinlog_protocol::DecodeError;
use twinlog_protocol::cursor::Cursor;

use super::loss::{epoch, loss, put_epoch as put_source_epoch, put_loss};
use super::{PartitionKey, Settings, StateEntry, Stored};
use crate::machine::flow_starts::StartEntry;
use crate::machine::lineage::{Generation, Run};
use crate::machine::partition_record::PartitionEntry;

const VERSION: i8 = 1;
/// Of the values of generations and progress.
const EXTENDED: i8 = 2;
const IDENTITY: i8 = 1;
const OPENED: i8 = 2;
const RUNS: i8 = 3;
const PROGRESS: i8 = 4;
const HEARTBEAT: i8 = 5;
const MIRROR: i8 = 7;
const START: i8 = 8;
const SETTINGS: i8 = 6;
/// Two empty strings.
const SETTING_BYTES_MIN: usize = 4;
const RUN_BYTES: usize = 24;
const OFFSET_BYTES: usize = 8;

/// Key and value of an entry.
#[must_use]
pub fn encode(stored: &Stored) -> (Bytes, Bytes) {
    let mut key = BytesMut::new();
    let mut value = BytesMut::new();
    key.put_i8(VERSION);
    value.put_i8(value_version(&stored.entry));
    match &stored.entry {
        StateEntry::Identity { producer_id, replaces } => {
            put_kind(&mut key, IDENTITY, &stored.source_cluster_id);
            key.put_i64(*producer_id);
            value.put_i64(*replaces);
        }
        StateEntry::Mirror { target_topic } => {
            put_kind(&mut key, MIRROR, &stored.source_cluster_id);
            put_string(&mut key, target_topic);
        }
        StateEntry::Start(start) => {
            put_kind(&mut key, START, &stored.source_cluster_id);
            put_start(&mut key, &mut value, start);
        }
        StateEntry::Partition(partition, entry) => {
            put_partition_entry(&mut key, &mut value, &stored.source_cluster_id, partition, entry);
        }
        StateEntry::TopicSettings { target_topic, settings } => {
            put_kind(&mut key, SETTINGS, &stored.source_cluster_id);
            put_string(&mut key, target_topic);
            put_settings(&mut value, settings);
        }
        StateEntry::Heartbeat => put_kind(&mut key, HEARTBEAT, &stored.source_cluster_id),
    }
    key.put_u64(stored.instance);
    (key.freeze(), value.freeze())
}

fn value_version(entry: &StateEntry) -> i8 {
    match entry {
        StateEntry::Partition(_, PartitionEntry::Opened(..) | PartitionEntry::Progress { .. }) => EXTENDED,
        _ => VERSION,
    }
}

fn put_partition_entry(
    key: &mut BytesMut,
    value: &mut BytesMut,
    source_cluster_id: &str,
    partition: &PartitionKey,
    entry: &PartitionEntry,
) {
    let kind = match entry {
        PartitionEntry::Opened(..) => OPENED,
        PartitionEntry::Runs { .. } => RUNS,
        PartitionEntry::Progress { .. } => PROGRESS,
    };
    put_kind(key, kind, source_cluster_id);
    put_string(key, &partition.source_topic);
    put_string(key, &partition.target_topic);
    key.put_i32(partition.partition);
    match entry {
        PartitionEntry::Opened(generation, loss) => {
            put_epoch(key, generation.producer_id, generation.producer_epoch);
            value.put_i32(generation.first_sequence);
            value.put_i64(generation.upstream_start);
            value.put_i64(generation.downstream_start);
            value.put_u128(generation.source_topic_id);
            value.put_u128(generation.target_topic_id);
            value.put_u64(generation.fingerprint);
            put_loss(value, loss.as_ref());
        }
        PartitionEntry::Runs { producer_id, producer_epoch, runs } => {
            put_epoch(key, *producer_id, *producer_epoch);
            key.put_u64(runs.first().map_or(0, |run| run.number));
            value.put_i32(i32::try_from(runs.len()).expect("a backlog holds fewer runs than 2^31"));
            runs.iter().for_each(|run| put_run(value, *run));
        }
        PartitionEntry::Progress { producer_id, producer_epoch, mark, epoch } => {
            put_epoch(value, *producer_id, *producer_epoch);
            put_run(value, *mark);
            put_source_epoch(value, epoch.as_ref());
        }
    }
}

fn put_start(key: &mut BytesMut, value: &mut BytesMut, start: &StartEntry) {
    key.put_i64(start.producer_id);
    put_string(key, &start.source_topic);
    key.put_i32(start.first_partition);
    value.put_u128(start.source_topic_id);
    value.put_i32(i32::try_from(start.offsets.len()).expect("a topic has fewer partitions than 2^31"));
    start.offsets.iter().for_each(|offset| value.put_i64(*offset));
}

fn put_kind(key: &mut BytesMut, kind: i8, source_cluster_id: &str) {
    key.put_i8(kind);
    put_string(key, source_cluster_id);
}

fn put_epoch(buffer: &mut BytesMut, producer_id: i64, producer_epoch: i16) {
    buffer.put_i64(producer_id);
    buffer.put_i16(producer_epoch);
}

fn put_run(buffer: &mut BytesMut, run: Run) {
    buffer.put_u64(run.number);
    buffer.put_i64(run.upstream);
    buffer.put_i64(run.downstream);
}

fn put_settings(buffer: &mut BytesMut, settings: &Settings) {
    buffer.put_i32(i32::try_from(settings.len()).expect("an entry holds fewer settings than 2^31"));
    for (name, value) in settings {
        put_string(buffer, name);
        put_string(buffer, value);
    }
}

/// Cluster ids, topic names and what is copied of topic configs are below 32,768 bytes.
fn put_string(buffer: &mut BytesMut, string: &str) {
    buffer.put_i16(i16::try_from(string.len()).expect("strings of entries are below 32,768 bytes"));
    buffer.put_slice(string.as_bytes());
}

/// The entry behind a key and a value; none for a tombstone.
///
/// # Errors
/// [`DecodeError`]: an entry that this version cannot read, a newer one above all. It must not be ignored.
pub fn decode(key: Bytes, value: Option<Bytes>) -> Result<Option<Stored>, DecodeError> {
    let mut key = Cursor::new(key);
    check_version(&mut key, VERSION)?;
    let kind = key.i8("state key kind")?;
    let source_cluster_id = string(&mut key, "source cluster id")?;
    let Some(value) = value else { return Ok(None) };
    let mut value = Cursor::new(value);
    let version_max = if matches!(kind, OPENED | PROGRESS) { EXTENDED } else { VERSION };
    let is_extended = check_version(&mut value, version_max)? == EXTENDED;
    let entry = match kind {
        IDENTITY => StateEntry::Identity {
            producer_id: key.i64("producer id")?,
            replaces: value.i64("replaced producer id")?,
        },
        OPENED | RUNS | PROGRESS => {
            let partition = PartitionKey {
                source_topic: string(&mut key, "source topic")?,
                target_topic: string(&mut key, "target topic")?,
                partition: key.i32("partition")?,
            };
            StateEntry::Partition(partition, partition_entry(kind, &mut key, &mut value, is_extended)?)
        }
        SETTINGS => StateEntry::TopicSettings {
            target_topic: string(&mut key, "target topic")?,
            settings: settings(&mut value)?,
        },
        HEARTBEAT => StateEntry::Heartbeat,
        MIRROR => StateEntry::Mirror { target_topic: string(&mut key, "target topic")? },
        START => StateEntry::Start(start_entry(&mut key, &mut value)?),
        kind => {
            let reason = "a kind of entry that this version does not know; a newer twinlog wrote it";
            return Err(DecodeError::BadValue { field: "state key kind", at: 1, value: kind.into(), reason });
        }
    };
    let instance = key.i64("instance")?.cast_unsigned();
    Ok(Some(Stored { source_cluster_id, instance, entry }))
}

fn start_entry(key: &mut Cursor, value: &mut Cursor) -> Result<StartEntry, DecodeError> {
    let (producer_id, source_topic) = (key.i64("producer id")?, string(key, "source topic")?);
    let at = key.at();
    let first_partition = key.i32("first partition")?;
    let source_topic_id = value.u128("source topic id")?;
    let count = value.i32("offset count")?;
    if first_partition < 0 || first_partition.checked_add(count).is_none() {
        let reason = "no topic has such a partition";
        let value = first_partition.into();
        return Err(DecodeError::BadValue { field: "first partition", at, value, reason });
    }
    let count = value.bounded("offset count", count.into(), OFFSET_BYTES)?;
    let offsets = (0..count).map(|_| value.offset("offset")).collect::<Result<_, _>>()?;
    Ok(StartEntry { producer_id, source_topic, source_topic_id, first_partition, offsets })
}

fn partition_entry(
    kind: i8,
    key: &mut Cursor,
    value: &mut Cursor,
    is_extended: bool,
) -> Result<PartitionEntry, DecodeError> {
    match kind {
        OPENED => {
            let generation = Generation {
                producer_id: key.i64("producer id")?,
                producer_epoch: key.i16("producer epoch")?,
                first_sequence: sequence(value)?,
                upstream_start: offset(value, "upstream start")?,
                downstream_start: offset(value, "downstream start")?,
                source_topic_id: value.u128("source topic id")?,
                target_topic_id: value.u128("target topic id")?,
                fingerprint: value.i64("fingerprint")?.cast_unsigned(),
            };
            let loss = if is_extended { loss(value)? } else { None };
            Ok(PartitionEntry::Opened(generation, loss))
        }
        RUNS => {
            let (producer_id, producer_epoch) = (key.i64("producer id")?, key.i16("producer epoch")?);
            key.i64("first number")?;
            let count = value.i32("run count")?;
            let count = value.bounded("run count", count.into(), RUN_BYTES)?;
            let runs = (0..count).map(|_| run(value)).collect::<Result<_, _>>()?;
            Ok(PartitionEntry::Runs { producer_id, producer_epoch, runs })
        }
        _ => {
            let (producer_id, producer_epoch) = (value.i64("producer id")?, value.i16("producer epoch")?);
            let mark = run(value)?;
            let epoch = if is_extended { epoch(value)? } else { None };
            Ok(PartitionEntry::Progress { producer_id, producer_epoch, mark, epoch })
        }
    }
}

/// An offset, or the number of a record: entries have no missing ones.
pub(super) fn offset(cursor: &mut Cursor, field: &'static str) -> Result<i64, DecodeError> {
    let at = cursor.at();
    let value = cursor.offset(field)?;
    if value >= 0 {
        return Ok(value);
    }
    Err(DecodeError::BadValue {
        field,
        at,
        value,
        reason: "an entry of the state topic has no missing offsets",
    })
}

fn sequence(cursor: &mut Cursor) -> Result<i32, DecodeError> {
    let (field, at) = ("first sequence", cursor.at());
    let value = cursor.i32(field)?;
    if value >= 0 {
        return Ok(value);
    }
    let (value, reason) = (value.into(), "sequences are counted from 0");
    Err(DecodeError::BadValue { field, at, value, reason })
}

fn run(cursor: &mut Cursor) -> Result<Run, DecodeError> {
    Ok(Run {
        number: offset(cursor, "run number")?.cast_unsigned(),
        upstream: offset(cursor, "run upstream")?,
        downstream: offset(cursor, "run downstream")?,
    })
}

fn settings(cursor: &mut Cursor) -> Result<Settings, DecodeError> {
    let count = cursor.i32("setting count")?;
    let count = cursor.bounded("setting count", count.into(), SETTING_BYTES_MIN)?;
    (0..count).map(|_| Ok((string(cursor, "setting name")?, string(cursor, "setting value")?))).collect()
}

fn check_version(cursor: &mut Cursor, version_max: i8) -> Result<i8, DecodeError> {
    let at = cursor.at();
    let version = cursor.i8("state version")?;
    if (VERSION..=version_max).contains(&version) {
        return Ok(version);
    }
    let reason = "this twinlog does not read this version; a newer twinlog wrote the entry: run that one";
    Err(DecodeError::BadValue { field: "state version", at, value: version.into(), reason })
}

fn string(cursor: &mut Cursor, field: &'static str) -> Result<String, DecodeError> {
    let length = cursor.i16(field)?;
    let length = cursor.bounded(field, length.into(), 1)?;
    let bytes = cursor.take(field, length)?;
    String::from_utf8(bytes.into())
        .map_err(|fault| DecodeError::Refused { what: field, reason: fault.to_string() })
}

#[cfg(test)]
mod tests;
