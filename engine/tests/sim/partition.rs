//! A replicated partition of the target: one leader, followers that fetch, and a controller that moves the leadership.
//!
//! What nodes believe lags behind what the controller decided: a deposed leader goes on appending to a log that will be
//! rolled back. `acks=all` is answered when the high watermark has passed, for a repeat too.
//!
//! # References
//! `Partition.makeLeader`, `Partition.maybeIncrementLeaderHW`, `DelayedProduce`, KIP-101, KIP-207 (broker).

use std::collections::BTreeSet;
use std::rc::Rc;

use twinlog_engine::machine::Now;
use twinlog_protocol::ErrorCode;

use super::net::{Reply, Ticket};
use super::replica::{Batch, Replica, Verdict};

/// A replica with what its node believes about the partition.
#[derive(Debug, Default)]
pub(crate) struct Member {
    pub(crate) replica: Replica,
    pub(crate) alive: bool,
    /// Does not fetch.
    pub(crate) asleep: bool,
    pub(crate) tick_pending: bool,
    pub(crate) epoch: i32,
    pub(crate) leader: Option<usize>,
    epoch_start: i64,
    /// As leader: where each follower's log ends, as far as it fetched in this epoch.
    follower_ends: Vec<Option<i64>>,
    isr: BTreeSet<usize>,
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    node: usize,
    epoch: i32,
    base_offset: i64,
    needs: i64,
}

#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) topic_id: u128,
    pub(crate) leader: Option<usize>,
    pub(crate) epoch: i32,
    pub(crate) isr: BTreeSet<usize>,
    pub(crate) members: Vec<Member>,
    pub(crate) isr_min: usize,
    /// Batches are too large for the topic until then.
    pub(crate) refuses_until: Now,
    /// The largest batch that the topic takes.
    pub(crate) batch_bytes_max: usize,
    waiting: Vec<Waiting>,
    /// Answers that are ready to go.
    pub(crate) answers: Vec<(Ticket, Reply)>,
}

impl Partition {
    pub(crate) fn new(topic_id: u128, nodes: usize, leader: usize, isr_min: usize) -> Self {
        let isr: BTreeSet<usize> = (0..nodes).collect();
        let member = |_| Member {
            alive: true,
            leader: Some(leader),
            isr: isr.clone(),
            follower_ends: vec![None; nodes],
            ..Member::default()
        };
        Self {
            topic_id,
            leader: Some(leader),
            epoch: 0,
            members: (0..nodes).map(member).collect(),
            isr_min,
            isr,
            refuses_until: Now::ZERO,
            batch_bytes_max: usize::MAX,
            waiting: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// The member, if its node takes itself for the leader.
    pub(crate) fn leading(&self, node: usize) -> Result<&Member, ErrorCode> {
        let member = &self.members[node];
        if member.leader == Some(node) { Ok(member) } else { Err(ErrorCode::NotLeaderOrFollower) }
    }

    /// The member, if its node leads in exactly this epoch.
    pub(crate) fn leading_in(&self, node: usize, epoch: i32) -> Result<&Member, ErrorCode> {
        let member = &self.members[node];
        match member.epoch.cmp(&epoch) {
            std::cmp::Ordering::Less => Err(ErrorCode::UnknownLeaderEpoch),
            std::cmp::Ordering::Greater => Err(ErrorCode::FencedLeaderEpoch),
            std::cmp::Ordering::Equal => self.leading(node),
        }
    }

    /// High watermark as `ListOffsets` tells it.
    pub(crate) fn listed_end(&self, node: usize, epoch: i32) -> Result<i64, ErrorCode> {
        let member = self.leading_in(node, epoch)?;
        let known = member.replica.high_watermark >= member.epoch_start;
        if known { Ok(member.replica.high_watermark) } else { Err(ErrorCode::OffsetNotAvailable) }
    }

    /// Appends for a producer that wants all replicas to have it. `Err` answers at once.
    pub(crate) fn produce(
        &mut self,
        now: Now,
        node: usize,
        ticket: Ticket,
        mut batch: Batch,
    ) -> Result<(), ErrorCode> {
        let member = self.leading(node)?;
        if now < self.refuses_until || batch.bytes > self.batch_bytes_max {
            return Err(ErrorCode::MessageTooLarge);
        }
        if member.isr.len() < self.isr_min {
            return Err(ErrorCode::NotEnoughReplicas);
        }
        let (epoch, count) = (member.epoch, batch.count);
        let verdict = batch.stamp.map_or(Verdict::Append, |stamp| member.replica.verdict(stamp, count));
        let base_offset = match verdict {
            Verdict::Refuse(code) => return Err(code),
            Verdict::Repeat(base_offset) => base_offset,
            Verdict::Append => {
                batch.base_offset = member.replica.log_end();
                batch.leader_epoch = epoch;
                let base_offset = batch.base_offset;
                self.members[node].replica.append(Rc::new(batch));
                base_offset
            }
        };
        let needs = base_offset + i64::from(count);
        self.waiting.push(Waiting { ticket, node, epoch, base_offset, needs });
        self.move_high_watermark(node);
        Ok(())
    }

    /// Another producer appends, and does not wait.
    pub(crate) fn append_foreign(&mut self, node: usize, mut batch: Batch) {
        let member = &mut self.members[node];
        (batch.base_offset, batch.leader_epoch) = (member.replica.log_end(), member.epoch);
        member.replica.append(Rc::new(batch));
        self.move_high_watermark(node);
    }

    /// The topic is gone: whoever waits is told so.
    pub(crate) fn abandon(&mut self) -> Vec<(Ticket, Reply)> {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let told = waiting.map(|waiting| (waiting.ticket, Reply::Error(ErrorCode::UnknownTopicOrPartition)));
        std::mem::take(&mut self.answers).into_iter().chain(told).collect()
    }

    /// The broker gives up waiting for the replicas: appended, but in doubt.
    pub(crate) fn time_out(&mut self, ticket: Ticket) {
        if let Some(place) = self.waiting.iter().position(|waiting| waiting.ticket == ticket) {
            self.waiting.swap_remove(place);
            self.answers.push((ticket, Reply::Error(ErrorCode::RequestTimedOut)));
        }
    }

    fn move_high_watermark(&mut self, node: usize) {
        let member = &mut self.members[node];
        let end_of = |follower: &usize| {
            if *follower == node { Some(member.replica.log_end()) } else { member.follower_ends[*follower] }
        };
        let Some(ends) = member.isr.iter().map(end_of).collect::<Option<Vec<_>>>() else { return };
        let least = ends.into_iter().min().unwrap_or(0);
        if least > member.replica.high_watermark {
            member.replica.high_watermark = least;
        }
        let (high_watermark, enough) = (member.replica.high_watermark, member.isr.len() >= self.isr_min);
        let epoch = member.epoch;
        let answers = &mut self.answers;
        self.waiting.retain(|waiting| {
            let is_done = waiting.node == node && waiting.epoch == epoch && waiting.needs <= high_watermark;
            if is_done {
                let base_offset = waiting.base_offset;
                let code = ErrorCode::NotEnoughReplicasAfterAppend;
                let reply = if enough { Reply::Appended { base_offset } } else { Reply::Error(code) };
                answers.push((waiting.ticket, reply));
            }
            !is_done
        });
    }

    /// The leader that a follower fetches from, if both agree on the epoch.
    fn fetches_from(&self, follower: usize) -> Option<usize> {
        let member = &self.members[follower];
        let leader = member.leader.filter(|leader| *leader != follower && member.alive)?;
        let other = &self.members[leader];
        (other.alive && other.epoch == member.epoch && other.leader == Some(leader)).then_some(leader)
    }

    /// Whether a fetch of this follower would change anything.
    pub(crate) fn wants_tick(&self, follower: usize) -> bool {
        let member = &self.members[follower];
        let Some(leader) = self.fetches_from(follower).filter(|_| !member.asleep) else { return false };
        let other = &self.members[leader];
        let end = member.replica.log_end();
        end != other.replica.log_end()
            || other.follower_ends[follower] != Some(end)
            || member.replica.high_watermark != other.replica.high_watermark.min(end)
            || member.replica.log_start < other.replica.log_start.min(member.replica.high_watermark)
            || (!other.isr.contains(&follower) && self.is_current(leader))
    }

    /// One fetch of a follower, up to `batches_max` batches.
    pub(crate) fn tick(&mut self, follower: usize, batches_max: usize, expired_return: bool) {
        self.members[follower].tick_pending = false;
        if !self.wants_tick(follower) {
            return;
        }
        let leader = self.fetches_from(follower).expect("a follower that wants a tick has a leader");
        self.truncate_to_leader(follower, leader, expired_return);
        let end = self.members[follower].replica.log_end();
        self.members[leader].follower_ends[follower] = Some(end);
        let other = &self.members[leader];
        let caught_up = end >= other.replica.log_end() && end >= other.epoch_start;
        if caught_up && self.is_current(leader) {
            self.isr.insert(follower);
            self.members[leader].isr = self.isr.clone();
        }
        self.move_high_watermark(leader);
        let other = &self.members[leader].replica;
        let (high_watermark, log_start) = (other.high_watermark, other.log_start);
        let batches: Vec<_> = other.batches_from(end).iter().take(batches_max).cloned().collect();
        let replica = &mut self.members[follower].replica;
        for batch in batches {
            replica.append(batch);
        }
        replica.high_watermark = replica.high_watermark.max(high_watermark.min(replica.log_end()));
        replica.delete_below(log_start.min(replica.high_watermark));
    }

    fn truncate_to_leader(&mut self, follower: usize, leader: usize, expired_return: bool) {
        loop {
            let epoch = self.members[follower].replica.last_epoch();
            let (found, end) = self.members[leader].replica.end_of_epoch(epoch);
            let replica = &mut self.members[follower].replica;
            if found == epoch || replica.log_end() <= replica.high_watermark {
                return replica.truncate(end.max(replica.high_watermark), expired_return);
            }
            let own = replica.end_of_epoch(found).1;
            replica.truncate(end.min(own).max(replica.high_watermark), expired_return);
        }
    }

    /// Whether the controller agrees with this node's leadership.
    fn is_current(&self, node: usize) -> bool {
        self.leader == Some(node) && self.members[node].epoch == self.epoch
    }

    /// The controller makes `leader` the leader, which has to be in sync. Nodes have to be told.
    pub(crate) fn elect(&mut self, leader: Option<usize>) {
        assert!(leader.is_none_or(|node| self.isr.contains(&node)), "the model elects clean leaders only");
        self.leader = leader;
        self.epoch += 1;
    }

    /// The nodes that may lead.
    pub(crate) fn candidates(&self) -> Vec<usize> {
        self.isr.iter().copied().filter(|node| self.members[*node].alive).collect()
    }

    /// A node hears of a leader epoch.
    pub(crate) fn learn(&mut self, node: usize, epoch: i32, leader: Option<usize>) {
        let nodes = self.members.len();
        let member = &mut self.members[node];
        if !member.alive || member.epoch >= epoch {
            return;
        }
        (member.epoch, member.leader) = (epoch, leader);
        member.epoch_start = member.replica.log_end();
        member.follower_ends = vec![None; nodes];
        // Who hears of an epoch that is over never heard which replicas may be left out.
        member.isr = if epoch == self.epoch { self.isr.clone() } else { (0..nodes).collect() };
        let answers = &mut self.answers;
        self.waiting.retain(|waiting| {
            let over = waiting.node == node;
            if over {
                answers.push((waiting.ticket, Reply::Error(ErrorCode::NotLeaderOrFollower)));
            }
            !over
        });
        if leader == Some(node) {
            self.move_high_watermark(node);
        }
    }

    /// A follower has not kept up: the controller takes it out of the in-sync set.
    pub(crate) fn shrink(&mut self, node: usize) {
        if self.leader == Some(node) || self.isr.len() <= 1 {
            return;
        }
        self.isr.remove(&node);
        if let Some(leader) = self.leader.filter(|leader| self.is_current(*leader)) {
            self.members[leader].isr = self.isr.clone();
            self.move_high_watermark(leader);
        }
    }

    /// The node's process ends: whoever waits there gets no answer.
    pub(crate) fn kill(&mut self, node: usize) {
        self.members[node].alive = false;
        self.members[node].leader = None;
        self.waiting.retain(|waiting| waiting.node != node);
    }

    /// The node's process starts.
    pub(crate) fn start(&mut self, node: usize, expired_return: bool, recognised_max: usize) {
        let member = &mut self.members[node];
        member.alive = true;
        // What it knew as leader is gone: it hears of its epoch anew.
        member.epoch = -1;
        member.replica.reload(expired_return, recognised_max);
    }
}
