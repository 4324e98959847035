//! Runs the scenarios on real clusters at full size and prints one line for each: what `cargo test` does in small.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    time::Duration,
};

use anyhow::anyhow;
use clap::{Parser, ValueEnum};
use twinlog_tests::{
    deadline::now,
    scenario::{
        Figures, Scale, Scenario, codecs, compaction, configs, copy, cuts, flows, identity, kills, kinds,
        lies, losses, memory, merging, parity, quotas, racks, random, resume, run, standing, start, state,
        target, topics, transactions,
    },
};

#[derive(Parser)]
#[command(
    about = "Runs twinlog's scenarios on real Kafka clusters: kills, kinds, lost answers, version pairs"
)]
struct Arguments {
    /// kill -9 of twinlog at so many random moments; brokers are killed in turn a quarter as often
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// Duration of everything that is done for a while
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Whether every version pair gets every copy, or only the newest
    #[arg(long, value_enum, default_value_t = Matrix::Full)]
    matrix: Matrix,
    /// Only scenarios whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Seed of the random moments
    #[arg(long)]
    seed: Option<u64>,
    /// Print the names and stop
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Matrix {
    Full,
    Small,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let scale = Scale {
        kills: arguments.kills,
        seconds: arguments.seconds,
        seed: arguments.seed.unwrap_or_else(|| fastrand::u64(..)),
    };
    let mut failures = 0;
    let mut lines = Vec::new();
    for scenario in
        scenarios(arguments.matrix).iter().filter(|scenario| scenario.name.contains(&arguments.only))
    {
        if arguments.list {
            println!("{}", scenario.name);
            continue;
        }
        let (line, failed) = report(scenario, &scale);
        failures += u32::from(failed);
        lines.push(line);
    }
    println!("\n{}", lines.join("\n"));
    if failures > 0 {
        println!("{failures} of {} failed", lines.len());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn scenarios(matrix: Matrix) -> Vec<Scenario> {
    let pairs = if matrix == Matrix::Full { &copy::PAIRS[..] } else { &copy::PAIRS[..1] };
    let mut all: Vec<Scenario> = pairs.iter().flat_map(|pair| copy::all(*pair)).collect();
    all.extend(merging::all());
    all.extend(codecs::all());
    all.extend(cuts::all());
    all.extend(topics::all());
    all.extend(configs::all());
    all.extend(flows::all());
    all.extend(quotas::all());
    all.extend(racks::all());
    all.extend(memory::all());
    all.extend(kinds::all());
    all.extend(compaction::all());
    all.extend(random::all());
    all.extend(transactions::all());
    all.extend(losses::all());
    all.extend(resume::all());
    all.extend(parity::all());
    all.extend(start::all());
    all.extend(standing::all());
    all.extend(kills::all());
    all.extend(lies::all());
    all.extend(state::all());
    all.extend(target::all());
    all.extend(identity::all());
    all
}

fn report(scenario: &Scenario, scale: &Scale) -> (String, bool) {
    let begin = now();
    let outcome = catch_unwind(AssertUnwindSafe(|| run(scenario, scale)))
        .unwrap_or_else(|_| Err(anyhow!("it panicked")));
    let took = Duration::as_secs(&begin.elapsed());
    let line =
        |sign: &str, what: &dyn std::fmt::Display| format!("{sign} {} ({took} s): {what}", scenario.name);
    match outcome {
        Ok(figures) => (line("ok    ", &figures as &Figures), false),
        Err(error) => {
            println!("{error:#}\n");
            let first = error.root_cause().to_string().lines().next().unwrap_or_default().to_owned();
            (line("FAILED", &first), true)
        }
    }
}
