//! What has to hold after every step, whoever crashes.
//!
//! - X1: the records of ours below the high watermark are the source's, in order, each once.
//! - O1: where the copy goes on behind a loss, what it leaves out stands in the state topic before what comes behind it.
//! - X2: nothing of ours reaches a topic that was made again under the same name.
//! - L1: a sequence of a (producer id, epoch) means one record, whoever sends it.
//! - L2, P2: what is sent carries the number that the committed state topic, read by a naive twin, gives its records;
//!   its generation is in the state topic before its first batch.
//! - S1: of those who start a flow, the one whose identity comes first in the log says where partitions begin that were
//!   there then, for all and for ever; its offsets stand before its identity. Nothing before them is copied.
//! - T3: of two instances' entries about one partition the later one knows of the earlier one, or has lost.

use std::collections::BTreeMap;
use std::ops::Range;

use twinlog_engine::machine::flow_starts::StartEntry;
use twinlog_engine::machine::lineage::Generation;
use twinlog_engine::machine::loss::{Loss, LossCause, OnTargetLoss};
use twinlog_engine::machine::partition_record::PartitionEntry;
use twinlog_engine::machine::sequence::sequence_of;
use twinlog_engine::state::{StateEntry, Stored, record};
use twinlog_protocol::batch::ProducerStamp;

use super::instance::{key_of, topic_of};
use super::partition::Partition;
use super::plan::Plan;
use super::replica::{Batch, upstream_of};
use super::source::SourcePartition;

#[derive(Debug, Default)]
struct Copied {
    committed_to: i64,
    /// Index of the next record of the source, once there was a first one.
    next: Option<usize>,
    /// The source's topic that `next` counts in.
    source_topic_id: u128,
    /// What was copied before the target's topic was made again.
    before_target: Option<usize>,
    /// Stretches of a source's topic that were told to be lost.
    lost: Vec<(u128, Range<i64>)>,
    sent: BTreeMap<(i64, i16, i32), i64>,
    epochs_committed: BTreeMap<(i64, i16), ()>,
    generations: Vec<Generation>,
    /// How many of them wrote into a topic of the target that is gone.
    of_other_targets: usize,
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
    /// The copy goes on where it was when the target's topic is made again.
    continues: bool,
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
    pub(crate) fn new(plan: &Plan) -> Self {
        let partitions = (0..plan.partitions).map(|_| Copied::default()).collect();
        let continues = plan.losses.on_target_loss == OnTargetLoss::Continue;
        Self { partitions, continues, ..Self::default() }
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
            if copied.source_topic_id != source_topic_id {
                let (next, before) = (copied.next.take(), copied.source_topic_id);
                assert!(
                    next.is_none() || before < source_topic_id,
                    "X1: p{index} goes back to a topic that is gone"
                );
                (copied.source_topic_id, copied.before_target) = (source_topic_id, None);
            }
            for record in &batch.records {
                copied.expect(index, upstream_of(record), source, start, self.continues);
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
            PartitionEntry::Opened(generation, loss) => {
                let id = (generation.producer_id, generation.producer_epoch);
                if !copied.runs.contains_key(&id) {
                    copied.generations.push(*generation);
                    copied.note(generation, *loss);
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
            PartitionEntry::Progress { producer_id, producer_epoch, mark, .. } => {
                let id = (*producer_id, *producer_epoch);
                let mut newer = copied.generations[copied.of_other_targets..].iter();
                if !newer.any(|known| (known.producer_id, known.producer_epoch) == id) {
                    return;
                }
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
        copied.before_target = copied.next.max(copied.before_target);
        (copied.committed_to, copied.next, copied.stored_downstream) = (0, None, 0);
        copied.of_other_targets = copied.generations.len();
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
        let copied = &self.partitions[index];
        let before = copied.before_target.filter(|_| self.continues);
        let next = copied.next.or(before).filter(|_| copied.source_topic_id == source.topic_id);
        // What is left of a batch may lie below the log start, all of it.
        let start = self.starts.of(index, source).max(source.log_start);
        let from = next.unwrap_or_else(|| source.place_of(start));
        source.data[from..].iter().copied().find(|offset| !copied.may_lack(source, *offset))
    }

    /// Records that a partition leaves out because they were there before its flow.
    pub(crate) fn left_out(&self, index: usize, source: &SourcePartition) -> usize {
        source.place_of(self.starts.of(index, source))
    }

    /// Losses at the source that were told of.
    pub(crate) fn losses(&self) -> usize {
        self.partitions.iter().map(|copied| copied.lost.len()).sum()
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
        let copied = &self.partitions[index];
        let copies = copies && copied.source_topic_id == source.topic_id;
        copied.next.filter(|_| copies).map(|next| source.data[next - 1] + 1)
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

    /// A generation was opened, behind a loss perhaps.
    fn note(&mut self, generation: &Generation, loss: Option<Loss>) {
        let Some(Loss { cause, from, to, .. }) = loss else { return };
        match cause {
            LossCause::Expired => {
                let to = to.expect("a log start is known");
                assert_eq!(generation.upstream_start, to, "O1: the copy goes on right behind what was lost");
                self.lost.push((generation.source_topic_id, from..to));
            }
            // What the old topic held is looked for no more, and the target's loss shows in what comes.
            LossCause::SourceRecreated | LossCause::TargetLost => {}
            cause => panic!("nothing here is lost by {cause:?}"),
        }
    }

    /// Whether a record of the source may be missing in the target.
    fn may_lack(&self, source: &SourcePartition, offset: i64) -> bool {
        let is_told = |(id, lost): &(u128, Range<i64>)| *id == source.topic_id && lost.contains(&offset);
        source.is_optional(offset) || self.lost.iter().any(is_told)
    }

    fn expect(&mut self, index: usize, upstream: i64, source: &SourcePartition, start: i64, continues: bool) {
        let place = source.data.binary_search(&upstream).expect("a record of the source");
        let Some(next) = self.next else {
            let from = source.place_of(start);
            assert!(from <= place, "S1: p{index} begins with {upstream}, which lies before {start}");
            let is_first_from = |from: usize| {
                from <= place && source.data[from..place].iter().all(|offset| self.may_lack(source, *offset))
            };
            let mut log_starts = source.log_starts.iter();
            let starts_right = is_first_from(from)
                || log_starts.any(|log_start| is_first_from(source.place_of(start.max(*log_start))));
            let goes_on = self.before_target.is_some_and(|before| place <= before || is_first_from(before));
            let starts_right = starts_right || (continues && goes_on);
            assert!(starts_right, "X1: p{index} begins with {upstream}, not with {start}");
            self.next = Some(place + 1);
            return;
        };
        assert!(place >= next, "X1: p{index} repeats {upstream}, {:?} was next", source.data.get(next));
        let lost = source.data[next..place].iter().find(|offset| !self.may_lack(source, **offset));
        assert!(lost.is_none(), "X1: p{index} has lost {lost:?}, {upstream} came");
        self.next = Some(place + 1);
    }
}

/// The partition of an entry, if it is about one.
pub(crate) fn partition_of(entry: &StateEntry, partitions: usize) -> Option<(usize, &PartitionEntry)> {
    let StateEntry::Partition(key, entry) = entry else { return None };
    (0..partitions).find(|partition| key_of(*partition) == *key).map(|partition| (partition, entry))
}
