//! `InitProducerIdResponse.json` and `DescribeProducersResponse.json`.

use kafka_protocol::messages::{
    DescribeProducersRequest, DescribeProducersResponse, InitProducerIdRequest, InitProducerIdResponse,
};

use crate::message::shape::{Field, Shape, int16, int32, int64, string, structs};
use crate::message::{Request, sealed::Sealed};
use crate::versions::Api;

const PRODUCER_ID: Shape = Shape {
    what: "InitProducerId response",
    fields: &[int32("throttle_time_ms"), int16("error_code"), int64("producer_id"), int16("producer_epoch")],
};

impl Sealed for InitProducerIdRequest {}

impl Request for InitProducerIdRequest {
    const API: Api = Api::InitProducerId;
    const ANSWER: &'static Shape = &PRODUCER_ID;
    type Response = InitProducerIdResponse;
}

const TOPICS: &[Field] = &[string("topics.name"), structs("topics.partitions", PARTITIONS)];

const PARTITIONS: &[Field] = &[
    int32("topics.partitions.partition_index"),
    int16("topics.partitions.error_code"),
    string("topics.partitions.error_message").nullable(),
    structs("topics.partitions.active_producers", ACTIVE),
];

const ACTIVE: &[Field] = &[
    int64("topics.partitions.active_producers.producer_id"),
    int32("topics.partitions.active_producers.producer_epoch"),
    int32("topics.partitions.active_producers.last_sequence"),
    int64("topics.partitions.active_producers.last_timestamp"),
    int32("topics.partitions.active_producers.coordinator_epoch"),
    int64("topics.partitions.active_producers.current_txn_start_offset"),
];

const PRODUCERS: Shape = Shape {
    what: "DescribeProducers response",
    fields: &[int32("throttle_time_ms"), structs("topics", TOPICS)],
};

impl Sealed for DescribeProducersRequest {}

impl Request for DescribeProducersRequest {
    const API: Api = Api::DescribeProducers;
    const ANSWER: &'static Shape = &PRODUCERS;
    type Response = DescribeProducersResponse;
}
