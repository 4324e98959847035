//! Answers full of batches that lack records: they are written anew by turns.

use super::*;

/// Three of five records of 4 KB, at offsets 1, 2 and 4 behind the first.
fn lacking(base_offset: i64) -> BatchView {
    let mut batch = BatchBuilder::new().base_offset(base_offset);
    for (gap, byte) in [(1, b'a'), (0, b'b'), (1, b'c')] {
        batch.leave_gap(gap).unwrap();
        batch.push(0, None, Some(vec![byte; 4_000].into()), Vec::new()).unwrap();
    }
    batch.build().unwrap()
}

fn answer_of(count: i64) -> Vec<u8> {
    (0..count).flat_map(|index| lacking(100 + 5 * index).bytes().to_vec()).collect()
}

impl Bench {
    /// Takes and stores what comes, and gives one turn.
    fn go_on(&mut self) {
        for command in std::mem::take(&mut self.left) {
            match command {
                Command::Store { attempt, entry } => {
                    self.machine.handle_state(&entry);
                    if let Some(attempt) = attempt {
                        self.machine.handle_stored(self.now, attempt, true);
                    }
                }
                Command::Produce { ticket, batch, .. } => {
                    let header = twinlog_protocol::batch::BatchHeader::parse(&batch.head).unwrap();
                    self.take(ticket, header.record_count.unsigned_abs());
                }
                _ => {}
            }
        }
        self.answer();
    }

    fn mark_of_copy(&self) -> Option<(u64, i64)> {
        self.machine.record().mark().map(|mark| (mark.number, mark.upstream))
    }
}

#[test]
fn an_answer_is_written_anew_by_turns_and_nothing_is_fetched_meanwhile() {
    let mut bench = Bench::copying();
    bench.fetch_records(answer_of(20));
    let mut turns = 0;
    while bench.machine.wants_turn() {
        assert_eq!(bench.machine.fetch_wanted(bench.now), None);
        assert!(bench.machine.backlog_bytes() > 200_000, "{} bytes wait", bench.machine.backlog_bytes());
        bench.machine.handle_turn(bench.now);
        turns += 1;
    }
    assert_eq!(turns, 3, "240 KB, 64 KB and a batch at once");
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(200));
    bench.answer();
    while bench.mark_of_copy().is_none_or(|(number, _)| number < 60) {
        assert!(!bench.left.is_empty(), "{:?}", bench.mark_of_copy());
        bench.go_on();
    }
    assert_eq!(bench.mark_of_copy(), Some((60, 200)));
}

#[test]
fn what_waits_for_a_turn_goes_with_all_that_was_fetched() {
    let mut bench = Bench::copying();
    bench.fetch_records(answer_of(20));
    assert!(bench.machine.wants_turn());
    let leader = |topic_id| Some(Leader { node: Some(2), leader_epoch: 1, topic_id });
    bench.machine.handle_leaders(bench.now, leader(1), leader(2));
    bench.answer_questions();
    assert!(!bench.machine.wants_turn(), "{:?}", bench.machine);
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(100));
    assert_eq!(bench.machine.backlog_bytes(), 0);
}

#[test]
fn a_damaged_batch_behind_it_holds_the_partition_after_all_before_it() {
    let mut bench = Bench::copying();
    let mut records = answer_of(12);
    *records.last_mut().unwrap() ^= 1;
    bench.fetch_records(records);
    assert_eq!(bench.machine.held(), None);
    for _ in 0..30 {
        bench.go_on();
    }
    let held = bench.machine.held();
    assert!(matches!(held, Some(HoldReason::DamagedSource { offset: 155, .. })), "{held:?}");
    assert_eq!(bench.mark_of_copy(), Some((33, 155)));
}
