//! `ListOffsetsResponse.json` and `OffsetForLeaderEpochResponse.json`.

use kafka_protocol::messages::{
    ListOffsetsRequest, ListOffsetsResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
};

use crate::message::shape::{Field, Shape, int16, int32, int64, string, structs};
use crate::message::{Request, sealed::Sealed};
use crate::versions::Api;

const LISTED_TOPICS: &[Field] = &[string("topics.name"), structs("topics.partitions", LISTED_PARTITIONS)];

const LISTED_PARTITIONS: &[Field] = &[
    int32("topics.partitions.partition_index"),
    int16("topics.partitions.error_code"),
    int64("topics.partitions.timestamp"),
    int64("topics.partitions.offset"),
    int32("topics.partitions.leader_epoch"),
];

const LISTED: Shape = Shape {
    what: "ListOffsets response",
    fields: &[int32("throttle_time_ms"), structs("topics", LISTED_TOPICS)],
};

impl Sealed for ListOffsetsRequest {}

impl Request for ListOffsetsRequest {
    const API: Api = Api::ListOffsets;
    const ANSWER: &'static Shape = &LISTED;
    type Response = ListOffsetsResponse;
}

const EPOCH_TOPICS: &[Field] = &[string("topics.topic"), structs("topics.partitions", EPOCH_PARTITIONS)];

const EPOCH_PARTITIONS: &[Field] = &[
    int16("topics.partitions.error_code"),
    int32("topics.partitions.partition"),
    int32("topics.partitions.leader_epoch"),
    int64("topics.partitions.end_offset"),
];

const EPOCH_ENDS: Shape = Shape {
    what: "OffsetForLeaderEpoch response",
    fields: &[int32("throttle_time_ms"), structs("topics", EPOCH_TOPICS)],
};

impl Sealed for OffsetForLeaderEpochRequest {}

impl Request for OffsetForLeaderEpochRequest {
    const API: Api = Api::OffsetForLeaderEpoch;
    const ANSWER: &'static Shape = &EPOCH_ENDS;
    type Response = OffsetForLeaderEpochResponse;
}
