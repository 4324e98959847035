//! One thread of the relay: the next answer is on its way from the source while the last one goes to the target.

use std::{collections::HashMap, convert::Infallible};

use anyhow::{Context, Result, ensure};
use bytes::{Buf, Bytes};
use twinlog_protocol::{
    ErrorCode, TopicRef,
    batch::{BatchHeader, ProducerStamp, sequence_after},
    fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, fetch_frame},
    produce::{Gather, ProducePartition, ProduceResponse, produce_frame},
    versions::Api,
};

use super::{RelayConfig, route::Route, stamp::stamp, wire::Wire};

/// A source with nothing new is asked again after this long.
const MAX_WAIT_MS: i32 = 500;
/// All replicas in sync.
const ACKS_ALL: i16 = -1;
const PRODUCE_TIMEOUT_MS: i32 = 30_000;
/// Bytes of one partition in an answer, at least: room for a few batches.
const PARTITION_BYTES_MIN: i32 = 256 << 10;
/// Bytes of Produce frames that are handed to the system at once, and how many frames: their unread answers have to fit into
/// the buffers between the broker and us.
const WRITE_BYTES: usize = 512 << 10;
const WRITE_FRAMES: usize = 256;

/// Partitions of one pair of leaders, and the connections to both.
pub(super) struct Worker {
    source: Wire,
    target: Wire,
    topic: String,
    topic_ids: [u128; 2],
    producer_id: i64,
    fetch_bytes: i32,
    in_flight: usize,
    partitions: Vec<Partition>,
    /// Place in `partitions` by number.
    places: HashMap<i32, usize>,
}

/// How far a partition is read and written.
struct Partition {
    number: i32,
    fetch_offset: i64,
    sequence: i32,
    /// Batches of the last answer that are to be sent.
    waiting: std::vec::IntoIter<(BatchHeader, Bytes)>,
}

impl Worker {
    /// Connects to both leaders of a route.
    pub(super) fn open(config: &RelayConfig, route: &Route, producer_id: i64) -> Result<Self> {
        let partition = |number: &i32| Partition {
            number: *number,
            fetch_offset: 0,
            sequence: 0,
            waiting: Vec::new().into_iter(),
        };
        Ok(Self {
            source: Wire::connect(&route.source)?,
            target: Wire::connect(&route.target)?,
            topic: config.target_topic.clone(),
            topic_ids: route.topic_ids,
            producer_id,
            fetch_bytes: config.fetch_bytes,
            in_flight: config.in_flight,
            partitions: route.partitions.iter().map(partition).collect(),
            places: route.partitions.iter().zip(0..).map(|(number, place)| (*number, place)).collect(),
        })
    }

    /// Copies until something fails.
    pub(super) fn run(&mut self) -> Result<Infallible> {
        let (mut fetched, mut acknowledged) = (Bytes::new(), Bytes::new());
        self.ask()?;
        loop {
            let (version, body) = self.source.answer(&mut fetched)?;
            // Then the answers of all that was sent are waited for, or the errors of the last ones were never seen.
            let brought_nothing = !self.take(FetchResponse::decode(version, body)?)?;
            self.ask()?;
            loop {
                let (frames, count) = self.next_frames()?;
                self.target.write(frames)?;
                let limit = if brought_nothing { 0 } else { self.in_flight };
                while self.target.in_flight() > limit {
                    self.take_acknowledgement(&mut acknowledged)?;
                }
                if count == 0 {
                    break;
                }
            }
        }
    }

    /// Asks for what comes next in all partitions.
    fn ask(&mut self) -> Result<()> {
        // A part for each, so that a Produce request holds batches of many.
        let count = i32::try_from(self.partitions.len())?;
        let partition_max_bytes = (self.fetch_bytes / count).max(PARTITION_BYTES_MIN);
        let partitions = self.partitions.iter().map(|of| FetchPartition {
            partition: of.number,
            current_leader_epoch: -1,
            fetch_offset: of.fetch_offset,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes,
        });
        let topic =
            FetchTopic { name: String::new(), id: self.topic_ids[0], partitions: partitions.collect() };
        let request = FetchRequest::full(MAX_WAIT_MS, self.fetch_bytes, vec![topic]);
        let frame = self.source.frame(Api::Fetch, |version, correlation_id, client_id| {
            fetch_frame(version, correlation_id, client_id, &request)
        })?;
        self.source.write(frame)
    }

    /// Finds the batches of an answer, and tells whether there are any; what is asked for next begins behind them.
    fn take(&mut self, answer: FetchResponse) -> Result<bool> {
        ErrorCode::check(answer.error_code)?;
        let mut any = false;
        for part in answer.partitions {
            ErrorCode::check(part.error_code).with_context(|| format!("partition {}", part.partition))?;
            ensure!(part.topic == TopicRef::Id(self.topic_ids[0]), "a topic that nobody asked for");
            let place = self.places.get(&part.partition).context("a partition that nobody asked for")?;
            let of = &mut self.partitions[*place];
            let (mut rest, mut found) = (part.records, Vec::new());
            // The last batch may be cut off.
            while let Ok(header) = BatchHeader::parse(&rest)
                && header.total_bytes() <= rest.len()
            {
                found.push((header, rest.split_to(header.total_bytes())));
                of.fetch_offset = header.next_offset();
            }
            any |= !found.is_empty();
            of.waiting = found.into_iter();
        }
        Ok(any)
    }

    /// Produce requests with one batch of each partition that has one, as many as are written at once.
    fn next_frames(&mut self) -> Result<(Gather, usize)> {
        let (mut pieces, mut bytes, mut count) = (Vec::new(), 0, 0);
        while bytes < WRITE_BYTES && count < WRITE_FRAMES {
            let (topic_id, producer_id) = (self.topic_ids[1], self.producer_id);
            let next = self.partitions.iter_mut().filter_map(|of| of.next(topic_id, producer_id));
            let batches: Vec<ProducePartition> = next.collect();
            if batches.is_empty() {
                break;
            }
            let frame = self.target.frame(Api::Produce, |version, correlation_id, client_id| {
                produce_frame(version, correlation_id, client_id, ACKS_ALL, PRODUCE_TIMEOUT_MS, &batches)
            })?;
            bytes += frame.remaining();
            count += 1;
            pieces.extend(frame.pieces().cloned());
        }
        Ok((pieces.into_iter().collect(), count))
    }

    fn take_acknowledgement(&mut self, room: &mut Bytes) -> Result<()> {
        let (version, body) = self.target.answer(room)?;
        for partition in ProduceResponse::decode(version, body)?.partitions {
            ErrorCode::check(partition.error_code)
                .with_context(|| format!("{}-{}", self.topic, partition.partition))?;
        }
        Ok(())
    }
}

impl Partition {
    /// The next batch of the last answer, as it is sent.
    fn next(&mut self, topic_id: u128, producer_id: i64) -> Option<ProducePartition> {
        let (header, batch) = self.waiting.next()?;
        let numbers = ProducerStamp { producer_id, producer_epoch: 0, base_sequence: self.sequence };
        self.sequence = sequence_after(self.sequence, header.record_count);
        let (topic, partition) = ("".into(), self.number);
        Some(ProducePartition { topic, topic_id, partition, batch: stamp(header, &batch, numbers) })
    }
}
