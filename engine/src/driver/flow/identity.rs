//! Which producer id the flow writes under: settled before the first partition is looked at.

use tokio::sync::oneshot;
use tokio::time::sleep;

use super::{Flow, LEADER_PAUSE};
use crate::config::StartPosition;
use crate::driver::ask;
use crate::driver::state_topic::{StateRequest, Waiter};
use crate::error::Error;
use crate::machine::partition::RequestFailure;
use crate::state::StateEntry;

impl Flow {
    /// Finds the flow's producer id in the state topic, or takes one and stores it: the first one stored counts.
    pub(super) async fn settle_identity(&mut self) -> Result<(), Error> {
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
    async fn first_identity(&mut self) -> Result<i64, Error> {
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
