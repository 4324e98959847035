//! One copy from the beginning to the end, between versions: what arrives is what was there.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Figures, Lab, LabSpec, Scale, Scenario, batches::ensure_whole_batches};
use crate::{
    deadline::wall_clock_ms,
    judge::{Codec, NewTopic, Nulls, Transactions, WriteRecords},
    real::{Version, log_dump},
};

const CATCH_UP: Duration = Duration::from_secs(120);

/// The version pairs of the issue; the first is the one that most people run.
pub const PAIRS: [(Version, Version); 6] = [
    (Version::V4_3_1, Version::V4_3_1),
    (Version::V3_9_2, Version::V4_3_1),
    (Version::V2_8_2, Version::V4_3_1),
    (Version::V4_3_1, Version::V2_8_2),
    (Version::V2_4_1, Version::V4_3_1),
    (Version::V2_1_1, Version::V4_3_1),
];

/// Everything there is to copy, between two versions.
#[must_use]
pub fn all((source, target): (Version, Version)) -> Vec<Scenario> {
    [codecs, large_records, transactions, log_start_inside_a_batch, fifty_topics]
        .map(|one| one((source, target)))
        .into()
}

fn scenario(
    (source, target): (Version, Version),
    what: &str,
    body: fn(&mut Lab, &Scale) -> Result<Figures>,
) -> Scenario {
    Scenario::shared(format!("{source} -> {target}: {what}"), LabSpec::singles(source, target), body)
}

/// Every codec, null keys and values, repeated headers, batches with and without a producer id.
#[must_use]
pub fn codecs(versions: (Version, Version)) -> Scenario {
    scenario(versions, "every codec, nulls, repeated headers", |lab, _| {
        let names = Codec::ALL.map(|codec| format!("codecs.{}", codec.name()));
        lab.create(&names.each_ref().map(|name| NewTopic::new(name, 3)))?;
        for (name, codec) in names.iter().zip(Codec::ALL) {
            let base = WriteRecords { codec, headers: true, ..WriteRecords::new(name, 3, 3000) };
            let then = wall_clock_ms() - 3_600_000;
            let parts = [
                WriteRecords { nulls: Nulls::Some, timestamp_ms: Some(then), ..base.clone() },
                WriteRecords { nulls: Nulls::Keys, first_id: 3000, idempotent: false, ..base.clone() },
                // Timestamps that go back within a batch.
                WriteRecords { first_id: 6000, timestamp_ms: Some(then), timestamp_step_ms: -7, ..base },
            ];
            parts.iter().try_for_each(|part| lab.judge.write(&lab.source, part))?;
        }
        let flow = lab.flow("codecs\\..*");
        lab.catch_up(&flow, CATCH_UP)?;
        let topics: Vec<&str> = names.iter().map(String::as_str).collect();
        let verdict = lab.ensure_equal(&topics)?;
        ensure!(verdict.records == 5 * 9000, "{} records arrived", verdict.records);
        let mut batches = 0;
        for name in topics {
            batches += ensure_whole_batches(lab, name)?.target;
        }
        Ok(Figures::default().with("records", verdict.records).with("batches", batches))
    })
}

/// Values of 8 MB, plain and compressed.
#[must_use]
pub fn large_records(versions: (Version, Version)) -> Scenario {
    scenario(versions, "records of 8 MB", |lab, _| {
        let topics = ["large.none", "large.zstd"];
        for (topic, codec) in topics.into_iter().zip([Codec::None, Codec::Zstd]) {
            lab.create(&[NewTopic::new(topic, 1).config("max.message.bytes", "10485760")])?;
            let small = WriteRecords { codec, ..WriteRecords::new(topic, 1, 100) };
            let large =
                WriteRecords { value_bytes: 8 << 20, first_id: 100, ..WriteRecords::new(topic, 1, 5) };
            lab.judge.write(&lab.source, &small)?;
            lab.judge.write(&lab.source, &WriteRecords { codec, ..large })?;
            lab.judge.write(&lab.source, &WriteRecords { first_id: 105, ..small })?;
        }
        let flow = lab.flow("large\\..*");
        lab.catch_up(&flow, CATCH_UP)?;
        let verdict = lab.ensure_equal(&topics)?;
        ensure!(verdict.records == 2 * 205, "{} records arrived", verdict.records);
        Ok(Figures::default().with("records", verdict.records))
    })
}

/// Committed, aborted and tiny transactions between plain batches; what is read uncommitted arrives, unmarked.
#[must_use]
pub fn transactions(versions: (Version, Version)) -> Scenario {
    scenario(versions, "transactions, committed, aborted, tiny", |lab, _| {
        let (mixed, tiny) = ("transactions.mixed", "transactions.tiny");
        lab.create(&[NewTopic::new(mixed, 2), NewTopic::new(tiny, 2)])?;
        let base = WriteRecords { codec: Codec::Gzip, headers: true, ..WriteRecords::new(mixed, 2, 500) };
        lab.judge.write(&lab.source, &base)?;
        let pattern = Transactions { count: 40, each: 25, abort_every: 4 };
        let first = WriteRecords { first_id: 500, ..base.clone() };
        lab.judge.write_transactions(&lab.source, &first, pattern)?;
        lab.judge.write(&lab.source, &WriteRecords { first_id: 1500, ..base })?;
        let pattern = Transactions { count: 100, each: 1, abort_every: 3 };
        lab.judge.write_transactions(&lab.source, &WriteRecords::new(tiny, 2, 0), pattern)?;
        let flow = lab.flow("transactions\\..*");
        lab.catch_up(&flow, CATCH_UP)?;
        let verdict = lab.ensure_equal(&[mixed, tiny])?;
        ensure!(verdict.records == 2100, "{} records arrived", verdict.records);
        let batches = ensure_whole_batches(lab, mixed)?.target + ensure_whole_batches(lab, tiny)?.target;
        Ok(Figures::default().with("records", verdict.records).with("batches", batches))
    })
}

/// DeleteRecords left the log start inside a batch: it is trimmed, and the first record is the one that consumers see.
#[must_use]
pub fn log_start_inside_a_batch(versions: (Version, Version)) -> Scenario {
    scenario(versions, "a log start inside a batch", |lab, _| {
        let names = Codec::ALL.map(|codec| format!("start.{}", codec.name()));
        lab.create(&names.each_ref().map(|name| NewTopic::new(name, 1)))?;
        let mut expected = 0;
        for (name, codec) in names.iter().zip(Codec::ALL) {
            let lingering =
                WriteRecords { linger_ms: 200, codec, headers: true, ..WriteRecords::new(name, 1, 1000) };
            lab.judge.write(&lab.source, &WriteRecords { nulls: Nulls::Some, ..lingering })?;
            let batches = log_dump::dump(&lab.source, 1, name, 0)?;
            let cut = batches.iter().find(|batch| batch.base_offset > 0 && batch.count > 2);
            let cut = cut.or(batches.first()).expect("1000 records make a batch");
            let start = cut.base_offset + cut.count / 2;
            lab.judge.delete_records(&lab.source, name, 0, start)?;
            ensure!(cut.base_offset < start && start <= cut.last_offset, "{start} is not inside {cut:?}");
            expected += 1000 - u64::try_from(start)?;
        }
        let flow = lab.flow("start\\..*");
        lab.catch_up(&flow, CATCH_UP)?;
        let topics: Vec<&str> = names.iter().map(String::as_str).collect();
        let verdict = lab.ensure_equal(&topics)?;
        ensure!(verdict.records == expected, "{} records arrived, not {expected}", verdict.records);
        Ok(Figures::default().with("records", verdict.records))
    })
}

/// Fifty topics of one to three partitions, some of them empty.
#[must_use]
pub fn fifty_topics(versions: (Version, Version)) -> Scenario {
    scenario(versions, "fifty topics", |lab, _| {
        let names: Vec<String> = (0..50).map(|number| format!("fifty.topic-{number}")).collect();
        let partitions = |number: u32| 1 + number % 3;
        let topics: Vec<NewTopic> =
            names.iter().zip(0..).map(|(name, number)| NewTopic::new(name, partitions(number))).collect();
        lab.create(&topics)?;
        let mut expected = 0;
        for (name, number) in names.iter().zip(0..) {
            let count = number % 5 * 20;
            lab.judge.write(&lab.source, &WriteRecords::new(name, partitions(number), count))?;
            expected += u64::from(count);
        }
        let flow = lab.flow("fifty\\..*");
        lab.catch_up(&flow, CATCH_UP)?;
        let topics: Vec<&str> = names.iter().map(String::as_str).collect();
        let verdict = lab.ensure_equal(&topics)?;
        ensure!(verdict.records == expected, "{} records arrived, not {expected}", verdict.records);
        Ok(Figures::default().with("records", verdict.records).with("topics", 50))
    })
}
