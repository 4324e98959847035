//! Makes a batch from records: for our own topics, for re-encoding, and for tests.

use bytes::{Bytes, BytesMut};

use super::codec::compress;
use super::fields::{Header, Record};
use crate::EncodeError;
use crate::batch::{Attributes, BatchHeader, BatchView, Compression, HEADER_BYTES, ProducerStamp, crc};

/// Bytes that `batch_length` counts in front of the payload.
const COUNTED_BYTES: usize = 49;

/// Collects records into one dense batch: their offsets follow on one another from the base offset.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    header: BatchHeader,
    payload: BytesMut,
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

    /// Appends `record` at `timestamp_ms`; its deltas are set here.
    pub(super) fn push_record(&mut self, timestamp_ms: i64, mut record: Record) -> Result<(), EncodeError> {
        let Some(record_count) = self.header.record_count.checked_add(1) else {
            let limit = i32::MAX as usize;
            return Err(EncodeError::TooLong { field: "records", length: limit + 1, limit });
        };
        if self.header.record_count == 0 {
            self.header.base_timestamp = timestamp_ms;
            self.header.max_timestamp = timestamp_ms;
        }
        record.offset_delta = self.header.record_count;
        // Kafka's readers add the delta in wrapping arithmetic, so that any two timestamps have one.
        record.timestamp_delta = timestamp_ms.wrapping_sub(self.header.base_timestamp);
        record.encode(&mut self.payload)?;
        self.header.record_count = record_count;
        self.header.last_offset_delta = record_count - 1;
        self.header.max_timestamp = self.header.max_timestamp.max(timestamp_ms);
        Ok(())
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
