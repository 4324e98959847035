//! The session against a naive broker that keeps sessions, loses them, refuses them and throttles.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// A session as a broker keeps it: by topic and partition, in the order of reading.
#[derive(Debug, Clone)]
struct BrokerSession {
    epoch: i32,
    by_id: bool,
    partitions: Vec<(Place, Asked)>,
}

type Place = (Option<Arc<str>>, u128, i32);

#[derive(Debug, Default)]
struct Broker {
    sessions: HashMap<i32, BrokerSession>,
    last_id: i32,
    room: bool,
}

enum Answer {
    Error(ErrorCode),
    /// Session id, and what was read.
    Read(i32, Vec<Asked>),
}

fn key(by_id: bool, topic: &Arc<str>, id: u128, partition: i32) -> Place {
    if by_id { (None, id, partition) } else { (Some(Arc::clone(topic)), 0, partition) }
}

impl Broker {
    fn take(&mut self, request: &SessionRequest, by_id: bool) -> Answer {
        let named = request
            .ask
            .iter()
            .map(|asked| (key(by_id, &asked.topic, asked.topic_id, asked.partition), asked.clone()));
        if request.session_epoch == 0 {
            self.sessions.remove(&request.session_id);
            let partitions: Vec<_> = named.collect();
            let read = partitions.iter().map(|(_, asked)| asked.clone()).collect();
            if !self.room {
                return Answer::Read(0, read);
            }
            self.last_id += 1;
            self.sessions.insert(self.last_id, BrokerSession { epoch: 1, by_id, partitions });
            return Answer::Read(self.last_id, read);
        }
        let Some(session) = self.sessions.get_mut(&request.session_id) else {
            return Answer::Error(ErrorCode::FetchSessionIdNotFound);
        };
        if session.epoch != request.session_epoch {
            return Answer::Error(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.by_id != by_id {
            return Answer::Error(ErrorCode::FetchSessionTopicIdError);
        }
        for (place, asked) in named {
            match session.partitions.iter_mut().find(|(known, _)| *known == place) {
                Some(known) => known.1 = asked,
                None => session.partitions.push((place, asked)),
            }
        }
        // As brokers do it: what is forgotten goes last.
        for gone in &request.forget {
            let place = key(by_id, &gone.topic, gone.topic_id, gone.partition);
            session.partitions.retain(|(known, _)| *known != place);
        }
        session.epoch = if session.epoch == i32::MAX { 1 } else { session.epoch + 1 };
        let read: Vec<Asked> = session.partitions.iter().map(|(_, asked)| asked.clone()).collect();
        if read.is_empty() {
            self.sessions.remove(&request.session_id);
            return Answer::Read(0, read);
        }
        Answer::Read(request.session_id, read)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Want { slot: usize, offset: i64 },
    Drop { slot: usize },
    Recreate { slot: usize },
    Ask { ids: bool, fate: Fate },
    Evict,
    Room(bool),
}

#[derive(Debug, Clone, Copy)]
enum Fate {
    Answered { listed: usize },
    Throttled,
    RequestLost,
    AnswerLost,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let slot = 0..6_usize;
    let fate = prop_oneof![
        6 => (0..6_usize).prop_map(|listed| Fate::Answered { listed }),
        1 => Just(Fate::Throttled),
        1 => Just(Fate::RequestLost),
        1 => Just(Fate::AnswerLost),
    ];
    let step = prop_oneof![
        4 => (slot.clone(), 0..50_i64).prop_map(|(slot, offset)| Step::Want { slot, offset }),
        2 => slot.clone().prop_map(|slot| Step::Drop { slot }),
        1 => slot.prop_map(|slot| Step::Recreate { slot }),
        6 => (prop::bool::weighted(0.9), fate).prop_map(|(ids, fate)| Step::Ask { ids, fate }),
        1 => Just(Step::Evict),
        1 => prop::bool::weighted(0.8).prop_map(Step::Room),
    ];
    prop::collection::vec(step, 1..60)
}

/// Whoever uses a session: what it wants, and what of that the session has not been told.
#[derive(Debug, Default)]
struct User {
    session: FetchSession,
    wanted: HashMap<usize, Asked>,
    fresh: Vec<usize>,
    gone: Vec<usize>,
    topic_ids: [u128; 6],
    recreated: u128,
}

impl User {
    fn want(&mut self, slot: usize, offset: i64) {
        let asked = Asked {
            topic: Arc::from(format!("topic-{}", slot / 2)),
            // The last topic never gets an id.
            topic_id: if slot / 2 == 2 { 0 } else { self.topic_ids[slot] * 10 + 1 + (slot / 2) as u128 },
            partition: i32::try_from(slot % 2).unwrap(),
            leader_epoch: 0,
            offset,
            last_fetched_epoch: -1,
            bytes_max: 1,
        };
        self.wanted.insert(slot, asked);
        self.fresh.push(slot);
    }

    fn drop(&mut self, slot: usize) {
        self.wanted.remove(&slot);
        self.gone.push(slot);
    }

    /// One request, as the driver sends it, with at most one repetition.
    fn ask(&mut self, broker: &mut Broker, ids: bool, fate: Fate) {
        let fresh: Vec<_> = std::mem::take(&mut self.fresh)
            .into_iter()
            .filter_map(|slot| Some((slot, self.wanted.get(&slot)?.clone())))
            .collect();
        let gone: Vec<usize> = std::mem::take(&mut self.gone)
            .into_iter()
            .filter(|slot| !self.wanted.contains_key(slot))
            .collect();
        let mut request = self.session.next_request(ids, fresh, &gone);
        for attempt in 0.. {
            assert!(attempt < 2, "a session that is begun is not lost: {request:?}");
            let by_id = self.session.names_topics_by_id();
            assert!(!by_id || ids);
            if matches!(fate, Fate::RequestLost) {
                return self.lose();
            }
            let (error_code, session_id, read) = match broker.take(&request, by_id) {
                Answer::Error(code) => (code.number(), 0, Vec::new()),
                Answer::Read(id, read) => {
                    self.check(&read);
                    (0, id, read)
                }
            };
            match fate {
                Fate::AnswerLost => return self.lose(),
                Fate::Throttled if error_code == 0 => return self.session.handle_throttled(),
                _ => {}
            }
            let listed_max = match fate {
                Fate::Answered { listed } if request.session_epoch > 0 => listed,
                _ => usize::MAX,
            };
            let parts = read.iter().take(listed_max).map(|asked| part(by_id, asked));
            let response = FetchResponse {
                throttle_time_ms: 0,
                error_code,
                session_id,
                partitions: parts.collect(),
                node_endpoints: Vec::new(),
            };
            match self.session.handle_answer(response) {
                SessionAnswer::Again => request = self.session.whole_request(),
                SessionAnswer::Listed(listed) => {
                    for (slot, offset, _) in listed {
                        assert_eq!(self.wanted[&slot].offset, offset);
                    }
                    return;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// S1.
    fn check(&self, read: &[Asked]) {
        let mut read: Vec<&Asked> = read.iter().collect();
        let mut wanted: Vec<&Asked> = self.wanted.values().collect();
        for side in [&mut read, &mut wanted] {
            side.sort_by_key(|asked| (Arc::clone(&asked.topic), asked.partition));
        }
        assert_eq!(read, wanted);
    }

    fn lose(&mut self) {
        let mut asked: Vec<usize> = self.session.handle_lost().into_iter().map(|(slot, _)| slot).collect();
        asked.sort_unstable();
        let mut wanted: Vec<usize> = self.wanted.keys().copied().collect();
        wanted.sort_unstable();
        assert_eq!(asked, wanted, "whoever was asked for hears that there is no answer");
        self.fresh = asked;
    }
}

fn part(by_id: bool, asked: &Asked) -> FetchedPartition {
    FetchedPartition {
        topic: place(by_id, asked).0,
        partition: asked.partition,
        error_code: 0,
        high_watermark: 100,
        last_stable_offset: -1,
        log_start_offset: 0,
        diverging_epoch: None,
        current_leader: None,
        aborted: Vec::new(),
        preferred_read_replica: -1,
        records: Bytes::from_static(b"some"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_wanted_partition_is_asked_at_its_offset_whatever_is_lost(steps in steps()) {
        let mut broker = Broker { room: true, ..Broker::default() };
        let mut user = User::default();
        for step in steps {
            match step {
                Step::Want { slot, offset } => user.want(slot, offset),
                Step::Drop { slot } => user.drop(slot),
                Step::Recreate { slot } => {
                    user.recreated += 1;
                    // Both partitions of the topic.
                    for of_topic in [slot / 2 * 2, slot / 2 * 2 + 1] {
                        user.topic_ids[of_topic] = user.recreated;
                        if let Some(asked) = user.wanted.get(&of_topic) {
                            let offset = asked.offset;
                            user.want(of_topic, offset);
                        }
                    }
                }
                Step::Ask { ids, fate } if !user.wanted.is_empty() => user.ask(&mut broker, ids, fate),
                Step::Ask { .. } => {}
                Step::Evict => broker.sessions.clear(),
                Step::Room(room) => broker.room = room,
            }
        }
    }
}

fn user_of(slots: &[usize]) -> (User, Broker) {
    let (mut user, mut broker) = (User::default(), Broker { room: true, ..Broker::default() });
    slots.iter().for_each(|slot| user.want(*slot, 7));
    user.ask(&mut broker, true, Fate::Answered { listed: 0 });
    (user, broker)
}

#[test]
fn what_did_not_change_is_not_named() {
    let (mut user, mut broker) = user_of(&[0, 1, 2]);
    let nothing = user.session.next_request(true, Vec::new(), &[]);
    assert_eq!((nothing.session_id, nothing.session_epoch), (1, 1));
    assert!(nothing.ask.is_empty() && nothing.forget.is_empty());
    user.ask(&mut broker, true, Fate::Answered { listed: 0 });
    user.want(1, 9);
    user.drop(2);
    let fresh = vec![(1, user.wanted[&1].clone()), (0, user.wanted[&0].clone())];
    let request = user.session.next_request(true, fresh, &[2]);
    assert_eq!((request.session_id, request.session_epoch), (1, 2));
    assert_eq!(request.ask, [user.wanted[&1].clone()]);
    assert_eq!((request.forget.len(), request.forget[0].partition), (1, 0));
}

#[test]
fn without_a_session_only_news_counts_as_an_answer() {
    let mut session = FetchSession::default();
    let mut user = User::default();
    user.want(0, 7);
    let asked = user.wanted[&0].clone();
    let mut fresh = vec![(0, asked.clone())];
    let answer = |high_watermark, error_code| FetchResponse {
        throttle_time_ms: 0,
        error_code: 0,
        session_id: 0,
        partitions: vec![FetchedPartition {
            high_watermark,
            error_code,
            records: Bytes::new(),
            ..part(true, &asked)
        }],
        node_endpoints: Vec::new(),
    };
    let steps = [(7, 0, true), (7, 0, false), (8, 0, true), (8, 0, false), (8, 3, true), (8, 0, true)];
    for (high_watermark, error_code, is_news) in steps {
        let request = session.next_request(true, std::mem::take(&mut fresh), &[]);
        assert_eq!((request.session_id, request.session_epoch, request.ask.len()), (0, 0, 1));
        let SessionAnswer::Listed(listed) = session.handle_answer(answer(high_watermark, error_code)) else {
            panic!("not an answer");
        };
        assert_eq!(listed.len(), usize::from(is_news), "{high_watermark} {error_code}");
    }
}

#[test]
fn an_answer_about_others_is_none() {
    let (mut user, _) = user_of(&[0]);
    user.want(2, 7);
    let stranger = part(true, &user.wanted[&2]);
    let response = FetchResponse {
        throttle_time_ms: 0,
        error_code: 0,
        session_id: 1,
        partitions: vec![stranger],
        node_endpoints: Vec::new(),
    };
    user.session.next_request(true, Vec::new(), &[]);
    assert_eq!(user.session.handle_answer(response), SessionAnswer::Unfit);
    assert_eq!(user.session.handle_lost(), [(0, 7)]);
    let again = user.session.next_request(true, vec![(0, user.wanted[&0].clone())], &[]);
    assert_eq!((again.session_id, again.session_epoch), (1, 0), "the old session ends");
}
