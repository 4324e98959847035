//! What reads oddly in a file without being wrong: keys that nobody reads, keys written twice, keys not needed.
//!
//! A key that nobody reads gets a warning of its own, with the name or the place that was probably meant.

use super::error::Origin;
use super::flows::{pair_key, pairs};
use super::keys::{Level, Meaning, Reading, Use, nearest, read_at};
use super::properties::{Entry, Properties};

/// Something in the configuration that an operator should see, though it can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The key it is about; none when it is about several.
    pub origin: Option<Origin>,
    /// One sentence; it does not repeat the key.
    pub text: String,
}

impl Warning {
    pub(super) fn of(entry: &Entry, text: impl Into<String>) -> Self {
        let origin = Origin { key: entry.key.clone(), line: entry.line };
        Self { origin: Some(origin), text: text.into() }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "{origin}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Keys that do nothing, each kind by itself.
#[derive(Default)]
pub(super) struct Notices {
    pub(super) warnings: Vec<Warning>,
    pub(super) not_needed: Vec<Origin>,
    pub(super) later: Vec<Origin>,
}

/// Looks at every key of a properties file once.
pub(super) fn of_properties(properties: &Properties, clusters: &[String]) -> Notices {
    gather(properties, |key| best(key, clusters))
}

/// Looks at every key of a connector's configuration once.
pub(super) fn of_connector(settings: &Properties) -> Notices {
    gather(settings, |key| (Level::Flow, key, read_at(Level::Flow, key)))
}

fn gather(properties: &Properties, read: impl Fn(&str) -> (Level, &str, Reading)) -> Notices {
    let mut notices = Notices { warnings: repeated(properties), ..Notices::default() };
    for entry in properties.effective() {
        notices.sort_in(entry, read(&entry.key));
    }
    notices
}

impl Notices {
    fn sort_in(&mut self, entry: &Entry, (level, name, reading): (Level, &str, Reading)) {
        match reading {
            Reading::Read(Meaning { usage: Use::Honoured | Use::Refused, .. }) => {}
            Reading::Read(Meaning { usage: Use::NotNeeded, .. }) => self.not_needed.push(origin(entry)),
            Reading::Read(Meaning { usage: Use::Later, .. }) => self.later.push(origin(entry)),
            Reading::Dropped(where_else) => {
                self.warnings.push(Warning::of(entry, format!("has no effect here: {where_else}")));
            }
            Reading::Unknown => self.warnings.push(Warning::of(entry, unknown(&entry.key, level, name))),
        }
    }
}

fn unknown(key: &str, level: Level, name: &str) -> String {
    let prefix = &key[..key.len() - name.len()];
    match nearest(level, name) {
        Some(known) => format!("read by nobody, neither MM2 nor twinlog: is `{prefix}{known}` meant?"),
        None if level == Level::Top && key.contains("->") => {
            "read by nobody: it names a cluster that `clusters` does not list".to_owned()
        }
        None => "read by nobody, neither MM2 nor twinlog".to_owned(),
    }
}

/// The kindest reading of a key, its level and its name there: `source.cluster.alias` is a key at top level even where a
/// cluster is called `source`. Of two that are equally kind the one with the longer prefix.
fn best<'k>(key: &'k str, clusters: &[String]) -> (Level, &'k str, Reading) {
    let mut best = (Level::Top, key, read_at(Level::Top, key));
    let of_clusters = clusters.iter().map(|cluster| (Level::Cluster, format!("{cluster}.")));
    let of_pairs = pairs(clusters).map(|(source, target)| (Level::Flow, pair_key(source, target, "")));
    for (level, prefix) in of_clusters.chain(of_pairs) {
        let Some(name) = key.strip_prefix(prefix.as_str()) else { continue };
        let reading = read_at(level, name);
        if reading.kindness() >= best.2.kindness() {
            best = (level, name, reading);
        }
    }
    best
}

/// Keys written more than once: the last one counts.
fn repeated(properties: &Properties) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for last in properties.effective() {
        let lines: Vec<String> =
            properties.entries().iter().filter(|e| e.key == last.key).map(|e| e.line.to_string()).collect();
        if lines.len() > 1 {
            let text =
                format!("written {} times (lines {}); the last one counts", lines.len(), lines.join(", "));
            warnings.push(Warning::of(last, text));
        }
    }
    warnings
}

fn origin(entry: &Entry) -> Origin {
    Origin { key: entry.key.clone(), line: entry.line }
}
