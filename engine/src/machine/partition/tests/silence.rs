//! Batches that come when the target has not been heard of for long: they wait for a line-up.

use super::*;

const SILENCE: Duration = Duration::from_secs(31);
const SOURCE: Leader = Leader { node: Some(1), leader_epoch: 0, topic_id: 1 };
const TARGET: Leader = Leader { node: Some(1), leader_epoch: 0, topic_id: 2 };

impl Bench {
    /// Two records were copied, and after a silence so many more come, from `base_offset` on. Gives the attempt that waits for
    /// the state topic.
    fn fetched_after_silence(&mut self, base_offset: i64, count: i64) -> u64 {
        self.fetched(100, 2);
        let ticket = self.next_produce();
        self.acknowledge(ticket, 2);
        self.wake();
        assert!(matches!(self.left[..], [Command::Store { attempt: None, .. }]), "{:?}", self.left);
        self.left.clear();
        self.now += SILENCE;
        self.fetch(base_offset, count);
        let attempt = self.until_state_is_read();
        assert!(self.left.is_empty(), "before the line-up nothing is sent: {:?}", self.left);
        attempt
    }

    fn reads_state(&mut self, attempt: u64) {
        self.machine.handle_state_read(self.now, attempt);
        self.answer();
    }

    /// What had been fetched is gone, and the partition reads from here.
    fn begins_anew(&mut self, offset: i64) {
        let sends = |command: &Command| matches!(command, Command::Produce { .. });
        assert!(!self.left.iter().any(sends), "{:?}", self.left);
        assert_eq!(self.machine.backlog_bytes(), 0);
        assert_eq!(self.machine.fetch_wanted(self.now), Some(offset));
    }
}

#[test]
fn what_was_fetched_goes_out_behind_the_line_up_and_is_not_fetched_again() {
    let mut bench = Bench::copying();
    let attempt = bench.fetched_after_silence(102, 3);
    bench.reads_state(attempt);
    let ticket = bench.next_produce();
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(105));
    bench.acknowledge(ticket, 3);
    assert_eq!(bench.machine.record().mark(), Some(Run { number: 5, upstream: 105, downstream: 25 }));
    bench.fetched(105, 1);
    bench.next_produce();
}

/// As in a flow with many partitions, where the first batch of the last one comes late.
#[test]
fn the_first_batch_of_an_epoch_goes_out_behind_the_line_up_and_alone() {
    let mut bench = Bench::copying();
    bench.now += SILENCE;
    bench.fetched(100, 2);
    let ticket = bench.next_produce();
    bench.fetched(102, 2);
    assert!(bench.left.is_empty(), "{:?}", bench.left);
    bench.acknowledge(ticket, 2);
    bench.next_produce();
}

#[test]
fn where_the_target_stands_elsewhere_everything_is_fetched_anew() {
    let mut bench = Bench::copying();
    bench.log_end = 23;
    bench.last_batch = Some(LastBatch { producer_epoch: EPOCH, last_sequence: 2 });
    bench.now += SILENCE;
    bench.fetched(100, 5);
    bench.begins_anew(103);
}

#[test]
fn where_only_others_have_appended_everything_is_fetched_anew() {
    let mut bench = Bench::copying();
    bench.log_end = 27;
    bench.now += SILENCE;
    bench.fetched(100, 2);
    let read = bench.left.pop();
    let Some(Command::ReadTail { attempt, from: 20, to: 27, .. }) = read else { panic!("{read:?}") };
    assert_eq!(bench.machine.backlog_bytes(), 0);
    bench.machine.handle_tail(bench.now, attempt, Tail { from: 20, last: None, records: 0 });
    bench.answer();
    bench.begins_anew(100);
}

#[test]
fn in_another_generation_everything_is_fetched_anew() {
    let mut bench = Bench::copying();
    let mark = Run { number: 0, upstream: 100, downstream: 20 };
    let (producer_id, producer_epoch) = (7, EPOCH);
    bench.machine.handle_state(&PartitionEntry::Progress { producer_id, producer_epoch, mark, epoch: None });
    bench.now += SILENCE;
    // The leader knows nothing of our epoch although something was acknowledged in it.
    bench.fetched(100, 2);
    let opened = bench.store();
    assert_eq!(opened, PartitionEntry::Opened(generation(EPOCH + 1), None));
    bench.begins_anew(100);
}

#[test]
fn what_waited_for_its_run_to_be_stored_goes_out_behind_the_line_up() {
    let mut bench = Bench::copying();
    bench.now += SILENCE;
    bench.fetched(107, 2);
    let entry = bench.store();
    assert_eq!(entry, runs(&[(0, 107, 20)]));
    bench.next_produce();
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(109));
}

#[test]
fn what_has_a_run_that_is_not_stored_is_fetched_anew() {
    let mut bench = Bench::copying();
    let stretch = [batch(100, 2), batch(105, 2)].concat();
    bench.now += SILENCE;
    bench.fetch_records(stretch.clone());
    bench.answer();
    // The line-up has overtaken the run that was about to be stored.
    bench.left.clear();
    bench.begins_anew(100);
    bench.fetch_records(stretch);
    bench.answer();
    assert_eq!(bench.left.len(), 2, "{:?}", bench.left);
}

#[test]
fn a_source_that_is_compacted_from_now_on_is_fetched_anew() {
    let mut bench = Bench::copying();
    let attempt = bench.fetched_after_silence(102, 3);
    bench.machine.handle_source_compacts(true);
    bench.reads_state(attempt);
    bench.begins_anew(102);
    bench.fetched(102, 3);
    assert_eq!(bench.store(), runs(&[(2, 102, 22), (4, 104, 24)]));
}

#[test]
fn what_came_from_a_source_leader_that_was_replaced_is_fetched_anew() {
    let mut bench = Bench::copying();
    let attempt = bench.fetched_after_silence(102, 3);
    let elected = Leader { node: Some(2), leader_epoch: 1, ..SOURCE };
    bench.machine.handle_leaders(bench.now, Some(elected), Some(TARGET));
    assert_eq!(bench.machine.backlog_bytes(), 0);
    bench.reads_state(attempt);
    bench.begins_anew(102);
}

#[test]
fn what_waits_before_damage_is_fetched_anew_and_the_damage_holds() {
    let mut bench = Bench::copying();
    let mut damaged = batch(102, 2);
    // No format has this number.
    damaged[16] = 9;
    let stretch = [batch(100, 2), damaged].concat();
    bench.now += SILENCE;
    bench.fetch_records(stretch.clone());
    bench.answer();
    bench.begins_anew(100);
    bench.fetch_records(stretch);
    bench.answer();
    let ticket = bench.next_produce();
    bench.acknowledge(ticket, 2);
    let held = bench.machine.held();
    assert!(matches!(held, Some(HoldReason::DamagedSource { offset: 102, .. })), "{held:?}");
}

#[test]
fn a_line_up_that_takes_long_holds_no_memory() {
    let mut bench = Bench::copying();
    let attempt = bench.fetched_after_silence(102, 3);
    assert!(bench.machine.backlog_bytes() > 0);
    let since = bench.now;
    bench.wake();
    assert_eq!(bench.machine.backlog_bytes(), 0);
    assert!(bench.now <= since + Duration::from_secs(10) && bench.machine.next_timeout().is_none());
    bench.reads_state(attempt);
    bench.begins_anew(102);
}
