//! One live line for each flow, on a terminal only.

use std::{io, io::IsTerminal as _, time::Duration};

use indicatif::{
    BinaryBytes, HumanCount, HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle,
};
use tokio::time::Instant;
use twinlog_engine::{Error, FlowStatus, clock};

use crate::args::LogFormat;

/// Time over which a rate is taken.
const RATE_OVER: Duration = Duration::from_secs(2);

/// The place for live lines: standard error when it is a terminal and logs are for people, else nowhere.
pub(crate) fn live_lines(format: LogFormat) -> MultiProgress {
    let shown = format == LogFormat::Text && io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    MultiProgress::with_draw_target(target)
}

/// The live line of one flow.
pub(crate) struct FlowLine {
    bar: ProgressBar,
    name: String,
    rate: Rate,
}

impl FlowLine {
    pub(crate) fn new(lines: &MultiProgress, name: &str, now: Instant) -> Self {
        let bar = lines.add(ProgressBar::new_spinner());
        bar.set_style(
            ProgressStyle::with_template("{wide_msg}").expect("a template of one field is well formed"),
        );
        Self { bar, name: name.to_owned(), rate: Rate::new(now) }
    }

    pub(crate) fn show(&mut self, now: Instant, status: &FlowStatus) {
        self.rate.update(now, status.records);
        self.bar.set_message(describe(&self.name, status, self.rate.records_per_second));
    }

    /// Of a flow that has ended while others run.
    pub(crate) fn show_end(&self, error: &Error) {
        self.bar.set_message(format!("{}  ended: {error}", self.name));
    }
}

/// Takes the line away.
impl Drop for FlowLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Records per second over the last [`RATE_OVER`].
struct Rate {
    since: Instant,
    records: u64,
    records_per_second: u64,
}

impl Rate {
    fn new(now: Instant) -> Self {
        Self { since: now, records: 0, records_per_second: 0 }
    }

    fn update(&mut self, now: Instant, records: u64) {
        let passed_ms = u64::try_from((now - self.since).as_millis()).unwrap_or(u64::MAX);
        if passed_ms < u64::try_from(RATE_OVER.as_millis()).unwrap_or(u64::MAX) {
            return;
        }
        self.records_per_second = records.saturating_sub(self.records).saturating_mul(1000) / passed_ms;
        (self.since, self.records) = (now, records);
    }
}

/// What the line says.
fn describe(name: &str, status: &FlowStatus, records_per_second: u64) -> String {
    let mut state: Vec<String> =
        status.not_reached.iter().map(|side| format!("{side} not reached")).collect();
    if status.without_leader > 0 {
        state.push(format!("{} without leader", HumanCount(status.without_leader)));
    }
    if status.lag_records > 0 {
        state.push(format!("lag {}", HumanCount(status.lag_records)));
    } else if state.is_empty() {
        state.push(if status.is_level() { "level" } else { "starting" }.to_owned());
    }
    if let Some(first) = &status.first_waiting {
        state.push(format!("{} waiting: {first}", HumanCount(status.waiting)));
    }
    let state = state.join("  ");
    let mut line = format!(
        "{name}  {} partitions  {} records  {}  {}/s  {state}",
        HumanCount(status.partitions),
        HumanCount(status.records),
        BinaryBytes(status.bytes),
        HumanCount(records_per_second),
    );
    if let Some(first) = status.held.first() {
        let (count, topic, partition) = (HumanCount(status.held.len() as u64), &first.topic, first.partition);
        let lasts = HumanDuration(clock::wall_time().duration_since(first.since).unwrap_or_default());
        line.push_str(&format!("  {count} held: {topic}-{partition} for {lasts}: {}", first.reason));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinlog_engine::HeldPartition;
    use twinlog_engine::machine::hold::{HoldReason, Side};

    fn status() -> FlowStatus {
        FlowStatus {
            listed: true,
            partitions: 12,
            caught_up: 12,
            records: 1_234_567,
            bytes: 3 << 30,
            lag_records: 42,
            ..FlowStatus::default()
        }
    }

    #[test]
    fn a_line_says_how_much_how_fast_and_how_far_behind() {
        assert_eq!(
            describe("west->east", &status(), 34_000),
            "west->east  12 partitions  1,234,567 records  3.00 GiB  34,000/s  lag 42"
        );
        let level = FlowStatus { lag_records: 0, ..status() };
        assert!(describe("a->b", &level, 0).ends_with("0/s  level"));
        let lost = FlowStatus { not_reached: vec![Side::Source], ..level };
        assert!(describe("a->b", &lost, 0).ends_with("0/s  source not reached"));
    }

    #[test]
    fn held_partitions_are_counted_and_the_first_is_named() {
        let held = |partition| HeldPartition {
            topic: "orders".into(),
            partition,
            reason: HoldReason::Recreated { side: Side::Source },
            since: clock::wall_time() - Duration::from_secs(190),
        };
        let status = FlowStatus { held: vec![held(3), held(4)], ..status() };
        assert!(
            describe("a->b", &status, 0)
                .contains("lag 42  2 held: orders-3 for 3 minutes: the source topic was deleted")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_taken_over_two_seconds() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
        rate.update(start + Duration::from_millis(500), 1_000);
        assert_eq!(rate.records_per_second, 0);
        rate.update(start + Duration::from_secs(2), 10_000);
        assert_eq!(rate.records_per_second, 5_000);
        rate.update(start + Duration::from_secs(4), 10_000);
        assert_eq!(rate.records_per_second, 0);
    }
}
