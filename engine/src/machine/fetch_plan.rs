//! Which partitions go into which Fetch request to which broker of the source.
//!
//! A broker works the Fetch requests of one connection one after the other, and may wait for records before it answers. So
//! there are several lanes to each broker, a connection each, of two kinds:
//!
//! - **Tails** wait for records of partitions that hold nothing more to read. Each tail lane has a fetch session, so only
//!   who changes is named. Lane 0 has the idle partitions, the other lanes those that had records lately: a broker looks at
//!   every partition of a session for each request, so the many must not be asked about as often as the few.
//! - **Bulk** lanes fetch what lies behind, in large answers, for partitions that are named in each request. However large
//!   these are, no tail waits behind them.
//!
//! Rules:
//! - F1: a partition is asked for on one lane at a time; what another lane says of it is not heard.
//! - F2: partitions go in the order in which they began to want; whoever was served goes to the back.
//! - F3: a partition that wants records while others wait for theirs takes a free lane.
//! - F4: a partition of a tail stays where it is, untouched, until its lane has news of it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Now;

mod node;

use self::node::Node;

/// Tail lanes of a node: numbers 0 to 3, the first of them for the idle.
pub const TAIL_LANES: u16 = 4;
/// Bulk lanes of a node at most; their numbers follow.
pub const BULK_LANES_MAX: u16 = 6;
/// Partitions in a bulk request: their records fill an answer in most cases, and those that get nothing were named in vain.
const BULK_PARTITIONS_MAX: usize = 64;
/// A partition without records for so long, twice at most, is idle.
const COOL_AFTER: Duration = Duration::from_secs(10);
/// How long a broker may wait for records.
const WAIT: Duration = Duration::from_millis(500);
/// The same where several tails have to take turns.
const WAIT_IN_TURNS: Duration = Duration::from_millis(100);

/// What a partition wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pull {
    /// News: it has all that was there.
    Tail,
    /// What it is behind.
    Bulk,
    /// To learn what there is.
    Probe,
}

/// How many requests to a node may be under way.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// In all.
    pub requests: u16,
    /// Bulk ones, [`BULK_LANES_MAX`] at most.
    pub bulk_lanes: u16,
}

/// For which answers there is room.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// For small ones.
    pub tails: bool,
    /// For large ones.
    pub bulk: bool,
}

/// The next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// To this node.
    pub node: i32,
    /// On this lane, busy until [`FetchPlan::handle_done`].
    pub lane: u16,
    /// For these partitions; on a tail lane beside those that it has already.
    pub slots: Vec<usize>,
    /// Of the lane's session, no longer to be asked for.
    pub gone: Vec<usize>,
    /// How long the broker may wait for the first record.
    pub wait: Duration,
}

impl Planned {
    /// Whether the lane is a tail's.
    #[must_use]
    pub fn is_tail(&self) -> bool {
        is_tail(self.lane)
    }
}

/// The lanes, and the partitions that want or are asked for.
#[derive(Debug, Default)]
pub struct FetchPlan {
    nodes: BTreeMap<i32, Node>,
    places: Vec<Place>,
    tick: u64,
}

/// A partition.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    spot: Spot,
    /// Its place in the order, 0 for the end.
    tick: u64,
    /// Records came lately.
    is_live: bool,
    /// The last lane that asked for it.
    home: u16,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Spot {
    /// It wants nothing.
    #[default]
    Away,
    Waiting {
        node: i32,
        pull: Pull,
    },
    Asked {
        node: i32,
        lane: u16,
    },
}

impl FetchPlan {
    /// The partition wants records from this node, in a request that is not sent yet.
    pub fn set_wanting(&mut self, slot: usize, node: i32, pull: Pull) {
        if self.place(slot).spot == (Spot::Waiting { node, pull }) {
            return;
        }
        self.take_out(slot);
        if self.places[slot].tick == 0 {
            self.tick += 1;
            self.places[slot].tick = self.tick;
        }
        self.places[slot].spot = Spot::Waiting { node, pull };
        self.nodes.entry(node).or_default().wait(slot, &self.places[slot], pull);
    }

    /// The partition waits for the answer to a Fetch, and it is from this node that it has to come.
    pub fn set_asked(&mut self, slot: usize, node: i32, pull: Pull) {
        match self.place(slot).spot {
            Spot::Asked { node: at, .. } | Spot::Waiting { node: at, .. } if at != node => {
                self.set_wanting(slot, node, pull);
            }
            Spot::Asked { .. } | Spot::Waiting { .. } | Spot::Away => {}
        }
    }

    /// The partition wants nothing.
    pub fn set_away(&mut self, slot: usize) {
        self.place(slot);
        self.take_out(slot);
    }

    /// The lane has news of the partition, or failed. Tells whether it counts (F1).
    pub fn handle_news(&mut self, slot: usize, node: i32, lane: u16, has_records: bool) -> bool {
        if self.place(slot).spot != (Spot::Asked { node, lane }) {
            return false;
        }
        self.take_out(slot);
        let place = &mut self.places[slot];
        place.is_live |= has_records;
        if has_records || is_tail(lane) {
            place.tick = 0;
        }
        true
    }

    /// The request on this lane has ended.
    pub fn handle_done(&mut self, node: i32, lane: u16) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.handle_done(lane);
        }
    }

    /// The next request that may be sent now.
    pub fn next_request(&mut self, now: Now, limits: impl Fn(i32) -> Limits, room: Room) -> Option<Planned> {
        let Self { nodes, places, tick } = self;
        nodes.iter_mut().find_map(|(id, node)| node.next_request(*id, places, tick, now, limits(*id), room))
    }

    fn place(&mut self, slot: usize) -> &Place {
        if self.places.len() <= slot {
            self.places.resize(slot + 1, Place::default());
        }
        &self.places[slot]
    }

    fn take_out(&mut self, slot: usize) {
        let place = &mut self.places[slot];
        match std::mem::take(&mut place.spot) {
            Spot::Away => {}
            Spot::Waiting { node, .. } => {
                if let Some(node) = self.nodes.get_mut(&node) {
                    node.stop_waiting(place.tick);
                }
            }
            Spot::Asked { node, lane } => {
                place.home = lane;
                if let Some(node) = self.nodes.get_mut(&node) {
                    node.leave(slot, lane);
                }
            }
        }
    }
}

fn is_tail(lane: u16) -> bool {
    lane < TAIL_LANES
}

#[cfg(test)]
mod tests;
