//! Merging beside a naive twin that decodes all records, and what may not be merged.

use proptest::option;
use proptest::prelude::*;

use bytes::Bytes;

use super::*;
use crate::batch::{Compression, HEADER_BYTES, ProducerStamp, crc};
use crate::record::{Header, Record, records};

const MB: usize = 1 << 20;

/// A record with its timestamp.
type Timed = (i64, Record);

prop_compose! {
    fn timed()(
        timestamp_ms in prop_oneof![-1i64..3_000_000, any::<i64>()],
        attributes in any::<i8>(),
        key in option::of(proptest::collection::vec(any::<u8>(), 0..40)),
        value in option::of(proptest::collection::vec(any::<u8>(), 0..90)),
        headers in proptest::collection::vec((any::<[u8; 3]>(), option::of(any::<[u8; 2]>())), 0..3),
    ) -> Timed {
        let header = |(key, value): ([u8; 3], Option<[u8; 2]>)| Header {
            key: Bytes::copy_from_slice(&key),
            value: value.map(|value| Bytes::copy_from_slice(&value)),
        };
        let headers = headers.into_iter().map(header).collect();
        let (key, value) = (key.map(Bytes::from), value.map(Bytes::from));
        (timestamp_ms, Record { attributes, key, value, headers, ..Record::default() })
    }
}

fn batch(base_offset: i64, compression: Compression, records: &[Timed]) -> BatchView {
    let stamp = ProducerStamp { producer_id: 9, producer_epoch: 1, base_sequence: 4 };
    let mut builder = BatchBuilder::new().compression(compression).producer(stamp).base_offset(base_offset);
    for (timestamp_ms, record) in records {
        builder.push_record(*timestamp_ms, record.clone()).unwrap();
    }
    builder.build().unwrap()
}

/// Batches of `each` that follow on one another.
fn batches(compression: Compression, each: &[Vec<Timed>]) -> Vec<BatchView> {
    mixed(&[compression], each)
}

/// The same, in these codecs by turns.
fn mixed(codecs: &[Compression], each: &[Vec<Timed>]) -> Vec<BatchView> {
    let mut next = 700;
    let one = |(records, codec): (&Vec<Timed>, &Compression)| {
        let view = batch(next, *codec, records);
        next = view.header().next_offset();
        view
    };
    each.iter().zip(codecs.iter().cycle()).map(one).collect()
}

fn plain(base_offset: i64, count: i64) -> BatchView {
    let value = Some(Bytes::from_static(b"a value"));
    let record = Record { value, ..Record::default() };
    batch(
        base_offset,
        Compression::None,
        &(0..count).map(|index| (index, record.clone())).collect::<Vec<_>>(),
    )
}

fn merged(views: &[BatchView], bytes_max: usize) -> BatchView {
    let mut merge = Merge::begin(&views[0], None, bytes_max).unwrap();
    for view in &views[1..] {
        assert_eq!(merge.push(view), Ok(true));
    }
    merge.finish().unwrap()
}

/// With another header, the CRC made right.
fn changed(view: &BatchView, change: impl FnOnce(&mut BatchHeader)) -> BatchView {
    let (mut header, body) = (*view.header(), view.body());
    change(&mut header);
    header.crc = crc::computed(&header.encode(), &body);
    BatchView::parse([&header.encode()[..], &body].concat().into()).unwrap()
}

proptest! {
    #[test]
    fn records_are_those_of_all_batches_in_their_order(
        each in proptest::collection::vec(proptest::collection::vec(timed(), 1..5), 1..6),
        compression in (0usize..5).prop_map(|id| Compression::ALL[id]),
    ) {
        let views = batches(compression, &each);
        let merged = merged(&views, MB);
        let all: Vec<Timed> = each.concat();
        let header = merged.header();
        prop_assert_eq!(merged.check_crc(), Ok(()));
        prop_assert!(header.is_dense());
        prop_assert_eq!((header.base_offset, header.record_count as usize), (700, all.len()));
        prop_assert_eq!(header.max_timestamp, all.iter().map(|timed| timed.0).max().unwrap());
        prop_assert_eq!(header.attributes.compression(), Ok(compression));
        let found: Result<Vec<Record>, _> = records(&merged, MB).unwrap().collect();
        let found: Vec<(i32, Timed)> = found.unwrap().into_iter().map(|mut record| {
            let timestamp_ms = header.base_timestamp.wrapping_add(record.timestamp_delta);
            let place = record.offset_delta;
            (record.offset_delta, record.timestamp_delta) = (0, 0);
            (place, (timestamp_ms, record))
        }).collect();
        let expected: Vec<(i32, Timed)> = (0..).zip(all).collect();
        prop_assert_eq!(found, expected);
    }

    /// The twin reads each record and pushes it: not one byte may differ.
    #[test]
    fn the_bytes_are_those_of_a_batch_made_from_all_records(
        each in proptest::collection::vec(proptest::collection::vec(timed(), 1..5), 1..6),
        compression in (0usize..5).prop_map(|id| Compression::ALL[id]),
    ) {
        let twin = batch(700, compression, &each.concat());
        let twin = changed(&twin, |header| {
            (header.producer_id, header.producer_epoch, header.base_sequence) = (-1, -1, -1);
        });
        prop_assert_eq!(merged(&batches(compression, &each), MB), twin);
    }

    #[test]
    fn whatever_their_codecs_they_merge_where_one_is_given(
        each in proptest::collection::vec(proptest::collection::vec(timed(), 1..5), 1..8),
        from in 0usize..5,
        to in (0usize..5).prop_map(|id| Compression::ALL[id]),
    ) {
        let views = mixed(&[&Compression::ALL[from..], &Compression::ALL[..from]].concat(), &each);
        let mut merge = Merge::begin(&views[0], Some(to), MB).unwrap();
        for view in &views[1..] {
            prop_assert_eq!(merge.push(view), Ok(true));
        }
        prop_assert_eq!(merge.finish().unwrap(), merged(&batches(to, &each), MB));
    }

    #[test]
    fn any_payload_is_merged_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
        count in 1i32..4,
        codec in 0i16..5,
    ) {
        let first = plain(700, 2);
        let header = BatchHeader {
            base_offset: 702,
            batch_length: i32::try_from(49 + bytes.len()).unwrap(),
            attributes: Attributes(codec),
            record_count: count,
            last_offset_delta: count - 1,
            ..*first.header()
        };
        let hostile = BatchView::parse([&header.encode()[..], &bytes].concat().into()).unwrap();
        let hostile = changed(&hostile, |_| ());
        let _ = Merge::begin(&hostile, None, 500).map(|merge| merge.finish().unwrap().check_crc().unwrap());
        let mut merge = Merge::begin(&first, None, 500).unwrap();
        let taken = merge.push(&hostile) == Ok(true);
        let merged = merge.finish().unwrap();
        prop_assert_eq!(merged.header().record_count, if taken { 2 + count } else { 2 });
        prop_assert_eq!(merged.check_crc(), Ok(()));
    }
}

#[test]
fn a_damaged_batch_gets_no_fresh_crc_and_leaves_what_was_there() {
    let (first, second) = (plain(10, 2), plain(12, 3));
    let mut bytes = second.bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let damaged = BatchView::parse(bytes.into()).unwrap();
    let is_about_crc = |error| matches!(error, DecodeError::BadValue { field: "batch crc", .. });
    assert!(is_about_crc(Merge::begin(&damaged, None, MB).unwrap_err()));
    let mut merge = Merge::begin(&first, None, MB).unwrap();
    assert!(is_about_crc(merge.push(&damaged).unwrap_err()));
    assert_eq!(merge.push(&second), Ok(true));
    assert_eq!(merge.finish().unwrap(), merged(&[first, second], MB));
}

#[test]
fn what_is_not_alike_or_does_not_follow_stays_out() {
    let first = plain(10, 2);
    let second = plain(12, 3);
    let with_bits = |bits| changed(&second, |header| header.attributes = Attributes(bits));
    // A hole, an overlap, another codec, log append time, control, delete horizon, a bit of the future, thinned.
    let unlike = [
        plain(13, 3),
        plain(11, 3),
        batch(12, Compression::Lz4, &[(0, Record::default())]),
        with_bits(0x08),
        with_bits(0x20),
        with_bits(0x40),
        with_bits(0x80),
        changed(&second, |header| header.last_offset_delta += 1),
    ];
    for view in unlike {
        assert!(!can_merge(first.header(), view.header(), None), "{:?}", view.header());
        assert_eq!(Merge::begin(&first, None, MB).unwrap().push(&view), Ok(false));
    }
    assert!(Merge::begin(&with_bits(0x08), None, MB).is_err());
    assert!(can_merge(first.header(), second.header(), None));
}

#[test]
fn batches_of_transactions_lose_the_bit() {
    let transactional = |view| changed(&view, |header| header.attributes = Attributes(0x10));
    let views = [transactional(plain(10, 2)), plain(12, 1), transactional(plain(13, 1))];
    assert_eq!(merged(&views, MB), merged(&[plain(10, 2), plain(12, 1), plain(13, 1)], MB));
}

#[test]
fn the_limit_holds_to_the_byte() {
    for compression in Compression::ALL {
        let record =
            |index: i64| (index * 1000, Record { value: Some(vec![7; 100].into()), ..Record::default() });
        let views = batches(compression, &[vec![record(0)], vec![record(1)], vec![record(2)]]);
        let payload_bytes = |view: &BatchView| decompress(compression, &view.body(), MB).unwrap().len();
        let all = payload_bytes(&merged(&views, MB));
        let mut merge = Merge::begin(&views[0], None, all - 1).unwrap();
        assert_eq!((merge.push(&views[1]), merge.push(&views[2])), (Ok(true), Ok(false)));
        assert_eq!(merge.finish().unwrap(), merged(&views[..2], MB));
        assert_eq!(merged(&views, all), merged(&views, MB));
        assert!(Merge::begin(&views[0], None, payload_bytes(&views[0]) - 1).is_err());
    }
}

#[test]
fn a_record_that_ends_inside_its_own_deltas_is_an_error() {
    // Length 2 and then attributes and two deltas: one byte more.
    let body = [4, 0, 0, 0, 1, 1, 0];
    let header =
        BatchHeader { batch_length: 56, record_count: 1, last_offset_delta: 0, ..*plain(0, 1).header() };
    let view = BatchView::parse([&header.encode()[..], &body].concat().into()).unwrap();
    let error = Merge::begin(&changed(&view, |_| ()), None, MB).unwrap_err();
    assert!(matches!(error, DecodeError::Truncated { field: "record", .. }), "{error}");
    assert_eq!(view.bytes().len(), HEADER_BYTES + body.len());
}
