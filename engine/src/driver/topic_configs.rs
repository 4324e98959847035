//! What brokers tell of the configs of topics, and of their own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::sleep;
use twinlog_protocol::ErrorCode;
use twinlog_protocol::message::types::describe_configs_response::DescribeConfigsResult;
use twinlog_protocol::message::types::{DescribeConfigsRequest, StrBytes, describe_configs_request};

use super::lanes::CONFIG_LANE;
use crate::io::cluster::{ClusterClient, Target};
use crate::io::error::CallError;
use crate::machine::topic_sync::MirroredTopic;
use crate::policy::{ConfigSource, SourceConfigs, TopicConfigEntry, TopicConfigFilter};

/// What becomes of old records of a topic.
pub(super) const CLEANUP_POLICY: &str = "cleanup.policy";
/// Topics whose configs are asked for or changed in one request.
pub(super) const TOPICS_AT_ONCE: usize = 100;
/// The types of resources that have configs (`ConfigResource.Type`).
pub(super) const TOPIC_RESOURCE: i8 = 2;
const BROKER_RESOURCE: i8 = 4;
/// Whether a broker has tiered storage (KIP-405).
const TIERED_STORAGE: &str = "remote.log.storage.system.enable";
/// Attempts to learn topic configs, and the pause between two.
const DESCRIBE_ATTEMPTS_MAX: u32 = 3;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(500);

/// Why the configs of one topic are not known.
#[derive(Debug, Clone)]
pub(super) enum Untold {
    /// The right to read them is missing. Told already.
    NoRight,
    /// The broker gives an error.
    Refused(ErrorCode, String),
    /// `config.properties.exclude` cannot be applied to one of them.
    Undecided(String),
}

/// Reads the configs of source topics as the flow's rules see them; for whoever creates topics, and whoever keeps their
/// configs level.
#[derive(Clone)]
pub(super) struct ConfigReader {
    pub(super) flow: String,
    pub(super) source: ClusterClient,
    pub(super) target: ClusterClient,
    pub(super) filter: TopicConfigFilter,
    pub(super) told: Arc<ToldOnce>,
}

/// What is told once, by whoever meets it first.
#[derive(Debug, Default)]
pub(super) struct ToldOnce {
    no_right: AtomicBool,
    no_tiered_storage: AtomicBool,
    factor_cut: AtomicBool,
}

impl ToldOnce {
    /// Whether it is still to be told that topics are created with a smaller factor than the default.
    pub(super) fn take_factor_cut(&self) -> bool {
        !self.factor_cut.swap(true, Ordering::Relaxed)
    }
}

impl ConfigReader {
    /// What the configs of source topics, at most [`TOPICS_AT_ONCE`], ask of their mirrors.
    ///
    /// # Errors
    /// [`CallError`] when the source does not answer.
    pub(super) async fn read(
        &self,
        asked: Target,
        source_topics: impl Iterator<Item = String>,
    ) -> Result<HashMap<String, Result<SourceConfigs, Untold>>, CallError> {
        let results = describe(&self.source, asked, source_topics.map(|topic| (topic, None))).await?;
        let judged = results.iter().map(|result| (result.resource_name.to_string(), self.judge(result)));
        let mut judged: HashMap<_, _> = judged.collect();
        let has_tiered_storage = |configs: &&mut SourceConfigs| configs.has_tiered_storage();
        let mut tiered: Vec<_> = judged.values_mut().flatten().filter(has_tiered_storage).collect();
        if !tiered.is_empty() && self.target_has_tiered_storage().await == Some(false) {
            tiered.iter_mut().for_each(|configs| configs.leave_out_tiered_storage());
            if !self.told.no_tiered_storage.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    flow = self.flow,
                    "the brokers of {} have no tiered storage ({TIERED_STORAGE}): `remote.*` and `local.retention.*` \
                     configs of topics are left out, so all that is retained lies on the brokers",
                    self.target.alias()
                );
            }
        }
        Ok(judged)
    }

    fn judge(&self, result: &DescribeConfigsResult) -> Result<SourceConfigs, Untold> {
        match ErrorCode::check(result.error_code) {
            Ok(()) => {
                self.filter.judge(&entries(result)).map_err(|error| Untold::Undecided(error.to_string()))
            }
            Err(ErrorCode::TopicAuthorizationFailed | ErrorCode::ClusterAuthorizationFailed) => {
                if !self.told.no_right.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        flow = self.flow,
                        topic = &*result.resource_name,
                        "{} does not tell the configs of topics (right DESCRIBE_CONFIGS missing): where it does not, \
                         topics are created with the target's defaults, and configs are not synced",
                        self.source.alias()
                    );
                }
                Err(Untold::NoRight)
            }
            Err(code) => {
                Err(Untold::Refused(code, result.error_message.as_deref().unwrap_or_default().to_owned()))
            }
        }
    }

    /// Whether the target's brokers have tiered storage; none where they do not tell.
    async fn target_has_tiered_storage(&self) -> Option<bool> {
        let node = *self.target.metadata().brokers.keys().next()?;
        let keys = Some(vec![StrBytes::from_static_str(TIERED_STORAGE)]);
        let resource = describe_configs_request::DescribeConfigsResource::default()
            .with_resource_type(BROKER_RESOURCE)
            .with_resource_name(StrBytes::from_string(node.to_string()))
            .with_configuration_keys(keys);
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        let asked = Target::Node { node, lane: CONFIG_LANE };
        let answer = self.target.call(asked, &request).await.ok()?;
        let told = answer.results.into_iter().filter(|result| ErrorCode::check(result.error_code).is_ok());
        let mut entries = told.flat_map(|result| result.configs);
        let value = entries.find(|entry| *entry.name == *TIERED_STORAGE)?.value?;
        Some(value.eq_ignore_ascii_case("true"))
    }
}

/// Which of these topics lose records out of the middle of their logs. Those whose configs the source does not tell count
/// as such: it costs a store for each stretch, where the other mistake could cost records.
pub(super) async fn compacted(source: &ClusterClient, topics: &[MirroredTopic]) -> BTreeSet<String> {
    let mut compacted = BTreeSet::new();
    for topics in topics.chunks(TOPICS_AT_ONCE) {
        let names = || topics.iter().map(|topic| topic.source_topic.clone());
        // A lost answer is no answer; who gets none at all counts them all.
        let mut attempts = 0..DESCRIBE_ATTEMPTS_MAX;
        let policies = loop {
            match cleanup_policies(source, names()).await {
                Ok(policies) => break policies,
                Err(_) if attempts.next().is_some() => sleep(ATTEMPT_PAUSE).await,
                Err(_) => break HashMap::new(),
            }
        };
        let is_compacted =
            |topic: &String| policies.get(topic).is_none_or(|policy| policy.contains("compact"));
        compacted.extend(names().filter(is_compacted));
    }
    compacted
}

/// What becomes of old records, of those topics whose configs the cluster tells.
pub(super) async fn cleanup_policies(
    cluster: &ClusterClient,
    topics: impl Iterator<Item = String>,
) -> Result<HashMap<String, String>, CallError> {
    let keys = || Some(vec![StrBytes::from_static_str(CLEANUP_POLICY)]);
    let results = describe(cluster, Target::Any, topics.map(|topic| (topic, keys()))).await?;
    let told = results.into_iter().filter(|result| ErrorCode::check(result.error_code).is_ok());
    let policies = told.filter_map(|result| {
        let policy = result.configs.into_iter().find_map(|entry| entry.value)?;
        Some((result.resource_name.to_string(), policy.to_string()))
    });
    Ok(policies.collect())
}

/// The settings of the target's topics themselves, as far as they are asked for; or the error of a topic.
///
/// # Errors
/// [`CallError`] when the target does not answer.
pub(super) async fn mirror_settings(
    target: &ClusterClient,
    asked: Target,
    topics: impl Iterator<Item = (String, BTreeSet<String>)>,
) -> Result<HashMap<String, Result<BTreeMap<String, String>, ErrorCode>>, CallError> {
    let keys = |names: BTreeSet<String>| names.into_iter().map(StrBytes::from_string).collect();
    let topics = topics.map(|(topic, names)| (topic, Some(keys(names))));
    let results = describe(target, asked, topics).await?;
    let settings = |result: &DescribeConfigsResult| {
        ErrorCode::check(result.error_code)?;
        let all = entries(result).into_iter().filter(|entry| entry.source == ConfigSource::DynamicTopic);
        Ok(all.filter_map(|entry| Some((entry.name.to_owned(), entry.value?.to_owned()))).collect())
    };
    Ok(results.iter().map(|result| (result.resource_name.to_string(), settings(result))).collect())
}

fn entries(result: &DescribeConfigsResult) -> Vec<TopicConfigEntry<'_>> {
    let entries = result.configs.iter().map(|entry| TopicConfigEntry {
        name: &entry.name,
        value: entry.value.as_deref(),
        source: ConfigSource::from_wire(entry.config_source),
        read_only: entry.read_only,
        sensitive: entry.is_sensitive,
    });
    entries.collect()
}

/// Asks for configs of topics: those named, or all.
async fn describe(
    cluster: &ClusterClient,
    asked: Target,
    topics: impl Iterator<Item = (String, Option<Vec<StrBytes>>)>,
) -> Result<Vec<DescribeConfigsResult>, CallError> {
    let resources = topics.map(|(topic, keys)| {
        describe_configs_request::DescribeConfigsResource::default()
            .with_resource_type(TOPIC_RESOURCE)
            .with_resource_name(StrBytes::from_string(topic))
            .with_configuration_keys(keys)
    });
    let request = DescribeConfigsRequest::default().with_resources(resources.collect());
    Ok(cluster.call(asked, &request).await?.results)
}
