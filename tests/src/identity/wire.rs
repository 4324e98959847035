//! Batches on their way to the target: in order on a connection that may be cut off, and again later on another one.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{task::JoinSet, time::sleep};
use twinlog_engine::{
    io::{
        connection::{Connection, Expects, Frame, Pending},
        error::CallError,
        lane::Lane,
    },
    machine::{partition::RequestFailure, produce_window::ProduceAnswer},
};
use twinlog_protocol::{
    DecodeError, ErrorCode,
    batch::Forwarded,
    produce::{ProducePartition, ProduceResponse, produce_frame},
    versions::Api,
};

use super::{Field, ask::Place};

/// A batch in so many comes again.
const STALE_EVERY: u32 = 20;
/// A connection in so many batches is cut off.
const DROP_EVERY: u32 = 30;
/// Batches remembered; beyond that a random one is forgotten.
const MEMORY_MAX: usize = 2000;
/// Repeats come this late, at most.
const LATENESS_MAX_MS: u64 = 3000;
/// Lanes of repeats begin here, one for each partition.
const STALE_LANE: u16 = 128;
const ACKS_ALL: i16 = -1;
const REPLICATION_TIMEOUT_MS: i32 = 5_000;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// A batch that was sent: its answer is [`Sending::answer`].
pub(super) struct Sending {
    connection: Connection,
    version: i16,
    pending: Pending,
}

impl Sending {
    pub(super) async fn answer(self) -> ProduceAnswer {
        let Ok(body) = self.connection.body(self.pending, self.version).await else {
            return ProduceAnswer::Lost;
        };
        let Ok(response) = ProduceResponse::decode(self.version, body) else { return ProduceAnswer::Lost };
        let Some(partition) = response.partitions.into_iter().next() else { return ProduceAnswer::Lost };
        match ErrorCode::check(partition.error_code) {
            Ok(()) => {
                ProduceAnswer::Acknowledged { base_offset: partition.base_offset, log_append_time_ms: -1 }
            }
            Err(code) => {
                ProduceAnswer::Failed { code, detail: partition.error_message.unwrap_or_default(), named: 0 }
            }
        }
    }
}

/// The way of one instance's batches for one partition.
pub(super) struct Wire {
    field: Arc<Field>,
    random: fastrand::Rng,
    /// With the node that it leads to.
    connection: Option<(i32, Connection)>,
    under_way: usize,
    memory: Vec<Forwarded>,
    /// Repeats and cuts to come.
    later: JoinSet<()>,
}

impl Wire {
    pub(super) fn new(field: Arc<Field>, random: fastrand::Rng) -> Self {
        let (connection, memory, later) = (None, Vec::new(), JoinSet::new());
        Self { field, random, connection, under_way: 0, memory, later }
    }

    /// Sends a batch, or tells that it will have no answer. Behind others that are under way it goes over the same
    /// connection or not at all.
    pub(super) async fn send(&mut self, place: &Place, batch: Forwarded) -> Result<Sending, RequestFailure> {
        let connection = self.connection_to(place).await?;
        let sending = submit(&connection, place, batch.clone())?;
        self.under_way += 1;
        if self.random.u32(0..DROP_EVERY) == 0 {
            let (field, pause) = (Arc::clone(&self.field), Duration::from_micros(self.random.u64(0..5000)));
            self.later.spawn(async move {
                sleep(pause).await;
                cut(&connection);
                field.counts.dropped.fetch_add(1, Ordering::Relaxed);
            });
        }
        self.remember(batch);
        if self.random.u32(0..STALE_EVERY) == 0 {
            self.repeat(place.clone());
        }
        while self.later.try_join_next().is_some() {}
        Ok(sending)
    }

    /// A batch was answered, or never will be.
    pub(super) fn answered(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// The process is gone: what it had not written yet never comes.
    pub(super) fn crash(&mut self) {
        if let Some((_, connection)) = self.connection.take() {
            cut(&connection);
        }
        self.under_way = 0;
    }

    /// Waits for the last repeat.
    pub(super) async fn rest(mut self) {
        while self.later.join_next().await.is_some() {}
    }

    async fn connection_to(&mut self, place: &Place) -> Result<Connection, RequestFailure> {
        let Some(node) = place.leader.node else {
            return Err(RequestFailure::Unanswered("no leader".to_owned()));
        };
        match &self.connection {
            Some((to, connection)) if *to == node && connection.is_open() => Ok(connection.clone()),
            Some(_) if self.under_way > 0 => {
                Err(RequestFailure::Unanswered("the connection of those before it is gone".to_owned()))
            }
            _ => {
                let lane = u16::try_from(place.partition).unwrap_or_default();
                let connection = place.cluster.connection(node, Lane::producer(lane)).await?;
                self.connection = Some((node, connection.clone()));
                Ok(connection)
            }
        }
    }

    fn remember(&mut self, batch: Forwarded) {
        if self.memory.len() == MEMORY_MAX {
            self.memory.swap_remove(self.random.usize(0..MEMORY_MAX));
        }
        self.memory.push(batch);
    }

    /// Sends a batch of any age again, sooner or later.
    fn repeat(&mut self, place: Place) {
        let batch = self.memory[self.random.usize(0..self.memory.len())].clone();
        let (field, pause) = (Arc::clone(&self.field), self.random.u64(0..LATENESS_MAX_MS));
        self.later.spawn(async move {
            sleep(Duration::from_millis(pause)).await;
            // Whoever leads by then: a new leader has to know the old batches too.
            let Some(leader) = place.cluster.metadata().leader(&place.topic, place.partition) else { return };
            let lane = STALE_LANE + u16::try_from(place.partition).unwrap_or_default();
            let Ok(connection) = place.cluster.connection(leader.node, Lane::producer(lane)).await else {
                return;
            };
            if let Ok(sending) = submit(&connection, &place, batch) {
                field.counts.stale.fetch_add(1, Ordering::Relaxed);
                sending.answer().await;
            }
        });
    }
}

fn submit(connection: &Connection, place: &Place, batch: Forwarded) -> Result<Sending, RequestFailure> {
    let version = connection
        .version(Api::Produce)
        .map_err(|_| RequestFailure::Broker(ErrorCode::UnsupportedVersion))?;
    let (topic, topic_id) = (place.topic.as_str().into(), place.leader.topic_id);
    let batches = [ProducePartition { topic, topic_id, partition: place.partition, batch }];
    let expects = Expects { api: Api::Produce, timeout: ANSWER_TIMEOUT };
    let pending = connection.submit(expects, |correlation_id| {
        let client_id = connection.client_id();
        let frame =
            produce_frame(version, correlation_id, client_id, ACKS_ALL, REPLICATION_TIMEOUT_MS, &batches)?;
        Ok::<Frame, CallError>(frame)
    })?;
    Ok(Sending { connection: connection.clone(), version, pending })
}

/// Ends a connection at once, with whatever is under way on it.
fn cut(connection: &Connection) {
    let reason = "cut off by the test".to_owned();
    // Those who wait for answers are told by the connection itself.
    let _ = connection.undecodable(Api::Produce, DecodeError::Refused { what: "connection", reason });
}
