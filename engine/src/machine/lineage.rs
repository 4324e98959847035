//! A generation and its runs: which record each sequence number of a (producer id, epoch) means.
//!
//! - L1: within a generation the mapping "number n is upstream record r" never changes; whatever would change it opens
//!   a new generation with a higher epoch.
//! - L2: a run that does not follow on densely is stored before any record of it is sent.
//! - L3: numbers, upstream offsets and downstream offsets of successive runs rise together.
//!
//! # References
//! `ProducerStateManager`, `ProducerAppendInfo` (broker): the compare-and-swap on (producer id, epoch, sequence).

/// One producer epoch of one partition: from where to where it copies, and under which conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    /// The flow's producer id on the target cluster.
    pub producer_id: i64,
    /// The producer epoch that batches of this generation carry.
    pub producer_epoch: i16,
    /// Sequence of the first record. 0 in production; tests begin near the wrap.
    pub first_sequence: i32,
    /// Upstream offset at which record number 0 is looked for.
    pub upstream_start: i64,
    /// The target's log end when the generation was opened.
    pub downstream_start: i64,
    /// Topic id at the source, 0 where the broker has none.
    pub source_topic_id: u128,
    /// Topic id at the target, 0 where the broker has none.
    pub target_topic_id: u128,
    /// Fingerprint of the options that decide which records are copied.
    pub fingerprint: u64,
}

/// From record `number` on, upstream and downstream offsets rise by one per record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Number of the first record in its generation.
    pub number: u64,
    /// Its upstream offset.
    pub upstream: i64,
    /// Its downstream offset: as acknowledged, or as expected when the run was written ahead.
    pub downstream: i64,
}

impl Run {
    /// The run's line carried on to `number`.
    #[must_use]
    pub fn at(&self, number: u64) -> Self {
        let records = difference(number, self.number);
        Self { number, upstream: self.upstream + records, downstream: self.downstream + records }
    }
}

/// From this number on offsets rise by one per record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    number: u64,
    offset: i64,
}

impl Line {
    fn at(self, number: u64) -> i64 {
        self.offset + difference(number, self.number)
    }
}

fn difference(number: u64, from: u64) -> i64 {
    number.cast_signed() - from.cast_signed()
}

/// The line that covers `number`. Nobody asks below the first one: forgetting keeps what covers the last acknowledged.
fn covering(lines: &[Line], number: u64) -> Line {
    let after = lines.partition_point(|line| line.number <= number);
    lines[after.saturating_sub(1)]
}

/// What the upstream offset of record 0 is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// The record is looked for from there on.
    Expected,
    /// It was acknowledged: a run would come too late.
    Acknowledged,
    /// A stored run told it.
    Stored,
}

/// A generation with its runs, as far back as anybody asks.
///
/// The two sides are told by different sources: upstream offsets by stored runs alone, downstream offsets by everything
/// that was acknowledged or expected. Since a log only grows, each of the latter is a lower bound, and the highest one
/// counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// The generation.
    pub generation: Generation,
    upstream: Vec<Line>,
    downstream: Vec<Line>,
    start: Start,
    reached: u64,
}

impl Lineage {
    /// A generation in which nothing has been copied yet.
    #[must_use]
    pub fn new(generation: Generation) -> Self {
        let line = |offset| vec![Line { number: 0, offset }];
        Self {
            generation,
            upstream: line(generation.upstream_start),
            downstream: line(generation.downstream_start),
            start: Start::Expected,
            reached: 0,
        }
    }

    /// Where record `number` comes from and goes to.
    #[must_use]
    pub fn at(&self, number: u64) -> Run {
        let upstream = covering(&self.upstream, number).at(number);
        let downstream = covering(&self.downstream, number).at(number);
        Run { number, upstream, downstream }
    }

    /// Takes a stored run up. Of two runs of one number the first one tells the upstream offset (L1: it may have been
    /// acted on).
    pub fn add(&mut self, run: Run) {
        let line = Line { number: run.number, offset: run.upstream };
        if run.number == 0 && self.start == Start::Expected {
            self.start = Start::Stored;
            self.upstream[0] = line;
        } else {
            let place = self.upstream.partition_point(|known| known.number < run.number);
            if self.upstream.get(place).is_none_or(|known| known.number != run.number) {
                self.upstream.insert(place, line);
            }
        }
        self.raise(run);
    }

    fn is_stored(&self, line: Line) -> bool {
        line.number > 0 || self.start == Start::Stored
    }

    /// The upstream offset that stored runs leave for `number`: who stored a later run knew of every gap before it, so
    /// between two of them everything is dense.
    fn told(&self, number: u64) -> Option<i64> {
        let last = self.upstream.last().map_or(0, |line| line.number);
        let before = covering(&self.upstream, number);
        (self.is_stored(before) && number <= last).then(|| before.at(number))
    }

    /// Whether stored runs before and after it leave no other place for `run.number` than `run.upstream`.
    #[must_use]
    pub fn tells(&self, run: Run) -> bool {
        self.told(run.number) == Some(run.upstream)
    }

    /// Whether stored runs give `run.number` to another record, or a later number to an earlier one (L1, L3).
    #[must_use]
    pub fn contradicts(&self, run: Run) -> bool {
        let is_before = |line: &Line| {
            self.is_stored(*line) && line.number > run.number && line.offset < run.at(line.number).upstream
        };
        self.told(run.number).is_some_and(|upstream| upstream != run.upstream)
            || self.upstream.iter().any(is_before)
    }

    /// Record `run.number` lies at or after `run.downstream`, and so does, by its distance, everything behind it.
    pub fn raise(&mut self, run: Run) {
        self.reached = self.reached.max(run.number);
        let line = Line { number: run.number, offset: run.downstream };
        if line.offset <= covering(&self.downstream, line.number).at(line.number) {
            return;
        }
        self.downstream.retain(|known| known.number < line.number || known.offset > line.at(known.number));
        let place = self.downstream.partition_point(|known| known.number < line.number);
        self.downstream.insert(place, line);
    }

    /// Drops the runs that end before `number`.
    pub fn forget_before(&mut self, number: u64) {
        self.reached = self.reached.max(number);
        if number > 0 && self.start == Start::Expected {
            self.start = Start::Acknowledged;
        }
        for lines in [&mut self.upstream, &mut self.downstream] {
            let after = lines.partition_point(|line| line.number <= number);
            lines.drain(..after.saturating_sub(1));
        }
    }

    /// The highest number that anybody has named: a sequence's number is near it.
    #[must_use]
    pub fn reached(&self) -> u64 {
        self.reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lineage() -> Lineage {
        let mut lineage = Lineage::new(Generation {
            producer_id: 7,
            producer_epoch: 3,
            first_sequence: 0,
            upstream_start: 100,
            downstream_start: 20,
            source_topic_id: 1,
            target_topic_id: 2,
            fingerprint: 0,
        });
        lineage.add(Run { number: 10, upstream: 115, downstream: 30 });
        lineage.add(Run { number: 12, upstream: 117, downstream: 40 });
        lineage
    }

    #[test]
    fn each_number_is_read_off_the_last_run_before_it() {
        let lineage = lineage();
        for (number, upstream, downstream) in
            [(0, 100, 20), (9, 109, 29), (10, 115, 30), (11, 116, 31), (15, 120, 43)]
        {
            assert_eq!(lineage.at(number), Run { number, upstream, downstream });
        }
    }

    #[test]
    fn forgetting_keeps_the_run_that_covers_the_number() {
        let mut lineage = lineage();
        lineage.forget_before(11);
        assert_eq!(lineage.at(11), Run { number: 11, upstream: 116, downstream: 31 });
        lineage.forget_before(u64::MAX >> 1);
        assert_eq!(lineage.at(15).downstream, 43);
    }

    #[test]
    fn the_first_word_on_an_upstream_offset_counts() {
        let mut lineage = lineage();
        lineage.add(Run { number: 10, upstream: 999, downstream: 33 });
        assert_eq!(lineage.at(10), Run { number: 10, upstream: 115, downstream: 33 });
    }

    #[test]
    fn what_lies_between_two_stored_runs_is_not_open_any_more() {
        let lineage = lineage();
        let run = |number, upstream| Run { number, upstream, downstream: 0 };
        assert!(lineage.contradicts(run(11, 117)), "11 is 116, or 12 would not be 117");
        assert!(!lineage.contradicts(run(11, 116)));
        assert!(!lineage.contradicts(run(15, 130)), "nobody has been there");
        assert!(!lineage.contradicts(run(3, 104)), "nobody has told where the copy began");
    }

    #[test]
    fn a_hole_where_the_copy_began_is_a_run_like_any_other() {
        let mut lineage = Lineage::new(lineage().generation);
        lineage.add(Run { number: 0, upstream: 107, downstream: 20 });
        assert_eq!(lineage.at(2), Run { number: 2, upstream: 109, downstream: 22 });
        lineage.add(Run { number: 0, upstream: 108, downstream: 20 });
        assert_eq!(lineage.at(2).upstream, 109, "the first stored one counts");
    }

    #[test]
    fn what_was_acknowledged_says_nothing_about_the_next_upstream_offset() {
        let mut lineage = lineage();
        // Others appended before record 14; then a hole was found before it.
        lineage.raise(Run { number: 14, upstream: 119, downstream: 45 });
        lineage.add(Run { number: 14, upstream: 130, downstream: 45 });
        assert_eq!(lineage.at(15), Run { number: 15, upstream: 131, downstream: 46 });
    }

    #[test]
    fn foreign_records_move_all_that_comes_after_them() {
        let mut lineage = lineage();
        lineage.raise(Run { number: 5, upstream: 105, downstream: 32 });
        for (number, downstream) in [(4, 24), (5, 32), (10, 37), (12, 40)] {
            assert_eq!(lineage.at(number).downstream, downstream);
        }
    }

    #[test]
    fn an_expectation_from_before_does_not_move_anything_back() {
        let mut lineage = lineage();
        lineage.raise(Run { number: 13, upstream: 118, downstream: 50 });
        lineage.add(Run { number: 14, upstream: 119, downstream: 42 });
        assert_eq!(lineage.at(14).downstream, 51);
    }
}
