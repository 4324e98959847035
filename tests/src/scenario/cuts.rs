//! Batches that are larger than the target takes: they arrive in pieces, and the one record that is too large is named.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Figures, Lab, LabSpec, Scenario, batches::ensure_one_producer};
use crate::{
    deadline::Deadline,
    judge::{Codec, NewTopic, Nulls, WriteRecords},
    real::log_dump,
};

const CATCH_UP: Duration = Duration::from_secs(120);
/// What the target's topics take.
const BYTES_MAX: i64 = 20_000;

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![batches_beyond_the_limit()]
}

/// Large batches of every codec for a target that takes small ones, with a kill in between; and records of which one is too
/// large by itself, until the limit is raised.
#[must_use]
pub fn batches_beyond_the_limit() -> Scenario {
    Scenario::shared("batches of 200 KB, max.message.bytes of 20,000", LabSpec::newest(), |lab, _| {
        let names = Codec::ALL.map(|codec| format!("cuts.{}", codec.name()));
        let held = "cuts.held";
        let topics: Vec<&str> = names.iter().map(String::as_str).chain([held]).collect();
        lab.create(&topics.iter().map(|topic| NewTopic::new(topic, 1)).collect::<Vec<_>>())?;
        let strict =
            |topic: &&str| NewTopic::new(topic, 1).config("max.message.bytes", &BYTES_MAX.to_string());
        lab.judge.create_topics(&lab.target, &topics.iter().map(strict).collect::<Vec<_>>())?;
        for (topic, codec) in names.iter().zip(Codec::ALL) {
            let write = WriteRecords {
                codec,
                value_bytes: 1_000,
                headers: true,
                nulls: Nulls::Some,
                linger_ms: 500,
                batch_bytes: 200_000,
                ..WriteRecords::new(topic, 1, 2_000)
            };
            lab.judge.write(&lab.source, &write)?;
        }
        let small = WriteRecords::new(held, 1, 30);
        let large = WriteRecords {
            first_id: 30,
            count: 10,
            value_bytes: 30_000,
            linger_ms: 500,
            batch_bytes: 600_000,
            ..small.clone()
        };
        lab.judge.write(&lab.source, &small)?;
        lab.judge.write(&lab.source, &large)?;
        lab.judge.write(&lab.source, &WriteRecords { first_id: 40, ..small })?;

        let flow = lab.flow("cuts\\..*").with("sync.topic.configs.enabled", "false");
        let mut killed = lab.twinlog(&flow, &[])?;
        lab.wait_for_copy(&names[0], 1, CATCH_UP)?;
        killed.kill()?;
        let mut twinlog = lab.twinlog(&flow, &[])?;
        for topic in &names {
            lab.wait_for_copy(topic, 2_000, CATCH_UP)?;
        }
        Deadline::after(CATCH_UP).wait("the record that is too large to be told of", || {
            let log = twinlog.log()?;
            let parts = ["partition held", held, "at upstream offset 30 ", "max.message.bytes"];
            Ok(log.lines().any(|line| parts.iter().all(|part| line.contains(part))).then_some(()))
        })?;
        ensure!(lab.copied(held)? == 30, "{} records came before the one that is held", lab.copied(held)?);
        lab.judge.alter_configs(&lab.target, held, &[("max.message.bytes", "1000000")], &[])?;
        lab.wait_for_copy(held, 70, CATCH_UP)?;
        twinlog.stop()?;

        let records = lab.ensure_equal(&topics)?.records;
        ensure!(records == 5 * 2_000 + 70, "{records} records arrived");
        let mut batches = 0;
        for topic in &names {
            batches += ensure_cut(lab, topic)?;
        }
        Ok(Figures::default().with("records", records).with("pieces", batches))
    })
}

/// There are more batches than at the source, in the same codec, none above the limit, with sequences that follow on.
fn ensure_cut(lab: &Lab, topic: &str) -> Result<u64> {
    let source = log_dump::dump(&lab.source, 1, topic, 0)?;
    let target = log_dump::dump(&lab.target, 1, topic, 0)?;
    ensure!(source.iter().any(|batch| batch.size > 2 * BYTES_MAX), "{topic} has small batches: {source:?}");
    ensure!(target.len() > source.len(), "{topic} has {} batches of {}", target.len(), source.len());
    let odd = target.iter().find(|batch| batch.size > BYTES_MAX || batch.codec != source[0].codec);
    ensure!(odd.is_none(), "{topic}: {odd:?}");
    ensure_one_producer(topic, 0, &target)?;
    Ok(u64::try_from(target.len())?)
}
