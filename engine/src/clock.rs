//! The only place that reads a clock of the operating system; everything else gets time as an argument.
//!
//! Timers of drivers use tokio's clock, which tests can pause. Two questions need others: how long a leader has
//! been silent, suspend of the machine included (CLOCK_BOOTTIME), and what a person calls now (wall time).

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[cfg(any(target_os = "linux", target_os = "android"))]
const BOOT_CLOCK: ClockId = ClockId::Boottime;
/// Elsewhere the monotonic clock is the nearest there is; it may stand still while the machine sleeps.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const BOOT_CLOCK: ClockId = ClockId::Monotonic;

/// Time since the machine started, time asleep included. Never goes back; only differences mean something.
pub fn boot_time() -> Duration {
    let now = clock_gettime(BOOT_CLOCK);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Milliseconds since 1970 (UTC) as the machine's wall clock says: may jump both ways, so it is for records,
/// logs and people, never for a time limit.
pub fn wall_time_ms() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_time_does_not_go_back() {
        let first = boot_time();
        assert!(first > Duration::ZERO);
        assert!(boot_time() >= first);
    }

    #[test]
    fn wall_time_is_in_milliseconds() {
        let year_2025_ms = 1_735_689_600_000;
        let year_2200_ms = 7_258_118_400_000;
        assert!((year_2025_ms..year_2200_ms).contains(&wall_time_ms()));
    }
}
