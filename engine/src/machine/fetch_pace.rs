//! How much one Fetch asks for, and when it is sent: a broker that throttles is asked for small pieces at its own rate.
//!
//! A broker keeps a client id to a rate by what came within the last ten to eleven seconds, and answers a Fetch that would
//! bring too much with nothing but a time to wait. Whoever asks for all that ten seconds allow gets it in one piece and
//! then nothing until that piece is forgotten: half the rate at best. What comes evenly comes at the whole rate.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::Now;
use super::fetch_size::FETCH_BYTES_MAX;

/// Fewer bytes than any batch has: the first one comes whole, and nothing beside it.
const ONE_BATCH: i32 = 1;
/// Bytes of a batch of which nothing is known: what producers send by default.
const BATCH_BYTES: u64 = 16 << 10;
/// A broker cuts an answer off within its last batch, and counts the cut one too. Where a piece would not be so many batches,
/// batches come one by one.
const BATCHES_MIN: f64 = 16.0;
/// How much time's bytes one piece asks for, once a rate is known.
const PIECE: Duration = Duration::from_millis(500);
/// By which part of itself the rate grows in a piece's time: the quota may have been raised, or others may have left it.
const GROWTH: f64 = 1.0 / 32.0;
/// The part of the rate that is left at least after one throttling.
const LEFT_MIN: f64 = 0.75;
/// Bytes per second that are assumed however little came.
const RATE_MIN: f64 = 1e3;
/// Bytes per second from which on there is no rate any more.
const RATE_MAX: f64 = 1e9;
/// What a broker counts over by default: ten to eleven samples of a second each (`quota.window.num`).
const WINDOW: Duration = Duration::from_millis(10_500);
/// What came within so short a time is remembered as one.
const GRAIN: Duration = Duration::from_millis(250);

/// The paces of all nodes.
#[derive(Debug, Default)]
pub struct FetchPaces {
    nodes: BTreeMap<i32, Pace>,
}

/// One node.
#[derive(Debug, Default)]
struct Pace {
    /// Bytes that came, by the time of the first of them.
    came: VecDeque<(Now, u64)>,
    /// None while nobody throttles.
    limit: Option<Limit>,
}

#[derive(Debug)]
struct Limit {
    /// In bytes per second.
    rate: f64,
    /// Bytes that came or are under way, less those for which the rate has had time since.
    ahead: f64,
    counted_at: Now,
    grew_at: Now,
    /// Bytes of the last batch that came alone since the broker throttled last.
    batch: Option<u64>,
}

/// How to send the next Fetch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// Bytes to ask for.
    pub bytes_max: i32,
    /// How long to wait before.
    pub wait: Duration,
    /// Bytes that may be expected.
    expected: f64,
}

impl FetchPaces {
    /// How many Fetch requests may be under way to the node. A broker that throttles hears nothing for a while, and what
    /// waits for the end of that on several lanes would come at once.
    #[must_use]
    pub fn requests(&self, node: i32) -> u16 {
        if self.nodes.get(&node).is_some_and(|pace| pace.limit.is_some()) { 1 } else { u16::MAX }
    }

    /// A Fetch for at most `bytes_max` is about to be sent to the node.
    pub fn next_piece(&mut self, now: Now, node: i32, bytes_max: i32) -> Piece {
        let Some(limit) = self.nodes.get_mut(&node).and_then(|pace| pace.limit.as_mut()) else {
            return Piece::whole(bytes_max);
        };
        limit.pass_time(now);
        // By then a broker has forgotten all that it counted.
        let wait = Duration::from_secs_f64(limit.ahead / limit.rate).min(WINDOW);
        let piece = limit.piece();
        let expected = piece.expected.min(bytes_max.into());
        let piece = Piece { bytes_max: piece.bytes_max.min(bytes_max), wait, expected };
        limit.ahead += piece.expected;
        piece
    }

    /// The node answered with so many bytes.
    pub fn handle_answered(&mut self, now: Now, node: i32, piece: Piece, bytes: u64) {
        let pace = self.nodes.entry(node).or_default();
        pace.count(now, bytes);
        let Some(limit) = &mut pace.limit else { return };
        if piece.bytes_max == ONE_BATCH && bytes > 0 {
            limit.batch = Some(bytes);
        }
        limit.pass_time(now);
        // What did not come is free again, and a large batch takes its time.
        limit.ahead = (limit.ahead + bytes as f64 - piece.expected).max(0.0);
        // A time without need tells nothing about the quota.
        let passed = now.saturating_sub(limit.grew_at).min(WINDOW).as_secs_f64() / PIECE.as_secs_f64();
        limit.rate += limit.rate * GROWTH * passed;
        limit.grew_at = now;
        if limit.rate > RATE_MAX {
            pace.limit = None;
        }
    }

    /// The node answered with nothing but a time to wait.
    pub fn handle_throttled(&mut self, now: Now, node: i32, piece: Piece, told: Duration) {
        let pace = self.nodes.entry(node).or_default();
        let came = pace.came_lately(now) as f64;
        let rate = match &pace.limit {
            // How much of what was asked for the broker had in mind is not known.
            None => came / WINDOW.as_secs_f64(),
            // With the piece that was not given the rate would have been met at the end of the wait.
            Some(limit) => {
                let met = (came + piece.expected) / (WINDOW + told).as_secs_f64();
                met.clamp(limit.rate * LEFT_MIN, limit.rate)
            }
        };
        let rate = rate.max(RATE_MIN);
        let ahead = rate * told.as_secs_f64();
        pace.limit = Some(Limit { rate, ahead, counted_at: now, grew_at: now + told, batch: None });
    }
}

impl Piece {
    fn whole(bytes_max: i32) -> Self {
        Self { bytes_max, wait: Duration::ZERO, expected: bytes_max.into() }
    }
}

impl Pace {
    fn count(&mut self, now: Now, bytes: u64) {
        match self.came.back_mut() {
            Some((since, sum)) if now.saturating_sub(*since) < GRAIN => *sum += bytes,
            _ => self.came.push_back((now, bytes)),
        }
        self.forget(now);
    }

    fn came_lately(&mut self, now: Now) -> u64 {
        self.forget(now);
        self.came.iter().map(|(_, bytes)| bytes).sum()
    }

    fn forget(&mut self, now: Now) {
        while self.came.front().is_some_and(|(since, _)| now.saturating_sub(*since) > WINDOW) {
            self.came.pop_front();
        }
    }
}

impl Limit {
    fn piece(&self) -> Piece {
        let bytes = (self.rate * PIECE.as_secs_f64()).min(FETCH_BYTES_MAX.into());
        let whole_batches = |batch: u64| bytes >= BATCHES_MIN * batch as f64;
        if self.batch.is_some_and(whole_batches) {
            #[expect(clippy::cast_possible_truncation, reason = "it is at most FETCH_BYTES_MAX")]
            let bytes_max = bytes as i32;
            return Piece { bytes_max, wait: Duration::ZERO, expected: bytes };
        }
        let expected = self.batch.unwrap_or(BATCH_BYTES) as f64;
        Piece { bytes_max: ONE_BATCH, wait: Duration::ZERO, expected }
    }

    fn pass_time(&mut self, now: Now) {
        let passed = now.saturating_sub(self.counted_at).as_secs_f64();
        self.ahead = (self.ahead - passed * self.rate).max(0.0);
        self.counted_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests under way where nobody throttles.
    const LANES: usize = 3;
    const SECOND: Duration = Duration::from_secs(1);

    /// A broker's quota as `ClientQuotaManager`, `Rate` and `SampledStat` count it.
    struct Quota {
        rate: f64,
        /// Start and bytes of each second that has any.
        samples: VecDeque<(Now, f64)>,
        samples_max: u32,
    }

    impl Quota {
        fn new(rate: f64, samples_max: u32) -> Self {
            Self { rate, samples: VecDeque::new(), samples_max }
        }

        /// None if the bytes may come, else the time to wait.
        fn ask(&mut self, now: Now, bytes: f64) -> Option<Duration> {
            while self.samples.front().is_some_and(|(since, _)| now - *since >= SECOND * self.samples_max) {
                self.samples.pop_front();
            }
            if self.samples.back().is_none_or(|(since, _)| now - *since >= SECOND) {
                self.samples.push_back((now, 0.0));
            }
            let elapsed = now - self.samples[0].0;
            let whole = u32::try_from(elapsed.as_secs()).unwrap();
            let missing = (self.samples_max - 1).saturating_sub(whole);
            let window = (elapsed + SECOND * missing).as_secs_f64();
            let sum: f64 = self.samples.iter().map(|(_, bytes)| bytes).sum();
            let over = (sum + bytes) / self.rate - window;
            if over > 0.0 {
                return Some(Duration::from_secs_f64(over));
            }
            self.samples.back_mut().unwrap().1 += bytes;
            None
        }
    }

    /// Fetches for a time from a broker that has enough, on a few lanes, each answer taking a little while. Gives the bytes
    /// per second after the first of them, in which the window of the broker fills.
    #[expect(clippy::cast_possible_truncation, reason = "they are a few megabytes")]
    fn fetched(quota: &mut Quota, paces: &mut FetchPaces, from: Now, batch: f64) -> f64 {
        let (warm, end) = (from + SECOND * 30, from + SECOND * 150);
        let answer_after = Duration::from_millis(3);
        let mut lanes: Vec<(Now, Option<Piece>)> = vec![(from, None); LANES];
        let (mut bytes_after_warm, mut silent_until) = (0.0, from);
        loop {
            let busy = lanes.iter().filter(|lane| lane.1.is_some()).count();
            let lane = lanes.iter_mut().min_by_key(|lane| lane.0).unwrap();
            let now = lane.0;
            if now >= end {
                return bytes_after_warm / (end - warm).as_secs_f64();
            }
            let Some(piece) = lane.1.take() else {
                if busy < paces.requests(1).into() {
                    let piece = paces.next_piece(now, 1, FETCH_BYTES_MAX);
                    *lane = ((now + piece.wait).max(silent_until) + answer_after, Some(piece));
                } else {
                    lane.0 += answer_after;
                }
                continue;
            };
            // A broker gives no more than its window allows, and a whole batch where there is room for none; it cuts off
            // the last one, which counts but is of no use.
            let most = f64::from(piece.bytes_max).min(quota.rate * f64::from(quota.samples_max - 1));
            let (bytes, whole) = (most.max(batch), ((most / batch).floor() * batch).max(batch));
            if let Some(told) = quota.ask(now, bytes) {
                paces.handle_throttled(now, 1, piece, told);
                silent_until = silent_until.max(now + told);
                // What was wanted is asked for on the same lane.
                let piece = paces.next_piece(now, 1, FETCH_BYTES_MAX);
                *lane = ((now + piece.wait).max(silent_until) + answer_after, Some(piece));
            } else {
                paces.handle_answered(now, 1, piece, bytes as u64);
                if now >= warm {
                    bytes_after_warm += whole;
                }
            }
        }
    }

    #[test]
    fn without_throttling_everything_is_asked_for_at_once() {
        let mut paces = FetchPaces::default();
        for second in 0..100 {
            assert_eq!(paces.next_piece(SECOND * second, 1, FETCH_BYTES_MAX), Piece::whole(FETCH_BYTES_MAX));
            paces.handle_answered(SECOND * second, 1, Piece::whole(FETCH_BYTES_MAX), 1 << 24);
        }
        assert!(paces.nodes[&1].came.len() < 50);
    }

    #[test]
    fn a_throttled_node_gives_nearly_its_quota() {
        // The default window, of a shorter and a longer one only that it does no harm.
        for (rate, samples_max, batch, least) in [
            (100e3, 11, 16e3, 0.9),
            (100e3, 11, 100e3, 0.9),
            (20e3, 11, 16e3, 0.9),
            (1e6, 11, 16e3, 0.9),
            (200e3, 11, 16e3, 0.9),
            (20e6, 11, 1e6, 0.9),
            (200e6, 11, 1e6, 0.9),
            (1e6, 4, 16e3, 0.8),
            (1e6, 31, 16e3, 0.4),
        ] {
            let mut quota = Quota::new(rate, samples_max);
            let fetched = fetched(&mut quota, &mut FetchPaces::default(), SECOND * 1000, batch);
            let part = fetched / rate;
            let case = format!("{rate} bytes/s, {samples_max} samples, batches of {batch} bytes");
            assert!((least..=1.1).contains(&part), "{part:.3} of {case}");
        }
    }

    #[test]
    fn no_wait_outlasts_the_memory_of_a_broker() {
        let mut paces = FetchPaces::default();
        paces.handle_throttled(SECOND, 1, Piece::whole(FETCH_BYTES_MAX), SECOND * 60);
        let asked = paces.next_piece(SECOND, 1, FETCH_BYTES_MAX);
        paces.handle_answered(SECOND, 1, asked, u64::MAX);
        assert_eq!(paces.next_piece(SECOND, 1, FETCH_BYTES_MAX).wait, WINDOW);
    }

    #[test]
    fn a_quota_that_changes_is_followed() {
        let mut paces = FetchPaces::default();
        for (start, rate) in [(1000, 1e6), (2000, 100e3), (3000, 300e3)] {
            let part = fetched(&mut Quota::new(rate, 11), &mut paces, SECOND * start, 16e3) / rate;
            assert!((0.9..=1.1).contains(&part), "{part:.3} of {rate}");
        }
        let mut unlimited = Quota::new(1e12, 11);
        fetched(&mut unlimited, &mut paces, SECOND * 4000, 16e3);
        assert_eq!(paces.next_piece(SECOND * 5000, 1, FETCH_BYTES_MAX).bytes_max, FETCH_BYTES_MAX);
        assert!(paces.nodes[&1].limit.is_none());
    }

    #[test]
    fn other_nodes_are_not_slowed() {
        let mut paces = FetchPaces::default();
        paces.handle_throttled(SECOND, 1, Piece::whole(FETCH_BYTES_MAX), SECOND * 5);
        let piece = paces.next_piece(SECOND, 1, FETCH_BYTES_MAX);
        assert_eq!((piece.bytes_max, piece.wait), (ONE_BATCH, SECOND * 5));
        assert_eq!(paces.next_piece(SECOND, 2, FETCH_BYTES_MAX), Piece::whole(FETCH_BYTES_MAX));
    }

    #[test]
    fn what_did_not_come_is_not_waited_for() {
        let mut paces = FetchPaces::default();
        paces.handle_throttled(SECOND, 1, Piece::whole(FETCH_BYTES_MAX), Duration::ZERO);
        let asked = paces.next_piece(SECOND, 1, FETCH_BYTES_MAX);
        assert!(paces.next_piece(SECOND, 1, FETCH_BYTES_MAX).wait > SECOND);
        paces.handle_answered(SECOND, 1, asked, 0);
        paces.handle_answered(SECOND, 1, asked, 0);
        assert_eq!(paces.next_piece(SECOND, 1, FETCH_BYTES_MAX).wait, Duration::ZERO);
    }
}
