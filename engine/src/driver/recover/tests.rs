//! Bounds of the search over logs in memory, and what is found within them.

use bytes::Bytes;
use twinlog_protocol::batch::ProducerStamp;
use twinlog_protocol::record::BatchBuilder;

use super::*;

/// Bytes of a value: a batch is little more.
const VALUE_BYTES: usize = 1_000;
/// Batches of the source in one answer.
const BATCHES_AT_ONCE: usize = 4;

/// The logs of a partition, each batch one record at the offset of its place.
#[derive(Default)]
struct Model {
    target: Vec<BatchView>,
    source: Vec<BatchView>,
    /// Bytes of the source that were read.
    read: AtomicUsize,
}

impl Logs for Model {
    async fn target_start(&self) -> Result<i64, RequestFailure> {
        Ok(0)
    }

    async fn target_batch(&self, offset: i64) -> Result<Option<BatchView>, RequestFailure> {
        Ok(self.target.get(usize::try_from(offset).unwrap()).cloned())
    }

    async fn source_since(&self, time_ms: i64) -> Result<i64, RequestFailure> {
        if time_ms == ask::LATEST {
            return self.source_end().await;
        }
        let found = self.source.iter().find(|view| view.header().max_timestamp >= time_ms);
        Ok(found.map_or(-1, |view| view.header().base_offset))
    }

    async fn source_end(&self) -> Result<i64, RequestFailure> {
        Ok(i64::try_from(self.source.len()).unwrap())
    }

    async fn source_entries(&self, from: i64) -> Result<Vec<Entry>, RequestFailure> {
        let from = usize::try_from(from).unwrap();
        let batches: Vec<BatchView> = self.source.iter().skip(from).take(BATCHES_AT_ONCE).cloned().collect();
        self.read.fetch_add(batches.iter().map(|view| view.bytes().len()).sum(), Ordering::Relaxed);
        Ok(batches.into_iter().map(Entry::Batch).collect())
    }
}

impl Model {
    fn read(&self) -> usize {
        self.read.load(Ordering::Relaxed)
    }

    async fn search(&self, budget: &Budget) -> Outcome {
        find_any_copy(self, i64::try_from(self.target.len()).unwrap(), budget).await.unwrap()
    }
}

fn batch(offset: usize, producer_id: i64, time_ms: i64, key: &str) -> BatchView {
    let stamp = ProducerStamp { producer_id, producer_epoch: 3, base_sequence: 0 };
    let mut batch = BatchBuilder::new().producer(stamp).base_offset(i64::try_from(offset).unwrap());
    let value = Bytes::from(vec![7; VALUE_BYTES]);
    batch.push(time_ms, Some(Bytes::copy_from_slice(key.as_bytes())), Some(value), Vec::new()).unwrap();
    batch.build().unwrap()
}

/// A source whose n-th record was written at n ms.
fn source(count: usize) -> Vec<BatchView> {
    (0..count).map(|n| batch(n, -1, i64::try_from(n).unwrap(), &format!("record {n}"))).collect()
}

/// Records that are not at the source, as old as its first one; each from a producer of its own.
fn foreign(count: usize, producers: i64) -> Vec<BatchView> {
    let producers = (0..producers).cycle();
    (0..count).zip(producers).map(|(n, id)| batch(n, id, 0, &format!("foreign {n}"))).collect()
}

fn budget(of_batch: usize, of_partition: usize, left: usize) -> Budget {
    Budget { of_batch, of_partition, left: AtomicUsize::new(left) }
}

/// Bytes of about so many of the source's batches.
fn batches(count: usize) -> usize {
    count * batch(0, -1, 0, "record 100").bytes().len()
}

#[tokio::test]
async fn a_copy_is_found_behind_others_batches() {
    let mut target = foreign(20, 20);
    target[11] = batch(11, 77, 400, "record 400");
    let model = Model { source: source(1_000), target, read: AtomicUsize::new(0) };
    let outcome = model.search(&Budget::default()).await;
    let copy = CopyEnd { producer_id: 77, producer_epoch: 3, upstream_next: 401 };
    assert_eq!(outcome, Outcome { found: CopySearch::Found(copy), is_cut_short: false });
}

#[tokio::test]
async fn a_copy_of_records_without_a_time_is_found() {
    let source = (0..20).map(|n| batch(n, -1, -1, &format!("record {n}"))).collect();
    let model = Model { source, target: vec![batch(0, 77, -1, "record 12")], ..Model::default() };
    let outcome = model.search(&Budget::default()).await;
    let copy = CopyEnd { producer_id: 77, producer_epoch: 3, upstream_next: 13 };
    assert_eq!(outcome, Outcome { found: CopySearch::Found(copy), is_cut_short: false });
}

#[tokio::test]
async fn a_producer_is_searched_for_once() {
    let model = Model { source: source(1_000), target: foreign(300, 1), ..Model::default() };
    let outcome = model.search(&Budget::default()).await;
    assert_eq!(outcome, Outcome { found: CopySearch::Nothing, is_cut_short: false });
    assert!(model.read() <= batches(1_000), "{} bytes", model.read());
}

#[tokio::test]
async fn the_search_of_a_partition_is_bounded_and_that_is_known() {
    let model = Model { source: source(2_000), target: foreign(300, 300), ..Model::default() };
    let outcome = model.search(&budget(batches(100), batches(500), usize::MAX >> 1)).await;
    assert_eq!(outcome, Outcome { found: CopySearch::Nothing, is_cut_short: true });
    let bound = batches(500 + 2 * BATCHES_AT_ONCE);
    assert!((batches(450)..bound).contains(&model.read()), "{} bytes, not {bound}", model.read());
}

#[tokio::test]
async fn a_spent_budget_still_finds_what_lies_where_its_time_says() {
    let budget = budget(batches(100), batches(500), batches(120));
    let vain = Model { source: source(2_000), target: foreign(300, 300), ..Model::default() };
    assert!(vain.search(&budget).await.is_cut_short);
    assert!(vain.read() < batches(120 + 2 * BATCHES_AT_ONCE), "{} bytes", vain.read());
    let target = vec![batch(0, 77, 1_500, "record 1500")];
    let model = Model { source: source(2_000), target, ..Model::default() };
    assert!(matches!(model.search(&budget).await.found, CopySearch::Found(_)));
    let one_more = Model { source: source(2_000), target: foreign(300, 300), ..Model::default() };
    assert_eq!(one_more.search(&budget).await, Outcome { found: CopySearch::Nothing, is_cut_short: true });
    assert!(one_more.read() <= batches(BATCHES_AT_ONCE), "{} bytes", one_more.read());
}

#[tokio::test]
async fn what_was_not_used_up_is_left_for_others() {
    let budget = budget(batches(100), batches(500), batches(1_000));
    let target = vec![batch(0, 77, 1_990, "record 1990")];
    let model = Model { source: source(2_000), target, ..Model::default() };
    assert!(matches!(model.search(&budget).await.found, CopySearch::Found(_)));
    assert_eq!(budget.left.into_inner(), batches(1_000) - model.read());
}
