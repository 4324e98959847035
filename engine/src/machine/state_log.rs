//! Appending to the state topic so that what was appended is what everybody reads: a log with compare-and-swap.
//!
//! The writer's batches carry the flow's producer id and a sequence that counts the flow's entries. Of two instances
//! that write after the same entry the broker takes one; the other is refused, or is told "success" for the first
//! one's batch. So nothing counts as stored before it was read back.
//!
//! - T1: entries come out of [`StateLog::poll_entry`] in the order of the log, each once.
//! - T2: a job is done only after its entry came out.
//! - T3: a job that opens a generation or writes runs fails when another instance's entry about the same partition came
//!   out between its enqueueing and its own entry.
//! - T4: one append is under way at a time, and after any answer but success the state topic is lined up first.
//! - T5: a refresh is done only after an append of ours, sent after it was asked for, was read back. A leader that was
//!   replaced and has not heard of it answers a line-up with an end that is too early, but it cannot take an append.
//!   Only before the flow has a producer id a line-up has to do; what it misses is found by the first append.
//!
//! # References
//! `design-review` C6: two first starts, and a zombie's late write.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::Now;
use super::line_up::{LastBatch, LineUp, Question};
use super::sequence::sequence_of;
use crate::state::{StateEntry, Stored};

/// Pause after a failed request.
const PAUSE: Duration = Duration::from_millis(100);
/// A heartbeat keeps the producer state of a flow that stores nothing else.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(3600);
/// Bytes of one append, so that its batch stays below what a broker takes by default (`message.max.bytes`, 1 MB).
const APPEND_BYTES_MAX: usize = 512 << 10;

/// Something to do for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogCommand {
    /// Ask the leader of the state topic a question of the line-up.
    Ask {
        /// The question.
        question: Question,
        /// The producer id whose state is asked for; without one [`Question::LastBatch`] is answered by none.
        producer_id: Option<i64>,
    },
    /// Read from this offset; what comes is given to [`StateLog::handle_read`].
    Read {
        /// First offset to read.
        from: i64,
    },
    /// Append these entries as one batch.
    Append {
        /// Producer id of the batch.
        producer_id: i64,
        /// Producer epoch of the batch.
        producer_epoch: i16,
        /// Base sequence of the batch.
        base_sequence: i32,
        /// The entries.
        entries: Vec<StateEntry>,
    },
}

/// A stretch of the state topic as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogRead {
    /// The offset after the last one that was read or is gone.
    pub next_offset: i64,
    /// Last batch of each producer id in the stretch, by the headers.
    pub last_batches: Vec<(i64, LastBatch)>,
    /// Entries of the flow with their offsets.
    pub entries: Vec<(i64, Stored)>,
}

/// Number of a job, chosen by the caller.
pub type JobId = u64;

#[derive(Debug)]
struct Job {
    id: JobId,
    kind: JobKind,
    /// Part of the append that is under way, or of the line-up where there is no producer id yet.
    under_way: bool,
}

#[derive(Debug)]
enum JobKind {
    Append { entry: StateEntry, outrun: bool },
    Refresh,
}

impl Job {
    fn entry(&self) -> Option<&StateEntry> {
        match &self.kind {
            JobKind::Append { entry, .. } => Some(entry),
            JobKind::Refresh => None,
        }
    }

    fn is_outrun(&self) -> bool {
        matches!(self.kind, JobKind::Append { outrun: true, .. })
    }
}

#[derive(Debug)]
enum Phase {
    /// Nothing to do, or not yet.
    Idle {
        not_before: Now,
    },
    LiningUp {
        machine: LineUp,
    },
    /// After a line-up: everything below `to` is read.
    CatchingUp {
        to: i64,
        found: Option<LastBatch>,
    },
    Appending {
        count: usize,
    },
    ReadingBack {
        to: i64,
    },
}

/// The state topic as one flow of one process sees it.
#[derive(Debug)]
pub struct StateLog {
    instance: u64,
    producer_id: Option<i64>,
    /// Epoch and last sequence of each writer's last batch, by headers and line-ups.
    last_batches: HashMap<i64, LastBatch>,
    lined_up: bool,
    read_to: i64,
    jobs: VecDeque<Job>,
    phase: Phase,
    asked: bool,
    heartbeat_at: Now,
    /// Since when the topic ends before what was read of it.
    shorter_since: Option<Now>,
    entries: VecDeque<(i64, Stored)>,
    done: VecDeque<(JobId, bool)>,
}

impl StateLog {
    /// A log of which nothing is known. `instance` is this process's random number.
    #[must_use]
    pub fn new(instance: u64) -> Self {
        Self {
            instance,
            producer_id: None,
            last_batches: HashMap::new(),
            lined_up: false,
            read_to: 0,
            jobs: VecDeque::new(),
            phase: Phase::Idle { not_before: Now::ZERO },
            asked: false,
            heartbeat_at: Now::MAX,
            shorter_since: None,
            entries: VecDeque::new(),
            done: VecDeque::new(),
        }
    }

    /// Writes under this producer id from now on.
    pub fn handle_producer_id(&mut self, now: Now, producer_id: i64) {
        if self.producer_id == Some(producer_id) {
            return;
        }
        self.producer_id = Some(producer_id);
        self.lined_up = false;
        self.heartbeat_at = now + HEARTBEAT_EVERY;
        if matches!(self.phase, Phase::LiningUp { .. } | Phase::CatchingUp { .. }) {
            // What was asked about the former id says nothing about this one.
            self.phase = Phase::Idle { not_before: now };
        }
    }

    /// Appends an entry. The job is done when [`StateLog::poll_done`] names it. Progress that waits already is replaced by
    /// newer progress of the same generation, so that a state topic out of reach does not pile it up.
    pub fn append(&mut self, id: JobId, entry: StateEntry) {
        if let Some(generation) = entry.progressing() {
            let is_older = |job: &&mut Job| {
                !job.under_way && job.entry().and_then(StateEntry::progressing) == Some(generation)
            };
            if let Some(job) = self.jobs.iter_mut().rev().find(is_older) {
                job.id = id;
                job.kind = JobKind::Append { entry, outrun: false };
                return;
            }
        }
        let kind = JobKind::Append { entry, outrun: false };
        self.jobs.push_back(Job { id, kind, under_way: false });
    }

    /// Reads to the end as it is now or later.
    pub fn refresh(&mut self, id: JobId) {
        self.jobs.push_back(Job { id, kind: JobKind::Refresh, under_way: false });
    }

    /// The next thing to do.
    pub fn poll_command(&mut self, now: Now) -> Option<LogCommand> {
        if self.asked {
            return None;
        }
        self.start_if_idle(now);
        let command = match &mut self.phase {
            Phase::Idle { .. } => None,
            Phase::LiningUp { machine } => {
                let question = machine.poll_question(now)?;
                Some(LogCommand::Ask { question, producer_id: self.producer_id })
            }
            Phase::CatchingUp { .. } | Phase::ReadingBack { .. } => {
                Some(LogCommand::Read { from: self.read_to })
            }
            Phase::Appending { .. } => Some(self.append_command()),
        };
        self.asked = command.is_some();
        command
    }

    fn start_if_idle(&mut self, now: Now) {
        let Phase::Idle { not_before } = self.phase else { return };
        let heartbeat_is_due = now >= self.heartbeat_at && self.jobs.is_empty();
        if now < not_before || !(heartbeat_is_due || self.has_work()) {
            return;
        }
        if !self.lined_up || self.producer_id.is_none() {
            self.jobs.iter_mut().for_each(|job| job.under_way = self.producer_id.is_none());
            self.phase = Phase::LiningUp { machine: LineUp::new() };
            return;
        }
        if self.jobs.iter().all(|job| job.entry().is_none()) {
            self.append(JobId::MAX, StateEntry::Heartbeat);
        }
        self.phase = Phase::Appending { count: self.choose_jobs() };
    }

    /// Whether there is something to do that can be done: appends wait for a producer id.
    fn has_work(&self) -> bool {
        self.jobs.iter().any(|job| self.producer_id.is_some() || job.entry().is_none())
    }

    /// Marks the jobs of the next append, and gives the number of its entries.
    fn choose_jobs(&mut self) -> usize {
        let (mut count, mut bytes) = (0, 0);
        for job in &mut self.jobs {
            let size = job.entry().map(StateEntry::bytes_max);
            bytes += size.unwrap_or(0);
            job.under_way = size.is_none() || count == 0 || bytes <= APPEND_BYTES_MAX;
            count += usize::from(size.is_some() && job.under_way);
        }
        count
    }

    fn append_command(&self) -> LogCommand {
        let producer_id = self.producer_id.expect("appends wait for a producer id");
        let (producer_epoch, base_sequence) = match self.last_batches.get(&producer_id) {
            None => (0, 0),
            Some(last) => {
                (last.producer_epoch, sequence_of(0, (i64::from(last.last_sequence) + 1).unsigned_abs()))
            }
        };
        let entries = self.jobs.iter().filter(|job| job.under_way).filter_map(Job::entry).cloned().collect();
        LogCommand::Append { producer_id, producer_epoch, base_sequence, entries }
    }

    /// The answer to [`Question::LogEnd`] or [`Question::HighWatermark`].
    pub fn handle_offset(&mut self, now: Now, question: Question, offset: i64) {
        self.asked = false;
        let Phase::LiningUp { machine } = &mut self.phase else { return };
        match question {
            Question::LogEnd => machine.handle_log_end(offset),
            Question::HighWatermark => machine.handle_high_watermark(now, offset),
            Question::LastBatch => {}
        }
    }

    /// The answer to [`Question::LastBatch`].
    pub fn handle_last_batch(&mut self, now: Now, last_batch: Option<LastBatch>) {
        self.asked = false;
        let Phase::LiningUp { machine } = &mut self.phase else { return };
        machine.handle_last_batch(now, last_batch);
        if let Some(found) = machine.outcome() {
            if found.log_end < self.read_to {
                self.shorter_since.get_or_insert(now);
                return self.handle_failure(now);
            }
            self.shorter_since = None;
            self.phase = Phase::CatchingUp { to: found.log_end, found: found.last_batch };
            self.end_catching_up(now);
        }
    }

    /// A stretch was read.
    pub fn handle_read(&mut self, now: Now, read: LogRead) {
        self.asked = false;
        self.read_to = self.read_to.max(read.next_offset);
        self.last_batches.extend(read.last_batches);
        for (offset, stored) in read.entries {
            self.note(&stored);
            self.entries.push_back((offset, stored));
        }
        match self.phase {
            Phase::CatchingUp { .. } => self.end_catching_up(now),
            Phase::ReadingBack { to } if self.read_to >= to => {
                // Jobs whose entry is not there by now were told another instance's success: they go again after it.
                let is_there = !self.jobs.iter().any(|job| job.under_way && job.entry().is_some());
                if is_there {
                    self.finish(|job| (job.under_way && job.entry().is_none()).then_some(true));
                }
                self.fail_outrun();
                self.phase = Phase::Idle { not_before: now };
            }
            _ => {}
        }
    }

    /// Finishes our own jobs and fails those that an entry has outrun.
    fn note(&mut self, stored: &Stored) {
        if stored.instance == self.instance {
            let place = self.jobs.iter().position(|job| job.entry() == Some(&stored.entry));
            if let Some(job) = place.and_then(|place| self.jobs.remove(place)) {
                self.done.push_back((job.id, !job.is_outrun()));
            }
            return;
        }
        let Some(other) = stored.entry.decided() else { return };
        for job in &mut self.jobs {
            if let JobKind::Append { entry, outrun } = &mut job.kind {
                *outrun |= entry.decided() == Some(other);
            }
        }
    }

    fn end_catching_up(&mut self, now: Now) {
        let Phase::CatchingUp { to, found } = self.phase else { return };
        if self.read_to < to {
            return;
        }
        match self.producer_id {
            Some(producer_id) => {
                let last = self.last_batches.get(&producer_id).copied();
                // The broker has forgotten us: a new epoch, or a zombie's next sequence would be taken.
                let forgotten = last.map(|last| LastBatch {
                    producer_epoch: last.producer_epoch.checked_add(1).unwrap_or(0),
                    last_sequence: -1,
                });
                self.last_batches.extend(found.or(forgotten).map(|last| (producer_id, last)));
                self.lined_up = true;
            }
            None => self.finish(|job| (job.under_way && job.entry().is_none()).then_some(true)),
        }
        self.fail_outrun();
        self.phase = Phase::Idle { not_before: now };
    }

    /// Jobs that were outrun before their entry was written need not be written.
    fn fail_outrun(&mut self) {
        self.finish(|job| job.is_outrun().then_some(false));
    }

    /// Ends the jobs for which `outcome` has one.
    fn finish(&mut self, outcome: impl Fn(&Job) -> Option<bool>) {
        let done = &mut self.done;
        self.jobs.retain(|job| match outcome(job) {
            Some(won) => {
                done.push_back((job.id, won));
                false
            }
            None => true,
        });
    }

    /// The append was acknowledged at this base offset, or brought no success (none).
    pub fn handle_appended(&mut self, now: Now, base_offset: Option<i64>) {
        self.asked = false;
        let Phase::Appending { count } = self.phase else { return };
        match base_offset {
            // A base offset that was read before is not where this append went.
            Some(base_offset) if base_offset >= self.read_to => {
                let to = base_offset + i64::try_from(count).unwrap_or(i64::MAX);
                self.heartbeat_at = now + HEARTBEAT_EVERY;
                self.phase = Phase::ReadingBack { to };
            }
            _ => self.handle_failure(now),
        }
    }

    /// A request brought no answer, or an error: the state topic is lined up before anything else.
    pub fn handle_failure(&mut self, now: Now) {
        self.asked = false;
        self.lined_up = false;
        self.phase = Phase::Idle { not_before: now + PAUSE };
    }

    /// Since when the topic ends before what was read of it: a leader that was replaced and has not heard of it, or, where
    /// that lasts, a topic that was made again or cut back.
    #[must_use]
    pub fn shorter_since(&self) -> Option<Now> {
        self.shorter_since
    }

    /// The next entry, with its offset.
    pub fn poll_entry(&mut self) -> Option<(i64, Stored)> {
        self.entries.pop_front()
    }

    /// The next job that is done, and whether its entry counts. Drain [`StateLog::poll_entry`] first: T2.
    pub fn poll_done(&mut self) -> Option<(JobId, bool)> {
        if self.entries.is_empty() { self.done.pop_front() } else { None }
    }

    /// Whether nothing waits to be stored or read.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty() && matches!(self.phase, Phase::Idle { .. })
    }

    /// When to poll again although nothing happened.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Now> {
        match &self.phase {
            Phase::Idle { not_before } if self.has_work() => Some(*not_before),
            Phase::Idle { not_before } => self.producer_id.map(|_| self.heartbeat_at.max(*not_before)),
            Phase::LiningUp { machine } => machine.next_timeout(),
            Phase::CatchingUp { .. } | Phase::Appending { .. } | Phase::ReadingBack { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
