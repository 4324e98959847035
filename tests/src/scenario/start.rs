//! Where a flow begins when it first starts, and that nothing changes it later: `auto.offset.reset`.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Figures, Lab, LabSpec, Scenario, state::STATE_TOPIC};
use crate::{
    deadline::{Deadline, wall_clock_ms},
    judge::{NewTopic, TextRecord, WriteRecords},
    process::sleep_ms,
    real::log_dump,
    twinlog::Twinlog,
};

const KEY: &str = "src.consumer.auto.offset.reset";
const NOTICED: Duration = Duration::from_secs(40);
const MINUTE_MS: i64 = 60_000;
/// More than any partition here holds.
const READ_MAX: u32 = 10_000;

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![at_the_ends(), at_a_time(), two_at_once(), without_a_leader()]
}

/// `latest`: a first start that is killed as soon as it has begun, ten records per partition, growth, another kill, and a
/// file that says `earliest` later.
#[must_use]
pub fn at_the_ends() -> Scenario {
    Scenario::shared("a first start at the ends", LabSpec::newest(), |lab, _| {
        let (grown, same, later) = ("ends.grown", "ends.same", "ends.later");
        forget_flow(lab)?;
        lab.create(&[grown, same].map(|topic| NewTopic::new(topic, 3)))?;
        write(lab, &[grown, same], 3, 0..300)?;
        let flow = lab.flow("ends\\..*").with(KEY, "latest");
        let mut twinlog = lab.twinlog(&flow, &[])?;
        wait_for_first_start(&twinlog, 6)?;
        twinlog.kill()?;

        write(lab, &[grown, same], 3, 300..330)?;
        let mut twinlog = lab.twinlog(&flow, &[])?;
        for topic in [grown, same] {
            lab.wait_for_copy(topic, 30, NOTICED)?;
            ensure_copied(lab, topic, &[100; 3], &[10; 3])?;
        }
        ensure!(twinlog.log()?.contains("the flow has started before"), "the log is silent about the key");

        lab.judge.grow_topic(&lab.source, grown, 4)?;
        write(lab, &[grown], 4, 330..370)?;
        lab.create(&[NewTopic::new(later, 2)])?;
        write(lab, &[later], 2, 0..200)?;
        lab.wait_for_copy(grown, 70, NOTICED)?;
        lab.wait_for_copy(later, 200, NOTICED)?;
        ensure_copied(lab, grown, &[100, 100, 100, 0], &[20, 20, 20, 10])?;
        lab.ensure_equal(&[later])?;
        twinlog.kill()?;
        twinlog.ensure_quiet(&["replication factor"])?;

        write(lab, &[grown], 4, 370..410)?;
        let flow = lab.flow("ends\\..*").with(KEY, "earliest");
        lab.catch_up(&flow, NOTICED)?.ensure_quiet(&["replication factor"])?;
        let records = ensure_copied(lab, grown, &[100, 100, 100, 0], &[30, 30, 30, 20])?
            + ensure_copied(lab, same, &[100; 3], &[10; 3])?
            + lab.ensure_equal(&[later])?.records;
        Ok(Figures::default().with("records", records).with("left out", 600))
    })
}

/// `by_duration`: a partition with records on both sides of the time begins inside a batch, one with old records only at
/// its end.
#[must_use]
pub fn at_a_time() -> Scenario {
    Scenario::shared("a first start an hour back", LabSpec::newest(), |lab, _| {
        let (both, old) = ("hour.both", "hour.old");
        forget_flow(lab)?;
        lab.create(&[both, old].map(|topic| NewTopic::new(topic, 1)))?;
        let now = wall_clock_ms();
        // Every ten minutes: the tenth is 65 minutes old, the eleventh 55.
        let aged = |topic, minutes: i64| WriteRecords {
            timestamp_ms: Some(now - minutes * MINUTE_MS),
            timestamp_step_ms: 10 * MINUTE_MS,
            linger_ms: 500,
            ..WriteRecords::new(topic, 1, 15)
        };
        lab.judge.write(&lab.source, &aged(both, 155))?;
        lab.judge.write(&lab.source, &aged(old, 1000))?;
        let batches = log_dump::dump(&lab.source, 1, both, 0)?;
        let is_inside = batches.iter().any(|batch| batch.base_offset < 10 && 10 <= batch.last_offset);
        ensure!(is_inside, "offset 10 is not inside a batch: {batches:?}");

        let flow = lab.flow("hour\\..*").with(KEY, "by_duration:PT1H");
        let mut twinlog = lab.twinlog(&flow, &[])?;
        wait_for_first_start(&twinlog, 2)?;
        write(lab, &[both, old], 1, 15..20)?;
        lab.wait_for_copy(both, 10, NOTICED)?;
        lab.wait_for_copy(old, 5, NOTICED)?;
        let records = ensure_copied(lab, both, &[10], &[10])? + ensure_copied(lab, old, &[15], &[5])?;
        twinlog.stop()?;
        twinlog.ensure_quiet(&["replication factor"])?;
        Ok(Figures::default().with("records", records).with("left out", 25))
    })
}

/// `latest`, two instances that first start at once while records are written: both begin where the first one to store it
/// says, whatever the other one saw. From there on nothing is missing, and nothing is there twice.
#[must_use]
pub fn two_at_once() -> Scenario {
    Scenario::shared("two first starts at the ends at once", LabSpec::newest(), |lab, _| {
        let topic = "twins.ends";
        forget_flow(lab)?;
        lab.create(&[NewTopic::new(topic, 3)])?;
        write(lab, &[topic], 3, 0..300)?;
        let flow = lab.flow("twins\\..*").with(KEY, "latest");
        let mut twins = [lab.twinlog(&flow, &[])?, lab.twinlog(&flow, &[])?];
        for first in (300..330).step_by(3) {
            write(lab, &[topic], 3, first..first + 3)?;
            sleep_ms(70);
        }
        for twin in &twins {
            wait_for_line(twin, &["topics that match"])?;
        }
        write(lab, &[topic], 3, 330..630)?;
        Deadline::after(NOTICED).wait("the last records on the target", || {
            let [source, target] = ends(lab, topic)?;
            Ok((source == target).then_some(()))
        })?;
        let mut firsts = 0;
        for twin in &mut twins {
            twin.stop()?;
            twin.ensure_quiet(&["replication factor"])?;
            let log = twin.log()?;
            let is_first = log.contains("first start:");
            let came_second = "another instance started the flow first";
            ensure!(is_first || log.contains(came_second) || log.contains("has started before"), "{log}");
            firsts += u64::from(is_first);
        }
        ensure!(firsts == 1, "{firsts} instances have started the flow");
        let mut records = 0;
        for partition in 0..3 {
            let source = lab.judge.read(&lab.source, topic, partition, READ_MAX)?;
            let target = lab.judge.read(&lab.target, topic, partition, READ_MAX)?;
            let (all, copied): (Vec<_>, Vec<_>) =
                (source.iter().map(content).collect(), target.iter().map(content).collect());
            ensure!((100..=110).contains(&copied.len()), "{topic}-{partition} has {copied:?}");
            ensure!(all.ends_with(&copied), "{topic}-{partition} has {copied:?}, not the end of {all:?}");
            records += u64::try_from(copied.len())?;
        }
        Ok(Figures::default().with("records", records).with("instances", 2))
    })
}

/// The last value of each partition, at the source and on the target.
fn ends(lab: &mut Lab, topic: &str) -> Result<[Vec<Option<String>>; 2]> {
    let mut ends = [Vec::new(), Vec::new()];
    for partition in 0..3 {
        for (cluster, ends) in [&lab.source, &lab.target].into_iter().zip(&mut ends) {
            let records = lab.judge.read(cluster, topic, partition, READ_MAX)?;
            ends.push(records.into_iter().next_back().and_then(|record| record.value));
        }
    }
    Ok(ends)
}

/// `latest` while a partition has no leader: nothing begins before its end is known, and the log says what is waited for.
#[must_use]
pub fn without_a_leader() -> Scenario {
    Scenario::shared("a first start at the ends without a leader", LabSpec::threes(), |lab, _| {
        let topic = "lonely.ends";
        forget_flow(lab)?;
        lab.judge.create_topics(&lab.source, &[NewTopic::placed(topic, vec![vec![1], vec![3]])])?;
        write(lab, &[topic], 2, 0..200)?;
        lab.source.kill(3)?;
        let mut twinlog = lab.twinlog(&lab.flow("lonely\\..*").with(KEY, "latest"), &[])?;
        wait_for_line(&twinlog, &["the first start waits", "partition=1", "waiting=1"])?;
        ensure!(!lab.target_has(topic)?, "{topic} was made before the flow had begun");
        lab.source.restart(3)?;
        wait_for_first_start(&twinlog, 2)?;
        lab.judge.settled(&lab.source)?;
        write(lab, &[topic], 2, 200..240)?;
        lab.wait_for_copy(topic, 40, NOTICED)?;
        let records = ensure_copied(lab, topic, &[100; 2], &[20; 2])?;
        twinlog.stop()?;
        Ok(Figures::default().with("records", records).with("left out", 200))
    })
}

/// Flows of other scenarios on these clusters have the same source, and so the same identity.
fn forget_flow(lab: &mut Lab) -> Result<()> {
    if lab.target_has(STATE_TOPIC)? {
        lab.judge.delete_topic(&lab.target, STATE_TOPIC)?;
    }
    Ok(())
}

fn write(lab: &mut Lab, topics: &[&str], partitions: u32, ids: std::ops::Range<u32>) -> Result<()> {
    topics.iter().try_for_each(|topic| {
        let records = WriteRecords::new(topic, partitions, ids.end - ids.start);
        lab.judge.write(&lab.source, &WriteRecords { first_id: ids.start.into(), ..records })
    })
}

/// From this line on where the flow begins is stored.
fn wait_for_first_start(twinlog: &Twinlog, partitions: u32) -> Result<()> {
    wait_for_line(twinlog, &["first start:", &format!("partitions={partitions}")])
}

fn wait_for_line(twinlog: &Twinlog, words: &[&str]) -> Result<()> {
    let is_meant = |line: &str| words.iter().all(|word| line.contains(word));
    Deadline::after(NOTICED)
        .wait(&format!("a line with {words:?}"), || Ok(twinlog.log()?.lines().any(is_meant).then_some(())))
}

/// Each partition of the target holds the source's records from an offset on and nothing else, so many; their sum.
fn ensure_copied(lab: &mut Lab, topic: &str, from: &[i64], counts: &[usize]) -> Result<u64> {
    let mut records = 0;
    for ((partition, from), count) in (0..).zip(from).zip(counts) {
        let source = lab.judge.read(&lab.source, topic, partition, READ_MAX)?;
        let expected: Vec<_> = source.iter().filter(|record| record.offset >= *from).map(content).collect();
        let target = lab.judge.read(&lab.target, topic, partition, READ_MAX)?;
        let copied: Vec<_> = target.iter().map(content).collect();
        ensure!(copied == expected, "{topic}-{partition} has {copied:?}, not {expected:?}");
        ensure!(copied.len() == *count, "{topic}-{partition} has {} records, not {count}", copied.len());
        records += u64::try_from(*count)?;
    }
    Ok(records)
}

fn content(record: &TextRecord) -> (i64, Option<&str>, Option<&str>) {
    (record.timestamp, record.key.as_deref(), record.value.as_deref())
}
