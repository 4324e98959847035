//! What has to hold after every step, whoever crashes.
//!
//! - X1: the records of ours below the high watermark are the source's, in order, each once.
//! - X2: nothing of ours reaches a topic that was made again under the same name.
//! - L1: a sequence of a (producer id, epoch) means one record, whoever sends it.
//! - L2, P2: what is sent carries the number that the committed state topic, read by a naive twin, gives its records;
//!   its generation is in the state topic before its first batch.
//! - S1: of those who start a flow, the one whose identity comes first in the log says where partitions begin that were
//!   there then, for all and for ever; its offsets stand before its identity. Nothing before them is copied.
//! - T3: of two instances' entries about one partition the later one knows of the earlier one, or has lost.

use std::collections::BTreeMap;

use twinlog_engine::machine::flow_starts::StartEntry;
use twinlog_engine::machine::lineage::Generation;
use twinlog_engine::machine::partition_record::PartitionEntry;
use twinlog_engine::machine::sequence::sequence_of;
use twinlog_engine::state::{StateEntry, Stored, record};
use twinlog_protocol::batch::ProducerStamp;

use super::instance::{key_of, topic_of};
use super::partition::Partition;
use super::replica::{Batch, upstream_of};
use super::source::SourcePartition;

#[derive(Debug, Default)]
struct Copied {
    committed_to: i64,
    /// Index of the next record of the source, once there was a first one.
    next: Option<usize>,
    sent: BTreeMap<(i64, i16, i32), i64>,
    epochs_committed: BTreeMap<(i64, i16), ()>,
    generations: Vec<Generation>,
    /// Upstream offset by number, the first stored word counts.
    runs: BTreeMap<(i64, i16), BTreeMap<u64, i64>>,
    stored_downstream: i64,
    /// Offset and instance of entries that decide something.
    decided: Vec<(i64, u64)>,
}

/// Where partitions begin that were there when somebody first started the flow.
#[derive(Debug, Default)]
struct Starts {
    first_identity: Option<i64>,
    /// Topic id and offset by candidate and partition.
    told: BTreeMap<(i64, usize), (u128, i64)>,
}

#[derive(Debug, Default)]
pub(crate) struct Checker {
    partitions: Vec<Copied>,
    starts: Starts,
    state_to: i64,
}

/// The newest committed batches that were not looked at.
fn committed(partition: &Partition, from: &mut i64) -> Vec<Batch> {
    let members = partition.members.iter();
    let Some(best) = members.max_by_key(|member| member.replica.high_watermark) else { return Vec::new() };
    let to = best.replica.high_watermark;
    if to <= *from {
        return Vec::new();
    }
    let batches = best.replica.batches_from(*from).iter();
    let batches =
        batches.take_while(|batch| batch.next_offset() <= to).map(|batch| Batch::clone(batch)).collect();
    *from = to;
    batches
}

impl Checker {
    pub(crate) fn new(partitions: usize) -> Self {
        Self { partitions: (0..partitions).map(|_| Copied::default()).collect(), ..Self::default() }
    }

    /// X1, for what has just been committed. `sources` are the topics that the source had under this name.
    pub(crate) fn look(&mut self, index: usize, partition: &Partition, sources: &[SourcePartition]) {
        let copied = &mut self.partitions[index];
        for batch in committed(partition, &mut copied.committed_to) {
            let Some(stamp) = batch.stamp else { continue };
            let generation = copied.generation_of((stamp.producer_id, stamp.producer_epoch));
            let generation = generation.expect("checked when it was sent");
            let Generation { source_topic_id, target_topic_id, .. } = *generation;
            assert_eq!(target_topic_id, partition.topic_id, "X2: p{index} has a batch for another topic");
            let source = sources.iter().find(|source| source.topic_id == source_topic_id);
            let source = source.expect("a topic that the source had");
            copied.epochs_committed.insert((stamp.producer_id, stamp.producer_epoch), ());
            let start = self.starts.of(index, source);
            for record in &batch.records {
                copied.expect(index, upstream_of(record), source, start);
            }
        }
    }

    /// Reads what was committed to the state topic.
    pub(crate) fn look_at_state(&mut self, partition: &Partition) {
        for batch in committed(partition, &mut self.state_to) {
            for (place, key, value) in &batch.records {
                let key = key.clone().expect("entries have keys");
                let stored = record::decode(key, value.clone()).expect("our own entries can be read");
                self.apply(batch.base_offset + i64::from(*place), &stored.expect("no tombstones"));
            }
        }
    }

    fn apply(&mut self, offset: i64, stored: &Stored) {
        match &stored.entry {
            StateEntry::Identity { producer_id, .. } => {
                self.starts.first_identity.get_or_insert(*producer_id);
            }
            StateEntry::Start(entry) => self.starts.tell(entry, self.partitions.len()),
            StateEntry::Partition(..)
            | StateEntry::Mirror { .. }
            | StateEntry::TopicSettings { .. }
            | StateEntry::Heartbeat => {}
        }
        let Some((index, entry)) = partition_of(&stored.entry, self.partitions.len()) else { return };
        let copied = &mut self.partitions[index];
        match entry {
            PartitionEntry::Opened(generation) => {
                let id = (generation.producer_id, generation.producer_epoch);
                if !copied.runs.contains_key(&id) {
                    copied.generations.push(*generation);
                    copied.runs.insert(id, BTreeMap::new());
                }
            }
            PartitionEntry::Runs { producer_id, producer_epoch, runs } => {
                let known = copied.runs.get_mut(&(*producer_id, *producer_epoch));
                let known = known.expect("runs of a generation that was never opened");
                for run in runs {
                    known.entry(run.number).or_insert(run.upstream);
                }
            }
            PartitionEntry::Progress { mark, .. } => {
                copied.stored_downstream = copied.stored_downstream.max(mark.downstream);
                return;
            }
        }
        copied.decided.push((offset, stored.instance));
    }

    /// L1, L2, P2: a batch is being sent.
    pub(crate) fn sending(&mut self, index: usize, stamp: ProducerStamp, batch: &Batch, in_flight: usize) {
        let copied = &mut self.partitions[index];
        let id = (stamp.producer_id, stamp.producer_epoch);
        let generation =
            copied.generations.iter().find(|known| (known.producer_id, known.producer_epoch) == id);
        let Some(generation) = generation else {
            panic!("L2: p{index} sends in {id:?}, which is not in the state topic")
        };
        if !copied.epochs_committed.contains_key(&id) {
            assert_eq!(in_flight, 1, "W3: p{index} {id:?}: more than one batch before the epoch's first");
        }
        let runs = &copied.runs[&id];
        let span = 1 << 31;
        let first = i64::from(stamp.base_sequence) - i64::from(generation.first_sequence);
        let first = first.rem_euclid(span).unsigned_abs();
        for (number, record) in (first..).zip(&batch.records) {
            let upstream = upstream_of(record);
            let (start, base) = runs.range(..=number).next_back().unwrap_or((&0, &generation.upstream_start));
            let by_runs = base + (number - start).cast_signed();
            let sequence = sequence_of(generation.first_sequence, number);
            let before = copied.sent.insert((id.0, id.1, sequence), upstream);
            assert_eq!(by_runs, upstream, "L2: p{index} {id:?} number {number} by the state topic");
            assert_eq!(before.unwrap_or(upstream), upstream, "L1: p{index} {id:?} sequence {sequence}");
        }
    }

    /// The target's topic is another one: whatever was copied is gone.
    pub(crate) fn forget_target(&mut self, index: usize) {
        let copied = &mut self.partitions[index];
        (copied.committed_to, copied.next) = (0, None);
    }

    /// The newest generation in the state topic.
    pub(crate) fn newest(&self, index: usize) -> Option<&Generation> {
        self.partitions[index].generations.last()
    }

    /// The highest downstream offset that is stored as acknowledged.
    pub(crate) fn stored_downstream(&self, index: usize) -> i64 {
        self.partitions[index].stored_downstream
    }

    /// T3: another instance's entries about the partition between two offsets of the state topic.
    pub(crate) fn others_between(&self, index: usize, instance: u64, from: i64, to: i64) -> usize {
        let decided = self.partitions[index].decided.iter();
        decided.filter(|(offset, writer)| (from..to).contains(offset) && *writer != instance).count()
    }

    /// Offset of an instance's newest entry below `to` that decides something about the partition.
    pub(crate) fn last_decided_by(&self, index: usize, instance: u64) -> Option<i64> {
        let decided = self.partitions[index].decided.iter().rev();
        decided.clone().find(|(_, writer)| *writer == instance).map(|(offset, _)| *offset)
    }

    /// Upstream offset of the record that has to come next; none when all are there.
    pub(crate) fn missing(&self, index: usize, source: &SourcePartition) -> Option<i64> {
        let next = self.partitions[index].next;
        // What is left of a batch may lie below the log start, all of it.
        let start = self.starts.of(index, source).max(source.log_start);
        let from = next.unwrap_or_else(|| source.place_of(start));
        source.data[from..].iter().copied().find(|offset| !source.is_optional(*offset))
    }

    /// Records that a partition leaves out because they were there before its flow.
    pub(crate) fn left_out(&self, index: usize, source: &SourcePartition) -> usize {
        source.place_of(self.starts.of(index, source))
    }

    /// Candidates whose offsets selected nothing.
    pub(crate) fn losing_starts(&self) -> usize {
        let mut candidates: Vec<i64> = self.starts.told.keys().map(|(candidate, _)| *candidate).collect();
        candidates.dedup();
        candidates.iter().filter(|candidate| self.starts.first_identity != Some(**candidate)).count()
    }

    /// Upstream offset below which everything is on the target; none before the first record.
    pub(crate) fn copied_to(&self, index: usize, source: &SourcePartition) -> Option<i64> {
        let copies =
            self.newest(index).is_some_and(|generation| generation.source_topic_id == source.topic_id);
        self.partitions[index].next.filter(|_| copies).map(|next| source.data[next - 1] + 1)
    }
}

impl Starts {
    fn tell(&mut self, entry: &StartEntry, partitions: usize) {
        assert_ne!(self.first_identity, Some(entry.producer_id), "S1: offsets behind their identity");
        let index = (0..partitions).find(|index| topic_of(*index) == entry.source_topic);
        let index = index.expect("a topic of the source");
        self.told.insert((entry.producer_id, index), (entry.source_topic_id, entry.offsets[0]));
    }

    /// The first offset to copy of a source's topic; 0 for all that there is.
    fn of(&self, index: usize, source: &SourcePartition) -> i64 {
        let told = self.first_identity.and_then(|first| self.told.get(&(first, index)));
        told.filter(|(topic_id, _)| *topic_id == source.topic_id).map_or(0, |(_, offset)| *offset)
    }
}

impl Copied {
    fn generation_of(&self, id: (i64, i16)) -> Option<&Generation> {
        self.generations.iter().find(|known| (known.producer_id, known.producer_epoch) == id)
    }

    fn expect(&mut self, index: usize, upstream: i64, source: &SourcePartition, start: i64) {
        let place = source.data.binary_search(&upstream).expect("a record of the source");
        let Some(next) = self.next else {
            let from = source.place_of(start);
            assert!(from <= place, "S1: p{index} begins with {upstream}, which lies before {start}");
            let is_first_from = |from: usize| {
                from <= place && source.data[from..place].iter().all(|offset| source.is_optional(*offset))
            };
            let mut log_starts = source.log_starts.iter();
            let starts_right = is_first_from(from)
                || log_starts.any(|log_start| is_first_from(source.place_of(start.max(*log_start))));
            assert!(starts_right, "X1: p{index} begins with {upstream}, not with {start}");
            self.next = Some(place + 1);
            return;
        };
        assert!(place >= next, "X1: p{index} repeats {upstream}, {:?} was next", source.data.get(next));
        let lost = source.data[next..place].iter().find(|offset| !source.is_optional(**offset));
        assert!(lost.is_none(), "X1: p{index} has lost {lost:?}, {upstream} came");
        self.next = Some(place + 1);
    }
}

/// The partition of an entry, if it is about one.
pub(crate) fn partition_of(entry: &StateEntry, partitions: usize) -> Option<(usize, &PartitionEntry)> {
    let StateEntry::Partition(key, entry) = entry else { return None };
    (0..partitions).find(|partition| key_of(*partition) == *key).map(|partition| (partition, entry))
}
