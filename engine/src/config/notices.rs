//! What reads oddly in a file without being wrong: keys that nobody reads, keys written twice, keys not needed.
//!
//! A key that nobody reads gets a warning of its own, with the name or the place that was probably meant.

use std::collections::{BTreeSet, HashMap};

use super::error::Origin;
use super::flows::FlowNames;
use super::keys::{Level, Meaning, Reading, Use, read_at};
use super::other_side::{AtWrongEnd, at_wrong_end};
use super::properties::{Entry, Properties};
use super::secret::printable;
use super::unknown::{self, Names};

/// Lines that are named of a key written many times.
const REPEATS_TOLD_MAX: usize = 10;
/// Unknown keys for which the one that was meant is looked for; a file with more is not one of MM2.
const SUGGESTIONS_MAX: usize = 200;

/// Something in the configuration that an operator should see, though it can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The key it is about; none when it is about several.
    pub origin: Option<Origin>,
    /// One sentence; it does not repeat the key.
    pub text: String,
}

impl Warning {
    pub(super) fn of(entry: &Entry, text: impl AsRef<str>) -> Self {
        let origin = Origin { key: entry.key.clone(), line: entry.line };
        Self { origin: Some(origin), text: entry.without_secrets(text.as_ref()) }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "{origin}: {}", printable(&self.text)),
            None => f.write_str(&printable(&self.text)),
        }
    }
}

/// Keys that do nothing, each kind by itself.
#[derive(Default)]
pub(super) struct Notices {
    pub(super) warnings: Vec<Warning>,
    pub(super) not_needed: Vec<Origin>,
    pub(super) later: Vec<Origin>,
    unknown: usize,
}

/// Looks at every key of a properties file once.
pub(super) fn of_properties(properties: &Properties, clusters: &[String], flows: &[FlowNames]) -> Notices {
    let mut notices = Notices { warnings: repeated(properties), ..Notices::default() };
    let names = Names { clusters, flows };
    for entry in properties.effective() {
        let (level, name, reading) = best(&entry.key, clusters);
        if let (Level::Cluster, Reading::Read(meaning)) = (level, &reading) {
            let cluster = &entry.key[..entry.key.len() - name.len() - 1];
            match at_wrong_end(properties, flows, entry, (cluster, name, *meaning)) {
                Some(AtWrongEnd::Told(warning)) => notices.warnings.push(warning),
                Some(AtWrongEnd::NotNeeded) => notices.not_needed.push(origin(entry)),
                None => notices.sort_in(entry, &reading, String::new),
            }
        } else {
            notices.sort_in(entry, &reading, || unknown::of_file(properties, names, entry, (level, name)));
        }
    }
    notices.warnings.extend(of_flows_not_enabled(properties, clusters, flows));
    notices
}

/// Settings for the way back, most of the time: one warning for each pair that nobody switched on or off.
fn of_flows_not_enabled(properties: &Properties, clusters: &[String], flows: &[FlowNames]) -> Vec<Warning> {
    let switches = properties.effective().filter_map(|entry| entry.key.strip_suffix(".enabled"));
    let mut told: BTreeSet<String> =
        flows.iter().map(FlowNames::flow).chain(switches.map(str::to_owned)).collect();
    let mut warnings = Vec::new();
    for entry in properties.effective() {
        let (Level::Flow, name, Reading::Read(_)) = best(&entry.key, clusters) else { continue };
        // Heartbeats are for pairs that copy nothing, too.
        let pair = &entry.key[..entry.key.len() - name.len() - 1];
        if name != "emit.heartbeats.enabled" && told.insert(pair.to_owned()) {
            let text = format!("has no effect: `{pair}` is not enabled");
            warnings.push(Warning::of(entry, text));
        }
    }
    warnings
}

/// Looks at every key of a connector's configuration once.
pub(super) fn of_connector(settings: &Properties) -> Notices {
    let mut notices = Notices { warnings: repeated(settings), ..Notices::default() };
    for entry in settings.effective() {
        let reading = read_at(Level::Flow, &entry.key);
        notices.sort_in(entry, &reading, || unknown::of_connector(settings, entry));
    }
    notices
}

impl Notices {
    /// `unknown` says what to tell of a key that nobody knows.
    fn sort_in(&mut self, entry: &Entry, reading: &Reading, unknown: impl FnOnce() -> String) {
        match reading {
            Reading::Read(Meaning { usage: Use::Honoured | Use::Refused, .. }) => {}
            Reading::Read(Meaning { usage: Use::NotNeeded, .. }) => self.not_needed.push(origin(entry)),
            Reading::Read(Meaning { usage: Use::Later, .. }) => self.later.push(origin(entry)),
            Reading::Dropped(where_else) => {
                self.warnings.push(Warning::of(entry, format!("has no effect here: {where_else}")));
            }
            Reading::Unknown => {
                self.unknown += 1;
                let text =
                    if self.unknown <= SUGGESTIONS_MAX { unknown() } else { unknown::NOBODY.to_owned() };
                self.warnings.push(Warning::of(entry, text));
            }
        }
    }
}

/// The kindest reading of a key, its level and its name there: `source.cluster.alias` is a key at top level even where a
/// cluster is called `source`. Of two that are equally kind the one with the longer prefix.
pub(super) fn best<'k>(key: &'k str, clusters: &[String]) -> (Level, &'k str, Reading) {
    let mut best = (Level::Top, key, read_at(Level::Top, key));
    let mut consider = |level, name: Option<&'k str>| {
        let Some(name) = name else { return };
        let reading = read_at(level, name);
        if reading.kindness() >= best.2.kindness() {
            best = (level, name, reading);
        }
    };
    // Names of clusters may hold dots and arrows, so each is tried.
    for cluster in clusters {
        let Some(rest) = key.strip_prefix(cluster.as_str()) else { continue };
        consider(Level::Cluster, rest.strip_prefix('.'));
        let Some(rest) = rest.strip_prefix("->") else { continue };
        for target in clusters.iter().filter(|target| *target != cluster) {
            consider(Level::Flow, rest.strip_prefix(target.as_str()).and_then(|rest| rest.strip_prefix('.')));
        }
    }
    best
}

/// Keys written more than once: the last one counts.
fn repeated(properties: &Properties) -> Vec<Warning> {
    let mut lines: HashMap<&str, Vec<usize>> = HashMap::new();
    for entry in properties.entries() {
        lines.entry(entry.key.as_str()).or_default().push(entry.line);
    }
    let mut warnings = Vec::new();
    for last in properties.effective() {
        let lines = &lines[last.key.as_str()];
        if lines.len() > 1 {
            let more = if lines.len() > REPEATS_TOLD_MAX { ", …" } else { "" };
            let told: Vec<String> = lines.iter().take(REPEATS_TOLD_MAX).map(usize::to_string).collect();
            let text = format!(
                "written {} times (lines {}{more}); the last one counts",
                lines.len(),
                told.join(", ")
            );
            warnings.push(Warning::of(last, text));
        }
    }
    warnings
}

fn origin(entry: &Entry) -> Origin {
    Origin { key: entry.key.clone(), line: entry.line }
}
