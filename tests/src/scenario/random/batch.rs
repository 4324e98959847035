//! Batches at random, with whatever a broker takes: null and empty fields, repeated headers, any time, every codec.

use anyhow::Result;
use bytes::Bytes;
use twinlog_protocol::{
    batch::{BatchView, Compression, ProducerStamp},
    record::{BatchBuilder, Header},
};

/// How far into the future times go; brokers take an hour.
pub(super) const FUTURE_MS: i64 = 30 * 60_000;
/// The time of a record that has none.
const NO_TIME: i64 = -1;
const KEY_BYTES_MAX: usize = 40;
const HEADERS_MAX: usize = 5;
/// Few, so that they repeat within a record; the last one is not ASCII.
const HEADER_KEYS: [&str; 4] = ["", "trace", "content-type", "größe"];
/// What compresses.
const TEXT: &[u8] =
    br#"{"kind":"order","state":"confirmed","currency":"EUR","note":"left with the neighbour"}"#;

/// What the batches of a topic are like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Records of a batch, from and to.
    pub(super) records: (i32, i32),
    /// Bytes of a value at most; most have far fewer.
    pub(super) value_bytes_max: usize,
    /// How many keys there are, all of them written again and again; 0: keys of any bytes, or none.
    pub(super) keys: usize,
    /// How many batches in a row have the same codec, on the average.
    pub(super) codec_run: u32,
}

/// A batch that is to be sent, and the keys that it has.
pub(super) struct Made {
    pub(super) batch: BatchView,
    pub(super) keys: Vec<Bytes>,
}

/// Makes batches of one shape.
pub(super) struct Maker {
    shape: Shape,
    random: fastrand::Rng,
    now_ms: i64,
    codec: Compression,
}

/// How the times of a batch follow on one another.
#[derive(Clone, Copy)]
enum Times {
    Same(i64),
    Rising(i64),
    Any,
    None,
}

impl Maker {
    pub(super) fn new(shape: Shape, mut random: fastrand::Rng, now_ms: i64) -> Self {
        let codec = Compression::ALL[random.usize(..Compression::ALL.len())];
        Self { shape, random, now_ms, codec }
    }

    /// The next batch. `stamp` tells who sends it, given the number of records, where it has a producer at all.
    pub(super) fn make(&mut self, stamp: impl FnOnce(i32) -> ProducerStamp) -> Result<Made> {
        if self.random.u32(..self.shape.codec_run) == 0 {
            self.codec = Compression::ALL[self.random.usize(..Compression::ALL.len())];
        }
        let records = self.random.i32(self.shape.records.0..=self.shape.records.1);
        let mut builder = BatchBuilder::new().compression(self.codec);
        if self.random.bool() {
            builder = builder.producer(stamp(records));
        }
        let times = self.times();
        let mut keys = Vec::new();
        for number in 0..records {
            let (time, key) = (self.time(times, number), self.key());
            keys.extend(key.clone());
            let (value, headers) = (self.value(), self.headers());
            builder.push(time, key, value, headers)?;
        }
        Ok(Made { batch: builder.build()?, keys })
    }

    fn times(&mut self) -> Times {
        let time = self.random.i64(0..self.now_ms + FUTURE_MS / 2);
        match self.random.u8(0..8) {
            0 => Times::None,
            1 | 2 => Times::Same(time),
            3..=5 => Times::Rising(time),
            _ => Times::Any,
        }
    }

    fn time(&mut self, times: Times, number: i32) -> i64 {
        match times {
            Times::Same(time) => time,
            Times::Rising(time) => time + 1000 * i64::from(number),
            Times::Any if self.random.u8(..16) > 0 => self.random.i64(0..=self.now_ms + FUTURE_MS),
            Times::Any | Times::None => NO_TIME,
        }
    }

    fn key(&mut self) -> Option<Bytes> {
        if self.shape.keys > 0 {
            return Some(format!("key-{}", self.random.usize(..self.shape.keys)).into());
        }
        match self.random.u8(..8) {
            0 => None,
            1 => Some(Bytes::new()),
            _ => Some(self.bytes(KEY_BYTES_MAX)),
        }
    }

    fn value(&mut self) -> Option<Bytes> {
        match self.random.u8(..10) {
            0 => None,
            1 => Some(Bytes::new()),
            2..=5 => Some(self.bytes(self.shape.value_bytes_max)),
            _ => {
                let length = self.length(self.shape.value_bytes_max);
                Some(TEXT.iter().copied().cycle().take(length).collect())
            }
        }
    }

    fn headers(&mut self) -> Vec<Header> {
        let count = if self.random.bool() { 0 } else { self.random.usize(1..=HEADERS_MAX) };
        let header = |_| {
            let key = HEADER_KEYS[self.random.usize(..HEADER_KEYS.len())];
            let value = match self.random.u8(..4) {
                0 => None,
                1 => Some(Bytes::new()),
                _ => Some(self.bytes(KEY_BYTES_MAX)),
            };
            Header { key: Bytes::from_static(key.as_bytes()), value }
        };
        (0..count).map(header).collect()
    }

    fn bytes(&mut self, max: usize) -> Bytes {
        let length = self.length(max);
        let mut bytes = vec![0; length];
        self.random.fill(&mut bytes);
        bytes.into()
    }

    /// Short ones more often.
    fn length(&mut self, max: usize) -> usize {
        let longest = self.random.usize(1..=max);
        self.random.usize(..=longest)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use twinlog_protocol::record::{Record, records};

    use super::*;

    fn made(seed: u64, count: usize) -> Vec<BatchView> {
        let shape = Shape { records: (1, 20), value_bytes_max: 300, keys: 0, codec_run: 2 };
        let mut maker = Maker::new(shape, fastrand::Rng::with_seed(seed), 1_700_000_000_000);
        (0..count).map(|_| maker.make(|_| ProducerStamp::NOBODY).unwrap().batch).collect()
    }

    #[test]
    fn a_seed_gives_the_same_batches_again() {
        let bytes = |seed| made(seed, 20).iter().map(|batch| batch.bytes().clone()).collect::<Vec<_>>();
        assert_eq!(bytes(3), bytes(3));
        assert_ne!(bytes(3), bytes(4));
    }

    #[test]
    fn everything_that_is_rare_comes_up() {
        let batches = made(5, 200);
        let codecs: BTreeSet<i16> =
            batches.iter().map(|batch| batch.header().attributes.compression().unwrap().id()).collect();
        assert_eq!(codecs.len(), 5);
        let all: Vec<Record> = batches
            .iter()
            .flat_map(|batch| records(batch, 1 << 20).unwrap().map(|record| record.unwrap()))
            .collect();
        let is_empty = |bytes: &Option<Bytes>| bytes.as_ref().is_some_and(Bytes::is_empty);
        let repeats = |record: &Record| {
            let keys: BTreeSet<&Bytes> = record.headers.iter().map(|header| &header.key).collect();
            keys.len() < record.headers.len()
        };
        assert!(all.iter().any(|record| record.key.is_none() && record.value.is_none()));
        assert!(
            all.iter().any(|record| is_empty(&record.key))
                && all.iter().any(|record| is_empty(&record.value))
        );
        assert!(all.iter().any(repeats));
        assert!(all.iter().any(|record| record.headers.iter().any(|header| header.value.is_none())));
        assert!(batches.iter().any(|batch| batch.header().max_timestamp == NO_TIME));
    }
}
