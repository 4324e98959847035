//! How fast a flow may copy where somebody set a limit (`throttle`).
//!
//! Fetching is what is held back: whatever was fetched goes on at once. Each answer is paid for by time in which nothing is
//! asked for, so the mean is kept whatever sizes answers have.

use std::time::Duration;

use super::Now;

/// One request asks for what may be copied in this time.
const PIECE: Duration = Duration::from_millis(250);

/// The limit of one flow.
#[derive(Debug)]
pub struct Throttle {
    bytes_per_second: Option<u64>,
    /// Everything so far is paid for at this moment.
    free_at: Now,
}

impl Throttle {
    /// A limit in bytes per second, above 0; none for no limit.
    #[must_use]
    pub fn new(bytes_per_second: Option<u64>) -> Self {
        Self { bytes_per_second: bytes_per_second.map(|bytes| bytes.max(1)), free_at: Now::ZERO }
    }

    /// When to ask for more, if not now.
    #[must_use]
    pub fn not_before(&self, now: Now) -> Option<Now> {
        Some(self.free_at).filter(|at| *at > now)
    }

    /// The most that one request may ask for, in bytes.
    #[must_use]
    pub fn piece_bytes_max(&self) -> i32 {
        let Some(rate) = self.bytes_per_second else { return i32::MAX };
        let bytes = u128::from(rate) * PIECE.as_millis() / 1000;
        i32::try_from(bytes.max(1)).unwrap_or(i32::MAX)
    }

    /// An answer brought so many bytes.
    pub fn handle_bytes(&mut self, now: Now, bytes: u64) {
        let Some(rate) = self.bytes_per_second else { return };
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
        let price = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        // Time in which nothing came is not saved up.
        self.free_at = self.free_at.max(now).saturating_add(price);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut throttle = Throttle::new(None);
        throttle.handle_bytes(SECOND, u64::MAX);
        assert_eq!((throttle.not_before(SECOND), throttle.piece_bytes_max()), (None, i32::MAX));
    }

    #[test]
    fn an_answer_is_paid_for_by_time() {
        let mut throttle = Throttle::new(Some(1000));
        assert_eq!(throttle.piece_bytes_max(), 250);
        throttle.handle_bytes(SECOND, 500);
        throttle.handle_bytes(SECOND, 1500);
        assert_eq!(throttle.not_before(SECOND), Some(SECOND * 3));
        assert_eq!(throttle.not_before(SECOND * 3), None);
        throttle.handle_bytes(SECOND * 100, 1000);
        assert_eq!(throttle.not_before(SECOND * 100), Some(SECOND * 101), "the idle time does not count");
    }

    #[test]
    fn no_number_is_too_large() {
        let mut throttle = Throttle::new(Some(u64::MAX));
        assert_eq!(throttle.piece_bytes_max(), i32::MAX);
        throttle.handle_bytes(SECOND, u64::MAX);
        assert_eq!(throttle.not_before(SECOND), Some(SECOND * 2));
        let mut throttle = Throttle::new(Some(0));
        throttle.handle_bytes(SECOND, u64::MAX);
        throttle.handle_bytes(SECOND, u64::MAX);
        assert!(throttle.not_before(SECOND).is_some());
    }

    /// Several requests under way, answers of any size: over any stretch no more comes than the rate gives, but for what is
    /// under way at once.
    #[test]
    fn the_mean_is_kept() {
        let mut random = fastrand::Rng::with_seed(3);
        let rate = 1_000_000;
        let mut throttle = Throttle::new(Some(rate));
        let (mut now, mut total) = (Now::ZERO, 0);
        while now < SECOND * 60 {
            match throttle.not_before(now) {
                Some(at) => now = at,
                None => {
                    for _ in 0..random.u8(1..4) {
                        let bytes = u64::from(random.u32(..=throttle.piece_bytes_max().unsigned_abs()));
                        total += bytes;
                        throttle.handle_bytes(now, bytes);
                    }
                }
            }
        }
        assert!((59 * rate..61 * rate).contains(&total), "{total}");
    }
}
