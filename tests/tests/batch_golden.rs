//! What real brokers sent, read by our codecs and held against a Java consumer's reading and the message crate's.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{FetchResponse as TheirFetch, ProduceResponse as TheirProduce};
use kafka_protocol::protocol::Decodable;
use twinlog_protocol::TopicRef;
use twinlog_protocol::batch::{
    BatchView, Dropped, Entry, ProducerStamp, Verdict, batches, rewrite, sequence_after,
};
use twinlog_protocol::fetch::{AbortedTransaction, FetchResponse};
use twinlog_protocol::produce::{ProduceResponse, RecordError};
use twinlog_protocol::record::{BatchBuilder, Merge, Reencoded, decompress, records, reencode, upgrade};

const SETS: [&str; 3] = ["4.3.1", "2.8.2", "librdkafka-2.16.0"];
const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];
const UNPACKED_BYTES_MAX: usize = 1 << 20;

fn fixture(name: &str) -> Bytes {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/batches").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into()
}

fn lines(name: &str) -> Vec<String> {
    String::from_utf8(fixture(name).to_vec()).unwrap().lines().map(str::to_owned).collect()
}

/// The batches of a log, proven to be all its bytes, each with the right CRC.
fn log(name: &str) -> Vec<BatchView> {
    let bytes = fixture(name);
    let mut walk = batches(bytes.clone());
    let views: Vec<BatchView> = walk
        .by_ref()
        .map(|entry| match entry.unwrap() {
            Entry::Batch(view) => view,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(walk.incomplete(), None);
    let mut rebuilt = Vec::new();
    for view in &views {
        view.check_crc().unwrap();
        rebuilt.extend_from_slice(&view.header().encode());
        rebuilt.extend_from_slice(&view.body());
    }
    assert_eq!(rebuilt, bytes, "{name}");
    views
}

/// The records in the words of the Java consumer's listing.
fn listing(view: &BatchView) -> Vec<String> {
    let text = |bytes: Option<&Bytes>| match bytes {
        None => "null".to_owned(),
        Some(bytes) => bytes.iter().fold("x".to_owned(), |text, byte| text + &format!("{byte:02x}")),
    };
    records(view, UNPACKED_BYTES_MAX)
        .unwrap()
        .map(|record| {
            let record = record.unwrap();
            let offset = view.header().base_offset + i64::from(record.offset_delta);
            let timestamp_ms = view.header().base_timestamp + record.timestamp_delta;
            let mut fields = vec![offset.to_string(), timestamp_ms.to_string()];
            fields.extend([text(record.key.as_ref()), text(record.value.as_ref())]);
            for header in &record.headers {
                fields.push(format!("{}={}", text(Some(&header.key)), text(header.value.as_ref())));
            }
            fields.join("\t")
        })
        .collect()
}

fn every_codec(mut check: impl FnMut(&str, &[BatchView])) {
    for set in SETS {
        for codec in CODECS {
            let name = format!("{set}/{codec}.bin");
            check(&name, &log(&name));
        }
    }
}

#[test]
fn records_are_those_that_a_java_consumer_reads() {
    every_codec(|name, views| {
        let ours: Vec<String> = views.iter().flat_map(listing).collect();
        assert_eq!(ours, lines("records.tsv"), "{name}");
        assert!(views.iter().all(|view| Entry::Batch(view.clone()).verdict(0) == Verdict::HeaderOnly));
    });
}

/// The records of messages from before Kafka 0.11, from an offset on, in the words of the Java consumer's listing; and how
/// many messages and wrappers they are.
fn old_listing(name: &str, magic: i8, from: i64) -> (Vec<String>, usize) {
    let text = |bytes: &Option<Bytes>| {
        bytes.as_ref().map_or("null".to_owned(), |bytes| String::from_utf8(bytes.to_vec()).unwrap())
    };
    let mut listing = Vec::new();
    let entries: Vec<Entry> = batches(fixture(name)).map(Result::unwrap).collect();
    for entry in &entries {
        let Entry::Legacy { magic: found, bytes, .. } = entry else { panic!("{name}: {entry:?}") };
        assert_eq!(*found, magic, "{name}");
        let Some(new) = upgrade(bytes, from, UNPACKED_BYTES_MAX).unwrap() else { continue };
        let Reencoded { view, .. } = &new;
        view.check_crc().unwrap();
        let packing = view.header().attributes.compression().unwrap();
        assert!(
            name.ends_with(&format!("{packing:?}.log").to_lowercase()),
            "{name} keeps its codec: {packing:?}"
        );
        for (record, index) in records(view, UNPACKED_BYTES_MAX).unwrap().zip(0..) {
            let record = record.unwrap();
            let timestamp_ms = view.header().timestamp_ms(record.timestamp_delta);
            let (key, value) = (text(&record.key), text(&record.value));
            listing.push(format!("{}\t{timestamp_ms}\t{key}\t{value}", new.offset_at(index)));
        }
    }
    (listing, entries.len())
}

#[test]
fn records_of_old_formats_are_those_that_a_java_consumer_reads() {
    for set in ["2.8.2", "2.4.1"] {
        for magic in 0..=1 {
            let expected = lines(&format!("{set}/magic{magic}.tsv"));
            assert_eq!(expected.len(), 8);
            for codec in ["none", "gzip", "snappy", "lz4"] {
                let name = format!("{set}/magic{magic}-{codec}.log");
                let (listing, messages) = old_listing(&name, magic, 0);
                assert_eq!(listing, expected, "{name}");
                assert!(if codec == "none" { messages == 8 } else { messages < 4 }, "{name}: {messages}");
                // Reading begins inside a wrapper, whose offsets are absolute (0) or count from its first message (1).
                for from in 1..8 {
                    let (listing, _) = old_listing(&name, magic, from);
                    assert_eq!(listing, expected[usize::try_from(from).unwrap()..], "{name} from {from}");
                }
            }
        }
    }
}

#[test]
fn records_encode_to_the_same_bytes() {
    every_codec(|name, views| {
        for view in views {
            let codec = view.header().attributes.compression().unwrap();
            let payload = decompress(codec, &view.body(), UNPACKED_BYTES_MAX).unwrap();
            let mut again = BytesMut::new();
            for record in records(view, UNPACKED_BYTES_MAX).unwrap() {
                record.unwrap().encode(&mut again).unwrap();
            }
            assert_eq!(again, payload, "{name}");
        }
    });
}

#[test]
fn a_batch_built_from_its_records_has_the_same_header() {
    every_codec(|name, views| {
        for view in views {
            let header = *view.header();
            let (producer_id, producer_epoch) = (header.producer_id, header.producer_epoch);
            let stamp = ProducerStamp { producer_id, producer_epoch, base_sequence: header.base_sequence };
            let mut builder = BatchBuilder::new()
                .compression(header.attributes.compression().unwrap())
                .producer(stamp)
                .base_offset(header.base_offset);
            for record in records(view, UNPACKED_BYTES_MAX).unwrap() {
                let record = record.unwrap();
                let timestamp_ms = header.base_timestamp + record.timestamp_delta;
                builder.push(timestamp_ms, record.key, record.value, record.headers).unwrap();
            }
            let built = builder.build().unwrap();
            let mut expected = header;
            // The broker wrote its leader epoch; a codec may pack differently.
            expected.partition_leader_epoch = -1;
            expected.batch_length = built.header().batch_length;
            expected.crc = built.header().crc;
            assert_eq!(*built.header(), expected, "{name}");
            assert_eq!(listing(&built), listing(view), "{name}");
            if name.ends_with("none.bin") {
                assert_eq!(built.body(), view.body());
                assert_eq!(built.header().crc, header.crc);
            }
        }
    });
}

#[test]
fn reading_from_anywhere_leaves_the_rest() {
    every_codec(|name, views| {
        let all = lines("records.tsv");
        for view in views {
            let end = usize::try_from(view.header().next_offset()).unwrap();
            for first_offset in view.header().base_offset..view.header().next_offset() {
                let rest = reencode(view, first_offset, UNPACKED_BYTES_MAX).unwrap().unwrap();
                rest.view.check_crc().unwrap();
                assert_eq!(rest.gaps, [], "{name} {first_offset}");
                assert_eq!(
                    listing(&rest.view),
                    all[usize::try_from(first_offset).unwrap()..end],
                    "{name} {first_offset}"
                );
            }
        }
    });
}

#[test]
fn batches_of_a_log_merge_into_one_with_the_same_records() {
    every_codec(|name, views| {
        assert!(views.len() > 1, "{name}: {}", views.len());
        let mut merge = Merge::begin(&views[0], None, UNPACKED_BYTES_MAX).unwrap();
        for view in &views[1..] {
            assert_eq!(merge.push(view), Ok(true), "{name}");
        }
        let merged = merge.finish().unwrap();
        merged.check_crc().unwrap();
        assert_eq!(listing(&merged), lines("records.tsv"), "{name}");
        assert_eq!(Entry::Batch(merged.clone()).verdict(0), Verdict::HeaderOnly);
        let (header, first) = (*merged.header(), views[0].header());
        assert_eq!(header.attributes, first.attributes, "{name}");
        assert_eq!(Some(header.max_timestamp), views.iter().map(|view| view.header().max_timestamp).max());
        let end = views.last().unwrap().header().next_offset();
        assert_eq!((header.base_offset, header.next_offset()), (first.base_offset, end), "{name}");
    });
}

#[test]
fn a_header_of_ours_keeps_the_crc_right() {
    let stamp = ProducerStamp { producer_id: 4711, producer_epoch: 8000, base_sequence: i32::MAX };
    for name in ["4.3.1/transactions.bin", "2.8.2/transactions.bin", "4.3.1/zstd.bin"] {
        for view in log(name) {
            let sent = rewrite(&view, stamp);
            let sent = BatchView::parse([&sent.head[..], &sent.body].concat().into()).unwrap();
            sent.check_crc().unwrap();
            assert!(!sent.header().attributes.is_transactional());
            assert_eq!(
                sent.header().last_sequence(),
                sequence_after(i32::MAX, view.header().last_offset_delta)
            );
        }
    }
}

#[test]
fn transaction_markers_are_dropped_and_their_records_kept() {
    for set in &SETS[..2] {
        let views = log(&format!("{set}/transactions.bin"));
        let control = |view: &BatchView| view.header().attributes.is_control();
        assert_eq!(views.iter().filter(|view| control(view)).count(), 3);
        let kept = views.iter().filter(|view| match Entry::Batch((*view).clone()).verdict(0) {
            Verdict::HeaderOnly => true,
            Verdict::Drop(Dropped::Control) => false,
            other => panic!("{other:?}"),
        });
        assert_eq!(kept.flat_map(listing).collect::<Vec<_>>(), lines("transactions.tsv"));
        assert!(views.iter().all(|view| view.header().attributes.is_transactional()));
    }
}

fn bodies(api: &str) -> impl Iterator<Item = (&'static str, i16, Bytes)> {
    let versions = match api {
        "fetch" => [10..=16, 10..=12],
        _ => [3..=13, 3..=9],
    };
    let sets = SETS.into_iter().zip(versions);
    sets.flat_map(move |(set, versions)| {
        versions.map(move |version| (set, version, fixture(&format!("{set}/{api}-v{version}.body"))))
    })
}

fn same_topic(ours: &TopicRef, name: &str, id: u128) -> bool {
    match ours {
        TopicRef::Name(ours) => **ours == *name,
        TopicRef::Id(ours) => *ours == id,
    }
}

#[test]
fn fetch_answers_are_read_as_the_message_crate_reads_them() {
    for (set, version, body) in bodies("fetch") {
        let ours = FetchResponse::decode(version, body.clone()).unwrap();
        let theirs = TheirFetch::decode(&mut body.clone(), version).unwrap();
        let at = format!("{set} version {version}");
        let head = (ours.throttle_time_ms, ours.error_code, ours.session_id, ours.node_endpoints.len());
        let expected =
            (theirs.throttle_time_ms, theirs.error_code, theirs.session_id, theirs.node_endpoints.len());
        assert_eq!(head, expected, "{at}");
        let theirs = theirs
            .responses
            .iter()
            .flat_map(|topic| topic.partitions.iter().map(move |partition| (topic, partition)));
        for (ours, (topic, theirs)) in ours.partitions.iter().zip(theirs) {
            assert!(same_topic(&ours.topic, &topic.topic.0, topic.topic_id.as_u128()), "{at}");
            assert_eq!(ours.partition, theirs.partition_index, "{at}");
            assert_eq!(ours.error_code, theirs.error_code, "{at}");
            assert_eq!(ours.high_watermark, theirs.high_watermark, "{at}");
            assert_eq!(ours.last_stable_offset, theirs.last_stable_offset, "{at}");
            assert_eq!(ours.log_start_offset, theirs.log_start_offset, "{at}");
            assert_eq!(ours.preferred_read_replica, theirs.preferred_read_replica.0, "{at}");
            let diverging = &theirs.diverging_epoch;
            let diverging = (diverging.epoch >= 0).then_some((diverging.epoch, diverging.end_offset));
            assert_eq!(ours.diverging_epoch, diverging, "{at}");
            let leader = &theirs.current_leader;
            let leader = (leader.leader_id.0 >= 0).then_some((leader.leader_id.0, leader.leader_epoch));
            assert_eq!(ours.current_leader, leader, "{at}");
            let aborted = theirs.aborted_transactions.iter().flatten();
            let aborted: Vec<_> = aborted
                .map(|theirs| AbortedTransaction {
                    producer_id: theirs.producer_id.0,
                    first_offset: theirs.first_offset,
                })
                .collect();
            assert_eq!(ours.aborted, aborted, "{at}");
            assert_eq!(&ours.records, theirs.records.as_ref().unwrap_or(&Bytes::new()), "{at}");
            let inside = body.as_ptr_range().contains(&ours.records.as_ptr());
            assert!(inside || ours.records.is_empty(), "{at}: a slice, no copy");
        }
    }
}

#[test]
fn fetch_answers_hold_every_kind_of_partition() {
    let (set, version, body) = bodies("fetch").find(|body| body.1 == 16).unwrap();
    assert_eq!((set, version), ("4.3.1", 16));
    let answer = FetchResponse::decode(16, body).unwrap();
    let errors: Vec<i16> = answer.partitions.iter().map(|partition| partition.error_code).collect();
    // None, none, fenced leader epoch, none (diverging), unknown topic id.
    assert_eq!(errors, [0, 0, 74, 0, 100]);
    assert_eq!(answer.partitions[1].aborted.len(), 1);
    assert_eq!(answer.partitions[2].current_leader, Some((1, 2)));
    assert_eq!(answer.partitions[3].diverging_epoch, Some((0, 8)));
    assert_eq!(answer.node_endpoints.len(), 1);
    assert_eq!((answer.node_endpoints[0].node_id, answer.node_endpoints[0].port), (1, 19_400));
}

#[test]
fn produce_answers_are_read_as_the_message_crate_reads_them() {
    for (set, version, body) in bodies("produce") {
        let ours = ProduceResponse::decode(version, body.clone()).unwrap();
        let theirs = TheirProduce::decode(&mut body.clone(), version).unwrap();
        let at = format!("{set} version {version}");
        assert_eq!(ours.throttle_time_ms, theirs.throttle_time_ms, "{at}");
        assert_eq!(ours.node_endpoints.len(), theirs.node_endpoints.len(), "{at}");
        let mut errors: Vec<i16> = ours.partitions.iter().map(|partition| partition.error_code).collect();
        errors.sort_unstable();
        // Appended, wrong CRC, no such topic, a record that its topic refuses.
        let unknown = if version < 13 { 3 } else { 100 };
        assert_eq!(errors.len(), 4, "{at}");
        for error in [0, 2, 87, unknown] {
            assert!(errors.contains(&error), "{at}: {errors:?} without {error}");
        }
        let theirs = theirs
            .responses
            .iter()
            .flat_map(|topic| topic.partition_responses.iter().map(move |partition| (topic, partition)));
        for (ours, (topic, theirs)) in ours.partitions.iter().zip(theirs) {
            assert!(same_topic(&ours.topic, &topic.name.0, topic.topic_id.as_u128()), "{at}");
            assert_eq!(ours.partition, theirs.index, "{at}");
            assert_eq!(ours.error_code, theirs.error_code, "{at}");
            assert_eq!(ours.base_offset, theirs.base_offset, "{at}");
            assert_eq!(ours.log_append_time_ms, theirs.log_append_time_ms, "{at}");
            assert_eq!(ours.log_start_offset, theirs.log_start_offset, "{at}");
            assert_eq!(ours.error_message.as_deref(), theirs.error_message.as_deref(), "{at}");
            let records = theirs.record_errors.iter().map(|error| {
                let message = error.batch_index_error_message.as_ref().map(ToString::to_string);
                RecordError { batch_index: error.batch_index, message }
            });
            assert_eq!(ours.record_errors, records.collect::<Vec<_>>(), "{at}");
        }
    }
}
