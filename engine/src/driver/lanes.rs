//! Which connection to a broker a request takes, and Produce connections that keep the order of their batches.
//!
//! A broker works one request of a connection at a time, so what may be slow must not stand before what may not.

use std::collections::HashMap;

use crate::io::cluster::ClusterClient;
use crate::io::connection::Connection;
use crate::io::error::CallError;

/// Shared Produce connections to a broker; partitions are dealt over them. Until a late partition has its own connection,
/// those that share its lane wait behind it: with three lanes a third of all, which showed in their p99.
const SHARED_LANES: u16 = 8;
/// Own connections for late partitions; more late ones share them.
const OWN_LANES: u16 = 32;
const FIRST_OWN_LANE: u16 = 16;
/// Line-ups of all partitions.
pub(super) const LINE_UP_LANE: u16 = 64;
/// Reading the target's tail.
pub(super) const TAIL_LANE: u16 = 65;
/// The state topic.
pub(super) const STATE_LANE: u16 = 66;
/// First of the connections that Fetch requests take.
pub(super) const FIRST_FETCH_LANE: u16 = 80;

/// The lane of a partition's batches.
pub(super) fn produce_lane(slot: usize, apart: bool) -> u16 {
    let slot = u16::try_from(slot % usize::from(u16::MAX)).unwrap_or(0);
    if apart { FIRST_OWN_LANE + slot % OWN_LANES } else { slot % SHARED_LANES }
}

/// A node and one of its lanes.
pub(super) type LaneKey = (i32, u16);

/// Produce connections to the target. Batches that come while a connection is being opened wait in order.
pub(super) struct ProduceLanes<Q> {
    lanes: HashMap<LaneKey, Lane<Q>>,
    incarnations: u64,
}

enum Lane<Q> {
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
            Some(Lane::Opening { incarnation, .. }) => *incarnation,
            Some(Lane::Open { incarnation, connection }) if connection.is_open() => *incarnation,
            // The next one.
            _ => self.incarnations + 1,
        }
    }

    /// The way of a batch on a lane.
    pub(super) fn way(&mut self, key: LaneKey, batch: Q) -> Way<Q> {
        match self.lanes.get_mut(&key) {
            Some(Lane::Open { connection, .. }) if connection.is_open() => {
                return Way::Open(connection.clone(), batch);
            }
            Some(Lane::Opening { waiting, .. }) => {
                waiting.push(batch);
                return Way::Waits { open: false };
            }
            _ => {}
        }
        self.incarnations += 1;
        let lane = Lane::Opening { incarnation: self.incarnations, waiting: vec![batch] };
        self.lanes.insert(key, lane);
        Way::Waits { open: true }
    }

    /// A connection was opened, or not: gives the batches that waited for it, in order.
    pub(super) fn opened(&mut self, key: LaneKey, connection: Option<&Connection>) -> Vec<Q> {
        let Some(Lane::Opening { incarnation, waiting }) = self.lanes.remove(&key) else { return Vec::new() };
        if let Some(connection) = connection {
            self.lanes.insert(key, Lane::Open { incarnation, connection: connection.clone() });
        }
        waiting
    }
}

/// Opens a lane's connection.
pub(super) async fn open(cluster: ClusterClient, key: LaneKey) -> (LaneKey, Result<Connection, CallError>) {
    let connection = cluster.connection(key.0, key.1).await;
    (key, connection)
}
