//! Which connection to a broker a request takes, and Produce connections that keep the order of their batches.
//!
//! A broker works one request of a connection at a time, so what may be slow must not stand before what may not.

use std::collections::HashMap;

use crate::io::cluster::ClusterClient;
use crate::io::connection::Connection;
use crate::io::error::CallError;
use crate::io::lane::Lane;

/// Shared Produce connections to a broker; partitions are dealt over them. Until a late partition has its own connection,
/// those that share its lane wait behind it: with three lanes a third of all, which showed in their p99.
const SHARED_LANES: u16 = 8;
/// Own connections for late partitions; more late ones share them.
const OWN_LANES: u16 = 32;
const FIRST_OWN_LANE: u16 = 16;
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

/// The lane of a partition's batches.
pub(super) fn produce_lane(slot: usize, apart: bool) -> Lane {
    let slot = u16::try_from(slot % usize::from(u16::MAX)).unwrap_or(0);
    Lane::producer(if apart { FIRST_OWN_LANE + slot % OWN_LANES } else { slot % SHARED_LANES })
}

/// The connection of a Fetch request, by the number of its lane in the fetch plan.
pub(super) fn fetch_lane(number: u16) -> Lane {
    Lane::consumer(FIRST_FETCH_LANE + number)
}

/// A node and one of its lanes.
pub(super) type LaneKey = (i32, Lane);

/// Produce connections to the target. Batches that come while a connection is being opened wait in order.
pub(super) struct ProduceLanes<Q> {
    lanes: HashMap<LaneKey, ProduceLane<Q>>,
    incarnations: u64,
}

enum ProduceLane<Q> {
    Opening { incarnation: u64, waiting: Vec<Q> },
    Open { incarnation: u64, connection: Connection },
}

/// What to do with a batch.
pub(super) enum Way<Q> {
    /// Send it on this connection.
    Open(Connection, Q),
    /// It waits for the connection that is being opened; `open` tells that the caller shall open it.
    Waits { open: bool },
}

impl<Q> ProduceLanes<Q> {
    pub(super) fn new() -> Self {
        Self { lanes: HashMap::new(), incarnations: 0 }
    }

    /// The connection that a lane has now, by number: another number is another connection.
    pub(super) fn incarnation(&mut self, key: LaneKey) -> u64 {
        match self.lanes.get(&key) {
            Some(ProduceLane::Opening { incarnation, .. }) => *incarnation,
            Some(ProduceLane::Open { incarnation, connection }) if connection.is_open() => *incarnation,
            // The next one.
            _ => self.incarnations + 1,
        }
    }

    /// The way of a batch on a lane.
    pub(super) fn way(&mut self, key: LaneKey, batch: Q) -> Way<Q> {
        match self.lanes.get_mut(&key) {
            Some(ProduceLane::Open { connection, .. }) if connection.is_open() => {
                return Way::Open(connection.clone(), batch);
            }
            Some(ProduceLane::Opening { waiting, .. }) => {
                waiting.push(batch);
                return Way::Waits { open: false };
            }
            _ => {}
        }
        self.incarnations += 1;
        let lane = ProduceLane::Opening { incarnation: self.incarnations, waiting: vec![batch] };
        self.lanes.insert(key, lane);
        Way::Waits { open: true }
    }

    /// A connection was opened, or not: gives the batches that waited for it, in order.
    pub(super) fn opened(&mut self, key: LaneKey, connection: Option<&Connection>) -> Vec<Q> {
        let Some(ProduceLane::Opening { incarnation, waiting }) = self.lanes.remove(&key) else {
            return Vec::new();
        };
        if let Some(connection) = connection {
            self.lanes.insert(key, ProduceLane::Open { incarnation, connection: connection.clone() });
        }
        waiting
    }
}

/// Opens a lane's connection.
pub(super) async fn open(cluster: ClusterClient, key: LaneKey) -> (LaneKey, Result<Connection, CallError>) {
    let connection = cluster.connection(key.0, key.1).await;
    (key, connection)
}
