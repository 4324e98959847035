//! Why an engine or a flow cannot start, or ends.

use crate::config::ConfigErrors;

/// Why an engine or a flow cannot start, or ends. A partition's troubles hold the partition and are no errors here.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be run.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// A cluster was not reached within the time that the caller gave.
    #[error("cluster {cluster} was not reached within {seconds} s: {why}")]
    Unreachable {
        /// The cluster's alias.
        cluster: String,
        /// The time given.
        seconds: u64,
        /// The last failure.
        why: String,
    },
    /// The clusters cannot be joined by this flow. Says why, and what to do.
    #[error("{0}")]
    Refused(String),
    /// The state topic holds something that this version cannot read.
    #[error("{0}")]
    State(String),
    /// No flow has this name.
    #[error("no flow is named `{0}`")]
    UnknownFlow(String),
    /// A fault of our own.
    #[error("a fault of twinlog's own: {0}; please report it")]
    Bug(String),
}
