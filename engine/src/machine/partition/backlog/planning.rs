//! What was fetched becomes batches with numbers: as it is, or written anew where it lacks records or is of an old format.
//!
//! Header-only batches are planned at once. Of those that are written anew some are, then others have a turn: a whole answer of
//! thinned batches takes as long as a hundred of other partitions.

use bytes::Bytes;
use twinlog_protocol::DecodeError;
use twinlog_protocol::batch::{self, BatchView, Batches, Dropped, Entry, Verdict};
use twinlog_protocol::fetch::{AbortedTransaction, AbortedTransactions};
use twinlog_protocol::record::{OffsetRun, Reencoded, reencode, upgrade};

use super::{Backlog, HoldReason, Planned, Run, Sent, held_for};

/// Bytes of batches, as they were fetched, that are written anew at once: packed they may be ten times that.
const ANEW_BYTES_AT_ONCE: usize = 64 << 10;

/// A fetched stretch of log.
#[derive(Debug)]
pub(super) struct Planning {
    entries: Batches,
    aborted: AbortedTransactions,
}

impl Planning {
    pub(super) fn bytes(&self) -> usize {
        self.entries.left()
    }
}

impl Backlog {
    /// Plans the batches of one fetched stretch of log; what `aborted` transactions wrote into it leaves holes. None that is
    /// written anew for it may unpack to more than `unpacked_bytes_max` bytes.
    pub(in crate::machine::partition) fn plan(
        &mut self,
        records: Bytes,
        aborted: Vec<AbortedTransaction>,
        unpacked_bytes_max: usize,
    ) {
        let (entries, aborted) = (batch::batches(records), AbortedTransactions::new(aborted));
        self.planning = Some(Planning { entries, aborted });
        self.plan_on(unpacked_bytes_max);
    }

    /// Whether some of it is still to be planned.
    #[must_use]
    pub(in crate::machine::partition) fn is_planning(&self) -> bool {
        self.planning.is_some()
    }

    /// Goes on planning, up to some bytes of what is written anew.
    pub(in crate::machine::partition) fn plan_on(&mut self, unpacked_bytes_max: usize) {
        let Some(Planning { mut entries, mut aborted }) = self.planning.take() else { return };
        let from = self.next.number;
        let mut anew_bytes = 0;
        while self.hold.is_none() {
            if anew_bytes >= ANEW_BYTES_AT_ONCE && entries.left() > 0 {
                self.planning = Some(Planning { entries, aborted });
                break;
            }
            match entries.next() {
                None => break,
                Some(Ok(entry)) => {
                    let verdict = match &entry {
                        Entry::Batch(view) if aborted.void(view.header()) => Verdict::Drop(Dropped::Aborted),
                        _ => entry.verdict(self.read_next),
                    };
                    if verdict == Verdict::Reencode {
                        anew_bytes += entry.bytes().len();
                    }
                    let is_first = self.stores_all && self.next.number == from;
                    self.plan_entry(entry, verdict, unpacked_bytes_max, is_first);
                }
                Some(Err(fault)) => self.hold_with(held_for(self.read_next, &fault)),
            }
        }
        if self.stores_all && self.next.number > from + 1 {
            self.unstored.push(self.next.at(self.next.number - 1));
        }
    }

    /// `is_first`: the run is stored whether it is dense or not.
    fn plan_entry(&mut self, entry: Entry, verdict: Verdict, unpacked_bytes_max: usize, is_first: bool) {
        let next = entry.next_offset();
        self.read_epoch = entry.leader_epoch();
        match (verdict, entry) {
            (Verdict::HeaderOnly, Entry::Batch(view)) => self.push(view, Vec::new(), is_first, false),
            (Verdict::Drop(_), _) => {}
            (Verdict::Hold(kind), entry) => {
                self.hold = Some(HoldReason::Unsupported { offset: entry.offset(), kind });
                return;
            }
            (Verdict::HeaderOnly | Verdict::Reencode, entry) => {
                match reencoded(&entry, self.read_next, unpacked_bytes_max) {
                    Ok(Some(Reencoded { view, gaps })) => self.push(view, gaps, is_first, true),
                    Ok(None) => {}
                    Err(fault) => return self.hold_with(held_for(self.read_next, &fault)),
                }
            }
        }
        // The next offset to read is told by the header, never by the last record.
        self.read_next = self.read_next.max(next);
    }

    fn push(&mut self, view: BatchView, gaps: Vec<OffsetRun>, is_first: bool, is_new: bool) {
        let header = view.header();
        let upstream = header.base_offset;
        let records = header.record_count.unsigned_abs();
        let number = self.next.number;
        if is_first || upstream != self.next.upstream {
            self.begin_run(number, upstream);
        }
        for gap in &gaps {
            self.begin_run(number + u64::from(gap.index), gap.offset);
        }
        let bytes = view.bytes().len();
        self.next = self.next.at(number + u64::from(records));
        let upstream_next = self.next.upstream;
        let batch = Sent {
            number,
            records,
            upstream,
            upstream_next,
            bytes,
            sent_bytes: bytes,
            anew_bytes: 0,
            batches: 1,
            max_timestamp_ms: header.max_timestamp,
            // What is written anew has none of its own.
            leader_epoch: self.read_epoch,
        };
        self.bytes += batch.bytes;
        self.waiting.push_back(Planned { batch, view, gaps, is_new, rest: None });
    }

    fn begin_run(&mut self, number: u64, upstream: i64) {
        self.next = Run { upstream, ..self.next.at(number) };
        self.stored_below = self.stored_below.min(number);
        self.unstored.push(self.next);
    }
}

/// Its records from `position` on.
fn reencoded(
    entry: &Entry,
    position: i64,
    unpacked_bytes_max: usize,
) -> Result<Option<Reencoded>, DecodeError> {
    match entry {
        Entry::Batch(view) => reencode(view, position, unpacked_bytes_max),
        Entry::Legacy { bytes, .. } => upgrade(bytes, position, unpacked_bytes_max),
    }
}
