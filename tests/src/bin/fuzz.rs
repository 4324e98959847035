//! Runs every fuzz target for a while, from the corpus of the repository, on the stable compiler.

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use clap::Parser;
use twinlog_tests::fuzzing::{Target, build, targets};

#[derive(Parser)]
#[command(
    about = "Builds the fuzz targets with coverage and runs each for a while; a finding ends it with 1"
)]
struct Arguments {
    /// How long each target runs
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Only these targets, with commas: the names of the files in fuzz/fuzz_targets
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// How many run at a time; by default as many as there are cores
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: Option<u32>,
}

fn main() -> ExitCode {
    if let Err(error) = run(&Arguments::parse()) {
        eprintln!("fuzz: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn run(arguments: &Arguments) -> Result<()> {
    let all = targets()?;
    for name in &arguments.only {
        let known: Vec<&str> = all.iter().map(|target| target.name.as_str()).collect();
        ensure!(known.contains(&name.as_str()), "{name:?} is none of {}", known.join(", "));
    }
    let is_chosen = |target: &Target| arguments.only.is_empty() || arguments.only.contains(&target.name);
    let chosen: Vec<Target> = all.into_iter().filter(is_chosen).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.map_or(Ok(cores), usize::try_from)?;

    println!("Building with coverage (some minutes, the first time)");
    let programs = build()?;
    println!("{} targets for {} s each, {jobs} at a time", chosen.len(), arguments.seconds);
    let mut findings = 0;
    for together in chosen.chunks(jobs) {
        let started = together.iter().map(|target| target.start(&programs, arguments.seconds));
        for run in started.collect::<Result<Vec<_>>>()? {
            match run.wait() {
                Ok(told) => println!("  {told}"),
                Err(finding) => {
                    findings += 1;
                    println!("  {finding:#}");
                }
            }
        }
    }
    if findings > 0 {
        bail!("{findings} of {} targets found something", chosen.len());
    }
    Ok(())
}
