//! The line-up: the one way to learn where a partition of the target stands.
//!
//! Log end and last sequence are read, the high watermark is waited for, and both are read again. Only a pair that did
//! not move in between is of one piece, comes from the leader, and cannot be rolled back by a failover.
//!
//! - U1: every question goes to the leader of one epoch; a fenced or moved leader ends the line-up. Where whoever asks
//!   cannot tell, a log end that no high watermark reaches is read again.
//! - U2: the outcome's log end is at or below a high watermark seen after it was read.
//! - U3: the outcome's last sequence was read before and after that high watermark, and was the same.
//!
//! Writers that are not ours may move the log end without pause. That does not touch U2 and U3, so after some rounds in
//! which only the log end moved the last one counts.
//!
//! # References
//! KIP-320 (`OffsetsForLeaderEpoch` is fenced), KIP-664 (`DescribeProducers` is not, and followers answer it).

use std::time::Duration;

use super::Now;
use super::backoff::doubled;

/// Rounds in which nothing but the log end moved before a line-up is content.
const FOREIGN_ROUNDS: u32 = 3;
/// First pause before another look at a high watermark that is not there yet; it doubles up to the longest.
const HIGH_WATERMARK_PAUSE: Duration = Duration::from_millis(20);
const HIGH_WATERMARK_PAUSE_MAX: Duration = Duration::from_millis(500);

/// Looks at the high watermark before the log end is read again: after a failover it may have been rolled back. About
/// 3 s.
const LOOKS_MAX: u32 = 10;

/// The last batch of a producer as the broker's producer state names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastBatch {
    /// Producer epoch of the batch.
    pub producer_epoch: i16,
    /// Sequence of its last record; -1 when the state was made by a control marker alone.
    pub last_sequence: i32,
}

/// What a line-up found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinedUp {
    /// Log end of the leader, at or below its high watermark.
    pub log_end: i64,
    /// The leader's state of our producer id, if it has one.
    pub last_batch: Option<LastBatch>,
}

/// The next question of a line-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// `OffsetForLeaderEpoch` with the current leader epoch: the true log end.
    LogEnd,
    /// `DescribeProducers`: the state of our producer id.
    LastBatch,
    /// `ListOffsets` (latest): the high watermark.
    HighWatermark,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    LogEnd,
    LastBatch { log_end: i64 },
    HighWatermark { pair: LinedUp, looks: u32, not_before: Now },
    LogEndAgain { pair: LinedUp },
    LastBatchAgain { pair: LinedUp, log_end: i64 },
    Done(LinedUp),
}

/// A line-up under way. Ask [`LineUp::poll_question`], feed the answer, until [`LineUp::outcome`].
#[derive(Debug)]
pub struct LineUp {
    step: Step,
    asked: bool,
    foreign_rounds: u32,
}

impl Default for LineUp {
    fn default() -> Self {
        Self::new()
    }
}

impl LineUp {
    /// A line-up that has asked nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self { step: Step::LogEnd, asked: false, foreign_rounds: 0 }
    }

    /// The question to send now, each once; none while an answer is out or a pause runs.
    pub fn poll_question(&mut self, now: Now) -> Option<Question> {
        if self.asked {
            return None;
        }
        let question = match self.step {
            Step::LogEnd | Step::LogEndAgain { .. } => Question::LogEnd,
            Step::LastBatch { .. } | Step::LastBatchAgain { .. } => Question::LastBatch,
            Step::HighWatermark { not_before, .. } if not_before <= now => Question::HighWatermark,
            Step::HighWatermark { .. } | Step::Done(_) => return None,
        };
        self.asked = true;
        Some(question)
    }

    /// The answer to [`Question::LogEnd`].
    pub fn handle_log_end(&mut self, log_end: i64) {
        self.asked = false;
        self.step = match self.step {
            Step::LogEnd => Step::LastBatch { log_end },
            Step::LogEndAgain { pair } => Step::LastBatchAgain { pair, log_end },
            step => step,
        };
    }

    /// The answer to [`Question::LastBatch`].
    pub fn handle_last_batch(&mut self, now: Now, last_batch: Option<LastBatch>) {
        self.asked = false;
        self.step = match self.step {
            Step::LastBatch { log_end } => {
                Step::HighWatermark { pair: LinedUp { log_end, last_batch }, looks: 0, not_before: now }
            }
            Step::LastBatchAgain { pair, log_end } => {
                self.compare(now, pair, LinedUp { log_end, last_batch })
            }
            step => step,
        };
    }

    /// The answer to [`Question::HighWatermark`].
    pub fn handle_high_watermark(&mut self, now: Now, high_watermark: i64) {
        self.asked = false;
        if let Step::HighWatermark { pair, looks, .. } = self.step {
            self.step = if high_watermark >= pair.log_end {
                Step::LogEndAgain { pair }
            } else if looks >= LOOKS_MAX {
                Step::LogEnd
            } else {
                let pause = doubled(HIGH_WATERMARK_PAUSE, looks, HIGH_WATERMARK_PAUSE_MAX);
                Step::HighWatermark { pair, looks: looks + 1, not_before: now + pause }
            };
        }
    }

    fn compare(&mut self, now: Now, pair: LinedUp, again: LinedUp) -> Step {
        if again.last_batch != pair.last_batch {
            self.foreign_rounds = 0;
        } else if again.log_end == pair.log_end || self.foreign_rounds >= FOREIGN_ROUNDS {
            return Step::Done(pair);
        } else {
            self.foreign_rounds += 1;
        }
        // The second reading is the first one of the next round.
        Step::HighWatermark { pair: again, looks: 0, not_before: now }
    }

    /// When the pause ends, if one runs.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Now> {
        match self.step {
            Step::HighWatermark { not_before, .. } if !self.asked => Some(not_before),
            _ => None,
        }
    }

    /// What was found, once it is certain.
    #[must_use]
    pub fn outcome(&self) -> Option<LinedUp> {
        if let Step::Done(pair) = self.step { Some(pair) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Duration::from_secs(1);

    fn batch(last_sequence: i32) -> Option<LastBatch> {
        Some(LastBatch { producer_epoch: 1, last_sequence })
    }

    /// Answers questions from a script of (log end, last sequence, high watermark) until the outcome.
    fn drive(script: &[(i64, i32, i64)]) -> (LinedUp, usize) {
        let mut line_up = LineUp::new();
        let mut asked = 0;
        while line_up.outcome().is_none() {
            let now = NOW + Duration::from_secs(asked as u64);
            let (log_end, sequence, high_watermark) = script[(asked / 3).min(script.len() - 1)];
            match line_up.poll_question(now).expect("a question until the outcome") {
                Question::LogEnd => line_up.handle_log_end(log_end),
                Question::LastBatch => line_up.handle_last_batch(now, batch(sequence)),
                Question::HighWatermark => line_up.handle_high_watermark(now, high_watermark),
            }
            asked += 1;
            assert!(asked < 100, "the line-up never ends");
        }
        (line_up.outcome().expect("the loop ended on it"), asked)
    }

    #[test]
    fn a_quiet_partition_takes_five_questions() {
        assert_eq!(drive(&[(10, 9, 10)]), (LinedUp { log_end: 10, last_batch: batch(9) }, 5));
    }

    #[test]
    fn an_unreplicated_end_is_waited_for() {
        let mut line_up = LineUp::new();
        assert_eq!(line_up.poll_question(NOW), Some(Question::LogEnd));
        assert_eq!(line_up.poll_question(NOW), None);
        line_up.handle_log_end(10);
        assert_eq!(line_up.poll_question(NOW), Some(Question::LastBatch));
        line_up.handle_last_batch(NOW, batch(9));
        assert_eq!(line_up.poll_question(NOW), Some(Question::HighWatermark));
        line_up.handle_high_watermark(NOW, 7);
        assert_eq!(line_up.poll_question(NOW), None);
        assert_eq!(line_up.next_timeout(), Some(NOW + HIGH_WATERMARK_PAUSE));
        assert_eq!(line_up.poll_question(NOW + HIGH_WATERMARK_PAUSE), Some(Question::HighWatermark));
        assert_eq!(line_up.outcome(), None);
    }

    #[test]
    fn a_log_end_that_was_rolled_back_is_read_again() {
        // 10 was seen at a leader that lost it; its successor goes on from 8.
        let mut line_up = LineUp::new();
        let mut log_end = 10;
        for look in 0..200 {
            match line_up.poll_question(NOW + HIGH_WATERMARK_PAUSE * look) {
                Some(Question::LogEnd) => line_up.handle_log_end(std::mem::replace(&mut log_end, 8)),
                Some(Question::LastBatch) => line_up.handle_last_batch(NOW, batch(7)),
                Some(Question::HighWatermark) => {
                    line_up.handle_high_watermark(NOW + HIGH_WATERMARK_PAUSE * look, 8);
                }
                None => {}
            }
        }
        assert_eq!(line_up.outcome(), Some(LinedUp { log_end: 8, last_batch: batch(7) }));
    }

    #[test]
    fn a_sequence_that_moved_starts_the_round_over() {
        // Another instance appended 5 records between the two readings.
        let (found, asked) = drive(&[(10, 9, 10), (15, 14, 15)]);
        assert_eq!(found, LinedUp { log_end: 15, last_batch: batch(14) });
        assert!(asked > 5);
    }

    #[test]
    fn foreign_writers_cannot_keep_a_line_up_from_ending() {
        let script: Vec<_> = (0..40).map(|round| (10 + round, 9, 100)).collect();
        let (found, _) = drive(&script);
        assert_eq!(found.last_batch, batch(9));
    }
}
