//! What a partition does, for whoever shows it, and in words what keeps it from copying.

use super::{Now, PartitionMachine, Phase, Side, Step};
use crate::machine::course::{Doing, Look};

impl PartitionMachine {
    /// What there is to see at this moment.
    #[must_use]
    pub fn look(&self) -> Look<'_> {
        let doing = match &self.phase {
            Phase::Waiting { .. } | Phase::LiningUp { .. } | Phase::Deciding { .. } => Doing::Approaching,
            Phase::Copying => Doing::Copying,
            Phase::Held { reason, .. } => Doing::Held(reason),
            Phase::Stopped => Doing::Stopped,
        };
        Look { doing, blocked: self.blocked(), position: self.position(), readable_end: self.readable_end() }
    }

    /// Upstream offset below which everything is acknowledged or is not to be copied; none before the first line-up.
    #[must_use]
    pub fn position(&self) -> Option<i64> {
        // Behind the last record there may be offsets that hold none to copy, which only reading tells.
        let read_to = match self.phase {
            Phase::Copying if self.window.is_empty() => Some(self.backlog.oldest()),
            Phase::Stopped => self.stopped_at,
            _ => None,
        };
        read_to.or_else(|| self.record.floor().map(|floor| floor.upstream))
    }

    /// First offset of the source that could not be read yet, as last seen: its high watermark, or its last stable offset
    /// where only committed records are read.
    #[must_use]
    pub fn readable_end(&self) -> Option<i64> {
        self.readable_end
    }

    /// Why the partition has not got on for a while, if so.
    #[must_use]
    pub fn waits(&self) -> Option<&str> {
        let trouble = self.trouble.as_ref().and_then(|trouble| trouble.told.as_deref());
        trouble.or_else(|| self.transaction_watch.told())
    }

    /// The side on which nobody leads the partition, as far as was told.
    #[must_use]
    pub fn without_leader(&self) -> Option<Side> {
        let is_led = |leader: Option<super::Leader>| leader.is_some_and(|leader| leader.node.is_some());
        let sides = [(self.source, Side::Source), (self.target, Side::Target)];
        sides.into_iter().find(|(leader, _)| !is_led(*leader)).map(|(_, side)| side)
    }

    /// Why it does not copy, in words, if it shall wait.
    #[must_use]
    pub fn why_waiting(&self) -> String {
        if let Some(side) = self.without_leader() {
            let leader = if side == Side::Source { self.source } else { self.target };
            return match leader {
                Some(_) => format!("it has no leader at the {side}"),
                None => format!("the {side} cluster does not list it"),
            };
        }
        if let Some(why) = self.waits() {
            return why.to_owned();
        }
        match self.phase {
            Phase::Deciding { step: Step::Copy(_), .. } => "an earlier copy is looked for".to_owned(),
            Phase::Deciding { step: Step::State | Step::Stored | Step::ProducerId(_), .. } => {
                "the state topic is read or written".to_owned()
            }
            _ => "lining up".to_owned(),
        }
    }

    /// Since when something that should pass keeps the partition from copying, if it does and that is not just to be seen.
    fn blocked(&self) -> Option<Option<Now>> {
        if self.without_leader().is_some() {
            return Some(None);
        }
        self.waits()?;
        let told = self.trouble.as_ref().filter(|trouble| trouble.told.is_some());
        Some(told.map(|trouble| trouble.since).or_else(|| self.transaction_watch.stopped_since()))
    }
}
