//! A flow that starts for the first time asks the source where its partitions begin.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use tokio::time::{Instant, sleep};
use twinlog_protocol::fetch::IsolationLevel;

use super::{ASKED_AT_ONCE, Flow, LEADER_PAUSE, place};
use crate::clock;
use crate::config::StartPosition;
use crate::driver::ask::{self, Place};
use crate::driver::lanes::LINE_UP_LANE;
use crate::io::cluster::ClusterClient;
use crate::machine::first_start::FirstStart;
use crate::machine::flow_starts::StartEntry;
use crate::machine::partition::RequestFailure;

/// Partitions in one question: a broker looks each of them up by time, perhaps on a cold disk.
const PARTITIONS_MAX: usize = 100;
/// Longest pause between two questions; they begin with [`LEADER_PAUSE`].
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Time that passes before a partition is named that the start waits for, and before the next one is.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// A partition whose offset is not known yet.
struct Unknown {
    topic: String,
    partition: i32,
    why: RequestFailure,
}

impl Flow {
    /// Where the partitions of all selected topics begin, to be stored before the identity of this producer id; nothing
    /// where that is at their beginning. Waits for every partition: nobody can tell afterwards where its end was.
    pub(super) async fn first_start(&mut self, producer_id: i64) -> Vec<StartEntry> {
        let since_ms = match self.config.start_position {
            StartPosition::Earliest => return Vec::new(),
            StartPosition::Latest => None,
            StartPosition::ByDuration(back) => Some(time_ago(clock::wall_time_ms(), back)),
        };
        let (source, plan) = self.first_plan().await;
        let topics = plan.create.into_iter().chain(plan.grow).chain(plan.ready).filter_map(|topic| {
            let known = source.topics.get(&topic.source_topic)?;
            Some((topic.source_topic, known.id, known.partitions.len()))
        });
        let mut start = FirstStart::new(producer_id, topics);
        let mut waits = Waits { told_at: Instant::now(), told: None };
        let mut pause = LEADER_PAUSE;
        loop {
            let unknown = self.ask_for_starts(&mut start, since_ms).await;
            if let Some(entries) = start.entries() {
                return entries;
            }
            if let Some(unknown) = unknown {
                waits.tell(&self.config.name, unknown, start.open().count());
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            // The client tells of a source that does not answer.
            if let Ok(source) = self.source.refresh_metadata().await {
                start.handle_topic_ids(clock::boot_time(), |topic| Some(source.topics.get(topic)?.id));
            }
        }
    }

    /// Asks once about every partition that is not known; the first one that still is not.
    async fn ask_for_starts(&self, start: &mut FirstStart, since_ms: Option<i64>) -> Option<Unknown> {
        let mut first = None;
        let mut by_leader: BTreeMap<i32, Vec<Place>> = BTreeMap::new();
        for (topic, partition) in start.open() {
            match place(&self.source, topic, partition, LINE_UP_LANE) {
                Some(place) => by_leader.entry(place.node).or_default().push(place),
                None => keep_first(&mut first, topic, partition, ask::no_leader()),
            }
        }
        let chunks = by_leader.values().flat_map(|places| places.chunks(PARTITIONS_MAX));
        let questions: Vec<_> = chunks
            .map(|places| async move {
                (places, starts_of(&self.source, places, since_ms, self.config.isolation_level).await)
            })
            .collect();
        let mut answers = pin!(stream::iter(questions).buffer_unordered(ASKED_AT_ONCE));
        while let Some((places, offsets)) = answers.next().await {
            let offsets = offsets.unwrap_or_else(|why| vec![Err(why); places.len()]);
            for (Place { topic, partition, .. }, offset) in places.iter().zip(offsets) {
                match offset {
                    Ok(offset) => start.handle_offset(topic, *partition, offset),
                    Err(why) => keep_first(&mut first, topic, *partition, why),
                }
            }
        }
        first
    }
}

fn keep_first(first: &mut Option<Unknown>, topic: &str, partition: i32, why: RequestFailure) {
    if first.as_ref().is_none_or(|first| (topic, partition) < (first.topic.as_str(), first.partition)) {
        *first = Some(Unknown { topic: topic.to_owned(), partition, why });
    }
}

/// Where partitions of one leader begin: at their ends, or at the first record since a time.
async fn starts_of(
    source: &ClusterClient,
    places: &[Place],
    since_ms: Option<i64>,
    isolation_level: IsolationLevel,
) -> Result<Vec<Result<i64, RequestFailure>>, RequestFailure> {
    let ends = ask::list_offsets(source, places, ask::LATEST, isolation_level).await?;
    let Some(since_ms) = since_ms else { return Ok(ends) };
    // Asked after the ends: where no record is young enough, those that come in between lie behind the end.
    let found = ask::list_offsets(source, places, since_ms, isolation_level).await?;
    let starts = ends.into_iter().zip(found).map(|(end, found)| {
        let (end, found) = (end?, found?);
        Ok(if found < 0 { end } else { found })
    });
    Ok(starts.collect())
}

/// A time that long before now, in ms since 1970, and not before.
fn time_ago(now_ms: i64, back: Duration) -> i64 {
    let back_ms = i64::try_from(back.as_millis()).unwrap_or(i64::MAX);
    now_ms.saturating_sub(back_ms).max(0)
}

/// What was told of partitions that are waited for.
struct Waits {
    told_at: Instant,
    told: Option<(String, i32)>,
}

impl Waits {
    /// Names the first partition that is waited for, once.
    fn tell(&mut self, flow: &str, unknown: Unknown, waiting: usize) {
        let Unknown { topic, partition, why } = unknown;
        if self.told_at.elapsed() < TOLD_EVERY || self.told.as_ref() == Some(&(topic.clone(), partition)) {
            return;
        }
        tracing::warn!(
            flow,
            topic,
            partition,
            waiting,
            "the first start waits for the partition's offset, nothing is copied before: ListOffsets on the source: {why}"
        );
        (self.told_at, self.told) = (Instant::now(), Some((topic, partition)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_before_1970_is_1970() {
        assert_eq!(time_ago(10_000, Duration::from_millis(1_500)), 8_500);
        // -1 and -2 would be questions for the ends of the log.
        assert_eq!(time_ago(10_000, Duration::from_millis(10_001)), 0);
        assert_eq!(time_ago(10_000, Duration::MAX), 0);
    }

    #[test]
    fn the_first_partition_that_is_not_known_is_kept() {
        let mut first = None;
        for (topic, partition) in [("b", 0), ("a", 7), ("a", 3), ("a", 5)] {
            keep_first(&mut first, topic, partition, ask::no_leader());
        }
        let first = first.expect("there are some");
        assert_eq!((first.topic.as_str(), first.partition), ("a", 3));
    }
}
