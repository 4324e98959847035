//! Reads settings as types, and gathers faults on the way.
//!
//! # References
//! `ConfigDef#parseType`.

use std::time::Duration;

use super::error::{Fault, Origin};
use super::flows::FlowNames;
use super::form::Form;
use super::patterns::Compiled;
use super::properties::{Entry, Properties};
use super::settings::{Settings, Side};
use super::warning::Warning;

/// Ten years: long enough for never, and no sum of times with it can overflow.
const INTERVAL_SECONDS_MAX: u64 = 10 * 365 * 24 * 3600;

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
    compiled: &'p Compiled,
    connectors: Settings<'p>,
    worker: Settings<'p>,
    faults: Vec<Fault>,
    warnings: Vec<Warning>,
}

impl<'p> Resolver<'p> {
    pub(super) fn new(properties: &'p Properties, names: &'p FlowNames, compiled: &'p Compiled) -> Self {
        let connectors = Settings::of_connectors(properties, names);
        let worker = Settings::of_worker(properties, names);
        let (faults, warnings) = (Vec::new(), Vec::new());
        Self { properties, names, compiled, connectors, worker, faults, warnings }
    }

    /// Reads a connector's own configuration. What its worker gets is the worker's affair.
    pub(super) fn of_connector(
        settings: &'p Properties,
        names: &'p FlowNames,
        compiled: &'p Compiled,
    ) -> Self {
        let connectors = Settings::of_connector(settings);
        Self { connectors, worker: Settings::default(), ..Self::new(settings, names, compiled) }
    }

    /// How a key of a cluster is written.
    pub(super) fn cluster_key(&self, side: Side, key: &str) -> String {
        match self.form() {
            Form::Properties => format!("{}.{key}", self.names.of(side)),
            Form::Connector => format!("{}cluster.{key}", side.prefix()),
        }
    }

    /// How it was written, for advice.
    pub(super) fn form(&self) -> Form {
        self.properties.form()
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

    /// The lists that flows before this one had.
    pub(super) fn compiled(&self) -> &'p Compiled {
        self.compiled
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(super) fn warn(&mut self, entry: &Entry, text: impl AsRef<str>) {
        self.warnings.push(Warning::of(entry, text));
    }

    pub(super) fn warn_of(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    pub(super) fn warn_with(&mut self, entry: &Entry, text: &str, remedy: &str) {
        self.warnings.push(Warning::of(entry, text).remedy(remedy));
    }

    /// What the connectors of the flow get.
    pub(super) fn connectors(&self) -> &Settings<'p> {
        &self.connectors
    }

    /// What the worker beside the target gets.
    pub(super) fn worker(&self) -> &Settings<'p> {
        &self.worker
    }

    /// The entry that counts for a connector key.
    pub(super) fn find(&self, key: &str) -> Option<&'p Entry> {
        self.connectors.get(key)
    }

    /// The entry that counts for a key of a cluster.
    pub(super) fn find_of_cluster(&self, side: Side, key: &str) -> Option<&'p Entry> {
        self.connectors.get(&format!("{}cluster.{key}", side.prefix()))
    }

    /// A string with blanks at both ends gone; none when nobody wrote it.
    pub(super) fn string(&mut self, key: &str) -> Option<Setting<String>> {
        let entry = self.find(key)?;
        Some(written(entry, entry.value.trim().to_owned()))
    }

    /// `true` or `false` in any case. A fault for anything else, and the default instead.
    pub(super) fn boolean(&mut self, key: &str, default: bool) -> Setting<bool> {
        let Some(entry) = self.find(key) else {
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
        let Some(entry) = self.find(key) else { return default };
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
}

/// The value of an entry and its place.
pub(super) fn written<T>(entry: &Entry, value: T) -> Setting<T> {
    Setting { value, origin: Some(entry.origin()) }
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

/// Whether nothing stands between two commas, or beside one: `ConfigDef` refuses that since Kafka 4.1.
pub(super) fn has_empty_items(value: &str) -> bool {
    !value.trim().is_empty() && value.split(',').any(|item| item.trim().is_empty())
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
}
