//! Keys of flows whose arrow was lost or miswritten: `a -> b.enabled = true` sets a key `a`, because in a properties file
//! a key ends at the first blank, `=` or `:`.

use super::keys::{Level, Reading, read_at};
use super::properties::Entry;

/// What stands for an arrow, a longer one before those that it begins with. The last two of the arrows by themselves are
/// one that was read as Latin-1, and one that was not.
const ARROWS: [&str; 25] = [
    "->->",
    "\u{2014}>",
    "\u{2013}>",
    "\u{2014}",
    "\u{2013}",
    "->>",
    "--&gt;",
    "-&gt;",
    "=&gt;",
    "&gt;",
    "-->",
    "==>",
    "->",
    "=>",
    "- >",
    "= >",
    "~>",
    ">",
    "\u{e2}\u{86}\u{92}",
    "\u{2192}",
    "_to_",
    "-to-",
    ".to.",
    "-",
    "_",
];

/// More of a value cannot belong to a key.
const VALUE_CHARS_MAX: usize = 300;

/// The key that a line was probably meant to set.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Meant {
    /// Such as `a->b.enabled`.
    pub(super) key: String,
    /// Its name without the clusters.
    pub(super) name: String,
    /// What it was to be set to.
    pub(super) value: String,
    /// What went wrong, as the end of a sentence that begins with the key.
    pub(super) reason: &'static str,
}

impl Meant {
    /// What to write.
    pub(super) fn remedy(&self) -> String {
        format!("write `{} = …`, without blanks in the key", self.key)
    }
}

/// The key of a flow that this line was meant to set, where the line shows it.
pub(super) fn meant(entry: &Entry, clusters: &[String]) -> Option<Meant> {
    let value = entry.typed();
    let value: String = value.chars().take(VALUE_CHARS_MAX).collect();
    let text = format!("{} {value}", entry.key);
    let sources = clusters.iter().filter_map(|name| Some((name, text.strip_prefix(name.as_str())?)));
    for (source, rest) in sources {
        let rest = rest.trim_start();
        if let Some(meant) = other_ways(source, rest, clusters) {
            return Some(meant);
        }
        let Some(rest) = ARROWS.iter().find_map(|arrow| rest.strip_prefix(arrow)) else { continue };
        let rest = rest.trim_start();
        for target in clusters.iter().filter(|target| *target != source) {
            let Some(rest) = rest.strip_prefix(target.as_str()) else { continue };
            let name = rest.trim_start_matches([' ', '\t', '.']);
            let name = name.split([' ', '\t', '=', ':']).next().unwrap_or_default();
            let key = format!("{source}->{target}.{name}");
            let is_read = read_at(Level::Flow, name) != Reading::Unknown;
            if rest.len() > name.len() && !rest.starts_with(name) && is_read && key != entry.key {
                let is_split = !entry.key.ends_with(name);
                let reason = if is_split {
                    "the key ends here, at the first blank, `=` or `:`, and nobody reads it"
                } else {
                    "read by nobody: clusters are joined by `->`"
                };
                let value =
                    rest[rest.find(name)? + name.len()..].trim_matches([' ', '\t', '=', ':']).to_owned();
                return Some(Meant { key, name: name.to_owned(), value, reason });
            }
        }
    }
    None
}

/// Arrows that point back, or both ways.
fn other_ways(source: &str, rest: &str, clusters: &[String]) -> Option<Meant> {
    let (is_both, rest) = match rest.strip_prefix("<->") {
        Some(rest) => (true, rest),
        None => (false, rest.strip_prefix("<-")?),
    };
    let rest = rest.trim_start();
    let target = clusters
        .iter()
        .find(|target| rest.strip_prefix(target.as_str()).is_some_and(|rest| rest.starts_with('.')))?;
    let name = rest[target.len() + 1..].split([' ', '\t', '=', ':']).next().unwrap_or_default();
    let (source, target) = if is_both { (source, target.as_str()) } else { (target.as_str(), source) };
    let reason = if is_both {
        "read by nobody: a flow goes one way, so each way has lines of its own"
    } else {
        "read by nobody: a flow is written from its source to its target"
    };
    let value = rest.split_once([' ', '\t', '=', ':']).map(|(_, value)| value.to_owned());
    let (key, name) = (format!("{source}->{target}.{name}"), name.to_owned());
    Some(Meant { key, name, value: value.unwrap_or_default(), reason })
}

#[cfg(test)]
mod tests {
    use super::super::properties::Properties;
    use super::*;

    fn meant_by(line: &str) -> Option<(String, bool)> {
        let properties = Properties::parse(line.as_bytes()).unwrap();
        let clusters = ["a", "b", "ab", "a.x"].map(str::to_owned);
        let meant = meant(&properties.entries()[0], &clusters)?;
        Some((meant.key, meant.reason.contains("ends here")))
    }

    #[test]
    fn lines_cut_inside_their_key_are_put_together() {
        for line in [
            "a -> b.enabled = true",
            "a ->b.enabled=true",
            "a-> b.enabled=true",
            "a=>b.enabled = true",
            "a => b.enabled = true",
            "a - > b.enabled = true",
            "a : -> b.enabled : true",
            "a->b .enabled = true",
            "a->b. enabled = true",
            "a->b enabled = true",
            "a->b:enabled=true",
            "a =&gt; b.enabled = true",
        ] {
            assert_eq!(meant_by(line), Some(("a->b.enabled".into(), true)), "{line}");
        }
        assert_eq!(meant_by("a.x -> ab.topics = x"), Some(("a.x->ab.topics".into(), true)));
    }

    #[test]
    fn arrows_of_other_kinds_are_known() {
        for line in ["a-&gt;b.enabled=true", "a>b.enabled=true", "a-b.enabled=true", "a-->b.enabled=1"] {
            assert_eq!(meant_by(line), Some(("a->b.enabled".into(), false)), "{line}");
        }
        for line in [
            "a\u{2014}>b.enabled=1",
            "a\u{2014}b.enabled=1",
            "a->->b.enabled=1",
            "a<->b.enabled=1",
            "b<-a.enabled=1",
        ] {
            assert_eq!(meant_by(line), Some(("a->b.enabled".into(), false)), "{line}");
        }
        assert_eq!(meant_by("a\u{2192}b.enabled=1"), Some(("a->b.enabled".into(), false)));
    }

    #[test]
    fn other_keys_are_left_alone() {
        for line in [
            "a = b",
            "a->b.enabled = true",
            "a->b.enabledd = true",
            "a->a.enabled = true",
            "a -> c.enabled = true",
            "a -> b.",
            "a",
            "topics = a->b.enabled",
            "c -> b.enabled = true",
            "a->b = true",
        ] {
            assert_eq!(meant_by(line), None, "{line}");
        }
    }
}
