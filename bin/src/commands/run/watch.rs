//! Running flows side by side: shown while they run, each until it has nothing more to do or has ended.

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use indicatif::MultiProgress;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};
use tracing::{error, info, warn};
use twinlog_engine::{Engine, Error, FlowHandle, FlowStatus, PartitionLoss, clock};

use super::summary;
use crate::{exit_code::ExitCode, progress::FlowLine, signals::Signals};

/// Between two updates of the live lines.
const SHOW_EVERY: Duration = Duration::from_millis(250);

/// Between two lines in the log about how far a flow is, where no live line shows it.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// All flows of the process.
pub(super) struct Flows {
    all: Vec<Watched>,
}

struct Watched {
    flow: FlowHandle,
    line: FlowLine,
    /// Whether the error that it ended with is in the log.
    told: bool,
}

impl Flows {
    pub(super) fn new(engine: &Engine, lines: &MultiProgress) -> Self {
        let now = Instant::now();
        let watched = |flow: &FlowHandle| Watched {
            flow: flow.clone(),
            line: FlowLine::new(lines, flow.name(), now),
            told: false,
        };
        Self { all: engine.flows().map(watched).collect() }
    }

    /// Shows the flows until each has ended, or has caught up when that is all it has to do; or until a signal comes,
    /// whose name is given then.
    pub(super) async fn watch(
        &mut self,
        until_caught_up: bool,
        signals: &mut Signals,
        lines: &MultiProgress,
    ) -> Option<&'static str> {
        let follow = |watched: &Watched| follow(watched.flow.clone(), until_caught_up);
        let mut under_way: FuturesUnordered<_> = self.all.iter().map(follow).collect();
        let [mut tick, mut log] = [SHOW_EVERY, LOG_EVERY].map(paced);
        log.reset();
        loop {
            tokio::select! {
                signal = signals.next() => return Some(signal),
                done = under_way.next() => {
                    self.tell_ended();
                    done?;
                }
                now = tick.tick() => self.all.iter_mut().for_each(|watched| watched.show(now)),
                _ = log.tick(), if lines.is_hidden() => self.all.iter().for_each(Watched::log),
            }
        }
    }

    /// Says of each flow that ended with an error what it was, once. The greatest of their codes.
    pub(super) fn tell_ended(&mut self) -> ExitCode {
        let codes = self.all.iter_mut().filter_map(Watched::tell_ended);
        codes.max().unwrap_or(ExitCode::Done)
    }

    /// The last word about flows that had nothing more to do. The greatest of their codes.
    pub(super) async fn tell_held(&self) -> ExitCode {
        let mut code = ExitCode::Done;
        for watched in self.all.iter().filter(|watched| watched.flow.result().is_none()) {
            code = code.max(watched.tell_held().await);
        }
        code
    }

    /// How far each flow came, and who is not well.
    pub(super) async fn log_stopped(&self) {
        for Watched { flow, .. } in &self.all {
            let (status, partitions) = (flow.status(), flow.partitions().await);
            summary::log_stopped(flow.name(), &status, &partitions, clock::wall_time());
            log_losses(flow.name(), &status);
            log_broker_time(flow.name(), &status);
        }
    }
}

/// Ends when there is nothing more to wait for. A flow ends by itself only with an error.
async fn follow(flow: FlowHandle, until_caught_up: bool) {
    if flow.caught_up().await.is_err() {
        return;
    }
    info!(flow = flow.name(), "caught up");
    if !until_caught_up {
        // The result is asked for by whoever tells it.
        let _ = flow.ended().await;
    }
}

fn paced(pause: Duration) -> Interval {
    let mut interval = interval(pause);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

impl Watched {
    fn error(&self) -> Option<Error> {
        self.flow.result()?.err()
    }

    fn show(&mut self, now: Instant) {
        match self.error() {
            Some(error) => self.line.show_end(&error),
            None => self.line.show(now, &self.flow.status()),
        }
    }

    fn log(&self) {
        match self.error() {
            Some(error) => error!(flow = self.flow.name(), "ended, others run on: {error}"),
            None => {
                let status = self.flow.status();
                match not_reached(&status) {
                    Some(sides) => {
                        warn!(flow = self.flow.name(), "{sides} not reached yet: nothing is copied");
                    }
                    None => log_running(self.flow.name(), &status),
                }
            }
        }
    }

    fn tell_ended(&mut self) -> Option<ExitCode> {
        let error = self.error()?;
        if !std::mem::replace(&mut self.told, true) {
            error!(flow = self.flow.name(), "{error}");
        }
        Some(ExitCode::of(&error))
    }

    /// Who is held is named when the flow has stopped.
    async fn tell_held(&self) -> ExitCode {
        let (name, status) = (self.flow.name(), self.flow.status());
        // Who tries again at this moment is held all the same.
        let held = summary::held(&self.flow.partitions().await);
        if held > 0 {
            error!(flow = name, held, "partitions are held, all others are level");
        }
        for PartitionLoss { topic, partition, loss } in &status.last_losses {
            error!(flow = name, topic, partition, "lost in this run: {loss}");
        }
        for failed in &status.failed_topics {
            error!(flow = name, topic = failed.topic, "not mirrored: {}", failed.reason);
        }
        if status.is_healthy() && held == 0 { ExitCode::Done } else { ExitCode::Held }
    }
}

/// The clusters that a flow still looks for when it starts. It knows of no lag then, which must not look like none.
fn not_reached(status: &FlowStatus) -> Option<String> {
    let sides: Vec<String> = status.not_reached.iter().map(ToString::to_string).collect();
    (!sides.is_empty()).then(|| sides.join(" and "))
}

/// What was lost up to now, if anything was.
fn log_losses(name: &str, status: &FlowStatus) {
    if status.losses.events > 0 {
        let (losses, lost_records, new) =
            (status.losses.events, status.losses.records, status.new_losses.events);
        warn!(flow = name, losses, lost_records, new, "records were lost: each loss is in the log once");
    }
}

/// One line about how far a flow is.
fn log_running(name: &str, status: &FlowStatus) {
    let FlowStatus { partitions, records, bytes, lag_records, held_partitions: held, .. } = status;
    info!(flow = name, partitions, records, bytes, lag_records, held, "running");
    log_losses(name, status);
    if let Some(first) = &status.first_waiting {
        warn!(flow = name, partitions = status.waiting, "partitions do not get on: {first}");
    }
    if let Some(first) = &status.first_without_leader {
        warn!(flow = name, partitions = status.without_leader, first, "partitions without a leader wait");
    }
    log_broker_time(name, status);
}

fn log_broker_time(name: &str, status: &FlowStatus) {
    if let Some(first) = status.broker_time_topics.first() {
        let topics = status.broker_time_topics.len();
        info!(
            flow = name,
            topics, first, "topics whose readers see the target broker's time, not the source's"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinlog_engine::machine::hold::Side;

    #[test]
    fn a_flow_that_is_connecting_is_not_said_to_run() {
        let status = FlowStatus { not_reached: vec![Side::Source, Side::Target], ..FlowStatus::default() };
        assert_eq!(not_reached(&status).as_deref(), Some("source and target"));
        assert_eq!(not_reached(&FlowStatus::default()), None);
    }
}
