//! Builds the static program and shows what is claimed of it: it needs nothing of the system, it is small, it copies
//! between real brokers alone in an empty root, and it is as fast as the build for this system's C library.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use anyhow::{Result, ensure};
use clap::Parser;
use twinlog_tests::{
    bench::{
        report::{machine, median},
        workload::Workload,
    },
    judge::{Codec, Judge, NewTopic, Nulls, TopicPair, WriteRecords},
    places,
    real::{
        Version, jars,
        kafka::{Cluster, ClusterSpec},
    },
    static_build::{
        ARM64, EmptyRoot, Ended, X86_64, build,
        elf::{Elf, Machine},
        run,
    },
    twinlog::FlowFile,
};

/// The most that a program may have.
const BYTES_MAX: usize = 12_000_000;
/// How much more CPU time than the build for glibc the static one may take.
const CPU_RATIO_MAX: f64 = 1.1;
/// For a run that does not copy much; ten times what a slow machine needs.
const SHORT: Duration = Duration::from_secs(120);
const UNREACHED: i32 = 69;

#[derive(Parser)]
#[command(
    about = "Builds twinlog statically, runs it in an empty root, and compares it with the ordinary build"
)]
struct Arguments {
    /// Bytes of record values in each measured copy, in 10^9; 0 measures nothing
    #[arg(long, default_value_t = 1.0)]
    gigabytes: f64,
    /// Measured copies by each build
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Do not build for arm64, which needs Debian's gcc-aarch64-linux-gnu
    #[arg(long)]
    without_arm64: bool,
}

fn main() -> ExitCode {
    if let Err(error) = show(&Arguments::parse()) {
        eprintln!("static_build: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn show(arguments: &Arguments) -> Result<()> {
    println!("On {}", machine());
    println!("[1/4] Builds (some minutes each, the first time)");
    let program = built(X86_64, Machine::X86_64)?;
    if !arguments.without_arm64 {
        built(ARM64, Machine::Aarch64)?;
    }

    println!("[2/4] Alone in an empty root");
    jars::fetch(Version::V4_3_1)?;
    let root = EmptyRoot::new(&program)?;
    let said = in_root(&root, &["--version"], 0)?.said;
    println!("      {}", said.trim());
    let mut judge = Judge::start()?;
    let source = Cluster::start("source", &ClusterSpec::measured(Version::V4_3_1))?;
    let target = Cluster::start("target", &ClusterSpec::measured(Version::V4_3_1))?;
    judge.ready(&source)?;
    judge.ready(&target)?;
    copies_by_address(&root, &mut judge, &source, &target)?;

    println!("[3/4] Host names there");
    copies_by_name(&root, &mut judge, &source, &target)?;

    println!("[4/4] Beside the ordinary build");
    if arguments.gigabytes > 0.0 {
        Comparison {
            root: &root,
            ordinary: build(None)?,
            judge: &mut judge,
            source: &source,
            target: &target,
        }
        .show(arguments)?;
    }
    Ok(())
}

fn built(target: &str, machine: Machine) -> Result<PathBuf> {
    let program = build(Some(target))?;
    let elf = Elf::read(&program)?;
    elf.ensure_static(machine)?;
    ensure!(elf.bytes <= BYTES_MAX, "{target}: {} bytes, at most {BYTES_MAX}", elf.bytes);
    println!("      {target}: static, {} bytes", elf.bytes);
    Ok(program)
}

/// A run of the program in `root` that has to end with `code`.
fn in_root(root: &EmptyRoot, arguments: &[&str], code: i32) -> Result<Ended> {
    let mut command = root.command();
    command.args(arguments);
    ended(command, code, SHORT)
}

fn ended(command: Command, code: i32, limit: Duration) -> Result<Ended> {
    let log = places::scratch().join(format!("run-{:08x}.log", fastrand::u32(..)));
    let ended = run(command, &log, limit)?;
    ensure!(ended.code == code, "it ended with {}, not with {code}:\n{}", ended.code, ended.said);
    Ok(ended)
}

fn copies_by_address(root: &EmptyRoot, judge: &mut Judge, source: &Cluster, target: &Cluster) -> Result<()> {
    judge.create_topics(source, &[NewTopic::new("orders", 3)])?;
    let orders = WriteRecords {
        codec: Codec::Lz4,
        nulls: Nulls::Some,
        headers: true,
        ..WriteRecords::new("orders", 3, 100_000)
    };
    judge.write(source, &orders)?;
    let file = root.add_flows(&FlowFile::plain(("west", source), ("east", target), "orders"))?;
    in_root(root, &["check", &file], 0)?;
    in_root(root, &["run", &file, "--until-caught-up"], 0)?;
    let verdict = judge.compare(source, target, &[pair("orders", "west.orders")])?.ensure_equal()?;
    println!("      checked its file and copied {} records, equal one by one and in order", verdict.records);
    Ok(())
}

/// Without a file of the system names are not found, and the error says so; with `/etc/hosts` they are.
fn copies_by_name(root: &EmptyRoot, judge: &mut Judge, source: &Cluster, target: &Cluster) -> Result<()> {
    let named = |name: &str, cluster: &Cluster| cluster.bootstrap().replace("127.0.0.1", name);
    let servers = [("north", named("north.test", source)), ("south", named("south.test", target))];
    let file = root.add_flows(&FlowFile::clusters(&servers).flow("north", "south", "orders"))?;
    let arguments = ["run", &file, "--until-caught-up", "--wait", "3"];
    let said = in_root(root, &arguments, UNREACHED)?.said;
    let line = said.lines().find(|line| line.contains("north.test"));
    ensure!(line.is_some(), "no line names the host that was not found:\n{said}");
    println!("      without /etc: {}", line.unwrap_or_default());
    root.add("/etc/hosts", "127.0.0.1 north.test south.test\n")?;
    in_root(root, &arguments, 0)?;
    let verdict = judge.compare(source, target, &[pair("orders", "north.orders")])?.ensure_equal()?;
    println!("      with /etc/hosts: copied {} records, equal one by one and in order", verdict.records);
    Ok(())
}

fn pair(source: &str, target: &str) -> TopicPair {
    TopicPair { source: source.to_owned(), target: target.to_owned() }
}

struct Comparison<'a> {
    root: &'a EmptyRoot,
    ordinary: PathBuf,
    judge: &'a mut Judge,
    source: &'a Cluster,
    target: &'a Cluster,
}

impl Comparison<'_> {
    fn show(&mut self, arguments: &Arguments) -> Result<()> {
        let mut worst: f64 = 0.0;
        for workload in Workload::ALL {
            workload.write(self.judge, self.source, arguments.gigabytes)?;
            self.copy(workload.topic, "warm", None)?;
            let mut ratios = Vec::new();
            for round in 0..arguments.rounds {
                let alias = |build: &str| format!("{build}{round}");
                let ordinary = Some(self.ordinary.clone());
                // Nobody is always the first.
                let (fixed, other) = if round % 2 == 0 {
                    let fixed = self.copy(workload.topic, &alias("static"), None)?;
                    (fixed, self.copy(workload.topic, &alias("ordinary"), ordinary.as_deref())?)
                } else {
                    let other = self.copy(workload.topic, &alias("ordinary"), ordinary.as_deref())?;
                    (self.copy(workload.topic, &alias("static"), None)?, other)
                };
                let ratio = fixed.cpu.as_secs_f64() / other.cpu.as_secs_f64();
                println!(
                    "      {}: static {:.2} s of CPU, {} MiB; ordinary {:.2} s, {} MiB; CPU × {ratio:.2}",
                    workload.topic,
                    fixed.cpu.as_secs_f64(),
                    fixed.peak_kib >> 10,
                    other.cpu.as_secs_f64(),
                    other.peak_kib >> 10,
                );
                ratios.push(ratio);
            }
            self.judge.delete_topic(self.source, workload.topic)?;
            let (low, high) = ratios.iter().fold((f64::MAX, 0.0_f64), |(l, h), r| (l.min(*r), h.max(*r)));
            let middle = median(ratios);
            println!("      {}: CPU × {middle:.2} (median; {low:.2} to {high:.2})", workload.topic);
            worst = worst.max(middle);
        }
        ensure!(
            worst <= CPU_RATIO_MAX,
            "the static build takes {worst:.2} × the CPU, at most {CPU_RATIO_MAX}"
        );
        Ok(())
    }

    /// One copy by the static program in its root, or by another one; the copy then goes, or disks would fill.
    fn copy(&mut self, topic: &str, alias: &str, other: Option<&Path>) -> Result<Ended> {
        let to = format!("to-{alias}");
        let flows = FlowFile::plain((alias, self.source), (&to, self.target), topic);
        let command = if let Some(program) = other {
            let mut command = Command::new(program);
            command.arg("run").arg(flows.write(places::scratch())?);
            command
        } else {
            let mut command = self.root.command();
            command.arg("run").arg(self.root.add_flows(&flows)?);
            command
        };
        let mut command = command;
        command.arg("--until-caught-up");
        for cluster in [self.source, self.target] {
            cluster.flush(1)?; // what was written before goes to disk now, not while this is measured
        }
        let ended = ended(command, 0, 10 * SHORT)?;
        let remote = format!("{alias}.{topic}");
        let ends = |offsets: Vec<_>| {
            offsets.iter().map(|at: &twinlog_tests::judge::Offsets| at.end).collect::<Vec<_>>()
        };
        let here = ends(self.judge.offsets(self.source, topic)?);
        let there = ends(self.judge.offsets(self.target, &remote)?);
        ensure!(here == there, "{remote} ends at {there:?}, its source at {here:?}");
        self.judge.delete_topic(self.target, &remote)?;
        Ok(ended)
    }
}
