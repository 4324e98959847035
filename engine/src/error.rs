//! Why an engine or a flow cannot start, or ends.

use crate::config::ConfigErrors;

/// A cluster that a flow did not reach in time.
///
/// `Display` names the cluster, the time and the failure, not the flow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cluster {cluster} was not reached within {seconds} s: {why}")]
pub struct Unreached {
    /// The flow's name, such as `west->east`.
    pub flow: String,
    /// The cluster's name.
    pub cluster: String,
    /// The time given.
    pub seconds: u64,
    /// The last failure.
    pub why: String,
}

fn sentences(unreached: &[Unreached]) -> String {
    let sentences = unreached.iter().map(|unreached| format!("{}: {unreached}", unreached.flow));
    sentences.collect::<Vec<_>>().join("; ")
}

/// Why an engine or a flow cannot start, or ends. A partition's troubles hold the partition and are no errors here.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be run.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// Clusters were not reached within the time that the caller gave.
    #[error("{}", sentences(unreached))]
    Unreachable {
        /// Each of them, for each flow that needs it; at least one.
        unreached: Vec<Unreached>,
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
