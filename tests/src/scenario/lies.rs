//! Answers that lie about lengths and owners: no end, no panic, no partition held, and a log that names the connection.

use std::{collections::BTreeSet, fs, time::Duration};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;

use super::{Figures, Lab, LabSpec, LiveLoad, Scenario};
use crate::{
    deadline::Deadline,
    judge::{NewTopic, WriteRecords},
    lies::{ANSWERS, Answer, Lie, Told},
    process::sleep_ms,
    proxy::Proxy,
    real::{Version, kafka::ClusterSpec},
};

/// What twinlog asks the source for.
const OF_SOURCE: [&str; 5] = ["ApiVersions", "DescribeConfigs", "Fetch", "ListOffsets", "Metadata"];
/// What twinlog asks the target for.
const OF_TARGET: [&str; 12] = [
    "ApiVersions",
    "CreatePartitions",
    "CreateTopics",
    "DescribeConfigs",
    "DescribeProducers",
    "Fetch",
    "IncrementalAlterConfigs",
    "InitProducerId",
    "ListOffsets",
    "Metadata",
    "OffsetForLeaderEpoch",
    "Produce",
];
/// Asked for so seldom that each answer must count.
const SELDOM: [&str; 5] =
    ["CreatePartitions", "CreateTopics", "DescribeConfigs", "IncrementalAlterConfigs", "InitProducerId"];

/// What any broker may answer.
const OF_ANY_BROKER: [&str; 4] = ["ApiVersions", "DescribeConfigs", "InitProducerId", "Metadata"];

/// Longest time for all lies of a small run, and for five times as many.
const TOLD_WITHIN: Duration = Duration::from_secs(120);
/// A length of 2^31 that was believed would show in the peak of the program's address space.
const BELIEVED_BYTES: u64 = 1 << 31;

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![every_kind_of_answer()]
}

/// Proxies before both clusters lie in answers of every kind that twinlog asks for.
#[must_use]
pub fn every_kind_of_answer() -> Scenario {
    let cluster = ClusterSpec::single(Version::V4_3_1).behind_proxy();
    let spec = LabSpec::pair(cluster.clone(), cluster);
    Scenario::alone("every kind of answer lies", spec, |lab, scale| {
        let load = LiveLoad::new("lies");
        load.start(lab)?;
        let mut random = scale.random();
        plan(lab.source.proxy()?, &OF_SOURCE, scale.lies_per_kind(), &mut random);
        plan(lab.target.proxy()?, &OF_TARGET, scale.lies_per_kind(), &mut random);
        let flow = lab.flow("lies\\..*").with("sync.topic.configs.interval.seconds", "1");
        let mut twinlog = lab.twinlog(&flow, &[])?;
        let limit = TOLD_WITHIN * u32::try_from(scale.lies_per_kind())?;
        let mut topics =
            make_topics_until_all_is_told(lab, Deadline::after(limit), || twinlog.ensure_running())?;
        let peak = address_space_peak_bytes(twinlog.id())?;
        twinlog.stop()?;
        let log = twinlog.log()?;
        let source = ensure_named(&log, "src", lab.source.proxy()?, &OF_SOURCE)?;
        let target = ensure_named(&log, "dst", lab.target.proxy()?, &OF_TARGET)?;
        // No partition is held, nothing else is complained about.
        twinlog.ensure_quiet(&[
            "connection lost",
            "cluster not reached",
            "state topic not created yet",
            "topic not mirrored yet",
            "replication factor",
        ])?;
        ensure!(peak < BELIEVED_BYTES, "twinlog's address space grew to {peak} bytes");
        topics.push("lies.late".to_owned());
        lab.create(&[NewTopic::new("lies.late", 2)])?;
        lab.judge.write(&lab.source, &WriteRecords::new("lies.late", 2, 200))?;
        // A run that ends when it has caught up may not take a listing with lost answers for the whole.
        plan(lab.source.proxy()?, &["DescribeConfigs"], 1, &mut random);
        plan(lab.target.proxy()?, &["CreateTopics"], 1, &mut random);
        lab.catch_up(&lab.flow("lies\\.late"), Duration::from_secs(60))?;
        lab.catch_up(&flow, Duration::from_secs(60))?;
        lab.ensure_equal(&topics.iter().map(String::as_str).collect::<Vec<_>>())?;
        let (verdict, acked) = load.finish(lab, scale)?;
        let figures = Figures::default().with("records", verdict.records).with("acknowledged", acked);
        Ok(figures.with("lies of the source", source).with("lies of the target", target))
    })
}

/// Draws the ways in which each kind of answer lies, and which of its answers do.
fn plan(proxy: &Proxy, names: &[&str], ways: usize, random: &mut Rng) {
    for answer in kinds(names) {
        let mut lies = Lie::ALL;
        random.shuffle(&mut lies);
        let every = if SELDOM.contains(&answer.name) { 1 } else { random.u64(1..=3) };
        proxy.lies().plan(answer, every, &lies[..ways]);
    }
}

fn kinds(names: &[&str]) -> impl Iterator<Item = &'static Answer> {
    ANSWERS.iter().filter(|answer| names.contains(&answer.name))
}

/// New topics, new partitions and new configs make twinlog ask for everything again; gives the topics.
fn make_topics_until_all_is_told(
    lab: &mut Lab,
    end: Deadline,
    mut each_time: impl FnMut() -> Result<()>,
) -> Result<Vec<String>> {
    let mut topics: Vec<String> = Vec::new();
    loop {
        let untold = [lab.source.proxy()?.lies().untold(), lab.target.proxy()?.lies().untold()].concat();
        if untold.is_empty() {
            return Ok(topics);
        }
        ensure!(!end.passed(), "twinlog did not ask often enough for {}", untold.join(", "));
        each_time()?;
        if let Some(last) = topics.last() {
            lab.judge.grow_topic(&lab.source, last, 2)?;
            lab.judge.alter_configs(&lab.source, last, &[("retention.ms", "86400001")], &[])?;
            lab.judge.write(&lab.source, &WriteRecords { first_id: 20, ..WriteRecords::new(last, 2, 20) })?;
        }
        let topic = format!("lies.new-{}", topics.len());
        lab.create(&[NewTopic::new(&topic, 1)])?;
        lab.judge.write(&lab.source, &WriteRecords::new(&topic, 1, 20))?;
        topics.push(topic);
        sleep_ms(2000);
    }
}

/// Every lie has a line of its own in the log, which names cluster, node and address; the number of lies.
fn ensure_named(log: &str, cluster: &str, proxy: &Proxy, names: &[&str]) -> Result<u64> {
    let asked_for: BTreeSet<i16> = kinds(names).map(|answer| answer.api_key).collect();
    let answered = proxy.lies().answered();
    ensure!(
        answered == asked_for,
        "{cluster} was asked for {answered:?}, lies are planned for {asked_for:?}"
    );
    let told = proxy.lies().told();
    let (cluster, address) = (format!("cluster={cluster} "), proxy.bootstrap());
    let mut lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("connection lost") && line.contains(&cluster) && line.contains(&address))
        .collect();
    for lie in &told {
        let line = lines.iter().position(|line| line.contains(&lie.complaint) && names_node(line, lie));
        let line =
            line.with_context(|| format!("no line of the log names {cluster}and {address} for {lie:?}"))?;
        lines.swap_remove(line);
    }
    Ok(told.len() as u64)
}

/// What any broker may answer is asked of a bootstrap server, whose node id is not known, while the nodes back off.
fn names_node(line: &str, told: &Told) -> bool {
    line.contains("node=1 ") || OF_ANY_BROKER.contains(&told.api)
}

/// The most that the process had mapped at once, by the kernel's count.
fn address_space_peak_bytes(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).context("VmPeak is there")?;
    let kb: u64 = line.trim().trim_end_matches(" kB").parse().context("VmPeak is in kB")?;
    Ok(kb * 1024)
}
