//! How a partition has fared, and since when: what is shown of it, decided from what it does at the moments when somebody
//! looks.
//!
//! Nothing here wakes anybody. What time alone changes (a line-up that takes long, a copy that falls behind) is found at the
//! next look, with the moment at which it began.
//!
//! - C1: caught up is who has everything that the source had at some moment of the last ten seconds: a partition with a record
//!   every millisecond never has all of it. Brokers count replicas in sync the same way.
//! - C2: held is who was, until something was copied, or nothing has held it for as long: a partition that tries again in
//!   vain is not free in between.
//! - C3: who has copied before does not wait while it lines up, unless that lasts: a line-up after silence takes milliseconds.
//!
//! # References
//! `Replica.isCaughtUp` and `replica.lag.time.max.ms` (brokers) for C1.

use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use super::Now;
use super::hold::HoldReason;

/// What is shorter than this is not shown, or still is.
const LASTS: Duration = Duration::from_secs(10);

/// What a partition does at the moment of a look.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// Its phase.
    pub doing: Doing<'a>,
    /// Since when something that should pass keeps it from copying, if it does: none counts as from now on.
    pub blocked: Option<Option<Now>>,
    /// The next upstream offset.
    pub position: Option<i64>,
    /// First upstream offset that could not be read yet.
    pub readable_end: Option<i64>,
}

/// Upstream offsets between a position and the end, where both are known.
#[must_use]
pub fn lag_records(position: Option<i64>, readable_end: Option<i64>) -> Option<u64> {
    Some(readable_end?.saturating_sub(position?).max(0).unsigned_abs())
}

/// The phase of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing<'a> {
    /// It finds out where it stands.
    Approaching,
    /// Records may flow.
    Copying,
    /// Somebody has to act.
    Held(&'a HoldReason),
    /// It has come to rest with the flow: how it fared before is what counts.
    Stopped,
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fares {
    /// C1.
    CaughtUp,
    /// It is behind, or its end is not known yet.
    Copying,
    /// C2; for a reason of this kind.
    Held(Discriminant<HoldReason>),
    /// It cannot copy for a reason that should pass.
    Waiting,
}

/// One partition over time.
#[derive(Debug)]
pub struct Course {
    fares: Fares,
    since: Now,
    hold: Option<Hold>,
    /// Since when it is in another phase than copying.
    away_since: Option<Now>,
    level: Level,
}

/// The last hold, until something is copied.
#[derive(Debug)]
struct Hold {
    reason: HoldReason,
    since: Now,
    position: Option<i64>,
    /// When it began to try again.
    left_at: Option<Now>,
}

impl Course {
    /// A partition that is new at this moment: it waits for its first line-up.
    #[must_use]
    pub fn new(now: Now) -> Self {
        Self { fares: Fares::Waiting, since: now, hold: None, away_since: None, level: Level::default() }
    }

    /// Takes in what the partition does now.
    pub fn handle_look(&mut self, now: Now, look: &Look<'_>) {
        if matches!(look.doing, Doing::Copying | Doing::Stopped) {
            self.level.handle_look(now, look.position, look.readable_end);
        }
        let left_at = self.hold.as_ref().and_then(|hold| hold.left_at);
        let (fares, since) = self.judge(now, look);
        if self.fares != fares {
            let was_held = matches!(self.fares, Fares::Held(_)) && !matches!(fares, Fares::Held(_));
            self.since = left_at.filter(|_| was_held).unwrap_or(since);
            self.fares = fares;
        }
    }

    /// How it fares, and since when if that is new.
    fn judge(&mut self, now: Now, look: &Look<'_>) -> (Fares, Now) {
        match look.doing {
            Doing::Stopped if matches!(self.fares, Fares::Held(_) | Fares::Waiting) => {
                return (self.fares, self.since);
            }
            Doing::Stopped => return self.judge_level(now),
            Doing::Held(reason) => return self.hold(now, reason, look.position),
            Doing::Copying => self.away_since = None,
            Doing::Approaching => self.away_since = Some(self.away_since.unwrap_or(now)),
        }
        if self.is_held_still(now, look.position) {
            return (self.fares, self.since);
        }
        if let Some(since) = look.blocked {
            return (Fares::Waiting, since.unwrap_or(now));
        }
        match self.away_since {
            Some(since) if self.fares == Fares::Waiting || now.saturating_sub(since) >= LASTS => {
                (Fares::Waiting, since)
            }
            Some(_) => (self.fares, self.since),
            None => self.judge_level(now),
        }
    }

    fn hold(&mut self, now: Now, reason: &HoldReason, position: Option<i64>) -> (Fares, Now) {
        let kind = discriminant(reason);
        let is_same = |hold: &&mut Hold| discriminant(&hold.reason) == kind && position <= hold.position;
        let since = if let Some(hold) = self.hold.as_mut().filter(is_same) {
            if hold.reason != *reason {
                hold.reason = reason.clone();
            }
            hold.left_at = None;
            hold.since
        } else {
            self.hold = Some(Hold { reason: reason.clone(), since: now, position, left_at: None });
            now
        };
        (Fares::Held(kind), since)
    }

    /// C2: whether who is not held at this moment still counts as held.
    fn is_held_still(&mut self, now: Now, position: Option<i64>) -> bool {
        let Some(hold) = &mut self.hold else { return false };
        let left_at = *hold.left_at.get_or_insert(now);
        if position > hold.position {
            self.hold = None;
            return false;
        }
        matches!(self.fares, Fares::Held(_)) && now.saturating_sub(left_at) < LASTS
    }

    fn judge_level(&self, now: Now) -> (Fares, Now) {
        match self.level.level_at(now) {
            Some(at) if now.saturating_sub(at) < LASTS => (Fares::CaughtUp, now),
            Some(at) if self.fares == Fares::CaughtUp => (Fares::Copying, at),
            _ => (Fares::Copying, now),
        }
    }

    /// How it fares.
    #[must_use]
    pub fn fares(&self) -> Fares {
        self.fares
    }

    /// Since when.
    #[must_use]
    pub fn since(&self) -> Now {
        self.since
    }

    /// Why it is held, if it is, also while it tries again.
    #[must_use]
    pub fn held(&self) -> Option<&HoldReason> {
        self.hold.as_ref().filter(|_| matches!(self.fares, Fares::Held(_))).map(|hold| &hold.reason)
    }
}

/// Whether a partition keeps up (C1).
#[derive(Debug, Default)]
struct Level {
    /// An end of the source and when it was seen.
    goal: Option<(i64, Now)>,
    /// The last moment at which it is known to have had everything, if it has not everything now.
    level_at: Option<Now>,
    has_all: bool,
}

impl Level {
    fn handle_look(&mut self, now: Now, position: Option<i64>, end: Option<i64>) {
        let (Some(position), Some(end)) = (position, end) else { return };
        if self.has_all {
            // It had until it was looked at.
            self.level_at = Some(now);
        }
        self.has_all = position >= end;
        if let Some((_, seen_at)) = self.goal.filter(|(goal, _)| position >= *goal) {
            self.level_at = self.level_at.max(Some(seen_at));
            self.goal = None;
        }
        if !self.has_all && self.goal.is_none() {
            self.goal = Some((end, now));
        }
    }

    /// The last moment at which the partition is known to have had everything.
    fn level_at(&self, now: Now) -> Option<Now> {
        if self.has_all { Some(now) } else { self.level_at }
    }
}

#[cfg(test)]
mod tests;
