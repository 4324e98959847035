//! Questions to the leader of a partition, or of several: one request and one answer.

use std::collections::HashMap;
use std::time::Duration;

use twinlog_protocol::fetch::IsolationLevel;
use twinlog_protocol::message::types::{
    BrokerId, DescribeProducersRequest, InitProducerIdRequest, ListOffsetsRequest,
    OffsetForLeaderEpochRequest, ProducerId, StrBytes, TopicName, describe_producers_request,
    list_offsets_request, offset_for_leader_epoch_request,
};
use twinlog_protocol::{ErrorCode, OFFSET_MAX};

use super::stretch;
use crate::clock;
use crate::io::cluster::{ClusterClient, Target};
use crate::io::error::CallError;
use crate::io::lane::Lane;
use crate::machine::line_up::LastBatch;
use crate::machine::partition::{OpenTransaction, RequestFailure, SourceSpan};

/// Partitions are asked as a consumer or producer asks, not as a replica.
const NO_REPLICA: i32 = -1;
/// `ListOffsets` for the high watermark.
pub(super) const LATEST: i64 = -1;
/// `ListOffsets` for the log start.
pub(super) const EARLIEST: i64 = -2;

/// A partition and the leader to ask about it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) topic: String,
    pub(super) topic_id: u128,
    pub(super) partition: i32,
    pub(super) node: i32,
    /// Fences the question; -1 where the broker has no epochs.
    pub(super) leader_epoch: i32,
    /// The connection to ask on.
    pub(super) lane: Lane,
}

impl Place {
    fn target(&self) -> Target {
        Target::Node { node: self.node, lane: self.lane }
    }

    fn name(&self) -> TopicName {
        TopicName(StrBytes::from_string(self.topic.clone()))
    }
}

impl From<CallError> for RequestFailure {
    fn from(error: CallError) -> Self {
        if let CallError::Unsupported { .. } = error {
            return Self::Broker(ErrorCode::UnsupportedVersion);
        }
        Self::Unanswered(error.to_string())
    }
}

fn check(code: i16) -> Result<(), RequestFailure> {
    ErrorCode::check(code).map_err(RequestFailure::Broker)
}

/// An offset as a broker told it, -1 for none.
fn offset(told: i64) -> Result<i64, RequestFailure> {
    if (-1..=OFFSET_MAX).contains(&told) {
        return Ok(told);
    }
    Err(RequestFailure::Unanswered(format!("the broker told {told}, and no log has such an offset")))
}

fn incomplete(request: &str) -> RequestFailure {
    RequestFailure::Unanswered(format!("the answer to {request} leaves out the partition that was asked for"))
}

/// An answer about each of the partitions that were asked about, in their order, or why there is none.
pub(super) type Told<T> = Result<Vec<Result<T, RequestFailure>>, RequestFailure>;

/// The true log ends of partitions of one leader, fenced by their leader epochs. Those of a topic stand together, here and
/// below.
pub(super) async fn log_ends(cluster: &ClusterClient, places: &[Place]) -> Told<i64> {
    let Some(first) = places.first() else { return Ok(Vec::new()) };
    let of_partition = |place: &Place| {
        offset_for_leader_epoch_request::OffsetForLeaderPartition::default()
            .with_partition(place.partition)
            .with_current_leader_epoch(place.leader_epoch)
            .with_leader_epoch(place.leader_epoch)
    };
    let topics = by_topic(places).map(|of_topic| {
        offset_for_leader_epoch_request::OffsetForLeaderTopic::default()
            .with_topic(of_topic[0].name())
            .with_partitions(of_topic.iter().map(of_partition).collect())
    });
    let request = OffsetForLeaderEpochRequest::default()
        .with_replica_id(BrokerId(NO_REPLICA))
        .with_topics(topics.collect());
    let answer = cluster.call(first.target(), &request).await?;
    let told = answer
        .topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|told| ((topic.topic.as_str(), told.partition), told)));
    Ok(in_order(places, "OffsetForLeaderEpoch", told, |_, told| {
        check(told.error_code)?;
        if told.end_offset < 0 {
            let why = "the leader knows no end of its own epoch yet";
            return Err(RequestFailure::Unanswered(why.to_owned()));
        }
        offset(told.end_offset)
    }))
}

/// The same for one partition.
pub(super) async fn log_end(cluster: &ClusterClient, place: &Place) -> Result<i64, RequestFailure> {
    the_only(log_ends(cluster, std::slice::from_ref(place)).await?, "OffsetForLeaderEpoch")
}

/// The leader's state of a producer id for each partition.
pub(super) async fn last_batches(
    cluster: &ClusterClient,
    places: &[Place],
    producer_ids: &[i64],
) -> Told<Option<LastBatch>> {
    let Some(first) = places.first() else { return Ok(Vec::new()) };
    let topics = by_topic(places).map(|of_topic| {
        describe_producers_request::TopicRequest::default()
            .with_name(of_topic[0].name())
            .with_partition_indexes(of_topic.iter().map(|place| place.partition).collect())
    });
    let request = DescribeProducersRequest::default().with_topics(topics.collect());
    let answer = cluster.call(first.target(), &request).await?;
    let told = answer.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|told| ((topic.name.as_str(), told.partition_index), told))
    });
    Ok(in_order(places, "DescribeProducers", told, |index, told| {
        check(told.error_code)?;
        let wanted = producer_ids.get(index).map(|id| ProducerId(*id));
        let state = told.active_producers.iter().find(|state| Some(state.producer_id) == wanted);
        Ok(state.and_then(|state| {
            let producer_epoch = i16::try_from(state.producer_epoch).ok()?;
            Some(LastBatch { producer_epoch, last_sequence: state.last_sequence })
        }))
    }))
}

/// The same for one partition.
pub(super) async fn last_batch(
    cluster: &ClusterClient,
    place: &Place,
    producer_id: i64,
) -> Result<Option<LastBatch>, RequestFailure> {
    let told = last_batches(cluster, std::slice::from_ref(place), &[producer_id]).await?;
    the_only(told, "DescribeProducers")
}

/// The offset that `ListOffsets` gives for [`LATEST`] or [`EARLIEST`].
pub(super) async fn list_offset(
    cluster: &ClusterClient,
    place: &Place,
    timestamp: i64,
) -> Result<i64, RequestFailure> {
    let told = list_offsets(cluster, std::slice::from_ref(place), timestamp, IsolationLevel::ReadUncommitted);
    the_only(told.await?, "ListOffsets")
}

/// The same for each of several partitions. For those who read committed records only, [`LATEST`] is the last stable offset.
pub(super) async fn list_offsets(
    cluster: &ClusterClient,
    places: &[Place],
    timestamp: i64,
    isolation_level: IsolationLevel,
) -> Told<i64> {
    let Some(first) = places.first() else { return Ok(Vec::new()) };
    let of_partition = |place: &Place| {
        list_offsets_request::ListOffsetsPartition::default()
            .with_partition_index(place.partition)
            .with_current_leader_epoch(place.leader_epoch)
            .with_timestamp(timestamp)
    };
    let topics = by_topic(places).map(|of_topic| {
        list_offsets_request::ListOffsetsTopic::default()
            .with_name(of_topic[0].name())
            .with_partitions(of_topic.iter().map(of_partition).collect())
    });
    let request = ListOffsetsRequest::default()
        .with_replica_id(BrokerId(NO_REPLICA))
        .with_isolation_level(isolation_level.code())
        .with_topics(topics.collect());
    let answer = cluster.call(first.target(), &request).await?;
    let told = answer.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|told| ((topic.name.as_str(), told.partition_index), told))
    });
    Ok(in_order(places, "ListOffsets", told, |_, told| {
        check(told.error_code)?;
        offset(told.offset)
    }))
}

fn the_only<T>(told: Vec<Result<T, RequestFailure>>, request: &str) -> Result<T, RequestFailure> {
    told.into_iter().next().unwrap_or_else(|| Err(incomplete(request)))
}

fn by_topic(places: &[Place]) -> impl Iterator<Item = &[Place]> {
    places.chunk_by(|place, next| place.topic == next.topic)
}

/// What `read` makes of the answer about each place, which has an index and is found by topic and partition.
fn in_order<'a, T, R>(
    places: &[Place],
    request: &str,
    told: impl Iterator<Item = ((&'a str, i32), &'a T)>,
    read: impl Fn(usize, &T) -> Result<R, RequestFailure>,
) -> Vec<Result<R, RequestFailure>>
where
    T: 'a,
{
    let told: HashMap<(&str, i32), &T> = told.collect();
    let of = |(index, place): (usize, &Place)| {
        let told = told.get(&(place.topic.as_str(), place.partition));
        read(index, told.ok_or_else(|| incomplete(request))?)
    };
    places.iter().enumerate().map(of).collect()
}

/// The failure of a request that found nobody to go to.
pub(super) fn no_leader() -> RequestFailure {
    RequestFailure::Unanswered("the partition has no leader".to_owned())
}

/// From where to where a partition of the source can be read.
pub(super) async fn source_span(
    cluster: &ClusterClient,
    place: &Place,
) -> Result<SourceSpan, RequestFailure> {
    Ok(SourceSpan {
        log_start: list_offset(cluster, place, EARLIEST).await?,
        high_watermark: list_offset(cluster, place, LATEST).await?,
    })
}

/// Whose transaction is open at an offset, by the header of the batch there: sources from before Kafka 2.8 do not describe
/// their producers, and newer ones do not say since when.
pub(super) async fn open_transaction(
    cluster: &ClusterClient,
    place: &Place,
    offset: i64,
) -> Result<OpenTransaction, RequestFailure> {
    let batch = stretch::read_batch(cluster, place, offset).await?;
    let header = *batch.ok_or_else(|| incomplete("Fetch"))?.header();
    let age_ms = u64::try_from(clock::wall_time_ms().saturating_sub(header.base_timestamp));
    Ok(OpenTransaction {
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        age: age_ms.ok().map(Duration::from_millis),
    })
}

/// A producer id that nobody has had.
pub(super) async fn new_producer_id(cluster: &ClusterClient) -> Result<i64, RequestFailure> {
    let request =
        InitProducerIdRequest::default().with_transactional_id(None).with_transaction_timeout_ms(60_000);
    let answer = cluster.call(Target::Any, &request).await?;
    check(answer.error_code)?;
    Ok(answer.producer_id.0)
}
