//! What experienced operators set for throughput on top of MM2's defaults, and why.

use crate::{judge::Codec, twinlog::FlowFile};

/// Just below `message.max.bytes`, which a broker takes by default.
const BATCH_BYTES: u32 = 1_000_000;

/// `file` with MM2 tuned for the flow `from->to` of batches packed with `codec`.
pub(super) fn tuned(file: FlowFile, from: &str, to: &str, codec: Codec) -> FlowFile {
    let consumer = [
        // 10 MB of each partition at once; by default 1 MB is asked for and, with many fetches, little of it comes.
        ("max.partition.fetch.bytes", "10485760"),
        // A task hands what one poll gave it to the producer: 500 records, the default, are less than a batch.
        ("max.poll.records", "10000"),
        // A broker that has little waits for more, 500 ms at most: fewer and larger answers.
        ("fetch.min.bytes", "100000"),
        // By default 64 KB, which is too little for answers of 10 MB; -1 leaves it to the system.
        ("receive.buffer.bytes", "-1"),
    ];
    let batch_bytes = BATCH_BYTES.to_string();
    let producer = [
        // By default 16 KB: one request per 16 KB and partition is what the target broker spends its CPU on.
        ("batch.size", batch_bytes.as_str()),
        // Batches get time to fill.
        ("linger.ms", "20"),
        // MM2 unpacks what it reads; without this the copy is larger than the source.
        ("compression.type", codec.name()),
        // Room for the large batches of many partitions; by default 32 MB.
        ("buffer.memory", "134217728"),
        // A request may hold the batches of several partitions.
        ("max.request.size", "8388608"),
        ("send.buffer.bytes", "-1"),
        // Connect allows one request at a time to keep the order; an idempotent producer keeps it with five.
        ("enable.idempotence", "true"),
        ("max.in.flight.requests.per.connection", "5"),
    ];
    // tasks.max stays: with one for each of four partitions, and two for each core, more gain nothing.
    let file =
        consumer.iter().fold(file, |file, (key, value)| file.with(&format!("{from}.consumer.{key}"), value));
    producer.iter().fold(file, |file, (key, value)| file.with(&format!("{to}.producer.{key}"), value))
}
