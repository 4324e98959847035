//! Which batches go out together: a broker works one request of a connection at a time, so few large ones cost it less.
//!
//! - G1: a request holds one batch of each partition at most, and the batches of a partition keep their order.
//! - G2: a request is no larger than [`REQUEST_BYTES_MAX`], but for a single batch that is.
//! - G3: topics with an id and topics without are not mixed: one kind goes by name.

use std::collections::BTreeMap;

/// Bytes of the batches of one request, as a Java producer has them (`max.request.size`).
pub const REQUEST_BYTES_MAX: usize = 1 << 20;

/// What of a batch decides where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// Its partition.
    pub slot: usize,
    /// Its size, in bytes.
    pub bytes: usize,
    /// Whether its topic has an id.
    pub has_topic_id: bool,
}

struct Group<B> {
    bytes: usize,
    has_topic_id: bool,
    batches: Vec<B>,
}

/// Deals batches, in the order in which they came, into requests, in the order in which they go.
#[must_use]
pub fn group<B>(batches: Vec<B>, traits: impl Fn(&B) -> Traits) -> Vec<Vec<B>> {
    if batches.len() == 1 {
        return vec![batches];
    }
    let mut groups: Vec<Group<B>> = Vec::new();
    // First group that may take the next batch of a partition.
    let mut next: BTreeMap<usize, usize> = BTreeMap::new();
    let mut full_before = 0;
    for batch in batches {
        let Traits { slot, bytes, has_topic_id } = traits(&batch);
        let fits = |group: &Group<B>| {
            group.has_topic_id == has_topic_id && group.bytes.saturating_add(bytes) <= REQUEST_BYTES_MAX
        };
        let from = next.get(&slot).copied().unwrap_or(0).max(full_before);
        let found = groups.iter().skip(from).position(fits).map(|place| from + place);
        let place = found.unwrap_or_else(|| {
            groups.push(Group { bytes: 0, has_topic_id, batches: Vec::new() });
            groups.len() - 1
        });
        let group = &mut groups[place];
        group.bytes = group.bytes.saturating_add(bytes);
        group.batches.push(batch);
        next.insert(slot, place + 1);
        while groups.get(full_before).is_some_and(|group| group.bytes >= REQUEST_BYTES_MAX) {
            full_before += 1;
        }
    }
    groups.into_iter().map(|group| group.batches).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Slot, number within the slot, and what decides.
    type Batch = (usize, usize, Traits);

    fn batches(of: &[(usize, usize, bool)]) -> Vec<Batch> {
        let mut numbers = HashMap::new();
        let batch = |&(slot, bytes, has_topic_id): &(usize, usize, bool)| {
            let number: &mut usize = numbers.entry(slot).or_default();
            *number += 1;
            (slot, *number, Traits { slot, bytes, has_topic_id })
        };
        of.iter().map(batch).collect()
    }

    fn grouped(of: &[(usize, usize, bool)]) -> Vec<Vec<(usize, usize)>> {
        let names = |group: Vec<Batch>| group.into_iter().map(|(slot, number, _)| (slot, number)).collect();
        group(batches(of), |batch| batch.2).into_iter().map(names).collect()
    }

    #[test]
    fn one_batch_of_each_partition_goes_with_a_request() {
        let of = [(7, 10, true), (7, 10, true), (3, 10, true), (7, 10, true), (3, 10, true), (5, 10, true)];
        assert_eq!(grouped(&of), [vec![(7, 1), (3, 1), (5, 1)], vec![(7, 2), (3, 2)], vec![(7, 3)]]);
    }

    #[test]
    fn a_request_has_a_size_and_a_larger_batch_goes_alone() {
        let half = REQUEST_BYTES_MAX / 2;
        let of = [(0, half, true), (1, half, true), (2, 5 * half, true), (3, 1, true), (4, half, true)];
        assert_eq!(grouped(&of), [vec![(0, 1), (1, 1)], vec![(2, 1)], vec![(3, 1), (4, 1)]]);
    }

    #[test]
    fn topics_without_an_id_go_apart() {
        let of = [(0, 1, true), (1, 1, false), (2, 1, true), (1, 1, true), (3, 1, false)];
        assert_eq!(grouped(&of), [vec![(0, 1), (2, 1)], vec![(1, 1), (3, 1)], vec![(1, 2)]]);
    }

    #[test]
    fn nothing_is_lost_repeated_or_overtaken() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..2_000 {
            let count = random.usize(..40);
            let of: Vec<_> = std::iter::repeat_with(|| {
                let bytes = if random.u8(..4) == 0 { random.usize(..2 << 20) } else { random.usize(..1000) };
                (random.usize(..6), bytes, random.u8(..4) > 0)
            })
            .take(count)
            .collect();
            let groups = group(batches(&of), |batch| batch.2);
            let mut seen: HashMap<usize, usize> = HashMap::new();
            for group in &groups {
                assert!(!group.is_empty());
                let bytes: usize = group.iter().map(|batch| batch.2.bytes).sum();
                assert!(group.len() == 1 || bytes <= REQUEST_BYTES_MAX, "{bytes}");
                assert!(group.iter().all(|batch| batch.2.has_topic_id == group[0].2.has_topic_id));
                let mut slots: Vec<usize> = group.iter().map(|batch| batch.0).collect();
                slots.sort_unstable();
                slots.dedup();
                assert_eq!(slots.len(), group.len(), "two batches of a partition in one request");
                for (slot, number, _) in group {
                    let before = seen.insert(*slot, *number).unwrap_or(0);
                    assert_eq!(*number, before + 1, "batches of {slot} out of order");
                }
            }
            assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), of.len());
        }
    }
}
