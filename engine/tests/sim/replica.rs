//! One replica of a partition: its log and its producer state, as a broker keeps them.
//!
//! - The last five batches of a producer are recognised by their range alone and answered with the old base offset.
//! - Without state anything is taken; with state an older epoch is refused with 47, a new one must begin at 0, and a
//!   gap or an overlap is refused with 45.
//! - State may vanish at any time; after a restart only the newest batch is recognised.
//!
//! # References
//! `ProducerStateEntry.findDuplicateBatch`, `ProducerAppendInfo.checkSequence`, `ProducerStateManager` (broker).

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use twinlog_engine::machine::line_up::LastBatch;
use twinlog_protocol::ErrorCode;
use twinlog_protocol::batch::{ProducerStamp, sequence_after};

/// Batches of a producer that a broker recognises when they come again.
const RECOGNISED_MAX: usize = 5;

/// A record of a batch that is still there: place in the batch, key, value.
pub(crate) type Kept = (u32, Option<Bytes>, Option<Bytes>);

/// The upstream offset that a record of ours carries as its value.
pub(crate) fn upstream_of((_, _, value): &Kept) -> i64 {
    let value = value.as_ref().expect("records of ours have a value");
    i64::from_be_bytes(value[..].try_into().expect("the value is an offset"))
}

/// A batch in a log.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) base_offset: i64,
    /// Offsets that it spans.
    pub(crate) count: u32,
    pub(crate) leader_epoch: i32,
    /// None for a writer that is not ours.
    pub(crate) stamp: Option<ProducerStamp>,
    /// Bytes as it was sent, 0 where nobody minds.
    pub(crate) bytes: usize,
    pub(crate) records: Vec<Kept>,
}

impl Batch {
    pub(crate) fn next_offset(&self) -> i64 {
        self.base_offset + i64::from(self.count)
    }

    pub(crate) fn last_sequence(&self) -> i32 {
        let stamp = self.stamp.expect("only asked for batches of a producer");
        last_sequence(stamp, self.count)
    }
}

fn last_sequence(stamp: ProducerStamp, count: u32) -> i32 {
    sequence_after(stamp.base_sequence, count.cast_signed() - 1)
}

/// What a leader does with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Append,
    /// Appended before, at this base offset.
    Repeat(i64),
    Refuse(ErrorCode),
}

#[derive(Debug, Clone, Default)]
struct Producer {
    epoch: i16,
    /// First and last sequence, base offset.
    recognised: VecDeque<(i32, i32, i64)>,
}

#[derive(Debug, Default)]
pub(crate) struct Replica {
    log: Vec<Rc<Batch>>,
    pub(crate) log_start: i64,
    log_end: i64,
    /// Leader epochs with their first offsets.
    epochs: Vec<(i32, i64)>,
    pub(crate) high_watermark: i64,
    producers: BTreeMap<i64, Producer>,
}

impl Replica {
    pub(crate) fn log_end(&self) -> i64 {
        self.log_end
    }

    pub(crate) fn last_batch(&self, producer_id: i64) -> Option<LastBatch> {
        let producer = self.producers.get(&producer_id)?;
        let last_sequence = producer.recognised.back().map_or(-1, |range| range.1);
        Some(LastBatch { producer_epoch: producer.epoch, last_sequence })
    }

    /// What a leader with this log does with a batch of `count` records.
    pub(crate) fn verdict(&self, stamp: ProducerStamp, count: u32) -> Verdict {
        let Some(producer) = self.producers.get(&stamp.producer_id) else { return Verdict::Append };
        let range = (stamp.base_sequence, last_sequence(stamp, count));
        if stamp.producer_epoch == producer.epoch {
            let known = producer.recognised.iter().find(|known| (known.0, known.1) == range);
            if let Some(&(_, _, base_offset)) = known {
                return Verdict::Repeat(base_offset);
            }
        }
        let next = producer.recognised.back().map_or(0, |known| sequence_after(known.1, 1));
        let expected = if stamp.producer_epoch == producer.epoch { next } else { 0 };
        if stamp.producer_epoch < producer.epoch {
            Verdict::Refuse(ErrorCode::InvalidProducerEpoch)
        } else if stamp.base_sequence == expected {
            Verdict::Append
        } else {
            Verdict::Refuse(ErrorCode::OutOfOrderSequenceNumber)
        }
    }

    pub(crate) fn append(&mut self, batch: Rc<Batch>) {
        // Behind a hole that compaction left, a follower appends further on.
        assert!(batch.base_offset >= self.log_end, "the model appends at the log end");
        self.log_end = batch.next_offset();
        if batch.leader_epoch != self.last_epoch() {
            self.epochs.push((batch.leader_epoch, batch.base_offset));
        }
        self.note_producer(&batch);
        self.log.push(batch);
    }

    fn note_producer(&mut self, batch: &Batch) {
        let Some(stamp) = batch.stamp else { return };
        let producer = self.producers.entry(stamp.producer_id).or_default();
        if producer.epoch != stamp.producer_epoch {
            *producer = Producer { epoch: stamp.producer_epoch, recognised: VecDeque::new() };
        }
        producer.recognised.push_back((stamp.base_sequence, batch.last_sequence(), batch.base_offset));
        if producer.recognised.len() > RECOGNISED_MAX {
            producer.recognised.pop_front();
        }
    }

    /// Batches from the one that holds `offset` on.
    pub(crate) fn batches_from(&self, offset: i64) -> &[Rc<Batch>] {
        let first = self.log.partition_point(|batch| batch.next_offset() <= offset);
        &self.log[first..]
    }

    /// The newest leader epoch in the log.
    pub(crate) fn last_epoch(&self) -> i32 {
        self.epochs.last().map_or(-1, |(epoch, _)| *epoch)
    }

    /// The newest epoch at or below `epoch` in the log, and the offset at which it ends.
    pub(crate) fn end_of_epoch(&self, epoch: i32) -> (i32, i64) {
        let after = self.epochs.partition_point(|(known, _)| *known <= epoch);
        let end = self.epochs.get(after).map_or(self.log_end, |(_, start)| *start);
        (self.epochs[..after].last().map_or(-1, |(epoch, _)| *epoch), end)
    }

    /// Cuts the log back. Producer state is rebuilt from snapshot and log: state that had expired may come back.
    pub(crate) fn truncate(&mut self, log_end: i64, expired_return: bool) {
        if log_end >= self.log_end {
            return;
        }
        assert!(log_end >= self.high_watermark, "the model never rolls back what is committed");
        self.log.retain(|batch| batch.next_offset() <= log_end);
        self.log_end = log_end;
        self.epochs.retain(|(_, start)| *start < log_end);
        self.reload(expired_return, RECOGNISED_MAX);
    }

    /// Rebuilds the producer state from the log.
    pub(crate) fn reload(&mut self, expired_return: bool, recognised_max: usize) {
        let known = std::mem::take(&mut self.producers);
        for batch in self.log.clone() {
            self.note_producer(&batch);
        }
        self.producers.retain(|id, _| expired_return || known.contains_key(id));
        for producer in self.producers.values_mut() {
            let surplus = producer.recognised.len().saturating_sub(recognised_max);
            producer.recognised.drain(..surplus);
        }
    }

    /// All producer state has aged out.
    pub(crate) fn expire(&mut self) {
        self.producers.clear();
    }

    /// The highest log start that leaves the newest batch of a producer in the log.
    pub(crate) fn state_keeping_start(&self) -> i64 {
        let newest = self.log.iter().rev().find(|batch| batch.stamp.is_some());
        newest.map_or(0, |batch| batch.next_offset() - 1)
    }

    /// Drops whole batches below `log_start`.
    pub(crate) fn delete_below(&mut self, log_start: i64) {
        self.log_start = self.log_start.max(log_start);
        self.log.retain(|batch| batch.next_offset() > log_start);
    }

    /// Keeps of each key below `to` the newest record only. The last batch of a producer stays, emptied. What lies
    /// behind `to` may be rolled back, so nothing makes way for it.
    pub(crate) fn compact(&mut self, to: i64) {
        let mut newest = BTreeMap::new();
        let mut last_of_producer = BTreeMap::new();
        for batch in self.log.iter().filter(|batch| batch.next_offset() <= to) {
            for (place, key, _) in &batch.records {
                newest.insert(key.clone(), batch.base_offset + i64::from(*place));
            }
            last_of_producer.insert(batch.stamp.map(|stamp| stamp.producer_id), batch.base_offset);
        }
        let last_batch = self.log.last().map(|batch| batch.base_offset);
        self.log.retain_mut(|batch| {
            if batch.next_offset() > to || Some(batch.base_offset) == last_batch {
                return true;
            }
            let base_offset = batch.base_offset;
            let is_newest = |kept: &Kept| newest.get(&kept.1) == Some(&(base_offset + i64::from(kept.0)));
            Rc::make_mut(batch).records.retain(is_newest);
            let is_last =
                last_of_producer.get(&batch.stamp.map(|stamp| stamp.producer_id)) == Some(&base_offset);
            is_last || !batch.records.is_empty()
        });
    }
}
