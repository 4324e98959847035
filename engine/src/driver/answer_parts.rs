//! The parts of an answer by partition: brokers need not keep the order of the request, and name topics by name or by id.

use std::collections::HashMap;
use std::sync::Arc;

use twinlog_protocol::TopicRef;

/// What an answer says of partitions that is not looked up yet.
pub(super) struct AnswerParts<P>(HashMap<(TopicRef, i32), P>);

impl<P> AnswerParts<P> {
    /// `place` tells which partition a part is about.
    pub(super) fn new(parts: Vec<P>, place: impl Fn(&P) -> (TopicRef, i32)) -> Self {
        Self(parts.into_iter().map(|part| (place(&part), part)).collect())
    }

    /// Takes out what is said of a partition; none if the answer leaves it out.
    pub(super) fn take(&mut self, topic: &Arc<str>, topic_id: u128, partition: i32) -> Option<P> {
        let by_id = self.0.remove(&(TopicRef::Id(topic_id), partition));
        by_id.or_else(|| self.0.remove(&(TopicRef::Name(Arc::clone(topic)), partition)))
    }
}
