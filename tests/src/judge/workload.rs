//! What the judge writes: bounded writes, transactions, live writers; and the latency that readers see.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Judge;
use crate::real::kafka::Cluster;

/// The producer's `compression.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// Not compressed.
    None,
    /// gzip.
    Gzip,
    /// snappy, in the framing of Kafka's Java client.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Codec {
    /// All of Kafka's.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// As configs and log dumps name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// Which records lack a key or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Nulls {
    /// None.
    None,
    /// Every third key and every seventh value is null.
    Some,
    /// All keys are null.
    Keys,
}

/// What values look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Random letters, which compress to about three quarters.
    Text,
    /// An event as services write them, which compresses to less than half; at least 202 bytes.
    Json,
}

/// A bounded write; every record carries its number in key and value.
#[derive(Clone, Debug, Serialize)]
pub struct WriteRecords {
    /// Where to.
    pub topic: String,
    /// The partitions `0..partitions`, round robin.
    pub partitions: u32,
    /// How many records.
    pub count: u32,
    /// Codec of all batches.
    pub codec: Codec,
    /// Number of the first record.
    pub first_id: u64,
    /// Size of each value in bytes.
    pub value_bytes: u32,
    /// Look of the values.
    pub shape: Shape,
    /// Missing keys and values.
    pub nulls: Nulls,
    /// Whether three of four records carry headers: a repeated key, an empty value, a null value.
    pub headers: bool,
    /// Timestamp of the first record in ms; `None`: the time of writing.
    pub timestamp_ms: Option<i64>,
    /// Distance of the timestamps that follow.
    pub timestamp_step_ms: i64,
    /// The producer's `linger.ms`.
    pub linger_ms: u32,
    /// The producer's `batch.size`.
    pub batch_bytes: u32,
    /// Whether batches carry a producer id.
    pub idempotent: bool,
}

impl WriteRecords {
    /// `count` records round robin over the partitions `0..partitions`, 100 bytes each, uncompressed.
    #[must_use]
    pub fn new(topic: &str, partitions: u32, count: u32) -> Self {
        Self {
            topic: topic.to_owned(),
            partitions,
            count,
            codec: Codec::None,
            first_id: 0,
            value_bytes: 100,
            shape: Shape::Text,
            nulls: Nulls::None,
            headers: false,
            timestamp_ms: None,
            timestamp_step_ms: 1,
            linger_ms: 5,
            batch_bytes: 16_384,
            idempotent: true,
        }
    }
}

/// Transactions over all partitions of a topic.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Transactions {
    /// How many.
    pub count: u32,
    /// Records in each.
    pub each: u32,
    /// Every how many-th one is aborted; 0: none.
    pub abort_every: u32,
}

/// What becomes of a transaction for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Its records count.
    Commit,
    /// Its records are void.
    Abort,
    /// It stays open, for the next order about it.
    Open,
}

/// A topic of a live writer.
#[derive(Clone, Debug, Serialize)]
pub struct LiveTopic {
    /// Its name.
    pub topic: String,
    /// Its partition count.
    pub partitions: u32,
    /// What its batches are compressed with.
    pub codec: Codec,
}

/// A writer in the background.
#[derive(Clone, Debug)]
pub struct LiveWriter {
    /// The name to stop it by.
    pub name: String,
    /// Where it writes, record after record to the next topic and partition.
    pub topics: Vec<LiveTopic>,
    /// Over all topics.
    pub records_per_second: u32,
    /// Size of each value in bytes.
    pub value_bytes: u32,
    /// Added to the time of writing; negative for old records.
    pub timestamp_shift_ms: i64,
}

/// Time from the writer's send to a reader of the mirrored topic, in microseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Latency {
    /// Records measured.
    pub records: u64,
    /// Median.
    pub p50_us: u64,
    /// 99 of 100 were quicker.
    pub p99_us: u64,
    /// The slowest.
    pub max_us: u64,
}

/// A record as text.
#[derive(Clone, Debug, Deserialize)]
pub struct TextRecord {
    /// Its offset.
    pub offset: i64,
    /// Its timestamp in ms.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<String>,
    /// Its value.
    pub value: Option<String>,
}

impl Judge {
    /// Writes records; all are acknowledged by all replicas in sync when this returns.
    ///
    /// # Errors
    /// The first record's error.
    pub fn write(&mut self, cluster: &Cluster, write: &WriteRecords) -> Result<()> {
        let mut command = serde_json::to_value(write)?;
        command["do"] = json!("write");
        command["bootstrap"] = json!(cluster.bootstrap());
        self.order(&command)
    }

    /// Writes transactions with the records of `write` (its count is not used).
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn write_transactions(
        &mut self,
        cluster: &Cluster,
        write: &WriteRecords,
        pattern: Transactions,
    ) -> Result<()> {
        let mut command = serde_json::to_value(write)?;
        command["do"] = json!("write_transactions");
        command["bootstrap"] = json!(cluster.bootstrap());
        command["count"] = json!(pattern.count);
        command["each"] = json!(pattern.each);
        command["abort_every"] = json!(pattern.abort_every);
        self.order(&command)
    }

    /// Goes on with a transaction, by its transactional id, or begins one.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn transact(&mut self, cluster: &Cluster, id: &str, write: &WriteRecords, end: End) -> Result<()> {
        let mut command = serde_json::to_value(write)?;
        command["do"] = json!("transact");
        command["bootstrap"] = json!(cluster.bootstrap());
        command["transactional_id"] = json!(id);
        command["end"] = json!(end);
        self.order(&command)
    }

    /// Starts a writer in the background, acks=all.
    ///
    /// # Errors
    /// When the producer cannot be made.
    pub fn start_live(&mut self, cluster: &Cluster, writer: &LiveWriter) -> Result<()> {
        self.order(&json!({
            "do": "live_start", "bootstrap": cluster.bootstrap(), "name": writer.name, "topics": writer.topics,
            "records_per_second": writer.records_per_second, "value_bytes": writer.value_bytes,
            "timestamp_shift_ms": writer.timestamp_shift_ms,
        }))
    }

    /// Stops a writer when everything it sent is acknowledged; the number of its records.
    ///
    /// # Errors
    /// The first record's error: it may or may not be in the log, so the run proves nothing.
    pub fn stop_live(&mut self, name: &str) -> Result<u64> {
        #[derive(Deserialize)]
        struct Answer {
            acked: u64,
        }
        Ok(self.call::<Answer>(&json!({"do": "live_stop", "name": name}))?.acked)
    }

    /// Starts to read `topics` from their ends and to measure how old a live writer's records are.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn start_latency(&mut self, cluster: &Cluster, name: &str, topics: &[&str]) -> Result<()> {
        let bootstrap = cluster.bootstrap();
        self.order(&json!({"do": "latency_start", "bootstrap": bootstrap, "name": name, "topics": topics}))
    }

    /// Ends a measurement.
    ///
    /// # Errors
    /// When not one record was read.
    pub fn stop_latency(&mut self, name: &str) -> Result<Latency> {
        self.call(&json!({"do": "latency_stop", "name": name}))
    }

    /// The first records of a partition.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn read(
        &mut self,
        cluster: &Cluster,
        topic: &str,
        partition: u32,
        limit: u32,
    ) -> Result<Vec<TextRecord>> {
        #[derive(Deserialize)]
        struct Answer {
            records: Vec<TextRecord>,
        }
        let command = json!({
            "do": "read", "bootstrap": cluster.bootstrap(), "topic": topic, "partition": partition, "limit": limit,
        });
        Ok(self.call::<Answer>(&command)?.records)
    }
}
