//! Which configs of a source topic are given to its mirror when that is created.
//!
//! # References
//! `MirrorSourceConnector#targetConfig` (without incremental alter), `DefaultConfigPropertyFilter`; the numbers of
//! [`ConfigSource`] are those of DescribeConfigs (KIP-226).

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

    /// The configs to create the mirror with, in the order described.
    ///
    /// Values set at run time for brokers go along as topic configs, as in MM2; values from a broker's file do not.
    ///
    /// # Errors
    /// When a pattern needs too many steps on a config's name.
    pub fn for_creation(
        &self,
        entries: &[TopicConfigEntry<'_>],
    ) -> Result<Vec<(String, String)>, MatchError> {
        let mut chosen = Vec::new();
        for entry in entries {
            let Some(value) = entry.value else { continue };
            if self.can_be_copied(entry) && !self.exclude.matches(entry.name)? {
                chosen.push((entry.name.to_owned(), value.to_owned()));
            }
        }
        Ok(chosen)
    }

    fn can_be_copied(&self, entry: &TopicConfigEntry<'_>) -> bool {
        let from_here = match entry.source {
            ConfigSource::StaticBroker => false,
            ConfigSource::Default => self.defaults_from_source,
            ConfigSource::DynamicTopic
            | ConfigSource::DynamicBroker
            | ConfigSource::DynamicDefaultBroker
            | ConfigSource::Other => true,
        };
        from_here && !entry.read_only && !entry.sensitive
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
        filter.for_creation(entries).unwrap().into_iter().map(|(name, _)| name).collect()
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
        let values = filter.for_creation(&described()).unwrap();
        assert_eq!(values[0], ("cleanup.policy".to_owned(), "compact".to_owned()));
    }

    #[test]
    fn defaults_of_the_source_go_along_when_asked_for() {
        let filter = TopicConfigFilter::new(DEFAULT_EXCLUDED_CONFIGS, true).unwrap();
        assert_eq!(
            names(&filter, &described()),
            ["cleanup.policy", "retention.ms", "segment.bytes", "flush.ms"]
        );
    }

    #[test]
    fn a_list_of_ones_own_replaces_the_default_list() {
        let filter = TopicConfigFilter::new(&["(cleanup|retention)\\..*"], false).unwrap();
        assert_eq!(names(&filter, &described()), ["segment.bytes", "min.insync.replicas"]);
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
