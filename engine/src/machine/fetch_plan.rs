//! Which partitions go into the next Fetch request to which broker of the source.
//!
//! A broker answers one Fetch of a connection at a time and may wait for records before it does. So there are a few
//! lanes to each broker: a partition that wants records while others wait for theirs takes the next free lane.
//!
//! - F1: a partition is in one request at a time.
//! - F2: partitions go in the order in which they began to want; whoever was served goes to the back.

use std::collections::{BTreeMap, HashMap};

/// Fetch requests under way to one broker at most.
pub const LANES: u16 = 3;

/// The wanting partitions and the busy lanes.
#[derive(Debug, Default)]
pub struct FetchPlan {
    /// By node: the slots that want, in order.
    wanting: HashMap<i32, BTreeMap<u64, usize>>,
    place: HashMap<usize, (i32, u64)>,
    busy: HashMap<i32, Vec<u16>>,
    tick: u64,
}

impl FetchPlan {
    /// Whether a partition wants records, and from which node.
    pub fn set_wanting(&mut self, slot: usize, node: Option<i32>) {
        let known = self.place.get(&slot).copied();
        if known.map(|(node, _)| node) == node {
            return;
        }
        if let Some((node, tick)) = known {
            self.place.remove(&slot);
            if let Some(slots) = self.wanting.get_mut(&node) {
                slots.remove(&tick);
            }
        }
        if let Some(node) = node {
            self.tick += 1;
            self.place.insert(slot, (node, self.tick));
            self.wanting.entry(node).or_default().insert(self.tick, slot);
        }
    }

    /// The next request: node, lane, slots. The lane is busy until [`FetchPlan::handle_done`]. `lanes` tells how many a node
    /// may have, [`LANES`] at most.
    pub fn next_request(&mut self, lanes: impl Fn(i32) -> u16) -> Option<(i32, u16, Vec<usize>)> {
        let free = |node: &i32| {
            let busy = self.busy.get(node).map_or(&[][..], Vec::as_slice);
            (0..LANES).find(|lane| busy.len() < lanes(*node).into() && !busy.contains(lane))
        };
        let (node, lane) = self
            .wanting
            .iter()
            .filter(|(_, slots)| !slots.is_empty())
            .find_map(|(node, _)| Some((*node, free(node)?)))?;
        let slots: Vec<usize> = std::mem::take(self.wanting.get_mut(&node)?).into_values().collect();
        for slot in &slots {
            self.place.remove(slot);
        }
        self.busy.entry(node).or_default().push(lane);
        Some((node, lane, slots))
    }

    /// The request on this lane has ended.
    pub fn handle_done(&mut self, node: i32, lane: u16) {
        if let Some(busy) = self.busy.get_mut(&node) {
            busy.retain(|known| *known != lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(_: i32) -> u16 {
        LANES
    }

    #[test]
    fn each_partition_is_in_one_request_and_lanes_are_few() {
        let mut plan = FetchPlan::default();
        for slot in 0..3 {
            plan.set_wanting(slot, Some(1));
        }
        assert_eq!(plan.next_request(all), Some((1, 0, vec![0, 1, 2])));
        assert_eq!(plan.next_request(all), None);
        for lane in 1..LANES {
            plan.set_wanting(7, Some(1));
            assert_eq!(plan.next_request(all), Some((1, lane, vec![7])));
        }
        plan.set_wanting(8, Some(1));
        assert_eq!(plan.next_request(all), None, "all lanes are busy");
        plan.handle_done(1, 1);
        assert_eq!(plan.next_request(all), Some((1, 1, vec![8])));
    }

    #[test]
    fn a_node_with_fewer_lanes_gets_no_more() {
        let mut plan = FetchPlan::default();
        for lane in 0..2 {
            plan.set_wanting(7, Some(1));
            assert_eq!(plan.next_request(all), Some((1, lane, vec![7])));
        }
        plan.set_wanting(8, Some(1));
        plan.set_wanting(9, Some(2));
        let fewer = |node| if node == 1 { 1 } else { LANES };
        assert_eq!(plan.next_request(fewer), Some((2, 0, vec![9])));
        plan.handle_done(1, 0);
        assert_eq!(plan.next_request(fewer), None);
        plan.handle_done(1, 1);
        assert_eq!(plan.next_request(fewer), Some((1, 0, vec![8])));
    }

    #[test]
    fn who_was_served_goes_to_the_back() {
        let mut plan = FetchPlan::default();
        plan.set_wanting(5, Some(1));
        plan.set_wanting(2, Some(1));
        plan.set_wanting(5, Some(1));
        assert_eq!(plan.next_request(all), Some((1, 0, vec![5, 2])));
        plan.set_wanting(2, Some(1));
        plan.set_wanting(5, Some(1));
        assert_eq!(plan.next_request(all), Some((1, 1, vec![2, 5])));
    }

    #[test]
    fn a_partition_that_moved_or_wants_no_more_is_not_asked_for() {
        let mut plan = FetchPlan::default();
        plan.set_wanting(1, Some(1));
        plan.set_wanting(1, Some(2));
        plan.set_wanting(3, Some(2));
        plan.set_wanting(3, None);
        assert_eq!(plan.next_request(all), Some((2, 0, vec![1])));
        assert_eq!(plan.next_request(all), None);
    }
}
