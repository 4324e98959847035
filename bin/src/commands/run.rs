//! `twinlog run FILE`: start the flow, show it, end it in order.

use std::time::Duration;

use futures_util::future::select_all;
use indicatif::MultiProgress;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{error, info, warn};
use twinlog_engine::config::MirrorConfig;
use twinlog_engine::{Engine, Error, FlowHandle, FlowStatus};

use crate::{
    args::{LogFormat, RunArgs},
    descriptors,
    exit_code::ExitCode,
    load, logging,
    progress::{self, FlowLine},
    signals::Signals,
};

/// Time for batches under way to be acknowledged after a signal.
const DRAIN: Duration = Duration::from_secs(5);

/// Between two updates of the live line.
const SHOW_EVERY: Duration = Duration::from_millis(250);

/// Between two lines in the log about how far a flow is, where no live line shows it.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Held partitions that are named one by one at the end.
const HELD_NAMED_MAX: usize = 20;

/// Runs to the end and says how it ended.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    let lines = progress::live_lines(args.log_format);
    if let Err(sentence) = logging::init(args.log_format, &args.log_level, &lines) {
        logging::tell(format!("error: --log-level: {sentence}\n").as_bytes());
        return ExitCode::BadConfig;
    }
    let config = match load::mirror_config(&args.file) {
        Ok(config) => config,
        Err(refused) => return refuse(args, &refused),
    };
    announce(&config);
    if let Some(sentence) = descriptors::raise_limit() {
        warn!("{sentence}");
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            error!("threads cannot be started: {error}");
            return ExitCode::Bug;
        }
    };
    let code = runtime.block_on(run_flow(args, config, &lines));
    runtime.shutdown_background();
    code
}

/// Lists every fault of the file: for people without time stamps, for machines one line each.
fn refuse(args: &RunArgs, refused: &load::LoadError) -> ExitCode {
    let file = args.file.display();
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
    for (origins, what) in [
        (config.not_needed(), "not needed here, without effect"),
        (config.later(), "without effect until their part is built"),
    ] {
        let keys = origins.iter().map(|origin| format!("{} (line {})", origin.key, origin.line));
        let keys: Vec<String> = keys.collect();
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

async fn start(args: &RunArgs, config: MirrorConfig) -> Result<Engine, Error> {
    let mut builder = Engine::builder(config);
    if let Some(limit) = args.wait_limit() {
        builder = builder.wait(limit);
    }
    builder.start().await
}

async fn run_flow(args: &RunArgs, config: MirrorConfig, lines: &MultiProgress) -> ExitCode {
    let names: Vec<String> = config.flows().iter().map(|flow| flow.name.clone()).collect();
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
            info!("{signal} before the start was done: nothing to drain");
            return ExitCode::Done;
        }
    };
    let engine = match started {
        Ok(engine) => engine,
        Err(error) => return ended(&error),
    };
    let flows = match names.iter().map(|name| engine.flow(name)).collect::<Result<Vec<_>, _>>() {
        Ok(flows) => flows,
        Err(error) => return ended(&error),
    };
    let code = watch(args, &names, &flows, &mut signals, lines).await;
    tokio::select! {
        ended_with = engine.shutdown(DRAIN) => {
            names.iter().zip(&flows).for_each(|(name, flow)| log_status(name, &flow.status(), "stopped"));
            match ended_with {
                Err(error) if code == ExitCode::Done => ended(&error),
                _ => code,
            }
        }
        signal = signals.next() => {
            warn!("{signal} again: ended at once, what was under way is lined up at the next start");
            ExitCode::SecondSignal
        }
    }
}

/// Shows the flows until they are level (when that was asked for), a signal comes or one fails.
async fn watch(
    args: &RunArgs,
    names: &[String],
    flows: &[FlowHandle],
    signals: &mut Signals,
    lines: &MultiProgress,
) -> ExitCode {
    let mut shown: Vec<FlowLine> =
        names.iter().map(|name| FlowLine::new(lines, name, Instant::now())).collect();
    let [mut tick, mut log] = [SHOW_EVERY, LOG_EVERY].map(|pause| {
        let mut interval = interval(pause);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        interval
    });
    log.reset();
    let level = async {
        for (name, flow) in names.iter().zip(flows) {
            flow.caught_up().await?;
            info!(flow = name, "caught up");
        }
        if args.until_caught_up {
            return Ok(());
        }
        // A flow ends by itself only with an error.
        let (ended_with, ..) = select_all(flows.iter().map(|flow| Box::pin(flow.ended()))).await;
        ended_with
    };
    tokio::pin!(level);
    loop {
        tokio::select! {
            signal = signals.next() => {
                info!("{signal}: draining for at most {} s", DRAIN.as_secs());
                return ExitCode::Done;
            }
            ended_with = &mut level => return match ended_with {
                Ok(()) => summary(names, flows),
                Err(error) => ended(&error),
            },
            now = tick.tick() => {
                for (line, flow) in shown.iter_mut().zip(flows) {
                    line.show(now, &flow.status());
                }
            }
            _ = log.tick(), if lines.is_hidden() => {
                names.iter().zip(flows).for_each(|(name, flow)| log_status(name, &flow.status(), "running"));
            }
        }
    }
}

/// One line about how far a flow is.
fn log_status(name: &str, status: &FlowStatus, what: &str) {
    let FlowStatus { partitions, records, bytes, lag_records, held_partitions: held, .. } = status;
    info!(flow = name, partitions, records, bytes, lag_records, held, "{what}");
    if let Some(first) = &status.first_waiting {
        warn!(flow = name, partitions = status.waiting, "partitions do not get on: {first}");
    }
    if let Some(first) = &status.first_without_leader {
        warn!(flow = name, partitions = status.without_leader, first, "partitions without a leader wait");
    }
}

/// The last word of a run that ends by itself.
fn summary(names: &[String], flows: &[FlowHandle]) -> ExitCode {
    let mut code = ExitCode::Done;
    for (name, flow) in names.iter().zip(flows) {
        let status = flow.status();
        for held in status.held.iter().take(HELD_NAMED_MAX) {
            error!(flow = name, topic = held.topic, partition = held.partition, "held: {}", held.reason);
        }
        if !status.held.is_empty() {
            error!(flow = name, held = status.held.len(), "partitions are held, all others are level");
        }
        for failed in &status.failed_topics {
            error!(flow = name, topic = failed.topic, "not mirrored: {}", failed.reason);
        }
        if !status.is_healthy() {
            code = ExitCode::Held;
        }
    }
    code
}

fn ended(error: &Error) -> ExitCode {
    error!("{error}");
    match error {
        Error::Unreachable { .. } => ExitCode::Unreachable,
        Error::Config(_) | Error::Refused(_) | Error::State(_) | Error::UnknownFlow(_) => ExitCode::BadConfig,
        _ => ExitCode::Bug,
    }
}
