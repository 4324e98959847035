//! The batches of a partition as the broker's own dump tool reads them from the log files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::Stdio,
};

use anyhow::{Context, Result, bail, ensure};
use twinlog_protocol::batch::{BatchView, Entry, batches};

use super::{Version, jars, kafka::Cluster};

/// One batch header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedBatch {
    /// Offset of its first record.
    pub base_offset: i64,
    /// Offset of its last record.
    pub last_offset: i64,
    /// Number of records.
    pub count: i64,
    /// Codec name in lower case.
    pub codec: String,
    /// -1 without one.
    pub producer_id: i64,
    /// Producer epoch.
    pub producer_epoch: i64,
    /// First sequence, -1 without one.
    pub base_sequence: i64,
    /// Whether the transactional bit is set.
    pub transactional: bool,
    /// Whether it is a control batch.
    pub control: bool,
    /// Whole size in bytes.
    pub size: i64,
    /// Whether its checksum holds.
    pub valid: bool,
}

/// Dumps the log of one partition as broker `id` has it.
///
/// # Errors
/// When the broker has no such partition, or the tool fails.
pub fn dump(cluster: &Cluster, id: u16, topic: &str, partition: u32) -> Result<Vec<DumpedBatch>> {
    let mut all = dump_topic(cluster, id, topic)?;
    all.remove(&partition).with_context(|| format!("broker {id} has no {topic}-{partition}"))
}

/// Dumps all partitions of a topic that broker `id` has: one run of the tool.
///
/// # Errors
/// When the broker has none, or the tool fails.
pub fn dump_topic(cluster: &Cluster, id: u16, topic: &str) -> Result<BTreeMap<u32, Vec<DumpedBatch>>> {
    let files = segments(cluster, id, topic)?;
    ensure!(!files.is_empty(), "broker {id} has no segment of {topic}");
    let version = cluster.spec().version;
    let class = match version {
        Version::V4_3_1 => "org.apache.kafka.tools.DumpLogSegments",
        _ => "kafka.tools.DumpLogSegments",
    };
    let list: Vec<String> = files.iter().map(|(_, file)| file.display().to_string()).collect();
    let mut tool = jars::java(512);
    tool.arg("-cp").arg(jars::class_path(version)?).arg(class).arg("--files").arg(list.join(","));
    let run = tool.stdin(Stdio::null()).output().context("run DumpLogSegments")?;
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    ensure!(run.status.success(), "DumpLogSegments: {said}{}", String::from_utf8_lossy(&run.stderr));
    parse(&said, &files)
}

/// The message formats that a topic's log holds, as broker `id` has it.
///
/// # Errors
/// When a file cannot be read, or is no log.
pub fn magics(cluster: &Cluster, id: u16, topic: &str) -> Result<BTreeSet<i8>> {
    let mut magics = BTreeSet::new();
    for (_, file) in segments(cluster, id, topic)? {
        for entry in batches(fs::read(&file)?.into()) {
            magics.insert(match entry.with_context(|| file.display().to_string())? {
                Entry::Batch(_) => 2,
                Entry::Legacy { magic, .. } => magic,
            });
        }
    }
    Ok(magics)
}

/// The batches of a topic as they lie in the log files of broker `id`, each with its partition: what our own reading of them
/// says. The broker may be cleaning them: then a file may go away, or a batch be there twice.
///
/// # Errors
/// When a file cannot be read, or holds something other than batches of magic 2.
pub fn views(cluster: &Cluster, id: u16, topic: &str) -> Result<Vec<(u32, BatchView)>> {
    let mut views = Vec::new();
    for (partition, file) in segments(cluster, id, topic)? {
        for entry in batches(fs::read(&file)?.into()) {
            match entry.with_context(|| file.display().to_string())? {
                Entry::Batch(view) => views.push((partition, view)),
                Entry::Legacy { magic, .. } => bail!("{} holds magic {magic}", file.display()),
            }
        }
    }
    Ok(views)
}

/// The segment files of a topic in offset order, each with its partition.
///
/// # Errors
/// When the broker's folder cannot be read.
pub fn segments(cluster: &Cluster, id: u16, topic: &str) -> Result<Vec<(u32, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(cluster.data(id)?)? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((of, partition)) = name.rsplit_once('-') else { continue };
        let Ok(partition) = partition.parse::<u32>() else { continue };
        if of != topic {
            continue;
        }
        for file in fs::read_dir(&folder)? {
            let file = file?.path();
            if file.extension().is_some_and(|extension| extension == "log") {
                files.push((partition, file));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn parse(said: &str, files: &[(u32, PathBuf)]) -> Result<BTreeMap<u32, Vec<DumpedBatch>>> {
    let mut batches: BTreeMap<u32, Vec<DumpedBatch>> = files.iter().map(|(p, _)| (*p, Vec::new())).collect();
    let mut partition = None;
    for line in said.lines() {
        if let Some(path) = line.strip_prefix("Dumping ") {
            partition = files.iter().find(|(_, file)| file.as_os_str() == path.trim()).map(|(p, _)| *p);
        } else if line.starts_with("baseOffset:") {
            let all = partition.and_then(|p| batches.get_mut(&p)).context("a batch before any file name")?;
            all.push(parse_batch(line).with_context(|| format!("cannot read {line:?}"))?);
        }
    }
    Ok(batches)
}

/// Reads `name: value name: value ...`.
fn parse_batch(line: &str) -> Option<DumpedBatch> {
    let mut fields = BTreeMap::new();
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        if let Some(name) = word.strip_suffix(':') {
            fields.insert(name.to_lowercase(), words.next()?);
        }
    }
    let number = |name: &str| fields.get(name)?.parse().ok();
    let flag = |name: &str| fields.get(name).map(|value| *value == "true");
    Some(DumpedBatch {
        base_offset: number("baseoffset")?,
        last_offset: number("lastoffset")?,
        count: number("count")?,
        codec: fields.get("compresscodec")?.to_lowercase(),
        producer_id: number("producerid")?,
        producer_epoch: number("producerepoch")?,
        base_sequence: number("basesequence")?,
        transactional: flag("istransactional")?,
        control: flag("iscontrol")?,
        size: number("size")?,
        valid: flag("isvalid")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_of_the_tool() {
        let line = "baseOffset: 4 lastOffset: 9 count: 6 baseSequence: 4 lastSequence: 9 producerId: 1000 \
                    producerEpoch: 3 partitionLeaderEpoch: 0 isTransactional: false isControl: false \
                    deleteHorizonMs: OptionalLong.empty position: 70 CreateTime: 1 size: 812 magic: 2 \
                    compresscodec: GZIP crc: 1 isvalid: true";
        let batch = parse_batch(line).unwrap();
        assert_eq!((batch.base_offset, batch.last_offset, batch.count, batch.size), (4, 9, 6, 812));
        assert_eq!((batch.producer_id, batch.producer_epoch, batch.base_sequence), (1000, 3, 4));
        assert_eq!(
            (batch.codec.as_str(), batch.transactional, batch.control, batch.valid),
            ("gzip", false, false, true)
        );
    }
}
