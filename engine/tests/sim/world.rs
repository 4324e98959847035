//! The world: a virtual clock, a queue of events, and what each event does.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use fastrand::Rng;
use twinlog_engine::machine::Now;
use twinlog_engine::machine::partition::{Fetched, Leader};

use super::checker::Checker;
use super::cluster::Cluster;
use super::instance::Instance;
use super::net::{ConnId, Net, Reply, RequestId, Ticket};
use super::plan::Plan;
use super::source::SourcePartition;
use super::trace::Trace;

/// Metadata is looked at this often without being asked.
pub(crate) const REFRESH_EVERY: Duration = Duration::from_secs(30);
/// The broker's patience with its replicas, and the instance's with the broker.
pub(crate) const PRODUCE_TIMEOUT: Duration = Duration::from_secs(5);
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(9);

#[derive(Debug)]
pub(crate) enum Event {
    Arrive(ConnId),
    Answer {
        conn: ConnId,
        request: RequestId,
        reply: Reply,
    },
    /// The instance notices that the connection is gone, or has waited long enough.
    Dead(ConnId),
    RequestTimeout {
        conn: ConnId,
        request: RequestId,
    },
    ProduceTimeout {
        partition: usize,
        ticket: Ticket,
    },
    Tick {
        partition: usize,
        follower: usize,
    },
    Learn {
        topic_id: u128,
        partition: usize,
        node: usize,
        epoch: i32,
        leader: Option<usize>,
    },
    Elect {
        partition: usize,
    },
    WakeReplica {
        partition: usize,
        node: usize,
    },
    StartNode(usize),
    StartInstance(usize),
    Kill {
        slot: usize,
        life: u64,
    },
    Metadata {
        slot: usize,
        life: u64,
    },
    RefreshMetadata {
        slot: usize,
        life: u64,
    },
    Fetch(Fetch),
    Fetched {
        slot: usize,
        life: u64,
        partition: usize,
        fetched: Fetched,
    },
    Unpark {
        partition: usize,
        fetch: u64,
    },
    AskEnd {
        slot: usize,
        life: u64,
        partition: usize,
    },
    End {
        slot: usize,
        life: u64,
        partition: usize,
        end: i64,
    },
    SourceSpan {
        slot: usize,
        life: u64,
        partition: usize,
        attempt: u64,
    },
    Wake {
        slot: usize,
        life: u64,
    },
    SourceAppend(usize),
    Fault,
}

#[derive(Debug)]
struct Scheduled {
    at: Now,
    order: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// A place for a process of ours.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) life: u64,
    pub(crate) instance: Option<Instance>,
    pub(crate) frozen_until: Now,
}

/// A Fetch on its way to the source, or waiting there for records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fetch {
    pub(crate) fetch: u64,
    pub(crate) slot: usize,
    pub(crate) life: u64,
    pub(crate) partition: usize,
    pub(crate) topic_id: u128,
    pub(crate) offset: i64,
}

pub(crate) struct World<'a> {
    pub(crate) now: Now,
    pub(crate) rng: Rng,
    pub(crate) plan: Plan,
    pub(crate) trace: &'a mut Trace,
    queue: BinaryHeap<Reverse<Scheduled>>,
    pub(crate) order: u64,
    pub(crate) events: u64,
    pub(crate) cluster: Cluster,
    /// By partition: the topics that the source had under its name, the present one last.
    pub(crate) sources: Vec<Vec<SourcePartition>>,
    pub(crate) source_down_until: Now,
    pub(crate) parked: Vec<Fetch>,
    pub(crate) net: Net,
    pub(crate) slots: Vec<Slot>,
    pub(crate) checker: Checker,
    /// Faults may still be drawn.
    pub(crate) faulty: bool,
    /// Whoever stops now does not come back.
    pub(crate) ending: bool,
    pub(crate) batches_later: usize,
    /// Batches sent that hold more records than any of the source.
    pub(crate) merged: u64,
    /// Batches that were refused and came again in pieces.
    pub(crate) cut: u64,
    /// Idle wakes in a row, to find a timer that never passes.
    pub(crate) idle_wakes: u32,
}

/// A trace line that costs nothing unless somebody reads it.
macro_rules! say {
    ($world:expr, $($what:tt)*) => {
        if $world.trace.lines.is_some() {
            let now = $world.now;
            $world.trace.line(now, format_args!($($what)*));
        }
    };
}
pub(crate) use say;

impl<'a> World<'a> {
    pub(crate) fn new(plan: Plan, mut rng: Rng, trace: &'a mut Trace) -> Self {
        let sources = (0..plan.partitions).map(|index| {
            let first = if rng.bool() { 0 } else { rng.i64(1..500) };
            let mut source = SourcePartition::new(1 + index as u128, first, &plan);
            (0..rng.usize(0..=plan.batches_before)).for_each(|_| source.append(&mut rng, plan.hole_chance));
            if rng.bool() {
                let start = rng.i64(first..=source.log_end());
                source.move_start(start);
            }
            vec![source]
        });
        let sources = sources.collect();
        let checker = Checker::new(&plan);
        let mut cluster = Cluster::new(plan.nodes, plan.partitions, plan.isr_min);
        for partition in &mut cluster.partitions[..plan.partitions] {
            partition.batch_bytes_max = plan.batch_bytes_max;
        }
        let slot = |_| Slot { life: 0, instance: None, frozen_until: Now::ZERO };
        Self {
            now: Duration::from_secs(1000),
            cluster,
            slots: (0..plan.instances).map(slot).collect(),
            batches_later: plan.batches_later,
            plan,
            rng,
            trace,
            queue: BinaryHeap::new(),
            order: 0,
            events: 0,
            sources,
            source_down_until: Now::ZERO,
            parked: Vec::new(),
            net: Net::default(),
            checker,
            faulty: true,
            ending: false,
            merged: 0,
            cut: 0,
            idle_wakes: 0,
        }
    }

    pub(crate) fn schedule(&mut self, after: Duration, event: Event) {
        self.schedule_at(self.now + after, event);
    }

    pub(crate) fn schedule_at(&mut self, at: Now, event: Event) {
        self.order += 1;
        self.queue.push(Reverse(Scheduled { at: at.max(self.now), order: self.order, event }));
    }

    /// A delay of up to the plan's longest, mostly short ones.
    pub(crate) fn delay(&mut self) -> Duration {
        let micros = u64::try_from(self.plan.delay.as_micros()).expect("short delays");
        let longest = if self.rng.u8(..8) == 0 { micros } else { micros / 10 };
        Duration::from_micros(self.rng.u64(50..=50 + longest))
    }

    /// Works events until `until`, or until `done` says so.
    pub(crate) fn run_until(&mut self, until: Now, mut done: impl FnMut(&Self) -> bool) {
        while let Some(Reverse(next)) = self.queue.peek() {
            if next.at > until || done(self) {
                break;
            }
            let Some(Reverse(Scheduled { at, event, .. })) = self.queue.pop() else { break };
            self.now = at;
            self.events += 1;
            self.handle(event);
        }
    }

    fn handle(&mut self, event: Event) {
        let event = match self.postponed(event) {
            Some(event) => event,
            None => return,
        };
        match event {
            Event::Arrive(conn) => self.arrive(conn),
            Event::Answer { conn, request, reply } => self.answer(conn, request, reply),
            Event::Dead(conn) => self.close(conn),
            Event::RequestTimeout { conn, request } => {
                if self.net.conns[conn].outstanding.contains_key(&request) {
                    self.close(conn);
                }
            }
            Event::ProduceTimeout { partition, ticket } => {
                self.cluster.partitions[partition].time_out(ticket);
                self.settle(partition);
            }
            Event::Tick { partition, follower } => {
                let (batches_max, returned) = (self.rng.usize(1..6), self.rng.bool());
                self.cluster.partitions[partition].tick(follower, batches_max, returned);
                self.settle(partition);
            }
            Event::Learn { topic_id, partition, node, epoch, leader } => {
                if self.cluster.partitions[partition].topic_id == topic_id {
                    self.cluster.partitions[partition].learn(node, epoch, leader);
                }
                say!(self, "n{node} hears that p{partition} is led by {leader:?} in epoch {epoch}");
                self.settle(partition);
            }
            Event::Elect { partition } => self.elect_if_none(partition),
            Event::WakeReplica { partition, node } => {
                self.cluster.partitions[partition].members[node].asleep = false;
                self.settle(partition);
            }
            Event::StartNode(node) => self.start_node(node),
            Event::StartInstance(slot) => self.start_instance(slot),
            Event::Kill { slot, life } => {
                if self.slots[slot].life == life {
                    self.crash(slot);
                }
            }
            Event::Metadata { slot, life } => self.metadata(slot, life),
            Event::RefreshMetadata { slot, life } => {
                if self.slots[slot].life == life {
                    self.refresh_metadata(slot);
                    self.schedule(REFRESH_EVERY, Event::RefreshMetadata { slot, life });
                }
            }
            Event::Fetch(fetch) => self.fetch(fetch),
            Event::Fetched { slot, life, partition, fetched } => self.fetched(slot, life, partition, fetched),
            Event::Unpark { partition, fetch } => self.unpark(partition, Some(fetch)),
            Event::SourceSpan { slot, life, partition, attempt } => {
                let span = self.source(partition).span();
                self.with_machine(slot, life, partition, |machine, now| {
                    machine.handle_source_span(now, attempt, span);
                });
            }
            Event::AskEnd { slot, life, partition } => self.ask_end(slot, life, partition),
            Event::End { slot, life, partition, end } => self.handle_end(slot, life, partition, end),
            Event::Wake { slot, life } => self.wake(slot, life),
            Event::SourceAppend(partition) => self.source_append(partition),
            Event::Fault => self.fault(),
        }
    }

    /// What reaches a frozen process waits until it goes on.
    fn postponed(&mut self, event: Event) -> Option<Event> {
        let slot = match &event {
            Event::Answer { conn, .. } | Event::Dead(conn) | Event::RequestTimeout { conn, .. } => {
                self.net.conns[*conn].instance
            }
            Event::Metadata { slot, .. }
            | Event::Fetched { slot, .. }
            | Event::End { slot, .. }
            | Event::SourceSpan { slot, .. }
            | Event::Wake { slot, .. } => *slot,
            _ => return Some(event),
        };
        let until = self.slots[slot].frozen_until;
        if until <= self.now {
            return Some(event);
        }
        self.schedule_at(until, event);
        None
    }

    /// After anything happened to a partition of the target: answers, fetches of followers, checks.
    pub(crate) fn settle(&mut self, partition: usize) {
        let answers = std::mem::take(&mut self.cluster.partitions[partition].answers);
        for (ticket, reply) in answers {
            self.finish(ticket, reply);
        }
        for follower in 0..self.plan.nodes {
            let target = &self.cluster.partitions[partition];
            if !target.members[follower].tick_pending && target.wants_tick(follower) {
                let delay = self.delay();
                self.cluster.partitions[partition].members[follower].tick_pending = true;
                self.schedule(delay, Event::Tick { partition, follower });
            }
        }
        let target = &self.cluster.partitions[partition];
        match self.sources.get(partition) {
            Some(sources) => self.checker.look(partition, target, sources),
            None => self.checker.look_at_state(target),
        }
    }

    /// The newest leaders as some node believes them.
    fn metadata(&mut self, slot: usize, life: u64) {
        if self.slots[slot].life != life {
            return;
        }
        let alive: Vec<_> = (0..self.plan.nodes).filter(|node| self.cluster.nodes[*node].alive).collect();
        let Some(instance) = &mut self.slots[slot].instance else { return };
        instance.refreshing = false;
        if !alive.is_empty() {
            let node = alive[self.rng.usize(..alive.len())];
            for (partition, known) in self.cluster.partitions.iter().zip(&mut instance.leaders) {
                let member = &partition.members[node];
                let is_newer = member.epoch >= known.leader_epoch || partition.topic_id != known.topic_id;
                if is_newer {
                    let leader = member.leader.map(|leader| i32::try_from(leader).expect("few nodes"));
                    let (leader_epoch, topic_id) = (member.epoch, partition.topic_id);
                    *known = Leader { node: leader, leader_epoch, topic_id };
                }
            }
        }
        for (id, sources) in instance.source_ids.iter_mut().zip(&self.sources) {
            *id = sources.last().map_or(0, |source| source.topic_id);
        }
        self.tell_leaders(slot);
        self.drive(slot);
    }

    pub(crate) fn tell_leaders(&mut self, slot: usize) {
        let now = self.now;
        let Some(instance) = &mut self.slots[slot].instance else { return };
        for (partition, machine) in instance.machines.iter_mut().enumerate() {
            let source = Leader { node: Some(0), leader_epoch: 0, topic_id: instance.source_ids[partition] };
            let target = instance.leaders[partition];
            let known = target.topic_id != 0;
            machine.handle_leaders(now, known.then_some(source), known.then_some(target));
        }
    }

    pub(crate) fn refresh_metadata(&mut self, slot: usize) {
        let life = self.slots[slot].life;
        let Some(instance) = &mut self.slots[slot].instance else { return };
        if !std::mem::replace(&mut instance.refreshing, true) {
            let delay = self.delay() * 2;
            self.schedule(delay, Event::Metadata { slot, life });
        }
    }
}
