//! Measures twinlog beside the real MirrorMaker 2 on the same brokers and prints the table of README.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use clap::Parser;
use twinlog_tests::{
    bench::{
        peer::{Entry, Peer},
        race::{Course, Measurement},
        report::{Section, machine, table},
        workload::{Workload, warm_up},
    },
    judge::{Judge, TopicPair},
    places,
    real::{
        Version, jars,
        kafka::{Cluster, ClusterSpec},
    },
    twinlog,
};

#[derive(Parser)]
#[command(
    about = "Copies the same records between the same two brokers by MirrorMaker 2 and by twinlog, one after the other"
)]
struct Arguments {
    /// Bytes of record values in each workload, in 10^9
    #[arg(long, default_value_t = 1.0)]
    gigabytes: f64,
    /// Copies by each; the table shows medians
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Keep properties files and logs in this folder
    #[arg(long)]
    logs: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    for workload in Workload::ALL {
        workload.records(arguments.gigabytes)?;
    }
    if cfg!(debug_assertions) {
        eprintln!("A debug build: its figures say nothing about twinlog. Measure with cargo run --release.");
    }
    println!("Kafka {} and twinlog on {}", Version::V4_3_1, machine());
    jars::fetch(Version::V4_3_1)?;
    twinlog::program()?;
    let folder = arguments.logs.unwrap_or_else(|| places::scratch().join("versus-mm2"));
    fs::create_dir_all(&folder)?;

    let mut judge = Judge::start()?;
    let source = Cluster::start("source", &ClusterSpec::measured(Version::V4_3_1))?;
    let target = Cluster::start("target", &ClusterSpec::measured(Version::V4_3_1))?;
    judge.ready(&source)?;
    judge.ready(&target)?;
    println!("Warming up both clusters");
    warm_up(&mut judge, [&source, &target], arguments.gigabytes / 10.0)?;

    let mut course = Course { source: &source, target: &target, judge: &mut judge, folder: &folder };
    let mut sections = Vec::new();
    let mut races = 0;
    for workload in Workload::ALL {
        workload.write(course.judge, &source, arguments.gigabytes)?;
        let records = workload.records(arguments.gigabytes)?;
        println!("{records} records of {}", workload.title);
        let mut peers: Vec<(Peer, Vec<Measurement>)> = Peer::ALL.map(|peer| (peer, Vec::new())).into();
        for _ in 0..arguments.rounds {
            for (peer, rounds) in &mut peers {
                races += 1;
                let measured = race(&mut course, *peer, workload, records, races)?;
                println!("  {peer}: {measured}");
                rounds.push(measured);
            }
            peers.reverse(); // nobody is always the first
        }
        peers.sort_by_key(|(peer, _)| Peer::ALL.iter().position(|known| known == peer));
        course.judge.delete_topic(&source, workload.topic)?;
        sections.push(Section { title: format!("{records} × {}", workload.title), peers });
    }
    print!("\n{}", table(&sections));
    Ok(())
}

/// One race. A copy by twinlog is compared with the source record by record; the copy then goes, or disks would fill.
fn race(
    course: &mut Course<'_>,
    peer: Peer,
    workload: Workload,
    records: u32,
    number: u32,
) -> Result<Measurement> {
    let entry = Entry::new(peer, course.source, course.target, workload.topic, number);
    // Ten times what a slow machine needs.
    let limit = Duration::from_secs(300) + Duration::from_millis(1) * records;
    let measured = course.race(&entry, workload.topic, limit)?;
    if peer == Peer::Twinlog {
        let pair = TopicPair { source: workload.topic.to_owned(), target: entry.remote_topic.clone() };
        let verdict = course.judge.compare(course.source, course.target, &[pair])?.ensure_equal()?;
        ensure!(verdict.records == u64::from(records), "{} records compared", verdict.records);
    }
    course.judge.delete_topic(course.target, &entry.remote_topic)?;
    Ok(measured)
}
