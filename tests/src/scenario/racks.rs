//! `client.rack`: records come from the replica that stands beside us, as long as it is there.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Figures, Lab, LabSpec, LiveLoad, Scenario};
use crate::{
    deadline::Deadline,
    judge::{NewTopic, WriteRecords},
    process::sleep_ms,
    real::{Version, kafka::ClusterSpec},
};

const COPIED: Duration = Duration::from_secs(120);
/// The broker in whose rack the reader stands, and its place among all.
const NEAREST: u16 = 2;
const AMONG_ALL: usize = 1;
/// What lies behind at the start: the nearest replica leads none of it.
const BEHIND: &str = "racks.behind";
const RECORDS: u32 = 20_000;
const VALUE_BYTES: u32 = 1_000;

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![nearest_replica()]
}

/// With `client.rack` set, records come from the follower in that rack; when its broker is killed, from the leaders; and from
/// the follower again when it is back.
#[must_use]
pub fn nearest_replica() -> Scenario {
    let source = ClusterSpec::three(Version::V4_3_1)
        .with("broker.session.timeout.ms", "4000")
        .with("broker.heartbeat.interval.ms", "500")
        .behind_tally()
        .in_racks();
    let lab = LabSpec::pair(source, ClusterSpec::single(Version::V4_3_1));
    Scenario::alone("client.rack names a follower, which is killed and comes back", lab, |lab, scale| {
        let placed = NewTopic::placed(BEHIND, vec![vec![1, NEAREST, 3], vec![3, NEAREST, 1]]);
        lab.create(&[placed])?;
        lab.judge.write(
            &lab.source,
            &WriteRecords { value_bytes: VALUE_BYTES, ..WriteRecords::new(BEHIND, 2, RECORDS) },
        )?;
        let flow = lab.flow("racks\\..*").with("src.consumer.client.rack", &format!("rack-{NEAREST}"));
        let mut twinlog = lab.twinlog(&flow, &[])?;
        lab.wait_for_copy(BEHIND, RECORDS.into(), COPIED)?;
        let (near, far) = split(&lab.source.tally()?.sent());
        let all = u64::from(RECORDS * VALUE_BYTES);
        ensure!(near >= all && far < all / 10, "{near} bytes from the follower, {far} from the leaders");

        let load = LiveLoad::new("racks");
        load.start(lab)?;
        let topic = load.topics()[0];
        lab.wait_for_copy(topic, 2_000, COPIED)?;
        let (live_near, live_far) = shares(lab, scale.seconds * 300)?;
        ensure!(live_near > 3 * live_far, "{live_near} live bytes from the follower, {live_far} from others");
        lab.source.kill(NEAREST)?;
        goes_on(lab, topic)?;
        lab.source.restart(NEAREST)?;
        Deadline::after(COPIED).wait("fetching from the follower again", || {
            let (near, far) = shares(lab, 1_000)?;
            Ok((near > 3 * far).then_some(()))
        })?;
        goes_on(lab, topic)?;
        twinlog.stop()?;
        let (verdict, _) = load.finish(lab, scale)?;
        lab.ensure_equal(&[BEHIND])?;
        Ok(Figures::default()
            .with("live records", verdict.records)
            .with("bytes behind from the follower", near)
            .with("from the leaders", far)
            .with("live bytes from the follower", live_near)
            .with("live from others", live_far))
    })
}

/// Bytes that the nearest broker sent, and those of all others.
fn split(sent: &[u64]) -> (u64, u64) {
    let near = sent.get(AMONG_ALL).copied().unwrap_or(0);
    (near, sent.iter().sum::<u64>() - near)
}

/// The same within so long.
fn shares(lab: &Lab, ms: u64) -> Result<(u64, u64)> {
    let tally = lab.source.tally()?;
    let before = split(&tally.sent());
    sleep_ms(ms);
    let after = split(&tally.sent());
    Ok((after.0 - before.0, after.1 - before.1))
}

fn goes_on(lab: &mut Lab, topic: &str) -> Result<()> {
    let copied = lab.copied(topic)?;
    lab.wait_for_copy(topic, copied + 3_000, COPIED)
}
