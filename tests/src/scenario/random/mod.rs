//! Random batches of our own making, copied in every way that there is: each record arrives as it was, each CRC holds.
//!
//! | file | |
//! |---|---|
//! | `batch` | the batches |

mod batch;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use twinlog_protocol::{
    batch::{BatchView, ProducerStamp, rewrite},
    record::BatchBuilder,
};

use self::batch::{FUTURE_MS, Maker, Shape};
use super::{
    Figures, Lab, Scale, Scenario,
    batches::{ensure_one_producer, ensure_whole_batches},
    codecs::ensure_codec,
    kinds::with_quick_cleaner,
};
use crate::{
    deadline::{Deadline, wall_clock_ms},
    judge::{Codec, NewTopic},
    process::sleep_ms,
    real::{log_dump, raw_producer::RawProducer},
};

const CATCH_UP: Duration = Duration::from_secs(300);
const CLEANER: Duration = Duration::from_secs(120);
/// The key of the record that the cleaner cannot reach.
const LAST_KEY: &str = "the end";

/// A topic, and what happens to its batches on the way.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// The last part of the topic's name.
    name: &'static str,
    /// How many of a hundred batches go this way.
    share: u32,
    /// How many batches a partition has at most.
    partition_batches: u32,
    shape: Shape,
    /// What the topic has on both sides.
    configs: &'static [(&'static str, &'static str)],
    /// What it has on the target alone.
    target_configs: &'static [(&'static str, &'static str)],
    treatment: Treatment,
}

/// Why batches arrive as they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    /// As they were, or whole in one with their neighbours.
    Whole,
    /// In the codec of the flow's `compression.type`.
    Recoded(Codec),
    /// Without what the source's cleaner took.
    Cleaned,
    /// The log begins inside a batch.
    Trimmed,
    /// In pieces, as the target takes no larger ones.
    Split,
}

/// What the target's topic takes where batches are split.
const SPLIT_BYTES_MAX: usize = 4_000;

const LARGE: Shape = Shape { records: (40, 200), value_bytes_max: 1_000, keys: 0, codec_run: 1 };
const SMALL: Shape = Shape { records: (1, 4), value_bytes_max: 200, keys: 0, codec_run: 30 };
const ANY: Shape = Shape { records: (1, 200), value_bytes_max: 400, keys: 0, codec_run: 4 };

const WAYS: [Way; 10] = [
    Way { name: "whole", share: 30, shape: LARGE, ..Way::PLAIN },
    Way { name: "small", share: 20, shape: SMALL, ..Way::PLAIN },
    Way {
        name: "limited",
        share: 10,
        shape: ANY,
        target_configs: &[("max.message.bytes", "4000")],
        treatment: Treatment::Split,
        ..Way::PLAIN
    },
    recoded("into.none", Codec::None),
    recoded("into.gzip", Codec::Gzip),
    recoded("into.snappy", Codec::Snappy),
    recoded("into.lz4", Codec::Lz4),
    recoded("into.zstd", Codec::Zstd),
    Way {
        name: "cleaned",
        share: 10,
        partition_batches: 250,
        shape: Shape { keys: 3_000, ..ANY },
        configs: &[
            ("cleanup.policy", "compact"),
            ("segment.ms", "100"),
            ("min.cleanable.dirty.ratio", "0.0"),
        ],
        treatment: Treatment::Cleaned,
        ..Way::PLAIN
    },
    Way {
        name: "trimmed",
        share: 10,
        partition_batches: 5,
        shape: Shape { records: (2, 200), ..ANY },
        treatment: Treatment::Trimmed,
        ..Way::PLAIN
    },
];

const fn recoded(name: &'static str, codec: Codec) -> Way {
    Way { name, share: 4, treatment: Treatment::Recoded(codec), ..Way::PLAIN }
}

impl Way {
    const PLAIN: Self = Self {
        name: "",
        share: 0,
        partition_batches: 1_000,
        shape: ANY,
        // Times are of any age.
        configs: &[("retention.ms", "-1")],
        target_configs: &[],
        treatment: Treatment::Whole,
    };

    fn topic(&self) -> String {
        format!("random.{}", self.name)
    }

    fn batches(&self, scale: &Scale) -> u32 {
        scale.random_batches() / 100 * self.share
    }

    fn partitions(&self, scale: &Scale) -> u32 {
        self.batches(scale).div_ceil(self.partition_batches)
    }

    fn new_topic(&self, scale: &Scale, more: &[(&str, &str)]) -> NewTopic {
        let topic = NewTopic::new(&self.topic(), self.partitions(scale));
        self.configs.iter().chain(more).fold(topic, |topic, (key, value)| topic.config(key, value))
    }
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Scenario> {
    vec![random_batches()]
}

/// 10,000 random batches, 500 in a small run: as they are, merged, under a limit, in other codecs, with holes, trimmed.
#[must_use]
pub fn random_batches() -> Scenario {
    Scenario::alone(
        "batches made at random, in every way that there is",
        with_quick_cleaner(),
        |lab, scale| {
            let mut random = scale.random();
            let topics: Vec<NewTopic> = WAYS.iter().map(|way| way.new_topic(scale, &[])).collect();
            lab.create(&topics)?;
            for way in WAYS.iter().filter(|way| !way.target_configs.is_empty()) {
                let topic = way.new_topic(scale, way.target_configs);
                lab.judge.create_topics(&lab.target, &[topic])?;
            }
            let mut written = 0;
            for way in &WAYS {
                written += write(lab, scale, way, random.fork()).with_context(|| way.topic())?;
            }
            ensure!(written >= u64::from(scale.random_batches()), "only {written} batches were written");
            // Each was tried when it was made; and now with offset and epoch, and as the cleaner has left it.
            let crcs = written + ensure_patched_crcs(lab, &mut random)?;
            copy(lab)?;
            let topics: Vec<String> = WAYS.iter().map(Way::topic).collect();
            let names: Vec<&str> = topics.iter().map(String::as_str).collect();
            let records = lab.ensure_equal(&names)?.records;
            let figures = Figures::default().with("written", written).with("patched CRCs", crcs);
            arrived(lab, figures.with("records", records))
        },
    )
}

/// Writes the batches of a way, and lets happen to them what has to. Tells how many there are.
fn write(lab: &mut Lab, scale: &Scale, way: &Way, mut random: fastrand::Rng) -> Result<u64> {
    let topic = way.topic();
    let mut maker = Maker::new(way.shape, random.fork(), wall_clock_ms());
    let mut producer = RawProducer::connect(&lab.source, &topic)?;
    let partitions = i32::try_from(way.partitions(scale))?;
    let mut keys: BTreeMap<i32, BTreeSet<Bytes>> = BTreeMap::new();
    // Log end, and the records of each batch.
    let mut counts: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    let mut written = 0;
    for (number, partition) in (0..way.batches(scale)).zip((0..partitions).cycle()) {
        let made = maker.make(|records| producer.stamp(partition, records))?;
        ensure_patched_crc(&made.batch, &mut random).with_context(|| format!("batch {number}"))?;
        producer.send(partition, &made.batch).with_context(|| format!("batch {number}"))?;
        counts.entry(partition).or_default().push(made.batch.header().record_count.into());
        keys.entry(partition).or_default().extend(made.keys);
        written += 1;
    }
    match way.treatment {
        Treatment::Whole | Treatment::Recoded(_) | Treatment::Split => {}
        Treatment::Cleaned => {
            clean(lab, &topic, &mut producer, &keys)?;
            written += u64::try_from(keys.len())?;
        }
        Treatment::Trimmed => {
            for (partition, counts) in counts {
                // Before the last batch, so that something whole follows.
                let cut = random.usize(..counts.len().max(2) - 1);
                let before = counts[..cut].iter().sum::<i64>() + random.i64(1..counts[cut]);
                lab.judge.delete_records(&lab.source, &topic, partition.try_into()?, before)?;
            }
        }
    }
    Ok(written)
}

/// Lets the cleaner take all that it ever will: afterwards each key is there once.
fn clean(
    lab: &Lab,
    topic: &str,
    producer: &mut RawProducer,
    keys: &BTreeMap<i32, BTreeSet<Bytes>>,
) -> Result<()> {
    sleep_ms(300); // Where no batch of the newest segment has a time, it is its age that closes it.
    for partition in keys.keys() {
        // Later than all others, so that it comes into a segment of its own, which the cleaner leaves alone.
        let mut builder = BatchBuilder::new();
        builder.push(wall_clock_ms() + FUTURE_MS + 1_000, Some(LAST_KEY.into()), None, Vec::new())?;
        producer.send(*partition, &builder.build()?)?;
    }
    let expected: usize = keys.values().map(|keys| keys.len() + 1).sum();
    Deadline::after(CLEANER).wait(&format!("the cleaner to leave {expected} records of {topic}"), || {
        // Files may go away under the eyes of who reads them.
        let Ok(left) = log_dump::views(&lab.source, 1, topic) else { return Ok(None) };
        let left: i64 = left.iter().map(|(_, batch)| i64::from(batch.header().record_count)).sum();
        Ok((left == i64::try_from(expected)?).then_some(()))
    })
}

/// Patches the header of every batch that the source has, as for sending, and computes the CRC anew. Tells how many there are.
fn ensure_patched_crcs(lab: &Lab, random: &mut fastrand::Rng) -> Result<u64> {
    let mut count = 0;
    for way in &WAYS {
        for (partition, batch) in log_dump::views(&lab.source, 1, &way.topic())? {
            ensure_patched_crc(&batch, random).with_context(|| format!("{}-{partition}", way.topic()))?;
            count += 1;
        }
    }
    Ok(count)
}

fn ensure_patched_crc(batch: &BatchView, random: &mut fastrand::Rng) -> Result<()> {
    let stamp = ProducerStamp {
        producer_id: random.i64(0..),
        producer_epoch: random.i16(0..),
        base_sequence: random.i32(0..),
    };
    let patched = rewrite(batch, stamp);
    let bytes: Bytes = [&patched.head[..], &patched.body].concat().into();
    let recomputed = BatchView::parse(bytes)?.check_crc();
    recomputed.with_context(|| format!("{:?} as {stamp:?}", batch.header()))
}

/// One flow for each `compression.type`, and one without.
fn copy(lab: &mut Lab) -> Result<()> {
    for way in &WAYS {
        if let Treatment::Recoded(codec) = way.treatment {
            let flow = lab.flow(&way.topic().replace('.', "\\.")).with("compression.type", codec.name());
            lab.catch_up(&flow, CATCH_UP)?;
        }
    }
    let others: Vec<&str> = WAYS
        .iter()
        .filter(|way| !matches!(way.treatment, Treatment::Recoded(_)))
        .map(|way| way.name)
        .collect();
    let flow = lab.flow(&format!("random\\.({})", others.join("|")));
    lab.catch_up(&flow, CATCH_UP).map(drop)
}

/// Every batch of the target is whole in the eyes of Kafka's own tool and by its CRC, and each way was really taken.
fn arrived(lab: &Lab, mut figures: Figures) -> Result<Figures> {
    let (mut as_they_were, mut merged, mut recoded, mut with_holes, mut cut, mut crcs) = (0, 0, 0, 0, 0, 0);
    let mut pieces = 0;
    for way in &WAYS {
        let topic = way.topic();
        let source = log_dump::views(&lab.source, 1, &topic)?;
        let target = log_dump::views(&lab.target, 1, &topic)?;
        for (partition, batch) in &target {
            batch.check_crc().with_context(|| format!("{topic}-{partition}: {:?}", batch.header()))?;
            ensure!(batch.header().is_dense(), "{topic}-{partition}: {:?}", batch.header());
        }
        crcs += target.len();
        match way.treatment {
            Treatment::Whole => {
                let counts = ensure_whole_batches(lab, &topic)?;
                ensure!(counts.source > 0, "{topic} is empty");
                merged += counts.source - counts.target;
                let bodies: HashSet<Bytes> = source.iter().map(|(_, batch)| batch.body()).collect();
                as_they_were += target.iter().filter(|(_, batch)| bodies.contains(&batch.body())).count();
            }
            Treatment::Recoded(codec) => recoded += ensure_codec(lab, &topic, codec)?,
            Treatment::Split => {
                let largest = target.iter().map(|(_, batch)| batch.bytes().len()).max();
                ensure!(largest <= Some(SPLIT_BYTES_MAX), "{topic} has a batch of {largest:?} bytes");
                ensure!(target.len() > source.len(), "{topic}: {} of {}", target.len(), source.len());
                pieces += target.len();
            }
            Treatment::Cleaned | Treatment::Trimmed => {
                for (partition, batches) in log_dump::dump_topic(&lab.target, 1, &topic)? {
                    ensure_one_producer(&topic, partition, &batches)?;
                }
            }
        }
        if way.treatment == Treatment::Cleaned {
            with_holes += source.iter().filter(|(_, batch)| !batch.header().is_dense()).count();
        }
        if way.treatment == Treatment::Trimmed {
            cut += source.iter().map(|(partition, _)| partition).collect::<BTreeSet<_>>().len();
        }
    }
    ensure!(
        as_they_were > 0 && merged > 0 && with_holes > 0,
        "{as_they_were} came as they were, {merged} were merged, {with_holes} had holes"
    );
    let counts = [
        ("batches with a new header alone", as_they_were),
        ("with holes", with_holes),
        ("cut at the log start", cut),
        ("pieces of split ones", pieces),
        ("batches at the target, all CRCs hold", crcs),
    ];
    for (name, count) in counts {
        figures = figures.with(name, u64::try_from(count)?);
    }
    Ok(figures.with("merged away", merged).with("in another codec", recoded))
}
