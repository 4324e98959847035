//! `memory.max` and `throttle`: bounds hold while more waits than fits, and nobody starves.

use std::{cell::Cell, time::Duration};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use twinlog_protocol::{batch::Compression, record::BatchBuilder};

use super::{Figures, LabSpec, Scale, Scenario};
use crate::{
    bench::usage::Usage,
    deadline::{Deadline, now, wall_clock_ms},
    judge::{NewTopic, WriteRecords},
    real::{Version, kafka::ClusterSpec, raw_producer::RawProducer},
    twinlog::Twinlog,
};

/// Records of 10 KB, ten of them in a batch of 100 KB.
const VALUE_BYTES: u32 = 10_000;
const BATCH_RECORDS: u32 = 10;
const BATCH_BYTES: u32 = 110_000;
/// Bytes per second that reach the target.
const SLOW: u64 = 1_000_000;
const MEMORY_MIB: u64 = 32;
/// Each partition has got on by then.
const BEGUN_WITHIN: Duration = Duration::from_secs(300);
/// What the process may need beside the records.
const BESIDE_MIB: u64 = 64;

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![slow_target(), unpacking(), throttle()]
}

/// More batches wait than memory holds, and the target takes 1 MB/s: a thousand partitions in a run of twenty kills, where each
/// has to get on within five minutes.
#[must_use]
pub fn slow_target() -> Scenario {
    let target = ClusterSpec::single(Version::V4_3_1).behind_proxy();
    let spec = LabSpec::pair(ClusterSpec::single(Version::V4_3_1), target);
    Scenario::alone("a slow target, more waiting than memory.max", spec, |lab, scale| {
        let (partitions, batches) = size(scale);
        let topic = "memory.slow";
        lab.create(&[NewTopic::new(topic, partitions)])?;
        let records = partitions * batches * BATCH_RECORDS;
        lab.judge.write(
            &lab.source,
            &WriteRecords {
                value_bytes: VALUE_BYTES,
                batch_bytes: BATCH_BYTES,
                linger_ms: 1_000,
                ..WriteRecords::new(topic, partitions, records)
            },
        )?;
        lab.target.proxy()?.limit_bytes_per_second(SLOW);
        let flow = lab.flow(topic).with("memory.max", &format!("{MEMORY_MIB} MiB"));
        let mut twinlog = lab.twinlog(&flow, &[])?;
        let (begin, begun) = (now(), Cell::new(0));
        let each_has_begun = Deadline::after(BEGUN_WITHIN).wait("the first batch of each partition", || {
            twinlog.ensure_running()?;
            if !lab.target_has(topic)? {
                return Ok(None);
            }
            let offsets = lab.judge.offsets(&lab.target, topic)?;
            begun.set(offsets.iter().filter(|partition| partition.end > 0).count());
            Ok((begun.get() == partitions as usize).then_some(()))
        });
        each_has_begun.with_context(|| format!("{} of {partitions} have begun", begun.get()))?;
        let seconds = begin.elapsed().as_secs();
        lab.target.proxy()?.limit_bytes_per_second(0);
        lab.wait_for_copy(topic, records.into(), Duration::from_secs(300))?;
        let peak_mib = ensure_peak(&twinlog)?;
        twinlog.stop()?;
        let log = twinlog.log()?;
        for trouble in ["had no answer", "connection lost"] {
            ensure!(!log.contains(trouble), "`{trouble}` although the target only was slow:\n{log}");
        }
        let records = lab.ensure_equal(&[topic])?.records;
        let figures = Figures::default().with("records", records).with("partitions", partitions.into());
        Ok(figures.with("seconds until each had begun", seconds).with("MiB at the peak", peak_mib))
    })
}

/// Partitions, and batches of each: 25 times what memory holds in the full size.
fn size(scale: &Scale) -> (u32, u32) {
    if scale.kills < 20 { (60, 10) } else { (1_000, 8) }
}

/// MiB at the peak, which are no more than the flow may use.
fn ensure_peak(twinlog: &Twinlog) -> Result<u64> {
    let peak_mib = Usage::of(twinlog.id())?.peak_kib >> 10;
    ensure!(peak_mib <= MEMORY_MIB + BESIDE_MIB, "{peak_mib} MiB at the peak, with {MEMORY_MIB} for records");
    Ok(peak_mib)
}

/// Batches of 250 KB that unpack to 24 MB each, for a flow that unpacks them all and a target that takes 20 MB/s.
#[must_use]
pub fn unpacking() -> Scenario {
    const RECORDS: u32 = 60;
    const VALUE_BYTES: usize = 400_000;
    const RATE: u64 = 20_000_000;
    let target = ClusterSpec::single(Version::V4_3_1).behind_proxy();
    let spec = LabSpec::pair(ClusterSpec::single(Version::V4_3_1), target);
    Scenario::alone("batches that unpack to a hundred times their size", spec, |lab, scale| {
        let (partitions, batches) = if scale.kills < 20 { (4, 2) } else { (8, 4) };
        let topic = "memory.unpacked";
        lab.create(&[NewTopic::new(topic, partitions)])?;
        let mut producer = RawProducer::connect(&lab.source, topic)?;
        let mut random = fastrand::Rng::with_seed(scale.seed);
        for partition in (0..i32::try_from(partitions)?).flat_map(|partition| vec![partition; batches]) {
            let stamp = producer.stamp(partition, RECORDS.cast_signed());
            let mut batch = BatchBuilder::new().compression(Compression::Zstd).producer(stamp);
            for _ in 0..RECORDS {
                let part: Vec<u8> =
                    std::iter::repeat_with(|| random.u8(..)).take(VALUE_BYTES / 100).collect();
                batch.push(wall_clock_ms(), None, Some(Bytes::from(part.repeat(100))), Vec::new())?;
            }
            let batch = batch.build()?;
            ensure!(batch.bytes().len() < 400_000, "{} bytes are not packed well", batch.bytes().len());
            producer.send(partition, &batch)?;
        }
        lab.target.proxy()?.limit_bytes_per_second(RATE);
        let flow = lab.flow(topic).with("memory.max", &format!("{MEMORY_MIB} MiB"));
        let mut twinlog = lab.twinlog(&flow.with("compression.type", "none"), &[])?;
        let records = u64::from(partitions) * u64::try_from(batches)? * u64::from(RECORDS);
        lab.wait_for_copy(topic, i64::try_from(records)?, Duration::from_secs(300))?;
        let peak_mib = ensure_peak(&twinlog)?;
        twinlog.stop()?;
        lab.target.proxy()?.limit_bytes_per_second(0);
        let copied = lab.ensure_equal(&[topic])?.records;
        ensure!(copied == records, "{copied} records instead of {records}");
        Ok(Figures::default().with("records", records).with("MiB at the peak", peak_mib))
    })
}

/// A flow copies as fast as it may, and no faster.
#[must_use]
pub fn throttle() -> Scenario {
    const RATE: u64 = 1_000_000;
    Scenario::shared("a flow with a throttle of its own", LabSpec::newest(), |lab, _| {
        let topic = "memory.throttle";
        lab.create(&[NewTopic::new(topic, 4)])?;
        let records = 10_000;
        lab.judge.write(
            &lab.source,
            &WriteRecords { value_bytes: 1_000, ..WriteRecords::new(topic, 4, records) },
        )?;
        let flow = lab.flow(topic).with("src->dst.throttle", &RATE.to_string());
        let mut twinlog = lab.twinlog(&flow, &[])?;
        lab.wait_for_copy(topic, 1_000, Duration::from_secs(30))?;
        let (from, begin) = (lab.copied(topic)?, now());
        lab.wait_for_copy(topic, records.into(), Duration::from_secs(60))?;
        let took_ms = u64::try_from(begin.elapsed().as_millis())?;
        twinlog.stop()?;
        let bytes = lab.target.log_bytes(1, topic)?;
        let rate = bytes * u64::try_from(i64::from(records) - from)? * 1000 / u64::from(records) / took_ms;
        let (least, most) = (RATE * 8 / 10, RATE * 11 / 10);
        ensure!((least..=most).contains(&rate), "{rate} bytes per second, not about {RATE}");
        let records = lab.ensure_equal(&[topic])?.records;
        Ok(Figures::default().with("records", records).with("bytes per second", rate))
    })
}
