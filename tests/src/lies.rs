//! Answers that lie: which ones, how, and what the client has to say about each. The proxy tells them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A kind of answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// Kafka's number for it.
    pub api_key: i16,
    /// Kafka's name for it.
    pub name: &'static str,
    /// Where in a flexible version (KIP-482) its first length is, counted from the correlation id: the count of its
    /// first list, or of its tagged fields where it has no list.
    length_at: usize,
}

const fn answer(api_key: i16, name: &'static str, length_at: usize) -> Answer {
    Answer { api_key, name, length_at }
}

/// Correlation id and no header tags.
const HEADER: usize = 5;
const THROTTLE_TIME: usize = 4;

/// Every kind that twinlog asks for. ApiVersions alone has a header without tags (KIP-511).
pub const ANSWERS: [Answer; 12] = [
    answer(0, "Produce", HEADER),
    answer(1, "Fetch", HEADER + THROTTLE_TIME + 2 + 4),
    answer(2, "ListOffsets", HEADER + THROTTLE_TIME),
    answer(3, "Metadata", HEADER + THROTTLE_TIME),
    answer(19, "CreateTopics", HEADER + THROTTLE_TIME),
    answer(22, "InitProducerId", HEADER + THROTTLE_TIME + 2 + 8 + 2),
    answer(23, "OffsetForLeaderEpoch", HEADER + THROTTLE_TIME),
    answer(32, "DescribeConfigs", HEADER + THROTTLE_TIME),
    answer(37, "CreatePartitions", HEADER + THROTTLE_TIME),
    answer(44, "IncrementalAlterConfigs", HEADER + THROTTLE_TIME),
    answer(61, "DescribeProducers", HEADER + THROTTLE_TIME),
    answer(18, "ApiVersions", 4 + 2),
];

/// How an answer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// A length inside is 2,147,483,647.
    LengthInside,
    /// It belongs to another request.
    CorrelationId,
    /// The connection ends in its middle.
    Cut,
    /// Its length prefix is about 2^31.
    PrefixTooLarge,
    /// Its length prefix is below 0.
    PrefixNegative,
}

impl Lie {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::LengthInside, Self::CorrelationId, Self::Cut, Self::PrefixTooLarge, Self::PrefixNegative];
}

/// A lie that was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The answer's kind.
    pub api: &'static str,
    /// What was wrong with it.
    pub lie: Lie,
    /// What the client must say of it: the numbers in it are of this lie alone, where a lie has numbers.
    pub complaint: String,
}

/// What a proxy shall lie about and has lied about.
#[derive(Debug, Default)]
pub struct Lies(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    plans: BTreeMap<i16, Plan>,
    answered: BTreeSet<i16>,
    told: Vec<Told>,
}

#[derive(Debug)]
struct Plan {
    every: u64,
    answers: u64,
    left: VecDeque<Lie>,
}

impl Lies {
    /// From now on every n-th answer of this kind lies, each in the next way of `lies`, until these are used up.
    pub fn plan(&self, answer: &Answer, every: u64, lies: &[Lie]) {
        let plan = Plan { every, answers: 0, left: lies.iter().copied().collect() };
        self.state().plans.insert(answer.api_key, plan);
    }

    /// The kinds of answers that still have lies to tell.
    #[must_use]
    pub fn untold(&self) -> Vec<&'static str> {
        let state = self.state();
        let untold = state.plans.iter().filter(|(_, plan)| !plan.left.is_empty());
        untold.filter_map(|(api_key, _)| known(*api_key)).map(|answer| answer.name).collect()
    }

    /// What was told so far.
    #[must_use]
    pub fn told(&self) -> Vec<Told> {
        self.state().told.clone()
    }

    /// The numbers of all kinds of answers that came by.
    #[must_use]
    pub fn answered(&self) -> BTreeSet<i16> {
        self.state().answered.clone()
    }

    /// Counts an answer; the lie that it must be.
    pub(crate) fn due(&self, api_key: i16) -> Option<(&'static Answer, Lie)> {
        let mut state = self.state();
        state.answered.insert(api_key);
        let plan = state.plans.get_mut(&api_key)?;
        plan.answers += 1;
        let is_due = plan.answers.is_multiple_of(plan.every);
        let lie = if is_due { plan.left.pop_front()? } else { return None };
        Some((known(api_key)?, lie))
    }

    /// The bytes to send in place of an answer, length prefix first, noted as told.
    pub(crate) fn tell(&self, answer: &'static Answer, lie: Lie, frame: &[u8]) -> Vec<u8> {
        let mut state = self.state();
        let serial = i32::try_from(state.told.len()).unwrap_or(i32::MAX);
        let (bytes, complaint) = tell(answer, lie, frame, serial);
        state.told.push(Told { api: answer.name, lie, complaint });
        bytes
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn known(api_key: i16) -> Option<&'static Answer> {
    ANSWERS.iter().find(|answer| answer.api_key == api_key)
}

/// The lying bytes, and what the client must say of them. `serial` makes the numbers of a lie its own.
fn tell(answer: &Answer, lie: Lie, frame: &[u8], serial: i32) -> (Vec<u8>, String) {
    let prefixed = |prefix: i32, frame: &[u8]| [&prefix.to_be_bytes(), frame].concat();
    let length = i32::try_from(frame.len()).unwrap_or(i32::MAX);
    let of_prefix = |prefix: i32| {
        (prefixed(prefix, frame), format!("the length prefix of the frame is {prefix}, at most"))
    };
    match lie {
        Lie::LengthInside => {
            let at = answer.length_at.min(frame.len());
            let behind = frame.get(at + 1..).unwrap_or_default();
            let frame = [&frame[..at], &[0xff, 0xff, 0xff, 0xff, 0x07], behind].concat();
            let complaint = format!("the answer to {} cannot be read: ", answer.name);
            (prefixed(i32::try_from(frame.len()).unwrap_or(i32::MAX), &frame), complaint)
        }
        Lie::CorrelationId => {
            let id = i32::MIN + serial;
            let frame = [&id.to_be_bytes(), frame.get(4..).unwrap_or_default()].concat();
            (prefixed(length, &frame), format!("the answer carries correlation id {id}, the request had"))
        }
        Lie::Cut => {
            let arrived = frame.len() / 2;
            let complaint = format!("after {arrived} of {length} bytes of an answer");
            (prefixed(length, &frame[..arrived]), complaint)
        }
        Lie::PrefixTooLarge => of_prefix(i32::MAX - serial),
        Lie::PrefixNegative => of_prefix(-1 - serial),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: [u8; 12] = [0, 0, 0, 7, 0, 0, 0, 0, 0, 9, 10, 11];
    const LIST_OFFSETS: &Answer = &ANSWERS[2];

    #[test]
    fn each_lie_is_one_lie() {
        let said = |lie| tell(LIST_OFFSETS, lie, &FRAME, 3);
        let (bytes, complaint) = said(Lie::LengthInside);
        assert_eq!(bytes[..13], [0, 0, 0, 16, 0, 0, 0, 7, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[13..], [0xff, 0xff, 0xff, 0xff, 7, 10, 11]);
        assert_eq!(complaint, "the answer to ListOffsets cannot be read: ");
        let (bytes, complaint) = said(Lie::CorrelationId);
        assert_eq!((&bytes[..8], &bytes[8..]), (&[0, 0, 0, 12, 0x80, 0, 0, 3][..], &FRAME[4..]));
        assert!(complaint.contains("id -2147483645,"), "{complaint}");
        let (bytes, complaint) = said(Lie::Cut);
        assert_eq!((&bytes[..4], &bytes[4..]), (&[0, 0, 0, 12][..], &FRAME[..6]));
        assert_eq!(complaint, "after 6 of 12 bytes of an answer");
        assert_eq!(said(Lie::PrefixTooLarge).0[..4], (i32::MAX - 3).to_be_bytes());
        assert_eq!(said(Lie::PrefixNegative).0[..4], (-4_i32).to_be_bytes());
    }

    #[test]
    fn every_nth_answer_lies_until_all_is_told() {
        let lies = Lies::default();
        lies.plan(LIST_OFFSETS, 2, &[Lie::Cut, Lie::CorrelationId]);
        let told: Vec<_> = (0..6).map(|_| lies.due(2).map(|(_, lie)| lie)).collect();
        assert_eq!(told, [None, Some(Lie::Cut), None, Some(Lie::CorrelationId), None, None]);
        assert_eq!(lies.due(3), None, "nothing is planned for Metadata");
        assert_eq!(lies.answered(), [2, 3].into());
        assert!(lies.untold().is_empty());
    }
}
