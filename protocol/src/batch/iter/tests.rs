//! How records split into batches, and what refuses to be split.

use super::*;
use crate::batch::{BatchHeader, HEADER_BYTES};
use crate::record::BatchBuilder;

fn batch(base_offset: i64, records: i32) -> Vec<u8> {
    let mut builder = BatchBuilder::new().base_offset(base_offset);
    for index in 0..records {
        builder.push(index.into(), None, Some(Bytes::from_static(b"value")), Vec::new()).unwrap();
    }
    builder.build().unwrap().bytes().to_vec()
}

fn message(magic: u8, offset: i64) -> Vec<u8> {
    let mut bytes = offset.to_be_bytes().to_vec();
    bytes.extend([0, 0, 0, 14, 1, 2, 3, 4, magic, 0]);
    bytes.extend([0xff; 8]);
    bytes
}

fn with_length(mut batch: Vec<u8>, length: i32) -> Vec<u8> {
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch
}

fn fails(records: Vec<u8>) -> DecodeError {
    let mut walk = batches(records.into());
    let error = walk.find_map(Result::err).expect("the records should be refused");
    assert_eq!(walk.next(), None, "nothing follows an error");
    assert_eq!(walk.incomplete(), None);
    error
}

fn lengths_refused(head: &[u8]) {
    let batch = batch(7, 2);
    for length in [-1, i32::MIN, 0, 13, 48] {
        let error = fails([head, &with_length(batch.clone(), length)].concat());
        let expected = DecodeError::LyingLength {
            field: "batch length",
            at: head.len() + 8,
            length: length.into(),
            left: batch.len() - 12,
        };
        assert_eq!(error, expected);
    }
}

#[test]
fn negative_batch_length_is_an_error() {
    lengths_refused(&[]);
}

#[test]
fn a_bad_length_is_placed_from_the_start_of_the_records() {
    lengths_refused(&batch(0, 3));
}

#[test]
fn a_negative_length_is_an_error_before_the_magic_is_there() {
    let cut = with_length(batch(7, 2), -5)[..12].to_vec();
    assert!(matches!(fails(cut), DecodeError::LyingLength { length: -5, .. }));
}

#[test]
fn views_are_slices_of_the_records() {
    let records = Bytes::from([batch(0, 3), batch(3, 1), batch(10, 2)].concat());
    let mut walk = batches(records.clone());
    let mut at = 0;
    for (base, next) in [(0, 3), (3, 4), (10, 12)] {
        let Some(Ok(Entry::Batch(view))) = walk.next() else { panic!("three batches are there") };
        assert_eq!((view.header().base_offset, view.header().next_offset()), (base, next));
        assert_eq!(view.bytes().as_ptr(), records[at..].as_ptr());
        assert_eq!(view.body().as_ptr(), records[at + HEADER_BYTES..].as_ptr());
        assert_eq!(view.check_crc(), Ok(()));
        at += view.bytes().len();
    }
    assert_eq!((walk.next(), walk.incomplete()), (None, None));
}

#[test]
fn a_batch_cut_anywhere_says_what_it_needs() {
    let (first, second) = (batch(0, 3), batch(3, 4));
    for cut in 1..second.len() {
        let mut walk = batches([&first[..], &second[..cut]].concat().into());
        assert!(matches!(walk.next(), Some(Ok(Entry::Batch(_)))));
        assert_eq!(walk.incomplete(), None, "not known before the end");
        assert_eq!(walk.next(), None);
        let expected = Incomplete {
            offset: (cut >= 8).then_some(3),
            needed_bytes: if cut < 12 { 12 } else { second.len() },
        };
        assert_eq!(walk.incomplete(), Some(expected), "cut at {cut}");
        assert_eq!(walk.next(), None);
    }
}

#[test]
fn nothing_is_no_error() {
    let mut walk = batches(Bytes::new());
    assert_eq!((walk.next(), walk.incomplete()), (None, None));
}

#[test]
fn magic_that_no_kafka_wrote_is_an_error() {
    for magic in [3, 0x7f, 0x80, 0xff] {
        let mut bad = batch(0, 1);
        bad[MAGIC_AT] = magic;
        assert!(matches!(fails(bad), DecodeError::BadValue { field: "magic", at: 16, .. }));
    }
}

#[test]
fn a_header_that_lies_is_placed_from_the_start_of_the_records() {
    let first = batch(0, 3);
    let second = BatchHeader { record_count: -1, ..BatchHeader::parse(&batch(3, 4)).unwrap() };
    let second = [&second.encode()[..], &batch(3, 4)[HEADER_BYTES..]].concat();
    let at = first.len() + 57;
    assert!(matches!(
        fails([first, second].concat()),
        DecodeError::BadValue { field: "record count", at: found, .. } if found == at
    ));
}

#[test]
fn offsets_that_go_back_are_an_error() {
    for (first, second) in [((5, 2), 6), ((5, 2), 5), ((5, 2), 0)] {
        let error = fails([batch(first.0, first.1), batch(second, 1)].concat());
        assert!(matches!(error, DecodeError::BadValue { field: "base offset", .. }), "{error}");
    }
    assert!(matches!(fails(message(1, -1)), DecodeError::BadValue { field: "base offset", at: 0, .. }));
}

#[test]
fn messages_of_old_formats_are_recognised() {
    let records = [message(0, 4), message(1, 5), batch(6, 1)].concat();
    let entries: Vec<_> = batches(records.into()).map(Result::unwrap).collect();
    let old = |magic, offset| Entry::Legacy { magic, offset, bytes: message(magic as u8, offset).into() };
    assert_eq!(entries[..2], [old(0, 4), old(1, 5)]);
    assert!(matches!(&entries[2], Entry::Batch(view) if view.header().base_offset == 6));
    assert_eq!(entries[1].verdict(5), Verdict::Reencode);
    assert_eq!(entries[1].verdict(6), Verdict::Drop(Dropped::BelowPosition));
    assert_eq!(entries[2].verdict(6), Verdict::HeaderOnly);
}
