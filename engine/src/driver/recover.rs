//! Recognising our own copy when the state topic is gone: the target's last batches, found again at the source.
//!
//! A batch counts as a copy when all of its records, in their order, stand at the source: by key, value, headers and
//! time. Then its header tells the producer id and epoch that we wrote under, and the source how far we came.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};

use twinlog_protocol::batch::{BatchView, Entry};
use twinlog_protocol::record::{Record, records, upgrade};

use super::ask::{self, Place};
use super::stretch;
use crate::io::cluster::ClusterClient;
use crate::machine::partition::{CopyEnd, CopySearch, RequestFailure};

/// Batches of the target that are looked at, from the last one backwards.
const BATCHES_BACK_MAX: usize = 256;
/// Bytes of the source that are searched for one batch …
const SEARCHED_BYTES_MAX: usize = 64 << 20;
/// … for all batches of one partition …
const SEARCHED_OF_PARTITION_MAX: usize = 256 << 20;
/// … and for all partitions of a flow. A copy lies where its time says, so what is read beyond is read in vain.
const SEARCHED_IN_ALL_MAX: usize = 4 << 30;
/// Bytes behind a match that are searched for a second one.
const SEARCHED_BEHIND_BYTES: usize = 4 << 20;
/// Most bytes that a batch may unpack to.
const UNPACKED_BYTES_MAX: usize = 256 << 20;

/// The logs of both sides of a partition, as a search reads them.
pub(super) trait Logs: Sync {
    /// Where the target's log begins.
    fn target_start(&self) -> impl Future<Output = Result<i64, RequestFailure>> + Send;

    /// The target's batch that holds an offset.
    fn target_batch(
        &self,
        offset: i64,
    ) -> impl Future<Output = Result<Option<BatchView>, RequestFailure>> + Send;

    /// The first offset of the source that is not older; negative where all are.
    fn source_since(&self, time_ms: i64) -> impl Future<Output = Result<i64, RequestFailure>> + Send;

    /// Where the source's log ends.
    fn source_end(&self) -> impl Future<Output = Result<i64, RequestFailure>> + Send;

    /// What the source holds from an offset on.
    fn source_entries(&self, from: i64) -> impl Future<Output = Result<Vec<Entry>, RequestFailure>> + Send;
}

/// Both sides of a partition.
pub(super) struct Sides<'a> {
    pub(super) source: &'a ClusterClient,
    pub(super) source_place: Place,
    pub(super) target: &'a ClusterClient,
    pub(super) target_place: Place,
}

impl Logs for Sides<'_> {
    async fn target_start(&self) -> Result<i64, RequestFailure> {
        ask::list_offset(self.target, &self.target_place, ask::EARLIEST).await
    }

    async fn target_batch(&self, offset: i64) -> Result<Option<BatchView>, RequestFailure> {
        stretch::read_batch(self.target, &self.target_place, offset).await
    }

    async fn source_since(&self, time_ms: i64) -> Result<i64, RequestFailure> {
        ask::list_offset(self.source, &self.source_place, time_ms).await
    }

    async fn source_end(&self) -> Result<i64, RequestFailure> {
        ask::list_offset(self.source, &self.source_place, ask::LATEST).await
    }

    async fn source_entries(&self, from: i64) -> Result<Vec<Entry>, RequestFailure> {
        Ok(stretch::read(self.source, &self.source_place, from).await?.entries)
    }
}

/// What the searches of one flow may read of the source.
#[derive(Debug)]
pub(super) struct Budget {
    of_batch: usize,
    of_partition: usize,
    /// What is left for all partitions.
    left: AtomicUsize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            of_batch: SEARCHED_BYTES_MAX,
            of_partition: SEARCHED_OF_PARTITION_MAX,
            left: AtomicUsize::new(SEARCHED_IN_ALL_MAX),
        }
    }
}

impl Budget {
    /// Takes so many bytes, or what is left.
    fn take(&self, bytes: usize) -> usize {
        let take = |left: usize| Some(left.saturating_sub(bytes));
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        left.map_or(0, |left| left.min(bytes))
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Looks for the last copy under this producer id in the target's log below `to`.
pub(super) async fn find_copy_of(
    logs: &impl Logs,
    to: i64,
    producer_id: i64,
) -> Result<CopySearch, RequestFailure> {
    let outcome = find_copy(logs, to, Some(producer_id), &Budget::default()).await?;
    Ok(outcome.found)
}

/// How the search for anybody's copy ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) found: CopySearch,
    /// A batch of the target was not found in what was read of the source, and not all of the source was read.
    pub(super) is_cut_short: bool,
}

/// Looks for the last copy in the target's log below `to`, under whatever producer id.
pub(super) async fn find_any_copy(
    logs: &impl Logs,
    to: i64,
    budget: &Budget,
) -> Result<Outcome, RequestFailure> {
    find_copy(logs, to, None, budget).await
}

async fn find_copy(
    logs: &impl Logs,
    to: i64,
    producer_id: Option<i64>,
    budget: &Budget,
) -> Result<Outcome, RequestFailure> {
    let log_start = logs.target_start().await?;
    let (mut before, mut is_cut_short) = (to, false);
    let (mut not_at_source, mut left) = (BTreeSet::new(), budget.of_partition);
    let end = |found, is_cut_short| Ok(Outcome { found, is_cut_short });
    for _ in 0..BATCHES_BACK_MAX {
        if before <= log_start {
            break;
        }
        let Some(view) = logs.target_batch(before - 1).await? else { break };
        let header = *view.header();
        before = header.base_offset.min(before - 1);
        // Ours are never transactional: a copy that MM2 made with transactions is MM2's.
        let is_candidate = header.producer_id >= 0
            && !header.attributes.is_control()
            && !header.attributes.is_transactional()
            && header.record_count > 0
            && producer_id.is_none_or(|wanted| wanted == header.producer_id)
            && !not_at_source.contains(&header.producer_id);
        if !is_candidate {
            continue;
        }
        let granted = budget.take(left.min(budget.of_batch));
        if granted == 0 && !not_at_source.is_empty() {
            return end(CopySearch::Nothing, true);
        }
        // The first one is looked for where its time says, whatever others have used up.
        let (matches, searched) = find_batch(logs, &view, granted.max(1)).await?;
        budget.give_back(granted.saturating_sub(searched));
        left = left.saturating_sub(searched);
        match matches {
            Matches::One(upstream_next) => {
                let (producer_id, producer_epoch) = (header.producer_id, header.producer_epoch);
                let copy = CopyEnd { producer_id, producer_epoch, upstream_next };
                return end(CopySearch::Found(copy), is_cut_short);
            }
            Matches::Several => return end(CopySearch::Ambiguous, is_cut_short),
            // Our newest batch is not found: an older one would copy what lies between a second time.
            Matches::None { .. } if producer_id.is_some() => {
                return end(CopySearch::NotAtSource, is_cut_short);
            }
            // So it is for everybody's newest one: that decides about a producer id.
            Matches::None { all_read } => {
                is_cut_short |= !all_read;
                not_at_source.insert(header.producer_id);
            }
        }
    }
    end(CopySearch::Nothing, is_cut_short)
}

enum Matches {
    None {
        /// Up to the end of the source.
        all_read: bool,
    },
    /// The offset behind the last record.
    One(i64),
    Several,
}

/// Finds the records of a target's batch at the source, in about so many bytes; also how many were read.
async fn find_batch(
    logs: &impl Logs,
    wanted: &BatchView,
    bytes_max: usize,
) -> Result<(Matches, usize), RequestFailure> {
    let nowhere = (Matches::None { all_read: true }, 0);
    let Some(digests) = digests(wanted) else { return Ok(nowhere) };
    // Records of magic 0 have no time. To a broker, negative times are names of its own for places in the log.
    let start = match wanted.header().base_timestamp {
        time_ms @ 0.. => logs.source_since(time_ms).await?,
        ..0 => logs.source_since(ask::EARLIEST).await?,
    };
    if start < 0 {
        return Ok(nowhere);
    }
    // What is written from now on was not copied: a search must not run after a live writer.
    let end = logs.source_end().await?;
    let mut search = Search { wanted: digests, window: VecDeque::new(), found: None, several: false };
    let (mut position, mut searched, mut limit) = (start, 0, bytes_max);
    let mut is_behind = false;
    while searched < limit && position < end {
        let entries = logs.source_entries(position).await?;
        let Some(next) = entries.last().map(Entry::next_offset) else {
            position = end;
            break;
        };
        for entry in &entries {
            searched += entry.bytes().len();
            search.look_at(entry);
        }
        if search.found.is_some() && !std::mem::replace(&mut is_behind, true) {
            limit = searched + SEARCHED_BEHIND_BYTES;
        }
        position = next.max(position + 1);
    }
    let matches = match (search.found, search.several) {
        (_, true) => Matches::Several,
        (Some(next), false) => Matches::One(next),
        (None, false) => Matches::None { all_read: position >= end },
    };
    Ok((matches, searched))
}

struct Search {
    wanted: Vec<u64>,
    window: VecDeque<u64>,
    found: Option<i64>,
    several: bool,
}

impl Search {
    fn look_at(&mut self, entry: &Entry) {
        match entry {
            Entry::Batch(view) if view.header().attributes.is_control() => {}
            Entry::Batch(view) => {
                let base_offset = view.header().base_offset;
                self.look_into(view, |record| base_offset.saturating_add(record.offset_delta.into()));
            }
            Entry::Legacy { bytes, .. } => {
                if let Ok(Some(upgraded)) = upgrade(bytes, 0, UNPACKED_BYTES_MAX) {
                    let offset_of = |record: &Record| upgraded.offset_at(record.offset_delta.unsigned_abs());
                    self.look_into(&upgraded.view, offset_of);
                }
            }
        }
    }

    fn look_into(&mut self, view: &BatchView, offset_of: impl Fn(&Record) -> i64) {
        let Ok(records) = records(view, UNPACKED_BYTES_MAX) else { return };
        for record in records.flatten() {
            self.window.push_back(digest(view, &record));
            if self.window.len() > self.wanted.len() {
                self.window.pop_front();
            }
            if self.window.iter().eq(&self.wanted) {
                self.several |= self.found.is_some();
                self.found = Some(offset_of(&record).saturating_add(1));
            }
        }
    }
}

fn digests(view: &BatchView) -> Option<Vec<u64>> {
    let records = records(view, UNPACKED_BYTES_MAX).ok()?;
    records.map(|record| record.ok().map(|record| digest(view, &record))).collect()
}

fn digest(view: &BatchView, record: &Record) -> u64 {
    let mut hasher = DefaultHasher::new();
    view.header().timestamp_ms(record.timestamp_delta).hash(&mut hasher);
    (&record.key, &record.value).hash(&mut hasher);
    for header in &record.headers {
        (&header.key, &header.value).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
