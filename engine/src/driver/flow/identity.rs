//! Which producer id the flow writes under: settled before the first partition is looked at.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::{ASKED_AT_ONCE, Flow, LEADER_PAUSE, partitions, place};
use crate::config::StartPosition;
use crate::driver::ask;
use crate::driver::lanes::{SOURCE_SEARCH_LANE, TARGET_TAIL_LANE};
use crate::driver::recover::{self, Sides};
use crate::driver::state_topic::{StateRequest, Waiter};
use crate::error::Error;
use crate::io::cluster::ClusterClient;
use crate::machine::partition::{CopySearch, RequestFailure};
use crate::machine::topic_sync;
use crate::state::{PartitionKey, STATE_TOPIC, StateEntry};

/// How long partitions that do not answer are searched for an earlier copy, unless the search has to end.
const SEARCH_MAX: Duration = Duration::from_secs(30);
/// Pause between two attempts after that.
const SEARCH_PAUSE: Duration = Duration::from_secs(5);

impl Flow {
    /// Finds the flow's producer id in the state topic, or takes one and stores it: the first one stored counts.
    pub(super) async fn settle_identity(&self) -> Result<(), Error> {
        self.refresh_state().await;
        let producer_id = match self.producer_id().await {
            Some(producer_id) => {
                self.note_unused_position("the flow has started before");
                producer_id
            }
            None => self.first_identity().await?,
        };
        self.ask_state(StateRequest::ProducerId(producer_id)).await;
        tracing::debug!(flow = self.config.name, producer_id, "identity settled");
        Ok(())
    }

    /// The state topic names no producer id: that of a copy which lost its state, else a new one.
    async fn first_identity(&self) -> Result<i64, Error> {
        if let Some(producer_id) = self.recover_identity().await? {
            tracing::warn!(
                flow = self.config.name,
                producer_id,
                "the state topic knows nothing of this flow, but the target holds its copy: going on from there"
            );
            self.note_unused_position(
                "an earlier copy goes on; partitions without one begin at their beginning",
            );
            return self.store_identity(producer_id).await;
        }
        let candidate = self.new_identity().await?;
        let starts = self.first_start(candidate).await;
        let partitions: usize = starts.iter().map(|start| start.offsets.len()).sum();
        // Stored in the order in which it is asked for: an identity that is there has its starts before it.
        for start in starts {
            let entry = StateEntry::Start(start);
            self.ask_state(StateRequest::Append { entry, waiter: Waiter::Nobody }).await;
        }
        let producer_id = self.store_identity(candidate).await?;
        let position = self.config.start_position;
        if producer_id != candidate {
            self.note_unused_position("another instance started the flow first");
        } else if position != StartPosition::Earliest {
            tracing::info!(
                flow = self.config.name,
                partitions,
                "first start: these partitions begin at auto.offset.reset={position}, later ones at their beginning"
            );
        }
        Ok(producer_id)
    }

    /// Stores an identity; the one that counts.
    async fn store_identity(&self, candidate: i64) -> Result<i64, Error> {
        self.ask_state(StateRequest::ProducerId(candidate)).await;
        let entry = StateEntry::Identity { producer_id: candidate, replaces: -1 };
        let (done, stored) = oneshot::channel();
        self.ask_state(StateRequest::Append { entry, waiter: Waiter::Flow(done) }).await;
        // Fails only when the state task has ended, which ends the flow.
        let _ = stored.await;
        let producer_id = self.producer_id().await;
        producer_id.ok_or_else(|| Error::Bug("the identity that was stored was not read back".to_owned()))
    }

    /// Nobody is to believe that something happens which does not.
    fn note_unused_position(&self, why: &str) {
        let position = self.config.start_position;
        if position != StartPosition::Earliest {
            tracing::info!(flow = self.config.name, "auto.offset.reset={position} does not count: {why}");
        }
    }

    /// Looks for our own batches at the ends of the target's partitions. A new id must not be taken while there are old
    /// batches: it would fence nobody, and its partitions would be copied again.
    async fn recover_identity(&self) -> Result<Option<i64>, Error> {
        let (source, target) = self.both_metadata().await;
        let plan = topic_sync::plan(&source, &target, &self.config.selection, &BTreeSet::new());
        let mut keys: Vec<PartitionKey> = plan.ready.iter().chain(&plan.grow).flat_map(partitions).collect();
        let end = Instant::now() + SEARCH_MAX;
        // A copy that is not recognised is copied again behind itself. Where the new one does not begin at the beginning,
        // what was written since the old one ended would be lost.
        let gives_up = self.config.start_position == StartPosition::Earliest;
        let (mut ambiguous, mut told) = (None, false);
        loop {
            let searches: Vec<_> = keys
                .drain(..)
                .map(|key| async { (search(&self.source, &self.target, &key).await, key) })
                .collect();
            let mut searches = pin!(stream::iter(searches).buffer_unordered(ASKED_AT_ONCE));
            while let Some((found, key)) = searches.next().await {
                match found {
                    Ok(CopySearch::Found(copy)) => return Ok(Some(copy.producer_id)),
                    Ok(CopySearch::Nothing | CopySearch::NotAtSource) => {}
                    Ok(CopySearch::Ambiguous) => ambiguous = Some(key.target_topic),
                    Err(_) => keys.push(key),
                }
            }
            let Some(key) = keys.first() else { break };
            if Instant::now() >= end && !std::mem::replace(&mut told, true) {
                let (topic, partition, more) = (&key.target_topic, key.partition, keys.len() - 1);
                let goes_on = if gives_up { "not searched" } else { "the first start waits for its search" };
                tracing::warn!(
                    flow = self.config.name,
                    topic,
                    partition,
                    more,
                    "{goes_on} for an earlier copy, because a side does not answer"
                );
            }
            if told && gives_up {
                break;
            }
            sleep(if told { SEARCH_PAUSE } else { LEADER_PAUSE }).await;
            let (source, target) = self.both_metadata().await;
            keys.retain(|PartitionKey { source_topic, target_topic, .. }| {
                !told || source.topics.contains_key(source_topic) && target.topics.contains_key(target_topic)
            });
        }
        match ambiguous {
            None => Ok(None),
            Some(topic) => Err(Error::Refused(format!(
                "cluster {}: {STATE_TOPIC} knows nothing of flow {}, and {topic} ends with records that stand at several \
                 places of the source, so an earlier copy cannot be told from another's; delete the topic, or leave it out",
                self.config.target.name, self.config.name
            ))),
        }
    }

    async fn new_identity(&self) -> Result<i64, Error> {
        loop {
            match ask::new_producer_id(&self.target).await {
                Ok(producer_id) => return Ok(producer_id),
                Err(RequestFailure::Broker(code)) if !code.is_retriable() => {
                    return Err(Error::Refused(format!(
                        "cluster {}: InitProducerId is refused with {code}; grant WRITE on the topics, or \
                         IDEMPOTENT_WRITE on the cluster",
                        self.config.target.name
                    )));
                }
                Err(why) => {
                    tracing::debug!(flow = self.config.name, "no producer id yet: {why}");
                    sleep(LEADER_PAUSE).await;
                }
            }
        }
    }
}

/// Looks for a copy, anybody's, at the end of a target's partition.
async fn search(
    source: &ClusterClient,
    target: &ClusterClient,
    key: &PartitionKey,
) -> Result<CopySearch, RequestFailure> {
    let source_place = place(source, &key.source_topic, key.partition, SOURCE_SEARCH_LANE);
    let target_place = place(target, &key.target_topic, key.partition, TARGET_TAIL_LANE);
    let (source_place, target_place) = source_place.zip(target_place).ok_or_else(ask::no_leader)?;
    let to = ask::list_offset(target, &target_place, ask::LATEST).await?;
    recover::find_copy(&Sides { source, source_place, target, target_place }, to, None).await
}
