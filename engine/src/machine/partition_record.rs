//! What the state topic says about one partition: its generations, and how far the newest one came.
//!
//! Entries are applied in log order, our own ones only after they were read back, so that all instances hold the same.
//! Of two generations with the same epoch the first one in the log counts.

use super::lineage::{Generation, Lineage, Run};

/// Older generations kept: late batches of one may still be found in the target's log.
const FORMER_MAX: usize = 4;

/// One entry of the state topic about a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionEntry {
    /// A generation was opened.
    Opened(Generation),
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
    },
}

/// The state of one partition as the state topic tells it, and as acknowledgements have moved it since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionRecord {
    current: Option<Lineage>,
    /// The next record to come in `current`: all below is acknowledged. None until the first acknowledgement.
    mark: Option<Run>,
    former: Vec<Lineage>,
}

impl PartitionRecord {
    /// Applies an entry that was read from the state topic.
    pub fn apply(&mut self, entry: &PartitionEntry) {
        match entry {
            PartitionEntry::Opened(generation) => self.open(*generation),
            PartitionEntry::Runs { producer_id, producer_epoch, runs } => {
                let known = self.current.iter_mut().chain(&mut self.former);
                for lineage in known.filter(|lineage| is_of(lineage, *producer_id, *producer_epoch)) {
                    runs.iter().for_each(|run| lineage.add(*run));
                }
            }
            PartitionEntry::Progress { producer_id, producer_epoch, mark } => {
                if self.current.as_ref().is_some_and(|lineage| is_of(lineage, *producer_id, *producer_epoch))
                {
                    self.advance(*mark);
                }
            }
        }
    }

    fn open(&mut self, generation: Generation) {
        if let Some(current) = &self.current {
            let opened = &current.generation;
            let is_newer = if generation.producer_id == opened.producer_id {
                generation.producer_epoch > opened.producer_epoch
            } else {
                // A new id is only taken when the epochs of the old one are used up, so an old id never returns.
                self.former.iter().all(|former| former.generation.producer_id != generation.producer_id)
            };
            if !is_newer {
                return;
            }
        }
        let mark = self.mark.take();
        if let Some(mut former) = self.current.replace(Lineage::new(generation)) {
            // A late batch of this generation is looked for near its mark.
            mark.into_iter().for_each(|mark| former.raise(mark));
            self.former.push(former);
        }
        if self.former.len() > FORMER_MAX {
            self.former.remove(0);
        }
    }

    /// Moves the mark of the current generation forward, never back. Runs that the mark has passed are forgotten.
    pub fn advance(&mut self, mark: Run) {
        let Some(lineage) = &mut self.current else { return };
        if self.mark.is_none_or(|known| known.number < mark.number) {
            lineage.raise(mark);
            lineage.forget_before(mark.number);
            self.mark = Some(mark);
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
