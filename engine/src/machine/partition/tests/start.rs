//! Where a copy begins of which nothing is stored.

use super::*;
use crate::machine::loss::{Loss, LossCause};

const START: Start = Start { source_topic_id: 1, offset: 150 };

/// A partition of which nothing is stored and nothing is on the target.
fn unknown(start: Start) -> Bench {
    let mut bench = Bench::new(PartitionRecord::default());
    bench.log_end = 0;
    bench.machine.handle_start(Some(start));
    bench.start();
    bench
}

/// Answers the question for the source's log; the events that this brings.
fn spans(bench: &mut Bench, log_start: i64, high_watermark: i64) -> Vec<Event> {
    let asked = bench.left.iter().rposition(|command| matches!(command, Command::AskSourceSpan { .. }));
    let Command::AskSourceSpan { attempt } = bench.left.remove(asked.expect("the source is asked")) else {
        unreachable!("just found");
    };
    bench.machine.handle_source_span(bench.now, attempt, SourceSpan { log_start, high_watermark });
    bench.events()
}

fn upstream_start(bench: &mut Bench) -> i64 {
    match bench.next_store() {
        (PartitionEntry::Opened(generation, None), _) => generation.upstream_start,
        (other, _) => panic!("no generation but {other:?}"),
    }
}

#[test]
fn a_copy_begins_where_the_flow_first_started() {
    for (log_start, high_watermark) in [(0, 150), (150, 150), (20, 900)] {
        let mut bench = unknown(START);
        assert_eq!(spans(&mut bench, log_start, high_watermark), []);
        assert_eq!(upstream_start(&mut bench), 150);
    }
}

#[test]
fn a_topic_made_again_begins_at_its_beginning() {
    let mut bench = unknown(Start { source_topic_id: 8, ..START });
    assert_eq!(spans(&mut bench, 3, 900), []);
    assert_eq!(upstream_start(&mut bench), 3);
}

#[test]
fn a_start_that_retention_has_passed_is_a_loss() {
    let mut bench = unknown(START);
    let reason = HoldReason::OutOfRange { position: 150, log_start: 151, log_end: 900 };
    assert_eq!(spans(&mut bench, 151, 900), [Event::Held(reason)]);

    let mut bench = unknown(START);
    bench.machine.config.losses.on_loss = OnLoss::Continue;
    assert_eq!(spans(&mut bench, 151, 900), []);
    let (entry, _) = bench.next_store();
    let loss = Loss::of(LossCause::Expired, 150, 151);
    assert!(
        matches!(entry, PartitionEntry::Opened(opened, Some(told)) if opened.upstream_start == 151 && told == loss),
        "{entry:?}"
    );
}

#[test]
fn a_log_that_ends_before_its_start_is_looked_at_again() {
    let mut bench = unknown(START);
    assert_eq!(spans(&mut bench, 0, 149), []);
    assert!(matches!(bench.left.pop(), Some(Command::RefreshMetadata(Side::Source))), "{:?}", bench.left);
    bench.wake();
    assert_eq!(spans(&mut bench, 0, 150), []);
    assert_eq!(upstream_start(&mut bench), 150);
}

#[test]
fn a_log_that_still_ends_before_its_start_after_20_s_is_copied_whole() {
    let mut bench = unknown(START);
    let begin = bench.now;
    let mut told = spans(&mut bench, 0, 149);
    while told.iter().all(|event| matches!(event, Event::Waits { .. })) {
        assert!(bench.now < begin + Duration::from_secs(25), "{:?}", bench.left);
        bench.wake();
        told = spans(&mut bench, 0, 149);
    }
    assert!(bench.now >= begin + Duration::from_secs(20));
    let span = SourceSpan { log_start: 0, high_watermark: 149 };
    assert_eq!(told, [Event::StartOutOfRange { start: 150, span }]);
    assert_eq!(upstream_start(&mut bench), 0);
}

#[test]
fn what_is_stored_about_the_partition_counts_more() {
    let mut bench = unknown(START);
    bench.machine.handle_state(&PartitionEntry::Opened(generation(EPOCH), None));
    bench.log_end = 20;
    assert_eq!(spans(&mut bench, 0, 900), []);
    bench.wake();
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(100));
}
