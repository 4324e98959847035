//! Quotas by client id (field report B45): the flow that is meant keeps to the rate, without a timeout or a repeat, and
//! the flow beside it is not slowed.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Figures, Lab, LabSpec, Scenario};
use crate::{
    deadline::{Deadline, now},
    judge::{NewTopic, TopicPair, WriteRecords},
    real::kafka::Cluster,
    twinlog::FlowFile,
};

/// Bytes per second.
const RATE: u32 = 200_000;
const RECORDS: u32 = 20_000;
const VALUE_BYTES: u32 = 1_000;
/// A broker counts over ten seconds, so that much may go at once: it is not part of the rate.
const BURST_RECORDS: i64 = 3_000;
/// The whole at that rate takes 100 s.
const COPIED: Duration = Duration::from_secs(200);
/// The other flow has no quota.
const COPIED_FREELY: Duration = Duration::from_secs(30);

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![producer_quota(), consumer_quota()]
}

/// A quota on the target for the id that `dst.producer.client.id` gives.
#[must_use]
pub fn producer_quota() -> Scenario {
    Scenario::shared("a quota of the producer at the target", LabSpec::newest().and_more(1), |lab, _| {
        let quota = Quota {
            topic: "quota.produced",
            client_id: "mirror-writer",
            key: "producer_byte_rate",
            setting: ("dst.producer.client.id", "mirror-writer"),
        };
        quota.check(lab, |lab| &lab.target)
    })
}

/// A quota at the source for the id of MM2's reader, with `src.consumer.client.id` before it.
#[must_use]
pub fn consumer_quota() -> Scenario {
    Scenario::shared("a quota of the consumer at the source", LabSpec::newest().and_more(1), |lab, _| {
        let quota = Quota {
            topic: "quota.fetched",
            client_id: "mirror-reader|src->dst|MirrorSourceConnector-0|replication-consumer",
            key: "consumer_byte_rate",
            setting: ("src.consumer.client.id", "mirror-reader"),
        };
        quota.check(lab, |lab| &lab.source)
    })
}

struct Quota {
    topic: &'static str,
    client_id: &'static str,
    key: &'static str,
    /// What gives the client id.
    setting: (&'static str, &'static str),
}

impl Quota {
    fn check(&self, lab: &mut Lab, at: impl Fn(&Lab) -> &Cluster) -> Result<Figures> {
        lab.create(&[NewTopic::new(self.topic, 4)])?;
        let records = WriteRecords { value_bytes: VALUE_BYTES, ..WriteRecords::new(self.topic, 4, RECORDS) };
        lab.judge.write(&lab.source, &records)?;
        self.set(lab, &at, Some(RATE))?;
        let file = FlowFile::clusters(&[
            ("src", lab.source.bootstrap()),
            ("dst", lab.target.bootstrap()),
            ("other", lab.more[0].bootstrap()),
        ]);
        let file = file.flow("src", "dst", self.topic).flow("src", "other", self.topic);
        let mut twinlog = lab.twinlog(&file.with(self.setting.0, self.setting.1), &[])?;
        let mirror = format!("src.{}", self.topic);
        let pairs = [TopicPair { source: self.topic.to_owned(), target: mirror.clone() }];
        Deadline::after(COPIED_FREELY).wait("the flow without a quota", || {
            let verdict = lab.judge.compare(&lab.source, &lab.more[0], &pairs)?;
            Ok(verdict.ensure_equal().ok())
        })?;
        let before = lab.copied(&mirror)?;
        ensure!(before < i64::from(RECORDS), "the flow with a quota was as fast");

        lab.wait_for_copy(&mirror, BURST_RECORDS, COPIED)?;
        let (from, begin) = (lab.copied(&mirror)?, now());
        lab.wait_for_copy(&mirror, RECORDS.into(), COPIED)?;
        let took_ms = u64::try_from(begin.elapsed().as_millis())?;
        let bytes = lab.target.log_bytes(1, &mirror)?;
        let rate = bytes * u64::try_from(i64::from(RECORDS) - from)? * 1000 / u64::from(RECORDS) / took_ms;

        twinlog.stop()?;
        self.set(lab, &at, None)?;
        twinlog.ensure_quiet(&["replication factor"])?;
        let log = twinlog.log()?;
        let is_told = |line: &str| line.contains("the broker throttles us") && line.contains(self.client_id);
        ensure!(log.lines().any(is_told), "the quota met nobody:\n{log}");
        for trouble in ["had no answer", "lining up after", "connection lost"] {
            ensure!(!log.contains(trouble), "`{trouble}` while throttled:\n{log}");
        }
        let verdict = lab.judge.compare(&lab.source, &lab.target, &pairs)?.ensure_equal()?;
        let (least, most) = (u64::from(RATE) * 9 / 10, u64::from(RATE) * 11 / 10);
        ensure!((least..=most).contains(&rate), "{rate} bytes per second, not about {RATE}");
        Ok(Figures::default().with("records", verdict.records).with("bytes per second", rate))
    }

    fn set(&self, lab: &mut Lab, at: impl Fn(&Lab) -> &Cluster, rate: Option<u32>) -> Result<()> {
        let servers = at(lab).bootstrap();
        lab.judge.quota(&servers, self.client_id, self.key, rate)
    }
}
