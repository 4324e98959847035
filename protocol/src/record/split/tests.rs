//! Pieces beside the whole: records, times, upstream offsets, sizes.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::batch::{BatchView, Compression};
use crate::record::{BatchBuilder, Header, OffsetRun, Record, records};

const MB: usize = 1 << 20;

/// Values of these lengths, each behind so many upstream offsets that are left out.
pub(in crate::record) fn whole(codec: Compression, sizes: &[(usize, u32)]) -> Reencoded {
    let base_offset = 500 + i64::from(sizes.first().map_or(0, |(_, left_out)| *left_out));
    let mut batch = BatchBuilder::new().compression(codec).base_offset(base_offset);
    let (mut gaps, mut offset, mut state) = (Vec::new(), base_offset, 1u32);
    for (index, (bytes, left_out)) in (0..).zip(sizes) {
        if index > 0 && *left_out > 0 {
            offset += i64::from(*left_out);
            gaps.push(OffsetRun { index, offset });
        }
        let value = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0] >> (index % 8)
        });
        let value = (index % 5 > 0).then(|| value.take(*bytes).collect::<Vec<_>>().into());
        let headers = vec![Header { key: Bytes::from_static(b"h"), value: None }];
        batch.push(9_000 - i64::from(index) * 70, Some(Bytes::from_static(b"k")), value, headers).unwrap();
        offset += 1;
    }
    Reencoded { view: batch.build().unwrap(), gaps }
}

/// Upstream offset, time and record of each.
pub(in crate::record) fn seen(batch: &Reencoded) -> Vec<(i64, i64, Record)> {
    let header = batch.view.header();
    let see = |(index, record): (u32, Result<Record, DecodeError>)| {
        let record = record.unwrap();
        assert_eq!(record.offset_delta.unsigned_abs(), index);
        let timestamp_ms = header.timestamp_ms(record.timestamp_delta);
        (batch.offset_at(index), timestamp_ms, Record { timestamp_delta: 0, offset_delta: 0, ..record })
    };
    (0..).zip(records(&batch.view, MB).unwrap()).map(see).collect()
}

fn body_bytes(view: &BatchView, codec: Compression) -> usize {
    decompress(codec, &view.body(), MB).unwrap().len()
}

proptest! {
    #[test]
    fn pieces_hold_the_records_of_the_whole_in_their_order(
        codec in (0usize..5).prop_map(|id| Compression::ALL[id]),
        sizes in proptest::collection::vec((0usize..300, prop_oneof![3 => Just(0u32), 1 => 1u32..9]), 1..60),
        bytes_max in 0usize..9_000,
    ) {
        let whole = whole(codec, &sizes);
        let pieces = split(&whole, bytes_max, MB).unwrap();
        prop_assert_eq!(pieces.iter().flat_map(seen).collect::<Vec<_>>(), seen(&whole));
        prop_assert!(pieces.len() > 1 || sizes.len() == 1);
        for piece in &pieces {
            let header = piece.view.header();
            prop_assert_eq!(piece.view.check_crc(), Ok(()));
            prop_assert!(header.is_dense());
            prop_assert_eq!(header.base_offset, piece.offset_at(0));
            prop_assert_eq!(header.attributes.compression(), Ok(codec));
            prop_assert!(piece.gaps.iter().all(|gap| gap.index > 0));
            let times = seen(piece).into_iter().map(|(_, timestamp_ms, _)| timestamp_ms).max();
            prop_assert_eq!(Some(header.max_timestamp), times);
            // Deltas of times may take some bytes more, counted from another record.
            let slack = 3 * seen(piece).len();
            let half = body_bytes(&whole.view, codec) / 2 + 320 + slack;
            prop_assert!(header.record_count == 1 || body_bytes(&piece.view, codec) <= half);
            let fits = piece.view.bytes().len() <= bytes_max.max(HEADER_BYTES) + slack;
            prop_assert!(header.record_count == 1 || codec != Compression::None || fits);
        }
    }
}

#[test]
fn a_batch_that_is_just_too_large_is_halved() {
    let whole = whole(Compression::None, &[(100, 0); 10]);
    let pieces = split(&whole, whole.view.bytes().len() - 1, MB).unwrap();
    assert_eq!(pieces.iter().map(|piece| piece.view.header().record_count).collect::<Vec<_>>(), [5, 5]);
}

#[test]
fn a_record_that_is_too_large_stands_alone() {
    let whole = whole(Compression::None, &[(10, 0), (10, 0), (900, 0), (10, 0), (10, 0)]);
    let pieces = split(&whole, 300, MB).unwrap();
    assert_eq!(pieces.iter().map(|piece| piece.view.header().record_count).collect::<Vec<_>>(), [2, 1, 2]);
}

#[test]
fn a_damaged_batch_gets_no_fresh_crc_and_none_unpacks_beyond_the_limit() {
    let sound = whole(Compression::Lz4, &[(100, 0); 4]);
    let limit = split(&sound, 100, 200).unwrap_err();
    assert_eq!(limit, DecodeError::UnpacksTooLarge { what: "lz4", limit: 200 });
    let mut bytes = sound.view.bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let damaged = Reencoded { view: BatchView::parse(bytes.into()).unwrap(), ..sound };
    let error = split(&damaged, 100, MB).unwrap_err();
    assert!(matches!(error, DecodeError::BadValue { field: "batch crc", .. }), "{error}");
}
