//! The search for an earlier copy of a flow whose state topic knows nothing: its producer id stands in its records.

use std::pin::pin;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use tokio::time::{Instant, sleep, sleep_until};

use super::{ASKED_AT_ONCE, Flow, LEADER_PAUSE, partitions, place};
use crate::config::StartPosition;
use crate::driver::ask;
use crate::driver::lanes::{SOURCE_SEARCH_LANE, TARGET_TAIL_LANE};
use crate::driver::recover::{self, Budget, Outcome, Sides};
use crate::error::Error;
use crate::machine::partition::{CopySearch, RequestFailure};
use crate::state::{PartitionKey, STATE_TOPIC};

/// How long partitions that do not answer are searched, unless the search has to end.
const SEARCH_MAX: Duration = Duration::from_secs(30);
/// Pause between two attempts after that.
const SEARCH_PAUSE: Duration = Duration::from_secs(5);
/// How often a search that goes on is told.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// What the search has come to.
#[derive(Default)]
struct Found {
    producer_id: Option<i64>,
    /// A topic of the target whose last records stand at several places of the source.
    ambiguous: Option<String>,
    /// The first partition where not all of the source was searched, and how many there are.
    cut_short: Option<(PartitionKey, usize)>,
}

impl Flow {
    /// Looks for our own batches at the ends of the target's partitions. A new id must not be taken while there are old
    /// batches: it would fence nobody, and its partitions would be copied again.
    pub(super) async fn recover_identity(&mut self) -> Result<Option<i64>, Error> {
        let (_, plan) = self.first_plan().await;
        let mut keys: Vec<PartitionKey> = plan.ready.iter().chain(&plan.grow).flat_map(partitions).collect();
        let end = Instant::now() + SEARCH_MAX;
        // A copy that is not recognised is copied again behind itself. Where the new one does not begin at the beginning,
        // what was written since the old one ended would be lost.
        let gives_up = self.config.start_position == StartPosition::Earliest;
        let (mut found, mut told, budget) = (Found::default(), false, Budget::default());
        loop {
            keys = self.search_all(keys, &budget, &mut found).await;
            if found.producer_id.is_some() {
                return Ok(found.producer_id);
            }
            let Some(key) = keys.first() else { break };
            if Instant::now() >= end && !std::mem::replace(&mut told, true) {
                self.tell_unanswered(key, keys.len() - 1, gives_up);
            }
            if told && gives_up {
                break;
            }
            sleep(if told { SEARCH_PAUSE } else { LEADER_PAUSE }).await;
            let (source, target) = self.both_metadata().await;
            keys.retain(|PartitionKey { source_topic, target_topic, .. }| {
                !told || source.topics.contains_key(source_topic) && target.topics.contains_key(target_topic)
            });
        }
        if let Some(topic) = found.ambiguous {
            return Err(Error::Refused(format!(
                "cluster {}: {STATE_TOPIC} knows nothing of flow {}, and {topic} ends with records that stand at several \
                 places of the source, so an earlier copy cannot be told from another's; delete the topic, or leave it out",
                self.config.target.name, self.config.name
            )));
        }
        if let Some((key, partitions)) = found.cut_short {
            self.tell_cut_short(&key, partitions, gives_up);
        }
        Ok(None)
    }

    /// Searches partitions until one has a copy; those that did not answer.
    async fn search_all(
        &self,
        keys: Vec<PartitionKey>,
        budget: &Budget,
        found: &mut Found,
    ) -> Vec<PartitionKey> {
        let (all, mut done, mut unanswered) = (keys.len(), 0, Vec::new());
        let searches: Vec<_> =
            keys.into_iter().map(|key| async { (self.search(&key, budget).await, key) }).collect();
        let mut searches = pin!(stream::iter(searches).buffer_unordered(ASKED_AT_ONCE));
        let mut told_at = Instant::now();
        loop {
            let next = tokio::select! {
                next = searches.next() => next,
                () = sleep_until(told_at + TOLD_EVERY) => {
                    told_at = Instant::now();
                    tracing::info!(
                        flow = self.config.name,
                        done,
                        partitions = all,
                        "looking for an earlier copy, because {STATE_TOPIC} knows nothing of this flow"
                    );
                    continue;
                }
            };
            let Some((outcome, key)) = next else { return unanswered };
            done += 1;
            let Ok(Outcome { found: copy, is_cut_short }) = outcome else {
                unanswered.push(key);
                continue;
            };
            match copy {
                CopySearch::Found(copy) => {
                    found.producer_id = Some(copy.producer_id);
                    return Vec::new();
                }
                CopySearch::Ambiguous => found.ambiguous = Some(key.target_topic),
                CopySearch::Nothing | CopySearch::NotAtSource if is_cut_short => {
                    let (_, partitions) = found.cut_short.get_or_insert((key, 0));
                    *partitions += 1;
                }
                CopySearch::Nothing | CopySearch::NotAtSource => {}
            }
        }
    }

    /// Looks for a copy, anybody's, at the end of a target's partition.
    async fn search(&self, key: &PartitionKey, budget: &Budget) -> Result<Outcome, RequestFailure> {
        let (source, target) = (&self.source, &self.target);
        let source_place = place(source, &key.source_topic, key.partition, SOURCE_SEARCH_LANE);
        let target_place = place(target, &key.target_topic, key.partition, TARGET_TAIL_LANE);
        let (source_place, target_place) = source_place.zip(target_place).ok_or_else(ask::no_leader)?;
        let to = ask::list_offset(target, &target_place, ask::LATEST).await?;
        recover::find_any_copy(&Sides { source, source_place, target, target_place }, to, budget).await
    }

    fn tell_unanswered(&self, key: &PartitionKey, more: usize, gives_up: bool) {
        let (topic, partition) = (&key.target_topic, key.partition);
        let goes_on = if gives_up { "not searched" } else { "the first start waits for its search" };
        tracing::warn!(
            flow = self.config.name,
            topic,
            partition,
            more,
            "{goes_on} for an earlier copy, because a side does not answer"
        );
    }

    fn tell_cut_short(&self, key: &PartitionKey, partitions: usize, gives_up: bool) {
        let (topic, partition) = (&key.target_topic, key.partition);
        let then = if gives_up {
            "its records are copied a second time"
        } else {
            "what was written since it ended is left out"
        };
        tracing::warn!(
            flow = self.config.name,
            topic,
            partition,
            partitions,
            "records of others are at the end of the target's partition, and no earlier copy of twinlog's was found in the \
             part of the source that was searched; should there be one all the same, {then}"
        );
    }
}
