//! A batch without its first records: the log start lies inside it, or reading resumes inside it.
//!
//! T1 What is kept keeps its offset, timestamp, key, value, headers and order, and the batch its codec, producer and
//! flags. T2 The new CRC covers what was read under the old one: a damaged batch is an error, not a fresh CRC.

use super::builder::BatchBuilder;
use super::fields::records;
use crate::batch::{BatchView, TimestampType, sequence_after};
use crate::{DecodeError, EncodeError};

/// The batch without the records below `first_offset`, unpacked on the way into at most `bytes_max` bytes. The sequences
/// of a producer go on from the right place.
///
/// # Errors
/// [`DecodeError::BadValue`] when the CRC is wrong, when `first_offset` is behind the batch, and when the batch is not
/// dense; otherwise what [`records`](super::records()) refuses.
pub fn trim(view: &BatchView, first_offset: i64, bytes_max: usize) -> Result<BatchView, DecodeError> {
    view.check_crc()?;
    let old = view.header();
    let bad = |field, value, reason| Err(DecodeError::BadValue { field, at: 0, value, reason });
    if !old.is_dense() {
        return bad("record count", old.record_count.into(), "only a batch without gaps can be trimmed");
    }
    if old.attributes.timestamp_type() == TimestampType::LogAppendTime {
        let reason = "records with log append time are not trimmed yet";
        return bad("attributes", old.attributes.0.into(), reason);
    }
    let skipped = match i32::try_from(first_offset.saturating_sub(old.base_offset)) {
        Ok(skipped) if skipped <= old.last_offset_delta => skipped.max(0),
        Err(_) if first_offset < old.base_offset => 0,
        _ => return bad("first offset", first_offset, "the batch ends below it"),
    };
    let mut base = *old;
    base.base_offset += i64::from(skipped);
    if old.base_sequence >= 0 {
        base.base_sequence = sequence_after(old.base_sequence, skipped);
    }
    // The base timestamp becomes the first record's, which is no horizon.
    base.attributes = old.attributes.without_delete_horizon();
    let mut new = BatchBuilder::like(&base);
    for (expected, record) in (0..).zip(records(view, bytes_max)?) {
        let record = record?;
        if record.offset_delta != expected {
            return bad("offset delta", record.offset_delta.into(), "offsets of a dense batch follow on");
        }
        if expected >= skipped {
            let timestamp_ms = old.base_timestamp.wrapping_add(record.timestamp_delta);
            new.push_record(timestamp_ms, record).map_err(|error| refused(&error))?;
        }
    }
    new.build().map_err(|error| refused(&error))
}

fn refused(error: &EncodeError) -> DecodeError {
    DecodeError::Refused { what: "trimmed batch", reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::batch::{Compression, ProducerStamp};
    use crate::record::{Header, Record};

    const MB: usize = 1 << 20;

    fn batch(compression: Compression, records: i64) -> BatchView {
        let stamp = ProducerStamp { producer_id: 9, producer_epoch: 1, base_sequence: i32::MAX - 2 };
        let mut builder = BatchBuilder::new().compression(compression).producer(stamp).base_offset(1000);
        for index in 0..records {
            let text = |what: &str| Some(Bytes::from(format!("{what} {index}")));
            let header = |value| Header { key: Bytes::from_static(b"h"), value };
            let headers = vec![header(None), header(text("header")), header(None)];
            // Timestamps fall, so that deltas are negative and the largest is cut off.
            builder
                .push(5_000 - index, text("key").filter(|_| index % 3 > 0), text("value"), headers)
                .unwrap();
        }
        builder.build().unwrap()
    }

    fn absolute(view: &BatchView) -> Vec<(i64, i64, Record)> {
        let base = *view.header();
        records(view, MB)
            .unwrap()
            .map(|record| {
                let mut record = record.unwrap();
                let at = (
                    base.base_offset + i64::from(record.offset_delta),
                    base.base_timestamp + record.timestamp_delta,
                );
                (record.offset_delta, record.timestamp_delta) = (0, 0);
                (at.0, at.1, record)
            })
            .collect()
    }

    #[test]
    fn every_codec_keeps_the_records_from_the_first_offset_on() {
        for compression in Compression::ALL {
            let whole = batch(compression, 10);
            for kept in 1..=10 {
                let first_offset = 1010 - kept;
                let trimmed = trim(&whole, first_offset, MB).unwrap();
                trimmed.check_crc().unwrap();
                let header = trimmed.header();
                assert_eq!(header.attributes.compression(), Ok(compression));
                assert_eq!((header.base_offset, header.last_offset()), (first_offset, 1009));
                assert_eq!(header.last_sequence(), whole.header().last_sequence());
                assert_eq!((header.base_timestamp, header.max_timestamp), (4_990 + kept, 4_990 + kept));
                assert!(header.is_dense());
                let skipped = usize::try_from(10 - kept).unwrap();
                assert_eq!(absolute(&trimmed), absolute(&whole)[skipped..]);
            }
        }
    }

    #[test]
    fn an_offset_at_or_below_the_batch_keeps_all() {
        let whole = batch(Compression::None, 3);
        for first_offset in [i64::MIN, -1, 0, 999, 1000] {
            assert_eq!(trim(&whole, first_offset, MB), Ok(whole.clone()));
        }
    }

    #[test]
    fn an_offset_behind_the_batch_is_an_error() {
        for first_offset in [1003, 1004, i64::MAX] {
            let error = trim(&batch(Compression::None, 3), first_offset, MB).unwrap_err();
            assert!(matches!(error, DecodeError::BadValue { field: "first offset", .. }), "{error}");
        }
    }

    #[test]
    fn a_damaged_batch_gets_no_fresh_crc() {
        let mut bytes = batch(Compression::None, 3).bytes().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        let error = trim(&BatchView::parse(bytes.into()).unwrap(), 1001, MB).unwrap_err();
        assert!(matches!(error, DecodeError::BadValue { field: "batch crc", .. }), "{error}");
    }

    #[test]
    fn the_limit_on_unpacked_bytes_holds() {
        let whole = batch(Compression::Zstd, 10);
        assert!(matches!(trim(&whole, 1001, 100), Err(DecodeError::Refused { what: "zstd", .. })));
    }
}
