//! The engine's face as the commands use it. Stands in until the engine brings its own.

use std::{fmt, time::Duration};

use twinlog_engine::config::MirrorConfig;

/// A partition that waits.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) reason: String,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}: {}", self.topic, self.partition, self.reason)
    }
}

/// A flow at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowStatus {
    pub(crate) partitions: u64,
    pub(crate) caught_up: bool,
    pub(crate) held: Vec<Held>,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) lag_records: u64,
}

/// Why an engine or a flow ended.
#[derive(Debug, thiserror::Error)]
#[expect(dead_code, reason = "only the engine itself tells these apart")]
pub(crate) enum Error {
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    Config(String),
    #[error("{0}")]
    Bug(String),
}

pub(crate) struct Engine;

impl Engine {
    pub(crate) async fn start(_config: MirrorConfig, _wait: Option<Duration>) -> Result<Self, Error> {
        Err(Error::Bug("the engine is not linked in".to_owned()))
    }

    pub(crate) fn flow(&self, name: &str) -> Result<Flow, Error> {
        Err(Error::Bug(format!("no flow {name}")))
    }

    pub(crate) async fn shutdown(self, _limit: Duration) {}
}

pub(crate) struct Flow;

impl Flow {
    pub(crate) async fn caught_up(&self) -> Result<(), Error> {
        std::future::pending().await
    }

    pub(crate) fn status(&self) -> FlowStatus {
        FlowStatus::default()
    }
}
