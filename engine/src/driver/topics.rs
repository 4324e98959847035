//! Topics on the target: created as the source has them, and grown.

use twinlog_protocol::ErrorCode;
use twinlog_protocol::message::types::{
    CreatePartitionsRequest, CreateTopicsRequest, StrBytes, TopicName, create_partitions_request,
    create_topics_request,
};

use super::topic_configs::Configs;
use crate::config::FlowConfig;
use crate::io::cluster::{ClusterClient, Target};
use crate::io::error::CallError;
use crate::machine::topic_sync::MirroredTopic;

const CREATE_TIMEOUT_MS: i32 = 30_000;
/// Attempts to create a topic, each without one more config that the target does not take.
const CONFIG_ATTEMPTS_MAX: usize = 20;

/// Why a topic could not be prepared, in words.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// A request or its answer was lost.
    Unanswered(String),
    /// The broker asks to try again.
    Passing(String),
    /// Somebody has to change something first.
    Lasting(String),
}

impl Failure {
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Unanswered(reason) | Self::Passing(reason) | Self::Lasting(reason) => reason,
        }
    }

    /// Whether the next topic would wait as long for nothing. A broker that answers says something about one topic only.
    fn concerns_all(&self) -> bool {
        matches!(self, Self::Unanswered(_))
    }

    fn refused(code: ErrorCode, reason: String) -> Self {
        // Brokers that metadata names may be starting yet; too few of them are found out before.
        let passes = code.is_retriable() || code == ErrorCode::InvalidReplicationFactor;
        if passes { Self::Passing(reason) } else { Self::Lasting(reason) }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let reason = error.to_string();
        if error.is_retriable() { Self::Unanswered(reason) } else { Self::Lasting(reason) }
    }
}

/// Creates the mirrors of topics; gives those that could not be.
pub(super) async fn create(
    target: &ClusterClient,
    config: &FlowConfig,
    topics: &[MirroredTopic],
    configs: &Configs,
) -> Vec<(String, Failure)> {
    let brokers = target.metadata().brokers.len();
    let replicas = match config.replication_factor.decide(brokers) {
        Ok(decision) => {
            if let (Some(warning), false) = (decision.warning, topics.is_empty()) {
                tracing::warn!(flow = config.name, "{warning}");
            }
            decision.replicas
        }
        Err(error) => {
            let why = Failure::Lasting(error.to_string());
            return topics.iter().map(|topic| (topic.source_topic.clone(), why.clone())).collect();
        }
    };
    let mut failures: Vec<(String, Failure)> = Vec::new();
    for topic in topics {
        let result = match failures.last() {
            Some((_, why)) if why.concerns_all() => Err(why.clone()),
            _ => create_mirror(target, config, topic, configs, replicas).await,
        };
        failures.extend(result.err().map(|why| (topic.source_topic.clone(), why)));
    }
    failures
}

async fn create_mirror(
    target: &ClusterClient,
    config: &FlowConfig,
    topic: &MirroredTopic,
    configs: &Configs,
    replicas: i16,
) -> Result<(), Failure> {
    let MirroredTopic { source_topic, target_topic, partitions } = topic;
    let known = configs.get(source_topic).ok_or_else(|| {
        Failure::Lasting(
            "the source does not tell the topic's configs (right DESCRIBE_CONFIGS missing?)".to_owned(),
        )
    })?;
    create_one(target, target_topic, *partitions, replicas, known.clone()).await?;
    tracing::info!(flow = config.name, topic = source_topic, target_topic, partitions, "topic created");
    Ok(())
}

/// Creates a topic. A config that the target does not take is left out, with a warning, rather than the topic.
pub(super) async fn create_one(
    target: &ClusterClient,
    name: &str,
    partitions: i32,
    replicas: i16,
    mut configs: Vec<(String, String)>,
) -> Result<(), Failure> {
    for _ in 0..CONFIG_ATTEMPTS_MAX {
        let entries = configs.iter().map(|(key, value)| {
            create_topics_request::CreatableTopicConfig::default()
                .with_name(StrBytes::from_string(key.clone()))
                .with_value(Some(StrBytes::from_string(value.clone())))
        });
        let topic = create_topics_request::CreatableTopic::default()
            .with_name(TopicName(StrBytes::from_string(name.to_owned())))
            .with_num_partitions(partitions)
            .with_replication_factor(replicas)
            .with_configs(entries.collect());
        let request =
            CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(CREATE_TIMEOUT_MS);
        let answer = target.call(Target::Controller, &request).await?;
        let Some(result) = answer.topics.first() else {
            return Err(Failure::Lasting("the answer leaves the topic out".to_owned()));
        };
        let message = result.error_message.as_deref().unwrap_or_default();
        match ErrorCode::check(result.error_code) {
            Ok(()) | Err(ErrorCode::TopicAlreadyExists) => return Ok(()),
            Err(ErrorCode::InvalidConfig) if leave_out(name, &mut configs, message) => {}
            Err(code) => {
                let reason = format!("creating {name} is refused with {code}: {message}");
                return Err(Failure::refused(code, reason));
            }
        }
    }
    Err(Failure::Lasting(format!("creating {name} is refused: the target takes too few of its configs")))
}

/// Leaves out the config that the target's refusal names, if it names one.
fn leave_out(topic: &str, configs: &mut Vec<(String, String)>, message: &str) -> bool {
    let named = configs.iter().position(|(key, _)| {
        message.match_indices(key.as_str()).any(|(at, _)| {
            let after = message[at + key.len()..].chars().next();
            // `segment.ms` is not named by `segment.ms.max`.
            !after.is_some_and(|next| next == '.' || next.is_ascii_alphanumeric())
        })
    });
    let Some(place) = named else { return false };
    let (key, value) = configs.remove(place);
    tracing::warn!(
        topic,
        key,
        value,
        "the target does not take this topic config, created without it: {message}"
    );
    true
}

/// Adds the partitions that a mirror lacks.
///
/// # Errors
/// [`Failure`]: the target refuses, or does not answer.
pub(super) async fn grow(target: &ClusterClient, topic: &MirroredTopic) -> Result<(), Failure> {
    let name = &topic.target_topic;
    let wanted = create_partitions_request::CreatePartitionsTopic::default()
        .with_name(TopicName(StrBytes::from_string(name.clone())))
        .with_count(topic.partitions)
        .with_assignments(None);
    let request =
        CreatePartitionsRequest::default().with_topics(vec![wanted]).with_timeout_ms(CREATE_TIMEOUT_MS);
    let answer = target.call(Target::Controller, &request).await?;
    let Some(result) = answer.results.first() else {
        return Err(Failure::Lasting("the answer leaves the topic out".to_owned()));
    };
    match ErrorCode::check(result.error_code) {
        // Somebody else was faster.
        Ok(()) | Err(ErrorCode::InvalidPartitions) => Ok(()),
        Err(code) => {
            let message = result.error_message.as_deref().unwrap_or_default();
            let partitions = topic.partitions;
            let reason = format!("giving {name} {partitions} partitions is refused with {code}: {message}");
            Err(Failure::refused(code, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configs() -> Vec<(String, String)> {
        ["segment.ms", "segment.bytes", "segment"].map(|key| (key.to_owned(), "1".to_owned())).into()
    }

    #[test]
    fn only_a_lost_answer_keeps_other_topics_waiting() {
        let refused = |code| Failure::refused(code, String::new());
        assert!(!refused(ErrorCode::RequestTimedOut).concerns_all());
        assert!(!refused(ErrorCode::InvalidReplicationFactor).concerns_all());
        assert!(!refused(ErrorCode::PolicyViolation).concerns_all());
        let lost = CallError::NoController { cluster: "east".into() };
        assert!(lost.is_retriable() && Failure::from(lost).concerns_all());
    }

    #[test]
    fn the_named_config_is_left_out_and_no_other() {
        let mut left = configs();
        assert!(leave_out("t", &mut left, "Unknown topic config name: segment.bytes"));
        assert_eq!(left.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["segment.ms", "segment"]);
        assert!(leave_out("t", &mut left, "Invalid value 1 for configuration segment: too small"));
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn a_refusal_that_names_none_of_ours_is_final() {
        let mut left = configs();
        assert!(!leave_out("t", &mut left, "Unknown topic config name: segment.bytes.max"));
        assert_eq!(left, configs());
    }
}
