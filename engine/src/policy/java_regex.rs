//! A list of Java regular expressions, one of which must match a whole name.
//!
//! MM2 joins the patterns of a list with `|` and asks for a full match; so do we, which keeps the numbers of groups
//! and the reach of inline flags the same. `translate` writes Java's own spellings as the engine's.
//!
//! # References
//! `MirrorUtils#compilePatternList`, `DefaultTopicFilter`.

mod names;
mod translate;

use fancy_regex::{Regex, RegexBuilder};

pub use self::names::Names;
use self::translate::translate;

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
    /// When matching takes more than a million steps.
    pub fn matches(&self, name: &str) -> Result<bool, MatchError> {
        let Some(regex) = &self.regex else { return Ok(false) };
        regex.is_match(name).map_err(|error| MatchError {
            name: name.to_owned(),
            patterns: self.patterns.join("|"),
            reason: one_line(&error.to_string()),
        })
    }

    /// The patterns that match none of the `names`, whatever it is. A pattern with lookaround is never among them.
    pub fn matching_nothing(&self, names: Names) -> impl Iterator<Item = &str> {
        self.patterns.iter().map(String::as_str).filter(move |pattern| names::matches_nothing(pattern, names))
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
    let compiled = translate(pattern).and_then(|translated| {
        let compiled = compile(&translated).and_then(|_| compile(&format!("\\A(?:{translated})\\z")));
        compiled.map_err(|error| one_line(&error.to_string()))
    });
    compiled.map_err(|reason| PatternError { pattern: pattern.to_owned(), reason })
}

fn compile(pattern: &str) -> Result<Regex, fancy_regex::Error> {
    RegexBuilder::new(pattern).backtrack_limit(BACKTRACK_STEPS_MAX).build()
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

    /// What Java 17 says of each pattern and name; `tests/java/RegexGolden.java` wrote it.
    const GOLDEN: &str = include_str!("java_regex/golden-jdk17.tsv");

    #[test]
    fn every_answer_is_java_s() {
        let mut lines = GOLDEN.lines();
        let names: Vec<&str> = lines.next().unwrap().split('\t').skip(1).collect();
        let mut wrong = Vec::new();
        let mut count = 0;
        for line in lines {
            let (pattern, expected) = line.split_once('\t').unwrap();
            let answer = match PatternList::compile(&[pattern]) {
                Err(_) => "error".to_owned(),
                Ok(list) => {
                    names.iter().map(|name| if list.matches(name).unwrap() { '1' } else { '0' }).collect()
                }
            };
            if answer != expected {
                let differ = names.iter().zip(answer.chars().zip(expected.chars()));
                let differ: Vec<_> = differ.filter(|(_, (ours, java))| ours != java).collect();
                wrong.push(format!(
                    "{pattern} as {:?}: {differ:?} {answer:.5} {expected:.5}",
                    translate(pattern)
                ));
            }
            count += 1;
        }
        assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
        assert!(count > 150);
    }

    proptest::proptest! {
        #[test]
        fn no_pattern_brings_the_program_down(pattern in r"([\\\[\](){}^$|?*+.:&~,<>=!a-cQEpxu0-9 -]|\PC){0,40}") {
            let _ = PatternList::compile(&[pattern]).map(|list| list.matches("a.b-c"));
        }
    }

    #[test]
    fn classes_do_not_nest_for_ever() {
        assert!(PatternList::compile(&["[".repeat(100_000)]).is_err());
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
