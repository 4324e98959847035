//! Which topics a flow mirrors, and what of them is missing on the target.
//!
//! # References
//! `MirrorSourceConnector.refreshTopicPartitions`, `computeAndCreateTopicPartitions`.

use std::collections::BTreeSet;

use super::metadata::ClusterMetadata;
use crate::policy::{Selection, TopicSelection};

/// What a look at both clusters shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicPlan {
    /// Topics to create on the target.
    pub create: Vec<MirroredTopic>,
    /// Topics with fewer partitions on the target than at the source.
    pub grow: Vec<MirroredTopic>,
    /// Topics with at least as many.
    pub ready: Vec<MirroredTopic>,
    /// Topics that were copied before and are gone from the target: never made again unasked.
    pub deleted: Vec<MirroredTopic>,
    /// Topics that cannot be decided about, with the reason.
    pub undecided: Vec<(String, String)>,
    /// Topics that `topics` asks for and a rule keeps at the source, in the order of their names.
    pub left_out: Vec<LeftOut>,
}

/// A topic that stays where it is although `topics` matches it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// Name at the source.
    pub source_topic: String,
    /// What keeps it.
    pub rule: LeftOutBy,
}

/// What keeps a topic at the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOutBy {
    /// A pattern of `topics.exclude`.
    Exclude,
    /// Its name is one of Kafka's, MM2's or twinlog's own topics.
    InternalName,
    /// Its name says that it came from the target.
    Cycle,
    /// The source's state topic says that it came from the target.
    ClusterId,
}

impl std::fmt::Display for LeftOutBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Exclude => "topics.exclude",
            Self::InternalName => "internal name",
            Self::Cycle => "came from the target, by its name",
            Self::ClusterId => "came from the target, by its cluster id",
        })
    }
}

/// A topic and its mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredTopic {
    /// Name at the source.
    pub source_topic: String,
    /// Name at the target.
    pub target_topic: String,
    /// Partitions at the source.
    pub partitions: i32,
}

impl TopicPlan {
    /// All topics that are mirrored.
    pub fn mirrored(&self) -> impl Iterator<Item = &MirroredTopic> {
        [&self.create, &self.grow, &self.ready, &self.deleted].into_iter().flatten()
    }

    /// Takes mirrored topics out of the plan.
    pub fn take(&mut self, which: impl Fn(&MirroredTopic) -> bool) -> Vec<MirroredTopic> {
        let mut taken = Vec::new();
        for topics in [&mut self.create, &mut self.grow, &mut self.ready, &mut self.deleted] {
            taken.extend(topics.extract_if(.., |topic| which(topic)));
        }
        taken
    }

    /// Leaves only these source topics in the plan.
    pub fn keep(&mut self, source_topics: &BTreeSet<String>) {
        self.take(|topic| !source_topics.contains(&topic.source_topic));
        self.undecided.retain(|(topic, _)| source_topics.contains(topic));
        self.left_out.retain(|topic| source_topics.contains(&topic.source_topic));
    }
}

/// Compares the clusters. `known` are target topics that partitions were copied to before.
#[must_use]
pub fn plan(
    source: &ClusterMetadata,
    target: &ClusterMetadata,
    selection: &TopicSelection,
    known: &BTreeSet<String>,
) -> TopicPlan {
    let mut plan = TopicPlan::default();
    for (name, topic) in &source.topics {
        if topic.is_internal || topic.partitions.is_empty() {
            continue;
        }
        let kept_by = match selection.select(name) {
            Selection::Mirrored => None,
            Selection::Undecided(fault) => {
                plan.undecided.push((name.clone(), fault.to_string()));
                continue;
            }
            Selection::NotIncluded => continue,
            Selection::Excluded => Some(LeftOutBy::Exclude),
            Selection::Internal => Some(LeftOutBy::InternalName),
            Selection::Cycle => Some(LeftOutBy::Cycle),
        };
        if let Some(rule) = kept_by {
            if selection.filter().includes(name) {
                plan.left_out.push(LeftOut { source_topic: name.clone(), rule });
            }
            continue;
        }
        let partitions = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        let target_topic = selection.remote_topic(name);
        let there = target.topics.get(&target_topic).map(|topic| topic.partitions.len());
        let is_known = known.contains(&target_topic);
        let mirrored = MirroredTopic { source_topic: name.clone(), target_topic, partitions };
        match there {
            None | Some(0) if is_known => plan.deleted.push(mirrored),
            None | Some(0) => plan.create.push(mirrored),
            Some(count) if count < topic.partitions.len() => plan.grow.push(mirrored),
            Some(_) => plan.ready.push(mirrored),
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::machine::metadata::{Partition, Topic};
    use crate::policy::{NameFilter, ReplicationPolicy};

    fn cluster(topics: &[(&str, i32)]) -> ClusterMetadata {
        let partition =
            Partition { leader: Some(1), leader_epoch: 0, replicas: vec![1], isr: vec![1], error_code: 0 };
        let topics = topics.iter().map(|(name, partitions)| {
            let partitions = (0..*partitions).map(|number| (number, partition.clone())).collect();
            let is_internal = *name == "__consumer_offsets";
            ((*name).to_owned(), Arc::new(Topic { id: 1, is_internal, error_code: 0, partitions }))
        });
        ClusterMetadata { topics: topics.collect(), ..ClusterMetadata::default() }
    }

    fn selection() -> TopicSelection {
        let filter = NameFilter::new(&[".*"], &["secret.*"]).expect("legal patterns");
        TopicSelection::new(filter, ReplicationPolicy::default_with("."), "west", "east", true)
    }

    fn names(topics: &[MirroredTopic]) -> Vec<&str> {
        topics.iter().map(|topic| topic.target_topic.as_str()).collect()
    }

    #[test]
    fn each_topic_goes_where_it_belongs() {
        let source = cluster(&[
            ("new", 3),
            ("grown", 4),
            ("level", 2),
            ("lost", 1),
            ("secret.keys", 1),
            ("east.orders", 1),
            ("__consumer_offsets", 50),
            ("__state", 1),
        ]);
        let target = cluster(&[("west.grown", 2), ("west.level", 2)]);
        let plan = plan(&source, &target, &selection(), &BTreeSet::from(["west.lost".to_owned()]));
        assert_eq!(names(&plan.create), ["west.new"]);
        assert_eq!((names(&plan.grow), plan.grow[0].partitions), (vec!["west.grown"], 4));
        assert_eq!(names(&plan.ready), ["west.level"]);
        assert_eq!(names(&plan.deleted), ["west.lost"]);
        let left_out: Vec<String> =
            plan.left_out.iter().map(|left| format!("{}: {}", left.source_topic, left.rule)).collect();
        assert_eq!(
            left_out,
            [
                "__state: internal name",
                "east.orders: came from the target, by its name",
                "secret.keys: topics.exclude"
            ]
        );
    }

    #[test]
    fn topics_are_taken_out_wherever_they_stand() {
        let source = cluster(&[("new", 3), ("grown", 4), ("level", 2), ("lost", 1)]);
        let target = cluster(&[("west.grown", 2), ("west.level", 2)]);
        let known = BTreeSet::from(["west.lost".to_owned()]);
        let mut plan = plan(&source, &target, &selection(), &known);
        assert_eq!(plan.mirrored().count(), 4);
        let taken = plan.take(|topic| topic.source_topic.contains('l'));
        assert_eq!(names(&taken), ["west.level", "west.lost"]);
        assert_eq!(
            plan.mirrored().map(|topic| topic.source_topic.as_str()).collect::<Vec<_>>(),
            ["new", "grown"]
        );
    }

    #[test]
    fn only_some_topics_are_kept() {
        let source = cluster(&[("new", 3), ("grown", 4), ("level", 2), ("secret.keys", 1)]);
        let target = cluster(&[("west.grown", 2), ("west.level", 2)]);
        let mut plan = plan(&source, &target, &selection(), &BTreeSet::new());
        plan.undecided.push(("odd".into(), "why".into()));
        let mut all = plan.clone();
        all.keep(&["new", "grown", "level", "secret.keys", "odd"].map(str::to_owned).into());
        assert_eq!(all, plan);
        plan.keep(&["grown".to_owned()].into());
        assert_eq!(
            (names(&plan.create), names(&plan.grow), names(&plan.ready)),
            (vec![], vec!["west.grown"], vec![])
        );
        assert_eq!((plan.undecided.len(), plan.left_out.len()), (0, 0));
    }

    #[test]
    fn a_topic_of_the_target_alone_causes_nothing_until_the_source_has_it() {
        let target = cluster(&[("west.early", 1)]);
        assert_eq!(plan(&cluster(&[]), &target, &selection(), &BTreeSet::new()), TopicPlan::default());
        let plan = plan(&cluster(&[("early", 1)]), &target, &selection(), &BTreeSet::new());
        assert_eq!((names(&plan.ready), names(&plan.create)), (vec!["west.early"], vec![]));
    }

    #[test]
    fn more_partitions_on_the_target_change_nothing() {
        let plan = plan(&cluster(&[("a", 1)]), &cluster(&[("west.a", 5)]), &selection(), &BTreeSet::new());
        assert_eq!((names(&plan.ready), plan.ready[0].partitions), (vec!["west.a"], 1));
    }
}
