//! A running flow as the outside sees it.

use tokio::sync::{broadcast, watch};

use crate::driver::partitions::{self, Partitions};
use crate::error::Error;
use crate::event::FlowEvent;
use crate::partition_status::PartitionStatus;
use crate::status::FlowStatus;

/// A running flow. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FlowHandle {
    name: String,
    status: watch::Receiver<FlowStatus>,
    events: broadcast::Sender<FlowEvent>,
    partitions: watch::Receiver<Partitions>,
    ended: watch::Receiver<Option<Result<(), Error>>>,
}

impl FlowHandle {
    pub(crate) fn new(
        name: String,
        status: watch::Receiver<FlowStatus>,
        events: broadcast::Sender<FlowEvent>,
        partitions: watch::Receiver<Partitions>,
        ended: watch::Receiver<Option<Result<(), Error>>>,
    ) -> Self {
        Self { name, status, events, partitions, ended }
    }

    /// Its name, such as `west->east`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it shows at this moment.
    #[must_use]
    pub fn status(&self) -> FlowStatus {
        self.status.borrow().clone()
    }

    /// How each partition fares, in the order in which the flow found them.
    ///
    /// The flow is asked, and answers when it gets to it, mostly at once; nothing is kept ready for it. Nobody is in the answer
    /// until both clusters are reached and topics are listed: [`FlowStatus::not_reached`] and [`FlowStatus::listed`] tell.
    /// Topics that could not be prepared are in [`FlowStatus::failed_topics`] alone. After the flow has ended it is what the
    /// partitions came to: who was held or waited when it began to stop still is. Empty if the flow was lost.
    pub async fn partitions(&self) -> Vec<PartitionStatus> {
        partitions::ask(self.partitions.clone()).await
    }

    /// Events from now on.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<FlowEvent> {
        self.events.subscribe()
    }

    /// Waits until each partition of the first complete listing has got as far as the source's end when it was first
    /// read, but for what is held ([`FlowStatus::is_healthy`] tells).
    ///
    /// # Errors
    /// What the flow ended with, if it ends before.
    pub async fn caught_up(&self) -> Result<(), Error> {
        let mut status = self.status.clone();
        tokio::select! {
            biased;
            Ok(_) = status.wait_for(FlowStatus::is_level) => Ok(()),
            result = self.ended() => result,
        }
    }

    /// Waits until the flow has ended.
    ///
    /// # Errors
    /// What it ended with.
    pub async fn ended(&self) -> Result<(), Error> {
        // Fails when the flow's task was lost, which the result tells.
        let _ = self.ended.clone().wait_for(Option::is_some).await;
        self.result().unwrap_or_else(|| Err(lost()))
    }

    /// How the flow ended; none while it runs.
    #[must_use]
    pub fn result(&self) -> Option<Result<(), Error>> {
        // Looked at first: the task tells its result before it goes.
        let is_gone = self.ended.has_changed().is_err();
        let told = self.ended.borrow().clone();
        told.or_else(|| is_gone.then(|| Err(lost())))
    }
}

fn lost() -> Error {
    Error::Bug("the flow's task was lost".to_owned())
}
