//! When which partition wants to be woken: one moment each.

use std::collections::{BTreeSet, HashMap};

use super::Now;

/// One moment per key; the earliest is found without a look at the others.
#[derive(Debug, Default)]
pub struct Timers {
    by_time: BTreeSet<(Now, usize)>,
    by_key: HashMap<usize, Now>,
}

impl Timers {
    /// Sets, moves or (none) clears the moment of `key`.
    pub fn set(&mut self, key: usize, at: Option<Now>) {
        let known = self.by_key.get(&key).copied();
        if known == at {
            return;
        }
        if let Some(known) = known {
            self.by_time.remove(&(known, key));
            self.by_key.remove(&key);
        }
        if let Some(at) = at {
            self.by_time.insert((at, key));
            self.by_key.insert(key, at);
        }
    }

    /// The earliest moment.
    #[must_use]
    pub fn next(&self) -> Option<Now> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes out a key whose moment has come.
    pub fn pop_due(&mut self, now: Now) -> Option<usize> {
        let (at, key) = *self.by_time.first()?;
        if at > now {
            return None;
        }
        self.by_time.pop_first();
        self.by_key.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Option<Now> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn the_earliest_comes_first_and_each_key_once() {
        let mut timers = Timers::default();
        timers.set(1, at(5));
        timers.set(2, at(3));
        timers.set(1, at(2));
        timers.set(3, at(1));
        timers.set(3, None);
        assert_eq!(timers.next(), at(2));
        let now = Duration::from_secs(4);
        assert_eq!((timers.pop_due(now), timers.pop_due(now), timers.pop_due(now)), (Some(1), Some(2), None));
        assert_eq!(timers.next(), None);
    }
}
