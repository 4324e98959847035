//! `isolation.level=read_committed`: what aborted and open transactions leave out and hold up, and a file that changes its mind.

use std::{ops::Range, time::Duration};

use anyhow::{Context, Result, ensure};

use super::{Figures, Lab, LabSpec, Scenario, kinds};
use crate::{
    deadline::Deadline,
    judge::{Codec, End, NewTopic, TopicPair, Transactions, Verdict, WriteRecords},
    process::sleep_ms,
    real::{Version, log_dump},
};

const CATCH_UP: Duration = Duration::from_secs(60);
const KEY: &str = "src.consumer.isolation.level";
/// A transaction is told of after ten seconds.
const TOLD: Duration = Duration::from_secs(40);
/// More than any partition here holds.
const READ_MAX: u32 = 100_000;

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    let newest = Version::V4_3_1;
    let olds =
        [Version::V3_9_2, Version::V2_8_2, Version::V2_4_1].map(|source| interleaved((source, newest)));
    [interleaved((newest, newest)), changed_in_between(), killed_while_written(), thinned()]
        .into_iter()
        .chain(olds)
        .collect()
}

/// Four producers in one partition: a transaction each that is committed, aborted, and left open, between plain records.
#[must_use]
pub fn interleaved((source, target): (Version, Version)) -> Scenario {
    let name = format!("{source} to {target}: committed records only, an open transaction behind them");
    Scenario::shared(name, LabSpec::singles(source, target), move |lab, _| {
        let topic = "committed.mixed";
        lab.create(&[NewTopic::new(topic, 1)])?;
        let write = |first_id, count| WriteRecords { first_id, ..WriteRecords::new(topic, 1, count) };
        lab.judge.write(&lab.source, &write(0, 10))?;
        lab.judge.transact(&lab.source, "kept", &write(100, 10), End::Open)?;
        lab.judge.transact(&lab.source, "void", &write(200, 7), End::Open)?;
        lab.judge.write(&lab.source, &write(10, 10))?;
        lab.judge.transact(&lab.source, "void", &write(207, 3), End::Abort)?;
        lab.judge.transact(&lab.source, "kept", &write(110, 5), End::Commit)?;
        lab.judge.transact(&lab.source, "open", &write(300, 10), End::Open)?;
        lab.judge.write(&lab.source, &write(20, 10))?;

        let flow = lab.flow("committed\\.mixed").with(KEY, "read_committed");
        lab.catch_up(&flow, CATCH_UP)?;
        ensure_ids(lab, topic, &[0..10, 100..110, 10..20, 110..115])?;

        let mut twinlog = lab.twinlog(&flow, &[])?;
        let whose = if matches!(source, Version::V2_1_1 | Version::V2_4_1) {
            // Nobody can be asked there.
            "a transaction of producer id ".to_owned()
        } else {
            let producers = lab.judge.producers(&lab.source, topic, 0)?;
            let open = producers.iter().find(|state| state.transaction_start == 47);
            format!(
                "producer id {} (epoch 0)",
                open.context("no transaction is open at offset 47")?.producer_id
            )
        };
        let expected =
            [whose.as_str(), "is open at upstream offset 47, begun", "s ago by its first record's timestamp"];
        Deadline::after(TOLD).wait("the open transaction in the log", || {
            let log = twinlog.log()?;
            Ok(log.lines().any(|line| expected.iter().all(|part| line.contains(part))).then_some(()))
        })?;
        lab.judge.transact(&lab.source, "open", &write(310, 2), End::Commit)?;
        lab.wait_for_copy(topic, 57, CATCH_UP)?;
        ensure_ids(lab, topic, &[0..10, 100..110, 10..20, 110..115, 300..310, 20..30, 310..312])?;
        ensure!(twinlog.log()?.contains("partition gets on again"), "{}", twinlog.log()?);
        twinlog.stop()?;
        let verdict = ensure_committed(lab, &[topic])?;
        let batches = log_dump::dump(&lab.target, 1, topic, 0)?;
        let is_plain = batches.iter().all(|batch| !batch.transactional && !batch.control);
        ensure!(
            is_plain && batches.iter().all(|batch| batch.producer_id == batches[0].producer_id),
            "{batches:?}"
        );
        Ok(Figures::default().with("records", verdict.records).with("void", 10))
    })
}

/// A file that changes its mind: the partition is held, and goes on under the level of before.
#[must_use]
pub fn changed_in_between() -> Scenario {
    Scenario::shared("isolation.level changes between runs", LabSpec::newest(), |lab, _| {
        let topic = "committed.changed";
        lab.create(&[NewTopic::new(topic, 1)])?;
        for (run, level) in (0..).zip(["read_committed", "read_uncommitted", "read_committed"]) {
            let write = |first_id| WriteRecords { first_id, ..WriteRecords::new(topic, 1, 20) };
            lab.judge.transact(&lab.source, "void", &write(100 * run), End::Abort)?;
            lab.judge.transact(&lab.source, "kept", &write(100 * run + 20), End::Commit)?;
            let flow = lab.flow("committed\\.changed").with(KEY, level);
            let is_held = level == "read_uncommitted";
            let twinlog = lab.end_with(i32::from(is_held), &flow, CATCH_UP)?;
            let is_told = twinlog.log()?.contains("copied under another `isolation.level`");
            ensure!(is_told == is_held, "run {run}: {}", twinlog.log()?);
        }
        ensure_ids(lab, topic, &[20..40, 120..140, 220..240])?;
        Ok(Figures::default().with("runs", 3).with("records", 60))
    })
}

/// Transactions in every codec, every third one aborted, while twinlog is killed again and again.
#[must_use]
pub fn killed_while_written() -> Scenario {
    Scenario::shared("kill -9 while committed records are copied", LabSpec::newest(), |lab, scale| {
        let names = Codec::ALL.map(|codec| format!("committed.killed.{}", codec.name()));
        lab.create(&names.each_ref().map(|name| NewTopic::new(name, 3)))?;
        let flow = lab.flow("committed\\.killed\\..*").with(KEY, "read_committed");
        let mut random = scale.random();
        let pattern = Transactions { count: 30, each: 20, abort_every: 3 };
        for kill in 0..u64::from(scale.kills) {
            let mut twinlog = lab.twinlog(&flow, &[])?;
            sleep_ms(random.u64(20..1500));
            for (name, codec) in names.iter().zip(Codec::ALL) {
                let first_id = kill * 600;
                let write = WriteRecords { codec, headers: true, first_id, ..WriteRecords::new(name, 3, 0) };
                lab.judge.write_transactions(&lab.source, &write, pattern)?;
            }
            sleep_ms(random.u64(0..300));
            twinlog.kill()?;
        }
        lab.catch_up(&flow, CATCH_UP)?;
        let verdict = ensure_committed(lab, &names.each_ref().map(String::as_str))?;
        let expected = u64::from(scale.kills) * 5 * 400;
        ensure!(verdict.records == expected, "{} records arrived, not {expected}", verdict.records);
        Ok(Figures::default().with("kills", scale.kills.into()).with("records", verdict.records))
    })
}

/// The cleaner takes aborted records and some of the committed ones, and leaves markers and empty batches.
#[must_use]
pub fn thinned() -> Scenario {
    let spec = kinds::with_quick_cleaner();
    Scenario::alone("committed records that the cleaner has thinned", spec, |lab, _| {
        let topic = "committed.thinned";
        lab.create(&[kinds::compacted(topic)])?;
        for (id, end) in [("a", End::Commit), ("b", End::Abort), ("c", End::Commit), ("d", End::Abort)] {
            let write = WriteRecords { first_id: 5, ..WriteRecords::new(topic, 1, 40) };
            lab.judge.transact(&lab.source, id, &write, end)?;
            sleep_ms(300); // The next one comes into a segment of its own, which is what the cleaner goes through.
        }
        lab.judge.write(&lab.source, &WriteRecords { first_id: 40, ..WriteRecords::new(topic, 1, 10) })?;
        sleep_ms(300);
        lab.judge.write(&lab.source, &WriteRecords { first_id: 1_000, ..WriteRecords::new(topic, 1, 5) })?;
        let left = kinds::wait_for_cleaner(lab, topic, 50)?;
        let flow = lab.flow("committed\\.thinned").with(KEY, "read_committed");
        lab.catch_up(&flow, CATCH_UP)?;
        let records = ensure_committed(lab, &[topic])?.records;
        ensure!(records == 50, "{records} records arrived of {left}");
        Ok(Figures::default().with("written", 175).with("records", records))
    })
}

/// What a consumer of the target reads is what a consumer of committed records reads at the source.
fn ensure_committed(lab: &mut Lab, topics: &[&str]) -> Result<Verdict> {
    let pairs: Vec<TopicPair> = topics.iter().map(|name| TopicPair::same(name)).collect();
    lab.judge.compare_committed(&lab.source, &lab.target, &pairs)?.ensure_equal()
}

/// The target's only partition holds the records with these numbers, in this order.
pub(super) fn ensure_ids(lab: &mut Lab, topic: &str, expected: &[Range<u64>]) -> Result<()> {
    let expected: Vec<String> = expected.iter().cloned().flatten().map(|id| format!("key-{id}")).collect();
    let found: Option<Vec<String>> =
        lab.judge.read(&lab.target, topic, 0, READ_MAX)?.into_iter().map(|record| record.key).collect();
    let found = found.context("a record has no key")?;
    let place = found.iter().zip(&expected).position(|(found, expected)| found != expected);
    let place = place.unwrap_or(found.len().min(expected.len()));
    let from = |keys: &[String]| keys[place..].iter().take(5).cloned().collect::<Vec<_>>();
    ensure!(
        found == expected,
        "{topic} has {} records, not {}; from record {place} on {:?}, not {:?}",
        found.len(),
        expected.len(),
        from(&found),
        from(&expected)
    );
    Ok(())
}
