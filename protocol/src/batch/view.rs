//! A batch as it lies in a Fetch answer: the parsed header and a slice over the whole.

use bytes::Bytes;

use super::layout::{BATCH_LENGTH_MIN, BatchHeader, CRC_COVERS_FROM, HEADER_BYTES};
use crate::DecodeError;

/// One whole batch of magic 2. Cloning shares the bytes, which keep the answer they lie in alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchView {
    header: BatchHeader,
    bytes: Bytes,
}

impl BatchView {
    /// The batch that `bytes` are, from the first to the last.
    ///
    /// # Errors
    /// What [`BatchHeader::parse`] refuses; [`DecodeError::LyingLength`] when the batch length names another size.
    pub fn parse(bytes: Bytes) -> Result<Self, DecodeError> {
        let header = BatchHeader::parse(&bytes)?;
        if header.total_bytes() != bytes.len() {
            let left = bytes.len() - HEADER_BYTES;
            let length = (header.batch_length - BATCH_LENGTH_MIN).into();
            return Err(DecodeError::LyingLength { field: "batch length", at: HEADER_BYTES, length, left });
        }
        Ok(Self { header, bytes })
    }

    /// The header as read.
    #[must_use]
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The header as it lies there.
    pub(crate) fn head(&self) -> &[u8; HEADER_BYTES] {
        self.bytes.first_chunk().expect("no shorter batch was parsed")
    }

    /// The whole batch, header included.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The payload behind the header, packed as its codec has it: a slice, no copy.
    #[must_use]
    pub fn body(&self) -> Bytes {
        self.bytes.slice(HEADER_BYTES..)
    }

    /// Compares the CRC with the bytes: a pass over the payload, for slow paths and tests.
    ///
    /// # Errors
    /// [`DecodeError::BadValue`] when the bytes are not those that the CRC was made for.
    pub fn check_crc(&self) -> Result<(), DecodeError> {
        if crc32c::crc32c(&self.bytes[CRC_COVERS_FROM..]) == self.header.crc {
            return Ok(());
        }
        Err(DecodeError::BadValue {
            field: "batch crc",
            at: 17,
            value: self.header.crc.into(),
            reason: "the batch was damaged: its bytes have another CRC-32C",
        })
    }
}
