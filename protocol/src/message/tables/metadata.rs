//! `MetadataResponse.json`.

use kafka_protocol::messages::{MetadataRequest, MetadataResponse};

use crate::message::shape::{Field, Shape, int8, int16, int32, int32s, string, structs, uuid};
use crate::message::{Request, sealed::Sealed};
use crate::versions::Api;

const BROKERS: &[Field] = &[
    int32("brokers.node_id"),
    string("brokers.host"),
    int32("brokers.port"),
    string("brokers.rack").nullable(),
];

const TOPICS: &[Field] = &[
    int16("topics.error_code"),
    string("topics.name").nullable_since(12),
    uuid("topics.topic_id").since(10),
    int8("topics.is_internal"),
    structs("topics.partitions", PARTITIONS),
    int32("topics.topic_authorized_operations").since(8),
];

const PARTITIONS: &[Field] = &[
    int16("topics.partitions.error_code"),
    int32("topics.partitions.partition_index"),
    int32("topics.partitions.leader_id"),
    int32("topics.partitions.leader_epoch"),
    int32s("topics.partitions.replica_nodes"),
    int32s("topics.partitions.isr_nodes"),
    int32s("topics.partitions.offline_replicas"),
];

const ANSWER: Shape = Shape {
    what: "Metadata response",
    fields: &[
        int32("throttle_time_ms"),
        structs("brokers", BROKERS),
        string("cluster_id").nullable(),
        int32("controller_id"),
        structs("topics", TOPICS),
        int32("cluster_authorized_operations").since(8).until(10),
        int16("error_code").since(13),
    ],
};

impl Sealed for MetadataRequest {}

impl Request for MetadataRequest {
    const API: Api = Api::Metadata;
    const ANSWER: &'static Shape = &ANSWER;
    type Response = MetadataResponse;
}
