//! What a partition does when records are lost: it holds, or goes on in a generation that is stored with the loss.
//!
//! - O1: the copy goes on behind a loss in a new generation alone. Whoever still means another record by the next number has the
//!   epoch of before, and the first batch of the new one shuts him out.
//! - O2: what a broker may say for a moment (a leader that was replaced, metadata from before) is no loss until it has been said
//!   for a while.
//! - O3: a loss counts when its generation is read back from the state topic: once, whoever finds it.

use std::time::Duration;

use twinlog_protocol::ErrorCode;

use super::copying::out_of_range;
use super::splitting::is_for_size;
use super::{Case, Command, GONE_AFTER, PartitionMachine, SourceSpan};
use crate::machine::Now;
use crate::machine::hold::{HoldReason, Side};
use crate::machine::lineage::Run;
use crate::machine::loss::{Loss, LossCause, OnLoss, OnTargetLoss};
use crate::machine::produce_window::Sent;
use crate::machine::resume::{Decision, Opening, next_epoch, reopen};

/// How long a replaced leader may not have heard of it: a broker's session with ZooKeeper (18 s; with KRaft 9 s), and a
/// bit.
pub(super) const STALE_LEADER_MAX: Duration = Duration::from_secs(20);

/// Why the copy cannot simply go on, found while it copied: the next line-up tells whether that still holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Obstacle {
    /// The stored map gives numbers to records that the source does not have.
    Disputed,
    /// The source's log begins or ends elsewhere than where was fetched: what nobody had copied by then is lost.
    OutOfRange(SourceSpan),
    /// The source's log was cut back, or made again, below what was copied: it is copied from `upstream` on.
    SourceIsOther { upstream: i64, loss: Loss },
    /// The target refuses what is between these offsets, which is to be skipped.
    Refused { upstream: i64, upstream_next: i64 },
}

impl PartitionMachine {
    /// What to do instead of going on at `position`, where an obstacle is in the way.
    pub(super) fn around_obstacle(&mut self, position: Run) -> Option<Decision> {
        let behind = |upstream, loss| reopen(&self.record, Run { upstream, ..position }, Some(loss));
        match self.obstacle? {
            Obstacle::Disputed => Some(reopen(&self.record, position, None)),
            Obstacle::OutOfRange(span) if position.upstream < span.log_start => {
                let (from, to) = (position.upstream, span.log_start);
                match self.config.losses.on_loss {
                    OnLoss::Hold => Some(Decision::Hold(out_of_range(from, span))),
                    OnLoss::Continue => Some(behind(to, Loss::of(LossCause::Expired, from, to))),
                }
            }
            Obstacle::SourceIsOther { upstream, loss } => Some(behind(upstream.min(position.upstream), loss)),
            Obstacle::Refused { upstream, upstream_next } if position.upstream == upstream => {
                Some(behind(upstream_next, Loss::of(LossCause::Refused, upstream, upstream_next)))
            }
            // Somebody has gone on meanwhile.
            Obstacle::OutOfRange(_) | Obstacle::Refused { .. } => None,
        }
    }

    /// The partition has come to rest because of what the source's log has become: it goes on beside that, or is held.
    pub(super) fn leave_copying(&mut self, now: Now, reason: HoldReason) {
        match self.other_source(&reason) {
            None => self.hold(now, reason),
            Some(_) if !self.lasts(now, GONE_AFTER) => self.look_again(now, Side::Source, &reason),
            Some(obstacle) => {
                self.obstacle = Some(obstacle);
                self.begin_line_up(now);
            }
        }
    }

    /// How to go on where the source's log ends below what was copied, if the operator lets us.
    fn other_source(&self, reason: &HoldReason) -> Option<Obstacle> {
        if self.config.losses.on_loss == OnLoss::Hold {
            return None;
        }
        let read = self.record.epoch();
        match *reason {
            HoldReason::Diverged { position, leader_epoch, end_offset } => {
                // Of an epoch that the source does not know any more nothing is left.
                let unknown = read.filter(|read| leader_epoch < read.leader_epoch);
                let upstream = unknown.map_or(end_offset, |read| read.start.min(end_offset)).max(0);
                let loss = Loss::of(LossCause::SourceCutBack, upstream, position).without_records();
                Some(Obstacle::SourceIsOther { upstream, loss })
            }
            HoldReason::OutOfRange { position, log_end, .. } if position > log_end && self.is_led_anew() => {
                let loss = Loss::of(LossCause::SourceCutBack, log_end, position).without_records();
                Some(Obstacle::SourceIsOther { upstream: log_end, loss })
            }
            HoldReason::OutOfRange { position, log_start, log_end } if position > log_end => {
                // A broker without topic ids does not tell a topic that was made again. No log gets shorter under the leader
                // that wrote it.
                let loss = Loss { cause: LossCause::SourceRecreated, from: position, to: None, records: 0 };
                Some(Obstacle::SourceIsOther { upstream: log_start, loss })
            }
            _ => None,
        }
    }

    /// Whether the source's leader is a later one than that which wrote what was copied last.
    fn is_led_anew(&self) -> bool {
        let leader_epoch = self.source.map_or(-1, |leader| leader.leader_epoch);
        self.record.epoch().is_some_and(|read| leader_epoch > read.leader_epoch)
    }

    /// The stored generation cannot be used: it is held, or another one takes its place.
    pub(super) fn handle_conflict(&mut self, now: Now, case: Case, reason: HoldReason) {
        let way_out = self.way_out(&case, &reason);
        // O2, also for what is held at last: a target that is too short.
        let passes = match reason {
            HoldReason::TargetShorter { .. } => Some((Side::Target, STALE_LEADER_MAX)),
            HoldReason::Recreated { side } => way_out.map(|_| (side, GONE_AFTER)),
            _ => None,
        };
        match (passes, way_out) {
            (Some((side, wait)), _) if !self.lasts(now, wait) => self.look_again(now, side, &reason),
            (_, Some(opening)) => self.prepare(now, case, opening),
            (_, None) => self.hold(now, reason),
        }
    }

    /// How the copy goes on, if the operator lets it.
    fn way_out(&self, case: &Case, reason: &HoldReason) -> Option<Opening> {
        let (floor, log_end) = (self.record.floor()?, case.found.log_end);
        let opening = |upstream_start, loss| Opening {
            producer_epoch: next_epoch(&self.record),
            upstream_start,
            downstream_start: log_end,
            loss: Some(loss),
        };
        let of_target = |from| {
            let loss = Loss::of(LossCause::TargetLost, from, floor.downstream);
            match self.config.losses.on_target_loss {
                OnTargetLoss::Hold => None,
                OnTargetLoss::Recopy => Some(opening(None, loss.without_records())),
                OnTargetLoss::Continue => Some(opening(Some(floor.upstream), loss)),
            }
        };
        match *reason {
            HoldReason::Recreated { side: Side::Source }
                if self.config.losses.on_loss == OnLoss::Continue
                    && !self.record.has_left(case.here.source_topic_id) =>
            {
                let seen = self.readable_end.filter(|end| *end >= floor.upstream);
                let loss = seen.map_or(
                    Loss { cause: LossCause::SourceRecreated, from: floor.upstream, to: None, records: 0 },
                    |end| Loss::of(LossCause::SourceRecreated, floor.upstream, end),
                );
                Some(opening(None, loss))
            }
            HoldReason::Recreated { side: Side::Target }
                if !self.record.has_left(case.here.target_topic_id) =>
            {
                of_target(0)
            }
            HoldReason::TargetShorter { log_end, .. } => of_target(log_end),
            _ => None,
        }
    }

    /// Whether the target's topic, which is gone, is made again.
    pub(super) fn awaits_target(&self, side: Side) -> bool {
        side == Side::Target && self.config.losses.on_target_loss != OnTargetLoss::Hold
    }

    /// O2. The first time that something looks lost begins the wait.
    fn lasts(&mut self, now: Now, wait: Duration) -> bool {
        now >= *self.lost_since.get_or_insert(now) + wait
    }

    fn look_again(&mut self, now: Now, side: Side, reason: &HoldReason) {
        self.note_trouble(now, reason);
        self.commands.push_back(Command::RefreshMetadata(side));
        self.wait(now);
    }

    /// The record is skipped that the target refuses, if the operator wants that and it is the record's own fault; or all
    /// records of a batch together, where each of them is `named`.
    pub(super) fn skips(&mut self, batch: &Sent, code: ErrorCode, named: u32) -> bool {
        let Sent { upstream, upstream_next, records, batches, .. } = *batch;
        let is_dense = upstream_next - upstream == i64::from(records);
        let is_whole = batches == 1 && is_dense && named == records && is_its_own(code);
        let skips = self.skips_for(code) && (records == 1 || is_whole);
        if skips {
            self.obstacle = Some(Obstacle::Refused { upstream, upstream_next });
        }
        skips
    }

    /// Whether a record that is refused so is skipped.
    fn skips_for(&self, code: ErrorCode) -> bool {
        self.config.losses.skips_refused && (is_its_own(code) || is_for_size(code))
    }

    /// Whether a refused batch comes again in another form.
    pub(super) fn goes_otherwise(&mut self, now: Now, batch: &Sent, code: ErrorCode) -> bool {
        let finds_record = self.skips_for(code);
        self.merging.handle_refused(now, batch, code, finds_record)
    }
}

/// Whether a refusal is for what a record holds.
fn is_its_own(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::InvalidTimestamp | ErrorCode::InvalidRecord)
}
