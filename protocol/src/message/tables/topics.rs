//! `CreateTopicsResponse.json` and `CreatePartitionsResponse.json`.

use kafka_protocol::messages::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
};

use crate::message::shape::{Field, Shape, int8, int16, int32, string, structs, uuid};
use crate::message::{Request, sealed::Sealed};
use crate::versions::Api;

const TOPICS: &[Field] = &[
    string("topics.name"),
    uuid("topics.topic_id").since(7),
    int16("topics.error_code"),
    string("topics.error_message").nullable(),
    int16("topics.topic_config_error_code").since(5).tagged(0),
    int32("topics.num_partitions").since(5),
    int16("topics.replication_factor").since(5),
    structs("topics.configs", CONFIGS).since(5).nullable(),
];

const CONFIGS: &[Field] = &[
    string("topics.configs.name"),
    string("topics.configs.value").nullable(),
    int8("topics.configs.read_only"),
    int8("topics.configs.config_source"),
    int8("topics.configs.is_sensitive"),
];

const CREATED: Shape =
    Shape { what: "CreateTopics response", fields: &[int32("throttle_time_ms"), structs("topics", TOPICS)] };

impl Sealed for CreateTopicsRequest {}

impl Request for CreateTopicsRequest {
    const API: Api = Api::CreateTopics;
    const ANSWER: &'static Shape = &CREATED;
    type Response = CreateTopicsResponse;
}

const RESULTS: &[Field] =
    &[string("results.name"), int16("results.error_code"), string("results.error_message").nullable()];

const GROWN: Shape = Shape {
    what: "CreatePartitions response",
    fields: &[int32("throttle_time_ms"), structs("results", RESULTS)],
};

impl Sealed for CreatePartitionsRequest {}

impl Request for CreatePartitionsRequest {
    const API: Api = Api::CreatePartitions;
    const ANSWER: &'static Shape = &GROWN;
    type Response = CreatePartitionsResponse;
}
