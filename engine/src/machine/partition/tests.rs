//! A partition driven by hand: each question is answered at once, unless a test wants to see what happens meanwhile.

use twinlog_protocol::ErrorCode;
use twinlog_protocol::batch::BatchView;
use twinlog_protocol::record::BatchBuilder;

use super::*;
use crate::machine::line_up::{LastBatch, Question};
use crate::machine::lineage::Generation;
use crate::machine::loss::{LossPolicy, OnLoss};
use crate::machine::produce_window::ProduceAnswer;

mod committed;
mod faults;
mod leaders;
mod losses;
mod merging;
mod packing;
mod planning;
mod silence;
mod splitting;
mod standing;
mod start;

const NOW: Now = Duration::from_secs(1000);
const EPOCH: i16 = 5;

/// A target with nobody else on it, and a state topic that takes everything.
struct Bench {
    machine: PartitionMachine,
    now: Now,
    log_end: i64,
    last_batch: Option<LastBatch>,
    /// Commands that nobody answers by himself: Produce, stored runs and generations, refreshes of metadata.
    left: Vec<Command>,
}

impl Bench {
    fn new(record: PartitionRecord) -> Self {
        let config = PartitionConfig {
            fingerprint: 3,
            producer_id: 7,
            first_epoch: EPOCH,
            first_sequence: 0,
            backlog_bytes_max: 1 << 20,
            merge_sizes: MergeSizes::default(),
            losses: LossPolicy { on_loss: OnLoss::Hold, ..LossPolicy::default() },
            packing: Packing::default(),
        };
        let machine = PartitionMachine::new(config, record);
        Self { machine, now: NOW, log_end: 20, last_batch: None, left: Vec::new() }
    }

    /// A partition that copies in generation 5, of which nothing is in the log yet.
    fn copying() -> Self {
        let mut bench = Self::new(PartitionRecord::default());
        bench.machine.handle_state(&PartitionEntry::Opened(generation(EPOCH), None));
        bench.start();
        assert!(bench.machine.fetch_wanted(bench.now).is_some(), "{:?}", bench.left);
        bench
    }

    /// A partition with a generation.
    fn opened() -> Self {
        let mut record = PartitionRecord::default();
        record.apply(&PartitionEntry::Opened(generation(EPOCH), None));
        Self::new(record)
    }

    /// The same, about to line up.
    fn lining_up() -> Self {
        let mut bench = Self::opened();
        let leader = |topic_id| Some(Leader { node: Some(1), leader_epoch: 0, topic_id });
        bench.machine.handle_leaders(bench.now, leader(1), leader(2));
        bench
    }

    /// Answers the line-up, and gives the attempt that waits for the state topic.
    fn until_state_is_read(&mut self) -> u64 {
        loop {
            match self.machine.poll_command().expect("the state is to be read") {
                Command::ReadState { attempt } => return attempt,
                Command::Ask { attempt, question: Question::LastBatch, .. } => {
                    self.machine.handle_last_batch(self.now, attempt, self.last_batch);
                }
                Command::Ask { attempt, question, .. } => {
                    self.machine.handle_offset(self.now, attempt, question, self.log_end);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn start(&mut self) {
        let leader = |topic_id| Some(Leader { node: Some(1), leader_epoch: 0, topic_id });
        self.machine.handle_leaders(self.now, leader(1), leader(2));
        self.answer();
    }

    /// Answers what an approach asks, and gives the partition a turn if it wants one.
    fn answer(&mut self) {
        self.answer_questions();
        if self.machine.wants_turn() {
            self.machine.handle_turn(self.now);
            self.answer_questions();
        }
    }

    fn answer_questions(&mut self) {
        while let Some(command) = self.machine.poll_command() {
            let now = self.now;
            match command {
                Command::Ask { attempt, question: Question::LastBatch, .. } => {
                    self.machine.handle_last_batch(now, attempt, self.last_batch);
                }
                Command::Ask { attempt, question, .. } => {
                    self.machine.handle_offset(now, attempt, question, self.log_end);
                }
                Command::ReadState { attempt } => self.machine.handle_state_read(now, attempt),
                Command::Emit(_) => {}
                other => self.left.push(other),
            }
        }
    }

    /// Waits for the machine's next timer.
    fn wake(&mut self) {
        if self.machine.wants_turn() {
            return self.answer();
        }
        self.now = self.machine.next_timeout().expect("a timer runs").max(self.now);
        self.machine.handle_timeout(self.now);
        self.answer();
    }

    fn fetched(&mut self, base_offset: i64, count: i64) {
        self.fetch(base_offset, count);
        self.answer();
    }

    /// The same, and nobody answers what this makes the machine ask.
    fn fetch(&mut self, base_offset: i64, count: i64) {
        self.fetch_records(batch(base_offset, count));
    }

    fn fetch_records(&mut self, records: Vec<u8>) {
        self.fetch_answer(FetchedRecords {
            records: records.into(),
            high_watermark: 1000,
            last_stable_offset: None,
            aborted: Vec::new(),
            log_start: 0,
            diverging: None,
        });
    }

    fn fetch_answer(&mut self, records: FetchedRecords) {
        let offset = self.machine.fetch_wanted(self.now).expect("a partition that wants records");
        self.machine.handle_fetch_sent(offset);
        self.machine.handle_fetched(self.now, Fetched { offset, result: Ok(records) });
    }

    /// A Fetch is out of range, and the source says why.
    fn finds_source_span(&mut self, span: SourceSpan) {
        let offset = self.machine.fetch_wanted(self.now).expect("a partition that wants records");
        self.machine.handle_fetch_sent(offset);
        let result = Err(RequestFailure::Broker(ErrorCode::OffsetOutOfRange));
        self.machine.handle_fetched(self.now, Fetched { offset, result });
        assert_eq!(self.machine.fetch_wanted(self.now), None, "the source is asked first");
        match self.machine.poll_command() {
            Some(Command::AskSourceSpan { attempt }) => {
                self.machine.handle_source_span(self.now, attempt, span);
            }
            other => panic!("the source is to be asked, not {other:?}"),
        }
        self.answer();
    }

    /// The entry that is to be stored, and the attempt that waits for it.
    fn next_store(&mut self) -> (PartitionEntry, Option<u64>) {
        match self.left.pop() {
            Some(Command::Store { attempt, entry }) => (entry, attempt),
            other => panic!("nothing to store but {other:?}"),
        }
    }

    fn store(&mut self) -> PartitionEntry {
        let (entry, attempt) = self.next_store();
        self.machine.handle_state(&entry);
        self.machine.handle_stored(self.now, attempt.expect("somebody waits"), true);
        self.answer();
        entry
    }

    /// What the machine has to say; what it wants done is left.
    fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(command) = self.machine.poll_command() {
            match command {
                Command::Emit(event) => events.push(event),
                other => self.left.push(other),
            }
        }
        events
    }

    fn next_produce(&mut self) -> u64 {
        match self.left.pop() {
            Some(Command::Produce { ticket, .. }) => ticket,
            other => panic!("nothing to send but {other:?}"),
        }
    }

    fn acknowledge(&mut self, ticket: u64, records: u32) {
        self.take(ticket, records);
        self.answer();
    }

    /// The same, and what this makes the machine want has to wait.
    fn take(&mut self, ticket: u64, records: u32) {
        let base_offset = self.log_end;
        self.log_end += i64::from(records);
        let before = self.last_batch.map_or(-1, |last| last.last_sequence);
        let last_sequence = before + records.cast_signed();
        self.last_batch = Some(LastBatch { producer_epoch: EPOCH, last_sequence });
        self.machine.handle_produced(self.now, ticket, acknowledged(base_offset));
    }
}

fn acknowledged(base_offset: i64) -> ProduceAnswer {
    ProduceAnswer::Acknowledged { base_offset, log_append_time_ms: -1 }
}

fn batch(base_offset: i64, count: i64) -> Vec<u8> {
    let mut batch = BatchBuilder::new().base_offset(base_offset);
    (0..count).for_each(|_| batch.push(0, None, None, Vec::new()).unwrap());
    batch.build().unwrap().bytes().to_vec()
}

/// What the cleaner left of a batch of `count` records: those at `kept`.
fn thinned(base_offset: i64, count: u32, kept: &[u32]) -> BatchView {
    let mut batch = BatchBuilder::new().base_offset(base_offset);
    let mut next = 0;
    for index in kept {
        batch.leave_gap(index - next).unwrap();
        batch.push(0, None, None, Vec::new()).unwrap();
        next = index + 1;
    }
    batch.leave_gap(count - next).unwrap();
    batch.build().unwrap()
}

fn generation(producer_epoch: i16) -> Generation {
    Generation {
        producer_id: 7,
        producer_epoch,
        first_sequence: 0,
        upstream_start: 100,
        downstream_start: 20,
        source_topic_id: 1,
        target_topic_id: 2,
        fingerprint: 3,
    }
}

fn runs(runs: &[(u64, i64, i64)]) -> PartitionEntry {
    let run = |&(number, upstream, downstream): &_| Run { number, upstream, downstream };
    let runs = runs.iter().map(run).collect();
    PartitionEntry::Runs { producer_id: 7, producer_epoch: EPOCH, runs }
}

#[test]
fn a_hole_where_the_copy_begins_is_stored_and_passed() {
    let mut bench = Bench::copying();
    bench.fetched(107, 2);
    assert_eq!(bench.store(), runs(&[(0, 107, 20)]));
    let ticket = bench.next_produce();
    bench.acknowledge(ticket, 2);
    assert_eq!(bench.machine.record().mark(), Some(Run { number: 2, upstream: 109, downstream: 22 }));
}

#[test]
fn numbers_that_another_instance_has_written_are_not_sent_but_lined_up_at_once() {
    let mut bench = Bench::copying();
    bench.fetched(107, 2);
    let (entry, attempt) = bench.next_store();
    bench.machine.handle_state(&entry);
    let mark = Run { number: 2, upstream: 109, downstream: 22 };
    bench.machine.handle_state(&PartitionEntry::Progress {
        producer_id: 7,
        producer_epoch: EPOCH,
        mark,
        epoch: None,
    });
    bench.machine.handle_stored(bench.now, attempt.unwrap(), true);
    assert!(matches!(bench.machine.poll_command(), Some(Command::Ask { question: Question::LogEnd, .. })));
}

#[test]
fn a_pause_that_has_passed_is_no_timer() {
    let mut bench = Bench::copying();
    let offset = bench.machine.fetch_wanted(bench.now).unwrap();
    bench.machine.handle_fetch_sent(offset);
    let result = Err(RequestFailure::Unanswered("closed".to_owned()));
    bench.machine.handle_fetched(bench.now, Fetched { offset, result });
    // The source has no leader meanwhile, so there is nothing to fetch when the pause ends.
    let leader = |node, topic_id| Some(Leader { node, leader_epoch: 0, topic_id });
    bench.machine.handle_leaders(bench.now, leader(None, 1), leader(Some(1), 2));
    bench.wake();
    assert!(bench.machine.next_timeout().is_none_or(|at| at > bench.now));
}

#[test]
fn acknowledgements_of_a_former_generation_do_not_move_the_new_one() {
    let mut bench = Bench::copying();
    bench.fetched(100, 3);
    let ticket = bench.next_produce();
    let newer = generation(EPOCH + 1);
    bench.machine.handle_state(&PartitionEntry::Opened(newer, None));
    bench.machine.handle_produced(bench.now, ticket, acknowledged(20));
    assert_eq!(bench.machine.record().current().map(|lineage| lineage.generation), Some(newer));
    assert_eq!(bench.machine.record().mark(), None);
    assert!(matches!(bench.machine.poll_command(), Some(Command::Emit(Event::Copied { records: 3, .. }))));
    assert!(matches!(bench.machine.poll_command(), Some(Command::Ask { question: Question::LogEnd, .. })));
}

#[test]
fn a_target_is_too_short_only_when_it_stays_so() {
    let mut record = PartitionRecord::default();
    record.apply(&PartitionEntry::Opened(generation(EPOCH), None));
    record.advance(Run { number: 10, upstream: 110, downstream: 30 }, None);
    let mut bench = Bench::new(record);
    bench.last_batch = Some(LastBatch { producer_epoch: EPOCH, last_sequence: 9 });
    bench.log_end = 26;
    bench.start();
    assert_eq!(bench.machine.held(), None, "a replaced leader may have answered");
    assert!(matches!(bench.left[..], [Command::RefreshMetadata(Side::Target)]));
    while bench.machine.held().is_none() {
        bench.wake();
        assert!(bench.now < NOW + Duration::from_secs(30), "it is held some time");
    }
    assert!(matches!(bench.machine.held(), Some(HoldReason::TargetShorter { log_end: 26, known: 30 })));

    let mut bench = Bench { log_end: 26, ..Bench::new(bench.machine.record().clone()) };
    bench.last_batch = Some(LastBatch { producer_epoch: EPOCH, last_sequence: 9 });
    bench.start();
    bench.log_end = 30;
    bench.wake();
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(110));
}

#[test]
fn a_generation_that_another_instance_stored_meanwhile_is_not_opened_over() {
    let mut bench = Bench::new(PartitionRecord::default());
    bench.log_end = 0;
    bench.start();
    let Some(Command::AskSourceSpan { attempt }) = bench.left.pop() else { panic!("{:?}", bench.left) };
    bench.machine.handle_state(&PartitionEntry::Opened(generation(EPOCH), None));
    let span = SourceSpan { log_start: 100, high_watermark: 100 };
    bench.machine.handle_source_span(bench.now, attempt, span);
    assert!(bench.machine.poll_command().is_none(), "looks again first");
    assert_eq!(bench.machine.record().current().map(|lineage| lineage.generation), Some(generation(EPOCH)));
}

#[test]
fn numbered_records_that_the_source_has_lost_open_a_generation() {
    let mut record = PartitionRecord::default();
    record.apply(&PartitionEntry::Opened(generation(EPOCH), None));
    record.apply(&runs(&[(0, 107, 20), (4, 115, 24)]));
    let mut bench = Bench::new(record);
    bench.start();
    // Compaction took records 107 to 111 away after their numbers were stored.
    bench.fetched(112, 3);
    bench.fetched(112, 3);
    let (entry, _) = bench.next_store();
    let reopened = Generation { upstream_start: 107, ..generation(EPOCH + 1) };
    assert_eq!(entry, PartitionEntry::Opened(reopened, None));
}

#[test]
fn a_compacted_source_has_the_numbers_of_dense_batches_stored_before_they_are_sent() {
    let mut bench = Bench::new(PartitionRecord::default());
    bench.machine.handle_state(&PartitionEntry::Opened(generation(EPOCH), None));
    bench.machine.handle_source_compacts(true);
    bench.start();
    bench.fetched(100, 3);
    assert_eq!(bench.store(), runs(&[(0, 100, 20), (2, 102, 22)]));
    let ticket = bench.next_produce();
    bench.acknowledge(ticket, 3);
    bench.fetched(103, 1);
    assert_eq!(bench.store(), runs(&[(3, 103, 23)]));
}

#[test]
fn a_thinned_batch_waits_until_its_gaps_are_stored() {
    let mut bench = Bench::copying();
    // 100, 101 and 109 are left of 100..111.
    bench.fetches(&[thinned(100, 12, &[0, 1, 9])]);
    assert!(!bench.left.iter().any(|command| matches!(command, Command::Produce { .. })), "{:?}", bench.left);
    assert_eq!(bench.store(), runs(&[(2, 109, 22)]));
    let ticket = bench.next_produce();
    bench.acknowledge(ticket, 3);
    assert_eq!(bench.machine.record().mark(), Some(Run { number: 3, upstream: 110, downstream: 23 }));
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(112), "the header tells where to go on");
}

#[test]
fn a_batch_of_which_nothing_is_left_at_the_position_is_passed() {
    let mut bench = Bench::copying();
    bench.fetches(&[thinned(90, 20, &[0, 9])]);
    assert!(bench.left.is_empty(), "{:?}", bench.left);
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(110));
}
