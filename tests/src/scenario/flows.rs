//! Many flows in one process, or one in each of several: none waits for another one, and no topic goes round.

use std::{collections::BTreeSet, io::ErrorKind, net::TcpListener, slice, time::Duration};

use anyhow::{Result, ensure};

use super::{Figures, Lab, LabSpec, Scenario};
use crate::{
    deadline::Deadline,
    judge::{Judge, NewTopic, TopicPair, WriteRecords},
    process::sleep_ms,
    real::{kafka::Cluster, ports::Port},
    twinlog::{FlowFile, Twinlog},
};

const CATCH_UP: Duration = Duration::from_secs(180);
const NOTICED: Duration = Duration::from_secs(60);

/// Where twinlog keeps what it must not forget.
const STATE_TOPIC: &str = "mm2-twinlog.internal";

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![
        three_sources_into_one_target(),
        five_clusters_one_flow(),
        unreachable_beside_a_copy(),
        two_names_for_one_cluster(),
        contradictory_aliases(),
        both_ways(),
        both_ways_under_equal_names(),
    ]
}

/// What a topic of the cluster called `alias` is called elsewhere.
fn mirror(alias: &str, topic: &str) -> TopicPair {
    TopicPair { source: topic.to_owned(), target: format!("{alias}.{topic}") }
}

/// Three flows of one process, with many topics each, start at once and write one state topic.
#[must_use]
pub fn three_sources_into_one_target() -> Scenario {
    let spec = LabSpec::newest().and_more(2);
    Scenario::shared("three sources into one target", spec, |lab, scale| {
        let topics: Vec<String> = (0..scale.topics()).map(|number| format!("fan.{number}")).collect();
        let new: Vec<NewTopic> = topics.iter().map(|topic| NewTopic::new(topic, 2)).collect();
        let sources = [("a", &lab.source), ("b", &lab.more[0]), ("c", &lab.more[1])];
        let mut first_id = 0;
        for (_, source) in sources {
            lab.judge.create_topics(source, &new)?;
            for topic in &topics {
                lab.judge.write(source, &WriteRecords { first_id, ..WriteRecords::new(topic, 2, 20) })?;
                first_id += 20;
            }
        }
        let clusters = [&lab.source, &lab.more[0], &lab.more[1], &lab.target].map(Cluster::bootstrap);
        let clusters: Vec<(&str, String)> = ["a", "b", "c", "dst"].into_iter().zip(clusters).collect();
        let file = FlowFile::clusters(&clusters);
        let file = sources.iter().fold(file, |file, (alias, _)| file.flow(alias, "dst", "fan\\..*"));
        let twinlog = lab.catch_up(&file, CATCH_UP)?;
        twinlog.ensure_quiet(&["replication factor"])?;
        let mut records = 0;
        for (alias, source) in [("a", &lab.source), ("b", &lab.more[0]), ("c", &lab.more[1])] {
            let pairs: Vec<TopicPair> = topics.iter().map(|topic| mirror(alias, topic)).collect();
            records += lab.judge.compare(source, &lab.target, &pairs)?.ensure_equal()?.records;
        }
        ensure!(records == first_id, "{records} records arrived, not {first_id}");
        Ok(Figures::default().with("records", records).with("topics", 3 * u64::from(scale.topics())))
    })
}

/// Field report B47: MM2 starts twenty pairs of clusters here. Three of the five are not there; nobody knocks at them.
#[must_use]
pub fn five_clusters_one_flow() -> Scenario {
    Scenario::alone("five clusters in the file, one flow", LabSpec::newest(), |lab, _| {
        let closed = Port::reserve()?;
        let doors = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
        doors.iter().try_for_each(|door| door.set_nonblocking(true))?;
        lab.create(&[NewTopic::new("orders", 2)])?;
        lab.judge.write(&lab.source, &WriteRecords::new("orders", 2, 100))?;
        let file = FlowFile::clusters(&[
            ("c1", lab.source.bootstrap()),
            ("c2", lab.target.bootstrap()),
            ("c3", closed.address()),
            ("c4", doors[0].local_addr()?.to_string()),
            ("c5", doors[1].local_addr()?.to_string()),
        ]);
        let twinlog = lab.catch_up(&file.flow("c1", "c2", "orders"), CATCH_UP)?;
        twinlog.ensure_quiet(&["replication factor"])?;
        let verdict =
            lab.judge.compare(&lab.source, &lab.target, &[mirror("c1", "orders")])?.ensure_equal()?;
        for door in &doors {
            let knock = door.accept();
            let is_quiet = knock.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
            ensure!(is_quiet, "somebody knocked at a cluster without a flow: {knock:?}");
        }
        let [source, target] =
            [topics(&mut lab.judge, &lab.source, "")?, topics(&mut lab.judge, &lab.target, "")?];
        ensure!(source == BTreeSet::from(["orders".to_owned()]), "topics at the source: {source:?}");
        let expected = BTreeSet::from(["c1.orders", STATE_TOPIC].map(str::to_owned));
        ensure!(target == expected, "topics at the target: {target:?}");
        Ok(Figures::default().with("records", verdict.records))
    })
}

/// Topics of a cluster that are not the brokers' own and whose names hold `part`.
fn topics(judge: &mut Judge, cluster: &Cluster, part: &str) -> Result<BTreeSet<String>> {
    let all = judge.topics(cluster)?.into_keys();
    Ok(all.filter(|topic| !topic.starts_with("__") && topic.contains(part)).collect())
}

/// A flow whose source does not answer keeps nobody waiting: neither the copy beside it nor the end.
#[must_use]
pub fn unreachable_beside_a_copy() -> Scenario {
    Scenario::shared("a source out of reach beside one that is copied", LabSpec::newest(), |lab, _| {
        let closed = Port::reserve()?;
        let topic = "beside.orders";
        lab.create(&[NewTopic::new(topic, 2)])?;
        lab.judge.write(&lab.source, &WriteRecords::new(topic, 2, 100))?;
        let file = FlowFile::clusters(&[
            ("dead", closed.address()),
            ("src", lab.source.bootstrap()),
            ("dst", lab.target.bootstrap()),
        ]);
        let file = file.flow("dead", "dst", "beside\\..*").flow("src", "dst", "beside\\..*");
        let mut twinlog = lab.twinlog(&file, &[])?;
        let verdict = lab.wait_equal(&[mirror("src", topic)], NOTICED)?;
        Deadline::after(NOTICED).wait("a word about the dead source", || {
            let log = twinlog.log()?;
            let is_told = |line: &str| line.contains("cluster not reached") && line.contains("cluster=dead");
            Ok(log.lines().any(is_told).then_some(()))
        })?;
        twinlog.stop()?;
        twinlog.ensure_quiet(&["replication factor", "cluster not reached"])?;
        let mut twinlog = lab.twinlog(&file, &["--until-caught-up", "--wait", "3"])?;
        twinlog.wait_for_exit(NOTICED, 69)?;
        Ok(Figures::default().with("records", verdict.records))
    })
}

/// Field report B05 b: the cluster ids show what names hide. What is refused leaves the other flow running.
#[must_use]
pub fn two_names_for_one_cluster() -> Scenario {
    Scenario::shared("two names for one cluster", LabSpec::newest(), |lab, _| {
        let topic = "names.orders";
        lab.create(&[NewTopic::new(topic, 1)])?;
        lab.judge.write(&lab.source, &WriteRecords::new(topic, 1, 100))?;
        let [source, target] = [&lab.source, &lab.target].map(Cluster::bootstrap);
        let both_sides = FlowFile::clusters(&[("src", source.clone()), ("dst", source.clone())]);
        let twinlog = lab.end_with(64, &both_sides.flow("src", "dst", topic), NOTICED)?;
        ensure_told(&twinlog, &["`src` and `dst` are the same cluster (id "])?;

        let file = FlowFile::clusters(&[("src", source.clone()), ("again", source), ("dst", target)]);
        let file = file.flow("src", "dst", topic).flow("again", "dst", topic);
        let twinlog = lab.end_with(64, &file, CATCH_UP)?;
        ensure_told(&twinlog, &["is the same cluster as", "`src`", "`again`"])?;
        let copied = topics(&mut lab.judge, &lab.target, topic)?;
        ensure!(copied.len() == 1, "one of the two flows runs: {copied:?}");

        let twinlog = lab.catch_up(&file.with("loops.allow", "true"), CATCH_UP)?;
        ensure_told(&twinlog, &["is the same cluster as", "`src`", "`again`"])?;
        twinlog.ensure_quiet(&["replication factor", "is the same cluster as"])?;
        let pairs = [mirror("src", topic), mirror("again", topic)];
        let records = lab.judge.compare(&lab.source, &lab.target, &pairs)?.ensure_equal()?.records;
        Ok(Figures::default().with("records", records))
    })
}

/// # Errors
/// When not exactly one line of the log holds all of `parts`.
fn ensure_told(twinlog: &Twinlog, parts: &[&str]) -> Result<()> {
    let log = twinlog.log()?;
    let is_told = |line: &&str| parts.iter().all(|part| line.contains(part));
    let count = log.lines().filter(is_told).count();
    ensure!(count == 1, "{count} lines say {parts:?}:\n{log}");
    Ok(())
}

/// Field report B05 a: two processes, each of which calls its own target `local` and the other cluster `remote`. By
/// their names all mirrors are topics of the other one's; only the cluster ids tell that they came from there.
#[must_use]
pub fn contradictory_aliases() -> Scenario {
    Scenario::shared("two processes with contradictory aliases", LabSpec::newest(), |lab, scale| {
        let [west, east, empty] = ["aliases.west", "aliases.east", "aliases.empty"];
        lab.create(&[NewTopic::new(west, 2), NewTopic::new(empty, 1)])?;
        lab.judge.create_topics(&lab.target, &[NewTopic::new(east, 2)])?;
        lab.judge.write(&lab.source, &WriteRecords::new(west, 2, 100))?;
        lab.judge.write(&lab.target, &WriteRecords::new(east, 2, 100))?;
        let [at_source, at_target] =
            [(&lab.source, &lab.target), (&lab.target, &lab.source)].map(|(local, remote)| {
                FlowFile::clusters(&[("local", local.bootstrap()), ("remote", remote.bootstrap())])
                    .flow("remote", "local", ".*aliases\\..*")
                    .with("refresh.topics.interval.seconds", "1")
            });
        let expected =
            [[west, empty, "remote.aliases.east"], [east, "remote.aliases.west", "remote.aliases.empty"]]
                .map(|topics| BTreeSet::from(topics.map(str::to_owned)));
        let mut records = 0;
        for _ in 0..2 {
            let mut both = [lab.twinlog(&at_source, &[])?, lab.twinlog(&at_target, &[])?];
            records = wait_for_both(lab, &mirror("remote", west), &mirror("remote", east))?;
            sleep_ms(scale.seconds * 500); // refreshes to come
            let found = [
                topics(&mut lab.judge, &lab.source, "aliases.")?,
                topics(&mut lab.judge, &lab.target, "aliases.")?,
            ];
            ensure!(found == expected, "topics on both sides: {found:?}");
            let left_out = [&["remote.aliases.west", "remote.aliases.empty"][..], &["remote.aliases.east"]];
            for (twinlog, left_out) in both.iter_mut().zip(left_out) {
                twinlog.stop()?;
                twinlog.ensure_quiet(&["replication factor"])?;
                for topic in left_out {
                    ensure_told(twinlog, &[&format!("{topic} (came from the target, by its cluster id)")])?;
                }
            }
        }
        Ok(Figures::default().with("records", records).with("starts", 2))
    })
}

/// A flow each way under prefixed names: what either side writes is on both, in full, and goes no further.
#[must_use]
pub fn both_ways() -> Scenario {
    Scenario::shared("one process, both ways", LabSpec::newest(), |lab, scale| {
        let (orders, later) = ("ways.orders", "ways.later");
        for (cluster, first_id) in [(&lab.source, 0), (&lab.target, 300)] {
            lab.judge.create_topics(cluster, &[NewTopic::new(orders, 3)])?;
            lab.judge.write(cluster, &WriteRecords { first_id, ..WriteRecords::new(orders, 3, 300) })?;
        }
        let clusters = [("src", lab.source.bootstrap()), ("dst", lab.target.bootstrap())];
        let file = FlowFile::clusters(&clusters).with("refresh.topics.interval.seconds", "1");
        let file = file.flow("src", "dst", ".*ways\\..*").flow("dst", "src", ".*ways\\..*");
        let mut twinlog = lab.twinlog(&file, &[])?;
        wait_for_both(lab, &mirror("src", orders), &mirror("dst", orders))?;
        lab.create(&[NewTopic::new(later, 3)])?;
        // Into one of its partitions.
        lab.judge.write(&lab.source, &WriteRecords::new(later, 1, 100))?;
        lab.wait_equal(&[mirror("src", later)], NOTICED)?;
        sleep_ms(scale.seconds * 500); // refreshes to come
        twinlog.stop()?;
        twinlog.ensure_quiet(&["replication factor"])?;
        let found =
            [topics(&mut lab.judge, &lab.source, "ways.")?, topics(&mut lab.judge, &lab.target, "ways.")?];
        let expected = [[orders, later, "dst.ways.orders"], [orders, "src.ways.orders", "src.ways.later"]]
            .map(|topics| BTreeSet::from(topics.map(str::to_owned)));
        ensure!(found == expected, "topics on both sides: {found:?}");
        let there = [mirror("src", orders), mirror("src", later)];
        let there = lab.judge.compare(&lab.source, &lab.target, &there)?.ensure_equal()?;
        let back = lab.judge.compare(&lab.target, &lab.source, &[mirror("dst", orders)])?.ensure_equal()?;
        ensure!((there.records, back.records) == (400, 300), "{there:?} {back:?}");
        Ok(Figures::default().with("records", there.records + back.records))
    })
}

/// A process each way under equal names: nobody sees both files, but the second one sees what the first one has stored.
/// It copies nothing, and above all takes nobody's producer id: the records at the other end are there at both.
#[must_use]
pub fn both_ways_under_equal_names() -> Scenario {
    Scenario::shared("two processes, both ways under equal names", LabSpec::newest(), |lab, scale| {
        let topic = "round.orders";
        lab.create(&[NewTopic::new(topic, 2)])?;
        // Both ways have begun anew: flows of other scenarios have the same clusters.
        for cluster in [&lab.source, &lab.target] {
            if lab.judge.topics(cluster)?.contains_key(STATE_TOPIC) {
                lab.judge.delete_topic(cluster, STATE_TOPIC)?;
            }
        }
        lab.judge.write(&lab.source, &WriteRecords::new(topic, 2, 100))?;
        let [there, back] =
            [(("src", &lab.source), ("dst", &lab.target)), (("dst", &lab.target), ("src", &lab.source))].map(
                |(from, to)| {
                    let file = FlowFile::plain(from, to, "round\\..*").equal_names();
                    file.with("refresh.topics.interval.seconds", "1")
                },
            );
        let mut there = lab.twinlog(&there, &[])?;
        lab.wait_equal(&[TopicPair::same(topic)], NOTICED)?;
        let mut back = lab.twinlog(&back, &[])?;
        Deadline::after(NOTICED).wait("a warning of the way back", || {
            let log = back.log()?;
            Ok(log.contains("the way back would send its records round and round").then_some(()))
        })?;
        let of_target = WriteRecords { first_id: 100, ..WriteRecords::new(topic, 2, 10) };
        lab.judge.write(&lab.target, &of_target)?;
        lab.judge.write(&lab.source, &WriteRecords { first_id: 110, ..WriteRecords::new(topic, 2, 10) })?;
        lab.wait_for_copy(topic, 120, NOTICED)?;
        sleep_ms(scale.seconds * 300); // refreshes to come
        for twinlog in [&mut there, &mut back] {
            twinlog.stop()?;
        }
        let at_source =
            lab.judge.offsets(&lab.source, topic)?.iter().map(|partition| partition.end).sum::<i64>();
        ensure!(at_source == 110, "{at_source} records at the source");
        ensure!(lab.copied(topic)? == 120, "{} records on the target", lab.copied(topic)?);
        let log = back.log()?;
        ensure!(!log.contains("going on from there"), "the records of others were taken for a copy:\n{log}");
        Ok(Figures::default().with("records", 110))
    })
}

/// Waits until each side has the other's topic; the number of records.
fn wait_for_both(lab: &mut Lab, there: &TopicPair, back: &TopicPair) -> Result<u64> {
    let there = lab.wait_equal(slice::from_ref(there), NOTICED)?.records;
    let back = Deadline::after(NOTICED).wait("the way back", || {
        let verdict = lab.judge.compare(&lab.target, &lab.source, slice::from_ref(back));
        Ok(verdict.and_then(|verdict| verdict.ensure_equal()).ok())
    })?;
    Ok(there + back.records)
}
