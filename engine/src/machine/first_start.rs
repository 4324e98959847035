//! The first start of a flow: the offset at which each partition begins, asked of the source until all are known.
//!
//! - S1: every partition that the source had then gets an offset, however long that takes: nothing is guessed.
//! - S2: what appears later is not asked for. It begins at its beginning, and so does a topic that is gone, or was made
//!   again, before its offsets are known.

use std::collections::BTreeMap;

use super::Now;
use super::flow_starts::StartEntry;
use super::partition::GONE_AFTER;

/// Offsets in one entry of the state topic: 32 KB.
const OFFSETS_MAX: usize = 4096;

#[derive(Debug)]
struct Asked {
    id: u128,
    /// By partition.
    offsets: Vec<Option<i64>>,
    missing_since: Option<Now>,
}

/// What is asked for, and what is known.
#[derive(Debug)]
pub struct FirstStart {
    producer_id: i64,
    topics: BTreeMap<String, Asked>,
}

impl FirstStart {
    /// The start of a flow under this producer id with these source topics: name, id and number of partitions.
    #[must_use]
    pub fn new(producer_id: i64, topics: impl IntoIterator<Item = (String, u128, usize)>) -> Self {
        let topics = topics.into_iter().map(|(name, id, partitions)| {
            (name, Asked { id, offsets: vec![None; partitions], missing_since: None })
        });
        Self { producer_id, topics: topics.collect() }
    }

    /// Which id each topic has by the newest metadata; none for one that is not there.
    pub fn handle_topic_ids(&mut self, now: Now, id_of: impl Fn(&str) -> Option<u128>) {
        self.topics.retain(|topic, asked| match id_of(topic) {
            Some(id) => {
                asked.missing_since = None;
                id == asked.id
            }
            None => now < *asked.missing_since.get_or_insert(now) + GONE_AFTER,
        });
    }

    /// The offset at which a partition begins.
    pub fn handle_offset(&mut self, topic: &str, partition: i32, offset: i64) {
        let Ok(partition) = usize::try_from(partition) else { return };
        let asked = self.topics.get_mut(topic).and_then(|asked| asked.offsets.get_mut(partition));
        if let Some(known) = asked {
            *known = Some(offset);
        }
    }

    /// Partitions whose offset is not known, those of a topic one after another.
    pub fn open(&self) -> impl Iterator<Item = (&str, i32)> {
        self.topics.iter().flat_map(|(topic, asked)| {
            let open = (0..).zip(&asked.offsets).filter(|(_, offset)| offset.is_none());
            open.map(|(partition, _)| (topic.as_str(), partition))
        })
    }

    /// What to store, before the identity of this producer id; none while an offset is not known.
    #[must_use]
    pub fn entries(&self) -> Option<Vec<StartEntry>> {
        let topics = self.topics.iter();
        let chunks = topics.flat_map(|(topic, asked)| {
            let chunks = (0..).step_by(OFFSETS_MAX).zip(asked.offsets.chunks(OFFSETS_MAX));
            chunks.map(move |(first_partition, chunk)| {
                Some(StartEntry {
                    producer_id: self.producer_id,
                    source_topic: topic.clone(),
                    source_topic_id: asked.id,
                    first_partition,
                    offsets: chunk.iter().copied().collect::<Option<_>>()?,
                })
            })
        });
        chunks.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::machine::flow_starts::{FlowStarts, Start};
    use crate::state::StateEntry;

    const NOW: Now = Duration::from_secs(100);

    fn start() -> FirstStart {
        FirstStart::new(7, [("a".to_owned(), 1, 2), ("b".to_owned(), 2, 1)])
    }

    fn open(start: &FirstStart) -> Vec<(&str, i32)> {
        start.open().collect()
    }

    #[test]
    fn nothing_is_stored_before_every_offset_is_known() {
        let mut start = start();
        for (topic, partition) in [("a", 1), ("b", 0)] {
            assert_eq!(start.entries(), None);
            start.handle_offset(topic, partition, 50);
        }
        assert_eq!((open(&start), start.entries()), (vec![("a", 0)], None));
        // Nobody asked for these.
        for (topic, partition) in [("a", 2), ("a", -1), ("c", 0)] {
            start.handle_offset(topic, partition, 9);
        }
        start.handle_offset("a", 0, 0);
        let entries = start.entries().expect("all are known");
        let told: Vec<_> = entries.iter().map(|entry| (entry.source_topic_id, &entry.offsets[..])).collect();
        assert_eq!(told, [(1, &[0, 50][..]), (2, &[50])]);
        assert!(entries.iter().all(|entry| entry.producer_id == 7));
    }

    #[test]
    fn a_topic_made_again_is_left_out_at_once_and_one_that_is_missing_after_10_s() {
        let mut start = start();
        let only_a = |topic: &str| (topic == "a").then_some(1);
        start.handle_topic_ids(NOW, only_a);
        start.handle_topic_ids(NOW + Duration::from_secs(9), only_a);
        assert_eq!(open(&start), [("a", 0), ("a", 1), ("b", 0)]);
        start.handle_topic_ids(NOW + Duration::from_secs(9), |topic| Some(if topic == "a" { 1 } else { 2 }));
        start.handle_topic_ids(NOW + Duration::from_secs(18), only_a);
        assert_eq!(open(&start).len(), 3, "it was there in between");
        start.handle_topic_ids(NOW + Duration::from_secs(28), only_a);
        assert_eq!(open(&start), [("a", 0), ("a", 1)]);
        start.handle_topic_ids(NOW + Duration::from_secs(28), |_| Some(9));
        assert_eq!(start.entries(), Some(Vec::new()));
    }

    #[test]
    fn a_million_partitions_make_small_entries() {
        let count = 1_000_000;
        let mut start = FirstStart::new(7, [("huge".to_owned(), 1, count)]);
        (0..).take(count).for_each(|partition| start.handle_offset("huge", partition, i64::from(partition)));
        let entries = start.entries().expect("all are known");
        let mut starts = FlowStarts::default();
        for entry in entries {
            assert!(StateEntry::Start(entry.clone()).bytes_max() < 40_000);
            starts.apply(&entry);
        }
        starts.choose(7);
        for partition in [0, 4095, 4096, 999_999] {
            let start = Start { source_topic_id: 1, offset: i64::from(partition) };
            assert_eq!(starts.take("huge", partition), Some(start));
        }
        assert_eq!(starts.take("huge", 1_000_000), None);
    }
}
