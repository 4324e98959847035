//! One module for each command.

mod check;
mod run;

use crate::{
    args::{Args, Command},
    exit_code::ExitCode,
};

/// Carries out the command line.
pub(crate) fn run(args: Args) -> ExitCode {
    match args.command {
        Command::Run(args) => run::run(&args),
        Command::Check(args) => check::run(&args),
    }
}
