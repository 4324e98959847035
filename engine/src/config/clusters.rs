//! The names in `clusters`, and what has become a part of them by mistake.

use std::collections::BTreeSet;

use super::error::Fault;
use super::properties::{Entry, Properties};
use super::resolve::{has_empty_items, split_list};
use super::warning::Warning;

/// Far above what one process can serve: a short file must not make it take all memory.
const CLUSTERS_MAX: usize = 1000;

const REMEDY: &str = "write two or more names, with commas between, such as `clusters = west, east`";

/// The names that are known, each once, and what is to be said of them.
#[derive(Debug, Default)]
pub(super) struct Clusters {
    /// Where the names cannot be used as they stand, what was probably meant: for what else is to be said.
    pub(super) names: Vec<String>,
    pub(super) fault: Option<Fault>,
    pub(super) warnings: Vec<Warning>,
}

impl Clusters {
    pub(super) fn read(properties: &Properties) -> Self {
        let mut clusters = Self::default();
        match properties.find("clusters") {
            Some(entry) => clusters.read_entry(properties, entry),
            None => {
                let fault = Fault::missing("clusters", "missing, so there is nothing to copy between");
                clusters.fault = Some(fault.remedy(REMEDY));
            }
        }
        clusters
    }

    fn read_entry(&mut self, properties: &Properties, entry: &Entry) {
        if has_empty_items(&entry.value) {
            let text = "an empty name is left out; MM2 4.3 does not start with one";
            self.warnings.push(Warning::of(entry, text));
        }
        let written: Vec<&str> = split_list(&entry.value).collect();
        if written.len() > CLUSTERS_MAX {
            let reason =
                format!("names {} clusters, more than the {CLUSTERS_MAX} of one process", written.len());
            self.fault = Some(Fault::of(entry, reason).remedy("split the file"));
            return;
        }
        // As in MM2 4.3.1.
        let mut seen = BTreeSet::new();
        for name in written {
            if seen.insert(name) {
                self.names.push(name.to_owned());
            } else {
                let text = format!("names `{name}` more than once: that counts once");
                self.warnings.push(Warning::of(entry, text));
            }
        }
        if let Some(meant) = meant(properties, entry, &self.names) {
            let read: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
            let reason =
                format!("is read as the name {}, of which no key speaks", read.join(" and the name "));
            let remedy = format!("write `clusters = {}`", meant.join(", "));
            self.fault = Some(Fault::of(entry, reason).remedy(remedy));
            self.names = meant;
        } else if let Some(odd) =
            self.names.iter().find(|name| name.contains(odd) && !is_spoken_of(properties, name))
        {
            let reason = format!("is read as the name `{odd}` among others, of which no key speaks");
            self.fault = Some(Fault::of(entry, reason).remedy(REMEDY));
        } else if self.names.len() < 2 {
            self.fault = Some(Fault::of(entry, "a flow needs two clusters").remedy(REMEDY));
        }
    }
}

/// The names that keys speak of, where notes, quotes or blanks have become a part of what is listed.
fn meant(properties: &Properties, entry: &Entry, names: &[String]) -> Option<Vec<String>> {
    if !names.iter().any(|name| name.contains(odd)) {
        return None;
    }
    let text = entry.value.split('#').next().unwrap_or_default();
    let mut words: Vec<String> = Vec::new();
    for word in text.split(|c| c == ',' || odd(c)).filter(|word| !word.is_empty()) {
        if !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    let is_odd_spoken_of = || names.iter().any(|name| name.contains(odd) && is_spoken_of(properties, name));
    let are_meant = (2..=names.len() + 8).contains(&words.len())
        && words.iter().all(|word| is_spoken_of(properties, word))
        && !is_odd_spoken_of();
    are_meant.then_some(words)
}

/// What names of clusters hold only by mistake.
fn odd(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '#' | ';' | '[' | ']' | '=')
}

fn is_spoken_of(properties: &Properties, name: &str) -> bool {
    let is_begin = |key: &str| key.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', '-']));
    properties.entries().iter().any(|entry| is_begin(&entry.key))
}

#[cfg(test)]
mod tests {
    use crate::config::{Inspection, Surroundings};

    fn told(clusters: &str) -> Vec<String> {
        let text = format!(
            "clusters = {clusters}\nwest.bootstrap.servers=w:1\neast.bootstrap.servers=e:1\nwest->east.enabled=true\n"
        );
        let inspection = Inspection::of_file(text.as_bytes(), Surroundings::process());
        let faults = inspection.result().err();
        let faults = faults.iter().flat_map(|errors| errors.faults()).map(ToString::to_string);
        faults.chain(inspection.warnings().iter().map(ToString::to_string)).collect()
    }

    #[test]
    fn what_has_become_a_part_of_a_name_is_told_with_what_was_meant() {
        for (clusters, names) in [
            ("west east", "the name `west east`"),
            ("west; east", "the name `west; east`"),
            ("[west, east]", "the name `[west` and the name `east]`"),
            ("west, east # both", "the name `west` and the name `east # both`"),
            ("\"west\", \"east\"", "the name `\"west\"` and the name `\"east\"`"),
        ] {
            let told = told(clusters);
            let sentence = format!(
                "line 1: `clusters = {clusters}`: is read as {names}, of which no key speaks; write `clusters = west, east`"
            );
            assert!(told.len() == 1 && told[0].starts_with(&sentence), "{clusters}: {told:#?}");
        }
    }

    #[test]
    fn one_name_is_no_flow_but_known() {
        for clusters in ["west", "west, west"] {
            let told = told(clusters);
            assert!(
                told[0].contains("a flow needs two clusters; write two or more names, with commas between")
            );
            assert!(!told.iter().any(|told| told.contains("`west` in `clusters`")), "{told:#?}");
        }
        assert_eq!(told("west, east"), [""; 0]);
    }
}
