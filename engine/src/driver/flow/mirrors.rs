//! Which topics are mirrors: a flow's own are announced in the state topic before they are made, and those that came
//! from its target are left out, by what the state topic at its source says.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use twinlog_protocol::batch::BatchView;
use twinlog_protocol::record::records;
use twinlog_protocol::{DecodeError, ErrorCode, Retry};

use super::{Flow, KnownTopics, LEADER_PAUSE, place};
use crate::driver::lanes::SOURCE_SEARCH_LANE;
use crate::driver::state_topic::{StateRequest, UNPACKED_BYTES_MAX, Waiter};
use crate::driver::topics::Failure;
use crate::driver::{ask, stretch};
use crate::io::cluster::ClusterClient;
use crate::machine::from_target::FromTarget;
use crate::machine::metadata::ClusterMetadata;
use crate::machine::partition::RequestFailure;
use crate::machine::topic_sync::{self, LeftOut, LeftOutBy, MirroredTopic, TopicPlan};
use crate::state::record::decode;
use crate::state::{STATE_TOPIC, StateEntry};

/// How long a first start waits for the source's state topic before that is told.
const STATE_TOLD_AFTER: Duration = Duration::from_secs(10);

/// The state topic at the source, read as far as it tells which topics there came from the target.
pub(super) struct SourceState {
    flow: String,
    source: ClusterClient,
    from_target: FromTarget,
    topic_id: u128,
    read_to: i64,
    told_unreadable: bool,
    told_way_back: bool,
}

impl SourceState {
    pub(super) fn new(flow: &str, source: ClusterClient, target_cluster_id: String) -> Self {
        Self {
            flow: flow.to_owned(),
            source,
            from_target: FromTarget::new(target_cluster_id),
            topic_id: 0,
            read_to: 0,
            told_unreadable: false,
            told_way_back: false,
        }
    }

    /// Reads what has come since the last time. A source without a state topic, or one that may not be read, has no
    /// mirrors that anybody knows of.
    ///
    /// # Errors
    /// No answer, or one that says to try again: then nothing is known.
    async fn read_on(&mut self) -> Result<(), RequestFailure> {
        match self.try_read_on().await {
            Err(RequestFailure::Broker(code)) if code.retry() == Retry::Never => {
                self.tell_unreadable(&code);
                Ok(())
            }
            result => result,
        }
    }

    async fn try_read_on(&mut self) -> Result<(), RequestFailure> {
        if !self.source.metadata().topics.contains_key(STATE_TOPIC) {
            return Ok(());
        }
        let place = place(&self.source, STATE_TOPIC, 0, SOURCE_SEARCH_LANE).ok_or_else(ask::no_leader)?;
        let end = ask::list_offset(&self.source, &place, ask::LATEST).await?;
        // Made again, or cut back: what was read stays known.
        if place.topic_id != self.topic_id || end < self.read_to {
            (self.topic_id, self.read_to) = (place.topic_id, 0);
        }
        while self.read_to < end {
            let stretch = match stretch::read(&self.source, &place, self.read_to).await {
                Err(RequestFailure::Broker(ErrorCode::OffsetOutOfRange)) => {
                    let log_start = ask::list_offset(&self.source, &place, ask::EARLIEST).await?;
                    if log_start <= self.read_to {
                        return Err(RequestFailure::Broker(ErrorCode::OffsetOutOfRange));
                    }
                    self.read_to = log_start;
                    continue;
                }
                stretch => stretch?,
            };
            for view in stretch.batches() {
                if let Err(fault) = self.apply(view) {
                    self.tell_unreadable(&fault);
                }
            }
            // The last offsets of a compacted log may be gone.
            let next = stretch.next_offset().unwrap_or(end);
            self.read_to = next.max(self.read_to + 1);
        }
        Ok(())
    }

    fn apply(&mut self, view: &BatchView) -> Result<(), DecodeError> {
        if view.header().attributes.is_control() {
            return Ok(());
        }
        for record in records(view, UNPACKED_BYTES_MAX)? {
            let record = record?;
            let Some(key) = record.key else { continue };
            match decode(key, record.value) {
                Ok(stored) => stored.iter().for_each(|stored| self.from_target.apply(stored)),
                Err(fault) => self.tell_unreadable(&fault),
            }
        }
        Ok(())
    }

    fn tell_unreadable(&mut self, why: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.told_unreadable, true) {
            tracing::warn!(
                flow = self.flow,
                topic = STATE_TOPIC,
                "the source's state topic cannot be read, so mirrors that came from the target are known by their names \
                 alone: {why}"
            );
        }
    }
}

impl Flow {
    /// What this listing asks for. Before a new topic is mirrored, the source's state topic is read; where that fails, new
    /// topics wait.
    pub(super) async fn look_at_topics(
        &mut self,
        source: &ClusterMetadata,
        target: &ClusterMetadata,
        known: &KnownTopics,
    ) -> (TopicPlan, Vec<(String, Failure)>) {
        let selection = &self.config.selection;
        let mut plan = topic_sync::plan(source, target, selection, &known.copied);
        let is_new = |topic: &MirroredTopic| !known.announced.contains(&topic.target_topic);
        if !plan.mirrored().any(is_new) {
            return (plan, Vec::new());
        }
        let Err(why) = self.source_state.read_on().await else {
            self.leave_out_what_came_back(&mut plan, is_new);
            return (plan, Vec::new());
        };
        let reason =
            format!("{STATE_TOPIC} at the source, which tells whether it came from the target: {why}");
        let wait = |topic: MirroredTopic| (topic.source_topic, Failure::Unanswered(reason.clone()));
        let failures = plan.take(is_new).into_iter().map(wait).collect();
        (plan, failures)
    }

    /// What a flow that knows nothing yet would mirror, with the source's metadata: no topic that came from the target,
    /// whose records there are no earlier copy of ours. Waits for the source's state topic.
    pub(super) async fn first_plan(&mut self) -> (Arc<ClusterMetadata>, TopicPlan) {
        let (begun_at, mut told) = (Instant::now(), false);
        loop {
            let (source, target) = self.both_metadata().await;
            let mut plan = topic_sync::plan(&source, &target, &self.config.selection, &BTreeSet::new());
            let Err(why) = self.source_state.read_on().await else {
                self.leave_out_what_came_back(&mut plan, |_| true);
                return (source, plan);
            };
            if begun_at.elapsed() >= STATE_TOLD_AFTER && !std::mem::replace(&mut told, true) {
                tracing::warn!(
                    flow = self.config.name,
                    topic = STATE_TOPIC,
                    "the first start waits for the source's state topic, which tells what came from the target: {why}"
                );
            }
            sleep(LEADER_PAUSE).await;
        }
    }

    /// Takes topics that came from the target out of a plan.
    fn leave_out_what_came_back(&mut self, plan: &mut TopicPlan, is_new: impl Fn(&MirroredTopic) -> bool) {
        let from_target = &self.source_state.from_target;
        let came_back = plan.take(|topic| is_new(topic) && from_target.contains(&topic.source_topic));
        let Some(first) = came_back.first() else { return };
        // Under equal names a topic that came from the target may have writers of its own, too.
        let keeps_names = self.config.selection.keeps_names();
        if keeps_names && !std::mem::replace(&mut self.source_state.told_way_back, true) {
            let (topic, topics) = (&first.source_topic, came_back.len());
            tracing::warn!(
                flow = self.config.name,
                topic,
                topics,
                "a flow copies this topic from the target under the same name: the way back would send its records round \
                 and round, so it is left out; if that flow has ended for good, delete {STATE_TOPIC} at the source"
            );
        }
        let left_out =
            |topic: MirroredTopic| LeftOut { source_topic: topic.source_topic, rule: LeftOutBy::ClusterId };
        plan.left_out.extend(came_back.into_iter().map(left_out));
    }

    /// Stores that these topics are mirrors, where the state topic does not say so yet.
    pub(super) async fn announce(&self, topics: &[MirroredTopic], known: &mut KnownTopics) {
        let mut stored = Vec::new();
        for topic in topics {
            let target_topic = topic.target_topic.clone();
            if known.announced.insert(target_topic.clone()) {
                let (done, is_stored) = oneshot::channel();
                let entry = StateEntry::Mirror { target_topic };
                self.ask_state(StateRequest::Append { entry, waiter: Waiter::Flow(done) }).await;
                stored.push(is_stored);
            }
        }
        for is_stored in stored {
            // Fails only when the state task has ended, which ends the flow.
            let _ = is_stored.await;
        }
    }
}
