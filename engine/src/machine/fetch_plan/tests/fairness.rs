//! Many partitions behind a slow target, with little memory: who gets on, and when.

use std::collections::VecDeque;

use super::*;
use crate::machine::fetch_size::FetchSizes;
use crate::machine::produce_window::IN_FLIGHT_MAX;
use crate::machine::share::Share;

const BATCH_BYTES: usize = 60_000;
/// Batches of each partition at the source.
const BATCHES: usize = 8;
const MEMORY_BYTES: usize = 32 << 20;
/// The target's time for a batch.
const STEP: Duration = Duration::from_millis(100);
/// The round trip to the source.
const ROUND_TRIP: Duration = Duration::from_millis(20);
/// Partitions line up at the target one after the other, so many in a step.
const LINED_UP: usize = 4;
/// Connections to the target, which share it by turns.
const PRODUCE_LANES: usize = 40;

#[derive(Debug, Clone, Default)]
struct Partition {
    /// Batches fetched, sent and acknowledged so far.
    fetched: usize,
    sent: usize,
    copied: usize,
    is_asked: bool,
    /// Answers that the fetched batches lie in.
    answers: VecDeque<usize>,
}

impl Partition {
    fn untaken_bytes(&self) -> usize {
        (self.fetched - self.copied) * BATCH_BYTES
    }
}

struct Arriving {
    lane: u16,
    parts: Vec<(usize, usize)>,
}

/// The flow as the shard has it, one broker of the source far away, and a target that takes a batch in each step.
struct World {
    now: Now,
    plan: FetchPlan,
    sizes: FetchSizes,
    share: Share,
    partitions: Vec<Partition>,
    /// Answers that wait for room, in order.
    arriving: VecDeque<Arriving>,
    /// Batches of each answer that are not acknowledged, and its bytes.
    answers: Vec<(usize, usize)>,
    used_bytes: usize,
    lanes: Vec<VecDeque<usize>>,
    turn: usize,
    /// Batches of all partitions that were fetched, and those that were sent.
    fetched: usize,
    sent: usize,
    /// Partitions of which the target has nothing, and those of which it has not everything.
    not_begun: usize,
    behind: usize,
}

impl World {
    fn new(partitions: usize) -> Self {
        Self {
            now: START,
            plan: FetchPlan::default(),
            sizes: FetchSizes::default(),
            share: Share::of(MEMORY_BYTES, 1),
            partitions: vec![Partition::default(); partitions],
            arriving: VecDeque::new(),
            answers: Vec::new(),
            used_bytes: 0,
            lanes: vec![VecDeque::new(); PRODUCE_LANES],
            turn: 0,
            fetched: 0,
            sent: 0,
            not_begun: partitions,
            behind: partitions,
        }
    }

    fn held_bytes(&self) -> usize {
        (self.fetched - self.sent) * BATCH_BYTES
    }

    fn is_short(&self) -> bool {
        self.share.is_short(self.held_bytes(), self.used_bytes)
    }

    /// As `Shard::plan_fetch`.
    fn settle(&mut self, slot: usize) {
        let untaken_bytes = self.partitions[slot].untaken_bytes();
        let is_admitted = self.share.admits(untaken_bytes, self.behind) || !self.is_short();
        let partition = &mut self.partitions[slot];
        while partition.sent < partition.fetched && partition.sent - partition.copied < IN_FLIGHT_MAX {
            partition.sent += 1;
            self.sent += 1;
            self.lanes[slot % PRODUCE_LANES].push_back(slot);
        }
        let wants = partition.fetched < BATCHES;
        if !wants {
            self.plan.set_away(slot);
        } else if partition.is_asked {
            self.plan.set_asked(slot, NODE, Pull::Bulk);
        } else if is_admitted {
            self.plan.set_wanting(slot, NODE, Pull::Bulk);
        } else {
            self.plan.set_away(slot);
        }
    }

    /// As `Shard::fetch`, and the answers of the broker: what is named first comes first, until the answer is full.
    fn fetch(&mut self) {
        let room = Room { tails: true, bulk: !self.share.is_full(self.held_bytes()) };
        let limits = Limits { bulk_lanes: self.sizes.lanes(NODE), ..ALL };
        while let Some(planned) = self.plan.next_request(self.now, |_| limits, room) {
            let answer = self.share.answer_bytes_max(self.sizes.bytes_max(NODE));
            let (asking, is_short) = (planned.slots.len(), self.is_short());
            let each = self.share.partition_bytes_max(answer, asking, self.behind, is_short);
            let mut left = usize::try_from(answer).unwrap();
            let mut parts = Vec::new();
            for slot in planned.slots {
                let partition = &mut self.partitions[slot];
                partition.is_asked = true;
                let bytes = left.min(usize::try_from(each).unwrap());
                let batches = (bytes / BATCH_BYTES).min(BATCHES - partition.fetched);
                left -= batches * BATCH_BYTES;
                parts.push((slot, batches));
            }
            self.arriving.push_back(Arriving { lane: planned.lane, parts });
        }
    }

    /// As `MemoryBudget` and `Shard::handle_fetch_answer`.
    fn arrive(&mut self) {
        while let Some(Arriving { parts, .. }) = self.arriving.front() {
            let batches: usize = parts.iter().map(|(_, batches)| batches).sum();
            let bytes = batches * BATCH_BYTES;
            if self.used_bytes + bytes > MEMORY_BYTES {
                return;
            }
            let Arriving { lane, parts } = self.arriving.pop_front().unwrap();
            if bytes > 0 {
                self.sizes.handle_answered(NODE, ROUND_TRIP, bytes as u64);
            }
            self.used_bytes += bytes;
            self.answers.push((batches, bytes));
            for (slot, batches) in parts {
                assert!(self.plan.handle_news(slot, NODE, lane, batches > 0));
                let partition = &mut self.partitions[slot];
                partition.is_asked = false;
                partition.fetched += batches;
                self.fetched += batches;
                let answer = self.answers.len() - 1;
                partition.answers.extend(std::iter::repeat_n(answer, batches));
                self.settle(slot);
            }
            self.plan.handle_done(NODE, lane);
        }
    }

    /// The target takes a batch.
    fn drain(&mut self) {
        for _ in 0..PRODUCE_LANES {
            self.turn = (self.turn + 1) % PRODUCE_LANES;
            let Some(slot) = self.lanes[self.turn].pop_front() else { continue };
            let partition = &mut self.partitions[slot];
            partition.copied += 1;
            self.not_begun -= usize::from(partition.copied == 1);
            self.behind -= usize::from(partition.copied == BATCHES);
            let (batches, bytes) = &mut self.answers[partition.answers.pop_front().unwrap()];
            *batches -= 1;
            if *batches == 0 {
                self.used_bytes -= *bytes;
            }
            return self.settle(slot);
        }
    }

    /// The target's time for a batch passes.
    fn step(&mut self) {
        self.now += STEP;
        loop {
            let before = self.answers.len();
            self.fetch();
            self.arrive();
            if self.answers.len() == before {
                break;
            }
        }
        self.drain();
    }
}

/// Each partition gets its first batch in little more time than the target needs for two of each. Before those that come
/// first had to leave a part of the memory to the others, it was 2,818 steps.
#[test]
fn where_memory_is_short_each_partition_has_its_turn() {
    let mut world = World::new(1_000);
    let mut steps = 0;
    while world.not_begun > 0 {
        (steps * LINED_UP..1_000.min((steps + 1) * LINED_UP)).for_each(|slot| world.settle(slot));
        world.step();
        steps += 1;
        assert!(steps <= 2_400, "{} partitions have nothing yet", world.not_begun);
    }
    while world.behind > 0 {
        world.step();
        steps += 1;
        assert!(steps <= 1_000 * BATCHES + 100, "the target is kept busy");
    }
}
