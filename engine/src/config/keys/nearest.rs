//! The known name that a misspelt one was probably meant to be.

use super::{Level, Reading, Role, Scope, names, read_at};

/// How alike two names must be, from 0 to 1.
pub(in crate::config) const ALIKE_MIN: f64 = 0.8;

/// Longer than any known name, in bytes.
const NAME_BYTES_MAX: usize = 120;

/// What is begun by the written name and ends in another word: a guess only where a single name is.
const LONGER_BY_A_WORD: f64 = 0.98;

/// Names that other programs have, MirrorMaker 1 among them, or that people think of, by what MM2 calls them.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("blacklist", "topics.exclude"),
    ("bootstrap", "bootstrap.servers"),
    ("bootstrap.brokers", "bootstrap.servers"),
    ("broker.list", "bootstrap.servers"),
    ("brokers", "bootstrap.servers"),
    ("exclude", "topics.exclude"),
    ("include", "topics"),
    ("metadata.broker.list", "bootstrap.servers"),
    ("num.streams", "tasks.max"),
    ("num.tasks", "tasks.max"),
    ("replication.policy", "replication.policy.class"),
    ("separator", "replication.policy.separator"),
    ("servers", "bootstrap.servers"),
    ("sync.acls.enabled", "sync.topic.acls.enabled"),
    ("sync.configs.enabled", "sync.topic.configs.enabled"),
    ("sync.consumer.offsets.enabled", "sync.group.offsets.enabled"),
    ("sync.groups.enabled", "sync.group.offsets.enabled"),
    ("sync.offsets.enabled", "sync.group.offsets.enabled"),
    ("tasks", "tasks.max"),
    ("topic", "topics"),
    ("whitelist", "topics"),
];

/// Endings that say what a list without them says.
const INCLUDING: [&str; 7] =
    [".whitelist", ".include", ".included", ".includes", ".regex", ".pattern", ".list"];

/// The name at `level` that is most like `name` and is read there, if one is like it: of equal letters in other capitals,
/// of equal words, longer by a word (`emit.heartbeats` for `emit.heartbeats.enabled`), or a few letters off.
pub(in crate::config) fn nearest(level: Level, name: &str) -> Option<String> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let (prefixes, rest, candidates) = places(level, name);
    let rest = in_mm2_s_words(rest);
    let read_as = |known: &str| {
        let mut names = prefixes.iter().map(|prefix| format!("{prefix}{known}"));
        names.find(|name| matches!(read_at(level, name), Reading::Read(_)))
    };
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == rest);
    if let Some(name) = other.and_then(|(_, known)| read_as(known)) {
        return Some(name);
    }
    // Old names are read, but are none to be told.
    let candidates = candidates.into_iter().filter(|known| !known.ends_with(".blacklist"));
    let mut alike: Vec<(f64, &str)> = candidates
        .map(|known| (likeness(&rest, known), known))
        .filter(|(alike, _)| *alike >= ALIKE_MIN)
        .collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    alike.dedup();
    let mut read = alike.iter().filter_map(|(alike, known)| Some((*alike, read_as(known)?)));
    let (likeness, best) = read.next()?;
    let is_clear = likeness != LONGER_BY_A_WORD || read.next().is_none_or(|next| next.0 != likeness);
    is_clear.then_some(best)
}

/// The one of `names` that is most like `name`, if one is like it, be it only in its end.
pub(in crate::config) fn alike<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    let name = name.to_ascii_lowercase();
    let likeness = |known: &str| {
        let is_end = known.strip_suffix(&name).is_some_and(|start| start.ends_with('.'));
        if is_end { 1.0 } else { likeness(&name, known) }
    };
    let alike = names.iter().map(|known| (likeness(known), *known));
    let best = alike.filter(|(alike, _)| *alike >= ALIKE_MIN).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, known)| known)
}

/// The prefixes under which the name could be read, best first; the name without its own; the names known there.
fn places(level: Level, name: &str) -> (Vec<String>, &str, Vec<&'static str>) {
    let side =
        ["source.", "target."].into_iter().find(|side| name.starts_with(side) && level != Level::Cluster);
    let rest = side.map_or(name, |side| &name[side.len()..]);
    let of_cluster = rest.strip_prefix("cluster.").filter(|_| side.is_some());
    let rest = of_cluster.unwrap_or(rest);
    let side = side.unwrap_or_default();
    if let Some((role, rest)) = Role::strip(rest) {
        let rest = rest.strip_prefix("override.").unwrap_or(rest);
        let role_prefix = role.prefix();
        let prefixes = match role {
            Role::Producer => vec![format!("{role_prefix}override."), role_prefix.to_owned()],
            _ => vec![format!("{side}{role_prefix}"), role_prefix.to_owned()],
        };
        return (prefixes, rest, names(Scope::Client(role)).chain(of_every_client()).collect());
    }
    if !side.is_empty() {
        let base = ["alias"].into_iter().chain(of_every_client());
        return (vec![format!("{side}cluster.")], rest, base.collect());
    }
    let known: Vec<&'static str> = match level {
        Level::Top => {
            names(Scope::Process).chain(names(Scope::Connector)).chain(names(Scope::Worker)).collect()
        }
        Level::Flow => names(Scope::Connector).collect(),
        Level::Cluster => names(Scope::Worker).chain(of_every_client()).collect(),
    };
    (vec![String::new()], rest, known)
}

/// Addresses and security.
fn of_every_client() -> impl Iterator<Item = &'static str> {
    let security = names(Scope::Connector).filter(|name| super::is_security(name));
    ["bootstrap.servers", "security.protocol"].into_iter().chain(security)
}

/// Small letters without quotes around them; lists include by having no ending, and exclude by `.exclude`.
fn in_mm2_s_words(written: &str) -> String {
    let written = written.trim_matches(['"', '\'']).to_ascii_lowercase().replace('_', ".");
    let included = INCLUDING.iter().find_map(|ending| written.strip_suffix(ending));
    let is_list = |name: &&str| ["topic", "topics", "group", "groups"].contains(name);
    match included.filter(is_list) {
        Some(list) => format!("{}s", list.trim_end_matches('s')),
        None => written.replace("blacklist", "exclude"),
    }
}

fn likeness(written: &str, known: &str) -> f64 {
    match known.strip_prefix(written).filter(|_| written.contains('.')) {
        Some("") => 1.0,
        Some(".enabled") => 0.99,
        Some(rest) if rest.starts_with('.') => LONGER_BY_A_WORD,
        _ if words(written) == words(known) => 0.97,
        _ => strsim::normalized_damerau_levenshtein(written, known),
    }
}

/// Its words without the endings of the plural, in the order of the alphabet.
fn words(name: &str) -> Vec<&str> {
    let mut words: Vec<&str> = name.split(['.', '-', '_']).map(|word| word.trim_end_matches('s')).collect();
    words.sort_unstable();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slips_of_the_field_find_what_was_meant() {
        for (level, written, meant) in [
            (Level::Top, "task.max", "tasks.max"),
            (Level::Top, "max.tasks", "tasks.max"),
            (Level::Top, "topic.blacklist", "topics.exclude"),
            (Level::Top, "group.blacklist", "groups.exclude"),
            (Level::Top, "blacklist", "topics.exclude"),
            (Level::Top, "whitelist", "topics"),
            (Level::Top, "topics.whitelist", "topics"),
            (Level::Flow, "topics.include", "topics"),
            (Level::Flow, "topic", "topics"),
            (Level::Flow, "topic.regex", "topics"),
            (Level::Flow, "groups.include", "groups"),
            (Level::Top, "\"topics\"", "topics"),
            (Level::Flow, "exclude.topics", "topics.exclude"),
            (Level::Flow, "topics.excluded", "topics.exclude"),
            (Level::Top, "replication.policy", "replication.policy.class"),
            (Level::Top, "offset.syncs.topic.location", "offset-syncs.topic.location"),
            (Level::Top, "offsets-sync.topic.location", "offset-syncs.topic.location"),
            (Level::Top, "sync.group.offset.enabled", "sync.group.offsets.enabled"),
            (Level::Top, "SYNC_GROUP_OFFSETS_ENABLED", "sync.group.offsets.enabled"),
            (Level::Top, "sync.topics.configs.enabled", "sync.topic.configs.enabled"),
            (Level::Top, "Replication.factor", "replication.factor"),
            (Level::Top, "refresh.topics.enable", "refresh.topics.enabled"),
            (Level::Top, "offset.storage.topics", "offset.storage.topic"),
            (Level::Flow, "emit.heartbeats", "emit.heartbeats.enabled"),
            (Level::Flow, "sync.group.offsets", "sync.group.offsets.enabled"),
            (Level::Flow, "enable", "enabled"),
            (Level::Cluster, "bootstrap.server", "bootstrap.servers"),
            (Level::Cluster, "brokers", "bootstrap.servers"),
            (Level::Flow, "source.cluster.bootstrap.server", "source.cluster.bootstrap.servers"),
            (Level::Flow, "source.bootstrap.servers", "source.cluster.bootstrap.servers"),
            (Level::Flow, "source.alias", "source.cluster.alias"),
        ] {
            assert_eq!(nearest(level, written).as_deref(), Some(meant), "{written}");
        }
    }

    #[test]
    fn settings_of_clients_are_found_where_they_are_read() {
        for (level, written, meant) in [
            (Level::Flow, "producer.override.equest.timeout.ms", "producer.override.request.timeout.ms"),
            (Level::Cluster, "producer.override.equest.timeout.ms", "producer.request.timeout.ms"),
            (Level::Cluster, "admin.retry.backof.ms", "admin.retry.backoff.ms"),
            (Level::Flow, "admin.retry.backof.ms", "admin.retry.backoff.ms"),
            (Level::Flow, "source.consumer.isolation.levle", "source.consumer.isolation.level"),
            (Level::Flow, "target.consumer.isolation.levle", "consumer.isolation.level"),
            (Level::Flow, "target.producer.ack", "producer.override.acks"),
            (Level::Flow, "consumer.override.fetch.max.byte", "consumer.fetch.max.bytes"),
            (Level::Flow, "source.cluster.consumer.fetch.max.byte", "source.consumer.fetch.max.bytes"),
            (Level::Cluster, "consumer.override.fetch.max.byte", "consumer.fetch.max.bytes"),
            (Level::Cluster, "producer.security.protocl", "producer.security.protocol"),
        ] {
            assert_eq!(nearest(level, written).as_deref(), Some(meant), "{written}");
        }
    }

    #[test]
    fn what_is_like_nothing_or_read_nowhere_here_finds_nothing() {
        for (level, written) in [
            (Level::Flow, "frobnicate"),
            (Level::Flow, "errors.deadletterqueue.topic.replication.factor"),
            (Level::Flow, ""),
            (Level::Flow, "offset-syncs.topic"),
            (Level::Top, "producer.override.equest.timeout.ms"),
            (Level::Top, "grup.id"),
        ] {
            assert_eq!(nearest(level, written), None, "{written}");
        }
    }
}
