//! A topic that the source's cleaner goes through while it is written and copied: readers of both sides end with the same map.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Result, anyhow, ensure};
use twinlog_protocol::{batch::Compression, record::BatchBuilder};

use super::{Figures, Lab, Scale, Scenario, kinds::with_quick_cleaner};
use crate::{
    deadline::{Deadline, now, wall_clock_ms},
    judge::{NewTopic, TopicPair},
    real::raw_producer::RawProducer,
};

const TOPIC: &str = "compacted.meanwhile";
const PARTITIONS: u32 = 4;
/// How often a key is written, on the average.
const WRITES_OF_A_KEY: u32 = 25;
/// One record in so many takes its key away, for a while.
const TOMBSTONE_EVERY: u32 = 50;
/// One key in so many is taken away for good in the end.
const DEAD_EVERY: u32 = 100;
const BATCH_RECORDS_MAX: u32 = 500;
const PADDING_BYTES_MAX: usize = 80;
const LIMIT: Duration = Duration::from_secs(900);

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![compacted_while_copied()]
}

/// 5,000,000 records and 200,000 keys that live, 50,000 and 2,000 in a small run. twinlog starts early, is killed, and comes
/// back when the cleaner has been where it has not been yet.
#[must_use]
pub fn compacted_while_copied() -> Scenario {
    let name = "a topic that is compacted while it is copied, kill -9 once";
    Scenario::alone(name, with_quick_cleaner(), |lab, scale| {
        let topic = NewTopic::new(TOPIC, PARTITIONS)
            .config("cleanup.policy", "compact")
            .config("segment.bytes", "1048576")
            .config("segment.ms", "500")
            .config("min.cleanable.dirty.ratio", "0.0");
        lab.create(&[topic])?;
        let mut writer = Writer::new(lab, scale)?;
        let progress = AtomicU32::new(0);
        let at_kill = thread::scope(|scope| {
            let writing = scope.spawn(|| writer.write_all(&progress));
            let outcome = copy_meanwhile(lab, |percent| {
                let what = format!("{percent} % of the records to be written");
                Deadline::after(LIMIT).wait(&what, || {
                    let is_there =
                        progress.load(Ordering::Relaxed) >= scale.compacted_records() / 100 * percent;
                    // Whoever waits for a writer that has failed hears it from the writer.
                    Ok((is_there || writing.is_finished()).then_some(()))
                })
            });
            writing.join().map_err(|_| anyhow!("the writer panicked"))??;
            outcome
        })?;
        let flow = lab.flow(TOPIC);
        let log = lab.catch_up(&flow, LIMIT)?.log()?;
        ensure!(!log.contains("records lost: "), "what the cleaner takes is no loss:\n{log}");
        Ok(verdict(lab, &writer)?.with("records copied before the kill", at_kill))
    })
}

/// Starts twinlog, kills it, and starts it again, when so many of a hundred records are written. Tells what was copied
/// before the kill.
fn copy_meanwhile(lab: &mut Lab, wait: impl Fn(u32) -> Result<()>) -> Result<u64> {
    let flow = lab.flow(TOPIC);
    wait(5)?;
    let mut twinlog = lab.twinlog(&flow, &[])?;
    wait(35)?;
    twinlog.kill()?;
    let copied = lab.copied(TOPIC)?;
    wait(65)?;
    let mut twinlog = lab.twinlog(&flow, &[])?;
    wait(100)?;
    twinlog.stop()?;
    Ok(u64::try_from(copied)?)
}

/// Both sides hold what was written last, the cleaner has taken records, and some of them before they were copied.
fn verdict(lab: &mut Lab, writer: &Writer) -> Result<Figures> {
    let written = u64::from(writer.written);
    let copied = u64::try_from(lab.copied(TOPIC)?)?;
    let verdict = lab.judge.compare_latest(&lab.source, &lab.target, &TopicPair::same(TOPIC))?;
    ensure!(verdict.differences.is_empty(), "{}", verdict.differences.join("\n"));
    let expected = writer.latest();
    let (source, target) = (verdict.source, verdict.target);
    for (side, found) in [("source", &source), ("target", &target)] {
        let map = (found.keys, found.checksum);
        ensure!(map == expected, "the {side} has {map:?} instead of {expected:?} as keys and checksum");
    }
    ensure!(source.records < written, "the cleaner took nothing of {written} records");
    ensure!(copied < written, "all {written} records were copied: the cleaner was too late");
    Ok(Figures::default()
        .with("written", written)
        .with("left at the source", source.records)
        .with("copied", copied)
        .with("gone before they were copied", written - copied)
        .with("keys", target.keys))
}

/// Writes records of keys in random order, and knows the last value of each.
struct Writer {
    producer: RawProducer,
    random: fastrand::Rng,
    records: u32,
    /// Keys that live in the end; those behind them do not.
    keys: u32,
    /// The writing takes so long at least: the cleaner needs its time.
    duration: Duration,
    /// CRC-32C of key and value of each key, where it has one.
    latest: Vec<Option<u32>>,
    written: u32,
}

impl Writer {
    fn new(lab: &Lab, scale: &Scale) -> Result<Self> {
        let records = scale.compacted_records();
        let keys = records / WRITES_OF_A_KEY;
        Ok(Self {
            producer: RawProducer::connect(&lab.source, TOPIC)?,
            random: scale.random(),
            records,
            keys,
            duration: Duration::from_secs(scale.seconds),
            latest: vec![None; (keys + keys / DEAD_EVERY) as usize],
            written: 0,
        })
    }

    /// Writes everything, and tells on the way how many records there are.
    fn write_all(&mut self, progress: &AtomicU32) -> Result<()> {
        let begin = now();
        while self.written < self.records {
            let count = self.random.u32(1..=BATCH_RECORDS_MAX);
            let partition = self.random.u32(..PARTITIONS);
            // The keys of a partition are those with the same rest.
            let all = u32::try_from(self.latest.len())?.div_ceil(PARTITIONS);
            let keys = (0..count).map(|_| self.random.u32(..all) * PARTITIONS + partition);
            let keys: Vec<u32> = keys.filter(|key| (*key as usize) < self.latest.len()).collect();
            let record = |writer: &mut Self, key| {
                (writer.random.u32(..TOMBSTONE_EVERY) > 0).then(|| writer.value(key))
            };
            self.write(partition, &keys, record)?;
            progress.store(self.written.min(self.records - 1), Ordering::Relaxed);
            let due = self.duration * self.written / self.records;
            thread::sleep(due.saturating_sub(begin.elapsed()));
        }
        for partition in 0..PARTITIONS {
            let of = |key: &u32| key % PARTITIONS == partition;
            let missing = |key: &u32| self.latest[*key as usize].is_none();
            let missing: Vec<u32> = (0..self.keys).filter(of).filter(missing).collect();
            self.write(partition, &missing, |writer, key| Some(writer.value(key)))?;
            let dead: Vec<u32> = (self.keys..).take((self.keys / DEAD_EVERY) as usize).filter(of).collect();
            self.write(partition, &dead, |_, _| None)?;
        }
        progress.store(self.records, Ordering::Relaxed);
        Ok(())
    }

    fn write(
        &mut self,
        partition: u32,
        keys: &[u32],
        mut value_of: impl FnMut(&mut Self, u32) -> Option<String>,
    ) -> Result<()> {
        let partition = i32::try_from(partition)?;
        for keys in keys.chunks(BATCH_RECORDS_MAX as usize) {
            let codec = Compression::ALL[self.random.usize(..Compression::ALL.len())];
            let stamp = self.producer.stamp(partition, i32::try_from(keys.len())?);
            let mut builder = BatchBuilder::new().compression(codec).producer(stamp);
            for key in keys {
                let (name, value) = (format!("key-{key}"), value_of(self, *key));
                let crc =
                    |value: &String| crc32c::crc32c_append(crc32c::crc32c(name.as_bytes()), value.as_bytes());
                self.latest[*key as usize] = value.as_ref().map(crc);
                builder.push(wall_clock_ms(), Some(name.into()), value.map(Into::into), Vec::new())?;
            }
            self.producer.send(partition, &builder.build()?)?;
            self.written += u32::try_from(keys.len())?;
        }
        Ok(())
    }

    /// A value that was never written before.
    fn value(&mut self, key: u32) -> String {
        let padding = self.random.usize(..PADDING_BYTES_MAX);
        format!("{key} {} {:x<padding$}", self.written, self.random.u64(..))
    }

    /// How many keys have a value, and the sum of their CRCs.
    fn latest(&self) -> (u64, u64) {
        let crcs = self.latest.iter().flatten();
        (crcs.clone().count() as u64, crcs.map(|crc| u64::from(*crc)).sum())
    }
}
