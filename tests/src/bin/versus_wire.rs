//! Measures twinlog between a source and a sink that cost almost nothing, beside a relay that only copies bytes.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use twinlog_tests::{
    bench::{
        command::{folder_for_logs, warn_of_a_debug_build},
        pair::{Pair, Stock, TOPIC, bytes::BytePair},
        report::machine,
        usage::Usage,
        wire_report::{Crossing, table},
    },
    deadline::{Deadline, now},
    process::{Process, sleep_ms},
    real::kafka::tail,
    twinlog::{self, FlowFile, Twinlog, built},
};

const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Parser)]
#[command(about = "Copies from memory to nowhere by twinlog and by a relay that only copies bytes, in turn")]
struct Arguments {
    /// Bytes of batches, in 10^9
    #[arg(long, default_value_t = 8.0)]
    gigabytes: f64,
    /// Bytes of a batch, about
    #[arg(long, default_value_t = 16_384)]
    batch_bytes: u32,
    /// Partitions, and connections of the relay
    #[arg(long, default_value_t = 4)]
    partitions: u32,
    /// Copies by each; the table shows medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Instead of copying: so many partitions without a record, and what twinlog takes to watch them
    #[arg(long)]
    idle_partitions: Option<u32>,
    /// How long it is watched
    #[arg(long, default_value_t = 30)]
    idle_seconds: u64,
    /// Keep properties files and logs in this folder
    #[arg(long)]
    logs: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    warn_of_a_debug_build();
    println!("twinlog on {}", machine());
    twinlog::program()?;
    let relay = built("twinlog-tests", "tcp_relay")?;
    let folder = folder_for_logs(arguments.logs.as_deref(), "versus-wire")?;
    if let Some(partitions) = arguments.idle_partitions {
        return idle(partitions, arguments.idle_seconds, &folder);
    }
    let (mut copied, mut relayed) = (Vec::new(), Vec::new());
    for round in 0..arguments.rounds {
        // Nobody is always the first.
        for by_twinlog in [round % 2 == 0, round % 2 != 0] {
            let (name, crossings) =
                if by_twinlog { ("twinlog", &mut copied) } else { ("TCP relay", &mut relayed) };
            let crossing = match by_twinlog {
                true => by_program(&stock(&arguments), &folder)?,
                false => by_relay(&relay, &arguments, &folder)?,
            };
            println!("  {name}: {crossing}");
            crossings.push(crossing);
        }
    }
    print!("\n{}", table(&[("TCP relay", relayed), ("twinlog", copied)]));
    Ok(())
}

/// Records of 1,000 B, as many as fill a batch.
fn stock(arguments: &Arguments) -> Stock {
    let (partitions, batch_bytes) = (arguments.partitions, arguments.batch_bytes);
    let batches = arguments.gigabytes * 1e9 / f64::from(batch_bytes) / f64::from(partitions);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "far fewer than 2^32")]
    Stock {
        partitions,
        batches: batches as u32,
        records_per_batch: (batch_bytes / 1000).max(1),
        value_bytes: 1000,
    }
}

fn flow(pair: &Pair) -> FlowFile {
    let mut file =
        FlowFile::clusters(&[("src", pair.source()), ("dst", pair.sink())]).flow("src", "dst", TOPIC);
    for key in ["replication.factor", "offset.storage.replication.factor"] {
        file = file.with(key, "1");
    }
    file
}

fn by_program(stock: &Stock, folder: &Path) -> Result<Crossing> {
    let pair = Pair::start(stock)?;
    let expected = pair.stock_bytes();
    let file = flow(&pair).write(folder)?;
    let begin = now();
    let mut twinlog = Twinlog::run(&file, &[], &folder.join("twinlog.log"))?;
    let crossing = watch(begin, expected, twinlog.id(), || {
        twinlog.ensure_running()?;
        Ok(pair.taken_bytes())
    })?;
    twinlog.stop()?;
    let records = i64::from(stock.batches) * i64::from(stock.records_per_batch);
    let ends = pair.log_ends(&format!("src.{TOPIC}"));
    ensure!(ends == vec![records; stock.partitions as usize], "log ends {ends:?}, not {records} each");
    Ok(crossing)
}

fn by_relay(program: &Path, arguments: &Arguments, folder: &Path) -> Result<Crossing> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "far fewer than 2^64")]
    let each_bytes = (arguments.gigabytes * 1e9 / f64::from(arguments.partitions)) as u64;
    let pair = BytePair::start(each_bytes)?;
    let mut command = Command::new(program);
    command.args(["--source", pair.source(), "--target", pair.sink()]);
    command.args(["--connections", &arguments.partitions.to_string()]);
    let log = folder.join("tcp-relay.log");
    let begin = now();
    let mut process = Process::start("TCP relay", command, &log)?;
    let crossing =
        watch(begin, each_bytes * u64::from(arguments.partitions), process.id(), || {
            match process.ended()? {
                None => Ok(pair.taken_bytes()),
                Some(status) => bail!("the TCP relay ended with {status}: {}", tail(&log, 20)),
            }
        })?;
    process.kill()?;
    Ok(crossing)
}

/// Waits until so many bytes have arrived.
fn watch(
    begin: std::time::Instant,
    expected: u64,
    process: u32,
    mut taken_bytes: impl FnMut() -> Result<u64>,
) -> Result<Crossing> {
    let deadline = Deadline::after(PATIENCE);
    let mut first = None;
    loop {
        let taken = taken_bytes()?;
        let at = begin.elapsed();
        if taken > 0 {
            first.get_or_insert(at);
        }
        if taken >= expected {
            let copying = at - first.context("bytes have come")?;
            return Ok(Crossing { copying, usage: Usage::of(process)?, bytes: expected });
        }
        ensure!(!deadline.passed(), "waited too long: {taken} of {expected} bytes have come");
        sleep_ms(2);
    }
}

fn idle(partitions: u32, seconds: u64, folder: &Path) -> Result<()> {
    let pair = Pair::start(&Stock { partitions, batches: 0, records_per_batch: 1, value_bytes: 1 })?;
    let log = folder.join("twinlog.log");
    let begin = now();
    let mut twinlog = Twinlog::run(&flow(&pair).write(folder)?, &[], &log)?;
    Deadline::after(PATIENCE).wait("the mirrored topic", || {
        twinlog.ensure_running()?;
        Ok((!pair.log_ends(&format!("src.{TOPIC}")).is_empty()).then_some(()))
    })?;
    let there = begin.elapsed();
    // Every partition finds its place; then nothing is left to be done.
    sleep_ms(10_000);
    let (from, before) = (now(), Usage::of(twinlog.id())?);
    sleep_ms(seconds * 1000);
    let after = Usage::of(twinlog.id())?;
    let share = (after.cpu - before.cpu).as_secs_f64() / from.elapsed().as_secs_f64();
    println!(
        "{partitions} partitions without a record, topic made after {:.1} s: {:.2} s of CPU in the first ten seconds, then \
         {:.2} % of a core, {} MiB at most",
        there.as_secs_f64(),
        before.cpu.as_secs_f64(),
        share * 100.0,
        after.peak_kib / 1024
    );
    twinlog.stop()
}
