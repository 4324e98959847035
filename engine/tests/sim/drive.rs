//! The driver in small: carries the machines' commands to the model and its answers back.

use twinlog_engine::machine::Now;
use twinlog_engine::machine::hold::Side;
use twinlog_engine::machine::line_up::Question;
use twinlog_engine::machine::partition::{
    Command, Event as PartitionEvent, PartitionMachine, RequestFailure,
};
use twinlog_engine::machine::produce_window::{IN_FLIGHT_MAX, ProduceAnswer};
use twinlog_engine::machine::state_log::LogCommand;
use twinlog_engine::state::{StateEntry, Stored, record};
use twinlog_protocol::ErrorCode;
use twinlog_protocol::batch::{BatchView, Forwarded, ProducerStamp};
use twinlog_protocol::record::records;

use super::checker::partition_of;
use super::instance::{Identity, Instance, Job, key_of};
use super::net::{Lane, Purpose, Reply, Request};
use super::replica::Batch;
use super::world::{Event, World, say};

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
        while self.drive_once(slot) {}
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
                let (life, delay) = (self.slots[slot].life, self.delay());
                self.schedule(delay, Event::Fetch { slot, life, partition, offset });
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
            instance.identities.push((offset, producer_id, replaces));
            let winner = instance.winner();
            if let (Identity::Ready(known), Some(winner)) = (instance.identity, winner)
                && known != winner
            {
                instance.identity = Identity::Ready(winner);
                instance.log.handle_producer_id(now, winner);
                for machine in &mut instance.machines {
                    machine.handle_new_producer_id(winner);
                }
            }
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
            Job::FirstRead => match instance.winner() {
                Some(winner) => self.be_ready(slot, winner),
                None => {
                    instance.identity = Identity::Taking;
                    self.take_producer_id(slot);
                }
            },
            Job::Identity => {
                let winner = instance.winner().expect("an identity was just read back");
                self.be_ready(slot, winner);
            }
            Job::ReplaceIdentity => {
                let winner = instance.winner().expect("an identity was just read back");
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

    fn do_for_log(&mut self, slot: usize, command: LogCommand) {
        let now = self.now;
        let index = self.cluster.state_topic();
        let Some(instance) = &mut self.slots[slot].instance else { return };
        let leader = instance.leaders[index];
        let Some(node) = leader.node.and_then(|node| usize::try_from(node).ok()) else {
            instance.log.handle_failure(now);
            return self.refresh_metadata(slot);
        };
        let (partition, epoch) = (index, leader.leader_epoch);
        let (request, purpose) = match command {
            LogCommand::Ask { question, producer_id } => {
                (request_of(question, partition, epoch, producer_id), Purpose::StateAsk { question })
            }
            LogCommand::Read { from } => (Request::ReadState { from }, Purpose::StateRead),
            LogCommand::Append { producer_id, producer_epoch, base_sequence, entries } => {
                assert!(!instance.appending, "T4: i{slot} appends twice at a time");
                instance.appending = true;
                let stamp = ProducerStamp { producer_id, producer_epoch, base_sequence };
                say!(self, "i{slot} stores {stamp:?} {entries:?}");
                let Some(instance) = &self.slots[slot].instance else { return };
                let batch = state_batch(stamp, instance.number, entries);
                let topic_id = leader.topic_id;
                (Request::Produce { partition, topic_id, batch }, Purpose::StateAppend)
            }
        };
        self.send(slot, node, Lane::State, request, purpose);
    }

    fn do_for_partition(&mut self, slot: usize, partition: usize, command: Command) {
        let life = self.slots[slot].life;
        let Some(instance) = &mut self.slots[slot].instance else { return };
        let leader = instance.leaders[partition];
        let node = leader.node.and_then(|node| usize::try_from(node).ok());
        match command {
            Command::Ask { attempt, question, leader_epoch, producer_id } => {
                let purpose = Purpose::Ask { partition, attempt, question };
                let request = request_of(question, partition, leader_epoch, producer_id);
                self.send_or_fail(slot, node, Lane::Admin, request, purpose);
            }
            Command::ReadTail { attempt, from, to, producer_id } => {
                let request = Request::Tail { partition, from, to, producer_id };
                self.send_or_fail(slot, node, Lane::Admin, request, Purpose::Tail { partition, attempt });
            }
            Command::FindCopy { attempt, to, .. } => {
                let purpose = Purpose::FindCopy { partition, attempt };
                self.send_or_fail(slot, node, Lane::Admin, Request::FindCopy { partition, to }, purpose);
            }
            Command::AskSourceStart { attempt } => {
                let delay = self.delay();
                self.schedule(delay, Event::SourceStart { slot, life, partition, attempt });
            }
            Command::ReadState { attempt } => {
                let id = instance.job(Job::ReadState { partition, attempt });
                instance.log.refresh(id);
            }
            Command::TakeProducerId { attempt } => self.take_new_id(slot, partition, attempt),
            Command::Store { attempt, entry } => {
                let polled_to = instance.polled_to;
                let id = instance.job(Job::Store { partition, attempt, polled_to });
                instance.log.append(id, StateEntry::Partition(key_of(partition), entry));
            }
            Command::Produce { ticket, batch, apart } => {
                let lane = if apart { Lane::Apart(partition) } else { Lane::Shared };
                self.produce(slot, partition, (node, lane), ticket, &batch);
            }
            Command::RefreshMetadata(_) => self.refresh_metadata(slot),
            Command::Emit(event) => {
                match &event {
                    PartitionEvent::Resumed { .. } => instance.may_send[partition] = true,
                    PartitionEvent::Held(_) | PartitionEvent::InDoubt { .. } => {
                        instance.may_send[partition] = false;
                    }
                    _ => {}
                }
                say!(self, "i{slot} p{partition} {event:?}");
            }
        }
    }

    fn produce(
        &mut self,
        slot: usize,
        partition: usize,
        (node, lane): (Option<usize>, Lane),
        ticket: u64,
        batch: &Forwarded,
    ) {
        let Some(instance) = &mut self.slots[slot].instance else { return };
        assert!(instance.may_send[partition], "P1: i{slot} p{partition} sends before a line-up");
        instance.in_flight[partition] += 1;
        let in_flight = instance.in_flight[partition];
        assert!(in_flight <= IN_FLIGHT_MAX, "W1: i{slot} p{partition} has {in_flight} batches under way");
        let (stamp, batch) = received(batch);
        self.checker.sending(partition, stamp, &batch, in_flight);
        let topic_id = self.slots[slot].instance.as_ref().map_or(0, |one| one.leaders[partition].topic_id);
        let request = Request::Produce { partition, topic_id, batch };
        self.send_or_fail(slot, node, lane, request, Purpose::Produce { partition, ticket });
    }

    fn send_or_fail(
        &mut self,
        slot: usize,
        node: Option<usize>,
        lane: Lane,
        request: Request,
        purpose: Purpose,
    ) {
        let life = self.slots[slot].life;
        match node {
            Some(node) => self.send(slot, node, lane, request, purpose),
            None => self.deliver(slot, life, purpose, None),
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

fn request_of(question: Question, partition: usize, epoch: i32, producer_id: Option<i64>) -> Request {
    match question {
        Question::LogEnd => Request::LogEnd { partition, epoch },
        Question::LastBatch => Request::LastBatch { partition, producer_id },
        Question::HighWatermark => Request::HighWatermark { partition, epoch },
    }
}

fn produced(reply: Option<Reply>, code: Option<ErrorCode>) -> ProduceAnswer {
    match (reply, code) {
        (Some(Reply::Appended { base_offset }), _) => ProduceAnswer::Acknowledged { base_offset },
        (_, Some(code)) => ProduceAnswer::Failed { code, detail: String::new() },
        _ => ProduceAnswer::Lost,
    }
}

/// A batch as the target reads it off the wire.
fn received(sent: &Forwarded) -> (ProducerStamp, Batch) {
    let bytes = [&sent.head[..], &sent.body].concat();
    let view = BatchView::parse(bytes.into()).expect("a whole batch");
    view.check_crc().expect("the patched checksum");
    let header = view.header();
    assert!(header.is_dense() && header.base_offset == 0, "a broker refuses {header:?}");
    let stamp = ProducerStamp {
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
    };
    let records = records(&view, 1 << 20).expect("records that can be read");
    let records = records.map(|record| record.expect("a record"));
    let records =
        records.map(|record| (record.offset_delta.unsigned_abs(), record.key, record.value)).collect();
    let count = header.record_count.unsigned_abs();
    (stamp, Batch { base_offset: 0, count, leader_epoch: -1, stamp: Some(stamp), records })
}

fn state_batch(stamp: ProducerStamp, instance: u64, entries: Vec<StateEntry>) -> Batch {
    let count = u32::try_from(entries.len()).expect("few entries");
    let stored = |entry| Stored { source_cluster_id: "source".into(), instance, entry };
    let encoded = entries.into_iter().map(|entry| record::encode(&stored(entry)));
    let records = (0..).zip(encoded).map(|(place, (key, value))| (place, Some(key), Some(value))).collect();
    Batch { base_offset: 0, count, leader_epoch: -1, stamp: Some(stamp), records }
}
