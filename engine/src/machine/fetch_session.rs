//! What the fetch session of a lane holds at its broker, and what the next request has to say to it (KIP-227).
//!
//! A broker keeps in a session what it was asked of each partition. A request names only what changed since the last one,
//! an answer only the partitions with records, an error or a watermark that moved. What neither names costs nothing.
//!
//! - S1: with each request the broker's session holds what is wanted, each partition at its right offset, and nothing else.
//! - S2: whatever is not a plain answer ends the session: the next request names everything and begins another one. Which of
//!   the changes the broker has taken over is never guessed.
//! - S3: where a broker has no room for the session, each request names everything, and only news counts as an answer.
//!
//! One request at a time: whoever sends it has the session until the answer is in.
//!
//! # References
//! KIP-227; `FetchSessionHandler` (client), `FetchSession` (broker).

use std::collections::HashMap;
use std::sync::Arc;

use twinlog_protocol::fetch::{FetchResponse, FetchedPartition};
use twinlog_protocol::{ErrorCode, TopicRef};

/// What a broker is asked of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The topic's id, 0 where it has none.
    pub topic_id: u128,
    /// The partition.
    pub partition: i32,
    /// Leader epoch as we know it, -1 for unknown.
    pub leader_epoch: i32,
    /// First offset wanted.
    pub offset: i64,
    /// Leader epoch of the last batch read, -1 for none.
    pub last_fetched_epoch: i32,
    /// Bytes of the partition in an answer.
    pub bytes_max: i32,
}

/// A partition that the session shall no longer hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgotten {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The topic's id when it was asked for.
    pub topic_id: u128,
    /// The partition.
    pub partition: i32,
}

/// What a request says to the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRequest {
    /// The session, 0 for none.
    pub session_id: i32,
    /// Its epoch; 0 begins a session and ends the one of `session_id`.
    pub session_epoch: i32,
    /// New or changed partitions, or all.
    pub ask: Vec<Asked>,
    /// Partitions to be forgotten.
    pub forget: Vec<Forgotten>,
}

/// What an answer says.
#[derive(Debug, PartialEq, Eq)]
pub enum SessionAnswer {
    /// These partitions have news, each for the offset it was asked at. The others have none.
    Listed(Vec<(usize, i64, FetchedPartition)>),
    /// The session is gone: the same is to be asked again, by a request that names everything.
    Again,
    /// The answer is none to what was asked.
    Failed(ErrorCode),
    /// The answer names partitions that were not asked for, or leaves out some that were.
    Unfit,
}

/// The session of one lane.
#[derive(Debug, Default)]
pub struct FetchSession {
    id: i32,
    /// Of the next request; 0 begins a session.
    epoch: i32,
    by_id: bool,
    held: HashMap<usize, Held>,
    places: HashMap<(TopicRef, i32), usize>,
    /// Held partitions whose topic has no id.
    without_id: usize,
    tick: u64,
}

#[derive(Debug)]
struct Held {
    asked: Asked,
    /// High watermark, last stable offset and log start that were told last; none where the next answer is news in any case.
    told: Option<(i64, i64, i64)>,
    /// When it was asked at this offset first: whoever was served goes to the back.
    tick: u64,
}

impl FetchSession {
    /// The next request. `fresh` are wanted from now on, or otherwise than before; `gone` are wanted no more.
    /// `speaks_ids` tells whether the broker takes topic ids.
    pub fn next_request(
        &mut self,
        speaks_ids: bool,
        fresh: Vec<(usize, Asked)>,
        gone: &[usize],
    ) -> SessionRequest {
        let mut forget = Vec::new();
        for slot in gone {
            forget.extend(self.let_go(*slot));
        }
        let mut ask = Vec::new();
        for (slot, asked) in fresh {
            if self.held.get(&slot).is_some_and(|held| held.asked == asked) {
                continue;
            }
            // By name, a topic made again is the same partition to the session: to forget it would lose the new one.
            let before = self.let_go(slot).filter(|before| self.by_id && before.topic_id != asked.topic_id);
            forget.extend(before);
            ask.push(asked.clone());
            self.hold(slot, asked);
        }
        let by_id = speaks_ids && self.without_id == 0;
        if std::mem::replace(&mut self.by_id, by_id) != by_id {
            self.epoch = 0;
            self.places = self.held.iter().map(|(slot, held)| (place(by_id, &held.asked), *slot)).collect();
        }
        if self.epoch == 0 {
            return self.whole();
        }
        SessionRequest { session_id: self.id, session_epoch: self.epoch, ask, forget }
    }

    /// The request once more, after [`SessionAnswer::Again`].
    pub fn whole_request(&mut self) -> SessionRequest {
        self.epoch = 0;
        self.whole()
    }

    /// Whether topics go by id.
    #[must_use]
    pub fn names_topics_by_id(&self) -> bool {
        self.by_id
    }

    /// The answer to the last request.
    pub fn handle_answer(&mut self, response: FetchResponse) -> SessionAnswer {
        let is_whole = self.epoch == 0;
        match ErrorCode::from(response.error_code) {
            ErrorCode::None => {}
            code => {
                self.epoch = 0;
                // Where there is no session to lose, asking again would not help.
                return if is_whole || !is_about_session(code) {
                    SessionAnswer::Failed(code)
                } else {
                    SessionAnswer::Again
                };
            }
        }
        let mut listed = Vec::with_capacity(response.partitions.len());
        let count = response.partitions.len();
        for part in response.partitions {
            let Some(slot) = self.places.get(&(part.topic.clone(), part.partition)).copied() else {
                self.epoch = 0;
                return SessionAnswer::Unfit;
            };
            if let Some(held) = self.held.get_mut(&slot)
                && held.is_news(&part)
            {
                listed.push((slot, held.asked.offset, part));
            }
        }
        if is_whole && count != self.held.len() {
            return SessionAnswer::Unfit;
        }
        self.id = response.session_id;
        self.epoch = match (self.id, self.epoch) {
            (0, _) => 0,
            (_, i32::MAX) => 1,
            (_, epoch) => epoch + 1,
        };
        SessionAnswer::Listed(listed)
    }

    /// The broker answered with nothing but a time to wait. It has taken the changes over, but begins no session then.
    pub fn handle_throttled(&mut self) {
        if self.epoch > 0 {
            self.epoch = if self.epoch == i32::MAX { 1 } else { self.epoch + 1 };
        }
    }

    /// There is no answer to the last request, or none that counts. Gives what was asked: all of it has to be asked anew.
    pub fn handle_lost(&mut self) -> Vec<(usize, i64)> {
        self.epoch = 0;
        self.without_id = 0;
        self.places.clear();
        self.held.drain().map(|(slot, held)| (slot, held.asked.offset)).collect()
    }

    fn whole(&self) -> SessionRequest {
        let mut all: Vec<&Held> = self.held.values().collect();
        all.sort_unstable_by_key(|held| held.tick);
        let ask = all.into_iter().map(|held| held.asked.clone()).collect();
        SessionRequest { session_id: self.id, session_epoch: 0, ask, forget: Vec::new() }
    }

    fn hold(&mut self, slot: usize, asked: Asked) {
        self.tick += 1;
        self.without_id += usize::from(asked.topic_id == 0);
        self.places.insert(place(self.by_id, &asked), slot);
        self.held.insert(slot, Held { asked, told: None, tick: self.tick });
    }

    fn let_go(&mut self, slot: usize) -> Option<Forgotten> {
        let Held { asked, .. } = self.held.remove(&slot)?;
        self.without_id -= usize::from(asked.topic_id == 0);
        self.places.remove(&place(self.by_id, &asked));
        let Asked { topic, topic_id, partition, .. } = asked;
        Some(Forgotten { topic, topic_id, partition })
    }
}

impl Held {
    /// As a broker with a session would decide, for one without.
    fn is_news(&mut self, part: &FetchedPartition) -> bool {
        let offsets = (part.high_watermark, part.last_stable_offset, part.log_start_offset);
        let told = (part.error_code == 0).then_some(offsets);
        let is_known = told.is_some() && self.told == told;
        self.told = told;
        !is_known
            || !part.records.is_empty()
            || part.diverging_epoch.is_some()
            || part.preferred_read_replica >= 0
    }
}

fn place(by_id: bool, asked: &Asked) -> (TopicRef, i32) {
    let topic = if by_id { TopicRef::Id(asked.topic_id) } else { TopicRef::Name(Arc::clone(&asked.topic)) };
    (topic, asked.partition)
}

fn is_about_session(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::FetchSessionIdNotFound
            | ErrorCode::InvalidFetchSessionEpoch
            | ErrorCode::FetchSessionTopicIdError
    )
}

#[cfg(test)]
mod tests;
