//! A source partition made up in memory: the same records at the same offsets for all, cut differently at each fetch.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use twinlog_engine::machine::partition::FetchedRecords;
use twinlog_protocol::record::BatchBuilder;

use crate::deadline::wall_clock_ms;

/// Records of a batch, at most.
const BATCH_RECORDS_MAX: usize = 30;
/// Batches of a fetch, at most.
const FETCH_BATCHES_MAX: usize = 8;
/// One gap in so many records, as transaction markers leave them.
const GAP_EVERY: u64 = 150;

/// Record `n` has the value "n".
#[derive(Debug)]
pub(super) struct Upstream {
    /// Upstream offset of each record.
    offsets: Vec<i64>,
    released: AtomicU64,
}

impl Upstream {
    pub(super) fn new(records: u64, random: &mut fastrand::Rng) -> Self {
        let mut next = 0;
        let offset = |_| {
            let offset = next;
            let gap = if random.u64(0..GAP_EVERY) == 0 { random.i64(1..4) } else { 0 };
            next += 1 + gap;
            offset
        };
        Self { offsets: (0..records).map(offset).collect(), released: AtomicU64::new(0) }
    }

    /// The first `records` records exist from now on.
    pub(super) fn release(&self, records: u64) {
        self.released.store(records.min(self.offsets.len() as u64), Ordering::Relaxed);
    }

    /// Number of the first record at or behind an offset.
    pub(super) fn number_at(&self, offset: i64) -> u64 {
        self.offsets.partition_point(|known| *known < offset) as u64
    }

    /// Upstream offset behind record `number`.
    pub(super) fn after(&self, number: u64) -> Option<i64> {
        Some(self.offsets.get(usize::try_from(number).ok()?)? + 1)
    }

    /// What a Fetch from `offset` brings this time. `left_out` records are missing at the beginning: all values are
    /// those of later records, which is another map.
    pub(super) fn fetch(&self, offset: i64, left_out: u64, random: &mut fastrand::Rng) -> FetchedRecords {
        let end = usize::try_from(self.released.load(Ordering::Relaxed)).expect("a length of memory");
        let mut first = self.offsets[..end].partition_point(|known| *known < offset);
        let mut before = 0;
        if first < end && random.u8(0..4) == 0 {
            // The fetch offset lies inside a batch: it comes whole.
            before = self.dense_before(first, random.usize(0..BATCH_RECORDS_MAX / 2).min(first));
            first -= before;
        }
        let mut records = BytesMut::new();
        for _ in 0..random.usize(1..=FETCH_BATCHES_MAX) {
            let wanted = before + random.usize(1..=BATCH_RECORDS_MAX - before);
            let count = self.dense_from(first, wanted.min(end - first));
            if count == 0 {
                break;
            }
            records.extend_from_slice(&self.batch(first, count, left_out));
            (first, before) = (first + count, 0);
        }
        let high_watermark = end.checked_sub(1).map_or(0, |last| self.offsets[last] + 1);
        FetchedRecords {
            records: records.freeze(),
            high_watermark,
            last_stable_offset: None,
            aborted: Vec::new(),
            log_start: 0,
            diverging: None,
        }
    }

    /// How many of the `count` records before `first` follow on without a gap, up to `first` itself.
    fn dense_before(&self, first: usize, count: usize) -> usize {
        let dense = |back: &usize| self.offsets[first] - self.offsets[first - back] == as_offset(*back);
        (1..=count).take_while(dense).count()
    }

    /// How many of the `count` records from `first` on follow on without a gap.
    fn dense_from(&self, first: usize, count: usize) -> usize {
        let dense = |ahead: &usize| self.offsets[first + ahead] - self.offsets[first] == as_offset(*ahead);
        (0..count).take_while(dense).count()
    }

    fn batch(&self, first: usize, count: usize, left_out: u64) -> Bytes {
        let mut builder = BatchBuilder::new().base_offset(self.offsets[first]);
        for number in first..first + count {
            let value = (number as u64 + left_out).to_string();
            let pushed = builder.push(wall_clock_ms(), None, Some(value.into()), Vec::new());
            pushed.expect("a small record");
        }
        builder.build().expect("a small batch").bytes().clone()
    }
}

fn as_offset(count: usize) -> i64 {
    i64::try_from(count).expect("a small count")
}

#[cfg(test)]
mod tests {
    use twinlog_protocol::{
        batch::{Entry, batches},
        record::records,
    };

    use super::*;

    fn fetched(upstream: &Upstream, offset: i64, random: &mut fastrand::Rng) -> Vec<(i64, String)> {
        let mut found = Vec::new();
        for entry in batches(upstream.fetch(offset, 0, random).records) {
            let Entry::Batch(view) = entry.unwrap() else { panic!("an old batch") };
            for record in records(&view, 1 << 20).unwrap() {
                let record = record.unwrap();
                let value = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
                found.push((view.header().base_offset + i64::from(record.offset_delta), value));
            }
        }
        found
    }

    #[test]
    fn every_cut_gives_the_same_records_the_same_offsets() {
        let mut random = fastrand::Rng::with_seed(7);
        let upstream = Upstream::new(2000, &mut random);
        assert!(upstream.offsets[1999] > 1999, "no gap among 2,000 records");
        upstream.release(1900);
        for _ in 0..300 {
            let offset = random.i64(0..upstream.offsets[1899] + 1);
            let found = fetched(&upstream, offset, &mut random);
            assert!(found.iter().any(|(at, _)| *at >= offset), "nothing from {offset} on");
            for (at, value) in found {
                assert_eq!(value, upstream.number_at(at).to_string());
                assert_eq!(upstream.after(upstream.number_at(at)), Some(at + 1));
            }
        }
        assert!(fetched(&upstream, upstream.offsets[1899] + 1, &mut random).is_empty());
    }
}
