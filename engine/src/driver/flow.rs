//! The task of one flow: it brings the clusters together, settles who writes, finds topics, and starts the shard.

mod connect;
mod earlier_copy;
mod first_start;
mod identity;
mod mirrors;
mod state_topic;
mod told;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::sleep;
use twinlog_protocol::fetch::IsolationLevel;

use self::connect::{Connected, check_clusters, connect};
use self::mirrors::SourceState;
use self::told::Told;
use super::ask::Place;
use super::config_sync::{ConfigSyncParts, ConfigSyncTask, MirroredTopics};
use super::partitions::Partitions;
use super::shard::{KnownTopics, NewPartition, Shard, ShardInput, ShardParts};
use super::state_topic::{StateRequest, StateTopic, Waiter};
use super::topic_configs::{self, ConfigReader};
use super::topics::{self, Failure, Prepared};
use crate::clock;
use crate::config::FlowConfig;
use crate::error::Error;
use crate::event::FlowEvent;
use crate::io::cluster::ClusterClient;
use crate::io::lane::Lane;
use crate::io::memory::MemoryBudget;
use crate::machine::cluster_names::ClusterNames;
use crate::machine::deleted_topics::DeletedTopics;
use crate::machine::loss::OnTargetLoss;
use crate::machine::metadata::ClusterMetadata;
use crate::machine::share::Share;
use crate::machine::throttle::Throttle;
use crate::machine::topic_sync::{MirroredTopic, TopicPlan};
use crate::state::PartitionKey;
use crate::status::{FailedTopic, FlowStatus};

/// Requests and answers between the tasks of a flow.
const QUEUE_LENGTH: usize = 1024;
/// Pause before topics that could not be prepared are tried again …
const FAILED_TOPICS_PAUSE: Duration = Duration::from_secs(30);
/// … and if it was only that an answer was lost.
const LOST_ANSWER_PAUSE: Duration = Duration::from_secs(1);
/// Partitions asked about at once.
const ASKED_AT_ONCE: usize = 64;
/// Pause before a question to a partition without leader is asked again.
const LEADER_PAUSE: Duration = Duration::from_millis(200);
/// First epochs lie in 1 ..= this, so that 24,000 more follow and foreign batches are not taken for ours.
const FIRST_EPOCH_MAX: i16 = 8191;

/// What decides which records of a partition are copied, in words: instances that differ here must not share an epoch.
fn deciding_options(config: &FlowConfig) -> &'static str {
    match config.isolation_level {
        IsolationLevel::ReadUncommitted => "isolation.level=read_uncommitted",
        IsolationLevel::ReadCommitted => "isolation.level=read_committed",
    }
}

/// What a flow's task needs from outside.
pub(crate) struct FlowParts {
    pub(crate) config: FlowConfig,
    /// Random numbers of the process.
    pub(crate) seed: u64,
    pub(crate) shared: Shared,
    /// How long the clusters may be out of reach at the start; none means for ever.
    pub(crate) wait: Option<Duration>,
    /// Told when both clusters are reached.
    pub(crate) reached: oneshot::Sender<()>,
    pub(crate) status: watch::Sender<FlowStatus>,
    pub(crate) events: broadcast::Sender<FlowEvent>,
    /// Told who knows how the partitions fare.
    pub(crate) partitions: watch::Sender<Partitions>,
    /// Becomes true when the flow shall come to rest.
    pub(crate) stop: watch::Receiver<bool>,
}

/// What the flows of a process share.
#[derive(Clone)]
pub(crate) struct Shared {
    /// What the clusters of all flows are called.
    pub(crate) cluster_names: Arc<Mutex<ClusterNames>>,
    /// For the records of all flows.
    pub(crate) memory: MemoryBudget,
    /// What of it each flow may fill.
    pub(crate) share: Share,
}

/// Runs a flow until it is stopped.
///
/// # Errors
/// [`Error::Unreachable`] when a cluster is not reached in time, [`Error::Refused`] when the clusters cannot be joined by
/// this flow, [`Error::State`] when the state topic cannot be read.
pub(crate) async fn run(parts: FlowParts) -> Result<(), Error> {
    let FlowParts { config, seed, shared, wait, reached, status, events, partitions, mut stop } = parts;
    let prepare = async {
        let connected = connect(&config, seed, shared.memory.clone(), wait, &status).await?;
        // Nobody may wait for it.
        let _ = reached.send(());
        let ids = check_clusters(&config, &connected, &shared.cluster_names).await?;
        state_topic::ensure(&connected.target, &config).await?;
        Ok::<_, Error>((connected, ids))
    };
    let (Connected { source, target }, ids) = tokio::select! {
        prepared = prepare => prepared?,
        // An error means that the engine is gone, which stops the flow as well.
        _ = stop.wait_for(|stop| *stop) => return Ok(()),
    };
    let (to_shard, inputs) = mpsc::channel(QUEUE_LENGTH);
    partitions.send_replace(Partitions::of(&to_shard));
    let (to_state, requests) = mpsc::channel(QUEUE_LENGTH);
    let mut random = fastrand::Rng::with_seed(seed);
    let instance = random.u64(..);
    let state = StateTopic::new(target.clone(), ids.source, instance, requests, to_shard.clone());
    let shard = Shard::new(ShardParts {
        flow: config.name.clone(),
        source: source.clone(),
        target: target.clone(),
        inputs,
        state: to_state.clone(),
        status,
        events,
        partitions,
        memory: shared.memory,
        share: shared.share,
        throttle: Throttle::new(config.throttle_bytes_per_second),
        fingerprint: fingerprint(deciding_options(&config)),
        isolation_level: config.isolation_level,
        losses: config.losses,
        compression: config.compression,
        source_rack: config.source_rack.clone(),
        first_epoch: random.i16(1..=FIRST_EPOCH_MAX),
    });
    let source_state = SourceState::new(&config.name, source.clone(), ids.target);
    let reader = ConfigReader {
        flow: config.name.clone(),
        source: source.clone(),
        target: target.clone(),
        filter: config.topic_configs.clone(),
        told: Arc::default(),
    };
    let (mirrored, mirrored_seen) = watch::channel(MirroredTopics::default());
    let config_sync = config.sync_topic_configs_interval.map(|interval| ConfigSyncParts {
        reader: reader.clone(),
        interval,
        mirrored: mirrored_seen,
        state: to_state.clone(),
        seed: random.u64(..),
    });
    let stopped = stop.clone();
    let flow =
        Flow { config, source, target, source_state, reader, mirrored, to_shard, to_state, stop, left: None };
    // All end together: what one of them returns first ends the flow, but for the shard, which ends when told.
    tokio::select! {
        result = state.run() => result,
        result = flow.run(shard) => result,
        // In a place of its own: it is large.
        never = Box::pin(sync_configs(config_sync, stopped)) => match never {},
    }
}

/// Keeps topic configs level, if asked to, until the flow stops.
async fn sync_configs(parts: Option<ConfigSyncParts>, mut stop: watch::Receiver<bool>) -> Infallible {
    if let Some(parts) = parts {
        tokio::select! {
            never = ConfigSyncTask::new(parts).run() => match never {},
            // An error means that the engine is gone.
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }
    std::future::pending().await
}

/// A 64-bit FNV-1a hash: it is stored, so it must be the same everywhere and for ever.
fn fingerprint(options: &str) -> u64 {
    options
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

struct Flow {
    config: FlowConfig,
    source: ClusterClient,
    target: ClusterClient,
    source_state: SourceState,
    reader: ConfigReader,
    mirrored: watch::Sender<MirroredTopics>,
    to_shard: mpsc::Sender<ShardInput>,
    to_state: mpsc::Sender<StateRequest>,
    stop: watch::Receiver<bool>,
    /// With `refresh.topics.enabled = false`, once listed: the topics that are still to be prepared, and no others.
    left: Option<BTreeSet<String>>,
}

impl Flow {
    async fn run(mut self, shard: Shard) -> Result<(), Error> {
        let mut shard = tokio::spawn(shard.run());
        let mut stop = self.stop.clone();
        tokio::select! {
            result = self.mirror() => result?,
            // An error means that the engine is gone, which stops the flow as well.
            _ = stop.wait_for(|stop| *stop) => {}
            ended = &mut shard => return ended.map_err(|error| Error::Bug(error.to_string())),
        }
        self.tell(ShardInput::Stop).await;
        shard.await.map_err(|error| Error::Bug(error.to_string()))?;
        let (done, flushed) = oneshot::channel();
        self.ask_state(StateRequest::Flush(done)).await;
        // Fails only when the state task has ended, and its error is the flow's.
        let _ = flushed.await;
        Ok(())
    }

    /// Settles the identity, then looks for topics again and again. Never returns but with an error.
    async fn mirror(&mut self) -> Result<(), Error> {
        self.settle_identity().await?;
        let mut known = self.known_topics().await;
        let mut told = Told::new(&self.config.name);
        let (mut deleted, mut first) = (DeletedTopics::default(), true);
        loop {
            let failures = self.sync_topics(&mut known, &mut told, &mut deleted, first).await;
            if self.config.refresh_topics_interval.is_none() {
                self.left = Some(failures.iter().map(|(topic, _)| topic.clone()).collect());
            }
            let is_passing = failures.iter().any(is_passing);
            // A listing with a lost answer is not the complete one that the flow has to catch up with.
            first &= is_passing;
            let interval = self.config.refresh_topics_interval.unwrap_or(Duration::MAX);
            let interval = interval.min(deleted.look_within().unwrap_or(Duration::MAX));
            sleep(match failures.is_empty() {
                true => interval,
                false if is_passing => interval.min(LOST_ANSWER_PAUSE),
                false => interval.min(FAILED_TOPICS_PAUSE),
            })
            .await;
        }
    }

    async fn refresh_state(&self) {
        let (done, read) = oneshot::channel();
        self.ask_state(StateRequest::Refresh { waiter: Waiter::Flow(done) }).await;
        let _ = read.await;
    }

    async fn producer_id(&self) -> Option<i64> {
        let (answer, asked) = oneshot::channel();
        self.tell(ShardInput::AskProducerId(answer)).await;
        asked.await.ok().flatten()
    }

    async fn known_topics(&self) -> KnownTopics {
        let (answer, asked) = oneshot::channel();
        self.tell(ShardInput::AskKnownTopics(answer)).await;
        asked.await.unwrap_or_default()
    }

    /// The shard and the state task are gone only when the flow ends.
    async fn tell(&self, input: ShardInput) {
        let _ = self.to_shard.send(input).await;
    }

    async fn ask_state(&self, request: StateRequest) {
        let _ = self.to_state.send(request).await;
    }

    /// Compares the clusters' topics, creates what is missing, and gives partitions to the shard. The topics that
    /// failed.
    async fn sync_topics(
        &mut self,
        known: &mut KnownTopics,
        told: &mut Told,
        deleted: &mut DeletedTopics,
        first: bool,
    ) -> Vec<(String, Failure)> {
        let (source, target) = self.both_metadata().await;
        let (mut plan, mut failures) = self.look_at_topics(&source, &target, known).await;
        if let Some(left) = &self.left {
            plan.keep(left);
            failures.retain(|(topic, _)| left.contains(topic));
        }
        if self.config.losses.on_target_loss != OnTargetLoss::Hold {
            deleted.make_again(clock::boot_time(), &mut plan);
        }
        told.left_out(&plan.left_out);
        // What needs no preparation does not wait for what does.
        let there: Vec<MirroredTopic> = plan.ready.iter().chain(&plan.deleted).cloned().collect();
        self.hand_over(&there, known, first).await;
        let Prepared { failures: more, refused } = self.prepare(&plan, known).await;
        failures.extend(more);
        let is_ready =
            |topic: &&MirroredTopic| failures.iter().all(|(failed, _)| *failed != topic.source_topic);
        let prepared: Vec<MirroredTopic> =
            plan.grow.iter().chain(&plan.create).filter(is_ready).cloned().collect();
        if !prepared.is_empty() {
            // A failure shows as partitions without leader, which ask again.
            let _ = self.target.refresh_metadata().await;
        }
        self.hand_over(&prepared, known, first).await;
        let is_part = self.left.is_some();
        self.mirrored.send_modify(|mirrored| {
            if !is_part {
                mirrored.topics.clear();
            }
            mirrored.topics.extend(plan.ready.iter().chain(&prepared).cloned());
            mirrored.refused = refused;
        });
        if first && !failures.iter().any(is_passing) {
            let topics = there.len() + prepared.len();
            tracing::info!(flow = self.config.name, topics, "topics that match");
            if topics == 0 && failures.is_empty() {
                tracing::warn!(
                    flow = self.config.name,
                    "no topic of the source matches; nothing is copied yet"
                );
            }
        }
        told.failed(&failures);
        let failed = failures
            .iter()
            .map(|(topic, why)| FailedTopic { topic: topic.clone(), reason: why.reason().to_owned() });
        let complete = !failures.iter().any(is_passing);
        self.tell(ShardInput::Listed { failed: failed.collect(), complete }).await;
        failures
    }

    /// Gives the partitions of topics that are there on both sides to the shard.
    async fn hand_over(&self, topics: &[MirroredTopic], known: &mut KnownTopics, first: bool) {
        if topics.is_empty() {
            return;
        }
        self.announce(topics, known).await;
        known.copied.extend(topics.iter().map(|topic| topic.target_topic.clone()));
        let compacted = topic_configs::compacted(&self.source, topics).await;
        let new = topics.iter().flat_map(partitions).map(|key| NewPartition {
            source_compacts: compacted.contains(&key.source_topic),
            key,
            catches_up: first,
        });
        self.tell(ShardInput::Add(new.collect())).await;
    }

    async fn both_metadata(&self) -> (Arc<ClusterMetadata>, Arc<ClusterMetadata>) {
        loop {
            // Failures are logged by the client, which also paces the attempts.
            if let (Ok(source), Ok(target)) =
                tokio::join!(self.source.refresh_metadata(), self.target.refresh_metadata())
            {
                return (source, target);
            }
        }
    }

    async fn prepare(&self, plan: &TopicPlan, known: &mut KnownTopics) -> Prepared {
        self.announce(&plan.create, known).await;
        let refused = self.mirrored.borrow().refused.clone();
        let mut prepared =
            topics::create(&self.reader, &self.config, &self.to_state, &plan.create, refused).await;
        topics::grow(&self.target, &plan.grow, &mut prepared).await;
        let undecided = plan.undecided.iter();
        prepared
            .failures
            .extend(undecided.map(|(topic, reason)| (topic.clone(), Failure::Lasting(reason.clone()))));
        prepared
    }
}

/// Where to ask about a partition, if it has a leader.
fn place(cluster: &ClusterClient, topic: &str, partition: i32, lane: Lane) -> Option<Place> {
    let metadata = cluster.metadata();
    let leader = metadata.leader(topic, partition)?;
    Some(Place {
        topic: topic.to_owned(),
        topic_id: metadata.topics.get(topic)?.id,
        partition,
        node: leader.node,
        leader_epoch: leader.epoch,
        lane,
    })
}

fn is_passing((_, why): &(String, Failure)) -> bool {
    matches!(why, Failure::Unanswered(_) | Failure::Passing(_))
}

fn partitions(topic: &MirroredTopic) -> impl Iterator<Item = PartitionKey> + '_ {
    (0..topic.partitions).map(|partition| PartitionKey {
        source_topic: topic.source_topic.clone(),
        target_topic: topic.target_topic.clone(),
        partition,
    })
}
