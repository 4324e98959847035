//! How requests and answers travel, and what a node does with them in between.

use twinlog_protocol::ErrorCode;

use super::net::{ConnId, Lane, Purpose, Reply, Request, RequestId, Ticket};
use super::world::{Event, PRODUCE_TIMEOUT, REQUEST_TIMEOUT, World, say};

impl World<'_> {
    /// Sends a request over the instance's connection to a node, opening one if there is none.
    pub(crate) fn send(&mut self, slot: usize, node: usize, lane: Lane, request: Request, purpose: Purpose) {
        let lane = if self.plan.shared_lane && lane == Lane::Admin { Lane::Shared } else { lane };
        let (life, node_life) = (self.slots[slot].life, self.cluster.nodes[node].life);
        let Some(instance) = &mut self.slots[slot].instance else { return };
        let known = instance.conns.get(&(node, lane)).copied().filter(|conn| self.net.conns[*conn].open);
        let conn = known.unwrap_or_else(|| {
            let conn = self.net.open(slot, life, node, node_life);
            instance.conns.insert((node, lane), conn);
            conn
        });
        let id = self.net.next_request();
        let arrival = (self.now + self.delay()).max(self.net.conns[conn].last_arrival);
        let entry = &mut self.net.conns[conn];
        entry.last_arrival = arrival;
        entry.outstanding.insert(id, purpose);
        entry.transit.push_back((id, request));
        self.schedule_at(arrival, Event::Arrive(conn));
        self.schedule(REQUEST_TIMEOUT, Event::RequestTimeout { conn, request: id });
    }

    /// The first request in transit reaches its node.
    pub(crate) fn arrive(&mut self, conn: ConnId) {
        let entry = &mut self.net.conns[conn];
        if !entry.open && entry.late_until > self.now {
            let late_until = entry.late_until;
            return self.schedule_at(late_until, Event::Arrive(conn));
        }
        let node = &self.cluster.nodes[entry.node];
        if !node.alive || node.life != entry.node_life {
            entry.transit.clear();
            entry.inbound.clear();
            entry.busy = None;
            if entry.open {
                let delay = self.delay();
                self.schedule(delay, Event::Dead(conn));
            }
            return;
        }
        let Some(next) = entry.transit.pop_front() else { return };
        entry.inbound.push_back(next);
        self.serve(conn);
    }

    /// The node works the connection's requests one after another.
    fn serve(&mut self, conn: ConnId) {
        while self.net.conns[conn].busy.is_none() {
            let entry = &mut self.net.conns[conn];
            let Some((request, body)) = entry.inbound.pop_front() else { return };
            entry.busy = Some(request);
            let (node, ticket) = (entry.node, Ticket { conn, request });
            let produced = match &body {
                Request::Produce { partition, batch, .. } => {
                    let late = if entry.open { "" } else { " late" };
                    say!(
                        self,
                        "n{node} p{partition} gets{late} {:?} x{} of #{request}",
                        batch.stamp,
                        batch.count
                    );
                    Some(*partition)
                }
                _ => None,
            };
            let reply = self.cluster.work(self.now, node, ticket, body);
            match reply {
                Some(reply) => self.finish(ticket, reply),
                None => {
                    let partition = produced.expect("only Produce waits");
                    self.schedule(PRODUCE_TIMEOUT, Event::ProduceTimeout { partition, ticket });
                }
            }
            if let Some(partition) = produced {
                self.settle(partition);
            }
        }
    }

    /// A node has worked a request: its answer goes back, the next one is taken.
    pub(crate) fn finish(&mut self, ticket: Ticket, reply: Reply) {
        let Ticket { conn, request } = ticket;
        let entry = &mut self.net.conns[conn];
        if entry.busy != Some(request) {
            return;
        }
        entry.busy = None;
        if entry.open && !entry.mute {
            let at = (self.now + self.delay()).max(self.net.conns[conn].last_answer);
            self.net.conns[conn].last_answer = at;
            self.schedule_at(at, Event::Answer { conn, request, reply });
        }
        self.serve(conn);
    }

    /// An answer reaches its instance.
    pub(crate) fn answer(&mut self, conn: ConnId, request: RequestId, reply: Reply) {
        let entry = &mut self.net.conns[conn];
        if !entry.open {
            return;
        }
        let Some(purpose) = entry.outstanding.remove(&request) else { return };
        let (slot, life) = (entry.instance, entry.life);
        say!(self, "i{slot} #{request} {purpose:?} -> {reply:?}");
        self.deliver(slot, life, purpose, Some(reply));
        self.drive(slot);
    }

    /// The connection ends, for the instance at once. What is under way is lost, or arrives late.
    pub(crate) fn close(&mut self, conn: ConnId) {
        if !self.net.conns[conn].open {
            return;
        }
        let kept = if self.plan.late_requests { self.rng.usize(0..4) } else { 0 };
        let late = if kept > 0 { self.rng.u64(0..20_000) } else { 0 };
        let entry = &mut self.net.conns[conn];
        entry.open = false;
        entry.late_until = self.now + std::time::Duration::from_millis(late);
        let waiting = entry.inbound.len().min(kept);
        entry.inbound.truncate(waiting);
        entry.transit.truncate(kept - waiting);
        let (slot, life) = (entry.instance, entry.life);
        let outstanding = std::mem::take(&mut entry.outstanding);
        say!(self, "i{slot} loses a connection with {} requests", outstanding.len());
        for purpose in outstanding.into_values() {
            self.deliver(slot, life, purpose, None);
        }
        self.drive(slot);
    }

    /// A right answer's error, or none for an answer that will never come.
    pub(crate) fn code_of(reply: Option<&Reply>) -> Option<ErrorCode> {
        match reply {
            Some(Reply::Error(code)) => Some(*code),
            _ => None,
        }
    }
}
