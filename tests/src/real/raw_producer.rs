//! Batches of our own making, produced to a single broker as they are: what no client of Kafka would write.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use twinlog_protocol::{
    ErrorCode,
    batch::{BatchView, Forwarded, HEADER_BYTES, ProducerStamp, sequence_after},
    produce::{ProducePartition, ProduceResponse, produce_frame},
    versions::Api,
};

use super::kafka::Cluster;
use crate::bench::relay::{
    route::{new_producer_id, topic},
    wire::Wire,
};

const ACKS_ALL: i16 = -1;
const TIMEOUT_MS: i32 = 30_000;

/// A connection to the only broker of a cluster, for batches of one topic. It knows Kafka 4.3.1 only.
pub struct RawProducer {
    wire: Wire,
    topic: Arc<str>,
    topic_id: u128,
    producer_id: i64,
    /// The sequence that follows, of each partition.
    sequences: BTreeMap<i32, i32>,
}

impl RawProducer {
    /// Connects with a producer id of its own.
    ///
    /// # Errors
    /// When the broker does not answer, or has no such topic.
    pub fn connect(cluster: &Cluster, name: &str) -> Result<Self> {
        let address = cluster.bootstrap();
        let mut wire = Wire::connect(&address)?;
        let topic_id = topic(&mut wire, name)?.with_context(|| format!("no topic {name}"))?.id;
        let producer_id = new_producer_id(&address)?;
        Ok(Self { wire, topic: name.into(), topic_id, producer_id, sequences: BTreeMap::new() })
    }

    /// Who sends the next batch of a partition, if it has so many records; it must be sent.
    pub fn stamp(&mut self, partition: i32, records: i32) -> ProducerStamp {
        let next = self.sequences.entry(partition).or_default();
        let stamp = ProducerStamp { producer_id: self.producer_id, producer_epoch: 0, base_sequence: *next };
        *next = sequence_after(*next, records);
        stamp
    }

    /// Produces a batch, and waits until it is acknowledged.
    ///
    /// # Errors
    /// What the broker says against it.
    pub fn send(&mut self, partition: i32, batch: &BatchView) -> Result<()> {
        let head = batch.bytes()[..HEADER_BYTES].try_into()?;
        let batch = Forwarded { head, body: batch.body() };
        let one =
            [ProducePartition { topic: Arc::clone(&self.topic), topic_id: self.topic_id, partition, batch }];
        let frame = self.wire.frame(Api::Produce, |version, correlation_id, client_id| {
            produce_frame(version, correlation_id, client_id, ACKS_ALL, TIMEOUT_MS, &one)
        })?;
        self.wire.write(frame)?;
        let (version, body) = self.wire.answer(&mut Bytes::new())?;
        let answer = ProduceResponse::decode(version, body)?;
        let answer = answer.partitions.into_iter().next().context("no answer about the partition")?;
        if let Err(code) = ErrorCode::check(answer.error_code) {
            bail!("{}-{partition}: {code}: {}", self.topic, answer.error_message.unwrap_or_default());
        }
        Ok(())
    }
}
