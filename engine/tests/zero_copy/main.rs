//! Payloads go from the source's socket to the target's socket in the buffer in which they arrived: addresses are
//! compared, and allocations are counted.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod broker;
#[cfg(test)]
mod partitions;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use allocation_counter::measure;
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use twinlog_engine::io::connection::{Connection, ConnectionOptions, Expects, Frame};
use twinlog_engine::io::error::{CallError, Peer};
use twinlog_engine::machine::metadata::HostPort;
use twinlog_protocol::batch::{Forwarded, HEADER_BYTES};
use twinlog_protocol::fetch::{FetchPartition, FetchRequest, FetchTopic, fetch_frame};
use twinlog_protocol::produce::ProduceResponse;
use twinlog_protocol::versions::Api;

use self::answers::{FETCH_VERSION, FetchAnswer, PRODUCE_VERSION, Shape, TOPIC_ID};
use self::broker::Broker;
use self::partitions::{Partitions, Sending, TOPIC};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Our own bytes in a Produce frame of one batch, the 61 of its header among them.
const HEAD_BYTES_MAX: usize = HEADER_BYTES + 100;

const KB: usize = 1024;

/// From one small batch to an answer of 16 MB, which is the most that twinlog asks for.
const SHAPES: [Shape; 8] = [
    shape(1, 1, 16 * KB),
    shape(4, 4, 16 * KB),
    shape(1, 66, 16 * KB), // just above the length up to which an answer gets its room at once
    shape(4, 64, 16 * KB),
    shape(16, 64, 16 * KB),
    shape(4, 16, 64 * KB),
    shape(4, 4, 1024 * KB),
    shape(2, 1, 8 * 1024 * KB),
];

const fn shape(partitions: i32, batches_per_partition: i64, batch_bytes: usize) -> Shape {
    Shape { partitions, batches_per_partition, records_per_batch: 8, batch_bytes }
}

#[test]
fn every_payload_of_a_produce_frame_lies_in_the_fetch_answer() {
    for shape in SHAPES {
        let answer = FetchAnswer::new(shape);
        let body = Bytes::from(answer.body);
        let answer_range = body.as_ptr_range();
        let mut partitions = Partitions::copying(shape.partitions);
        partitions.take_fetched(body);
        let mut log_ends = vec![0; usize::try_from(shape.partitions).unwrap()];
        let (mut batches, mut payload_bytes) = (0, 0);
        while let Some(sending) = partitions.poll_sending() {
            let Sending { partition, ticket, ref batch } = sending;
            let (records, body_bytes) = (batch_records(batch), batch.body.len());
            let frame = sending.frame(1);
            let (theirs, ours): (Vec<&Bytes>, Vec<&Bytes>) = frame.pieces().partition(|piece| {
                let range = piece.as_ptr_range();
                answer_range.start <= range.start && range.end <= answer_range.end
            });
            assert_eq!(theirs.iter().map(|piece| piece.len()).sum::<usize>(), body_bytes);
            let ours: usize = ours.iter().map(|piece| piece.len()).sum();
            assert!(ours <= HEAD_BYTES_MAX, "{ours} bytes of the frame are not the source's");
            batches += 1;
            payload_bytes += body_bytes as u64;
            partitions.take_acknowledged(partition, ticket, log_ends[partition]);
            log_ends[partition] += records;
        }
        assert_eq!(
            batches,
            u64::try_from(i64::from(shape.partitions) * shape.batches_per_partition).unwrap()
        );
        assert_eq!(payload_bytes + batches * HEADER_BYTES as u64, answer.records_bytes, "{shape:?}");
    }
}

fn batch_records(batch: &Forwarded) -> i64 {
    let last_offset_delta: [u8; 4] = batch.head[23..27].try_into().expect("four bytes");
    i64::from(i32::from_be_bytes(last_offset_delta)) + 1
}

#[test]
fn at_most_a_tenth_more_than_the_forwarded_bytes_is_allocated() {
    for shape in SHAPES {
        let answer = FetchAnswer::new(shape);
        let records_bytes = answer.records_bytes;
        let rounds = (32 << 20) / records_bytes + 1;
        let broker = Broker::start(answer);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let mut path = runtime.block_on(Path::open(broker.address, shape.partitions));
        runtime.block_on(path.forward_one_answer());
        let warm_bytes = broker.taken_bytes.load(Ordering::Relaxed);
        let counted = measure(|| {
            runtime.block_on(async {
                for _ in 0..rounds {
                    path.forward_one_answer().await;
                }
            });
        });
        let forwarded = broker.taken_bytes.load(Ordering::Relaxed) - warm_bytes;
        assert_eq!(forwarded, rounds * records_bytes, "every batch arrived");
        let allocated = counted.bytes_total;
        println!("{shape:?}: {allocated} bytes allocated for {forwarded} bytes forwarded");
        assert!(
            allocated * 10 <= forwarded * 11,
            "{shape:?}: {allocated} bytes were allocated to forward {forwarded} bytes, at most 1.1 each may be"
        );
    }
}

/// The data path: both connections, the partitions between them, and requests under way as the shard keeps them.
struct Path {
    source: Connection,
    target: Connection,
    partitions: Partitions,
    request: FetchRequest,
    errands: FuturesUnordered<Pin<Box<dyn Future<Output = Acknowledged>>>>,
}

struct Acknowledged {
    partition: usize,
    ticket: u64,
    base_offset: i64,
}

impl Path {
    async fn open(broker: SocketAddr, partitions: i32) -> Self {
        Self {
            source: connection("src", broker).await,
            target: connection("dst", broker).await,
            partitions: Partitions::copying(partitions),
            request: request(partitions),
            errands: FuturesUnordered::new(),
        }
    }

    /// Fetches once, and sends what came until everything is acknowledged.
    async fn forward_one_answer(&mut self) {
        let pending = self.source.submit(Expects { api: Api::Fetch, timeout: TIMEOUT }, |correlation_id| {
            let frame = fetch_frame(FETCH_VERSION, correlation_id, "twinlog", &self.request)?;
            Ok::<Frame, CallError>(frame)
        });
        let body = self.source.body(pending.expect("room"), FETCH_VERSION).await.expect("an answer");
        self.partitions.take_fetched(body);
        loop {
            while let Some(sending) = self.partitions.poll_sending() {
                let Sending { partition, ticket, .. } = sending;
                let expects = Expects { api: Api::Produce, timeout: TIMEOUT };
                let pending = self
                    .target
                    .submit(expects, |correlation_id| Ok::<Frame, CallError>(sending.frame(correlation_id)));
                let (target, pending) = (self.target.clone(), pending.expect("room"));
                self.errands.push(Box::pin(async move {
                    let body = target.body(pending, PRODUCE_VERSION).await.expect("an answer");
                    let answer = ProduceResponse::decode(PRODUCE_VERSION, body).expect("a right answer");
                    Acknowledged { partition, ticket, base_offset: answer.partitions[0].base_offset }
                }));
            }
            let Some(Acknowledged { partition, ticket, base_offset }) = self.errands.next().await else {
                return;
            };
            self.partitions.take_acknowledged(partition, ticket, base_offset);
        }
    }
}

async fn connection(cluster: &str, broker: SocketAddr) -> Connection {
    let (reading, writing) = TcpStream::connect(broker).await.expect("the broker listens").into_split();
    let server = HostPort::new("127.0.0.1", broker.port());
    let peer = Peer { cluster: Arc::from(cluster), node: Some(1), server, address: Some(broker) };
    Connection::open(reading, writing, Arc::new(peer), ConnectionOptions::default()).await.expect("versions")
}

/// As twinlog asks; this broker gives the next stretch whatever is asked.
fn request(partitions: i32) -> FetchRequest {
    let partitions = (0..partitions).map(|partition| FetchPartition {
        partition,
        current_leader_epoch: 0,
        fetch_offset: 0,
        last_fetched_epoch: -1,
        log_start_offset: -1,
        partition_max_bytes: 4 << 20,
    });
    let topic = FetchTopic { name: TOPIC.to_owned(), id: TOPIC_ID, partitions: partitions.collect() };
    FetchRequest::full(500, 16 << 20, vec![topic])
}
