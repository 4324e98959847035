//! Pieces in another codec beside the whole, and what of a damaged one still comes.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::batch::{BatchView, HEADER_BYTES, crc};
use crate::record::split::tests::{seen, whole};
use crate::record::{BatchBuilder, compress, decompress};

const MB: usize = 1 << 20;

fn pieces(whole: Reencoded, codec: Compression, bytes_max: usize) -> Vec<Reencoded> {
    let mut repack = Repack::begin(whole, codec, MB).unwrap();
    std::iter::from_fn(|| repack.next_piece(bytes_max).unwrap()).collect()
}

/// The batch with another payload, its CRC made right.
fn with_body(view: &BatchView, body: &[u8]) -> BatchView {
    let mut header = *view.header();
    header.batch_length = i32::try_from(HEADER_BYTES - 12 + body.len()).unwrap();
    header.crc = crc::computed(&header.encode(), body);
    BatchView::parse([&header.encode()[..], body].concat().into()).unwrap()
}

/// Upstream offset and value of what comes until the end, or until it fails; a record that is damaged inside has no value.
fn readable(view: BatchView) -> (Vec<(i64, Option<Bytes>)>, Option<DecodeError>) {
    let whole = Reencoded { view, gaps: Vec::new() };
    let mut repack = match Repack::begin(whole, Compression::None, MB) {
        Ok(repack) => repack,
        Err(fault) => return (Vec::new(), Some(fault)),
    };
    let mut records = Vec::new();
    loop {
        match repack.next_piece(300) {
            Ok(None) => return (records, None),
            Ok(Some(piece)) => {
                let count = piece.view.header().record_count.unsigned_abs();
                let values = crate::record::records(&piece.view, MB).unwrap();
                let values = values.map(|record| record.ok()?.value).chain(std::iter::repeat(None));
                records.extend((0..count).map(|index| piece.offset_at(index)).zip(values));
            }
            Err(fault) => {
                assert_eq!(repack.next_piece(300), Err(fault.clone()), "it stays damaged");
                return (records, Some(fault));
            }
        }
    }
}

fn any_codec() -> impl Strategy<Value = Compression> {
    (0usize..5).prop_map(|id| Compression::ALL[id])
}

proptest! {
    #[test]
    fn pieces_hold_the_records_of_the_whole_in_the_new_codec(
        [own, new] in [any_codec(), any_codec()],
        sizes in proptest::collection::vec((0usize..300, prop_oneof![3 => Just(0u32), 1 => 1u32..9]), 1..60),
        bytes_max in 0usize..9_000,
    ) {
        let whole = whole(own, &sizes);
        let pieces = pieces(whole.clone(), new, bytes_max);
        prop_assert_eq!(pieces.iter().flat_map(seen).collect::<Vec<_>>(), seen(&whole));
        for piece in &pieces {
            let header = piece.view.header();
            prop_assert_eq!(piece.view.check_crc(), Ok(()));
            prop_assert!(header.is_dense());
            prop_assert_eq!(header.base_offset, piece.offset_at(0));
            prop_assert_eq!(header.attributes.compression(), Ok(new));
            prop_assert!(piece.gaps.iter().all(|gap| gap.index > 0));
            let payload = decompress(new, &piece.view.body(), MB).unwrap();
            // Deltas of times may take a byte or two more, counted from another record.
            let bytes_max = bytes_max + 3 * seen(piece).len();
            prop_assert!(header.record_count == 1 || payload.len() <= bytes_max, "{}", payload.len());
        }
    }

    /// As the naive twin has it: unpacked whole.
    #[test]
    fn of_any_payload_the_records_come_that_are_sound(
        codec in any_codec(),
        at in any::<prop::sample::Index>(),
        flip in 0u8..,
        cut in any::<bool>(),
        packed_again in any::<bool>(),
    ) {
        let whole = whole(codec, &[(200, 0); 20]).view;
        let mut body = whole.body().to_vec();
        if packed_again {
            body = decompress(codec, &whole.body(), MB).unwrap().to_vec();
        }
        let at = at.index(body.len());
        body[at] ^= flip;
        if cut {
            body.truncate(at);
        }
        let body = if packed_again { compress(codec, &body.into()).unwrap() } else { body.into() };
        let damaged = with_body(&whole, &body);
        let (records, fault) = readable(damaged.clone());
        let is_sound = crate::record::records(&damaged, MB).is_ok_and(|records| {
            let mut records = (0u32..).zip(records);
            records.all(|(index, record)| record.is_ok_and(|record| record.offset_delta.unsigned_abs() == index))
        });
        prop_assert!(!is_sound || fault.is_none(), "{:?}", fault);
        let (whole, _) = readable(whole);
        prop_assert!(records.len() <= whole.len());
        prop_assert!(fault.is_some() || records.len() == whole.len());
        if packed_again && codec != Compression::None {
            // What stands before the damage is as it was.
            let sound = whole.len().min(at / 240);
            prop_assert_eq!(&records[..sound], &whole[..sound]);
        }
    }
}

#[test]
fn a_batch_that_unpacks_to_very_much_takes_little() {
    let mut batch = BatchBuilder::new().compression(Compression::Zstd);
    for index in 0..200u8 {
        batch.push(0, None, Some(vec![index; 100_000].into()), Vec::new()).unwrap();
    }
    let whole = Reencoded { view: batch.build().unwrap(), gaps: Vec::new() };
    let mut repack = Repack::begin(whole, Compression::None, 200_000).unwrap();
    let mut values = 0;
    while let Some(piece) = repack.next_piece(MB).unwrap() {
        assert!(piece.view.bytes().len() <= MB);
        assert!(repack.unpacking.held_bytes() <= 300_000, "{}", repack.unpacking.held_bytes());
        values += piece.view.header().record_count;
    }
    assert_eq!(values, 200);
}

#[test]
fn a_record_above_the_limit_is_told_once_all_before_it_have_come() {
    let sizes = [(100, 0), (100, 0), (100, 0), (100, 0), (5_000, 0), (100, 0)];
    for codec in Compression::ALL {
        // Snappy unpacks a block at once.
        let limit = if codec == Compression::Snappy { 32 << 10 } else { 4_000 };
        let sizes = sizes.map(|(bytes, gap)| (if bytes > 1_000 { limit + 1_000 } else { bytes }, gap));
        let whole = whole(codec, &sizes);
        let mut repack = Repack::begin(whole, Compression::Gzip, limit).unwrap();
        let piece = repack.next_piece(usize::MAX).unwrap().expect("four records");
        assert_eq!(piece.view.header().record_count, 4, "{codec:?}");
        let fault = repack.next_piece(usize::MAX).unwrap_err();
        assert_eq!(fault, DecodeError::UnpacksTooLarge { what: "record", limit }, "{codec:?}");
    }
}

#[test]
fn nothing_comes_under_a_wrong_crc() {
    let mut bytes = whole(Compression::Lz4, &[(10, 0); 3]).view.bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let damaged = BatchView::parse(bytes.into()).unwrap();
    let (records, fault) = readable(damaged);
    assert_eq!(records, []);
    assert!(matches!(fault, Some(DecodeError::BadValue { field: "batch crc", .. })), "{fault:?}");
}

#[test]
fn a_count_that_is_not_true_is_told_at_the_end() {
    let sound = whole(Compression::Zstd, &[(10, 0); 3]).view;
    for (count, came) in [(2, 2), (4, 3)] {
        let mut header = *sound.header();
        (header.record_count, header.last_offset_delta) = (count, count - 1);
        let view = BatchView::parse([&header.encode()[..], &sound.body()].concat().into()).unwrap();
        let (records, fault) = readable(with_body(&view, &sound.body()));
        assert_eq!(records.len(), came);
        assert!(fault.is_some(), "{count} records");
    }
}

#[test]
fn a_length_that_lies_reserves_nothing() {
    let sound = whole(Compression::None, &[(10, 0)]).view;
    // Just below the limit, and nothing behind it.
    let lying = compress(Compression::Zstd, &Bytes::from_static(&[0xfe, 0xff, 0x7f])).unwrap();
    let mut header = *sound.header();
    header.attributes = header.attributes.with_compression(Compression::Zstd);
    let view = BatchView::parse([&header.encode()[..], &sound.body()].concat().into()).unwrap();
    let mut repack = Repack::begin(
        Reencoded { view: with_body(&view, &lying), gaps: Vec::new() },
        Compression::None,
        4 * MB,
    )
    .unwrap();
    let fault = repack.next_piece(MB).unwrap_err();
    assert!(matches!(fault, DecodeError::LyingLength { .. }), "{fault}");
    assert!(repack.unpacking.held_bytes() <= 200_000);
}
