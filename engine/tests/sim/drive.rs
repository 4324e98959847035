//! The driver in small: carries the machines' commands to the model and its answers back.

use twinlog_engine::machine::Now;
use twinlog_engine::machine::hold::Side;
use twinlog_engine::machine::partition::{PartitionMachine, RequestFailure};
use twinlog_engine::machine::produce_window::ProduceAnswer;
use twinlog_engine::state::{StateEntry, Stored};
use twinlog_protocol::ErrorCode;

use super::checker::partition_of;
use super::instance::{Identity, Instance, Job};
use super::net::{Purpose, Reply};
use super::world::{Event, Fetch, REFRESH_EVERY, World, say};

/// Wakes in a row that found nothing to do before a timer counts as one that never passes.
const IDLE_WAKES_MAX: u32 = 2_000;

impl World<'_> {
    pub(crate) fn start_instance(&mut self, slot: usize) {
        if self.slots[slot].instance.is_some() || self.ending {
            return;
        }
        let instance = Instance::new(self.rng.u64(..), self.plan.partitions);
        say!(self, "i{slot} starts as {:x}", instance.number);
        self.slots[slot].life += 1;
        self.slots[slot].instance = Some(instance);
        let life = self.slots[slot].life;
        self.schedule(REFRESH_EVERY, Event::RefreshMetadata { slot, life });
        self.refresh_metadata(slot);
        self.drive(slot);
    }

    /// The process dies: what it had sent may still arrive.
    pub(crate) fn crash(&mut self, slot: usize) {
        let Some(instance) = self.slots[slot].instance.take() else { return };
        say!(self, "i{slot} is killed");
        self.slots[slot].life += 1;
        self.slots[slot].frozen_until = Now::ZERO;
        for conn in instance.conns.into_values() {
            self.close(conn);
        }
    }

    /// Gives something to a machine, if the process is still the same one.
    pub(crate) fn with_machine(
        &mut self,
        slot: usize,
        life: u64,
        partition: usize,
        give: impl FnOnce(&mut PartitionMachine, Now),
    ) {
        let now = self.now;
        if self.slots[slot].life != life {
            return;
        }
        let machine =
            self.slots[slot].instance.as_mut().and_then(|instance| instance.machines.get_mut(partition));
        if let Some(machine) = machine {
            give(machine, now);
            self.drive(slot);
        }
    }

    pub(crate) fn wake(&mut self, slot: usize, life: u64) {
        let now = self.now;
        if self.slots[slot].life != life {
            return;
        }
        let Some(instance) = &mut self.slots[slot].instance else { return };
        if instance.wake_at.is_none_or(|at| at > now) {
            return;
        }
        instance.wake_at = None;
        for machine in &mut instance.machines {
            if machine.next_timeout().is_some_and(|at| at <= now) {
                machine.handle_timeout(now);
            }
        }
        self.drive(slot);
    }

    /// Does whatever the machines of an instance want done, until they want nothing.
    pub(crate) fn drive(&mut self, slot: usize) {
        while self.drive_once(slot) || self.give_turns(slot) {}
        self.rest_if_stopped(slot);
        let now = self.now;
        let life = self.slots[slot].life;
        let Some(instance) = &mut self.slots[slot].instance else { return };
        let timeouts = instance.machines.iter().filter_map(PartitionMachine::next_timeout);
        let Some(next) = timeouts.chain(instance.log.next_timeout()).min() else { return };
        self.idle_wakes = if next <= now { self.idle_wakes + 1 } else { 0 };
        assert!(self.idle_wakes < IDLE_WAKES_MAX, "i{slot} has a timer that never passes: {instance:?}");
        let next = next.max(now + Now::from_millis(1));
        if instance.wake_at.is_none_or(|at| at > next) {
            instance.wake_at = Some(next);
            self.schedule_at(next, Event::Wake { slot, life });
        }
    }

    /// A turn for each machine that wants one.
    fn give_turns(&mut self, slot: usize) -> bool {
        let now = self.now;
        let Some(instance) = &mut self.slots[slot].instance else { return false };
        let mut wanting = instance.machines.iter_mut().filter(|machine| machine.wants_turn());
        wanting.by_ref().map(|machine| machine.handle_turn(now)).count() > 0
    }

    fn drive_once(&mut self, slot: usize) -> bool {
        let now = self.now;
        let Some(instance) = &mut self.slots[slot].instance else { return false };
        if let Some((offset, stored)) = instance.log.poll_entry() {
            self.take_entry(slot, offset, &stored);
            return true;
        }
        if let Some((id, won)) = instance.log.poll_done() {
            if let Some(job) = instance.jobs.remove(&id) {
                self.end_job(slot, job, won);
            }
            return true;
        }
        if let Some(command) = instance.log.poll_command(now) {
            self.do_for_log(slot, command);
            return true;
        }
        for partition in 0..instance.machines.len() {
            let machine = &mut instance.machines[partition];
            if let Some(command) = machine.poll_command() {
                self.do_for_partition(slot, partition, command);
                return true;
            }
            if let Some(offset) = machine.fetch_wanted(now) {
                machine.handle_fetch_sent(offset);
                let topic_id = instance.source_ids[partition];
                let (life, delay) = (self.slots[slot].life, self.delay());
                let fetch = Fetch { fetch: 0, slot, life, partition, topic_id, offset };
                self.schedule(delay, Event::Fetch(fetch));
                return true;
            }
        }
        false
    }

    fn take_entry(&mut self, slot: usize, offset: i64, stored: &Stored) {
        let now = self.now;
        let Some(instance) = &mut self.slots[slot].instance else { return };
        assert!(offset >= instance.polled_to, "T1: i{slot} gets entry {offset} after {}", instance.polled_to);
        instance.polled_to = offset + 1;
        if let StateEntry::Identity { producer_id, replaces } = stored.entry {
            instance.flow.apply(producer_id, replaces);
            instance.flow.producer_id().into_iter().for_each(|first| instance.starts.choose(first));
            if let (Identity::Ready(known), Some(winner)) = (instance.identity, instance.flow.producer_id())
                && known != winner
            {
                instance.identity = Identity::Ready(winner);
                instance.log.handle_producer_id(now, winner);
                for machine in &mut instance.machines {
                    machine.handle_new_producer_id(winner);
                }
            }
        }
        if let StateEntry::Start(entry) = &stored.entry {
            instance.starts.apply(entry);
        }
        if let Some((partition, entry)) = partition_of(&stored.entry, self.plan.partitions) {
            instance.records[partition].apply(entry);
            if let Some(machine) = instance.machines.get_mut(partition) {
                machine.handle_state(entry);
            }
        }
    }

    fn end_job(&mut self, slot: usize, job: Job, won: bool) {
        let now = self.now;
        say!(self, "i{slot} has done {job:?}: {won}");
        let Some(instance) = &mut self.slots[slot].instance else { return };
        match job {
            Job::FirstRead => match instance.flow.producer_id() {
                Some(winner) => self.be_ready(slot, winner),
                None => {
                    instance.identity = Identity::Taking;
                    self.take_producer_id(slot);
                }
            },
            Job::Start if instance.jobs.values().any(|job| matches!(job, Job::Start)) => {}
            Job::Start => self.store_identity(slot),
            Job::Identity => {
                let winner = instance.flow.producer_id().expect("an identity was just read back");
                self.be_ready(slot, winner);
            }
            Job::ReplaceIdentity => {
                let winner = instance.flow.producer_id().expect("an identity was just read back");
                while let Some((partition, attempt)) = instance.id_wanted.pop_front() {
                    instance.machines[partition].handle_producer_id(now, attempt, winner);
                }
            }
            Job::Store { partition, attempt, polled_to } => {
                let (number, until) = (instance.number, instance.polled_to);
                if let Some(attempt) = attempt {
                    instance.machines[partition].handle_stored(now, attempt, won);
                }
                let own = self.checker.last_decided_by(partition, number).filter(|own| *own < until);
                if let Some(own) = own.filter(|own| won && attempt.is_some() && *own >= polled_to) {
                    let others = self.checker.others_between(partition, number, polled_to, own);
                    assert_eq!(
                        others, 0,
                        "T3: i{slot} p{partition} won over entries from {polled_to} to {own}"
                    );
                }
            }
            Job::ReadState { partition, attempt } => {
                instance.machines[partition].handle_state_read(now, attempt);
            }
        }
    }

    /// Gives an answer, or the news that there will be none, to the machine that waits for it.
    pub(crate) fn deliver(&mut self, slot: usize, life: u64, purpose: Purpose, reply: Option<Reply>) {
        let now = self.now;
        if self.slots[slot].life != life {
            return;
        }
        let code = Self::code_of(reply.as_ref());
        let failure = code.map_or(RequestFailure::Unanswered("lost".to_owned()), RequestFailure::Broker);
        let Some(instance) = &mut self.slots[slot].instance else { return };
        match (purpose, reply) {
            (Purpose::Ask { partition, attempt, question }, Some(Reply::Offset(offset))) => {
                instance.machines[partition].handle_offset(now, attempt, question, offset);
            }
            (Purpose::Ask { partition, attempt, .. }, Some(Reply::LastBatch(last))) => {
                instance.machines[partition].handle_last_batch(now, attempt, last);
            }
            (Purpose::Tail { partition, attempt }, Some(Reply::Tail(tail))) => {
                instance.machines[partition].handle_tail(now, attempt, tail);
            }
            (Purpose::FindCopy { partition, attempt }, Some(Reply::Copy(search))) => {
                instance.machines[partition].handle_copy(now, attempt, search);
            }
            (
                Purpose::Ask { partition, attempt, .. }
                | Purpose::Tail { partition, attempt }
                | Purpose::FindCopy { partition, attempt },
                _,
            ) => {
                let machine = &mut instance.machines[partition];
                machine.handle_failure(now, attempt, Side::Target, "line-up", &failure);
            }
            (Purpose::Produce { partition, ticket }, reply) => {
                instance.in_flight[partition] -= 1;
                instance.machines[partition].handle_produced(now, ticket, produced(reply, code));
            }
            (Purpose::StateAsk { question }, Some(Reply::Offset(offset))) => {
                instance.log.handle_offset(now, question, offset);
            }
            (Purpose::StateAsk { .. }, Some(Reply::LastBatch(last))) => {
                instance.log.handle_last_batch(now, last);
            }
            (Purpose::StateRead, Some(Reply::State(read))) => instance.log.handle_read(now, read),
            (Purpose::StateAppend, reply) => {
                instance.appending = false;
                let base_offset = match reply {
                    Some(Reply::Appended { base_offset }) => Some(base_offset),
                    _ => None,
                };
                instance.log.handle_appended(now, base_offset);
                if base_offset.is_none() {
                    self.refresh_metadata(slot);
                }
            }
            (Purpose::StateAsk { .. } | Purpose::StateRead, _) => {
                instance.log.handle_failure(now);
                self.refresh_metadata(slot);
            }
            (Purpose::ProducerId, Some(Reply::ProducerId(id))) => self.got_producer_id(slot, id),
            (Purpose::ProducerId, _) => self.take_producer_id(slot),
        }
    }

    /// A stopping process ends once everything has come to rest.
    fn rest_if_stopped(&mut self, slot: usize) {
        let Some(instance) = &self.slots[slot].instance else { return };
        let rests = instance.stopping
            && instance.machines.iter().all(PartitionMachine::is_stopped)
            && instance.log.is_idle();
        if rests {
            assert!(
                instance.in_flight.iter().all(|count| *count == 0),
                "i{slot} stops with batches under way"
            );
            say!(self, "i{slot} has stopped");
            self.crash(slot);
        }
    }
}

fn produced(reply: Option<Reply>, code: Option<ErrorCode>) -> ProduceAnswer {
    match (reply, code) {
        (Some(Reply::Appended { base_offset }), _) => {
            ProduceAnswer::Acknowledged { base_offset, log_append_time_ms: -1 }
        }
        (_, Some(code)) => ProduceAnswer::Failed { code, detail: String::new(), named: 0 },
        _ => ProduceAnswer::Lost,
    }
}
