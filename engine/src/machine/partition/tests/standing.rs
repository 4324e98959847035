//! What is to be seen of a partition: its phase, and what keeps it from copying.

use super::*;
use crate::machine::course::{Course, Doing, Fares};

/// How the partition fares, and since when.
fn look(bench: &Bench, course: &mut Course) -> (Fares, Now) {
    course.handle_look(bench.now, &bench.machine.look());
    (course.fares(), course.since())
}

fn leader(topic_id: u128, node: Option<i32>) -> Option<Leader> {
    Some(Leader { node, leader_epoch: 0, topic_id })
}

#[test]
fn before_its_first_line_up_it_waits_with_the_reason() {
    let mut bench = Bench::opened();
    let mut course = Course::new(bench.now);
    assert_eq!(look(&bench, &mut course), (Fares::Waiting, NOW));
    assert_eq!(bench.machine.why_waiting(), "the source cluster does not list it");
    bench.machine.handle_leaders(bench.now, leader(1, Some(1)), leader(2, None));
    assert_eq!(bench.machine.why_waiting(), "it has no leader at the target");
    bench.now += Duration::from_secs(1);
    let mut bench = Bench { now: bench.now, ..Bench::lining_up() };
    assert_eq!(bench.machine.why_waiting(), "lining up");
    assert_eq!(look(&bench, &mut course), (Fares::Waiting, NOW));
    bench.answer();
    assert_eq!(look(&bench, &mut course), (Fares::Copying, bench.now));
}

#[test]
fn without_a_leader_it_waits_whatever_it_did() {
    let mut bench = Bench::copying();
    let mut course = Course::new(bench.now);
    bench.fetch_answer(FetchedRecords {
        records: Vec::new().into(),
        high_watermark: 100,
        last_stable_offset: None,
        aborted: Vec::new(),
        log_start: 0,
        diverging: None,
    });
    assert_eq!(look(&bench, &mut course).0, Fares::CaughtUp);
    bench.now += Duration::from_secs(60);
    bench.machine.handle_leaders(bench.now, leader(1, None), leader(2, Some(1)));
    assert_eq!(look(&bench, &mut course), (Fares::Waiting, bench.now));
    assert_eq!(bench.machine.why_waiting(), "it has no leader at the source");
    bench.now += Duration::from_secs(60);
    bench.machine.handle_leaders(bench.now, leader(1, Some(2)), leader(2, Some(1)));
    assert_eq!(look(&bench, &mut course), (Fares::CaughtUp, bench.now));
}

#[test]
fn an_open_transaction_that_was_told_makes_it_wait_from_its_beginning() {
    let mut bench = Bench::copying();
    let mut course = Course::new(bench.now);
    bench.fetch_answer(FetchedRecords {
        records: Vec::new().into(),
        high_watermark: 1000,
        last_stable_offset: Some(100),
        aborted: Vec::new(),
        log_start: 0,
        diverging: None,
    });
    assert_eq!(look(&bench, &mut course), (Fares::CaughtUp, NOW));
    bench.wake();
    let found = OpenTransaction { producer_id: 4711, producer_epoch: 2, age: None };
    bench.machine.handle_open_transaction(100, &Ok(found));
    assert_eq!(look(&bench, &mut course), (Fares::Waiting, NOW));
    assert!(bench.machine.why_waiting().contains("producer id 4711"), "{}", bench.machine.why_waiting());
    bench.machine.handle_stop(bench.now);
    assert_eq!(bench.machine.look().doing, Doing::Stopped);
    assert_eq!(look(&bench, &mut course), (Fares::Waiting, NOW));
}

#[test]
fn a_refused_batch_that_is_tried_again_holds_it_from_the_first_time_on() {
    let mut bench = Bench::copying();
    let mut course = Course::new(bench.now);
    let refused =
        || ProduceAnswer::Failed { code: ErrorCode::MessageTooLarge, detail: String::new(), named: 0 };
    for retry in 0..3 {
        bench.fetched(100, 1);
        let ticket = bench.next_produce();
        bench.machine.handle_produced(bench.now, ticket, refused());
        let (fares, since) = look(&bench, &mut course);
        assert!(matches!(fares, Fares::Held(_)) && since == NOW, "retry {retry}: {fares:?} since {since:?}");
        bench.wake();
        assert_eq!(bench.machine.held(), None);
        assert_eq!(look(&bench, &mut course), (fares, NOW));
        assert!(matches!(course.held(), Some(HoldReason::Refused { offset: 100, .. })));
    }
    bench.fetched(100, 1);
    let ticket = bench.next_produce();
    bench.acknowledge(ticket, 1);
    assert_eq!(look(&bench, &mut course), (Fares::Copying, bench.now));
}
