//! How each partition fares, as a program that embeds the engine sees it; and that nobody waits for those that are not well.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;
use twinlog_engine::{Engine, FlowHandle, PartitionState, PartitionStatus, config::MirrorConfig};

use super::{Figures, Lab, LabSpec, Scenario};
use crate::{
    deadline::Deadline,
    judge::{NewTopic, TopicPair, WriteRecords},
    process::sleep_ms,
    real::{Version, kafka::ClusterSpec},
    twinlog::FlowFile,
};

const SOON: Duration = Duration::from_secs(40);
/// Records pass beside those that are not well within this time: a busy machine takes some of it.
const AT_ONCE: Duration = Duration::from_secs(5);

const WELL: &str = "fares.well";
const LARGE: &str = "fares.large";
const FORBIDDEN: &str = "fares.forbidden";
const LONELY: &str = "fares.lonely";

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![of_each_partition()]
}

/// A record that the target does not take, a missing right, and a dead leader: each shows in the state of its partition, with
/// the reason and since when; the others are copied at once; what is put right goes on by itself, and what is not still is
/// after the end.
#[must_use]
pub fn of_each_partition() -> Scenario {
    let target = ClusterSpec::single(Version::V4_3_1)
        .with("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer")
        .with("allow.everyone.if.no.acl.found", "true");
    let spec = LabSpec { source: LabSpec::threes().source, target, more: Vec::new() };
    Scenario::alone("how each partition fares", spec, |lab, scale| {
        prepare(lab)?;
        lab.source.kill(3)?;
        let file = lab.flow("fares\\..*").with("sync.topic.configs.enabled", "false");
        let text = fs::read(file.write(lab.folder())?)?;
        let runtime = Runtime::new()?;
        let engine =
            runtime.block_on(Engine::builder(MirrorConfig::from_properties(&text)?).wait(SOON).start())?;
        let flow = engine.flow("src->dst")?;
        let seen = Seen { runtime: &runtime, flow: &flow };

        let large = seen.wait(LARGE, 0, "held: the target refuses the batch")?;
        let forbidden = seen.wait(FORBIDDEN, 0, "AUTHORIZATION")?;
        ensure!(matches!(forbidden.state, PartitionState::Held { .. }), "{forbidden:?}");
        let lonely = seen.wait(LONELY, 0, "waiting: it has no leader at the source")?;
        let well = [0, 1].map(|partition| seen.wait(WELL, partition, "caught up"));
        let [one, other] = well;
        let well = [one?, other?];
        ensure!(large.position == Some(10) && large.lag_records() == Some(1), "{large:?}");
        ensure!(well.iter().all(|status| status.lag_records() == Some(0)), "{well:?}");

        // Records pass beside them; in a minute both holds are tried again.
        let mut records = 10;
        let until = Deadline::after(Duration::from_secs(scale.seconds));
        while !until.passed() {
            write(lab, WELL, 2, records..records + 10)?;
            records += 10;
            lab.wait_for_copy(WELL, records.into(), AT_ONCE)?;
            for before in [&large, &forbidden, &lonely] {
                seen.ensure_same(before)?;
            }
            sleep_ms(200);
        }
        well.iter().try_for_each(|before| seen.ensure_same(before))?;

        lab.source.restart(3)?;
        lab.judge.alter_configs(&lab.target, LARGE, &[("max.message.bytes", "1000000")], &[])?;
        for (topic, before) in [(LONELY, &lonely), (LARGE, &large)] {
            let now = seen.wait(topic, 0, "caught up")?;
            ensure!(now.since > before.since && now.lag_records() == Some(0), "{before:?} became {now:?}");
        }
        runtime.block_on(engine.shutdown(Duration::from_secs(20)))?;
        seen.ensure_same(&forbidden)?;
        let states = seen.all();
        ensure!(states.iter().filter(|status| status.state.is_well()).count() == 4, "{states:?}");
        ensure_summary(lab, &file)?;
        let pairs = [WELL, LARGE, LONELY].map(TopicPair::same);
        let copied = lab.wait_equal(&pairs, SOON)?.records;
        Ok(Figures::default().with("records", copied).with("passed the others", records.into()))
    })
}

/// The program's last lines say the same of a run of its own.
fn ensure_summary(lab: &mut Lab, file: &FlowFile) -> Result<()> {
    let twinlog = lab.end_with(1, file, SOON)?;
    let log = twinlog.log()?;
    let has = |parts: &[&str]| log.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    let counts = ["stopped", "partitions=5", "copying=0", "caught_up=4", "waiting=0", "held=1"];
    ensure!(has(&counts), "no line has {counts:?}:\n{log}");
    let named = ["held for", FORBIDDEN, "partition=0", "AUTHORIZATION"];
    ensure!(has(&named), "no line has {named:?}:\n{log}");
    Ok(())
}

fn prepare(lab: &mut Lab) -> Result<()> {
    let source = [
        NewTopic::placed(WELL, vec![vec![1], vec![1]]),
        NewTopic::placed(LARGE, vec![vec![1]]),
        NewTopic::placed(FORBIDDEN, vec![vec![1]]),
        NewTopic::placed(LONELY, vec![vec![3]]),
    ];
    lab.create(&source)?;
    let strict = NewTopic::new(LARGE, 1).config("max.message.bytes", "2000");
    lab.judge.create_topics(&lab.target, &[strict, NewTopic::new(FORBIDDEN, 1)])?;
    lab.judge.deny(&lab.target, FORBIDDEN, "WRITE")?;
    for topic in [LARGE, FORBIDDEN, LONELY] {
        write(lab, topic, 1, 0..10)?;
    }
    write(lab, WELL, 2, 0..10)?;
    let large = WriteRecords { first_id: 10, value_bytes: 5000, ..WriteRecords::new(LARGE, 1, 1) };
    lab.judge.write(&lab.source, &large)
}

fn write(lab: &mut Lab, topic: &str, partitions: u32, ids: std::ops::Range<u32>) -> Result<()> {
    let records = WriteRecords::new(topic, partitions, ids.end - ids.start);
    lab.judge.write(&lab.source, &WriteRecords { first_id: ids.start.into(), ..records })
}

/// What a flow shows of its partitions.
struct Seen<'a> {
    runtime: &'a Runtime,
    flow: &'a FlowHandle,
}

impl Seen<'_> {
    fn all(&self) -> Vec<PartitionStatus> {
        self.runtime.block_on(self.flow.partitions())
    }

    fn one(&self, topic: &str, partition: i32) -> Option<PartitionStatus> {
        self.all().into_iter().find(|status| status.topic == topic && status.partition == partition)
    }

    /// Waits until the state of a partition has these words.
    fn wait(&self, topic: &str, partition: i32, words: &str) -> Result<PartitionStatus> {
        let mut last = None;
        let outcome = Deadline::after(SOON).wait(&format!("{topic}-{partition} to be `{words}`"), || {
            last = self.one(topic, partition);
            Ok(last.clone().filter(|status| status.state.to_string().contains(words)))
        });
        outcome.with_context(|| format!("the last state: {last:?}"))
    }

    /// The partition fares as before, and since the same moment.
    fn ensure_same(&self, before: &PartitionStatus) -> Result<()> {
        let (topic, partition) = (&before.topic, before.partition);
        let now = self.one(topic, partition).with_context(|| format!("{topic}-{partition} is gone"))?;
        let what = |status: &PartitionStatus| -> (PartitionState, SystemTime) {
            (status.state.clone(), status.since)
        };
        ensure!(what(&now) == what(before), "{before:?} became {now:?}");
        Ok(())
    }
}
