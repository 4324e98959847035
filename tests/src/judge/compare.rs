//! The verdict on a copy: both sides read whole, record by record.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Judge;
use crate::real::kafka::Cluster;

/// A source topic and its copy.
#[derive(Clone, Debug, Serialize)]
pub struct TopicPair {
    /// Name on the source.
    pub source: String,
    /// Name on the target.
    pub target: String,
}

impl TopicPair {
    /// The same name on both sides.
    #[must_use]
    pub fn same(name: &str) -> Self {
        Self { source: name.to_owned(), target: name.to_owned() }
    }
}

/// What the judge found. Control batches are no records.
#[derive(Clone, Debug, Deserialize)]
pub struct Verdict {
    /// Records that agreed in place, key, value, headers, timestamp and timestamp type, up to the first difference
    /// of each partition.
    pub records: u64,
    /// The first difference of each partition that differs, in words, with both offsets.
    pub differences: Vec<String>,
    /// Source records that are not on the target.
    pub lost: u64,
    /// Target records that are there once more than on the source.
    pub repeated: u64,
    /// Target records that no source record equals.
    pub foreign: u64,
    /// Target records that stand behind a later one.
    pub out_of_order: u64,
}

impl Verdict {
    /// # Errors
    /// The differences, when there are any.
    pub fn ensure_equal(self) -> Result<Self> {
        ensure!(
            self.differences.is_empty(),
            "the sides differ: {} lost, {} repeated, {} foreign, {} out of order ({} equal before)\n{}",
            self.lost,
            self.repeated,
            self.foreign,
            self.out_of_order,
            self.records,
            self.differences.join("\n")
        );
        Ok(self)
    }
}

impl Judge {
    /// Compares topics of two clusters.
    ///
    /// # Errors
    /// When a side cannot be read; differences are no error but part of the verdict.
    pub fn compare(&mut self, source: &Cluster, target: &Cluster, topics: &[TopicPair]) -> Result<Verdict> {
        self.compare_from(source, -1, target, topics)
    }

    /// As [`Judge::compare`], but the source is read as far as it is committed.
    ///
    /// # Errors
    /// As [`Judge::compare`].
    pub fn compare_committed(
        &mut self,
        source: &Cluster,
        target: &Cluster,
        topics: &[TopicPair],
    ) -> Result<Verdict> {
        let mut command = comparison(source, target, topics);
        command["source_isolation"] = json!("read_committed");
        self.call(&command)
    }

    /// As [`Judge::compare`], but source partitions are read from offset `from` on.
    ///
    /// # Errors
    /// As [`Judge::compare`].
    pub fn compare_from(
        &mut self,
        source: &Cluster,
        from: i64,
        target: &Cluster,
        topics: &[TopicPair],
    ) -> Result<Verdict> {
        let mut command = comparison(source, target, topics);
        command["source_from"] = json!(from);
        self.call(&command)
    }
}

/// What a reader of a compacted topic ends with.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Latest {
    /// Records that were read.
    pub records: u64,
    /// Keys whose last value is not null.
    pub keys: u64,
    /// Sum of the CRC-32C of each such key with its last value behind it.
    pub checksum: u64,
}

/// The last value of each key on both sides.
#[derive(Clone, Debug, Deserialize)]
pub struct LatestVerdict {
    /// On the source.
    pub source: Latest,
    /// On the target.
    pub target: Latest,
    /// Keys that do not have the same last value on both sides, in words: the first ten of each partition.
    pub differences: Vec<String>,
}

impl Judge {
    /// Compares what readers of a compacted topic end with: key by key, partition by partition.
    ///
    /// # Errors
    /// When a side cannot be read, or the sides have different numbers of partitions.
    pub fn compare_latest(
        &mut self,
        source: &Cluster,
        target: &Cluster,
        topics: &TopicPair,
    ) -> Result<LatestVerdict> {
        let (source, target) = (source.bootstrap(), target.bootstrap());
        self.call(&json!({"do": "compare_latest", "source": source, "target": target, "topics": topics}))
    }
}

fn comparison(source: &Cluster, target: &Cluster, topics: &[TopicPair]) -> Value {
    json!({"do": "compare", "source": source.bootstrap(), "target": target.bootstrap(), "topics": topics})
}
