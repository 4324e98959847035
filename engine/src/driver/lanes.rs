//! Which connection to a broker a request takes, and Produce connections that keep the order of their batches.
//!
//! A broker works one request of a connection at a time, so what may be slow must not stand before what may not.

use std::collections::BTreeMap;

use crate::io::cluster::ClusterClient;
use crate::io::connection::Connection;
use crate::io::error::CallError;
use crate::io::lane::Lane;

/// Shared Produce connections to a broker; partitions are dealt over them. Until a late partition has its own connection,
/// those that share its lane wait behind it: with three lanes a third of all, which showed in their p99.
const SHARED_LANES: usize = 8;
/// Partitions that share a lane before the next one is taken: their batches go together. With more of them the broker had
/// less to do, but did it one by one: with four the copy of four compressed partitions took a quarter longer.
const TOGETHER: usize = 2;
/// Own connections for late partitions; more late ones share them.
const OWN_LANES: usize = 32;
const FIRST_OWN_LANE: usize = 16;
/// Line-ups of all partitions.
pub(super) const LINE_UP_LANE: Lane = Lane::admin(64);
/// Reading the target's tail.
pub(super) const TARGET_TAIL_LANE: Lane = Lane::admin(65);
/// Reading at the source what is not copied right away: a search for an earlier copy, the state topic there.
pub(super) const SOURCE_SEARCH_LANE: Lane = Lane::consumer(65);
/// The state topic.
pub(super) const STATE_LANE: Lane = Lane::admin(66);
/// Topic configs while running: many topics in a request, so nothing else waits behind it.
pub(super) const CONFIG_LANE: Lane = Lane::admin(67);
/// First of the connections that Fetch requests take.
const FIRST_FETCH_LANE: u16 = 80;

/// The lane of a partition's batches, by its number among the partitions of its leader.
pub(super) fn produce_lane(number: usize, apart: bool) -> Lane {
    let lane = if apart { FIRST_OWN_LANE + number % OWN_LANES } else { number / TOGETHER % SHARED_LANES };
    Lane::producer(u16::try_from(lane).unwrap_or(0))
}

/// The connection of a Fetch request, by the number of its lane in the fetch plan.
pub(super) fn fetch_lane(number: u16) -> Lane {
    Lane::consumer(FIRST_FETCH_LANE + number)
}

/// A node and one of its lanes.
pub(super) type LaneKey = (i32, Lane);

/// Produce connections to the target. Batches wait in order until all that are ready at the moment are there, and while a
/// connection is being opened.
pub(super) struct ProduceLanes<B> {
    lanes: BTreeMap<LaneKey, ProduceLane<B>>,
    incarnations: u64,
    /// Those where something waits and can be sent.
    ready: Vec<LaneKey>,
}

struct ProduceLane<B> {
    incarnation: u64,
    /// None while it is being opened.
    connection: Option<Connection>,
    waiting: Vec<B>,
}

impl<B> ProduceLane<B> {
    /// What waits for a connection that has ended has to fail with it: what was sent before is in doubt.
    fn takes_more(&self) -> bool {
        !self.waiting.is_empty() || self.connection.as_ref().is_none_or(Connection::is_open)
    }
}

impl<B> ProduceLanes<B> {
    pub(super) fn new() -> Self {
        Self { lanes: BTreeMap::new(), incarnations: 0, ready: Vec::new() }
    }

    /// The connection that a lane has now, by number: another number is another connection.
    pub(super) fn incarnation(&self, key: LaneKey) -> u64 {
        match self.lanes.get(&key) {
            Some(lane) if lane.takes_more() => lane.incarnation,
            // The next one.
            _ => self.incarnations + 1,
        }
    }

    /// Puts a batch at the end of a lane; tells whether the caller shall open its connection.
    pub(super) fn push(&mut self, key: LaneKey, batch: B) -> bool {
        let lane = self.lanes.get_mut(&key).filter(|lane| lane.takes_more());
        if let Some(lane) = lane {
            if lane.waiting.is_empty() && lane.connection.is_some() {
                self.ready.push(key);
            }
            lane.waiting.push(batch);
            return false;
        }
        self.incarnations += 1;
        let lane = ProduceLane { incarnation: self.incarnations, connection: None, waiting: vec![batch] };
        self.lanes.insert(key, lane);
        true
    }

    /// A connection was opened, or not: then these batches are lost.
    pub(super) fn opened(&mut self, key: LaneKey, connection: Option<Connection>) -> Vec<B> {
        let Some(lane) = self.lanes.get_mut(&key).filter(|lane| lane.connection.is_none()) else {
            return Vec::new();
        };
        if connection.is_none() {
            return self.lanes.remove(&key).map_or_else(Vec::new, |lane| lane.waiting);
        }
        lane.connection = connection;
        self.ready.push(key);
        Vec::new()
    }

    /// A connection and all that waits to be sent over it, in order.
    pub(super) fn take_ready(&mut self) -> Option<(Connection, Vec<B>)> {
        while let Some(key) = self.ready.pop() {
            let Some(lane) = self.lanes.get_mut(&key) else { continue };
            if let Some(connection) = &lane.connection {
                return Some((connection.clone(), std::mem::take(&mut lane.waiting)));
            }
        }
        None
    }
}

/// Opens a lane's connection.
pub(super) async fn open(cluster: ClusterClient, key: LaneKey) -> (LaneKey, Result<Connection, CallError>) {
    let connection = cluster.connection(key.0, key.1).await;
    (key, connection)
}
