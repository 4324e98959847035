//! Whether a flow mirrors a topic, and under which name.
//!
//! A topic is mirrored when the filter wants it or it holds heartbeats (unless their replication is off), and it is
//! neither internal nor on its way back.
//!
//! # References
//! `MirrorSourceConnector#shouldReplicateTopic`.

use super::java_regex::MatchError;
use super::name_filter::{FilterVerdict, NameFilter};
use super::replication_policy::ReplicationPolicy;

/// What a flow does with a topic of its source, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Mirrored.
    Mirrored,
    /// No pattern of `topics` matches.
    NotIncluded,
    /// A pattern of `topics.exclude` matches.
    Excluded,
    /// Belongs to the brokers, MM2 or twinlog.
    Internal,
    /// Came from the target, by its name.
    Cycle,
    /// A pattern could not be tried to its end: not mirrored, to be shown as an error.
    Undecided(MatchError),
}

/// The rules of one flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSelection {
    filter: NameFilter,
    policy: ReplicationPolicy,
    source_alias: String,
    target_alias: String,
    heartbeats_replicated: bool,
}

impl TopicSelection {
    /// The rules of the flow from `source_alias` to `target_alias`; `heartbeats_replicated` is
    /// `heartbeats.replication.enabled`.
    pub fn new(
        filter: NameFilter,
        policy: ReplicationPolicy,
        source_alias: &str,
        target_alias: &str,
        heartbeats_replicated: bool,
    ) -> Self {
        Self {
            filter,
            policy,
            source_alias: source_alias.to_owned(),
            target_alias: target_alias.to_owned(),
            heartbeats_replicated,
        }
    }

    /// What happens to `topic` of the source cluster.
    pub fn select(&self, topic: &str) -> Selection {
        if self.policy.is_internal_topic(topic) {
            return Selection::Internal;
        }
        if self.policy.is_cycle(topic, &self.target_alias) {
            return Selection::Cycle;
        }
        if self.heartbeats_replicated && self.policy.is_heartbeats_topic(topic) {
            return Selection::Mirrored;
        }
        match self.filter.verdict(topic) {
            Ok(FilterVerdict::Wanted) => Selection::Mirrored,
            Ok(FilterVerdict::NotIncluded) => Selection::NotIncluded,
            Ok(FilterVerdict::Excluded) => Selection::Excluded,
            Err(error) => Selection::Undecided(error),
        }
    }

    /// Name on the target of `topic` of the source cluster.
    pub fn remote_topic(&self, topic: &str) -> String {
        self.policy.format_remote_topic(&self.source_alias, topic)
    }

    /// Whether topics are called the same on both sides (heartbeats aside).
    pub fn keeps_names(&self) -> bool {
        self.remote_topic("t") == "t"
    }

    /// The naming rules.
    pub fn policy(&self) -> &ReplicationPolicy {
        &self.policy
    }

    /// The operator's lists.
    pub fn filter(&self) -> &NameFilter {
        &self.filter
    }

    /// Whether heartbeats are mirrored past the filter.
    pub fn heartbeats_replicated(&self) -> bool {
        self.heartbeats_replicated
    }
}

#[cfg(test)]
mod tests {
    use super::super::replication_policy::Separators;
    use super::*;

    fn flow(policy: ReplicationPolicy, include: &[&str], heartbeats: bool) -> TopicSelection {
        let filter = NameFilter::new(include, &[]).unwrap();
        TopicSelection::new(filter, policy, "source", "target", heartbeats)
    }

    #[test]
    fn heartbeats_pass_a_filter_that_wants_nothing() {
        let flow = flow(ReplicationPolicy::default_with("."), &[], true);
        assert_eq!(flow.select("heartbeats"), Selection::Mirrored);
        assert_eq!(flow.select("us-west.heartbeats"), Selection::Mirrored);
        assert_eq!(flow.select("target.heartbeats"), Selection::Cycle);
        assert_eq!(flow.select("orders"), Selection::NotIncluded);
    }

    #[test]
    fn heartbeats_are_a_matter_of_the_filter_once_their_replication_is_off() {
        for (include, selection) in [(&[][..], Selection::NotIncluded), (&[".*"], Selection::Mirrored)] {
            let flow = flow(ReplicationPolicy::default_with("."), include, false);
            for heartbeats in ["heartbeats", "us-west.heartbeats"] {
                assert_eq!(flow.select(heartbeats), selection, "{include:?} {heartbeats}");
            }
        }
    }

    #[test]
    fn another_separator_makes_a_prefixed_heartbeats_topic_an_ordinary_one() {
        let policy = ReplicationPolicy::default_with("_");
        assert_eq!(flow(policy, &[], true).select("us-west.heartbeats"), Selection::NotIncluded);
    }

    #[test]
    fn names_that_passed_the_target_are_cycles_under_the_default_policy() {
        let flow = flow(ReplicationPolicy::default_with("."), &[".*"], true);
        for cycle in [
            "target.topic1",
            "target.source.topic1",
            "source.target.topic1",
            "target.source.target.topic1",
            "source.target.source.topic1",
        ] {
            assert_eq!(flow.select(cycle), Selection::Cycle, "{cycle}");
        }
        for mirrored in ["topic1", "source.topic1"] {
            assert_eq!(flow.select(mirrored), Selection::Mirrored, "{mirrored}");
        }
    }

    #[test]
    fn the_identity_policy_sees_cycles_of_heartbeats_only() {
        let flow = flow(ReplicationPolicy::identity("source"), &[".*"], true);
        let mirrored =
            ["heartbeats", "othersource.heartbeats", "topic1", "source.topic1", "othersource.topic1"];
        for topic in mirrored {
            assert_eq!(flow.select(topic), Selection::Mirrored, "{topic}");
        }
        for prefix in
            ["target", "target.source", "source.target", "target.source.target", "source.target.source"]
        {
            let (topic, heartbeats) = (format!("{prefix}.topic1"), format!("{prefix}.heartbeats"));
            assert_eq!(flow.select(&topic), Selection::Mirrored, "{topic}");
            assert_eq!(flow.select(&heartbeats), Selection::Cycle, "{heartbeats}");
        }
        assert_eq!(flow.remote_topic("orders"), "orders");
        assert_eq!(flow.remote_topic("heartbeats"), "source.heartbeats");
        assert_eq!(flow.remote_topic("my-heartbeats"), "source.my-heartbeats");
    }

    #[test]
    fn internal_topics_stay_even_when_listed() {
        let include = ["__consumer_offsets", "mm2-twinlog.internal", ".hidden", "a.checkpoints.internal"];
        let flow = flow(ReplicationPolicy::default_with("."), &include, true);
        for internal in include {
            assert_eq!(flow.select(internal), Selection::Internal, "{internal}");
        }
    }

    #[test]
    fn our_state_topic_stays_whatever_the_separator() {
        let policy = ReplicationPolicy::Default(Separators::new("_", true));
        assert!(!policy.is_mm2_internal_topic("mm2-twinlog.internal"));
        assert_eq!(flow(policy, &[".*"], true).select("mm2-twinlog.internal"), Selection::Internal);
    }

    #[test]
    fn a_pattern_without_end_leaves_the_topic_out_and_says_so() {
        let flow = flow(ReplicationPolicy::default_with("."), &["(?:(?=a)a|a(?=a))*c"], true);
        assert!(matches!(flow.select(&"a".repeat(249)), Selection::Undecided(_)));
    }
}
