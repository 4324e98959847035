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
//!                   fingerprint i64
//!        runs       count i32, each number i64, upstream i64, downstream i64
//!        progress   producer id i64, epoch i16, number i64, upstream i64, downstream i64
//!        settings   count i32, each name STRING, value STRING
//!        heartbeat  nothing
//!        mirror     nothing
//!        start      source topic id UUID, count i32, each offset i64
//! partition = source topic STRING, target topic STRING, partition i32
//! STRING    = length i16, UTF-8
//! ```
//!
//! The writer's number stands in each key, so that compaction never merges what two instances wrote: which of two
//! entries counts is decided by their order in the log.

use bytes::{BufMut, Bytes, BytesMut};
use twinlog_protocol::DecodeError;
use twinlog_protocol::cursor::Cursor;

use super::{PartitionKey, Settings, StateEntry, Stored};
use crate::machine::flow_starts::StartEntry;
use crate::machine::lineage::{Generation, Run};
use crate::machine::partition_record::PartitionEntry;

const VERSION: i8 = 1;
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
    value.put_i8(VERSION);
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

fn put_partition_entry(
    key: &mut BytesMut,
    value: &mut BytesMut,
    source_cluster_id: &str,
    partition: &PartitionKey,
    entry: &PartitionEntry,
) {
    let kind = match entry {
        PartitionEntry::Opened(_) => OPENED,
        PartitionEntry::Runs { .. } => RUNS,
        PartitionEntry::Progress { .. } => PROGRESS,
    };
    put_kind(key, kind, source_cluster_id);
    put_string(key, &partition.source_topic);
    put_string(key, &partition.target_topic);
    key.put_i32(partition.partition);
    match entry {
        PartitionEntry::Opened(generation) => {
            put_epoch(key, generation.producer_id, generation.producer_epoch);
            value.put_i32(generation.first_sequence);
            value.put_i64(generation.upstream_start);
            value.put_i64(generation.downstream_start);
            value.put_u128(generation.source_topic_id);
            value.put_u128(generation.target_topic_id);
            value.put_u64(generation.fingerprint);
        }
        PartitionEntry::Runs { producer_id, producer_epoch, runs } => {
            put_epoch(key, *producer_id, *producer_epoch);
            key.put_u64(runs.first().map_or(0, |run| run.number));
            value.put_i32(i32::try_from(runs.len()).expect("a backlog holds fewer runs than 2^31"));
            runs.iter().for_each(|run| put_run(value, *run));
        }
        PartitionEntry::Progress { producer_id, producer_epoch, mark } => {
            put_epoch(value, *producer_id, *producer_epoch);
            put_run(value, *mark);
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
    check_version(&mut key)?;
    let kind = key.i8("state key kind")?;
    let source_cluster_id = string(&mut key, "source cluster id")?;
    let Some(value) = value else { return Ok(None) };
    let mut value = Cursor::new(value);
    check_version(&mut value)?;
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
            StateEntry::Partition(partition, partition_entry(kind, &mut key, &mut value)?)
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

fn partition_entry(kind: i8, key: &mut Cursor, value: &mut Cursor) -> Result<PartitionEntry, DecodeError> {
    match kind {
        OPENED => Ok(PartitionEntry::Opened(Generation {
            producer_id: key.i64("producer id")?,
            producer_epoch: key.i16("producer epoch")?,
            first_sequence: sequence(value)?,
            upstream_start: offset(value, "upstream start")?,
            downstream_start: offset(value, "downstream start")?,
            source_topic_id: value.u128("source topic id")?,
            target_topic_id: value.u128("target topic id")?,
            fingerprint: value.i64("fingerprint")?.cast_unsigned(),
        })),
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
            Ok(PartitionEntry::Progress { producer_id, producer_epoch, mark: run(value)? })
        }
    }
}

/// An offset, or the number of a record: entries have no missing ones.
fn offset(cursor: &mut Cursor, field: &'static str) -> Result<i64, DecodeError> {
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

fn check_version(cursor: &mut Cursor) -> Result<(), DecodeError> {
    let at = cursor.at();
    let version = cursor.i8("state version")?;
    if version == VERSION {
        return Ok(());
    }
    let reason = "this twinlog reads version 1; a newer twinlog wrote the entry: run that one";
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
mod tests {
    use proptest::prelude::*;
    use twinlog_protocol::OFFSET_MAX;

    use super::*;

    fn examples() -> Vec<StateEntry> {
        let partition =
            PartitionKey { source_topic: "orders".into(), target_topic: "west.orders".into(), partition: 3 };
        let generation = Generation {
            producer_id: 4001,
            producer_epoch: 17,
            first_sequence: 0,
            upstream_start: 5,
            downstream_start: 9,
            source_topic_id: 1 << 100,
            target_topic_id: 0,
            fingerprint: u64::MAX,
        };
        let runs = vec![
            Run { number: 7, upstream: 12, downstream: 16 },
            Run { number: 9, upstream: 99, downstream: 18 },
        ];
        let mark = Run { number: 1 << 40, upstream: 1 << 41, downstream: 3 };
        vec![
            StateEntry::Identity { producer_id: 4001, replaces: -1 },
            StateEntry::Partition(partition.clone(), PartitionEntry::Opened(generation)),
            StateEntry::Partition(
                partition.clone(),
                PartitionEntry::Runs { producer_id: 1, producer_epoch: 2, runs },
            ),
            StateEntry::Partition(
                partition,
                PartitionEntry::Progress { producer_id: 1, producer_epoch: 2, mark },
            ),
            StateEntry::TopicSettings {
                target_topic: "west.orders".into(),
                settings: [("retention.ms", "1"), ("retention.ms", "-1"), ("cleanup.policy", "")]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
            },
            StateEntry::TopicSettings { target_topic: "t".into(), settings: Settings::new() },
            StateEntry::Heartbeat,
            StateEntry::Mirror { target_topic: "west.orders".into() },
            StateEntry::Start(start(4096, &[0, 1 << 40, -1])),
        ]
    }

    fn start(first_partition: i32, offsets: &[i64]) -> StartEntry {
        StartEntry {
            producer_id: 4001,
            source_topic: "orders".into(),
            source_topic_id: 1 << 100,
            first_partition,
            offsets: offsets.to_vec(),
        }
    }

    fn stored(entry: StateEntry) -> Stored {
        Stored { source_cluster_id: "AzQ4wi9sS2uyfN4-0r1IXA".into(), instance: u64::MAX - 3, entry }
    }

    #[test]
    fn every_kind_of_entry_reads_back() {
        for entry in examples() {
            let (key, value) = encode(&stored(entry.clone()));
            assert_eq!(decode(key.clone(), Some(value)), Ok(Some(stored(entry))));
            assert_eq!(decode(key, None), Ok(None), "a tombstone is no entry");
        }
    }

    #[test]
    fn no_entry_is_longer_than_it_says() {
        for entry in examples() {
            let bytes_max = entry.bytes_max();
            let (key, value) = encode(&stored(entry));
            assert!(key.len() + value.len() <= bytes_max);
        }
    }

    #[test]
    fn a_newer_version_is_an_error_never_ignored() {
        let (key, value) = encode(&stored(StateEntry::Heartbeat));
        let mut newer = key.to_vec();
        newer[0] = 2;
        assert!(matches!(
            decode(newer.into(), Some(value.clone())),
            Err(DecodeError::BadValue { value: 2, .. })
        ));
        let mut newer = key.to_vec();
        newer[1] = 9;
        assert!(matches!(decode(newer.into(), Some(value)), Err(DecodeError::BadValue { value: 9, .. })));
    }

    #[test]
    fn a_partition_that_no_topic_has_is_an_error() {
        for (first_partition, offsets) in [(-1, vec![]), (i32::MAX, vec![7]), (i32::MAX - 1, vec![7, 8])] {
            let (key, value) = encode(&stored(StateEntry::Start(start(first_partition, &offsets))));
            let read = decode(key, Some(value));
            assert!(matches!(read, Err(DecodeError::BadValue { field: "first partition", .. })), "{read:?}");
        }
        let (key, value) = encode(&stored(StateEntry::Start(start(i32::MAX - 1, &[7]))));
        assert!(decode(key, Some(value)).is_ok());
    }

    #[test]
    fn offsets_that_no_log_has_are_errors() {
        let run = |number, upstream, downstream| Run { number, upstream, downstream };
        let too_far = OFFSET_MAX + 1;
        for mark in [run(1 << 62, 5, 5), run(5, too_far, 5), run(5, 5, i64::MIN), run(5, -1, 5)] {
            let progress = PartitionEntry::Progress { producer_id: 7, producer_epoch: 1, mark };
            let partition = PartitionKey { source_topic: "a".into(), target_topic: "b".into(), partition: 0 };
            let (key, value) = encode(&stored(StateEntry::Partition(partition, progress)));
            let read = decode(key, Some(value));
            assert!(matches!(read, Err(DecodeError::BadValue { .. })), "{mark:?}: {read:?}");
        }
    }

    #[test]
    fn entries_cut_anywhere_are_errors() {
        for entry in examples() {
            let (key, value) = encode(&stored(entry));
            for cut in 0..key.len() {
                assert!(decode(key.slice(..cut), Some(value.clone())).is_err());
            }
            for cut in 0..value.len().saturating_sub(1) {
                assert!(decode(key.clone(), Some(value.slice(..cut))).is_err());
            }
        }
    }

    proptest! {
        #[test]
        fn starts_read_back_and_stay_below_the_size_that_they_tell(
            (producer_id, source_topic_id, instance) in any::<(i64, u128, u64)>(),
            source_topic in "[a-zA-Z0-9._-]{1,249}",
            first_partition in 0..i32::MAX - 100,
            offsets in proptest::collection::vec(-1..=OFFSET_MAX, 0..100),
        ) {
            let start = StartEntry { producer_id, source_topic, source_topic_id, first_partition, offsets };
            let stored = Stored { instance, ..stored(StateEntry::Start(start)) };
            let (key, value) = encode(&stored);
            prop_assert!(key.len() + value.len() <= stored.entry.bytes_max());
            prop_assert_eq!(decode(key, Some(value)), Ok(Some(stored)));
        }

        #[test]
        fn starts_of_any_bytes_never_panic(
            key in proptest::collection::vec(any::<u8>(), 0..60),
            value in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let key = [&[VERSION.cast_unsigned(), START.cast_unsigned(), 0, 0], &key[..]].concat();
            let value = [&[VERSION.cast_unsigned()], &value[..]].concat();
            if let Ok(Some(Stored { entry: StateEntry::Start(start), .. })) = decode(key.into(), Some(value.into())) {
                prop_assert!(start.first_partition >= 0 && start.offsets.len() * OFFSET_BYTES <= 60);
            }
        }
    }
}
