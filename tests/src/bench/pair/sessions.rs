//! Fetch sessions (KIP-227): what a broker remembers of them, so that who is asked about 10,000 quiet partitions says little.

use std::collections::{BTreeMap, HashMap};

use kafka_protocol::messages::{FetchRequest, fetch_request::FetchPartition};

const SESSION_ID_NOT_FOUND: i16 = 70;

/// What is to be answered about: topic ids, and partitions as they were asked for.
pub(super) type Asked = Vec<(u128, Vec<FetchPartition>)>;

/// The sessions of one broker.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: HashMap<i32, Session>,
    last_id: i32,
}

/// By topic id and partition.
type Session = BTreeMap<(u128, i32), Watched>;

#[derive(Debug)]
struct Watched {
    asked: FetchPartition,
    /// The log end that the session knows.
    told: Option<i64>,
}

impl Sessions {
    /// Takes a request in: the id of its session, 0 outside any, or the error code of the whole answer.
    pub(super) fn handle(&mut self, request: &FetchRequest) -> Result<i32, i16> {
        match request.session_epoch {
            ..0 => return Ok(0),
            0 => {
                self.open.remove(&request.session_id);
                self.last_id += 1;
                self.open.insert(self.last_id, Session::new());
                self.watch(self.last_id, request)?;
                return Ok(self.last_id);
            }
            _ => self.watch(request.session_id, request)?,
        }
        Ok(request.session_id)
    }

    fn watch(&mut self, id: i32, request: &FetchRequest) -> Result<(), i16> {
        let session = self.open.get_mut(&id).ok_or(SESSION_ID_NOT_FOUND)?;
        for topic in &request.forgotten_topics_data {
            for partition in &topic.partitions {
                session.remove(&(topic.topic_id.as_u128(), *partition));
            }
        }
        for topic in &request.topics {
            for asked in &topic.partitions {
                let place = (topic.topic_id.as_u128(), asked.partition);
                let told = session.get(&place).and_then(|watched| watched.told);
                session.insert(place, Watched { asked: asked.clone(), told });
            }
        }
        Ok(())
    }

    /// Partitions of a session that have records, or of which it does not know how far they go.
    pub(super) fn news(&mut self, id: i32, log_end: impl Fn(u128, i32) -> i64) -> Asked {
        let mut news = Asked::new();
        for (&(topic_id, partition), watched) in self.open.get_mut(&id).into_iter().flatten() {
            let end = log_end(topic_id, partition);
            if watched.told == Some(end) && watched.asked.fetch_offset == end {
                continue;
            }
            watched.told = Some(end);
            match news.last_mut() {
                Some((last, partitions)) if *last == topic_id => partitions.push(watched.asked.clone()),
                _ => news.push((topic_id, vec![watched.asked.clone()])),
            }
        }
        news
    }
}

/// All that a request outside sessions names.
pub(super) fn all(request: &FetchRequest) -> Asked {
    request.topics.iter().map(|topic| (topic.topic_id.as_u128(), topic.partitions.clone())).collect()
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::fetch_request::{FetchTopic, ForgottenTopic};
    use uuid::Uuid;

    use super::*;

    fn request(id: i32, epoch: i32, partitions: &[(i32, i64)], forgotten: &[i32]) -> FetchRequest {
        let partition = |&(partition, offset): &(i32, i64)| {
            FetchPartition::default().with_partition(partition).with_fetch_offset(offset)
        };
        let partitions = partitions.iter().map(partition).collect();
        let topic = FetchTopic::default().with_topic_id(Uuid::from_u128(7)).with_partitions(partitions);
        let gone =
            ForgottenTopic::default().with_topic_id(Uuid::from_u128(7)).with_partitions(forgotten.to_vec());
        FetchRequest::default()
            .with_session_id(id)
            .with_session_epoch(epoch)
            .with_topics(vec![topic])
            .with_forgotten_topics_data(vec![gone])
    }

    fn numbers(news: &Asked) -> Vec<(i32, i64)> {
        news.iter().flat_map(|(_, of)| of.iter().map(|part| (part.partition, part.fetch_offset))).collect()
    }

    #[test]
    fn a_session_tells_what_is_new_to_it() {
        let mut sessions = Sessions::default();
        let id = sessions.handle(&request(0, 0, &[(0, 5), (1, 5), (2, 3)], &[])).unwrap();
        let at_five = |_, _| 5;
        assert_eq!(numbers(&sessions.news(id, at_five)), [(0, 5), (1, 5), (2, 3)], "all, once");
        assert_eq!(
            numbers(&sessions.news(id, at_five)),
            [(2, 3)],
            "there are records until they are asked past"
        );
        assert_eq!(sessions.handle(&request(id, 1, &[(2, 5)], &[])), Ok(id));
        assert_eq!(numbers(&sessions.news(id, at_five)), []);
        let one_more = |_, partition| if partition == 1 { 6 } else { 5 };
        assert_eq!(numbers(&sessions.news(id, one_more)), [(1, 5)]);
        assert_eq!(sessions.handle(&request(id, 2, &[], &[1])), Ok(id));
        assert_eq!(numbers(&sessions.news(id, one_more)), [], "forgotten");
    }

    #[test]
    fn a_session_that_ended_is_not_known() {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.handle(&request(9, 1, &[(0, 5)], &[])), Err(SESSION_ID_NOT_FOUND));
        let first = sessions.handle(&request(0, 0, &[(0, 5)], &[])).unwrap();
        let second = sessions.handle(&request(first, 0, &[(0, 5)], &[])).unwrap();
        assert_ne!(first, second);
        assert_eq!(sessions.handle(&request(first, 1, &[], &[])), Err(SESSION_ID_NOT_FOUND));
        assert_eq!(sessions.handle(&request(0, -1, &[(0, 5)], &[])), Ok(0));
    }
}
