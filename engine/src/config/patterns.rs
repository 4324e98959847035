//! Lists of patterns: `topics`, `groups`, `config.properties.exclude` and what excludes from them.
//!
//! Each is compiled, whether its part of twinlog is built or not: with one that does not compile MM2 ends at its start.
//!
//! # References
//! `DefaultTopicFilter`, `DefaultGroupFilter`, `DefaultConfigPropertyFilter`.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::error::Fault;
use super::pattern_advice;
use super::properties::Entry;
use super::resolve::{Resolver, has_empty_items, split_list};
use super::secret::is_known_below_names;
use super::values;
use crate::policy::{
    DEFAULT_EXCLUDED_CONFIGS, DEFAULT_EXCLUDED_GROUPS, DEFAULT_EXCLUDED_TOPICS, DEFAULT_INCLUDED_GROUPS,
    DEFAULT_INCLUDED_TOPICS, NameFilter, Names, PatternError, PatternList, TopicConfigFilter,
};

/// Lists that were compiled for one flow, for the next one that has the same: most flows of a file share theirs.
#[derive(Default)]
pub(super) struct Compiled {
    lists: RefCell<BTreeMap<Vec<String>, Result<PatternList, PatternError>>>,
}

impl Compiled {
    fn list(&self, patterns: &[&str]) -> Result<PatternList, PatternError> {
        let written = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let mut lists = self.lists.borrow_mut();
        lists.entry(written).or_insert_with(|| PatternList::compile(patterns)).clone()
    }

    /// Whether a pattern by itself matches `name`; not, where it cannot be tried to its end.
    pub(super) fn matches(&self, pattern: &str, name: &str) -> bool {
        self.list(&[pattern]).is_ok_and(|list| list.matches(name).unwrap_or(false))
    }
}

/// A key whose value is such a list.
struct ListKey {
    key: &'static str,
    /// Its name of before Kafka 2.7.
    old_key: Option<&'static str>,
    names: Names,
    /// What its patterns are to match.
    what: &'static str,
}

impl ListKey {
    /// Its old name, where that is written.
    fn find_old<'p>(&self, resolver: &Resolver<'p>) -> Option<&'p Entry> {
        resolver.find(self.old_key?)
    }
}

const TOPICS: ListKey = ListKey { key: "topics", old_key: None, names: Names::OfTopics, what: TOPIC };
const TOPICS_EXCLUDE: ListKey =
    ListKey { key: "topics.exclude", old_key: Some("topics.blacklist"), names: Names::OfTopics, what: TOPIC };
const CONFIGS_EXCLUDE: ListKey = ListKey {
    key: "config.properties.exclude",
    old_key: Some("config.properties.blacklist"),
    names: Names::OfTopics,
    what: "name of a config",
};
const GROUPS: ListKey = ListKey { key: "groups", old_key: None, names: Names::Any, what: GROUP };
const GROUPS_EXCLUDE: ListKey =
    ListKey { key: "groups.exclude", old_key: Some("groups.blacklist"), names: Names::Any, what: GROUP };

const LISTED: &str = "write names or regular expressions, with commas between";
const TOPIC: &str = "legal name of a topic";
const GROUP: &str = "name of a group";

pub(super) fn topic_filter(resolver: &mut Resolver<'_>) -> Option<NameFilter> {
    let include = read(resolver, &TOPICS, DEFAULT_INCLUDED_TOPICS);
    let exclude = read(resolver, &TOPICS_EXCLUDE, DEFAULT_EXCLUDED_TOPICS);
    if let Some((Some(entry), list)) = &exclude {
        refuse_dead_excludes(resolver, entry, list);
    }
    let exclude = exclude.map(|(_, list)| list);
    let ((including, include), exclude) = (include?, exclude?);
    match including {
        Some(entry) if include.patterns().is_empty() => {
            resolver.warn(entry, "an empty list matches no topic: nothing is copied but heartbeats");
        }
        Some(entry) if include.matching_nothing(Names::OfTopics).count() == include.patterns().len() => {
            let reason = "matches no legal name of a topic, so nothing would be copied";
            let remedy = pattern_advice::of_dead(&include.patterns()[0]).unwrap_or(LISTED);
            resolver.fault(Fault::of(entry, reason).remedy(remedy));
        }
        Some(entry) => warn_of_dead_patterns(resolver, entry, &include, &TOPICS),
        None => {}
    }
    Some(NameFilter::from_lists(include, exclude))
}

/// What of the file counts as `topics.exclude`.
pub(super) fn topics_exclude<'p>(resolver: &Resolver<'p>) -> Option<&'p Entry> {
    resolver.find(TOPICS_EXCLUDE.key).or_else(|| TOPICS_EXCLUDE.find_old(resolver))
}

/// No list is refused for matching no group: `groups = ^$` is one way to sync none.
pub(super) fn group_filter(resolver: &mut Resolver<'_>) -> Option<NameFilter> {
    let include = warned_of(resolver, &GROUPS, DEFAULT_INCLUDED_GROUPS);
    let exclude = warned_of(resolver, &GROUPS_EXCLUDE, DEFAULT_EXCLUDED_GROUPS);
    Some(NameFilter::from_lists(include?, exclude?))
}

pub(super) fn topic_configs(resolver: &mut Resolver<'_>) -> Option<TopicConfigFilter> {
    let exclude = warned_of(resolver, &CONFIGS_EXCLUDE, DEFAULT_EXCLUDED_CONFIGS);
    let defaults = resolver.find("use.defaults.from");
    let is_source = defaults.is_some_and(|entry| entry.value.trim() == "source");
    if let Some(entry) = defaults.filter(|entry| !is_source && entry.value.trim() != "target") {
        let text = "neither `source` nor `target`, in small letters: taken for `target`, as by MM2";
        resolver.warn(entry, text);
    }
    Some(TopicConfigFilter::from_list(exclude?, is_source))
}

fn warned_of(resolver: &mut Resolver<'_>, key: &ListKey, default: &[&str]) -> Option<PatternList> {
    let (entry, list) = read(resolver, key, default)?;
    if let Some(entry) = entry {
        warn_of_dead_patterns(resolver, entry, &list, key);
    }
    Some(list)
}

/// What was to stay behind would be copied where an item holds what never stands in a name. (`^$` is one way to exclude
/// nothing.)
fn refuse_dead_excludes(resolver: &mut Resolver<'_>, entry: &Entry, list: &PatternList) {
    let is_odd = |pattern: &&str| pattern.contains([' ', '"', '\'', ';', '#']);
    let Some(dead) = list.matching_nothing(TOPICS_EXCLUDE.names).find(is_odd) else {
        return warn_of_dead_patterns(resolver, entry, list, &TOPICS_EXCLUDE);
    };
    let reason = format!("`{dead}` matches no {}, so what it was to exclude would be copied", TOPIC);
    resolver.fault(Fault::of(entry, reason).remedy(pattern_advice::of_dead(dead).unwrap_or(LISTED)));
}

fn warn_of_dead_patterns(resolver: &mut Resolver<'_>, entry: &Entry, list: &PatternList, key: &ListKey) {
    let dead: Vec<String> = list.matching_nothing(key.names).map(|pattern| format!("`{pattern}`")).collect();
    if dead.is_empty() {
        return;
    }
    // What the form has put into the value is the cause, then.
    let sentence = format!("{} matches no {}", dead.join(", "), key.what);
    match values::oddity(entry, resolver.form()) {
        Some(cause) => resolver.warn_with(entry, &format!("{}, so {sentence}", cause.text), &cause.remedy),
        None => resolver.warn_with(
            entry,
            &sentence,
            pattern_advice::of_dead(dead[0].trim_matches('`')).unwrap_or_default(),
        ),
    }
}

/// The list from its key, else from its old name, else the default; none after a fault.
fn read<'p>(
    resolver: &mut Resolver<'p>,
    key: &ListKey,
    default: &[&str],
) -> Option<(Option<&'p Entry>, PatternList)> {
    let mut entry = resolver.find(key.key);
    if let Some(old) = key.find_old(resolver) {
        let text = if entry.is_some() {
            format!("ignored because `{}` is written too", key.key)
        } else {
            format!("the old name of `{}`: honoured here, ignored by MM2 since 4.0", key.key)
        };
        resolver.warn(old, text);
        entry = entry.or(Some(old));
    }
    let Some(entry) = entry else {
        let list = resolver.compiled().list(default);
        return Some((None, list.expect("the defaults are tested to compile")));
    };
    if let Some(line) = goes_on_in(resolver, entry) {
        let reason =
            format!("the list breaks off here: it goes on in line {line}, which is a key of its own");
        let remedy = "write the list in one line, or a `\\` at the very end of each line but the last";
        resolver.fault(Fault::of(entry, reason).remedy(remedy));
        return None;
    }
    if has_empty_items(&entry.value) {
        resolver.warn(entry, "an empty item is left out; MM2 4.3 does not start with one");
    }
    let patterns: Vec<&str> = split_list(&entry.value).collect();
    let inside = entry.value.trim().strip_prefix('[').and_then(|value| value.strip_suffix(']'));
    if inside.is_some_and(|inside| !inside.contains(['[', ']'])) {
        let text = "the brackets are part of the patterns, where they stand for one letter of those inside";
        resolver.warn_with(entry, text, "write the list without them");
    }
    if let Ok(list) = resolver.compiled().list(&patterns) {
        return Some((Some(entry), list));
    }
    for pattern in patterns {
        if let Err(error) = resolver.compiled().list(&[pattern]) {
            // A comma that cut the list is not to blame for another pattern.
            let cut = if pattern.contains('{') { &*entry.value } else { pattern };
            let remedy = pattern_advice::of_list(cut, resolver.form());
            resolver.fault(Fault::of(entry, error.to_string()).remedy(remedy));
        }
    }
    None
}

/// The line in which a list goes on that ends in a comma, or holds nothing, or was to be continued: what stands there is no
/// key that anybody knows.
fn goes_on_in(resolver: &Resolver<'_>, entry: &Entry) -> Option<usize> {
    let properties = resolver.properties();
    let next = properties.entries().iter().find(|next| next.line > entry.line)?;
    let value = entry.value.trim();
    let is_broken_off =
        || value.ends_with(',') || properties.broken_off().any(|broken_off| broken_off.line == entry.line);
    let goes_on = if value.is_empty() { next.key.starts_with('-') } else { is_broken_off() };
    (goes_on && !is_known_below_names(&next.key)).then_some(next.line)
}

#[cfg(test)]
mod tests {
    use crate::config::MirrorConfig;

    const BASE: &str = "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n";

    fn read(more: &str) -> Result<Vec<String>, String> {
        match MirrorConfig::from_properties(format!("{BASE}{more}").as_bytes()) {
            Ok(config) => Ok(config.warnings().iter().map(ToString::to_string).collect()),
            Err(errors) => Err(errors.to_string()),
        }
    }

    #[test]
    fn topics_that_can_match_nothing_are_refused() {
        for text in ["topics = $topics", "topics = a.*$b, a^b"] {
            let error = read(text).unwrap_err();
            let reason = "matches no legal name of a topic, so nothing would be copied; write names";
            assert!(error.starts_with(&format!("line 5: `{text}`: {reason}")), "{error}");
        }
        for text in ["topics = ^a$", "topics = a$|b", "topics = (a|$)b*", "topics = (a|$)", "groups = a b"] {
            assert_eq!(read(text), Ok(Vec::new()), "{text}");
        }
    }

    #[test]
    fn a_dead_pattern_among_live_ones_is_named() {
        for (text, sentence) in [
            ("topics = orders, $X", "`topics`: `$X` matches no legal name of a topic"),
            ("topics.exclude = a^b", "`topics.exclude`: `a^b` matches no legal name of a topic"),
            ("topics.blacklist = a^b, b", "`topics.blacklist`: `a^b` matches no legal name of a topic"),
            ("groups = $X", "`groups`: `$X` matches no name of a group"),
            ("groups.exclude = x$y", "`groups.exclude`: `x$y` matches no name of a group"),
            (
                "config.properties.exclude = a b",
                "`config.properties.exclude`: `a b` matches no name of a config: items have commas between, not blanks",
            ),
        ] {
            let warnings = read(text).unwrap();
            assert!(warnings.contains(&format!("line 5: {sentence}")), "{text}: {warnings:?}");
        }
    }

    #[test]
    fn quotes_and_notes_are_told_once_with_what_they_do() {
        let quotes = "the quotes are part of the value: remove them";
        let note = "holds a `#` note, which is part of the value: notes stand on lines of their own";
        for (text, told) in [
            (
                "topics = orders, pay # note",
                "holds a `#` note, which is part of the value, so `pay # note` matches no legal name of a topic: notes stand \
                 on lines of their own",
            ),
            ("groups = a # note", note),
        ] {
            let (key, _) = text.split_once(' ').unwrap();
            assert_eq!(read(text), Ok(vec![format!("line 5: `{key}`: {told}")]));
        }
        for (text, reason, cause) in [
            ("topics = 'orders'", "matches no legal name of a topic", quotes),
            ("topics = orders # note", "matches no legal name of a topic", note),
            (
                "topics.exclude = 'orders'",
                "`'orders'` matches no legal name of a topic, so what it was to exclude",
                quotes,
            ),
            ("replication.factor = 2 # note", "not a replication factor", note),
            ("refresh.topics.enabled = \"false\"", "neither `true` nor `false`", quotes),
        ] {
            let errors = MirrorConfig::from_properties(format!("{BASE}{text}").as_bytes()).unwrap_err();
            let error = errors.to_string();
            assert!(error.starts_with(&format!("line 5: `{text}`: {reason}")), "{error}");
            assert!(error.ends_with(&format!("; {cause}")) && error.lines().count() == 1, "{error}");
            assert!(errors.warnings().is_empty(), "{:?}", errors.warnings());
        }
    }

    #[test]
    fn what_was_to_stay_behind_is_not_copied_for_a_slip_of_the_pen() {
        for (list, advice) in [
            ("internal.* payroll.*", "items have commas between, not blanks"),
            ("a, internal.*;secret.*", "items have commas between, not semicolons"),
            ("a, b # not these", "notes stand on lines of their own"),
        ] {
            let error = read(&format!("topics.exclude = {list}")).unwrap_err();
            assert!(
                error.contains("so what it was to exclude would be copied") && error.contains(advice),
                "{error}"
            );
        }
        assert!(read("topics.exclude = ^$").is_ok());
    }

    #[test]
    fn a_list_over_several_lines_is_not_cut_in_silence() {
        for list in
            ["\n  - orders\n  - payments", "orders,\n  payments,\n  x.*", "orders, \\ \n  payments", "a,\nb"]
        {
            let error = read(&format!("topics = {list}")).unwrap_err();
            assert!(
                error.contains("it goes on in line 6, which is a key of its own; write the list"),
                "{error}"
            );
        }
        assert!(read("topics = orders, \\\n  payments\nfrobnicate = 1").is_ok());
        assert!(read("groups =\nfrobnicate = 1").is_ok());
    }

    #[test]
    fn each_list_is_compiled() {
        for key in [
            "topics",
            "topics.exclude",
            "topics.blacklist",
            "groups",
            "groups.exclude",
            "groups.blacklist",
            "config.properties.exclude",
            "config.properties.blacklist",
        ] {
            let error = read(&format!("{key} = ok, bad(")).unwrap_err();
            let expected = format!("line 5: `{key} = ok, bad(`: `bad(` is not a usable regular expression");
            assert!(error.starts_with(&expected), "{error}");
            let warnings = read(&format!("{key} = a,,b")).unwrap();
            assert!(warnings.iter().any(|warning| warning.contains("an empty item is left out")), "{key}");
        }
    }

    #[test]
    fn each_pattern_that_does_not_compile_is_named_with_advice_of_its_own() {
        for list in ["events.{1,3}, *.audit", "*.audit, events.{1,3}"] {
            let errors = read(&format!("topics = ^orders-(eu|us)$, {list}")).unwrap_err();
            let lines: Vec<&str> = errors.lines().collect();
            assert_eq!(lines.len(), 2, "{errors}");
            let of = |part: &str| *lines.iter().find(|line| line.contains(part)).unwrap();
            assert!(of("`events.{1` is not").contains("cut at every comma"), "{errors}");
            assert!(of("`*.audit` is not").contains("write `.*` for any characters"), "{errors}");
        }
    }

    #[test]
    fn a_list_in_brackets_is_told() {
        for list in ["[orders]", "[orders, payments]", "[a]"] {
            let warnings = read(&format!("topics = {list}")).unwrap();
            assert!(warnings[0].ends_with("of those inside: write the list without them"), "{warnings:?}");
        }
        assert_eq!(read("topics = [ab]c, x[de]\n"), Ok(Vec::new()));
    }

    #[test]
    fn old_names_are_told_of_every_list() {
        for (old, key) in [
            ("topics.blacklist", "topics.exclude"),
            ("groups.blacklist", "groups.exclude"),
            ("config.properties.blacklist", "config.properties.exclude"),
        ] {
            let warnings = read(&format!("{old} = a")).unwrap();
            let expected =
                format!("line 5: `{old}`: the old name of `{key}`: honoured here, ignored by MM2 since 4.0");
            assert_eq!(warnings, [expected]);
            let warnings = read(&format!("{old} = a\n{key} = b")).unwrap();
            assert_eq!(warnings, [format!("line 5: `{old}`: ignored because `{key}` is written too")]);
        }
    }

    #[test]
    fn a_side_that_mm2_does_not_know_is_told() {
        for (value, told) in [("source", 0), ("target", 0), ("sauce", 1), ("Source", 1), ("", 1)] {
            let warnings = read(&format!("use.defaults.from = {value}")).unwrap();
            assert_eq!(warnings.len(), told, "{value}: {warnings:?}");
            assert!(warnings.iter().all(|warning| warning.contains("neither `source` nor `target`")));
        }
    }
}
