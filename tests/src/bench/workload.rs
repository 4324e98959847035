//! What is copied: topics of a given size, written by Kafka's own producer at its default batch size and linger.

use anyhow::{Context, Result, ensure};

use crate::{
    judge::{Codec, Judge, NewTopic, Nulls, Shape, TopicPair, WriteRecords},
    real::kafka::Cluster,
};

/// Partitions of each topic.
const PARTITIONS: u32 = 4;

/// Records of one kind in one topic.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Topic on the source.
    pub topic: &'static str,
    /// For the table.
    pub title: &'static str,
    value_bytes: u32,
    shape: Shape,
    codec: Codec,
}

impl Workload {
    /// What the table shows.
    pub const ALL: [Self; 2] = [
        Self {
            topic: "plain",
            title: "1,000 B, not compressed",
            value_bytes: 1000,
            shape: Shape::Text,
            codec: Codec::None,
        },
        Self {
            topic: "json-lz4",
            title: "520 B of JSON, lz4",
            value_bytes: 520,
            shape: Shape::Json,
            codec: Codec::Lz4,
        },
    ];

    /// How many records have values of `gigabytes` · 10⁹ bytes together.
    ///
    /// # Errors
    /// When that is not a positive number of records that the judge can write in one go.
    pub fn records(&self, gigabytes: f64) -> Result<u32> {
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
        self.write_into(self.topic, judge, cluster, gigabytes)
    }

    fn write_into(&self, topic: &str, judge: &mut Judge, cluster: &Cluster, gigabytes: f64) -> Result<()> {
        let records = self.records(gigabytes)?;
        judge.create_topics(cluster, &[NewTopic::new(topic, PARTITIONS)])?;
        let write = WriteRecords {
            value_bytes: self.value_bytes,
            shape: self.shape,
            codec: self.codec,
            nulls: Nulls::Keys,
            ..WriteRecords::new(topic, PARTITIONS, records)
        };
        judge.write(cluster, &write).with_context(|| format!("write {records} records into {topic}"))
    }
}

/// Lets both clusters write and read a little of everything, so that the first race does not pay for cold brokers.
///
/// # Errors
/// What the clusters answered.
pub fn warm_up(judge: &mut Judge, clusters: [&Cluster; 2], gigabytes: f64) -> Result<()> {
    for workload in Workload::ALL {
        let topic = format!("warm-up-{}", workload.topic);
        for cluster in clusters {
            workload.write_into(&topic, judge, cluster, gigabytes)?;
            judge.compare(cluster, cluster, &[TopicPair::same(&topic)])?.ensure_equal()?;
            judge.delete_topic(cluster, &topic)?;
        }
    }
    Ok(())
}
