//! Reaching the two clusters of a flow, and refusing those that it cannot join.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use twinlog_protocol::versions::Api;

use super::LEADER_PAUSE;
use crate::config::{ClusterConfig, FlowConfig};
use crate::driver::fetcher::ANSWER_TO_FETCH_BYTES_MAX;
use crate::error::{Error, Unreached};
use crate::io::cluster::{self, ClusterClient};
use crate::io::lane::ClientIds;
use crate::io::memory::MemoryBudget;
use crate::machine::cluster_names::{ClusterNames, FlowEnds, NamedCluster};
use crate::machine::hold::Side;
use crate::status::FlowStatus;

/// A cluster id has 22 characters; it goes into the keys of the state topic.
const CLUSTER_ID_BYTES_MAX: usize = 249;
/// Characters of the names that brokers show; the protocol ends at 32,767 bytes.
const CLIENT_ID_CHARS_MAX: usize = 4096;

/// Both clusters of a flow, reached.
pub(super) struct Connected {
    pub(super) source: ClusterClient,
    pub(super) target: ClusterClient,
}

/// Reaches both clusters, each within `wait` if there is a limit. The status tells which are still out of reach.
///
/// # Errors
/// [`Error::Unreachable`].
pub(super) async fn connect(
    config: &FlowConfig,
    seed: u64,
    memory: MemoryBudget,
    wait: Option<Duration>,
    status: &watch::Sender<FlowStatus>,
) -> Result<Connected, Error> {
    let ids = &config.client_ids;
    let source_ids = client_ids(&ids.source_admin, &ids.source_consumer);
    let target_ids = client_ids(&ids.target_admin, &ids.data_producer);
    let source = client(&config.source, source_ids, seed, Some(memory));
    let target = client(&config.target, target_ids, seed.rotate_left(32), None);
    status.send_modify(|status| status.not_reached = vec![Side::Source, Side::Target]);
    let reach = async |client: &ClusterClient, side| {
        let unreached = reach(&config.name, client, wait).await;
        if unreached.is_none() {
            status.send_modify(|status| status.not_reached.retain(|not_reached| *not_reached != side));
        }
        unreached
    };
    // Both to their end, so that both are named.
    let (at_source, at_target) = tokio::join!(reach(&source, Side::Source), reach(&target, Side::Target));
    let unreached: Vec<Unreached> = at_source.into_iter().chain(at_target).collect();
    if unreached.is_empty() {
        Ok(Connected { source, target })
    } else {
        Err(Error::Unreachable { unreached })
    }
}

/// A flow reads at one cluster and writes to the other, so that one id is for records.
fn client_ids(admin: &str, records: &str) -> ClientIds {
    let [admin, records] =
        [admin, records].map(|id| Arc::<str>::from(id.chars().take(CLIENT_ID_CHARS_MAX).collect::<String>()));
    ClientIds { admin, consumer: Arc::clone(&records), producer: records }
}

fn client(
    config: &ClusterConfig,
    client_ids: ClientIds,
    seed: u64,
    memory: Option<MemoryBudget>,
) -> ClusterClient {
    let mut client = cluster::ClusterConfig::new(&config.name, config.bootstrap.clone());
    client.client_ids = client_ids;
    client.memory = memory;
    client.answer_bytes_max += ANSWER_TO_FETCH_BYTES_MAX;
    ClusterClient::new(client, seed)
}

/// None once the cluster was reached.
async fn reach(flow: &str, client: &ClusterClient, wait: Option<Duration>) -> Option<Unreached> {
    let Some(limit) = wait else {
        client.bootstrapped().await;
        return None;
    };
    timeout(limit, client.bootstrapped()).await.err().map(|_| Unreached {
        flow: flow.to_owned(),
        cluster: client.alias().to_owned(),
        seconds: limit.as_secs(),
        why: client.last_error().map_or_else(|| no_answer(client), |error| error.to_string()),
    })
}

fn no_answer(client: &ClusterClient) -> String {
    let servers: Vec<String> = client.config().bootstrap.iter().map(ToString::to_string).collect();
    format!("no answer yet from {}", servers.join(", "))
}

/// The ids that the brokers of both clusters tell.
pub(super) struct ClusterIds {
    pub(super) source: String,
    pub(super) target: String,
}

/// Checks that the flow can run between these clusters, beside all other flows of the process.
pub(super) async fn check_clusters(
    config: &FlowConfig,
    Connected { source, target }: &Connected,
    names: &Mutex<ClusterNames>,
) -> Result<ClusterIds, Error> {
    let ids = ClusterIds { source: cluster_id(source)?, target: cluster_id(target)? };
    let ends = FlowEnds {
        flow: &config.name,
        source: NamedCluster { name: &config.source.name, id: &ids.source },
        target: NamedCluster { name: &config.target.name, id: &ids.target },
        keeps_names: config.selection.keeps_names(),
        loops_allowed: config.loops_allowed,
    };
    // No step under this lock can leave the names half changed.
    let added = names.lock().unwrap_or_else(PoisonError::into_inner).add(&ends);
    for warning in added.map_err(Error::Refused)? {
        tracing::warn!(flow = config.name, "{warning}");
    }
    loop {
        let Ok(connection) = target.any().await else {
            sleep(LEADER_PAUSE).await;
            continue;
        };
        return match connection.version(Api::DescribeProducers) {
            Ok(_) => Ok(ids),
            Err(_) => Err(Error::Refused(format!(
                "cluster {}: its brokers do not know DescribeProducers (Kafka 2.8 and newer do), so nothing can be \
                 copied into it exactly once",
                config.target.name
            ))),
        };
    }
}

fn cluster_id(client: &ClusterClient) -> Result<String, Error> {
    let refused = |why: String| Err(Error::Refused(format!("cluster {}: {why}", client.alias())));
    match client.metadata().cluster_id.clone() {
        None => refused("it tells no cluster id".to_owned()),
        Some(id) if id.len() > CLUSTER_ID_BYTES_MAX => {
            refused(format!("its id has {} bytes; no Kafka gives out such a one", id.len()))
        }
        Some(id) => Ok(id),
    }
}
