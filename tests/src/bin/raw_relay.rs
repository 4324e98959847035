//! The raw relay as a program: copies one topic until it is ended. See `twinlog_tests::bench::relay`.

use anyhow::Result;
use clap::Parser;
use twinlog_tests::bench::relay::{RelayConfig, run};

#[derive(Parser)]
#[command(
    about = "Copies the batches of one topic as fast as it goes: no state, no checks; a measure for twinlog"
)]
struct Arguments {
    /// A broker of the source, host:port
    #[arg(long)]
    source: String,
    /// A broker of the target, host:port
    #[arg(long)]
    target: String,
    /// Topic on the source
    #[arg(long)]
    topic: String,
    /// Topic on the target
    #[arg(long)]
    target_topic: String,
    /// Threads for each pair of leaders
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Bytes of one Fetch answer
    #[arg(long, default_value_t = 4 << 20)]
    fetch_bytes: i32,
    /// Produce requests under way on one connection
    #[arg(long, default_value_t = 64)]
    in_flight: usize,
}

fn main() -> Result<()> {
    let Arguments { source, target, topic, target_topic, workers, fetch_bytes, in_flight } =
        Arguments::parse();
    match run(&RelayConfig { source, target, topic, target_topic, workers, fetch_bytes, in_flight })? {}
}
