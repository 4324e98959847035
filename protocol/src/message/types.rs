//! The message types that the engine uses. Nothing else of the message crate leaves this module.

pub use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, BrokerId, CreatePartitionsRequest, CreatePartitionsResponse,
    CreateTopicsRequest, CreateTopicsResponse, DescribeConfigsRequest, DescribeConfigsResponse,
    DescribeProducersRequest, DescribeProducersResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse, InitProducerIdRequest, InitProducerIdResponse, ListOffsetsRequest,
    ListOffsetsResponse, MetadataRequest, MetadataResponse, OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse, ProducerId, TopicName, TransactionalId,
};
pub use kafka_protocol::messages::{
    api_versions_request, api_versions_response, create_partitions_request, create_partitions_response,
    create_topics_request, create_topics_response, describe_configs_request, describe_configs_response,
    describe_producers_request, describe_producers_response, incremental_alter_configs_request,
    incremental_alter_configs_response, init_producer_id_request, init_producer_id_response,
    list_offsets_request, list_offsets_response, metadata_request, metadata_response,
    offset_for_leader_epoch_request, offset_for_leader_epoch_response,
};
pub use kafka_protocol::protocol::StrBytes;
pub use uuid::Uuid;
