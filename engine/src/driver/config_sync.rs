//! Keeps the configs of mirrors level with their sources while a flow runs: it carries out what
//! [`ConfigSync`](crate::machine::config_sync) decides.
//!
//! It takes the flow's list of topics as it is, uses connections of its own, and waits for nobody but the state task: what
//! is slow or refused here keeps neither the listing of topics nor the copying waiting.

mod alter;

use std::collections::{BTreeSet, HashSet};
use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep};
use twinlog_protocol::ErrorCode;
use twinlog_protocol::versions::Api;

use self::alter::Alteration;
use super::lanes::CONFIG_LANE;
use super::state_topic::{StateRequest, Waiter, store_settings};
use super::topic_configs::{ConfigReader, TOPICS_AT_ONCE, Untold, mirror_settings};
use super::topics::Refused;
use crate::io::cluster::{ClusterClient, Target};
use crate::io::error::CallError;
use crate::machine::backoff::Backoff;
use crate::machine::config_sync::{ConfigSync, Plan};
use crate::machine::topic_sync::MirroredTopic;
use crate::policy::SourceConfigs;
use crate::state::Settings;

/// Pauses before topics that could not be synced for a passing reason are tried again: the first one, and the longest.
const AGAIN_AFTER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long what is known of other instances' settings may be old.
const REFRESH_EVERY: Duration = Duration::from_secs(60);
/// Pause before the target is asked again what it speaks.
const REACH_PAUSE: Duration = Duration::from_secs(1);
/// Complaints that are kept in mind, so that none is repeated.
const COMPLAINTS_MAX: usize = 10_000;

/// What the flow tells of its topics.
#[derive(Debug, Default)]
pub(super) struct MirroredTopics {
    /// Those that are there on both sides.
    pub(super) topics: Vec<MirroredTopic>,
    /// What the target would not take when topics were created.
    pub(super) refused: Refused,
}

/// What the task is made of.
pub(super) struct ConfigSyncParts {
    pub(super) reader: ConfigReader,
    pub(super) interval: Duration,
    pub(super) mirrored: watch::Receiver<MirroredTopics>,
    pub(super) state: mpsc::Sender<StateRequest>,
    pub(super) seed: u64,
}

/// The task.
pub(super) struct ConfigSyncTask {
    parts: ConfigSyncParts,
    sync: ConfigSync,
    random: fastrand::Rng,
    /// Counts requests, so that the brokers take turns.
    turn: usize,
    /// What was complained about.
    told: HashSet<String>,
    /// When the state topic was last read to its end.
    refreshed_at: Option<Instant>,
}

/// A topic with what its source and the state topic say of it.
struct Look {
    topic: MirroredTopic,
    source: SourceConfigs,
    stored: Settings,
    names: BTreeSet<String>,
}

impl ConfigSyncTask {
    pub(super) fn new(parts: ConfigSyncParts) -> Self {
        let random = fastrand::Rng::with_seed(parts.seed);
        let (sync, told) = (ConfigSync::default(), HashSet::new());
        Self { parts, sync, random, turn: 0, told, refreshed_at: None }
    }

    /// Looks at all topics after each interval, the first time as soon as the flow has listed them. Never returns.
    pub(super) async fn run(mut self) -> Infallible {
        if self.parts.mirrored.changed().await.is_err() || !self.target_can().await {
            return std::future::pending().await;
        }
        loop {
            self.round().await;
            sleep(self.parts.interval).await;
        }
    }

    /// Whether the target's brokers know how to change single configs.
    async fn target_can(&self) -> bool {
        loop {
            let Ok(connection) = self.parts.reader.target.any().await else {
                sleep(REACH_PAUSE).await;
                continue;
            };
            return match connection.version(Api::IncrementalAlterConfigs) {
                Ok(_) => true,
                Err(unsupported) => {
                    tracing::warn!(
                        flow = self.parts.reader.flow,
                        "the configs of topics are not synced after creation: {unsupported}"
                    );
                    false
                }
            };
        }
    }

    /// Every topic once; those that cannot be synced for a passing reason again and again until the next round is due.
    async fn round(&mut self) {
        let mut left = {
            let mirrored = self.parts.mirrored.borrow_and_update();
            let listed = mirrored.topics.iter().map(|topic| topic.target_topic.as_str()).collect();
            self.sync.handle_listed(&listed, &mirrored.refused);
            mirrored.topics.clone()
        };
        if self.refreshed_at.is_none_or(|at| at.elapsed() >= REFRESH_EVERY) {
            self.refresh_state().await;
        }
        let (first, longest) = AGAIN_AFTER;
        let mut backoff = Backoff::new(first, longest);
        let next = Instant::now() + self.parts.interval;
        while !left.is_empty() {
            left = self.pass(&left).await;
            let pause = backoff.failed(self.random.f64());
            // What is still left then is part of the next round.
            if Instant::now() + pause >= next {
                return;
            }
            if !left.is_empty() {
                sleep(pause).await;
            }
        }
    }

    /// Gives the topics that are to be tried again.
    async fn pass(&mut self, topics: &[MirroredTopic]) -> Vec<MirroredTopic> {
        let mut again = Vec::new();
        for (number, chunk) in topics.chunks(TOPICS_AT_ONCE).enumerate() {
            match self.sync_chunk(chunk).await {
                Ok(some) => again.extend(some),
                Err(error) if error.is_retriable() => {
                    // The next ones would wait as long for nothing; the client tells of clusters out of reach.
                    tracing::debug!(flow = self.parts.reader.flow, "topic configs not synced yet: {error}");
                    again.extend_from_slice(&topics[number * TOPICS_AT_ONCE..]);
                    break;
                }
                Err(error) => self.complain(None, &error.to_string()),
            }
        }
        again
    }

    /// Gives the topics that are to be tried again.
    async fn sync_chunk(&mut self, topics: &[MirroredTopic]) -> Result<Vec<MirroredTopic>, CallError> {
        let mut again = Vec::new();
        let differing = self.compare(topics, &mut again).await?;
        if differing.is_empty() {
            return Ok(again);
        }
        // By now another instance may have set what is missing here: nothing is decided on what was read long ago.
        self.refresh_state().await;
        let topics: Vec<MirroredTopic> = differing.into_iter().map(|(topic, _)| topic).collect();
        let differing = self.compare(&topics, &mut again).await?;
        let new = differing.iter().filter(|(_, plan)| !plan.is_stored);
        let new: Vec<_> =
            new.map(|(topic, plan)| (topic.target_topic.clone(), plan.remembered.clone())).collect();
        store_settings(&self.parts.state, new).await;
        let changes = differing.into_iter().filter(|(_, plan)| !plan.settings.is_empty());
        let alterations = changes.map(|(topic, plan)| Alteration::new(topic, plan)).collect();
        self.alter(alterations, &mut again).await?;
        Ok(again)
    }

    /// The topics of which something is to be changed or stored.
    async fn compare(
        &mut self,
        topics: &[MirroredTopic],
        again: &mut Vec<MirroredTopic>,
    ) -> Result<Vec<(MirroredTopic, Plan)>, CallError> {
        let looks = self.look(topics, again).await?;
        if looks.is_empty() {
            return Ok(Vec::new());
        }
        let target = self.parts.reader.target.clone();
        let names = looks.iter().map(|look| (look.topic.target_topic.clone(), look.names.clone()));
        let mut told = mirror_settings(&target, self.somebody(&target), names).await?;
        let mut differing = Vec::new();
        for Look { topic, source, stored, .. } in looks {
            match told.remove(&topic.target_topic) {
                Some(Ok(mirror)) => {
                    let plan = self.sync.plan(&topic.target_topic, &source, &mirror, &stored);
                    if !plan.settings.is_empty() || !plan.is_stored {
                        differing.push((topic, plan));
                    }
                }
                Some(Err(code)) => self.not_told(topic, code, again),
                None => {}
            }
        }
        Ok(differing)
    }

    /// Reads the state topic to its end: what other instances set is known afterwards.
    async fn refresh_state(&mut self) {
        let (done, read) = oneshot::channel();
        // The state task is gone only when the flow ends.
        let _ = self.parts.state.send(StateRequest::Refresh { waiter: Waiter::Flow(done) }).await;
        let _ = read.await;
        self.refreshed_at = Some(Instant::now());
    }

    /// What source and state topic say of these topics, as far as the mirror has to be asked about it.
    async fn look(
        &mut self,
        topics: &[MirroredTopic],
        again: &mut Vec<MirroredTopic>,
    ) -> Result<Vec<Look>, CallError> {
        let (answer, asked) = oneshot::channel();
        let target_topics = topics.iter().map(|topic| topic.target_topic.clone()).collect();
        // The state task is gone only when the flow ends.
        let _ = self.parts.state.send(StateRequest::AskSettings { target_topics, answer }).await;
        let stored = asked.await.unwrap_or_default();
        let source_topics = topics.iter().map(|topic| topic.source_topic.clone());
        let asked = self.somebody(&self.parts.reader.source.clone());
        let mut told = self.parts.reader.read(asked, source_topics).await?;
        let mut looks = Vec::new();
        for (topic, stored) in topics.iter().zip(stored) {
            match told.remove(&topic.source_topic) {
                Some(Ok(source)) => {
                    let names = self.sync.names(&topic.target_topic, &source, &stored);
                    if !names.is_empty() {
                        looks.push(Look { topic: topic.clone(), source, stored, names });
                    }
                }
                Some(Err(Untold::Refused(code, _))) => self.not_told(topic.clone(), code, again),
                Some(Err(Untold::Undecided(reason))) => self.complain(Some(topic), &reason),
                Some(Err(Untold::NoRight)) | None => {}
            }
        }
        Ok(looks)
    }

    /// One side does not tell the configs of a topic.
    fn not_told(&mut self, topic: MirroredTopic, code: ErrorCode, again: &mut Vec<MirroredTopic>) {
        match code {
            // It was deleted since it was listed.
            ErrorCode::UnknownTopicOrPartition => {}
            code if code.is_retriable() => again.push(topic),
            ErrorCode::TopicAuthorizationFailed | ErrorCode::ClusterAuthorizationFailed => {
                self.complain(
                    None,
                    "the target does not tell the configs of topics (right DESCRIBE_CONFIGS missing)",
                );
            }
            code => self.complain(Some(&topic), &format!("{code}: {}", code.description())),
        }
    }

    /// Warns once of something that keeps a topic, or all of them, from being synced.
    fn complain(&mut self, topic: Option<&MirroredTopic>, why: &str) {
        let topic = topic.map(|topic| topic.target_topic.as_str());
        if self.told.len() < COMPLAINTS_MAX
            && self.told.insert(format!("{}: {why}", topic.unwrap_or_default()))
        {
            tracing::warn!(flow = self.parts.reader.flow, topic, "topic configs not synced: {why}");
        }
    }

    /// A broker of a cluster, each time another one, on a connection that nothing else takes.
    fn somebody(&mut self, cluster: &ClusterClient) -> Target {
        self.turn = self.turn.wrapping_add(1);
        let metadata = cluster.metadata();
        let node = metadata.brokers.keys().nth(self.turn % metadata.brokers.len().max(1));
        node.map_or(Target::Any, |&node| Target::Node { node, lane: CONFIG_LANE })
    }
}
