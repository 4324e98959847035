//! The life of one partition: line up, decide, copy, and wait when something forbids it.
//!
//! ```text
//!             leaders known            found              Go
//!  Waiting ---------------> LiningUp --------> Deciding ------> Copying
//!     ^  ^                                      |   |              |
//!     |  +---- back-off, metadata --------------+   | Hold         | doubt, drained
//!     |                                             v              |
//!     +------------ retry_after ----------------- Held             |
//!     +------------------------------------------------------------+
//! ```
//!
//! - P1: nothing is sent unless a line-up has told where the partition stands.
//! - P2: what is sent carries the number that the common map gives its records; a run that somebody else stored first
//!   makes us line up, never send something else under the same number.
//! - P3: a fault of this partition holds this partition alone, with everything before it copied.
//!
//! # References
//! `PartitionFetchState`, `Sender` (clients and brokers) for what the errors mean.

mod approach;
mod backlog;
mod command;
mod copying;
pub mod fuzzing;
mod losses;
mod merging;
mod open_transaction;
mod packing;
mod sending;
mod splitting;
mod standing;

use std::collections::VecDeque;
use std::time::Duration;

use self::backlog::Backlog;
pub use self::backlog::Packing;
pub use self::command::{
    Command, CopyEnd, CopySearch, Event, Fetched, FetchedRecords, Leader, OpenTransaction, RequestFailure,
    SourceSpan,
};
use self::losses::Obstacle;
pub use self::merging::MergeSizes;
use self::merging::Merging;
use self::open_transaction::TransactionWatch;
use super::Now;
use super::backoff::doubled;
use super::flow_starts::Start;
use super::hold::{HoldReason, Side};
use super::line_up::{LineUp, LinedUp};
use super::lineage::Run;
use super::loss::LossPolicy;
use super::partition_record::{PartitionEntry, PartitionRecord};
use super::produce_window::{Closing, ProduceWindow};
use super::resume::{Here, Opening, Tail, is_other_topic};

/// Shortest and longest pause before a failed approach is tried again.
const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// Failures that last are told after this long: leaders move, brokers restart.
const TOLD_AFTER: Duration = Duration::from_secs(10);
/// A topic that metadata leaves out for this long is gone. Shorter, a broker may just be starting.
pub(super) const GONE_AFTER: Duration = Duration::from_secs(10);

/// What a partition is told at its start.
#[derive(Debug, Clone)]
pub struct PartitionConfig {
    /// Fingerprint of the options that decide which records are copied.
    pub fingerprint: u64,
    /// The flow's producer id on the target.
    pub producer_id: i64,
    /// Producer epoch for a first generation: random in 1..8191, so that foreign batches are not taken for ours.
    pub first_epoch: i16,
    /// Sequence of the first record under a new producer id: 0 except in tests of the wrap. A new epoch of a known id has
    /// to begin at 0.
    pub first_sequence: i32,
    /// Bytes of fetched batches that may wait before fetching pauses.
    pub backlog_bytes_max: usize,
    /// How large batches become that are put together.
    pub merge_sizes: MergeSizes,
    /// What happens when records are lost.
    pub losses: LossPolicy,
    /// In which codec they are sent.
    pub packing: Packing,
}

#[derive(Debug)]
enum Phase {
    Waiting { until: Now },
    LiningUp { machine: LineUp, leader: Leader, record_changes: u64 },
    Deciding { case: Case, step: Step },
    Copying,
    Held { reason: HoldReason, retry_at: Option<Now> },
    Stopped,
}

/// What a decision stands on.
#[derive(Debug, Clone, Copy)]
struct Case {
    found: LinedUp,
    here: Here,
    /// Who answered: another leader's log may end elsewhere, and while it holds no producer state of ours, nothing but
    /// the line-up would find that out.
    leader: Leader,
    tail: Option<Tail>,
    state_is_current: bool,
    record_changes: u64,
}

/// Failures since the partition last got on.
#[derive(Debug)]
struct Trouble {
    since: Now,
    /// What was told of it.
    told: Option<String>,
}

/// What a decision waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    State,
    Tail,
    Copy(Opening),
    SourceSpan(Opening),
    Stored,
    ProducerId(Opening),
}

/// One partition of a flow.
#[derive(Debug)]
pub struct PartitionMachine {
    config: PartitionConfig,
    record: PartitionRecord,
    /// Counts what others changed in `record`: a line-up that began before such a change may be too old.
    record_changes: u64,
    source: Option<Leader>,
    target: Option<Leader>,
    /// Since when metadata leaves the topic out, at the source and at the target.
    missing_since: [Option<Now>; 2],
    phase: Phase,
    /// The last reason for holding that was told.
    told: Option<HoldReason>,
    attempt: u64,
    failures: u32,
    window: ProduceWindow,
    /// Producer id and epoch of the batches in the window.
    sending: Option<(i64, i16)>,
    backlog: Backlog,
    /// How long the backlog may wait for a line-up.
    backlog_until: Option<Now>,
    merging: Merging,
    /// What is next has to be written anew, and that waits for a turn …
    wants_turn: bool,
    /// … in which so many bytes of it may be.
    turn_bytes: usize,
    /// Upstream offset to which the copy had come when it stopped in order.
    stopped_at: Option<i64>,
    /// Offset of the fetch under way.
    fetching: Option<i64>,
    /// First offset of the source that could not be read yet, as last seen.
    readable_end: Option<i64>,
    /// Where only committed records are read.
    transaction_watch: TransactionWatch,
    /// A store of runs that batches wait for.
    storing: bool,
    /// The partition has a connection of its own.
    apart: bool,
    wants_apart: bool,
    must_line_up: bool,
    /// The source may lose records out of the middle of its log.
    source_compacts: bool,
    /// Where a copy of which nothing is stored begins, if not at the log start.
    start: Option<Start>,
    /// Since when the source's log looks too short for `start`.
    before_start_since: Option<Now>,
    /// Since when records look lost.
    lost_since: Option<Now>,
    /// Why the next line-up may have to open a generation.
    obstacle: Option<Obstacle>,
    /// The stored map disagreed with the source, and nothing was acknowledged since.
    is_disputed: bool,
    /// A batch that the target found damaged.
    check_crc_at: Option<i64>,
    trouble: Option<Trouble>,
    /// Fetches that failed in a row.
    fetch_failures: u32,
    /// When the pause after a failed Fetch ends.
    fetch_not_before: Option<Now>,
    /// The target's broker puts its own time into what we send.
    has_broker_time: bool,
    /// When the target's leader was last heard of.
    heard_at: Now,
    /// First and last acknowledgement that no stored progress covers.
    unsaved: Option<(Now, Now)>,
    stopping: bool,
    commands: VecDeque<Command>,
}

impl PartitionMachine {
    /// A partition with what the state topic says about it.
    #[must_use]
    pub fn new(config: PartitionConfig, record: PartitionRecord) -> Self {
        Self {
            merging: Merging::new(config.merge_sizes, config.packing),
            config,
            record,
            record_changes: 0,
            source: None,
            target: None,
            missing_since: [None, None],
            told: None,
            phase: Phase::Waiting { until: Now::ZERO },
            attempt: 0,
            failures: 0,
            window: ProduceWindow::default(),
            sending: None,
            backlog: Backlog::new(Run { number: 0, upstream: 0, downstream: 0 }, None, false),
            backlog_until: None,
            wants_turn: false,
            turn_bytes: 0,
            stopped_at: None,
            fetching: None,
            readable_end: None,
            transaction_watch: TransactionWatch::default(),
            storing: false,
            apart: false,
            wants_apart: false,
            must_line_up: false,
            source_compacts: false,
            start: None,
            before_start_since: None,
            lost_since: None,
            obstacle: None,
            is_disputed: false,
            check_crc_at: None,
            trouble: None,
            fetch_failures: 0,
            fetch_not_before: None,
            has_broker_time: false,
            heard_at: Now::ZERO,
            unsaved: None,
            stopping: false,
            commands: VecDeque::new(),
        }
    }

    /// Where source and target are led now, by the newest metadata.
    pub fn handle_leaders(&mut self, now: Now, source: Option<Leader>, target: Option<Leader>) {
        // A source made again under the same name has other records under the same offsets.
        let copied = self.record.current().map(|lineage| lineage.generation.source_topic_id);
        let is_other_source =
            source.is_some_and(|leader| copied.is_some_and(|id| is_other_topic(id, leader.topic_id)));
        let moved = self.target != target;
        if self.source != source && !matches!(self.phase, Phase::Copying) {
            // Another leader may have other records where what waits for the line-up came from.
            self.backlog.clear();
        }
        let ids = self.topic_ids();
        self.source = source;
        self.target = target;
        for (leader, missing_since) in [source, target].iter().zip(&mut self.missing_since) {
            *missing_since = if leader.is_some() { None } else { Some(missing_since.unwrap_or(now)) };
        }
        if source.is_none_or(|leader| leader.node.is_none()) {
            // Nobody is asked, so nobody's answer is waited for.
            self.fetching = None;
        }
        if (moved || is_other_source) && matches!(self.phase, Phase::Copying) {
            // W2 of the window: nothing goes to the new leader while something may still reach the old one.
            self.must_line_up = true;
            self.window.drain();
        }
        if moved && matches!(self.phase, Phase::LiningUp { .. }) {
            self.wait(now);
        }
        let is_held_for_id = matches!(&self.phase, Phase::Held { reason: HoldReason::Recreated { .. }, .. });
        if is_held_for_id && ids != self.topic_ids() {
            // What looked like another topic may have been metadata from before the topic was made.
            self.wait(now);
        }
        self.advance(now);
    }

    /// An entry about this partition was read from the state topic, our own or another instance's.
    pub fn handle_state(&mut self, entry: &PartitionEntry) {
        let before = (self.record.mark(), self.record.current().map(|lineage| lineage.generation));
        if let Some(loss) = self.record.apply(entry) {
            self.commands.push_back(Command::Emit(Event::Lost(loss)));
        }
        let after = (self.record.mark(), self.record.current().map(|lineage| lineage.generation));
        if before != after {
            self.record_changes += 1;
            if let Phase::Held { retry_at, .. } = &mut self.phase {
                // What held the partition may have been that we knew too little.
                *retry_at = Some(Now::ZERO);
            }
        }
        if before.1 != after.1 {
            // Whoever opened it knew of it, or begins where it is not in the way.
            self.obstacle = None;
        }
        if before.1 != after.1 && matches!(self.phase, Phase::Copying) {
            // Another instance opened a new generation: ours is over, and so is what we know of its progress.
            self.must_line_up = true;
            self.unsaved = None;
            self.window.drain();
        }
    }

    /// Whether the source's topic is compacted, from the next line-up on. Where it is, which number means which record is
    /// stored for every batch before it is sent: after a crash the source may no longer tell.
    pub fn handle_source_compacts(&mut self, compacts: bool) {
        self.source_compacts = compacts;
    }

    /// Where the flow first started with this partition: what lies before is not copied. It counts as long as nothing is
    /// stored about the partition, and for this topic id only.
    pub fn handle_start(&mut self, start: Option<Start>) {
        self.start = start;
    }

    /// The flow took a new producer id.
    pub fn handle_new_producer_id(&mut self, producer_id: i64) {
        self.config.producer_id = producer_id;
    }

    /// The partition is to come to rest: what is under way is waited for, progress is stored.
    pub fn handle_stop(&mut self, now: Now) {
        self.stopping = true;
        self.window.drain();
        self.advance(now);
    }

    /// Some time that [`PartitionMachine::next_timeout`] named has come.
    pub fn handle_timeout(&mut self, now: Now) {
        self.advance(now);
    }

    /// Whatever the partition can do now, it does. Every input ends here.
    fn advance(&mut self, now: Now) {
        if self.drops_backlog_at().is_some_and(|at| at <= now) {
            self.backlog.clear();
        }
        match &self.phase {
            Phase::Waiting { .. } if self.stopping => self.phase = Phase::Stopped,
            Phase::Waiting { until } if *until <= now && self.is_gone(now).is_some() => {
                self.hold_for_gone(now);
            }
            Phase::Waiting { until } if *until <= now && self.here().is_some() => self.begin_line_up(now),
            Phase::Waiting { until } if *until <= now => self.wait(now),
            Phase::LiningUp { .. } => self.go_on_lining_up(now),
            Phase::Copying => self.go_on_copying(now),
            Phase::Held { retry_at: Some(at), .. } if *at <= now && !self.stopping => self.begin_line_up(now),
            Phase::Held { .. } | Phase::Deciding { .. } if self.stopping => self.phase = Phase::Stopped,
            Phase::Waiting { .. } | Phase::Deciding { .. } | Phase::Held { .. } | Phase::Stopped => {}
        }
    }

    /// Comes back later. Leaders may be unknown, or not be what we think they are.
    fn wait(&mut self, now: Now) {
        self.backlog.clear();
        if self.here().is_none() {
            let side = if self.source.is_none() { Side::Source } else { Side::Target };
            self.commands.push_back(Command::RefreshMetadata(side));
        }
        let pause = doubled(BACKOFF_MIN, self.failures, BACKOFF_MAX);
        self.failures = self.failures.saturating_add(1);
        self.phase = Phase::Waiting { until: now + pause };
    }

    fn hold(&mut self, now: Now, reason: HoldReason) {
        self.backlog.clear();
        self.trouble = None;
        let retry_at = reason.retry_after().map(|pause| now + pause);
        if self.told.as_ref() != Some(&reason) {
            self.told = Some(reason.clone());
            self.commands.push_back(Command::Emit(Event::Held(reason.clone())));
        }
        self.phase = Phase::Held { reason, retry_at };
    }

    /// Something failed, again perhaps.
    fn note_trouble(&mut self, now: Now, why: &dyn std::fmt::Display) {
        let trouble = self.trouble.get_or_insert(Trouble { since: now, told: None });
        if trouble.told.is_none() && now.saturating_sub(trouble.since) >= TOLD_AFTER {
            let why = why.to_string();
            trouble.told = Some(why.clone());
            self.commands.push_back(Command::Emit(Event::Waits { why }));
        }
    }

    fn end_trouble(&mut self) {
        if self.trouble.take().is_some_and(|trouble| trouble.told.is_some()) {
            self.commands.push_back(Command::Emit(Event::GoesOn));
        }
    }

    /// The side on which a topic that was copied is gone.
    fn is_gone(&self, now: Now) -> Option<Side> {
        self.gone_at().filter(|(at, _)| *at <= now && self.record.current().is_some()).map(|(_, side)| side)
    }

    fn gone_at(&self) -> Option<(Now, Side)> {
        let [source, target] = self.missing_since;
        let at = |since: Option<Now>, side| Some((since? + GONE_AFTER, side));
        [at(source, Side::Source), at(target, Side::Target)].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn hold_for_gone(&mut self, now: Now) {
        match self.is_gone(now) {
            Some(side) if self.awaits_target(side) => {
                self.note_trouble(now, &HoldReason::Deleted { side });
                self.wait(now);
            }
            Some(side) => self.hold(now, HoldReason::Deleted { side }),
            None => {}
        }
    }

    fn next_attempt(&mut self) -> u64 {
        self.attempt += 1;
        self.attempt
    }

    /// The next thing to do.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// When [`PartitionMachine::handle_timeout`] is wanted.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Now> {
        let own = match &self.phase {
            Phase::Waiting { until } => Some(*until),
            Phase::LiningUp { machine, .. } => machine.next_timeout(),
            Phase::Held { retry_at, .. } => *retry_at,
            Phase::Copying => self.copying_timeout(),
            Phase::Deciding { .. } => None,
            Phase::Stopped => return None,
        };
        own.into_iter().chain(self.drops_backlog_at()).min()
    }

    /// Why the partition is held, if it is.
    #[must_use]
    pub fn held(&self) -> Option<&HoldReason> {
        if let Phase::Held { reason, .. } = &self.phase { Some(reason) } else { None }
    }

    /// Whether the partition has come to rest after [`PartitionMachine::handle_stop`].
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.phase, Phase::Stopped)
    }

    /// The partition's stored and acknowledged state.
    #[must_use]
    pub fn record(&self) -> &PartitionRecord {
        &self.record
    }

    fn topic_ids(&self) -> [Option<u128>; 2] {
        [self.source, self.target].map(|leader| leader.map(|leader| leader.topic_id))
    }

    fn here(&self) -> Option<(Here, Leader)> {
        let (source, target) = (self.source?, self.target?);
        target.node?;
        let here = Here {
            source_topic_id: source.topic_id,
            target_topic_id: target.topic_id,
            fingerprint: self.config.fingerprint,
        };
        Some((here, target))
    }
}

#[cfg(test)]
mod tests;
