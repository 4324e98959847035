//! Exponential back-off with jitter: how long to wait after the n-th failure in a row.
//!
//! Chance is an argument, so a run can be repeated. Jitter is ±20 %, as in Kafka's own clients
//! (`ExponentialBackoff`, KIP-580): instances that lost the same broker do not come back at the same moment.

use std::time::Duration;

const JITTER: f64 = 0.2;

/// `first`, doubled so many times, and never more than `longest`.
pub(super) fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << times.min(31)).min(longest)
}

/// The waiting time of one thing that may fail again and again, such as dialing a broker.
#[derive(Debug, Clone)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    /// Starts at `min` and doubles up to `max`.
    pub fn new(min: Duration, max: Duration) -> Self {
        Backoff { min, max: max.max(min), failures: 0 }
    }

    /// Notes one more failure and tells how long to wait before the next try. `chance` is uniform in 0..1.
    pub fn failed(&mut self, chance: f64) -> Duration {
        let wait = doubled(self.min, self.failures, self.max);
        self.failures = self.failures.saturating_add(1);
        wait.mul_f64(1.0 - JITTER + 2.0 * JITTER * chance.clamp(0.0, 1.0))
    }

    /// Notes a success: the next failure waits `min` again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDDLE: f64 = 0.5;

    fn reconnect() -> Backoff {
        Backoff::new(Duration::from_millis(50), Duration::from_secs(1))
    }

    #[test]
    fn waits_double_up_to_the_limit() {
        let mut backoff = reconnect();
        let waits: Vec<_> = (0..7).map(|_| backoff.failed(MIDDLE).as_millis()).collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1000, 1000]);
    }

    #[test]
    fn a_success_starts_over() {
        let mut backoff = reconnect();
        backoff.failed(MIDDLE);
        backoff.failed(MIDDLE);
        backoff.reset();
        assert_eq!(backoff.failures, 0);
        assert_eq!(backoff.failed(MIDDLE), Duration::from_millis(50));
    }

    #[test]
    fn jitter_stays_within_a_fifth() {
        for chance in [-1.0, 0.0, 0.3, 0.999, 2.0] {
            let wait = reconnect().failed(chance);
            assert!((Duration::from_millis(40)..=Duration::from_millis(60)).contains(&wait), "{wait:?}");
        }
    }

    #[test]
    fn years_of_failures_do_not_overflow() {
        let mut backoff = Backoff { failures: u32::MAX, ..reconnect() };
        assert_eq!(backoff.failed(MIDDLE), Duration::from_secs(1));
    }

    #[test]
    fn a_minimum_above_the_maximum_wins() {
        let mut backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(1));
        assert_eq!(backoff.failed(MIDDLE), Duration::from_secs(2));
    }
}
