//! Topics of one made-up broker: how long each partition is, who wrote it last, and what is kept of it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

use anyhow::Result;
use bytes::Bytes;
use twinlog_protocol::{batch::BatchHeader, record::BatchBuilder};

use super::{Stock, sessions::Sessions};

/// What the source gives out: the same batch at any offset. Base offsets are outside the CRC.
#[derive(Clone, Debug)]
pub(super) struct Supply {
    batch: Bytes,
    records_per_batch: i64,
}

impl Supply {
    pub(super) fn new(stock: &Stock) -> Result<Self> {
        let mut builder = BatchBuilder::new();
        for number in 0..stock.records_per_batch.max(1) {
            let value: String =
                std::iter::repeat_with(fastrand::alphanumeric).take(stock.value_bytes).collect();
            builder.push(1_700_000_000_000 + i64::from(number), None, Some(value.into()), Vec::new())?;
        }
        let batch = builder.build()?;
        Ok(Self { records_per_batch: i64::from(batch.header().record_count), batch: batch.bytes().clone() })
    }

    /// Everything of a batch behind its base offset.
    pub(super) fn behind_offset(&self) -> Bytes {
        self.batch.slice(8..)
    }

    pub(super) fn batch_bytes(&self) -> usize {
        self.batch.len()
    }

    pub(super) fn records_per_batch(&self) -> i64 {
        self.records_per_batch
    }
}

/// A topic.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) id: u128,
    pub(super) partitions: Vec<Mutex<Partition>>,
}

/// A partition.
#[derive(Debug, Default)]
pub(super) struct Partition {
    pub(super) log_end: i64,
    /// By producer id.
    pub(super) producers: BTreeMap<i64, Producer>,
    /// The whole batches of an internal topic, with their base offsets set.
    pub(super) kept: Vec<(BatchHeader, Bytes)>,
}

/// What a partition knows of a producer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Producer {
    pub(super) epoch: i16,
    pub(super) last_sequence: i32,
    pub(super) last_timestamp: i64,
}

impl Topic {
    /// An empty one.
    pub(super) fn new(name: &str, partitions: usize) -> Self {
        let partitions = (0..partitions).map(|_| Mutex::default()).collect();
        Self { name: name.to_owned(), id: fastrand::u128(1..), partitions }
    }

    /// One with the source's batches.
    pub(super) fn supplied(name: &str, stock: &Stock, records_per_batch: i64) -> Self {
        let topic = Self::new(name, stock.partitions as usize);
        for partition in &topic.partitions {
            lock(partition).log_end = i64::from(stock.batches) * records_per_batch;
        }
        topic
    }

    pub(super) fn is_internal(&self) -> bool {
        self.name.ends_with(".internal")
    }

    pub(super) fn partition(&self, number: i32) -> Option<MutexGuard<'_, Partition>> {
        Some(lock(self.partitions.get(usize::try_from(number).ok()?)?))
    }
}

impl Partition {
    /// Appends a batch; its base offset.
    pub(super) fn append(&mut self, header: &BatchHeader) -> i64 {
        let base_offset = self.log_end;
        self.log_end += i64::from(header.record_count);
        let producer = Producer {
            epoch: header.producer_epoch,
            last_sequence: header.last_sequence(),
            last_timestamp: header.max_timestamp,
        };
        self.producers.insert(header.producer_id, producer);
        base_offset
    }
}

/// One cluster of one broker, whose node id is 1.
#[derive(Debug)]
pub(super) struct Broker {
    pub(super) cluster_id: String,
    pub(super) port: u16,
    pub(super) supply: Option<Supply>,
    topics: Mutex<Vec<Arc<Topic>>>,
    sessions: Mutex<Sessions>,
    taken_bytes: AtomicU64,
    next_producer_id: AtomicI64,
}

impl Broker {
    pub(super) fn new(cluster_id: &str, port: u16, supply: Option<Supply>) -> Self {
        Self {
            cluster_id: cluster_id.to_owned(),
            port,
            supply,
            topics: Mutex::default(),
            sessions: Mutex::default(),
            taken_bytes: AtomicU64::new(0),
            next_producer_id: AtomicI64::new(1000),
        }
    }

    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn add(&self, topic: Topic) -> Arc<Topic> {
        let topic = Arc::new(topic);
        lock(&self.topics).push(Arc::clone(&topic));
        topic
    }

    /// Of Fetch.
    pub(super) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        lock(&self.sessions)
    }

    pub(super) fn topics(&self) -> Vec<Arc<Topic>> {
        lock(&self.topics).clone()
    }

    pub(super) fn by_name(&self, name: &str) -> Option<Arc<Topic>> {
        lock(&self.topics).iter().find(|topic| topic.name == name).cloned()
    }

    pub(super) fn by_id(&self, id: u128) -> Option<Arc<Topic>> {
        lock(&self.topics).iter().find(|topic| topic.id == id).cloned()
    }

    pub(super) fn new_producer_id(&self) -> i64 {
        self.next_producer_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn note_taken(&self, bytes: u64) {
        self.taken_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn taken_bytes(&self) -> u64 {
        self.taken_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn log_ends(&self, topic: &str) -> Vec<i64> {
        let ends = |topic: Arc<Topic>| topic.partitions.iter().map(|of| lock(of).log_end).collect();
        self.by_name(topic).map(ends).unwrap_or_default()
    }

    pub(super) fn stock_bytes(&self) -> u64 {
        let Some(supply) = &self.supply else { return 0 };
        let records: i64 = self.topics().iter().flat_map(|topic| self.log_ends(&topic.name)).sum();
        (records / supply.records_per_batch()).unsigned_abs() * supply.batch_bytes() as u64
    }
}

/// No step under these locks can leave the data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
