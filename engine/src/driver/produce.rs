//! Batches to the leader of their partitions, many with one request.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use twinlog_protocol::batch::{BatchView, ProducerStamp, rewrite};
use twinlog_protocol::produce::{ProducePartition, ProduceResponse, ProducedPartition, produce_frame};
use twinlog_protocol::versions::Api;
use twinlog_protocol::{ErrorCode, TopicRef};

use super::answer_parts::AnswerParts;
use super::ask::Place;
use super::stretch::LAST_BY_NAME;
use crate::io::cluster::ClusterClient;
use crate::io::connection::{Connection, Expects, Frame, Pending};
use crate::io::error::CallError;
use crate::machine::partition::RequestFailure;
use crate::machine::produce_window::ProduceAnswer;

/// All replicas in sync.
const ACKS_ALL: i16 = -1;
/// How long the broker may wait for the replicas. Short: error 7 means in doubt, and the line-up waits better.
const REPLICATION_TIMEOUT_MS: i32 = 5_000;
/// How long the answer may take before the connection counts as dead: beside the time that the bytes take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes in a second that go through a connection which is not dead: a slow link, shared by many.
const SLOWEST_BYTES_PER_SECOND: u32 = 16 << 10;

/// A Produce request on its way.
pub(super) struct Sending {
    pending: Pending,
    connection: Connection,
    version: i16,
    /// Topic, its id, and partition of each batch.
    places: Vec<(Arc<str>, u128, i32)>,
}

/// Queues a request on `connection`; it goes out in the order of these calls. Topics go by name where one has no id.
pub(super) fn send(connection: &Connection, batches: &[ProducePartition]) -> Result<Sending, CallError> {
    let mut version = connection
        .version(Api::Produce)
        .map_err(|unsupported| CallError::Unsupported { peer: connection.peer().clone(), unsupported })?;
    if batches.iter().any(|batch| batch.topic_id == 0) {
        version = version.min(LAST_BY_NAME);
    }
    let bytes: usize = batches.iter().map(|batch| batch.batch.body.len()).sum();
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let timeout = ANSWER_TIMEOUT + Duration::from_secs(1) * bytes / SLOWEST_BYTES_PER_SECOND;
    let expects = Expects { api: Api::Produce, timeout };
    let pending = connection.submit(expects, |correlation_id| {
        let client_id = connection.client_id();
        let frame =
            produce_frame(version, correlation_id, client_id, ACKS_ALL, REPLICATION_TIMEOUT_MS, batches)?;
        Ok::<Frame, CallError>(frame)
    })?;
    let place = |batch: &ProducePartition| (Arc::clone(&batch.topic), batch.topic_id, batch.partition);
    let places = batches.iter().map(place).collect();
    Ok(Sending { pending, connection: connection.clone(), version, places })
}

impl Sending {
    /// The answer to each batch, in the order of the request.
    pub(super) async fn answers(self) -> Vec<ProduceAnswer> {
        let lost = vec![ProduceAnswer::Lost; self.places.len()];
        let Ok(body) = self.connection.body(self.pending, self.version).await else { return lost };
        match ProduceResponse::decode(self.version, body) {
            Ok(response) => {
                self.connection.throttle(response.throttle_time_ms);
                deal(response, &self.places)
            }
            Err(fault) => {
                // Ends the connection and says why, once.
                let _ = self.connection.undecodable(Api::Produce, fault);
                lost
            }
        }
    }
}

/// What the answer leaves out is lost.
fn deal(response: ProduceResponse, places: &[(Arc<str>, u128, i32)]) -> Vec<ProduceAnswer> {
    let is_at = |part: &ProducedPartition, (topic, topic_id, partition): &(Arc<str>, u128, i32)| {
        let is_topic = match &part.topic {
            TopicRef::Name(name) => name == topic,
            TopicRef::Id(id) => id == topic_id,
        };
        is_topic && part.partition == *partition
    };
    let parts = response.partitions;
    // A broker need not keep the order, but where it does nothing has to be looked up.
    if parts.len() == places.len() && parts.iter().zip(places).all(|(part, place)| is_at(part, place)) {
        return parts.into_iter().map(answer_of).collect();
    }
    let mut parts = AnswerParts::new(parts, |part| (part.topic.clone(), part.partition));
    let answer = |(topic, topic_id, partition): &(Arc<str>, u128, i32)| {
        parts.take(topic, *topic_id, *partition).map_or(ProduceAnswer::Lost, answer_of)
    };
    places.iter().map(answer).collect()
}

fn answer_of(partition: ProducedPartition) -> ProduceAnswer {
    match ErrorCode::check(partition.error_code) {
        Ok(()) => ProduceAnswer::Acknowledged {
            base_offset: partition.base_offset,
            log_append_time_ms: partition.log_append_time_ms,
        },
        Err(code) => {
            let errors = partition.record_errors;
            let named: BTreeSet<i32> = errors.iter().map(|error| error.batch_index).collect();
            let named = u32::try_from(named.len()).unwrap_or(u32::MAX);
            let of_record = errors.into_iter().find_map(|error| error.message);
            let detail = of_record.or(partition.error_message).unwrap_or_default();
            ProduceAnswer::Failed { code, detail, named }
        }
    }
}

/// Sends one batch and waits for its answer.
pub(super) async fn produce_once(
    cluster: &ClusterClient,
    place: &Place,
    view: &BatchView,
    stamp: ProducerStamp,
) -> Result<ProduceAnswer, RequestFailure> {
    let connection = cluster.connection(place.node, place.lane).await?;
    let batch = ProducePartition {
        topic: Arc::from(place.topic.as_str()),
        topic_id: place.topic_id,
        partition: place.partition,
        batch: rewrite(view, stamp),
    };
    let answers = send(&connection, &[batch])?.answers().await;
    Ok(answers.into_iter().next().unwrap_or(ProduceAnswer::Lost))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_belong_to_their_batches_in_whatever_order_they_come() {
        let places = [("clicks", 1, 0), ("orders", 2, 0), ("orders", 2, 7)]
            .map(|(topic, id, partition)| (Arc::from(topic), id, partition));
        let part = |topic: TopicRef, partition, base_offset| ProducedPartition {
            topic,
            partition,
            error_code: 0,
            base_offset,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: Vec::new(),
            error_message: None,
            current_leader: None,
        };
        let dealt = |partitions| {
            deal(ProduceResponse { partitions, throttle_time_ms: 0, node_endpoints: Vec::new() }, &places)
        };
        let at = |base_offset| ProduceAnswer::Acknowledged { base_offset, log_append_time_ms: -1 };
        let orders = || TopicRef::Name(Arc::from("orders"));
        let (by_id, by_name) = (part(TopicRef::Id(1), 0, 10), part(orders(), 0, 20));
        assert_eq!(
            dealt(vec![by_id.clone(), by_name.clone(), part(orders(), 7, 30)]),
            [at(10), at(20), at(30)]
        );
        assert_eq!(dealt(vec![part(orders(), 7, 30), by_id.clone(), by_name]), [at(10), at(20), at(30)]);
        assert_eq!(dealt(vec![part(orders(), 7, 30), by_id]), [at(10), ProduceAnswer::Lost, at(30)]);
    }
}
