//! Recognising our own copy when the state topic is gone: the target's last batches, found again at the source.
//!
//! A batch counts as a copy when all of its records, in their order, stand at the source: by key, value, headers and
//! time. Then its header tells the producer id and epoch that we wrote under, and the source how far we came.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use twinlog_protocol::batch::BatchView;
use twinlog_protocol::record::{Record, records};

use super::ask::{self, Place};
use super::stretch;
use crate::io::cluster::ClusterClient;
use crate::machine::partition::{CopyEnd, CopySearch, RequestFailure};

/// Batches of the target that are looked at, from the last one backwards.
const BATCHES_BACK_MAX: usize = 256;
/// Bytes of the source that are searched for one batch.
const SEARCHED_BYTES_MAX: usize = 64 << 20;
/// Bytes behind a match that are searched for a second one.
const SEARCHED_BEHIND_BYTES: usize = 4 << 20;
/// Most bytes that a batch may unpack to.
const UNPACKED_BYTES_MAX: usize = 256 << 20;

/// Both sides of a partition.
pub(super) struct Sides<'a> {
    pub(super) source: &'a ClusterClient,
    pub(super) source_place: Place,
    pub(super) target: &'a ClusterClient,
    pub(super) target_place: Place,
}

/// Looks for the last copy in the target's log below `to`; of this producer id, or of any when none is given.
pub(super) async fn find_copy(
    sides: &Sides<'_>,
    to: i64,
    producer_id: Option<i64>,
) -> Result<CopySearch, RequestFailure> {
    let log_start = ask::list_offset(sides.target, &sides.target_place, ask::EARLIEST).await?;
    let mut before = to;
    for _ in 0..BATCHES_BACK_MAX {
        if before <= log_start {
            break;
        }
        let last = stretch::read_batch(sides.target, &sides.target_place, before - 1).await?;
        let Some(view) = last else { break };
        let header = *view.header();
        // Ours are never transactional: a copy that MM2 made with transactions is MM2's.
        let is_candidate = header.producer_id >= 0
            && !header.attributes.is_control()
            && !header.attributes.is_transactional()
            && header.record_count > 0
            && producer_id.is_none_or(|wanted| wanted == header.producer_id);
        if is_candidate {
            match find_batch(sides, &view).await? {
                Matches::One(upstream_next) => {
                    return Ok(CopySearch::Found(CopyEnd {
                        producer_id: header.producer_id,
                        producer_epoch: header.producer_epoch,
                        upstream_next,
                    }));
                }
                Matches::Several => return Ok(CopySearch::Ambiguous),
                // Our newest batch is not found: an older one would copy what lies between a second time.
                Matches::None if producer_id.is_some() => return Ok(CopySearch::NotAtSource),
                Matches::None => {}
            }
        }
        before = header.base_offset.min(before - 1);
    }
    Ok(CopySearch::Nothing)
}

enum Matches {
    None,
    /// The offset behind the last record.
    One(i64),
    Several,
}

/// Finds the records of a target's batch at the source.
async fn find_batch(sides: &Sides<'_>, wanted: &BatchView) -> Result<Matches, RequestFailure> {
    let Some(digests) = digests(wanted) else { return Ok(Matches::None) };
    let first_time = wanted.header().base_timestamp;
    let start = ask::list_offset(sides.source, &sides.source_place, first_time).await?;
    if start < 0 {
        return Ok(Matches::None);
    }
    // What is written from now on was not copied: a search must not run after a live writer.
    let end = ask::list_offset(sides.source, &sides.source_place, ask::LATEST).await?;
    let mut search = Search { wanted: digests, window: VecDeque::new(), found: None, several: false };
    let (mut position, mut searched, mut limit) = (start, 0, SEARCHED_BYTES_MAX);
    while searched < limit && position < end {
        let stretch = stretch::read(sides.source, &sides.source_place, position).await?;
        let Some(last) = stretch.batches.last() else { break };
        let next = last.header().next_offset();
        for view in &stretch.batches {
            searched += view.bytes().len();
            search.look_at(view);
        }
        if search.found.is_some() {
            limit = limit.min(searched + SEARCHED_BEHIND_BYTES);
        }
        position = next.max(position + 1);
    }
    Ok(match (search.found, search.several) {
        (_, true) => Matches::Several,
        (Some(next), false) => Matches::One(next),
        (None, false) => Matches::None,
    })
}

struct Search {
    wanted: Vec<u64>,
    window: VecDeque<u64>,
    found: Option<i64>,
    several: bool,
}

impl Search {
    fn look_at(&mut self, view: &BatchView) {
        if view.header().attributes.is_control() {
            return;
        }
        let Ok(records) = records(view, UNPACKED_BYTES_MAX) else { return };
        for record in records.flatten() {
            self.window.push_back(digest(view, &record));
            if self.window.len() > self.wanted.len() {
                self.window.pop_front();
            }
            if self.window.iter().eq(&self.wanted) {
                self.several |= self.found.is_some();
                self.found =
                    Some(view.header().base_offset.saturating_add(i64::from(record.offset_delta) + 1));
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
    view.header().base_timestamp.wrapping_add(record.timestamp_delta).hash(&mut hasher);
    (&record.key, &record.value).hash(&mut hasher);
    for header in &record.headers {
        (&header.key, &header.value).hash(&mut hasher);
    }
    hasher.finish()
}
