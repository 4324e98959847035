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
        let records = number.cast_signed() - self.number.cast_signed();
        Self { number, upstream: self.upstream + records, downstream: self.downstream + records }
    }
}

/// A generation with its runs, ordered by number; the first one covers number 0 or all that is still asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// The generation.
    pub generation: Generation,
    runs: Vec<Run>,
}

impl Lineage {
    /// A generation in which nothing has been copied yet.
    #[must_use]
    pub fn new(generation: Generation) -> Self {
        let first =
            Run { number: 0, upstream: generation.upstream_start, downstream: generation.downstream_start };
        Self { generation, runs: vec![first] }
    }

    /// Where record `number` comes from and goes to, by the last run at or before it.
    #[must_use]
    pub fn at(&self, number: u64) -> Run {
        let after = self.runs.partition_point(|run| run.number <= number);
        // Nobody asks below the first run: `forget_before` keeps the run that covers the last acknowledged number.
        self.runs[after.saturating_sub(1)].at(number)
    }

    /// Takes a run up. Of two runs of one number the first one tells the upstream offset (L1: it may have been acted
    /// on), the later one the downstream offset.
    pub fn add(&mut self, run: Run) {
        let place = self.runs.partition_point(|known| known.number < run.number);
        match self.runs.get_mut(place) {
            Some(known) if known.number == run.number => known.downstream = run.downstream,
            _ => self.runs.insert(place, run),
        }
    }

    /// Others have appended before record `number`: it and everything after it lie `offsets` further downstream.
    pub fn shift_from(&mut self, number: u64, offsets: i64) {
        let moved = self.at(number);
        self.runs.iter_mut().filter(|run| run.number > number).for_each(|run| run.downstream += offsets);
        self.add(Run { downstream: moved.downstream + offsets, ..moved });
    }

    /// Drops the runs that end before `number`.
    pub fn forget_before(&mut self, number: u64) {
        let after = self.runs.partition_point(|run| run.number <= number);
        self.runs.drain(..after.saturating_sub(1));
    }

    /// The runs kept.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
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
        assert_eq!(lineage.runs().len(), 2);
        assert_eq!(lineage.at(11).upstream, 116);
        lineage.forget_before(u64::MAX >> 1);
        assert_eq!(lineage.at(15).downstream, 43);
    }

    #[test]
    fn the_first_word_on_an_upstream_offset_counts() {
        let mut lineage = lineage();
        lineage.add(Run { number: 10, upstream: 999, downstream: 33 });
        assert_eq!(
            (lineage.runs().len(), lineage.at(10)),
            (3, Run { number: 10, upstream: 115, downstream: 33 })
        );
    }

    #[test]
    fn foreign_records_shift_all_that_comes_after_them() {
        let mut lineage = lineage();
        lineage.shift_from(5, 7);
        for (number, downstream) in [(4, 24), (5, 32), (10, 37), (12, 47)] {
            assert_eq!(lineage.at(number).downstream, downstream);
        }
    }
}
