//! `twinlog check FILE`: what a file says, flow by flow, and what is wrong with it. Reaches no cluster.

mod json;
mod text;

use twinlog_engine::config::{Fault, printable};

use crate::{
    args::{CheckArgs, OutputFormat},
    exit_code::ExitCode,
    load, logging, not_written,
};

/// Prints the report and says whether the file can be used.
pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    let file = args.flows.file.display().to_string();
    let inspection = match load::inspection(&args.flows.file, &args.flows.clusters) {
        Ok(inspection) => inspection,
        Err(error) if args.output == OutputFormat::Json => {
            return ended(logging::print(|out| json::unread(out, &file, &error)), ExitCode::BadConfig);
        }
        Err(error) => {
            logging::tell(format!("error: {}: {error}\n", printable(&file)).as_bytes());
            return ExitCode::BadConfig;
        }
    };
    let errors = inspection.result().err();
    let faults: &[Fault] = errors.as_ref().map_or(&[], |errors| errors.faults());
    let printed = logging::print(|out| match args.output {
        OutputFormat::Text => text::report(out, &file, &inspection, faults),
        OutputFormat::Json => json::report(out, &file, &inspection, faults),
    });
    ended(printed, if faults.is_empty() { ExitCode::Done } else { ExitCode::BadConfig })
}

fn ended(printed: std::io::Result<()>, code: ExitCode) -> ExitCode {
    match printed {
        Ok(()) => code,
        Err(error) => not_written(&error),
    }
}
