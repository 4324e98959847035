//! A batch of the source that the target refuses for its size goes in pieces; so does one that it refuses for one of its
//! records, where those are skipped.
//!
//! - C1: every record keeps its number and its upstream offset, in whichever piece it goes; gaps go with their records.
//! - C2: cut is what the target has refused, and what is as large. Where a single record is refused, the partition is held.
//! - C3: the limit that a refusal told grows again, so that whole batches go once the target takes them. It costs one
//!   refusal, or two, each time that it was too early.
//! - C4: what is written anew, and may be many times what the source sent, is cut to what every topic takes by default: a
//!   request beyond `socket.request.max.bytes` costs the connection and has no answer that would tell.

use std::time::Duration;

use twinlog_protocol::ErrorCode;
use twinlog_protocol::record::{Reencoded, split};

use super::PartitionMachine;
use super::backlog::{Planned, held_for};
use crate::machine::Now;
use crate::machine::produce_window::Sent;

/// After so long without a refusal the limit doubles.
const GROWS_EVERY: Duration = Duration::from_secs(300);
/// No batch is larger: a limit above this one is none.
const BATCH_BYTES_MAX: usize = i32::MAX as usize;

/// The size above which batches are cut, as far as refusals have told.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SizeLimit {
    /// Bytes of a batch as it is sent, and when they double.
    known: Option<(usize, Now)>,
    /// It counts below this upstream offset alone: there is the record to find that is not refused for its size.
    below: Option<i64>,
}

impl SizeLimit {
    /// A batch of so many bytes was refused: half of it may pass, and a record more, so that two pieces will do.
    pub(super) fn handle_refused(&mut self, now: Now, bytes: usize) {
        self.known = Some(((bytes / 8 * 5).max(1), now + GROWS_EVERY));
        self.below = None;
    }

    /// The same for a batch that holds a record which is refused whatever its size.
    pub(super) fn handle_bad_record(&mut self, now: Now, batch: &Sent) {
        self.handle_refused(now, batch.sent_bytes);
        self.below = Some(batch.upstream_next);
    }

    /// Where the copy has come: behind the record that was looked for, no limit is known.
    pub(super) fn handle_position(&mut self, upstream: i64) {
        if self.below.is_some_and(|below| upstream >= below) {
            *self = Self::default();
        }
    }

    /// Lets the limit grow (C3).
    pub(super) fn handle_time(&mut self, now: Now) {
        while let Some((bytes, at)) = self.known.filter(|(_, at)| *at <= now) {
            self.known = Some((2 * bytes, at + GROWS_EVERY)).filter(|(bytes, _)| *bytes <= BATCH_BYTES_MAX);
        }
    }

    /// The limit, if there is one.
    pub(super) fn bytes_max(self) -> Option<usize> {
        self.known.map(|(bytes, _)| bytes)
    }
}

/// Whether a refusal is for the size of the batch.
pub(super) fn is_for_size(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge)
}

impl PartitionMachine {
    /// The batch, or the first of several pieces, of which the others wait in its place. None where it cannot be cut, which
    /// holds the partition: what stands before it still goes.
    pub(super) fn cut(&mut self, mut planned: Planned) -> Option<Planned> {
        while let Some(bytes_max) = self.limit_of(&planned) {
            let Planned { batch, view, gaps, .. } = planned;
            match split(&Reencoded { view, gaps }, bytes_max, self.config.packing.unpacked_bytes_max) {
                Ok(pieces) => {
                    self.merging.leave_apart(batch.upstream_next);
                    self.backlog.put_back(pieces_of(&batch, pieces));
                }
                Err(fault) => {
                    self.backlog.hold_before(held_for(batch.upstream, &fault));
                    return None;
                }
            }
            planned = self.backlog.pop_ready()?;
        }
        Some(planned)
    }

    /// The limit, if the batch is to be cut for it.
    pub(super) fn limit_of(&self, Planned { batch, is_new, .. }: &Planned) -> Option<usize> {
        let learnt = self.merging.limit().bytes_max();
        let own = is_new.then_some(self.config.merge_sizes.merged_bytes_max);
        let limit = learnt.into_iter().chain(own).min();
        limit.filter(|bytes_max| batch.sent_bytes > *bytes_max && batch.records > 1 && batch.batches == 1)
    }
}

/// Pieces of a batch with their numbers. Together they have its bytes of the source.
fn pieces_of(whole: &Sent, pieces: Vec<Reencoded>) -> Vec<Planned> {
    let (mut number, mut bytes_left, mut left) = (whole.number, whole.bytes, pieces.len());
    let planned = |piece: Reencoded| {
        let (records, upstream) = (piece.view.header().record_count.unsigned_abs(), piece.offset_at(0));
        let bytes = bytes_left / left;
        let batch = Sent {
            number,
            records,
            upstream,
            upstream_next: piece.offset_at(records.saturating_sub(1)) + 1,
            bytes,
            sent_bytes: piece.view.bytes().len(),
            anew_bytes: piece.view.bytes().len(),
            batches: 1,
            max_timestamp_ms: piece.view.header().max_timestamp,
            leader_epoch: whole.leader_epoch,
        };
        (number, bytes_left, left) = (batch.next_number(), bytes_left - bytes, left - 1);
        Planned { batch, view: piece.view, gaps: piece.gaps, is_new: true, rest: None }
    };
    pieces.into_iter().map(planned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Duration::from_secs(50);

    #[test]
    fn a_limit_grows_until_it_is_none() {
        let mut limit = SizeLimit::default();
        limit.handle_time(NOW);
        assert_eq!(limit.bytes_max(), None);
        limit.handle_refused(NOW, 1 << 20);
        assert_eq!(limit.bytes_max(), Some(655_360));
        limit.handle_time(NOW + GROWS_EVERY - Duration::from_millis(1));
        assert_eq!(limit.bytes_max(), Some(655_360));
        limit.handle_time(NOW + GROWS_EVERY);
        assert_eq!(limit.bytes_max(), Some(1_310_720));
        limit.handle_refused(NOW + GROWS_EVERY, 1_310_000);
        assert_eq!(limit.bytes_max(), Some(818_750));
        limit.handle_time(NOW + 3 * GROWS_EVERY);
        assert_eq!(limit.bytes_max(), Some(4 * 818_750));
        limit.handle_time(Duration::MAX / 2);
        assert_eq!(limit.bytes_max(), None);
    }

    #[test]
    fn behind_a_record_that_was_looked_for_no_limit_is_known() {
        let batch = Sent {
            number: 5,
            records: 20,
            upstream: 100,
            upstream_next: 120,
            bytes: 800,
            sent_bytes: 800,
            anew_bytes: 0,
            batches: 1,
            max_timestamp_ms: 0,
            leader_epoch: 0,
        };
        let mut limit = SizeLimit::default();
        limit.handle_bad_record(NOW, &batch);
        limit.handle_position(119);
        assert_eq!(limit.bytes_max(), Some(500));
        limit.handle_position(120);
        assert_eq!(limit.bytes_max(), None);
        limit.handle_bad_record(NOW, &batch);
        limit.handle_refused(NOW, 800);
        limit.handle_position(120);
        assert_eq!(limit.bytes_max(), Some(500), "its size was too much as well");
    }
}
