//! Fetch, version 16: answers whose batches all lie in the same place in memory.

use std::{thread, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{FetchRequest, fetch_request::FetchPartition};
use twinlog_protocol::produce::Gather;

use super::{
    log::{Broker, Partition, Supply},
    sessions::{Asked, all},
};

const OFFSET_OUT_OF_RANGE: i16 = 1;
const UNKNOWN_TOPIC_ID: i16 = 100;

/// A frame under way: our own bytes, and the batches with the places where they belong between them.
#[derive(Default)]
struct Frame {
    ours: BytesMut,
    batches: Vec<(usize, Bytes)>,
    batch_bytes: usize,
    partitions: usize,
}

/// The whole answer; waits as long as the request allows where there is nothing.
pub(super) fn fetch(broker: &Broker, correlation_id: i32, request: &FetchRequest) -> Gather {
    let session = broker.sessions().handle(request);
    let mut frame = answer(broker, correlation_id, request, session);
    // What a session was told once is not told again, so that is said at once.
    let says_nothing = frame.batch_bytes == 0 && (session == Ok(0) || frame.partitions == 0);
    if says_nothing && session.is_ok() {
        thread::sleep(Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or_default()));
        frame = answer(broker, correlation_id, request, session);
    }
    frame.finish()
}

fn answer(broker: &Broker, correlation_id: i32, request: &FetchRequest, session: Result<i32, i16>) -> Frame {
    let log_end = |id, partition| {
        broker.by_id(id).and_then(|topic| Some(topic.partition(partition)?.log_end)).unwrap_or(-1)
    };
    let asked = match session {
        Ok(0) => all(request),
        Ok(id) => broker.sessions().news(id, log_end),
        Err(_) => Asked::new(),
    };
    let mut frame = Frame::default();
    frame.ours.put_i32(0); // the length, when it is known
    frame.ours.put_i32(correlation_id);
    frame.ours.put_u8(0);
    frame.ours.put_i32(0); // throttle time
    frame.ours.put_i16(session.err().unwrap_or_default());
    frame.ours.put_i32(session.unwrap_or_default());
    frame.put_uvarint(asked.len() + 1);
    for (topic_id, partitions) in &asked {
        let bytes_max = usize::try_from(request.max_bytes).unwrap_or_default();
        frame.put_topic(broker, *topic_id, partitions, bytes_max);
    }
    frame.ours.put_u8(0);
    frame
}

impl Frame {
    fn put_topic(&mut self, broker: &Broker, id: u128, partitions: &[FetchPartition], bytes_max: usize) {
        let topic = broker.by_id(id);
        self.ours.put_u128(id);
        self.put_uvarint(partitions.len() + 1);
        for partition in partitions {
            let of = topic.as_ref().and_then(|topic| topic.partition(partition.partition));
            let room = bytes_max.saturating_sub(self.batch_bytes);
            self.put_partition(broker.supply.as_ref(), partition, of.as_deref(), room);
        }
        self.ours.put_u8(0);
    }

    fn put_partition(
        &mut self,
        supply: Option<&Supply>,
        asked: &FetchPartition,
        of: Option<&Partition>,
        room: usize,
    ) {
        let log_end = of.map_or(-1, |of| of.log_end);
        let error_code = match of {
            None => UNKNOWN_TOPIC_ID,
            Some(_) if !(0..=log_end).contains(&asked.fetch_offset) => OFFSET_OUT_OF_RANGE,
            Some(_) => 0,
        };
        self.partitions += 1;
        self.ours.put_i32(asked.partition);
        self.ours.put_i16(error_code);
        self.ours.put_i64(log_end); // high watermark
        self.ours.put_i64(log_end); // last stable offset
        self.ours.put_i64(0); // log start
        self.put_uvarint(0); // no list of aborted transactions
        self.ours.put_i32(-1); // no other replica
        let room = room.min(usize::try_from(asked.partition_max_bytes).unwrap_or_default());
        match (of, supply) {
            (Some(of), Some(supply)) if error_code == 0 => {
                self.put_supply(supply, asked.fetch_offset, of, room);
            }
            (Some(of), None) if error_code == 0 => self.put_kept(of, asked.fetch_offset),
            _ => self.put_uvarint(1),
        }
        self.ours.put_u8(0);
    }

    /// As many batches as there is room for; one in any case if nothing stands before it.
    fn put_supply(&mut self, supply: &Supply, offset: i64, of: &Partition, room: usize) {
        let first = offset / supply.records_per_batch();
        let left = of.log_end / supply.records_per_batch() - first;
        let least = i64::from(self.batch_bytes == 0);
        let fit = i64::try_from(room / supply.batch_bytes()).unwrap_or(i64::MAX).max(least).min(left);
        let count = usize::try_from(fit).unwrap_or_default();
        self.put_uvarint(count * supply.batch_bytes() + 1);
        for batch in first..first + fit {
            self.ours.put_i64(batch * supply.records_per_batch());
            self.batches.push((self.ours.len(), supply.behind_offset()));
        }
        self.batch_bytes += count * supply.batch_bytes();
    }

    /// All batches of an internal topic from an offset on: there are few.
    fn put_kept(&mut self, of: &Partition, offset: i64) {
        let wanted = || of.kept.iter().filter(|(header, _)| header.next_offset() > offset);
        let bytes: usize = wanted().map(|(_, batch)| batch.len()).sum();
        self.put_uvarint(bytes + 1);
        for (_, batch) in wanted() {
            self.batches.push((self.ours.len(), batch.clone()));
        }
        self.batch_bytes += bytes;
    }

    fn put_uvarint(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.ours.put_u8(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.ours.put_u8(value.to_le_bytes()[0]);
    }

    fn finish(mut self) -> Gather {
        let behind: usize =
            self.ours.len() - 4 + self.batches.iter().map(|(_, batch)| batch.len()).sum::<usize>();
        let length = u32::try_from(behind).unwrap_or(u32::MAX);
        self.ours[..4].copy_from_slice(&length.to_be_bytes());
        let ours = self.ours.freeze();
        let mut pieces = Vec::with_capacity(2 * self.batches.len() + 1);
        let mut from = 0;
        for (at, batch) in self.batches {
            pieces.push(ours.slice(from..at));
            pieces.push(batch);
            from = at;
        }
        pieces.push(ours.slice(from..));
        pieces.into_iter().collect()
    }
}
