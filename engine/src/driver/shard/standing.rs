//! What of the partitions is shown: sums and names in the flow's status.

use std::time::Duration;

use super::Shard;
use super::slot::Slot;
use crate::clock;
use crate::machine::Now;
use crate::machine::hold::Side;
use crate::status::{HeldPartition, Standing};

/// Time between two status reports while records flow.
pub(super) const STATUS_EVERY: Duration = Duration::from_millis(100);

impl Shard {
    /// Brings the sums up to date with one partition.
    pub(super) fn account(&mut self, now: Now, number: usize) {
        let slot = &mut self.slots[number];
        self.held_bytes = self.held_bytes + slot.machine.backlog_bytes() - slot.counted_bytes;
        slot.counted_bytes = slot.machine.backlog_bytes();
        let standing = slot.standing();
        let has_name = |standing: Standing| standing.held || standing.without_leader || standing.waits;
        self.names_changed |= has_name(slot.counted) || has_name(standing);
        self.totals.move_from(slot.counted, standing);
        slot.counted = standing;
        self.plan_fetch(now, number);
    }

    fn name_who_waits(&mut self) {
        let slots = || self.slots.iter();
        self.totals.held = slots().filter_map(held).collect();
        self.totals.first_without_leader = slots().find(|slot| slot.counted.without_leader).map(Slot::name);
        let waiting = |slot: &Slot| Some(format!("{}: {}", slot.name(), slot.machine.waits()?));
        self.totals.first_waiting = slots().find_map(waiting);
    }

    pub(super) fn report(&mut self, at_once: bool) {
        let now = clock::boot_time();
        let clusters = [(Side::Source, &self.parts.source), (Side::Target, &self.parts.target)];
        self.totals.not_reached.clear();
        self.totals
            .not_reached
            .extend(clusters.iter().filter(|(_, cluster)| !cluster.is_reached()).map(|(side, _)| *side));
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
}

fn held(slot: &Slot) -> Option<HeldPartition> {
    let reason = slot.machine.held()?.clone();
    Some(HeldPartition { topic: slot.key.source_topic.clone(), partition: slot.key.partition, reason })
}
