//! Answers of real brokers (`fixtures/frames`): each is read, and written again byte for byte.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::Encodable;
use twinlog_protocol::ErrorCode;
use twinlog_protocol::message::types::*;
use twinlog_protocol::message::{Request, decode_frame};
use twinlog_protocol::versions::{Api, negotiate};

const CORRELATION_ID: i32 = 7;
const BROKERS: [&str; 4] = ["2.4.1", "2.8.2", "3.9.2", "4.3.1"];

fn folder(broker: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/frames").join(format!("kafka-{broker}"))
}

fn frame(broker: &str, api: Api, version: i16) -> Bytes {
    let path = folder(broker).join(format!("{api}.v{version}.bin"));
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into()
}

fn answer<R: Request>(broker: &str, version: i16) -> R::Response {
    decode_frame::<R>(frame(broker, R::API, version), version, CORRELATION_ID)
        .unwrap_or_else(|error| panic!("{} {version} of {broker}: {error}", R::API))
}

/// The versions of an API that we and a broker speak, by the broker's own answer.
fn common(broker: &str, api: Api) -> Option<std::ops::RangeInclusive<i16>> {
    let spoken = answer::<ApiVersionsRequest>(broker, 3);
    let theirs = spoken.api_keys.iter().find(|spoken| spoken.api_key == api.key())?;
    let max = negotiate(api, theirs.min_version, theirs.max_version)
        .expect("tried brokers share a version with us");
    Some(api.versions().min.max(theirs.min_version)..=max)
}

/// Reads every captured answer of one kind and writes it again. Returns how many there were.
fn written_again<R: Request<Response: Encodable>>(broker: &str) -> usize {
    let Some(versions) = common(broker, R::API) else { return 0 };
    let count = versions.clone().count();
    for version in versions {
        let mut body = BytesMut::new();
        answer::<R>(broker, version).encode(&mut body, version).expect("what was read can be written");
        let frame = frame(broker, R::API, version);
        let header_bytes = if R::API.is_flexible(version) && R::API != Api::ApiVersions { 5 } else { 4 };
        assert_eq!(body, frame[header_bytes..], "{} {version} of {broker}", R::API);
    }
    count
}

#[test]
fn answers_of_real_brokers_are_read_and_written_again_byte_for_byte() {
    for broker in BROKERS {
        let read = [
            written_again::<ApiVersionsRequest>(broker),
            written_again::<CreatePartitionsRequest>(broker),
            written_again::<CreateTopicsRequest>(broker),
            written_again::<DescribeConfigsRequest>(broker),
            written_again::<DescribeProducersRequest>(broker),
            written_again::<IncrementalAlterConfigsRequest>(broker),
            written_again::<InitProducerIdRequest>(broker),
            written_again::<ListOffsetsRequest>(broker),
            written_again::<MetadataRequest>(broker),
            written_again::<OffsetForLeaderEpochRequest>(broker),
        ];
        let unknown_versions = if broker.starts_with('2') { 1 } else { 0 };
        let captured = fs::read_dir(folder(broker)).unwrap().count();
        assert_eq!(read.iter().sum::<usize>(), captured - unknown_versions, "{broker}: {read:?}");
    }
}

#[test]
fn the_newest_broker_has_every_version_that_we_speak() {
    let captured = Api::ALL.into_iter().filter(|api| !matches!(api, Api::Produce | Api::Fetch));
    for api in captured {
        let ours = api.versions();
        assert_eq!(common("4.3.1", api), Some(ours.min..=ours.max), "{api}");
    }
}

#[test]
fn a_broker_that_does_not_know_the_version_is_understood() {
    for broker in ["2.4.1", "2.8.2"] {
        let answer = answer::<ApiVersionsRequest>(broker, 4);
        assert_eq!(ErrorCode::from(answer.error_code), ErrorCode::UnsupportedVersion);
        let [spoken] = &answer.api_keys[..] else { panic!("{broker}: one range, of ApiVersions itself") };
        assert_eq!((spoken.api_key, spoken.min_version, spoken.max_version), (18, 0, 3));
    }
}

#[test]
fn what_an_old_source_lacks_is_named() {
    assert_eq!(common("2.4.1", Api::DescribeProducers), None);
    let listed: BTreeSet<_> = Api::ALL.into_iter().filter(|&api| common("2.4.1", api).is_some()).collect();
    assert_eq!(listed.len(), Api::ALL.len() - 1);
}

#[test]
fn a_partition_names_its_idempotent_producers() {
    for broker in ["2.8.2", "3.9.2", "4.3.1"] {
        let answer = answer::<DescribeProducersRequest>(broker, 0);
        let [first, second, missing] = &answer.topics[0].partitions[..] else { panic!("three partitions") };
        for partition in [first, second] {
            let [producer] = &partition.active_producers[..] else { panic!("{broker}: one producer") };
            assert!(producer.producer_id.0 >= 0 && producer.last_sequence >= 0, "{producer:?}");
        }
        assert_eq!(ErrorCode::from(missing.error_code), ErrorCode::UnknownTopicOrPartition);
    }
}

#[test]
fn metadata_holds_leaders_and_names_what_is_missing() {
    for broker in BROKERS {
        let answer = answer::<MetadataRequest>(broker, 9);
        assert!(answer.cluster_id.is_some_and(|id| !id.is_empty()));
        assert_eq!(&*answer.brokers[0].host, "localhost");
        let named = |name: &str| {
            answer
                .topics
                .iter()
                .find(|topic| topic.name.as_ref().is_some_and(|found| &**found == name))
                .unwrap()
        };
        assert_eq!(named("frames").partitions.len(), 2);
        assert!(named("frames").partitions.iter().all(|partition| partition.leader_id == 1));
        assert_eq!(ErrorCode::from(named("not-there").error_code), ErrorCode::UnknownTopicOrPartition);
    }
}
