//! The target cluster: nodes, their partitions, and how a node works a request.

use twinlog_engine::machine::Now;
use twinlog_engine::machine::line_up::LastBatch;
use twinlog_engine::machine::partition::{CopyEnd, CopySearch};
use twinlog_engine::machine::resume::{Tail, TailBatch};
use twinlog_engine::machine::state_log::LogRead;
use twinlog_engine::state::record;
use twinlog_protocol::ErrorCode;
use twinlog_protocol::batch::ProducerStamp;

use super::net::{Reply, Request, Ticket};
use super::partition::Partition;
use super::replica::upstream_of;

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) alive: bool,
    /// Which process of the node this is.
    pub(crate) life: u64,
}

#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    /// The data partitions, then the state topic.
    pub(crate) partitions: Vec<Partition>,
    producer_ids: i64,
}

/// Most batches of the state topic in one answer.
const READ_BATCHES_MAX: usize = 20;

impl Cluster {
    pub(crate) fn new(nodes: usize, partitions: usize, isr_min: usize) -> Self {
        let partition = |index: usize| Partition::new(100 + index as u128, nodes, index % nodes, isr_min);
        Self {
            nodes: (0..nodes).map(|_| Node { alive: true, life: 0 }).collect(),
            partitions: (0..=partitions).map(partition).collect(),
            producer_ids: 4000,
        }
    }

    pub(crate) fn state_topic(&self) -> usize {
        self.partitions.len() - 1
    }

    /// Deletes a topic and makes it again. Who waited for the old one is told that it is gone.
    pub(crate) fn recreate(&mut self, index: usize) {
        let old = &mut self.partitions[index];
        let mut new = Partition::new(old.topic_id + 1000, self.nodes.len(), 0, old.isr_min);
        new.answers = old.abandon();
        new.batch_bytes_max = old.batch_bytes_max;
        for (member, node) in new.members.iter_mut().zip(&self.nodes) {
            member.alive = node.alive;
            // Each node hears of the new topic with its first leader.
            (member.epoch, member.leader) = (-1, None);
        }
        new.leader = None;
        self.partitions[index] = new;
    }

    /// Works a request. None: the answer has to wait for the replicas.
    pub(crate) fn work(&mut self, now: Now, node: usize, ticket: Ticket, request: Request) -> Option<Reply> {
        let reply = match request {
            Request::Produce { partition, topic_id, batch } => {
                let partition = &mut self.partitions[partition];
                if partition.topic_id != topic_id {
                    return Some(Reply::Error(ErrorCode::UnknownTopicId));
                }
                match partition.produce(now, node, ticket, batch) {
                    Ok(()) => return None,
                    Err(code) => Err(code),
                }
            }
            Request::LogEnd { partition, epoch } => self.partitions[partition]
                .leading_in(node, epoch)
                .map(|member| Reply::Offset(member.replica.log_end())),
            Request::LastBatch { partition, producer_id } => {
                // Followers answer too.
                let replica = &self.partitions[partition].members[node].replica;
                Ok(Reply::LastBatch(producer_id.and_then(|id| replica.last_batch(id))))
            }
            Request::HighWatermark { partition, epoch } => {
                self.partitions[partition].listed_end(node, epoch).map(Reply::Offset)
            }
            Request::Tail { partition, from, to, producer_id } => {
                tail(&self.partitions[partition], node, from, to, producer_id)
            }
            Request::FindCopy { partition, to } => find_copy(&self.partitions[partition], node, to),
            Request::ReadState { from } => read_state(&self.partitions[self.state_topic()], node, from),
            Request::InitProducerId => {
                self.producer_ids += 1;
                Ok(Reply::ProducerId(self.producer_ids))
            }
        };
        Some(reply.unwrap_or_else(Reply::Error))
    }
}

fn tail(
    partition: &Partition,
    node: usize,
    from: i64,
    to: i64,
    producer_id: i64,
) -> Result<Reply, ErrorCode> {
    let replica = &partition.leading(node)?.replica;
    if replica.high_watermark < to {
        return Err(ErrorCode::OffsetNotAvailable);
    }
    let mut tail = Tail { from: from.max(replica.log_start), last: None, records: 0 };
    for batch in replica.batches_from(tail.from).iter().take_while(|batch| batch.base_offset < to) {
        let Some(stamp) = batch.stamp.filter(|stamp| stamp.producer_id == producer_id) else { continue };
        let found = LastBatch { producer_epoch: stamp.producer_epoch, last_sequence: batch.last_sequence() };
        if tail.last.is_none_or(|last| last.batch.producer_epoch != found.producer_epoch) {
            tail.records = 0;
        }
        tail.records += u64::from(batch.count);
        tail.last = Some(TailBatch { batch: found, next_offset: batch.next_offset() });
    }
    Ok(Reply::Tail(tail))
}

/// The last batch of ours below `to`, as a search by content finds it.
fn find_copy(partition: &Partition, node: usize, to: i64) -> Result<Reply, ErrorCode> {
    let replica = &partition.leading(node)?.replica;
    if replica.high_watermark < to {
        return Err(ErrorCode::OffsetNotAvailable);
    }
    let batches = replica.batches_from(replica.log_start).iter().take_while(|batch| batch.base_offset < to);
    let copied = batches.filter_map(|batch| {
        let ProducerStamp { producer_id, producer_epoch, .. } = batch.stamp?;
        let upstream_next = upstream_of(batch.records.last()?) + 1;
        Some(CopyEnd { producer_id, producer_epoch, upstream_next })
    });
    Ok(Reply::Copy(copied.last().map_or(CopySearch::Nothing, CopySearch::Found)))
}

fn read_state(partition: &Partition, node: usize, from: i64) -> Result<Reply, ErrorCode> {
    let replica = &partition.leading(node)?.replica;
    let mut read = LogRead { next_offset: from, ..LogRead::default() };
    let batches = replica.batches_from(from).iter().take(READ_BATCHES_MAX);
    for batch in batches.take_while(|batch| batch.next_offset() <= replica.high_watermark) {
        read.next_offset = batch.next_offset();
        let stamp = batch.stamp.expect("only we write the state topic");
        let last = LastBatch { producer_epoch: stamp.producer_epoch, last_sequence: batch.last_sequence() };
        read.last_batches.push((stamp.producer_id, last));
        for (place, key, value) in &batch.records {
            let offset = batch.base_offset + i64::from(*place);
            let key = key.clone().expect("entries have keys");
            let stored = record::decode(key, value.clone()).expect("our own entries can be read");
            read.entries.extend(stored.map(|stored| (offset, stored)));
        }
    }
    if read.next_offset == from {
        // The rest of a compacted log may be a hole up to the high watermark.
        let behind = replica.batches_from(from).first().map_or(replica.log_end(), |batch| batch.base_offset);
        read.next_offset = from.max(behind.min(replica.high_watermark));
    }
    Ok(Reply::State(read))
}
