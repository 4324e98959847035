//! What three-broker targets do to a copy: forget our state, roll back, lose a topic, wait for a slow replica.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Figures, Lab, LabSpec, LiveLoad, Scale, Scenario};
use crate::{
    deadline::Deadline,
    judge::{Codec, Latency, LiveTopic, LiveWriter, NewTopic},
    process::sleep_ms,
    twinlog::Twinlog,
};

/// Below this the machine's own noise decides, not the replicator.
const P99_NOISE_US: u64 = 20_000;

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![old_records_and_restarts(), leader_killed_during_line_up(), topic_made_again(), slow_replica()]
}

/// Review C1: records two days old leave producer state that every restart of a broker forgets.
#[must_use]
pub fn old_records_and_restarts() -> Scenario {
    let name = "records two days old while the target restarts broker by broker";
    Scenario::shared(name, LabSpec::three_at_target(), |lab, scale| {
        let load = LiveLoad::new("old").days_old(2);
        load.start(lab)?;
        let flow = lab.flow(&load.pattern());
        let mut twinlog = lab.twinlog(&flow, &[])?;
        lab.wait_for_copy(load.topics()[0], 1, Duration::from_secs(60))?;
        let rounds = scale.rounds().min(2);
        let mut restarts = 0;
        for _ in 0..rounds {
            for id in lab.target.ids() {
                lab.target.stop(id)?;
                lab.target.restart(id)?;
                lab.judge.settled(&lab.target)?;
                twinlog.ensure_running()?;
                restarts += 1;
            }
        }
        twinlog.stop()?;
        let (verdict, _) = load.finish(lab, scale)?;
        Ok(Figures::default().with("records", verdict.records).with("restarts", restarts))
    })
}

/// Review C3: what the leader shows during a line-up is not replicated, and is rolled back when the leader dies.
#[must_use]
pub fn leader_killed_during_line_up() -> Scenario {
    let name = "followers stopped, then the leader killed during a line-up";
    Scenario::shared(name, LabSpec::three_at_target(), |lab, scale| {
        let load = LiveLoad::new("rollback");
        let mut random = scale.random();
        load.start(lab)?;
        let flow = lab.flow(&load.pattern());
        let mut twinlog = lab.twinlog(&flow, &[])?;
        let mut copied = 0;
        for _ in 0..scale.rounds() {
            lab.wait_for_copy(load.topics()[0], copied + 1, Duration::from_secs(60))?;
            let leader = lab.judge.describe(&lab.target, load.topics()[0])?[0].leader;
            let leader = u16::try_from(leader).context("the partition has a leader")?;
            let followers: Vec<u16> = lab.target.ids().filter(|id| *id != leader).collect();
            followers.iter().try_for_each(|id| lab.target.pause(*id))?;
            sleep_ms(random.u64(200..1500)); // batches reach the leader alone
            twinlog.kill()?;
            twinlog = lab.twinlog(&flow, &[])?;
            sleep_ms(random.u64(1000..3500)); // it lines up with a leader whose log end is not replicated
            lab.target.kill(leader)?;
            followers.iter().try_for_each(|id| lab.target.resume(*id))?;
            sleep_ms(random.u64(0..12_000)); // with and without a new leader before the old one is back
            lab.target.restart(leader)?;
            lab.judge.settled(&lab.target)?;
            twinlog.ensure_running()?;
            copied =
                lab.judge.offsets(&lab.target, load.topics()[0])?.iter().map(|partition| partition.end).sum();
        }
        twinlog.stop()?;
        let (verdict, acked) = load.finish(lab, scale)?;
        let kills = u64::from(scale.rounds());
        Ok(Figures::default()
            .with("records", verdict.records)
            .with("acknowledged", acked)
            .with("kills", kills))
    })
}

/// Review C2: the topic is deleted and made again while a batch of ours is under way: it must not land in the new one,
/// and the partitions are held with the reason, while other topics go on.
#[must_use]
pub fn topic_made_again() -> Scenario {
    let mut spec = LabSpec::three_at_target();
    spec.target = spec.target.behind_proxy();
    Scenario::alone("target topic deleted and made again with a batch under way", spec, |lab, scale| {
        let load = LiveLoad::new("again");
        load.start(lab)?;
        let (victim, healthy) = (load.topics()[0], load.topics()[1]);
        let flow = lab.flow(&load.pattern());
        let mut twinlog = lab.twinlog(&flow, &[])?;
        lab.wait_for_copy(victim, 1000, Duration::from_secs(60))?;
        lab.target.proxy()?.hold_produce_requests(true);
        let limit = Deadline::after(Duration::from_secs(20));
        let held = limit.wait("Produce requests under way", || {
            let held = lab.target.proxy()?.held_requests();
            Ok((held > 0).then_some(held))
        })?;
        sleep_ms(500);
        lab.judge.delete_topic(&lab.target, victim)?;
        lab.judge.create_topics(&lab.target, &[NewTopic::new(victim, 4)])?;
        lab.target.proxy()?.hold_produce_requests(false);
        wait_until_held(&twinlog, victim)?;
        sleep_ms(scale.seconds * 200);
        twinlog.stop()?;
        lab.judge.stop_live("again")?;
        let last = lab.end_with(1, &flow, Duration::from_secs(120))?;
        wait_until_held(&last, victim)?;
        let records = lab.ensure_equal(&[healthy])?.records;
        let ends: Vec<i64> =
            lab.judge.offsets(&lab.target, victim)?.iter().map(|partition| partition.end).collect();
        ensure!(ends == [0; 4], "the new topic is not empty: log ends {ends:?}");
        Ok(Figures::default().with("records beside it", records).with("requests under way", held))
    })
}

fn wait_until_held(twinlog: &Twinlog, topic: &str) -> Result<()> {
    let limit = Deadline::after(Duration::from_secs(30));
    limit.wait(&format!("a log line that {topic} is held"), || {
        let log = twinlog.log()?;
        Ok(log.lines().any(|line| line.contains("held") && line.contains(topic)).then_some(()))
    })
}

/// Review H3: one partition's replica answers in fits and starts; partitions of the same leader must not wait for it.
#[must_use]
pub fn slow_replica() -> Scenario {
    let name = "a partition with a slow replica beside healthy ones";
    Scenario::alone(name, LabSpec::three_at_target(), |lab, scale| {
        let (slow, healthy) = ("replica.slow", "replica.healthy");
        lab.create(&[NewTopic::new(slow, 1), NewTopic::new(healthy, 4)])?;
        // One leader for all; the slow broker holds a replica of one topic only.
        let placed =
            [NewTopic::placed(slow, vec![vec![1, 3]]), NewTopic::placed(healthy, vec![vec![1, 2]; 4])];
        lab.judge.create_topics(&lab.target, &placed)?;
        let live =
            |topic: &str, partitions| LiveTopic { topic: topic.to_owned(), partitions, codec: Codec::None };
        let writer = LiveWriter {
            name: "replica".to_owned(),
            topics: vec![live(slow, 1), live(healthy, 4)],
            records_per_second: 400,
            value_bytes: 200,
            timestamp_shift_ms: 0,
        };
        lab.judge.start_live(&lab.source, &writer)?;
        let flow = lab.flow("replica\\..*");
        let mut twinlog = lab.twinlog(&flow, &[])?;
        lab.wait_for_copy(healthy, 1000, Duration::from_secs(60))?;
        let alone = measure(lab, scale, healthy, false)?;
        let beside = measure(lab, scale, healthy, true)?;
        lab.judge.settled(&lab.target)?;
        twinlog.stop()?;
        let acked = lab.judge.stop_live("replica")?;
        lab.catch_up(&flow, Duration::from_secs(120))?;
        let records = lab.ensure_equal(&[slow, healthy])?.records;
        ensure!(records == acked, "{acked} records were acknowledged, {records} arrived");
        let limit_us = (2 * alone.p99_us).max(P99_NOISE_US);
        ensure!(beside.p99_us <= limit_us, "p99 of the healthy ones: {beside:?} beside, {alone:?} alone");
        let figures = Figures::default().with("records", records);
        Ok(figures.with("us p99 alone", alone.p99_us).with("us p99 beside the slow one", beside.p99_us))
    })
}

/// Latency of a topic for some seconds, with broker 3 of the target standing still nine tenths of the time or not.
fn measure(lab: &mut Lab, scale: &Scale, topic: &str, slow: bool) -> Result<Latency> {
    lab.judge.start_latency(&lab.target, "healthy", &[topic])?;
    let end = Deadline::after(Duration::from_secs(scale.seconds));
    while !end.passed() {
        if slow {
            lab.target.pause(3)?;
        }
        sleep_ms(900);
        if slow {
            lab.target.resume(3)?;
        }
        sleep_ms(100);
    }
    lab.judge.stop_latency("healthy")
}
