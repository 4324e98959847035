//! Batches that are sent in another codec than they have at the source.

use twinlog_protocol::batch::{BatchHeader, Compression, Forwarded};
use twinlog_protocol::record::{Record, compress, records};

use super::*;

const MB: usize = 1 << 20;
const SILENCE: Duration = Duration::from_secs(30);

/// So many records with values of so many bytes, which hardly repeat.
fn batch(base_offset: i64, codec: Compression, count: i64, value_bytes: usize) -> BatchView {
    let mut batch = BatchBuilder::new().base_offset(base_offset).compression(codec);
    let mut state = base_offset.unsigned_abs();
    for index in 0..count {
        let value = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        });
        let value = value.take(value_bytes).collect::<Vec<_>>();
        batch.push(1_000 + index, None, Some(value.into()), Vec::new()).unwrap();
    }
    batch.build().unwrap()
}

fn records_of(view: &BatchView) -> Vec<(i64, Record)> {
    let timed = |record: Record| {
        let timestamp_ms = view.header().timestamp_ms(record.timestamp_delta);
        (timestamp_ms, Record { timestamp_delta: 0, offset_delta: 0, ..record })
    };
    records(view, MB).unwrap().map(|record| timed(record.unwrap())).collect()
}

/// The batch with a payload that no codec reads, its CRC made right.
fn broken(view: &BatchView) -> BatchView {
    let body = vec![0xff; view.body().len()];
    let mut header = BatchHeader { ..*view.header() };
    header.crc = crc32c(&[&header.encode()[21..], &body].concat());
    BatchView::parse([&header.encode()[..], &body].concat().into()).unwrap()
}

/// Bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

impl Bench {
    /// Far enough to send several batches beside each other, in this codec.
    fn sending_in(codec: Compression, unpacked_bytes_max: usize) -> Self {
        let mut bench = Self::copying();
        bench.machine.config.packing = Packing { codec: Some(codec), unpacked_bytes_max };
        bench.machine.merging = Merging::new(bench.machine.config.merge_sizes, bench.machine.config.packing);
        bench.fetches(&[batch(100, codec, 1, 200_000)]);
        let ticket = bench.next_produce();
        bench.acknowledge(ticket, 1);
        bench
    }

    fn sent(&mut self) -> Vec<(u64, BatchView, bool)> {
        let sent = |command| match command {
            Command::Produce { ticket, batch: Forwarded { head, body }, is_new, .. } => {
                let view = BatchView::parse([&head[..], &body].concat().into()).unwrap();
                view.check_crc().unwrap();
                Some((ticket, view, is_new))
            }
            _ => None,
        };
        std::mem::take(&mut self.left).into_iter().filter_map(sent).collect()
    }
}

#[test]
fn every_batch_goes_in_the_codec_of_the_flow_and_one_that_has_it_as_it_is() {
    for codec in Compression::ALL {
        let mut bench = Bench::sending_in(codec, MB);
        let mut offset = 101;
        let batches = Compression::ALL.map(|own| {
            let view = batch(offset, own, 3, 12_000); // two together are too large for one
            offset += 3;
            view
        });
        bench.fetches(&batches);
        let sent = bench.sent();
        assert_eq!(sent.len(), 5);
        for ((_, view, is_new), source) in sent.iter().zip(&batches) {
            let own = source.header().attributes.compression();
            assert_eq!(view.header().attributes.compression(), Ok(codec));
            assert_eq!(*is_new, own != Ok(codec));
            assert!(*is_new || view.body() == source.body());
            assert_eq!(records_of(view), records_of(source));
        }
        let sequences: Vec<i32> = sent.iter().map(|(_, view, _)| view.header().base_sequence).collect();
        assert_eq!(sequences, [1, 4, 7, 10, 13], "as without another codec");
        sent.iter().for_each(|(ticket, ..)| bench.acknowledge(*ticket, 3));
        assert_eq!(bench.machine.record().mark().map(|mark| mark.upstream), Some(116));
    }
}

#[test]
fn small_batches_merge_whatever_codecs_they_have() {
    let mut bench = Bench::sending_in(Compression::Zstd, MB);
    let batches: Vec<BatchView> =
        (101..).zip(Compression::ALL).map(|(offset, own)| batch(offset, own, 1, 50)).collect();
    bench.fetches(&batches);
    let [(_, view, true)] = &bench.sent()[..] else { panic!("one batch is sent") };
    assert_eq!(view.header().attributes.compression(), Ok(Compression::Zstd));
    assert_eq!(records_of(view), batches.iter().flat_map(records_of).collect::<Vec<_>>());
}

#[test]
fn batches_of_any_size_go_together_where_they_are_packed_anew() {
    let mut bench = Bench::sending_in(Compression::Zstd, MB);
    let plain = (101..107).map(|offset| batch(offset, Compression::None, 1, 16_000));
    let packed = (107..109).map(|offset| batch(offset, Compression::Zstd, 1, 16_000));
    let batches: Vec<BatchView> = plain.chain(packed).collect();
    bench.fetches(&batches);
    let sent = bench.sent();
    let counts: Vec<i32> = sent.iter().map(|(_, view, _)| view.header().record_count).collect();
    assert_eq!(counts, [4, 2, 1, 1], "64 KB at most, and nothing that has the codec already");
    assert!(sent.iter().all(|(_, view, _)| view.header().attributes.compression() == Ok(Compression::Zstd)));
    let copied: Vec<_> = sent.iter().flat_map(|(_, view, _)| records_of(view)).collect();
    assert_eq!(copied, batches.iter().flat_map(records_of).collect::<Vec<_>>());
}

#[test]
fn thinned_batches_get_the_codec_too() {
    let mut bench = Bench::sending_in(Compression::Lz4, MB);
    bench.fetches(&[thinned(101, 5, &[0, 3])]);
    bench.store();
    let [(_, view, true)] = &bench.sent()[..] else { panic!("one batch is sent") };
    assert_eq!(view.header().attributes.compression(), Ok(Compression::Lz4));
    assert_eq!(view.header().record_count, 2);
}

#[test]
fn what_no_codec_reads_holds_the_partition_there_and_all_before_it_goes() {
    let gzip = |offset, count| batch(offset, Compression::Gzip, count, 6_000);
    let too_large = batch(103, Compression::Gzip, 1, 60_000);
    for (bad, is_right) in [
        (
            broken(&gzip(103, 1)),
            (|reason| matches!(reason, HoldReason::DamagedSource { offset: 103, .. })) as fn(&_) -> _,
        ),
        (too_large, |reason| *reason == HoldReason::UnpacksTooLarge { offset: 103, bytes_max: 50_000 }),
    ] {
        let mut bench = Bench::sending_in(Compression::Zstd, 50_000);
        let next = bad.header().next_offset();
        bench.fetches(&[gzip(101, 2), bad, gzip(next, 1)]);
        let [(ticket, ..)] = bench.sent()[..] else { panic!("one batch is sent") };
        assert_eq!(bench.machine.held(), None, "a batch is under way");
        bench.acknowledge(ticket, 2);
        let held = bench.machine.held().expect("the next one cannot be read");
        assert!(is_right(held), "{held}");
        assert_eq!(bench.machine.record().mark().map(|mark| mark.upstream), Some(103));
    }
}

#[test]
fn much_to_pack_is_packed_by_turns() {
    let mut bench = Bench::sending_in(Compression::Lz4, MB);
    let batches: Vec<BatchView> =
        (0..5).map(|index| batch(101 + 3 * index, Compression::None, 3, 50_000)).collect();
    bench.fetches(&batches);
    assert_eq!(bench.sent().len(), 2, "others have a turn");
    assert!(bench.machine.wants_turn(), "and then it goes on");
    assert!(bench.machine.anew_bytes() > 300_000);
    bench.answer();
    let sent = bench.sent();
    assert_eq!(sent.len(), 2);
    bench.answer();
    let sent = [sent, bench.sent()].concat();
    assert_eq!(sent.len(), 3);
    assert!(!bench.machine.wants_turn());
}

#[test]
fn nothing_is_to_be_packed_while_nothing_may_be_sent() {
    let mut bench = Bench::sending_in(Compression::Zstd, MB);
    let batches: Vec<BatchView> =
        (101..107).map(|offset| batch(offset, Compression::None, 1, 150_000)).collect();
    bench.fetches(&batches);
    assert_eq!((bench.sent().len(), bench.machine.wants_turn()), (2, true));
    bench.now += Duration::from_secs(1);
    bench.machine.handle_timeout(bench.now);
    // The answers are late, so the partition leaves its lane: no more is sent until they are there.
    assert!(!bench.machine.wants_turn());
    bench.answer();
    assert_eq!(bench.sent().len(), 0);
}

#[test]
fn what_unpacks_to_more_than_topics_take_goes_in_pieces() {
    let mut bench = Bench::sending_in(Compression::None, 16 * MB);
    let mut packed = BatchBuilder::new().base_offset(101).compression(Compression::Zstd);
    for index in 0..50u8 {
        packed.push(1_000, None, Some(vec![index; 100_000].into()), Vec::new()).unwrap();
    }
    let packed = packed.build().unwrap();
    assert!(packed.bytes().len() < 10_000);
    bench.fetches(&[packed]);
    let mut values = Vec::new();
    while values.len() < 50 {
        for (ticket, view, _) in bench.sent() {
            assert!(view.bytes().len() <= 1_000_000, "{} bytes", view.bytes().len());
            let piece = records(&view, MB).unwrap().map(|record| record.unwrap().value.unwrap()[0]);
            values.extend(piece);
            bench.acknowledge(ticket, view.header().record_count.unsigned_abs());
        }
        bench.answer();
    }
    assert_eq!(values, (0..50).collect::<Vec<u8>>());
    assert_eq!(bench.machine.record().mark().map(|mark| mark.upstream), Some(151));
}

#[test]
fn of_a_batch_that_breaks_off_the_records_go_that_can_be_read() {
    let whole = batch(101, Compression::None, 20, 1_000);
    let payload = [&whole.body()[..whole.body().len() / 2], &[0; 9]].concat();
    let body = compress(Compression::Lz4, &payload.into()).unwrap();
    let mut header = BatchHeader { batch_length: 49 + i32::try_from(body.len()).unwrap(), ..*whole.header() };
    header.attributes = header.attributes.with_compression(Compression::Lz4);
    header.crc = crc32c(&[&header.encode()[21..], &body].concat());
    let broken = BatchView::parse([&header.encode()[..], &body].concat().into()).unwrap();
    let mut bench = Bench::sending_in(Compression::Zstd, MB);
    bench.fetches(&[broken]);
    let [(ticket, view, true)] = &bench.sent()[..] else { panic!("one batch is sent") };
    assert_eq!(records_of(view), records_of(&whole)[..10]);
    bench.acknowledge(*ticket, 10);
    let held = bench.machine.held();
    assert!(matches!(held, Some(HoldReason::DamagedSource { offset: 111, .. })), "{held:?}");
    assert_eq!(bench.machine.anew_bytes(), 0);
}

#[test]
fn pieces_keep_numbers_and_gaps_through_a_line_up() {
    let mut bench = Bench::sending_in(Compression::Gzip, MB);
    let sizes = MergeSizes { merged_bytes_max: 3_000, ..MergeSizes::default() };
    bench.machine.config.merge_sizes = sizes;
    let mut thinned = BatchBuilder::new().base_offset(101);
    for index in 0..30 {
        thinned.leave_gap(u32::from(index % 4 == 1) * 3).unwrap();
        let value = vec![index; 1_000];
        thinned.push(1_000 + i64::from(index), None, Some(value.into()), Vec::new()).unwrap();
    }
    let thinned = thinned.build().unwrap();
    let offsets: Vec<i64> =
        records(&thinned, MB).unwrap().map(|record| 101 + i64::from(record.unwrap().offset_delta)).collect();
    bench.fetches(std::slice::from_ref(&thinned));
    bench.store();
    let (mut taken, mut was_silent) = (0, false);
    while taken < 30 {
        let sent = bench.sent();
        assert!(!sent.is_empty(), "{taken} of 30 are there: {:?}", bench.machine);
        for (ticket, view, _) in sent {
            assert_eq!(view.header().attributes.compression(), Ok(Compression::Gzip));
            let values = records(&view, MB).unwrap().map(|record| record.unwrap().value.unwrap()[0]);
            let values: Vec<u8> = values.collect();
            assert!(values.len() <= 2, "{} records in a piece", values.len());
            assert_eq!(usize::from(values[0]), taken);
            taken += values.len();
            bench.take(ticket, view.header().record_count.unsigned_abs());
            let mark = bench.machine.record().mark().expect("a batch was taken");
            assert_eq!(mark.number, 1 + taken as u64);
            let last = offsets[taken - 1];
            assert!((last + 1..=last + 4).contains(&mark.upstream), "{} behind {last}", mark.upstream);
        }
        if taken > 10 && !std::mem::replace(&mut was_silent, true) {
            let attempt = bench.machine.attempt;
            bench.now += 2 * SILENCE;
            bench.answer();
            assert!(bench.machine.attempt > attempt, "it lines up first");
        }
        bench.answer();
    }
    assert!(was_silent);
    assert_eq!(bench.machine.anew_bytes(), 0);
}
