//! A client of one cluster: finds the brokers, keeps the metadata fresh, hands out connections.
//!
//! It decides nothing about requests: what to send again, and when, is the caller's matter. Answers of the
//! metadata go to all who watch as snapshots.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use twinlog_protocol::{
    frame,
    message::{Request, types::MetadataRequest},
};

use super::{
    connection::{Connection, ConnectionOptions},
    error::CallError,
    lane::{ClientIds, Lane},
    memory::MemoryBudget,
    pool::{Pool, PoolOptions},
    single_flight::SingleFlight,
};
use crate::machine::{
    backoff::Backoff,
    metadata::{ClusterMetadata, HostPort},
};

/// The lane of requests that any broker or the controller answers, metadata among them. Callers' own lanes count
/// from 0.
pub const CONTROL_LANE: Lane = Lane::admin(u16::MAX);

/// How long nobody answers before that is told, and how often it is told again.
const OUTAGE_TOLD_AFTER: Duration = Duration::from_millis(500);
const OUTAGE_TOLD_EVERY: Duration = Duration::from_secs(60);

/// How to reach a cluster. Names and values in brackets are those of Kafka's clients.
#[derive(Debug, Clone)]
pub struct ClusterConfig {
    /// The cluster's name in the configuration; errors and logs carry it.
    pub alias: Arc<str>,
    /// The brokers to try first (`bootstrap.servers`).
    pub bootstrap: Vec<HostPort>,
    /// The names that brokers show in logs and quotas (`client.id`).
    pub client_ids: ClientIds,
    /// For the look-up of a name and for each of its addresses (`socket.connection.setup.timeout.ms`, 10 s).
    pub connect_timeout: Duration,
    /// For each request of [`ClusterClient::call`] (`request.timeout.ms`, 30 s).
    pub request_timeout: Duration,
    /// Wait after the first failure to reach a node, and at most (`reconnect.backoff.ms`, 50 ms, and
    /// `reconnect.backoff.max.ms`, 1 s).
    pub reconnect_backoff: (Duration, Duration),
    /// Least time between two metadata requests, and most after failures (`retry.backoff.ms`, 100 ms, and
    /// `retry.backoff.max.ms`, 1 s).
    pub metadata_backoff: (Duration, Duration),
    /// The longest answer to take, in bytes (100 MiB); whoever fetches adds what it asks for.
    pub answer_bytes_max: usize,
    /// Where answers with records need room, if they do.
    pub memory: Option<MemoryBudget>,
}

impl ClusterConfig {
    /// A configuration with the values in brackets.
    pub fn new(alias: &str, bootstrap: Vec<HostPort>) -> Self {
        ClusterConfig {
            alias: Arc::from(alias),
            bootstrap,
            client_ids: ClientIds::all("twinlog"),
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            reconnect_backoff: (Duration::from_millis(50), Duration::from_secs(1)),
            metadata_backoff: (Duration::from_millis(100), Duration::from_secs(1)),
            answer_bytes_max: frame::ANSWER_BYTES_MAX,
            memory: None,
        }
    }
}

/// Whom to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Any broker.
    Any,
    /// The controller, or the broker that forwards to it.
    Controller,
    /// A node, on one of its lanes.
    Node {
        /// Its id.
        node: i32,
        /// The connection to take.
        lane: Lane,
    },
}

/// A client of one cluster; clones share it. Connections close when the last clone and the last [`Connection`] of it
/// are gone.
#[derive(Clone)]
pub struct ClusterClient {
    inner: Arc<Inner>,
}

struct Inner {
    config: ClusterConfig,
    pool: Pool,
    metadata: watch::Sender<Arc<ClusterMetadata>>,
    /// The failure of the last refresh; nothing after a success.
    last_error: watch::Sender<Option<CallError>>,
    refresh: SingleFlight<Result<Arc<ClusterMetadata>, CallError>>,
    pace: tokio::sync::Mutex<Pace>,
}

/// When the metadata may be asked for again, and since when nobody answers.
struct Pace {
    backoff: Backoff,
    not_before: Instant,
    outage: Option<Outage>,
}

struct Outage {
    since: Instant,
    told_at: Option<Instant>,
}

impl Outage {
    /// A broker that went away while another one is there is no outage: only what lasts is told, and then seldom.
    fn must_be_told(&self, now: Instant) -> bool {
        match self.told_at {
            None => now - self.since >= OUTAGE_TOLD_AFTER,
            Some(at) => now - at >= OUTAGE_TOLD_EVERY,
        }
    }
}

impl ClusterClient {
    /// A client that has not yet spoken to anybody; see [`Self::bootstrapped`]. `seed` decides jitter and the order
    /// in which brokers are tried.
    pub fn new(config: ClusterConfig, seed: u64) -> Self {
        let (first, longest) = config.reconnect_backoff;
        let pool = PoolOptions {
            cluster: Arc::clone(&config.alias),
            client_ids: config.client_ids.clone(),
            connect_timeout: config.connect_timeout,
            backoff: Backoff::new(first, longest),
            connection: ConnectionOptions {
                answer_bytes_max: config.answer_bytes_max,
                handshake_timeout: config.connect_timeout,
                ..ConnectionOptions::default()
            },
            memory: config.memory.clone(),
        };
        let (least, longest) = config.metadata_backoff;
        let pace = Pace { backoff: Backoff::new(least, longest), not_before: Instant::now(), outage: None };
        ClusterClient {
            inner: Arc::new(Inner {
                pool: Pool::new(pool, seed),
                metadata: watch::Sender::new(Arc::default()),
                last_error: watch::Sender::new(None),
                refresh: SingleFlight::new(),
                pace: tokio::sync::Mutex::new(pace),
                config,
            }),
        }
    }

    /// A client that knows its cluster: [`Self::new`] and [`Self::bootstrapped`] in one.
    pub async fn connect(config: ClusterConfig, seed: u64) -> Self {
        let client = Self::new(config, seed);
        client.bootstrapped().await;
        client
    }

    /// Waits until the cluster has told its metadata once, trying every bootstrap server again and again, for
    /// ever. A caller that puts a limit on it finds the reason in [`Self::last_error`].
    pub async fn bootstrapped(&self) -> Arc<ClusterMetadata> {
        while self.metadata().brokers.is_empty() {
            // A failure is logged, and kept in `last_error`.
            let _ = self.refresh_metadata().await;
        }
        self.metadata()
    }

    /// The cluster's name in the configuration.
    pub fn alias(&self) -> &str {
        &self.inner.config.alias
    }

    /// The configuration in use.
    pub fn config(&self) -> &ClusterConfig {
        &self.inner.config
    }

    /// The newest snapshot; empty before the first answer.
    pub fn metadata(&self) -> Arc<ClusterMetadata> {
        Arc::clone(&self.inner.metadata.borrow())
    }

    /// All snapshots to come, and the newest one.
    pub fn watch_metadata(&self) -> watch::Receiver<Arc<ClusterMetadata>> {
        self.inner.metadata.subscribe()
    }

    /// Whether somebody answered the last refresh of the metadata.
    pub fn is_reached(&self) -> bool {
        self.inner.last_error.borrow().is_none()
    }

    /// Why the last refresh of the metadata failed; nothing if it did not.
    pub fn last_error(&self) -> Option<CallError> {
        self.inner.last_error.borrow().clone()
    }

    /// A snapshot that was asked for after this call. At most one request is under way; many callers share one; a
    /// pause lies between two, growing while they fail.
    ///
    /// # Errors
    /// [`CallError`] of this one attempt, when no broker answered.
    pub async fn refresh_metadata(&self) -> Result<Arc<ClusterMetadata>, CallError> {
        self.inner.refresh.run(async || self.inner.refresh_metadata().await).await
    }

    /// An open connection to a node; opened if need be, after a pause if the last attempts failed. One attempt.
    ///
    /// # Errors
    /// [`CallError::UnknownNode`]; [`CallError::Connection`] when no connection could be opened. Metadata may be
    /// old in both cases.
    pub async fn connection(&self, node: i32, lane: Lane) -> Result<Connection, CallError> {
        self.inner.connection(node, lane).await
    }

    /// A connection to any broker: an open one, else to a broker that does not back off, else to a bootstrap server.
    ///
    /// # Errors
    /// [`CallError::Connection`] of the last attempt when none could be opened.
    pub async fn any(&self) -> Result<Connection, CallError> {
        self.inner.any().await
    }

    /// A connection for requests to the controller.
    ///
    /// # Errors
    /// [`CallError::NoController`], and those of [`Self::connection`].
    pub async fn controller(&self) -> Result<Connection, CallError> {
        let cluster = Arc::clone(&self.inner.config.alias);
        let node = self.metadata().controller.ok_or(CallError::NoController { cluster })?;
        self.connection(node, CONTROL_LANE).await
    }

    /// Asks in the highest version that the broker and we know, and waits for the answer. One attempt.
    ///
    /// # Errors
    /// [`CallError`]; error codes in the answer are the caller's.
    pub async fn call<R: Request>(&self, target: Target, request: &R) -> Result<R::Response, CallError> {
        let connection = match target {
            Target::Any => self.any().await?,
            Target::Controller => self.controller().await?,
            Target::Node { node, lane } => self.connection(node, lane).await?,
        };
        connection.call(request, self.inner.config.request_timeout).await
    }
}

impl Inner {
    async fn refresh_metadata(&self) -> Result<Arc<ClusterMetadata>, CallError> {
        // Only the one working caller of the single flight comes here, so nobody waits for this lock.
        let mut pace = self.pace.lock().await;
        sleep_until(pace.not_before).await;
        let result = self.ask_for_metadata().await;
        match &result {
            Ok(metadata) => {
                pace.backoff.reset();
                pace.not_before = Instant::now() + self.config.metadata_backoff.0;
                self.metadata.send_replace(Arc::clone(metadata));
                // After the new addresses are out, so that nobody brings an old one back.
                self.pool.retire_moved(metadata);
            }
            Err(_) => pace.not_before = Instant::now() + pace.backoff.failed(self.pool.chance()),
        }
        self.tell(&mut pace, result.as_ref().err());
        self.last_error.send_replace(result.as_ref().err().cloned());
        result
    }

    /// Says when nobody answers, and when somebody does again.
    fn tell(&self, pace: &mut Pace, error: Option<&CallError>) {
        let (now, cluster) = (Instant::now(), &self.config.alias);
        let Some(error) = error else {
            if let Some(outage) = pace.outage.take().filter(|outage| outage.told_at.is_some()) {
                tracing::info!(%cluster, "cluster reached after {} s", (now - outage.since).as_secs());
            }
            return;
        };
        let outage = pace.outage.get_or_insert(Outage { since: now, told_at: None });
        if outage.must_be_told(now) {
            outage.told_at = Some(now);
            let so_long = match (now - outage.since).as_secs() {
                0 => String::new(),
                seconds => format!(" for {seconds} s"),
            };
            tracing::warn!(%cluster, "cluster not reached{so_long}, still trying: {error}");
        } else {
            tracing::debug!(%cluster, "cluster not reached: {error}");
        }
    }

    async fn ask_for_metadata(&self) -> Result<Arc<ClusterMetadata>, CallError> {
        let connection = self.any().await?;
        let request = MetadataRequest::default().with_topics(None).with_allow_auto_topic_creation(false);
        let answer = connection.call(&request, self.config.request_timeout).await?;
        let cluster = Arc::clone(&self.config.alias);
        if answer.error_code != 0 {
            let reason = "the broker gave an error instead";
            return Err(CallError::Metadata { cluster, reason, code: answer.error_code });
        }
        let metadata = self.metadata.borrow().merged(&answer);
        if metadata.brokers.is_empty() {
            let reason = "it names no broker; the cluster may be starting";
            return Err(CallError::Metadata { cluster, reason, code: 0 });
        }
        Ok(Arc::new(metadata))
    }

    async fn connection(&self, node: i32, lane: Lane) -> Result<Connection, CallError> {
        let lane = {
            // Borrowed until the lane is chosen, so that no newer snapshot comes between.
            let metadata = self.metadata.borrow();
            metadata.brokers.get(&node).map(|broker| self.pool.lane(node, &broker.server, lane))
        };
        match lane {
            Some(lane) => Ok(self.pool.connection(&lane).await?),
            None => Err(CallError::UnknownNode { cluster: Arc::clone(&self.config.alias), node }),
        }
    }

    async fn any(&self) -> Result<Connection, CallError> {
        let mut nodes: Vec<i32> = self.metadata.borrow().brokers.keys().copied().collect();
        self.rotate(&mut nodes);
        if let Some(open) = nodes.iter().find_map(|&node| self.pool.open_connection(node, CONTROL_LANE)) {
            return Ok(open);
        }
        for node in nodes {
            if self.pool.is_backing_off(node) {
                continue;
            }
            match self.connection(node, CONTROL_LANE).await {
                Ok(connection) => return Ok(connection),
                Err(error) => {
                    tracing::debug!(cluster = %self.config.alias, node, "broker not reached: {error}");
                }
            }
        }
        self.any_bootstrap_server().await
    }

    async fn any_bootstrap_server(&self) -> Result<Connection, CallError> {
        let mut servers: Vec<_> = self.config.bootstrap.iter().collect();
        self.rotate(&mut servers);
        let mut last = None;
        for server in servers {
            match self.pool.bootstrap(server).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) => Err(error.into()),
            None => {
                let cluster = Arc::clone(&self.config.alias);
                Err(CallError::Metadata { cluster, reason: "no bootstrap server is configured", code: 0 })
            }
        }
    }

    /// Begins at a random place, so that instances spread over the brokers.
    fn rotate<T>(&self, items: &mut [T]) {
        if !items.is_empty() {
            items.rotate_left(self.pool.choose(items.len()));
        }
    }
}

#[cfg(test)]
mod tests;
