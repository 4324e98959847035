//! Bodies of the fuzz targets: any bytes go in, what must hold of the answer is asserted.
//!
//! F1 Nothing panics or reserves by a length that the input names. F2 Slices that come out lie in the input. F3 A
//! patched CRC is as right, or wrong by the same bits, as the one that came. F4 Re-encoding keeps records as consumers see them.
//! F5 Merging, cutting and packing anew keep all records.

use bytes::Bytes;

use crate::batch::{
    BatchHeader, BatchView, Compression, Entry, HEADER_BYTES, ProducerStamp, Verdict, batches, crc, rewrite,
    verdict,
};
use crate::message::types::{
    ApiVersionsRequest, CreatePartitionsRequest, CreateTopicsRequest, DescribeConfigsRequest,
    DescribeProducersRequest, IncrementalAlterConfigsRequest, InitProducerIdRequest, ListOffsetsRequest,
    MetadataRequest, OffsetForLeaderEpochRequest,
};
use crate::message::{Request, decode_frame};
use crate::record::{Merge, Record, Reencoded, Repack, records, reencode, split, upgrade};
use crate::{DecodeError, fetch, produce};

const UNPACKED_BYTES_MAX: usize = 1 << 20;

/// A Fetch answer: the first byte picks the version, the rest is the body.
pub fn fetch_response(input: &[u8]) {
    let Some((pick, body)) = input.split_first() else { return };
    let versions: Vec<i16> = fetch::VERSIONS.collect();
    let version = versions[usize::from(*pick) % versions.len()];
    let body = Bytes::copy_from_slice(body);
    let Ok(response) = fetch::FetchResponse::decode(version, body.clone()) else { return };
    for partition in response.partitions {
        assert_inside(&partition.records, &body);
        walk(&partition.records);
    }
}

/// An answer to any request but Fetch: the first byte picks the request, the second one its version, the rest is the frame
/// behind its length.
pub fn answer(input: &[u8]) {
    let [pick, version, frame @ ..] = input else { return };
    let frame = Bytes::copy_from_slice(frame);
    match pick % 11 {
        0 => message::<ApiVersionsRequest>(*version, frame),
        1 => message::<CreatePartitionsRequest>(*version, frame),
        2 => message::<CreateTopicsRequest>(*version, frame),
        3 => message::<DescribeConfigsRequest>(*version, frame),
        4 => message::<DescribeProducersRequest>(*version, frame),
        5 => message::<IncrementalAlterConfigsRequest>(*version, frame),
        6 => message::<InitProducerIdRequest>(*version, frame),
        7 => message::<ListOffsetsRequest>(*version, frame),
        8 => message::<MetadataRequest>(*version, frame),
        9 => message::<OffsetForLeaderEpochRequest>(*version, frame),
        _ => {
            let versions: Vec<i16> = produce::VERSIONS.collect();
            // Nothing is asked of what it decodes to.
            let _ = produce::ProduceResponse::decode(versions[usize::from(*version) % versions.len()], frame);
        }
    }
}

fn message<R: Request>(version: u8, frame: Bytes) {
    let (first, last) = (R::API.versions().min, R::API.versions().max);
    let version = first + i16::from(version) % (last - first + 1);
    let correlation_id = frame.first_chunk().map_or(0, |bytes| i32::from_be_bytes(*bytes));
    // As above.
    let _ = decode_frame::<R>(frame, version, correlation_id);
}

/// The records of a partition, and the header at their start.
pub fn batch_header(input: &[u8]) {
    if let Ok(header) = BatchHeader::parse(input) {
        assert_eq!(header.encode(), input[..HEADER_BYTES], "a header encodes to what it was read from");
    }
    walk(&Bytes::copy_from_slice(input));
}

fn walk(input: &Bytes) {
    let mut entries = batches(input.clone());
    let mut walked_bytes = 0;
    for entry in entries.by_ref() {
        match entry {
            Ok(Entry::Batch(view)) => {
                assert_inside(view.bytes(), input);
                walked_bytes += view.bytes().len();
                forwarded(&view);
                reencoded(&view);
                merged(&view);
                cut(&view);
                repacked(&view);
            }
            Ok(Entry::Legacy { bytes, offset, .. }) => {
                assert_inside(&bytes, input);
                walked_bytes += bytes.len();
                upgraded(&bytes, offset);
            }
            Err(_) => return,
        }
    }
    let cut = entries.incomplete();
    assert_eq!(walked_bytes < input.len(), cut.is_some(), "what is left over is a batch that was cut");
    assert!(cut.is_none_or(|cut| cut.needed_bytes > input.len() - walked_bytes));
}

fn forwarded(view: &BatchView) {
    let stamp = ProducerStamp { producer_id: 1 << 40, producer_epoch: 8191, base_sequence: i32::MAX };
    let sent = rewrite(view, stamp);
    assert_inside(&sent.body, view.bytes());
    let header = BatchHeader::parse(&sent.head).expect("a rewritten header is sound");
    let wrong_before = view.header().crc ^ crc::computed(&view.header().encode(), &view.body());
    let wrong_after = header.crc ^ crc::computed(&sent.head, &sent.body);
    assert_eq!(wrong_before, wrong_after, "a patched CRC says of the payload what it said before");
    let fields = (header.base_offset, header.producer_id, header.producer_epoch, header.base_sequence);
    assert_eq!(fields, (0, stamp.producer_id, stamp.producer_epoch, stamp.base_sequence));
}

fn reencoded(view: &BatchView) {
    let view = sound(view);
    let header = view.header();
    let first_offset = header.base_offset + i64::from(header.last_offset_delta / 2);
    if header.base_offset < first_offset && verdict(header, 0) == Verdict::HeaderOnly {
        assert_eq!(verdict(header, first_offset), Verdict::Reencode);
    }
    let Ok(kept) = reencode(&view, first_offset, UNPACKED_BYTES_MAX) else { return };
    let Ok(mut all) = absolute(&view) else { return };
    all.retain(|(offset, ..)| *offset >= first_offset);
    let Some(Reencoded { view: kept, gaps }) = kept else {
        return assert!(all.is_empty(), "records at or behind the first offset are kept");
    };
    assert_eq!(kept.check_crc(), Ok(()));
    assert!(kept.header().is_dense());
    let mut rest = absolute(&kept).expect("re-encoding wrote them");
    for gap in gaps {
        let (from, index) = (&mut rest[gap.index as usize..], gap.index);
        let moved = gap.offset - from[0].0;
        assert!(moved > 0, "the gap before record {index} is none");
        from.iter_mut().for_each(|(offset, ..)| *offset += moved);
    }
    assert_eq!(rest, all, "re-encoding keeps records as consumers see them");
}

/// A message of an old format, its CRC made right.
fn upgraded(message: &Bytes, offset: i64) {
    const CRC_AT: usize = 12;
    let mut sound = message.to_vec();
    let mut crc = flate2::Crc::new();
    crc.update(&sound[CRC_AT + 4..]);
    sound[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.sum().to_be_bytes());
    let Ok(Some(Reencoded { view, gaps })) = upgrade(&sound.into(), 0, UNPACKED_BYTES_MAX) else {
        return;
    };
    assert_eq!(view.check_crc(), Ok(()));
    assert!(view.header().is_dense());
    assert!(gaps.iter().all(|gap| gap.offset <= offset), "a message has the offset of its last record");
    absolute(&view).expect("what was written is read");
}

/// The batch, and itself once more behind it.
fn merged(view: &BatchView) {
    let first = sound(view);
    let mut header = *first.header();
    header.base_offset = header.next_offset();
    let Ok(second) = BatchView::parse([&header.encode()[..], &first.body()].concat().into()) else { return };
    let Ok(mut merge) = Merge::begin(&first, None, UNPACKED_BYTES_MAX) else { return };
    let views = if merge.push(&second) == Ok(true) { vec![first, second] } else { vec![first] };
    let one = merge.finish().expect("records that were read are written");
    assert_eq!(one.check_crc(), Ok(()));
    assert!(one.header().is_dense());
    let Ok(all) = views.iter().map(absolute).collect::<Result<Vec<_>, _>>() else { return };
    assert_eq!(absolute(&one), Ok(all.concat()), "merging keeps all records as they are");
}

/// The batch in several.
fn cut(view: &BatchView) {
    let whole = Reencoded { view: sound(view), gaps: Vec::new() };
    let Ok(pieces) = split(&whole, view.bytes().len() / 2, UNPACKED_BYTES_MAX) else { return };
    let Ok(all) = absolute(&whole.view) else { return };
    assert!(pieces.len() > 1 || all.len() < 2, "several records are cut");
    let parts: Result<Vec<_>, _> = pieces.iter().map(|piece| absolute(&piece.view)).collect();
    assert_eq!(parts.map(|parts| parts.concat()), Ok(all), "cutting keeps all records as they are");
}

/// The batch in another codec, in pieces.
fn repacked(view: &BatchView) {
    let whole = Reencoded { view: sound(view), gaps: Vec::new() };
    let all = absolute(&whole.view);
    let Ok(mut repack) = Repack::begin(whole, Compression::Snappy, UNPACKED_BYTES_MAX) else { return };
    let mut came = Vec::new();
    let fault = loop {
        match repack.next_piece(100) {
            Ok(Some(piece)) => came.push(piece.view),
            Ok(None) => break None,
            Err(fault) => break Some(fault),
        }
    };
    assert!(came.iter().all(|piece| piece.check_crc() == Ok(()) && piece.header().is_dense()));
    let Ok(all) = all else { return };
    // Every record may have been read although there is something behind the last one, or a gap before it.
    let came: Vec<_> =
        came.iter().flat_map(|piece| absolute(piece).expect("sound records stay so")).collect();
    assert!(all.starts_with(&came) && (fault.is_some() || came == all), "packing anew keeps all records");
}

/// The batch with the right CRC, so that what lies behind that check is reached.
fn sound(view: &BatchView) -> BatchView {
    let (mut header, body) = (*view.header(), view.body());
    header.crc = crc::computed(&header.encode(), &body);
    let bytes = [&header.encode()[..], &body].concat();
    BatchView::parse(bytes.into()).expect("only the CRC has changed")
}

/// Records with their offset, and the timestamp that a consumer sees.
fn absolute(view: &BatchView) -> Result<Vec<(i64, i64, Record)>, DecodeError> {
    records(view, UNPACKED_BYTES_MAX)?
        .map(|record| {
            let record = record?;
            let offset = view.header().base_offset + i64::from(record.offset_delta);
            let timestamp_ms = view.header().timestamp_ms(record.timestamp_delta);
            Ok((offset, timestamp_ms, Record { offset_delta: 0, timestamp_delta: 0, ..record }))
        })
        .collect()
}

fn assert_inside(slice: &Bytes, input: &Bytes) {
    if slice.is_empty() {
        return;
    }
    let (outer, inner) = (input.as_ptr_range(), slice.as_ptr_range());
    assert!(outer.start <= inner.start && inner.end <= outer.end, "a slice lies outside the input");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_walked(input in proptest::collection::vec(any::<u8>(), 0..500)) {
            super::fetch_response(&input);
            super::batch_header(&input);
            super::answer(&input);
        }
    }
}
