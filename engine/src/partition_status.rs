//! What a flow shows of one partition at one moment.

use std::fmt;
use std::time::SystemTime;

use crate::machine::course::lag_records;
use crate::machine::hold::HoldReason;

/// A partition at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionStatus {
    /// The topic's name at the source.
    pub topic: String,
    /// Its name on the target.
    pub target_topic: String,
    /// The partition.
    pub partition: i32,
    /// How it fares.
    pub state: PartitionState,
    /// Since when, by the machine's wall clock. It stays the same while the partition is held for one kind of reason, tries
    /// again in vain included, and while it waits, for whatever.
    pub since: SystemTime,
    /// The next upstream offset: everything below is on the target, or is not to be copied. None before the first line-up.
    pub position: Option<i64>,
    /// First upstream offset that could not be read yet, as last seen: the source's high watermark, or its last stable offset
    /// where only committed records are read. None before the first Fetch of this run.
    pub readable_end: Option<i64>,
}

impl PartitionStatus {
    /// Upstream offsets between the position and the end, as last seen.
    #[must_use]
    pub fn lag_records(&self) -> Option<u64> {
        lag_records(self.position, self.readable_end)
    }
}

/// How a partition fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionState {
    /// It has everything that the source had at some moment of the last ten seconds.
    CaughtUp,
    /// It copies what it is behind with, as fast as the clusters and the flow's throttle let it.
    Copying,
    /// It waits for somebody to act. Others go on.
    Held {
        /// For what.
        reason: HoldReason,
    },
    /// It cannot copy at present, for a reason that should pass.
    Waiting {
        /// The reason.
        why: String,
    },
}

impl PartitionState {
    /// Whether it copies or has nothing to copy.
    #[must_use]
    pub fn is_well(&self) -> bool {
        match self {
            Self::CaughtUp | Self::Copying => true,
            Self::Held { .. } | Self::Waiting { .. } => false,
        }
    }
}

impl fmt::Display for PartitionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CaughtUp => f.write_str("caught up"),
            Self::Copying => f.write_str("copying"),
            Self::Held { reason } => write!(f, "held: {reason}"),
            Self::Waiting { why } => write!(f, "waiting: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lag_is_known_once_both_ends_are() {
        let mut status = PartitionStatus {
            topic: "orders".to_owned(),
            target_topic: "west.orders".to_owned(),
            partition: 3,
            state: PartitionState::Copying,
            since: SystemTime::UNIX_EPOCH,
            position: Some(7),
            readable_end: None,
        };
        assert_eq!(status.lag_records(), None);
        status.readable_end = Some(49);
        assert_eq!(status.lag_records(), Some(42));
        // A source that was cut back.
        status.readable_end = Some(5);
        assert_eq!(status.lag_records(), Some(0));
    }
}
