//! What waits goes out: in order, under the numbers that the map gives it, in the codec that is asked for, no larger than the
//! target takes it.

use std::time::Duration;

use twinlog_protocol::batch::{ProducerStamp, rewrite};

use super::backlog::{Planned, held_for};
use super::{Command, Now, PartitionMachine, Run};
use crate::machine::sequence::sequence_of;

/// Silence of the target's leader after which nothing is sent before a line-up: a process that slept may have been
/// overtaken, and where the producer state has aged the broker would not notice.
const SILENCE_MAX: Duration = Duration::from_secs(30);
impl PartitionMachine {
    pub(super) fn send_ready(&mut self, now: Now) {
        self.wants_turn = false;
        self.merging.handle_time(now, self.backlog.oldest());
        while self.window.has_room() {
            if self.window.is_empty()
                && self.backlog.is_ready()
                && now.saturating_sub(self.heard_at) > SILENCE_MAX
            {
                return self.line_up_after_silence(now);
            }
            if self.waits_for_turn() {
                return;
            }
            let Some(mut planned) = self.pop_next() else {
                return self.merging.note_crowd(self.backlog.is_ready());
            };
            if self.record.mark().is_some_and(|mark| planned.batch.number < mark.number) {
                // Another instance has written these numbers.
                return self.realign();
            }
            if !self.is_common(&planned) {
                return self.dispute();
            }
            if self.check_crc_at == Some(planned.batch.upstream) {
                if let Err(fault) = planned.view.check_crc() {
                    return self.backlog.hold_before(held_for(planned.batch.upstream, &fault));
                }
                self.check_crc_at = None;
            }
            if self.is_for_turn(&planned) {
                let Some(piece) = self.pack(planned).and_then(|planned| self.cut(planned)) else { return };
                planned = piece;
            }
            self.count_turn(&planned.batch);
            if self.merging.goes_alone(&planned.batch) {
                if !self.window.is_empty() {
                    self.backlog.put_back([planned]);
                    self.window.drain();
                    break;
                }
                self.window.narrow();
            }
            self.send(now, &planned);
        }
        self.merging.note_crowd(self.backlog.is_ready());
    }

    /// Whether the stored map gives the batch's numbers to its records: to the first and last of each stretch without a
    /// gap, hence to all (L3).
    fn is_common(&self, planned: &Planned) -> bool {
        let Some(lineage) = self.record.current() else { return false };
        let batch = &planned.batch;
        let agrees = |known: Run| lineage.at(known.number).upstream == known.upstream;
        let mut run = Run { number: batch.number, upstream: batch.upstream, downstream: 0 };
        for gap in &planned.gaps {
            let behind = batch.number + u64::from(gap.index);
            if !agrees(run) || !agrees(run.at(behind.saturating_sub(1))) {
                return false;
            }
            run = Run { number: behind, upstream: gap.offset, downstream: 0 };
        }
        agrees(run) && agrees(run.at(batch.next_number().saturating_sub(1)))
    }

    fn send(&mut self, now: Now, planned: &Planned) {
        let Some(generation) = self.record.current().map(|lineage| lineage.generation) else { return };
        let stamp = ProducerStamp {
            producer_id: generation.producer_id,
            producer_epoch: generation.producer_epoch,
            base_sequence: sequence_of(generation.first_sequence, planned.batch.number),
        };
        let ticket = self.window.send(now, planned.batch);
        let batch = rewrite(&planned.view, stamp);
        let is_new = planned.is_new;
        self.commands.push_back(Command::Produce { ticket, batch, apart: self.apart, is_new });
    }
}
