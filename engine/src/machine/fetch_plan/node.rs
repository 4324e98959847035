//! The lanes to one broker, and the partitions that wait for one.

use std::collections::{BTreeMap, HashSet};

use super::{
    BULK_PARTITIONS_MAX, COOL_AFTER, Limits, Place, Planned, Pull, Room, Spot, TAIL_LANES, WAIT,
    WAIT_IN_TURNS, is_tail,
};
use crate::machine::Now;

/// The lane of the idle.
const IDLE: u16 = 0;

/// One broker.
#[derive(Debug, Default)]
pub(super) struct Node {
    tails: [Tail; TAIL_LANES as usize],
    bulk_busy: Vec<u16>,
    /// When each bulk lane began last, as [`Tail::began`].
    bulk_began: u64,
    /// Those that wait, in order: idle tails, live tails, and what is behind, with whether that is known.
    idle: BTreeMap<u64, usize>,
    live: BTreeMap<u64, usize>,
    behind: BTreeMap<u64, (usize, bool)>,
    swept_at: Now,
}

/// A tail lane.
#[derive(Debug, Default)]
struct Tail {
    is_busy: bool,
    /// Those that its session holds.
    members: HashSet<usize>,
    /// Those that it may hold no longer.
    left: Vec<usize>,
    /// Number of its last request among all.
    began: u64,
}

impl Node {
    pub(super) fn wait(&mut self, slot: usize, place: &Place, pull: Pull) {
        match pull {
            Pull::Tail if place.is_live => drop(self.live.insert(place.tick, slot)),
            Pull::Tail => drop(self.idle.insert(place.tick, slot)),
            Pull::Bulk => drop(self.behind.insert(place.tick, (slot, true))),
            Pull::Probe => drop(self.behind.insert(place.tick, (slot, false))),
        }
    }

    pub(super) fn stop_waiting(&mut self, tick: u64) {
        if self.idle.remove(&tick).is_none() && self.live.remove(&tick).is_none() {
            self.behind.remove(&tick);
        }
    }

    pub(super) fn leave(&mut self, slot: usize, lane: u16) {
        if is_tail(lane) {
            let tail = &mut self.tails[usize::from(lane)];
            tail.members.remove(&slot);
            tail.left.push(slot);
        }
    }

    pub(super) fn handle_done(&mut self, lane: u16) {
        if is_tail(lane) {
            self.tails[usize::from(lane)].is_busy = false;
        } else {
            self.bulk_busy.retain(|busy| *busy != lane);
        }
    }

    pub(super) fn next_request(
        &mut self,
        id: i32,
        places: &mut [Place],
        tick: &mut u64,
        now: Now,
        limits: Limits,
        room: Room,
    ) -> Option<Planned> {
        let busy_tails = self.tails.iter().filter(|tail| tail.is_busy).count();
        let has_room = busy_tails + self.bulk_busy.len() < limits.requests.into();
        if !has_room {
            return None;
        }
        self.cool(places, tick, now);
        let tails = (0..TAIL_LANES).filter(|lane| room.tails && self.tail_has_work(*lane, places));
        let tails = tails.map(|lane| (self.tails[usize::from(lane)].began, lane));
        let bulk = self.free_bulk_lane(limits).filter(|_| room.bulk && !self.behind.is_empty());
        // Where there is not room for all at once they take turns.
        let (_, lane) = tails.chain(bulk.map(|lane| (self.bulk_began, lane))).min()?;
        *tick += 1;
        let is_alone = limits.requests == 1;
        let planned = if is_tail(lane) {
            let wait = self.tail_wait(lane, is_alone, room);
            self.tails[usize::from(lane)].began = *tick;
            let (slots, gone) = self.fill_tail(id, lane, places);
            Planned { node: id, lane, slots, gone, wait }
        } else {
            self.bulk_began = *tick;
            let (slots, is_known) = self.fill_bulk(id, lane, places, limits);
            let wait = if is_known { WAIT } else { Now::ZERO };
            Planned { node: id, lane, slots, gone: Vec::new(), wait }
        };
        Some(planned)
    }

    fn tail_wait(&self, lane: u16, is_alone: bool, room: Room) -> Now {
        let others = self.tails.iter().enumerate();
        let has_others =
            others.filter(|(number, tail)| *number != usize::from(lane) && !tail.members.is_empty()).count()
                > 0;
        match is_alone {
            true if room.bulk && !self.behind.is_empty() => Now::ZERO,
            true if has_others => WAIT_IN_TURNS,
            _ => WAIT,
        }
    }

    /// Those that had no records for a while become idle, as soon as the idle ones are asked for: until then, and until the
    /// answer that is under way, they are waited for where they are.
    fn cool(&mut self, places: &mut [Place], tick: &mut u64, now: Now) {
        let is_due = now.saturating_sub(self.swept_at) >= COOL_AFTER;
        if !is_due || self.tails[usize::from(IDLE)].is_busy {
            return;
        }
        self.swept_at = now;
        for tail in &mut self.tails[usize::from(IDLE) + 1..] {
            let mut cool: Vec<usize> =
                tail.members.iter().copied().filter(|slot| !places[*slot].is_live).collect();
            cool.sort_unstable();
            tail.members.iter().for_each(|slot| places[*slot].is_live = false);
            for slot in cool {
                tail.members.remove(&slot);
                tail.left.push(slot);
                *tick += 1;
                let place = &mut places[slot];
                let Spot::Asked { node, .. } = place.spot else { continue };
                (place.tick, place.spot) = (*tick, Spot::Waiting { node, pull: Pull::Tail });
                self.idle.insert(*tick, slot);
            }
        }
    }

    fn tail_has_work(&self, lane: u16, places: &[Place]) -> bool {
        let tail = &self.tails[usize::from(lane)];
        if tail.is_busy {
            return false;
        }
        if !tail.members.is_empty() {
            return true;
        }
        let takes = |slot: &usize| self.lane_of_live(places[*slot].home) == Some(lane);
        match lane {
            IDLE => !self.idle.is_empty(),
            _ => self.live.values().any(takes) || (!self.idle.is_empty() && self.takes_idle(lane)),
        }
    }

    /// The lane where a partition that had records lately joins: where it was, else where others are, else an empty one.
    fn lane_of_live(&self, home: u16) -> Option<u16> {
        let is_free = |lane: &u16| !self.tails[usize::from(*lane)].is_busy;
        let live = IDLE + 1..TAIL_LANES;
        let home = Some(home).filter(|home| live.contains(home) && is_free(home));
        let has_members = |lane: &u16| !self.tails[usize::from(*lane)].members.is_empty();
        home.or_else(|| live.clone().find(|lane| is_free(lane) && has_members(lane)))
            .or_else(|| live.clone().find(is_free))
    }

    /// While the idle are asked for, those that would join them wait elsewhere (F3).
    fn takes_idle(&self, lane: u16) -> bool {
        self.tails[usize::from(IDLE)].is_busy && self.lane_of_live(IDLE) == Some(lane)
    }

    /// Who joins the lane, and who has left it.
    fn fill_tail(&mut self, node: i32, lane: u16, places: &mut [Place]) -> (Vec<usize>, Vec<usize>) {
        let mut joining: Vec<(u64, usize)> = Vec::new();
        if lane != IDLE {
            let joins = |slot: usize| self.lane_of_live(places[slot].home) == Some(lane);
            joining.extend(
                self.live.iter().filter(|(_, slot)| joins(**slot)).map(|(tick, slot)| (*tick, *slot)),
            );
            self.live.retain(|tick, _| joining.binary_search_by_key(tick, |(tick, _)| *tick).is_err());
        }
        if lane == IDLE || self.takes_idle(lane) {
            joining.extend(std::mem::take(&mut self.idle));
        }
        let tail = &mut self.tails[usize::from(lane)];
        tail.is_busy = true;
        for (_, slot) in &joining {
            places[*slot].spot = Spot::Asked { node, lane };
            tail.members.insert(*slot);
        }
        let mut gone = std::mem::take(&mut tail.left);
        gone.retain(|slot| !tail.members.contains(slot));
        (joining.into_iter().map(|(_, slot)| slot).collect(), gone)
    }

    fn free_bulk_lane(&self, limits: Limits) -> Option<u16> {
        (TAIL_LANES..TAIL_LANES + limits.bulk_lanes).find(|lane| !self.bulk_busy.contains(lane))
    }

    /// Who goes with the request, and whether it is known of any that there is something to read. Those that want are
    /// spread over the free lanes: on a long link it takes several requests to fill it.
    fn fill_bulk(
        &mut self,
        node: i32,
        lane: u16,
        places: &mut [Place],
        limits: Limits,
    ) -> (Vec<usize>, bool) {
        let free = usize::from(limits.bulk_lanes.min(limits.requests)).saturating_sub(self.bulk_busy.len());
        let count = self.behind.len().div_ceil(free.max(1)).min(BULK_PARTITIONS_MAX);
        let mut slots = Vec::with_capacity(count);
        let mut is_any_known = false;
        while let Some((_, (slot, is_known))) = self.behind.pop_first() {
            places[slot].spot = Spot::Asked { node, lane };
            slots.push(slot);
            is_any_known |= is_known;
            if slots.len() == count {
                break;
            }
        }
        self.bulk_busy.push(lane);
        (slots, is_any_known)
    }
}
