//! Entries read back as they were written, and nothing else is read.

use proptest::prelude::*;
use twinlog_protocol::OFFSET_MAX;

use super::*;
use crate::machine::loss::{Loss, LossCause};
use crate::machine::partition_record::SourceEpoch;

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
    let lost = Loss { cause: LossCause::Refused, from: 7, to: None, records: 1 << 40 };
    let epoch = Some(SourceEpoch { leader_epoch: 5, start: 1 << 40, next: 1 << 41 });
    vec![
        StateEntry::Identity { producer_id: 4001, replaces: -1 },
        StateEntry::Partition(partition.clone(), PartitionEntry::Opened(generation, Some(lost))),
        StateEntry::Partition(partition.clone(), PartitionEntry::Opened(generation, None)),
        StateEntry::Partition(
            partition.clone(),
            PartitionEntry::Runs { producer_id: 1, producer_epoch: 2, runs },
        ),
        StateEntry::Partition(
            partition.clone(),
            PartitionEntry::Progress { producer_id: 1, producer_epoch: 2, mark, epoch },
        ),
        StateEntry::Partition(
            partition,
            PartitionEntry::Progress { producer_id: 1, producer_epoch: 2, mark, epoch: None },
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
fn what_version_1_wrote_is_read() {
    for entry in examples() {
        let StateEntry::Partition(_, PartitionEntry::Opened(_, None)) = &entry else { continue };
        let (key, value) = encode(&stored(entry.clone()));
        let mut older = value[..value.len() - 1].to_vec();
        older[0] = 1;
        assert_eq!(decode(key, Some(older.into())), Ok(Some(stored(entry))));
    }
}

#[test]
fn a_newer_version_is_an_error_never_ignored() {
    let (key, value) = encode(&stored(StateEntry::Heartbeat));
    let mut newer = key.to_vec();
    newer[0] = 2;
    assert!(matches!(decode(newer.into(), Some(value.clone())), Err(DecodeError::BadValue { value: 2, .. })));
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
        let progress = PartitionEntry::Progress { producer_id: 7, producer_epoch: 1, mark, epoch: None };
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
