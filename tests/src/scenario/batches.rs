//! Source batches beside the target's: each arrives as it was, or whole in one with its neighbours.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use super::Lab;
use crate::real::log_dump::{self, DumpedBatch};

/// Data batches on both sides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BatchCounts {
    pub(super) source: u64,
    pub(super) target: u64,
}

/// The target's log holds the source's data batches in their order, none of them cut: one alone keeps its size, and those
/// put together had one codec, which they keep. Without the transactional bit, each partition's under one producer id,
/// with dense sequences.
///
/// # Errors
/// The first difference, or what kept a log from being read.
pub(super) fn ensure_whole_batches(lab: &Lab, topic: &str) -> Result<BatchCounts> {
    let (source, target) =
        (log_dump::dump_topic(&lab.source, 1, topic)?, log_dump::dump_topic(&lab.target, 1, topic)?);
    let mut counts = BatchCounts::default();
    for (partition, upstream) in &source {
        let downstream = target.get(partition).map(Vec::as_slice).unwrap_or_default();
        let data: Vec<&DumpedBatch> = upstream.iter().filter(|batch| !batch.control).collect();
        let mut left = &data[..];
        for batch in downstream {
            let taken = taken_by(batch, left);
            ensure!(
                taken > 0,
                "{topic}-{partition}: {batch:?} is not made of {:?}",
                left.iter().take(3).collect::<Vec<_>>()
            );
            left = &left[taken..];
        }
        ensure!(left.is_empty(), "{topic}-{partition} lacks {} batches of {}", left.len(), data.len());
        counts.source += u64::try_from(data.len())?;
        counts.target += u64::try_from(downstream.len())?;
        ensure_one_producer(topic, *partition, downstream)?;
    }
    Ok(counts)
}

/// How many of the first batches are all that is in `batch`; 0 if that is something else.
fn taken_by(batch: &DumpedBatch, source: &[&DumpedBatch]) -> usize {
    let (mut taken, mut records) = (0, 0);
    while records < batch.count && source.get(taken).is_some_and(|one| one.codec == batch.codec) {
        records += source[taken].count;
        taken += 1;
    }
    let is_whole = records == batch.count && (taken != 1 || source[0].size == batch.size);
    if is_whole { taken } else { 0 }
}

/// Sequences that follow on, under one producer id.
///
/// # Errors
/// The first batch that breaks it.
pub(super) fn ensure_one_producer(topic: &str, partition: u32, batches: &[DumpedBatch]) -> Result<()> {
    let invalid = batches.iter().find(|batch| !batch.valid || batch.transactional || batch.control);
    ensure!(invalid.is_none(), "{topic}-{partition}: {invalid:?}");
    let ids: BTreeSet<i64> = batches.iter().map(|batch| batch.producer_id).collect();
    ensure!(ids.len() <= 1 && !ids.contains(&-1), "{topic}-{partition}: producer ids {ids:?}");
    let mut next = 0;
    for batch in batches {
        ensure!(batch.base_sequence == next, "{topic}-{partition}: sequence {next} should follow: {batch:?}");
        next += batch.count;
    }
    Ok(())
}
