//! The state topic before a flow begins: made if it is missing, refused if it would forget.

use std::time::Duration;

use tokio::time::sleep;

use crate::config::FlowConfig;
use crate::driver::topic_configs::{CLEANUP_POLICY, cleanup_policies};
use crate::driver::topics::{Failure, create_own};
use crate::error::Error;
use crate::io::cluster::ClusterClient;
use crate::state::STATE_TOPIC;

/// Pause between two attempts of any kind.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(500);

/// Makes sure that the state topic is there, with one partition.
///
/// # Errors
/// [`Error::Refused`], with what to do.
pub(super) async fn ensure(target: &ClusterClient, config: &FlowConfig) -> Result<(), Error> {
    let mut told = None;
    loop {
        let metadata = match target.refresh_metadata().await {
            Ok(metadata) => metadata,
            Err(_) => continue,
        };
        match metadata.topics.get(STATE_TOPIC).map(|topic| topic.partitions.len()) {
            Some(1) => return check(target, config).await,
            Some(0) => continue,
            Some(count) => {
                return Err(Error::Refused(format!(
                    "cluster {}: topic {STATE_TOPIC} has {count} partitions, it must have one: \
                     somebody else made it; delete it if it is empty",
                    config.target.name
                )));
            }
            None => {}
        }
        let decision = config
            .offset_storage_replication_factor
            .decide(metadata.brokers.len())
            .map_err(|error| Error::Refused(error.to_string()))?;
        let topic = (STATE_TOPIC, &config.offset_storage_replication_factor, decision.replicas);
        match create_own(target, config, topic, &[(CLEANUP_POLICY, "compact")]).await {
            Ok(()) => {
                if let Some(warning) = decision.warning {
                    tracing::warn!(flow = config.name, "{warning}");
                }
            }
            // A missing right or a policy does not pass by itself; a controller that moves does.
            Err(Failure::Lasting(reason)) => return Err(Error::Refused(reason)),
            Err(Failure::Unanswered(reason) | Failure::Passing(reason)) => {
                if told.replace(reason.clone()).is_none_or(|before| before != reason) {
                    tracing::warn!(flow = config.name, "state topic not created yet, still trying: {reason}");
                }
                sleep(ATTEMPT_PAUSE).await;
            }
        }
    }
}

/// A state topic that forgets is worse than none. Who may not read its configs is believed.
async fn check(target: &ClusterClient, config: &FlowConfig) -> Result<(), Error> {
    let policies = loop {
        match cleanup_policies(target, [STATE_TOPIC.to_owned()].into_iter()).await {
            Ok(policies) => break policies,
            Err(error) if error.is_retriable() => sleep(ATTEMPT_PAUSE).await,
            Err(_) => return Ok(()),
        }
    };
    match policies.get(STATE_TOPIC) {
        Some(policy) if policy != "compact" => Err(Error::Refused(format!(
            "cluster {}: topic {STATE_TOPIC} has cleanup.policy={policy}, so the cluster would delete what must not be \
             forgotten; set cleanup.policy=compact",
            config.target.name
        ))),
        _ => Ok(()),
    }
}
