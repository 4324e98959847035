//! What goes wrong, drawn from the seed.

use std::time::Duration;

use super::partition::Partition;
use super::plan::Fault;
use super::replica::Batch;
use super::source::SourcePartition;
use super::world::{Event, World, say};

impl World<'_> {
    /// One tick of the fault clock.
    pub(crate) fn fault(&mut self) {
        if !self.faulty {
            return;
        }
        let gap = u64::try_from(self.plan.fault_gap.as_millis()).expect("short gaps");
        let next = Duration::from_millis(self.rng.u64(1..=2 * gap));
        self.schedule(next, Event::Fault);
        if self.plan.faults.is_empty() {
            return;
        }
        let fault = self.plan.faults[self.rng.usize(..self.plan.faults.len())];
        say!(self, "fault {fault:?}");
        self.inject(fault);
    }

    fn inject(&mut self, fault: Fault) {
        let slot = self.rng.usize(..self.plan.instances);
        let node = self.rng.usize(..self.plan.nodes);
        let partition = self.rng.usize(..self.cluster.partitions.len());
        match fault {
            Fault::CrashInstance => {
                self.crash(slot);
                self.restart_later(slot);
            }
            Fault::StopInstance => {
                let life = self.slots[slot].life;
                self.stop(slot);
                self.schedule(Duration::from_secs(10), Event::Kill { slot, life });
                self.schedule(Duration::from_secs(11), Event::StartInstance(slot));
            }
            Fault::FreezeInstance => {
                let pause = self.rng.u64(1..60_000);
                let until = self.now + Duration::from_millis(pause);
                self.slots[slot].frozen_until = self.slots[slot].frozen_until.max(until);
            }
            Fault::CutConnection => self.cut_one(),
            Fault::LoseAnswer => self.lose_one(),
            Fault::KillNode => self.kill_node(node),
            Fault::MoveLeader => self.move_leader(partition),
            Fault::SleepReplica => {
                let pause = self.rng.u64(100..12_000);
                self.cluster.partitions[partition].members[node].asleep = true;
                self.schedule(Duration::from_millis(pause), Event::WakeReplica { partition, node });
            }
            Fault::ShrinkIsr => {
                self.cluster.partitions[partition].shrink(node);
                say!(self, "p{partition} in sync: {:?}", self.cluster.partitions[partition].isr);
                self.settle(partition);
            }
            Fault::ForeignRecords => self.foreign_records(),
            Fault::CompactState => self.compact_state(),
            Fault::CompactSource => self.compact_source(),
            Fault::SourceOutage => {
                self.source_down_until = self.now + Duration::from_millis(self.rng.u64(1..5_000));
            }
            Fault::Expire => self.expire(),
            Fault::Refresh => self.refresh_metadata(slot),
            Fault::MoveSourceStart => self.move_source_start(),
            Fault::RecreateSource => self.recreate_source(),
            Fault::RecreateTarget => self.recreate_target(),
            Fault::RefuseBatches => {
                let until = self.now + Duration::from_millis(self.rng.u64(1..10_000));
                self.cluster.partitions[partition].refuses_until = until;
            }
            Fault::TrimTarget => self.trim_target(),
        }
    }

    /// The start of a process that begins `after` now is a first start: while it lasts, some records are written, and the
    /// process may die.
    pub(crate) fn disturb_first_start(&mut self, slot: usize, after: Duration) {
        let mut while_it_lasts = || after + self.plan.delay.mul_f64(8.0 * self.rng.f64());
        let (killed, written) = (while_it_lasts(), [while_it_lasts(), while_it_lasts()]);
        if self.rng.bool() {
            self.schedule(killed, Event::Kill { slot, life: 1 });
            self.schedule(killed + Duration::from_millis(50), Event::StartInstance(slot));
        }
        for written in written {
            let partition = self.rng.usize(..self.plan.partitions);
            self.schedule(written, Event::SourceAppend(partition));
        }
    }

    fn restart_later(&mut self, slot: usize) {
        let pause = if self.rng.bool() { self.rng.u64(1..50) } else { self.rng.u64(50..5_000) };
        self.schedule(Duration::from_millis(pause), Event::StartInstance(slot));
    }

    /// SIGTERM.
    pub(crate) fn stop(&mut self, slot: usize) {
        let now = self.now;
        let Some(instance) = &mut self.slots[slot].instance else { return };
        instance.stopping = true;
        instance.machines.iter_mut().for_each(|machine| machine.handle_stop(now));
        self.drive(slot);
    }

    fn cut_one(&mut self) {
        let open: Vec<_> = (0..self.net.conns.len()).filter(|conn| self.net.conns[*conn].open).collect();
        if !open.is_empty() {
            let conn = open[self.rng.usize(..open.len())];
            if self.slots[self.net.conns[conn].instance].frozen_until <= self.now {
                self.close(conn);
            }
        }
    }

    /// The node has worked a request, but nobody will hear of it: the instance waits until its patience ends.
    fn lose_one(&mut self) {
        let busy: Vec<_> = (0..self.net.conns.len())
            .filter(|conn| self.net.conns[*conn].open && self.net.conns[*conn].busy.is_some())
            .collect();
        if !busy.is_empty() {
            let conn = busy[self.rng.usize(..busy.len())];
            self.net.conns[conn].mute = true;
        }
    }

    fn kill_node(&mut self, node: usize) {
        if !self.cluster.nodes[node].alive {
            return;
        }
        say!(self, "n{node} is killed");
        self.cluster.nodes[node].alive = false;
        self.cluster.nodes[node].life += 1;
        for conn in 0..self.net.conns.len() {
            let entry = &mut self.net.conns[conn];
            if entry.node == node {
                entry.transit.clear();
                entry.inbound.clear();
                entry.busy = None;
                if entry.open {
                    let delay = self.delay();
                    self.schedule(delay, Event::Dead(conn));
                }
            }
        }
        for partition in 0..self.cluster.partitions.len() {
            self.cluster.partitions[partition].kill(node);
            let delay = self.delay() + Duration::from_millis(self.rng.u64(0..300));
            self.schedule(delay, Event::Elect { partition });
        }
        let down = self.rng.u64(10..8_000);
        self.schedule(Duration::from_millis(down), Event::StartNode(node));
    }

    pub(crate) fn start_node(&mut self, node: usize) {
        if self.cluster.nodes[node].alive {
            return;
        }
        say!(self, "n{node} starts");
        self.cluster.nodes[node].alive = true;
        for partition in 0..self.cluster.partitions.len() {
            let (returned, recognised) = (self.rng.bool(), self.rng.usize(1..=5));
            self.cluster.partitions[partition].start(node, returned, recognised);
            self.elect_if_none(partition);
            self.announce(partition);
        }
    }

    /// The controller replaces a leader whose node is gone, or came back as another process.
    pub(crate) fn elect_if_none(&mut self, index: usize) {
        let partition = &mut self.cluster.partitions[index];
        let leader = partition.leader.filter(|leader| partition.members[*leader].alive);
        let dead: Vec<_> =
            partition.isr.iter().copied().filter(|node| !partition.members[*node].alive).collect();
        let must_move = leader.is_none_or(|leader| partition.members[leader].epoch == -1);
        if must_move {
            partition.leader = None;
        }
        for node in dead {
            partition.shrink(node);
        }
        if must_move {
            let candidates = partition.candidates();
            let chosen = (!candidates.is_empty()).then(|| candidates[self.rng.usize(..candidates.len())]);
            partition.elect(chosen);
        }
        self.announce(index);
        self.settle(index);
    }

    fn move_leader(&mut self, index: usize) {
        let partition = &mut self.cluster.partitions[index];
        let candidates = partition.candidates();
        if partition.leader.is_some() && !candidates.is_empty() {
            let chosen = candidates[self.rng.usize(..candidates.len())];
            partition.elect(Some(chosen));
            say!(
                self,
                "p{index} is to be led by n{chosen} in epoch {}",
                self.cluster.partitions[index].epoch
            );
            self.announce(index);
        }
    }

    /// Each node hears of the leader in its own time.
    fn announce(&mut self, partition: usize) {
        let Partition { topic_id, epoch, leader, .. } = self.cluster.partitions[partition];
        for node in 0..self.plan.nodes {
            let slow = if self.rng.u8(..6) == 0 { self.rng.u64(0..3_000) } else { 0 };
            let delay = self.delay() + Duration::from_millis(slow);
            self.schedule(delay, Event::Learn { topic_id, partition, node, epoch, leader });
        }
    }

    fn foreign_records(&mut self) {
        let partition = self.rng.usize(..self.plan.partitions);
        let target = &mut self.cluster.partitions[partition];
        let count = self.rng.u32(1..4);
        let batch =
            Batch { base_offset: 0, count, leader_epoch: -1, stamp: None, bytes: 0, records: Vec::new() };
        if let Some(leader) = target.leader.filter(|leader| target.leading(*leader).is_ok()) {
            target.append_foreign(leader, batch);
            say!(self, "p{partition} gets {count} records of others");
            self.settle(partition);
        }
    }

    fn compact_state(&mut self) {
        let index = self.cluster.state_topic();
        for member in &mut self.cluster.partitions[index].members {
            let to = self.rng.i64(0..=member.replica.high_watermark);
            member.replica.compact(to);
        }
    }

    fn compact_source(&mut self) {
        let index = self.rng.usize(..self.plan.partitions);
        let source = self.sources[index].last_mut().expect("a source has a topic");
        let to = self.rng.i64(source.log_start..=source.log_end());
        let to = to.min(source.last_stable_offset());
        source.compact(&mut self.rng, to);
    }

    fn move_source_start(&mut self) {
        let index = self.rng.usize(..self.plan.partitions);
        let source = self.sources[index].last_mut().expect("a source has a topic");
        let copied = self.checker.copied_to(index, source);
        let to = if self.plan.goes_on() { copied.map(|_| source.log_end()) } else { copied };
        if let Some(to) = to {
            let start = self.rng.i64(source.log_start..=to.max(source.log_start));
            source.move_start(start);
        }
    }

    /// The source's topic is deleted and made again: other records under the same offsets.
    fn recreate_source(&mut self) {
        if self.rng.u8(..8) > 0 {
            return;
        }
        let index = self.rng.usize(..self.plan.partitions);
        let topic_id = self.source(index).topic_id + 1000;
        let mut source = SourcePartition::new(topic_id, 0, &self.plan);
        (0..self.rng.usize(0..30)).for_each(|_| source.append(&mut self.rng, self.plan.hole_chance));
        self.sources[index].push(source);
        say!(self, "source p{index} is another topic");
    }

    /// The target's topic is deleted and made again.
    fn recreate_target(&mut self) {
        if self.rng.u8(..8) > 0 {
            return;
        }
        let index = self.rng.usize(..self.plan.partitions);
        self.cluster.recreate(index);
        self.checker.forget_target(index);
        say!(self, "target p{index} is another topic");
        self.elect_if_none(index);
    }

    /// Retention on the target, up to what is stored as acknowledged.
    fn trim_target(&mut self) {
        let index = self.rng.usize(..self.plan.partitions);
        let target = &mut self.cluster.partitions[index];
        let Some(leader) = target.leader else { return };
        // No follower may fall behind the new start: it would begin anew, without the producer state.
        let everywhere = target.members.iter().map(|member| member.replica.high_watermark).min();
        let mut to = self.checker.stored_downstream(index).min(everywhere.unwrap_or(0));
        if self.plan.instances > 1 {
            // A restart without any batch of ours in the log would lose the producer state, which rivals stand on.
            let with_state = target.members.iter().map(|member| member.replica.state_keeping_start()).min();
            to = to.min(with_state.unwrap_or(0));
        }
        let replica = &mut target.members[leader].replica;
        if to > replica.log_start {
            replica.delete_below(self.rng.i64(replica.log_start..=to));
        }
        self.settle(index);
    }

    fn expire(&mut self) {
        if self.net.has_orphans() {
            return;
        }
        let index = self.rng.usize(..self.cluster.partitions.len());
        let everywhere = self.rng.bool();
        let only = self.rng.usize(..self.plan.nodes);
        for (node, member) in self.cluster.partitions[index].members.iter_mut().enumerate() {
            if everywhere || node == only {
                member.replica.expire();
            }
        }
    }

    /// Everything is put right, and nothing goes wrong any more.
    pub(crate) fn heal(&mut self) {
        self.faulty = false;
        say!(self, "faults end");
        self.end_transactions();
        for slot in 0..self.plan.instances {
            self.start_instance(slot);
        }
        for node in 0..self.plan.nodes {
            self.start_node(node);
        }
        for partition in 0..self.cluster.partitions.len() {
            self.cluster.partitions[partition].members.iter_mut().for_each(|member| member.asleep = false);
            self.elect_if_none(partition);
        }
    }
}
