//! Two instances on one log: a naive broker that recognises repeats by their range alone.

use super::*;
use crate::machine::lineage::{Generation, Run};
use crate::machine::partition_record::PartitionEntry;
use crate::state::PartitionKey;

const NOW: Now = Duration::from_secs(100);
const PRODUCER: i64 = 7;

/// The state topic's partition.
#[derive(Default)]
struct Broker {
    entries: Vec<Stored>,
    /// Epoch, first sequence, entries, base offset of each batch.
    batches: Vec<(i16, i32, usize, i64)>,
}

impl Broker {
    fn last(&self) -> Option<LastBatch> {
        let (producer_epoch, first, count, _) = *self.batches.last()?;
        Some(LastBatch { producer_epoch, last_sequence: first + i32::try_from(count).unwrap() - 1 })
    }

    fn append(&mut self, instance: u64, epoch: i16, sequence: i32, entries: Vec<StateEntry>) -> Option<i64> {
        let repeat =
            |batch: &&(i16, i32, usize, i64)| (batch.0, batch.1, batch.2) == (epoch, sequence, entries.len());
        if let Some(known) = self.batches.iter().rev().take(5).find(repeat) {
            return Some(known.3);
        }
        let next = self.last().map_or(0, |last| last.last_sequence + 1);
        if sequence != next {
            return None;
        }
        let base_offset = i64::try_from(self.entries.len()).unwrap();
        self.batches.push((epoch, sequence, entries.len(), base_offset));
        let stored = |entry| Stored { source_cluster_id: "source".into(), instance, entry };
        self.entries.extend(entries.into_iter().map(stored));
        Some(base_offset)
    }

    fn read(&self, from: i64) -> LogRead {
        let end = i64::try_from(self.entries.len()).unwrap();
        let entries =
            (from..end).map(|offset| (offset, self.entries[usize::try_from(offset).unwrap()].clone()));
        let last_batches = self.last().map(|last| (PRODUCER, last)).into_iter().collect();
        LogRead { next_offset: end, last_batches, entries: entries.collect() }
    }

    /// Carries one command out.
    fn serve(&mut self, log: &mut StateLog, command: LogCommand) {
        match command {
            LogCommand::Ask { question: Question::LastBatch, .. } => log.handle_last_batch(NOW, self.last()),
            LogCommand::Ask { question, .. } => {
                log.handle_offset(NOW, question, i64::try_from(self.entries.len()).unwrap());
            }
            LogCommand::Read { from } => log.handle_read(NOW, self.read(from)),
            LogCommand::Append { producer_epoch, base_sequence, entries, .. } => {
                let base_offset = self.append(log.instance, producer_epoch, base_sequence, entries);
                log.handle_appended(NOW, base_offset);
            }
        }
    }

    /// Carries commands out up to an append, which is given back.
    fn until_append(&mut self, log: &mut StateLog) -> LogCommand {
        for _ in 0..100 {
            let command = log.poll_command(NOW + PAUSE).expect("an append is to come");
            if matches!(command, LogCommand::Append { .. }) {
                return command;
            }
            self.serve(log, command);
            while log.poll_entry().is_some() {}
        }
        panic!("no append comes: {log:?}");
    }

    fn drain(&mut self, log: &mut StateLog) -> (Vec<StateEntry>, Vec<(JobId, bool)>) {
        let (mut entries, mut done) = (Vec::new(), Vec::new());
        for _ in 0..100 {
            let Some(command) = log.poll_command(NOW + PAUSE) else { break };
            self.serve(log, command);
            entries.extend(std::iter::from_fn(|| log.poll_entry()).map(|(_, stored)| stored.entry));
            done.extend(std::iter::from_fn(|| log.poll_done()));
        }
        assert!(log.is_idle(), "the log does not come to rest: {log:?}");
        (entries, done)
    }
}

fn log(instance: u64) -> StateLog {
    let mut log = StateLog::new(instance);
    log.handle_producer_id(NOW, PRODUCER);
    log
}

fn key() -> PartitionKey {
    PartitionKey { source_topic: "a".into(), target_topic: "b".into(), partition: 0 }
}

fn opened(upstream_start: i64) -> StateEntry {
    let generation = Generation {
        producer_id: PRODUCER,
        producer_epoch: 3,
        first_sequence: 0,
        upstream_start,
        downstream_start: 0,
        source_topic_id: 1,
        target_topic_id: 2,
        fingerprint: 0,
    };
    StateEntry::Partition(key(), PartitionEntry::Opened(generation, None))
}

fn progress(number: u64) -> StateEntry {
    let mark = Run { number, upstream: 0, downstream: 0 };
    StateEntry::Partition(
        key(),
        PartitionEntry::Progress { producer_id: PRODUCER, producer_epoch: 3, mark, epoch: None },
    )
}

#[test]
fn an_entry_is_done_after_it_was_read_back() {
    let (mut broker, mut log) = (Broker::default(), log(1));
    log.append(1, opened(0));
    log.append(2, progress(5));
    assert_eq!(broker.drain(&mut log), (vec![opened(0), progress(5)], vec![(1, true), (2, true)]));
}

#[test]
fn a_refresh_is_done_after_an_append_of_ours_was_read_back() {
    let (mut broker, mut first, mut second) = (Broker::default(), log(1), log(2));
    first.append(1, opened(10));
    broker.drain(&mut first);
    second.refresh(1);
    second.refresh(2);
    let (entries, done) = broker.drain(&mut second);
    assert_eq!(entries, vec![opened(10), StateEntry::Heartbeat]);
    assert_eq!(done, vec![(JobId::MAX, true), (1, true), (2, true)]);
    // What has to be appended anyhow does for a refresh.
    second.append(3, progress(5));
    second.refresh(4);
    assert_eq!(broker.drain(&mut second), (vec![progress(5)], vec![(3, true), (4, true)]));
}

#[test]
fn a_line_up_with_a_replaced_leader_does_not_end_a_refresh() {
    let (mut broker, mut first, mut second) = (Broker::default(), log(1), log(2));
    second.refresh(0);
    broker.drain(&mut second);
    let mut stale = Broker { entries: broker.entries.clone(), batches: broker.batches.clone() };
    first.append(1, opened(10));
    broker.drain(&mut first);
    second.handle_failure(NOW);
    second.refresh(2);
    // The replaced leader answers all questions from its own log, but its followers are gone.
    let append = stale.until_append(&mut second);
    assert!(matches!(append, LogCommand::Append { .. }));
    second.handle_failure(NOW);
    let (entries, done) = broker.drain(&mut second);
    assert_eq!(entries, vec![opened(10), StateEntry::Heartbeat]);
    assert_eq!(done.last(), Some(&(2, true)));
}

#[test]
fn without_a_producer_id_a_line_up_has_to_do() {
    let (mut broker, mut first) = (Broker::default(), log(1));
    first.append(1, opened(10));
    broker.drain(&mut first);
    let mut second = StateLog::new(2);
    second.refresh(1);
    assert_eq!(broker.drain(&mut second), (vec![opened(10)], vec![(1, true)]));
    second.append(2, StateEntry::Heartbeat);
    assert_eq!(
        (second.poll_command(NOW + PAUSE), second.next_timeout()),
        (None, None),
        "appends wait for an id"
    );
}

#[test]
fn what_was_found_about_a_former_id_is_not_taken_for_the_new_one() {
    let (mut broker, mut log) = (Broker::default(), log(1));
    log.append(1, opened(10));
    broker.drain(&mut log);
    log.handle_failure(NOW);
    log.append(2, progress(1));
    assert!(matches!(log.poll_command(NOW + PAUSE), Some(LogCommand::Ask { .. })));
    log.handle_producer_id(NOW, PRODUCER + 1);
    log.handle_offset(NOW, Question::LogEnd, 1);
    let question = log.poll_command(NOW + PAUSE);
    let first = LogCommand::Ask { question: Question::LogEnd, producer_id: Some(PRODUCER + 1) };
    assert_eq!(question, Some(first), "the line-up starts over");
}

#[test]
fn of_two_generations_the_first_in_the_log_counts_for_both() {
    let (mut broker, mut first, mut second) = (Broker::default(), log(1), log(2));
    // Both have read the empty log; then both append with the same sequence.
    first.append(1, opened(10));
    second.append(1, opened(20));
    let appends = [broker.until_append(&mut first), broker.until_append(&mut second)];
    for (log, append) in [&mut first, &mut second].into_iter().zip(appends) {
        broker.serve(log, append);
    }
    assert_eq!(broker.drain(&mut first), (vec![opened(10)], vec![(1, true)]));
    // The broker tells the second one "success" for the first one's batch.
    assert_eq!(broker.drain(&mut second), (vec![opened(10)], vec![(1, false)]));
    assert_eq!(broker.entries.len(), 1, "an entry that was outrun is not written");
}

#[test]
fn an_entry_about_something_else_is_written_behind_the_others() {
    let (mut broker, mut first, mut second) = (Broker::default(), log(1), log(2));
    second.refresh(0);
    broker.drain(&mut second);
    first.append(1, StateEntry::Heartbeat);
    broker.drain(&mut first);
    second.append(1, opened(20));
    assert_eq!(broker.drain(&mut second), (vec![StateEntry::Heartbeat, opened(20)], vec![(1, true)]));
}

#[test]
fn waiting_progress_is_replaced_by_newer() {
    let (mut broker, mut log) = (Broker::default(), log(1));
    for number in 0..1000 {
        log.append(number, progress(number));
    }
    assert_eq!(broker.drain(&mut log), (vec![progress(999)], vec![(999, true)]));
}

#[test]
fn after_a_lost_answer_the_log_is_lined_up_and_nothing_is_written_twice() {
    let (mut broker, mut log) = (Broker::default(), log(1));
    log.append(1, opened(10));
    let LogCommand::Append { producer_epoch, base_sequence, entries, .. } = broker.until_append(&mut log)
    else {
        panic!("an append follows a line-up");
    };
    // Appended, but the answer is lost.
    assert_eq!(broker.append(1, producer_epoch, base_sequence, entries), Some(0));
    log.handle_failure(NOW);
    assert_eq!(broker.drain(&mut log), (vec![opened(10)], vec![(1, true)]));
    assert_eq!(broker.entries.len(), 1);
}

#[test]
fn a_forgotten_writer_goes_on_in_a_new_epoch() {
    let (mut broker, mut log) = (Broker::default(), log(1));
    log.append(1, opened(10));
    broker.drain(&mut log);
    log.handle_failure(NOW);
    log.append(2, progress(1));
    let mut asked = 0;
    loop {
        match log.poll_command(NOW + PAUSE).expect("the log has something to do") {
            LogCommand::Ask { question: Question::LastBatch, .. } => log.handle_last_batch(NOW, None),
            LogCommand::Append { producer_epoch, base_sequence, .. } => {
                assert_eq!((producer_epoch, base_sequence), (1, 0));
                break;
            }
            command => broker.serve(&mut log, command),
        }
        asked += 1;
        assert!(asked < 20);
    }
}

#[test]
fn appends_stay_below_the_size_that_brokers_take() {
    let (mut broker, mut log) = (Broker::default(), log(1));
    let run = |number| Run { number, upstream: 0, downstream: 0 };
    let runs = |of: u64| PartitionEntry::Runs {
        producer_id: PRODUCER,
        producer_epoch: 3,
        runs: (of..of + 2_500).map(run).collect(),
    };
    for id in 0..40 {
        log.append(id, StateEntry::Partition(key(), runs(id * 10_000)));
    }
    let mut appends = 0;
    while !log.is_idle() {
        let command = log.poll_command(NOW + PAUSE).expect("something to do");
        if let LogCommand::Append { entries, .. } = &command {
            let bytes: usize = entries.iter().map(StateEntry::bytes_max).sum();
            assert!(bytes <= APPEND_BYTES_MAX, "{bytes} bytes");
            appends += 1;
        }
        broker.serve(&mut log, command);
        while log.poll_entry().is_some() {}
    }
    assert!(appends > 1);
    assert_eq!(broker.entries.len(), 40);
}

#[test]
fn a_log_that_was_cut_back_is_not_written_to() {
    let (mut broker, mut log) = (Broker::default(), log(1));
    log.append(1, opened(0));
    broker.drain(&mut log);
    let (entries, batches) = (std::mem::take(&mut broker.entries), std::mem::take(&mut broker.batches));
    log.handle_failure(NOW);
    log.append(2, progress(5));
    for _ in 0..20 {
        let Some(command) = log.poll_command(NOW + PAUSE) else { break };
        assert!(!matches!(command, LogCommand::Append { .. }), "the entries before it are lost");
        broker.serve(&mut log, command);
    }
    assert_eq!(log.shorter_since(), Some(NOW));
    // It was the old leader.
    (broker.entries, broker.batches) = (entries, batches);
    assert_eq!(broker.drain(&mut log).0, vec![progress(5)]);
    assert_eq!(log.shorter_since(), None);
}
