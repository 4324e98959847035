//! Batches that were fetched and wait for their turn, each with the record numbers it will carry.
//!
//! - B1: planned batches follow on by number without a gap; upstream they may have gaps, and each gap is a run.
//! - B2: nothing behind a batch that holds the partition is planned.
//! - B3: what is kept through a line-up is what would be fetched and planned again behind it; else it is dropped.

mod planning;

use std::collections::VecDeque;

use twinlog_protocol::DecodeError;
use twinlog_protocol::batch::{BatchView, Compression, HEADER_BYTES};
use twinlog_protocol::record::{Merge, OffsetRun, Repack, can_merge};

use self::planning::Planning;
use crate::machine::hold::HoldReason;
use crate::machine::lineage::Run;
use crate::machine::produce_window::Sent;

/// Runs of one entry of the state topic: 64 KB.
const RUNS_MAX: usize = 2_500;

/// In which codec batches are sent, and what unpacking them may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// The codec of all batches; none where each keeps its own.
    pub codec: Option<Compression>,
    /// Most bytes that a batch which is written anew as a whole may unpack to, and a record of one that goes in pieces:
    /// larger ones hold their partition.
    pub unpacked_bytes_max: usize,
}

impl Default for Packing {
    /// What a process may hold if nobody says otherwise: what a broker accepts by default is far below.
    fn default() -> Self {
        Self { codec: None, unpacked_bytes_max: 256 << 20 }
    }
}

/// A batch with its place in the generation.
#[derive(Debug)]
pub(super) struct Planned {
    /// Number, count and upstream offset of its records.
    pub batch: Sent,
    /// The batch as the source has it, or written anew, or several of them as one.
    pub view: BatchView,
    /// Where upstream offsets do not follow on inside it.
    pub gaps: Vec<OffsetRun>,
    /// It was written anew, into memory of its own.
    pub is_new: bool,
    /// Where the first of its records have gone, packed anew: how the others come out of `view`.
    pub rest: Option<Box<Repack>>,
}

/// How large a merged batch may become.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes of the batches before they are merged.
    pub bytes_max: usize,
    /// Records in the merged batch.
    pub records_max: u32,
    /// Bytes of the merged batch.
    pub sent_bytes_max: usize,
    /// Bytes of its records, unpacked.
    pub unpacked_bytes_max: usize,
    /// The codec that it is packed with; none for that of its batches.
    pub codec: Option<Compression>,
}

/// The first waiting batches, as far as they can go as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stretch {
    /// How many.
    pub batches: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Upstream offset behind the last one.
    pub upstream_next: i64,
}

/// The waiting batches of one partition.
#[derive(Debug)]
pub(super) struct Backlog {
    waiting: VecDeque<Planned>,
    bytes: usize,
    /// Bytes of those that were written anew when their turn came.
    anew_bytes: usize,
    /// What was fetched and is not planned yet.
    planning: Option<Planning>,
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
    /// An empty backlog that goes on from `position`, the record before which has this leader epoch, if known. With
    /// `stores_all` the runs of each stretch are stored, first and last record included, even where they only say that it is
    /// dense.
    #[must_use]
    pub(super) fn new(position: Run, read_epoch: Option<i32>, stores_all: bool) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            anew_bytes: 0,
            planning: None,
            next: position,
            read_next: position.upstream,
            read_epoch: read_epoch.unwrap_or(-1),
            stored_below: u64::MAX,
            unstored: Vec::new(),
            stores_all,
            hold: None,
        }
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
        self.planning = None;
        self.unstored.clear();
        (self.bytes, self.anew_bytes) = (0, 0);
    }

    /// Whether the waiting batches are what an empty backlog would come to hold at this position (B3): they begin there,
    /// and nothing about them is on its way to the state topic, or has to go there.
    #[must_use]
    pub(super) fn goes_on_from(&self, position: Run, stores_all: bool) -> bool {
        let is_plain = !self.stores_all
            && !stores_all
            && self.hold.is_none()
            && self.unstored.is_empty()
            && self.stored_below == u64::MAX;
        self.waiting.front().is_some_and(|Planned { batch, .. }| {
            let downstream = self.next.at(batch.number).downstream;
            is_plain && Run { number: batch.number, upstream: batch.upstream, downstream } == position
        })
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
        self.ready().is_some()
    }

    /// Nothing more is planned, for this reason; what waits still goes.
    pub(super) fn hold_with(&mut self, reason: HoldReason) {
        self.hold.get_or_insert(reason);
        self.planning = None;
    }

    /// Nothing more is sent, for this reason: it lies before all that waits.
    pub(super) fn hold_before(&mut self, reason: HoldReason) {
        self.clear();
        self.hold = Some(reason);
    }

    /// Others have appended: everything to come lies this much further downstream.
    pub(super) fn shift(&mut self, offsets: i64) {
        self.next.downstream += offsets;
        self.unstored.iter_mut().for_each(|run| run.downstream += offsets);
    }

    /// What [`Backlog::pop_ready`] would give.
    #[must_use]
    pub(super) fn ready(&self) -> Option<&Planned> {
        self.waiting.front().filter(|planned| planned.batch.next_number() <= self.stored_below)
    }

    /// The next batch that may be sent.
    pub(super) fn pop_ready(&mut self) -> Option<Planned> {
        if !self.is_ready() {
            return None;
        }
        let planned = self.waiting.pop_front()?;
        self.bytes -= planned.batch.bytes;
        self.anew_bytes -= planned.batch.anew_bytes;
        Some(planned)
    }

    /// What was taken out comes back to the front, whole or in pieces, in this order.
    pub(super) fn put_back(
        &mut self,
        batches: impl IntoIterator<Item = Planned, IntoIter: DoubleEndedIterator>,
    ) {
        for planned in batches.into_iter().rev() {
            self.bytes += planned.batch.bytes;
            self.anew_bytes += planned.batch.anew_bytes;
            self.waiting.push_front(planned);
        }
    }

    /// The batches that may be sent now and can go as one: each of them `joins`, and they follow on without a gap.
    #[must_use]
    pub(super) fn stretch(&self, limits: &Limits, joins: impl Fn(&Planned) -> bool) -> Stretch {
        let mut stretch = Stretch::default();
        let mut records = 0u32;
        let mut last: Option<&Planned> = None;
        for planned in &self.waiting {
            let Planned { batch, view, .. } = planned;
            records = records.saturating_add(batch.records);
            let fits = stretch.bytes + batch.bytes <= limits.bytes_max && records <= limits.records_max;
            let follows = last.is_none_or(|last| can_merge(last.view.header(), view.header(), limits.codec));
            if planned.rest.is_some() {
                break;
            }
            if !(fits && follows && batch.next_number() <= self.stored_below && joins(planned)) {
                break;
            }
            stretch.batches += 1;
            stretch.bytes += batch.bytes;
            stretch.upstream_next = batch.upstream_next;
            last = Some(planned);
        }
        stretch
    }

    /// So many batches, which a stretch has told of, as one: fewer where their records take more than the limits allow.
    /// None where that leaves nothing to merge, where the first one is damaged, and where one batch of them would be
    /// packed larger than the limit; nothing is taken then.
    pub(super) fn pop_merged(&mut self, batches: usize, limits: &Limits) -> Option<Planned> {
        let mut parts = self.waiting.iter().take(batches);
        let first = parts.next()?;
        let mut payload_bytes_max = limits.unpacked_bytes_max;
        let own = first.view.header().attributes.compression();
        if limits.codec.map_or(own, Ok) == Ok(Compression::None) {
            payload_bytes_max = payload_bytes_max.min(limits.sent_bytes_max.saturating_sub(HEADER_BYTES));
        }
        let mut merge = Merge::begin(&first.view, limits.codec, payload_bytes_max).ok()?;
        merge.reserve(parts.clone().map(|part| part.batch.bytes).sum());
        let (mut batch, mut gaps) = (first.batch, first.gaps.clone());
        for part in parts {
            // A damaged batch goes alone, so that the target judges it.
            if merge.push(&part.view) != Ok(true) {
                break;
            }
            let moved = |gap: &OffsetRun| OffsetRun { index: batch.records + gap.index, ..*gap };
            gaps.extend(part.gaps.iter().map(moved));
            batch.records += part.batch.records;
            batch.upstream_next = part.batch.upstream_next;
            batch.bytes += part.batch.bytes;
            batch.anew_bytes += part.batch.anew_bytes;
            batch.batches += 1;
            batch.leader_epoch = part.batch.leader_epoch;
        }
        let view = merge.finish().ok().filter(|view| view.bytes().len() <= limits.sent_bytes_max)?;
        if batch.batches < 2 {
            return None;
        }
        self.waiting.drain(..batch.batches as usize);
        self.bytes -= batch.bytes;
        self.anew_bytes -= batch.anew_bytes;
        batch.sent_bytes = view.bytes().len();
        batch.anew_bytes = if limits.codec.is_some() { batch.sent_bytes } else { 0 };
        batch.max_timestamp_ms = view.header().max_timestamp;
        Some(Planned { batch, view, gaps, is_new: true, rest: None })
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

    /// Whether no batch waits, nor what has to be planned.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.planning.is_none()
    }

    /// Bytes of the waiting batches, and of what has to be planned.
    #[must_use]
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.planning.as_ref().map_or(0, Planning::bytes)
    }

    /// Bytes of those that were written anew when their turn came.
    #[must_use]
    pub(super) fn anew_bytes(&self) -> usize {
        self.anew_bytes
    }
}

/// Why a partition is held before a batch that cannot be read.
pub(super) fn held_for(offset: i64, fault: &DecodeError) -> HoldReason {
    match *fault {
        DecodeError::UnpacksTooLarge { limit, .. } => {
            HoldReason::UnpacksTooLarge { offset, bytes_max: limit }
        }
        _ => HoldReason::DamagedSource { offset, fault: fault.to_string() },
    }
}
