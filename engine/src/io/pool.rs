//! Open connections by node and lane, opened on demand, one attempt at a time, with back-off per node.
//!
//! A lane is a connection of its own to the same broker: a broker works the requests of one connection one after
//! the other, so what must not wait for a slow Produce takes another lane.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use super::{
    connection::{Connection, ConnectionOptions},
    dial::dial,
    error::{ConnectionError, Fault, Peer},
    lane::{ClientIds, Lane, Role},
    memory::MemoryBudget,
    single_flight::SingleFlight,
    throttle::Silence,
};
use crate::machine::{
    backoff::Backoff,
    metadata::{ClusterMetadata, HostPort},
};

/// How connections are opened.
#[derive(Debug, Clone)]
pub(super) struct PoolOptions {
    pub(super) cluster: Arc<str>,
    pub(super) client_ids: ClientIds,
    pub(super) connect_timeout: Duration,
    pub(super) backoff: Backoff,
    pub(super) connection: ConnectionOptions,
    /// Where records need room.
    pub(super) memory: Option<MemoryBudget>,
}

pub(super) struct Pool {
    options: PoolOptions,
    chance: Mutex<fastrand::Rng>,
    nodes: Mutex<HashMap<i32, Node>>,
}

struct Node {
    server: HostPort,
    redial: Arc<Mutex<Redial>>,
    lanes: HashMap<Lane, Arc<LaneState>>,
    silences: HashMap<Role, Arc<Silence>>,
}

/// When a node may be dialed again.
struct Redial {
    backoff: Backoff,
    not_before: Instant,
}

/// One connection to a node, or the place for it.
pub(super) struct LaneState {
    role: Role,
    silence: Arc<Silence>,
    peer: Arc<Peer>,
    redial: Arc<Mutex<Redial>>,
    open: Mutex<Option<Connection>>,
    dialing: SingleFlight<Result<Connection, ConnectionError>>,
}

impl Pool {
    pub(super) fn new(options: PoolOptions, seed: u64) -> Self {
        Pool {
            options,
            chance: Mutex::new(fastrand::Rng::with_seed(seed)),
            nodes: Mutex::new(HashMap::new()),
        }
    }

    /// A number from 0 up to, but without, 1.
    pub(super) fn chance(&self) -> f64 {
        lock(&self.chance).f64()
    }

    /// An index below `len`, which is not 0.
    pub(super) fn choose(&self, len: usize) -> usize {
        lock(&self.chance).usize(..len)
    }

    /// An open connection: the lane's own, or a new one after the node's back-off.
    pub(super) async fn connection(&self, lane: &LaneState) -> Result<Connection, ConnectionError> {
        if let Some(connection) = lane.open() {
            return Ok(connection);
        }
        lane.dialing.run(async || self.redial(lane).await).await
    }

    /// The lane of a node that listens at `server`. Lanes to where it listened before are given up.
    pub(super) fn lane(&self, id: i32, server: &HostPort, lane: Lane) -> Arc<LaneState> {
        let mut nodes = lock(&self.nodes);
        let node = nodes.entry(id).or_insert_with(|| self.node(server));
        if node.server != *server {
            node.give_up();
            *node = self.node(server);
        }
        let redial = &node.redial;
        let silence = node.silences.entry(lane.role).or_default();
        let state = node.lanes.entry(lane).or_insert_with(|| {
            Arc::new(LaneState {
                role: lane.role,
                silence: Arc::clone(silence),
                peer: self.peer(Some(id), server),
                redial: Arc::clone(redial),
                open: Mutex::new(None),
                dialing: SingleFlight::new(),
            })
        });
        Arc::clone(state)
    }

    /// The connection of a lane if it is open now.
    pub(super) fn open_connection(&self, node: i32, lane: Lane) -> Option<Connection> {
        let state = Arc::clone(lock(&self.nodes).get(&node)?.lanes.get(&lane)?);
        state.open()
    }

    /// Whether the last attempt to reach the node failed and its back-off is not over.
    pub(super) fn is_backing_off(&self, node: i32) -> bool {
        let redial = lock(&self.nodes).get(&node).map(|node| Arc::clone(&node.redial));
        redial.is_some_and(|redial| lock(&redial).not_before > Instant::now())
    }

    /// A connection that stays outside the pool, to a server whose node id is not known.
    pub(super) async fn bootstrap(&self, server: &HostPort) -> Result<Connection, ConnectionError> {
        self.open(&self.peer(None, server), Role::Admin, &Arc::default()).await
    }

    /// Gives up the connections to brokers that listen elsewhere now.
    pub(super) fn retire_moved(&self, metadata: &ClusterMetadata) {
        lock(&self.nodes).retain(|id, node| {
            let has_moved = metadata.brokers.get(id).is_some_and(|broker| broker.server != node.server);
            if has_moved {
                node.give_up();
            }
            !has_moved
        });
    }

    fn peer(&self, node: Option<i32>, server: &HostPort) -> Arc<Peer> {
        let cluster = Arc::clone(&self.options.cluster);
        Arc::new(Peer { cluster, node, server: server.clone(), address: None })
    }

    fn node(&self, server: &HostPort) -> Node {
        let redial = Redial { backoff: self.options.backoff.clone(), not_before: Instant::now() };
        Node {
            server: server.clone(),
            redial: Arc::new(Mutex::new(redial)),
            lanes: HashMap::new(),
            silences: HashMap::new(),
        }
    }

    async fn redial(&self, lane: &LaneState) -> Result<Connection, ConnectionError> {
        if let Some(connection) = lane.open() {
            return Ok(connection);
        }
        let not_before = lock(&lane.redial).not_before;
        sleep_until(not_before).await;
        let opened = self.open(&lane.peer, lane.role, &lane.silence).await;
        let chance = self.chance();
        let mut redial = lock(&lane.redial);
        match &opened {
            Ok(connection) => {
                redial.backoff.reset();
                *lock(&lane.open) = Some(connection.clone());
            }
            Err(_) => redial.not_before = Instant::now() + redial.backoff.failed(chance),
        }
        opened
    }

    async fn open(
        &self,
        peer: &Arc<Peer>,
        role: Role,
        silence: &Arc<Silence>,
    ) -> Result<Connection, ConnectionError> {
        match dial(&peer.server, self.options.connect_timeout).await {
            Ok((stream, address)) => {
                let peer = Arc::new(Peer { address: Some(address), ..Peer::clone(peer) });
                let (reading, writing) = stream.into_split();
                let (client_id, silence) =
                    (Arc::clone(self.options.client_ids.of(role)), Arc::clone(silence));
                let memory = self.options.memory.clone().filter(|_| role == Role::Consumer);
                let options =
                    ConnectionOptions { client_id, silence, memory, ..self.options.connection.clone() };
                Connection::open(reading, writing, peer, options).await
            }
            Err(error) => Err(ConnectionError::new(peer, Arc::new(Fault::Dial(error)), false)),
        }
    }
}

impl Node {
    fn give_up(&self) {
        for lane in self.lanes.values() {
            if let Some(connection) = lock(&lane.open).take() {
                connection.give_up();
            }
        }
    }
}

impl LaneState {
    fn open(&self) -> Option<Connection> {
        lock(&self.open).as_ref().filter(|connection| connection.is_open()).cloned()
    }
}

/// No step under the locks of this module can leave its data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
