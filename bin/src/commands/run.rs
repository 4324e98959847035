//! `twinlog run FILE`: start the flows, show them, end them in order.

mod summary;
mod watch;

use std::time::Duration;

use indicatif::MultiProgress;
use tracing::{error, info, warn};
use twinlog_engine::config::{MirrorConfig, in_a_line, printable};
use twinlog_engine::{Engine, Error};

use self::watch::Flows;
use crate::{
    args::{LogFormat, RunArgs},
    descriptors,
    exit_code::ExitCode,
    load, logging, progress,
    signals::Signals,
};

/// Time for batches under way to be acknowledged after a signal.
const DRAIN: Duration = Duration::from_secs(5);

/// Runs to the end and says how it ended.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    let lines = progress::live_lines(args.log_format);
    if let Err(sentence) = logging::init(args.log_format, &args.log_level, &lines) {
        logging::tell(format!("error: --log-level: {sentence}\n").as_bytes());
        return ExitCode::BadConfig;
    }
    let config = match load::mirror_config(&args.flows.file, &args.flows.clusters) {
        Ok(config) => config,
        Err(refused) => return refuse(args, &refused),
    };
    announce(&config);
    if let Some(sentence) = descriptors::raise_limit() {
        warn!("{sentence}");
    }
    let threads = threads(config.flows().len());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            error!("threads cannot be started: {error}");
            return ExitCode::Bug;
        }
    };
    let code = runtime.block_on(run_flows(args, config, &lines));
    runtime.shutdown_background();
    code
}

/// A thread for each flow, as far as there are processors: a batch that changes hands between threads costs more than it gains
/// (a third of the processor time, at less throughput).
fn threads(flows: usize) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    flows.clamp(1, processors)
}

/// Lists every fault of the file: for people without time stamps, for machines one line each.
fn refuse(args: &RunArgs, refused: &load::LoadError) -> ExitCode {
    let file = printable(&args.flows.file.display().to_string());
    match args.log_format {
        LogFormat::Text => {
            let sentences = refused.sentences().join("\n  ");
            logging::tell(format!("error: {file} cannot be used\n  {sentences}\n").as_bytes());
            for warning in refused.warnings() {
                logging::tell(format!("  besides: {warning}\n").as_bytes());
            }
        }
        LogFormat::Json => {
            refused.sentences().iter().for_each(|sentence| error!(file = %file, "{sentence}"));
            refused.warnings().iter().for_each(|sentence| warn!(file = %file, "{sentence}"));
        }
    }
    ExitCode::BadConfig
}

/// What there is to know about the file before anything is copied.
fn announce(config: &MirrorConfig) {
    for warning in config.warnings() {
        warn!("{warning}");
    }
    for (keys, what) in [
        (config.not_needed(), "not needed here, without effect"),
        (config.later(), "without effect until their part is built"),
    ] {
        let origins = keys.iter().filter_map(|warning| warning.origin.as_ref());
        let keys: Vec<String> =
            origins.map(|origin| format!("{} (line {})", in_a_line(&origin.key), origin.line)).collect();
        if !keys.is_empty() {
            info!("{what}: {}", keys.join(", "));
        }
    }
    if !config.not_yet().is_empty() {
        info!(
            "MirrorMaker 2 does by default, and this version does not do yet: {}",
            config.not_yet().join(", ")
        );
    }
    for flow in config.flows() {
        info!(flow = flow.name, version = env!("CARGO_PKG_VERSION"), "twinlog starts");
    }
}

/// Says why the engine did not start: a line for each cluster that was not reached.
fn tell(error: &Error) {
    let Error::Unreachable { unreached } = error else { return error!("{error}") };
    for unreached in unreached {
        error!(flow = unreached.flow, cluster = unreached.cluster, "{unreached}");
    }
}

async fn start(args: &RunArgs, config: MirrorConfig) -> Result<Engine, Error> {
    let mut builder = Engine::builder(config);
    if let Some(limit) = args.wait_limit() {
        builder = builder.wait(limit);
    }
    builder.start().await
}

async fn run_flows(args: &RunArgs, config: MirrorConfig, lines: &MultiProgress) -> ExitCode {
    let mut signals = match Signals::install() {
        Ok(signals) => signals,
        Err(error) => {
            error!("signals cannot be caught: {error}");
            return ExitCode::Bug;
        }
    };
    let started = tokio::select! {
        started = start(args, config) => started,
        signal = signals.next() => {
            info!("{signal} before all clusters were reached: ended at once");
            return ExitCode::Done;
        }
    };
    let engine = match started {
        Ok(engine) => engine,
        Err(error) => {
            tell(&error);
            return ExitCode::of(&error);
        }
    };
    let mut flows = Flows::new(&engine, lines);
    let signal = flows.watch(args.until_caught_up, &mut signals, lines).await;
    let mut code = flows.tell_ended();
    match signal {
        Some(signal) => info!("{signal}: draining for at most {} s", DRAIN.as_secs()),
        None => code = code.max(flows.tell_held().await),
    }
    tokio::select! {
        drained = engine.shutdown(DRAIN) => {
            flows.log_stopped().await;
            // Without an error nothing ended but what was told before, and what was stopped.
            if drained.is_err() { code.max(flows.tell_ended()) } else { code }
        }
        signal = signals.next() => {
            warn!("{signal} again: ended at once, what was under way is lined up at the next start");
            ExitCode::SecondSignal
        }
    }
}
