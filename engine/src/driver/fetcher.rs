//! `[1]` One Fetch request for many partitions of one broker, and its answer dealt out to them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use twinlog_protocol::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, FetchedPartition};
use twinlog_protocol::{ErrorCode, TopicRef};

use super::lanes::fetch_lane;
use super::stretch::{self, Answered};
use crate::io::cluster::ClusterClient;
use crate::machine::fetch_pace::{FETCH_BYTES_MAX, Piece};
use crate::machine::partition::{Fetched, FetchedRecords, RequestFailure};

/// How long a broker may wait for the first record.
const MAX_WAIT_MS: i32 = 500;
/// Bytes of one answer, for who has to take it.
pub(super) const ANSWER_TO_FETCH_BYTES_MAX: usize = FETCH_BYTES_MAX as usize;
/// Bytes of one partition in an answer.
const PARTITION_BYTES_MAX: i32 = 4 << 20;
/// How long an answer may take before the connection counts as dead.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// One partition's part of a request.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) slot: usize,
    pub(super) topic: Arc<str>,
    pub(super) topic_id: u128,
    pub(super) partition: i32,
    pub(super) leader_epoch: i32,
    pub(super) offset: i64,
    pub(super) last_fetched_epoch: i32,
}

/// What a Fetch brought.
pub(super) enum FetchAnswer {
    /// Each partition's part, or the reason why there is none.
    Parts { parts: Vec<(usize, Fetched)>, bytes: u64 },
    /// Nothing but a time to wait: what was wanted is still wanted.
    Throttled { wanted: Vec<Wanted>, told: Duration },
}

/// Sends one Fetch when it is due.
pub(super) async fn fetch(
    cluster: ClusterClient,
    node: i32,
    lane: u16,
    wanted: Vec<Wanted>,
    piece: Piece,
) -> FetchAnswer {
    if !piece.wait.is_zero() {
        tokio::time::sleep(piece.wait).await;
    }
    match try_fetch(&cluster, node, lane, &wanted, piece.bytes_max).await {
        Ok(Answered::Whole(response)) => {
            let bytes = response.partitions.iter().map(|part| part.records.len() as u64).sum();
            FetchAnswer::Parts { parts: deal(response, &wanted), bytes }
        }
        Ok(Answered::Throttled(told)) => FetchAnswer::Throttled { wanted, told },
        Err(why) => {
            let failed = |part: &Wanted| Fetched { offset: part.offset, result: Err(why.clone()) };
            FetchAnswer::Parts {
                parts: wanted.iter().map(|part| (part.slot, failed(part))).collect(),
                bytes: 0,
            }
        }
    }
}

async fn try_fetch(
    cluster: &ClusterClient,
    node: i32,
    lane: u16,
    wanted: &[Wanted],
    bytes_max: i32,
) -> Result<Answered, RequestFailure> {
    let connection = cluster.connection(node, fetch_lane(lane)).await?;
    let request = request(wanted, bytes_max);
    let answered = stretch::fetch_unless_throttled(&connection, &request, ANSWER_TIMEOUT).await?;
    if let Answered::Whole(response) = &answered {
        ErrorCode::check(response.error_code).map_err(RequestFailure::Broker)?;
    }
    Ok(answered)
}

fn request(wanted: &[Wanted], bytes_max: i32) -> FetchRequest {
    let mut topics: Vec<FetchTopic> = Vec::new();
    let mut place: HashMap<&str, usize> = HashMap::new();
    for part in wanted {
        let place = *place.entry(&part.topic).or_insert_with(|| {
            topics.push(FetchTopic {
                name: part.topic.to_string(),
                id: part.topic_id,
                partitions: Vec::new(),
            });
            topics.len() - 1
        });
        topics[place].partitions.push(FetchPartition {
            partition: part.partition,
            current_leader_epoch: part.leader_epoch,
            fetch_offset: part.offset,
            last_fetched_epoch: part.last_fetched_epoch,
            log_start_offset: -1,
            partition_max_bytes: PARTITION_BYTES_MAX.min(bytes_max),
        });
    }
    FetchRequest::full(MAX_WAIT_MS, bytes_max, topics)
}

fn deal(response: FetchResponse, wanted: &[Wanted]) -> Vec<(usize, Fetched)> {
    let mut parts: HashMap<(TopicRef, i32), FetchedPartition> =
        response.partitions.into_iter().map(|part| ((part.topic.clone(), part.partition), part)).collect();
    let mut dealt: Vec<(usize, Fetched)> = wanted
        .iter()
        .map(|part| {
            let by_id = parts.remove(&(TopicRef::Id(part.topic_id), part.partition));
            let found =
                by_id.or_else(|| parts.remove(&(TopicRef::Name(Arc::clone(&part.topic)), part.partition)));
            let result = match found {
                Some(found) => records_of(found),
                None => {
                    Err(RequestFailure::Unanswered("the answer to Fetch leaves the partition out".to_owned()))
                }
            };
            (part.slot, Fetched { offset: part.offset, result })
        })
        .collect();
    // Who got nothing stands first next time, or a full answer would serve the same partitions again.
    dealt
        .sort_by_key(|(_, fetched)| fetched.result.as_ref().is_ok_and(|records| !records.records.is_empty()));
    dealt
}

fn records_of(part: FetchedPartition) -> Result<FetchedRecords, RequestFailure> {
    ErrorCode::check(part.error_code).map_err(RequestFailure::Broker)?;
    Ok(FetchedRecords {
        records: part.records,
        high_watermark: part.high_watermark,
        log_start: part.log_start_offset,
        diverging: part.diverging_epoch,
    })
}
