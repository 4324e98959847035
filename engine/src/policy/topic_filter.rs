//! Which topics the operator wants: `topics` and `topics.exclude`.

use super::java_regex::{MatchError, Names, PatternError, PatternList};

/// `topics` where nobody wrote it.
pub const DEFAULT_INCLUDED_TOPICS: &[&str] = &[".*"];

/// `topics.exclude` where nobody wrote it, of MM2 4.3.1.
pub const DEFAULT_EXCLUDED_TOPICS: &[&str] = &["mm2.*\\.internal", ".*\\.replica", "__.*"];

/// What the two lists say about a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterVerdict {
    /// Included and not excluded.
    Wanted,
    /// No pattern of `topics` matches.
    NotIncluded,
    /// A pattern of `topics.exclude` matches: it wins.
    Excluded,
}

/// The two compiled lists.
///
/// # References
/// `DefaultTopicFilter` of MM2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicFilter {
    include: PatternList,
    exclude: PatternList,
}

impl TopicFilter {
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

    /// What the lists say about `topic`.
    ///
    /// # Errors
    /// When a pattern needs too many steps: the topic then counts as not wanted, and the error must be shown.
    pub fn verdict(&self, topic: &str) -> Result<FilterVerdict, MatchError> {
        if !self.include.matches(topic)? {
            return Ok(FilterVerdict::NotIncluded);
        }
        if self.exclude.matches(topic)? { Ok(FilterVerdict::Excluded) } else { Ok(FilterVerdict::Wanted) }
    }

    /// Whether `topics` by itself asks for `topic`; not, where a pattern could not be tried to its end.
    pub fn includes(&self, topic: &str) -> bool {
        self.include.matches(topic).unwrap_or(false)
    }

    /// Patterns of `topics` as written.
    pub fn include(&self) -> &[String] {
        self.include.patterns()
    }

    /// Patterns of `topics` that match none of the `names`, whatever it is.
    pub fn include_matching_nothing(&self, names: Names) -> impl Iterator<Item = &str> {
        self.include.matching_nothing(names)
    }

    /// Patterns of `topics.exclude` as written.
    pub fn exclude(&self) -> &[String] {
        self.exclude.patterns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclude_wins_and_empty_lists_match_nothing() {
        let filter = TopicFilter::new(&["orders.*", "pay"], &["orders-tmp"]).unwrap();
        assert_eq!(filter.verdict("orders-1"), Ok(FilterVerdict::Wanted));
        assert_eq!(filter.verdict("orders-tmp"), Ok(FilterVerdict::Excluded));
        assert_eq!(filter.verdict("payments"), Ok(FilterVerdict::NotIncluded));
        let none = TopicFilter::new::<&str>(&[], &[]).unwrap();
        assert_eq!(none.verdict("orders"), Ok(FilterVerdict::NotIncluded));
        let all = TopicFilter::new(&[".*"], &[]).unwrap();
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
            let filter = TopicFilter::new(include, &[]).unwrap();
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
        let filter = TopicFilter::new(DEFAULT_INCLUDED_TOPICS, DEFAULT_EXCLUDED_TOPICS).unwrap();
        for wanted in ["orders", "billing.internal", "billing-internal", "a.checkpoints.internal"] {
            assert_eq!(filter.verdict(wanted), Ok(FilterVerdict::Wanted), "{wanted}");
        }
        for excluded in ["mm2-offsets.a.internal", "x.replica", "__consumer_offsets"] {
            assert_eq!(filter.verdict(excluded), Ok(FilterVerdict::Excluded), "{excluded}");
        }
    }
}
