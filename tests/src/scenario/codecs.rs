//! `compression.type`: batches of every codec arrive in another one, with every record as it was.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Figures, Lab, LabSpec, Scenario, batches::ensure_one_producer, merging::write_single};
use crate::{
    judge::{Codec, NewTopic, Nulls, WriteRecords},
    real::log_dump,
};

const CATCH_UP: Duration = Duration::from_secs(180);

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![into_one_codec(Codec::Zstd), into_one_codec(Codec::None)]
}

/// A topic of each codec, and one of small batches in every codec, under one `compression.type`; twinlog is killed once.
#[must_use]
pub fn into_one_codec(codec: Codec) -> Scenario {
    let name = format!("batches of every codec, compression.type={}", codec.name());
    Scenario::shared(name, LabSpec::newest(), move |lab, _| {
        let name = codec.name();
        let small = format!("into.{name}.small");
        let of = |own: Codec| format!("into.{name}.{}", own.name());
        let mut topics: Vec<String> = Codec::ALL.into_iter().map(of).collect();
        topics.push(small.clone());
        lab.create(&topics.iter().map(|topic| NewTopic::new(topic, 2)).collect::<Vec<_>>())?;
        for own in Codec::ALL {
            let topic = of(own);
            let write = WriteRecords {
                codec: own,
                headers: true,
                nulls: Nulls::Some,
                ..WriteRecords::new(&topic, 2, 2_000)
            };
            lab.judge.write(&lab.source, &write)?;
        }
        write_single(lab, &small, 2, 400)?;
        let flow = lab.flow(&format!("into\\.{name}\\..*")).with("compression.type", name);
        let mut killed = lab.twinlog(&flow, &[])?;
        lab.wait_for_copy(&small, 1, CATCH_UP)?;
        killed.kill()?;
        let log = lab.catch_up(&flow, CATCH_UP)?.log()?;
        ensure!(log.contains("unpacked and packed anew"), "what it costs is not told: {log}");
        let names: Vec<&str> = topics.iter().map(String::as_str).collect();
        let records = lab.ensure_equal(&names)?.records;
        ensure!(records == 5 * 2_000 + 5 * 400, "{records} records arrived");
        let mut batches = 0;
        for topic in names {
            batches += ensure_codec(lab, topic, codec)?;
        }
        Ok(Figures::default().with("records", records).with("batches", batches))
    })
}

/// All batches of the target have this codec, dense sequences, and one producer id in each partition. Tells how many there
/// are.
pub(super) fn ensure_codec(lab: &Lab, topic: &str, codec: Codec) -> Result<u64> {
    let mut count = 0;
    for (partition, batches) in log_dump::dump_topic(&lab.target, 1, topic)? {
        let other = batches.iter().find(|batch| batch.codec != codec.name());
        ensure!(other.is_none(), "{topic}-{partition}: {other:?}");
        ensure_one_producer(topic, partition, &batches)?;
        count += u64::try_from(batches.len())?;
    }
    Ok(count)
}
