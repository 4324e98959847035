//! Requests about the partition to the target's brokers.

use std::time::Duration;

use twinlog_engine::{
    io::{
        cluster::{ClusterClient, Target},
        connection::{Expects, Frame},
        error::CallError,
        lane::Lane,
    },
    machine::{
        line_up::LastBatch,
        partition::{CopyEnd, CopySearch, Leader, RequestFailure},
        resume::{Tail, TailBatch},
    },
};
use twinlog_protocol::{
    ErrorCode,
    batch::{BatchView, Entry, batches},
    fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, fetch_frame},
    message::types::{
        BrokerId, DescribeProducersRequest, InitProducerIdRequest, ListOffsetsRequest,
        OffsetForLeaderEpochRequest, StrBytes, TopicName, describe_producers_request as describe,
        list_offsets_request as list, offset_for_leader_epoch_request as epoch,
    },
    record::records,
    versions::Api,
};

/// The lane of these requests; batches take those below.
const LANE: Lane = Lane::admin(64);
const TIMEOUT: Duration = Duration::from_secs(15);
const FETCH_BYTES_MAX: i32 = 1 << 20;
const EARLIEST: i64 = -2;
const LATEST: i64 = -1;

/// A partition of the target and its leader.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) cluster: ClusterClient,
    pub(super) topic: String,
    pub(super) partition: i32,
    pub(super) leader: Leader,
}

impl Place {
    fn node(&self) -> Result<i32, RequestFailure> {
        self.leader.node.ok_or_else(|| unanswered("no leader"))
    }

    fn target(&self) -> Result<Target, RequestFailure> {
        Ok(Target::Node { node: self.node()?, lane: LANE })
    }

    fn name(&self) -> TopicName {
        TopicName(StrBytes::from_string(self.topic.clone()))
    }

    /// The true log end, fenced by the leader epoch.
    pub(super) async fn log_end(&self) -> Result<i64, RequestFailure> {
        let partition = epoch::OffsetForLeaderPartition::default()
            .with_partition(self.partition)
            .with_current_leader_epoch(self.leader.leader_epoch)
            .with_leader_epoch(self.leader.leader_epoch);
        let topic =
            epoch::OffsetForLeaderTopic::default().with_topic(self.name()).with_partitions(vec![partition]);
        let request =
            OffsetForLeaderEpochRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
        let answer = self.cluster.call(self.target()?, &request).await?;
        let partition = answer.topics.iter().flat_map(|topic| &topic.partitions).next();
        let partition = partition.ok_or_else(|| unanswered("the partition is left out"))?;
        check(partition.error_code)?;
        if partition.end_offset < 0 { Err(unanswered("no end yet")) } else { Ok(partition.end_offset) }
    }

    /// What the leader remembers of the producer id.
    pub(super) async fn last_batch(&self, producer_id: i64) -> Result<Option<LastBatch>, RequestFailure> {
        let topic = describe::TopicRequest::default()
            .with_name(self.name())
            .with_partition_indexes(vec![self.partition]);
        let request = DescribeProducersRequest::default().with_topics(vec![topic]);
        let answer = self.cluster.call(self.target()?, &request).await?;
        let partition = answer.topics.iter().flat_map(|topic| &topic.partitions).next();
        let partition = partition.ok_or_else(|| unanswered("the partition is left out"))?;
        check(partition.error_code)?;
        let state = partition.active_producers.iter().find(|state| state.producer_id.0 == producer_id);
        Ok(state.map(|state| LastBatch {
            producer_epoch: i16::try_from(state.producer_epoch).expect("an epoch has 16 bits"),
            last_sequence: state.last_sequence,
        }))
    }

    /// The high watermark.
    pub(super) async fn high_watermark(&self) -> Result<i64, RequestFailure> {
        self.offset(LATEST).await
    }

    async fn offset(&self, timestamp: i64) -> Result<i64, RequestFailure> {
        let partition = list::ListOffsetsPartition::default()
            .with_partition_index(self.partition)
            .with_current_leader_epoch(self.leader.leader_epoch)
            .with_timestamp(timestamp);
        let topic = list::ListOffsetsTopic::default().with_name(self.name()).with_partitions(vec![partition]);
        let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
        let answer = self.cluster.call(self.target()?, &request).await?;
        let partition = answer.topics.iter().flat_map(|topic| &topic.partitions).next();
        let partition = partition.ok_or_else(|| unanswered("the partition is left out"))?;
        check(partition.error_code)?;
        Ok(partition.offset)
    }

    /// The batches of the producer id in `from..to`.
    pub(super) async fn tail(&self, from: i64, to: i64, producer_id: i64) -> Result<Tail, RequestFailure> {
        let from = from.max(self.offset(EARLIEST).await?);
        let mut tail = Tail { from, last: None, records: 0 };
        let mut position = from;
        while position < to {
            let stretch = self.fetch(position).await?;
            if stretch.is_empty() {
                return Err(unanswered("nothing below the log end"));
            }
            for view in stretch {
                let header = view.header();
                position = header.next_offset();
                if header.producer_id != producer_id || position <= from {
                    continue;
                }
                let batch = LastBatch {
                    producer_epoch: header.producer_epoch,
                    last_sequence: header.last_sequence(),
                };
                if tail.last.is_none_or(|last| last.batch.producer_epoch != batch.producer_epoch) {
                    tail.records = 0;
                }
                tail.records += u64::from(header.record_count.unsigned_abs());
                tail.last = Some(TailBatch { batch, next_offset: position });
            }
        }
        Ok(tail)
    }

    /// The last batch below `to`: all are copies, and the last record's value is its number, from which `upstream_next`
    /// makes the upstream offset behind it.
    pub(super) async fn copy(
        &self,
        to: i64,
        upstream_next: impl Fn(u64) -> Option<i64>,
    ) -> Result<CopySearch, RequestFailure> {
        let Some(view) = self.fetch(to - 1).await?.into_iter().next() else {
            return Err(unanswered("nothing below the log end"));
        };
        let all = records(&view, 1 << 20).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let value = all.ok().and_then(|mut all| all.pop()?.value);
        let number = value.and_then(|value| std::str::from_utf8(&value).ok()?.parse().ok());
        let header = view.header();
        Ok(match number.and_then(upstream_next) {
            None => CopySearch::Nothing,
            Some(upstream_next) => CopySearch::Found(CopyEnd {
                producer_id: header.producer_id,
                producer_epoch: header.producer_epoch,
                upstream_next,
            }),
        })
    }

    async fn fetch(&self, offset: i64) -> Result<Vec<BatchView>, RequestFailure> {
        let partition = FetchPartition {
            partition: self.partition,
            current_leader_epoch: self.leader.leader_epoch,
            fetch_offset: offset,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes: FETCH_BYTES_MAX,
        };
        let id = self.leader.topic_id;
        let topic = FetchTopic { name: self.topic.clone(), id, partitions: vec![partition] };
        let request = FetchRequest::full(100, FETCH_BYTES_MAX, vec![topic]);
        let connection = self.cluster.connection(self.node()?, LANE).await?;
        let version = connection
            .version(Api::Fetch)
            .map_err(|_| RequestFailure::Broker(ErrorCode::UnsupportedVersion))?;
        let pending = connection.submit(Expects { api: Api::Fetch, timeout: TIMEOUT }, |correlation_id| {
            let frame = fetch_frame(version, correlation_id, connection.client_id(), &request)?;
            Ok::<Frame, CallError>(frame)
        })?;
        let body = connection.body(pending, version).await.map_err(CallError::from)?;
        let answer = FetchResponse::decode(version, body).map_err(|fault| unanswered(&fault.to_string()))?;
        let partition = answer.partitions.into_iter().next();
        let partition = partition.ok_or_else(|| unanswered("the partition is left out"))?;
        check(partition.error_code)?;
        let views = batches(partition.records).map(|entry| match entry {
            Ok(Entry::Batch(view)) => Ok(view),
            other => Err(unanswered(&format!("not a batch of ours: {other:?}"))),
        });
        views.collect()
    }
}

/// A producer id that nobody has had.
pub(super) async fn new_producer_id(cluster: &ClusterClient) -> Result<i64, RequestFailure> {
    let request =
        InitProducerIdRequest::default().with_transactional_id(None).with_transaction_timeout_ms(60_000);
    let answer = cluster.call(Target::Any, &request).await?;
    check(answer.error_code)?;
    Ok(answer.producer_id.0)
}

fn check(code: i16) -> Result<(), RequestFailure> {
    ErrorCode::check(code).map_err(RequestFailure::Broker)
}

fn unanswered(why: &str) -> RequestFailure {
    RequestFailure::Unanswered(why.to_owned())
}
