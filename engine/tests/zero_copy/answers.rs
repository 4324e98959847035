//! Answers as a 4.3.1 broker sends them: a Fetch of many batches, Produce.

use bytes::{BufMut, Bytes};
use twinlog_protocol::record::BatchBuilder;

pub(crate) const FETCH_VERSION: i16 = 16;
pub(crate) const PRODUCE_VERSION: i16 = 13;
pub(crate) const TOPIC_ID: u128 = 0x7477_696e_6c6f_6700_0000_0000_0000_0001;

/// What a Fetch answer holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) partitions: i32,
    pub(crate) batches_per_partition: i64,
    pub(crate) records_per_batch: i64,
    /// Bytes of a batch, less the few that its records cost besides their values.
    pub(crate) batch_bytes: usize,
}

/// The body of a Fetch answer, whose batches can be moved to later offsets: one answer serves for a whole log.
#[derive(Debug, Clone)]
pub(crate) struct FetchAnswer {
    pub(crate) body: Vec<u8>,
    /// Where in the body the base offset of each batch is.
    base_offsets_at: Vec<usize>,
    shape: Shape,
    /// All batches, headers included.
    pub(crate) records_bytes: u64,
}

impl FetchAnswer {
    pub(crate) fn new(shape: Shape) -> Self {
        let mut answer = Self { body: Vec::new(), base_offsets_at: Vec::new(), shape, records_bytes: 0 };
        let batch = batch(shape);
        let high_watermark = twinlog_protocol::OFFSET_MAX;
        let body = &mut answer.body;
        body.put_i32(0); // throttle time
        body.put_i16(0);
        body.put_i32(0); // session
        put_uvarint(body, 2); // one topic
        body.put_u128(TOPIC_ID);
        put_uvarint(body, usize::try_from(shape.partitions).unwrap() + 1);
        for partition in 0..shape.partitions {
            body.put_i32(partition);
            body.put_i16(0);
            body.put_i64(high_watermark);
            body.put_i64(high_watermark);
            body.put_i64(0); // log start
            put_uvarint(body, 0); // no list of aborted transactions
            body.put_i32(-1);
            let batches = usize::try_from(shape.batches_per_partition).unwrap();
            put_uvarint(body, batches * batch.len() + 1);
            for _ in 0..batches {
                answer.base_offsets_at.push(body.len());
                body.put_slice(&batch);
                answer.records_bytes += batch.len() as u64;
            }
            body.put_u8(0);
        }
        body.put_u8(0);
        body.put_u8(0);
        answer.move_to(0);
        answer
    }

    /// Records of one partition in one answer.
    pub(crate) fn records_per_partition(&self) -> i64 {
        self.shape.batches_per_partition * self.shape.records_per_batch
    }

    /// Lets every partition's batches begin at `offset`. A broker does the same: base offsets are outside the CRC.
    pub(crate) fn move_to(&mut self, offset: i64) {
        let batches = (0..self.shape.batches_per_partition).cycle();
        for (at, batch) in self.base_offsets_at.iter().zip(batches) {
            let base_offset = offset + batch * self.shape.records_per_batch;
            self.body[*at..*at + 8].copy_from_slice(&base_offset.to_be_bytes());
        }
    }
}

/// A batch with a right CRC and values that no codec has touched.
fn batch(shape: Shape) -> Bytes {
    let mut builder = BatchBuilder::new();
    let value_bytes = shape.batch_bytes / usize::try_from(shape.records_per_batch).unwrap();
    for record in 0..shape.records_per_batch {
        let value = Bytes::from(vec![u8::try_from(record).unwrap(); value_bytes]);
        builder.push(1_700_000_000_000 + record, None, Some(value), Vec::new()).unwrap();
    }
    builder.build().unwrap().bytes().clone()
}

/// The body of a Produce answer for one batch.
pub(crate) fn produce_body(partition: i32, base_offset: i64) -> Vec<u8> {
    let mut body = Vec::new();
    put_uvarint(&mut body, 2);
    body.put_u128(TOPIC_ID);
    put_uvarint(&mut body, 2);
    body.put_i32(partition);
    body.put_i16(0);
    body.put_i64(base_offset);
    body.put_i64(-1); // log append time
    body.put_i64(0); // log start
    put_uvarint(&mut body, 1); // no record errors
    put_uvarint(&mut body, 0); // no message
    body.put_slice(&[0, 0]); // tags of partition and topic
    body.put_i32(0); // throttle time
    body.put_u8(0);
    body
}

fn put_uvarint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.put_u8(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    out.put_u8(u8::try_from(value).unwrap());
}
