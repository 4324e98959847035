//! Requests: the frame around them. Responses: every version of each is written from its table, read by the message
//! crate, written again, equal; and the same with every length turned into a lie and cut at every byte.

use std::fmt::Debug;

use bytes::{BufMut, Bytes};
use proptest::prelude::*;

use super::shape::{Field, Kind};
use super::types::*;
use super::*;

#[test]
fn a_frame_is_prefix_header_and_body() {
    let request = InitProducerIdRequest::default().with_transactional_id(None).with_transaction_timeout_ms(5);
    let header = [0, 22, 0, 1, 0, 0, 0, 9, 0, 2, b't', b'w'];
    let frame = encode_frame(&request, 1, 9, "tw").unwrap();
    assert_eq!(frame[..], [&[0, 0, 0, 18][..], &header, &[0xff, 0xff, 0, 0, 0, 5]].concat());
    // Flexible: a tag section ends header and body, and null is compact.
    let header = [0, 22, 0, 2, 0, 0, 0, 9, 0, 2, b't', b'w', 0];
    let frame = encode_frame(&request, 2, 9, "tw").unwrap();
    assert_eq!(frame[..], [&[0, 0, 0, 19][..], &header, &[0, 0, 0, 0, 5, 0]].concat());
}

#[test]
fn a_request_that_its_version_cannot_carry_is_refused_by_name() {
    let request = InitProducerIdRequest::default().with_producer_id(ProducerId(4));
    let error = encode_frame(&request, 1, 9, "tw").unwrap_err();
    let EncodeError::Invalid { what: "InitProducerId", reason } = error else { panic!("{error}") };
    assert!(reason.contains("not available on the selected protocol version"), "{reason}");
}

#[test]
fn a_version_that_we_do_not_speak_is_refused_both_ways() {
    let error = encode_frame(&MetadataRequest::default(), 6, 9, "tw").unwrap_err();
    assert_eq!(error.to_string(), "Metadata version 6 is not written here: versions 7 to 13 are");
    let error = decode_frame::<MetadataRequest>(Bytes::from_static(&[0; 40]), 14, 0).unwrap_err();
    assert!(matches!(error, DecodeError::BadValue { field: "Metadata response", value: 14, .. }));
}

/// Something to try with each kind of request.
trait Trial {
    fn try_kind<R>(&mut self)
    where
        R: Request<Response: Encodable + PartialEq + Debug>;
}

fn for_each_kind(trial: &mut impl Trial) {
    trial.try_kind::<ApiVersionsRequest>();
    trial.try_kind::<CreatePartitionsRequest>();
    trial.try_kind::<CreateTopicsRequest>();
    trial.try_kind::<DescribeConfigsRequest>();
    trial.try_kind::<DescribeProducersRequest>();
    trial.try_kind::<IncrementalAlterConfigsRequest>();
    trial.try_kind::<InitProducerIdRequest>();
    trial.try_kind::<ListOffsetsRequest>();
    trial.try_kind::<MetadataRequest>();
    trial.try_kind::<OffsetForLeaderEpochRequest>();
}

/// Bytes that decide what a written response holds; zeros when they run out.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn next(&mut self, below: u8) -> u8 {
        self.0.next().copied().unwrap_or(0) % below
    }
}

/// A length field of a written frame.
#[derive(Debug, Clone, Copy)]
struct Length {
    at: usize,
    wire: Wire,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Wire {
    Int16,
    Int32,
    /// One byte, as the writer keeps everything short.
    Varint,
}

/// Writes a response by its table: the walk turned around.
struct Writer<'a> {
    choices: Choices<'a>,
    version: i16,
    is_flexible: bool,
    out: Vec<u8>,
    lengths: Vec<Length>,
}

const CORRELATION_ID: i32 = 77;

impl<'a> Writer<'a> {
    fn frame<R: Request>(version: i16, choices: &'a [u8]) -> (Vec<u8>, Vec<Length>) {
        let is_flexible = R::API.is_flexible(version);
        let choices = Choices(choices.iter());
        let mut writer = Writer { choices, version, is_flexible, out: Vec::new(), lengths: Vec::new() };
        writer.out.put_i32(CORRELATION_ID);
        if is_flexible && R::API != Api::ApiVersions {
            writer.length(0, Wire::Varint);
        }
        writer.structure(R::ANSWER.fields);
        (writer.out, writer.lengths)
    }

    fn length(&mut self, length: u8, wire: Wire) {
        self.lengths.push(Length { at: self.out.len(), wire });
        match wire {
            Wire::Int16 => self.out.put_i16(length.into()),
            Wire::Int32 => self.out.put_i32(length.into()),
            Wire::Varint => self.out.put_u8(length),
        }
    }

    fn structure(&mut self, fields: &'static [Field]) {
        let present = fields.iter().filter(|field| field.is_in(self.version));
        let (tagged, plain): (Vec<_>, Vec<_>) = present.partition(|field| field.tag.is_some());
        for field in plain {
            let least = u8::from(!field.is_nullable(self.version));
            self.value(field, least);
        }
        if self.is_flexible {
            self.tags(&tagged);
        }
    }

    /// A string or array counts `least` minus one at least; minus one is null.
    fn value(&mut self, field: &Field, least: u8) {
        let kind = field.kind;
        let wire = match kind {
            _ if self.is_flexible => Wire::Varint,
            Kind::Text => Wire::Int16,
            _ => Wire::Int32,
        };
        let count = match kind {
            Kind::Fixed(bytes) => return self.fixed(bytes),
            _ => least + self.choices.next(4),
        };
        match (wire, count) {
            (Wire::Varint, _) => self.length(count, wire),
            (Wire::Int16, 0) => self.out.put_i16(-1),
            (Wire::Int32, 0) => self.out.put_i32(-1),
            (_, _) => self.length(count - 1, wire),
        }
        for _ in 1..count {
            match kind {
                Kind::Text => self.out.put_u8(b'a'),
                Kind::Structs(fields) => self.structure(fields),
                Kind::Values(bytes) => self.fixed(bytes),
                Kind::Fixed(_) => unreachable!("returned above"),
            }
        }
    }

    /// Ones, so that no tagged field has its default (the crate would leave it out), and a boolean is one.
    fn fixed(&mut self, bytes: usize) {
        self.out.extend(std::iter::repeat_n(1, bytes));
    }

    fn tags(&mut self, known: &[&Field]) {
        let known: Vec<_> = known.iter().filter(|_| self.choices.next(2) == 1).collect();
        let unknown = self.choices.next(3);
        self.length(u8::try_from(known.len()).unwrap() + unknown, Wire::Varint);
        for field in known {
            self.out.put_u8(u8::try_from(field.tag.unwrap()).unwrap());
            self.sized(|writer| writer.value(field, 2));
        }
        for tag in 0..unknown {
            self.out.put_u8(100 + tag);
            self.sized(|writer| writer.fixed(usize::from(tag)));
        }
    }

    fn sized(&mut self, write: impl FnOnce(&mut Self)) {
        let at = self.out.len();
        self.length(0, Wire::Varint);
        write(self);
        // Longer values are none that these choices can make.
        self.out[at] = u8::try_from(self.out.len() - at - 1).ok().filter(|&size| size < 128).unwrap();
    }
}

fn decoded<R: Request>(frame: &[u8], version: i16) -> Result<R::Response, DecodeError> {
    decode_frame::<R>(Bytes::copy_from_slice(frame), version, CORRELATION_ID)
}

/// The body as the message crate writes it.
fn crate_body(response: &impl Encodable, version: i16) -> Vec<u8> {
    let mut body = BytesMut::new();
    response.encode(&mut body, version).unwrap();
    body.to_vec()
}

fn body_start(api: Api, version: i16) -> usize {
    4 + usize::from(api.is_flexible(version) && api != Api::ApiVersions)
}

struct WrittenAgain<'a>(&'a [u8]);

impl Trial for WrittenAgain<'_> {
    fn try_kind<R: Request<Response: Encodable + PartialEq + Debug>>(&mut self) {
        let versions = R::API.versions();
        for version in versions.min..=versions.max {
            let (frame, _) = Writer::frame::<R>(version, self.0);
            let response =
                decoded::<R>(&frame, version).unwrap_or_else(|error| panic!("{} {version}: {error}", R::API));
            let body = crate_body(&response, version);
            assert_eq!(body, frame[body_start(R::API, version)..], "{} {version}: {response:?}", R::API);
        }
    }
}

struct Cut<'a>(&'a [u8]);

impl Trial for Cut<'_> {
    fn try_kind<R: Request<Response: Encodable + PartialEq + Debug>>(&mut self) {
        let versions = R::API.versions();
        for version in versions.min..=versions.max {
            let (mut frame, _) = Writer::frame::<R>(version, self.0);
            for end in 0..frame.len() {
                assert!(decoded::<R>(&frame[..end], version).is_err(), "{} {version} cut at {end}", R::API);
            }
            frame.push(0);
            let error = decoded::<R>(&frame, version).unwrap_err();
            assert_eq!(error, DecodeError::TrailingBytes { what: R::ANSWER.what, left: 1 });
        }
    }
}

struct Lies<'a>(&'a [u8]);

impl Trial for Lies<'_> {
    fn try_kind<R: Request<Response: Encodable + PartialEq + Debug>>(&mut self) {
        let versions = R::API.versions();
        for version in versions.min..=versions.max {
            let (frame, lengths) = Writer::frame::<R>(version, self.0);
            for length in lengths {
                for (lie, old_bytes) in lies(length.wire) {
                    let mut lying = frame.clone();
                    lying.splice(length.at..length.at + old_bytes, lie.iter().copied());
                    let error = decoded::<R>(&lying, version);
                    assert!(error.is_err(), "{} {version}: {lie:?} at {length:?}: {error:?}", R::API);
                }
            }
        }
    }
}

/// Lengths that are negative, or more than any frame of ours holds.
fn lies(wire: Wire) -> Vec<(Vec<u8>, usize)> {
    match wire {
        Wire::Int16 => [i16::MAX, i16::MIN, -2].iter().map(|lie| (lie.to_be_bytes().to_vec(), 2)).collect(),
        Wire::Int32 => {
            [i32::MAX, i32::MIN, -2, 1 << 24].iter().map(|lie| (lie.to_be_bytes().to_vec(), 4)).collect()
        }
        Wire::Varint => vec![
            (vec![0xff, 0xff, 0xff, 0xff, 0x0f], 1),
            (vec![0xff, 0xff, 0xff, 0xff, 0x07], 1),
            (vec![0xff, 0xff, 0xff, 0xff, 0xff, 0x01], 1),
            (vec![0x80, 0x80, 0x80, 0x08], 1),
        ],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_version_of_every_response_is_read_and_written_again(
        choices in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        for_each_kind(&mut WrittenAgain(&choices));
    }

    #[test]
    fn a_response_cut_anywhere_or_too_long_is_an_error(choices in prop::collection::vec(any::<u8>(), 0..60)) {
        for_each_kind(&mut Cut(&choices));
    }

    #[test]
    fn a_lie_in_any_length_is_an_error(choices in prop::collection::vec(any::<u8>(), 0..60)) {
        for_each_kind(&mut Lies(&choices));
    }
}
