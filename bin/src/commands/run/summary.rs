//! The last word about a flow's partitions: how many fare how, and who is not well, with the reason and for how long.

use std::time::{Duration, SystemTime};

use indicatif::HumanDuration;
use tracing::{error, info, warn};
use twinlog_engine::{FlowStatus, PartitionState, PartitionStatus};

/// Partitions of a flow that are named one by one.
const NAMED_MAX: usize = 20;
/// Who waits for less than this is on its way.
const WARNED_AFTER: Duration = Duration::from_secs(10);

/// Partitions by their state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    copying: u64,
    caught_up: u64,
    waiting: u64,
    held: u64,
}

impl Counts {
    fn of(partitions: &[PartitionStatus]) -> Self {
        let mut counts = Self::default();
        for partition in partitions {
            *match partition.state {
                PartitionState::Copying => &mut counts.copying,
                PartitionState::CaughtUp => &mut counts.caught_up,
                PartitionState::Waiting { .. } => &mut counts.waiting,
                PartitionState::Held { .. } => &mut counts.held,
            } += 1;
        }
        counts
    }
}

/// How many of them are held.
pub(super) fn held(partitions: &[PartitionStatus]) -> u64 {
    Counts::of(partitions).held
}

/// How far a flow came, and who of its partitions is not well.
pub(super) fn log_stopped(name: &str, status: &FlowStatus, partitions: &[PartitionStatus], now: SystemTime) {
    let FlowStatus { partitions: count, records, bytes, lag_records, .. } = status;
    let Counts { copying, caught_up, waiting, held } = Counts::of(partitions);
    info!(
        flow = name,
        partitions = count,
        copying,
        caught_up,
        waiting,
        held,
        records,
        bytes,
        lag_records,
        "stopped"
    );
    for PartitionStatus { topic, partition, state, since, .. } in to_name(partitions) {
        let lasts = now.duration_since(*since).unwrap_or_default();
        let sentence = in_words(state, lasts);
        let seconds = lasts.as_secs();
        match state {
            PartitionState::Held { .. } => error!(flow = name, topic, partition, seconds, "{sentence}"),
            _ if lasts >= WARNED_AFTER => warn!(flow = name, topic, partition, seconds, "{sentence}"),
            _ => info!(flow = name, topic, partition, seconds, "{sentence}"),
        }
    }
    let unnamed = (waiting + held).saturating_sub(NAMED_MAX as u64);
    if unnamed > 0 {
        warn!(flow = name, partitions = unnamed, "more partitions are held or wait");
    }
}

/// Those that are not well: the held ones first, then who waits, each from the longest on.
fn to_name(partitions: &[PartitionStatus]) -> Vec<&PartitionStatus> {
    let mut unwell: Vec<&PartitionStatus> =
        partitions.iter().filter(|partition| !partition.state.is_well()).collect();
    unwell.sort_by_key(|partition| {
        let waits = matches!(partition.state, PartitionState::Waiting { .. });
        (waits, partition.since, &partition.topic, partition.partition)
    });
    unwell.truncate(NAMED_MAX);
    unwell
}

fn in_words(state: &PartitionState, lasts: Duration) -> String {
    let lasts = HumanDuration(lasts);
    match state {
        PartitionState::Held { reason } => format!("held for {lasts}: {reason}"),
        PartitionState::Waiting { why } => format!("waiting for {lasts}: {why}"),
        well => well.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinlog_engine::machine::hold::{HoldReason, Side};

    fn status(partition: i32, state: PartitionState, since_s: u64) -> PartitionStatus {
        PartitionStatus {
            topic: "orders".to_owned(),
            target_topic: "west.orders".to_owned(),
            partition,
            state,
            since: SystemTime::UNIX_EPOCH + Duration::from_secs(since_s),
            position: Some(7),
            readable_end: Some(7),
        }
    }

    fn held() -> PartitionState {
        PartitionState::Held { reason: HoldReason::Deleted { side: Side::Source } }
    }

    fn waiting() -> PartitionState {
        PartitionState::Waiting { why: "it has no leader at the target".to_owned() }
    }

    #[test]
    fn the_held_are_named_before_who_waits_and_the_longest_first() {
        let all = [
            status(0, waiting(), 1),
            status(1, PartitionState::CaughtUp, 0),
            status(2, held(), 9),
            status(3, held(), 5),
            status(4, PartitionState::Copying, 0),
        ];
        assert_eq!(Counts::of(&all), Counts { copying: 1, caught_up: 1, waiting: 1, held: 2 });
        assert_eq!(to_name(&all).iter().map(|named| named.partition).collect::<Vec<_>>(), [3, 2, 0]);
        let many: Vec<_> = (0..100).map(|partition| status(partition, waiting(), 1)).collect();
        assert_eq!(to_name(&many).len(), NAMED_MAX);
    }

    #[test]
    fn a_sentence_says_how_long_and_why() {
        let minutes = Duration::from_secs(190);
        assert!(in_words(&held(), minutes).starts_with("held for 3 minutes: the source topic was deleted"));
        let why = "waiting for 12 seconds: it has no leader at the target";
        assert_eq!(in_words(&waiting(), Duration::from_secs(12)), why);
    }
}
