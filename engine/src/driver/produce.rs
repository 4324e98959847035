//! One batch to the leader of its partition.

use std::time::Duration;

use twinlog_protocol::ErrorCode;
use twinlog_protocol::batch::{BatchView, Forwarded, ProducerStamp, rewrite};
use twinlog_protocol::produce::{ProducePartition, ProduceResponse, produce_frame};
use twinlog_protocol::versions::Api;

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
}

/// Queues a batch on `connection`; it goes out in the order of these calls.
pub(super) fn send(
    connection: &Connection,
    topic: &str,
    topic_id: u128,
    partition: i32,
    batch: Forwarded,
) -> Result<Sending, CallError> {
    let mut version = connection
        .version(Api::Produce)
        .map_err(|unsupported| CallError::Unsupported { peer: connection.peer().clone(), unsupported })?;
    if topic_id == 0 {
        version = version.min(LAST_BY_NAME);
    }
    let bytes = u32::try_from(batch.body.len()).unwrap_or(u32::MAX);
    let timeout = ANSWER_TIMEOUT + Duration::from_secs(1) * bytes / SLOWEST_BYTES_PER_SECOND;
    let batches = [ProducePartition { topic: topic.to_owned(), topic_id, partition, batch }];
    let expects = Expects { api: Api::Produce, timeout };
    let pending = connection.submit(expects, |correlation_id| {
        let client_id = connection.client_id();
        let frame =
            produce_frame(version, correlation_id, client_id, ACKS_ALL, REPLICATION_TIMEOUT_MS, &batches)?;
        Ok::<Frame, CallError>(Box::new(frame))
    })?;
    Ok(Sending { pending, connection: connection.clone(), version })
}

impl Sending {
    /// The answer.
    pub(super) async fn answer(self) -> ProduceAnswer {
        let Ok(body) = self.connection.body(self.pending, self.version).await else {
            return ProduceAnswer::Lost;
        };
        match ProduceResponse::decode(self.version, body) {
            Ok(response) => {
                self.connection.throttle(response.throttle_time_ms);
                answer_of(response)
            }
            Err(fault) => {
                // Ends the connection and says why, once.
                let _ = self.connection.undecodable(Api::Produce, fault);
                ProduceAnswer::Lost
            }
        }
    }
}

fn answer_of(response: ProduceResponse) -> ProduceAnswer {
    let Some(partition) = response.partitions.into_iter().next() else { return ProduceAnswer::Lost };
    match ErrorCode::check(partition.error_code) {
        Ok(()) => ProduceAnswer::Acknowledged { base_offset: partition.base_offset },
        Err(code) => {
            let of_record = partition.record_errors.into_iter().find_map(|error| error.message);
            let detail = of_record.or(partition.error_message).unwrap_or_default();
            ProduceAnswer::Failed { code, detail }
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
    let sending = send(&connection, &place.topic, place.topic_id, place.partition, rewrite(view, stamp))?;
    Ok(sending.answer().await)
}
