//! What is copied: topics of a given size, written by Kafka's own producer at its default batch size and linger.

use anyhow::{Context, Result, ensure};

use crate::{
    judge::{Codec, Judge, NewTopic, Nulls, Shape, TopicPair, WriteRecords},
    real::kafka::Cluster,
};

/// Records of one kind in one topic.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// What `--only` calls it, and its topic on the source.
    pub topic: &'static str,
    /// For the table.
    pub title: &'static str,
    /// Of the topic.
    pub partitions: u32,
    /// Of all batches on the source.
    pub codec: Codec,
    /// The flow's `compression.type`, where batches are not to keep their codec.
    pub compression_type: Option<Codec>,
    /// Whether what a process does when all is copied is measured, too.
    pub idles: bool,
    size: Size,
    value_bytes: u32,
    shape: Shape,
    batch_bytes: u32,
}

/// How many records.
#[derive(Clone, Copy, Debug)]
enum Size {
    /// As many as their values have the bytes that were asked for.
    ByBytes,
    /// Always so many.
    Records(u32),
}

impl Workload {
    /// What the table shows.
    pub const ALL: [Self; 7] = [
        Self {
            topic: "plain",
            title: "1,000 B, not compressed",
            value_bytes: 1000,
            shape: Shape::Text,
            ..Self::FOUR_PARTITIONS
        },
        Self {
            topic: "json-lz4",
            title: "520 B of JSON, lz4",
            value_bytes: 520,
            shape: Shape::Json,
            codec: Codec::Lz4,
            ..Self::FOUR_PARTITIONS
        },
        Self {
            topic: "single",
            title: "200 B, each a batch of its own",
            size: Size::Records(400_000),
            // Less than any record: each fills a batch.
            batch_bytes: 1,
            ..Self::FOUR_PARTITIONS
        },
        Self {
            topic: "wide",
            title: "200 B in 2,000 partitions",
            partitions: 2000,
            size: Size::Records(100_000),
            idles: true,
            ..Self::FOUR_PARTITIONS
        },
        Self {
            topic: "recode-lz4",
            title: "1,000 B of JSON, packed with lz4",
            compression_type: Some(Codec::Lz4),
            ..Self::RECODED
        },
        Self {
            topic: "recode-zstd",
            title: "1,000 B of JSON, packed with zstd",
            compression_type: Some(Codec::Zstd),
            ..Self::RECODED
        },
        Self {
            topic: "recode-gzip",
            title: "1,000 B of JSON, packed with gzip",
            compression_type: Some(Codec::Gzip),
            ..Self::RECODED
        },
    ];

    const RECODED: Self = Self { value_bytes: 1000, shape: Shape::Json, ..Self::FOUR_PARTITIONS };

    const FOUR_PARTITIONS: Self = Self {
        topic: "",
        title: "",
        partitions: 4,
        codec: Codec::None,
        compression_type: None,
        idles: false,
        size: Size::ByBytes,
        value_bytes: 200,
        shape: Shape::Text,
        batch_bytes: 16_384,
    };

    /// How many records. Where their number is not fixed, their values have `gigabytes` · 10⁹ bytes together.
    ///
    /// # Errors
    /// When that is not a positive number of records that the judge can write in one go.
    pub fn records(&self, gigabytes: f64) -> Result<u32> {
        if let Size::Records(records) = self.size {
            return Ok(records);
        }
        let records = gigabytes * 1e9 / f64::from(self.value_bytes);
        ensure!(
            (1.0..=f64::from(i32::MAX)).contains(&records),
            "{gigabytes} GB are {records:.0} records of {} bytes: not between 1 and {}",
            self.value_bytes,
            i32::MAX
        );
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "just checked")]
        Ok(records as u32)
    }

    /// Makes the topic on `cluster` and fills it.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn write(&self, judge: &mut Judge, cluster: &Cluster, gigabytes: f64) -> Result<()> {
        self.write_into(self.topic, judge, cluster, self.records(gigabytes)?)
    }

    fn write_into(&self, topic: &str, judge: &mut Judge, cluster: &Cluster, records: u32) -> Result<()> {
        judge.create_topics(cluster, &[NewTopic::new(topic, self.partitions)])?;
        let write = WriteRecords {
            value_bytes: self.value_bytes,
            shape: self.shape,
            codec: self.codec,
            nulls: Nulls::Keys,
            batch_bytes: self.batch_bytes,
            ..WriteRecords::new(topic, self.partitions, records)
        };
        judge.write(cluster, &write).with_context(|| format!("write {records} records into {topic}"))
    }
}

/// Lets both clusters write and read a little of everything, so that the first race does not pay for cold brokers.
///
/// # Errors
/// What the clusters answered.
pub fn warm_up(judge: &mut Judge, clusters: [&Cluster; 2], gigabytes: f64) -> Result<()> {
    let teaches =
        |workload: &&Workload| matches!(workload.size, Size::ByBytes) && workload.compression_type.is_none();
    for workload in Workload::ALL.iter().filter(teaches) {
        let topic = format!("warm-up-{}", workload.topic);
        for cluster in clusters {
            workload.write_into(&topic, judge, cluster, workload.records(gigabytes)?)?;
            judge.compare(cluster, cluster, &[TopicPair::same(&topic)])?.ensure_equal()?;
            judge.delete_topic(cluster, &topic)?;
        }
    }
    Ok(())
}
