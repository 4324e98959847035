//! Measures twinlog beside the real MirrorMaker 2 and a raw relay on the same brokers, and prints the table of README.

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use clap::Parser;
use twinlog_tests::{
    bench::{
        command::{folder_for_logs, warn_of_a_debug_build},
        peer::{Entry, Peer, raw_relay},
        race::{Course, Measurement},
        report::{Section, machine, table},
        workload::{Workload, warm_up},
    },
    judge::{Judge, TopicPair},
    real::{
        Version, jars,
        kafka::{Cluster, ClusterSpec},
    },
    twinlog,
};

#[derive(Parser)]
#[command(
    about = "Copies the same records between the same two brokers by each replicator in turn, and compares them"
)]
struct Arguments {
    /// Bytes of record values in each workload whose number of records is not fixed, in 10^9
    #[arg(long, default_value_t = 1.0)]
    gigabytes: f64,
    /// Copies by each; the table shows medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only these workloads, with commas: plain, json-lz4, single, wide, recode (or recode-lz4, -zstd, -gzip)
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these replicators, with commas: mm2, tuned, relay, twinlog
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Which cluster lies behind a long link, if one does
    #[arg(long, value_enum)]
    far: Option<Side>,
    /// Round trip of that link, in ms
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    round_trip_ms: u64,
    /// Keep properties files and logs in this folder
    #[arg(long)]
    logs: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Side {
    Source,
    Target,
}

impl Arguments {
    fn cluster(&self, side: Side) -> ClusterSpec {
        let spec = ClusterSpec::measured(Version::V4_3_1);
        if self.far == Some(side) {
            return spec.behind_long_link(Duration::from_millis(self.round_trip_ms));
        }
        spec
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut workloads = chosen(&Workload::ALL, &arguments.only, |workload| workload.topic)?;
    let peers = chosen(&Peer::ALL, &arguments.peers, |peer| peer.name())?;
    workloads.retain(|workload| peers.iter().any(|peer| peer.copies(workload)));
    ensure!(!workloads.is_empty(), "nobody of {:?} can do {:?}", arguments.peers, arguments.only);
    for workload in &workloads {
        workload.records(arguments.gigabytes)?;
    }
    warn_of_a_debug_build();
    println!("Kafka {} and twinlog on {}", Version::V4_3_1, machine());
    jars::fetch(Version::V4_3_1)?;
    twinlog::program()?;
    raw_relay()?;
    let folder = folder_for_logs(arguments.logs.as_deref(), "versus-mm2")?;

    let mut judge = Judge::start()?;
    let source = Cluster::start("source", &arguments.cluster(Side::Source))?;
    let target = Cluster::start("target", &arguments.cluster(Side::Target))?;
    judge.ready(&source)?;
    judge.ready(&target)?;
    println!("Warming up both clusters");
    warm_up(&mut judge, [&source, &target], arguments.gigabytes / 10.0)?;

    let mut course = Course { source: &source, target: &target, judge: &mut judge, folder: &folder };
    let mut sections = Vec::new();
    let mut races = 0;
    for workload in workloads {
        workload.write(course.judge, &source, arguments.gigabytes)?;
        let records = workload.records(arguments.gigabytes)?;
        println!("{records} records of {}", workload.title);
        let mut measured: Vec<(Peer, Vec<Measurement>)> =
            peers.iter().filter(|peer| peer.copies(&workload)).map(|peer| (*peer, Vec::new())).collect();
        for _ in 0..arguments.rounds {
            for (peer, rounds) in &mut measured {
                races += 1;
                let result = race(&mut course, *peer, &workload, records, races)?;
                println!("  {peer}: {result}");
                rounds.push(result);
            }
            measured.rotate_left(1); // nobody is always the first
        }
        measured.sort_by_key(|(peer, _)| Peer::ALL.iter().position(|known| known == peer));
        course.judge.delete_topic(&source, workload.topic)?;
        sections.push(Section { title: format!("{records} × {}", workload.title), peers: measured });
    }
    print!("\n{}", table(&sections));
    Ok(())
}

/// Those of `all` whose names, or what stands in them before a hyphen, were given; all where none was.
fn chosen<T: Copy>(all: &[T], names: &[String], name_of: impl Fn(&T) -> &'static str) -> Result<Vec<T>> {
    let known: Vec<&str> = all.iter().map(&name_of).collect();
    let means = |name: &str, one: &str| {
        one.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    for name in names {
        ensure!(known.iter().any(|one| means(name, one)), "{name:?} is none of {}", known.join(", "));
    }
    let is_chosen = |one: &&T| names.is_empty() || names.iter().any(|name| means(name, name_of(one)));
    Ok(all.iter().filter(is_chosen).copied().collect())
}

/// One race. A copy that is not MM2's is compared with the source record by record; the copy then goes, or disks would
/// fill.
fn race(
    course: &mut Course<'_>,
    peer: Peer,
    workload: &Workload,
    records: u32,
    number: u32,
) -> Result<Measurement> {
    let entry = Entry::new(peer, course.source, course.target, workload, number);
    // Ten times what a slow machine needs.
    let limit = Duration::from_secs(300) + Duration::from_millis(1) * records;
    let measured = course.race(&entry, workload.topic, workload.idles, limit)?;
    if matches!(peer, Peer::Twinlog | Peer::RawRelay) {
        let pair = TopicPair { source: workload.topic.to_owned(), target: entry.remote_topic.clone() };
        let verdict = course.judge.compare(course.source, course.target, &[pair])?.ensure_equal()?;
        ensure!(verdict.records == u64::from(records), "{} records compared", verdict.records);
    }
    course.judge.delete_topic(course.target, &entry.remote_topic)?;
    Ok(measured)
}
