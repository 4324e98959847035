//! How an instance gets its flow's producer id, at first and when its epochs are used up, and where the flow begins.

use std::time::Duration;

use twinlog_engine::machine::first_start::FirstStart;
use twinlog_engine::machine::partition::{Packing, PartitionConfig, PartitionMachine};
use twinlog_engine::state::StateEntry;

use super::instance::{Identity, Job, topic_of};
use super::net::{Lane, Purpose, Request};
use super::plan::Fault;
use super::world::{Event, World, say};

/// Pause before a source that did not answer is asked again.
const ASK_PAUSE: Duration = Duration::from_millis(200);

impl World<'_> {
    pub(crate) fn be_ready(&mut self, slot: usize, winner: i64) {
        let now = self.now;
        let Some(instance) = &mut self.slots[slot].instance else { return };
        instance.identity = Identity::Ready(winner);
        instance.log.handle_producer_id(now, winner);
        let config = PartitionConfig {
            fingerprint: self.plan.fingerprints[slot],
            producer_id: winner,
            // Each process draws its own.
            first_epoch: self.plan.first_epoch.saturating_add(self.rng.i16(0..3)),
            first_sequence: self.plan.first_sequence,
            backlog_bytes_max: self.plan.backlog_bytes_max,
            merge_sizes: self.plan.merge_sizes,
            losses: self.plan.losses,
            packing: Packing::default(),
        };
        let compacts = self.plan.may(Fault::CompactSource);
        let starts = &mut instance.starts;
        let machine = |(partition, record): (_, &_)| {
            let mut machine = PartitionMachine::new(config.clone(), Clone::clone(record));
            machine.handle_source_compacts(compacts);
            machine.handle_start(starts.take(&topic_of(partition), 0));
            machine
        };
        instance.machines = instance.records.iter().enumerate().map(machine).collect();
        self.tell_leaders(slot);
    }

    pub(crate) fn take_producer_id(&mut self, slot: usize) {
        let node = self.rng.usize(..self.plan.nodes);
        self.send(slot, node, Lane::Admin, Request::InitProducerId, Purpose::ProducerId);
    }

    pub(crate) fn take_new_id(&mut self, slot: usize, partition: usize, attempt: u64) {
        let now = self.now;
        let Some(instance) = &mut self.slots[slot].instance else { return };
        let machine = &mut instance.machines[partition];
        let used = machine.record().current().map(|lineage| lineage.generation.producer_id);
        match instance.flow.producer_id().filter(|winner| Some(*winner) != used) {
            Some(winner) => instance.machines[partition].handle_producer_id(now, attempt, winner),
            None => {
                instance.id_wanted.push_back((partition, attempt));
                if instance.id_wanted.len() == 1 {
                    self.take_producer_id(slot);
                }
            }
        }
    }

    pub(crate) fn got_producer_id(&mut self, slot: usize, candidate: i64) {
        let Some(instance) = &mut self.slots[slot].instance else { return };
        match instance.identity {
            Identity::Taking => self.ask_for_ends(slot, candidate),
            Identity::Ready(replaces) => {
                let id = instance.job(Job::ReplaceIdentity);
                instance.log.append(id, StateEntry::Identity { producer_id: candidate, replaces });
            }
            Identity::Reading | Identity::Asking(_) | Identity::Starting(_) | Identity::Storing => {}
        }
    }

    /// A first start that is to begin at the ends asks for them.
    fn ask_for_ends(&mut self, slot: usize, candidate: i64) {
        let asked = if self.plan.latest[slot] { self.plan.partitions } else { 0 };
        let topics = (0..asked).map(|partition| (topic_of(partition), self.source(partition).topic_id, 1));
        let first_start = FirstStart::new(candidate, topics);
        let life = self.slots[slot].life;
        let Some(instance) = &mut self.slots[slot].instance else { return };
        instance.first_start = first_start;
        instance.identity = Identity::Asking(candidate);
        for partition in 0..asked {
            let delay = self.delay();
            self.schedule(delay, Event::AskEnd { slot, life, partition });
        }
        self.store_identity_if_complete(slot);
    }

    /// The question for a partition's end reaches the source.
    pub(crate) fn ask_end(&mut self, slot: usize, life: u64, partition: usize) {
        if self.source_down_until > self.now {
            return self.schedule(ASK_PAUSE, Event::AskEnd { slot, life, partition });
        }
        let end = self.source(partition).log_end();
        say!(self, "source p{partition} tells i{slot} that it ends at {end}");
        let delay = self.delay();
        self.schedule(delay, Event::End { slot, life, partition, end });
    }

    /// A partition's end is told. Whether metadata shows by then that its topic was made again is a matter of luck.
    pub(crate) fn handle_end(&mut self, slot: usize, life: u64, partition: usize, end: i64) {
        if self.slots[slot].life != life {
            return;
        }
        let (now, knows) = (self.now, self.rng.bool());
        let ids: Vec<u128> = (0..self.plan.partitions).map(|index| self.source(index).topic_id).collect();
        let Some(instance) = &mut self.slots[slot].instance else { return };
        if knows {
            let id_of =
                |topic: &str| (0..ids.len()).find(|index| topic_of(*index) == topic).map(|index| ids[index]);
            instance.first_start.handle_topic_ids(now, id_of);
        }
        instance.first_start.handle_offset(&topic_of(partition), 0, end);
        self.store_identity_if_complete(slot);
        self.drive(slot);
    }

    /// The offsets first, then the identity that may select them.
    fn store_identity_if_complete(&mut self, slot: usize) {
        let now = self.now;
        let Some(instance) = &mut self.slots[slot].instance else { return };
        let (Identity::Asking(producer_id), Some(entries)) =
            (instance.identity, instance.first_start.entries())
        else {
            return;
        };
        instance.identity = Identity::Starting(producer_id);
        instance.log.handle_producer_id(now, producer_id);
        let waits = !entries.is_empty() && self.rng.bool();
        for entry in entries {
            let id = instance.job(Job::Start);
            instance.log.append(id, StateEntry::Start(entry));
        }
        // Both in one append, or one after the other.
        if !waits {
            self.store_identity(slot);
        }
    }

    /// The offsets are on their way to the state topic, or there.
    pub(crate) fn store_identity(&mut self, slot: usize) {
        let Some(instance) = &mut self.slots[slot].instance else { return };
        if let Identity::Starting(producer_id) = instance.identity {
            instance.identity = Identity::Storing;
            let id = instance.job(Job::Identity);
            instance.log.append(id, StateEntry::Identity { producer_id, replaces: -1 });
        }
    }
}
