//! What brokers tell of the configs of topics.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::sleep;
use twinlog_protocol::ErrorCode;
use twinlog_protocol::message::types::{
    DescribeConfigsRequest, DescribeConfigsResponse, StrBytes, describe_configs_request,
};

use super::topics::Failure;
use crate::config::FlowConfig;
use crate::io::cluster::{ClusterClient, Target};
use crate::io::error::CallError;
use crate::machine::topic_sync::MirroredTopic;
use crate::policy::{ConfigSource, TopicConfigEntry};

/// What becomes of old records of a topic.
pub(super) const CLEANUP_POLICY: &str = "cleanup.policy";
const TOPIC_RESOURCE: i8 = 2;
/// Attempts to learn topic configs, and the pause between two.
const DESCRIBE_ATTEMPTS_MAX: u32 = 3;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(500);

/// A topic's configs, by source topic.
pub(super) type Configs = HashMap<String, Vec<(String, String)>>;

/// The configs that mirrors of these topics are created with.
///
/// # Errors
/// [`Failure`]: the source does not answer.
pub(super) async fn configs(
    source: &ClusterClient,
    config: &FlowConfig,
    topics: &[MirroredTopic],
) -> Result<Configs, Failure> {
    if topics.is_empty() {
        return Ok(Configs::new());
    }
    let answer = describe(source, source_names(topics), None).await?;
    let mut configs = Configs::new();
    for result in &answer.results {
        if ErrorCode::check(result.error_code).is_err() {
            continue;
        }
        let entries: Vec<TopicConfigEntry<'_>> = result
            .configs
            .iter()
            .map(|entry| TopicConfigEntry {
                name: &entry.name,
                value: entry.value.as_deref(),
                source: ConfigSource::from_wire(entry.config_source),
                read_only: entry.read_only,
                sensitive: entry.is_sensitive,
            })
            .collect();
        let judged = config.topic_configs.judge(&entries);
        let judged = judged.map_err(|error| Failure::Lasting(error.to_string()))?;
        configs.insert(result.resource_name.to_string(), judged.copied.into_iter().collect());
    }
    Ok(configs)
}

/// Which of these topics lose records out of the middle of their logs. Those whose configs the source does not tell count
/// as such: it costs a store for each stretch, where the other mistake could cost records.
pub(super) async fn compacted(source: &ClusterClient, topics: &[MirroredTopic]) -> BTreeSet<String> {
    // A lost answer is no answer; who gets none at all counts them all.
    let mut attempts = 0..DESCRIBE_ATTEMPTS_MAX;
    let policies = loop {
        match cleanup_policies(source, source_names(topics)).await {
            Ok(policies) => break policies,
            Err(_) if attempts.next().is_some() => sleep(ATTEMPT_PAUSE).await,
            Err(_) => break HashMap::new(),
        }
    };
    let is_compacted = |topic: &String| policies.get(topic).is_none_or(|policy| policy.contains("compact"));
    source_names(topics).filter(is_compacted).collect()
}

/// What becomes of old records, of those topics whose configs the cluster tells.
pub(super) async fn cleanup_policies(
    cluster: &ClusterClient,
    topics: impl Iterator<Item = String>,
) -> Result<HashMap<String, String>, CallError> {
    let keys = vec![StrBytes::from_static_str(CLEANUP_POLICY)];
    let answer = describe(cluster, topics, Some(keys)).await?;
    let told = answer.results.into_iter().filter(|result| ErrorCode::check(result.error_code).is_ok());
    let policies = told.filter_map(|result| {
        let policy = result.configs.into_iter().find_map(|entry| entry.value)?;
        Some((result.resource_name.to_string(), policy.to_string()))
    });
    Ok(policies.collect())
}

fn source_names(topics: &[MirroredTopic]) -> impl Iterator<Item = String> {
    topics.iter().map(|topic| topic.source_topic.clone())
}

async fn describe(
    cluster: &ClusterClient,
    topics: impl Iterator<Item = String>,
    keys: Option<Vec<StrBytes>>,
) -> Result<DescribeConfigsResponse, CallError> {
    let resources = topics.map(|topic| {
        describe_configs_request::DescribeConfigsResource::default()
            .with_resource_type(TOPIC_RESOURCE)
            .with_resource_name(StrBytes::from_string(topic))
            .with_configuration_keys(keys.clone())
    });
    let request = DescribeConfigsRequest::default().with_resources(resources.collect());
    cluster.call(Target::Any, &request).await
}
