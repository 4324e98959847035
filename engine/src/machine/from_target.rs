//! Which topics of a flow's source are mirrors that a twinlog made from the flow's target.
//!
//! Names tell it only as long as everybody calls the clusters alike. Two processes with aliases of their own, each the
//! mirror of the other, send each other's mirrors back under longer and longer names. The state topic beside a mirror
//! names the cluster that it came from by its id.

use std::collections::BTreeSet;

use crate::state::{StateEntry, Stored};

/// The mirrors among the source's topics that came from one cluster, as the source's state topic tells them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromTarget {
    target_cluster_id: String,
    topics: BTreeSet<String>,
}

impl FromTarget {
    /// Nothing is known yet of mirrors that came from the cluster with this id.
    #[must_use]
    pub fn new(target_cluster_id: String) -> Self {
        Self { target_cluster_id, topics: BTreeSet::new() }
    }

    /// Takes an entry of the source's state topic. There the mirror's own cluster is the target, and ours the source.
    pub fn apply(&mut self, stored: &Stored) {
        if stored.source_cluster_id != self.target_cluster_id {
            return;
        }
        let topic = match &stored.entry {
            StateEntry::Mirror { target_topic } => target_topic,
            StateEntry::Partition(key, _) => &key.target_topic,
            StateEntry::Identity { .. }
            | StateEntry::Start(_)
            | StateEntry::TopicSettings { .. }
            | StateEntry::Heartbeat => return,
        };
        if !self.topics.contains(topic) {
            self.topics.insert(topic.clone());
        }
    }

    /// Whether this topic of the source came from the target.
    #[must_use]
    pub fn contains(&self, topic: &str) -> bool {
        self.topics.contains(topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::lineage::Run;
    use crate::machine::partition_record::PartitionEntry;
    use crate::state::PartitionKey;

    fn stored(source_cluster_id: &str, entry: StateEntry) -> Stored {
        Stored { source_cluster_id: source_cluster_id.into(), instance: 1, entry }
    }

    #[test]
    fn mirrors_of_the_target_are_known_and_no_others() {
        let mut from_target = FromTarget::new("target".into());
        let announced = |topic: &str| StateEntry::Mirror { target_topic: topic.into() };
        let key =
            PartitionKey { source_topic: "orders".into(), target_topic: "x.orders".into(), partition: 0 };
        let mark = Run { number: 1, upstream: 1, downstream: 1 };
        let progress = PartitionEntry::Progress { producer_id: 1, producer_epoch: 0, mark, epoch: None };
        from_target.apply(&stored("target", announced("x.empty")));
        from_target.apply(&stored("target", StateEntry::Partition(key, progress)));
        from_target.apply(&stored("third", announced("y.orders")));
        from_target.apply(&stored("target", StateEntry::Identity { producer_id: 1, replaces: -1 }));
        for (topic, came) in [("x.empty", true), ("x.orders", true), ("y.orders", false), ("orders", false)] {
            assert_eq!(from_target.contains(topic), came, "{topic}");
        }
    }
}
