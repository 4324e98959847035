//! Which configs of a source topic its mirror gets, when it is created and afterwards.
//!
//! # References
//! `MirrorSourceConnector#targetConfig`, `DefaultConfigPropertyFilter`; the numbers of [`ConfigSource`] are those of
//! DescribeConfigs (KIP-226).

use std::collections::{BTreeMap, BTreeSet};

use super::java_regex::{MatchError, PatternError, PatternList};

/// `config.properties.exclude` where nobody wrote it, of MM2 4.3.1.
pub const DEFAULT_EXCLUDED_CONFIGS: &[&str] = &[
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms",
    "message.timestamp.type",
    "unclean.leader.election.enable",
    "min.insync.replicas",
];

/// Where a broker has the value of a topic config from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    /// Set on the topic.
    DynamicTopic,
    /// Set at run time on one broker.
    DynamicBroker,
    /// Set at run time for all brokers.
    DynamicDefaultBroker,
    /// From a broker's file.
    StaticBroker,
    /// Kafka's own default.
    Default,
    /// Of a kind that no topic config has, or that we do not know.
    Other,
}

impl ConfigSource {
    /// From the `config_source` of a DescribeConfigs answer (version 1 and up).
    pub fn from_wire(code: i8) -> Self {
        match code {
            1 => Self::DynamicTopic,
            2 => Self::DynamicBroker,
            3 => Self::DynamicDefaultBroker,
            4 => Self::StaticBroker,
            5 => Self::Default,
            _ => Self::Other,
        }
    }
}

/// One config of a topic as a broker described it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicConfigEntry<'a> {
    /// Its name, such as `retention.ms`.
    pub name: &'a str,
    /// Its value; none for sensitive ones.
    pub value: Option<&'a str>,
    /// Where the broker has it from.
    pub source: ConfigSource,
    /// Whether it cannot be set.
    pub read_only: bool,
    /// Whether its value is kept from clients.
    pub sensitive: bool,
}

/// The longest name or value of a config, in bytes: no client of Kafka's can write or read a longer one.
const TEXT_BYTES_MAX: usize = i16::MAX as usize;

/// What a source topic's configs ask of its mirror. A name in neither list says nothing: it is excluded, or what the source
/// holds cannot be copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceConfigs {
    /// Values that the mirror gets, by name.
    pub copied: BTreeMap<String, String>,
    /// Names for which the source has nothing to copy: it holds a default, or what stands in a broker's file.
    pub unset: BTreeSet<String>,
}

impl SourceConfigs {
    /// Whether any value to copy is about tiered storage.
    pub fn has_tiered_storage(&self) -> bool {
        self.copied.keys().any(|name| is_tiered_storage(name))
    }

    /// Says nothing about tiered storage any more.
    pub fn leave_out_tiered_storage(&mut self) {
        self.copied.retain(|name, _| !is_tiered_storage(name));
        self.unset.retain(|name| !is_tiered_storage(name));
    }
}

/// Configs of KIP-405 and its followers, which brokers without tiered storage refuse.
fn is_tiered_storage(name: &str) -> bool {
    name.starts_with("remote.") || name.starts_with("local.retention.")
}

/// The rules of one flow: `config.properties.exclude` and `use.defaults.from`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicConfigFilter {
    exclude: PatternList,
    defaults_from_source: bool,
}

impl TopicConfigFilter {
    /// `defaults_from_source`: what the source holds by default is set on the target too
    /// (`use.defaults.from = source`).
    ///
    /// # Errors
    /// The first pattern that does not compile.
    pub fn new<S: AsRef<str>>(exclude: &[S], defaults_from_source: bool) -> Result<Self, PatternError> {
        Ok(Self::from_list(PatternList::compile(exclude)?, defaults_from_source))
    }

    /// The same from a list that is compiled already.
    pub fn from_list(exclude: PatternList, defaults_from_source: bool) -> Self {
        Self { exclude, defaults_from_source }
    }

    /// What the described configs of a source topic ask of its mirror.
    ///
    /// Values set at run time for brokers go along as topic configs, as in MM2; values from a broker's file do not.
    ///
    /// # Errors
    /// When a pattern needs too many steps on a config's name.
    pub fn judge(&self, entries: &[TopicConfigEntry<'_>]) -> Result<SourceConfigs, MatchError> {
        let mut judged = SourceConfigs::default();
        for entry in entries {
            let is_dark = entry.read_only || entry.sensitive || entry.name.len() > TEXT_BYTES_MAX;
            if is_dark || self.exclude.matches(entry.name)? {
                continue;
            }
            match (entry.value, self.is_copied_from(entry.source)) {
                (_, false) => {
                    judged.unset.insert(entry.name.to_owned());
                }
                (Some(value), true) if value.len() <= TEXT_BYTES_MAX => {
                    judged.copied.insert(entry.name.to_owned(), value.to_owned());
                }
                (_, true) => {}
            }
        }
        Ok(judged)
    }

    fn is_copied_from(&self, source: ConfigSource) -> bool {
        match source {
            ConfigSource::StaticBroker => false,
            ConfigSource::Default => self.defaults_from_source,
            ConfigSource::DynamicTopic
            | ConfigSource::DynamicBroker
            | ConfigSource::DynamicDefaultBroker
            | ConfigSource::Other => true,
        }
    }

    /// Patterns of `config.properties.exclude` as written.
    pub fn exclude(&self) -> &[String] {
        self.exclude.patterns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<'a>(name: &'a str, value: &'a str, source: ConfigSource) -> TopicConfigEntry<'a> {
        TopicConfigEntry { name, value: Some(value), source, read_only: false, sensitive: false }
    }

    fn names(filter: &TopicConfigFilter, entries: &[TopicConfigEntry<'_>]) -> Vec<String> {
        filter.judge(entries).unwrap().copied.into_keys().collect()
    }

    fn described() -> Vec<TopicConfigEntry<'static>> {
        vec![
            entry("cleanup.policy", "compact", ConfigSource::DynamicTopic),
            entry("retention.ms", "1000", ConfigSource::DynamicDefaultBroker),
            entry("segment.bytes", "1048576", ConfigSource::DynamicBroker),
            entry("compression.type", "zstd", ConfigSource::StaticBroker),
            entry("flush.ms", "9223372036854775807", ConfigSource::Default),
            entry("min.insync.replicas", "2", ConfigSource::DynamicTopic),
            TopicConfigEntry { read_only: true, ..entry("x.read.only", "1", ConfigSource::DynamicTopic) },
            TopicConfigEntry { sensitive: true, ..entry("x.sensitive", "1", ConfigSource::DynamicTopic) },
            TopicConfigEntry { value: None, ..entry("x.no.value", "", ConfigSource::DynamicTopic) },
        ]
    }

    #[test]
    fn what_somebody_set_at_run_time_goes_along_defaults_and_files_do_not() {
        let filter = TopicConfigFilter::new(DEFAULT_EXCLUDED_CONFIGS, false).unwrap();
        assert_eq!(names(&filter, &described()), ["cleanup.policy", "retention.ms", "segment.bytes"]);
        let judged = filter.judge(&described()).unwrap();
        assert_eq!(judged.copied["cleanup.policy"], "compact");
        let unset = BTreeSet::from(["compression.type", "flush.ms"].map(str::to_owned));
        assert_eq!(judged.unset, unset, "nothing is said of what is excluded or cannot be copied");
    }

    #[test]
    fn defaults_of_the_source_go_along_when_asked_for() {
        let filter = TopicConfigFilter::new(DEFAULT_EXCLUDED_CONFIGS, true).unwrap();
        assert_eq!(
            names(&filter, &described()),
            ["cleanup.policy", "flush.ms", "retention.ms", "segment.bytes"]
        );
        assert_eq!(
            filter.judge(&described()).unwrap().unset,
            BTreeSet::from(["compression.type".to_owned()])
        );
    }

    #[test]
    fn a_list_of_ones_own_replaces_the_default_list() {
        let filter = TopicConfigFilter::new(&["(cleanup|retention)\\..*"], false).unwrap();
        assert_eq!(names(&filter, &described()), ["min.insync.replicas", "segment.bytes"]);
    }

    #[test]
    fn what_no_request_can_carry_is_left_alone() {
        let filter = TopicConfigFilter::new::<&str>(&[], true).unwrap();
        let (long, longest) = ("x".repeat(TEXT_BYTES_MAX + 1), "x".repeat(TEXT_BYTES_MAX));
        let entries = [
            entry(&long, "1", ConfigSource::Default),
            entry("long.value", &long, ConfigSource::DynamicTopic),
            entry("longest.value", &longest, ConfigSource::DynamicTopic),
        ];
        assert_eq!(names(&filter, &entries), ["longest.value"]);
        assert!(filter.judge(&entries).unwrap().unset.is_empty());
    }

    #[test]
    fn tiered_storage_can_be_left_out() {
        let filter = TopicConfigFilter::new(DEFAULT_EXCLUDED_CONFIGS, false).unwrap();
        let entries = [
            entry("remote.storage.enable", "true", ConfigSource::DynamicTopic),
            entry("local.retention.ms", "1000", ConfigSource::DynamicTopic),
            entry("remote.log.delete.on.disable", "false", ConfigSource::Default),
            entry("retention.ms", "5000", ConfigSource::DynamicTopic),
            entry("segment.ms", "5000", ConfigSource::Default),
        ];
        let mut judged = filter.judge(&entries).unwrap();
        assert!(judged.has_tiered_storage());
        judged.leave_out_tiered_storage();
        assert!(!judged.has_tiered_storage());
        assert_eq!(judged.copied.into_keys().collect::<Vec<_>>(), ["retention.ms"]);
        assert_eq!(judged.unset.into_iter().collect::<Vec<_>>(), ["segment.ms"]);
    }

    #[test]
    fn sources_have_the_numbers_of_the_wire() {
        let known = [1, 2, 3, 4, 5].map(ConfigSource::from_wire);
        assert_eq!(
            known,
            [
                ConfigSource::DynamicTopic,
                ConfigSource::DynamicBroker,
                ConfigSource::DynamicDefaultBroker,
                ConfigSource::StaticBroker,
                ConfigSource::Default
            ]
        );
        assert_eq!(ConfigSource::from_wire(0), ConfigSource::Other);
        assert_eq!(ConfigSource::from_wire(-7), ConfigSource::Other);
    }
}
