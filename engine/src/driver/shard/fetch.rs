//! Fetch requests: who wants what from where, requests as the plan has them, and their answers dealt out.

use super::{Done, Shard};
use crate::driver::fetcher::{self, FetchAnswer, Order, Outcome, Part};
use crate::machine::Now;
use crate::machine::fetch_pace::Piece;
use crate::machine::fetch_plan::{Limits, Planned, Room};
use crate::machine::fetch_session::Asked;
use crate::machine::hold::Side;
use crate::machine::read_replica::{Answerer, Heard};

/// Bytes of a tail's answer, and of one partition in it.
const TAIL_BYTES_MAX: i32 = 1 << 20;
const TAIL_PARTITION_BYTES_MAX: i32 = 256 << 10;

impl Shard {
    /// Tells the plan what a partition wants.
    pub(super) fn plan_fetch(&mut self, now: Now, number: usize) {
        self.count_behind(number);
        let untaken_bytes = self.slots[number].machine.untaken_bytes();
        let is_admitted = self.parts.share.admits(untaken_bytes, self.behind) || !self.is_short();
        let slot = &mut self.slots[number];
        let node = slot.source_leader().map(|leader| self.replicas.node(number, leader));
        let is_target_far = slot.machine.is_target_far();
        let backlog_bytes_max = node.map_or(0, |node| self.sizes.backlog_bytes_max(node, is_target_far));
        let has_room = slot.counted_bytes < backlog_bytes_max;
        let wanted = slot.machine.fetch_wanted(now).filter(|_| is_admitted && has_room);
        let asked = slot.machine.fetching();
        match node.filter(|_| wanted.or(asked).is_some()) {
            Some(node) if wanted.is_some() => self.plan.set_wanting(number, node, slot.pull()),
            Some(node) => self.plan.set_asked(number, node, slot.pull()),
            None => self.plan.set_away(number),
        }
    }

    fn count_behind(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        let (was_behind, is_behind) = (slot.counted_behind, slot.is_behind());
        slot.counted_behind = is_behind;
        self.behind = self.behind + usize::from(is_behind) - usize::from(was_behind);
    }

    fn is_short(&self) -> bool {
        self.parts.share.is_short(self.held_bytes, self.parts.memory.used())
    }

    /// Sends what may be sent.
    pub(super) fn fetch(&mut self, now: Now) {
        while self.parts.throttle.not_before(now).is_none() {
            let share = self.parts.share;
            let room = Room {
                tails: !share.is_full_for_tails(self.held_bytes),
                bulk: !share.is_full(self.held_bytes),
            };
            let (paces, sizes) = (&self.paces, &self.sizes);
            let limits = |node| Limits { requests: paces.requests(node), bulk_lanes: sizes.lanes(node) };
            let Some(planned) = self.plan.next_request(now, limits, room) else { return };
            if planned.is_tail() {
                self.ask_tail(now, planned);
            } else {
                let bytes_max = self.answer_bytes_max(planned.node);
                let (asking, is_short) = (planned.slots.len(), self.is_short());
                let bytes_max = share.partition_bytes_max(bytes_max, asking, self.behind, is_short);
                let wanted = self.asked(now, &planned.slots, bytes_max);
                self.ask_bulk(now, planned.node, planned.lane, planned.wait, wanted);
            }
        }
    }

    fn asked(&mut self, now: Now, slots: &[usize], bytes_max: i32) -> Vec<(usize, Asked)> {
        slots.iter().filter_map(|&slot| Some((slot, self.slots[slot].ask(now, bytes_max)?))).collect()
    }

    fn ask_tail(&mut self, now: Now, planned: Planned) {
        let Planned { node, lane, slots, gone, wait } = planned;
        let fresh = self.asked(now, &slots, TAIL_PARTITION_BYTES_MAX);
        let session = self.sessions.remove(&(node, lane)).unwrap_or_default();
        let piece = self.next_piece(now, node, TAIL_BYTES_MAX);
        let (source, rack) = (self.parts.source.clone(), self.replicas.rack(now, node));
        let order = Order { node, lane, wait, piece, isolation_level: self.parts.isolation_level, rack };
        self.errands.push(Box::pin(async move {
            let answer = fetcher::fetch_tail(source, order, session, fresh, gone).await;
            Done::Fetched { node, lane, piece, answer }
        }));
    }

    fn next_piece(&mut self, now: Now, node: i32, bytes_max: i32) -> Piece {
        self.paces.next_piece(now, node, bytes_max.min(self.parts.throttle.piece_bytes_max()))
    }

    fn answer_bytes_max(&self, node: i32) -> i32 {
        self.parts.share.answer_bytes_max(self.sizes.bytes_max(node))
    }

    fn ask_bulk(&mut self, now: Now, node: i32, lane: u16, wait: Now, wanted: Vec<(usize, Asked)>) {
        let piece = self.next_piece(now, node, self.answer_bytes_max(node));
        let (source, rack) = (self.parts.source.clone(), self.replicas.rack(now, node));
        let order = Order { node, lane, wait, piece, isolation_level: self.parts.isolation_level, rack };
        self.errands.push(Box::pin(async move {
            let answer = fetcher::fetch_bulk(source, order, wanted).await;
            Done::Fetched { node, lane, piece, answer }
        }));
    }

    pub(super) fn handle_fetch_answer(
        &mut self,
        now: Now,
        node: i32,
        lane: u16,
        piece: Piece,
        answer: FetchAnswer,
    ) {
        let is_tail = answer.session.is_some();
        if let Some(session) = answer.session {
            self.sessions.insert((node, lane), session);
        }
        match answer.outcome {
            Outcome::Throttled { wanted, told } => {
                self.paces.handle_throttled(now, node, piece, told);
                if is_tail {
                    self.plan.handle_done(node, lane);
                } else {
                    self.ask_bulk(now, node, lane, Now::ZERO, wanted);
                }
            }
            Outcome::Parts { parts, bytes, round_trip } => {
                self.paces.handle_answered(now, node, piece, bytes);
                self.parts.throttle.handle_bytes(now, bytes);
                if !is_tail && bytes > 0 {
                    self.sizes.handle_answered(node, round_trip, bytes);
                }
                for part in parts {
                    self.handle_fetched(now, node, lane, part);
                }
                self.plan.handle_done(node, lane);
            }
        }
    }

    /// The partition has another leader at the source, or none.
    pub(super) fn handle_new_source_leader(&mut self, slot: usize) {
        let was_replicas = self.replicas.handle_new_leader(slot);
        let of = &mut self.slots[slot];
        if let Some(leader) = of.source_leader().filter(|_| was_replicas && of.machine.fetching().is_some()) {
            self.plan.set_wanting(slot, leader, of.pull());
        }
    }

    fn handle_fetched(&mut self, now: Now, node: i32, lane: u16, part: Part) {
        let Part { slot, fetched, named } = part;
        let bytes = fetched.result.as_ref().map_or(0, |records| records.records.len());
        if !self.plan.handle_news(slot, node, lane, bytes > 0) {
            return;
        }
        let of = &self.slots[slot];
        let by = Answerer { node, leader: of.source_leader(), named };
        let source = &self.parts.source;
        let is_there = |node| source.metadata().brokers.contains_key(&node);
        let is_unknown = named.is_some_and(|named| !is_there(named));
        let readable_end = of.machine.readable_end();
        let offset = fetched.offset;
        let heard = self.replicas.handle_fetched(now, slot, by, is_there, readable_end, fetched);
        if is_unknown {
            self.refresh(Side::Source);
        }
        match heard {
            Heard::News(fetched) => {
                self.touch(slot).handle_fetched(now, fetched);
                self.slots[slot].count_fetched(offset, bytes);
            }
            Heard::Ask(leader) => {
                let pull = self.slots[slot].pull();
                self.plan.set_wanting(slot, leader, pull);
                self.touch(slot);
            }
        }
    }
}
