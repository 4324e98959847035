//! Lying answers: real ones with every place turned into a huge or negative length, cut, and edited at random. None
//! may panic, or make us allocate beyond a small multiple of the frame.

use std::fs;
use std::path::Path;

use allocation_counter::measure;
use bytes::Bytes;
use proptest::prelude::*;
use twinlog_protocol::DecodeError;
use twinlog_protocol::message::types::*;
use twinlog_protocol::message::{Request, decode_frame};
use twinlog_protocol::versions::Api;

const CORRELATION_ID: i32 = 7;

type Decode = fn(Bytes, i16) -> Result<(), DecodeError>;

/// A real answer, and how to read it.
struct Sample {
    name: String,
    version: i16,
    decode: Decode,
    frame: Vec<u8>,
}

/// The captured answers of one broker, which has every version that we speak.
fn samples() -> Vec<Sample> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/frames/kafka-4.3.1");
    let mut samples = Vec::new();
    for (api, decode) in decoders() {
        let versions = api.versions();
        for version in versions.min..=versions.max {
            let name = format!("{api}.v{version}.bin");
            let frame = fs::read(folder.join(&name)).expect("every version was captured");
            samples.push(Sample { name, version, decode, frame });
        }
    }
    samples
}

fn decoders() -> [(Api, Decode); 10] {
    fn of<R: Request>() -> (Api, Decode) {
        (R::API, |frame, version| decode_frame::<R>(frame, version, CORRELATION_ID).map(drop))
    }
    [
        of::<ApiVersionsRequest>(),
        of::<CreatePartitionsRequest>(),
        of::<CreateTopicsRequest>(),
        of::<DescribeConfigsRequest>(),
        of::<DescribeProducersRequest>(),
        of::<IncrementalAlterConfigsRequest>(),
        of::<InitProducerIdRequest>(),
        of::<ListOffsetsRequest>(),
        of::<MetadataRequest>(),
        of::<OffsetForLeaderEpochRequest>(),
    ]
}

/// Decoded structures are larger than their bytes: an empty string takes one byte and 32 in memory, a structure its
/// map of unknown tags besides.
const GROWTH: usize = 32;
/// Error texts, and the maps of the few unknown tags that a small frame may hold.
const SLACK_BYTES: usize = 4096;

/// Decodes and counts.
fn decoded(sample: &Sample, frame: Vec<u8>) -> Result<(), DecodeError> {
    let limit = frame.len() * GROWTH + SLACK_BYTES;
    let frame = Bytes::from(frame);
    let mut result = Ok(());
    let allocated = measure(|| result = (sample.decode)(frame, sample.version));
    let bytes = usize::try_from(allocated.bytes_max).expect("less than the memory there is");
    assert!(bytes <= limit, "{}: {bytes} bytes allocated, {limit} are the limit: {result:?}", sample.name);
    result
}

/// Values that a length of any width could be turned into, negative and huge, and zero.
const LIES: [&[u8]; 12] = [
    &[0],
    &[0x7f],
    &[0xff, 0xff],
    &[0x80, 0],
    &[0x7f, 0xff],
    &[0xff, 0xff, 0xff, 0xff],
    &[0xff, 0xff, 0xff, 0xfe],
    &[0x80, 0, 0, 0],
    &[0x7f, 0xff, 0xff, 0xff],
    &[0, 0xff, 0xff, 0xff],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff],
];

#[test]
fn real_answers_stay_within_the_limit() {
    for sample in samples() {
        assert_eq!(decoded(&sample, sample.frame.clone()), Ok(()), "{}", sample.name);
    }
}

#[test]
fn a_lie_anywhere_costs_no_memory() {
    let mut refused = 0;
    for sample in samples() {
        for at in 4..sample.frame.len() {
            for lie in LIES {
                // In place, as a fixed-width length; and in the place of one byte, as a varint.
                let end = (at + lie.len()).min(sample.frame.len());
                for replaced in [at..end, at..at + 1] {
                    let mut frame = sample.frame.clone();
                    frame.splice(replaced, lie.iter().copied());
                    refused += usize::from(decoded(&sample, frame).is_err());
                }
            }
        }
    }
    assert!(refused > 10_000, "most of these are lies: {refused}");
}

#[test]
fn a_cut_anywhere_is_an_error_and_costs_no_memory() {
    for sample in samples() {
        for end in 0..sample.frame.len() {
            let error = decoded(&sample, sample.frame[..end].to_vec());
            assert!(error.is_err(), "{} cut at {end}", sample.name);
        }
    }
}

#[test]
fn another_correlation_id_is_an_error() {
    for mut sample in samples() {
        sample.frame[3] += 1;
        let expected = DecodeError::Correlation { expected: CORRELATION_ID, found: CORRELATION_ID + 1 };
        assert_eq!(decoded(&sample, sample.frame.clone()), Err(expected), "{}", sample.name);
    }
}

/// The answer that made the message crate ask for 412 GB.
#[test]
fn nine_bytes_that_name_two_thousand_million_topics_are_refused() {
    for (api, decode) in decoders() {
        let sample = Sample { name: api.to_string(), version: api.versions().max, decode, frame: Vec::new() };
        let frame = [&[0, 0, 0, 7, 0][..], &[0, 0, 0, 0], &[0xff, 0xff, 0xff, 0xff, 0x07], &[0; 40]].concat();
        assert!(decoded(&sample, frame).is_err(), "{api}");
    }
}

/// The densest answer there is: a million synonyms of four bytes each.
#[test]
fn the_densest_answer_stays_within_the_limit() {
    let (_, decode) = decoders()[3];
    let sample = Sample { name: "densest".into(), version: 4, decode, frame: Vec::new() };
    let results = [&[2, 0, 0, 0, 2, 1, 2][..], &[1, 0, 0, 0, 0]].concat();
    let synonyms = [0xc1, 0x84, 0x3d]; // 1,000,000 and one
    let ends = [0, 0, 0, 0, 0];
    let frame =
        [&[0, 0, 0, 7, 0][..], &[0; 4], &results, &synonyms, &[1, 0, 0, 0].repeat(1_000_000), &ends].concat();
    assert_eq!(decoded(&sample, frame), Ok(()));
}

/// Ten million tagged fields that nobody knows.
#[test]
fn unknown_tags_without_end_are_refused() {
    let (_, decode) = decoders()[6];
    let sample = Sample { name: "tags".into(), version: 5, decode, frame: Vec::new() };
    let frame =
        [&[0, 0, 0, 7, 0][..], &[0; 16], &[0x80, 0xad, 0xe2, 0x04], &[9, 0].repeat(10_000_000)].concat();
    assert!(matches!(decoded(&sample, frame), Err(DecodeError::BadValue { .. })));
}

proptest! {
    #[test]
    fn random_bodies_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..300)) {
        for (api, decode) in decoders() {
            let versions = api.versions();
            for version in versions.min..=versions.max {
                let sample = Sample { name: format!("{api} {version}"), version, decode, frame: Vec::new() };
                let frame = [&[0, 0, 0, 7][..], &body].concat();
                // Random bytes may happen to be an answer; what counts is that nothing else happens.
                let _ = decoded(&sample, frame);
            }
        }
    }

    #[test]
    fn real_answers_edited_at_random_are_read_or_refused(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        for sample in samples() {
            let mut frame = sample.frame.clone();
            for (place, byte) in &edits {
                let at = 4 + place.index(frame.len() - 4);
                frame[at] = *byte;
            }
            let _ = decoded(&sample, frame);
        }
    }
}
