//! Which of the waiting batches go as one, and how large that one may be.
//!
//! - G1: nothing waits in order to be merged. Only when a batch may be sent, those are looked at that wait with it.
//! - G2: what becomes one batch follows on by number and by upstream offset: every record keeps its number, and whoever
//!   cuts otherwise comes to the same log.
//! - G3: a batch that is larger than any the target has taken goes alone. Were it refused as too large, then one behind it
//!   would be taken by a broker that has no state of ours, and leave a hole.
//! - G4: a merged batch never holds the partition. Refused for its size, smaller ones follow; refused for anything else,
//!   its batches go one by one, so that the one to blame is named.

use std::time::Duration;

use twinlog_protocol::ErrorCode;

use super::PartitionMachine;
use super::backlog::{Limits, Packing, Planned, Stretch};
use super::splitting::{SizeLimit, is_for_size};
use crate::machine::Now;
use crate::machine::produce_window::Sent;

/// A round trip that makes a link a long one: a window of five batches as producers made them leaves it idle.
const LONG_ROUND_TRIP: Duration = Duration::from_millis(10);
/// Records in one merged batch.
const RECORDS_MAX: u32 = 1 << 16;
/// Most bytes that the records of a packed batch unpack to: some milliseconds of work.
const UNPACKED_BYTES_MAX: usize = 1 << 20;

/// How large batches may become, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeSizes {
    /// A batch below this is small: it goes with its neighbours, wherever several wait.
    pub small_bytes: usize,
    /// Small batches are put together up to this size: little enough to cost no delay. So are those that are packed anew,
    /// which costs less and gives less the more of them are one.
    pub small_merged_bytes_max: usize,
    /// Behind a full window on a long link batches of any size are, up to this one.
    pub merged_bytes_max: usize,
    /// A batch up to this size is taken by every topic that anybody would set up.
    pub sure_bytes: usize,
}

impl Default for MergeSizes {
    fn default() -> Self {
        Self {
            small_bytes: 4 << 10,
            small_merged_bytes_max: 64 << 10,
            // Topics take 1,048,588 bytes by default.
            merged_bytes_max: 1_000_000,
            sure_bytes: 16 << 10,
        }
    }
}

/// What a partition has learnt about sizes since its last line-up.
#[derive(Debug)]
pub(super) struct Merging {
    sizes: MergeSizes,
    packing: Packing,
    /// The largest merged one that is not refused, as far as refusals have told. Outlasts line-ups.
    bytes_max: usize,
    /// The same of batches as the source has them, which outlasts line-ups, too.
    limit: SizeLimit,
    /// Batches below this upstream offset go one by one.
    one_by_one_below: i64,
    /// The largest batch that the target has taken, as it was sent …
    taken_bytes: usize,
    /// … and the most bytes that went into one.
    merged_bytes: usize,
    /// The largest stretch of batches that was tried alone.
    tried_bytes: usize,
    /// The shortest time between a request to the target's leader and its answer.
    round_trip: Option<Duration>,
    asked_at: Option<Now>,
    /// Batches waited when the window became full.
    is_crowded: bool,
}

impl Merging {
    pub(super) fn new(sizes: MergeSizes, packing: Packing) -> Self {
        Self {
            sizes,
            packing,
            bytes_max: usize::MAX,
            limit: SizeLimit::default(),
            one_by_one_below: i64::MIN,
            taken_bytes: 0,
            merged_bytes: 0,
            tried_bytes: 0,
            round_trip: None,
            asked_at: None,
            is_crowded: false,
        }
    }

    /// Another leader may be elsewhere, and take other sizes.
    pub(super) fn handle_line_up(&mut self) {
        let Self { bytes_max, limit, one_by_one_below, .. } = *self;
        *self = Self { bytes_max, limit, one_by_one_below, ..Self::new(self.sizes, self.packing) };
    }

    /// The leader was asked something that it answers at once.
    pub(super) fn handle_asked(&mut self, now: Now) {
        self.asked_at = Some(now);
    }

    /// The answer to that came.
    pub(super) fn handle_told(&mut self, now: Now) {
        if let Some(asked_at) = self.asked_at.take() {
            self.note_round_trip(now.saturating_sub(asked_at));
        }
    }

    fn note_round_trip(&mut self, took: Duration) {
        self.round_trip = Some(self.round_trip.map_or(took, |shortest| shortest.min(took)));
    }

    /// Whether the link to the target's leader is a long one.
    pub(super) fn is_far(&self) -> bool {
        self.round_trip.is_some_and(|round_trip| round_trip >= LONG_ROUND_TRIP)
    }

    /// Whether batches wait although the window is full.
    pub(super) fn note_crowd(&mut self, is_crowded: bool) {
        self.is_crowded = is_crowded;
    }

    /// A batch was acknowledged so long after it was sent.
    pub(super) fn handle_taken(&mut self, batch: &Sent, took: Duration) {
        self.note_round_trip(took);
        self.taken_bytes = self.taken_bytes.max(batch.sent_bytes);
        self.merged_bytes = self.merged_bytes.max(batch.bytes);
    }

    /// The target has refused a batch. Tells whether it comes again in another form: a merged one (G4), or one that can be cut.
    /// So does one of several records, one of which is to be skipped, with `finds_record`.
    pub(super) fn handle_refused(
        &mut self,
        now: Now,
        batch: &Sent,
        code: ErrorCode,
        finds_record: bool,
    ) -> bool {
        if batch.batches < 2 {
            if batch.records < 2 || !(is_for_size(code) || finds_record) {
                return false;
            }
            if is_for_size(code) {
                self.limit.handle_refused(now, batch.sent_bytes);
            } else {
                self.limit.handle_bad_record(now, batch);
            }
            return true;
        }
        if is_for_size(code) {
            self.bytes_max = batch.bytes.min(batch.sent_bytes) / 2;
        } else {
            self.leave_apart(batch.upstream_next);
        }
        true
    }

    /// What is above this limit is cut.
    pub(super) fn limit(&self) -> SizeLimit {
        self.limit
    }

    /// Some time has passed, and the copy has come to this upstream offset.
    pub(super) fn handle_time(&mut self, now: Now, upstream: i64) {
        self.limit.handle_time(now);
        self.limit.handle_position(upstream);
    }

    /// Nothing below this upstream offset is merged.
    pub(super) fn leave_apart(&mut self, below: i64) {
        self.one_by_one_below = self.one_by_one_below.max(below);
    }

    /// Whether nothing may be under way beside a batch as the source has it, or a piece of one (G3).
    pub(super) fn goes_alone(&self, batch: &Sent) -> bool {
        batch.batches == 1 && batch.sent_bytes > self.taken_bytes.max(self.sure_bytes())
    }

    /// Bytes that every topic takes, as far as no refusal has told otherwise.
    fn sure_bytes(&self) -> usize {
        if self.limit.bytes_max().is_some() { 0 } else { self.sizes.sure_bytes }
    }

    fn merges_all(&self) -> bool {
        self.is_crowded && self.is_far()
    }

    /// The largest merged batch that is right now.
    fn bytes_max(&self) -> usize {
        let wanted =
            if self.merges_all() { self.sizes.merged_bytes_max } else { self.sizes.small_merged_bytes_max };
        wanted.min(self.bytes_max).min(self.limit.bytes_max().unwrap_or(usize::MAX))
    }

    /// For a batch that goes alone.
    fn limits_alone(&self) -> Limits {
        let bytes_max = self.bytes_max();
        self.limits(bytes_max, bytes_max)
    }

    /// For a batch that may have others beside it (G3).
    fn limits_beside(&self) -> Limits {
        let sure = |bytes: usize| bytes.max(self.sure_bytes()).min(self.bytes_max());
        self.limits(sure(self.merged_bytes), sure(self.taken_bytes))
    }

    fn limits(&self, bytes_max: usize, sent_bytes_max: usize) -> Limits {
        Limits {
            bytes_max,
            records_max: RECORDS_MAX,
            sent_bytes_max,
            unpacked_bytes_max: UNPACKED_BYTES_MAX.min(self.packing.unpacked_bytes_max),
            codec: self.packing.codec,
        }
    }
}

impl PartitionMachine {
    /// The batch to send next, if one is ready: what waits with it may be in it. None also when the window closes, so that
    /// a larger one than ever can go alone.
    pub(super) fn pop_next(&mut self) -> Option<Planned> {
        let (alone, beside) = (self.merging.limits_alone(), self.merging.limits_beside());
        let stretch = self.stretch(&alone);
        if stretch.bytes <= beside.bytes_max {
            return self.pop(stretch, &beside);
        }
        if self.window.is_empty() {
            self.merging.tried_bytes = self.merging.tried_bytes.max(stretch.bytes);
            self.window.narrow();
            return self.pop(stretch, &alone);
        }
        if stretch.bytes / 2 >= beside.bytes_max.max(self.merging.tried_bytes) {
            self.window.drain();
            return None;
        }
        let stretch = self.stretch(&beside);
        self.pop(stretch, &beside)
    }

    /// Takes a stretch, or as much of it as can be one batch: one batch as it is, if need be.
    fn pop(&mut self, stretch: Stretch, limits: &Limits) -> Option<Planned> {
        let mut batches = stretch.batches;
        while batches > 1 {
            let merged = self.backlog.pop_merged(batches, limits);
            if merged.is_some() {
                return merged;
            }
            batches /= 2;
        }
        if stretch.batches > 1 {
            // Damaged, or it unpacks to too much: the neighbours are not tried over and over.
            self.merging.leave_apart(stretch.upstream_next);
        }
        self.backlog.pop_ready()
    }

    /// The waiting batches that may go as one.
    fn stretch(&self, limits: &Limits) -> Stretch {
        let merges_all = self.merging.merges_all();
        self.backlog.stretch(limits, |Planned { batch, view, .. }| {
            (merges_all || batch.bytes < self.merging.sizes.small_bytes || self.is_to_pack(view.header()))
                && batch.upstream >= self.merging.one_by_one_below
                // Whether it is damaged is to be told of it alone.
                && self.check_crc_at != Some(batch.upstream)
        })
    }
}
