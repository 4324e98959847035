//! Asks a broker for every kind of answer in every version that it and we speak, and keeps the frames.
//!
//! `cargo run -p twinlog-tests --example capture_frames -- HOST:PORT FOLDER`; `fixtures/frames/README.md` says what
//! has to be on the broker before.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::{env, fs};

use bytes::Bytes;
use twinlog_protocol::frame::{ANSWER_BYTES_MAX, PREFIX_BYTES, frame_length};
use twinlog_protocol::message::types::*;
use twinlog_protocol::message::{Request, decode_frame, encode_frame};
use twinlog_protocol::versions::{Api, negotiate};

/// The correlation id of all kept frames.
const CORRELATION_ID: i32 = 7;
/// The topic with two partitions that an idempotent producer has written to.
const TOPIC: &str = "frames";

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = env::args().skip(1);
    let (Some(address), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: capture_frames HOST:PORT FOLDER".into());
    };
    fs::create_dir_all(&folder)?;
    let mut capture = Capture { stream: TcpStream::connect(address)?, folder: folder.into(), spoken: None };
    capture.api_versions()?;
    capture.every_version(|_| init_producer_id())?;
    capture.every_version(create_topics)?;
    capture.every_version(metadata)?;
    capture.every_version(|_| list_offsets())?;
    capture.every_version(|_| offset_for_leader_epoch())?;
    capture.every_version(describe_configs)?;
    capture.every_version(create_partitions)?;
    capture.every_version(|_| alter_configs())?;
    capture.every_version(|_| describe_producers())
}

struct Capture {
    stream: TcpStream,
    folder: PathBuf,
    spoken: Option<ApiVersionsResponse>,
}

impl Capture {
    /// Sends a request and keeps the answer.
    fn ask<R: Request>(&mut self, request: &R, version: i16) -> Result<R::Response, Failure> {
        self.stream.write_all(&encode_frame(request, version, CORRELATION_ID, "twinlog-capture")?)?;
        let mut prefix = [0; PREFIX_BYTES];
        self.stream.read_exact(&mut prefix)?;
        let mut frame = vec![0; frame_length(prefix, ANSWER_BYTES_MAX)?];
        self.stream.read_exact(&mut frame)?;
        fs::write(self.folder.join(file_name(R::API, version)), &frame)?;
        println!("{} {version}: {} bytes", R::API, frame.len());
        Ok(decode_frame::<R>(Bytes::from(frame), version, CORRELATION_ID)?)
    }

    /// In all our versions: a broker answers those it does not speak too.
    fn api_versions(&mut self) -> Result<(), Failure> {
        let versions = Api::ApiVersions.versions();
        for version in versions.min..=versions.max {
            let mut request = ApiVersionsRequest::default();
            if version >= 3 {
                let name = StrBytes::from_static_str("twinlog");
                request = request.with_client_software_name(name.clone()).with_client_software_version(name);
            }
            let answer = self.ask(&request, version)?;
            if answer.error_code == 0 {
                self.spoken = Some(answer);
            }
        }
        Ok(())
    }

    fn every_version<R: Request>(&mut self, request: impl Fn(i16) -> R) -> Result<(), Failure> {
        let spoken = self.spoken.as_ref().ok_or("no ApiVersions answer")?;
        let Some(theirs) = spoken.api_keys.iter().find(|spoken| spoken.api_key == R::API.key()) else {
            println!("{}: not spoken", R::API);
            return Ok(());
        };
        let max = negotiate(R::API, theirs.min_version, theirs.max_version)?;
        let min = R::API.versions().min.max(theirs.min_version);
        for version in min..=max {
            self.ask(&request(version), version)?;
        }
        Ok(())
    }
}

fn file_name(api: Api, version: i16) -> impl AsRef<Path> {
    format!("{api}.v{version}.bin")
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn topic(name: &str) -> TopicName {
    TopicName(text(name))
}

fn init_producer_id() -> InitProducerIdRequest {
    InitProducerIdRequest::default().with_transactional_id(None).with_transaction_timeout_ms(60_000)
}

/// One topic that is made, and one that is there.
fn create_topics(version: i16) -> CreateTopicsRequest {
    use create_topics_request::{CreatableTopic, CreatableTopicConfig};
    let config = CreatableTopicConfig::default()
        .with_name(StrBytes::from_static_str("cleanup.policy"))
        .with_value(Some(StrBytes::from_static_str("compact")));
    let made = CreatableTopic::default()
        .with_name(topic(&format!("made-by-v{version}")))
        .with_num_partitions(2)
        .with_replication_factor(1)
        .with_configs(vec![config]);
    let there = made.clone().with_name(topic(TOPIC));
    CreateTopicsRequest::default().with_topics(vec![made, there]).with_timeout_ms(30_000)
}

/// One topic that is there, and one that is not.
fn metadata(version: i16) -> MetadataRequest {
    use metadata_request::MetadataRequestTopic;
    let topics =
        [TOPIC, "not-there"].map(|name| MetadataRequestTopic::default().with_name(Some(topic(name))));
    MetadataRequest::default()
        .with_topics(Some(topics.to_vec()))
        .with_allow_auto_topic_creation(false)
        .with_include_topic_authorized_operations(version >= 8)
        .with_include_cluster_authorized_operations((8..=10).contains(&version))
}

/// The end of one partition, the start of the other, and a partition that is not there.
fn list_offsets() -> ListOffsetsRequest {
    use list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
    let partitions = [(0, -1), (1, -2), (9, -1)].map(|(index, timestamp)| {
        ListOffsetsPartition::default().with_partition_index(index).with_timestamp(timestamp)
    });
    let topic = ListOffsetsTopic::default().with_name(topic(TOPIC)).with_partitions(partitions.to_vec());
    ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic])
}

/// The current epoch, and one that was never there.
fn offset_for_leader_epoch() -> OffsetForLeaderEpochRequest {
    use offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
    let partitions = [(0, 0), (1, 99)].map(|(index, epoch)| {
        OffsetForLeaderPartition::default().with_partition(index).with_leader_epoch(epoch)
    });
    let topic = OffsetForLeaderTopic::default().with_topic(topic(TOPIC)).with_partitions(partitions.to_vec());
    OffsetForLeaderEpochRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic])
}

/// Two configs with what they would be otherwise, and a topic that is not there.
fn describe_configs(version: i16) -> DescribeConfigsRequest {
    use describe_configs_request::DescribeConfigsResource;
    let keys = ["cleanup.policy", "retention.ms"].map(StrBytes::from_static_str).to_vec();
    let there = DescribeConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text(TOPIC))
        .with_configuration_keys(Some(keys));
    let missing = there.clone().with_resource_name(text("not-there"));
    DescribeConfigsRequest::default()
        .with_resources(vec![there, missing])
        .with_include_synonyms(true)
        .with_include_documentation(version >= 3)
}

/// A topic that grows, and one that may not shrink.
fn create_partitions(version: i16) -> CreatePartitionsRequest {
    use create_partitions_request::CreatePartitionsTopic;
    let grown = CreatePartitionsTopic::default()
        .with_name(topic("made-by-v5"))
        .with_count(3 + i32::from(version))
        .with_assignments(None);
    let shrunk = grown.clone().with_name(topic(TOPIC)).with_count(1);
    CreatePartitionsRequest::default().with_topics(vec![grown, shrunk]).with_timeout_ms(30_000)
}

/// A config that is set, and a value that no broker takes.
fn alter_configs() -> IncrementalAlterConfigsRequest {
    use incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
    let resource = |name: &str, value: &'static str| {
        let config = AlterableConfig::default()
            .with_name(StrBytes::from_static_str("retention.ms"))
            .with_config_operation(0)
            .with_value(Some(StrBytes::from_static_str(value)));
        AlterConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(text(name))
            .with_configs(vec![config])
    };
    let resources = vec![resource("made-by-v5", "3600000"), resource(TOPIC, "soon")];
    IncrementalAlterConfigsRequest::default().with_resources(resources)
}

/// Both partitions, and one that is not there.
fn describe_producers() -> DescribeProducersRequest {
    use describe_producers_request::TopicRequest;
    let topic = TopicRequest::default().with_name(topic(TOPIC)).with_partition_indexes(vec![0, 1, 9]);
    DescribeProducersRequest::default().with_topics(vec![topic])
}
