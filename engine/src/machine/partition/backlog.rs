//! Batches that were fetched and wait for their turn, each with the record numbers it will carry.
//!
//! - B1: planned batches follow on by number without a gap; upstream they may have gaps, and each gap is a run.
//! - B2: nothing behind a batch that holds the partition is planned.

use std::collections::VecDeque;

use bytes::Bytes;
use twinlog_protocol::batch::{self, BatchView, Entry, Verdict};
use twinlog_protocol::record;

use crate::machine::hold::HoldReason;
use crate::machine::lineage::Run;
use crate::machine::produce_window::Sent;

/// Most bytes that trimming a batch may unpack: what a broker accepts by default is far below.
const UNPACKED_BYTES_MAX: usize = 256 << 20;

/// Runs of one entry of the state topic: 64 KB.
const RUNS_MAX: usize = 2_500;

/// A batch with its place in the generation.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    /// Number, count and upstream offset of its records.
    pub batch: Sent,
    /// The batch as the source has it, trimmed where our position lies inside.
    pub view: BatchView,
}

/// The waiting batches of one partition.
#[derive(Debug)]
pub(super) struct Backlog {
    waiting: VecDeque<Planned>,
    bytes: usize,
    /// The next record to be planned, if upstream goes on densely.
    next: Run,
    /// Upstream offset from which to fetch next.
    read_next: i64,
    /// Leader epoch of the last batch that was read, -1 before the first.
    read_epoch: i32,
    /// Numbers below this one have their runs in the state topic.
    stored_below: u64,
    unstored: Vec<Run>,
    /// Runs are stored for dense batches, too.
    stores_all: bool,
    hold: Option<HoldReason>,
}

impl Backlog {
    /// An empty backlog that goes on from `position`. With `stores_all` the runs of each stretch are stored, first and last
    /// record included, even where they only say that it is dense.
    #[must_use]
    pub(super) fn new(position: Run, stores_all: bool) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            next: position,
            read_next: position.upstream,
            read_epoch: -1,
            stored_below: u64::MAX,
            unstored: Vec::new(),
            stores_all,
            hold: None,
        }
    }

    /// Plans the batches of one fetched stretch of log.
    pub(super) fn plan(&mut self, records: Bytes) {
        let from = self.next.number;
        let mut entries = batch::batches(records);
        while self.hold.is_none() {
            match entries.next() {
                None => break,
                Some(Ok(entry)) => self.plan_entry(entry, self.stores_all && self.next.number == from),
                Some(Err(fault)) => self.hold_for_damage(&fault),
            }
        }
        if self.stores_all && self.next.number > from + 1 {
            self.unstored.push(self.next.at(self.next.number - 1));
        }
    }

    /// `is_first`: the run is stored whether it is dense or not.
    fn plan_entry(&mut self, entry: Entry, is_first: bool) {
        let verdict = entry.verdict(self.read_next);
        let view = match entry {
            Entry::Batch(view) => view,
            Entry::Legacy { offset, .. } => {
                if let Verdict::Hold(kind) = verdict {
                    self.hold = Some(HoldReason::Unsupported { offset, kind });
                }
                return;
            }
        };
        let (after, epoch) = (view.header().next_offset(), view.header().partition_leader_epoch);
        match verdict {
            Verdict::HeaderOnly => self.push(view, is_first),
            Verdict::Trim { first_offset } => match record::trim(&view, first_offset, UNPACKED_BYTES_MAX) {
                Ok(trimmed) => self.push(trimmed, is_first),
                Err(fault) => return self.hold_for_damage(&fault),
            },
            Verdict::Drop(_) => {}
            Verdict::Hold(kind) => {
                self.hold = Some(HoldReason::Unsupported { offset: view.header().base_offset, kind });
                return;
            }
        }
        self.read_epoch = epoch;
        // The next offset to read is told by the header, never by the last record.
        self.read_next = self.read_next.max(after);
    }

    fn push(&mut self, view: BatchView, is_first: bool) {
        let header = view.header();
        let upstream = header.base_offset;
        let records = header.record_count.unsigned_abs();
        if is_first || upstream != self.next.upstream {
            self.next.upstream = upstream;
            self.stored_below = self.stored_below.min(self.next.number);
            self.unstored.push(self.next);
        }
        let batch = Sent { number: self.next.number, records, upstream, bytes: view.bytes().len() };
        self.next = self.next.at(self.next.number + u64::from(records));
        self.bytes += batch.bytes;
        self.waiting.push_back(Planned { batch, view });
    }

    fn hold_for_damage(&mut self, fault: &twinlog_protocol::DecodeError) {
        self.hold_with(HoldReason::DamagedSource { offset: self.read_next, fault: fault.to_string() });
    }

    /// Runs that must be stored before the batches that begin with them may go; each is given out once, no more at once
    /// than an entry of the state topic may hold.
    pub(super) fn take_unstored(&mut self) -> Vec<Run> {
        let count = self.unstored.len().min(RUNS_MAX);
        self.unstored.drain(..count).collect()
    }

    /// Lets go of what was fetched: the partition stops copying, and others need the room.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.unstored.clear();
        self.bytes = 0;
    }

    /// The runs given out so far are stored: only batches that need later ones still wait.
    pub(super) fn handle_stored(&mut self) {
        self.stored_below = self.unstored.first().map_or(u64::MAX, |run| run.number);
    }

    /// The runs that wait to be given out.
    #[must_use]
    pub(super) fn unstored(&self) -> &[Run] {
        &self.unstored
    }

    /// Whether [`Backlog::pop_ready`] has a batch.
    #[must_use]
    pub(super) fn is_ready(&self) -> bool {
        self.waiting.front().is_some_and(|planned| planned.batch.number < self.stored_below)
    }

    /// Nothing more is planned, for this reason; what waits still goes.
    pub(super) fn hold_with(&mut self, reason: HoldReason) {
        self.hold.get_or_insert(reason);
    }

    /// Others have appended: everything to come lies this much further downstream.
    pub(super) fn shift(&mut self, offsets: i64) {
        self.next.downstream += offsets;
        self.unstored.iter_mut().for_each(|run| run.downstream += offsets);
    }

    /// The next batch that may be sent.
    pub(super) fn pop_ready(&mut self) -> Option<Planned> {
        if !self.is_ready() {
            return None;
        }
        let planned = self.waiting.pop_front()?;
        self.bytes -= planned.batch.bytes;
        Some(planned)
    }

    /// Why nothing is planned behind the waiting batches, if so.
    #[must_use]
    pub(super) fn hold(&self) -> Option<&HoldReason> {
        self.hold.as_ref()
    }

    /// Upstream offset from which to fetch next.
    #[must_use]
    pub(super) fn read_next(&self) -> i64 {
        self.read_next
    }

    /// Leader epoch of the last batch that was read, -1 before the first: the source compares it with its own log.
    #[must_use]
    pub(super) fn read_epoch(&self) -> i32 {
        self.read_epoch
    }

    /// Upstream offset of the oldest waiting record, or where reading goes on when none waits.
    #[must_use]
    pub(super) fn oldest(&self) -> i64 {
        self.waiting.front().map_or(self.read_next, |planned| planned.batch.upstream)
    }

    /// Whether no batch waits.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes of the waiting batches.
    #[must_use]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
