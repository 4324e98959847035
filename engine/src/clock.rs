//! The only place that reads a clock of the operating system; everything else gets time as an argument.
//!
//! Timers of drivers use tokio's clock, which tests can pause. Two questions need others: how long a leader has
//! been silent, suspend of the machine included (CLOCK_BOOTTIME), and what a person calls now (wall time).

use std::time::{Duration, SystemTime};

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

/// What the machine's wall clock says: for people, as [`wall_time_ms`].
pub fn wall_time() -> SystemTime {
    SystemTime::UNIX_EPOCH + since_1970()
}

fn since_1970() -> Duration {
    Duration::from_millis(wall_time_ms().max(0).unsigned_abs())
}

/// Tells people when something was, by the wall clock.
///
/// The same moment is the same time at each call, though both clocks run on between two looks at them, until the wall clock is
/// set: then all moments move with it.
#[derive(Debug, Default)]
pub struct WallClock {
    /// The wall clock's time when [`boot_time`] was zero.
    booted_at: Option<Duration>,
}

/// The clocks differ by less than this from look to look, unless one was set.
const SET_BY: Duration = Duration::from_secs(1);

impl WallClock {
    /// The wall clock's time at this moment of [`boot_time`].
    pub fn time_at(&mut self, at: Duration) -> SystemTime {
        self.tell(at, since_1970().saturating_sub(boot_time()))
    }

    fn tell(&mut self, at: Duration, booted_at: Duration) -> SystemTime {
        let known = self.booted_at.filter(|known| known.abs_diff(booted_at) < SET_BY);
        SystemTime::UNIX_EPOCH + *self.booted_at.insert(known.unwrap_or(booted_at)) + at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_one_time_until_the_clock_is_set() {
        let (ms, at) = (Duration::from_millis(1), Duration::from_secs(7));
        let mut clock = WallClock::default();
        let told = clock.tell(at, SET_BY * 100);
        assert_eq!(told, SystemTime::UNIX_EPOCH + SET_BY * 100 + at);
        assert_eq!(clock.tell(at, SET_BY * 100 + ms), told);
        assert_eq!(clock.tell(at, SET_BY * 100 - ms), told);
        assert_eq!(clock.tell(at, SET_BY * 3700), told + SET_BY * 3600);
        let before = boot_time();
        let now = WallClock::default().time_at(before);
        assert!(wall_time().duration_since(now).is_ok_and(|passed| passed < SET_BY * 30), "{now:?}");
    }

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
