//! The task that owns the partitions of a flow: it feeds their machines and carries out their commands.
//!
//! Nothing here decides about records. Requests run as futures whose answers come back to this task, so that every
//! machine is touched by one task alone, without locks.

mod carry_out;
mod emit;
mod fetch;
mod produce;
mod questions;
mod slot;
mod standing;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::pin::Pin;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::sleep;
use twinlog_protocol::batch::Compression;
use twinlog_protocol::fetch::IsolationLevel;

use self::produce::Queued;
use self::questions::Questions;
use self::slot::Slot;
use self::standing::STATUS_EVERY;
use super::ask::Told;
use super::fetcher::FetchAnswer;
use super::lanes::{LaneKey, ProduceLanes};
use super::partitions::Partitions;
use super::state_topic::StateRequest;
use crate::clock::{self, WallClock};
use crate::event::FlowEvent;
use crate::io::cluster::ClusterClient;
use crate::io::connection::Connection;
use crate::io::error::CallError;
use crate::io::memory::MemoryBudget;
use crate::machine::Now;
use crate::machine::fetch_pace::{FetchPaces, Piece};
use crate::machine::fetch_plan::FetchPlan;
use crate::machine::fetch_session::FetchSession;
use crate::machine::fetch_size::FetchSizes;
use crate::machine::flow_identity::FlowIdentity;
use crate::machine::flow_starts::FlowStarts;
use crate::machine::hold::Side;
use crate::machine::line_up::{LastBatch, Question};
use crate::machine::loss::LossPolicy;
use crate::machine::partition::{
    CopySearch, MergeSizes, OpenTransaction, Packing, PartitionConfig, PartitionMachine, RequestFailure,
    SourceSpan,
};
use crate::machine::partition_record::PartitionRecord;
use crate::machine::produce_window::ProduceAnswer;
use crate::machine::read_replica::ReadReplicas;
use crate::machine::resume::Tail;
use crate::machine::share::Share;
use crate::machine::throttle::Throttle;
use crate::machine::timers::Timers;
use crate::machine::turns::Turns;
use crate::partition_status::PartitionStatus;
use crate::state::{PartitionKey, StateEntry};
use crate::status::{FailedTopic, FlowStatus};

/// Bytes of one partition that may wait before its fetching pauses, however long the link.
const BACKLOG_BYTES_MAX: usize = 8 << 20;
/// Answers taken before commands are carried out again.
const ANSWERS_AT_ONCE: usize = 64;

/// What the flow and the state topic tell the shard.
#[derive(Debug)]
pub(super) enum ShardInput {
    /// Partitions to copy from now on, or news of those that are.
    Add(Vec<NewPartition>),
    /// An entry of the state topic, in the order of the log.
    State(StateEntry),
    /// A partition's refresh of the state topic is complete.
    StateRead { slot: usize, attempt: u64 },
    /// A partition's entry was stored, or lost to another instance's.
    Stored { slot: usize, attempt: u64, won: bool },
    /// The flow's producer id by the entries so far.
    AskProducerId(oneshot::Sender<Option<i64>>),
    /// Target topics that the state topic knows.
    AskKnownTopics(oneshot::Sender<KnownTopics>),
    /// How each partition fares.
    AskPartitions(oneshot::Sender<Vec<PartitionStatus>>),
    /// The topics were listed; these could not be prepared. Complete unless an answer was lost.
    Listed { failed: Vec<FailedTopic>, complete: bool },
    /// Come to rest.
    Stop,
}

/// Target topics of a flow.
#[derive(Debug, Default)]
pub(super) struct KnownTopics {
    /// Those that partitions were copied to.
    pub(super) copied: BTreeSet<String>,
    /// Those that the state topic names as the flow's, whether anything was copied or not.
    pub(super) announced: BTreeSet<String>,
}

/// A partition that is to be copied.
#[derive(Debug)]
pub(super) struct NewPartition {
    pub(super) key: PartitionKey,
    /// Whether the flow has caught up only when this partition has.
    pub(super) catches_up: bool,
    /// Whether the source's topic is compacted.
    pub(super) source_compacts: bool,
}

/// How an errand ended: of a partition, or of many (by slots and tickets).
pub(super) enum Done {
    Offsets { asked: Vec<(usize, u64)>, question: Question, told: Told<i64> },
    LastBatches { asked: Vec<(usize, u64)>, told: Told<Option<LastBatch>> },
    Tail { slot: usize, attempt: u64, result: Result<Tail, RequestFailure> },
    Copy { slot: usize, attempt: u64, result: Result<CopySearch, RequestFailure> },
    SourceSpan { slot: usize, attempt: u64, result: Result<SourceSpan, RequestFailure> },
    OpenTransaction { slot: usize, offset: i64, result: Result<OpenTransaction, RequestFailure> },
    NewProducerId { slot: usize, attempt: u64, result: Result<i64, RequestFailure> },
    Produced { tickets: Vec<(usize, u64)>, answers: Vec<ProduceAnswer> },
    LaneOpened { key: LaneKey, result: Result<Connection, CallError> },
    Fetched { node: i32, lane: u16, piece: Piece, answer: FetchAnswer },
    Refreshed(Side),
}

type Errand = Pin<Box<dyn Future<Output = Done> + Send>>;

/// What a shard is made of.
pub(super) struct ShardParts {
    pub(super) flow: String,
    pub(super) source: ClusterClient,
    pub(super) target: ClusterClient,
    pub(super) inputs: mpsc::Receiver<ShardInput>,
    pub(super) state: mpsc::Sender<StateRequest>,
    pub(super) status: watch::Sender<FlowStatus>,
    pub(super) events: broadcast::Sender<FlowEvent>,
    pub(super) partitions: watch::Sender<Partitions>,
    pub(super) memory: MemoryBudget,
    pub(super) share: Share,
    pub(super) throttle: Throttle,
    pub(super) fingerprint: u64,
    /// Which records of the source are copied.
    pub(super) isolation_level: IsolationLevel,
    /// What happens when records are lost.
    pub(super) losses: LossPolicy,
    /// In which codec records are written; none for the one that they have.
    pub(super) compression: Option<Compression>,
    /// Where the reader at the source stands; empty for nowhere.
    pub(super) source_rack: String,
    /// Random epoch for first generations.
    pub(super) first_epoch: i16,
}

/// The task.
pub(super) struct Shard {
    parts: ShardParts,
    slots: Vec<Slot>,
    by_key: HashMap<PartitionKey, usize>,
    /// What the state topic says about partitions that are not copied (yet).
    records: HashMap<PartitionKey, PartitionRecord>,
    identity: FlowIdentity,
    /// Target topics that the state topic names as mirrors of the flow.
    announced: BTreeSet<String>,
    /// Of partitions that are not copied yet.
    starts: FlowStarts,
    errands: FuturesUnordered<Errand>,
    questions: Questions,
    to_state: VecDeque<StateRequest>,
    plan: FetchPlan,
    paces: FetchPaces,
    sizes: FetchSizes,
    replicas: ReadReplicas,
    /// By node and lane, those of which no request is under way.
    sessions: HashMap<(i32, u16), FetchSession>,
    timers: Timers,
    turns: Turns,
    dirty: Vec<usize>,
    lanes: ProduceLanes<Queued>,
    /// How many partitions a node of the target has been found to lead.
    led: HashMap<i32, usize>,
    /// Partitions that wait for a new producer id to be stored.
    taking_id: Vec<(usize, u64)>,
    refreshing: [bool; 2],
    held_bytes: usize,
    /// Partitions that are behind.
    behind: usize,
    totals: FlowStatus,
    reported_at: Now,
    /// Who is named in the status may be others, or for another reason.
    names_changed: bool,
    /// Since when nobody answers for the source, and for the target.
    unreached_since: [Option<Now>; 2],
    wall_clock: WallClock,
    stopping: bool,
}

impl Shard {
    pub(super) fn new(parts: ShardParts) -> Self {
        Self {
            replicas: ReadReplicas::new(&parts.source_rack),
            turns: Turns::new(parts.share.anew_bytes_max()),
            parts,
            slots: Vec::new(),
            by_key: HashMap::new(),
            records: HashMap::new(),
            identity: FlowIdentity::default(),
            announced: BTreeSet::new(),
            starts: FlowStarts::default(),
            errands: FuturesUnordered::new(),
            questions: Questions::default(),
            to_state: VecDeque::new(),
            plan: FetchPlan::default(),
            paces: FetchPaces::default(),
            sizes: FetchSizes::default(),
            sessions: HashMap::new(),
            timers: Timers::default(),
            dirty: Vec::new(),
            lanes: ProduceLanes::new(),
            led: HashMap::new(),
            taking_id: Vec::new(),
            refreshing: [false; 2],
            held_bytes: 0,
            behind: 0,
            totals: FlowStatus::default(),
            reported_at: Now::ZERO,
            names_changed: false,
            unreached_since: [None; 2],
            wall_clock: WallClock::default(),
            stopping: false,
        }
    }

    /// Runs until it has come to rest after [`ShardInput::Stop`].
    pub(super) async fn run(mut self) {
        let mut source = self.parts.source.watch_metadata();
        let mut target = self.parts.target.watch_metadata();
        let state = self.parts.state.clone();
        loop {
            self.settle();
            if self.is_at_rest() {
                self.report(true);
                return self.report_last();
            }
            let pause = self.pause();
            tokio::select! {
                Some(done) = self.errands.next(), if !self.errands.is_empty() => self.handle_done(done),
                input = self.parts.inputs.recv() => match input {
                    Some(input) => self.handle_input(input),
                    None => return self.report_last(),
                },
                Ok(permit) = state.reserve(), if !self.to_state.is_empty() => {
                    if let Some(request) = self.to_state.pop_front() {
                        permit.send(request);
                    }
                }
                Ok(()) = source.changed() => self.handle_metadata(),
                Ok(()) = target.changed() => self.handle_metadata(),
                () = sleep(pause) => {}
            }
            self.take_what_is_ready();
        }
    }

    /// Answers and inputs that are there already, so that one pass over the machines serves many.
    fn take_what_is_ready(&mut self) {
        for _ in 0..ANSWERS_AT_ONCE {
            let Some(Some(done)) = self.errands.next().now_or_never() else { break };
            self.handle_done(done);
        }
        for _ in 0..ANSWERS_AT_ONCE {
            let Ok(input) = self.parts.inputs.try_recv() else { break };
            self.handle_input(input);
        }
    }

    fn pause(&mut self) -> Duration {
        if self.turns.is_due() {
            return Duration::ZERO;
        }
        let now = clock::boot_time();
        let timers = self.timers.next().into_iter().chain(self.parts.throttle.not_before(now));
        let timer = timers.min().map_or(Duration::from_secs(60), |at| at.saturating_sub(now));
        if self.totals == *self.parts.status.borrow() { timer } else { timer.min(STATUS_EVERY) }
    }

    fn is_at_rest(&self) -> bool {
        self.stopping && self.to_state.is_empty() && self.slots.iter().all(|slot| slot.machine.is_stopped())
    }

    fn handle_input(&mut self, input: ShardInput) {
        let now = clock::boot_time();
        match input {
            ShardInput::Add(partitions) => {
                partitions.into_iter().for_each(|new| self.add(now, new));
            }
            ShardInput::State(entry) => self.handle_state(entry),
            ShardInput::StateRead { slot, attempt } => {
                self.touch(slot).handle_state_read(now, attempt);
            }
            ShardInput::Stored { slot, attempt, won } => self.handle_stored(now, slot, attempt, won),
            // The asker is gone only when the flow ends.
            ShardInput::AskProducerId(answer) => drop(answer.send(self.identity.producer_id())),
            ShardInput::AskKnownTopics(answer) => drop(answer.send(self.known_topics())),
            ShardInput::AskPartitions(answer) => drop(answer.send(self.partitions(now))),
            ShardInput::Listed { failed, complete } => {
                self.totals.listed |= complete;
                self.totals.failed_topics = failed;
            }
            ShardInput::Stop => {
                self.stopping = true;
                for slot in 0..self.slots.len() {
                    self.touch(slot).handle_stop(now);
                }
            }
        }
    }

    fn add(&mut self, now: Now, new: NewPartition) {
        let NewPartition { key, catches_up, source_compacts } = new;
        if let Some(&known) = self.by_key.get(&key) {
            return self.slots[known].machine.handle_source_compacts(source_compacts);
        }
        if self.stopping {
            return;
        }
        let config = PartitionConfig {
            fingerprint: self.parts.fingerprint,
            producer_id: self.identity.producer_id().unwrap_or(-1),
            first_epoch: self.parts.first_epoch,
            first_sequence: 0,
            backlog_bytes_max: BACKLOG_BYTES_MAX,
            merge_sizes: MergeSizes::default(),
            losses: self.parts.losses,
            packing: Packing {
                codec: self.parts.compression,
                unpacked_bytes_max: self.parts.share.unpacked_bytes_max(),
            },
        };
        let record = self.records.remove(&key).unwrap_or_default();
        let start = self.starts.take(&key.source_topic, key.partition);
        let number = self.slots.len();
        self.by_key.insert(key.clone(), number);
        let mut machine = PartitionMachine::new(config, record);
        machine.handle_source_compacts(source_compacts);
        machine.handle_start(start);
        self.slots.push(Slot::new(now, key, machine, catches_up));
        self.totals.partitions += 1;
        self.tell_leaders(now, number);
    }

    fn handle_state(&mut self, entry: StateEntry) {
        match entry {
            StateEntry::Identity { producer_id, replaces } => {
                self.identity.apply(producer_id, replaces);
                if let Some(producer_id) = self.identity.producer_id() {
                    self.starts.choose(producer_id);
                    self.slots.iter_mut().for_each(|slot| slot.machine.handle_new_producer_id(producer_id));
                }
            }
            StateEntry::Start(entry) => self.starts.apply(&entry),
            StateEntry::Partition(key, entry) => match self.by_key.get(&key) {
                Some(&slot) => self.touch(slot).handle_state(&entry),
                // Who copies the partition later does not tell again what was lost before.
                None => drop(self.records.entry(key).or_default().apply(&entry)),
            },
            StateEntry::Mirror { target_topic } => drop(self.announced.insert(target_topic)),
            StateEntry::TopicSettings { .. } | StateEntry::Heartbeat => {}
        }
    }

    fn handle_stored(&mut self, now: Now, slot: usize, attempt: u64, won: bool) {
        let taking = self.taking_id.iter().position(|waiting| *waiting == (slot, attempt));
        match (taking, self.identity.producer_id()) {
            (Some(place), Some(producer_id)) => {
                self.taking_id.swap_remove(place);
                self.to_state.push_back(StateRequest::ProducerId(producer_id));
                self.touch(slot).handle_producer_id(now, attempt, producer_id);
            }
            _ => self.touch(slot).handle_stored(now, attempt, won),
        }
    }

    fn known_topics(&self) -> KnownTopics {
        let copied = self.slots.iter().map(|slot| (&slot.key, slot.machine.record()));
        let known = copied.chain(&self.records).filter(|(_, record)| record.current().is_some());
        let copied: BTreeSet<String> = known.map(|(key, _)| key.target_topic.clone()).collect();
        KnownTopics { announced: self.announced.union(&copied).cloned().collect(), copied }
    }

    fn handle_metadata(&mut self) {
        let now = clock::boot_time();
        for slot in 0..self.slots.len() {
            self.tell_leaders(now, slot);
        }
        let source = self.parts.source.metadata();
        for slot in self.replicas.handle_nodes(|node| source.brokers.contains_key(&node)) {
            self.touch(slot);
        }
    }

    fn tell_leaders(&mut self, now: Now, slot: usize) {
        let (source, target) = (self.parts.source.metadata(), self.parts.target.metadata());
        let slot_of = &mut self.slots[slot];
        let node_before = slot_of.leaders[1].and_then(|leader| leader.node);
        let changed = slot_of.update_leaders(&source, &target);
        if changed.contains(&true) {
            let leaders = slot_of.leaders;
            if let Some(node) =
                leaders[1].and_then(|leader| leader.node).filter(|node| node_before != Some(*node))
            {
                let led = self.led.entry(node).or_default();
                slot_of.number_at_target = *led;
                *led += 1;
            }
            self.touch(slot).handle_leaders(now, leaders[0], leaders[1]);
        }
        if changed[0] {
            self.handle_new_source_leader(slot);
        }
    }

    /// The machine of a slot, which is looked at again before the task sleeps.
    fn touch(&mut self, slot: usize) -> &mut PartitionMachine {
        let touched = &mut self.slots[slot];
        if !touched.dirty {
            touched.dirty = true;
            self.dirty.push(slot);
        }
        &mut touched.machine
    }

    /// Wakes who is due, carries out all commands, plans fetches.
    fn settle(&mut self) {
        let now = clock::boot_time();
        while let Some(slot) = self.timers.pop_due(now) {
            self.touch(slot).handle_timeout(now);
        }
        while let Some(slot) = self.replicas.poll_ended(now) {
            self.touch(slot);
        }
        // One alone: what came meanwhile for others goes first.
        if let Some(slot) = self.turns.poll() {
            self.touch(slot).handle_turn(now);
        }
        loop {
            while let Some(slot) = self.dirty.pop() {
                self.slots[slot].dirty = false;
                while let Some(command) = self.slots[slot].machine.poll_command() {
                    self.carry_out(now, slot, command);
                }
                self.timers.set(slot, self.slots[slot].machine.next_timeout());
                self.account(now, slot);
            }
            self.send_ready(now);
            if self.dirty.is_empty() {
                break;
            }
        }
        self.send_questions();
        self.fetch(now);
        self.report(false);
    }
}
