//! Messages put together by hand after the format's description; what real brokers wrote is in the tests crate.

use bytes::BufMut;
use proptest::prelude::*;

use super::*;
use crate::record::{compress, records};

const MB: usize = 1 << 20;

fn message(magic: i8, offset: i64, attributes: i8, key: Option<&[u8]>, value: Option<&[u8]>) -> Bytes {
    let mut counted = BytesMut::new();
    counted.put_i8(magic);
    counted.put_i8(attributes);
    if magic == 1 {
        counted.put_i64(7_000 + offset);
    }
    for field in [key, value] {
        counted.put_i32(field.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap()));
        counted.put_slice(field.unwrap_or_default());
    }
    let mut crc = flate2::Crc::new();
    crc.update(&counted);
    let mut out = BytesMut::new();
    out.put_i64(offset);
    out.put_i32(i32::try_from(4 + counted.len()).unwrap());
    out.put_u32(crc.sum());
    out.put_slice(&counted);
    out.freeze()
}

/// A wrapper of messages at these offsets, as a broker has it in its log.
fn wrapper(magic: i8, codec: Compression, offsets: &[i64], flags: i8) -> Bytes {
    let first = if magic == 0 { 0 } else { offsets[0] };
    let inner: Vec<Bytes> = offsets
        .iter()
        .map(|offset| message(magic, offset - first, 0, None, Some(offset.to_string().as_bytes())))
        .collect();
    let mut packed = compress(codec, &inner.concat().into()).unwrap().to_vec();
    if (magic, codec) == (0, Compression::Lz4) {
        // Kafka's mistake: the checksum of the descriptor takes in the four bytes before it.
        packed[6] = XxHash32::oneshot(0, &packed[..6]).to_be_bytes()[2];
    }
    let attributes = i8::try_from(codec.id()).unwrap() | flags;
    message(magic, *offsets.last().unwrap(), attributes, None, Some(&packed))
}

/// Upstream offset, timestamp, value of each record.
fn seen(reencoded: &Reencoded) -> Vec<(i64, i64, Option<Bytes>)> {
    let header = *reencoded.view.header();
    reencoded.view.check_crc().unwrap();
    assert!(header.is_dense());
    (0..)
        .zip(records(&reencoded.view, MB).unwrap().map(Result::unwrap))
        .map(|(index, record)| {
            (reencoded.offset_at(index), header.timestamp_ms(record.timestamp_delta), record.value)
        })
        .collect()
}

#[test]
fn a_message_alone_becomes_a_batch_of_one() {
    for magic in [0, 1] {
        for (key, value) in
            [(None, None), (Some(&b"k"[..]), None), (None, Some(&b"v"[..])), (Some(b""), Some(b""))]
        {
            let one = upgrade(&message(magic, 42, 0, key, value), 0, MB).unwrap().unwrap();
            let timestamp_ms = if magic == 0 { -1 } else { 7_042 };
            assert_eq!(seen(&one), [(42, timestamp_ms, value.map(Bytes::copy_from_slice))]);
            let record = records(&one.view, MB).unwrap().next().unwrap().unwrap();
            assert_eq!((record.key, record.headers), (key.map(Bytes::copy_from_slice), vec![]));
        }
    }
}

#[test]
fn wrappers_of_both_formats_keep_offsets_times_and_codec() {
    let offsets = [100, 101, 105, 109];
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4] {
        for magic in [0, 1] {
            for first_offset in [0, 100, 101, 102, 105, 106, 109] {
                let kept = offsets.iter().filter(|offset| **offset >= first_offset);
                // Inside magic 1 a time belongs to the message, whose offset counts from the first.
                let timestamp_ms = |offset: i64| if magic == 0 { -1 } else { 7_000 + offset - 100 };
                let expected: Vec<_> = kept
                    .map(|&offset| (offset, timestamp_ms(offset), Some(offset.to_string().into())))
                    .collect();
                let one = upgrade(&wrapper(magic, codec, &offsets, 0), first_offset, MB).unwrap().unwrap();
                assert_eq!(seen(&one), expected, "magic {magic}, {codec:?}, from {first_offset}");
                assert_eq!(one.view.header().attributes.compression(), Ok(codec));
            }
            assert_eq!(upgrade(&wrapper(magic, codec, &offsets, 0), 110, MB), Ok(None));
        }
    }
}

#[test]
fn under_log_append_time_all_have_the_time_of_the_wrapper() {
    let one = upgrade(&wrapper(1, Compression::Gzip, &[5, 6], LOG_APPEND_TIME), 0, MB).unwrap().unwrap();
    assert_eq!(seen(&one).iter().map(|(_, timestamp_ms, _)| *timestamp_ms).collect::<Vec<_>>(), [7_006; 2]);
}

fn fault(bytes: &Bytes) -> String {
    upgrade(bytes, 0, MB).unwrap_err().to_string()
}

#[test]
fn what_is_wrong_is_named() {
    let mut damaged = message(1, 5, 0, None, Some(b"value")).to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(fault(&damaged.into()).contains("message crc"));
    let two = [message(0, 1, 0, None, None), message(0, 2, 0, None, None)].concat();
    assert!(fault(&two.into()).contains("message"));
    assert!(fault(&message(1, 5, 4, None, Some(b"zstd"))).contains("codec"));
    assert!(fault(&message(1, 5, 1, None, None)).contains("without a value"));
    assert!(fault(&message(1, 5, 3, None, Some(b"\x04\x22\x4d\x18"))).contains("without an end"));
    assert!(fault(&message(1, 5, 3, None, Some(b"\x04\x22\x4d\x19z\0\0\0\0"))).contains("lz4"));
    let backwards = wrapper(0, Compression::Gzip, &[7, 6], 0);
    assert!(fault(&backwards).contains("message offset"));
    let inner = message(0, 3, 0, None, None);
    let packed = compress(Compression::Gzip, &inner).unwrap();
    assert!(fault(&message(1, 3, 1, None, Some(&packed))).contains("magic"));
    let nested = compress(Compression::Gzip, &message(1, 0, 1, None, Some(b"x"))).unwrap();
    assert!(fault(&message(1, 3, 1, None, Some(&nested))).contains("wrapper"));
}

#[test]
fn the_limit_on_unpacked_bytes_holds() {
    let zeros = compress(Compression::Gzip, &Bytes::from(vec![0; 10_000])).unwrap();
    let error = upgrade(&message(1, 3, 1, None, Some(&zeros)), 0, 9_999).unwrap_err();
    assert!(matches!(error, DecodeError::UnpacksTooLarge { what: "gzip", limit: 9_999 }), "{error}");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80), codec in 0_i8..4) {
        let bytes = Bytes::from(bytes);
        let _any = upgrade(&bytes, 0, MB);
        let _wrapped = upgrade(&message(1, 9, codec, None, Some(&bytes)), 0, MB);
        let packed = compress(Compression::Gzip, &bytes).unwrap();
        let _packed = upgrade(&message(0, 9, 1, None, Some(&packed)), 0, MB);
    }
}
