//! Crashes, rivals and lost answers under live writing: nothing lost, nothing repeated, nothing out of order.

use std::time::Duration;

use anyhow::ensure;

use super::{Figures, LabSpec, LiveLoad, Scenario};
use crate::{
    deadline::Deadline,
    judge::{NewTopic, TopicPair, WriteRecords},
    process::sleep_ms,
    real::{Version, kafka::ClusterSpec},
    twinlog::{FlowFile, Twinlog},
};

/// Time in which a copy goes on once a cluster is back.
const BACK_AGAIN: Duration = Duration::from_secs(40);

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![
        twinlog_killed(),
        stopped_without_answers(),
        two_from_the_first_start(),
        answers_lost(),
        brokers_killed(),
        leaders_moved(),
        stopped_and_started(),
    ]
}

fn behind_proxy() -> LabSpec {
    let target = ClusterSpec::single(Version::V4_3_1).behind_proxy();
    LabSpec::pair(ClusterSpec::single(Version::V4_3_1), target)
}

/// kill -9 of twinlog at random moments of one copy, its start among them.
#[must_use]
pub fn twinlog_killed() -> Scenario {
    Scenario::shared("kill -9 of twinlog at random moments", LabSpec::newest(), |lab, scale| {
        let load = LiveLoad::new("killed");
        let mut random = scale.random();
        load.start(lab)?;
        let flow = lab.flow(&load.pattern());
        for kill in 0..scale.kills {
            let before = lab.copied(load.topics()[0])?;
            let mut twinlog = lab.twinlog(&flow, &[])?;
            if kill % 2 == 0 {
                lab.wait_for_copy(load.topics()[0], before + 1, Duration::from_secs(60))?; // in full flight
            }
            sleep_ms(random.u64(20..3000));
            twinlog.kill()?;
            twinlog.ensure_quiet(&["replication factor"])?;
        }
        let (verdict, acked) = load.finish(lab, scale)?;
        Ok(figures(verdict.records, acked).with("kills", u64::from(scale.kills)))
    })
}

/// Signals while the target answers no Produce request: the first one waits five seconds, a second one for nothing.
#[must_use]
pub fn stopped_without_answers() -> Scenario {
    Scenario::alone("signals while the target does not answer", behind_proxy(), |lab, scale| {
        let load = LiveLoad::new("signals");
        load.start(lab)?;
        let flow = lab.flow(&load.pattern());
        for twice in [false, true] {
            let before = lab.copied(load.topics()[0])?;
            let mut twinlog = lab.twinlog(&flow, &[])?;
            lab.wait_for_copy(load.topics()[0], before + 1, Duration::from_secs(60))?;
            lab.target.proxy()?.hold_produce_requests(true);
            sleep_ms(500); // all windows are full
            if twice {
                twinlog.stop_at_once()?;
            } else {
                twinlog.stop()?;
            }
            lab.target.proxy()?.hold_produce_requests(false);
        }
        let (verdict, acked) = load.finish(lab, scale)?;
        Ok(figures(verdict.records, acked))
    })
}

/// Two runs of the same file that start at the same moment, before anything of the flow exists on the target.
#[must_use]
pub fn two_from_the_first_start() -> Scenario {
    Scenario::alone(
        "two twinlogs with the same file from the first start",
        LabSpec::newest(),
        |lab, scale| {
            let load = LiveLoad::new("rivals");
            load.start(lab)?;
            let flow = lab.flow(&load.pattern());
            let mut rivals = [lab.twinlog(&flow, &[])?, lab.twinlog(&flow, &[])?];
            lab.wait_for_copy(load.topics()[0], 1, Duration::from_secs(60))?;
            let end = Deadline::after(Duration::from_secs(scale.seconds));
            while !end.passed() {
                sleep_ms(200);
                rivals.iter_mut().try_for_each(Twinlog::ensure_running)?;
            }
            rivals.iter_mut().try_for_each(Twinlog::stop)?;
            let (verdict, acked) = load.finish(lab, scale)?;
            Ok(figures(verdict.records, acked).with("seconds", scale.seconds))
        },
    )
}

/// A proxy before the target loses every tenth Produce answer together with its connection.
#[must_use]
pub fn answers_lost() -> Scenario {
    Scenario::alone("every tenth Produce answer lost", behind_proxy(), |lab, scale| {
        let load = LiveLoad::new("answers");
        load.start(lab)?;
        lab.target.proxy()?.drop_every_nth_produce_answer(10);
        let flow = lab.flow(&load.pattern());
        let mut twinlog = lab.twinlog(&flow, &[])?;
        lab.wait_for_copy(load.topics()[0], 1, Duration::from_secs(60))?;
        sleep_ms(scale.seconds * 1000);
        twinlog.stop()?;
        let dropped = lab.target.proxy()?.dropped_answers();
        ensure!(dropped >= 3, "only {dropped} answers were lost");
        lab.target.proxy()?.drop_every_nth_produce_answer(0);
        let (verdict, acked) = load.finish(lab, scale)?;
        Ok(figures(verdict.records, acked).with("answers lost", dropped))
    })
}

/// kill -9 of each broker of both clusters in turn, with time to come back in between.
#[must_use]
pub fn brokers_killed() -> Scenario {
    Scenario::shared("kill -9 of each broker in turn", LabSpec::threes(), |lab, scale| {
        let load = LiveLoad::new("brokers");
        let mut random = scale.random();
        load.start(lab)?;
        let flow = lab.flow(&load.pattern());
        let mut twinlog = lab.twinlog(&flow, &[])?;
        lab.wait_for_copy(load.topics()[0], 1, Duration::from_secs(60))?;
        let mut kills = 0;
        for _ in 0..scale.rounds() {
            for id in lab.source.ids() {
                for of_target in [false, true] {
                    let cluster = if of_target { &mut lab.target } else { &mut lab.source };
                    cluster.kill(id)?;
                    sleep_ms(random.u64(1000..8000));
                    cluster.restart(id)?;
                    lab.judge.settled(cluster)?;
                    twinlog.ensure_running()?;
                    kills += 1;
                }
            }
        }
        twinlog.stop()?;
        let (verdict, acked) = load.finish(lab, scale)?;
        Ok(figures(verdict.records, acked).with("kills", kills))
    })
}

/// Leaders of all topics moved every two seconds, on both sides.
#[must_use]
pub fn leaders_moved() -> Scenario {
    Scenario::shared("leaders moved every 2 s on both sides", LabSpec::threes(), |lab, scale| {
        let load = LiveLoad::new("leaders");
        load.start(lab)?;
        let flow = lab.flow(&load.pattern());
        let mut twinlog = lab.twinlog(&flow, &[])?;
        lab.wait_for_copy(load.topics()[1], 1, Duration::from_secs(60))?;
        let end = Deadline::after(Duration::from_secs(scale.seconds));
        let mut moved = 0;
        while !end.passed() {
            moved += lab.judge.move_leaders(&lab.source, &load.topics())?;
            moved += lab.judge.move_leaders(&lab.target, &load.topics())?;
            sleep_ms(2000);
            twinlog.ensure_running()?;
        }
        ensure!(moved >= 16, "only {moved} leaders moved");
        twinlog.stop()?;
        let (verdict, acked) = load.finish(lab, scale)?;
        Ok(figures(verdict.records, acked).with("leaders moved", moved))
    })
}

/// The only broker of each cluster stopped in order and started again; topics are looked for every ten minutes only.
#[must_use]
pub fn stopped_and_started() -> Scenario {
    Scenario::shared("both clusters stopped in order and started again", LabSpec::newest(), |lab, _| {
        let topic = "restarted.orders";
        lab.create(&[NewTopic::new(topic, 2)])?;
        lab.judge.write(&lab.source, &WriteRecords::new(topic, 2, 300))?;
        let flow =
            FlowFile::plain(("src", &lab.source), ("dst", &lab.target), "restarted\\..*").equal_names();
        let mut twinlog = lab.twinlog(&flow, &[])?;
        lab.wait_equal(&[TopicPair::same(topic)], BACK_AGAIN)?;
        for (of_target, first_id) in [(false, 300), (true, 600)] {
            let cluster = if of_target { &mut lab.target } else { &mut lab.source };
            for id in cluster.ids() {
                cluster.stop(id)?;
                sleep_ms(3000);
                cluster.restart(id)?;
            }
            lab.judge.settled(cluster)?;
            lab.judge.write(&lab.source, &WriteRecords { first_id, ..WriteRecords::new(topic, 2, 300) })?;
            lab.wait_equal(&[TopicPair::same(topic)], BACK_AGAIN)?;
        }
        let log = twinlog.log()?;
        for told in ["cluster not reached", "cluster reached after"] {
            ensure!(log.contains(told), "the log says nothing of it ({told:?}):\n{log}");
        }
        twinlog.stop()?;
        let records = lab.ensure_equal(&[topic])?.records;
        ensure!(records == 900, "{records} records arrived");
        Ok(Figures::default().with("records", records))
    })
}

fn figures(records: u64, acked: u64) -> Figures {
    Figures::default().with("records", records).with("acknowledged", acked)
}
