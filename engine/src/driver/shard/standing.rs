//! What of the partitions is shown: sums and names in the flow's status.

use std::time::Duration;

use super::Shard;
use super::slot::Slot;
use crate::clock::{self, WallClock};
use crate::driver::partitions::Partitions;
use crate::machine::Now;
use crate::machine::course::Fares;
use crate::machine::hold::Side;
use crate::partition_status::{PartitionState, PartitionStatus};
use crate::status::{HeldPartition, Standing};

/// Time between two status reports while records flow.
pub(super) const STATUS_EVERY: Duration = Duration::from_millis(100);

impl Shard {
    /// Brings the sums up to date with one partition.
    pub(super) fn account(&mut self, now: Now, number: usize) {
        let slot = &mut self.slots[number];
        self.held_bytes = self.held_bytes + slot.machine.backlog_bytes() - slot.counted_bytes;
        slot.counted_bytes = slot.machine.backlog_bytes();
        self.turns.set(number, slot.machine.wants_turn(), slot.machine.anew_bytes());
        let standing = slot.standing(now);
        let has_name = |standing: Standing| standing.held || standing.without_leader || standing.waits;
        self.names_changed |= has_name(slot.counted) || has_name(standing);
        self.totals.move_from(slot.counted, standing);
        slot.counted = standing;
        self.plan_fetch(now, number);
    }

    fn name_who_waits(&mut self) {
        let slots = || self.slots.iter();
        let clock = &mut self.wall_clock;
        self.totals.held = slots().filter_map(|slot| held(clock, slot)).collect();
        self.totals.first_without_leader = slots().find(|slot| slot.counted.without_leader).map(Slot::name);
        let waiting = |slot: &Slot| Some(format!("{}: {}", slot.name(), slot.machine.waits()?));
        self.totals.first_waiting = slots().find_map(waiting);
    }

    pub(super) fn report(&mut self, at_once: bool) {
        let now = clock::boot_time();
        self.note_unreached(now);
        let is_news = self.totals.standing() != self.parts.status.borrow().standing();
        if at_once || is_news || now.saturating_sub(self.reported_at) >= STATUS_EVERY {
            self.reported_at = now;
            if std::mem::take(&mut self.names_changed) {
                self.name_who_waits();
            }
            if self.totals != *self.parts.status.borrow() {
                self.parts.status.send_replace(self.totals.clone());
            }
        }
    }

    fn note_unreached(&mut self, now: Now) {
        self.totals.not_reached.clear();
        for (side, cluster) in [(Side::Source, &self.parts.source), (Side::Target, &self.parts.target)] {
            let since = &mut self.unreached_since[side as usize];
            *since = if cluster.is_reached() { None } else { Some(since.unwrap_or(now)) };
            self.totals.not_reached.extend(since.map(|_| side));
        }
    }

    /// How each partition fares, in the order in which they were found.
    pub(super) fn partitions(&mut self, now: Now) -> Vec<PartitionStatus> {
        self.note_unreached(now);
        let unreached = self.unreached();
        let (slots, clock) = (self.slots.iter_mut(), &mut self.wall_clock);
        let status = |slot: &mut Slot| {
            let look = slot.machine.look();
            slot.course.handle_look(now, &look);
            let (position, readable_end) = (look.position, look.readable_end);
            let (state, since) = state(slot, unreached.as_ref());
            PartitionStatus {
                topic: slot.key.source_topic.clone(),
                target_topic: slot.key.target_topic.clone(),
                partition: slot.key.partition,
                state,
                since: clock.time_at(since),
                position,
                readable_end,
            }
        };
        slots.map(status).collect()
    }

    /// A cluster that nobody answers for, in words, and since when.
    fn unreached(&self) -> Option<(Now, String)> {
        let clusters = [(Side::Source, &self.parts.source), (Side::Target, &self.parts.target)];
        clusters.into_iter().find_map(|(side, cluster)| {
            let since = self.unreached_since[side as usize]?;
            let why = cluster.last_error().map_or_else(String::new, |error| format!(": {error}"));
            Some((since, format!("the {side} cluster is not reached{why}")))
        })
    }

    /// What is told from now on to whoever asks how the partitions fare.
    pub(super) fn report_last(&mut self) {
        let last = self.partitions(clock::boot_time());
        self.parts.partitions.send_replace(Partitions::last(last));
    }
}

/// How a partition fares, and since when.
fn state(slot: &Slot, unreached: Option<&(Now, String)>) -> (PartitionState, Now) {
    let (fares, since) = (slot.course.fares(), slot.course.since());
    if let Some(reason) = slot.course.held() {
        return (PartitionState::Held { reason: reason.clone() }, since);
    }
    match (fares, unreached) {
        (Fares::Waiting, Some((unreached_since, why))) => {
            (PartitionState::Waiting { why: why.clone() }, since.min(*unreached_since))
        }
        // What can be seen of the partition may be old.
        (_, Some((since, why))) => (PartitionState::Waiting { why: why.clone() }, *since),
        (Fares::CaughtUp, None) => (PartitionState::CaughtUp, since),
        (Fares::Copying, None) => (PartitionState::Copying, since),
        (Fares::Waiting | Fares::Held(_), None) => {
            (PartitionState::Waiting { why: slot.machine.why_waiting() }, since)
        }
    }
}

fn held(clock: &mut WallClock, slot: &Slot) -> Option<HeldPartition> {
    let reason = slot.machine.held()?.clone();
    let since = clock.time_at(slot.course.since());
    Some(HeldPartition { topic: slot.key.source_topic.clone(), partition: slot.key.partition, reason, since })
}
