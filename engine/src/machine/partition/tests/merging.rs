//! Which batches go as one, and what becomes of a merged one that is refused.

use bytes::Bytes;
use twinlog_protocol::batch::Forwarded;

use super::*;

const LONG: Duration = Duration::from_millis(20);

/// A batch of the source with values of so many bytes.
fn batch(base_offset: i64, records: i64, value_bytes: usize) -> BatchView {
    let mut batch = BatchBuilder::new().base_offset(base_offset);
    let value = Some(Bytes::from(vec![7; value_bytes]));
    (0..records).for_each(|_| batch.push(0, None, value.clone(), Vec::new()).unwrap());
    batch.build().unwrap()
}

/// So many batches of one record, from an offset on.
fn singles(base_offset: i64, count: i64, value_bytes: usize) -> Vec<BatchView> {
    (base_offset..base_offset + count).map(|offset| batch(offset, 1, value_bytes)).collect()
}

#[derive(Clone)]
struct Sending {
    ticket: u64,
    records: i32,
    bytes: usize,
    body: Bytes,
}

impl Bench {
    pub(super) fn fetches(&mut self, batches: &[BatchView]) -> Bytes {
        let offset = self.machine.fetch_wanted(self.now).expect("a partition that wants records");
        self.machine.handle_fetch_sent(offset);
        let records =
            Bytes::from(batches.iter().map(|view| view.bytes().to_vec()).collect::<Vec<_>>().concat());
        let fetched = FetchedRecords {
            records: records.clone(),
            high_watermark: 9000,
            last_stable_offset: None,
            aborted: Vec::new(),
            log_start: 0,
            diverging: None,
        };
        self.machine.handle_fetched(self.now, Fetched { offset, result: Ok(fetched) });
        self.answer();
        records
    }

    /// What is to be sent, in its order.
    fn sendings(&mut self) -> Vec<Sending> {
        let sending = |command| match command {
            Command::Produce { ticket, batch: Forwarded { head, body }, .. } => {
                let view = BatchView::parse([&head[..], &body].concat().into()).unwrap();
                view.check_crc().unwrap();
                let bytes = view.bytes().len();
                Some(Sending { ticket, records: view.header().record_count, bytes, body })
            }
            _ => None,
        };
        std::mem::take(&mut self.left).into_iter().filter_map(sending).collect()
    }

    fn records_sent(&mut self) -> Vec<i32> {
        self.sendings().into_iter().map(|sending| sending.records).collect()
    }

    /// The only batch that is sent is acknowledged.
    fn takes_one(&mut self, records: u32) {
        let [sending] = &self.sendings()[..] else { panic!("one batch is sent") };
        assert_eq!(sending.records, records.cast_signed());
        self.acknowledge(sending.ticket, records);
    }

    /// A copying partition, at the other end of a link. Its first batch is in the log.
    fn behind_link(round_trip: Duration) -> Self {
        let mut bench = Self::lining_up();
        while let Some(command) = bench.machine.poll_command() {
            match command {
                Command::Ask { attempt, question: Question::LastBatch, .. } => {
                    bench.machine.handle_last_batch(bench.now, attempt, None);
                }
                Command::Ask { attempt, question, .. } => {
                    bench.now += round_trip;
                    bench.machine.handle_offset(bench.now, attempt, question, bench.log_end);
                }
                Command::ReadState { attempt } => bench.machine.handle_state_read(bench.now, attempt),
                _ => {}
            }
        }
        bench.fetches(&[batch(100, 1, 10)]);
        bench.now += round_trip;
        bench.takes_one(1);
        bench
    }

    fn refuses(&mut self, ticket: u64, code: ErrorCode) {
        let answer = ProduceAnswer::Failed { code, detail: String::new(), named: 0 };
        self.machine.handle_produced(self.now, ticket, answer);
        self.answer();
    }
}

#[test]
fn a_lone_batch_goes_at_once_and_as_it_is() {
    let mut bench = Bench::behind_link(Duration::ZERO);
    for offset in 101..105 {
        let fetched = bench.fetches(&[batch(offset, 1, 10)]);
        let [sending] = &bench.sendings()[..] else { panic!("one batch is sent") };
        assert!(fetched.as_ptr_range().contains(&sending.body.as_ptr()), "its payload is not copied");
    }
}

#[test]
fn small_batches_that_wait_together_go_as_one_and_large_ones_as_they_are() {
    let mut bench = Bench::behind_link(Duration::ZERO);
    let large = batch(111, 2, 3000);
    let batches = [singles(101, 10, 200), vec![large.clone()], singles(113, 5, 200)].concat();
    let fetched = bench.fetches(&batches);
    let sendings = bench.sendings();
    assert_eq!(sendings.iter().map(|sending| sending.records).collect::<Vec<_>>(), [10, 2, 5]);
    assert_eq!(sendings[1].body, large.body());
    assert!(fetched.as_ptr_range().contains(&sendings[1].body.as_ptr()));
    for sending in &sendings {
        bench.acknowledge(sending.ticket, sending.records.unsigned_abs());
    }
    assert_eq!(bench.machine.record().mark(), Some(Run { number: 18, upstream: 118, downstream: 38 }));
    let copied = bench.machine.position();
    assert_eq!(copied, Some(118));
}

#[test]
fn a_hole_upstream_stays_between_two_batches() {
    let mut bench = Bench::behind_link(Duration::ZERO);
    bench.fetches(&[singles(101, 3, 10), singles(110, 2, 10)].concat());
    let entry = bench.left.iter().find_map(|command| match command {
        Command::Store { entry, attempt } => Some((entry.clone(), attempt.unwrap())),
        _ => None,
    });
    assert_eq!(bench.records_sent(), [3], "what lies behind the hole waits for its run");
    let (entry, attempt) = entry.expect("a run to be stored");
    bench.machine.handle_state(&entry);
    bench.machine.handle_stored(bench.now, attempt, true);
    bench.answer();
    assert_eq!(bench.records_sent(), [2]);
}

#[test]
fn behind_a_full_window_only_a_long_link_merges_what_is_large() {
    for (round_trip, merged) in [(Duration::from_millis(9), 1), (LONG, 7)] {
        let mut bench = Bench::behind_link(round_trip);
        bench.fetches(&singles(101, 12, 10_000));
        let sendings = bench.sendings();
        assert_eq!(sendings.iter().map(|sending| sending.records).collect::<Vec<_>>(), [1; 5]);
        bench.now += round_trip;
        bench.acknowledge(sendings[0].ticket, 1);
        if merged > 1 {
            // Larger than any that was taken: the others come back first, and it goes alone.
            sendings[1..].iter().for_each(|sending| bench.acknowledge(sending.ticket, 1));
        }
        assert_eq!(bench.records_sent(), [merged]);
    }
}

#[test]
fn what_was_taken_once_goes_beside_others() {
    let mut bench = Bench::behind_link(LONG);
    bench.fetches(&singles(101, 12, 10_000));
    bench.now += LONG;
    for sending in bench.sendings() {
        bench.acknowledge(sending.ticket, 1);
    }
    let large = bench.sendings();
    assert_eq!(large.len(), 1);
    bench.fetches(&singles(113, 7, 10_000));
    assert!(bench.sendings().is_empty(), "the large one is alone");
    bench.now += LONG;
    bench.acknowledge(large[0].ticket, 7);
    let next = bench.sendings();
    bench.fetches(&singles(120, 9, 10_000));
    let sendings = [next, bench.sendings()].concat();
    assert_eq!(sendings.iter().map(|sending| sending.records).collect::<Vec<_>>(), [7, 1, 1, 1, 1]);
    assert!(sendings.iter().all(|sending| sending.bytes <= large[0].bytes));
    bench.now += LONG;
    bench.acknowledge(sendings[0].ticket, 7);
    assert_eq!(bench.records_sent(), [5], "not much larger: it goes beside the others");
}

#[test]
fn a_merged_batch_that_is_too_large_comes_in_smaller_cuts() {
    let mut bench = Bench::copying();
    let all = singles(100, 64, 500);
    let mut records = vec![64];
    while records[0] > 1 {
        bench.fetches(&all);
        let sendings = bench.sendings();
        let [sending] = &sendings[..] else { panic!("the first batch of an epoch goes alone") };
        records.insert(0, sending.records);
        bench.refuses(sending.ticket, ErrorCode::MessageTooLarge);
        assert_eq!(bench.machine.held().is_some(), sending.records == 1);
    }
    assert_eq!(records, [1, 2, 5, 12, 28, 64, 64], "about half of it each time");
    let bytes = all[0].bytes().len();
    let held = bench.machine.held();
    let is_single = |reason: &HoldReason| matches!(reason, HoldReason::Refused { offset: 100, bytes: found, .. } if *found == bytes);
    assert!(held.is_some_and(is_single), "{held:?}");
}

#[test]
fn the_one_batch_that_is_refused_is_named_and_all_before_it_are_copied() {
    let mut bench = Bench::behind_link(Duration::ZERO);
    let batches = singles(101, 4, 10);
    bench.fetches(&batches);
    let merged = bench.sendings();
    assert_eq!(merged.iter().map(|sending| sending.records).collect::<Vec<_>>(), [4]);
    bench.refuses(merged[0].ticket, ErrorCode::InvalidRecord);
    assert_eq!(bench.machine.held(), None);
    bench.fetches(&[batches, singles(105, 3, 10)].concat());
    let sendings = bench.sendings();
    assert_eq!(sendings.iter().map(|sending| sending.records).collect::<Vec<_>>(), [1, 1, 1, 1, 3]);
    bench.acknowledge(sendings[0].ticket, 1);
    bench.acknowledge(sendings[1].ticket, 1);
    bench.refuses(sendings[2].ticket, ErrorCode::InvalidRecord);
    for sending in &sendings[3..] {
        bench.refuses(sending.ticket, ErrorCode::OutOfOrderSequenceNumber);
    }
    let held = bench.machine.held();
    assert!(matches!(held, Some(HoldReason::Refused { offset: 103, .. })), "{held:?}");
}

#[test]
fn a_damaged_batch_goes_alone_and_as_it_is() {
    let mut bench = Bench::behind_link(Duration::ZERO);
    let mut batches = singles(101, 5, 10);
    let mut damaged = batches[2].bytes().to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    batches[2] = BatchView::parse(damaged.into()).unwrap();
    bench.fetches(&batches);
    let sent = bench.left.iter().filter_map(|command| match command {
        Command::Produce { batch, .. } => Some([&batch.head[..], &batch.body].concat()),
        _ => None,
    });
    let sent: Vec<_> = sent.map(|bytes| BatchView::parse(bytes.into()).unwrap()).collect();
    let records: Vec<_> = sent.iter().map(|view| view.header().record_count).collect();
    assert_eq!(records, [2, 1, 1, 1]);
    let sound: Vec<_> = sent.iter().map(|view| view.check_crc().is_ok()).collect();
    assert_eq!(sound, [true, false, true, true], "the target finds the damage");
}

#[test]
fn a_thinned_batch_keeps_its_gaps_behind_another_one() {
    let mut bench = Bench::copying();
    bench.fetches(&[batch(103, 1, 10), thinned(104, 5, &[0, 3])]);
    assert_eq!(bench.store(), runs(&[(0, 103, 20), (2, 107, 22)]));
    bench.takes_one(3);
    assert_eq!(bench.machine.record().mark(), Some(Run { number: 3, upstream: 108, downstream: 23 }));
}
