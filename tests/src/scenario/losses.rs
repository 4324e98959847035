//! Records that a cluster loses: told once, with their number, and nothing else is missing.

use std::{ops::Range, time::Duration};

use anyhow::{Context, Result, ensure};

use super::{Figures, Lab, LabSpec, Scenario, transactions::ensure_ids};
use crate::{
    deadline::Deadline,
    judge::{NewTopic, WriteRecords},
    real::{
        Version,
        kafka::{Cluster, ClusterSpec},
    },
    twinlog::FlowFile,
};

const CATCH_UP: Duration = Duration::from_secs(90);
/// How the log begins to tell of a loss.
const TOLD: &str = "records lost: ";

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    let newest = Version::V4_3_1;
    let olds = [Version::V3_9_2, Version::V2_8_2, Version::V2_4_1];
    let retention = olds.map(|source| retention_overtakes((source, newest)));
    let recreated = [Version::V3_9_2, Version::V2_8_2].map(|source| source_made_again((source, newest)));
    [retention_overtakes((newest, newest)), source_made_again((newest, newest))]
        .into_iter()
        .chain([source_cut_back(), target_deleted(), target_cut_back()])
        .chain(retention)
        .chain(recreated)
        .collect()
}

/// Field report B10: the source deletes records while the copier is stopped.
#[must_use]
pub fn retention_overtakes((source, target): (Version, Version)) -> Scenario {
    let name = format!("{source} to {target}: retention overtakes a stopped copy");
    Scenario::shared(name, LabSpec::singles(source, target), |lab, _| {
        let (topic, emptied, held) = ("lost.some", "lost.all", "lost.held");
        lab.create(&[topic, emptied, held].map(|name| NewTopic::new(name, 1)))?;
        let goes_on = lab.flow("lost\\.(some|all)");
        let holds = lab.flow("lost\\.held").with("on.loss", "hold");
        for name in [topic, emptied, held] {
            write(lab, name, 1..1001)?;
        }
        lab.catch_up(&goes_on, CATCH_UP)?;
        lab.catch_up(&holds, CATCH_UP)?;
        for name in [topic, emptied, held] {
            write(lab, name, 1001..2001)?;
            lab.judge.delete_records(&lab.source, name, 0, if name == emptied { 2000 } else { 1500 })?;
        }
        for name in [topic, held] {
            write(lab, name, 2001..2101)?;
        }
        let log = exits_with(lab, &goes_on, 1)?;
        let told = |name: &str| log.lines().filter(|line| line.contains(TOLD) && line.contains(name)).count();
        ensure!(
            (told(topic), told(emptied)) == (1, 1),
            "told {} and {} times:\n{log}",
            told(topic),
            told(emptied)
        );
        for words in ["offsets 1000..1499 (500 records)", "offsets 1000..1999 (1000 records)"] {
            ensure!(log.contains(words), "{words} is not told of:\n{log}");
        }
        ensure_ids(lab, topic, &[1..1001, 1501..2101])?;
        ensure_range(lab, emptied, 1..1001)?;

        write(lab, topic, 2101..2111)?;
        write(lab, emptied, 2001..2011)?;
        let log = lab.catch_up(&goes_on, CATCH_UP)?.log()?;
        ensure!(!log.contains(TOLD), "told again:\n{log}");
        ensure!(log.contains("losses=2") && log.contains("lost_records=1500"), "the sum is not told:\n{log}");
        ensure_ids(lab, topic, &[1..1001, 1501..2111])?;
        ensure_ids(lab, emptied, &[1..1001, 2001..2011])?;

        let log = exits_with(lab, &holds, 1)?;
        ensure!(log.contains("upstream offset 1000 is out of range"), "not held:\n{log}");
        ensure_range(lab, held, 1..1001)?;
        Ok(Figures::default().with("records lost and told", 1500))
    })
}

/// The source's topic is deleted and made again, while twinlog runs and while it is stopped; the new one is shorter and longer.
#[must_use]
pub fn source_made_again((source, target): (Version, Version)) -> Scenario {
    let name = format!("{source} to {target}: source topics deleted and made again");
    Scenario::shared(name, LabSpec::singles(source, target), |lab, _| {
        let topics = [("again.shorter", 40), ("again.longer", 300)];
        lab.create(&topics.map(|(name, _)| NewTopic::new(name, 1)))?;
        for (name, _) in topics {
            write(lab, name, 0..100)?;
        }
        let flow = lab.flow("again\\.(shorter|longer)");
        let mut twinlog = lab.twinlog(&flow, &[])?;
        for (name, _) in topics {
            lab.wait_for_copy(name, 100, CATCH_UP)?;
        }
        make_again(lab, &topics, 1000)?;
        for (name, count) in topics {
            lab.wait_for_copy(name, 100 + count, CATCH_UP)?;
        }
        twinlog.stop()?;
        let log = twinlog.log()?;
        ensure!(log.matches(TOLD).count() == 2, "{log}");
        make_again(lab, &topics, 2000)?;
        let log = exits_with(lab, &flow, 1)?;
        ensure!(log.matches(TOLD).count() == 2, "{log}");
        ensure!(log.contains("was deleted and made again"), "{log}");
        for (name, count) in topics {
            let count = u64::try_from(count)?;
            ensure_ids(lab, name, &[0..100, 1000..1000 + count, 2000..2000 + count])?;
        }
        lab.catch_up(&flow, CATCH_UP)?;
        Ok(Figures::default().with("topics made again", 4))
    })
}

fn make_again(lab: &mut Lab, topics: &[(&str, i64)], first_id: u64) -> Result<()> {
    for (name, _) in topics {
        lab.judge.delete_topic(&lab.source, name)?;
    }
    for (name, count) in topics {
        // Brokers with ZooKeeper delete in their own time.
        Deadline::after(CATCH_UP)
            .wait(&format!("{name} to be gone"), || Ok(lab.create(&[NewTopic::new(name, 1)]).ok()))?;
        write(lab, name, first_id..first_id + u64::try_from(*count)?)?;
    }
    Ok(())
}

/// Three brokers of which the last one in sync dies, and one that was not in sync leads: its log is another.
fn unclean() -> ClusterSpec {
    ClusterSpec::three(Version::V4_3_1)
}

fn in_doubt(topic: &str) -> NewTopic {
    NewTopic::placed(topic, vec![vec![1, 2]])
        .config("min.insync.replicas", "1")
        .config("unclean.leader.election.enable", "true")
}

/// The source's log is cut back by an unclean leader election, while twinlog runs and while it is stopped, and is longer than
/// before when it is looked at.
#[must_use]
pub fn source_cut_back() -> Scenario {
    let spec = LabSpec::pair(unclean(), ClusterSpec::single(Version::V4_3_1));
    Scenario::alone("a source that is cut back by an unclean election", spec, |lab, _| {
        let topic = "cut.source";
        lab.create(&[in_doubt(topic)])?;
        write(lab, topic, 0..100)?;
        let flow = lab.flow("cut\\.source");
        let mut twinlog = lab.twinlog(&flow, &[])?;
        lab.wait_for_copy(topic, 100, CATCH_UP)?;
        lab.source.kill(2)?;
        write(lab, topic, 100..150)?;
        lab.wait_for_copy(topic, 150, CATCH_UP)?;
        elect_other(lab, topic, true, (1, 2))?;
        write(lab, topic, 1000..1100)?;
        lab.wait_for_copy(topic, 250, CATCH_UP)?;
        twinlog.stop()?;
        let log = twinlog.log()?;
        ensure!(log.matches(TOLD).count() == 1 && log.contains("upstream offsets 100..149"), "{log}");

        // The same again, and nobody is there to see it.
        lab.source.restart(1)?;
        lab.judge.settled(&lab.source)?;
        lab.source.kill(1)?;
        write(lab, topic, 1100..1150)?;
        lab.catch_up(&flow, CATCH_UP)?;
        elect_other(lab, topic, true, (2, 1))?;
        write(lab, topic, 2000..2100)?;
        let log = exits_with(lab, &flow, 1)?;
        ensure!(log.matches(TOLD).count() == 1 && log.contains("upstream offsets 200..249"), "{log}");
        ensure_ids(lab, topic, &[0..150, 1000..1150, 2000..2100])?;
        Ok(Figures::default().with("records cut off at the source", 100))
    })
}

/// The broker `alive` dies, and `other` leads, which lacks what it had.
fn elect_other(lab: &mut Lab, topic: &str, of_source: bool, (alive, other): (u16, u16)) -> Result<()> {
    let cluster: &mut Cluster = if of_source { &mut lab.source } else { &mut lab.target };
    cluster.kill(alive)?;
    cluster.restart(other)?;
    let judge = &mut lab.judge;
    Deadline::after(CATCH_UP).wait(&format!("broker {other} to lead {topic}"), || {
        let states = judge.describe(cluster, topic)?;
        Ok((states.first().context("a partition")?.leader == i32::from(other)).then_some(()))
    })
}

/// The target's topic is deleted while twinlog runs: made again and filled again, or filled with what comes, or held.
#[must_use]
pub fn target_deleted() -> Scenario {
    Scenario::shared("target topics deleted while they are copied", LabSpec::newest(), |lab, _| {
        let policies = ["recopy", "continue", "hold"];
        let topics = policies.map(|policy| format!("gone.{policy}"));
        lab.create(&topics.each_ref().map(|topic| NewTopic::new(topic, 1)))?;
        let mut runs = Vec::new();
        for (policy, topic) in policies.iter().zip(&topics) {
            write(lab, topic, 0..100)?;
            let flow = lab.flow(&format!("gone\\.{policy}"));
            let flow = flow.with("on.target.loss", policy).with("refresh.topics.interval.seconds", "3");
            runs.push(lab.twinlog(&flow, &[])?);
            lab.wait_for_copy(topic, 100, CATCH_UP)?;
        }
        for topic in &topics {
            lab.judge.delete_topic(&lab.target, topic)?;
            write(lab, topic, 100..110)?;
        }
        for (topic, first_id) in [(&topics[0], 0), (&topics[1], 100)] {
            lab.wait_for_copy(topic, 110 - i64::try_from(first_id)?, CATCH_UP)?;
            ensure_range(lab, topic, first_id..110)?;
        }
        Deadline::after(CATCH_UP).wait("the topic to be held", || {
            Ok(runs[2].log()?.contains("the target topic was deleted").then_some(()))
        })?;
        ensure!(!lab.target_has(&topics[2])?, "{} was made again", topics[2]);
        for (run, told) in runs.iter_mut().zip([1, 1, 0]) {
            run.stop()?;
            let log = run.log()?;
            ensure!(log.matches(TOLD).count() == told, "{log}");
            ensure!(log.contains("partition held") == (told == 0), "{log}");
        }
        Ok(Figures::default().with("topics", 3))
    })
}

/// The target's log is cut back by an unclean leader election: what it lacks is copied again.
#[must_use]
pub fn target_cut_back() -> Scenario {
    let spec = LabSpec::pair(ClusterSpec::single(Version::V4_3_1), unclean());
    Scenario::alone("a target that is cut back by an unclean election", spec, |lab, _| {
        let topic = "cut.target";
        lab.create(&[NewTopic::new(topic, 1)])?;
        lab.judge.create_topics(&lab.target, &[in_doubt(topic)])?;
        write(lab, topic, 0..100)?;
        let flow = lab.flow("cut\\.target");
        lab.catch_up(&flow, CATCH_UP)?;
        lab.target.kill(2)?;
        write(lab, topic, 100..150)?;
        lab.catch_up(&flow, CATCH_UP)?;
        elect_other(lab, topic, false, (1, 2))?;
        let log = exits_with(lab, &flow, 1)?;
        ensure!(log.contains("the target's log ends at 100"), "{log}");
        let log = exits_with(lab, &flow.with("on.target.loss", "recopy"), 1)?;
        ensure!(log.matches(TOLD).count() == 1 && log.contains("downstream offsets 100..149"), "{log}");
        ensure_range(lab, topic, 0..150)?;
        Ok(Figures::default().with("records copied again", 50))
    })
}

fn ensure_range(lab: &mut Lab, topic: &str, ids: Range<u64>) -> Result<()> {
    ensure_ids(lab, topic, &[ids.start..ids.start, ids])
}

fn write(lab: &mut Lab, topic: &str, ids: Range<u64>) -> Result<()> {
    let count = u32::try_from(ids.end - ids.start)?;
    let write = WriteRecords { first_id: ids.start, ..WriteRecords::new(topic, 1, count) };
    lab.judge.write(&lab.source, &write)
}

/// Runs twinlog until it has caught up; what it logged when it ended with this code.
fn exits_with(lab: &mut Lab, flow: &FlowFile, code: i32) -> Result<String> {
    lab.end_with(code, flow, CATCH_UP)?.log()
}
