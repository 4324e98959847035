//! Where a partition goes on: the decision from the stored record, a line-up, and the headers of the target's tail.
//!
//! The log is the truth and the broker's producer state only the guard: the state may be absent at any time (it ages by
//! the records' own timestamps), and then says nothing at all.
//!
//! - R1: two of {last sequence, headers of our batches, log end} agree before anything is sent.
//! - R2: where the producer state is absent the copy goes on in a new epoch, stored before its first batch.
//! - R3: an instance whose options, clusters or topics differ from the stored generation's never uses it.
//! - R4: nothing is decided, and nothing held, on a record that may be older than what the state topic says.

use super::hold::{HoldReason, Side};
use super::line_up::{LastBatch, LinedUp};
use super::lineage::Run;
use super::loss::{Loss, LossCause};
use super::partition_record::PartitionRecord;
use super::sequence::number_of;

/// What this instance is configured and connected to do with a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Here {
    /// Topic id at the source, 0 where the broker has none.
    pub source_topic_id: u128,
    /// Topic id at the target, 0 where the broker has none.
    pub target_topic_id: u128,
    /// Fingerprint of the options that decide which records are copied.
    pub fingerprint: u64,
}

/// Our batches in a stretch of the target's log, by their headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tail {
    /// First downstream offset that was looked at: where the stretch began, or the log start if that is later.
    pub from: i64,
    /// The last batch of our producer id, if there is one.
    pub last: Option<TailBatch>,
    /// Records in batches of the last batch's epoch.
    pub records: u64,
}

/// A batch of ours in the target's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailBatch {
    /// Producer epoch, last sequence.
    pub batch: LastBatch,
    /// The offset after its last one.
    pub next_offset: i64,
}

/// How a new generation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// Producer epoch to take: the one after the current generation's. None where the flow chooses: the first one of its
    /// producer id, or of a new id where the epochs of the current generation's are used up.
    pub producer_epoch: Option<i16>,
    /// Upstream offset to begin at; none means the source's log start.
    pub upstream_start: Option<i64>,
    /// The target's log end.
    pub downstream_start: i64,
    /// What lies between the current generation and this one.
    pub loss: Option<Loss>,
}

impl Opening {
    /// Whether the source's topic is another than the current generation's.
    #[must_use]
    pub fn is_of_new_source(&self) -> bool {
        self.loss.is_some_and(|loss| loss.cause == LossCause::SourceRecreated)
    }
}

/// What a partition does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Send from this record on. `fresh` when no batch of the epoch is in the log: the first one goes alone.
    Go {
        /// The next record and its offsets.
        position: Run,
        /// Whether the epoch has no batch yet.
        fresh: bool,
    },
    /// Read the headers of the target's log from here to the log end, then decide again.
    ReadTail {
        /// First downstream offset to look at.
        from: i64,
    },
    /// Read the state topic to its end, then line up again: somebody knows more than we do.
    ReadState,
    /// Store a new generation, then line up again.
    Open(Opening),
    /// Wait, for this reason.
    Hold(HoldReason),
}

/// Decides where to go on. `tail` is what [`Decision::ReadTail`] asked for, if it did; `state_is_current` tells that
/// the state topic was read to its end after the line-up.
#[must_use]
pub fn decide(
    record: &PartitionRecord,
    here: &Here,
    found: &LinedUp,
    tail: Option<&Tail>,
    state_is_current: bool,
) -> Decision {
    if !state_is_current {
        // Somebody may have stored a newer generation, or runs beyond our mark.
        return Decision::ReadState;
    }
    let Some(lineage) = record.current() else {
        let opening = Opening {
            producer_epoch: None,
            upstream_start: None,
            downstream_start: found.log_end,
            loss: None,
        };
        return Decision::Open(opening);
    };
    if let Some(reason) = conflict(record, here, found.log_end) {
        return Decision::Hold(reason);
    }
    let generation = &lineage.generation;
    let resume = Resume { record, log_end: found.log_end, tail };
    match found.last_batch {
        Some(last) if last.producer_epoch > generation.producer_epoch => {
            let (broker, stored) = (last.producer_epoch, generation.producer_epoch);
            Decision::Hold(HoldReason::UnknownEpoch { broker, stored })
        }
        Some(last) if last.producer_epoch == generation.producer_epoch && last.last_sequence >= 0 => {
            resume.by_state(last)
        }
        _ => resume.by_log(),
    }
}

/// Goes on at `position` in a new generation: the source no longer has the records that the current one has numbered, or
/// some are passed over.
#[must_use]
pub fn reopen(record: &PartitionRecord, position: Run, loss: Option<Loss>) -> Decision {
    Decision::Open(Opening {
        producer_epoch: next_epoch(record),
        upstream_start: Some(position.upstream),
        downstream_start: position.downstream,
        loss,
    })
}

/// The producer epoch after the current generation's; none where they are used up, or nothing is stored.
#[must_use]
pub fn next_epoch(record: &PartitionRecord) -> Option<i16> {
    record.current()?.generation.producer_epoch.checked_add(1)
}

/// Whether two ids are those of two topics. A broker that has none says 0, also before it is upgraded.
#[must_use]
pub fn is_other_topic(known: u128, id: u128) -> bool {
    known != 0 && id != 0 && known != id
}

/// What forbids the use of the stored generation.
fn conflict(record: &PartitionRecord, here: &Here, log_end: i64) -> Option<HoldReason> {
    let generation = &record.current()?.generation;
    let floor = record.floor()?.downstream;
    if is_other_topic(generation.source_topic_id, here.source_topic_id) {
        Some(HoldReason::Recreated { side: Side::Source })
    } else if is_other_topic(generation.target_topic_id, here.target_topic_id) {
        Some(HoldReason::Recreated { side: Side::Target })
    } else if generation.fingerprint != here.fingerprint {
        Some(HoldReason::OtherFingerprint { theirs: generation.fingerprint, ours: here.fingerprint })
    } else if log_end < floor {
        Some(HoldReason::TargetShorter { log_end, known: floor })
    } else {
        None
    }
}

struct Resume<'a> {
    record: &'a PartitionRecord,
    log_end: i64,
    tail: Option<&'a Tail>,
}

impl Resume<'_> {
    fn floor(&self) -> Run {
        self.record.floor().expect("a current generation has a floor")
    }

    /// The leader holds our state: the last sequence, checked against the log end or, failing that, the headers.
    fn by_state(&self, last: LastBatch) -> Decision {
        let lineage = self.record.current().expect("checked by the caller");
        let floor = self.floor();
        let next = number_of(lineage.generation.first_sequence, last.last_sequence, floor.number) + 1;
        if next < floor.number {
            return ambiguous(format!(
                "the broker's last sequence {} is record {}, but {} were acknowledged",
                last.last_sequence,
                next - 1,
                floor.number
            ));
        }
        let expected = lineage.at(next);
        if expected.downstream == self.log_end {
            return Decision::Go { position: expected, fresh: false };
        }
        // Others append to this topic too: the log end says nothing, the headers must.
        match self.tail {
            None => Decision::ReadTail { from: floor.downstream },
            Some(tail) if self.headers_agree(tail, last, next) => {
                Decision::Go { position: Run { downstream: self.log_end, ..expected }, fresh: false }
            }
            Some(tail) => ambiguous(format!(
                "the broker's last sequence is {}, record {}, the log end {} where {} was expected; after record {} \
                 there are {} records of ours from downstream offset {} on, the last header is {:?}",
                last.last_sequence,
                next - 1,
                self.log_end,
                expected.downstream,
                floor.number,
                tail.records,
                tail.from,
                tail.last
            )),
        }
    }

    /// Whether the headers of our batches lead to `last` and record `next`.
    fn headers_agree(&self, tail: &Tail, last: LastBatch, next: u64) -> bool {
        let floor = self.floor();
        match tail.last {
            // A batch that was refused while the broker had no state leaves a hole in the count.
            Some(found) => {
                found.batch == last && (tail.from > floor.downstream || floor.number + tail.records == next)
            }
            // Only others have appended since what was acknowledged.
            None => next == floor.number,
        }
    }

    /// The leader does not know our epoch: the log decides, and the copy goes on in a new epoch.
    fn by_log(&self) -> Decision {
        let floor = self.floor();
        if self.record.mark().is_none() && self.log_end == floor.downstream {
            // Nothing was appended since the generation, or its first run, was stored: its epoch is unused.
            return Decision::Go { position: floor, fresh: true };
        }
        let Some(tail) = self.tail else {
            return if self.log_end == floor.downstream {
                // Log end and acknowledged mark agree: nothing was appended since.
                self.open_at(floor.upstream)
            } else {
                Decision::ReadTail { from: floor.downstream }
            };
        };
        match tail.last {
            Some(found) => self.after_batch(tail, found),
            None if tail.from > floor.downstream => ambiguous(format!(
                "the broker has forgotten our producer state, the target's log begins at {}, above the last known \
                 position {}, and holds no batch of ours",
                tail.from, floor.downstream
            )),
            // Only others have appended since.
            None if self.record.mark().is_none() => {
                Decision::Go { position: Run { downstream: self.log_end, ..floor }, fresh: true }
            }
            None => self.open_at(floor.upstream),
        }
    }

    /// The last batch of ours in the log, by its header, tells the record after which to go on.
    fn after_batch(&self, tail: &Tail, found: TailBatch) -> Decision {
        let broker = found.batch.producer_epoch;
        let current = self.record.current().expect("checked by the caller").generation.producer_epoch;
        let Some(lineage) = self.record.lineage_of(broker) else {
            if broker > current {
                return Decision::Hold(HoldReason::UnknownEpoch { broker, stored: current });
            }
            return ambiguous(format!(
                "the last batch of ours in the target's log has epoch {broker}, of which no more is known at epoch {current}"
            ));
        };
        let floor = self.floor();
        let same = broker == current;
        let near = if same { floor.number } else { lineage.reached() };
        let next = number_of(lineage.generation.first_sequence, found.batch.last_sequence, near) + 1;
        // Headers and log must tell the same count: a stretch with a hole in it is not ours to explain.
        if same && tail.from <= floor.downstream && floor.number + tail.records != next {
            return ambiguous(format!(
                "{} records of ours follow record {} in the target's log, but the last one is record {}",
                tail.records,
                floor.number,
                next - 1
            ));
        }
        self.open_at(lineage.at(next).upstream)
    }

    fn open_at(&self, upstream_start: i64) -> Decision {
        let floor = self.floor();
        reopen(self.record, Run { upstream: upstream_start, downstream: self.log_end, ..floor }, None)
    }
}

fn ambiguous(why: String) -> Decision {
    Decision::Hold(HoldReason::Ambiguous { why })
}

#[cfg(test)]
mod tests;
