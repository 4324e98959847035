//! Where the partitions begin that were there when their flow first started, as its state topic tells it.
//!
//! Whoever starts a flow stores the offsets under the producer id that it takes, then the identity. The identity that
//! wins selects the offsets of its id; what losers stored, or a process that died before its identity, selects nothing.
//! So all instances hold the same, whatever their files say.
//!
//! # References
//! KIP-1106 for `by_duration`; KIP-1282 and KIP-1327 for what `latest` costs where it is asked of later partitions.

use std::collections::{BTreeMap, HashMap};

/// Offsets of neighbouring partitions of one topic, as one entry of the state topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartEntry {
    /// The producer id under which the flow was to be started.
    pub producer_id: i64,
    /// Topic at the source.
    pub source_topic: String,
    /// Its id, 0 where the broker has none.
    pub source_topic_id: u128,
    /// The partition of the first offset.
    pub first_partition: i32,
    /// An offset for each partition from there on.
    pub offsets: Vec<i64>,
}

/// Where one partition begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Id of the topic that the offset belongs to: one made again under the same name begins at its beginning.
    pub source_topic_id: u128,
    /// Upstream offset of the first record to copy.
    pub offset: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TopicStarts {
    source_topic_id: u128,
    offsets: BTreeMap<i32, i64>,
}

/// All that was stored and not taken yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowStarts {
    /// The producer id of the flow's first identity.
    chosen: Option<i64>,
    /// By producer id and source topic; of one id once it is chosen.
    topics: HashMap<i64, HashMap<String, TopicStarts>>,
}

impl FlowStarts {
    /// Applies an entry that was read from the state topic.
    pub fn apply(&mut self, entry: &StartEntry) {
        if self.chosen.is_some_and(|chosen| chosen != entry.producer_id) {
            return;
        }
        let topics = self.topics.entry(entry.producer_id).or_default();
        let topic = topics.entry(entry.source_topic.clone()).or_insert_with(|| TopicStarts {
            source_topic_id: entry.source_topic_id,
            offsets: BTreeMap::new(),
        });
        let offsets = entry.offsets.iter().zip(entry.first_partition..);
        topic.offsets.extend(offsets.map(|(offset, partition)| (partition, *offset)));
    }

    /// The flow has this identity: the first one counts.
    pub fn choose(&mut self, producer_id: i64) {
        if self.chosen.is_none() {
            self.chosen = Some(producer_id);
            self.topics.retain(|candidate, _| *candidate == producer_id);
        }
    }

    /// Where a partition begins, if that was stored. It is not kept: whoever asks keeps it, or has no need of it.
    pub fn take(&mut self, source_topic: &str, partition: i32) -> Option<Start> {
        let topics = self.topics.get_mut(&self.chosen?)?;
        let topic = topics.get_mut(source_topic)?;
        let offset = topic.offsets.remove(&partition)?;
        let source_topic_id = topic.source_topic_id;
        if topic.offsets.is_empty() {
            topics.remove(source_topic);
        }
        Some(Start { source_topic_id, offset })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(producer_id: i64, first_partition: i32, offsets: &[i64]) -> StartEntry {
        StartEntry {
            producer_id,
            source_topic: "orders".into(),
            source_topic_id: 9,
            first_partition,
            offsets: offsets.to_vec(),
        }
    }

    fn offset(starts: &mut FlowStarts, partition: i32) -> Option<i64> {
        starts.take("orders", partition).map(|start| start.offset)
    }

    #[test]
    fn the_first_identity_selects_the_offsets_of_its_producer_id() {
        let mut starts = FlowStarts::default();
        starts.apply(&entry(7, 0, &[10, 11]));
        starts.apply(&entry(8, 0, &[20, 21]));
        assert_eq!(offset(&mut starts, 0), None, "nobody has won yet");
        starts.choose(8);
        starts.choose(7);
        starts.apply(&entry(7, 0, &[30]));
        starts.apply(&entry(8, 2, &[22]));
        assert_eq!(starts.take("orders", 1), Some(Start { source_topic_id: 9, offset: 21 }));
        assert_eq!([0, 2, 3].map(|partition| offset(&mut starts, partition)), [Some(20), Some(22), None]);
        assert_eq!(starts.take("payments", 0), None);
    }

    #[test]
    fn what_is_taken_is_not_kept() {
        let mut starts = FlowStarts::default();
        starts.apply(&entry(7, 0, &[10, 11]));
        starts.choose(7);
        assert_eq!([0, 0, 1].map(|partition| offset(&mut starts, partition)), [Some(10), None, Some(11)]);
        assert!(starts.topics[&7].is_empty(), "{starts:?}");
    }

    proptest! {
        #[test]
        fn instances_that_read_the_same_log_begin_at_the_same_offsets(
            log in proptest::collection::vec(
                // An offset for a partition under a producer id, or an identity.
                (0..3i64, proptest::option::of((0..4i32, 0..100i64))), 0..30,
            ),
        ) {
            let mut starts = FlowStarts::default();
            for (producer_id, stored) in &log {
                match stored {
                    Some((partition, offset)) => starts.apply(&entry(*producer_id, *partition, &[*offset])),
                    None => starts.choose(*producer_id),
                }
            }
            let winner = log.iter().find(|(_, stored)| stored.is_none()).map(|(winner, _)| *winner);
            for partition in 0..4 {
                let of_winner = log.iter().filter(|(producer_id, _)| Some(*producer_id) == winner);
                let mut told = of_winner.filter_map(|(_, stored)| stored.filter(|told| told.0 == partition));
                prop_assert_eq!(offset(&mut starts, partition), told.next_back().map(|told| told.1));
            }
        }
    }
}
