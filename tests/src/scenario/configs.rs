//! Topic configs while twinlog runs: they follow the source, what others set on the target stays, and a quiet flow is quiet.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};

use super::{Figures, Lab, LabSpec, Scenario};
use crate::{
    deadline::Deadline,
    judge::{NewTopic, TopicPair, WriteRecords},
    process::sleep_ms,
    proxy::Proxy,
    real::{Version, kafka::ClusterSpec},
    twinlog::{FlowFile, Twinlog},
};

const FOLLOWED: Duration = Duration::from_secs(30);
/// Quiet intervals of one second that are watched.
const QUIET: u64 = 20;
/// Requests that change topics: CreateTopics, AlterConfigs, CreatePartitions, IncrementalAlterConfigs.
const CHANGES: [i16; 4] = [19, 33, 37, 44];
/// The client id that makes topics on the target.
const ADMIN: &str = "src->dst|MirrorSourceConnector|replication-target-admin";
/// What a source's broker has in its file for every topic.
const IN_FILE_MS: &str = "7200000";

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![
        followed_while_running(),
        dropped_between_runs(),
        defaults_from_source(),
        refused_by_a_newer_target(),
        refused_without_a_name(),
        rights_missing(),
        quota_used_up(),
        factor_too_large(),
    ]
}

/// A source whose broker has a setting in its file, and a target behind a proxy that counts requests.
fn spec() -> LabSpec {
    let source = ClusterSpec::single(Version::V4_3_1).with("log.retention.ms", IN_FILE_MS);
    LabSpec { source, target: ClusterSpec::single(Version::V4_3_1).behind_proxy(), more: Vec::new() }
}

/// A flow that compares configs each second.
fn flow(lab: &Lab, topics: &str) -> FlowFile {
    lab.flow(topics).with("sync.topic.configs.interval.seconds", "1")
}

/// Waits until the settings of the target's topic itself are exactly these.
fn wait_configs(lab: &mut Lab, topic: &str, expected: &[(&str, &str)]) -> Result<()> {
    let expected: BTreeMap<String, String> =
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut last = BTreeMap::new();
    let outcome = Deadline::after(FOLLOWED).wait("configs on the target", || {
        if lab.target_has(topic)? {
            last = lab.judge.configs(&lab.target, topic)?;
        }
        Ok((last == expected).then_some(()))
    });
    outcome.with_context(|| format!("{topic} has {last:?}, not {expected:?}"))
}

fn changes(proxy: &Proxy) -> u64 {
    CHANGES.iter().map(|api_key| proxy.requests(*api_key)).sum()
}

/// No request that changes a topic goes by in [`QUIET`] intervals; gives how many asked for configs.
fn ensure_quiet(lab: &Lab) -> Result<u64> {
    const DESCRIBE_CONFIGS: i16 = 32;
    sleep_ms(2500); // the round that is under way ends
    let proxy = lab.target.proxy()?;
    let (before, asked) = (changes(proxy), proxy.requests(DESCRIBE_CONFIGS));
    sleep_ms(QUIET * 1000);
    let (after, asked) = (changes(proxy), proxy.requests(DESCRIBE_CONFIGS) - asked);
    ensure!(after == before, "{} requests changed topics in {QUIET} quiet intervals", after - before);
    ensure!(asked >= QUIET / 2, "only {asked} requests asked for configs in {QUIET} intervals");
    Ok(asked)
}

fn lines(twinlog: &Twinlog, parts: &[&str]) -> Result<usize> {
    let log = twinlog.log()?;
    Ok(log.lines().filter(|line| parts.iter().all(|part| line.contains(part))).count())
}

/// Settings come and go at the source; somebody else's on the target stay; two instances and twenty quiet intervals.
#[must_use]
pub fn followed_while_running() -> Scenario {
    Scenario::shared("topic configs follow the source while twinlog runs", spec(), |lab, _| {
        let (hand, compact, moving) = ("follow.hand", "follow.compact", "follow.moving");
        lab.create(&[
            NewTopic::new(hand, 1),
            NewTopic::new(compact, 1).config("cleanup.policy", "compact"),
            NewTopic::new(moving, 2).config("retention.bytes", "1000").config("delete.retention.ms", "1000"),
        ])?;
        let by_hand = [("min.insync.replicas", "1"), ("retention.ms", "3600000")];
        let made =
            NewTopic::new(hand, 1).config(by_hand[0].0, by_hand[0].1).config(by_hand[1].0, by_hand[1].1);
        lab.judge.create_topics(&lab.target, &[made])?;
        let file =
            flow(lab, "follow\\..*").with("config.properties.exclude", "delete\\.retention\\..*, min.*");
        let mut twinlog = lab.twinlog(&file, &[])?;
        let mut rival = lab.twinlog(&file, &[])?;
        wait_configs(lab, compact, &[("cleanup.policy", "compact")])?;
        wait_configs(lab, moving, &[("retention.bytes", "1000")])?;
        // Excluded and not excluded, changed by hand on the target.
        let changed = [("delete.retention.ms", "2000"), ("retention.bytes", "5")];
        lab.judge.alter_configs(&lab.target, moving, &changed, &[])?;
        wait_configs(lab, moving, &[("delete.retention.ms", "2000"), ("retention.bytes", "1000")])?;
        // Another value, a new one, one removed that falls back to Kafka's default, one to the broker's file.
        let set = [("retention.ms", "300000"), ("segment.bytes", "10485760")];
        lab.judge.alter_configs(&lab.source, moving, &set, &["retention.bytes"])?;
        let followed = [set[0], set[1], ("delete.retention.ms", "2000")];
        wait_configs(lab, moving, &followed)?;
        let other = [("retention.ms", "400000")];
        lab.judge.alter_configs(&lab.source, moving, &other, &["segment.bytes"])?;
        wait_configs(lab, moving, &[other[0], followed[2]])?;
        lab.judge.alter_configs(&lab.source, moving, &[], &["retention.ms"])?;
        wait_configs(lab, moving, &[followed[2]])?;
        let asked = ensure_quiet(lab)?;
        wait_configs(lab, hand, &by_hand)?;
        // What was taken away and is set again by somebody is his.
        lab.judge.alter_configs(&lab.target, moving, &other, &[])?;
        sleep_ms(5000);
        wait_configs(lab, moving, &[other[0], followed[2]])?;
        twinlog.stop()?;
        rival.stop()?;
        twinlog.ensure_quiet(&["replication factor"])?;
        rival.ensure_quiet(&["replication factor"])?;
        Ok(Figures::default()
            .with("quiet intervals", QUIET)
            .with("requests in them that asked", asked)
            .with("requests in them that changed", 0)
            .with("requests that changed in all", changes(lab.target.proxy()?)))
    })
}

/// What a topic was created with goes when the source drops it, also in a later run after kill -9; an excluded setting is
/// neither copied at creation nor later, and nothing is where the sync is switched off.
#[must_use]
pub fn dropped_between_runs() -> Scenario {
    Scenario::shared("configs dropped or excluded or not synced", spec(), |lab, _| {
        let (kept, dropped) = ("drop.kept", "drop.dropped");
        for topic in [kept, dropped] {
            let topic =
                NewTopic::new(topic, 1).config("retention.bytes", "1000").config("retention.ms", "300000");
            lab.create(&[topic])?;
        }
        let exclude = "follower.*, leader.*, min.*, message.timestamp.*, unclean.*, retention.ms";
        let file = flow(lab, "drop\\..*").with("config.properties.exclude", exclude);
        let mut first = lab.twinlog(&file, &[])?;
        wait_configs(lab, kept, &[("retention.bytes", "1000")])?;
        wait_configs(lab, dropped, &[("retention.bytes", "1000")])?;
        first.kill()?;
        lab.judge.alter_configs(&lab.source, dropped, &[("retention.ms", "400000")], &["retention.bytes"])?;
        let mut second = lab.twinlog(&file, &[])?;
        wait_configs(lab, dropped, &[])?;
        wait_configs(lab, kept, &[("retention.bytes", "1000")])?;
        second.stop()?;
        let mut third = lab.twinlog(&file.with("sync.topic.configs.enabled", "false"), &[])?;
        lab.judge.alter_configs(&lab.source, kept, &[("retention.bytes", "2000")], &[])?;
        sleep_ms(5000);
        wait_configs(lab, kept, &[("retention.bytes", "1000")])?;
        third.stop()?;
        for run in [&second, &third] {
            run.ensure_quiet(&["replication factor"])?;
        }
        Ok(Figures::default())
    })
}

/// `use.defaults.from = source`: what the source has by default wins over what somebody set on the target, and what is
/// excluded does not.
#[must_use]
pub fn defaults_from_source() -> Scenario {
    Scenario::shared("use.defaults.from = source", spec(), |lab, _| {
        let topic = "default.orders";
        lab.create(&[NewTopic::new(topic, 1)])?;
        let file = flow(lab, "default\\..*")
            .with("use.defaults.from", "source")
            .with("config.properties.exclude", "delete\\.retention\\..*");
        let mut twinlog = lab.twinlog(&file, &[])?;
        let bytes = |lab: &mut Lab| -> Result<Option<String>> {
            let has = lab.target_has(topic)?;
            let configs = if has { lab.judge.configs(&lab.target, topic)? } else { BTreeMap::new() };
            Ok(configs.get("retention.bytes").cloned())
        };
        let wait_default = |lab: &mut Lab| {
            Deadline::after(FOLLOWED)
                .wait("the source's default", || Ok((bytes(lab)?.as_deref() == Some("-1")).then_some(())))
        };
        wait_default(lab)?;
        let changed = [("delete.retention.ms", "2000"), ("retention.bytes", "2000")];
        lab.judge.alter_configs(&lab.target, topic, &changed, &[])?;
        // A broker shows what was altered a little later; until then it looks as if it were put right already.
        Deadline::after(FOLLOWED).wait("what was altered", || {
            let configs = lab.judge.configs(&lab.target, topic)?;
            Ok(configs.get("delete.retention.ms").is_some_and(|ms| ms == "2000").then_some(()))
        })?;
        wait_default(lab)?;
        let configs = lab.judge.configs(&lab.target, topic)?;
        ensure!(configs.get("delete.retention.ms").is_some_and(|ms| ms == "2000"), "{configs:?}");
        ensure!(
            !configs.contains_key("retention.ms"),
            "what is in the source broker's file came along: {configs:?}"
        );
        ensure!(!configs.contains_key("remote.storage.enable"), "{configs:?}");
        let asked = ensure_quiet(lab)?;
        twinlog.stop()?;
        let told = lines(&twinlog, &["WARN", "no tiered storage"])?;
        ensure!(told == 1, "that the target has no tiered storage is told {told} times");
        twinlog.ensure_quiet(&["replication factor", "no tiered storage"])?;
        Ok(Figures::default()
            .with("configs", configs.len() as u64)
            .with("requests that asked in quiet intervals", asked))
    })
}

/// A config that the target's version no longer knows: left out at creation and afterwards, told once each, and records
/// flow.
#[must_use]
pub fn refused_by_a_newer_target() -> Scenario {
    let mut spec = LabSpec::singles(Version::V3_9_2, Version::V4_3_1);
    spec.target = spec.target.behind_proxy();
    Scenario::shared("3.9.2 -> 4.3.1: a config that the target does not know", spec, |lab, _| {
        const UNKNOWN: &str = "message.format.version";
        let (born, later) = ("unknown.born", "unknown.later");
        lab.create(&[
            NewTopic::new(born, 1).config(UNKNOWN, "3.0").config("retention.ms", "300000"),
            NewTopic::new(later, 1),
        ])?;
        lab.judge.write(&lab.source, &WriteRecords::new(born, 1, 100))?;
        let mut twinlog = lab.twinlog(&flow(lab, "unknown\\..*"), &[])?;
        wait_configs(lab, born, &[("retention.ms", "300000")])?;
        wait_configs(lab, later, &[])?;
        let set = [(UNKNOWN, "3.0"), ("retention.ms", "300000"), ("segment.bytes", "10485760")];
        lab.judge.alter_configs(&lab.source, later, &set, &[])?;
        wait_configs(lab, later, &set[1..])?;
        lab.wait_equal(&[TopicPair::same(born)], FOLLOWED)?;
        ensure_quiet(lab)?;
        twinlog.stop()?;
        for topic in [born, later] {
            let told = lines(&twinlog, &["WARN", topic, UNKNOWN, "3.0"])?;
            ensure!(told == 1, "{topic}: the config that is not taken is told {told} times");
        }
        twinlog.ensure_quiet(&["replication factor", UNKNOWN])?;
        Ok(Figures::default().with("records", 100))
    })
}

/// A target that refuses a config without saying which: found out, left out, told once, everything else is set.
#[must_use]
pub fn refused_without_a_name() -> Scenario {
    let mut spec = LabSpec::newest();
    spec.target = spec.target.managed().behind_proxy();
    Scenario::alone("a managed target that refuses a config without naming it", spec, |lab, _| {
        const KEPT: &str = "retention.bytes";
        let (orders, plain) = ("managed.orders", "managed.plain");
        lab.create(&[
            NewTopic::new(orders, 2)
                .config(KEPT, "1000")
                .config("cleanup.policy", "compact")
                .config("retention.ms", "300000"),
            NewTopic::new(plain, 1).config("retention.ms", "300000"),
        ])?;
        lab.judge.write(&lab.source, &WriteRecords::new(plain, 1, 100))?;
        let mut twinlog = lab.twinlog(&flow(lab, "managed\\..*"), &[])?;
        wait_configs(lab, orders, &[("cleanup.policy", "compact"), ("retention.ms", "300000")])?;
        wait_configs(lab, plain, &[("retention.ms", "300000")])?;
        let set = [(KEPT, "2000"), ("retention.ms", "400000"), ("segment.bytes", "10485760")];
        lab.judge.alter_configs(&lab.source, orders, &set, &[])?;
        lab.judge.alter_configs(&lab.source, plain, &set, &[])?;
        wait_configs(lab, orders, &[("cleanup.policy", "compact"), set[1], set[2]])?;
        wait_configs(lab, plain, &set[1..])?;
        lab.wait_equal(&[TopicPair::same(plain)], FOLLOWED)?;
        ensure_quiet(lab)?;
        twinlog.stop()?;
        for (topic, value, expected) in [(orders, "1000", 1), (orders, "2000", 1), (plain, "2000", 1)] {
            let told = lines(&twinlog, &["WARN", topic, KEPT, value])?;
            ensure!(told == expected, "{topic}: {KEPT}={value} is told {told} times");
        }
        twinlog.ensure_quiet(&["replication factor", KEPT])?;
        Ok(Figures::default().with("requests that changed in all", changes(lab.target.proxy()?)))
    })
}

/// No right to read a topic's configs at the source, none to change a mirror's: told once each, records flow, others are
/// synced.
#[must_use]
pub fn rights_missing() -> Scenario {
    let cluster = ClusterSpec::single(Version::V4_3_1)
        .with("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer")
        .with("allow.everyone.if.no.acl.found", "true");
    let spec = LabSpec { source: cluster.clone(), target: cluster, more: Vec::new() };
    Scenario::alone("rights to read or change topic configs missing", spec, |lab, _| {
        let (dark, fixed, open) = ("right.dark", "right.fixed", "right.open");
        let topics = [dark, fixed, open];
        lab.create(&topics.map(|topic| NewTopic::new(topic, 1).config("retention.ms", "300000")))?;
        for topic in topics {
            lab.judge.write(&lab.source, &WriteRecords::new(topic, 1, 100))?;
        }
        lab.judge.deny(&lab.source, dark, "DESCRIBE_CONFIGS")?;
        lab.judge.deny(&lab.target, fixed, "ALTER_CONFIGS")?;
        let mut twinlog = lab.twinlog(&flow(lab, "right\\..*"), &[])?;
        wait_configs(lab, open, &[("retention.ms", "300000")])?;
        lab.wait_equal(&topics.map(TopicPair::same), FOLLOWED)?;
        wait_configs(lab, dark, &[])?;
        for topic in [fixed, open] {
            lab.judge.alter_configs(&lab.source, topic, &[("retention.ms", "400000")], &[])?;
        }
        wait_configs(lab, open, &[("retention.ms", "400000")])?;
        sleep_ms(5000);
        wait_configs(lab, fixed, &[("retention.ms", "300000")])?;
        twinlog.stop()?;
        for right in ["DESCRIBE_CONFIGS", "ALTER_CONFIGS"] {
            let told = lines(&twinlog, &["WARN", right])?;
            ensure!(told == 1, "that {right} is missing is told {told} times");
        }
        twinlog.ensure_quiet(&["replication factor", "_CONFIGS missing"])?;
        Ok(Figures::default().with("records", 300))
    })
}

/// A target that limits how fast topics are made (KIP-599): all are made in the end.
#[must_use]
pub fn quota_used_up() -> Scenario {
    Scenario::alone("a quota for making topics", LabSpec::newest(), |lab, _| {
        let names: Vec<String> = (0..40).map(|number| format!("quota.{number}")).collect();
        lab.create(&names.iter().map(|name| NewTopic::new(name, 3)).collect::<Vec<_>>())?;
        lab.judge.write(&lab.source, &WriteRecords::new(&names[39], 3, 300))?;
        let servers = lab.target.bootstrap();
        lab.judge.quota(&servers, ADMIN, "controller_mutation_rate", Some(5))?;
        let twinlog = lab.catch_up(&lab.flow("quota\\..*"), Duration::from_secs(180))?;
        lab.judge.quota(&servers, ADMIN, "controller_mutation_rate", None)?;
        let told = lines(&twinlog, &["THROTTLING_QUOTA_EXCEEDED"])?;
        ensure!(told > 0, "the quota was never used up");
        twinlog.ensure_quiet(&["replication factor", "THROTTLING_QUOTA_EXCEEDED"])?;
        let topics: Vec<&str> = names.iter().map(String::as_str).collect();
        let records = lab.ensure_equal(&topics)?.records;
        Ok(Figures::default()
            .with("topics", 40)
            .with("records", records)
            .with("topics that had to wait", told as u64))
    })
}

/// A written factor that the target cannot give: one plain error for a topic that is to be made; one that is there goes on.
#[must_use]
pub fn factor_too_large() -> Scenario {
    Scenario::shared("a replication factor that the target cannot give", LabSpec::newest(), |lab, _| {
        let (there, missing) = ("factor.there", "factor.missing");
        lab.create(&[NewTopic::new(there, 1), NewTopic::new(missing, 1)])?;
        lab.judge.create_topics(&lab.target, &[NewTopic::new(there, 1)])?;
        lab.judge.write(&lab.source, &WriteRecords::new(there, 1, 100))?;
        let mut twinlog = lab.twinlog(&lab.flow("factor\\..*").with("replication.factor", "3"), &[])?;
        lab.wait_equal(&[TopicPair::same(there)], FOLLOWED)?;
        Deadline::after(FOLLOWED).wait("the error", || {
            let told = lines(&twinlog, &["ERROR", missing, "replication.factor = 3", "1 broker"])?;
            Ok((told == 1).then_some(()))
        })?;
        sleep_ms(3000);
        ensure!(lines(&twinlog, &["ERROR"])? == 1, "it is told again and again");
        ensure!(!lab.target_has(missing)?, "{missing} was made");
        twinlog.stop()?;
        Ok(Figures::default().with("records", 100))
    })
}
