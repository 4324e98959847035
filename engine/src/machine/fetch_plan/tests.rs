//! The plan: who goes where, who waits for whom, and that nobody is asked for twice or forgotten.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

mod fairness;

const NODE: i32 = 1;
const ALL: Limits = Limits { requests: u16::MAX, bulk_lanes: 3 };
const ROOM: Room = Room { tails: true, bulk: true };
const START: Now = Now::from_secs(1000);

fn next(plan: &mut FetchPlan, now: Now) -> Option<Planned> {
    plan.next_request(now, |_| ALL, ROOM)
}

fn tail(lane: u16, slots: &[usize], gone: &[usize]) -> Option<Planned> {
    Some(Planned { node: NODE, lane, slots: slots.to_vec(), gone: gone.to_vec(), wait: WAIT })
}

fn bulk(lane: u16, slots: &[usize], wait: Duration) -> Option<Planned> {
    Some(Planned { node: NODE, lane, slots: slots.to_vec(), gone: Vec::new(), wait })
}

/// A plan in which these partitions are live on lane 1, and no request is under way.
fn live(slots: &[usize]) -> FetchPlan {
    let mut plan = FetchPlan::default();
    for slot in slots {
        plan.set_wanting(*slot, NODE, Pull::Probe);
    }
    while let Some(planned) = plan.next_request(START, |_| Limits { bulk_lanes: 1, ..ALL }, ROOM) {
        for slot in &planned.slots {
            assert!(plan.handle_news(*slot, NODE, planned.lane, true));
        }
        plan.handle_done(NODE, planned.lane);
    }
    for slot in slots {
        plan.set_wanting(*slot, NODE, Pull::Tail);
    }
    assert_eq!(next(&mut plan, START), tail(1, slots, &[]));
    plan.handle_done(NODE, 1);
    plan
}

#[test]
fn an_idle_partition_is_named_once_and_left_alone() {
    let mut plan = FetchPlan::default();
    plan.set_wanting(0, NODE, Pull::Tail);
    plan.set_wanting(1, NODE, Pull::Tail);
    assert_eq!(next(&mut plan, START), tail(0, &[0, 1], &[]));
    assert_eq!(next(&mut plan, START), None);
    plan.handle_done(NODE, 0);
    assert_eq!(next(&mut plan, START), tail(0, &[], &[]));
    // One of them gets records.
    assert!(plan.handle_news(1, NODE, 0, true));
    plan.handle_done(NODE, 0);
    plan.set_wanting(1, NODE, Pull::Tail);
    assert_eq!(next(&mut plan, START), tail(1, &[1], &[]), "it is live from then on");
    assert_eq!(next(&mut plan, START), tail(0, &[], &[1]));
    assert_eq!(next(&mut plan, START), None);
}

#[test]
fn whoever_comes_while_others_wait_takes_a_free_lane() {
    let mut plan = live(&[0]);
    for (slot, lane) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
        plan.set_wanting(slot, NODE, Pull::Tail);
        assert_eq!(next(&mut plan, START), tail(lane, &[slot], &[]));
    }
    plan.set_wanting(5, NODE, Pull::Tail);
    assert_eq!(next(&mut plan, START), None, "all lanes are busy");
    plan.set_wanting(6, NODE, Pull::Bulk);
    assert_eq!(next(&mut plan, START), bulk(TAIL_LANES, &[6], WAIT), "no tail keeps bulk waiting");
    plan.handle_done(NODE, 2);
    assert_eq!(next(&mut plan, START), tail(2, &[5], &[]));
}

#[test]
fn a_live_partition_stays_on_its_lane() {
    let mut plan = live(&[0, 1]);
    for _ in 0..3 {
        assert_eq!(next(&mut plan, START), tail(1, &[], &[]));
        assert!(plan.handle_news(0, NODE, 1, true));
        assert!(!plan.handle_news(0, NODE, 1, true), "the answer counts once");
        plan.handle_done(NODE, 1);
        plan.set_wanting(0, NODE, Pull::Tail);
        assert_eq!(next(&mut plan, START), tail(1, &[0], &[]));
        plan.handle_done(NODE, 1);
    }
}

#[test]
fn after_a_while_without_records_a_partition_is_idle() {
    let mut plan = live(&[0, 1]);
    let mut now = START + COOL_AFTER;
    assert_eq!(next(&mut plan, now), tail(1, &[], &[]));
    assert!(plan.handle_news(0, NODE, 1, true));
    plan.handle_done(NODE, 1);
    plan.set_wanting(0, NODE, Pull::Tail);
    assert_eq!(next(&mut plan, now), tail(1, &[0], &[]));
    now += COOL_AFTER;
    assert_eq!(next(&mut plan, now), tail(0, &[1], &[]), "while lane 1 still waits for it");
    assert!(!plan.handle_news(1, NODE, 1, true), "what lane 1 says of it does not count");
    plan.handle_done(NODE, 1);
    assert_eq!(next(&mut plan, now), tail(1, &[], &[1]));
}

#[test]
fn bulk_is_spread_and_whoever_was_served_goes_to_the_back() {
    let mut plan = FetchPlan::default();
    for slot in 0..4 {
        plan.set_wanting(slot, NODE, Pull::Bulk);
    }
    let mut lanes = TAIL_LANES..;
    let mut lane = || lanes.next().unwrap();
    assert_eq!(next(&mut plan, START), bulk(lane(), &[0, 1], WAIT));
    assert_eq!(next(&mut plan, START), bulk(lane(), &[2], WAIT));
    assert_eq!(next(&mut plan, START), bulk(lane(), &[3], WAIT));
    plan.set_wanting(4, NODE, Pull::Probe);
    assert_eq!(next(&mut plan, START), None);
    // The answer was full before the second one's turn.
    assert!(plan.handle_news(0, NODE, TAIL_LANES, true) && plan.handle_news(1, NODE, TAIL_LANES, false));
    plan.handle_done(NODE, TAIL_LANES);
    plan.set_wanting(0, NODE, Pull::Bulk);
    plan.set_wanting(1, NODE, Pull::Bulk);
    assert_eq!(next(&mut plan, START), bulk(TAIL_LANES, &[1, 4, 0], WAIT));
}

#[test]
fn a_broker_does_not_wait_where_nothing_is_known() {
    let mut plan = FetchPlan::default();
    plan.set_wanting(0, NODE, Pull::Probe);
    assert_eq!(next(&mut plan, START), bulk(TAIL_LANES, &[0], Duration::ZERO));
}

#[test]
fn a_partition_that_moved_is_asked_for_at_its_new_node_alone() {
    let mut plan = live(&[0, 1]);
    assert_eq!(next(&mut plan, START), tail(1, &[], &[]));
    plan.set_asked(0, NODE, Pull::Tail);
    assert_eq!(next(&mut plan, START), None, "nothing has changed");
    plan.set_asked(0, 2, Pull::Tail);
    assert_eq!(next(&mut plan, START), Some(Planned { node: 2, ..tail(1, &[0], &[]).unwrap() }));
    assert!(!plan.handle_news(0, NODE, 1, true));
    plan.set_away(1);
    plan.handle_done(NODE, 1);
    assert_eq!(next(&mut plan, START), None, "a lane without partitions rests");
}

#[test]
fn without_room_for_large_answers_tails_go_on() {
    let mut plan = live(&[0]);
    plan.set_wanting(1, NODE, Pull::Bulk);
    let full = Room { tails: true, bulk: false };
    assert_eq!(plan.next_request(START, |_| ALL, full), tail(1, &[], &[]));
    assert_eq!(plan.next_request(START, |_| ALL, full), None);
}

#[test]
fn under_a_quota_all_lanes_take_turns() {
    let one = |_| Limits { requests: 1, ..ALL };
    let mut plan = live(&[0]);
    plan.set_wanting(1, NODE, Pull::Tail);
    plan.set_wanting(2, NODE, Pull::Bulk);
    let mut turns = Vec::new();
    for _ in 0..9 {
        let planned = plan.next_request(START, one, ROOM).unwrap();
        assert_eq!(plan.next_request(START, one, ROOM), None);
        turns.push((planned.lane, planned.wait));
        if planned.lane == TAIL_LANES {
            assert!(plan.handle_news(2, NODE, TAIL_LANES, true));
            plan.set_wanting(2, NODE, Pull::Bulk);
        }
        plan.handle_done(NODE, planned.lane);
    }
    turns.sort_unstable();
    let three = |lane, wait| [(lane, wait); 3];
    assert_eq!(turns, [three(0, Duration::ZERO), three(1, Duration::ZERO), three(TAIL_LANES, WAIT)].concat());
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Want { slot: usize, node: i32, pull: Pull },
    Move { slot: usize, node: i32 },
    Away { slot: usize },
    Send { requests: u16, bulk: bool },
    Answer { which: usize, listed: usize, has_records: bool },
    Pass,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (slot, node) = (0..12_usize, 1..3_i32);
    let pull = prop_oneof![Just(Pull::Tail), Just(Pull::Bulk), Just(Pull::Probe)];
    let step = prop_oneof![
        5 => (slot.clone(), node.clone(), pull).prop_map(|(slot, node, pull)| Step::Want { slot, node, pull }),
        1 => (slot.clone(), node).prop_map(|(slot, node)| Step::Move { slot, node }),
        1 => slot.prop_map(|slot| Step::Away { slot }),
        5 => (1..9_u16, any::<bool>()).prop_map(|(requests, bulk)| Step::Send { requests, bulk }),
        5 => (0..20_usize, 0..5_usize, any::<bool>())
            .prop_map(|(which, listed, has_records)| Step::Answer { which, listed, has_records }),
        1 => Just(Step::Pass),
    ];
    prop::collection::vec(step, 1..200)
}

/// What brokers know: who is in the session of a lane, or in the request under way.
#[derive(Debug, Default)]
struct Model {
    /// By node and lane: slots, and whether a request is under way.
    lanes: HashMap<(i32, u16), (Vec<usize>, bool)>,
    /// Where each slot that wants something wants it from.
    wants: HashMap<usize, i32>,
}

impl Model {
    fn send(&mut self, planned: &Planned) {
        let (held, is_busy) = self.lanes.entry((planned.node, planned.lane)).or_default();
        assert!(!std::mem::replace(is_busy, true), "the lane is busy: {planned:?}");
        if !planned.is_tail() {
            held.clear();
        }
        held.retain(|slot| !planned.gone.contains(slot));
        for slot in &planned.slots {
            assert_eq!(self.wants.get(slot), Some(&planned.node), "{slot} wants nothing there");
            assert!(!planned.gone.contains(slot));
            if !held.contains(slot) {
                held.push(*slot);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whoever_wants_is_asked_for_and_heard_once(steps in steps()) {
        let (mut plan, mut model, mut now) = (FetchPlan::default(), Model::default(), START);
        for step in steps {
            match step {
                Step::Want { slot, node, pull } => {
                    plan.set_wanting(slot, node, pull);
                    model.wants.insert(slot, node);
                }
                Step::Move { slot, node } => {
                    plan.set_asked(slot, node, Pull::Tail);
                    model.wants.entry(slot).and_modify(|at| *at = node);
                }
                Step::Away { slot } => {
                    plan.set_away(slot);
                    model.wants.remove(&slot);
                }
                Step::Send { requests, bulk } => {
                    let limits = |_| Limits { requests, bulk_lanes: 3 };
                    while let Some(planned) = plan.next_request(now, limits, Room { tails: true, bulk }) {
                        model.send(&planned);
                    }
                }
                Step::Answer { which, listed, has_records } => {
                    let mut busy: Vec<_> = model.lanes.iter().filter(|(_, lane)| lane.1).map(|(key, _)| *key).collect();
                    busy.sort_unstable();
                    let Some(&(node, lane)) = busy.get(which % busy.len().max(1)) else { continue };
                    let held = model.lanes[&(node, lane)].0.clone();
                    let count = if is_tail(lane) { listed } else { held.len() };
                    for slot in held.into_iter().take(count) {
                        let was_asked = plan.places[slot].spot == (Spot::Asked { node, lane });
                        prop_assert_eq!(plan.handle_news(slot, node, lane, has_records), was_asked);
                        if was_asked {
                            model.wants.remove(&slot);
                        }
                    }
                    plan.handle_done(node, lane);
                    model.lanes.get_mut(&(node, lane)).unwrap().1 = false;
                }
                Step::Pass => now += COOL_AFTER,
            }
        }
        // All answers come in, nobody has news: whoever wants something is held by exactly the lane that it believes in.
        for ((node, lane), (held, is_busy)) in &mut model.lanes {
            if std::mem::take(is_busy) {
                if !is_tail(*lane) {
                    for slot in held.drain(..) {
                        if plan.handle_news(slot, *node, *lane, false) {
                            model.wants.remove(&slot);
                        }
                    }
                }
                plan.handle_done(*node, *lane);
            }
        }
        while let Some(planned) = plan.next_request(now, |_| ALL, ROOM) {
            model.send(&planned);
            if !planned.is_tail() {
                for slot in &planned.slots {
                    prop_assert!(plan.handle_news(*slot, planned.node, planned.lane, true));
                    model.wants.remove(slot);
                }
                plan.handle_done(planned.node, planned.lane);
                model.lanes.get_mut(&(planned.node, planned.lane)).unwrap().1 = false;
            }
        }
        for (slot, node) in &model.wants {
            let held = model.lanes.iter().filter(|((at, _), (held, is_busy))| {
                at == node && *is_busy && held.contains(slot)
            });
            prop_assert_eq!(held.count(), 1, "{} of {:?}", slot, model);
        }
    }
}
