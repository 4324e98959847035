//! A batch is packed in the codec of the flow when its turn comes, a piece at a time: what waits takes the memory that it was
//! fetched into, and may unpack to ten or a thousand times that.
//!
//! - D1: what is packed or cut waits for a turn, of a quarter of a megabyte and one piece: who gives turns bounds the memory of
//!   all partitions, and the time for which others wait.
//! - D2: a piece holds what unpacks to no more than a merged batch may be, or a single record.
//! - D3: of a damaged batch the records go that can be read; the partition is held at the first one that cannot.

use twinlog_protocol::DecodeError;
use twinlog_protocol::batch::{BatchHeader, HEADER_BYTES};
use twinlog_protocol::record::{OffsetRun, Reencoded, Repack};

use super::backlog::{Packing, Planned, held_for};
use super::{Now, PartitionMachine, Phase};
use crate::machine::produce_window::Sent;

/// Bytes that are written anew before others have a turn: some milliseconds of work.
const TURN_BYTES: usize = 256 << 10;

impl PartitionMachine {
    /// Whether the partition has something to plan or to send that has to be written anew, and waits for a turn.
    #[must_use]
    pub fn wants_turn(&self) -> bool {
        let has_some = (self.wants_turn && self.window.has_room()) || self.backlog.is_planning();
        has_some && matches!(self.phase, Phase::Copying)
    }

    /// The partition may write something anew.
    pub fn handle_turn(&mut self, now: Now) {
        self.turn_bytes = TURN_BYTES;
        self.advance(now);
        self.turn_bytes = 0;
    }

    /// Bytes that were written anew in a turn, and that the target has not taken.
    #[must_use]
    pub fn anew_bytes(&self) -> usize {
        self.backlog.anew_bytes() + self.window.anew_bytes()
    }

    /// Whether what is next has to wait for a turn.
    pub(super) fn waits_for_turn(&mut self) -> bool {
        let next = self.backlog.ready();
        self.wants_turn = self.turn_bytes == 0 && next.is_some_and(|planned| self.is_for_turn(planned));
        self.wants_turn
    }

    /// Whether a batch has to be packed or cut.
    pub(super) fn is_for_turn(&self, planned: &Planned) -> bool {
        self.is_to_pack(planned.view.header()) || self.limit_of(planned).is_some()
    }

    /// A batch is about to be sent.
    pub(super) fn count_turn(&mut self, batch: &Sent) {
        if batch.anew_bytes > 0 {
            self.turn_bytes = self.turn_bytes.saturating_sub(batch.bytes.max(batch.anew_bytes));
        }
    }

    /// Whether a batch has another codec than all are sent in.
    pub(super) fn is_to_pack(&self, header: &BatchHeader) -> bool {
        self.config.packing.codec.is_some_and(|codec| header.attributes.compression() != Ok(codec))
    }

    /// The batch in the codec that all are sent in, or the first piece of it, of which the rest waits in its place. None where
    /// it cannot be read, which holds the partition: what stands before it still goes.
    pub(super) fn pack(&mut self, planned: Planned) -> Option<Planned> {
        if !self.is_to_pack(planned.view.header()) {
            return Some(planned);
        }
        let upstream = planned.batch.upstream;
        match first_piece(planned, self.config.packing, self.config.merge_sizes.merged_bytes_max) {
            Ok((piece, rest)) => {
                self.backlog.put_back(rest);
                Some(piece)
            }
            Err(fault) => {
                self.backlog.hold_before(held_for(upstream, &fault));
                None
            }
        }
    }
}

fn first_piece(
    planned: Planned,
    packing: Packing,
    bytes_max: usize,
) -> Result<(Planned, Option<Planned>), DecodeError> {
    let Planned { batch, view, gaps, is_new, rest } = planned;
    let Packing { codec, unpacked_bytes_max } = packing;
    let mut repack = match (rest, codec) {
        (Some(repack), _) => repack,
        (None, Some(codec)) => {
            let whole = Reencoded { view: view.clone(), gaps: gaps.clone() };
            Box::new(Repack::begin(whole, codec, unpacked_bytes_max)?)
        }
        (None, None) => return Ok((Planned { batch, view, gaps, is_new, rest: None }, None)),
    };
    // What cannot be packed grows a little by trying.
    let payload_bytes_max = (bytes_max - bytes_max / 64).saturating_sub(HEADER_BYTES);
    let Some(piece) = repack.next_piece(payload_bytes_max)? else {
        let reason = format!("{} of its records are missing", batch.records);
        return Err(DecodeError::Refused { what: "batch", reason });
    };
    let records = piece.view.header().record_count.unsigned_abs().min(batch.records);
    let records_left = batch.records - records;
    let upstream_next = piece.offset_at(records.saturating_sub(1)) + 1;
    // Together the pieces have the bytes of the source.
    let bytes = match batch.bytes.checked_mul(records as usize) {
        Some(product) if records_left > 0 => product / batch.records as usize,
        _ => batch.bytes,
    };
    let sent_bytes = piece.view.bytes().len();
    let first = Sent {
        records,
        upstream_next,
        bytes,
        sent_bytes,
        anew_bytes: sent_bytes,
        max_timestamp_ms: piece.view.header().max_timestamp,
        ..batch
    };
    let moved = |gap: &OffsetRun| {
        let index = gap.index.checked_sub(records).filter(|index| *index > 0)?;
        Some(OffsetRun { index, ..*gap })
    };
    let left = Sent {
        number: first.next_number(),
        records: records_left,
        upstream: repack.next_offset(),
        bytes: batch.bytes - bytes,
        sent_bytes: batch.bytes - bytes,
        ..batch
    };
    let gaps = gaps.iter().filter_map(moved).collect();
    let rest = (records_left > 0).then(|| Planned { batch: left, view, gaps, is_new, rest: Some(repack) });
    Ok((Planned { batch: first, view: piece.view, gaps: piece.gaps, is_new: true, rest: None }, rest))
}
