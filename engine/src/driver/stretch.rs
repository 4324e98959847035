//! Reading a stretch of one partition's log outside the data path: the state topic, and the target's tail.

use std::time::Duration;

use twinlog_protocol::ErrorCode;
use twinlog_protocol::batch::{BatchView, Entry, batches};
use twinlog_protocol::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, fetch_frame};
use twinlog_protocol::versions::Api;

use super::ask::Place;
use crate::io::cluster::ClusterClient;
use crate::io::connection::{Connection, Expects, Frame};
use crate::io::error::CallError;
use crate::machine::line_up::LastBatch;
use crate::machine::partition::RequestFailure;
use crate::machine::resume::{Tail, TailBatch};

/// The last version that names topics by name.
pub(super) const LAST_BY_NAME: i16 = 12;
/// Bytes of one Fetch.
const FETCH_BYTES_MAX: i32 = 4 << 20;
/// How long a broker may wait for records: they are there, or will be as soon as the high watermark is told.
const MAX_WAIT_MS: i32 = 100;
/// How long the answer may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends a Fetch and reads its answer; sends it again, when the broker is ready to hear it, where it was throttled.
pub(super) async fn fetch(
    connection: &Connection,
    request: &FetchRequest,
    timeout: Duration,
) -> Result<FetchResponse, CallError> {
    loop {
        if let Answered::Whole(response) = fetch_unless_throttled(connection, request, timeout).await? {
            return Ok(response);
        }
    }
}

/// A broker's answer to Fetch.
pub(super) enum Answered {
    /// What was asked for.
    Whole(FetchResponse),
    /// Nothing but a time to wait, which the connection keeps.
    Throttled(Duration),
}

/// Sends a Fetch and reads its answer.
pub(super) async fn fetch_unless_throttled(
    connection: &Connection,
    request: &FetchRequest,
    timeout: Duration,
) -> Result<Answered, CallError> {
    let mut version = version(connection)?;
    if request.topics.iter().any(|topic| topic.id == 0) {
        // A broker may know topic ids, and its cluster have none yet (`inter.broker.protocol.version` before 2.8).
        version = version.min(LAST_BY_NAME);
    }
    fetch_in(connection, version, request, timeout).await
}

/// The version of Fetch that the broker and we know.
pub(super) fn version(connection: &Connection) -> Result<i16, CallError> {
    connection
        .version(Api::Fetch)
        .map_err(|unsupported| CallError::Unsupported { peer: connection.peer().clone(), unsupported })
}

/// The same in a version that the caller chose.
pub(super) async fn fetch_in(
    connection: &Connection,
    version: i16,
    request: &FetchRequest,
    timeout: Duration,
) -> Result<Answered, CallError> {
    let pending = connection.submit(Expects { api: Api::Fetch, timeout }, |correlation_id| {
        let frame = fetch_frame(version, correlation_id, connection.client_id(), request)?;
        Ok::<Frame, CallError>(frame)
    })?;
    let body = connection.body(pending, version).await?;
    let response =
        FetchResponse::decode(version, body).map_err(|error| connection.undecodable(Api::Fetch, error))?;
    let told = connection.throttle(response.throttle_time_ms);
    let is_empty = response.error_code == 0 && response.partitions.is_empty();
    Ok(match told {
        Some(told) if is_empty => Answered::Throttled(told),
        _ => Answered::Whole(response),
    })
}

/// What a log holds from an offset on, and where it begins.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) entries: Vec<Entry>,
    pub(super) log_start: i64,
}

impl Stretch {
    /// The batches: older formats carry no producer id, so nothing of ours is in them.
    pub(super) fn batches(&self) -> impl Iterator<Item = &BatchView> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Batch(view) => Some(view),
            Entry::Legacy { .. } => None,
        })
    }

    /// Where to read on; none where nothing was there.
    pub(super) fn next_offset(&self) -> Option<i64> {
        self.entries.last().map(Entry::next_offset)
    }
}

/// Reads once from `from`. An offset below the log start is an error of the broker's ([`ErrorCode::OffsetOutOfRange`]).
pub(super) async fn read(
    cluster: &ClusterClient,
    place: &Place,
    from: i64,
) -> Result<Stretch, RequestFailure> {
    read_at_most(cluster, place, from, FETCH_BYTES_MAX).await
}

/// Reads the batch that holds `offset`, and little more: the first batch comes whole, however large it is.
pub(super) async fn read_batch(
    cluster: &ClusterClient,
    place: &Place,
    offset: i64,
) -> Result<Option<BatchView>, RequestFailure> {
    Ok(read_at_most(cluster, place, offset, 1).await?.batches().next().cloned())
}

async fn read_at_most(
    cluster: &ClusterClient,
    place: &Place,
    from: i64,
    bytes_max: i32,
) -> Result<Stretch, RequestFailure> {
    let partition = FetchPartition {
        partition: place.partition,
        current_leader_epoch: place.leader_epoch,
        fetch_offset: from,
        last_fetched_epoch: -1,
        log_start_offset: -1,
        partition_max_bytes: bytes_max,
    };
    let topic = FetchTopic { name: place.topic.clone(), id: place.topic_id, partitions: vec![partition] };
    let request = FetchRequest::full(MAX_WAIT_MS, bytes_max, vec![topic]);
    let connection = cluster.connection(place.node, place.lane).await?;
    let response = fetch(&connection, &request, FETCH_TIMEOUT).await?;
    ErrorCode::check(response.error_code).map_err(RequestFailure::Broker)?;
    let Some(partition) = response.partitions.into_iter().next() else {
        return Err(RequestFailure::Unanswered("the answer to Fetch leaves out the partition".to_owned()));
    };
    ErrorCode::check(partition.error_code).map_err(RequestFailure::Broker)?;
    let entries = batches(partition.records).collect::<Result<Vec<_>, _>>();
    let entries = entries.map_err(|fault| RequestFailure::Unanswered(fault.to_string()))?;
    Ok(Stretch { entries, log_start: partition.log_start_offset })
}

/// Reads `from..to`, beginning at the log start if that is later, and counts the batches of `producer_id`.
pub(super) async fn read_tail(
    cluster: &ClusterClient,
    place: &Place,
    from: i64,
    to: i64,
    producer_id: i64,
) -> Result<Tail, RequestFailure> {
    let log_start = super::ask::list_offset(cluster, place, super::ask::EARLIEST).await?;
    let mut tail = Tail { from: from.max(log_start), last: None, records: 0 };
    let mut position = tail.from;
    while position < to {
        let stretch = read(cluster, place, position).await?;
        let Some(next) = stretch.next_offset() else {
            // The last offsets of a compacted log may be gone.
            return if stretch.log_start > position { Err(log_moved(position)) } else { Ok(tail) };
        };
        stretch
            .batches()
            .filter(|view| view.header().next_offset() > position)
            .for_each(|view| count(&mut tail, view, producer_id));
        position = next.max(position + 1);
    }
    Ok(tail)
}

fn log_moved(position: i64) -> RequestFailure {
    RequestFailure::Unanswered(format!("the log start moved above offset {position} while the tail was read"))
}

fn count(tail: &mut Tail, view: &BatchView, producer_id: i64) {
    let header = view.header();
    if header.producer_id != producer_id || header.attributes.is_control() {
        return;
    }
    let batch = LastBatch { producer_epoch: header.producer_epoch, last_sequence: header.last_sequence() };
    if tail.last.is_none_or(|last| last.batch.producer_epoch != batch.producer_epoch) {
        tail.records = 0;
    }
    // Compaction takes records, never numbers: the span counts.
    tail.records += u64::from(header.last_offset_delta.unsigned_abs()) + 1;
    tail.last = Some(TailBatch { batch, next_offset: header.next_offset() });
}
