//! Whose turn it is to write batches anew. Unpacking makes much of little, and all partitions of a flow share the memory for
//! it, and the task.
//!
//! - R1: what was written anew and not taken by the target stays below a limit, one turn more, while anybody who has some of it
//!   gets a turn; up to twice the limit who has none does, so that a slow target's partitions delay no others.
//! - R2: no partition has more than its part of it. Who has waited longest is next.

use std::collections::VecDeque;

/// Turns of the partitions of a flow, by their slots.
#[derive(Debug)]
pub struct Turns {
    bytes_max: usize,
    claims: Vec<Claim>,
    /// Slots that wait, or waited when they were put here.
    queue: VecDeque<usize>,
    /// Bytes of all claims.
    bytes: usize,
    /// Claims of those who wait or have bytes.
    claimants: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Claim {
    waits: bool,
    is_queued: bool,
    bytes: usize,
}

impl Claim {
    fn counts(self) -> bool {
        self.waits || self.bytes > 0
    }
}

impl Turns {
    /// Nobody waits. `bytes_max` is the limit of R1.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, claims: Vec::new(), queue: VecDeque::new(), bytes: 0, claimants: 0 }
    }

    /// Whether the partition waits for a turn, and the bytes that it has written anew and the target has not taken.
    pub fn set(&mut self, slot: usize, waits: bool, bytes: usize) {
        if self.claims.len() <= slot {
            if !waits && bytes == 0 {
                return;
            }
            self.claims.resize(slot + 1, Claim::default());
        }
        let before = self.claims[slot];
        let after = Claim { waits, bytes, is_queued: before.is_queued || waits };
        self.claims[slot] = after;
        self.bytes = self.bytes - before.bytes + bytes;
        self.claimants = self.claimants + usize::from(after.counts()) - usize::from(before.counts());
        if waits && !before.is_queued {
            self.queue.push_back(slot);
        }
    }

    /// Who may write something anew now; it has had its turn then.
    pub fn poll(&mut self) -> Option<usize> {
        let place = self.next()?;
        let slot = self.queue.remove(place)?;
        let Claim { bytes, .. } = self.claims[slot];
        self.claims[slot].is_queued = false;
        self.set(slot, false, bytes);
        Some(slot)
    }

    /// Whether [`Turns::poll`] has somebody.
    #[must_use]
    pub fn is_due(&mut self) -> bool {
        self.next().is_some()
    }

    fn next(&mut self) -> Option<usize> {
        while let Some(&slot) = self.queue.front().filter(|slot| !self.claims[**slot].waits) {
            self.claims[slot].is_queued = false;
            self.queue.pop_front();
        }
        if self.bytes >= self.bytes_max.saturating_mul(2) {
            return None;
        }
        self.queue.iter().position(|slot| {
            let claim = self.claims[*slot];
            claim.waits && self.admits(claim)
        })
    }

    fn admits(&self, claim: Claim) -> bool {
        let part = self.bytes_max / (self.claimants + 1);
        claim.bytes == 0 || (self.bytes < self.bytes_max && claim.bytes < part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waited_longest_is_next() {
        let mut turns = Turns::new(1_000);
        for slot in [3, 1, 2] {
            turns.set(slot, true, 0);
        }
        turns.set(1, false, 0);
        assert_eq!([turns.poll(), turns.poll(), turns.poll()], [Some(3), Some(2), None]);
        turns.set(3, true, 100);
        turns.set(1, true, 0);
        assert_eq!([turns.poll(), turns.poll(), turns.poll()], [Some(3), Some(1), None]);
    }

    #[test]
    fn who_is_queued_twice_is_served_once() {
        let mut turns = Turns::new(1_000);
        turns.set(0, true, 0);
        turns.set(0, false, 0);
        turns.set(0, true, 0);
        assert!(turns.is_due());
        assert_eq!([turns.poll(), turns.poll()], [Some(0), None]);
        turns.set(0, false, 0);
        assert!(!turns.is_due());
    }

    #[test]
    fn one_alone_has_half_and_each_of_many_its_part() {
        let mut turns = Turns::new(1_000);
        turns.set(0, true, 499);
        assert_eq!(turns.poll(), Some(0));
        turns.set(0, true, 500);
        assert_eq!(turns.poll(), None);
        turns.set(1, true, 250);
        assert_eq!(turns.poll(), Some(1), "below a third");
        turns.set(1, true, 350);
        assert_eq!(turns.poll(), None);
        turns.set(0, true, 0);
        assert_eq!(turns.poll(), Some(0));
    }

    #[test]
    fn who_has_nothing_does_not_wait_for_those_who_have_much() {
        let mut turns = Turns::new(1_000);
        turns.set(0, false, 1_900);
        turns.set(1, true, 1);
        turns.set(2, true, 0);
        assert_eq!(turns.poll(), Some(2));
        turns.set(2, true, 100);
        turns.set(3, true, 0);
        assert_eq!(turns.poll(), None, "twice the limit");
        turns.set(0, false, 0);
        assert_eq!([turns.poll(), turns.poll(), turns.poll()], [Some(1), Some(2), Some(3)]);
    }

    /// Partitions whose targets are slow, dead or quick: the bound holds, and the quick ones get on.
    #[test]
    fn whatever_targets_do_the_bound_holds_and_nobody_starves() {
        const TURN: usize = 100;
        let mut random = fastrand::Rng::with_seed(11);
        let mut turns = Turns::new(3_000);
        let mut bytes = [0usize; 20];
        let mut had = [0u32; 20];
        for round in 0..20_000 {
            if let Some(slot) = turns.poll() {
                bytes[slot] += TURN;
                had[slot] += 1;
            }
            for (slot, bytes) in bytes.iter_mut().enumerate() {
                // The first three never take anything, the next ones seldom.
                let takes = slot >= 3 && (slot >= 10 || random.u8(..20) == 0);
                if takes && random.bool() {
                    *bytes = bytes.saturating_sub(TURN);
                }
                turns.set(slot, round % 7 != slot % 7, *bytes);
            }
            let sum: usize = bytes.iter().sum();
            assert_eq!(turns.bytes, sum);
            assert!(sum <= 6_000 + TURN, "{sum}");
        }
        assert!(had[3..].iter().all(|turns| *turns > 100), "{had:?}");
    }
}
