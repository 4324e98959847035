//! The premise of exactly once, on its own: who agrees on what each sequence means may send what and when he likes.

use std::{fmt::Write as _, time::Duration};

use anyhow::{Context, Result, ensure};

use super::{Figures, Lab, LabSpec, Scale, Scenario};
use crate::{
    deadline::Deadline,
    identity::{INSTANCES, Plan, Rivals},
    judge::{NewTopic, TextRecord},
    process::sleep_ms,
    real::log_dump,
};

const PARTITIONS: u32 = 3;
/// Records of a partition for each kill of a leader.
const RECORDS_PER_KILL: u64 = 1000;
/// In how many steps records come to those of whom one has another map.
const STEPS: u64 = 10;
/// How long the records of one kill may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![three_rivals(), another_map()]
}

/// Review j: three instances at once whose batches have different boundaries, over the wrap of the sequences, with stale
/// batches, cut connections, crashes of instances, and leaders' brokers killed, each second time with followers behind.
#[must_use]
pub fn three_rivals() -> Scenario {
    let name = "three identity machines with random batches, stale repeats, dead leaders, over 2^31";
    Scenario::shared(name, LabSpec::three_at_target(), |lab, scale| {
        let records = RECORDS_PER_KILL * u64::from(scale.kills);
        let plan = plan("identity.rivals", records, scale);
        lab.judge.create_topics(&lab.target, &[NewTopic::new(&plan.topic, PARTITIONS)])?;
        let rivals = Rivals::start(&lab.target.bootstrap(), &plan)?;
        let mut random = scale.random();
        for kill in 0..u64::from(scale.kills) {
            rivals.release(RECORDS_PER_KILL * (kill + 1));
            let in_flight =
                RECORDS_PER_KILL * kill + random.u64(RECORDS_PER_KILL / 5..RECORDS_PER_KILL * 4 / 5);
            wait(&rivals, in_flight * u64::from(PARTITIONS))?;
            kill_leader(lab, &plan.topic, kill % 2 == 1, &mut random)?;
        }
        wait(&rivals, records * u64::from(PARTITIONS))?;
        let tally = rivals.stop()?;
        ensure!(tally.copied.iter().all(|records| *records > 0), "an instance copied nothing: {tally:?}");
        let verdict = judge(lab, &plan)?;
        ensure!(verdict.is_exact(), "{verdict:?}");
        let (batches, wraps) = batches_and_wraps(lab, &plan)?;
        Ok(Figures::default()
            .with("records", verdict.right)
            .with("batches", batches)
            .with("leaders killed", u64::from(scale.kills))
            .with("stale batches sent", tally.stale)
            .with("connections cut", tally.dropped)
            .with("instances crashed", tally.crashes)
            .with("line-ups", tally.line_ups)
            .with("batches refused or in doubt", tally.doubts)
            .with("wraps", wraps))
    })
}

/// The counterproof: one instance leaves a record out, so it means other records by the same sequences; the judge that
/// finds nothing in the other scenario must find that.
#[must_use]
pub fn another_map() -> Scenario {
    let name = "an identity machine with another map than its rivals is found out";
    Scenario::shared(name, LabSpec::three_at_target(), |lab, scale| {
        let plan = Plan { deviant: true, ..plan("identity.deviant", RECORDS_PER_KILL, scale) };
        lab.judge.create_topics(&lab.target, &[NewTopic::new(&plan.topic, PARTITIONS)])?;
        let rivals = Rivals::start(&lab.target.bootstrap(), &plan)?;
        // Bit by bit, or one of them may have copied a whole partition before the others have begun.
        for step in 1..=STEPS {
            rivals.release(plan.records * step / STEPS);
            wait(&rivals, plan.records * step / STEPS * u64::from(PARTITIONS))?;
        }
        let tally = rivals.stop()?;
        ensure!(tally.copied[INSTANCES - 1] > 0, "the deviant copied nothing: {tally:?}");
        let verdict = judge(lab, &plan)?;
        ensure!(!verdict.is_exact(), "the judge found nothing wrong: {verdict:?}");
        ensure!(verdict.missing > 0, "each time the deviant took over a record is lost: {verdict:?}");
        Ok(Figures::default().with("records missing", verdict.missing).with("repeated", verdict.repeated))
    })
}

fn plan(topic: &str, records: u64, scale: &Scale) -> Plan {
    Plan { topic: topic.to_owned(), partitions: PARTITIONS, records, deviant: false, seed: scale.seed }
}

fn wait(rivals: &Rivals, records: u64) -> Result<()> {
    let what = format!("{records} acknowledged records");
    Deadline::after(PATIENCE).wait(&what, || Ok((rivals.acknowledged()? >= records).then_some(())))
}

/// kill -9 of a leader's broker in full flight, with and without a new leader before it is back. With `rolled_back` its
/// followers stand still before, so that what it took last is lost with it.
fn kill_leader(lab: &mut Lab, topic: &str, rolled_back: bool, random: &mut fastrand::Rng) -> Result<()> {
    let partitions = lab.judge.describe(&lab.target, topic)?;
    let leader = partitions[random.usize(..partitions.len())].leader;
    let leader = u16::try_from(leader).context("the partition has a leader")?;
    let paused: Vec<u16> = lab.target.ids().filter(|id| rolled_back && *id != leader).collect();
    paused.iter().try_for_each(|id| lab.target.pause(*id))?;
    sleep_ms(if rolled_back { random.u64(200..1500) } else { 0 });
    lab.target.kill(leader)?;
    paused.iter().try_for_each(|id| lab.target.resume(*id))?;
    sleep_ms(random.u64(500..12_000));
    lab.target.restart(leader)?;
    lab.judge.settled(&lab.target)
}

/// What stands in a log that should hold the values "0", "1" … in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    /// Values at the offset that is their number.
    right: u64,
    missing: u64,
    repeated: u64,
    /// Values that are no number below the end.
    foreign: u64,
    /// The first offset with another value, by partition.
    first: String,
}

impl Found {
    fn is_exact(&self) -> bool {
        self.first.is_empty() && self.missing + self.repeated + self.foreign == 0
    }

    /// Adds a partition that should hold `records` records.
    fn add(&mut self, partition: u32, records: u64, log: &[TextRecord]) {
        let mut seen = vec![0_u64; usize::try_from(records).expect("what fits into the judge's answer")];
        let mut first = None;
        for (place, record) in (0..).zip(log) {
            let value = record.value.as_deref().and_then(|value| value.parse::<usize>().ok());
            match value.and_then(|value| seen.get_mut(value)) {
                Some(times) => *times += 1,
                None => self.foreign += 1,
            }
            if value == Some(place) && usize::try_from(record.offset) == Ok(place) {
                self.right += 1;
            } else {
                first = first.or(Some(record));
            }
        }
        self.missing += seen.iter().filter(|times| **times == 0).count() as u64;
        self.repeated += seen.iter().map(|times| times.saturating_sub(1)).sum::<u64>();
        if let Some(record) = first {
            let _ = write!(self.first, "partition {partition}: {:?} at {}; ", record.value, record.offset);
        }
    }
}

/// The partitions as Kafka's own consumer reads them.
fn judge(lab: &mut Lab, plan: &Plan) -> Result<Found> {
    let mut found = Found::default();
    let limit = u32::try_from(2 * plan.records)?;
    for partition in 0..plan.partitions {
        found.add(partition, plan.records, &lab.judge.read(&lab.target, &plan.topic, partition, limit)?);
    }
    Ok(found)
}

/// Batches in the logs of one broker, and how often their sequences started over.
fn batches_and_wraps(lab: &mut Lab, plan: &Plan) -> Result<(u64, u64)> {
    lab.judge.settled(&lab.target)?;
    let logs = log_dump::dump_topic(&lab.target, 1, &plan.topic)?;
    let mut wraps = 0;
    for (partition, batches) in &logs {
        let mut expected = i64::from(plan.first_sequence());
        for batch in batches {
            ensure!(batch.base_sequence == expected, "partition {partition}: {batch:?}, {expected} expected");
            let next = expected + batch.count;
            expected = next % (1 << 31);
            wraps += u64::from(next != expected);
        }
    }
    ensure!(wraps == u64::from(plan.partitions), "sequences started over {wraps} times");
    Ok((logs.values().map(|batches| batches.len() as u64).sum(), wraps))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: &[&str]) -> Found {
        let log: Vec<TextRecord> = (0..)
            .zip(values)
            .map(|(offset, value)| TextRecord {
                offset,
                timestamp: 0,
                key: None,
                value: Some((*value).to_owned()),
            })
            .collect();
        let mut found = Found::default();
        found.add(0, 4, &log);
        found
    }

    #[test]
    fn only_the_exact_log_is_exact() {
        assert_eq!(found(&["0", "1", "2", "3"]), Found { right: 4, ..Found::default() });
        for (log, missing, repeated, foreign) in [
            (&["0", "1", "2"][..], 1, 0, 0),
            (&["0", "1", "1", "2", "3"], 0, 1, 0),
            (&["0", "2", "1", "3"], 0, 0, 0),
            (&["0", "1", "2", "3", "4"], 0, 0, 1),
            (&["0", "1", "x", "3"], 1, 0, 1),
        ] {
            let found = found(log);
            assert!(!found.is_exact(), "{log:?}");
            assert_eq!(
                (found.missing, found.repeated, found.foreign),
                (missing, repeated, foreign),
                "{log:?}"
            );
        }
    }
}
