//! The task that owns the state topic of one flow: it carries out what [`StateLog`] decides.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use twinlog_protocol::ErrorCode;
use twinlog_protocol::batch::{BatchView, ProducerStamp};
use twinlog_protocol::record::{BatchBuilder, records};

use super::ask::{self, Place};
use super::lanes::STATE_LANE;
use super::shard::ShardInput;
use super::{produce, stretch};
use crate::clock;
use crate::error::Error;
use crate::io::cluster::ClusterClient;
use crate::machine::Now;
use crate::machine::line_up::{LastBatch, Question};
use crate::machine::partition::RequestFailure;
use crate::machine::produce_window::{ProduceAnswer, is_overtaken};
use crate::machine::state_log::{JobId, LogCommand, LogRead, StateLog};
use crate::state::record::{decode, encode};
use crate::state::{STATE_TOPIC, Settings, StateEntry, Stored};

/// Most bytes that a batch of the state topic may unpack to.
pub(super) const UNPACKED_BYTES_MAX: usize = 64 << 20;

/// Trouble that lasts this long is told.
const TROUBLE_TOLD_AFTER: Duration = Duration::from_secs(10);
/// A state topic that ends before what was read of it for so long is not the one that was read.
const CUT_BACK_AFTER: Duration = Duration::from_secs(20);

/// Something that the state topic is asked to do.
#[derive(Debug)]
pub(super) enum StateRequest {
    /// Append an entry.
    Append { entry: StateEntry, waiter: Waiter },
    /// Read to the present end.
    Refresh { waiter: Waiter },
    /// What is stored of the settings on these topics of the target, in their order.
    AskSettings { target_topics: Vec<String>, answer: oneshot::Sender<Vec<Settings>> },
    /// Write under this producer id.
    ProducerId(i64),
    /// Answered when everything asked before is stored.
    Flush(oneshot::Sender<()>),
}

/// Who waits for a job.
#[derive(Debug)]
pub(super) enum Waiter {
    Nobody,
    /// A partition of the shard: told through its input, behind the entries that were read.
    Partition {
        slot: usize,
        attempt: u64,
        refresh: bool,
    },
    /// The flow's own start.
    Flow(oneshot::Sender<bool>),
}

/// Stores what is put on topics of the target, and waits until it is.
pub(super) async fn store_settings(state: &mpsc::Sender<StateRequest>, settings: Vec<(String, Settings)>) {
    let mut last = None;
    for (target_topic, settings) in settings {
        let entry = StateEntry::TopicSettings { target_topic, settings };
        let (done, stored) = oneshot::channel();
        last = Some(stored);
        // The state task is gone only when the flow ends.
        let _ = state.send(StateRequest::Append { entry, waiter: Waiter::Flow(done) }).await;
    }
    // Entries are stored in order, so the last one stands for all.
    if let Some(stored) = last {
        let _ = stored.await;
    }
}

/// The task.
pub(super) struct StateTopic {
    cluster: ClusterClient,
    log: StateLog,
    instance: u64,
    source_cluster_id: String,
    requests: mpsc::Receiver<StateRequest>,
    shard: mpsc::Sender<ShardInput>,
    /// What twinlog put on topics of the target, by topic.
    settings: HashMap<String, Settings>,
    waiters: Vec<(JobId, Waiter)>,
    flushes: Vec<oneshot::Sender<()>>,
    next_job: JobId,
    /// Since when requests fail, and whether that was told.
    trouble: Option<(Now, bool)>,
}

impl StateTopic {
    pub(super) fn new(
        cluster: ClusterClient,
        source_cluster_id: String,
        instance: u64,
        requests: mpsc::Receiver<StateRequest>,
        shard: mpsc::Sender<ShardInput>,
    ) -> Self {
        let log = StateLog::new(instance);
        let (waiters, flushes) = (Vec::new(), Vec::new());
        Self {
            cluster,
            log,
            instance,
            source_cluster_id,
            requests,
            shard,
            settings: HashMap::new(),
            waiters,
            flushes,
            next_job: 0,
            trouble: None,
        }
    }

    /// Runs until nobody asks any more.
    ///
    /// # Errors
    /// [`Error::State`] for an entry that this version cannot read.
    pub(super) async fn run(mut self) -> Result<(), Error> {
        loop {
            while let Some(command) = self.log.poll_command(clock::boot_time()) {
                self.carry_out(command).await?;
                self.hand_out().await;
                while let Ok(request) = self.requests.try_recv() {
                    self.take(request);
                }
            }
            if self.log.is_idle() {
                for done in self.flushes.drain(..) {
                    // Who waited may have given up.
                    let _ = done.send(());
                }
            }
            let pause =
                self.log.next_timeout().map_or(Duration::MAX, |at| at.saturating_sub(clock::boot_time()));
            tokio::select! {
                request = self.requests.recv() => match request {
                    Some(request) => self.take(request),
                    None => return Ok(()),
                },
                () = sleep(pause.min(Duration::from_secs(3600))) => {}
            }
        }
    }

    fn take(&mut self, request: StateRequest) {
        let id = self.next_job;
        match request {
            StateRequest::Append { entry, waiter } => {
                self.log.append(id, entry);
                if !matches!(waiter, Waiter::Nobody) {
                    self.waiters.push((id, waiter));
                }
            }
            StateRequest::Refresh { waiter } => {
                self.log.refresh(id);
                self.waiters.push((id, waiter));
            }
            StateRequest::AskSettings { target_topics, answer } => {
                let stored = |topic: &String| self.settings.get(topic).cloned().unwrap_or_default();
                // The asker is gone only when the flow ends.
                let _ = answer.send(target_topics.iter().map(stored).collect());
            }
            StateRequest::ProducerId(producer_id) => {
                self.log.handle_producer_id(clock::boot_time(), producer_id);
            }
            StateRequest::Flush(done) => self.flushes.push(done),
        }
        self.next_job += 1;
    }

    /// Entries first, then the jobs that they finish.
    async fn hand_out(&mut self) {
        while let Some((_, stored)) = self.log.poll_entry() {
            if stored.source_cluster_id != self.source_cluster_id {
                continue;
            }
            match stored.entry {
                StateEntry::TopicSettings { target_topic, settings } if settings.is_empty() => {
                    self.settings.remove(&target_topic);
                }
                StateEntry::TopicSettings { target_topic, settings } => {
                    self.settings.insert(target_topic, settings);
                }
                // The shard is gone only when the flow ends.
                entry => drop(self.shard.send(ShardInput::State(entry)).await),
            }
        }
        while let Some((id, won)) = self.log.poll_done() {
            let Some(place) = self.waiters.iter().position(|(waiting, _)| *waiting == id) else { continue };
            match self.waiters.swap_remove(place).1 {
                Waiter::Nobody => {}
                Waiter::Partition { slot, attempt, refresh } => {
                    let input = if refresh {
                        ShardInput::StateRead { slot, attempt }
                    } else {
                        ShardInput::Stored { slot, attempt, won }
                    };
                    let _ = self.shard.send(input).await;
                }
                Waiter::Flow(done) => drop(done.send(won)),
            }
        }
    }

    async fn carry_out(&mut self, command: LogCommand) -> Result<(), Error> {
        let is_append = matches!(command, LogCommand::Append { .. });
        match self.try_carry_out(command).await {
            Ok(()) => {
                let now = clock::boot_time();
                if self.log.shorter_since().is_some_and(|since| now.saturating_sub(since) >= CUT_BACK_AFTER) {
                    return Err(Error::State(format!(
                        "{STATE_TOPIC} ends before what was read of it: it was made again or cut back; start again, and \
                         the copies are recognised by their records"
                    )));
                }
                // What was asked says little: only what was stored or read to the end ends a trouble.
                if !(is_append || self.log.is_idle()) {
                    return Ok(());
                }
                if let Some((_, true)) = self.trouble.take() {
                    tracing::info!(
                        cluster = self.cluster.alias(),
                        topic = STATE_TOPIC,
                        "state topic is back"
                    );
                }
            }
            Err(Trouble::Request(why)) => {
                self.tell_trouble(&why);
                // A failure to refresh shows at the next question.
                let _ = self.cluster.refresh_metadata().await;
                self.log.handle_failure(clock::boot_time());
            }
            Err(Trouble::Entry(error)) => return Err(error),
        }
        Ok(())
    }

    /// Nothing that needs storing can go on without the state topic, so a trouble that stays is told, once.
    fn tell_trouble(&mut self, why: &RequestFailure) {
        let now = clock::boot_time();
        let (since, told) = self.trouble.get_or_insert((now, false));
        if !*told && now.saturating_sub(*since) >= TROUBLE_TOLD_AFTER {
            *told = true;
            tracing::warn!(
                cluster = self.cluster.alias(),
                topic = STATE_TOPIC,
                "the state topic cannot be used, so nothing is begun anew and no progress is stored: {why}"
            );
        }
    }

    async fn try_carry_out(&mut self, command: LogCommand) -> Result<(), Trouble> {
        let place = self.place()?;
        match command {
            LogCommand::Ask { question: Question::LastBatch, producer_id } => {
                let last = match producer_id {
                    Some(producer_id) => ask::last_batch(&self.cluster, &place, producer_id).await?,
                    None => None,
                };
                self.log.handle_last_batch(clock::boot_time(), last);
            }
            LogCommand::Ask { question: Question::LogEnd, .. } => {
                let log_end = ask::log_end(&self.cluster, &place).await?;
                self.log.handle_offset(clock::boot_time(), Question::LogEnd, log_end);
            }
            LogCommand::Ask { question: Question::HighWatermark, .. } => {
                let high_watermark = ask::list_offset(&self.cluster, &place, ask::LATEST).await?;
                self.log.handle_offset(clock::boot_time(), Question::HighWatermark, high_watermark);
            }
            LogCommand::Read { from } => {
                let read = self.read(&place, from).await?;
                self.log.handle_read(clock::boot_time(), read);
            }
            LogCommand::Append { producer_id, producer_epoch, base_sequence, entries } => {
                let stamp = ProducerStamp { producer_id, producer_epoch, base_sequence };
                let base_offset = self.append(&place, stamp, entries).await?;
                self.log.handle_appended(clock::boot_time(), base_offset);
            }
        }
        Ok(())
    }

    fn place(&self) -> Result<Place, RequestFailure> {
        let metadata = self.cluster.metadata();
        let leader = metadata.leader(STATE_TOPIC, 0);
        let topic = metadata.topics.get(STATE_TOPIC);
        let (Some(leader), Some(topic)) = (leader, topic) else {
            return Err(RequestFailure::Unanswered("the state topic has no leader".to_owned()));
        };
        Ok(Place {
            topic: STATE_TOPIC.to_owned(),
            topic_id: topic.id,
            partition: 0,
            node: leader.node,
            leader_epoch: leader.epoch,
            lane: STATE_LANE,
        })
    }

    async fn read(&self, place: &Place, from: i64) -> Result<LogRead, Trouble> {
        let stretch = match stretch::read(&self.cluster, place, from).await {
            // Compaction never moves the log start; an operator may.
            Err(RequestFailure::Broker(ErrorCode::OffsetOutOfRange)) => {
                let log_start = ask::list_offset(&self.cluster, place, ask::EARLIEST).await?;
                return Ok(LogRead { next_offset: log_start, ..LogRead::default() });
            }
            stretch => stretch?,
        };
        let mut read = LogRead { next_offset: from, ..LogRead::default() };
        for view in stretch.batches() {
            let header = view.header();
            read.next_offset = header.next_offset();
            if header.producer_id >= 0 && !header.attributes.is_control() {
                let last = LastBatch {
                    producer_epoch: header.producer_epoch,
                    last_sequence: header.last_sequence(),
                };
                read.last_batches.push((header.producer_id, last));
            }
            if header.next_offset() > from && !header.attributes.is_control() {
                entries(view, from, &mut read.entries)?;
            }
        }
        Ok(read)
    }

    async fn append(
        &self,
        place: &Place,
        stamp: ProducerStamp,
        entries: Vec<StateEntry>,
    ) -> Result<Option<i64>, Trouble> {
        let mut builder = BatchBuilder::new().producer(stamp);
        for entry in entries {
            let stored =
                Stored { source_cluster_id: self.source_cluster_id.clone(), instance: self.instance, entry };
            let (key, value) = encode(&stored);
            builder.push(clock::wall_time_ms(), Some(key), Some(value), Vec::new()).map_err(unreadable)?;
        }
        let view = builder.build().map_err(unreadable)?;
        match produce::produce_once(&self.cluster, place, &view, stamp).await? {
            ProduceAnswer::Acknowledged { base_offset, .. } => Ok(Some(base_offset)),
            ProduceAnswer::Failed { code, detail, .. } if is_overtaken(code) => {
                tracing::debug!(topic = STATE_TOPIC, %code, detail, "another instance was faster; lining up");
                Ok(None)
            }
            ProduceAnswer::Failed { code, .. } => Err(RequestFailure::Broker(code).into()),
            ProduceAnswer::Lost => {
                Err(RequestFailure::Unanswered("an append got no answer".to_owned()).into())
            }
        }
    }
}

/// Entries of a batch at or after `from`.
fn entries(view: &BatchView, from: i64, found: &mut Vec<(i64, Stored)>) -> Result<(), Trouble> {
    for record in records(view, UNPACKED_BYTES_MAX).map_err(unreadable)? {
        let record = record.map_err(unreadable)?;
        let offset = view.header().base_offset + i64::from(record.offset_delta);
        if let (true, Some(key)) = (offset >= from, record.key) {
            let stored = decode(key, record.value).map_err(|fault| {
                Trouble::Entry(Error::State(format!("offset {offset} of {STATE_TOPIC}: {fault}")))
            })?;
            found.extend(stored.map(|stored| (offset, stored)));
        }
    }
    Ok(())
}

fn unreadable(fault: impl std::fmt::Display) -> Trouble {
    Trouble::Entry(Error::State(format!("{STATE_TOPIC}: {fault}")))
}

enum Trouble {
    Request(RequestFailure),
    Entry(Error),
}

impl From<RequestFailure> for Trouble {
    fn from(why: RequestFailure) -> Self {
        Self::Request(why)
    }
}
