//! What packs and unpacks, within limits, and what must not.

use proptest::prelude::*;

use super::snappy::XERIAL_HEADER;
use super::*;

const PACKING: [Compression; 4] =
    [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

fn refusal(compression: Compression, packed: &[u8], bytes_max: usize) -> String {
    match decompress(compression, &Bytes::copy_from_slice(packed), bytes_max) {
        Err(DecodeError::Refused { reason, .. }) => reason,
        Err(error @ DecodeError::UnpacksTooLarge { .. }) => error.to_string(),
        other => panic!("{compression:?} should be refused: {other:?}"),
    }
}

fn half_random(bytes: usize) -> Bytes {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..bytes).map(|index| if index % 64 < 32 { next() } else { b'x' }).collect()
}

proptest! {
    #[test]
    fn what_is_packed_unpacks(plain in proptest::collection::vec(any::<u8>(), 0..600), repeats in 0usize..40) {
        let plain = Bytes::from(plain.repeat(repeats));
        for compression in Compression::ALL {
            let packed = compress(compression, &plain).unwrap();
            prop_assert_eq!(decompress(compression, &packed, plain.len()), Ok(plain.clone()));
        }
    }

    #[test]
    fn any_bytes_unpack_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let bytes = Bytes::from(bytes);
        for compression in Compression::ALL {
            if let Ok(plain) = decompress(compression, &bytes, 10_000) {
                prop_assert!(plain.len() <= 10_000);
            }
        }
    }
}

#[test]
fn several_megabytes_unpack_in_every_codec() {
    let plain = half_random(2 << 20);
    for compression in Compression::ALL {
        let packed = compress(compression, &plain).unwrap();
        assert_eq!(decompress(compression, &packed, plain.len()), Ok(plain.clone()), "{compression:?}");
    }
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let plain = Bytes::from(vec![0; 4 << 20]);
    for compression in PACKING {
        let packed = compress(compression, &plain).unwrap();
        let reason = refusal(compression, &packed, 1 << 18);
        assert!(reason.contains("more than the limit of 262144 bytes"), "{compression:?}: {reason}");
        refusal(compression, &packed, plain.len() - 1);
    }
    refusal(Compression::None, &[0; 11], 10);
}

#[test]
fn a_payload_cut_anywhere_is_refused() {
    let plain = half_random(80_000);
    for compression in PACKING {
        let packed = compress(compression, &plain).unwrap();
        let whole_blocks =
            |cut: usize| compression == Compression::Snappy && cuts_between_blocks(&packed, cut);
        for cut in (1..packed.len()).step_by(3989).filter(|&cut| !whole_blocks(cut)) {
            refusal(compression, &packed[..cut], plain.len());
        }
    }
}

fn cuts_between_blocks(packed: &[u8], cut: usize) -> bool {
    let mut at = XERIAL_HEADER.len();
    while at < cut {
        at += 4 + u32::from_be_bytes(packed[at..at + 4].try_into().unwrap()) as usize;
    }
    at == cut
}

#[test]
fn snappy_is_read_in_both_framings() {
    let plain = half_random(70_000);
    let raw = Bytes::from(snap::raw::Encoder::new().compress_vec(&plain).unwrap());
    assert_eq!(decompress(Compression::Snappy, &raw, plain.len()), Ok(plain.clone()));
    let blocks = compress(Compression::Snappy, &plain).unwrap();
    assert!(blocks.starts_with(&XERIAL_HEADER));
    assert_eq!(decompress(Compression::Snappy, &blocks, plain.len()), Ok(plain));
}

#[test]
fn snappy_lengths_that_lie_are_refused_before_anything_is_reserved() {
    // A raw block that claims 4 GB, one that claims more than its bytes can give, blocks beyond the end.
    refusal(Compression::Snappy, &[0xff, 0xff, 0xff, 0xff, 0x0f, 0], usize::MAX);
    assert!(refusal(Compression::Snappy, &[0x80, 0x80, 0x80, 0x10, 0], 1 << 30).contains("cannot unpack"));
    for length in [-1i32, 5, i32::MAX, i32::MIN] {
        let block = [&XERIAL_HEADER[..], &length.to_be_bytes(), &[0; 4]].concat();
        assert!(refusal(Compression::Snappy, &block, 1 << 20).contains(&format!("length {length},")));
    }
    refusal(Compression::Snappy, &XERIAL_HEADER[..12], 100);
    refusal(Compression::Snappy, &[&XERIAL_HEADER[..], &[0, 0]].concat(), 100);
}

#[test]
fn lz4_frames_are_what_javas_reader_takes() {
    let packed = compress(Compression::Lz4, &half_random(200_000)).unwrap();
    // Magic; version 1 with independent blocks and neither checksums nor sizes; blocks of 64 KB.
    assert_eq!(packed[..6], [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40]);
}
