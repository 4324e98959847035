//! Replicas that are chosen, fail and come back.

use proptest::prelude::*;
use twinlog_protocol::ErrorCode;

use super::*;
use crate::machine::partition::FetchedRecords;

const LEADER: i32 = 1;
const NEAR: i32 = 2;
const NEXT_LEADER: i32 = 4;
const GONE: i32 = 9;
const SLOT: usize = 3;

fn plain(high_watermark: i64) -> Fetched {
    let records = FetchedRecords {
        records: Vec::new().into(),
        high_watermark,
        last_stable_offset: None,
        aborted: Vec::new(),
        log_start: 0,
        diverging: None,
    };
    Fetched { offset: 50, result: Ok(records) }
}

fn diverging() -> Fetched {
    let mut fetched = plain(100);
    if let Ok(records) = &mut fetched.result {
        records.diverging = Some((4, 40));
    }
    fetched
}

fn error(code: ErrorCode) -> Fetched {
    Fetched { offset: 50, result: Err(RequestFailure::Broker(code)) }
}

fn secs(secs: u64) -> Now {
    Now::from_secs(secs)
}

/// One reader, with what it was told.
struct Reader(ReadReplicas);

impl Reader {
    fn new() -> Self {
        Self(ReadReplicas::new("near"))
    }

    fn hear(&mut self, at: u64, node: i32, named: Option<i32>, fetched: Fetched) -> Heard {
        let by = Answerer { node, leader: Some(LEADER), named };
        self.0.handle_fetched(secs(at), SLOT, by, |node| node != GONE, Some(100), fetched)
    }

    /// The leader names the near replica.
    fn name(&mut self, at: u64) {
        assert!(matches!(self.hear(at, LEADER, Some(NEAR), plain(100)), Heard::News(_)));
    }

    fn node(&self) -> i32 {
        self.0.node(SLOT, LEADER)
    }

    fn tells_rack(&self, at: u64) -> bool {
        self.tells_rack_to(LEADER, at)
    }

    fn tells_rack_to(&self, leader: i32, at: u64) -> bool {
        !self.0.rack(secs(at), leader).is_empty()
    }
}

#[test]
fn the_replica_that_the_leader_names_is_read_from_on() {
    let mut reader = Reader::new();
    assert_eq!((reader.node(), &*reader.0.rack(secs(0), LEADER)), (LEADER, "near"));
    reader.name(0);
    assert_eq!(reader.node(), NEAR);
    assert!(matches!(reader.hear(1, NEAR, None, plain(100)), Heard::News(_)));
    assert_eq!((reader.node(), reader.0.node(SLOT + 1, LEADER)), (NEAR, LEADER));
}

#[test]
fn a_choice_ends_after_five_minutes_and_with_the_leader() {
    let mut reader = Reader::new();
    reader.name(10);
    assert_eq!(reader.0.poll_ended(secs(309)), None);
    assert_eq!(reader.0.poll_ended(secs(310)), Some(SLOT));
    assert_eq!((reader.0.poll_ended(secs(310)), reader.node()), (None, LEADER));

    reader.name(400);
    assert!(reader.0.handle_new_leader(SLOT), "the replica's answer is not to be heard");
    assert!(!reader.0.handle_new_leader(SLOT), "the leader was asked itself");
    assert_eq!(reader.node(), LEADER);
    reader.name(500);
    assert_eq!(reader.0.poll_ended(secs(750)), None, "the choice before would have ended");
    assert!(reader.tells_rack(750));
}

#[test]
fn what_is_no_plain_answer_of_a_replica_is_a_question_to_the_leader() {
    let unanswered = || Fetched { offset: 50, result: Err(RequestFailure::Unanswered("away".to_owned())) };
    for (named, fetched) in [
        (None, error(ErrorCode::OffsetOutOfRange)),
        (None, error(ErrorCode::OffsetNotAvailable)),
        (None, error(ErrorCode::NotLeaderOrFollower)),
        (None, error(ErrorCode::ReplicaNotAvailable)),
        (None, error(ErrorCode::UnknownLeaderEpoch)),
        (None, error(ErrorCode::FencedLeaderEpoch)),
        (None, error(ErrorCode::UnknownTopicOrPartition)),
        (None, error(ErrorCode::TopicAuthorizationFailed)),
        (None, diverging()),
        (None, unanswered()),
        (Some(LEADER), plain(100)),
    ] {
        let mut reader = Reader::new();
        reader.name(0);
        assert!(matches!(reader.hear(1, NEAR, named, fetched), Heard::Ask(LEADER)));
        assert_eq!((reader.node(), reader.tells_rack(1), reader.tells_rack(6)), (LEADER, false, true));
        assert!(reader.tells_rack_to(NEXT_LEADER, 1), "another leader has named none that failed");
        // Asked before it failed.
        reader.name(2);
        assert_eq!(reader.node(), LEADER);
        reader.name(6);
        assert_eq!(reader.node(), NEAR);
    }
}

#[test]
fn what_the_leader_says_reaches_the_partition() {
    for fetched in [error(ErrorCode::OffsetOutOfRange), diverging(), plain(90)] {
        let mut reader = Reader::new();
        let before = fetched.result.as_ref().ok().map(|records| records.high_watermark);
        let Heard::News(heard) = reader.hear(0, LEADER, None, fetched) else { panic!("not heard") };
        assert_eq!(heard.result.ok().map(|records| records.high_watermark), before);
        assert!(reader.tells_rack(0));
    }
}

/// The leader has changed while a Fetch was under way, to the leader before or to the replica that it named.
#[test]
fn the_next_leader_is_asked_after_an_error_of_an_earlier_one_which_counts_for_nothing() {
    for (asked, fetched) in [
        (LEADER, error(ErrorCode::NotLeaderOrFollower)),
        (LEADER, error(ErrorCode::OffsetOutOfRange)),
        (LEADER, error(ErrorCode::TopicAuthorizationFailed)),
        (LEADER, diverging()),
        (NEAR, error(ErrorCode::NotLeaderOrFollower)),
        (NEAR, error(ErrorCode::OffsetOutOfRange)),
    ] {
        let mut reader = Reader::new();
        if asked == NEAR {
            reader.name(0);
        }
        assert_eq!(reader.0.handle_new_leader(SLOT), asked == NEAR);
        let by = Answerer { node: asked, leader: Some(NEXT_LEADER), named: None };
        let heard = reader.0.handle_fetched(secs(1), SLOT, by, |_| true, Some(100), fetched);
        assert!(matches!(heard, Heard::Ask(NEXT_LEADER)), "{heard:?}");
        assert_eq!(reader.0.node(SLOT, NEXT_LEADER), NEXT_LEADER);
        assert!(reader.tells_rack(1) && reader.tells_rack_to(NEXT_LEADER, 1));
        // It is still fit to be named.
        let by = Answerer { node: NEXT_LEADER, leader: Some(NEXT_LEADER), named: Some(NEAR) };
        let heard = reader.0.handle_fetched(secs(1), SLOT, by, |_| true, Some(100), plain(100));
        assert!(matches!(heard, Heard::News(_)), "{heard:?}");
        assert_eq!(reader.0.node(SLOT, NEXT_LEADER), NEAR);
    }
}

#[test]
fn records_of_an_earlier_leader_are_records() {
    let mut reader = Reader::new();
    assert!(!reader.0.handle_new_leader(SLOT));
    let by = Answerer { node: LEADER, leader: Some(NEXT_LEADER), named: None };
    let heard = reader.0.handle_fetched(secs(1), SLOT, by, |_| true, Some(100), plain(100));
    assert!(matches!(heard, Heard::News(Fetched { result: Ok(_), .. })), "{heard:?}");
}

#[test]
fn without_a_leader_a_replica_proves_nothing() {
    let mut replicas = ReadReplicas::new("near");
    let by = Answerer { node: NEAR, leader: None, named: None };
    let fetched = error(ErrorCode::OffsetOutOfRange);
    let heard = replicas.handle_fetched(secs(0), SLOT, by, |_| true, None, fetched);
    let Heard::News(Fetched { result: Err(RequestFailure::Unanswered(_)), .. }) = heard else {
        panic!("{heard:?}");
    };
}

#[test]
fn a_replica_that_fails_again_is_left_for_longer() {
    let mut reader = Reader::new();
    let mut at = 0;
    for left_for in [5, 10, 20, 40, 60, 60] {
        reader.name(at);
        for _ in 0..3 {
            drop(reader.hear(at, NEAR, None, error(ErrorCode::KafkaStorageError)));
        }
        assert_eq!((reader.tells_rack(at + left_for - 1), reader.tells_rack(at + left_for)), (false, true));
        at += left_for;
    }
    reader.name(at);
    drop(reader.hear(at, NEAR, None, plain(100)));
    drop(reader.hear(at, NEAR, None, error(ErrorCode::KafkaStorageError)));
    assert!(reader.tells_rack(at + 5));
}

/// One of its log folders is gone, say: the others' records must not bring the rack back at once, again and again.
#[test]
fn a_replica_that_fails_for_one_partition_is_left_however_well_it_serves_others() {
    let mut reader = Reader::new();
    let mut at = 0;
    for _ in 0..3 {
        reader.name(at);
        drop(reader.hear(at, NEAR, None, error(ErrorCode::KafkaStorageError)));
        let by = Answerer { node: NEAR, leader: Some(LEADER), named: None };
        for after in [0, 4] {
            let now = secs(at + after);
            let heard = reader.0.handle_fetched(now, SLOT + 1, by, |_| true, Some(100), plain(100));
            assert!(matches!(heard, Heard::News(_)));
            assert!(!reader.tells_rack(at + after));
        }
        at += 5;
        drop(reader.0.handle_fetched(secs(at), SLOT + 1, by, |_| true, Some(100), plain(100)));
        assert!(reader.tells_rack(at), "the time that it is left for has begun anew");
    }
}

#[test]
fn after_damaged_records_of_a_replica_the_hold_is_tried_again_at_the_leader() {
    let mut reader = Reader::new();
    reader.0.handle_damaged(secs(0), SLOT, Some(LEADER));
    assert!(reader.tells_rack(0), "it was the leader that sent them");
    reader.name(0);
    reader.0.handle_damaged(secs(0), SLOT, Some(LEADER));
    // Others go on reading from it.
    let by = Answerer { node: NEAR, leader: Some(LEADER), named: None };
    drop(reader.0.handle_fetched(secs(20), SLOT + 1, by, |_| true, Some(100), plain(100)));
    assert_eq!((reader.node(), reader.tells_rack(31), reader.tells_rack(60)), (LEADER, false, true));
}

#[test]
fn a_node_that_metadata_does_not_name_is_not_read_from() {
    let mut reader = Reader::new();
    drop(reader.hear(0, LEADER, Some(GONE), plain(100)));
    assert_eq!((reader.node(), reader.tells_rack(0), reader.tells_rack(5)), (LEADER, false, true));
    assert_eq!(reader.0.handle_nodes(|node| node != GONE), [0; 0]);
    assert!(!reader.tells_rack(0), "or each new metadata would be another round of requests");
    reader.name(5);
    assert_eq!(reader.0.handle_nodes(|node| node != NEAR), [SLOT]);
    assert_eq!((reader.node(), reader.tells_rack(5)), (LEADER, true));
}

#[test]
fn a_replicas_high_watermark_takes_nothing_back() {
    let mut reader = Reader::new();
    reader.name(0);
    for (told, known) in [(90, 100), (110, 110)] {
        let Heard::News(heard) = reader.hear(0, NEAR, None, plain(told)) else { panic!("not heard") };
        assert_eq!(heard.result.unwrap().high_watermark, known);
    }
}

/// What may happen.
#[derive(Debug, Clone)]
enum Happens {
    Passes(u64),
    Fetched { slot: usize, node: i32, named: Option<i32>, kind: u8 },
    NewLeader(usize),
    Nodes(i32),
    Ends,
}

fn happens() -> impl Strategy<Value = Happens> {
    let fetched = (0..2usize, 1..4i32, proptest::option::of(1..4i32), 0..4u8);
    prop_oneof![
        (0..200u64).prop_map(Happens::Passes),
        fetched.prop_map(|(slot, node, named, kind)| Happens::Fetched { slot, node, named, kind }),
        (0..2usize).prop_map(Happens::NewLeader),
        (2..4i32).prop_map(Happens::Nodes),
        Just(Happens::Ends),
    ]
}

proptest! {
    /// A twin that keeps for each partition no more than who was named, and when.
    #[test]
    fn every_choice_is_the_leaders_last_word_and_no_replica_is_a_witness(
        history in proptest::collection::vec(happens(), 0..80),
    ) {
        let mut replicas = ReadReplicas::new("near");
        let (mut now, mut twin) = (Now::ZERO, [None::<(i32, Now)>; 2]);
        for happens in history {
            match happens {
                Happens::Passes(secs) => now += Now::from_secs(secs),
                Happens::NewLeader(slot) => {
                    prop_assert_eq!(replicas.handle_new_leader(slot), twin[slot].take().is_some());
                }
                Happens::Nodes(gone) => {
                    replicas.handle_nodes(|node| node != gone);
                    twin.iter_mut().for_each(|choice| *choice = choice.filter(|(node, _)| *node != gone));
                }
                Happens::Ends => {
                    while replicas.poll_ended(now).is_some() {}
                    twin.iter_mut().for_each(|choice| *choice = choice.filter(|(_, at)| now - *at < KEPT_FOR));
                }
                Happens::Fetched { slot, node, named, kind } => {
                    let fetched = match kind {
                        0 => error(ErrorCode::OffsetOutOfRange),
                        1 => diverging(),
                        _ => plain(90),
                    };
                    let by = Answerer { node, leader: Some(LEADER), named };
                    let told = !replicas.rack(now, LEADER).is_empty();
                    let heard = replicas.handle_fetched(now, slot, by, |_| true, Some(100), fetched);
                    let is_plain = kind >= 2 && named.is_none();
                    match heard {
                        Heard::Ask(leader) => {
                            prop_assert!(node != LEADER && !is_plain && leader == LEADER);
                            if twin[slot].is_some_and(|(chosen, _)| chosen == node) {
                                twin[slot] = None;
                                prop_assert!(replicas.rack(now, LEADER).is_empty());
                            }
                        }
                        Heard::News(_) if node != LEADER => prop_assert!(is_plain),
                        Heard::News(fetched) => {
                            let chosen = named.filter(|named| *named != LEADER && fetched.result.is_ok());
                            let is_taken = |replicas: &ReadReplicas| replicas.node(slot, LEADER);
                            if let Some(named) = chosen.filter(|named| told || is_taken(&replicas) == *named) {
                                prop_assert_eq!(is_taken(&replicas), named);
                                let was = twin[slot].filter(|(node, _)| !told && *node == named);
                                twin[slot] = Some(was.unwrap_or((named, now)));
                            }
                        }
                    }
                }
            }
            for (slot, choice) in twin.iter().enumerate() {
                prop_assert_eq!(replicas.node(slot, LEADER), choice.map_or(LEADER, |(node, _)| node));
            }
        }
    }
}
