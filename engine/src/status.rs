//! What a flow shows of itself at one moment.

use std::collections::{BTreeSet, VecDeque};
use std::time::SystemTime;

use crate::machine::hold::{HoldReason, Side};
use crate::machine::loss::{Loss, Losses};

/// Losses that the status names.
pub(crate) const LAST_LOSSES_MAX: usize = 20;

/// A flow at one moment. Sums over all of its partitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowStatus {
    /// Whether the source's topics were listed completely once.
    pub listed: bool,
    /// Partitions that the flow copies.
    pub partitions: u64,
    /// Of these, partitions that hold everything which the source held when they were first read in this run; those
    /// found after the first listing count from the start.
    pub caught_up: u64,
    /// Of these, partitions that wait for somebody to act and have not caught up.
    pub behind_and_held: u64,
    /// Records acknowledged by the target since the start.
    pub records: u64,
    /// Bytes of their batches, as they are compressed.
    pub bytes: u64,
    /// Records that got into the target twice since the start: only where its brokers had forgotten our producer state
    /// (`producer.id.expiration.ms`) while a batch was late.
    pub repeated_records: u64,
    /// Upstream offsets between the positions and the high watermarks last seen.
    pub lag_records: u64,
    /// Partitions that have not got on for ten seconds, whatever they try.
    pub waiting: u64,
    /// The first of them, as `topic-partition: why`.
    pub first_waiting: Option<String>,
    /// Partitions that have no leader on one of the sides, as far as the newest metadata tells.
    pub without_leader: u64,
    /// The first of them, as `topic-partition`.
    pub first_without_leader: Option<String>,
    /// Clusters that nobody answers for at present: what is shown of them may be old.
    pub not_reached: Vec<Side>,
    /// The held partitions.
    pub held: Vec<HeldPartition>,
    /// How many they are.
    pub held_partitions: u64,
    /// Topics that could not be prepared on the target; they are tried again.
    pub failed_topics: Vec<FailedTopic>,
    /// Topics of the target whose readers see the broker's time instead of the source's
    /// (`message.timestamp.type=LogAppendTime`), as far as something was copied into them in this run.
    pub broker_time_topics: BTreeSet<String>,
    /// What was lost up to now, in earlier runs and by other instances, too: it is stored with the copy.
    pub losses: Losses,
    /// What was lost since the start.
    pub new_losses: Losses,
    /// The newest of these, the last one at the end.
    pub last_losses: VecDeque<PartitionLoss>,
}

/// Records of a partition that were lost, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionLoss {
    /// The topic's name at the source.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// What was lost.
    pub loss: Loss,
}

/// A partition that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPartition {
    /// The topic's name at the source.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Why it waits.
    pub reason: HoldReason,
    /// Since when, as in [`PartitionStatus::since`](crate::PartitionStatus::since).
    pub since: SystemTime,
}

/// A topic that could not be prepared on the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedTopic {
    /// The topic's name at the source.
    pub topic: String,
    /// Why, and what to do.
    pub reason: String,
}

/// What of a partition goes into the sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) held: bool,
    pub(crate) has_caught_up: bool,
    pub(crate) without_leader: bool,
    pub(crate) waits: bool,
    pub(crate) lag_records: u64,
    pub(crate) losses: Losses,
}

impl FlowStatus {
    /// Whether everything that the source held at the first listing is on the target, but for what is held.
    #[must_use]
    pub fn is_level(&self) -> bool {
        self.listed && self.caught_up + self.behind_and_held == self.partitions
    }

    /// Whether nothing waits for somebody to act, and nothing was lost since the start.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.held_partitions == 0 && self.failed_topics.is_empty() && self.new_losses.events == 0
    }

    /// What a reader must hear of at once; the rest may wait.
    pub(crate) fn standing(&self) -> (bool, u64, u64, u64, usize, u64) {
        let (failed, lost) = (self.failed_topics.len(), self.new_losses.events);
        (self.listed, self.partitions, self.caught_up, self.held_partitions, failed, lost)
    }

    /// Counts a partition anew.
    pub(crate) fn move_from(&mut self, before: Standing, after: Standing) {
        let step =
            |sum: &mut u64, before: bool, after: bool| *sum = *sum + u64::from(after) - u64::from(before);
        let is_behind = |standing: Standing| standing.held && !standing.has_caught_up;
        step(&mut self.held_partitions, before.held, after.held);
        step(&mut self.waiting, before.waits, after.waits);
        step(&mut self.without_leader, before.without_leader, after.without_leader);
        step(&mut self.caught_up, before.has_caught_up, after.has_caught_up);
        step(&mut self.behind_and_held, is_behind(before), is_behind(after));
        self.lag_records = self.lag_records + after.lag_records - before.lag_records;
        self.losses.events = self.losses.events + after.losses.events - before.losses.events;
        self.losses.records = self.losses.records + after.losses.records - before.losses.records;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_partition_counts_until_it_goes_on() {
        let mut status = FlowStatus { listed: true, partitions: 1, ..FlowStatus::default() };
        assert!(!status.is_level());
        let held = Standing { held: true, lag_records: 7, ..Standing::default() };
        status.move_from(Standing::default(), held);
        assert!(status.is_level() && !status.is_healthy());
        let level = Standing { has_caught_up: true, ..Standing::default() };
        status.move_from(held, level);
        assert!(status.is_level() && status.is_healthy());
        assert_eq!((status.caught_up, status.behind_and_held, status.lag_records), (1, 0, 0));
    }
}
