//! How an instance gets its flow's producer id, at first and when its epochs are used up.

use twinlog_engine::machine::partition::{PartitionConfig, PartitionMachine};
use twinlog_engine::state::StateEntry;

use super::instance::{Identity, Job};
use super::net::{Lane, Purpose, Request};
use super::plan::Fault;
use super::world::World;

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
        };
        let compacts = self.plan.may(Fault::CompactSource);
        let machine = |record: &_| {
            let mut machine = PartitionMachine::new(config.clone(), Clone::clone(record));
            machine.handle_source_compacts(compacts);
            machine
        };
        instance.machines = instance.records.iter().map(machine).collect();
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
        let now = self.now;
        let Some(instance) = &mut self.slots[slot].instance else { return };
        let replaces = match instance.identity {
            Identity::Taking => {
                instance.identity = Identity::Storing;
                instance.log.handle_producer_id(now, candidate);
                -1
            }
            Identity::Ready(known) => known,
            Identity::Reading | Identity::Storing => return,
        };
        let job = if replaces == -1 { Job::Identity } else { Job::ReplaceIdentity };
        let id = instance.job(job);
        instance.log.append(id, StateEntry::Identity { producer_id: candidate, replaces });
    }
}
