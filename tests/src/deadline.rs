//! Waiting for other processes: every wait has a limit and says what it waited for.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

/// A point in time after which a wait has failed.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline `limit` from now.
    #[must_use]
    pub fn after(limit: Duration) -> Self {
        Self(now() + limit)
    }

    /// Whether the time is up.
    #[must_use]
    pub fn passed(self) -> bool {
        now() >= self.0
    }

    /// Asks again and again, every 50 ms, until there is an answer.
    ///
    /// # Errors
    /// What `ask` fails with, or that `what` did not come in time.
    pub fn wait<T>(self, what: &str, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        loop {
            if let Some(answer) = ask()? {
                return Ok(answer);
            }
            if self.passed() {
                bail!("waited too long for {what}");
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The time now: the tests' only clock.
#[must_use]
#[allow(clippy::disallowed_methods, reason = "real brokers live in real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since 1970, for record timestamps.
#[must_use]
#[allow(clippy::disallowed_methods, reason = "brokers compare record timestamps with the wall clock")]
pub fn wall_clock_ms() -> i64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since_1970.expect("the clock stands after 1970").as_millis()).expect("far in the future")
}
