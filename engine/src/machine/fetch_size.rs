//! How large the answers are that a broker is asked for, and on how many lanes: little where a round trip is short, so that
//! little memory holds what is on its way; more where it is long, so that the link is full.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::fetch_plan::BULK_LANES_MAX;

/// Bytes of one answer at most; a single larger batch comes whole (KIP-74).
pub const FETCH_BYTES_MAX: i32 = 16 << 20;
/// Bytes of one answer of a broker close by: those on their way stay in the processor's own cache. Four times as much took a
/// quarter more CPU; half as much was no better.
const NEAR_BYTES: i32 = 512 << 10;
/// Bytes of one answer on a short link.
const SHORT_BYTES: i32 = 2 << 20;
/// Requests under way on a short link: while one answer is worked on, the broker prepares others.
const SHORT_LANES: u16 = 3;
/// From this round trip on a broker is not close by: small answers on few lanes would leave the link idle.
const SHORT: Duration = Duration::from_millis(2);
/// A round trip that counts as long.
const LONG: Duration = Duration::from_millis(10);
/// Answers over which the shortest round trip counts: the others went over connections to a broker that was busy.
const ANSWERS: usize = 8;

/// The sizes for all nodes.
#[derive(Debug, Default)]
pub struct FetchSizes {
    nodes: BTreeMap<i32, Size>,
}

#[derive(Debug)]
struct Size {
    bytes_max: i32,
    round_trips: VecDeque<Duration>,
}

impl Default for Size {
    fn default() -> Self {
        Self { bytes_max: NEAR_BYTES, round_trips: VecDeque::new() }
    }
}

impl FetchSizes {
    /// Bytes to ask the node for in one request.
    #[must_use]
    pub fn bytes_max(&self, node: i32) -> i32 {
        self.nodes.get(&node).map_or(NEAR_BYTES, |size| size.bytes_max)
    }

    /// Bytes of a partition that may wait before it asks the node for more: half an answer, which is worked on while the next
    /// one is on its way. With more on a short link nothing was faster, and fresh memory cost a tenth of the CPU. A target far
    /// away gets what waits as one batch, as large as it takes them.
    #[must_use]
    pub fn backlog_bytes_max(&self, node: i32, is_target_far: bool) -> usize {
        let answer_bytes = self.bytes_max(node).max(if is_target_far { SHORT_BYTES } else { 0 });
        usize::try_from(answer_bytes / 2).unwrap_or_default()
    }

    /// Requests that may be under way to the node.
    #[must_use]
    pub fn lanes(&self, node: i32) -> u16 {
        let is_long = self.nodes.get(&node).is_some_and(Size::is_long);
        if is_long { BULK_LANES_MAX } else { SHORT_LANES }
    }

    /// The node gave so many bytes, over a connection with this round trip.
    pub fn handle_answered(&mut self, node: i32, round_trip: Duration, bytes: u64) {
        let size = self.nodes.entry(node).or_default();
        size.round_trips.push_back(round_trip);
        if size.round_trips.len() > ANSWERS {
            size.round_trips.pop_front();
        }
        if !size.is_long() {
            size.bytes_max = if size.shortest() < SHORT { NEAR_BYTES } else { SHORT_BYTES };
        } else if bytes >= u64::from(size.bytes_max.unsigned_abs()) / 8 * 7 {
            // Full: a broker ends an answer with the last batch that fits, or cuts it off.
            size.bytes_max = size.bytes_max.saturating_mul(2).min(FETCH_BYTES_MAX);
        }
    }
}

impl Size {
    fn is_long(&self) -> bool {
        self.shortest() >= LONG
    }

    /// None known counts as none at all.
    fn shortest(&self) -> Duration {
        self.round_trips.iter().min().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_grow_on_a_long_link_as_long_as_they_are_full() {
        let mut sizes = FetchSizes::default();
        assert_eq!((sizes.bytes_max(1), sizes.lanes(1)), (NEAR_BYTES, SHORT_LANES));
        sizes.handle_answered(1, LONG * 5, 100);
        assert_eq!((sizes.bytes_max(1), sizes.lanes(1)), (NEAR_BYTES, BULK_LANES_MAX));
        for _ in 0..9 {
            let full = u64::from(sizes.bytes_max(1).unsigned_abs()) - 10_000;
            sizes.handle_answered(1, LONG * 5, full);
        }
        assert_eq!((sizes.bytes_max(1), sizes.backlog_bytes_max(1, true)), (FETCH_BYTES_MAX, 8 << 20));
        assert_eq!(sizes.bytes_max(2), NEAR_BYTES, "another node has its own link");
    }

    #[test]
    fn more_waits_for_a_target_far_away_to_be_merged() {
        let sizes = FetchSizes::default();
        assert_eq!([false, true].map(|is_far| sizes.backlog_bytes_max(1, is_far)), [256 << 10, 1 << 20]);
    }

    #[test]
    fn one_quick_answer_proves_a_short_link() {
        let mut sizes = FetchSizes::default();
        for _ in 0..ANSWERS {
            sizes.handle_answered(1, LONG * 3, 1 << 30);
        }
        assert_eq!(sizes.bytes_max(1), FETCH_BYTES_MAX);
        sizes.handle_answered(1, LONG / 10, 1 << 30);
        for _ in 1..ANSWERS {
            sizes.handle_answered(1, LONG * 3, 1 << 30);
            assert_eq!((sizes.bytes_max(1), sizes.lanes(1)), (NEAR_BYTES, SHORT_LANES));
        }
    }

    #[test]
    fn a_broker_close_by_is_asked_for_little() {
        let mut sizes = FetchSizes::default();
        for (round_trip, bytes_max) in [(SHORT, SHORT_BYTES), (SHORT / 2, NEAR_BYTES), (SHORT, NEAR_BYTES)] {
            sizes.handle_answered(1, round_trip, 100);
            assert_eq!((sizes.bytes_max(1), sizes.lanes(1)), (bytes_max, SHORT_LANES));
        }
    }
}
