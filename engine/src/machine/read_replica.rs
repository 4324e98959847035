//! From which replica a partition is fetched: its leader, or the one that its leader names for our rack (KIP-392).
//!
//! A leader that was told our rack answers without records and names a replica. A replica is no witness of anything but
//! records: its log may end, begin or branch off where the leader's does not.
//!
//! Rules:
//! - R1: nothing but the leader's word makes a partition hold or line up. Whatever is not a plain answer of a replica, or of
//!   an earlier leader, ends the choice, and the leader is asked for the same offset. What a replica said before it became
//!   the leader is not heard.
//! - R2: a leader names a replica that just failed until it has found out, so after a failure it is told no rack for a while
//!   and gives out the records itself, whatever other partitions hear of that replica. Without that a failure would be a
//!   loop of requests.
//! - R3: a choice ends by itself after five minutes: a replica that has stopped to follow looks like one without news.
//! - R4: a replica's high watermark may be an earlier one of the leader's. It does not take back what the leader told.
//! - R5: what is damaged at a replica may be whole at the leader, which is asked when the hold is tried again.
//!
//! # References
//! KIP-392; `AbstractFetch.selectReadReplica` and `FetchCollector.handleInitializeErrors` (client),
//! `ReplicaManager.findPreferredReadReplica` (broker).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::Now;
use super::backoff::doubled;
use super::partition::{Fetched, RequestFailure};

/// How long a choice holds (`metadata.max.age.ms`).
const KEPT_FOR: Duration = Duration::from_secs(5 * 60);
/// How long leaders are told no rack after a failure; it doubles for a replica that fails again, up to the longest. That is
/// longer than the 30 s after which a hold is tried again (R5).
const LEFT_FOR: Duration = Duration::from_secs(5);
const LEFT_FOR_MAX: Duration = Duration::from_secs(60);
/// Stands for every node that leaders name and metadata does not, of which there may be any number.
const NOWHERE: i32 = -1;

/// The replicas that partitions are fetched from, by slots.
#[derive(Debug, Default)]
pub struct ReadReplicas {
    /// Where we stand; empty for nowhere.
    rack: Arc<str>,
    chosen: HashMap<usize, Choice>,
    /// When choices end, in that order; those that ended earlier are still in it.
    ends: VecDeque<(Now, usize)>,
    /// By the leader that named the replica, and the replica.
    failures: BTreeMap<(i32, i32), Failures>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice {
    node: i32,
    until: Now,
}

/// Failures of a replica in a row.
#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    left_until: Now,
}

/// Who answered, and who leads.
#[derive(Debug, Clone, Copy)]
pub struct Answerer {
    /// The node that answered, or did not.
    pub node: i32,
    /// The partition's leader.
    pub leader: Option<i32>,
    /// Whom it names instead of itself.
    pub named: Option<i32>,
}

/// What to do with an answer.
#[derive(Debug)]
pub enum Heard {
    /// The partition takes it.
    News(Fetched),
    /// It tells nothing: this node, the leader, is to be asked for the same offset.
    Ask(i32),
}

impl ReadReplicas {
    /// For a reader in this rack.
    #[must_use]
    pub fn new(rack: &str) -> Self {
        Self { rack: Arc::from(rack), ..Self::default() }
    }

    /// The rack to name in a request to this node, empty for none (R2).
    #[must_use]
    pub fn rack(&self, now: Now, node: i32) -> Arc<str> {
        let mut named = self.failures.range((node, i32::MIN)..=(node, i32::MAX));
        let is_left = named.any(|(_, failures)| now < failures.left_until);
        if is_left { Arc::default() } else { Arc::clone(&self.rack) }
    }

    /// The node to fetch a partition from.
    #[must_use]
    pub fn node(&self, slot: usize, leader: i32) -> i32 {
        self.chosen.get(&slot).map_or(leader, |choice| choice.node)
    }

    /// The partition has another leader, or another leader epoch. Tells whether it was fetched from a replica: its answer
    /// is not to be heard any more, as it could be taken for the new leader's (R1).
    pub fn handle_new_leader(&mut self, slot: usize) -> bool {
        self.chosen.remove(&slot).is_some()
    }

    /// By new metadata these nodes are there. The partitions that have to go back to their leaders.
    pub fn handle_nodes(&mut self, is_there: impl Fn(i32) -> bool) -> Vec<usize> {
        let gone = self.chosen.iter().filter(|(_, choice)| !is_there(choice.node));
        let mut gone: Vec<usize> = gone.map(|(slot, _)| *slot).collect();
        gone.sort_unstable();
        self.chosen.retain(|_, choice| is_there(choice.node));
        self.failures.retain(|(leader, node), _| is_there(*leader) && (*node == NOWHERE || is_there(*node)));
        gone
    }

    /// A partition whose choice has just ended (R3). Nobody has to wake up for it.
    pub fn poll_ended(&mut self, now: Now) -> Option<usize> {
        while let Some((until, slot)) = self.ends.front().copied().filter(|(until, _)| *until <= now) {
            self.ends.pop_front();
            if self.chosen.get(&slot).is_some_and(|choice| choice.until == until) {
                self.chosen.remove(&slot);
                return Some(slot);
            }
        }
        None
    }

    /// A Fetch for a partition ended. `readable_end` is the last one that it was told.
    pub fn handle_fetched(
        &mut self,
        now: Now,
        slot: usize,
        by: Answerer,
        is_there: impl Fn(i32) -> bool,
        readable_end: Option<i64>,
        mut fetched: Fetched,
    ) -> Heard {
        if by.leader == Some(by.node) {
            if let Some(named) = by.named.filter(|named| fetched.result.is_ok() && *named != by.node) {
                self.choose(now, slot, by.node, named, is_there(named));
            }
            return Heard::News(fetched);
        }
        match &mut fetched.result {
            Ok(records) if records.diverging.is_none() && by.named.is_none() => {
                self.note_success(now, by);
                let known = readable_end.unwrap_or(-1);
                records.high_watermark = records.high_watermark.max(known);
                records.last_stable_offset = records.last_stable_offset.map(|stable| stable.max(known));
                return Heard::News(fetched);
            }
            _ => {}
        }
        if self.chosen.get(&slot).is_some_and(|choice| choice.node == by.node) {
            self.chosen.remove(&slot);
            if let Some(leader) = by.leader {
                self.note_failure(now, leader, by.node);
            }
        }
        by.leader.map_or_else(
            || {
                let why = "a replica failed, and the partition has no leader".to_owned();
                Heard::News(Fetched { result: Err(RequestFailure::Unanswered(why)), ..fetched })
            },
            Heard::Ask,
        )
    }

    /// The partition is held because what came last is damaged.
    pub fn handle_damaged(&mut self, now: Now, slot: usize, leader: Option<i32>) {
        let (Some(choice), Some(leader)) = (self.chosen.remove(&slot), leader) else { return };
        self.note_failure(now, leader, choice.node);
        if let Some(failures) = self.failures.get_mut(&(leader, choice.node)) {
            failures.left_until = now + LEFT_FOR_MAX;
        }
    }

    fn choose(&mut self, now: Now, slot: usize, leader: i32, node: i32, is_there: bool) {
        if !is_there {
            return self.note_failure(now, leader, NOWHERE);
        }
        // Named in an answer to a request from before it failed.
        if self.failures.get(&(leader, node)).is_some_and(|failures| now < failures.left_until) {
            return;
        }
        let until = now + KEPT_FOR;
        self.chosen.insert(slot, Choice { node, until });
        self.ends.push_back((until, slot));
    }

    /// Only the time that it is left for begins anew: the partition that it failed for may not be this one.
    fn note_success(&mut self, now: Now, by: Answerer) {
        let Some(leader) = by.leader else { return };
        if self.failures.get(&(leader, by.node)).is_some_and(|failures| failures.left_until <= now) {
            self.failures.remove(&(leader, by.node));
        }
    }

    /// What failed together counts once.
    fn note_failure(&mut self, now: Now, leader: i32, node: i32) {
        let failures =
            self.failures.entry((leader, node)).or_insert(Failures { count: 0, left_until: Now::ZERO });
        if failures.count == 0 || failures.left_until <= now {
            failures.left_until = now + doubled(LEFT_FOR, failures.count, LEFT_FOR_MAX);
            failures.count = failures.count.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests;
