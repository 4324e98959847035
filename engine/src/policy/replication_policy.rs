//! What a mirrored topic is called, and which names belong to MM2 itself.
//!
//! P1: `upstream_topic(format_remote_topic(a, t)) == t` for the default policy, whenever `a` holds no separator and
//!     `t` is not made of separators only.
//! P2: every walk up the chain of prefixes ends: each step makes the name shorter or stops.
//! P3: for an alias without the separator `is_cycle` is MM2's answer.
//!
//! # References
//! `ReplicationPolicy`, `DefaultReplicationPolicy`, `IdentityReplicationPolicy` of Kafka 4.3.1.

use crate::state::STATE_TOPIC;

/// The topic into which MM2 writes heartbeats; no separator ever changes it.
pub const HEARTBEATS_TOPIC: &str = "heartbeats";

/// How topics are named on the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicationPolicy {
    /// `<source alias><separator><topic>`.
    Default(Separators),
    /// Names stay as they are, except for anything that ends in `heartbeats`, which follows the default policy.
    Identity {
        /// For heartbeats and internal names.
        separators: Separators,
        /// Every topic counts as coming from here.
        source_alias: String,
    },
}

/// What stands between an alias and a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Separators {
    /// Of mirrored topics (`replication.policy.separator`); may be empty.
    topic: String,
    /// Of offset-syncs and checkpoints topics; `.` where
    /// `replication.policy.internal.topic.separator.enabled` is false.
    internal: String,
}

impl Separators {
    /// `internal_enabled` is `replication.policy.internal.topic.separator.enabled`.
    pub fn new(topic: &str, internal_enabled: bool) -> Self {
        let internal = if internal_enabled { topic } else { "." };
        Self { topic: topic.to_owned(), internal: internal.to_owned() }
    }

    fn internal_suffix(&self) -> String {
        format!("{}internal", self.internal)
    }

    fn checkpoints_suffix(&self) -> String {
        format!("{}checkpoints{}", self.internal, self.internal_suffix())
    }

    /// Java splits at the separator and drops empty parts at the end: less than two parts left means no source. An
    /// empty separator splits between all characters, so that the first one is the source.
    fn source<'t>(&self, topic: &'t str) -> Option<&'t str> {
        if self.topic.is_empty() {
            let mut chars = topic.char_indices();
            chars.next()?;
            return chars.next().map(|(second, _)| &topic[..second]);
        }
        let (source, rest) = topic.split_once(&self.topic)?;
        rest.split(&self.topic).any(|part| !part.is_empty()).then_some(source)
    }
}

impl ReplicationPolicy {
    /// The default policy with a separator for topics and internal topics alike.
    pub fn default_with(separator: &str) -> Self {
        Self::Default(Separators::new(separator, true))
    }

    /// The identity policy of a flow that reads from `source_alias`.
    pub fn identity(source_alias: &str) -> Self {
        Self::Identity { separators: Separators::new(".", true), source_alias: source_alias.to_owned() }
    }

    /// Name on the target of `topic` of the cluster `source_alias`.
    pub fn format_remote_topic(&self, source_alias: &str, topic: &str) -> String {
        match self {
            Self::Identity { .. } if !looks_like_heartbeat(topic) => topic.to_owned(),
            Self::Default(separators) | Self::Identity { separators, .. } => {
                format!("{source_alias}{}{topic}", separators.topic)
            }
        }
    }

    /// Alias of the cluster that `topic` was mirrored from, as far as its name tells; none for a topic of the
    /// cluster's own.
    pub fn topic_source<'t>(&'t self, topic: &'t str) -> Option<&'t str> {
        match self {
            Self::Identity { source_alias, .. } if !looks_like_heartbeat(topic) => Some(source_alias),
            Self::Default(separators) | Self::Identity { separators, .. } => separators.source(topic),
        }
    }

    /// Name of `topic` on the cluster that it was mirrored from.
    pub fn upstream_topic<'t>(&self, topic: &'t str) -> Option<&'t str> {
        match self {
            Self::Identity { .. } if !looks_like_heartbeat(topic) => Some(topic),
            Self::Default(separators) | Self::Identity { separators, .. } => {
                let source = separators.source(topic)?;
                Some(&topic[source.len() + separators.topic.len()..])
            }
        }
    }

    /// Name of `topic` on the cluster where it was first written: all prefixes taken off.
    pub fn original_topic<'t>(&self, topic: &'t str) -> &'t str {
        let mut topic = topic;
        while let Some(upstream) = self.upstream_topic(topic).filter(|&upstream| upstream != topic) {
            topic = upstream;
        }
        topic
    }

    /// Whether `topic` holds heartbeats, here or mirrored any number of times.
    pub fn is_heartbeats_topic(&self, topic: &str) -> bool {
        self.original_topic(topic) == HEARTBEATS_TOPIC
    }

    /// Whether `topic` holds checkpoints of MM2.
    pub fn is_checkpoints_topic(&self, topic: &str) -> bool {
        topic.ends_with(&self.separators().checkpoints_suffix())
    }

    /// Whether MM2 keeps its own affairs in `topic`.
    pub fn is_mm2_internal_topic(&self, topic: &str) -> bool {
        topic.starts_with("mm2") && topic.ends_with(&self.separators().internal_suffix())
            || self.is_checkpoints_topic(topic)
    }

    /// Whether `topic` is never mirrored, whatever the filter says: MM2's rule, and
    /// [`STATE_TOPIC`], which is ours whatever the separator.
    pub fn is_internal_topic(&self, topic: &str) -> bool {
        topic.starts_with("__")
            || topic.starts_with('.')
            || topic == STATE_TOPIC
            || self.is_mm2_internal_topic(topic)
    }

    /// Whether mirroring `topic` to `target_alias` would send it back to a cluster that it passed already.
    ///
    /// MM2's rule by names: under the identity policy only heartbeats can be seen to go round. Beyond it, an alias that
    /// contains the separator is found too: MM2 splits it, so that it never meets `us_west` in `us_west_orders`.
    pub fn is_cycle(&self, topic: &str, target_alias: &str) -> bool {
        let mut topic = topic;
        loop {
            if self.is_prefixed_with_split(topic, target_alias) {
                return true;
            }
            match (self.topic_source(topic), self.upstream_topic(topic)) {
                (Some(source), _) if source == target_alias => return true,
                (Some(_), Some(upstream)) if upstream != topic => topic = upstream,
                _ => return false,
            }
        }
    }

    /// Whether `topic` begins with an alias that [`Self::topic_source`] cannot give, because it holds the separator.
    fn is_prefixed_with_split(&self, topic: &str, alias: &str) -> bool {
        let separator = self.separators().topic.as_str();
        let names_are_split = matches!(self, Self::Default(_)) || looks_like_heartbeat(topic);
        !separator.is_empty()
            && alias.contains(separator)
            && names_are_split
            && topic.strip_prefix(alias).is_some_and(|rest| rest.starts_with(separator))
    }

    /// Topic of the offset syncs; `other_alias` is the cluster on the far side of the one that holds the topic.
    pub fn offset_syncs_topic(&self, other_alias: &str) -> String {
        let separators = self.separators();
        format!("mm2-offset-syncs{}{other_alias}{}", separators.internal, separators.internal_suffix())
    }

    /// Topic of the checkpoints of groups of `source_alias`.
    pub fn checkpoints_topic(&self, source_alias: &str) -> String {
        format!("{source_alias}{}", self.separators().checkpoints_suffix())
    }

    fn separators(&self) -> &Separators {
        match self {
            Self::Default(separators) | Self::Identity { separators, .. } => separators,
        }
    }
}

fn looks_like_heartbeat(topic: &str) -> bool {
    topic.ends_with(HEARTBEATS_TOPIC)
}

#[cfg(test)]
mod tests;
