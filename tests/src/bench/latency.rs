//! How much later a record can be read on the target than on the source.
//!
//! One writer puts numbered records at a steady rate into a partition of the source; a reader of each side notes when it saw
//! which. Both readers wait at their brokers for the next record, as any consumer does, so their difference is what
//! replication adds. Kafka 4.3.1 only; blocking connections, so that nothing of twinlog's own engine measures it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use twinlog_protocol::{
    ErrorCode,
    batch::{Entry, ProducerStamp, batches, rewrite},
    fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, fetch_frame},
    produce::{ProducePartition, ProduceResponse, produce_frame},
    record::BatchBuilder,
    versions::Api,
};

use super::relay::{route::topic, wire::Wire};
use crate::deadline::{now, wall_clock_ms};

/// A broker waits so long for a record before it answers without.
const MAX_WAIT_MS: i32 = 100;
const ANSWER_BYTES: i32 = 1 << 20;
const PRODUCE_TIMEOUT_MS: i32 = 30_000;
/// A topic is looked for this often.
const LOOK_EVERY: Duration = Duration::from_millis(2);
const VALUE: [u8; 100] = [b'x'; 100];
const NO_PRODUCER: ProducerStamp = ProducerStamp { producer_id: -1, producer_epoch: -1, base_sequence: -1 };

/// Writes one record at a time.
pub struct Writer {
    wire: Wire,
    topic: String,
    topic_id: u128,
}

impl Writer {
    /// To partition 0 of a topic that is there.
    ///
    /// # Errors
    /// When the broker cannot be reached or has no such topic.
    pub fn open(server: &str, name: &str) -> Result<Self> {
        let mut wire = Wire::connect(server)?;
        let found = topic(&mut wire, name)?.with_context(|| format!("no topic {name}"))?;
        Ok(Self { wire, topic: name.to_owned(), topic_id: found.id })
    }

    /// Writes one record and waits until it is in the log.
    ///
    /// # Errors
    /// When it is not taken.
    pub fn write(&mut self) -> Result<()> {
        let mut batch = BatchBuilder::new();
        batch.push(wall_clock_ms(), None, Some(Bytes::from_static(&VALUE)), Vec::new())?;
        let batch = rewrite(&batch.build()?, NO_PRODUCER);
        let topic = self.topic.as_str().into();
        let parts = [ProducePartition { topic, topic_id: self.topic_id, partition: 0, batch }];
        let frame = self.wire.frame(Api::Produce, |version, correlation_id, client_id| {
            produce_frame(version, correlation_id, client_id, -1, PRODUCE_TIMEOUT_MS, &parts)
        })?;
        self.wire.write(frame)?;
        let (version, body) = self.wire.answer(&mut Bytes::new())?;
        let answer = ProduceResponse::decode(version, body)?;
        let part = answer.partitions.first().context("an answer without the partition")?;
        Ok(ErrorCode::check(part.error_code)?)
    }
}

/// Reads a partition from its beginning and notes when each record was seen.
pub struct Watcher {
    done: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Instant>>>,
}

impl Watcher {
    /// Of partition 0; the topic may come later.
    #[must_use]
    pub fn start(server: &str, name: &str) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let (is_done, server, name) = (Arc::clone(&done), server.to_owned(), name.to_owned());
        Self { done, thread: thread::spawn(move || watch(&server, &name, &is_done)) }
    }

    /// Ends it: the moments at which the records from offset 0 on were seen.
    ///
    /// # Errors
    /// What went wrong while it read.
    pub fn stop(self) -> Result<Vec<Instant>> {
        self.done.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("a reader panicked"))?
    }
}

fn watch(server: &str, name: &str, done: &AtomicBool) -> Result<Vec<Instant>> {
    let mut wire = Wire::connect(server)?;
    let mut seen = Vec::new();
    let mut room = Bytes::new();
    let mut id = None;
    while !done.load(Ordering::Relaxed) {
        let Some(topic_id) = id else {
            id = topic(&mut wire, name)?.filter(|found| found.leaders.len() == 1).map(|found| found.id);
            thread::sleep(LOOK_EVERY);
            continue;
        };
        let frame = wire.frame(Api::Fetch, |version, correlation_id, client_id| {
            let request = request(topic_id, i64::try_from(seen.len()).unwrap_or(i64::MAX));
            fetch_frame(version, correlation_id, client_id, &request)
        })?;
        wire.write(frame)?;
        let (version, body) = wire.answer(&mut room)?;
        let at = now();
        let answer = FetchResponse::decode(version, body)?;
        let part = answer.partitions.first().context("an answer without the partition")?;
        if ErrorCode::check(part.error_code).is_err() {
            // A topic that was made a moment ago.
            thread::sleep(LOOK_EVERY);
            continue;
        }
        for entry in batches(part.records.clone()) {
            let Entry::Batch(batch) = entry? else { bail!("a record of another age") };
            let next = usize::try_from(batch.header().next_offset())?;
            ensure!(next >= seen.len(), "offset {next} after {}", seen.len());
            seen.resize(next, at);
        }
    }
    Ok(seen)
}

fn request(topic_id: u128, offset: i64) -> FetchRequest {
    let partition = FetchPartition {
        partition: 0,
        current_leader_epoch: -1,
        fetch_offset: offset,
        last_fetched_epoch: -1,
        log_start_offset: -1,
        partition_max_bytes: ANSWER_BYTES,
    };
    let topic = FetchTopic { name: String::new(), id: topic_id, partitions: vec![partition] };
    FetchRequest::full(MAX_WAIT_MS, ANSWER_BYTES, vec![topic])
}

/// Writes `count` records, one every `interval`.
///
/// # Errors
/// When one is not taken.
pub fn write_steadily(writer: &mut Writer, count: u32, interval: Duration) -> Result<()> {
    let begin = now();
    for number in 1..=count {
        writer.write()?;
        thread::sleep((interval * number).saturating_sub(begin.elapsed()));
    }
    Ok(())
}

/// How much later each record was seen on the target, from record number `from` on.
#[must_use]
pub fn delays(source: &[Instant], target: &[Instant], from: usize) -> Vec<Duration> {
    let pairs = source.iter().zip(target).skip(from);
    pairs.map(|(source, target)| target.saturating_duration_since(*source)).collect()
}

/// The value below which so many of a hundred lie.
#[must_use]
pub fn percentile(values: &[Duration], of_hundred: usize) -> Duration {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let place = (sorted.len() * of_hundred / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_taken_record_by_record() {
        let begin = now();
        let at = |ms| begin + Duration::from_millis(ms);
        let (source, target) = ([at(0), at(10), at(20), at(30)], [at(5), at(11), at(18)]);
        assert_eq!(delays(&source, &target, 1), [Duration::from_millis(1), Duration::ZERO]);
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<Duration> = (0..200).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&values, 50), Duration::from_millis(100));
        assert_eq!(percentile(&values, 99), Duration::from_millis(198));
        assert_eq!(percentile(&values, 100), Duration::from_millis(199));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }
}
