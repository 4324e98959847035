//! One schedule from its seed: start, faults, healing, and everything has to be level in the end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use fastrand::Rng;

use twinlog_engine::machine::hold::HoldReason;
use twinlog_engine::machine::loss::OnTargetLoss;

use super::plan::{Family, Plan};
use super::trace::Trace;
use super::world::{Event, World};

/// Virtual time in which everything has to be level once nothing goes wrong any more. A process may be frozen for one
/// minute of it, and a partition may wait out its longest pauses.
const LEVEL_WITHIN: Duration = Duration::from_secs(240);
/// As many records in that time are slow, but no standstill: rivals who dispute every record over the slowest links bring one
/// in a second or two.
const SLOW_RECORDS: usize = 60;
/// Virtual time in which a stop comes to rest: an answer that got lost is waited for once.
const STOPPED_WITHIN: Duration = Duration::from_secs(30);
/// Events of a schedule; more mean that something runs in circles.
const EVENTS_MAX: u64 = 100_000;
/// Trace lines printed for a failure.
const LINES_MAX: usize = 400;
/// Failures after which no more seeds are tried.
const FAILURES_MAX: usize = 20;

/// What is changed of a drawn plan.
pub(crate) type Alter = fn(&mut Plan);

/// The plan as it was drawn.
pub(crate) fn as_drawn(_: &mut Plan) {}

/// What schedules went through.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    pub(crate) events: u64,
    /// Partitions that leave records out because they were there before their flow.
    pub(crate) late_starts: u64,
    /// First starts that somebody else's overruled, or that died before their identity.
    pub(crate) losing_starts: u64,
    /// Batches that were certainly merged.
    pub(crate) merged: u64,
    /// Batches that were refused and came again in pieces.
    pub(crate) cut: u64,
    /// Records of transactions that were aborted.
    pub(crate) aborted: u64,
    /// Losses at the source, told in the state topic.
    pub(crate) losses: u64,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.late_starts += other.late_starts;
        self.losing_starts += other.losing_starts;
        self.merged += other.merged;
        self.cut += other.cut;
        self.aborted += other.aborted;
        self.losses += other.losses;
    }
}

/// Runs a seed, its plan changed by `alter`; panics where an invariant fails.
pub(crate) fn run(family: Family, seed: u64, alter: Alter, trace: &mut Trace) -> Seen {
    let mut rng = Rng::with_seed(seed);
    let mut plan = Plan::draw(family, &mut rng);
    alter(&mut plan);
    trace.line(Duration::ZERO, format_args!("{plan:?}"));
    let mut world = World::new(plan.clone(), rng, trace);
    for slot in 0..plan.instances {
        let after = if world.rng.bool() { 0 } else { world.rng.u64(0..5_000) };
        let after = Duration::from_millis(after);
        world.schedule(after, Event::StartInstance(slot));
        if family == Family::Latest {
            world.disturb_first_start(slot, after);
        }
    }
    for _ in 0..plan.batches_later {
        let partition = world.rng.usize(..plan.partitions);
        let after = world.rng.u64(0..u64::try_from(plan.faults_for.as_millis()).expect("short schedules"));
        world.schedule(Duration::from_millis(after), Event::SourceAppend(partition));
    }
    world.schedule(Duration::ZERO, Event::Fault);
    let end = world.now + plan.faults_for;
    world.run_until(end, is_in_circles);
    world.heal();
    let mut lacking = usize::MAX;
    while lacking.saturating_sub(world.lacking()) >= SLOW_RECORDS
        && !is_in_circles(&world)
        && !world.is_level()
    {
        lacking = world.lacking();
        let end = world.now + LEVEL_WITHIN;
        world.run_until(end, |world| is_in_circles(world) || world.is_level());
    }
    assert!(!is_in_circles(&world), "{} events: something runs in circles", world.events);
    world.must_be_level();
    world.stop_all();
    world.seen()
}

fn is_in_circles(world: &World) -> bool {
    world.events > EVENTS_MAX
}

impl World<'_> {
    fn seen(&self) -> Seen {
        let starts_late = |index: &usize| self.checker.left_out(*index, self.source(*index)) > 0;
        Seen {
            events: self.events,
            late_starts: (0..self.plan.partitions).filter(starts_late).count() as u64,
            losing_starts: self.checker.losing_starts() as u64,
            merged: self.merged,
            losses: self.checker.losses() as u64,
            cut: self.cut,
            aborted: self.sources.iter().flatten().map(|source| source.aborted_records).sum(),
        }
    }

    /// Whether every record is on the target, and every instance knows it.
    fn is_level(&self) -> bool {
        self.behind().is_none()
    }

    /// Records that are still to come.
    fn lacking(&self) -> usize {
        let lacking = |index: usize| {
            let source = self.source(index);
            let next = self.checker.missing(index, source);
            next.map_or(0, |offset| source.data.len() - source.place_of(offset))
        };
        (0..self.plan.partitions).map(lacking).sum()
    }

    fn must_be_level(&self) {
        if let Some(behind) = self.behind() {
            panic!("not level: {behind}");
        }
    }

    fn behind(&self) -> Option<String> {
        (0..self.plan.partitions).find_map(|index| self.behind_in(index))
    }

    /// What a partition lacks, if it lacks anything.
    fn behind_in(&self, index: usize) -> Option<String> {
        let source = self.source(index);
        let last = source.data.iter().rev().find(|offset| !source.is_optional(**offset)).copied();
        let mut somebody_copies = false;
        for (slot, entry) in self.slots.iter().enumerate() {
            let machine = entry.instance.as_ref().and_then(|instance| instance.machines.get(index));
            let Some(machine) = machine else { return Some(format!("i{slot} has not started")) };
            let may_not_copy = self.may_not_copy(slot, index);
            match (may_not_copy, machine.held()) {
                (true, Some(HoldReason::Recreated { .. } | HoldReason::OtherFingerprint { .. })) => {}
                (true, held) => {
                    return Some(format!("i{slot} p{index} may not copy, but is {held:?}"));
                }
                (false, Some(reason)) => return Some(format!("i{slot} p{index} is held: {reason}")),
                (false, None) => {
                    somebody_copies = true;
                    let position = machine.position();
                    if last.is_some() && position <= last {
                        return Some(format!("i{slot} p{index} stands at {position:?} of {last:?}"));
                    }
                }
            }
        }
        let missing = || self.checker.missing(index, source);
        let missing = if somebody_copies { missing() } else { None };
        missing.map(|offset| format!("p{index} lacks {offset}"))
    }

    /// Whether an instance has to leave a partition alone: because of a topic that was made again, or because others copy
    /// it under other options.
    fn may_not_copy(&self, slot: usize, index: usize) -> bool {
        self.checker.newest(index).is_some_and(|generation| {
            let has_other_target = generation.target_topic_id != self.cluster.partitions[index].topic_id;
            (generation.source_topic_id != self.source(index).topic_id && !self.plan.goes_on())
                || (has_other_target && self.plan.losses.on_target_loss == OnTargetLoss::Hold)
                || generation.fingerprint != self.plan.fingerprints[slot]
        })
    }

    /// A stop comes to rest at once, and leaves its progress in the state topic.
    fn stop_all(&mut self) {
        self.ending = true;
        for slot in 0..self.plan.instances {
            self.stop(slot);
        }
        let thawed = self.slots.iter().map(|slot| slot.frozen_until).max();
        let end = self.now.max(thawed.unwrap_or_default()) + STOPPED_WITHIN;
        self.run_until(end, |world| world.slots.iter().all(|slot| slot.instance.is_none()));
        let left = self.slots.iter().position(|slot| slot.instance.is_some());
        assert_eq!(left, None, "an instance does not stop although nothing is wrong");
    }
}

/// The words of a seed's failure, if it fails.
fn failure(family: Family, seed: u64, alter: Alter, trace: &mut Trace) -> Result<Seen, String> {
    catch_unwind(AssertUnwindSafe(|| run(family, seed, alter, trace))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or(panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default()
    })
}

/// Runs seeds and tells what they went through. The first one that fails runs again with a trace, which is printed.
pub(crate) fn check(family: Family, seeds: impl IntoIterator<Item = u64>, alter: Alter) -> Seen {
    let mut seen = Seen::default();
    let mut failed = Vec::new();
    for seed in seeds {
        match failure(family, seed, alter, &mut Trace::default()) {
            Ok(one) => seen += one,
            Err(why) => {
                println!("{family:?} seed {seed}: {why}");
                failed.push((seed, why));
            }
        }
        if failed.len() >= FAILURES_MAX {
            break;
        }
    }
    let Some((seed, why)) = failed.first() else { return seen };
    let mut trace = Trace::recording();
    let again = failure(family, *seed, alter, &mut trace);
    let lines = trace.lines.unwrap_or_default();
    let shown =
        number("TWINLOG_SIM_LINES").map_or(LINES_MAX, |count| usize::try_from(count).expect("a count"));
    for line in &lines[lines.len().saturating_sub(shown)..] {
        println!("{line}");
    }
    assert_eq!(
        again.err().as_ref(),
        Some(why),
        "the schedule fails only at times: chance from outside got in"
    );
    panic!("{family:?}: {} seeds fail, the first one is {seed}: {why}", failed.len());
}

/// A number from the environment.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number in the environment"))
}
