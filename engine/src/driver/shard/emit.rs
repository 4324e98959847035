//! What happens to partitions: counted, logged, and told to whoever listens.

use super::Shard;
use crate::event::FlowEvent;
use crate::machine::Now;
use crate::machine::hold::HoldReason;
use crate::machine::loss::Loss;
use crate::machine::partition::Event;
use crate::state::PartitionKey;
use crate::status::{LAST_LOSSES_MAX, PartitionLoss};

/// Partitions that do not get on and are named in the log one by one.
const WAITING_NAMED_MAX: u64 = 20;

impl Shard {
    pub(super) fn emit(&mut self, now: Now, slot: usize, event: Event) {
        match &event {
            Event::Copied { records, bytes } => {
                self.totals.records += records;
                self.totals.bytes += bytes;
                return;
            }
            Event::Repeated { records, .. } => self.totals.repeated_records += records,
            Event::BrokerTime => {
                let topic = self.slots[slot].key.target_topic.clone();
                // Once for the flow: where one topic is so, all may be.
                if !self.totals.broker_time_topics.insert(topic) || self.totals.broker_time_topics.len() > 1 {
                    return;
                }
            }
            Event::Lost(loss) => self.count_loss(slot, *loss),
            Event::Held(HoldReason::DamagedSource { .. }) => {
                self.replicas.handle_damaged(now, slot, self.slots[slot].source_leader());
            }
            _ => {}
        }
        let key = &self.slots[slot].key;
        self.log(key, &event);
        let event = FlowEvent { topic: key.source_topic.clone(), partition: key.partition, event };
        // Nobody needs to listen.
        let _ = self.parts.events.send(event);
    }

    fn count_loss(&mut self, slot: usize, loss: Loss) {
        let key = &self.slots[slot].key;
        self.totals.new_losses.add(&loss);
        let last = &mut self.totals.last_losses;
        last.push_back(PartitionLoss { topic: key.source_topic.clone(), partition: key.partition, loss });
        if last.len() > LAST_LOSSES_MAX {
            last.pop_front();
        }
    }

    fn log(&self, key: &PartitionKey, event: &Event) {
        let (flow, topic, partition) = (self.parts.flow.as_str(), key.source_topic.as_str(), key.partition);
        match event {
            // Far too many.
            Event::Copied { .. } => {}
            Event::Resumed { upstream, downstream, producer_epoch } => {
                tracing::debug!(flow, topic, partition, upstream, downstream, producer_epoch, "copying");
            }
            Event::TargetNotEmpty { log_end } => tracing::warn!(
                flow,
                topic,
                partition,
                log_end,
                "the target's partition holds records that are not twinlog's; the whole copy goes behind them"
            ),
            Event::StartOutOfRange { start, span } => tracing::warn!(
                flow,
                topic,
                partition,
                start,
                log_start = span.log_start,
                high_watermark = span.high_watermark,
                "the source's log does not hold the offset at which the copy was to begin (records were deleted before they \
                 were copied, or the log was cut back): the copy begins at the log start"
            ),
            Event::Lost(loss) => tracing::error!(
                flow,
                topic,
                partition,
                from = loss.from,
                to = loss.to,
                records = loss.records,
                "records lost: {loss}"
            ),
            Event::BrokerTime => tracing::warn!(
                flow,
                topic = key.target_topic,
                "the target's topic has message.timestamp.type=LogAppendTime: its readers see when records were copied, not the \
                 source's time; other topics like it are counted in the status"
            ),
            Event::Held(reason) => tracing::error!(flow, topic, partition, "partition held: {reason}"),
            Event::ForeignRecords { expected, found } => tracing::warn!(
                flow,
                topic,
                partition,
                expected,
                found,
                "others write to the target's partition"
            ),
            Event::Repeated { records, from, to } => tracing::error!(
                flow,
                topic,
                partition,
                records,
                from,
                to,
                "records are on the target twice: a late batch of ours was taken although its epoch was over; raise \
                 producer.id.expiration.ms on the target while old records are copied"
            ),
            Event::Waits { why } => self.log_waiting(key, why),
            Event::GoesOn => self.log_going_on(key),
            Event::InDoubt { why } => tracing::info!(flow, topic, partition, "lining up after: {why}"),
        }
    }

    /// A broker that is away concerns thousands: the status counts them.
    fn log_waiting(&self, key: &PartitionKey, why: &str) {
        let (flow, topic, partition) = (self.parts.flow.as_str(), key.source_topic.as_str(), key.partition);
        if self.totals.waiting >= WAITING_NAMED_MAX {
            tracing::debug!(flow, topic, partition, "partition does not get on, still trying: {why}");
        } else {
            tracing::warn!(flow, topic, partition, "partition does not get on, still trying: {why}");
        }
    }

    fn log_going_on(&self, key: &PartitionKey) {
        let (flow, topic, partition) = (self.parts.flow.as_str(), key.source_topic.as_str(), key.partition);
        if self.totals.waiting > WAITING_NAMED_MAX {
            tracing::debug!(flow, topic, partition, "partition gets on again");
        } else {
            tracing::info!(flow, topic, partition, "partition gets on again");
        }
    }
}
