//! The APIs we use, the versions of each that we speak, and the choice between those and a broker's.
//!
//! The lower ends leave out what no broker from 2.4 on needs; the upper ends are the newest whose fields are known
//! here, so a newer broker is spoken to in a version that both know.
//!
//! # References
//! The message definitions of Kafka 4.3.1 (`clients`, `common/message`); KIP-35 and KIP-511 for the negotiation.

use std::fmt;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Api {
    /// Appends batches. By topic id from version 13 on.
    Produce,
    /// Reads batches. By topic id from version 13 on, diverging epochs from 12 on.
    Fetch,
    /// Offsets by time, or of the ends of a log.
    ListOffsets,
    /// Brokers, topics, partitions and their leaders. Topic ids from version 10 on.
    Metadata,
    /// What the broker speaks.
    ApiVersions,
    /// Makes topics.
    CreateTopics,
    /// A producer id.
    InitProducerId,
    /// The end of a leader epoch in a log.
    OffsetForLeaderEpoch,
    /// Configs of topics and brokers.
    DescribeConfigs,
    /// Adds partitions to topics.
    CreatePartitions,
    /// Changes single configs.
    IncrementalAlterConfigs,
    /// The producers that a partition leader knows.
    DescribeProducers,
}

/// What is fixed about an API.
struct Facts {
    key: i16,
    name: &'static str,
    first: i16,
    last: i16,
    /// The first version with compact lengths and tagged fields (KIP-482).
    flexible: i16,
}

const fn facts(key: i16, name: &'static str, first: i16, last: i16, flexible: i16) -> Facts {
    Facts { key, name, first, last, flexible }
}

impl Api {
    /// All of them, by key.
    pub const ALL: [Self; 12] = [
        Self::Produce,
        Self::Fetch,
        Self::ListOffsets,
        Self::Metadata,
        Self::ApiVersions,
        Self::CreateTopics,
        Self::InitProducerId,
        Self::OffsetForLeaderEpoch,
        Self::DescribeConfigs,
        Self::CreatePartitions,
        Self::IncrementalAlterConfigs,
        Self::DescribeProducers,
    ];

    const fn facts(self) -> Facts {
        match self {
            Self::Produce => facts(0, "Produce", 3, 13, 9),
            Self::Fetch => facts(1, "Fetch", 10, 16, 12),
            Self::ListOffsets => facts(2, "ListOffsets", 4, 10, 6),
            Self::Metadata => facts(3, "Metadata", 7, 13, 9),
            Self::ApiVersions => facts(18, "ApiVersions", 0, 4, 3),
            Self::CreateTopics => facts(19, "CreateTopics", 4, 7, 5),
            Self::InitProducerId => facts(22, "InitProducerId", 0, 5, 2),
            Self::OffsetForLeaderEpoch => facts(23, "OffsetForLeaderEpoch", 2, 4, 4),
            Self::DescribeConfigs => facts(32, "DescribeConfigs", 1, 4, 4),
            Self::CreatePartitions => facts(37, "CreatePartitions", 0, 3, 2),
            Self::IncrementalAlterConfigs => facts(44, "IncrementalAlterConfigs", 0, 1, 1),
            Self::DescribeProducers => facts(61, "DescribeProducers", 0, 0, 0),
        }
    }

    /// The number that stands for it in a request header.
    #[must_use]
    pub const fn key(self) -> i16 {
        self.facts().key
    }

    /// Kafka's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The versions that we speak.
    #[must_use]
    pub const fn versions(self) -> Versions {
        let facts = self.facts();
        Versions { min: facts.first, max: facts.last }
    }

    /// Whether this version has compact lengths and tagged fields (KIP-482).
    #[must_use]
    pub const fn is_flexible(self, version: i16) -> bool {
        version >= self.facts().flexible
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A range of versions, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The lowest.
    pub min: i16,
    /// The highest.
    pub max: i16,
}

impl Versions {
    /// Whether `version` is one of them.
    #[must_use]
    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(f, "version {}", self.min)
        } else {
            write!(f, "versions {} to {}", self.min, self.max)
        }
    }
}

/// A broker and we have no version of an API in common.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the broker speaks {api} in {}, we speak {ours}", listed(*theirs))]
pub struct Unsupported {
    /// The API.
    pub api: Api,
    /// What we speak.
    pub ours: Versions,
    /// What the broker speaks; nothing when it does not list the API.
    pub theirs: Option<Versions>,
}

fn listed(versions: Option<Versions>) -> String {
    versions.map_or_else(|| "no version".into(), |range| range.to_string())
}

impl Unsupported {
    /// The error for an API that the broker does not list at all.
    #[must_use]
    pub const fn unlisted(api: Api) -> Self {
        Self { api, ours: api.versions(), theirs: None }
    }
}

/// The highest version of `api` that both we and a broker speak that lists `broker_min` to `broker_max`.
///
/// # Errors
/// [`Unsupported`] when the ranges do not meet.
pub fn negotiate(api: Api, broker_min: i16, broker_max: i16) -> Result<i16, Unsupported> {
    let ours = api.versions();
    let version = ours.max.min(broker_max);
    if version >= ours.min && version >= broker_min {
        Ok(version)
    } else {
        Err(Unsupported { api, ours, theirs: Some(Versions { min: broker_min, max: broker_max }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_common_version_is_taken() {
        assert_eq!(negotiate(Api::Fetch, 4, 18), Ok(16));
        assert_eq!(negotiate(Api::Fetch, 0, 12), Ok(12));
        assert_eq!(negotiate(Api::Fetch, 16, 20), Ok(16));
        assert_eq!(negotiate(Api::Fetch, 0, 10), Ok(10));
    }

    #[test]
    fn ranges_that_do_not_meet_are_refused_by_name() {
        let newer = negotiate(Api::Fetch, 17, 20).unwrap_err();
        assert_eq!(
            newer.to_string(),
            "the broker speaks Fetch in versions 17 to 20, we speak versions 10 to 16"
        );
        let older = negotiate(Api::Fetch, 0, 9).unwrap_err();
        assert_eq!(older.theirs, Some(Versions { min: 0, max: 9 }));
        assert_eq!(
            Unsupported::unlisted(Api::DescribeProducers).to_string(),
            "the broker speaks DescribeProducers in no version, we speak version 0"
        );
    }

    #[test]
    fn a_range_turned_around_is_refused() {
        assert!(negotiate(Api::Metadata, 12, 8).is_err());
        assert!(negotiate(Api::Metadata, i16::MAX, i16::MIN).is_err());
        assert!(negotiate(Api::Metadata, -5, -1).is_err());
    }

    #[test]
    fn the_codecs_of_fetch_and_produce_speak_these_versions() {
        let Versions { min, max } = Api::Fetch.versions();
        assert_eq!(crate::fetch::VERSIONS, min..=max);
        let Versions { min, max } = Api::Produce.versions();
        assert_eq!(crate::produce::VERSIONS, min..=max);
    }

    #[test]
    fn keys_are_unique_and_in_order() {
        assert!(Api::ALL.windows(2).all(|pair| pair[0].key() < pair[1].key()));
        assert!(Api::ALL.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
