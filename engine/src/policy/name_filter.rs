//! Which topics and groups the operator wants: `topics` and `topics.exclude`, `groups` and `groups.exclude`.

use super::java_regex::{MatchError, Names, PatternError, PatternList};

/// `topics` where nobody wrote it.
pub const DEFAULT_INCLUDED_TOPICS: &[&str] = &[".*"];

/// `topics.exclude` where nobody wrote it, of MM2 4.3.1.
pub const DEFAULT_EXCLUDED_TOPICS: &[&str] = &["mm2.*\\.internal", ".*\\.replica", "__.*"];

/// `groups` where nobody wrote it.
pub const DEFAULT_INCLUDED_GROUPS: &[&str] = &[".*"];

/// `groups.exclude` where nobody wrote it, of MM2 4.3.1.
pub const DEFAULT_EXCLUDED_GROUPS: &[&str] = &["console-consumer-.*", "connect-.*", "__.*"];

/// Whether a topic's name may hold this letter.
///
/// # References
/// `org.apache.kafka.common.internals.Topic`.
pub(crate) fn is_of_topic_names(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._-".contains(letter)
}

/// What the two lists say about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterVerdict {
    /// Included and not excluded.
    Wanted,
    /// No pattern of the including list matches.
    NotIncluded,
    /// A pattern of the excluding list matches: it wins.
    Excluded,
}

/// The two compiled lists.
///
/// # References
/// `DefaultTopicFilter` and `DefaultGroupFilter` of MM2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameFilter {
    include: PatternList,
    exclude: PatternList,
}

impl NameFilter {
    /// Compiles both lists.
    ///
    /// # Errors
    /// The first pattern that does not compile.
    pub fn new<S: AsRef<str>>(include: &[S], exclude: &[S]) -> Result<Self, PatternError> {
        Ok(Self { include: PatternList::compile(include)?, exclude: PatternList::compile(exclude)? })
    }

    /// Joins two lists that are compiled already.
    pub fn from_lists(include: PatternList, exclude: PatternList) -> Self {
        Self { include, exclude }
    }

    /// What the lists say about `name`.
    ///
    /// # Errors
    /// When a pattern needs too many steps: the name then counts as not wanted, and the error must be shown.
    pub fn verdict(&self, name: &str) -> Result<FilterVerdict, MatchError> {
        if !self.include.matches(name)? {
            return Ok(FilterVerdict::NotIncluded);
        }
        if self.exclude.matches(name)? { Ok(FilterVerdict::Excluded) } else { Ok(FilterVerdict::Wanted) }
    }

    /// Whether the including list by itself asks for `name`; not, where a pattern could not be tried to its end.
    pub fn includes(&self, name: &str) -> bool {
        self.include.matches(name).unwrap_or(false)
    }

    /// Patterns of the including list as written.
    pub fn include(&self) -> &[String] {
        self.include.patterns()
    }

    /// Patterns of the including list that match none of the `names`, whatever it is.
    pub fn include_matching_nothing(&self, names: Names) -> impl Iterator<Item = &str> {
        self.include.matching_nothing(names)
    }

    /// Patterns of the excluding list as written.
    pub fn exclude(&self) -> &[String] {
        self.exclude.patterns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclude_wins_and_empty_lists_match_nothing() {
        let filter = NameFilter::new(&["orders.*", "pay"], &["orders-tmp"]).unwrap();
        assert_eq!(filter.verdict("orders-1"), Ok(FilterVerdict::Wanted));
        assert_eq!(filter.verdict("orders-tmp"), Ok(FilterVerdict::Excluded));
        assert_eq!(filter.verdict("payments"), Ok(FilterVerdict::NotIncluded));
        let none = NameFilter::new::<&str>(&[], &[]).unwrap();
        assert_eq!(none.verdict("orders"), Ok(FilterVerdict::NotIncluded));
        let all = NameFilter::new(&[".*"], &[]).unwrap();
        assert_eq!(all.verdict("__x"), Ok(FilterVerdict::Wanted));
    }

    #[test]
    fn names_lists_and_everything_match_as_in_mm2() {
        for (include, wanted, left_out) in [
            (&["topic1"][..], &["topic1"][..], &["topic2", "topic11", "my-topic1"][..]),
            (&["topic1", "topic2"], &["topic1", "topic2"], &["topic3"]),
            (&[".*"], &["topic1", "topic2"], &[]),
            (&[], &[], &["topic1", ""]),
        ] {
            let filter = NameFilter::new(include, &[]).unwrap();
            for name in wanted {
                assert_eq!(filter.verdict(name), Ok(FilterVerdict::Wanted), "{include:?} {name}");
            }
            for name in left_out {
                assert_eq!(filter.verdict(name), Ok(FilterVerdict::NotIncluded), "{include:?} {name}");
            }
        }
    }

    #[test]
    fn the_defaults_of_4_3_1_let_user_topics_that_end_in_internal_pass() {
        let filter = NameFilter::new(DEFAULT_INCLUDED_TOPICS, DEFAULT_EXCLUDED_TOPICS).unwrap();
        for wanted in ["orders", "billing.internal", "billing-internal", "a.checkpoints.internal"] {
            assert_eq!(filter.verdict(wanted), Ok(FilterVerdict::Wanted), "{wanted}");
        }
        for excluded in ["mm2-offsets.a.internal", "x.replica", "__consumer_offsets"] {
            assert_eq!(filter.verdict(excluded), Ok(FilterVerdict::Excluded), "{excluded}");
        }
    }

    #[test]
    fn the_default_groups_are_those_of_applications() {
        let filter = NameFilter::new(DEFAULT_INCLUDED_GROUPS, DEFAULT_EXCLUDED_GROUPS).unwrap();
        for wanted in ["billing", "Orders of the shop", "my-connect-group"] {
            assert_eq!(filter.verdict(wanted), Ok(FilterVerdict::Wanted), "{wanted}");
        }
        for excluded in ["console-consumer-1", "connect-sink", "__amazon_msk"] {
            assert_eq!(filter.verdict(excluded), Ok(FilterVerdict::Excluded), "{excluded}");
        }
    }
}
