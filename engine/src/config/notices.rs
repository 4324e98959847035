//! What reads oddly in a file without being wrong: keys that nobody reads, keys written twice, keys not needed.
//!
//! A key that nobody reads gets a warning of its own, with the name or the place that was probably meant.

use std::collections::{BTreeSet, HashMap};

use super::flows::FlowNames;
use super::form::Form;
use super::keys::{Level, Meaning, Reading, Use, read_at};
use super::other_side::{AtWrongEnd, at_wrong_end};
use super::properties::{Entry, Properties};
use super::providers;
use super::read_elsewhere::{in_a_body, in_a_file};
use super::refused;
use super::unknown::{self, Names};
use super::warning::Warning;

/// Lines that are named of a key written many times.
const REPEATS_TOLD_MAX: usize = 10;
/// Unknown keys for which the one that was meant is looked for; a file with more is not one of MM2.
const SUGGESTIONS_MAX: usize = 200;
/// Said of a key that the cluster at the other end of the flow has as well, or that nothing is lost by.
const AT_WRONG_END: &str = "no enabled flow reads it for this cluster";

/// Keys that do nothing, each kind by itself.
#[derive(Default)]
pub(super) struct Notices {
    pub(super) warnings: Vec<Warning>,
    pub(super) not_needed: Vec<Warning>,
    pub(super) later: Vec<Warning>,
    unknown: usize,
}

/// Looks at every key of a properties file once.
pub(super) fn of_properties(properties: &Properties, clusters: &[String], flows: &[FlowNames]) -> Notices {
    let mut notices = Notices { warnings: repeated(properties), ..Notices::default() };
    let names = Names { clusters, flows };
    let switches = properties.effective().filter_map(|entry| entry.key.strip_suffix(".enabled"));
    // Pairs that somebody switched on or off, or that were told.
    let mut known: BTreeSet<String> =
        flows.iter().map(FlowNames::flow).chain(switches.map(str::to_owned)).collect();
    notices.warnings.extend(unknown::rests(properties));
    for entry in properties.effective().filter(|entry| !entry.is_rest) {
        if let Some(warning) = providers::unread(properties, entry) {
            notices.warnings.push(warning);
            continue;
        }
        let (level, name, reading) = best(&entry.key, clusters);
        let (prefix, _) = entry.key.split_at(entry.key.len() - name.len());
        let owner = prefix.strip_suffix('.').unwrap_or(prefix);
        match (level, &reading) {
            (Level::Cluster, Reading::Read(meaning)) => {
                match at_wrong_end(properties, flows, entry, (owner, name, *meaning)) {
                    Some(AtWrongEnd::Told(warning)) => {
                        notices.warnings.push(warning);
                        continue;
                    }
                    Some(AtWrongEnd::NotNeeded) => {
                        notices.not_needed.push(Warning::of(entry, AT_WRONG_END));
                        continue;
                    }
                    None => {}
                }
            }
            // Settings for the way back, most of the time. Heartbeats are for pairs that copy nothing, too.
            (Level::Flow, Reading::Read(_))
                if name != "emit.heartbeats.enabled" && known.insert(owner.to_owned()) =>
            {
                let text = format!("has no effect: `{owner}` is not enabled");
                notices.warnings.push(Warning::of(entry, text));
            }
            _ => {}
        }
        let where_else =
            |sentence: &str| in_a_file(sentence, (level, owner, name), flows) + &though_refused(entry, name);
        let unknown = || {
            let warning = unknown::of_file(properties, names, entry, (level, name));
            warning.and_so(&unknown::copies_all(properties, names, entry, name))
        };
        notices.sort_in(entry, &reading, where_else, unknown);
    }
    notices
}

/// Looks at every key of a connector's configuration once.
pub(super) fn of_connector(settings: &Properties) -> Notices {
    let mut notices = Notices { warnings: repeated(settings), ..Notices::default() };
    for entry in settings.effective() {
        if let Some(warning) = providers::unread(settings, entry) {
            notices.warnings.push(warning);
            continue;
        }
        let reading = read_at(Level::Flow, &entry.key);
        let where_else =
            |sentence: &str| in_a_body(sentence, &entry.key) + &though_refused(entry, &entry.key);
        notices.sort_in(entry, &reading, where_else, || unknown::of_connector(settings, entry));
    }
    notices
}

/// To be said after a place for a key, if its value is refused there.
pub(super) fn though_refused(entry: &Entry, name: &str) -> String {
    let why = refused::turned_away(name, &entry.value);
    why.map(|why| format!(" (where this version refuses it: {why})")).unwrap_or_default()
}

impl Notices {
    /// `where_else` says where a key is read that is not read here, `unknown` what to tell of one that nobody knows.
    fn sort_in(
        &mut self,
        entry: &Entry,
        reading: &Reading,
        where_else: impl FnOnce(&str) -> String,
        unknown: impl FnOnce() -> Warning,
    ) {
        match reading {
            Reading::Read(Meaning { usage: Use::Honoured | Use::Refused, .. }) => {}
            Reading::Read(Meaning { usage: Use::NotNeeded, note }) => {
                self.not_needed.push(Warning::of(entry, note));
            }
            Reading::Read(Meaning { usage: Use::Later, note }) => self.later.push(Warning::of(entry, note)),
            Reading::Dropped(sentence) => {
                self.warnings.push(Warning::of(entry, "has no effect here").remedy(where_else(sentence)));
            }
            Reading::Unknown => {
                self.unknown += 1;
                let is_looked_for = self.unknown <= SUGGESTIONS_MAX;
                let warning = if is_looked_for { unknown() } else { unknown::nobody(entry) };
                // What stands under a misspelt name of a secret is not known to be one.
                self.warnings.push(Warning { value: None, ..warning });
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
            let places = match properties.form() {
                Form::Properties => format!(" (lines {}{more})", told.join(", ")),
                Form::Connector => String::new(),
            };
            warnings.push(Warning::of(
                last,
                format!("written {} times{places}; the last one counts", lines.len()),
            ));
        }
    }
    warnings
}
