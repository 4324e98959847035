use super::*;
use crate::machine::lineage::Generation;
use crate::machine::partition_record::PartitionEntry;

const HERE: Here = Here { source_topic_id: 1, target_topic_id: 2, fingerprint: 3 };
const EPOCH: i16 = 5;

/// Generation 5 begins at upstream 100, downstream 20; `acknowledged` records of it are in the log.
fn record(acknowledged: u64) -> PartitionRecord {
    let mut record = PartitionRecord::default();
    record.apply(&PartitionEntry::Opened(
        Generation {
            producer_id: 7,
            producer_epoch: EPOCH,
            first_sequence: 0,
            upstream_start: 100,
            downstream_start: 20,
            source_topic_id: 1,
            target_topic_id: 2,
            fingerprint: 3,
        },
        None,
    ));
    if acknowledged > 0 {
        let mark = record.current().expect("just opened").at(acknowledged);
        record.advance(mark, None);
    }
    record
}

fn last(last_sequence: i32) -> LastBatch {
    LastBatch { producer_epoch: EPOCH, last_sequence }
}

fn found(log_end: i64, last_sequence: i32) -> LinedUp {
    LinedUp { log_end, last_batch: Some(last(last_sequence)) }
}

fn tail(from: i64, last_sequence: i32, records: u64) -> Tail {
    let batch = TailBatch { batch: last(last_sequence), next_offset: 0 };
    Tail { from, last: Some(batch), records }
}

fn go(number: u64, upstream: i64, downstream: i64) -> Decision {
    Decision::Go { position: Run { number, upstream, downstream }, fresh: false }
}

#[test]
fn others_that_appended_after_our_last_batch_do_not_hold_the_partition() {
    let found = found(36, 9);
    let decided = |tail: Option<&Tail>| decide(&record(10), &HERE, &found, tail, true);
    assert_eq!(decided(None), Decision::ReadTail { from: 30 });
    assert_eq!(decided(Some(&Tail { from: 30, last: None, records: 0 })), go(10, 110, 36));
}

#[test]
fn batches_of_ours_among_those_of_others_are_counted() {
    let found = found(36, 13);
    let decided = |tail: &Tail| decide(&record(10), &HERE, &found, Some(tail), true);
    assert_eq!(decided(&tail(30, 13, 4)), go(14, 114, 36));
    assert!(matches!(decided(&tail(30, 12, 3)), Decision::Hold(HoldReason::Ambiguous { .. })));
}

#[test]
fn a_hole_in_our_numbers_holds_the_partition() {
    // Record 10 was refused while the broker had no state, 11 to 13 were taken.
    let decided = decide(&record(10), &HERE, &found(33, 13), Some(&tail(30, 13, 3)), true);
    assert!(matches!(decided, Decision::Hold(HoldReason::Ambiguous { .. })), "{decided:?}");
}

#[test]
fn an_epoch_whose_first_run_is_stored_but_that_has_no_batch_is_gone_on_with() {
    let mut record = record(0);
    let run = Run { number: 0, upstream: 107, downstream: 36 };
    record.apply(&PartitionEntry::Runs { producer_id: 7, producer_epoch: EPOCH, runs: vec![run] });
    let found = LinedUp { log_end: 36, last_batch: None };
    assert_eq!(decide(&record, &HERE, &found, None, true), Decision::Go { position: run, fresh: true });
}

#[test]
fn only_a_newer_epoch_speaks_of_a_restored_state_topic() {
    for (producer_epoch, newer) in [(EPOCH + 1, true), (EPOCH - 1, false)] {
        let batch = TailBatch { batch: LastBatch { producer_epoch, last_sequence: 3 }, next_offset: 34 };
        let tail = Tail { from: 30, last: Some(batch), records: 4 };
        let decided =
            decide(&record(10), &HERE, &LinedUp { log_end: 34, last_batch: None }, Some(&tail), true);
        let Decision::Hold(reason) = &decided else { panic!("{decided:?}") };
        assert_eq!(matches!(reason, HoldReason::UnknownEpoch { broker: 6, stored: 5 }), newer, "{reason}");
        assert!(
            newer || reason.to_string().contains("has epoch 4, of which no more is known at epoch 5"),
            "{reason}"
        );
    }
}

#[test]
fn nothing_is_decided_on_an_old_record() {
    let other = Here { fingerprint: 4, ..HERE };
    assert_eq!(decide(&record(10), &other, &found(30, 9), None, false), Decision::ReadState);
    assert_eq!(decide(&PartitionRecord::default(), &HERE, &found(30, 9), None, false), Decision::ReadState);
    let decided = decide(&record(10), &other, &found(30, 9), None, true);
    assert!(matches!(decided, Decision::Hold(HoldReason::OtherFingerprint { .. })), "{decided:?}");
}
