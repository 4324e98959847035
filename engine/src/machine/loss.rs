//! What a partition has lost: stretches of offsets that the target does not hold, or that the source holds no more.
//!
//! Each loss is stored with the generation that goes on behind it, so that it counts once, whoever finds it and however
//! often anybody dies.

use std::fmt;

/// How records were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossCause {
    /// The source deleted records before they were copied.
    Expired,
    /// The source's topic was deleted and made again: what the old one still held is gone.
    SourceRecreated,
    /// The source's log was cut back (unclean leader election): the target holds records that the source has no more.
    SourceCutBack,
    /// The target's log lost records that it had, or its topic was deleted and made again.
    TargetLost,
    /// The target refuses the record for good, and `errors.tolerance = all` skips it.
    Refused,
}

/// A stretch of records that was lost, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Loss {
    /// How.
    pub cause: LossCause,
    /// First offset: of the target's log for [`LossCause::TargetLost`], else of the source's.
    pub from: i64,
    /// The offset after the last one; none where nobody knows it.
    pub to: Option<i64>,
    /// Offsets in it that the target lacks for good. On a compacted source some had no record any more.
    pub records: u64,
}

impl Loss {
    /// Offsets `from` to before `to` that the target lacks.
    #[must_use]
    pub fn of(cause: LossCause, from: i64, to: i64) -> Self {
        Self { cause, from, to: Some(to), records: (to - from).max(0).unsigned_abs() }
    }

    /// The same stretch, where the target lacks nothing of it.
    #[must_use]
    pub fn without_records(self) -> Self {
        Self { records: 0, ..self }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cause, from, to, records } = self;
        let range = match to {
            Some(to) if to > from => format!("offsets {from}..{}", to - 1),
            Some(_) => "nothing".to_owned(),
            None => format!("offsets from {from} on"),
        };
        let count = if *records == 1 { "1 record".to_owned() } else { format!("{records} records") };
        match cause {
            LossCause::Expired => write!(
                f,
                "upstream {range} ({count}) were deleted before they were copied: the copy goes on behind them"
            ),
            LossCause::SourceRecreated => write!(
                f,
                "the source's topic was deleted and made again: upstream {range} of the old one were not copied, the new one \
                 is copied from its log start, behind the old records"
            ),
            LossCause::SourceCutBack => write!(
                f,
                "the source's log was cut back (unclean leader election?): the target holds upstream {range}, which the source \
                 has no more; what is there now is copied behind them"
            ),
            LossCause::TargetLost if *records == 0 => write!(
                f,
                "the target lost downstream {range}: they are copied again as far as the source holds them"
            ),
            LossCause::TargetLost => write!(
                f,
                "the target lost downstream {range} ({count}), which are not copied again: the copy goes on where it \
                 was"
            ),
            LossCause::Refused => write!(
                f,
                "upstream {range} ({count}) are refused by the target and skipped (`errors.tolerance = all`)"
            ),
        }
    }
}

/// All losses of a partition or of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// How often.
    pub events: u64,
    /// Records that the target lacks for good, as far as they can be counted.
    pub records: u64,
}

impl Losses {
    /// Counts one more.
    pub fn add(&mut self, loss: &Loss) {
        self.events = self.events.saturating_add(1);
        self.records = self.records.saturating_add(loss.records);
    }
}

/// What happens when the source has lost records: `on.loss`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// The copy goes on behind the hole, which is stored, counted and told.
    #[default]
    Continue,
    /// The partition is held.
    Hold,
}

/// What happens when the target has lost records: `on.target.loss`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnTargetLoss {
    /// The partition is held.
    #[default]
    Hold,
    /// They are copied again, as far as the source holds them.
    Recopy,
    /// The copy goes on where it was.
    Continue,
}

/// What the operator wants done about losses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LossPolicy {
    /// `on.loss`.
    pub on_loss: OnLoss,
    /// `on.target.loss`.
    pub on_target_loss: OnTargetLoss,
    /// Whether records that the target refuses for good are skipped: `errors.tolerance = all`.
    pub skips_refused: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_names_the_last_offset_and_the_count() {
        let loss = Loss::of(LossCause::Expired, 1000, 1500);
        assert_eq!(
            loss.to_string(),
            "upstream offsets 1000..1499 (500 records) were deleted before they were copied: the copy goes on behind them"
        );
        let recreated = Loss { cause: LossCause::SourceRecreated, from: 7, to: None, records: 0 };
        assert!(recreated.to_string().contains("upstream offsets from 7 on of the old one"), "{recreated}");
        let all_copied = Loss::of(LossCause::SourceRecreated, 7, 7);
        assert!(all_copied.to_string().contains("upstream nothing of the old one"), "{all_copied}");
    }

    #[test]
    fn losses_add_up() {
        let mut losses = Losses::default();
        losses.add(&Loss::of(LossCause::Expired, 10, 15));
        losses.add(&Loss::of(LossCause::TargetLost, 10, 15).without_records());
        assert_eq!(losses, Losses { events: 2, records: 5 });
    }
}
