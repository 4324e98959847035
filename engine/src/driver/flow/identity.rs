//! Which producer id the flow writes under: settled before the first partition is looked at.

use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::stream::{self, StreamExt};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::{ASKED_AT_ONCE, Flow, LEADER_PAUSE, partitions, place};
use crate::driver::ask;
use crate::driver::recover::{self, Sides};
use crate::driver::state_topic::{StateRequest, Waiter};
use crate::error::Error;
use crate::io::cluster::ClusterClient;
use crate::machine::partition::{CopySearch, RequestFailure};
use crate::machine::topic_sync;
use crate::state::{PartitionKey, StateEntry};

impl Flow {
    /// Finds the flow's producer id in the state topic, or takes one and stores it: the first one stored counts.
    pub(super) async fn settle_identity(&self) -> Result<(), Error> {
        self.refresh_state().await;
        let producer_id = match self.producer_id().await {
            Some(producer_id) => producer_id,
            None => self.first_identity().await?,
        };
        self.ask_state(StateRequest::ProducerId(producer_id)).await;
        tracing::debug!(flow = self.config.name, producer_id, "identity settled");
        Ok(())
    }

    /// The state topic names no producer id: that of a copy which lost its state, else a new one.
    async fn first_identity(&self) -> Result<i64, Error> {
        let candidate = match self.recover_identity().await {
            Some(producer_id) => {
                tracing::warn!(
                    flow = self.config.name,
                    producer_id,
                    "the state topic knows nothing of this flow, but the target holds its copy: going on from there"
                );
                producer_id
            }
            None => self.new_identity().await?,
        };
        self.ask_state(StateRequest::ProducerId(candidate)).await;
        let entry = StateEntry::Identity { producer_id: candidate, replaces: -1 };
        let (done, stored) = oneshot::channel();
        self.ask_state(StateRequest::Append { entry, waiter: Waiter::Flow(done) }).await;
        // Fails only when the state task has ended, which ends the flow.
        let _ = stored.await;
        let producer_id = self.producer_id().await;
        producer_id.ok_or_else(|| Error::Bug("the identity that was stored was not read back".to_owned()))
    }

    /// Looks for our own batches at the ends of the target's partitions. Never take a new id while there are old batches:
    /// it would fence nobody.
    async fn recover_identity(&self) -> Option<i64> {
        let (source, target) = self.both_metadata().await;
        let plan = topic_sync::plan(&source, &target, &self.config.selection, &BTreeSet::new());
        let keys = plan.ready.iter().chain(&plan.grow).flat_map(partitions);
        let searches: Vec<_> =
            keys.map(|key| copied_by(self.source.clone(), self.target.clone(), key)).collect();
        let mut searches = pin!(stream::iter(searches).buffer_unordered(ASKED_AT_ONCE));
        while let Some(found) = searches.next().await {
            if found.is_some() {
                return found;
            }
        }
        None
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
                Err(_) => sleep(LEADER_PAUSE).await,
            }
        }
    }
}

/// The producer id of the copy at the end of a target's partition, if there is one and both sides answer.
async fn copied_by(source: ClusterClient, target: ClusterClient, key: PartitionKey) -> Option<i64> {
    let source_place = place(&source, &key.source_topic, key.partition)?;
    let target_place = place(&target, &key.target_topic, key.partition)?;
    let to = ask::list_offset(&target, &target_place, ask::LATEST).await.ok()?;
    let sides = Sides { source: &source, source_place, target: &target, target_place };
    match recover::find_copy(&sides, to, None).await {
        Ok(CopySearch::Found(copy)) => Some(copy.producer_id),
        Ok(CopySearch::Nothing | CopySearch::Ambiguous) | Err(_) => None,
    }
}
