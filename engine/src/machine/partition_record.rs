//! What the state topic says about one partition: its generations, and how far the newest one came.
//!
//! Entries are applied in log order, our own ones only after they were read back, so that all instances hold the same.
//! Of two generations with the same epoch the first one in the log counts.

use super::lineage::{Generation, Lineage, Run};
use super::loss::{Loss, Losses};

/// Older generations kept: late batches of one may still be found in the target's log.
const FORMER_MAX: usize = 4;

/// One entry of the state topic about a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionEntry {
    /// A generation was opened, behind what was lost, if anything was.
    Opened(Generation, Option<Loss>),
    /// Runs written ahead of their records.
    Runs {
        /// Producer id of the generation.
        producer_id: i64,
        /// Producer epoch of the generation.
        producer_epoch: i16,
        /// The runs, by rising number.
        runs: Vec<Run>,
    },
    /// Everything below this mark is acknowledged.
    Progress {
        /// Producer id of the generation.
        producer_id: i64,
        /// Producer epoch of the generation.
        producer_epoch: i16,
        /// The next record to come, with its expected offsets.
        mark: Run,
        /// The leader epoch of the last record before the mark, as far as known.
        epoch: Option<SourceEpoch>,
    },
}

/// A leader epoch of the source's log: which of two logs with the same offsets it is (KIP-101, KIP-595).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceEpoch {
    /// The leader epoch.
    pub leader_epoch: i32,
    /// No record with this epoch that was copied lies before this upstream offset.
    pub start: i64,
    /// The upstream offset right behind the last record with this epoch. A gap may follow, in which the epoch changes: only a
    /// Fetch from here may name the epoch.
    pub next: i64,
}

impl SourceEpoch {
    /// What is known behind a batch with this leader epoch, -1 for none, that ends before `next`: `known` is what was known
    /// before it, in a copy that began at `upstream_start`.
    #[must_use]
    pub fn behind(known: Option<Self>, upstream_start: i64, leader_epoch: i32, next: i64) -> Option<Self> {
        match known {
            _ if leader_epoch < 0 => known,
            Some(known) if known.leader_epoch == leader_epoch => Some(Self { next, ..known }),
            // What lies between was not copied, or nobody knows its epoch.
            _ => Some(Self { leader_epoch, start: known.map_or(upstream_start, |known| known.next), next }),
        }
    }
}

/// The state of one partition as the state topic tells it, and as acknowledgements have moved it since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionRecord {
    current: Option<Lineage>,
    /// The next record to come in `current`: all below is acknowledged. None until the first acknowledgement.
    mark: Option<Run>,
    /// Of the last record before `mark` of which it is known.
    epoch: Option<SourceEpoch>,
    former: Vec<Lineage>,
    losses: Losses,
}

impl PartitionRecord {
    /// Applies an entry that was read from the state topic. The loss that it tells of, if that counts.
    pub fn apply(&mut self, entry: &PartitionEntry) -> Option<Loss> {
        match entry {
            PartitionEntry::Opened(generation, loss) => return self.open(*generation, *loss),
            PartitionEntry::Runs { producer_id, producer_epoch, runs } => {
                let known = self.current.iter_mut().chain(&mut self.former);
                for lineage in known.filter(|lineage| is_of(lineage, *producer_id, *producer_epoch)) {
                    runs.iter().for_each(|run| lineage.add(*run));
                }
            }
            PartitionEntry::Progress { producer_id, producer_epoch, mark, epoch } => {
                if self.current.as_ref().is_some_and(|lineage| is_of(lineage, *producer_id, *producer_epoch))
                {
                    self.advance(*mark, *epoch);
                }
            }
        }
        None
    }

    fn open(&mut self, generation: Generation, loss: Option<Loss>) -> Option<Loss> {
        if let Some(current) = &self.current {
            let opened = &current.generation;
            let is_newer = if generation.producer_id == opened.producer_id {
                generation.producer_epoch > opened.producer_epoch
            } else {
                // A new id is only taken when the epochs of the old one are used up, so an old id never returns.
                self.former.iter().all(|former| former.generation.producer_id != generation.producer_id)
            };
            if !is_newer {
                return None;
            }
        }
        loss.iter().for_each(|loss| self.losses.add(loss));
        self.epoch = None;
        let mark = self.mark.take();
        if let Some(mut former) = self.current.replace(Lineage::new(generation)) {
            // A late batch of this generation is looked for near its mark.
            mark.into_iter().for_each(|mark| former.raise(mark));
            self.former.push(former);
        }
        if self.former.len() > FORMER_MAX {
            self.former.remove(0);
        }
        loss
    }

    /// Moves the mark of the current generation forward, never back. Runs that the mark has passed are forgotten. `epoch` is
    /// that of the last record before the mark, if known.
    pub fn advance(&mut self, mark: Run, epoch: Option<SourceEpoch>) {
        let Some(lineage) = &mut self.current else { return };
        if self.mark.is_none_or(|known| known.number < mark.number) {
            lineage.raise(mark);
            lineage.forget_before(mark.number);
            self.mark = Some(mark);
            self.epoch = epoch.or(self.epoch);
        }
    }

    /// The newest generation with its runs.
    #[must_use]
    pub fn current(&self) -> Option<&Lineage> {
        self.current.as_ref()
    }

    /// The next record to come, once anything of the current generation was acknowledged.
    #[must_use]
    pub fn mark(&self) -> Option<Run> {
        self.mark
    }

    /// Of the last record before the mark of which it is known.
    #[must_use]
    pub fn epoch(&self) -> Option<SourceEpoch> {
        self.epoch
    }

    /// What was lost up to now, in all generations.
    #[must_use]
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Whether a generation before the current one copied from or to the topic with this id, which is gone: ids never come
    /// back.
    #[must_use]
    pub fn has_left(&self, topic_id: u128) -> bool {
        self.former.iter().any(|former| {
            let Generation { source_topic_id, target_topic_id, .. } = former.generation;
            [source_topic_id, target_topic_id].contains(&topic_id)
        })
    }

    /// Where the current generation stands at least: its mark, or its start.
    #[must_use]
    pub fn floor(&self) -> Option<Run> {
        self.mark.or_else(|| self.current.as_ref().map(|lineage| lineage.at(0)))
    }

    /// The generation of an epoch of the same producer id, current or former.
    #[must_use]
    pub fn lineage_of(&self, producer_epoch: i16) -> Option<&Lineage> {
        let producer_id = self.current.as_ref()?.generation.producer_id;
        self.current.iter().chain(&self.former).find(|lineage| is_of(lineage, producer_id, producer_epoch))
    }
}

fn is_of(lineage: &Lineage, producer_id: i64, producer_epoch: i16) -> bool {
    lineage.generation.producer_id == producer_id && lineage.generation.producer_epoch == producer_epoch
}
