//! Topics that are gone from the target and are to be made again, because `on.target.loss` says so.

use std::collections::HashMap;
use std::time::Duration;

use super::Now;
use super::partition::GONE_AFTER;
use super::topic_sync::TopicPlan;

/// Since when topics have been missing that were copied before.
#[derive(Debug, Default)]
pub struct DeletedTopics {
    since: HashMap<String, Now>,
}

impl DeletedTopics {
    /// Moves what has been missing for long enough to the topics to create.
    pub fn make_again(&mut self, now: Now, plan: &mut TopicPlan) {
        self.since.retain(|topic, _| plan.deleted.iter().any(|deleted| deleted.target_topic == *topic));
        let since = &mut self.since;
        let due = plan.deleted.extract_if(.., |topic| {
            let first = *since.entry(topic.target_topic.clone()).or_insert(now);
            now >= first + GONE_AFTER
        });
        plan.create.extend(due);
    }

    /// How soon to look again, where some have not been missing for long enough.
    #[must_use]
    pub fn look_within(&self) -> Option<Duration> {
        (!self.since.is_empty()).then_some(GONE_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::topic_sync::MirroredTopic;

    fn look(deleted: &mut DeletedTopics, seconds: u64, topics: &[&str]) -> (usize, usize) {
        let topic = |name: &&str| MirroredTopic {
            source_topic: (*name).to_owned(),
            target_topic: format!("west.{name}"),
            partitions: 1,
        };
        let mut plan = TopicPlan { deleted: topics.iter().map(topic).collect(), ..TopicPlan::default() };
        deleted.make_again(Duration::from_secs(seconds), &mut plan);
        (plan.create.len(), plan.deleted.len())
    }

    #[test]
    fn only_what_is_missing_for_long_is_made_again() {
        let mut deleted = DeletedTopics::default();
        assert_eq!(look(&mut deleted, 100, &["a", "b"]), (0, 2));
        assert_eq!(look(&mut deleted, 105, &["a"]), (0, 1), "b came back");
        assert_eq!(look(&mut deleted, 110, &["a", "b"]), (1, 1));
        assert_eq!(deleted.look_within(), Some(GONE_AFTER));
        assert_eq!(look(&mut deleted, 111, &[]), (0, 0));
        assert_eq!(deleted.look_within(), None);
    }
}
