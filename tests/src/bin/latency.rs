//! Measures how long records take: from the start of twinlog to the first one, and each one while it runs.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use clap::Parser;
use twinlog_tests::{
    bench::{
        command::{folder_for_logs, warn_of_a_debug_build},
        latency::{Watcher, Writer, delays, percentile, write_steadily},
        report::machine,
        usage::Usage,
        workload::Workload,
    },
    deadline::{Deadline, now},
    judge::{Judge, NewTopic},
    real::{
        Version, jars,
        kafka::{Cluster, ClusterSpec},
    },
    twinlog::{self, FlowFile, Twinlog},
};

const LIVE: &str = "live";
/// What was written to the topic before its steady records.
const BEFORE: usize = 2;
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Parser)]
#[command(about = "Measures how long records take from a broker to another, on real brokers")]
struct Arguments {
    /// Records per second
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,
    /// How long they are written before it counts, in seconds: a broker compiles its code for about so long
    #[arg(long, default_value_t = 60)]
    warm_up_seconds: u32,
    /// How long they are written, in seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Beside it, so many bytes of an older topic are copied, in 10^9
    #[arg(long, default_value_t = 0.0)]
    backfill_gigabytes: f64,
    /// Keep properties file and logs in this folder
    #[arg(long)]
    logs: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    warn_of_a_debug_build();
    println!("Kafka {} and twinlog on {}", Version::V4_3_1, machine());
    jars::fetch(Version::V4_3_1)?;
    twinlog::program()?;
    let folder = folder_for_logs(arguments.logs.as_deref(), "latency")?;
    let mut judge = Judge::start()?;
    let source = Cluster::start("source", &ClusterSpec::measured(Version::V4_3_1))?;
    let target = Cluster::start("target", &ClusterSpec::measured(Version::V4_3_1))?;
    judge.ready(&source)?;
    judge.ready(&target)?;
    let backfill = Workload::ALL[0];
    judge.create_topics(&source, &[NewTopic::new(LIVE, 1)])?;
    let file = FlowFile::identity(&source, &target, &format!("{LIVE},{}", backfill.topic))
        .with("refresh.topics.interval.seconds", "1")
        .write(&folder)?;

    let mut writer = Writer::open(&source.bootstrap(), LIVE)?;
    let readers = [&source, &target].map(|cluster| Watcher::start(&cluster.bootstrap(), LIVE));
    let mut starts = Vec::new();
    for start in 1..BEFORE {
        let mut twinlog =
            start_with_a_record(&mut writer, &mut judge, &target, (&file, &folder), start, &mut starts)?;
        twinlog.stop()?;
    }
    // Now everything is there already but this record.
    let mut running =
        start_with_a_record(&mut writer, &mut judge, &target, (&file, &folder), BEFORE, &mut starts)?;
    let interval = Duration::from_secs(1) / arguments.rate;
    let (uncounted, count) = (arguments.rate * arguments.warm_up_seconds, arguments.rate * arguments.seconds);
    write_steadily(&mut writer, uncounted, interval)?;
    if arguments.backfill_gigabytes > 0.0 {
        // It stands still meanwhile, so that all of it lies behind when it goes on.
        running.pause()?;
        backfill.write(&mut judge, &source, arguments.backfill_gigabytes)?;
        running.resume()?;
    }
    let cpu_before = Usage::of(running.id())?.cpu;
    write_steadily(&mut writer, count, interval)?;
    let used = Usage::of(running.id())?.cpu - cpu_before;
    let before = BEFORE + usize::try_from(uncounted)?;
    let expected = before + usize::try_from(count)?;
    Deadline::after(PATIENCE).wait("all records on the target", || {
        running.ensure_running()?;
        let end = usize::try_from(judge.offsets(&target, LIVE)?[0].end)?;
        Ok((end >= expected).then_some(()))
    })?;
    std::thread::sleep(Duration::from_millis(500));
    let [on_source, on_target] = readers.map(Watcher::stop);
    let (on_source, on_target) = (on_source?, on_target?);
    ensure!(
        on_source.len() == expected && on_target.len() == expected,
        "{} and {} of {expected} records were seen",
        on_source.len(),
        on_target.len()
    );
    running.stop()?;
    for (name, (begun, seen)) in ["first", "second"].iter().zip(starts.iter().zip(&on_target)) {
        println!("{name} start: {:.3} s until the record was on the target", (*seen - *begun).as_secs_f64());
    }
    println!("{count} records, {} per second: later than on the source by", arguments.rate);
    let share = used.as_secs_f64() / f64::from(arguments.seconds) * 100.0;
    print_table(&delays(&on_source, &on_target, before), share);
    Ok(())
}

fn print_table(late: &[Duration], share_of_core: f64) {
    let ms = |of| percentile(late, of).as_secs_f64() * 1e3;
    println!("| p50, ms | p90, ms | p99, ms | most, ms | CPU, % of a core |");
    println!("|---|---|---|---|---|");
    println!("| {:.2} | {:.2} | {:.2} | {:.2} | {share_of_core:.1} |", ms(50), ms(90), ms(99), ms(100));
}

/// Writes a record, starts twinlog, and waits for record number `number` on the target. Notes when twinlog was started.
fn start_with_a_record(
    writer: &mut Writer,
    judge: &mut Judge,
    target: &Cluster,
    (file, folder): (&Path, &Path),
    number: usize,
    starts: &mut Vec<Instant>,
) -> Result<Twinlog> {
    writer.write()?;
    starts.push(now());
    let mut twinlog = Twinlog::run(file, &[], &folder.join(format!("start-{number}.log")))?;
    Deadline::after(PATIENCE).wait("the record on the target", || {
        twinlog.ensure_running()?;
        let is_there = judge.topics(target)?.contains_key(LIVE)
            && usize::try_from(judge.offsets(target, LIVE)?[0].end)? == number;
        Ok(is_there.then_some(()))
    })?;
    Ok(twinlog)
}
