//! Kinds of batches that cannot go on as they stand: thinned by the cleaner, of old formats, with the broker's time.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Result, ensure};

use super::{Figures, Lab, LabSpec, Scenario};
use crate::{
    deadline::{Deadline, wall_clock_ms},
    judge::{Codec, NewTopic, WriteRecords},
    process::sleep_ms,
    real::{Version, kafka::ClusterSpec, log_dump},
};

const CATCH_UP: Duration = Duration::from_secs(120);
/// Records of one batch, before the cleaner has been there.
const BATCH: u32 = 20;
/// What the cleaner takes of a batch, as the first record and the one behind the last.
const TAKEN: [(&str, u32, u32); 4] =
    [("first", 0, 10), ("middle", 5, 15), ("last", 10, BATCH), ("all", 0, BATCH)];
/// Codecs that the old formats have.
const OLD_CODECS: [Codec; 4] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4];
/// Settings of `message.format.version`, with the magic that they stand for.
const OLD_FORMATS: [(&str, &str); 2] = [("0.9.0", "magic0"), ("0.10.2", "magic1")];

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![
        thinned_batches(),
        old_formats(Version::V2_8_2),
        old_formats(Version::V2_4_1),
        log_append_time(),
        broker_time(),
        limits_of_the_target(),
    ]
}

/// The cleaner took the first, the middle, the last or all records out of batches of every codec.
#[must_use]
pub fn thinned_batches() -> Scenario {
    Scenario::alone("batches that the cleaner has thinned", with_quick_cleaner(), |lab, _| {
        let name = |codec: Codec, what: &str| format!("thinned.{}.{what}", codec.name());
        let mut topics = Vec::new();
        for codec in Codec::ALL {
            topics.extend(TAKEN.map(|(what, from, to)| (name(codec, what), codec, from, to)));
        }
        lab.create(&topics.iter().map(|(topic, ..)| compacted(topic)).collect::<Vec<_>>())?;
        for first in [true, false] {
            for (topic, codec, from, to) in &topics {
                let whole = WriteRecords { codec: *codec, ..WriteRecords::new(topic, 1, BATCH) };
                let again = WriteRecords { first_id: u64::from(*from), count: to - from, ..whole.clone() };
                lab.judge.write(&lab.source, if first { &whole } else { &again })?;
            }
            sleep_ms(300); // The next batch comes into a segment of its own, which is what the cleaner goes through.
        }
        let mut written = 0;
        for (topic, _, from, to) in &topics {
            let other = WriteRecords { first_id: 1_000, ..WriteRecords::new(topic, 1, BATCH) };
            lab.judge.write(&lab.source, &other)?;
            written += u64::from(2 * BATCH + to - from);
        }
        let mut left = 0;
        for (topic, ..) in &topics {
            left += wait_for_cleaner(lab, topic, usize::try_from(2 * BATCH)?)?;
        }
        let records = ensure_copied(
            lab,
            "thinned\\..*",
            &topics.iter().map(|(topic, ..)| topic.as_str()).collect::<Vec<_>>(),
        )?;
        ensure!(records == left, "{records} records were copied, not the {left} that the cleaner has left");
        Ok(Figures::default().with("written", written).with("records", records))
    })
}

/// Clusters of which the source's cleaner looks for work all the time.
pub(super) fn with_quick_cleaner() -> LabSpec {
    let source = ClusterSpec::single(Version::V4_3_1).with("log.cleaner.backoff.ms", "200");
    LabSpec::pair(source, ClusterSpec::single(Version::V4_3_1))
}

/// A topic in which everything but the newest segment can be cleaned at once.
pub(super) fn compacted(topic: &str) -> NewTopic {
    NewTopic::new(topic, 1)
        .config("cleanup.policy", "compact")
        .config("segment.ms", "100")
        .config("min.cleanable.dirty.ratio", "0.0")
}

/// Tells how many records are left.
pub(super) fn wait_for_cleaner(lab: &mut Lab, topic: &str, left_max: usize) -> Result<u64> {
    Deadline::after(Duration::from_secs(60)).wait("the source's log cleaner", || {
        let left = lab.judge.read(&lab.source, topic, 0, 1_000)?.len();
        Ok((left <= left_max).then_some(u64::try_from(left)?))
    })
}

/// Messages of magic 0 and 1, alone and in wrappers of each codec, a log that begins inside a wrapper, and a topic whose
/// format was raised twice.
#[must_use]
pub fn old_formats(source: Version) -> Scenario {
    let spec = LabSpec::pair(ClusterSpec::single(source), ClusterSpec::single(Version::V4_3_1));
    Scenario::alone(format!("{source}: formats from before Kafka 0.11"), spec, |lab, _| {
        let mut names = Vec::new();
        let mut topics = Vec::new();
        for (format, magic) in OLD_FORMATS {
            for codec in OLD_CODECS {
                let name = format!("old.{magic}.{}", codec.name());
                topics.push(NewTopic::new(&name, 1).config("message.format.version", format));
                names.push((name, codec));
            }
        }
        topics.push(NewTopic::new("old.raised", 1).config("message.format.version", OLD_FORMATS[0].0));
        lab.create(&topics)?;
        for (topic, codec) in &names {
            for first_id in [0, 50] {
                lab.judge.write(&lab.source, &old(topic, *codec, first_id, 50))?;
            }
            lab.judge.delete_records(&lab.source, topic, 0, 17)?;
        }
        let raised = "old.raised";
        for (first_id, next_format) in [(0, Some(OLD_FORMATS[1].0)), (10, Some("2.4")), (20, None)] {
            lab.judge.write(&lab.source, &old(raised, Codec::Gzip, first_id, 10))?;
            if let Some(format) = next_format {
                lab.judge.alter_configs(&lab.source, raised, &[("message.format.version", format)], &[])?;
                sleep_ms(1_000); // The broker hears of it from ZooKeeper.
            }
        }
        let mut topics: Vec<&str> = names.iter().map(|(topic, _)| topic.as_str()).collect();
        topics.push(raised);
        for topic in &topics {
            let magics = log_dump::magics(&lab.source, 1, topic)?;
            let expected = match topic.split('.').nth(1) {
                Some("magic0") => BTreeSet::from([0]),
                Some("magic1") => BTreeSet::from([1]),
                _ => BTreeSet::from([0, 1, 2]),
            };
            ensure!(magics == expected, "the source has {topic} in the formats {magics:?}, not {expected:?}");
        }
        let records = ensure_copied(lab, "old\\..*", &topics)?;
        let expected = u64::try_from(names.len())? * (100 - 17) + 30;
        ensure!(records == expected, "{records} records were copied, not {expected}");
        Ok(Figures::default().with("records", records))
    })
}

fn old(topic: &str, codec: Codec, first_id: u64, count: u32) -> WriteRecords {
    WriteRecords { codec, first_id, idempotent: false, ..WriteRecords::new(topic, 1, count) }
}

/// The source's broker sets the time; at the target every record has it.
#[must_use]
pub fn log_append_time() -> Scenario {
    Scenario::shared("the time that the source's broker has set", LabSpec::newest(), |lab, _| {
        let names = Codec::ALL.map(|codec| format!("appended.{}", codec.name()));
        let topic = |name: &String| NewTopic::new(name, 2).config("message.timestamp.type", "LogAppendTime");
        lab.create(&names.iter().map(topic).collect::<Vec<_>>())?;
        for (name, codec) in names.iter().zip(Codec::ALL) {
            // A producer's time that nobody sees.
            let write = WriteRecords {
                codec,
                headers: true,
                timestamp_ms: Some(1_000),
                ..WriteRecords::new(name, 2, 500)
            };
            lab.judge.write(&lab.source, &write)?;
        }
        let topics: Vec<&str> = names.iter().map(String::as_str).collect();
        let records = ensure_copied(lab, "appended\\..*", &topics)?;
        ensure!(records == 5 * 500, "{records} records were copied");
        let first = lab.judge.read(&lab.target, topics[0], 0, 1)?;
        ensure!(
            first.iter().all(|record| record.timestamp > 1_000) && !first.is_empty(),
            "the producer's time came through: {first:?}"
        );
        Ok(Figures::default().with("records", records))
    })
}

/// The target's broker sets the time: it stands, and is told of once for the flow.
#[must_use]
pub fn broker_time() -> Scenario {
    Scenario::shared("topics whose time the target's broker sets", LabSpec::newest(), |lab, _| {
        let names = ["stamped.0", "stamped.1"];
        lab.create(&names.map(|name| NewTopic::new(name, 2)))?;
        let there =
            names.map(|name| NewTopic::new(name, 2).config("message.timestamp.type", "LogAppendTime"));
        lab.judge.create_topics(&lab.target, &there)?;
        for name in names {
            let write = WriteRecords { timestamp_ms: Some(1_000), ..WriteRecords::new(name, 2, 100) };
            lab.judge.write(&lab.source, &write)?;
        }
        let begin = wall_clock_ms();
        let flow = lab.flow("stamped\\..*");
        let log = lab.catch_up(&flow, CATCH_UP)?.log()?;
        let told = log.matches("has message.timestamp.type=LogAppendTime").count();
        ensure!(told == 1, "told {told} times: {log}");
        ensure!(
            log.contains("whose readers see the target broker's time") && log.contains("topics=2"),
            "{log}"
        );
        let mut records = 0;
        for (name, partition) in names.into_iter().flat_map(|name| [(name, 0), (name, 1)]) {
            let [source, target] =
                [&lab.source, &lab.target].map(|cluster| lab.judge.read(cluster, name, partition, 1_000));
            let (source, target) = (source?, target?);
            let is_equal = source.len() == target.len()
                && source.iter().zip(&target).all(|(ours, theirs)| {
                    ours.key == theirs.key && ours.value == theirs.value && theirs.timestamp >= begin
                });
            ensure!(is_equal, "{name}-{partition}: {source:?} became {target:?}");
            records += u64::try_from(target.len())?;
        }
        Ok(Figures::default().with("records", records))
    })
}

/// Records that are too old, too far in the future, and too large for the target: each holds its partition, with the
/// setting that forbids it, beside one that goes on; when the limits rise all go on by themselves.
#[must_use]
pub fn limits_of_the_target() -> Scenario {
    Scenario::shared("records beyond the target's limits", LabSpec::newest(), |lab, _| {
        const HOUR_MS: i64 = 3_600_000;
        let limits = [
            ("limits.old", "message.timestamp.before.max.ms", HOUR_MS, -3 * HOUR_MS),
            ("limits.future", "message.timestamp.after.max.ms", HOUR_MS, 3 * HOUR_MS),
            ("limits.large", "max.message.bytes", 2_000, 0),
        ];
        let now = wall_clock_ms();
        for (topic, key, limit, shift_ms) in limits {
            let loose =
                NewTopic::new(topic, 1).config("message.timestamp.after.max.ms", "9223372036854775807");
            lab.create(&[loose])?;
            let strict = NewTopic::new(topic, 1).config(key, &limit.to_string());
            lab.judge.create_topics(&lab.target, &[strict])?;
            let write = WriteRecords { timestamp_ms: Some(now), ..WriteRecords::new(topic, 1, 10) };
            lab.judge.write(&lab.source, &write)?;
            let value_bytes = if shift_ms == 0 { 5_000 } else { 100 };
            let beyond =
                WriteRecords { first_id: 10, timestamp_ms: Some(now + shift_ms), value_bytes, ..write };
            lab.judge.write(&lab.source, &beyond)?;
        }
        lab.create(&[NewTopic::new("limits.beside", 1)])?;
        lab.judge.write(&lab.source, &WriteRecords::new("limits.beside", 1, 10))?;

        let flow = lab.flow("limits\\..*").with("sync.topic.configs.enabled", "false");
        let mut twinlog = lab.twinlog(&flow, &[])?;
        for (topic, key, ..) in limits {
            Deadline::after(CATCH_UP).wait(&format!("{topic} to be held for {key}"), || {
                let log = twinlog.log()?;
                let parts = ["partition held", topic, "at upstream offset 10", key_in_words(key)];
                Ok(log.lines().any(|line| parts.iter().all(|part| line.contains(part))).then_some(()))
            })?;
            ensure!(lab.copied(topic)? == 10, "{topic} has {} records", lab.copied(topic)?);
        }
        lab.wait_for_copy("limits.beside", 10, CATCH_UP)?;
        for (topic, key, ..) in limits {
            let raised = if key == "max.message.bytes" { "1000000" } else { "9223372036854775807" };
            lab.judge.alter_configs(&lab.target, topic, &[(key, raised)], &[])?;
        }
        for (topic, ..) in limits {
            lab.wait_for_copy(topic, 20, CATCH_UP)?;
        }
        twinlog.stop()?;
        let topics = ["limits.old", "limits.future", "limits.large", "limits.beside"];
        let records = lab.ensure_equal(&topics)?.records;
        Ok(Figures::default().with("records", records).with("held", 3))
    })
}

/// A broker tells that a time is out of range, not on which side: both settings are named.
fn key_in_words(key: &str) -> &str {
    if key.starts_with("message.timestamp") {
        "message.timestamp.before.max.ms and .after.max.ms"
    } else {
        key
    }
}

/// Copies what is there, and compares record by record, with times.
fn ensure_copied(lab: &mut Lab, pattern: &str, topics: &[&str]) -> Result<u64> {
    let flow = lab.flow(pattern);
    lab.catch_up(&flow, CATCH_UP)?;
    Ok(lab.ensure_equal(topics)?.records)
}
