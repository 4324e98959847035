//! One partition as the shard keeps it: the machine, where it is led, and what of it is counted.

use std::sync::Arc;

use crate::driver::ask::Place;
use crate::driver::lanes::LaneKey;
use crate::io::lane::Lane;
use crate::machine::Now;
use crate::machine::course::{Course, lag_records};
use crate::machine::fetch_plan::Pull;
use crate::machine::fetch_session::Asked;
use crate::machine::hold::Side;
use crate::machine::metadata::ClusterMetadata;
use crate::machine::partition::{Leader, PartitionMachine};
use crate::state::PartitionKey;
use crate::status::Standing;

/// A partition that had all there was stays with the tails as long as no more than this has come since, in bytes.
const NEAR_BYTES: i64 = 512 << 10;
/// Bytes of a record where none has been seen.
const RECORD_BYTES: i64 = 1 << 10;

/// What a partition has to reach before it counts as caught up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// The end of what could be read at the first Fetch, which only a partition that has lined up sends: what is stored
    /// about earlier runs proves nothing about the logs of today.
    AtFirstFetch,
    Upstream(i64),
    Reached,
}

/// The place of a partition in its shard.
pub(super) struct Slot {
    pub(super) key: PartitionKey,
    pub(super) machine: PartitionMachine,
    goal: Goal,
    /// Source and target.
    pub(super) leaders: [Option<Leader>; 2],
    pub(super) dirty: bool,
    pub(super) counted_bytes: usize,
    pub(super) counted: Standing,
    pub(super) course: Course,
    pub(super) counted_behind: bool,
    /// Batches under way, and the connection that they took.
    pub(super) under_way: usize,
    pub(super) sent_on: Option<(LaneKey, u64)>,
    source_topic: Arc<str>,
    pub(super) target_topic: Arc<str>,
    /// Among the partitions that its leader at the target has been found to lead.
    pub(super) number_at_target: usize,
    /// Whether it had all there was when it was last looked at.
    is_tail: bool,
    /// Bytes of an upstream offset, as it was fetched last.
    record_bytes: i64,
}

impl Slot {
    pub(super) fn new(now: Now, key: PartitionKey, machine: PartitionMachine, catches_up: bool) -> Self {
        Self {
            source_topic: Arc::from(key.source_topic.as_str()),
            target_topic: Arc::from(key.target_topic.as_str()),
            number_at_target: 0,
            key,
            machine,
            goal: if catches_up { Goal::AtFirstFetch } else { Goal::Reached },
            leaders: [None, None],
            dirty: false,
            counted_bytes: 0,
            counted: Standing::default(),
            course: Course::new(now),
            counted_behind: false,
            under_way: 0,
            sent_on: None,
            is_tail: false,
            record_bytes: RECORD_BYTES,
        }
    }

    /// Takes the leaders from new metadata; tells which of them changed.
    pub(super) fn update_leaders(&mut self, source: &ClusterMetadata, target: &ClusterMetadata) -> [bool; 2] {
        let partition = self.key.partition;
        let leaders = [
            leader(source, &self.key.source_topic, partition),
            leader(target, &self.key.target_topic, partition),
        ];
        let changed = [leaders[0] != self.leaders[0], leaders[1] != self.leaders[1]];
        self.leaders = leaders;
        changed
    }

    /// Where to ask about the partition on one side.
    pub(super) fn place(&self, side: Side, leader_epoch: Option<i32>, lane: Lane) -> Option<Place> {
        let (leader, topic) = match side {
            Side::Source => (self.leaders[0]?, &self.key.source_topic),
            Side::Target => (self.leaders[1]?, &self.key.target_topic),
        };
        Some(Place {
            topic: topic.clone(),
            topic_id: leader.topic_id,
            partition: self.key.partition,
            node: leader.node?,
            leader_epoch: leader_epoch.unwrap_or(leader.leader_epoch),
            lane,
        })
    }

    /// What the partition asks for in a Fetch, which is under way from now on.
    pub(super) fn ask(&mut self, now: Now, bytes_max: i32) -> Option<Asked> {
        let offset = self.machine.fetching().or_else(|| self.machine.fetch_wanted(now))?;
        let leader = self.leaders[0]?;
        self.machine.handle_fetch_sent(offset);
        Some(Asked {
            topic: Arc::clone(&self.source_topic),
            topic_id: leader.topic_id,
            partition: self.key.partition,
            leader_epoch: leader.leader_epoch,
            offset,
            last_fetched_epoch: self.machine.last_fetched_epoch(),
            bytes_max,
        })
    }

    /// The node that leads the partition at the source.
    pub(super) fn source_leader(&self) -> Option<i32> {
        self.leaders[0]?.node
    }

    /// What there is to fetch, by what is known of the source.
    pub(super) fn pull(&mut self) -> Pull {
        let Some(end) = self.machine.readable_end() else { return Pull::Probe };
        let lag = end.saturating_sub(self.machine.read_next()).max(0);
        self.is_tail = lag == 0 || (self.is_tail && lag.saturating_mul(self.record_bytes) <= NEAR_BYTES);
        if self.is_tail { Pull::Tail } else { Pull::Bulk }
    }

    /// Whether it has to share memory with others that have much to copy, as last counted.
    pub(super) fn is_behind(&self) -> bool {
        !self.is_tail && !self.counted.held && self.counted.lag_records > 0
    }

    /// So many bytes were fetched from `offset` on.
    pub(super) fn count_fetched(&mut self, offset: i64, bytes: usize) {
        let offsets = self.machine.read_next().saturating_sub(offset);
        if offsets > 0 && bytes > 0 {
            self.record_bytes = (i64::try_from(bytes).unwrap_or(i64::MAX) / offsets).max(1);
        }
    }

    /// What people call the partition.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.key.source_topic, self.key.partition)
    }

    /// What of the partition is shown.
    pub(super) fn standing(&mut self, now: Now) -> Standing {
        let look = self.machine.look();
        self.course.handle_look(now, &look);
        let (position, readable_end) = (look.position, look.readable_end);
        if let (Goal::AtFirstFetch, Some(end)) = (self.goal, readable_end) {
            self.goal = Goal::Upstream(end);
        }
        // A log that was cut back, or made again, may end before it.
        let end = readable_end.unwrap_or(i64::MAX);
        let has_reached = |goal: i64| position.is_some_and(|position| position >= goal.min(end));
        if matches!(self.goal, Goal::Upstream(goal) if has_reached(goal)) {
            self.goal = Goal::Reached;
        }
        Standing {
            held: self.machine.held().is_some(),
            has_caught_up: self.goal == Goal::Reached,
            without_leader: self.machine.without_leader().is_some(),
            waits: self.machine.waits().is_some(),
            lag_records: lag_records(position, readable_end).unwrap_or(0),
            losses: self.machine.record().losses(),
        }
    }
}

fn leader(metadata: &ClusterMetadata, topic: &str, partition: i32) -> Option<Leader> {
    let topic = metadata.topics.get(topic)?;
    let known = topic.partitions.get(&partition)?;
    Some(Leader { node: known.leader, leader_epoch: known.leader_epoch, topic_id: topic.id })
}
