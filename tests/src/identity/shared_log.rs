//! What the state topic does for one partition: an ordered log in which a decision loses to another one that came first.

use std::sync::{Mutex, MutexGuard, PoisonError};

use twinlog_engine::machine::partition_record::PartitionEntry;

/// An ordered log of entries, each with the number of the process that wrote it.
#[derive(Debug, Default)]
pub(super) struct SharedLog(Mutex<Vec<(u64, PartitionEntry)>>);

/// How an append ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    /// Whether the entry is in the log.
    pub(super) won: bool,
    /// Entries that the writer has read when it learns that.
    pub(super) read_to: usize,
}

impl SharedLog {
    /// Appends what a process decided when it had read `read_to` entries (T3 of the state log): it is not written when
    /// another process has decided something since.
    pub(super) fn append(&self, process: u64, read_to: usize, entry: PartitionEntry) -> Stored {
        let mut log = self.lock();
        let outrun = log[read_to..].iter().any(|(other, known)| *other != process && decides(known));
        let won = !(outrun && decides(&entry));
        if won {
            log.push((process, entry));
        }
        Stored { won, read_to: log.len() }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The entries in between.
    pub(super) fn read(&self, from: usize, to: usize) -> Vec<PartitionEntry> {
        self.lock()[from..to.max(from)].iter().map(|(_, entry)| entry.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, PartitionEntry)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn decides(entry: &PartitionEntry) -> bool {
    matches!(entry, PartitionEntry::Opened(..) | PartitionEntry::Runs { .. })
}

#[cfg(test)]
mod tests {
    use twinlog_engine::machine::lineage::Run;

    use super::*;

    #[test]
    fn a_decision_loses_to_another_process_only() {
        let log = SharedLog::default();
        let runs = PartitionEntry::Runs { producer_id: 1, producer_epoch: 1, runs: Vec::new() };
        let mark = Run { number: 1, upstream: 1, downstream: 1 };
        let progress = PartitionEntry::Progress { producer_id: 1, producer_epoch: 1, mark, epoch: None };
        assert_eq!(log.append(1, 0, runs.clone()), Stored { won: true, read_to: 1 });
        assert_eq!(log.append(1, 0, runs.clone()), Stored { won: true, read_to: 2 });
        assert_eq!(log.append(2, 1, runs.clone()), Stored { won: false, read_to: 2 });
        assert_eq!(log.append(2, 1, progress.clone()), Stored { won: true, read_to: 3 });
        assert_eq!(log.append(1, 2, runs), Stored { won: true, read_to: 4 });
        assert_eq!(log.read(2, 3), [progress]);
    }
}
