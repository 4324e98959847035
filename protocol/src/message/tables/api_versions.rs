//! `ApiVersionsResponse.json`.

use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};

use crate::message::shape::{Field, Shape, int8, int16, int32, int64, string, structs};
use crate::message::{Request, sealed::Sealed};
use crate::versions::Api;

const KEYS: &[Field] =
    &[int16("api_keys.api_key"), int16("api_keys.min_version"), int16("api_keys.max_version")];

const SUPPORTED: &[Field] = &[
    string("supported_features.name"),
    int16("supported_features.min_version"),
    int16("supported_features.max_version"),
];

const FINALIZED: &[Field] = &[
    string("finalized_features.name"),
    int16("finalized_features.max_version_level"),
    int16("finalized_features.min_version_level"),
];

const ANSWER: Shape = Shape {
    what: "ApiVersions response",
    fields: &[
        int16("error_code"),
        structs("api_keys", KEYS),
        int32("throttle_time_ms").since(1),
        structs("supported_features", SUPPORTED).tagged(0),
        int64("finalized_features_epoch").tagged(1),
        structs("finalized_features", FINALIZED).tagged(2),
        int8("zk_migration_ready").tagged(3),
    ],
};

impl Sealed for ApiVersionsRequest {}

impl Request for ApiVersionsRequest {
    const API: Api = Api::ApiVersions;
    const ANSWER: &'static Shape = &ANSWER;
    type Response = ApiVersionsResponse;
}
