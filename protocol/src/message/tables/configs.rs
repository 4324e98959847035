//! `DescribeConfigsResponse.json` and `IncrementalAlterConfigsResponse.json`.

use kafka_protocol::messages::{
    DescribeConfigsRequest, DescribeConfigsResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};

use crate::message::shape::{Field, Shape, int8, int16, int32, string, structs};
use crate::message::{Request, sealed::Sealed};
use crate::versions::Api;

const RESULTS: &[Field] = &[
    int16("results.error_code"),
    string("results.error_message").nullable(),
    int8("results.resource_type"),
    string("results.resource_name"),
    structs("results.configs", CONFIGS),
];

const CONFIGS: &[Field] = &[
    string("results.configs.name"),
    string("results.configs.value").nullable(),
    int8("results.configs.read_only"),
    int8("results.configs.config_source"),
    int8("results.configs.is_sensitive"),
    structs("results.configs.synonyms", SYNONYMS),
    int8("results.configs.config_type").since(3),
    string("results.configs.documentation").since(3).nullable(),
];

const SYNONYMS: &[Field] = &[
    string("results.configs.synonyms.name"),
    string("results.configs.synonyms.value").nullable(),
    int8("results.configs.synonyms.source"),
];

const DESCRIBED: Shape = Shape {
    what: "DescribeConfigs response",
    fields: &[int32("throttle_time_ms"), structs("results", RESULTS)],
};

impl Sealed for DescribeConfigsRequest {}

impl Request for DescribeConfigsRequest {
    const API: Api = Api::DescribeConfigs;
    const ANSWER: &'static Shape = &DESCRIBED;
    type Response = DescribeConfigsResponse;
}

const RESPONSES: &[Field] = &[
    int16("responses.error_code"),
    string("responses.error_message").nullable(),
    int8("responses.resource_type"),
    string("responses.resource_name"),
];

const ALTERED: Shape = Shape {
    what: "IncrementalAlterConfigs response",
    fields: &[int32("throttle_time_ms"), structs("responses", RESPONSES)],
};

impl Sealed for IncrementalAlterConfigsRequest {}

impl Request for IncrementalAlterConfigsRequest {
    const API: Api = Api::IncrementalAlterConfigs;
    const ANSWER: &'static Shape = &ALTERED;
    type Response = IncrementalAlterConfigsResponse;
}
