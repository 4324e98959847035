//! twinlog: the program.
//!
//! Arguments, files, logs, signals and exit codes; everything else is the engine's.

mod args;
mod commands;
mod descriptors;
mod exit_code;
mod load;
mod logging;
mod progress;
mod signals;

use std::{
    io::{self, Write as _},
    panic::{self, AssertUnwindSafe},
};

use crate::exit_code::ExitCode;

/// In the static build; glibc's allocator serves the other one.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let code = match args::parse(std::env::args_os()) {
        // A panic is a bug. The engine never leaves a partition half moved, so ending here loses nothing.
        Ok(args) => panic::catch_unwind(AssertUnwindSafe(|| commands::run(args))).unwrap_or(ExitCode::Bug),
        Err(help_or_fault) => {
            let printed = help_or_fault.print().and_then(|()| io::stdout().flush());
            match logging::unless_closed(printed) {
                // Whoever reads the errors may be gone; there is nobody left to tell.
                _ if help_or_fault.use_stderr() => ExitCode::BadConfig,
                Ok(()) => ExitCode::Done,
                Err(error) => not_written(&error),
            }
        }
    };
    // Not a return from main: tasks of an engine that was told to end at once must not hold the process.
    std::process::exit(code.number());
}

/// Standard output took no more, and not because its reader had seen enough.
fn not_written(error: &io::Error) -> ExitCode {
    logging::tell(format!("error: standard output cannot be written: {error}\n").as_bytes());
    ExitCode::NotWritten
}
