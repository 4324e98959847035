//! Topics on the target: created as the source has them, and grown.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tokio::sync::mpsc;
use twinlog_protocol::ErrorCode;
use twinlog_protocol::message::types::{
    CreatePartitionsRequest, CreateTopicsRequest, StrBytes, TopicName, create_partitions_request,
    create_topics_request,
};

use super::state_topic::{StateRequest, store_settings};
use super::topic_configs::{ConfigReader, Untold};
use crate::config::FlowConfig;
use crate::io::cluster::{ClusterClient, Target};
use crate::io::error::CallError;
use crate::machine::acceptance::{Acceptance, Progress, Setting};
use crate::machine::config_sync::remembered_of;
use crate::machine::topic_sync::MirroredTopic;
use crate::policy::{ReplicationFactor, SourceConfigs};

const CREATE_TIMEOUT_MS: i32 = 30_000;
/// Topics, and partitions of all of them, that are created by one request; a topic with more has one of its own. Managed
/// clusters limit both (`controller_mutation_rate`).
const CREATED_AT_ONCE: usize = 25;
const PARTITIONS_AT_ONCE: i64 = 500;

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

/// Settings that the target would not take, by target topic.
pub(super) type Refused = BTreeSet<(String, Setting)>;

/// How the preparation of topics ended.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// Source topics that could not be prepared.
    pub(super) failures: Vec<(String, Failure)>,
    /// What was refused, also before.
    pub(super) refused: Refused,
}

impl Prepared {
    /// Why the next topics need not be tried: they would wait as long for nothing.
    fn lost_answer(&self) -> Option<Failure> {
        self.failures.last().map(|(_, why)| why).filter(|why| why.concerns_all()).cloned()
    }

    fn fail<'a>(&mut self, topics: impl IntoIterator<Item = &'a MirroredTopic>, why: &Failure) {
        self.failures.extend(topics.into_iter().map(|topic| (topic.source_topic.clone(), why.clone())));
    }
}

/// A topic on its way into the target.
struct Draft {
    topic: MirroredTopic,
    acceptance: Acceptance,
}

/// How topics are created.
struct Creation<'a> {
    flow: &'a str,
    target: &'a ClusterClient,
    replicas: i16,
    factor: &'a ReplicationFactor,
    brokers: usize,
}

/// What a target said of a topic: done, or why not, in its own words.
pub(super) type Said = Result<(), (ErrorCode, String)>;

/// The same by topic.
pub(super) type Answers = HashMap<String, Said>;

/// One answer as brokers give it.
pub(super) fn said(code: i16, message: Option<&str>) -> Said {
    ErrorCode::check(code).map_err(|code| (code, message.unwrap_or_default().to_owned()))
}

/// Creates the mirrors of topics, and stores before what is set on them. What was `refused` before is not tried again.
pub(super) async fn create(
    reader: &ConfigReader,
    config: &FlowConfig,
    state: &mpsc::Sender<StateRequest>,
    topics: &[MirroredTopic],
    refused: Refused,
) -> Prepared {
    let mut prepared = Prepared { refused, ..Prepared::default() };
    let (factor, brokers) = (&config.replication_factor, reader.target.metadata().brokers.len());
    let replicas = match factor.decide(brokers) {
        Ok(decision) => {
            if let Some(warning) = decision.warning
                && !topics.is_empty()
                && reader.told.take_factor_cut()
            {
                tracing::warn!(flow = config.name, "{warning}");
            }
            decision.replicas
        }
        Err(error) => {
            prepared.fail(topics, &Failure::Lasting(error.to_string()));
            return prepared;
        }
    };
    let creation = Creation { flow: &config.name, target: &reader.target, replicas, factor, brokers };
    for now in requests(topics) {
        match prepared.lost_answer() {
            Some(why) => prepared.fail(now, &why),
            None => {
                let drafts = drafts(reader, state, now, &mut prepared).await;
                creation.carry_out(drafts, &mut prepared).await;
            }
        }
    }
    prepared
}

/// Topics by the requests that they go into.
fn requests(topics: &[MirroredTopic]) -> impl Iterator<Item = &[MirroredTopic]> {
    let mut left = topics;
    std::iter::from_fn(move || {
        let (now, later) = left.split_at_checked(fitting(left))?;
        left = later;
        Some(now)
    })
}

/// How many of these topics one request may create.
fn fitting(topics: &[MirroredTopic]) -> usize {
    let mut partitions = 0;
    let fits = |topic: &&MirroredTopic| {
        partitions += i64::from(topic.partitions);
        partitions <= PARTITIONS_AT_ONCE
    };
    topics.iter().take(CREATED_AT_ONCE).take_while(fits).count().max(1)
}

/// What these topics are to be created with, stored.
async fn drafts(
    reader: &ConfigReader,
    state: &mpsc::Sender<StateRequest>,
    topics: &[MirroredTopic],
    prepared: &mut Prepared,
) -> Vec<Draft> {
    let mut told = match reader.read(Target::Any, topics.iter().map(|topic| topic.source_topic.clone())).await
    {
        Ok(told) => told,
        Err(error) => {
            prepared.fail(topics, &error.into());
            return Vec::new();
        }
    };
    let (mut drafts, mut remembered) = (Vec::new(), Vec::new());
    for topic in topics {
        let configs = match told.remove(&topic.source_topic).map_or_else(|| Err(left_out()), told_configs) {
            Ok(configs) => configs,
            Err(why) => {
                prepared.fail([topic], &why);
                continue;
            }
        };
        let settings = configs.into_iter().map(|(name, value)| Setting { name, value: Some(value) });
        let is_new =
            |setting: &Setting| !prepared.refused.contains(&(topic.target_topic.clone(), setting.clone()));
        let settings: Vec<Setting> = settings.filter(is_new).collect();
        if !settings.is_empty() {
            remembered.push((topic.target_topic.clone(), remembered_of(&settings)));
        }
        drafts.push(Draft { topic: topic.clone(), acceptance: Acceptance::new(settings, true) });
    }
    store_settings(state, remembered).await;
    drafts
}

fn left_out() -> Failure {
    Failure::Lasting("the answer leaves the topic out".to_owned())
}

/// The configs to create a mirror with. Without the right to read them it gets the target's defaults, which was told.
fn told_configs(told: Result<SourceConfigs, Untold>) -> Result<BTreeMap<String, String>, Failure> {
    match told {
        Ok(configs) => Ok(configs.copied),
        Err(Untold::NoRight) => Ok(BTreeMap::new()),
        Err(Untold::Undecided(reason)) => Err(Failure::Lasting(reason)),
        Err(Untold::Refused(code, message)) => {
            let reason = format!("the source does not tell the topic's configs: {code}: {message}");
            Err(Failure::refused(code, reason))
        }
    }
}

impl Creation<'_> {
    /// Creates topics. A config that the target does not take is left out, with a warning, rather than the topic.
    async fn carry_out(&self, drafts: Vec<Draft>, prepared: &mut Prepared) {
        let mut left = drafts;
        while let Some(first) = left.first() {
            let dry_run = first.acceptance.is_dry_run();
            let (now, later): (Vec<Draft>, Vec<Draft>) =
                left.into_iter().partition(|draft| draft.acceptance.is_dry_run() == dry_run);
            left = later;
            let mut answers = match self.ask(&now, dry_run).await {
                Ok(answers) => answers,
                Err(error) => {
                    prepared.fail(now.iter().chain(&left).map(|draft| &draft.topic), &error.into());
                    return;
                }
            };
            for mut draft in now {
                let answer = answers.remove(&draft.topic.target_topic);
                match self.settle(&mut draft, answer, prepared) {
                    Ok(Progress::Again) => left.push(draft),
                    Ok(Progress::Accepted | Progress::Refused) => {}
                    Err(why) => prepared.fail([&draft.topic], &why),
                }
            }
        }
    }

    async fn ask(&self, drafts: &[Draft], dry_run: bool) -> Result<Answers, CallError> {
        let topics = drafts.iter().map(|draft| {
            let entries = draft.acceptance.asked().iter().cloned().map(|Setting { name, value }| {
                create_topics_request::CreatableTopicConfig::default()
                    .with_name(StrBytes::from_string(name))
                    .with_value(value.map(StrBytes::from_string))
            });
            create_topics_request::CreatableTopic::default()
                .with_name(TopicName(StrBytes::from_string(draft.topic.target_topic.clone())))
                .with_num_partitions(draft.topic.partitions)
                .with_replication_factor(self.replicas)
                .with_configs(entries.collect())
        });
        let request = CreateTopicsRequest::default()
            .with_topics(topics.collect())
            .with_timeout_ms(CREATE_TIMEOUT_MS)
            .with_validate_only(dry_run);
        let answer = self.target.call(Target::Controller, &request).await?;
        let results = answer.topics.into_iter();
        Ok(results
            .map(|it| (it.name.to_string(), said(it.error_code, it.error_message.as_deref())))
            .collect())
    }

    fn settle(
        &self,
        draft: &mut Draft,
        answer: Option<Said>,
        prepared: &mut Prepared,
    ) -> Result<Progress, Failure> {
        let MirroredTopic { source_topic, target_topic, partitions } = &draft.topic;
        let progress = match answer.ok_or_else(left_out)? {
            // Somebody else was faster.
            Err((ErrorCode::TopicAlreadyExists, _)) => Progress::Accepted,
            Err((code, message)) if !may_be_about_configs(code) => {
                return Err(self.refused(code, target_topic, &message));
            }
            Err((code, message)) => match draft.acceptance.handle_answer(Err(&message)) {
                Progress::Refused => return Err(self.refused(code, target_topic, &message)),
                progress => progress,
            },
            Ok(()) => draft.acceptance.handle_answer(Ok(())),
        };
        while let Some((setting, message)) = draft.acceptance.poll_left_out() {
            let (key, value) = (&setting.name, setting.value.as_deref().unwrap_or_default());
            tracing::warn!(
                flow = self.flow,
                topic = target_topic,
                key,
                value,
                "the target does not take this topic config, the topic is created without it: {message}"
            );
            prepared.refused.insert((target_topic.clone(), setting));
        }
        if progress == Progress::Accepted {
            tracing::info!(flow = self.flow, topic = source_topic, target_topic, partitions, "topic created");
        }
        Ok(progress)
    }

    fn refused(&self, code: ErrorCode, topic: &str, message: &str) -> Failure {
        let mut reason = format!("creating {topic} is refused with {code}: {message}");
        if code == ErrorCode::InvalidReplicationFactor {
            let (key, brokers) = (&self.factor.key, self.brokers);
            reason += &format!("; `{key}` gives {} replicas, brokers known: {brokers}", self.replicas);
        }
        Failure::refused(code, reason)
    }
}

/// Whether a topic that is refused so may be taken without one of its configs.
fn may_be_about_configs(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::InvalidConfig | ErrorCode::PolicyViolation | ErrorCode::InvalidRequest)
}

/// Creates one topic of our own.
///
/// # Errors
/// [`Failure`]: the target refuses, or does not answer.
pub(super) async fn create_own(
    target: &ClusterClient,
    config: &FlowConfig,
    (topic, factor, replicas): (&str, &ReplicationFactor, i16),
    configs: &[(&str, &str)],
) -> Result<(), Failure> {
    let setting =
        |(name, value): &(&str, &str)| Setting { name: (*name).to_owned(), value: Some((*value).to_owned()) };
    let topic =
        MirroredTopic { source_topic: topic.to_owned(), target_topic: topic.to_owned(), partitions: 1 };
    let acceptance = Acceptance::new(configs.iter().map(setting).collect(), true);
    let brokers = target.metadata().brokers.len();
    let creation = Creation { flow: &config.name, target, replicas, factor, brokers };
    let mut prepared = Prepared::default();
    creation.carry_out(vec![Draft { topic, acceptance }], &mut prepared).await;
    prepared.failures.pop().map_or(Ok(()), |(_, why)| Err(why))
}

/// Adds the partitions that mirrors lack.
pub(super) async fn grow(target: &ClusterClient, topics: &[MirroredTopic], prepared: &mut Prepared) {
    for now in requests(topics) {
        if let Some(why) = prepared.lost_answer() {
            prepared.fail(now, &why);
            continue;
        }
        match ask_to_grow(target, now).await {
            Ok(mut answers) => {
                for topic in now {
                    if let Err(why) = grown(topic, answers.remove(&topic.target_topic)) {
                        prepared.fail([topic], &why);
                    }
                }
            }
            Err(error) => prepared.fail(now, &error.into()),
        }
    }
}

async fn ask_to_grow(target: &ClusterClient, topics: &[MirroredTopic]) -> Result<Answers, CallError> {
    let topics = topics.iter().map(|topic| {
        create_partitions_request::CreatePartitionsTopic::default()
            .with_name(TopicName(StrBytes::from_string(topic.target_topic.clone())))
            .with_count(topic.partitions)
            .with_assignments(None)
    });
    let request =
        CreatePartitionsRequest::default().with_topics(topics.collect()).with_timeout_ms(CREATE_TIMEOUT_MS);
    let answer = target.call(Target::Controller, &request).await?;
    let results = answer.results.into_iter();
    Ok(results.map(|it| (it.name.to_string(), said(it.error_code, it.error_message.as_deref()))).collect())
}

fn grown(topic: &MirroredTopic, answer: Option<Said>) -> Result<(), Failure> {
    match answer.ok_or_else(left_out)? {
        // Somebody else was faster.
        Ok(()) | Err((ErrorCode::InvalidPartitions, _)) => Ok(()),
        Err((code, message)) => {
            let MirroredTopic { target_topic, partitions, .. } = topic;
            let reason =
                format!("giving {target_topic} {partitions} partitions is refused with {code}: {message}");
            Err(Failure::refused(code, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn after_a_lost_answer_no_other_topic_is_tried() {
        let topic = MirroredTopic { source_topic: "a".into(), target_topic: "west.a".into(), partitions: 1 };
        let mut prepared = Prepared::default();
        assert!(prepared.lost_answer().is_none());
        prepared.fail([&topic], &Failure::Lasting("refused".into()));
        assert!(prepared.lost_answer().is_none());
        prepared.fail([&topic], &Failure::Unanswered("gone".into()));
        assert_eq!(prepared.lost_answer().unwrap().reason(), "gone");
    }

    #[test]
    fn a_topic_that_is_level_already_has_grown() {
        let topic = MirroredTopic { source_topic: "a".into(), target_topic: "west.a".into(), partitions: 9 };
        let refused = |code| Some(Err((code, "no".to_owned())));
        assert!(grown(&topic, Some(Ok(()))).is_ok());
        assert!(grown(&topic, refused(ErrorCode::InvalidPartitions)).is_ok());
        let why = grown(&topic, refused(ErrorCode::PolicyViolation)).unwrap_err();
        assert!(
            why.reason().starts_with("giving west.a 9 partitions is refused with POLICY_VIOLATION"),
            "{why:?}"
        );
        assert!(grown(&topic, None).is_err());
    }

    #[test]
    fn a_used_up_quota_passes() {
        assert!(matches!(
            Failure::refused(ErrorCode::ThrottlingQuotaExceeded, String::new()),
            Failure::Passing(_)
        ));
    }

    #[test]
    fn a_request_creates_25_topics_and_500_partitions_at_most() {
        let topics = |partitions: &[i32]| -> Vec<MirroredTopic> {
            let topic = |partitions: &i32| MirroredTopic {
                source_topic: "a".into(),
                target_topic: "west.a".into(),
                partitions: *partitions,
            };
            partitions.iter().map(topic).collect()
        };
        assert_eq!(fitting(&topics(&[1; 40])), 25);
        assert_eq!(fitting(&topics(&[200, 200, 100, 1])), 3);
        assert_eq!(fitting(&topics(&[200, 301, 1])), 1);
        assert_eq!(fitting(&topics(&[100_000, 1])), 1, "a large one goes alone");
        assert_eq!(fitting(&topics(&[i32::MAX; 3])), 1);
    }

    #[test]
    fn without_the_right_to_read_configs_topics_get_the_target_s_defaults() {
        assert_eq!(told_configs(Err(Untold::NoRight)).unwrap(), BTreeMap::new());
        let gone = Untold::Refused(ErrorCode::UnknownTopicOrPartition, String::new());
        assert!(matches!(told_configs(Err(gone)), Err(Failure::Passing(_))));
        assert!(matches!(told_configs(Err(Untold::Undecided(String::new()))), Err(Failure::Lasting(_))));
    }
}
