//! The main job in one command: two real clusters, records in one, `twinlog run`, the same records in the other.

use std::{
    fs,
    process::{Command, ExitCode},
};

use anyhow::{Result, ensure};
use twinlog_tests::{
    deadline::now,
    judge::{Codec, Judge, NewTopic, Nulls, TopicPair, WriteRecords},
    places,
    real::{
        Version, jars,
        kafka::{Cluster, ClusterSpec},
    },
    twinlog,
};

const RECORDS: u32 = 100_000;

fn main() -> ExitCode {
    if let Err(error) = show_the_main_job() {
        eprintln!("quickstart: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn show_the_main_job() -> Result<()> {
    println!("[1/6] Kafka {} by Maven (about 55 MB, once)", Version::V4_3_1);
    jars::fetch(Version::V4_3_1)?;
    println!("      twinlog by cargo (the first time it takes a few minutes)");
    let program = twinlog::program()?;

    println!("[2/6] Two clusters");
    let mut judge = Judge::start()?;
    let west = Cluster::start("west", &ClusterSpec::single(Version::V4_3_1))?;
    let east = Cluster::start("east", &ClusterSpec::single(Version::V4_3_1))?;
    judge.ready(&west)?;
    judge.ready(&east)?;
    println!("      west on {}, east on {}", west.bootstrap(), east.bootstrap());

    println!(
        "[3/6] {RECORDS} records into topic orders of west: three partitions, lz4, some null keys and values, repeated headers"
    );
    judge.create_topics(&west, &[NewTopic::new("orders", 3)])?;
    let write = WriteRecords {
        codec: Codec::Lz4,
        nulls: Nulls::Some,
        headers: true,
        ..WriteRecords::new("orders", 3, RECORDS)
    };
    judge.write(&west, &write)?;

    let text = format!(
        "clusters = west, east\n\
         west.bootstrap.servers = {}\n\
         east.bootstrap.servers = {}\n\
         west->east.enabled = true\n\
         west->east.topics = orders\n",
        west.bootstrap(),
        east.bootstrap()
    );
    let file = places::scratch().join("mm2.properties");
    fs::write(&file, &text)?;
    println!("[4/6] twinlog run mm2.properties --until-caught-up, with this file:");
    text.lines().for_each(|line| println!("      | {line}"));
    let begin = now();
    let status = Command::new(program).arg("run").arg(&file).arg("--until-caught-up").status()?;
    ensure!(status.success(), "twinlog ended with {status}");
    println!("      caught up after {:.1} s", begin.elapsed().as_secs_f64());

    println!("[5/6] Both sides");
    show(&mut judge, "west", &west, "orders")?;
    show(&mut judge, "east", &east, "west.orders")?;
    let pair = TopicPair { source: "orders".to_owned(), target: "west.orders".to_owned() };
    let verdict = judge.compare(&west, &east, &[pair])?.ensure_equal()?;
    println!(
        "      Kafka's Java client read both: {} records, equal one by one and in order",
        verdict.records
    );

    println!("[6/6] Both clusters stop, their files go");
    Ok(())
}

fn show(judge: &mut Judge, name: &str, cluster: &Cluster, topic: &str) -> Result<()> {
    println!("      {topic} in {name}");
    for (partition, offsets) in (0..).zip(judge.offsets(cluster, topic)?) {
        let first = judge.read(cluster, topic, partition, 2)?;
        let first: Vec<String> = first
            .iter()
            .map(|r| {
                let value: String = r.value.as_deref().unwrap_or("null").chars().take(12).collect();
                format!("@{} {} = {value}…", r.offset, r.key.as_deref().unwrap_or("null"))
            })
            .collect();
        println!(
            "        partition {partition}: offsets {} to {}: {}",
            offsets.start,
            offsets.end,
            first.join(", ")
        );
    }
    Ok(())
}
