//! The engine: the flows of a configuration, running in the caller's tokio runtime.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::config::{FlowConfig, MirrorConfig};
use crate::driver::flow::{self, FlowParts, Shared};
use crate::driver::partitions::Partitions;
use crate::error::Error;
use crate::flow_handle::FlowHandle;
use crate::io::memory::MemoryBudget;
use crate::machine::share::Share;
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
    /// How long [`EngineBuilder::start`] may take to reach the clusters. Without a limit each flow tries for ever.
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

    /// Starts the flows, each in a task of its own that reaches its own two clusters. Returns at once without a limit;
    /// with one it waits until every flow has reached both.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when a limit was set and ran out, with the clusters of all flows; before that, what else a flow
    /// ended with.
    pub async fn start(self) -> Result<Engine, Error> {
        let mut random = self.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let memory = MemoryBudget::new(self.config.memory_bytes_max());
        let share = Share::of(memory.bytes_max(), self.config.flows().len());
        let shared = Shared { cluster_names: Arc::default(), memory, share };
        let start =
            |config: &FlowConfig| Running::start(config.clone(), random.u64(..), shared.clone(), self.wait);
        let (running, reaching): (Vec<_>, Vec<_>) = self.config.flows().iter().map(start).unzip();
        let engine = Engine { running };
        let mut all_unreached = Vec::new();
        if self.wait.is_some() {
            for (running, reached) in engine.running.iter().zip(reaching) {
                // Fails when the flow has ended instead.
                if reached.await.is_err() {
                    match running.handle.ended().await {
                        Err(Error::Unreachable { unreached }) => all_unreached.extend(unreached),
                        ended => ended?,
                    }
                }
            }
        }
        if all_unreached.is_empty() {
            Ok(engine)
        } else {
            Err(Error::Unreachable { unreached: all_unreached })
        }
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
    /// Starts a flow; also gives what tells when it has reached its clusters.
    fn start(
        config: FlowConfig,
        seed: u64,
        shared: Shared,
        wait: Option<Duration>,
    ) -> (Self, oneshot::Receiver<()>) {
        let (status, status_seen) = watch::channel(FlowStatus::default());
        let (events, _) = broadcast::channel(EVENTS_KEPT);
        let (partitions, partitions_seen) = watch::channel(Partitions::default());
        let (stop, stop_seen) = watch::channel(false);
        let (ended, ended_seen) = watch::channel(None);
        let (reached, reached_seen) = oneshot::channel();
        let handle =
            FlowHandle::new(config.name.clone(), status_seen, events.clone(), partitions_seen, ended_seen);
        let parts =
            FlowParts { config, seed, shared, wait, reached, status, events, partitions, stop: stop_seen };
        let task = tokio::spawn(async move {
            let result = flow::run(parts).await;
            ended.send_replace(Some(result));
        });
        (Self { handle, stop, task }, reached_seen)
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

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::io::tests::closed_port::ClosedPort;
    use crate::machine::hold::Side;
    use crate::machine::metadata::HostPort;

    /// Two flows between clusters at a port where nobody listens.
    fn nobody_there(port: &ClosedPort) -> MirrorConfig {
        let HostPort { host, port } = &port.server;
        let mut text = "clusters = a, b, c\na->b.enabled = true\na->c.enabled = true\n".to_owned();
        for name in ["a", "b", "c"] {
            text.push_str(&format!("{name}.bootstrap.servers = {host}:{port}\n"));
        }
        MirrorConfig::from_properties(text.as_bytes()).unwrap()
    }

    #[tokio::test]
    async fn without_a_limit_flows_start_at_once_and_can_be_stopped_while_they_connect() {
        let begun = Instant::now();
        let port = ClosedPort::reserve();
        let engine = Engine::builder(nobody_there(&port)).start().await.unwrap();
        let flows: Vec<FlowHandle> = engine.flows().cloned().collect();
        assert_eq!(flows.iter().map(FlowHandle::name).collect::<Vec<_>>(), ["a->b", "a->c"]);
        while flows[1].status().not_reached.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(flows[1].status().not_reached, [Side::Source, Side::Target]);
        assert!(flows.iter().all(|flow| flow.result().is_none()));
        engine.shutdown(Duration::from_secs(60)).await.unwrap();
        assert!(flows.iter().all(|flow| matches!(flow.result(), Some(Ok(())))));
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn with_a_limit_the_start_fails_and_ends_all_flows() {
        let port = ClosedPort::reserve();
        let builder = Engine::builder(nobody_there(&port)).wait(Duration::from_millis(50));
        let Err(Error::Unreachable { unreached }) = builder.start().await else { panic!("nobody is there") };
        let named: Vec<_> = unreached.iter().map(|it| (&*it.flow, &*it.cluster, it.seconds)).collect();
        assert_eq!(named, [("a->b", "a", 0), ("a->b", "b", 0), ("a->c", "a", 0), ("a->c", "c", 0)]);
    }

    #[tokio::test]
    async fn a_flow_whose_engine_was_dropped_has_ended_with_an_error() {
        let port = ClosedPort::reserve();
        let engine = Engine::builder(nobody_there(&port)).start().await.unwrap();
        let flow = engine.flow("a->c").unwrap();
        drop(engine);
        assert!(matches!(flow.ended().await, Err(Error::Bug(_))));
        assert!(matches!(flow.result(), Some(Err(Error::Bug(_)))));
    }
}
