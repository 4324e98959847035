//! A list of Java regular expressions, one of which must match a whole name.
//!
//! MM2 joins the patterns of a list with `|` and asks for a full match; so do we, which keeps the numbers of groups
//! and the reach of inline flags the same. Java's own spellings that the engine does not know are compile errors
//! here; translating them has its place in [`translated`].
//!
//! # References
//! `MirrorUtils#compilePatternList`, `DefaultTopicFilter`.

use fancy_regex::{Regex, RegexBuilder};

/// Steps after which matching one name is given up. A pattern that needs more on a name of at most 249 characters
/// would hang MM2.
const BACKTRACK_STEPS_MAX: usize = 1_000_000;

/// A pattern that cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a usable regular expression: {reason}")]
pub struct PatternError {
    /// The pattern at fault, or the whole joined list when only the patterns together are.
    pub pattern: String,
    /// What the engine says about it, in one line.
    pub reason: String,
}

/// A name for which matching was given up; it counts as not matched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("matching `{name}` against `{patterns}` was given up: {reason}")]
pub struct MatchError {
    /// The name that was tried.
    pub name: String,
    /// The joined patterns.
    pub patterns: String,
    /// Why matching ended, such as the limit on steps.
    pub reason: String,
}

/// Compiled patterns of a list. An empty list matches nothing.
#[derive(Clone, Debug)]
pub struct PatternList {
    patterns: Vec<String>,
    regex: Option<Regex>,
}

impl PatternList {
    /// Compiles a list.
    ///
    /// # Errors
    /// The first pattern that does not compile by itself; the joined list when each does but all together do not
    /// (a group opened in one and closed in another compiles in MM2 too).
    pub fn compile<S: AsRef<str>>(patterns: &[S]) -> Result<Self, PatternError> {
        let patterns: Vec<String> = patterns.iter().map(|p| p.as_ref().to_owned()).collect();
        if patterns.is_empty() {
            return Ok(Self { patterns, regex: None });
        }
        match full_match(&patterns.join("|")) {
            Ok(regex) => Ok(Self { patterns, regex: Some(regex) }),
            Err(joined) => Err(patterns.iter().find_map(|p| full_match(p).err()).unwrap_or(joined)),
        }
    }

    /// Whether the whole of `name` matches one of the patterns.
    ///
    /// # Errors
    /// When matching takes more than [`BACKTRACK_STEPS_MAX`] steps.
    pub fn matches(&self, name: &str) -> Result<bool, MatchError> {
        let Some(regex) = &self.regex else { return Ok(false) };
        regex.is_match(name).map_err(|error| MatchError {
            name: name.to_owned(),
            patterns: self.patterns.join("|"),
            reason: one_line(&error.to_string()),
        })
    }

    /// The patterns as written.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }
}

/// Two lists are equal when they were written alike.
impl PartialEq for PatternList {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}

impl Eq for PatternList {}

/// Compiles `pattern` by itself first: `a)|(b` must not become sound by what is put around it.
fn full_match(pattern: &str) -> Result<Regex, PatternError> {
    let translated = translated(pattern);
    let compiled = compile(translated).and_then(|_| compile(&format!("\\A(?:{translated})\\z")));
    compiled
        .map_err(|error| PatternError { pattern: pattern.to_owned(), reason: one_line(&error.to_string()) })
}

fn compile(pattern: &str) -> Result<Regex, fancy_regex::Error> {
    RegexBuilder::new(pattern).backtrack_limit(BACKTRACK_STEPS_MAX).build()
}

/// The one place where Java's spelling becomes the engine's. Nothing differs yet.
fn translated(pattern: &str) -> &str {
    pattern
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(patterns: &[&str], name: &str) -> bool {
        PatternList::compile(patterns).unwrap().matches(name).unwrap()
    }

    #[test]
    fn a_name_must_match_as_a_whole() {
        assert!(matches(&["orders"], "orders"));
        assert!(!matches(&["orders"], "orders2"));
        assert!(!matches(&["orders"], "my-orders"));
        assert!(matches(&["a", "b.*"], "bcd"));
        assert!(!matches(&["a|b"], "ab"));
    }

    #[test]
    fn an_empty_list_matches_nothing_not_even_the_empty_name() {
        assert!(!matches(&[], ""));
        assert!(!matches(&[], "orders"));
    }

    #[test]
    fn patterns_of_the_field_work() {
        assert!(matches(&["^(?!internal-).*"], "orders"));
        assert!(!matches(&["^(?!internal-).*"], "internal-x"));
        assert!(matches(&["(a)\\1"], "aa"));
        assert!(matches(&["a++b"], "aab"));
        assert!(!matches(&["a++ab"], "aab"), "possessive");
        assert!(matches(&[".*[\\-\\.]internal"], "x-internal"));
        assert!(matches(&["orders$"], "orders"));
    }

    #[test]
    fn the_pattern_at_fault_is_named() {
        let error = PatternList::compile(&["ok.*", "bad(", "[z-a]"]).unwrap_err();
        assert_eq!(error.pattern, "bad(");
        assert!(!error.reason.contains('\n'));
    }

    #[test]
    fn brackets_that_only_the_frame_would_balance_are_an_error() {
        assert_eq!(PatternList::compile(&["a)|(b"]).unwrap_err().pattern, "a)|(b");
        assert!(matches(&["(a", "b)c"], "bc"), "balanced by the list, as in MM2");
    }

    #[test]
    fn a_pattern_that_explodes_is_an_error_not_a_hang() {
        let list = PatternList::compile(&["(?:(?=a)a|a(?=a))*c"]).unwrap();
        let error = list.matches(&"a".repeat(249)).unwrap_err();
        assert!(error.to_string().contains("given up"), "{error}");
    }
}
