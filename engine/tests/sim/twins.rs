//! The deciding machines beside naive twins that keep everything and search it.

use proptest::prelude::*;
use twinlog_engine::machine::line_up::{LastBatch, LinedUp};
use twinlog_engine::machine::lineage::{Generation, Lineage, Run};
use twinlog_engine::machine::partition_record::{PartitionEntry, PartitionRecord};
use twinlog_engine::machine::resume::{Decision, Here, Tail, TailBatch, decide};
use twinlog_engine::machine::sequence::sequence_of;

const PRODUCER: i64 = 7;
const EPOCH: i16 = 5;
const HERE: Here = Here { source_topic_id: 1, target_topic_id: 2, fingerprint: 3 };

fn generation(producer_epoch: i16, first_sequence: i32) -> Generation {
    Generation {
        producer_id: PRODUCER,
        producer_epoch,
        first_sequence,
        upstream_start: 100,
        downstream_start: 20,
        source_topic_id: 1,
        target_topic_id: 2,
        fingerprint: 3,
    }
}

/// Everything that was ever said about a generation.
#[derive(Debug, Default)]
struct Said {
    stored: Vec<Run>,
    bounds: Vec<Run>,
}

impl Said {
    fn at(&self, number: u64) -> Run {
        let start = Run { number: 0, upstream: 100, downstream: 20 };
        let mut upstream = start;
        for run in self.stored.iter().filter(|run| run.number <= number) {
            let said_before = self.stored.iter().take_while(|other| *other != run);
            let is_first = said_before.clone().all(|other| other.number != run.number);
            if is_first && run.number >= upstream.number {
                upstream = *run;
            }
        }
        let bounds = self.stored.iter().chain(&self.bounds).filter(|run| run.number <= number);
        let downstream =
            bounds.map(|run| run.at(number).downstream).chain([start.at(number).downstream]).max();
        Run { number, upstream: upstream.at(number).upstream, downstream: downstream.unwrap_or_default() }
    }
}

fn a_run() -> impl Strategy<Value = Run> {
    (0..40u64, 0..40i64, 0..40i64).prop_map(|(number, upstream, downstream)| Run {
        number,
        upstream: 100 + number.cast_signed() + upstream,
        downstream: 20 + number.cast_signed() + downstream,
    })
}

/// What instances write, each in a generation of few epochs, and what they hear from their targets meanwhile.
fn an_entry() -> impl Strategy<Value = PartitionEntry> {
    let epoch = || EPOCH..EPOCH + 3;
    prop_oneof![
        2 => (epoch(), 0..30i64).prop_map(|(epoch, further)| {
            let upstream_start = 100 + further;
            PartitionEntry::Opened(Generation { upstream_start, ..generation(epoch, 0) }, None)
        }),
        3 => (epoch(), proptest::collection::vec(a_run(), 1..4)).prop_map(|(producer_epoch, mut runs)| {
            runs.sort_by_key(|run| run.number);
            PartitionEntry::Runs { producer_id: PRODUCER, producer_epoch, runs }
        }),
        2 => (epoch(), a_run()).prop_map(|(producer_epoch, mark)| {
            PartitionEntry::Progress { producer_id: PRODUCER, producer_epoch, mark, epoch: None }
        }),
    ]
}

proptest! {
    #[test]
    fn a_lineage_says_what_was_said_first_upstream_and_highest_downstream(
        said in proptest::collection::vec((a_run(), any::<bool>()), 0..12),
        probe in a_run(),
        forgotten in 0..40u64,
    ) {
        let mut lineage = Lineage::new(generation(EPOCH, 0));
        let mut twin = Said::default();
        for (run, is_stored) in said {
            let first_words = twin.stored.iter().filter(|known| twin.at(known.number).upstream == known.upstream);
            let contradicts = first_words.clone().any(|known| {
                known.number == run.number && known.upstream != run.upstream
                    || known.number > run.number && known.upstream < run.at(known.number).upstream
            });
            // Between two stored runs everything was told.
            let is_between = twin.stored.iter().any(|known| known.number <= run.number)
                && twin.stored.iter().any(|known| known.number > run.number);
            let is_another = is_between && twin.at(run.number).upstream != run.upstream;
            prop_assert_eq!(lineage.contradicts(run), contradicts || is_another);
            if is_stored {
                lineage.add(run);
                twin.stored.push(run);
            } else {
                lineage.raise(run);
                twin.bounds.push(run);
            }
        }
        for number in 0..60 {
            prop_assert_eq!(lineage.at(number), twin.at(number));
        }
        let last = twin.stored.iter().map(|run| run.number).max();
        let is_between = twin.stored.iter().any(|run| run.number <= probe.number)
            && last.is_some_and(|last| probe.number <= last);
        let tells = is_between && twin.at(probe.number).upstream == probe.upstream;
        prop_assert_eq!(lineage.tells(probe), tells);
        lineage.forget_before(forgotten);
        for number in forgotten..60 {
            prop_assert_eq!(lineage.at(number), twin.at(number));
        }
    }

    #[test]
    fn instances_that_read_the_same_entries_hold_the_same_whatever_they_heard(
        entries in proptest::collection::vec((an_entry(), any::<[bool; 2]>()), 0..25),
    ) {
        let mut records = [PartitionRecord::default(), PartitionRecord::default()];
        let mut newest: Option<Generation> = None;
        for (entry, heard) in &entries {
            if let PartitionEntry::Opened(opened, None) = entry
                && newest.is_none_or(|known| known.producer_epoch < opened.producer_epoch)
            {
                newest = Some(*opened);
            }
            // L2: a run is stored before any of its records is sent.
            let acknowledged = records.iter().filter_map(|record| Some(record.mark()?.number)).max();
            if let PartitionEntry::Runs { runs, .. } = entry
                && runs.iter().any(|run| acknowledged.is_some_and(|number| run.number < number))
            {
                continue;
            }
            for (record, heard) in records.iter_mut().zip(heard) {
                record.apply(entry);
                // Acknowledged some records more than is stored, one after another.
                if let (true, Some(floor), Some(lineage)) = (heard, record.floor(), record.current()) {
                    record.advance(lineage.at(floor.number + 2), None);
                }
            }
        }
        for record in &records {
            prop_assert_eq!(record.current().map(|lineage| lineage.generation), newest);
        }
        let marks = records.each_ref().map(|record| record.floor().map_or(0, |floor| floor.number));
        let from = marks.into_iter().max().unwrap_or_default();
        if let [Some(first), Some(second)] = records.each_ref().map(PartitionRecord::current) {
            for number in from..from + 20 {
                prop_assert_eq!(first.at(number).upstream, second.at(number).upstream);
            }
        }
    }
}

/// A target partition with everything that is true about it.
#[derive(Debug)]
struct Truth {
    record: PartitionRecord,
    log_end: i64,
    next: Run,
    /// Our batches: base offset, epoch, first number, records.
    batches: Vec<(i64, i16, u64, u64)>,
    last_sequence: i32,
    log_start: i64,
    has_hole: bool,
}

impl Truth {
    /// Writes `steps`: records of ours, or of others (negative), of which the first `acknowledged` are known; then lets
    /// others' `retention` drop the known ones. With `hole` a batch in the unknown part was refused and is missing.
    fn new(
        first_sequence: i32,
        steps: &[i64],
        acknowledged: usize,
        retained: bool,
        hole: Option<usize>,
    ) -> Self {
        let mut record = PartitionRecord::default();
        record.apply(&PartitionEntry::Opened(generation(EPOCH, first_sequence), None));
        let mut next = Run { number: 0, upstream: 100, downstream: 20 };
        let mut truth = Self {
            record,
            log_end: 20,
            next,
            batches: Vec::new(),
            last_sequence: -1,
            log_start: 0,
            has_hole: false,
        };
        let others_are_silent = steps.iter().all(|step| *step > 0);
        for (place, step) in steps.iter().enumerate() {
            let records = step.unsigned_abs();
            if *step > 0 {
                let is_missing = hole == Some(place) && place >= acknowledged && others_are_silent;
                next = Run { number: next.number + records, upstream: next.upstream + step.abs(), ..next };
                if is_missing {
                    truth.has_hole = place + 1 < steps.len();
                    continue;
                }
                truth.batches.push((truth.log_end, EPOCH, next.number - records, records));
                truth.last_sequence = sequence_of(first_sequence, next.number - 1);
            }
            truth.log_end += step.abs();
            if place < acknowledged && *step > 0 {
                truth.record.advance(Run { downstream: truth.log_end, ..next }, None);
            }
        }
        if hole.is_some_and(|hole| hole + 1 == steps.len()) && others_are_silent {
            // The last one was refused: it is simply not there.
            let number = truth.batches.last().map_or(0, |(_, _, first, records)| first + records);
            next = Run { number, upstream: 100 + number.cast_signed(), ..next };
        }
        truth.next = Run { downstream: truth.log_end, ..next };
        if retained {
            truth.log_start = truth.record.floor().map_or(0, |floor| floor.downstream);
        }
        truth
    }

    fn tail(&self, from: i64) -> Tail {
        let from = from.max(self.log_start);
        let found: Vec<_> = self.batches.iter().filter(|batch| batch.0 >= from).collect();
        let first_sequence = self.record.current().map_or(0, |lineage| lineage.generation.first_sequence);
        let last = found.last().map(|&&(base_offset, producer_epoch, first, records)| TailBatch {
            batch: LastBatch {
                producer_epoch,
                last_sequence: sequence_of(first_sequence, first + records - 1),
            },
            next_offset: base_offset + records.cast_signed(),
        });
        Tail { from, last, records: found.iter().map(|batch| batch.3).sum() }
    }

    /// Decides as a partition does: what is asked for is given.
    fn decide(&self, has_state: bool) -> Decision {
        let last = LastBatch { producer_epoch: EPOCH, last_sequence: self.last_sequence };
        let last_batch = (has_state && self.last_sequence >= 0).then_some(last);
        let found = LinedUp { log_end: self.log_end, last_batch };
        assert_eq!(decide(&self.record, &HERE, &found, None, false), Decision::ReadState);
        match decide(&self.record, &HERE, &found, None, true) {
            Decision::ReadTail { from } => decide(&self.record, &HERE, &found, Some(&self.tail(from)), true),
            decision => decision,
        }
    }
}

proptest! {
    #[test]
    fn the_decision_is_the_truth_or_a_hold_with_its_reason(
        first_sequence in prop_oneof![Just(0), i32::MAX - 20..=i32::MAX],
        steps in proptest::collection::vec(prop_oneof![2 => 1..6i64, 1 => -4..-1i64], 0..10),
        acknowledged in 0..11usize,
        retained: bool,
        has_state: bool,
        hole in proptest::option::weighted(0.3, 0..10usize),
    ) {
        let truth = Truth::new(first_sequence, &steps, acknowledged, retained, hole);
        match truth.decide(has_state) {
            Decision::Go { position, fresh } => {
                prop_assert!(!truth.has_hole, "goes on behind a hole");
                prop_assert_eq!(position, truth.next);
                prop_assert_eq!(fresh, truth.batches.is_empty());
            }
            Decision::Open(opening) => {
                prop_assert!(!truth.has_hole && !has_state);
                prop_assert_eq!(opening.producer_epoch, Some(EPOCH + 1));
                prop_assert_eq!(opening.upstream_start, Some(truth.next.upstream));
                prop_assert_eq!(opening.downstream_start, truth.log_end);
            }
            Decision::Hold(reason) => prop_assert!(truth.has_hole, "held without need: {}", reason),
            decision => prop_assert!(false, "no end: {:?}", decision),
        }
    }
}
