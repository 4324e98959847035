//! `[1]` One Fetch request for many partitions of one broker, and its answer dealt out to them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use twinlog_protocol::ErrorCode;
use twinlog_protocol::fetch::{
    FetchPartition, FetchRequest, FetchTopic, FetchedPartition, ForgottenTopic, IsolationLevel,
    names_topics_by_id,
};

use super::answer_parts::AnswerParts;
use super::lanes::fetch_lane;
use super::stretch::{self, Answered, LAST_BY_NAME};
use crate::clock;
use crate::io::cluster::ClusterClient;
use crate::io::connection::Connection;
use crate::machine::fetch_pace::Piece;
use crate::machine::fetch_session::{Asked, FetchSession, Forgotten, SessionAnswer, SessionRequest};
use crate::machine::fetch_size::FETCH_BYTES_MAX;
use crate::machine::partition::{Fetched, FetchedRecords, RequestFailure};

/// Bytes of one answer, for who has to take it.
pub(super) const ANSWER_TO_FETCH_BYTES_MAX: usize = FETCH_BYTES_MAX as usize;
/// How long an answer may take before the connection counts as dead.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// How to send a request.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) node: i32,
    pub(super) lane: u16,
    /// How long the broker may wait for the first record.
    pub(super) wait: Duration,
    pub(super) piece: Piece,
    pub(super) isolation_level: IsolationLevel,
    /// From where we read, empty for nowhere: leaders then give out the records themselves.
    pub(super) rack: Arc<str>,
}

/// What an answer says of one partition.
pub(super) struct Part {
    pub(super) slot: usize,
    pub(super) fetched: Fetched,
    /// Who gives out the records instead.
    pub(super) named: Option<i32>,
}

/// How a Fetch ended.
pub(super) struct FetchAnswer {
    /// The session that went with it.
    pub(super) session: Option<FetchSession>,
    pub(super) outcome: Outcome,
}

/// What a Fetch brought.
pub(super) enum Outcome {
    /// Each partition's part, or the reason why there is none; of a session only the parts with news.
    Parts { parts: Vec<Part>, bytes: u64, round_trip: Duration },
    /// Nothing but a time to wait: what was wanted is still wanted.
    Throttled { wanted: Vec<(usize, Asked)>, told: Duration },
}

/// Sends one Fetch outside any session when it is due.
pub(super) async fn fetch_bulk(
    cluster: ClusterClient,
    order: Order,
    wanted: Vec<(usize, Asked)>,
) -> FetchAnswer {
    wait_until_due(&order).await;
    let outcome = match try_bulk(&cluster, &order, &wanted).await {
        Ok((Answered::Whole(response), round_trip)) => {
            let bytes = records_bytes(&response.partitions);
            let parts = deal(response.partitions, &wanted, order.isolation_level);
            Outcome::Parts { parts, bytes, round_trip }
        }
        Ok((Answered::Throttled(told), _)) => Outcome::Throttled { wanted, told },
        Err(why) => failed(wanted.iter().map(|(slot, asked)| (*slot, asked.offset)), &why),
    };
    FetchAnswer { session: None, outcome }
}

async fn try_bulk(
    cluster: &ClusterClient,
    order: &Order,
    wanted: &[(usize, Asked)],
) -> Result<(Answered, Duration), RequestFailure> {
    let connection = cluster.connection(order.node, fetch_lane(order.lane)).await?;
    let begun = clock::boot_time();
    let topics = topics(wanted.iter().map(|(_, asked)| asked), order.piece.bytes_max);
    let request = FetchRequest {
        isolation_level: order.isolation_level,
        rack_id: order.rack.to_string(),
        ..FetchRequest::full(wait_ms(order), order.piece.bytes_max, topics)
    };
    let answered = stretch::fetch_unless_throttled(&connection, &request, ANSWER_TIMEOUT).await?;
    if let Answered::Whole(response) = &answered {
        ErrorCode::check(response.error_code).map_err(RequestFailure::Broker)?;
    }
    // A slow disk, a slow broker or a reader without room does not make the link a long one.
    Ok((answered, clock::boot_time().saturating_sub(begun).min(connection.round_trip())))
}

/// Sends one Fetch of a session when it is due, and once more where the broker has lost the session.
pub(super) async fn fetch_tail(
    cluster: ClusterClient,
    order: Order,
    mut session: FetchSession,
    fresh: Vec<(usize, Asked)>,
    gone: Vec<usize>,
) -> FetchAnswer {
    wait_until_due(&order).await;
    let outcome = match try_tail(&cluster, &order, &mut session, fresh, &gone).await {
        Ok(outcome) => outcome,
        Err(why) => failed(session.handle_lost().into_iter(), &why),
    };
    FetchAnswer { session: Some(session), outcome }
}

async fn try_tail(
    cluster: &ClusterClient,
    order: &Order,
    session: &mut FetchSession,
    fresh: Vec<(usize, Asked)>,
    gone: &[usize],
) -> Result<Outcome, RequestFailure> {
    let connection = match cluster.connection(order.node, fetch_lane(order.lane)).await {
        Ok(connection) => connection,
        Err(error) => {
            // Those that are new have to hear of it, too.
            session.next_request(false, fresh, gone);
            return Err(error.into());
        }
    };
    let speaks_ids = stretch::version(&connection).is_ok_and(names_topics_by_id);
    let mut request = session.next_request(speaks_ids, fresh, gone);
    loop {
        let response = match ask_session(&connection, order, session, request).await? {
            Answered::Whole(response) => response,
            Answered::Throttled(told) => {
                session.handle_throttled();
                return Ok(Outcome::Throttled { wanted: Vec::new(), told });
            }
        };
        let bytes = records_bytes(&response.partitions);
        match session.handle_answer(response) {
            SessionAnswer::Listed(listed) => {
                let part = |(slot, offset, part)| part_of(slot, offset, part, order.isolation_level);
                let (parts, round_trip) = (listed.into_iter().map(part).collect(), connection.round_trip());
                return Ok(Outcome::Parts { parts, bytes, round_trip });
            }
            SessionAnswer::Again => request = session.whole_request(),
            SessionAnswer::Failed(code) => return Err(RequestFailure::Broker(code)),
            SessionAnswer::Unfit => {
                let why = "the answer to Fetch is not about the partitions of its session";
                return Err(RequestFailure::Unanswered(why.to_owned()));
            }
        }
    }
}

async fn ask_session(
    connection: &Connection,
    order: &Order,
    session: &FetchSession,
    request: SessionRequest,
) -> Result<Answered, RequestFailure> {
    let mut version = stretch::version(connection)?;
    if !session.names_topics_by_id() {
        version = version.min(LAST_BY_NAME);
    }
    let bytes_max = order.piece.bytes_max;
    let request = FetchRequest {
        session_id: request.session_id,
        session_epoch: request.session_epoch,
        isolation_level: order.isolation_level,
        forgotten: forgotten(&request.forget),
        rack_id: order.rack.to_string(),
        ..FetchRequest::full(wait_ms(order), bytes_max, topics(request.ask.iter(), bytes_max))
    };
    Ok(stretch::fetch_in(connection, version, &request, ANSWER_TIMEOUT).await?)
}

async fn wait_until_due(order: &Order) {
    if !order.piece.wait.is_zero() {
        tokio::time::sleep(order.piece.wait).await;
    }
}

fn wait_ms(order: &Order) -> i32 {
    i32::try_from(order.wait.as_millis()).unwrap_or(i32::MAX)
}

fn topics<'a>(asked: impl Iterator<Item = &'a Asked>, bytes_max: i32) -> Vec<FetchTopic> {
    let mut topics: Vec<FetchTopic> = Vec::new();
    let mut place: HashMap<(&str, u128), usize> = HashMap::new();
    for part in asked {
        let place = *place.entry((&part.topic, part.topic_id)).or_insert_with(|| {
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
            partition_max_bytes: part.bytes_max.min(bytes_max),
        });
    }
    topics
}

fn forgotten(gone: &[Forgotten]) -> Vec<ForgottenTopic> {
    let mut topics: HashMap<(&str, u128), Vec<i32>> = HashMap::new();
    for part in gone {
        topics.entry((&part.topic, part.topic_id)).or_default().push(part.partition);
    }
    let topic = |((name, id), partitions): ((&str, u128), _)| ForgottenTopic {
        name: name.to_owned(),
        id,
        partitions,
    };
    topics.into_iter().map(topic).collect()
}

fn records_bytes(parts: &[FetchedPartition]) -> u64 {
    parts.iter().map(|part| part.records.len() as u64).sum()
}

fn deal(
    parts: Vec<FetchedPartition>,
    wanted: &[(usize, Asked)],
    isolation_level: IsolationLevel,
) -> Vec<Part> {
    let mut parts = AnswerParts::new(parts, |part| (part.topic.clone(), part.partition));
    let part = |(slot, asked): &(usize, Asked)| {
        let found = parts.take(&asked.topic, asked.topic_id, asked.partition);
        found.map_or_else(
            || {
                let why = "the answer to Fetch leaves the partition out".to_owned();
                lacking(*slot, asked.offset, RequestFailure::Unanswered(why))
            },
            |found| part_of(*slot, asked.offset, found, isolation_level),
        )
    };
    wanted.iter().map(part).collect()
}

fn part_of(slot: usize, offset: i64, part: FetchedPartition, isolation_level: IsolationLevel) -> Part {
    let named = Some(part.preferred_read_replica).filter(|node| *node >= 0);
    Part { slot, fetched: Fetched { offset, result: records_of(part, isolation_level) }, named }
}

fn lacking(slot: usize, offset: i64, why: RequestFailure) -> Part {
    Part { slot, fetched: Fetched { offset, result: Err(why) }, named: None }
}

fn records_of(
    part: FetchedPartition,
    isolation_level: IsolationLevel,
) -> Result<FetchedRecords, RequestFailure> {
    ErrorCode::check(part.error_code).map_err(RequestFailure::Broker)?;
    // What an answer tells of transactions is of no matter for those who read everything.
    let (last_stable_offset, aborted) = match isolation_level {
        IsolationLevel::ReadCommitted => {
            (Some(part.last_stable_offset).filter(|stable| *stable >= 0), part.aborted)
        }
        IsolationLevel::ReadUncommitted => (None, Vec::new()),
    };
    Ok(FetchedRecords {
        records: part.records,
        high_watermark: part.high_watermark,
        last_stable_offset,
        aborted,
        log_start: part.log_start_offset,
        diverging: part.diverging_epoch,
    })
}

fn failed(asked: impl Iterator<Item = (usize, i64)>, why: &RequestFailure) -> Outcome {
    let part = |(slot, offset)| lacking(slot, offset, why.clone());
    Outcome::Parts { parts: asked.map(part).collect(), bytes: 0, round_trip: Duration::ZERO }
}
