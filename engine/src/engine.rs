//! The engine: the flows of a configuration, running in the caller's tokio runtime.

use std::time::Duration;

use tokio::sync::{broadcast, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::config::{FlowConfig, MirrorConfig};
use crate::driver::flow::{self, Connected, FlowParts};
use crate::error::Error;
use crate::flow_handle::FlowHandle;
use crate::status::FlowStatus;

/// Events that a slow listener may fall behind before it misses some.
const EVENTS_KEPT: usize = 1024;

/// Sets an engine up.
#[derive(Debug)]
pub struct EngineBuilder {
    config: MirrorConfig,
    wait: Option<Duration>,
    seed: Option<u64>,
}

impl EngineBuilder {
    /// How long [`EngineBuilder::start`] may take to reach the clusters. Without a limit it tries for ever.
    #[must_use]
    pub fn wait(mut self, limit: Duration) -> Self {
        self.wait = Some(limit);
        self
    }

    /// Where random numbers begin: back-off, the order in which brokers are tried, the first producer epoch. Two
    /// engines must never share one while both run.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Reaches the clusters and starts the flows.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when a limit was set and ran out.
    pub async fn start(self) -> Result<Engine, Error> {
        let mut random = self.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let mut connecting = JoinSet::new();
        for config in self.config.flows() {
            let (config, seed, wait) = (config.clone(), random.u64(..), self.wait);
            connecting.spawn(async move {
                let connected = flow::connect(&config, seed, wait).await?;
                Ok::<_, Error>((config, seed, connected))
            });
        }
        let mut running = Vec::new();
        while let Some(joined) = connecting.join_next().await {
            let (config, seed, connected) = joined.map_err(|error| Error::Bug(error.to_string()))??;
            running.push(Running::start(config, seed, connected));
        }
        Ok(Engine { running })
    }
}

/// Running flows. Dropping it ends them at once, as a crash would: nothing is lost or repeated, only the next start
/// takes a little longer. [`Engine::shutdown`] lets them come to rest.
#[derive(Debug)]
pub struct Engine {
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    handle: FlowHandle,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    fn start(config: FlowConfig, seed: u64, connected: Connected) -> Self {
        let (status, status_seen) = watch::channel(FlowStatus::default());
        let (events, _) = broadcast::channel(EVENTS_KEPT);
        let (stop, stop_seen) = watch::channel(false);
        let (ended, ended_seen) = watch::channel(None);
        let handle = FlowHandle::new(config.name.clone(), status_seen, events.clone(), ended_seen);
        let parts = FlowParts { config, seed, status, events, stop: stop_seen };
        let task = tokio::spawn(async move {
            let result = flow::run(parts, connected).await;
            ended.send_replace(Some(result));
        });
        Self { handle, stop, task }
    }
}

impl Engine {
    /// An engine for this configuration.
    #[must_use]
    pub fn builder(config: MirrorConfig) -> EngineBuilder {
        EngineBuilder { config, wait: None, seed: None }
    }

    /// A flow by its name, such as `west->east`.
    ///
    /// # Errors
    /// [`Error::UnknownFlow`].
    pub fn flow(&self, name: &str) -> Result<FlowHandle, Error> {
        let found = self.running.iter().find(|running| running.handle.name() == name);
        found.map(|running| running.handle.clone()).ok_or_else(|| Error::UnknownFlow(name.to_owned()))
    }

    /// All flows.
    pub fn flows(&self) -> impl Iterator<Item = &FlowHandle> {
        self.running.iter().map(|running| &running.handle)
    }

    /// Lets all flows come to rest: what is under way is waited for, progress is stored. What is not at rest after
    /// `limit` is ended.
    ///
    /// # Errors
    /// What a flow ended with. Running out of time is none: the next start lines up.
    pub async fn shutdown(mut self, limit: Duration) -> Result<(), Error> {
        for running in &self.running {
            running.stop.send_replace(true);
        }
        let all = async {
            for running in &mut self.running {
                // A task that was ended leaves no result; its flow reports that itself.
                let _ = (&mut running.task).await;
            }
        };
        if timeout(limit, all).await.is_err() {
            tracing::warn!("flows did not come to rest within {limit:?} and were ended");
            return Ok(());
        }
        for running in &self.running {
            running.handle.result().unwrap_or(Ok(()))?;
        }
        Ok(())
    }
}
