//! What one flow does, in types.

use std::time::Duration;

use twinlog_protocol::batch::Compression;
use twinlog_protocol::fetch::IsolationLevel;

use super::client_ids::{self, ClientIds};
use super::cluster::{self, ClusterConfig};
use super::compression;
use super::error::Fault;
use super::form::Form;
use super::isolation_level;
use super::left_out;
use super::losses;
use super::patterns;
use super::properties::Entry;
use super::resolve::{Resolver, Setting, parse_integer};
use super::settings::Side;
use super::sizes;
use super::start_position::{self, StartPosition};
use crate::machine::loss::LossPolicy;
use crate::policy::{
    NameFilter, ReplicationFactor, ReplicationPolicy, Separators, TopicConfigFilter, TopicSelection,
    is_of_topic_names,
};

/// Seconds between two listings of the source's topics where nobody wrote it.
const REFRESH_TOPICS_SECONDS: u64 = 600;

/// New topics and partitions are seen no later than this, however long the interval in the file.
pub(super) const REFRESH_TOPICS_SECONDS_MAX: u64 = 30;

/// Seconds between two comparisons of topic configs where nobody wrote it.
const SYNC_TOPIC_CONFIGS_SECONDS: u64 = 600;

/// Replicas of a mirrored topic where nobody wrote it.
const REPLICATION_FACTOR: i16 = 2;

/// Replicas of the state topic where nobody wrote it.
const OFFSET_STORAGE_REPLICATION_FACTOR: i16 = 3;

/// Package of MM2's classes.
const MIRROR_PACKAGE: &str = "org.apache.kafka.connect.mirror.";

/// The policy that keeps names.
const IDENTITY: &str = "IdentityReplicationPolicy";

/// How offsets on the target relate to those of the source (`offsets.mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetsMode {
    /// Left to twinlog, which maps until equal offsets are built.
    Auto,
    /// Always mapped.
    Mapped,
}

/// One enabled flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowConfig {
    /// Its name by the names in `clusters`, such as `west->east`.
    pub name: String,
    /// Where records come from.
    pub source: ClusterConfig,
    /// Where they go.
    pub target: ClusterConfig,
    /// How brokers know its clients: `client.id` of each.
    pub client_ids: ClientIds,
    /// The rack of its reader at the source: `client.rack`, empty where there is none.
    pub source_rack: String,
    /// Which topics are mirrored and what they are called: `topics`, `topics.exclude`, `replication.policy.*`,
    /// `heartbeats.replication.enabled`.
    pub selection: TopicSelection,
    /// Whose positions are meant: `groups`, `groups.exclude`. They are not synced yet.
    pub groups: NameFilter,
    /// Which configs a mirror gets: `config.properties.exclude`, `use.defaults.from`.
    pub topic_configs: TopicConfigFilter,
    /// Of mirrored topics: `replication.factor`.
    pub replication_factor: ReplicationFactor,
    /// Of the state topic: `offset.storage.replication.factor`.
    pub offset_storage_replication_factor: ReplicationFactor,
    /// Time between two listings of the source's topics: `refresh.topics.interval.seconds`, but never more than 30 s; none
    /// when `refresh.topics.enabled` is false, so that only the topics found at start are mirrored.
    pub refresh_topics_interval: Option<Duration>,
    /// Time between two comparisons of topic configs: `sync.topic.configs.interval.seconds`; none when
    /// `sync.topic.configs.enabled` is false, so that a mirror keeps the configs that it was created with.
    pub sync_topic_configs_interval: Option<Duration>,
    /// `offsets.mode`.
    pub offsets_mode: OffsetsMode,
    /// `loops.allow`: what looks like a loop is told and run, where somebody can see to it that it is none.
    pub loops_allowed: bool,
    /// Bytes of records that may be copied in a second: `throttle`; none for no limit.
    pub throttle_bytes_per_second: Option<u64>,
    /// `auto.offset.reset` of the consumer at the source.
    pub start_position: StartPosition,
    /// Which records of the source are copied: `isolation.level` of its consumer.
    pub isolation_level: IsolationLevel,
    /// What happens when records are lost: `on.loss`, `on.target.loss`, `errors.tolerance`.
    pub losses: LossPolicy,
    /// In which codec records are written: `compression.type`; none where every batch keeps its own.
    pub compression: Option<Compression>,
}

/// Reads the flow; none when a fault was found, which the resolver holds.
pub(super) fn read(resolver: &mut Resolver<'_>) -> Option<FlowConfig> {
    let source = cluster::read(resolver, Side::Source);
    let target = cluster::read(resolver, Side::Target);
    warn_about_enabled(resolver);
    let filter = patterns::topic_filter(resolver);
    let topic_configs = patterns::topic_configs(resolver);
    let groups = patterns::group_filter(resolver);
    let heartbeats_replicated = resolver.boolean("heartbeats.replication.enabled", true).value;
    let replication_factor = replication_factor(resolver);
    let offset_storage_replication_factor = offset_storage_replication_factor(resolver);
    let refresh_topics_interval = refresh_interval(resolver);
    let sync_topic_configs_interval = sync_topic_configs_interval(resolver);
    let offsets_mode = offsets_mode(resolver);
    let loops_allowed = resolver.boolean("loops.allow", false).value;
    let throttle_bytes_per_second = sizes::throttle(resolver);
    let start_position = start_position::read(resolver);
    let isolation_level = isolation_level::read(resolver);
    let losses = losses::read(resolver);
    let compression = compression::read(resolver);
    let separators = separators(resolver);
    let policy_kind = policy_kind(resolver);
    let (source, target) = (source?, target?);
    let policy = policy(resolver, policy_kind?, separators, &source, &target)?;
    let selection = TopicSelection::new(filter?, policy, &source.alias, &target.alias, heartbeats_replicated);
    left_out::check(resolver, &selection, &target.alias);
    Some(FlowConfig {
        name: resolver.names().flow(),
        client_ids: client_ids::read(resolver, &source.alias, &target.alias),
        source_rack: client_ids::source_rack(resolver),
        selection,
        source,
        target,
        groups: groups?,
        topic_configs: topic_configs?,
        replication_factor,
        offset_storage_replication_factor,
        refresh_topics_interval,
        sync_topic_configs_interval,
        offsets_mode,
        loops_allowed,
        throttle_bytes_per_second,
        start_position,
        isolation_level,
        losses,
        compression,
    })
}

/// A flow of a properties file is here because it is enabled; a connector runs even if it is not, and does nothing.
fn warn_about_enabled(resolver: &mut Resolver<'_>) {
    let Some(entry) = resolver.find("enabled") else { return };
    match resolver.form() {
        // MM2 reads this switch twice, once without trimming it.
        Form::Properties if entry.value != entry.value.trim() => resolver.warn(
            entry,
            "taken as true; MM2 takes it for false while heartbeats are off, because of the blank",
        ),
        Form::Properties => {}
        Form::Connector => {
            if !resolver.boolean("enabled", true).value {
                let text = "the flow is not enabled, so the connector runs and copies nothing";
                resolver.warn_with(entry, text, "remove the key, or write `true`");
            }
        }
    }
}

fn replication_factor(resolver: &mut Resolver<'_>) -> ReplicationFactor {
    let entry = resolver.find("replication.factor");
    factor(resolver, "replication.factor", entry, REPLICATION_FACTOR)
}

fn offset_storage_replication_factor(resolver: &mut Resolver<'_>) -> ReplicationFactor {
    let key = "offset.storage.replication.factor";
    let entry = resolver.worker().get(key);
    factor(resolver, key, entry, OFFSET_STORAGE_REPLICATION_FACTOR)
}

fn factor(resolver: &mut Resolver<'_>, key: &str, entry: Option<&Entry>, default: i16) -> ReplicationFactor {
    let unwritten = ReplicationFactor { value: default, key: key.to_owned(), line: None };
    let Some(entry) = entry else { return unwritten };
    match parse_integer(&entry.value).and_then(|value| i16::try_from(value).ok()) {
        Some(value) if value == -1 || value >= 1 => {
            ReplicationFactor { value, key: entry.key.clone(), line: Some(entry.line) }
        }
        _ => {
            let remedy = "write a number from 1, or -1 for the broker's own default";
            resolver.fault(Fault::of(entry, "not a replication factor").remedy(remedy));
            unwritten
        }
    }
}

fn refresh_interval(resolver: &mut Resolver<'_>) -> Option<Duration> {
    let enabled = resolver.boolean("refresh.topics.enabled", true).value;
    let interval = resolver.seconds("refresh.topics.interval.seconds", REFRESH_TOPICS_SECONDS);
    let longest = Duration::from_secs(REFRESH_TOPICS_SECONDS_MAX);
    interval.filter(|_| enabled).map(|interval| interval.min(longest))
}

fn sync_topic_configs_interval(resolver: &mut Resolver<'_>) -> Option<Duration> {
    let enabled = resolver.boolean("sync.topic.configs.enabled", true).value;
    let interval = resolver.seconds("sync.topic.configs.interval.seconds", SYNC_TOPIC_CONFIGS_SECONDS);
    interval.filter(|_| enabled)
}

fn offsets_mode(resolver: &mut Resolver<'_>) -> OffsetsMode {
    let key = "offsets.mode";
    let Some(Setting { value, .. }) = resolver.string(key) else { return OffsetsMode::Auto };
    let entry = resolver.find(key).expect("a setting that was read is written somewhere");
    match value.as_str() {
        "auto" => OffsetsMode::Auto,
        "mapped" => OffsetsMode::Mapped,
        "identical" => {
            resolver.fault(
                Fault::of(entry, "equal offsets are not built yet")
                    .remedy("write `mapped`, or remove the key: partitions are mapped"),
            );
            OffsetsMode::Auto
        }
        _ => {
            resolver.fault(Fault::of(entry, "not a mode").remedy("write `auto` or `mapped`"));
            OffsetsMode::Auto
        }
    }
}

fn separators(resolver: &mut Resolver<'_>) -> Separators {
    let written = resolver.find("replication.policy.separator");
    // Not trimmed, as in MM2: a blank is part of it.
    let separator = written.map_or(".", |entry| entry.value.as_str());
    if let Some((entry, bad)) = written.zip(not_of_a_topic_name(separator)) {
        let what = if bad == ' ' { "a blank".to_owned() } else { format!("`{bad}`") };
        let reason = format!("{what} cannot be part of a topic's name");
        resolver.fault(Fault::of(entry, reason).remedy("use letters, digits, `.`, `_` or `-`"));
    }
    let internal = resolver.boolean("replication.policy.internal.topic.separator.enabled", true).value;
    Separators::new(separator, internal)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PolicyKind {
    Default,
    Identity,
}

fn policy_kind(resolver: &mut Resolver<'_>) -> Option<PolicyKind> {
    let key = "replication.policy.class";
    let Some(entry) = resolver.find(key) else { return Some(PolicyKind::Default) };
    match class_name(entry) {
        "DefaultReplicationPolicy" => Some(PolicyKind::Default),
        IDENTITY => Some(PolicyKind::Identity),
        _ => {
            let remedy =
                format!("use `{MIRROR_PACKAGE}DefaultReplicationPolicy` or `…IdentityReplicationPolicy`");
            resolver.fault(Fault::of(entry, "this class cannot be run here").remedy(remedy));
            None
        }
    }
}

/// Whether the policy is the one that keeps names, for what is to be said of a flow that has other faults.
pub(super) fn is_identity(resolver: &Resolver<'_>) -> bool {
    resolver.find("replication.policy.class").is_some_and(|entry| class_name(entry) == IDENTITY)
}

/// The class without MM2's package.
fn class_name(entry: &Entry) -> &str {
    let class = entry.value.trim();
    class.strip_prefix(MIRROR_PACKAGE).unwrap_or(class)
}

/// Under the identity policy every topic comes from the source alias, so equal aliases make all of them cycles: MM2
/// then copies nothing and says nothing.
fn policy(
    resolver: &mut Resolver<'_>,
    kind: PolicyKind,
    separators: Separators,
    source: &ClusterConfig,
    target: &ClusterConfig,
) -> Option<ReplicationPolicy> {
    match kind {
        PolicyKind::Default => {
            check_alias(resolver, &source.alias);
            Some(ReplicationPolicy::Default(separators))
        }
        PolicyKind::Identity if source.alias == target.alias => {
            let entry = resolver.find(Side::Source.alias_key()).or(resolver.find(Side::Target.alias_key()));
            let entry = entry.expect("names in `clusters` differ, so a key made the aliases equal");
            let reason = "source and target have the same alias, which under IdentityReplicationPolicy makes every \
                          topic look as if it came from the target: nothing would be copied";
            resolver.fault(Fault::of(entry, reason).remedy("remove the alias keys, or make them differ"));
            None
        }
        PolicyKind::Identity => {
            Some(ReplicationPolicy::Identity { separators, source_alias: source.alias.clone() })
        }
    }
}

/// The source's alias is part of the names of mirrored topics.
fn check_alias(resolver: &mut Resolver<'_>, alias: &str) {
    if let Some(bad) = not_of_a_topic_name(alias) {
        // A connector without an alias has a fault of its own.
        if let Some(entry) =
            resolver.find(Side::Source.alias_key()).or(resolver.properties().find("clusters"))
        {
            resolver.fault(bad_in_topic_name(entry, bad));
        }
    }
}

/// The first character that no topic's name may hold.
fn not_of_a_topic_name(text: &str) -> Option<char> {
    text.chars().find(|letter| !is_of_topic_names(*letter))
}

fn bad_in_topic_name(entry: &Entry, bad: char) -> Fault {
    Fault::of(entry, format!("`{bad}` cannot be part of a topic's name"))
        .remedy("use letters, digits, `.`, `_` or `-`")
}
