//! Batches of kinds that cannot be copied faithfully yet: each holds its own partition, with topic, offset and reason.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Figures, Lab, LabSpec, Scenario};
use crate::{
    deadline::Deadline,
    judge::{NewTopic, WriteRecords},
    process::sleep_ms,
    real::{Version, kafka::ClusterSpec},
};

/// Topics with what is said of their first batch.
const HELD: [(&str, &str); 3] = [
    ("kinds.thinned", "compaction"),
    ("kinds.magic1", "message format 1"),
    ("kinds.appended", "log append time"),
];
/// A topic beside them.
const PLAIN: &str = "kinds.plain";
/// Records of the topic that is compacted, before it is.
const RECORDS: u32 = 20;

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![kinds_that_are_held()]
}

/// A source from before Kafka 3 has them all.
#[must_use]
pub fn kinds_that_are_held() -> Scenario {
    let source = ClusterSpec::single(Version::V2_8_2).with("log.cleaner.backoff.ms", "200");
    let spec = LabSpec::pair(source, ClusterSpec::single(Version::V4_3_1));
    Scenario::alone("kinds of batches that hold their partition alone", spec, |lab, _| {
        lab.create(&[
            NewTopic::new("kinds.thinned", 1)
                .config("cleanup.policy", "compact")
                .config("segment.ms", "100")
                .config("min.cleanable.dirty.ratio", "0.0"),
            NewTopic::new("kinds.magic1", 1).config("message.format.version", "0.10.2"),
            NewTopic::new("kinds.appended", 1).config("message.timestamp.type", "LogAppendTime"),
            NewTopic::new(PLAIN, 1),
        ])?;
        for (topic, _) in &HELD[1..] {
            let old = WriteRecords { idempotent: false, ..WriteRecords::new(topic, 1, RECORDS) };
            lab.judge.write(&lab.source, &old)?;
        }
        lab.judge.write(&lab.source, &WriteRecords::new(PLAIN, 1, RECORDS))?;
        thin(lab, HELD[0].0)?;
        let mut twinlog = lab.twinlog(&lab.flow("kinds\\..*"), &["--until-caught-up"])?;
        twinlog.wait_for_exit(Duration::from_secs(60), 1)?;
        let log = twinlog.log()?;
        for (topic, reason) in HELD {
            let mut lines = log.lines().filter(|line| line.contains(topic) && line.contains("held"));
            let line = lines.next().with_context(|| format!("no line says that {topic} is held:\n{log}"))?;
            let complete = ["partition=0", "upstream offset", reason].iter().all(|part| line.contains(part));
            ensure!(complete, "the line must give partition, offset and {reason:?}: {line}");
            ensure!(lab.copied(topic)? == 0, "something of {topic} was copied");
        }
        let records = lab.ensure_equal(&[PLAIN])?.records;
        Ok(Figures::default().with("records", records).with("held", u64::try_from(HELD.len())?))
    })
}

/// Writes every second key again, and waits until the cleaner has taken the first ones out of their batch.
fn thin(lab: &mut Lab, topic: &str) -> Result<()> {
    lab.judge.write(&lab.source, &WriteRecords::new(topic, 1, RECORDS))?;
    for first_id in [0, 1_000] {
        sleep_ms(300); // a segment of its own
        let again = WriteRecords { first_id, ..WriteRecords::new(topic, 1, RECORDS / 2) };
        lab.judge.write(&lab.source, &again)?;
    }
    let written = usize::try_from(2 * RECORDS)?;
    Deadline::after(Duration::from_secs(60)).wait("the source's log cleaner", || {
        let left = lab.judge.read(&lab.source, topic, 0, 1_000)?;
        Ok((left.len() < written).then_some(()))
    })
}
