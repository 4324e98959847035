//! Real Kafka brokers, as Maven brings them.

pub mod jars;
pub mod kafka;
pub mod log_dump;
pub mod mirror_maker;
pub mod ports;
pub mod raw_producer;
mod settings;

use std::fmt;

/// The broker versions that the tests know how to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// 2.1.1: the oldest that the judge's client speaks to; runs with ZooKeeper.
    V2_1_1,
    /// 2.4.1: without topic ids and without DescribeProducers; runs with ZooKeeper.
    V2_4_1,
    /// 2.8.2: the oldest with DescribeProducers; runs with ZooKeeper.
    V2_8_2,
    /// 3.9.2: the last line with ZooKeeper, run as KRaft; Produce ends at version 11.
    V3_9_2,
    /// 4.3.1: the current one; the judge's client too.
    V4_3_1,
}

impl Version {
    /// As Maven writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2_1_1 => "2.1.1",
            Self::V2_4_1 => "2.4.1",
            Self::V2_8_2 => "2.8.2",
            Self::V3_9_2 => "3.9.2",
            Self::V4_3_1 => "4.3.1",
        }
    }

    /// Whether brokers of this version need a ZooKeeper beside them.
    #[must_use]
    pub fn needs_zookeeper(self) -> bool {
        matches!(self, Self::V2_1_1 | Self::V2_4_1 | Self::V2_8_2)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
