//! Re-encoding against a naive twin: records decoded whole, offsets and times computed one by one.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::*;
use crate::batch::{Attributes, Compression, TimestampType, crc};
use crate::record::{Header, Record, compress, records};

const MB: usize = 1 << 20;
const BASE: i64 = 1000;
const LOG_APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const DELETE_HORIZON: i16 = 1 << 6;

/// A batch of `records` records at 1000, 1001 …, as a producer with an identity wrote it.
fn batch(compression: Compression, records: i64) -> BatchView {
    let stamp = ProducerStamp { producer_id: 9, producer_epoch: 1, base_sequence: i32::MAX - 2 };
    let mut builder = BatchBuilder::new().compression(compression).producer(stamp).base_offset(BASE);
    for index in 0..records {
        let text = |what: &str| Some(Bytes::from(format!("{what} {index}")));
        let header = |value| Header { key: Bytes::from_static(b"h"), value };
        let headers = vec![header(None), header(text("header")), header(None)];
        // Timestamps fall, so that deltas are negative and the largest is cut off.
        let value = text("value").filter(|_| index % 4 > 0);
        builder.push(5_000 - index, text("key").filter(|_| index % 3 > 0), value, headers).unwrap();
    }
    builder.build().unwrap()
}

/// What the broker's cleaner leaves of `view`: the same header with fewer records, perhaps none, and some flags.
fn cleaned(view: &BatchView, keeps: impl Fn(i32) -> bool, flags: i16) -> BatchView {
    let mut header = *view.header();
    let mut payload = BytesMut::new();
    header.record_count = 0;
    for record in records(view, MB).unwrap().map(Result::unwrap).filter(|record| keeps(record.offset_delta)) {
        record.encode(&mut payload).unwrap();
        header.record_count += 1;
    }
    let body = compress(header.attributes.compression().unwrap(), &payload.freeze()).unwrap();
    header.attributes = Attributes(header.attributes.0 | flags);
    header.batch_length = i32::try_from(49 + body.len()).unwrap();
    header.crc = crc::computed(&header.encode(), &body);
    BatchView::parse([&header.encode()[..], &body].concat().into()).unwrap()
}

/// Offset, timestamp and record, as a consumer sees them.
fn seen(view: &BatchView) -> Vec<(i64, i64, Record)> {
    let header = view.header();
    let see = |mut record: Record| {
        let offset = header.base_offset + i64::from(std::mem::take(&mut record.offset_delta));
        let delta = std::mem::take(&mut record.timestamp_delta);
        (offset, header.timestamp_ms(delta), record)
    };
    records(view, MB).unwrap().map(|record| see(record.unwrap())).collect()
}

/// The same of a batch written anew, with the upstream offsets that its gaps tell.
fn seen_upstream(reencoded: &Reencoded) -> Vec<(i64, i64, Record)> {
    for gap in &reencoded.gaps {
        let before = reencoded.offset_at(gap.index.checked_sub(1).expect("no gap before the first record"));
        assert!(gap.offset > before + 1, "what follows on is no gap");
    }
    let mut all = seen(&reencoded.view);
    (0..).zip(&mut all).for_each(|(index, record)| record.0 = reencoded.offset_at(index));
    all
}

fn assert_reencoded(whole: &BatchView, first_offset: i64) {
    let mut expected = seen(whole);
    expected.retain(|(offset, ..)| *offset >= first_offset);
    let Some(reencoded) = reencode(whole, first_offset, MB).unwrap() else {
        return assert_eq!(expected, [], "a record was left out");
    };
    let view = &reencoded.view;
    view.check_crc().unwrap();
    assert_eq!(seen_upstream(&reencoded), expected);
    let header = view.header();
    assert!(header.is_dense());
    assert_eq!(header.attributes.compression(), whole.header().attributes.compression());
    assert_eq!(header.attributes.0 & !7, 0, "{:?}", header.attributes);
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (-1, -1, -1));
    assert_eq!(
        header.max_timestamp,
        expected.iter().map(|(_, timestamp_ms, _)| *timestamp_ms).max().unwrap()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_is_left_is_seen_as_before(
        codec in 0_usize..5,
        kept in proptest::collection::vec(any::<bool>(), 1..40),
        flags in 0_i16..8,
        skipped in -2_i64..42,
    ) {
        let flag = |bit: i16, value: i16| if flags & bit == 0 { 0 } else { value };
        let flags = flag(1, LOG_APPEND_TIME) | flag(2, TRANSACTIONAL) | flag(4, DELETE_HORIZON);
        let whole = batch(Compression::ALL[codec], i64::try_from(kept.len()).unwrap());
        let keeps = |delta: i32| kept[usize::try_from(delta).unwrap()];
        assert_reencoded(&cleaned(&whole, keeps, flags), BASE + skipped);
    }
}

#[test]
fn a_dense_batch_keeps_its_records_from_any_offset_on() {
    for compression in Compression::ALL {
        for first_offset in [i64::MIN, -1, 0, 999, 1000, 1001, 1009, 1010, i64::MAX] {
            assert_reencoded(&batch(compression, 10), first_offset);
        }
    }
}

#[test]
fn one_time_for_all_becomes_the_time_of_each() {
    let whole = cleaned(&batch(Compression::Lz4, 3), |_| true, LOG_APPEND_TIME);
    let Reencoded { view, gaps } = reencode(&whole, BASE, MB).unwrap().unwrap();
    assert_eq!(gaps, []);
    assert_eq!(view.header().attributes.timestamp_type(), TimestampType::CreateTime);
    assert_eq!(seen(&view).iter().map(|(_, timestamp_ms, _)| *timestamp_ms).collect::<Vec<_>>(), [5_000; 3]);
}

#[test]
fn offsets_that_do_not_rise_or_leave_the_batch_are_an_error() {
    let whole = batch(Compression::None, 3);
    let mut backwards = whole.bytes().to_vec();
    let second = backwards.len() - whole.body().len() + whole.body()[0] as usize / 2 + 1;
    // Length, attributes, timestamp delta, offset delta: each a byte.
    assert_eq!(backwards[second + 3], 2, "the delta 1 as a varint");
    for delta in [0, 6] {
        backwards[second + 3] = delta;
        let mut header = *whole.header();
        let body = &backwards[crate::batch::HEADER_BYTES..];
        header.crc = crc::computed(&header.encode(), body);
        let view = BatchView::parse([&header.encode()[..], body].concat().into()).unwrap();
        let error = reencode(&view, BASE, MB).unwrap_err();
        assert!(matches!(error, DecodeError::BadValue { field: "offset delta", .. }), "{error}");
    }
}

#[test]
fn a_damaged_batch_gets_no_fresh_crc() {
    let mut bytes = batch(Compression::None, 3).bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let error = reencode(&BatchView::parse(bytes.into()).unwrap(), BASE + 1, MB).unwrap_err();
    assert!(matches!(error, DecodeError::BadValue { field: "batch crc", .. }), "{error}");
}

#[test]
fn the_limit_on_unpacked_bytes_holds() {
    let whole = batch(Compression::Zstd, 10);
    assert!(matches!(
        reencode(&whole, BASE + 1, 100),
        Err(DecodeError::UnpacksTooLarge { what: "zstd", limit: 100 })
    ));
}
