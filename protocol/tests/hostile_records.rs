//! Lying Fetch and Produce answers: real ones with every place turned into a huge or negative length, and cut. None
//! may panic, or make us allocate beyond a small multiple of the answer.

use std::fs;
use std::path::Path;

use allocation_counter::measure;
use bytes::Bytes;
use twinlog_protocol::batch::batches;
use twinlog_protocol::fetch::FetchResponse;
use twinlog_protocol::produce::ProduceResponse;
use twinlog_protocol::{DecodeError, fetch, produce};

type Read = fn(i16, Bytes) -> Result<(), DecodeError>;

/// A partition of 37 bytes takes 200 in memory, and a list that grows may hold twice what it needs.
const GROWTH: usize = 16;
/// Error texts.
const SLACK_BYTES: usize = 1024;

/// Values that a length of any width could be turned into, negative and huge, and zero.
const LIES: [&[u8]; 8] = [
    &[0],
    &[0x7f],
    &[0xff, 0xff],
    &[0x7f, 0xff],
    &[0xff, 0xff, 0xff, 0xfe],
    &[0x7f, 0xff, 0xff, 0xff],
    &[0x80, 0, 0, 0],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
];

fn read_fetch(version: i16, body: Bytes) -> Result<(), DecodeError> {
    for partition in FetchResponse::decode(version, body)?.partitions {
        batches(partition.records).try_for_each(|entry| entry.map(drop))?;
    }
    Ok(())
}

fn read_produce(version: i16, body: Bytes) -> Result<(), DecodeError> {
    ProduceResponse::decode(version, body).map(drop)
}

fn read(read: Read, version: i16, body: Vec<u8>) -> Result<(), DecodeError> {
    let limit = body.len() * GROWTH + SLACK_BYTES;
    let body = Bytes::from(body);
    let mut result = Ok(());
    let allocated = measure(|| result = read(version, body));
    let bytes = usize::try_from(allocated.bytes_max).expect("less than the memory there is");
    assert!(bytes <= limit, "version {version}: {bytes} bytes allocated, {limit} are the limit: {result:?}");
    result
}

fn samples() -> Vec<(Read, i16, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/batches/4.3.1");
    let body = |name: String| fs::read(folder.join(name)).expect("every version was captured");
    let fetched = fetch::VERSIONS.map(|v| (read_fetch as Read, v, body(format!("fetch-v{v}.body"))));
    let produced = produce::VERSIONS.map(|v| (read_produce as Read, v, body(format!("produce-v{v}.body"))));
    fetched.chain(produced).collect()
}

#[test]
fn a_lie_anywhere_costs_no_memory() {
    let mut refused = 0;
    for (decode, version, body) in samples() {
        assert_eq!(read(decode, version, body.clone()), Ok(()));
        for at in 0..body.len() {
            for lie in LIES {
                // In place, as a fixed-width length; and in the place of one byte, as a varint.
                let end = (at + lie.len()).min(body.len());
                for replaced in [at..end, at..at + 1] {
                    let mut body = body.clone();
                    body.splice(replaced, lie.iter().copied());
                    refused += usize::from(read(decode, version, body).is_err());
                }
            }
        }
    }
    assert!(refused > 10_000, "most of these are lies: {refused}");
}

#[test]
fn a_cut_anywhere_is_an_error_and_costs_no_memory() {
    for (decode, version, body) in samples() {
        for end in 0..body.len() {
            assert!(read(decode, version, body[..end].to_vec()).is_err(), "version {version} cut at {end}");
        }
    }
}

/// The densest answers there are: a hundred thousand partitions that say nothing, as many record errors.
#[test]
fn the_densest_answers_stay_within_the_limit() {
    let count = [0xa1, 0x8d, 0x06]; // 100,000 and one
    let partition = [&[0; 4 + 2 + 24][..], &[1], &[0; 4], &[1, 0]].concat();
    let fetched = [&[0; 10][..], &[2], &[0; 16], &count, &partition.repeat(100_000), &[0, 0]].concat();
    assert_eq!(read(read_fetch, 16, fetched), Ok(()));
    let errors = [&count[..], &[0, 0, 0, 0, 0, 0].repeat(100_000), &[0, 0]].concat();
    let produced = [&[2][..], &[0; 16], &[2], &[0; 30], &errors, &[0; 6]].concat();
    assert_eq!(read(read_produce, 13, produced), Ok(()));
}
