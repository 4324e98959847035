//! What the source does when it is asked, or written to.

use std::time::Duration;

use twinlog_engine::machine::partition::{Fetched, FetchedRecords, RequestFailure};
use twinlog_protocol::ErrorCode;

use super::source::SourcePartition;
use super::world::{Event, Fetch, World, say};

/// A Fetch at the end of the log is answered empty after this long.
const FETCH_WAIT: Duration = Duration::from_secs(2);

impl World<'_> {
    pub(crate) fn fetch(&mut self, fetch: Fetch) {
        let Fetch { slot, life, partition, topic_id, offset, .. } = fetch;
        let result = if self.source_down_until > self.now {
            Err(RequestFailure::Unanswered("the source is down".to_owned()))
        } else {
            self.read_source(partition, topic_id, offset)
        };
        if result.as_ref().is_ok_and(|read| read.records.is_empty()) {
            self.order += 1;
            let number = self.order;
            self.parked.push(Fetch { fetch: number, ..fetch });
            return self.schedule(FETCH_WAIT, Event::Unpark { partition, fetch: number });
        }
        let fetched = Fetched { offset, result };
        let delay = self.delay();
        self.schedule(delay, Event::Fetched { slot, life, partition, fetched });
    }

    /// The topic that the source has under this name now.
    pub(crate) fn source(&self, partition: usize) -> &SourcePartition {
        self.sources[partition].last().expect("a source has a topic")
    }

    fn read_source(
        &mut self,
        partition: usize,
        topic_id: u128,
        offset: i64,
    ) -> Result<FetchedRecords, RequestFailure> {
        let source = self.sources[partition].last().expect("a source has a topic");
        if source.topic_id != topic_id {
            return Err(RequestFailure::Broker(ErrorCode::UnknownTopicId));
        }
        let read = source.fetch(&mut self.rng, offset);
        let (records, aborted) = read.ok_or(RequestFailure::Broker(ErrorCode::OffsetOutOfRange))?;
        Ok(FetchedRecords {
            records,
            high_watermark: source.log_end(),
            last_stable_offset: self.plan.committed.then(|| source.last_stable_offset()),
            aborted,
            log_start: source.log_start,
            diverging: None,
        })
    }

    pub(crate) fn unpark(&mut self, partition: usize, fetch: Option<u64>) {
        let is_meant =
            |parked: &Fetch| parked.partition == partition && fetch.is_none_or(|one| one == parked.fetch);
        let (meant, left) = std::mem::take(&mut self.parked).into_iter().partition(is_meant);
        self.parked = left;
        let meant: Vec<Fetch> = meant;
        for Fetch { slot, life, partition, topic_id, offset, .. } in meant {
            let fetched = Fetched { offset, result: self.read_source(partition, topic_id, offset) };
            let delay = self.delay();
            self.schedule(delay, Event::Fetched { slot, life, partition, fetched });
        }
    }

    pub(crate) fn fetched(&mut self, slot: usize, life: u64, partition: usize, fetched: Fetched) {
        self.with_machine(slot, life, partition, |machine, now| machine.handle_fetched(now, fetched));
    }

    pub(crate) fn source_append(&mut self, partition: usize) {
        if self.batches_later == 0 {
            return;
        }
        self.batches_later -= 1;
        let hole_chance = self.plan.hole_chance;
        let source = self.sources[partition].last_mut().expect("a source has a topic");
        source.append(&mut self.rng, hole_chance);
        say!(self, "source p{partition} ends at {}", self.source(partition).log_end());
        self.unpark(partition, None);
    }
    /// Transactions that are open come to their end.
    pub(crate) fn end_transactions(&mut self) {
        for partition in 0..self.plan.partitions {
            let source = self.sources[partition].last_mut().expect("a source has a topic");
            source.end_transactions(&mut self.rng);
            self.unpark(partition, None);
        }
    }
}
