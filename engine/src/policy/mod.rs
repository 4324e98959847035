//! MM2's rules about names: which topic is mirrored, what it is called on the target, which of its configs go along.
//!
//! Pure functions over names, equal to those of MM2 4.3.1; where its rules surprise, the surprise is kept and said.

mod config_filter;
mod java_regex;
mod name_filter;
mod replication_factor;
mod replication_policy;
mod topic_selection;

pub use config_filter::{
    ConfigSource, DEFAULT_EXCLUDED_CONFIGS, SourceConfigs, TopicConfigEntry, TopicConfigFilter,
};
pub use java_regex::{MatchError, Names, PatternError, PatternList};
pub(crate) use name_filter::is_of_topic_names;
pub use name_filter::{
    DEFAULT_EXCLUDED_GROUPS, DEFAULT_EXCLUDED_TOPICS, DEFAULT_INCLUDED_GROUPS, DEFAULT_INCLUDED_TOPICS,
    FilterVerdict, NameFilter,
};
pub use replication_factor::{BROKER_DEFAULT, FactorDecision, FactorError, ReplicationFactor};
pub use replication_policy::{HEARTBEATS_TOPIC, ReplicationPolicy, Separators};
pub use topic_selection::{Selection, TopicSelection};
