//! Batches on their lanes: what is ready at the same moment goes out together, and its answers come back to the machines.

use std::sync::Arc;

use twinlog_protocol::batch::Forwarded;
use twinlog_protocol::produce::ProducePartition;

use super::{Done, Shard};
use crate::driver::lanes::{self, LaneKey, produce_lane};
use crate::driver::produce;
use crate::io::connection::Connection;
use crate::machine::Now;
use crate::machine::produce_groups::{Traits, group};
use crate::machine::produce_window::ProduceAnswer;

/// A batch that waits for its lane.
pub(super) struct Queued {
    slot: usize,
    ticket: u64,
    /// With the id of the topic that the batch is meant for: by the time it goes out there may be another one of that name.
    part: ProducePartition,
}

impl Queued {
    fn traits(&self) -> Traits {
        Traits {
            slot: self.slot,
            bytes: self.part.batch.total_bytes(),
            has_topic_id: self.part.topic_id != 0,
        }
    }
}

impl Shard {
    /// Puts a batch on its lane. A batch never follows others of its partition over another connection than theirs.
    pub(super) fn produce(&mut self, now: Now, slot: usize, ticket: u64, batch: Forwarded, apart: bool) {
        let of = &mut self.slots[slot];
        of.under_way += 1;
        let leader = of.leaders[1];
        let Some((topic_id, node)) = leader.and_then(|leader| Some((leader.topic_id, leader.node?))) else {
            return self.handle_produced(now, slot, ticket, ProduceAnswer::Lost);
        };
        let key: LaneKey = (node, produce_lane(of.number_at_target, apart));
        let on = (key, self.lanes.incarnation(key));
        if of.under_way > 1 && of.sent_on != Some(on) {
            return self.handle_produced(now, slot, ticket, ProduceAnswer::Lost);
        }
        of.sent_on = Some(on);
        let (topic, partition) = (Arc::clone(&of.target_topic), of.key.partition);
        let part = ProducePartition { topic, topic_id, partition, batch };
        if self.lanes.push(key, Queued { slot, ticket, part }) {
            let target = self.parts.target.clone();
            self.errands.push(Box::pin(async move {
                let (key, result) = lanes::open(target, key).await;
                Done::LaneOpened { key, result }
            }));
        }
    }

    /// Sends all that waits on open connections.
    pub(super) fn send_ready(&mut self, now: Now) {
        while let Some((connection, waiting)) = self.lanes.take_ready() {
            for together in group(waiting, Queued::traits) {
                self.send(now, &connection, together);
            }
        }
    }

    fn send(&mut self, now: Now, connection: &Connection, together: Vec<Queued>) {
        let (tickets, parts): (Vec<_>, Vec<_>) =
            together.into_iter().map(|queued| ((queued.slot, queued.ticket), queued.part)).unzip();
        match produce::send(connection, &parts) {
            Ok(sending) => self
                .errands
                .push(Box::pin(async move { Done::Produced { tickets, answers: sending.answers().await } })),
            Err(error) => {
                tracing::debug!(flow = self.parts.flow, "batches could not be sent: {error}");
                for (slot, ticket) in tickets {
                    self.handle_produced(now, slot, ticket, ProduceAnswer::Lost);
                }
            }
        }
    }

    pub(super) fn handle_produced(&mut self, now: Now, slot: usize, ticket: u64, answer: ProduceAnswer) {
        let of = &mut self.slots[slot];
        of.under_way = of.under_way.saturating_sub(1);
        self.touch(slot).handle_produced(now, ticket, answer);
    }

    pub(super) fn handle_lane_opened(&mut self, now: Now, key: LaneKey, connection: Option<Connection>) {
        for Queued { slot, ticket, .. } in self.lanes.opened(key, connection) {
            self.handle_produced(now, slot, ticket, ProduceAnswer::Lost);
        }
    }
}
