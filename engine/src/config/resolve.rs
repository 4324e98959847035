//! Finds the value that counts for a flow, checks its type, and gathers faults on the way.
//!
//! Precedence, as MM2's dedicated mode has it for what one flow needs:
//! - connector keys: `a->b.key`, then `key`;
//! - keys of a cluster: `a->b.source.cluster.key` (or `target.cluster.`), then `a.key`, then `key`;
//! - worker keys (`offset.storage.…`): `key`, then `b.key`; a flow's own are not read.
//!
//! The whole merge (client prefixes, `${…}` providers, `--clusters`) has its place here.
//!
//! # References
//! `MirrorMakerConfig`, `ConfigDef#parseType`.

use std::time::Duration;

use super::error::{Fault, Origin};
use super::flows::FlowNames;
use super::notices::Warning;
use super::properties::{Entry, Properties};

/// Ten years: long enough for never, and no sum of times with it can overflow.
const INTERVAL_SECONDS_MAX: u64 = 10 * 365 * 24 * 3600;

/// Which cluster of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Target,
}

impl Side {
    /// The connector key that overrides the alias in names.
    pub(super) fn alias_key(self) -> &'static str {
        match self {
            Self::Source => "source.cluster.alias",
            Self::Target => "target.cluster.alias",
        }
    }

    /// How MM2 prefixes settings of this cluster inside a connector.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Source => "source.",
            Self::Target => "target.",
        }
    }
}

/// A value together with where it was written; no origin for a default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting<T> {
    pub(super) value: T,
    pub(super) origin: Option<Origin>,
}

/// The settings of one flow, and what was found wrong with them so far.
pub(super) struct Resolver<'p> {
    properties: &'p Properties,
    names: &'p FlowNames,
    faults: Vec<Fault>,
    warnings: Vec<Warning>,
}

impl<'p> Resolver<'p> {
    pub(super) fn new(properties: &'p Properties, names: &'p FlowNames) -> Self {
        Self { properties, names, faults: Vec::new(), warnings: Vec::new() }
    }

    pub(super) fn finish(self) -> (Vec<Fault>, Vec<Warning>) {
        (self.faults, self.warnings)
    }

    pub(super) fn properties(&self) -> &'p Properties {
        self.properties
    }

    pub(super) fn names(&self) -> &'p FlowNames {
        self.names
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(super) fn warn(&mut self, entry: &Entry, text: impl Into<String>) {
        let origin = Some(Origin { key: entry.key.clone(), line: entry.line });
        self.warnings.push(Warning { origin, text: text.into() });
    }

    /// The entry that counts for a connector key.
    pub(super) fn find(&self, key: &str) -> Option<&'p Entry> {
        self.properties.find(&self.names.key(key)).or_else(|| self.properties.find(key))
    }

    /// The entry that counts for a key of a cluster.
    pub(super) fn find_of_cluster(&self, side: Side, key: &str) -> Option<&'p Entry> {
        let properties = self.properties;
        properties
            .find(&self.names.key(&format!("{}cluster.{key}", side.prefix())))
            .or_else(|| properties.find(&format!("{}.{key}", self.names.of(side))))
            .or_else(|| properties.find(key))
    }

    /// The entry that counts for a key of the Connect worker that MM2 would run beside the target.
    pub(super) fn find_of_worker(&self, key: &str) -> Option<&'p Entry> {
        self.properties.find(key).or_else(|| self.properties.find(&format!("{}.{key}", self.names.target)))
    }

    /// A string with blanks at both ends gone; none when nobody wrote it.
    pub(super) fn string(&mut self, key: &str) -> Option<Setting<String>> {
        let entry = self.usable(self.find(key)?)?;
        Some(written(entry, entry.value.trim().to_owned()))
    }

    /// `true` or `false` in any case. A fault for anything else, and the default instead.
    pub(super) fn boolean(&mut self, key: &str, default: bool) -> Setting<bool> {
        let Some(entry) = self.find(key).and_then(|entry| self.usable(entry)) else {
            return Setting { value: default, origin: None };
        };
        match parse_boolean(&entry.value) {
            Some(value) => written(entry, value),
            None => {
                self.fault(not_boolean(entry));
                Setting { value: default, origin: None }
            }
        }
    }

    /// An interval in seconds; none when negative, which in MM2 means never. Zero is a fault.
    pub(super) fn seconds(&mut self, key: &str, default: u64) -> Option<Duration> {
        let default = Some(Duration::from_secs(default));
        let Some(entry) = self.find(key).and_then(|entry| self.usable(entry)) else { return default };
        match parse_integer(&entry.value) {
            Some(0) => {
                self.fault(Fault::of(entry, "an interval of 0 would never pause").remedy("write 1 or more"));
                default
            }
            Some(seconds) => u64::try_from(seconds)
                .ok()
                .map(|seconds| Duration::from_secs(seconds.min(INTERVAL_SECONDS_MAX))),
            None => {
                self.fault(Fault::of(entry, "not a whole number of seconds").remedy("write digits only"));
                default
            }
        }
    }

    /// Keeps entries away whose value still holds a `${…}`: such a value is never what was meant.
    pub(super) fn usable(&mut self, entry: &'p Entry) -> Option<&'p Entry> {
        match placeholder_fault(entry) {
            Some(fault) => {
                self.fault(fault);
                None
            }
            None => Some(entry),
        }
    }
}

/// The value of an entry and its place.
pub(super) fn written<T>(entry: &Entry, value: T) -> Setting<T> {
    Setting { value, origin: Some(Origin { key: entry.key.clone(), line: entry.line }) }
}

pub(super) fn not_boolean(entry: &Entry) -> Fault {
    Fault::of(entry, "neither `true` nor `false`").remedy("write one of them")
}

/// `ConfigDef`'s booleans: trimmed, case does not matter.
pub(super) fn parse_boolean(value: &str) -> Option<bool> {
    let value = value.trim();
    if value.eq_ignore_ascii_case("true") {
        Some(true)
    } else if value.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// `ConfigDef`'s whole numbers: trimmed, an optional sign, digits.
pub(super) fn parse_integer(value: &str) -> Option<i64> {
    value.trim().parse().ok()
}

/// `ConfigDef`'s lists without the empty items, which match nothing and name no broker.
pub(super) fn split_list(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// A fault when a template was not filled in or a config provider would have to resolve the value.
pub(super) fn placeholder_fault(entry: &Entry) -> Option<Fault> {
    let start = entry.value.find("${")?;
    let inside = &entry.value[start..start + entry.value[start..].find('}')?];
    Some(if inside.contains(':') {
        Fault::of(entry, "config providers are not built yet").remedy("write the value itself")
    } else {
        Fault::of(entry, "a placeholder was left in").remedy("fill in the value")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_and_numbers_are_read_as_connect_reads_them() {
        assert_eq!(["True", " false ", "TRUE"].map(parse_boolean), [Some(true), Some(false), Some(true)]);
        assert_eq!(["yes", "1", ""].map(parse_boolean), [None; 3]);
        assert_eq!([" 10 ", "+5", "-1"].map(parse_integer), [Some(10), Some(5), Some(-1)]);
        assert_eq!(["1.5", "", "1 # note", "99999999999999999999"].map(parse_integer), [None; 4]);
    }

    #[test]
    fn lists_are_cut_at_every_comma() {
        let items: Vec<&str> = split_list(" a , b{1,2} ,, c,").collect();
        assert_eq!(items, ["a", "b{1", "2}", "c"]);
        assert_eq!(split_list("  ").count(), 0);
    }

    #[test]
    fn placeholders_are_found_and_a_lone_dollar_is_text() {
        let fault = |value: &str| {
            placeholder_fault(&Entry { key: "topics".into(), value: value.into(), line: 1 }).map(|f| f.reason)
        };
        assert_eq!(fault("${TOPICS}").unwrap(), "a placeholder was left in");
        assert_eq!(fault("x-${file:/etc/x:y}").unwrap(), "config providers are not built yet");
        assert_eq!(fault("orders$"), None);
        assert_eq!(fault("$ConnectionString ${"), None);
    }
}
