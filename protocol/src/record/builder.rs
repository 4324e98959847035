//! Makes a batch from records: for our own topics, for re-encoding, and for tests.

use bytes::{BufMut, Bytes, BytesMut};

use super::codec::compress;
use super::fields::{Header, Record, put_length};
use crate::EncodeError;
use crate::batch::{Attributes, BatchHeader, BatchView, Compression, HEADER_BYTES, ProducerStamp, crc};
use crate::primitives::put_varint;

/// Bytes that `batch_length` counts in front of the payload.
const COUNTED_BYTES: usize = 49;
/// Bytes of a record's two deltas: varints of 64 and 32 bits.
const DELTAS_BYTES_MAX: usize = 10 + 5;

/// Collects records into one batch: their offsets follow on one another from the base offset.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    header: BatchHeader,
    payload: BytesMut,
}

/// What a batch in the making holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    header: BatchHeader,
    /// Bytes of the records, not packed.
    pub(super) payload_bytes: usize,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuilder {
    /// A batch as a producer without identity sends it: base offset 0, not packed.
    #[must_use]
    pub fn new() -> Self {
        let header = BatchHeader {
            base_offset: 0,
            batch_length: 0,
            partition_leader_epoch: -1,
            magic: 2,
            crc: 0,
            attributes: Attributes::default(),
            last_offset_delta: -1,
            base_timestamp: -1,
            max_timestamp: -1,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: 0,
        };
        Self { header, payload: BytesMut::new() }
    }

    /// A batch that has everything but its records from `header`, the bits of its attributes included.
    pub(super) fn like(header: &BatchHeader) -> Self {
        let header = BatchHeader { record_count: 0, last_offset_delta: -1, ..*header };
        Self { header, payload: BytesMut::new() }
    }

    /// Packs the records with `compression`.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.header.attributes = self.header.attributes.with_compression(compression);
        self
    }

    /// Sets who sends the batch and under which sequence.
    #[must_use]
    pub fn producer(mut self, stamp: ProducerStamp) -> Self {
        self.header.producer_id = stamp.producer_id;
        self.header.producer_epoch = stamp.producer_epoch;
        self.header.base_sequence = stamp.base_sequence;
        self
    }

    /// Sets the offset of the first record; a producer's batch starts at 0.
    #[must_use]
    pub fn base_offset(mut self, base_offset: i64) -> Self {
        self.header.base_offset = base_offset;
        self
    }

    /// Marks the batch as part of a transaction: for whoever plays a source, as twinlog writes none.
    #[must_use]
    pub fn transactional(mut self) -> Self {
        self.header.attributes = self.header.attributes.with_transactional();
        self
    }

    /// Appends a record. The first one's timestamp becomes the base timestamp.
    ///
    /// # Errors
    /// [`EncodeError::TooLong`] for a field, a record or a count that the format cannot say.
    pub fn push(
        &mut self,
        timestamp_ms: i64,
        key: Option<Bytes>,
        value: Option<Bytes>,
        headers: Vec<Header>,
    ) -> Result<(), EncodeError> {
        self.push_record(timestamp_ms, Record { key, value, headers, ..Record::default() })
    }

    /// Leaves out so many offsets, as the cleaner does: for whoever plays a source, as no target takes such a batch.
    ///
    /// # Errors
    /// [`EncodeError::TooLong`] past the offsets that a batch can span.
    pub fn leave_gap(&mut self, offsets: u32) -> Result<(), EncodeError> {
        let last = self.header.last_offset_delta.checked_add_unsigned(offsets);
        self.header.last_offset_delta = last.ok_or_else(too_many)?;
        Ok(())
    }

    /// Appends `record` at `timestamp_ms`; its deltas are set here.
    pub(super) fn push_record(&mut self, timestamp_ms: i64, mut record: Record) -> Result<(), EncodeError> {
        (record.timestamp_delta, record.offset_delta) = self.next_deltas(timestamp_ms)?;
        record.encode(&mut self.payload)?;
        self.count(timestamp_ms);
        Ok(())
    }

    /// Appends a record at `timestamp_ms` whose key, value and headers are encoded in `tail`: what stands in a record
    /// behind its offset delta.
    pub(super) fn push_encoded(
        &mut self,
        timestamp_ms: i64,
        attributes: i8,
        tail: &[u8],
    ) -> Result<(), EncodeError> {
        let (timestamp_delta, offset_delta) = self.next_deltas(timestamp_ms)?;
        let mut deltas = [0; DELTAS_BYTES_MAX];
        let mut rest = &mut deltas[..];
        put_varint(&mut rest, timestamp_delta);
        put_varint(&mut rest, offset_delta.into());
        let deltas_bytes = DELTAS_BYTES_MAX - rest.len();
        put_length(&mut self.payload, "record", 1 + deltas_bytes + tail.len())?;
        self.payload.put_i8(attributes);
        self.payload.put_slice(&deltas[..deltas_bytes]);
        self.payload.put_slice(tail);
        self.count(timestamp_ms);
        Ok(())
    }

    /// Timestamp and offset delta of a record that comes next.
    fn next_deltas(&self, timestamp_ms: i64) -> Result<(i64, i32), EncodeError> {
        let offset_delta = self.header.last_offset_delta.checked_add(1).filter(|delta| *delta < i32::MAX);
        let base_timestamp =
            if self.header.record_count == 0 { timestamp_ms } else { self.header.base_timestamp };
        // Kafka's readers add the delta in wrapping arithmetic, so that any two timestamps have one.
        Ok((timestamp_ms.wrapping_sub(base_timestamp), offset_delta.ok_or_else(too_many)?))
    }

    /// A record was written, under the deltas that were told.
    fn count(&mut self, timestamp_ms: i64) {
        let header = &mut self.header;
        if header.record_count == 0 {
            header.base_timestamp = timestamp_ms;
            header.max_timestamp = timestamp_ms;
        }
        header.max_timestamp = header.max_timestamp.max(timestamp_ms);
        header.last_offset_delta += 1;
        // Never more than offsets.
        header.record_count += 1;
    }

    /// Makes room for so many bytes of records.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.payload.reserve(bytes);
    }

    /// What the batch holds so far, to come [back to](Self::back_to).
    pub(super) fn held(&self) -> Held {
        Held { header: self.header, payload_bytes: self.payload.len() }
    }

    /// Takes the records out again that came after `held`.
    pub(super) fn back_to(&mut self, held: Held) {
        self.header = held.header;
        self.payload.truncate(held.payload_bytes);
    }

    /// The batch with its packed payload, its length and its CRC.
    ///
    /// # Errors
    /// [`EncodeError::Invalid`] without a record or with an offset past the last; [`EncodeError::TooLong`] above 2 GB.
    pub fn build(self) -> Result<BatchView, EncodeError> {
        let invalid = |reason: String| EncodeError::Invalid { what: "record batch", reason };
        if self.header.record_count == 0 {
            return Err(invalid("it has no record".to_owned()));
        }
        let compression = self.header.attributes.compression().map_err(|error| invalid(error.to_string()))?;
        let body = compress(compression, &self.payload.freeze())?;
        let length = COUNTED_BYTES + body.len();
        let Ok(batch_length) = i32::try_from(length) else {
            return Err(EncodeError::TooLong { field: "record batch", length, limit: i32::MAX as usize });
        };
        let mut header = BatchHeader { batch_length, ..self.header };
        header.crc = crc::computed(&header.encode(), &body);
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES + body.len());
        bytes.extend_from_slice(&header.encode());
        bytes.extend_from_slice(&body);
        BatchView::parse(bytes.freeze()).map_err(|error| invalid(error.to_string()))
    }
}

fn too_many() -> EncodeError {
    let limit = i32::MAX as usize;
    EncodeError::TooLong { field: "records", length: limit + 1, limit }
}
