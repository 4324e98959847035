//! What happens between a crash and the resume, or between two instances: the source compacts or expires, one skips a record
//! while the other stands still in mid-send.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use anyhow::{Context, Result, ensure};

use super::{Figures, Lab, LabSpec, Scenario, kinds, transactions::ensure_ids};
use crate::{
    deadline::{Deadline, wall_clock_ms},
    judge::{NewTopic, TextRecord, WriteRecords},
    process::sleep_ms,
    real::{Version, kafka::ClusterSpec},
    twinlog::FlowFile,
};

const CATCH_UP: Duration = Duration::from_secs(90);
const READ_MAX: u32 = 100_000;
/// Records of a burst.
const BURST: u32 = 300;

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![
        source_changes_before_the_resume(),
        skip_beside_an_instance_in_mid_send(),
        batches_skipped_as_a_whole(),
    ]
}

/// Review C5: what was copied last is compacted away, or expires with some that was not, before the copy is resumed.
#[must_use]
pub fn source_changes_before_the_resume() -> Scenario {
    let spec = kinds::with_quick_cleaner();
    Scenario::alone("the source compacts and expires between kill -9 and the resume", spec, |lab, scale| {
        let (compacted, expired) = ("resume.compacted", "resume.expired");
        lab.create(&[kinds::compacted(compacted), NewTopic::new(expired, 1)])?;
        let flow = lab.flow("resume\\..*");
        let (mut random, begin) = (scale.random(), wall_clock_ms());
        let mut logs = Vec::new();
        for round in 0..scale.kills {
            let first_id = u64::from(round * 2 * BURST);
            let mut twinlog = lab.twinlog(&flow, &[])?;
            // Each record of the compacted topic has a time of its own, so that each copy can be told from the others.
            let write = |lab: &mut Lab, part: u32| {
                let timestamp_ms = Some(begin + i64::from((round * 2 + part) * BURST));
                let again = WriteRecords { timestamp_ms, ..WriteRecords::new(compacted, 1, BURST) };
                lab.judge.write(&lab.source, &again)?;
                let first_id = first_id + u64::from(part * BURST);
                lab.judge
                    .write(&lab.source, &WriteRecords { first_id, ..WriteRecords::new(expired, 1, BURST) })
            };
            write(lab, 0)?;
            lab.wait_for_copy(expired, 1, CATCH_UP)?; // Before its first start a copy misses nothing.
            sleep_ms(random.u64(0..400));
            twinlog.kill()?;
            logs.push(twinlog.log()?);
            write(lab, 1)?;
            sleep_ms(1_500); // The cleaner goes through what was copied.
            let copied = lab.copied(expired)?;
            let there = i64::from((round + 1) * 2 * BURST);
            // Every other time some that nobody has copied go, too.
            let to = if round % 2 == 0 { copied } else { random.i64(copied..=there) };
            lab.judge.delete_records(&lab.source, expired, 0, to)?;
        }
        let last = lab.twinlog(&flow, &["--until-caught-up"])?;
        Deadline::after(CATCH_UP)
            .wait("twinlog to end", || Ok(last.log()?.contains("stopped").then_some(())))?;
        logs.push(last.log()?);
        let records = ensure_compacted(lab, compacted)?;
        let lost = ensure_only_told(lab, expired, scale.kills * 2 * BURST, &logs)?;
        Ok(Figures::default()
            .with("kills", scale.kills.into())
            .with("records of the compacted topic", records)
            .with("records lost and told", lost))
    })
}

/// No copy of a record twice, all in order, and the last word on each key is the source's.
fn ensure_compacted(lab: &mut Lab, topic: &str) -> Result<u64> {
    let [source, target] = [&lab.source, &lab.target].map(|side| lab.judge.read(side, topic, 0, READ_MAX));
    let (source, target) = (source?, target?);
    let is_in_order = target.windows(2).all(|pair| pair[0].timestamp < pair[1].timestamp);
    ensure!(is_in_order, "records of {topic} are there twice, or in another order");
    let newest = |records: &[TextRecord]| -> BTreeMap<Option<String>, (Option<String>, i64)> {
        records.iter().map(|record| (record.key.clone(), (record.value.clone(), record.timestamp))).collect()
    };
    ensure!(newest(&source) == newest(&target), "the last words on the keys of {topic} differ");
    ensure!(source.len() > BURST as usize, "the cleaner has left only {}", source.len());
    Ok(u64::try_from(target.len())?)
}

/// What is missing is what the logs tell to be lost, and nothing is there twice.
fn ensure_only_told(lab: &mut Lab, topic: &str, written: u32, logs: &[String]) -> Result<u64> {
    let told = logs.iter().flat_map(|log| log.lines());
    let told = told.filter(|line| line.contains("records lost: ") && line.contains(topic));
    let told: Vec<Range<u64>> = told.map(range_of).collect::<Result<_>>()?;
    let mut expected = Vec::new();
    let mut next = 0;
    for lost in &told {
        expected.push(next..lost.start);
        next = lost.end;
    }
    expected.push(next..u64::from(written));
    ensure_ids(lab, topic, &expected)?;
    Ok(told.iter().map(|lost| lost.end - lost.start).sum())
}

/// The offsets that a line of the log tells to be lost.
fn range_of(line: &str) -> Result<Range<u64>> {
    let field = |name: &str| {
        let (_, rest) = line.split_once(&format!(" {name}=")).with_context(|| format!("{name} in {line}"))?;
        rest.split(' ').next().unwrap_or(rest).parse().with_context(|| format!("{name} in {line}"))
    };
    Ok(field("from")?..field("to")?)
}

/// Review C4: one instance skips a record that the target refuses while the other has batches under way and stands still.
#[must_use]
pub fn skip_beside_an_instance_in_mid_send() -> Scenario {
    let newest = Version::V4_3_1;
    let spec = LabSpec::pair(ClusterSpec::single(newest), ClusterSpec::single(newest).behind_proxy());
    Scenario::alone("a record is skipped beside an instance in mid-send", spec, |lab, _| {
        let topic = "skipped.records";
        lab.create(&[NewTopic::new(topic, 1)])?;
        let strict = NewTopic::new(topic, 1).config("max.message.bytes", "2000");
        lab.judge.create_topics(&lab.target, &[strict])?;
        let of = |target: String, lab: &Lab| {
            let clusters = [("src", lab.source.bootstrap()), ("dst", target)];
            FlowFile::clusters(&clusters)
                .flow("src", "dst", "skipped\\..*")
                .equal_names()
                .with("errors.tolerance", "all")
                .with("sync.topic.configs.enabled", "false")
        };
        let write = |lab: &mut Lab, ids: Range<u64>, value_bytes| {
            let count = u32::try_from(ids.end - ids.start)?;
            let all = WriteRecords { first_id: ids.start, value_bytes, ..WriteRecords::new(topic, 1, count) };
            lab.judge.write(&lab.source, &all)
        };
        let through_proxy = of(lab.target.proxied_bootstrap(), lab);
        let mut still = lab.twinlog(&through_proxy, &[])?;
        write(lab, 0..10, 100)?;
        lab.wait_for_copy(topic, 10, CATCH_UP)?;
        lab.target.proxy()?.hold_produce_requests(true);
        write(lab, 10..15, 100)?;
        Deadline::after(CATCH_UP).wait("a Produce request under way", || {
            Ok((lab.target.proxy()?.held_requests() > 0).then_some(()))
        })?;
        still.pause()?;
        write(lab, 15..16, 5_000)?;
        write(lab, 16..20, 100)?;
        let direct = of(lab.target.bootstrap(), lab);
        let mut other = lab.twinlog(&direct, &[])?;
        lab.wait_for_copy(topic, 19, CATCH_UP)?;
        lab.target.proxy()?.hold_produce_requests(false);
        sleep_ms(1_000);
        still.resume()?;
        write(lab, 20..30, 100)?;
        lab.wait_for_copy(topic, 29, CATCH_UP)?;
        sleep_ms(2_000);
        still.stop()?;
        other.stop()?;
        ensure_ids(lab, topic, &[0..15, 16..30])?;
        let log = other.log()?;
        let words = "upstream offsets 15..15 (1 record) are refused by the target and skipped";
        ensure!(log.matches(words).count() == 1, "{log}");
        let log = lab.catch_up(&direct, CATCH_UP)?.log()?;
        ensure!(log.contains("losses=1") && log.contains("lost_records=1"), "{log}");
        ensure!(!log.contains("records lost: "), "{log}");
        Ok(Figures::default().with("records", 29).with("skipped", 1))
    })
}

/// A stretch of 2,000 records that are too old for the target, batch by batch between good ones: each batch is skipped as a whole.
#[must_use]
pub fn batches_skipped_as_a_whole() -> Scenario {
    Scenario::shared("batches of refused records only are skipped", LabSpec::newest(), |lab, _| {
        let topic = "skipped.batches";
        lab.create(&[NewTopic::new(topic, 1)])?;
        let strict = NewTopic::new(topic, 1).config("message.timestamp.before.max.ms", "3600000");
        lab.judge.create_topics(&lab.target, &[strict])?;
        let hours_ago = |hours: i64| Some(wall_clock_ms() - hours * 3_600_000);
        for (first_id, count, timestamp_ms) in
            [(0, 100, hours_ago(0)), (100, 2_000, hours_ago(3)), (2_100, 100, hours_ago(0))]
        {
            let write = WriteRecords {
                first_id,
                timestamp_ms,
                timestamp_step_ms: 0,
                linger_ms: 200,
                ..WriteRecords::new(topic, 1, count)
            };
            lab.judge.write(&lab.source, &write)?;
        }
        let flow = lab
            .flow("skipped\\.batches")
            .with("errors.tolerance", "all")
            .with("sync.topic.configs.enabled", "false");
        let mut twinlog = lab.twinlog(&flow, &[])?;
        lab.wait_for_copy(topic, 200, CATCH_UP)?;
        twinlog.stop()?;
        ensure_ids(lab, topic, &[0..100, 2_100..2_200])?;
        let told = twinlog.log()?.matches(" are refused by the target and skipped").count();
        ensure!((1..100).contains(&told), "{told} losses are told for 2,000 records");
        let log = lab.catch_up(&flow, CATCH_UP)?.log()?;
        ensure!(log.contains("lost_records=2000"), "{log}");
        Ok(Figures::default().with("skipped", 2_000).with("losses", u64::try_from(told)?))
    })
}
