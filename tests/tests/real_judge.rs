//! The harness itself on real brokers: the judge fails a lost, repeated, moved or altered record, and nothing survives.

use std::{net::TcpStream, time::Duration};

use anyhow::Result;
use twinlog_tests::{
    deadline::Deadline,
    judge::{Codec, Judge, NewTopic, Nulls, TopicPair, Verdict, WriteRecords},
    real::{
        Version,
        kafka::{Cluster, ClusterSpec},
        log_dump,
    },
};

const THEN: i64 = 1_700_000_000_000;

/// A source of 100 records in one partition, and copies made by hand.
struct Copies {
    cluster: Cluster,
    judge: Judge,
    number: u32,
}

impl Copies {
    fn start() -> Result<Self> {
        let cluster = Cluster::start("judge", &ClusterSpec::single(Version::V4_3_1))?;
        let mut judge = Judge::start()?;
        judge.ready(&cluster)?;
        let mut copies = Self { cluster, judge, number: 0 };
        copies.write("original", &[records(0, 100)])?;
        Ok(copies)
    }

    fn write(&mut self, topic: &str, parts: &[WriteRecords]) -> Result<()> {
        self.judge.create_topics(&self.cluster, &[NewTopic::new(topic, 1)])?;
        parts.iter().try_for_each(|part| {
            self.judge.write(&self.cluster, &WriteRecords { topic: topic.to_owned(), ..part.clone() })
        })
    }

    /// The original and a copy made of `parts`.
    fn copied(&mut self, parts: &[WriteRecords]) -> Result<TopicPair> {
        self.number += 1;
        let target = format!("copy-{}", self.number);
        self.write(&target, parts)?;
        Ok(TopicPair { source: "original".to_owned(), target })
    }

    /// What the judge says about a copy made of `parts`.
    fn judged(&mut self, parts: &[WriteRecords]) -> Result<Verdict> {
        let pair = self.copied(parts)?;
        self.judge.compare(&self.cluster, &self.cluster, &[pair])
    }

    /// Keys whose last values differ in a copy made of `parts`.
    fn latest_judged(&mut self, parts: &[WriteRecords]) -> Result<Vec<String>> {
        let pair = self.copied(parts)?;
        Ok(self.judge.compare_latest(&self.cluster, &self.cluster, &pair)?.differences)
    }
}

/// The records `first..end` as the original has them.
fn records(first: u32, end: u32) -> WriteRecords {
    WriteRecords {
        first_id: u64::from(first),
        timestamp_ms: Some(THEN + i64::from(first)),
        headers: true,
        codec: Codec::Lz4,
        ..WriteRecords::new("", 1, end - first)
    }
}

fn counts(verdict: &Verdict) -> [u64; 4] {
    [verdict.lost, verdict.repeated, verdict.foreign, verdict.out_of_order]
}

#[test]
fn the_judge_tells_an_exact_copy_from_every_other() -> Result<()> {
    let mut copies = Copies::start()?;
    // Headers are missing on every fourth record, by place in a write: whole fours keep them.
    let exact = copies.judged(&[records(0, 60), records(60, 100)])?;
    assert_eq!((exact.records, counts(&exact), exact.differences.len()), (100, [0; 4], 0));

    let lost = copies.judged(&[records(0, 48), records(52, 100)])?;
    assert_eq!((lost.records, counts(&lost)), (48, [4, 0, 0, 0]), "{:?}", lost.differences);
    let end_lost = copies.judged(&[records(0, 99)])?;
    assert_eq!(counts(&end_lost), [1, 0, 0, 0], "{:?}", end_lost.differences);
    let repeated = copies.judged(&[records(0, 52), records(48, 100)])?;
    assert_eq!(counts(&repeated), [0, 4, 0, 0], "{:?}", repeated.differences);
    let moved = copies.judged(&[records(0, 40), records(48, 100), records(40, 48)])?;
    assert_eq!(counts(&moved), [0, 0, 0, 8], "{:?}", moved.differences);

    let altered = |part: WriteRecords| [records(0, 40), part, records(44, 100)];
    let cases = [
        ("value", altered(WriteRecords { value_bytes: 101, ..records(40, 44) })),
        ("key", altered(WriteRecords { nulls: Nulls::Keys, ..records(40, 44) })),
        ("timestamp", altered(WriteRecords { timestamp_ms: Some(THEN), ..records(40, 44) })),
        ("number of headers", altered(WriteRecords { headers: false, ..records(40, 44) })),
    ];
    for (field, parts) in cases {
        let verdict = copies.judged(&parts)?;
        assert!(
            verdict.differences[0].starts_with(&format!("{field}:")),
            "{field}: {:?}",
            verdict.differences
        );
        assert!(verdict.lost >= 3 && verdict.foreign == verdict.lost, "{field}: {verdict:?}");
        assert!(verdict.ensure_equal().is_err());
    }
    let empty = copies.judged(&[])?;
    assert_eq!(counts(&empty), [100, 0, 0, 0]);
    Ok(())
}

#[test]
fn the_judge_tells_what_readers_of_a_compacted_topic_end_with() -> Result<()> {
    let mut copies = Copies::start()?;
    let others = |first, end| WriteRecords { value_bytes: 101, ..records(first, end) };
    let thinned_or_repeated = [others(0, 20), records(0, 60), records(48, 100)];
    assert_eq!(copies.latest_judged(&thinned_or_repeated)?, [""; 0], "the last values are equal");
    for (what, parts, key, side) in [
        ("a lost key", vec![records(0, 99)], "key-99", "target none"),
        ("a key more", vec![records(0, 101)], "key-100", "source none"),
        ("another last value", vec![records(0, 100), others(40, 41)], "key-40", "source id-40"),
        ("a key lost in between", vec![records(0, 40), records(41, 100)], "key-40", "target none"),
    ] {
        let differences = copies.latest_judged(&parts)?;
        let [difference] = &differences[..] else { panic!("{what}: {differences:?}") };
        assert!(
            difference.contains(&format!("original-0 {key}: ")) && difference.contains(side),
            "{difference}"
        );
    }
    Ok(())
}

#[test]
fn a_killed_broker_keeps_its_records_and_a_dropped_cluster_is_gone() -> Result<()> {
    let mut copies = Copies::start()?;
    copies.write("zstd", &[WriteRecords { codec: Codec::Zstd, ..records(0, 500) }])?;
    let batches = log_dump::dump(&copies.cluster, 1, "zstd", 0)?;
    assert!(
        batches.iter().all(|batch| batch.codec == "zstd" && batch.valid && !batch.control),
        "{batches:?}"
    );
    assert_eq!(batches.iter().map(|batch| batch.count).sum::<i64>(), 500);
    assert_eq!(log_dump::dump(&copies.cluster, 1, "original", 0)?[0].codec, "lz4");

    copies.cluster.kill(1)?;
    copies.cluster.restart(1)?;
    copies.judge.settled(&copies.cluster)?;
    let pair = TopicPair::same("original");
    let verdict = copies.judge.compare(&copies.cluster, &copies.cluster, &[pair])?;
    assert_eq!(verdict.ensure_equal()?.records, 100);
    let address = copies.cluster.bootstrap();
    let data = copies.cluster.data(1)?;
    drop(copies);
    let limit = Deadline::after(Duration::from_secs(5));
    limit.wait("the port to close", || Ok(TcpStream::connect(&address).is_err().then_some(())))?;
    assert!(!data.exists(), "{} is still there", data.display());
    Ok(())
}
