//! `[4]` A Produce request as a frame of slices: our few bytes in one buffer, each payload where it was received.

use std::collections::{HashMap, HashSet};

use bytes::{BufMut, Bytes};

use super::gather::Gather;
use super::{VERSIONS, is_flexible, names_topics_by_id};
use crate::EncodeError;
use crate::batch::Forwarded;
use crate::primitives::{Writer, begin_frame, check_written, end_frame};

const API_KEY: i16 = 0;

/// One batch and the partition it goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducePartition {
    /// Topic name, on the wire up to version 12.
    pub topic: String,
    /// Topic id, on the wire from version 13.
    pub topic_id: u128,
    /// Partition number.
    pub partition: i32,
    /// The batch: a broker takes one per partition and request.
    pub batch: Forwarded,
}

/// A whole Produce request outside transactions, length prefix and header included. Payloads are not copied.
///
/// `acks` is -1 for all in-sync replicas, 1 for the leader, 0 for no answer; `timeout_ms` is how long the leader waits
/// for the replicas. A topic's partitions stand together in the frame, wherever they are in `partitions`.
///
/// # Errors
/// [`EncodeError`] for a version outside [`VERSIONS`], for two batches to one partition, and for names or batches that
/// are too long.
pub fn produce_frame(
    version: i16,
    correlation_id: i32,
    client_id: &str,
    acks: i16,
    timeout_ms: i32,
    partitions: &[ProducePartition],
) -> Result<Gather, EncodeError> {
    check_written("Produce", version, &VERSIONS)?;
    let mut frame = Frame {
        writer: begin_frame(API_KEY, version, is_flexible(version), correlation_id, client_id)?,
        bodies: Vec::with_capacity(partitions.len()),
    };
    let by_id = names_topics_by_id(version);
    let topics = by_topic(partitions, by_id)?;
    frame.writer.string("transactional id", None)?;
    frame.writer.out.put_i16(acks);
    frame.writer.out.put_i32(timeout_ms);
    frame.writer.count("topics", topics.len())?;
    for topic in topics {
        frame.put_topic(&topic, by_id)?;
    }
    frame.writer.no_tags();
    frame.finish()
}

/// The partitions of each topic together, topics in the order in which they first appear.
fn by_topic(
    partitions: &[ProducePartition],
    by_id: bool,
) -> Result<Vec<Vec<&ProducePartition>>, EncodeError> {
    let mut seen = HashSet::with_capacity(partitions.len());
    let mut places = HashMap::new();
    let mut topics: Vec<Vec<&ProducePartition>> = Vec::new();
    for entry in partitions {
        let topic = if by_id { (entry.topic_id, "") } else { (0, entry.topic.as_str()) };
        if !seen.insert((topic, entry.partition)) {
            let reason = format!("two batches go to {}-{}, a broker takes one", entry.topic, entry.partition);
            return Err(EncodeError::Invalid { what: "Produce request", reason });
        }
        let place = *places.entry(topic).or_insert(topics.len());
        match topics.get_mut(place) {
            Some(together) => together.push(entry),
            None => topics.push(vec![entry]),
        }
    }
    Ok(topics)
}

/// A frame under way: our own bytes, and each payload with the place where it belongs between them.
struct Frame {
    writer: Writer,
    bodies: Vec<(usize, Bytes)>,
}

impl Frame {
    fn put_topic(&mut self, partitions: &[&ProducePartition], by_id: bool) -> Result<(), EncodeError> {
        let Some(first) = partitions.first() else { return Ok(()) };
        if by_id {
            self.writer.out.put_u128(first.topic_id);
        } else {
            self.writer.string("topic", Some(&first.topic))?;
        }
        self.writer.count("partitions", partitions.len())?;
        for entry in partitions {
            self.writer.out.put_i32(entry.partition);
            self.writer.bytes_length("records", entry.batch.total_bytes())?;
            self.writer.out.put_slice(&entry.batch.head);
            self.bodies.push((self.writer.out.len(), entry.batch.body.clone()));
            self.writer.no_tags();
        }
        self.writer.no_tags();
        Ok(())
    }

    fn finish(mut self) -> Result<Gather, EncodeError> {
        let bodies_bytes: usize = self.bodies.iter().map(|(_, body)| body.len()).sum();
        let frame_bytes = self.writer.out.len() + bodies_bytes;
        end_frame(&mut self.writer.out, frame_bytes)?;
        let ours = self.writer.out.freeze();
        let mut pieces = Vec::with_capacity(2 * self.bodies.len() + 1);
        let mut from = 0;
        for (at, body) in self.bodies {
            pieces.push(ours.slice(from..at));
            pieces.push(body);
            from = at;
        }
        pieces.push(ours.slice(from..));
        Ok(pieces.into_iter().collect())
    }
}
