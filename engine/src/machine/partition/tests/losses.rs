//! Going on behind a loss: in a generation of its own, told once, and only where the operator lets it.

use super::*;
use crate::machine::loss::{Loss, LossCause, OnTargetLoss};
use crate::machine::partition_record::SourceEpoch;

impl Bench {
    fn going_on(mut self) -> Self {
        self.machine.config.losses.on_loss = OnLoss::Continue;
        self
    }

    /// Wakes the machine until it wants a generation stored; no later than this long from now.
    fn opens_within(&mut self, seconds: u64) -> (Generation, Loss) {
        let end = self.now + Duration::from_secs(seconds);
        while !self.left.iter().any(|command| matches!(command, Command::Store { attempt: Some(_), .. })) {
            self.wake();
            assert!(self.now <= end, "no generation: {:?}", self.left);
        }
        match self.store() {
            PartitionEntry::Opened(generation, Some(loss)) => (generation, loss),
            other => panic!("no generation behind a loss but {other:?}"),
        }
    }

    /// So many records are fetched, sent and acknowledged.
    fn copied(&mut self, upstream: i64, records: u32) {
        self.fetched(upstream, records.into());
        let ticket = self.next_produce();
        self.acknowledge(ticket, records);
    }

    fn is_led(&mut self, source_topic_id: u128, target_topic_id: u128) {
        let leader = |topic_id| Some(Leader { node: Some(1), leader_epoch: 0, topic_id });
        self.machine.handle_leaders(self.now, leader(source_topic_id), leader(target_topic_id));
        self.answer();
    }

    /// A Fetch at the position finds that the source's log has diverged.
    fn diverges(&mut self, leader_epoch: i32, end_offset: i64) {
        self.fetch_answer(FetchedRecords {
            records: Vec::new().into(),
            high_watermark: 1000,
            last_stable_offset: None,
            aborted: Vec::new(),
            log_start: 0,
            diverging: Some((leader_epoch, end_offset)),
        });
        self.answer();
    }
}

#[test]
fn what_expired_before_it_was_copied_is_stored_with_the_generation_behind_it() {
    let mut bench = Bench::copying().going_on();
    bench.copied(100, 3);
    bench.finds_source_span(SourceSpan { log_start: 150, high_watermark: 500 });
    let lost = Loss::of(LossCause::Expired, 103, 150);
    let (generation, loss) = bench.opens_within(1);
    assert_eq!((generation.upstream_start, generation.producer_epoch, loss), (150, EPOCH + 1, lost));
    assert_eq!(lost.records, 47);
    assert_eq!((bench.machine.record().losses().events, bench.machine.record().losses().records), (1, 47));
    assert_eq!(bench.machine.held(), None);
}

#[test]
fn a_loss_is_told_when_it_is_read_back_and_once() {
    let mut bench = Bench::copying().going_on();
    let entry = PartitionEntry::Opened(generation(EPOCH + 1), Some(Loss::of(LossCause::Expired, 3, 100)));
    bench.machine.handle_state(&entry);
    let lost = |events: Vec<Event>| events.iter().filter(|event| matches!(event, Event::Lost(_))).count();
    assert_eq!(lost(bench.events()), 1, "whoever stored it");
    bench.machine.handle_state(&entry);
    assert_eq!(lost(bench.events()), 0);
}

#[test]
fn a_source_made_again_is_copied_from_its_beginning_behind_the_old_records() {
    let mut bench = Bench::copying().going_on();
    bench.copied(100, 3);
    bench.is_led(9, 2);
    assert_eq!(bench.machine.held(), None, "metadata may be from before");
    let begin = bench.now;
    let span = SourceSpan { log_start: 0, high_watermark: 5 };
    while !matches!(bench.left.last(), Some(Command::AskSourceSpan { .. })) {
        bench.wake();
        assert!(bench.now < begin + Duration::from_secs(20), "{:?}", bench.left);
    }
    assert!(bench.now >= begin + GONE_AFTER);
    let Some(Command::AskSourceSpan { attempt }) = bench.left.pop() else { unreachable!("just seen") };
    bench.machine.handle_source_span(bench.now, attempt, span);
    bench.answer();
    let (generation, loss) = bench.opens_within(0);
    assert_eq!((generation.source_topic_id, generation.upstream_start), (9, 0));
    // The last Fetch said that the old topic went on to 1000.
    assert_eq!(loss, Loss::of(LossCause::SourceRecreated, 103, 1000));
}

#[test]
fn a_topic_that_was_left_never_comes_back() {
    let mut record = PartitionRecord::default();
    record.apply(&PartitionEntry::Opened(generation(EPOCH), None));
    let newer = Generation { source_topic_id: 9, ..generation(EPOCH + 1) };
    record.apply(&PartitionEntry::Opened(newer, None));
    let mut bench = Bench::new(record).going_on();
    bench.start();
    assert_eq!(bench.machine.held(), Some(&HoldReason::Recreated { side: Side::Source }), "old metadata");
    bench.is_led(9, 2);
    bench.wake();
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(100));
}

#[test]
fn a_source_that_was_cut_back_is_copied_from_where_it_differs() {
    // Epoch 4 began at 103 in what was copied; the source has another end of epoch 3, or of epoch 4.
    for (leader_epoch, end_offset, upstream) in [(3, 104, 103), (3, 102, 102), (3, 120, 103), (4, 105, 105)] {
        let mut bench = Bench::copying().going_on();
        bench.copied(100, 3);
        let mark = Run { number: 6, upstream: 106, downstream: 26 };
        let epoch = Some(SourceEpoch { leader_epoch: 4, start: 103, next: 106 });
        bench.machine.record.advance(mark, epoch);
        (bench.log_end, bench.machine.must_line_up) = (26, true);
        bench.last_batch = Some(LastBatch { producer_epoch: EPOCH, last_sequence: 5 });
        bench.machine.window.drain();
        bench.machine.handle_timeout(bench.now);
        bench.answer();
        let begin = bench.now;
        while bench.now < begin + GONE_AFTER {
            assert_eq!(bench.machine.last_fetched_epoch(), 4, "the source compares it with its own log");
            bench.diverges(leader_epoch, end_offset);
            assert_eq!(bench.machine.held(), None);
            while bench.machine.fetch_wanted(bench.now).is_none() {
                bench.wake();
            }
        }
        bench.diverges(leader_epoch, end_offset);
        let (generation, loss) = bench.opens_within(0);
        assert_eq!(generation.upstream_start, upstream, "{end_offset}");
        assert_eq!(loss, Loss::of(LossCause::SourceCutBack, upstream, 106).without_records());
    }
}

#[test]
fn a_log_that_got_shorter_under_its_leader_is_another_topic() {
    let mut bench = Bench::copying().going_on();
    let span = SourceSpan { log_start: 2, high_watermark: 40 };
    let begin = bench.now;
    while bench.now < begin + GONE_AFTER {
        bench.finds_source_span(span);
        while bench.machine.fetch_wanted(bench.now).is_none() {
            bench.wake();
        }
    }
    bench.finds_source_span(span);
    let (generation, loss) = bench.opens_within(0);
    assert_eq!(generation.upstream_start, 2);
    assert_eq!((loss.cause, loss.from, loss.to), (LossCause::SourceRecreated, 100, None));
}

fn shortened(on_target_loss: OnTargetLoss) -> Bench {
    let mut record = PartitionRecord::default();
    record.apply(&PartitionEntry::Opened(generation(EPOCH), None));
    record.advance(Run { number: 10, upstream: 110, downstream: 30 }, None);
    let mut bench = Bench::new(record);
    bench.machine.config.losses.on_target_loss = on_target_loss;
    bench.last_batch = Some(LastBatch { producer_epoch: EPOCH, last_sequence: 5 });
    bench.log_end = 26;
    bench.start();
    bench
}

#[test]
fn a_target_that_lost_records_goes_on_where_it_was_if_that_is_wanted() {
    let mut bench = shortened(OnTargetLoss::Continue);
    let (generation, loss) = bench.opens_within(30);
    assert_eq!((generation.upstream_start, generation.downstream_start), (110, 26));
    assert_eq!(loss, Loss::of(LossCause::TargetLost, 26, 30));
    assert_eq!(bench.machine.record().losses().records, 4);
}

#[test]
fn a_target_that_lost_records_gets_them_again_if_that_is_wanted() {
    let mut bench = shortened(OnTargetLoss::Recopy);
    while !matches!(bench.left.last(), Some(Command::FindCopy { .. })) {
        bench.wake();
        assert!(bench.now < NOW + Duration::from_secs(30), "{:?}", bench.left);
    }
    let Some(Command::FindCopy { attempt, to: 26, .. }) = bench.left.pop() else {
        panic!("{:?}", bench.left)
    };
    let end = CopyEnd { producer_id: 7, producer_epoch: EPOCH, upstream_next: 106 };
    bench.machine.handle_copy(bench.now, attempt, CopySearch::Found(end));
    bench.answer();
    let (generation, loss) = bench.opens_within(0);
    assert_eq!((generation.upstream_start, generation.producer_epoch), (106, EPOCH + 1));
    assert_eq!(loss, Loss::of(LossCause::TargetLost, 26, 30).without_records());
}

#[test]
fn a_target_made_again_is_filled_again_if_that_is_wanted() {
    let mut bench = Bench::copying();
    bench.machine.config.losses.on_target_loss = OnTargetLoss::Recopy;
    bench.copied(100, 3);
    (bench.log_end, bench.last_batch) = (0, None);
    bench.is_led(1, 8);
    while !matches!(bench.left.last(), Some(Command::AskSourceSpan { .. })) {
        bench.wake();
        assert!(bench.now < NOW + Duration::from_secs(30), "{:?}", bench.left);
    }
    let Some(Command::AskSourceSpan { attempt }) = bench.left.pop() else { unreachable!("just seen") };
    let span = SourceSpan { log_start: 40, high_watermark: 103 };
    bench.machine.handle_source_span(bench.now, attempt, span);
    bench.answer();
    let (generation, loss) = bench.opens_within(0);
    assert_eq!((generation.upstream_start, generation.target_topic_id), (40, 8));
    assert_eq!(loss, Loss::of(LossCause::TargetLost, 0, 23).without_records());
}

#[test]
fn a_record_that_the_target_refuses_is_skipped_if_that_is_wanted() {
    for skips in [true, false] {
        let mut bench = Bench::copying();
        bench.machine.config.losses.skips_refused = skips;
        bench.copied(100, 3);
        bench.fetched(103, 1);
        let ticket = bench.next_produce();
        let answer =
            ProduceAnswer::Failed { code: ErrorCode::MessageTooLarge, detail: String::new(), named: 0 };
        bench.machine.handle_produced(bench.now, ticket, answer);
        bench.answer();
        if skips {
            let (generation, loss) = bench.opens_within(0);
            assert_eq!((generation.upstream_start, loss), (104, Loss::of(LossCause::Refused, 103, 104)));
        } else {
            assert!(matches!(bench.machine.held(), Some(HoldReason::Refused { offset: 103, .. })));
        }
    }
}

#[test]
fn a_broker_that_gets_topic_ids_has_not_made_its_topics_again() {
    let mut record = PartitionRecord::default();
    let without = Generation { source_topic_id: 0, target_topic_id: 0, ..generation(EPOCH) };
    record.apply(&PartitionEntry::Opened(without, None));
    let mut bench = Bench::new(record).going_on();
    bench.start();
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(100));
}

#[test]
fn the_one_record_of_a_batch_that_the_target_refuses_is_found_and_skipped() {
    let mut bench = Bench::copying();
    bench.machine.config.losses.skips_refused = true;
    bench.copied(100, 3);
    let end = bench.now + Duration::from_secs(20);
    // The record at 105 has a time that the target does not take.
    while bench.machine.record().losses().events == 0 {
        assert!(bench.now < end, "{:?}", bench.left);
        let next = (!bench.left.is_empty()).then(|| bench.left.remove(0));
        match next {
            Some(Command::Produce { ticket, batch, .. }) => {
                let view = BatchView::parse([&batch.head[..], &batch.body].concat().into()).unwrap();
                let records = view.header().record_count.unsigned_abs();
                let upstream = bench.machine.record().mark().map_or(100, |mark| mark.upstream);
                if (upstream..upstream + i64::from(records)).contains(&105) {
                    let code = ErrorCode::InvalidTimestamp;
                    let answer = ProduceAnswer::Failed { code, detail: String::new(), named: 0 };
                    bench.machine.handle_produced(bench.now, ticket, answer);
                    bench.answer();
                } else {
                    bench.acknowledge(ticket, records);
                }
            }
            Some(Command::Store { attempt: Some(_), .. }) => panic!("stored before it was found"),
            Some(_) => {}
            None if bench.machine.fetch_wanted(bench.now).is_some() => bench.fetched(103, 20),
            None => bench.wake(),
        }
        if bench.left.iter().any(|command| matches!(command, Command::Store { attempt: Some(_), .. })) {
            let (generation, loss) = bench.opens_within(0);
            assert_eq!((generation.upstream_start, loss), (106, Loss::of(LossCause::Refused, 105, 106)));
        }
    }
    assert_eq!(bench.machine.held(), None);
}

#[test]
fn records_that_are_refused_each_for_itself_are_skipped_together() {
    for (named, records) in [(20, 20), (19, 0)] {
        let mut bench = Bench::copying();
        bench.machine.config.losses.skips_refused = true;
        bench.copied(100, 3);
        bench.fetched(103, 20);
        let ticket = bench.next_produce();
        let answer =
            ProduceAnswer::Failed { code: ErrorCode::InvalidTimestamp, detail: String::new(), named };
        bench.machine.handle_produced(bench.now, ticket, answer);
        bench.answer();
        if records > 0 {
            let (generation, loss) = bench.opens_within(0);
            assert_eq!((generation.upstream_start, loss), (123, Loss::of(LossCause::Refused, 103, 123)));
        }
        assert_eq!(bench.machine.record().losses().records, records, "one of {named} named ones may be good");
    }
}

#[test]
fn behind_a_gap_no_epoch_is_named() {
    // A marker of epoch 5 at 103, and the run behind it is stored before the batch before it is acknowledged.
    let known = SourceEpoch::behind(None, 100, 4, 103);
    assert_eq!(known, Some(SourceEpoch { leader_epoch: 4, start: 100, next: 103 }));
    let mark = Run { number: 3, upstream: 104, downstream: 23 };
    let mut record = PartitionRecord::default();
    record.apply(&PartitionEntry::Opened(generation(EPOCH), None));
    record.apply(&runs(&[(3, 104, 23)]));
    record.advance(mark, known);
    let mut bench = Bench { log_end: 23, ..Bench::new(record) };
    bench.last_batch = Some(LastBatch { producer_epoch: EPOCH, last_sequence: 2 });
    bench.start();
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(104));
    assert_eq!(bench.machine.last_fetched_epoch(), -1, "epoch 4 ended before 104: it would look cut back");
    let behind = SourceEpoch::behind(known, 100, 5, 110);
    assert_eq!(behind, Some(SourceEpoch { leader_epoch: 5, start: 103, next: 110 }));
    assert_eq!(SourceEpoch::behind(behind, 100, -1, 120), behind, "old formats have none");
}
