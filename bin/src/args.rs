//! The command line.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{
    ArgMatches, CommandFactory as _, Error, FromArgMatches as _, Parser, Subcommand, ValueEnum,
    error::ErrorKind,
};

use crate::logging::DEFAULT_LEVEL;

/// How long clusters may be out of reach at start when nobody said, and the run is one that ends by itself.
const WAIT_UNTIL_CAUGHT_UP: Duration = Duration::from_secs(30);

const EXIT_CODES: &str = "\
Exit codes:
    0  done, or stopped by SIGTERM or SIGINT
    1  something is held or was lost, everything else is copied
   64  the file or the command line cannot be used, or a cluster refuses what nothing can do without
   69  a cluster was not reached in time
   70  a bug
   74  standard output cannot be written
  130  a second signal: ended at once
Of several flows the one that fared worst counts: 70 before 64, 69, 1 and 0.";

/// Copies topics from one Kafka cluster to another: every record once, in order, unchanged.
///
/// Reads the properties files of MirrorMaker 2.
#[derive(Debug, Parser)]
#[command(name = "twinlog", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the flows that a properties file enables
    ///
    /// Copies what is there and then whatever is written, until SIGTERM or SIGINT. It can be killed at any moment
    /// and started again: nothing is lost or repeated. A flow that ends with an error leaves the others running. Logs
    /// go to standard error; on a terminal one live line shows each flow.
    Run(RunArgs),

    /// Say what a file means, flow by flow, and what is wrong with it
    ///
    /// Prints the effective value of every option with the key and line it came from, keys without effect and what was
    /// probably meant, and all faults at once. Reaches no cluster. Ends with 0, or with 64 where the file cannot be used.
    Check(CheckArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) flows: FlowArgs,

    /// How the report looks
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
}

/// How a report looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    Text,
    /// One JSON object
    Json,
}

/// Which file, and which of its flows.
#[derive(Debug, clap::Args)]
pub(crate) struct FlowArgs {
    /// Properties file as MirrorMaker 2 reads it (mm2.properties); `check` takes a connector's JSON too
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Only the flows into these clusters
    ///
    /// Names as in `clusters`, several with commas or blanks between: one file for all places, one twinlog near each
    /// target. What is wrong only with flows that are left out is told and keeps nothing from running.
    #[arg(long, value_name = "CLUSTER", value_delimiter = ',')]
    pub(crate) clusters: Vec<String>,

    /// Further clusters, as MM2 takes them: with blanks between.
    #[arg(hide = true)]
    more: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) flows: FlowArgs,

    /// End once everything that was there at the start is copied
    ///
    /// Topics of the first listing count, each partition up to the end that it had when it was first read. Ends with 1
    /// when something is held or was lost and everything else is copied.
    #[arg(long)]
    pub(crate) until_caught_up: bool,

    /// Seconds to wait for a cluster at the start, then end with 69
    ///
    /// Without it: 30 with --until-caught-up, else for ever.
    #[arg(long, value_name = "SECS")]
    wait: Option<u32>,

    /// How log lines look
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,

    /// What is logged: error, warn, info, debug, trace, or directives such as twinlog_engine=debug
    #[arg(long, value_name = "LEVEL", env = "RUST_LOG", default_value = DEFAULT_LEVEL, hide_env_values = true)]
    pub(crate) log_level: String,
}

/// Reads a command line, the name of the program first.
pub(crate) fn parse(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Args, Error> {
    let matches = Args::command().try_get_matches_from(words)?;
    let mut args = Args::from_arg_matches(&matches)?;
    let flows = match &mut args.command {
        Command::Run(run) => &mut run.flows,
        Command::Check(check) => &mut check.flows,
    };
    if let Some((command, matches)) = matches.subcommand() {
        flows.take_clusters(command, matches)?;
    }
    Ok(args)
}

impl FlowArgs {
    /// Tells the file from the clusters after `--clusters`, which blanks may stand between: it is the word before them,
    /// else the last one.
    fn take_clusters(&mut self, command: &str, matches: &ArgMatches) -> Result<(), Error> {
        let Some(last) = self.more.pop() else { return Ok(()) };
        let place = |id| matches.index_of(id).filter(|_| matches.contains_id(id));
        let Some(first_cluster) = place("clusters") else {
            let more = [&self.more[..], &[last]].concat().join(" ");
            let text = format!(
                "unexpected `{more}`: one FILE is read, and names of clusters stand after --clusters"
            );
            let mut all = Args::command();
            all.build();
            let command = all.find_subcommand_mut(command).expect("the subcommand that was read");
            return Err(command.error(ErrorKind::UnknownArgument, text));
        };
        let mut named = std::mem::take(&mut self.more);
        if place("file").is_some_and(|file| file > first_cluster) {
            let first = std::mem::replace(&mut self.file, last.into());
            named.insert(0, first.to_string_lossy().into_owned());
        } else {
            named.push(last);
        }
        self.clusters.extend(named.iter().flat_map(|names| names.split(',')).map(str::to_owned));
        Ok(())
    }
}

impl RunArgs {
    /// How long to try to reach the clusters at the start; none means for ever.
    pub(crate) fn wait_limit(&self) -> Option<Duration> {
        let written = self.wait.map(|seconds| Duration::from_secs(u64::from(seconds)));
        written.or(self.until_caught_up.then_some(WAIT_UNTIL_CAUGHT_UP))
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line, and no live line
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arguments: &[&str]) -> RunArgs {
        let all = ["twinlog", "run"].iter().chain(arguments);
        match parse(all).unwrap().command {
            Command::Run(run) => run,
            other => panic!("{other:?} instead of a run"),
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_run_waits_for_ever_unless_it_is_to_end_by_itself() {
        assert_eq!(run(&["f"]).wait_limit(), None);
        assert_eq!(run(&["f", "--until-caught-up"]).wait_limit(), Some(Duration::from_secs(30)));
        assert_eq!(run(&["f", "--wait", "5"]).wait_limit(), Some(Duration::from_secs(5)));
        assert_eq!(run(&["--wait=0", "f", "--until-caught-up"]).wait_limit(), Some(Duration::ZERO));
    }

    #[test]
    fn clusters_are_named_as_mm2_takes_them() {
        assert_eq!(run(&["f"]).flows.clusters, [""; 0]);
        assert_eq!(run(&["f", "--clusters", "b", "c", "--until-caught-up"]).flows.clusters, ["b", "c"]);
        assert_eq!(run(&["f", "--clusters=b,c", "--clusters", "d"]).flows.clusters, ["b", "c", "d"]);
    }

    #[test]
    fn clusters_may_stand_before_the_file() {
        for arguments in [
            &["--clusters", "b", "c", "f"][..],
            &["--clusters", "b,c", "f"],
            &["--clusters=b,c", "f"],
            &["--clusters", "b", "--clusters", "c", "f"],
            &["--clusters", "b", "c", "--until-caught-up", "f"],
            &["--clusters", "b", "--until-caught-up", "c", "f"],
            &["--until-caught-up", "f", "--clusters", "b", "c"],
            &["f", "--clusters", "b", "--wait", "1", "c"],
            &["f", "--clusters", "b,c"],
            &["--clusters", "b", "--clusters", "c", "--", "f"],
        ] {
            let run = run(arguments);
            assert_eq!(
                (run.flows.file.to_str(), run.flows.clusters.join(" ")),
                (Some("f"), "b c".to_owned()),
                "{arguments:?}"
            );
        }
        assert_eq!(run(&["--clusters", "b", "f"]).flows.clusters, ["b"]);
    }

    #[test]
    fn a_check_takes_them_too() {
        let Command::Check(check) = parse(["twinlog", "check", "--clusters", "b", "c", "f"]).unwrap().command
        else {
            panic!("no check")
        };
        assert_eq!(
            (check.flows.file.to_str(), check.flows.clusters.join(" ")),
            (Some("f"), "b c".to_owned())
        );
        let error = parse(["twinlog", "check", "f", "g"]).unwrap_err().to_string();
        assert!(error.contains("Usage: twinlog check [OPTIONS] <FILE>"), "{error}");
    }

    #[test]
    fn a_second_file_is_told() {
        let error = parse(["twinlog", "run", "f", "g", "h"]).unwrap_err().to_string();
        assert!(error.contains("unexpected `g h`: one FILE is read"), "{error}");
        assert!(error.contains("Usage: twinlog run [OPTIONS] <FILE>"), "{error}");
        let error = parse(["twinlog", "run", "--clusters", "b"]).unwrap_err().to_string();
        assert!(error.contains("<FILE>") && error.contains("run --clusters <CLUSTER> <FILE>"), "{error}");
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in
            [&["run"][..], &["run", "f", "--wait", "-1"], &["run", "f", "--log-format", "xml"], &["walk"]]
        {
            assert!(parse([&["twinlog"], bad].concat()).is_err(), "{bad:?}");
        }
    }
}
