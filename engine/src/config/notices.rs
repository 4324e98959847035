//! What reads oddly in a file without being wrong: keys that nobody reads, keys written twice, keys not needed.
//!
//! One warning names all unknown keys; the nearest known name for each has its place here.

use super::error::Origin;
use super::flows::pairs;
use super::keys::{Known, Level, known};
use super::properties::{Entry, Properties};

/// Something in the configuration that an operator should see, though it can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The key it is about; none when it is about several.
    pub origin: Option<Origin>,
    /// One sentence; it does not repeat the key.
    pub text: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.origin {
            Some(origin) => write!(f, "{origin}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

pub(super) struct Notices {
    pub(super) warnings: Vec<Warning>,
    pub(super) not_needed: Vec<Origin>,
    pub(super) later: Vec<Origin>,
}

/// Looks at every key once.
pub(super) fn gather(properties: &Properties, clusters: &[String]) -> Notices {
    let (mut not_needed, mut later) = (Vec::new(), Vec::new());
    let mut unknown = Vec::new();
    for entry in properties.effective() {
        match best(entry, clusters) {
            Some(Known::Yes) => {}
            Some(Known::NotNeeded) => not_needed.push(origin(entry)),
            Some(Known::Later) => later.push(origin(entry)),
            None => unknown.push(format!("`{}` (line {})", entry.key, entry.line)),
        }
    }
    let mut warnings = repeated(properties);
    if !unknown.is_empty() {
        let text = format!("read by nobody, neither MM2 nor twinlog: {}", unknown.join(", "));
        warnings.push(Warning { origin: None, text });
    }
    Notices { warnings, not_needed, later }
}

/// The kindest reading of a key: `source.cluster.alias` is a key at top level even where a cluster is called `source`.
fn best(entry: &Entry, clusters: &[String]) -> Option<Known> {
    let key = entry.key.as_str();
    let mut readings = vec![known(Level::Top, key)];
    for cluster in clusters {
        readings.push(key.strip_prefix(&format!("{cluster}.")).and_then(|name| known(Level::Cluster, name)));
    }
    for (source, target) in pairs(clusters) {
        let name = key.strip_prefix(&format!("{source}->{target}."));
        readings.push(name.and_then(|name| known(Level::Flow, name)));
    }
    readings.into_iter().flatten().max_by_key(|&known| known == Known::Yes)
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
            warnings.push(Warning { origin: Some(origin(last)), text });
        }
    }
    warnings
}

fn origin(entry: &Entry) -> Origin {
    Origin { key: entry.key.clone(), line: entry.line }
}
