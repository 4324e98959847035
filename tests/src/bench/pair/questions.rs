//! Everything that is asked but records: what a healthy cluster of one broker answers.

use kafka_protocol::{
    messages::{
        ApiVersionsResponse, BrokerId, CreateTopicsRequest, CreateTopicsResponse, DescribeConfigsRequest,
        DescribeConfigsResponse, DescribeProducersRequest, DescribeProducersResponse,
        IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, InitProducerIdResponse,
        ListOffsetsRequest, ListOffsetsResponse, MetadataRequest, MetadataResponse,
        OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, ProducerId, TopicName,
        api_versions_response::ApiVersion,
        create_topics_response::CreatableTopicResult,
        describe_configs_response::{DescribeConfigsResourceResult, DescribeConfigsResult},
        describe_producers_response::{PartitionResponse, ProducerState, TopicResponse},
        incremental_alter_configs_response::AlterConfigsResourceResponse,
        list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse},
        metadata_response::{MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic},
        offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult},
    },
    protocol::StrBytes,
};
use twinlog_protocol::versions::Api;
use uuid::Uuid;

use super::log::{Broker, Topic};

const NODE: BrokerId = BrokerId(1);
const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const TOPIC_ALREADY_EXISTS: i16 = 36;
/// ListOffsets for the log start.
const EARLIEST: i64 = -2;

/// The newest version of all that twinlog knows, and no other: answers are made for one version.
pub(super) fn api_versions() -> ApiVersionsResponse {
    let listed = Api::ALL.into_iter().map(|api| {
        let newest = api.versions().max;
        ApiVersion::default().with_api_key(api.key()).with_min_version(newest).with_max_version(newest)
    });
    ApiVersionsResponse::default().with_api_keys(listed.collect())
}

pub(super) fn metadata(broker: &Broker, request: &MetadataRequest) -> MetadataResponse {
    let topics = match &request.topics {
        None => broker.topics().iter().map(|topic| described(topic)).collect(),
        Some(asked) => asked
            .iter()
            .map(|asked| {
                let name = asked.name.clone().unwrap_or_default();
                let unknown = MetadataResponseTopic::default()
                    .with_error_code(UNKNOWN_TOPIC_OR_PARTITION)
                    .with_name(Some(name.clone()));
                broker.by_name(&name).map_or(unknown, |topic| described(&topic))
            })
            .collect(),
    };
    let listed = MetadataResponseBroker::default()
        .with_node_id(NODE)
        .with_host(StrBytes::from_static_str("127.0.0.1"))
        .with_port(i32::from(broker.port));
    MetadataResponse::default()
        .with_brokers(vec![listed])
        .with_cluster_id(Some(StrBytes::from_string(broker.cluster_id.clone())))
        .with_controller_id(NODE)
        .with_topics(topics)
}

fn described(topic: &Topic) -> MetadataResponseTopic {
    let partitions = (0..).zip(&topic.partitions).map(|(number, _)| {
        MetadataResponsePartition::default()
            .with_partition_index(number)
            .with_leader_id(NODE)
            .with_leader_epoch(0)
            .with_replica_nodes(vec![NODE])
            .with_isr_nodes(vec![NODE])
    });
    MetadataResponseTopic::default()
        .with_name(Some(TopicName(StrBytes::from_string(topic.name.clone()))))
        .with_topic_id(Uuid::from_u128(topic.id))
        .with_partitions(partitions.collect())
}

/// Nobody asks by time here: whatever is not the log start is the end.
pub(super) fn list_offsets(broker: &Broker, request: &ListOffsetsRequest) -> ListOffsetsResponse {
    let topics = request.topics.iter().map(|asked| {
        let topic = broker.by_name(&asked.name);
        let partitions = asked.partitions.iter().map(|asked| {
            let answer = ListOffsetsPartitionResponse::default()
                .with_partition_index(asked.partition_index)
                .with_leader_epoch(0);
            match topic.as_ref().and_then(|topic| topic.partition(asked.partition_index)) {
                Some(_) if asked.timestamp == EARLIEST => answer.with_offset(0),
                Some(of) => answer.with_offset(of.log_end),
                None => answer.with_error_code(UNKNOWN_TOPIC_OR_PARTITION),
            }
        });
        ListOffsetsTopicResponse::default()
            .with_name(asked.name.clone())
            .with_partitions(partitions.collect())
    });
    ListOffsetsResponse::default().with_topics(topics.collect())
}

pub(super) fn create_topics(broker: &Broker, request: &CreateTopicsRequest) -> CreateTopicsResponse {
    let topics = request.topics.iter().map(|asked| {
        let answer = CreatableTopicResult::default()
            .with_name(asked.name.clone())
            .with_num_partitions(asked.num_partitions)
            .with_replication_factor(1)
            .with_configs(Some(Vec::new()));
        if broker.by_name(&asked.name).is_some() {
            return answer.with_error_code(TOPIC_ALREADY_EXISTS);
        }
        let partitions = usize::try_from(asked.num_partitions).unwrap_or(1);
        let topic = Topic::new(&asked.name, partitions);
        let id = Uuid::from_u128(topic.id);
        if !request.validate_only {
            broker.add(topic);
        }
        answer.with_topic_id(id)
    });
    CreateTopicsResponse::default().with_topics(topics.collect())
}

/// Of all configs only the cleanup policy matters to anybody here.
pub(super) fn describe_configs(request: &DescribeConfigsRequest) -> DescribeConfigsResponse {
    let results = request.resources.iter().map(|asked| {
        let is_internal = asked.resource_name.ends_with(".internal");
        let policy = if is_internal { "compact" } else { "delete" };
        let config = DescribeConfigsResourceResult::default()
            .with_name(StrBytes::from_static_str("cleanup.policy"))
            .with_value(Some(StrBytes::from_static_str(policy)))
            .with_config_source(if is_internal { 1 } else { 5 });
        DescribeConfigsResult::default()
            .with_resource_type(asked.resource_type)
            .with_resource_name(asked.resource_name.clone())
            .with_configs(vec![config])
    });
    DescribeConfigsResponse::default().with_results(results.collect())
}

pub(super) fn incremental_alter_configs(
    request: &IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let responses = request.resources.iter().map(|asked| {
        AlterConfigsResourceResponse::default()
            .with_resource_type(asked.resource_type)
            .with_resource_name(asked.resource_name.clone())
    });
    IncrementalAlterConfigsResponse::default().with_responses(responses.collect())
}

pub(super) fn init_producer_id(broker: &Broker) -> InitProducerIdResponse {
    InitProducerIdResponse::default()
        .with_producer_id(ProducerId(broker.new_producer_id()))
        .with_producer_epoch(0)
}

pub(super) fn offset_for_leader_epoch(
    broker: &Broker,
    request: &OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let topics = request.topics.iter().map(|asked| {
        let topic = broker.by_name(&asked.topic);
        let partitions = asked.partitions.iter().map(|asked| {
            let answer = EpochEndOffset::default().with_partition(asked.partition).with_leader_epoch(0);
            match topic.as_ref().and_then(|topic| topic.partition(asked.partition)) {
                Some(of) => answer.with_end_offset(of.log_end),
                None => answer.with_error_code(UNKNOWN_TOPIC_OR_PARTITION),
            }
        });
        OffsetForLeaderTopicResult::default()
            .with_topic(asked.topic.clone())
            .with_partitions(partitions.collect())
    });
    OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
}

pub(super) fn describe_producers(
    broker: &Broker,
    request: &DescribeProducersRequest,
) -> DescribeProducersResponse {
    let topics = request.topics.iter().map(|asked| {
        let topic = broker.by_name(&asked.name);
        let partitions = asked.partition_indexes.iter().map(|number| {
            let answer = PartitionResponse::default().with_partition_index(*number);
            let Some(of) = topic.as_ref().and_then(|topic| topic.partition(*number)) else {
                return answer.with_error_code(UNKNOWN_TOPIC_OR_PARTITION);
            };
            let producers = of.producers.iter().map(|(id, state)| {
                ProducerState::default()
                    .with_producer_id(ProducerId(*id))
                    .with_producer_epoch(i32::from(state.epoch))
                    .with_last_sequence(state.last_sequence)
                    .with_last_timestamp(state.last_timestamp)
                    .with_current_txn_start_offset(-1)
            });
            answer.with_active_producers(producers.collect())
        });
        TopicResponse::default().with_name(asked.name.clone()).with_partitions(partitions.collect())
    });
    DescribeProducersResponse::default().with_topics(topics.collect())
}
