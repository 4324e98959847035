//! Batches of one record each arrive in far fewer, with every record as it was.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Figures, Lab, LabSpec, Scale, Scenario, batches::ensure_whole_batches};
use crate::judge::{Codec, NewTopic, Nulls, WriteRecords};

const CATCH_UP: Duration = Duration::from_secs(180);

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![single_records(), small_limit()]
}

/// Batches of one record, written with every codec into one topic; twinlog is killed once on the way.
#[must_use]
pub fn single_records() -> Scenario {
    Scenario::shared("single-record batches of every codec, kill -9 once", LabSpec::newest(), |lab, scale| {
        let topic = "merging.single";
        let each = if scale.kills < 20 { 4_000 } else { 24_000 };
        lab.create(&[NewTopic::new(topic, 2)])?;
        write_single(lab, topic, 2, each)?;
        let flow = lab.flow(topic);
        let mut killed = lab.twinlog(&flow, &[])?;
        lab.wait_for_copy(topic, 1, Duration::from_secs(60))?;
        killed.kill()?;
        let before = lab.copied(topic)?;
        lab.catch_up(&flow, CATCH_UP)?;
        let verdict = lab.ensure_equal(&[topic])?;
        ensure!(verdict.records == 5 * u64::from(each), "{} records arrived", verdict.records);
        let batches = ensure_whole_batches(lab, topic)?;
        ensure!(batches.source > verdict.records / 2, "{batches:?} for {} records", verdict.records);
        ensure!(batches.target * 10 < batches.source, "nearly as many batches as before: {batches:?}");
        Ok(Figures::default()
            .with("records", verdict.records)
            .with("batches at the source", batches.source)
            .with("batches", batches.target)
            .with("records before the kill", u64::try_from(before)?))
    })
}

/// A target that takes no batch above 2,000 bytes: merged ones become smaller until they pass.
#[must_use]
pub fn small_limit() -> Scenario {
    Scenario::shared(
        "single-record batches, max.message.bytes of 2,000",
        LabSpec::newest(),
        |lab, _: &Scale| {
            let topic = "merging.limit";
            lab.create(&[NewTopic::new(topic, 1).config("max.message.bytes", "2000")])?;
            write_single(lab, topic, 1, 1_000)?;
            let flow = lab.flow(topic);
            lab.catch_up(&flow, CATCH_UP)?;
            let verdict = lab.ensure_equal(&[topic])?;
            ensure!(verdict.records == 5_000, "{} records arrived", verdict.records);
            let batches = ensure_whole_batches(lab, topic)?;
            ensure!(batches.target * 2 < batches.source, "hardly anything was put together: {batches:?}");
            Ok(Figures::default().with("records", verdict.records).with("batches", batches.target))
        },
    )
}

/// So many records with each codec, nearly all in batches of their own.
pub(super) fn write_single(lab: &mut Lab, topic: &str, partitions: u32, each: u32) -> Result<()> {
    for (codec, number) in Codec::ALL.into_iter().zip(0..) {
        let write = WriteRecords {
            codec,
            first_id: number * u64::from(each),
            headers: true,
            nulls: Nulls::Some,
            linger_ms: 0,
            batch_bytes: 0,
            ..WriteRecords::new(topic, partitions, each)
        };
        lab.judge.write(&lab.source, &write)?;
    }
    Ok(())
}
