//! Captures the logs of `tests/fixtures/batches/` that are from before Kafka 0.11: starts brokers that still write those
//! formats, lets Kafka's producer write eight records in each codec, and keeps the segment files as they lie on the disk.
//!
//! `cargo run -p twinlog-tests --example capture_old_formats -- FOLDER`

use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use twinlog_tests::{
    judge::{Codec, Judge, NewTopic, Nulls, WriteRecords},
    real::{
        Version, jars,
        kafka::{Cluster, ClusterSpec},
        log_dump,
    },
};

/// In 2023.
const THEN: i64 = 1_700_000_000_000;
const FORMATS: [(&str, &str); 2] = [("0.9.0", "magic0"), ("0.10.2", "magic1")];
const CODECS: [Codec; 4] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder] = &arguments[..] else { bail!("usage: capture_old_formats FOLDER") };
    for version in [Version::V2_8_2, Version::V2_4_1] {
        jars::fetch(version)?;
        let cluster = Cluster::start("source", &ClusterSpec::single(version))?;
        let mut judge = Judge::start()?;
        judge.ready(&cluster)?;
        let folder = Path::new(folder).join(version.to_string());
        fs::create_dir_all(&folder)?;
        for (format, magic) in FORMATS {
            let listings = CODECS.iter().map(|codec| {
                capture(
                    &mut judge,
                    &cluster,
                    format,
                    *codec,
                    &folder.join(format!("{magic}-{}.log", codec.name())),
                )
            });
            let mut listings = listings.collect::<Result<Vec<_>>>()?;
            listings.dedup();
            ensure!(listings.len() == 1, "the codecs hold different records: {listings:?}");
            fs::write(folder.join(format!("{magic}.tsv")), &listings[0])?;
        }
    }
    Ok(())
}

/// Keeps the segment in `file`; tells the records as Kafka's consumer reads them.
fn capture(judge: &mut Judge, cluster: &Cluster, format: &str, codec: Codec, file: &Path) -> Result<String> {
    let topic = format!("format-{format}-{}", codec.name());
    let new = NewTopic::new(&topic, 1).config("message.format.version", format).config("retention.ms", "-1");
    judge.create_topics(cluster, &[new])?;
    for first_id in [0, 4] {
        let write = WriteRecords {
            codec,
            first_id,
            idempotent: false,
            nulls: Nulls::Some,
            value_bytes: 40,
            timestamp_ms: Some(THEN + i64::try_from(first_id)?),
            ..WriteRecords::new(&topic, 1, 4)
        };
        judge.write(cluster, &write)?;
    }
    let records = judge.read(cluster, &topic, 0, 100)?;
    let segments = log_dump::segments(cluster, 1, &topic)?;
    let [(0, segment)] = &segments[..] else { bail!("{topic} has not one segment: {segments:?}") };
    fs::copy(segment, file).with_context(|| format!("copy {}", segment.display()))?;
    let lines = records.iter().map(|record| {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "null".to_owned());
        format!("{}\t{}\t{}\t{}\n", record.offset, record.timestamp, text(&record.key), text(&record.value))
    });
    Ok(lines.collect())
}
