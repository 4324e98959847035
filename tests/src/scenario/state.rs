//! The state topic disappears: the copy is recognised by its records, and nothing comes twice.

use std::time::Duration;

use anyhow::ensure;

use super::{Figures, Lab, LabSpec, LiveLoad, Scenario};
use crate::{
    judge::{NewTopic, WriteRecords},
    process::sleep_ms,
};

/// Where twinlog keeps what it must not forget.
pub(super) const STATE_TOPIC: &str = "mm2-twinlog.internal";

/// Records of a topic at a time.
const RECORDS: u32 = 1_000;

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![state_topic_deleted(), state_topic_that_forgets(), topic_copied_anew()]
}

/// The state topic is deleted between kill -9 and the next start, again and again, while records are written.
#[must_use]
pub fn state_topic_deleted() -> Scenario {
    Scenario::shared("the state topic deleted between two runs", LabSpec::newest(), |lab, scale| {
        let load = LiveLoad::new("forgotten");
        let mut random = scale.random();
        load.start(lab)?;
        let flow = lab.flow(&load.pattern());
        let mut copied = 0;
        for _ in 0..scale.rounds() {
            let mut twinlog = lab.twinlog(&flow, &[])?;
            for topic in load.topics() {
                lab.wait_for_copy(topic, copied + 1, Duration::from_secs(60))?;
            }
            sleep_ms(random.u64(50..2000));
            twinlog.kill()?;
            copied = lab.copied(load.topics()[0])?;
            lab.judge.delete_topic(&lab.target, STATE_TOPIC)?;
        }
        let (verdict, acked) = load.finish(lab, scale)?;
        let figures = Figures::default().with("records", verdict.records).with("acknowledged", acked);
        Ok(figures.with("deletions", u64::from(scale.rounds())))
    })
}

/// A state topic whose records the cluster would delete is refused before anything is copied.
#[must_use]
pub fn state_topic_that_forgets() -> Scenario {
    Scenario::shared("a state topic that forgets is refused", LabSpec::newest(), |lab, _| {
        let topic = "kept.orders";
        lab.create(&[NewTopic::new(topic, 1)])?;
        if lab.target_has(STATE_TOPIC)? {
            lab.judge.delete_topic(&lab.target, STATE_TOPIC)?;
        }
        let forgets = NewTopic::new(STATE_TOPIC, 1).config("cleanup.policy", "delete");
        lab.judge.create_topics(&lab.target, &[forgets])?;
        let twinlog = lab.end_with(64, &lab.flow("kept\\..*"), Duration::from_secs(60))?;
        let log = twinlog.log()?;
        ensure!(log.contains("set cleanup.policy=compact"), "no remedy is told:\n{log}");
        ensure!(!lab.target_has(topic)?, "{topic} was made");
        lab.judge.delete_topic(&lab.target, STATE_TOPIC)?;
        Ok(Figures::default())
    })
}

/// What README says of a held topic: with its copy and the state topic deleted it is copied anew, and the others go on.
#[must_use]
pub fn topic_copied_anew() -> Scenario {
    Scenario::shared("a topic that is held is copied anew", LabSpec::newest(), |lab, _| {
        let (changed, other) = ("anew.changed", "anew.other");
        let flow = lab.flow("anew\\..*").with("on.loss", "hold");
        let exits_with = |lab: &mut Lab, code| {
            let twinlog = lab.end_with(code, &flow, Duration::from_secs(60))?;
            twinlog.log()
        };
        let records = |topic, first_id| WriteRecords { first_id, ..WriteRecords::new(topic, 2, RECORDS) };
        lab.create(&[NewTopic::new(changed, 2), NewTopic::new(other, 2)])?;
        for topic in [changed, other] {
            lab.judge.write(&lab.source, &records(topic, 0))?;
        }
        exits_with(lab, 0)?;
        lab.judge.delete_topic(&lab.source, changed)?;
        lab.create(&[NewTopic::new(changed, 2)])?;
        for topic in [changed, other] {
            lab.judge.write(&lab.source, &records(topic, 10_000))?;
        }
        let log = exits_with(lab, 1)?;
        ensure!(log.contains("was deleted and made again"), "it is not said why {changed} is held:\n{log}");
        lab.ensure_equal(&[other])?;
        for topic in [changed, STATE_TOPIC] {
            lab.judge.delete_topic(&lab.target, topic)?;
        }
        exits_with(lab, 0)?;
        let verdict = lab.ensure_equal(&[changed, other])?;
        Ok(Figures::default().with("records", verdict.records))
    })
}
