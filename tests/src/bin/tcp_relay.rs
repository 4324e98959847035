//! The plain TCP relay as a program, then it waits to be ended. See `twinlog_tests::bench::copy_bytes`.

use std::thread;

use anyhow::Result;
use clap::Parser;
use twinlog_tests::bench::copy_bytes::copy_bytes;

#[derive(Parser)]
#[command(
    about = "Copies bytes from one address to another and looks at none of them; a measure for twinlog"
)]
struct Arguments {
    /// Where the bytes come from, host:port
    #[arg(long)]
    source: String,
    /// Where they go, host:port
    #[arg(long)]
    target: String,
    /// Connections to each at once
    #[arg(long, default_value_t = 4)]
    connections: usize,
}

fn main() -> Result<()> {
    let Arguments { source, target, connections } = Arguments::parse();
    copy_bytes(&source, &target, connections)?;
    loop {
        // Whoever measures asks the system about this process, which has to be there.
        thread::park();
    }
}
