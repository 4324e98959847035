//! Topics: how they are made, named, found while running, grown, and which are left out.

use std::{collections::BTreeMap, time::Duration};

use anyhow::ensure;

use super::{Figures, LabSpec, Scenario};
use crate::{
    judge::{NewTopic, TopicPair, WriteRecords},
    twinlog::FlowFile,
};

const NOTICED: Duration = Duration::from_secs(40);

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![
        grown_and_new_while_running(),
        configs_copied(),
        default_names_and_cycles(),
        internal_topics_left_out(),
        changed_between_runs(),
        partition_without_leader(),
        refused_without_refresh(),
    ]
}

/// A topic that gets partitions and one that appears, both while twinlog runs; both from their beginning.
#[must_use]
pub fn grown_and_new_while_running() -> Scenario {
    Scenario::shared("topics that grow and appear while running", LabSpec::newest(), |lab, _| {
        let (grown, new) = ("found.grown", "found.new");
        lab.create(&[NewTopic::new(grown, 1)])?;
        lab.judge.write(&lab.source, &WriteRecords::new(grown, 1, 300))?;
        let flow = lab.flow("found\\..*");
        let mut twinlog = lab.twinlog(&flow, &[])?;
        lab.wait_equal(&[TopicPair::same(grown)], NOTICED)?;
        lab.judge.grow_topic(&lab.source, grown, 4)?;
        lab.judge.write(&lab.source, &WriteRecords { first_id: 300, ..WriteRecords::new(grown, 4, 400) })?;
        lab.create(&[NewTopic::new(new, 3)])?;
        lab.judge.write(&lab.source, &WriteRecords::new(new, 3, 300))?;
        let verdict = lab.wait_equal(&[TopicPair::same(grown), TopicPair::same(new)], NOTICED)?;
        ensure!(verdict.records == 1000, "{} records arrived", verdict.records);
        twinlog.stop()?;
        twinlog.ensure_quiet(&["replication factor"])?;
        Ok(Figures::default().with("records", verdict.records))
    })
}

/// A new remote topic has the source's partition count and configs, but for those that MM2 leaves to the target.
#[must_use]
pub fn configs_copied() -> Scenario {
    Scenario::shared("partition count and configs of new topics", LabSpec::newest(), |lab, _| {
        let topic = NewTopic::new("configs.orders", 7)
            .config("retention.bytes", "1000000007")
            .config("retention.ms", "86400001")
            .config("segment.bytes", "10485760")
            .config("max.message.bytes", "2000000")
            .config("message.timestamp.type", "CreateTime")
            .config("min.insync.replicas", "1")
            .config("unclean.leader.election.enable", "true");
        lab.create(&[topic])?;
        lab.judge.write(&lab.source, &WriteRecords::new("configs.orders", 7, 70))?;
        let flow = lab.flow("configs\\..*");
        lab.catch_up(&flow, Duration::from_secs(60))?;
        lab.ensure_equal(&["configs.orders"])?;
        let copied = lab.judge.configs(&lab.target, "configs.orders")?;
        let expected: BTreeMap<String, String> = [
            ("max.message.bytes", "2000000"),
            ("retention.bytes", "1000000007"),
            ("retention.ms", "86400001"),
            ("segment.bytes", "10485760"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        ensure!(copied == expected, "configs on the target are {copied:?}, not {expected:?}");
        Ok(Figures::default().with("configs", u64::try_from(copied.len())?))
    })
}

/// The default policy names remote topics `src.topic`, and leaves out topics that came from the target.
#[must_use]
pub fn default_names_and_cycles() -> Scenario {
    Scenario::shared("names of the default policy, cycles left out", LabSpec::newest(), |lab, _| {
        let came_back = "dst.named.payments";
        lab.create(&[NewTopic::new("named.orders", 2), NewTopic::new(came_back, 1)])?;
        lab.judge.write(&lab.source, &WriteRecords::new("named.orders", 2, 100))?;
        lab.judge.write(&lab.source, &WriteRecords::new(came_back, 1, 100))?;
        let flow = FlowFile::default_policy(&lab.source, &lab.target, "named\\..*,dst\\.named\\..*");
        lab.catch_up(&flow, Duration::from_secs(60))?;
        let pair = TopicPair { source: "named.orders".to_owned(), target: "src.named.orders".to_owned() };
        let verdict = lab.judge.compare(&lab.source, &lab.target, &[pair])?.ensure_equal()?;
        for name in ["named.orders", "src.dst.named.payments", came_back] {
            ensure!(!lab.target_has(name)?, "the target got {name}");
        }
        Ok(Figures::default().with("records", verdict.records))
    })
}

/// Topics deleted or made again while nobody looks: the next run holds them, whatever was stored about them.
#[must_use]
pub fn changed_between_runs() -> Scenario {
    Scenario::shared("topics deleted or made again between two runs", LabSpec::newest(), |lab, _| {
        let topics = ["changed.gone", "changed.target", "changed.source", "changed.not"];
        lab.create(&topics.map(|topic| NewTopic::new(topic, 1)))?;
        for topic in topics {
            lab.judge.write(&lab.source, &WriteRecords::new(topic, 1, 100))?;
        }
        let flow = lab.flow("changed\\..*").with("on.loss", "hold");
        lab.catch_up(&flow, Duration::from_secs(60))?;
        lab.judge.delete_topic(&lab.target, topics[0])?;
        lab.judge.delete_topic(&lab.target, topics[1])?;
        lab.judge.create_topics(&lab.target, &[NewTopic::new(topics[1], 1)])?;
        lab.judge.delete_topic(&lab.source, topics[2])?;
        lab.create(&[NewTopic::new(topics[2], 1)])?;
        lab.judge.write(&lab.source, &WriteRecords::new(topics[2], 1, 60))?;
        let twinlog = lab.end_with(1, &flow, Duration::from_secs(60))?;
        let log = twinlog.log()?;
        for topic in &topics[..3] {
            let is_held = log.lines().any(|line| line.contains("held") && line.contains(topic));
            ensure!(is_held, "no line says that {topic} is held:\n{log}");
        }
        ensure!(!lab.target_has(topics[0])?, "{} was made again", topics[0]);
        ensure!(lab.copied(topics[1])? == 0, "something was written to the new {}", topics[1]);
        ensure!(lab.copied(topics[2])? == 100, "something was appended behind the old {}", topics[2]);
        let records = lab.ensure_equal(&topics[3..])?.records;
        Ok(Figures::default().with("records", records).with("held", 3))
    })
}

/// A partition whose only broker is down when twinlog starts: the others are copied, and it is once the broker is back.
#[must_use]
pub fn partition_without_leader() -> Scenario {
    Scenario::shared("a partition without a leader at the start", LabSpec::threes(), |lab, _| {
        let (lonely, other) = ("leader.none", "leader.there");
        let placed =
            [NewTopic::placed(lonely, vec![vec![3], vec![1]]), NewTopic::placed(other, vec![vec![1, 2]])];
        lab.judge.create_topics(&lab.source, &placed)?;
        lab.judge.write(&lab.source, &WriteRecords::new(lonely, 2, 200))?;
        lab.judge.write(&lab.source, &WriteRecords::new(other, 1, 100))?;
        lab.source.kill(3)?;
        let mut twinlog = lab.twinlog(&lab.flow("leader\\..*"), &["--until-caught-up"])?;
        lab.wait_equal(&[TopicPair::same(other)], NOTICED)?;
        lab.wait_for_copy(lonely, 100, NOTICED)?;
        twinlog.ensure_running()?;
        lab.source.restart(3)?;
        twinlog.wait_for_exit(NOTICED, 0)?;
        lab.judge.settled(&lab.source)?;
        let records = lab.ensure_equal(&[lonely, other])?.records;
        Ok(Figures::default().with("records", records))
    })
}

/// `refresh.topics.enabled = false`: a topic that the target refused is tried again, and nothing else is looked for.
#[must_use]
pub fn refused_without_refresh() -> Scenario {
    Scenario::shared("a refused topic with refresh off", LabSpec::newest(), |lab, _| {
        let (copied, refused, later) = ("still.a", "still.b_c", "still.later");
        // Of names that are the same as metrics a cluster takes one.
        let in_the_way = "still.b.c";
        lab.create(&[copied, refused].map(|topic| NewTopic::new(topic, 1)))?;
        lab.judge.create_topics(&lab.target, &[NewTopic::new(in_the_way, 1)])?;
        lab.judge.write(&lab.source, &WriteRecords::new(copied, 1, 100))?;
        lab.judge.write(&lab.source, &WriteRecords::new(refused, 1, 100))?;
        let mut twinlog =
            lab.twinlog(&lab.flow("still\\..*").with("refresh.topics.enabled", "false"), &[])?;
        lab.wait_equal(&[TopicPair::same(copied)], NOTICED)?;
        lab.create(&[NewTopic::new(later, 1)])?;
        lab.judge.grow_topic(&lab.source, copied, 2)?;
        lab.judge.delete_topic(&lab.target, in_the_way)?;
        let verdict = lab.wait_equal(&[TopicPair::same(refused)], NOTICED)?;
        twinlog.stop()?;
        let partitions = lab.judge.topics(&lab.target)?.get(copied).copied();
        ensure!(partitions == Some(1), "{copied} has {partitions:?} partitions");
        ensure!(!lab.target_has(later)?, "{later} was made");
        let log = twinlog.log()?;
        let is_cut = |line: &&str| line.contains("`replication.factor`: the default replication factor");
        let cuts = log.lines().filter(is_cut).count();
        ensure!(cuts == 1, "{cuts} warnings of the same factor:\n{log}");
        Ok(Figures::default().with("records", verdict.records))
    })
}

/// Kafka's and MM2's internal topics stay where they are, however wide the pattern.
#[must_use]
pub fn internal_topics_left_out() -> Scenario {
    Scenario::alone("internal topics left out of the pattern .*", LabSpec::newest(), |lab, _| {
        let internal = ["__hidden", "mm2-configs.src.internal", "dst.checkpoints.internal", "orders.replica"];
        for name in internal.into_iter().chain(["orders"]) {
            lab.create(&[NewTopic::new(name, 1)])?;
            lab.judge.write(&lab.source, &WriteRecords::new(name, 1, 10))?;
        }
        let flow = lab.flow(".*");
        let log = lab.catch_up(&flow, Duration::from_secs(60))?.log()?;
        for told in ["__hidden (internal name)", "orders.replica (topics.exclude)"] {
            ensure!(log.contains(told), "the log does not say {told}:\n{log}");
        }
        let verdict = lab.ensure_equal(&["orders"])?;
        for name in internal {
            ensure!(!lab.target_has(name)?, "the target got {name}");
        }
        ensure!(lab.target_has("mm2-twinlog.internal")?, "the target has no state topic");
        Ok(Figures::default()
            .with("records", verdict.records)
            .with("left out", u64::try_from(internal.len())?))
    })
}
