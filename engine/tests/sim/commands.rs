//! Carries out what the machines want done, and checks it on the way.

use twinlog_engine::machine::line_up::Question;
use twinlog_engine::machine::partition::{Command, Event as PartitionEvent};
use twinlog_engine::machine::produce_window::IN_FLIGHT_MAX;
use twinlog_engine::machine::state_log::LogCommand;
use twinlog_engine::state::{StateEntry, Stored, record};
use twinlog_protocol::batch::{BatchView, Forwarded, ProducerStamp};
use twinlog_protocol::record::records;

use super::instance::{Job, key_of};
use super::net::{Lane, Purpose, Request};
use super::replica::Batch;
use super::source::SOURCE_BATCH_RECORDS_MAX;
use super::world::{Event, World, say};

impl World<'_> {
    pub(crate) fn do_for_log(&mut self, slot: usize, command: LogCommand) {
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

    pub(crate) fn do_for_partition(&mut self, slot: usize, partition: usize, command: Command) {
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
            Command::AskSourceSpan { attempt } => {
                let delay = self.delay();
                self.schedule(delay, Event::SourceSpan { slot, life, partition, attempt });
            }
            Command::ReadState { attempt } => {
                let id = instance.job(Job::ReadState { partition, attempt });
                instance.log.refresh(id);
            }
            // Whose it is makes no difference to what is copied.
            Command::AskOpenTransaction { .. } => {}
            Command::TakeProducerId { attempt } => self.take_new_id(slot, partition, attempt),
            Command::Store { attempt, entry } => {
                let polled_to = instance.polled_to;
                let id = instance.job(Job::Store { partition, attempt, polled_to });
                instance.log.append(id, StateEntry::Partition(key_of(partition), entry));
            }
            Command::Produce { ticket, batch, apart, .. } => {
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
                let is_cut =
                    matches!(&event, PartitionEvent::InDoubt { why } if why.contains("in smaller batches"));
                self.cut += u64::from(is_cut);
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
        self.merged += u64::from(batch.count > SOURCE_BATCH_RECORDS_MAX);
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
}

fn request_of(question: Question, partition: usize, epoch: i32, producer_id: Option<i64>) -> Request {
    match question {
        Question::LogEnd => Request::LogEnd { partition, epoch },
        Question::LastBatch => Request::LastBatch { partition, producer_id },
        Question::HighWatermark => Request::HighWatermark { partition, epoch },
    }
}

/// A batch as the target reads it off the wire.
fn received(sent: &Forwarded) -> (ProducerStamp, Batch) {
    let bytes = [&sent.head[..], &sent.body].concat();
    let bytes_sent = bytes.len();
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
    (stamp, Batch { base_offset: 0, count, leader_epoch: -1, stamp: Some(stamp), bytes: bytes_sent, records })
}

fn state_batch(stamp: ProducerStamp, instance: u64, entries: Vec<StateEntry>) -> Batch {
    let count = u32::try_from(entries.len()).expect("few entries");
    let stored = |entry| Stored { source_cluster_id: "source".into(), instance, entry };
    let encoded = entries.into_iter().map(|entry| record::encode(&stored(entry)));
    let records = (0..).zip(encoded).map(|(place, (key, value))| (place, Some(key), Some(value))).collect();
    Batch { base_offset: 0, count, leader_epoch: -1, stamp: Some(stamp), bytes: 0, records }
}
