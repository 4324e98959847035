//! The state topic `mm2-twinlog.internal`: what is stored there, and how it is laid out.

pub mod fuzzing;
mod loss;
pub mod record;

use std::collections::BTreeSet;

use crate::machine::flow_starts::StartEntry;
use crate::machine::partition_record::PartitionEntry;

/// Name of the state topic. Everybody's rules for MM2's internal topics cover it.
pub const STATE_TOPIC: &str = "mm2-twinlog.internal";

/// A partition of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey {
    /// Topic at the source.
    pub source_topic: String,
    /// Topic at the target.
    pub target_topic: String,
    /// Partition, the same on both sides.
    pub partition: i32,
}

/// Names and values of settings that twinlog put on a topic, those included that it is about to put there. A name has two
/// values while one of them is to replace the other.
pub type Settings = BTreeSet<(String, String)>;

/// One entry of the state topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateEntry {
    /// A producer id of the flow from this source. The first one in the log counts, until it is used up.
    Identity {
        /// The producer id on the target cluster.
        producer_id: i64,
        /// The id whose epochs were used up, -1 for a first one.
        replaces: i64,
    },
    /// A topic of the target is a mirror made by the flow from this source. Written before the topic is made, so that a
    /// flow the other way never takes it for a topic of the target's own.
    Mirror {
        /// Topic at the target.
        target_topic: String,
    },
    /// Where partitions of a topic begin, if the identity of this producer id is the flow's first one.
    Start(StartEntry),
    /// Something about a partition.
    Partition(PartitionKey, PartitionEntry),
    /// What twinlog put on a topic of the target, written before it is put there. The last one in the log counts.
    TopicSettings {
        /// The topic at the target.
        target_topic: String,
        /// All that is remembered of it.
        settings: Settings,
    },
    /// Written each hour, so that the target does not forget the writer's producer state.
    Heartbeat,
}

/// Most bytes of a record without topic names and runs: fixed fields, cluster id, framing.
const FIXED_BYTES_MAX: usize = 512;
/// Bytes of a run.
const RUN_BYTES: usize = 24;
/// Bytes of an offset.
const OFFSET_BYTES: usize = 8;
/// Bytes of a setting beside its name and value: their lengths.
const SETTING_BYTES: usize = 4;

impl StateEntry {
    /// Bytes that the entry's record does not exceed.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        let of_partition = |key: &PartitionKey| key.source_topic.len() + key.target_topic.len();
        FIXED_BYTES_MAX
            + match self {
                Self::Partition(key, PartitionEntry::Runs { runs, .. }) => {
                    of_partition(key) + runs.len() * RUN_BYTES
                }
                Self::Partition(key, PartitionEntry::Opened(..) | PartitionEntry::Progress { .. }) => {
                    of_partition(key)
                }
                Self::Mirror { target_topic } => target_topic.len(),
                Self::Start(start) => start.source_topic.len() + start.offsets.len() * OFFSET_BYTES,
                Self::TopicSettings { target_topic, settings } => {
                    target_topic.len() + settings_bytes(settings)
                }
                Self::Identity { .. } | Self::Heartbeat => 0,
            }
    }

    /// The partition and generation whose progress the entry tells.
    #[must_use]
    pub fn progressing(&self) -> Option<(&PartitionKey, i64, i16)> {
        match self {
            Self::Partition(key, PartitionEntry::Progress { producer_id, producer_epoch, .. }) => {
                Some((key, *producer_id, *producer_epoch))
            }
            Self::Partition(_, PartitionEntry::Opened(..) | PartitionEntry::Runs { .. })
            | Self::Identity { .. }
            | Self::Mirror { .. }
            | Self::Start(_)
            | Self::TopicSettings { .. }
            | Self::Heartbeat => None,
        }
    }

    /// The partition that the entry decides something about.
    #[must_use]
    pub fn decided(&self) -> Option<&PartitionKey> {
        match self {
            Self::Partition(key, PartitionEntry::Opened(..) | PartitionEntry::Runs { .. }) => Some(key),
            Self::Partition(_, PartitionEntry::Progress { .. })
            | Self::Identity { .. }
            | Self::Mirror { .. }
            | Self::Start(_)
            | Self::TopicSettings { .. }
            | Self::Heartbeat => None,
        }
    }
}

/// Bytes that settings take in an entry.
#[must_use]
pub fn settings_bytes<'a>(settings: impl IntoIterator<Item = &'a (String, String)>) -> usize {
    settings.into_iter().map(|(name, value)| name.len() + value.len() + SETTING_BYTES).sum()
}

/// An entry with the flow and the process that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Cluster id of the flow's source: aliases may be empty or change.
    pub source_cluster_id: String,
    /// Random number of the process that wrote the entry.
    pub instance: u64,
    /// The entry.
    pub entry: StateEntry,
}
