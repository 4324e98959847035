//! Beside the real MirrorMaker 2 on the same clusters: the same topics, partition counts and configs.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::{Figures, Lab, LabSpec, Scenario};
use crate::{
    deadline::Deadline,
    judge::NewTopic,
    real::mirror_maker::MirrorMaker,
    twinlog::{FlowFile, Twinlog},
};

/// What the source calls itself for MM2 …
const MM2: &str = "javasrc";
/// … and for twinlog.
const TWINLOG: &str = "twinsrc";
/// MM2 needs a while to start three connectors.
const STARTED: Duration = Duration::from_secs(120);

/// A remote topic without its alias.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Remote {
    partitions: u32,
    configs: BTreeMap<String, String>,
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![beside_mm2()]
}

/// Both run the same file but for the source's alias, over topics of every kind of name; then topics appear and grow.
#[must_use]
pub fn beside_mm2() -> Scenario {
    Scenario::alone("topics, partitions and configs beside MirrorMaker 2", LabSpec::newest(), |lab, _| {
        let left_out =
            ["__state", ".hidden", "x.replica", "mm2-things.internal", "dst.back", "a.checkpoints.internal"];
        let named =
            ["orders", "pay.eu", "billing.internal", "billing-internal", "a..b", "x.heartbeat", "UPPER_case"];
        let mut topics: Vec<NewTopic> = left_out.map(|name| NewTopic::new(name, 1)).into();
        topics.extend(named.map(|name| NewTopic::new(name, 2)));
        topics.push(
            NewTopic::new("configured", 3)
                .config("cleanup.policy", "compact")
                .config("retention.ms", "86400001")
                .config("max.message.bytes", "2000000")
                .config("min.insync.replicas", "1")
                .config("message.timestamp.type", "LogAppendTime"),
        );
        lab.create(&topics)?;
        let mut both = Both::start(lab)?;
        let mut expected: BTreeSet<&str> = named.into_iter().chain(["configured"]).collect();
        let first = both.wait_alike(lab, &expected)?;
        ensure!(first["configured"].configs.len() == 3, "configs of `configured`: {:?}", first["configured"]);
        lab.create(&[NewTopic::new("appeared", 4).config("retention.bytes", "1000000007")])?;
        lab.judge.grow_topic(&lab.source, "orders", 5)?;
        expected.insert("appeared");
        let grown = Deadline::after(STARTED).wait("the grown topic on both sides", || {
            let remote = both.wait_alike(lab, &expected)?;
            Ok((remote["orders"].partitions == 5).then_some(remote))
        })?;
        both.stop()?;
        let configs = grown.values().map(|remote| remote.configs.len() as u64).sum();
        Ok(Figures::default()
            .with("topics alike", grown.len() as u64)
            .with("configs alike", configs)
            .with("left out by both", left_out.len() as u64))
    })
}

/// Both replicators at once.
struct Both {
    mm2: MirrorMaker,
    twinlog: Twinlog,
}

impl Both {
    fn start(lab: &mut Lab) -> Result<Self> {
        let mm2 = MirrorMaker::run(&file(lab, MM2).write(lab.folder())?, &lab.folder().join("mm2.log"))?;
        let twinlog = lab.twinlog(&file(lab, TWINLOG), &[])?;
        Ok(Self { mm2, twinlog })
    }

    /// Waits until each has made exactly the expected topics, and what it made is alike.
    fn wait_alike(&mut self, lab: &mut Lab, expected: &BTreeSet<&str>) -> Result<BTreeMap<String, Remote>> {
        let mut last = String::new();
        let outcome = Deadline::after(STARTED).wait("topics alike", || {
            self.mm2.ensure_running()?;
            self.twinlog.ensure_running()?;
            let (java, twin) = (remote_topics(lab, MM2)?, remote_topics(lab, TWINLOG)?);
            last = format!("MM2 made {java:?}, twinlog made {twin:?}");
            let is_expected = java.keys().map(String::as_str).eq(expected.iter().copied());
            Ok((is_expected && java == twin).then_some(twin))
        });
        outcome.context(last)
    }

    fn stop(mut self) -> Result<()> {
        self.twinlog.stop()?;
        self.mm2.stop().map(drop)
    }
}

fn file(lab: &Lab, source_alias: &str) -> FlowFile {
    let mut file = FlowFile::plain((source_alias, &lab.source), ("dst", &lab.target), ".*")
        .with("refresh.topics.interval.seconds", "1");
    for of in ["", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic."] {
        file = file.with(&format!("{of}replication.factor"), "1");
    }
    for of in ["offset", "status", "config"] {
        file = file.with(&format!("{of}.storage.replication.factor"), "1");
    }
    file
}

/// What a replicator has made on the target, by names without its alias; MM2's own topics and heartbeats left out.
fn remote_topics(lab: &mut Lab, source_alias: &str) -> Result<BTreeMap<String, Remote>> {
    let prefix = format!("{source_alias}.");
    let mut remote = BTreeMap::new();
    for (topic, partitions) in lab.judge.topics(&lab.target)? {
        let Some(name) = topic.strip_prefix(prefix.as_str()) else { continue };
        if name == "heartbeats" || name == "checkpoints.internal" {
            continue;
        }
        let configs = lab.judge.configs(&lab.target, &topic)?;
        remote.insert(name.to_owned(), Remote { partitions, configs });
    }
    Ok(remote)
}
