//! Batches that the target takes in pieces only, or not at all.

use bytes::Bytes;
use twinlog_protocol::batch::{Compression, Forwarded};
use twinlog_protocol::record::records;

use super::*;

/// Records with values of these lengths, which do not repeat.
fn batch(base_offset: i64, codec: Compression, sizes: &[usize]) -> BatchView {
    let mut batch = BatchBuilder::new().base_offset(base_offset).compression(codec);
    let mut state = base_offset.unsigned_abs();
    for bytes in sizes {
        let value = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        });
        batch.push(0, None, Some(value.take(*bytes).collect::<Vec<_>>().into()), Vec::new()).unwrap();
    }
    batch.build().unwrap()
}

fn values(view: &BatchView) -> Vec<Option<Bytes>> {
    records(view, 1 << 20).unwrap().map(|record| record.unwrap().value).collect()
}

/// What a target took, and how often it refused.
#[derive(Default)]
struct Taken {
    batches: Vec<BatchView>,
    refusals: u32,
    /// Number and upstream offset behind each batch.
    marks: Vec<(u64, i64)>,
}

impl Taken {
    fn values(&self) -> Vec<Option<Bytes>> {
        self.batches.iter().flat_map(values).collect()
    }
}

impl Bench {
    /// Copies from a source with these batches until nothing more comes, to a target that takes none above `bytes_max`.
    fn copies(&mut self, source: &[BatchView], bytes_max: usize) -> Taken {
        let mut taken = Taken::default();
        for _ in 0..1_000 {
            let mut sent = Vec::new();
            for command in std::mem::take(&mut self.left) {
                match command {
                    Command::Produce { ticket, batch: Forwarded { head, body }, .. } => {
                        sent.push((ticket, BatchView::parse([&head[..], &body].concat().into()).unwrap()));
                    }
                    Command::Store { attempt: Some(_), entry } => {
                        self.machine.handle_state(&entry);
                        self.machine.handle_stored(self.now, self.machine.attempt, true);
                        self.answer();
                    }
                    _ => {}
                }
            }
            let is_alone = sent.len() == 1;
            let mut is_refused = false;
            for (ticket, view) in sent {
                let code = match view.bytes().len() {
                    _ if is_refused => ErrorCode::OutOfOrderSequenceNumber,
                    bytes if bytes > bytes_max => ErrorCode::MessageTooLarge,
                    _ => {
                        self.acknowledge(ticket, view.header().record_count.unsigned_abs());
                        taken.batches.push(view);
                        taken
                            .marks
                            .extend(self.machine.record().mark().map(|mark| (mark.number, mark.upstream)));
                        continue;
                    }
                };
                assert!(is_alone, "what may be refused has nothing behind it");
                is_refused = true;
                taken.refusals += 1;
                let answer = ProduceAnswer::Failed { code, detail: String::new(), named: 0 };
                self.machine.handle_produced(self.now, ticket, answer);
                self.answer();
            }
            let Some(offset) = self.machine.fetch_wanted(self.now).filter(|_| self.left.is_empty()) else {
                if self.left.is_empty() {
                    return taken;
                }
                continue;
            };
            let rest = source.iter().filter(|view| view.header().next_offset() > offset);
            let rest: Vec<BatchView> = rest.cloned().collect();
            if rest.is_empty() {
                return taken;
            }
            self.fetches(&rest);
        }
        panic!("it does not come to an end");
    }

    fn copied_to(&self) -> Option<i64> {
        self.machine.record().mark().map(|mark| mark.upstream)
    }
}

#[test]
fn what_is_too_large_goes_in_pieces_and_the_limit_is_remembered() {
    for codec in Compression::ALL {
        let mut bench = Bench::copying();
        let source: Vec<BatchView> =
            (0..4).map(|index| batch(100 + 40 * index, codec, &[1_000; 40])).collect();
        let taken = bench.copies(&source, 10_000);
        assert_eq!(bench.machine.held(), None, "{codec:?}");
        assert_eq!(taken.values(), source.iter().flat_map(values).collect::<Vec<_>>(), "{codec:?}");
        assert_eq!(taken.refusals, 3, "{codec:?}: 41,000, 26,000, 16,000 bytes, but 10,000");
        let codecs = taken.batches.iter().map(|view| view.header().attributes.compression());
        assert!(codecs.into_iter().all(|found| found == Ok(codec)));
        assert!(taken.batches.len() <= 4 * 7, "{} pieces", taken.batches.len());
        assert_eq!(bench.machine.record().mark(), Some(Run { number: 160, upstream: 260, downstream: 180 }));
    }
}

#[test]
fn the_one_record_that_is_too_large_is_named_and_goes_on_when_it_may() {
    let mut bench = Bench::copying();
    let sizes = [[1_000; 5], [1_000, 1_000, 30_000, 1_000, 1_000], [1_000; 5]].concat();
    let source = [batch(100, Compression::Lz4, &sizes), batch(115, Compression::Lz4, &[1_000; 40])];
    let first = bench.copies(&source, 9_000);
    let held = bench.machine.held();
    let is_right = |reason: &HoldReason| matches!(reason, HoldReason::Refused { offset: 107, bytes, .. } if *bytes > 30_000);
    assert!(held.is_some_and(is_right), "{held:?}");
    assert_eq!(bench.copied_to(), Some(107), "all before it is copied");
    bench.wake();
    let again = bench.copies(&source, 9_000);
    assert_eq!((again.batches.len(), again.refusals), (0, 1), "the record alone is tried again");
    bench.wake();
    let rest = bench.copies(&source, 50_000);
    assert_eq!((bench.machine.held(), rest.refusals, bench.copied_to()), (None, 0, Some(155)));
    let all = [first.values(), rest.values()].concat();
    assert_eq!(all, source.iter().flat_map(values).collect::<Vec<_>>());
}

#[test]
fn whole_batches_go_again_when_the_limit_has_grown() {
    let mut bench = Bench::copying();
    let of = |base_offset| batch(base_offset, Compression::None, &[1_000; 20]);
    let pieces = bench.copies(&[of(100)], 12_000);
    assert_eq!((pieces.batches.len(), pieces.refusals), (2, 1), "halves pass");
    let next = bench.copies(&[of(120)], usize::MAX);
    assert!(next.batches.len() > 1, "nobody has told of a higher limit");
    bench.now += Duration::from_secs(2_000);
    // Silence calls for a line-up first.
    bench.fetches(&[of(140)]);
    let whole = bench.copies(&[of(140)], usize::MAX);
    assert_eq!(whole.batches.iter().map(|view| view.header().record_count).collect::<Vec<_>>(), [20]);
    bench.now += Duration::from_secs(2_000);
    bench.fetches(&[of(160)]);
    let lower = bench.copies(&[of(160)], 12_000);
    assert_eq!((lower.values(), bench.machine.held()), (values(&of(160)), None));
}

#[test]
fn pieces_keep_the_gaps_between_their_records() {
    let mut bench = Bench::copying();
    let kept = [0, 1, 4, 5, 6, 10, 11, 12, 13, 20, 30, 31];
    let taken = bench.copies(&[thinned(104, 40, &kept), batch(144, Compression::None, &[1])], 90);
    assert!(taken.batches.len() > 3 && taken.refusals > 0);
    assert_eq!(bench.machine.record().mark(), Some(Run { number: 13, upstream: 145, downstream: 33 }));
    for (number, upstream) in &taken.marks[..taken.marks.len() - 1] {
        let next = usize::try_from(*number).unwrap();
        let between = kept[next - 1] + 1..=kept.get(next).copied().unwrap_or(40);
        assert!(between.contains(&u32::try_from(*upstream - 104).unwrap()), "{number} is not at {upstream}");
    }
}

#[test]
fn small_batches_do_not_merge_beyond_the_limit() {
    let mut bench = Bench::copying();
    bench.copies(&[batch(100, Compression::None, &[1_000; 20])], 5_000);
    let small: Vec<BatchView> = (120..180).map(|offset| batch(offset, Compression::None, &[100])).collect();
    let taken = bench.copies(&small, 5_000);
    assert_eq!((taken.refusals, bench.copied_to()), (0, Some(180)));
    assert!(taken.batches.len() < 10, "{} batches", taken.batches.len());
}

#[test]
fn a_batch_that_packs_into_less_is_cut_after_it_has_its_codec() {
    let mut bench = Bench::copying();
    let packing = Packing { codec: Some(Compression::None), ..Packing::default() };
    bench.machine.config.packing = packing;
    bench.machine.merging = Merging::new(bench.machine.config.merge_sizes, packing);
    let mut repeated = BatchBuilder::new().base_offset(100).compression(Compression::Gzip);
    for _ in 0..20 {
        repeated.push(0, None, Some(vec![7; 1_000].into()), Vec::new()).unwrap();
    }
    let source = [repeated.build().unwrap()];
    assert!(source[0].bytes().len() < 1_000);
    let taken = bench.copies(&source, 6_000);
    assert_eq!((taken.values(), bench.machine.held()), (values(&source[0]), None));
    assert!(taken.batches.iter().all(|view| view.header().attributes.compression() == Ok(Compression::None)));
}
