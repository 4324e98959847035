//! Which values a key may have in MM2, beyond their type: some words, or numbers within bounds.
//!
//! # References
//! The validators of the `ConfigDef`s that the key tables come from.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use super::{Kind, Scope, definition, scope_named};

/// The values that a key may have.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::config) struct Allowed {
    in_any_case: bool,
    is_list: bool,
    alternatives: Vec<Alternative>,
}

#[derive(Clone, Debug, PartialEq)]
enum Alternative {
    Word(&'static str),
    From { least: f64, most: Option<f64>, written: (&'static str, &'static str) },
}

type Table = BTreeMap<Scope, BTreeMap<&'static str, Allowed>>;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::new();
    for (scope, name, allowed) in include_str!("allowed-4.3.1.tsv").lines().filter_map(row) {
        table.entry(scope).or_default().insert(name, allowed);
    }
    table
});

/// One line of the table; none for a note. A test sees to it that nothing else is left out.
fn row(line: &'static str) -> Option<(Scope, &'static str, Allowed)> {
    let mut cells = line.split('\t');
    let (scope, name) = (scope_named(cells.next()?)?, cells.next()?);
    let in_any_case = cells.next()? == "i";
    let alternatives = cells.next()?.split(',').map(alternative).collect::<Option<_>>()?;
    let is_list = definition(scope, name)?.kind == Kind::List;
    Some((scope, name, Allowed { in_any_case, is_list, alternatives }))
}

fn alternative(text: &'static str) -> Option<Alternative> {
    let Some((least, most)) = text.split_once("..") else { return Some(Alternative::Word(text)) };
    let written = (least, most);
    let most = if most.is_empty() { None } else { Some(most.parse().ok()?) };
    Some(Alternative::From { least: least.parse().ok()?, most, written })
}

/// What MM2 allows as the value of this key; none where it takes any of the type.
pub(in crate::config) fn allowed(scope: Scope, name: &str) -> Option<&'static Allowed> {
    TABLE.get(&scope)?.get(name)
}

impl Allowed {
    /// Whether MM2 takes this value.
    pub(in crate::config) fn takes(&self, value: &str) -> bool {
        let value = value.trim();
        match self.is_list {
            true => value.is_empty() || value.split(',').all(|item| self.takes_item(item.trim())),
            false => self.takes_item(value),
        }
    }

    fn takes_item(&self, item: &str) -> bool {
        self.alternatives.iter().any(|alternative| match alternative {
            Alternative::Word(word) if self.in_any_case => item.eq_ignore_ascii_case(word),
            Alternative::Word(word) => item == *word,
            Alternative::From { least, most, .. } => item
                .parse::<f64>()
                .is_ok_and(|number| number >= *least && most.is_none_or(|most| number <= most)),
        })
    }
}

/// As a choice in words, such as `a` or `b`.
impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, alternative) in self.alternatives.iter().enumerate() {
            if place > 0 {
                f.write_str(if place + 1 == self.alternatives.len() { " or " } else { ", " })?;
            }
            match alternative {
                Alternative::Word(word) => write!(f, "`{word}`")?,
                Alternative::From { written: (least, ""), .. } => write!(f, "a number from {least}")?,
                Alternative::From { written: (least, most), .. } => {
                    write!(f, "a number from {least} to {most}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Role;
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = include_str!("allowed-4.3.1.tsv").lines().filter(|line| !line.starts_with('#'));
        let count: usize = TABLE.values().map(BTreeMap::len).sum();
        assert_eq!(count, lines.count());
        assert!(count > 100);
    }

    #[test]
    fn defaults_are_allowed() {
        let rows = TABLE.iter().flat_map(|(scope, names)| names.iter().map(move |row| (scope, row)));
        for (scope, (name, allowed)) in rows {
            let Some(default) = definition(*scope, name).unwrap().default else { continue };
            let default = default.trim_matches(['[', ']']);
            assert!(allowed.takes(default), "{name} = {default}: {allowed}");
        }
    }

    #[test]
    fn words_numbers_and_lists_are_judged() {
        for (scope, name, takes, not, words) in [
            (
                Scope::Connector,
                "offset-syncs.topic.location",
                &["source", " target "][..],
                &["sauce", "SOURCE", ""][..],
                "`source` or `target`",
            ),
            (
                Scope::Worker,
                "exactly.once.source.support",
                &["ENABLED", "preparing"],
                &["on"],
                "`disabled`, `enabled` or `preparing`",
            ),
            (
                Scope::Client(Role::Producer),
                "compression.gzip.level",
                &["1", "9", "-1"],
                &["0", "10", "x"],
                "a number from 1 to 9 or `-1`",
            ),
            (Scope::Client(Role::Consumer), "max.poll.records", &["1"], &["0"], "a number from 1"),
            (
                Scope::Connector,
                "metric.names.formats",
                &["new", "legacy, new", ""],
                &["classic", "new,,legacy"],
                "`legacy` or `new`",
            ),
        ] {
            let allowed = allowed(scope, name).unwrap();
            assert_eq!(allowed.to_string(), words);
            assert!(takes.iter().all(|value| allowed.takes(value)), "{name}");
            assert!(!not.iter().any(|value| allowed.takes(value)), "{name}");
        }
        assert!(allowed(Scope::Connector, "topics").is_none());
    }
}
