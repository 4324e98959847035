//! The known name that a misspelt one was probably meant to be.

use super::{Level, Role, Scope, names};

/// How alike two names must be, from 0 to 1.
const ALIKE_MIN: f64 = 0.8;

/// Longer than any known name, in bytes.
const NAME_BYTES_MAX: usize = 120;

/// Beginnings under which other names are known.
const PREFIXES: [&str; 7] = [
    "producer.override.",
    "source.cluster.",
    "target.cluster.",
    "source.",
    "target.",
    "producer.",
    "consumer.",
];

/// The known name at `level` that is most like `name`, if one is like it: of equal letters in other capitals, longer by
/// a word (`emit.heartbeats` for `emit.heartbeats.enabled`), or a few letters off.
pub(in crate::config) fn nearest(level: Level, name: &str) -> Option<String> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let (prefix, rest) = PREFIXES
        .into_iter()
        .find_map(|prefix| Some((prefix, name.strip_prefix(prefix)?)))
        .unwrap_or(("", name));
    let candidates: Box<dyn Iterator<Item = &'static str>> = match (prefix, level) {
        ("", Level::Top) => Box::new(names(Scope::Process).chain(names(Scope::Connector))),
        ("", Level::Flow) => Box::new(names(Scope::Connector)),
        ("", Level::Cluster) => {
            Box::new(names(Scope::Worker).chain(names(Scope::Connector).filter(is_security)))
        }
        ("source.cluster." | "target.cluster.", _) => {
            let base = ["bootstrap.servers", "security.protocol", "alias"];
            Box::new(base.into_iter().chain(names(Scope::Connector).filter(is_security)))
        }
        ("consumer.", _) => Box::new(names(Scope::Client(Role::Consumer))),
        _ => Box::new(Role::ALL.into_iter().flat_map(|role| names(Scope::Client(role)))),
    };
    let best = candidates.map(|known| (likeness(rest, known), known)).max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(alike, _)| *alike >= ALIKE_MIN).map(|(_, known)| format!("{prefix}{known}"))
}

fn is_security(name: &&'static str) -> bool {
    super::is_security(name)
}

fn likeness(written: &str, known: &str) -> f64 {
    let written = written.to_ascii_lowercase();
    match known.strip_prefix(written.as_str()).filter(|_| written.contains('.')) {
        Some(".enabled") => 0.99,
        Some(rest) if rest.starts_with('.') => 0.98,
        _ => strsim::normalized_damerau_levenshtein(&written, known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slips_of_the_field_find_what_was_meant() {
        for (level, written, meant) in [
            (Level::Top, "task.max", "tasks.max"),
            (Level::Top, "topic.blacklist", "topics.blacklist"),
            (Level::Top, "sync.topics.configs.enabled", "sync.topic.configs.enabled"),
            (Level::Top, "Replication.factor", "replication.factor"),
            (Level::Top, "refresh.topics.enable", "refresh.topics.enabled"),
            (Level::Flow, "emit.heartbeats", "emit.heartbeats.enabled"),
            (Level::Flow, "sync.group.offsets", "sync.group.offsets.enabled"),
            (Level::Flow, "enable", "enabled"),
            (Level::Flow, "producer.override.equest.timeout.ms", "producer.override.request.timeout.ms"),
            (Level::Cluster, "bootstrap.server", "bootstrap.servers"),
            (Level::Flow, "source.cluster.bootstrap.server", "source.cluster.bootstrap.servers"),
        ] {
            assert_eq!(nearest(level, written).as_deref(), Some(meant), "{written}");
        }
    }

    #[test]
    fn what_is_like_nothing_finds_nothing() {
        for written in ["frobnicate", "errors.deadletterqueue.topic.replication.factor", ""] {
            assert_eq!(nearest(Level::Flow, written), None, "{written}");
        }
    }
}
