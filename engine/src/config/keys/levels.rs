//! At which level a key is read, and what to say of one that stands where nobody reads it.
//!
//! # References
//! `MirrorMakerConfig`: `connectorBaseConfig`, `workerConfig`, `clientConfig`; `MirrorConnectorConfig` for the prefixes
//! of clients; `Worker#producerConfigs` for overrides.

use super::{Meaning, Role, Scope, Use, definition, is_client_base, meaning};
use crate::config::providers;

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Level {
    /// No prefix.
    Top,
    /// `a.`
    Cluster,
    /// `a->b.`, or a connector's own configuration.
    Flow,
}

/// What becomes of a key at its level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) enum Reading {
    /// Somebody reads it.
    Read(Meaning),
    /// A known key where nobody reads it: where it would be.
    Dropped(&'static str),
    /// Nobody knows it.
    Unknown,
}

impl Reading {
    /// Of two readings of one key the one with the higher number is meant.
    pub(in crate::config) fn kindness(&self) -> u8 {
        match self {
            Self::Read(Meaning { usage: Use::Honoured | Use::Refused, .. }) => 3,
            Self::Read(_) => 2,
            Self::Dropped(_) => 1,
            Self::Unknown => 0,
        }
    }
}

// Names are filled in by `read_elsewhere`.
const AT_THE_TARGET: &str =
    "read only for the Connect worker beside the target: write `B.` with the target's name before it";
const IN_A_FLOW: &str = "read only at top level or for a flow: write `KEY`, or `A->B.KEY`";
const IN_A_FLOW_ONLY: &str = "read only for a flow: write `A->B.` with the names of its clusters before it";
const AT_TOP: &str = "read only at top level: write `KEY`";
const OF_THE_WORKER: &str = "read only for the Connect worker beside the target: write `B.KEY`";
const OF_OFFSET_SYNCS: &str = "MM2 hands it to the producer of offset syncs alone; records are written with \
                               `A->B.producer.override.…`";
const OF_CHECKPOINTS: &str =
    "MM2 hands it to the consumer of checkpoints alone; records are read with `A->B.consumer.…`";
const OVERRIDE: &str = "overrides are read only as `A->B.producer.override.…`";

/// Prefixes of what a plugin of Connect reads for itself.
const PLUGINS: [&str; 3] = ["predicates.", "topic.creation.", "transforms."];
/// Prefixes of worker keys that are read at top level too.
const WORKER_AT_TOP: [&str; 8] = [
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
];
/// Prefixes under which a worker's plugins have settings of their own.
const WORKER_FAMILIES: [&str; 6] = [
    "config.storage.",
    "header.converter.",
    "key.converter.",
    "offset.storage.",
    "status.storage.",
    "value.converter.",
];

/// Whether MM2 hands `name` from the top level to the connectors of every pair.
pub(in crate::config) fn is_read_at_top(name: &str) -> bool {
    definition(Scope::Connector, name).is_some()
        || name.starts_with("config.providers")
        || name.starts_with("replication.policy")
}

/// Whether `name` at top level is a key of every worker, before whatever stands at its cluster.
pub(in crate::config) fn is_of_worker_at_top(name: &str) -> bool {
    starts_with_any(name, &WORKER_AT_TOP)
}

/// What becomes of `name`, without the prefix of its level.
pub(in crate::config) fn read_at(level: Level, name: &str) -> Reading {
    match level {
        Level::Top => at_top(name),
        Level::Cluster => of_a_cluster(name),
        Level::Flow => of_a_flow(name),
    }
}

fn read(scope: Scope, name: &str) -> Option<Reading> {
    definition(scope, name).map(|_| Reading::Read(meaning(scope, name)))
}

fn not_needed(note: &'static str) -> Reading {
    Reading::Read(Meaning { usage: Use::NotNeeded, note })
}

fn at_top(name: &str) -> Reading {
    if let Some(reading) = read(Scope::Process, name).or_else(|| read(Scope::Connector, name)) {
        return reading;
    }
    if name.starts_with(providers::PREFIX) || name == "bootstrap.servers" {
        return Reading::Read(meaning(Scope::Process, name));
    }
    if name.starts_with("listeners.https.") {
        return not_needed("there is no internal REST server");
    }
    let is_of_worker = definition(Scope::Worker, name).is_some();
    if is_of_worker && (name == "exactly.once.source.support" || is_of_worker_at_top(name)) {
        return Reading::Read(meaning(Scope::Worker, name));
    }
    if starts_with_any(name, &WORKER_FAMILIES) || starts_with_any(name, &PLUGINS) {
        return not_needed("there is no Connect worker");
    }
    if is_of_worker {
        Reading::Dropped(AT_THE_TARGET)
    } else if let Some((role, _)) = Role::strip(name) {
        Reading::Dropped(client_at_top(role))
    } else if let Some(reading) = of_some_client(Level::Top, name) {
        reading
    } else if of_a_flow(name) == Reading::Unknown {
        Reading::Unknown
    } else {
        Reading::Dropped(IN_A_FLOW_ONLY)
    }
}

/// A setting of clients with their prefix and no more.
fn client_at_top(role: Role) -> &'static str {
    match role {
        Role::Consumer => "not read at top level: write `A.` with the source's name before it",
        Role::Producer => "not read at top level: write `B.` with the target's name before it",
        Role::Admin => "not read at top level: write `A.` with the cluster's name before it",
    }
}

/// A setting of clients without their prefix: which one to write, where only one kind of client has it.
fn of_some_client(level: Level, name: &str) -> Option<Reading> {
    let mut roles = Role::ALL.into_iter().filter(|role| definition(Scope::Client(*role), name).is_some());
    let first = roles.next()?;
    let only = if roles.next().is_none() { Some(first) } else { None };
    Some(Reading::Dropped(match (level, only) {
        (Level::Flow, Some(Role::Consumer)) => "reaches no client: write `A->B.consumer.KEY`",
        (Level::Flow, Some(Role::Producer)) => "reaches no client: write `A->B.producer.override.KEY`",
        (Level::Flow, Some(Role::Admin)) => "reaches no client: write `A->B.admin.KEY`",
        (Level::Flow, None) => {
            "reaches no client: write `A->B.consumer.KEY`, `A->B.producer.override.KEY` or `A->B.admin.KEY`"
        }
        (Level::Cluster, Some(Role::Consumer)) => "reaches no client: write `A.consumer.KEY`",
        (Level::Cluster, Some(Role::Producer)) => "reaches no client: write `B.producer.KEY`",
        (Level::Cluster, Some(Role::Admin)) => "reaches no client: write `C.admin.KEY`",
        (Level::Cluster, None) => {
            "reaches no client: write `C.consumer.KEY`, `C.producer.KEY` or `C.admin.KEY`"
        }
        (Level::Top, Some(Role::Consumer)) => {
            "reaches no client: write `A.consumer.` with the source's name before it"
        }
        (Level::Top, Some(Role::Producer)) => {
            "reaches no client: write `B.producer.` with the target's name before it"
        }
        (Level::Top, Some(Role::Admin)) => {
            "reaches no client: write `A.admin.` with the cluster's name before it"
        }
        (Level::Top, None) => {
            "reaches no client: write `A.consumer.`, `A.producer.` or `A.admin.`, with a cluster's name, before it"
        }
    }))
}

fn of_a_cluster(name: &str) -> Reading {
    if is_client_base(name) || name == "forwarding.admin.class" {
        return Reading::Read(meaning(Scope::Connector, name));
    }
    if let Some(reading) = read(Scope::Worker, name) {
        return reading;
    }
    if starts_with_any(name, &WORKER_FAMILIES) {
        return not_needed("there is no Connect worker");
    }
    if let Some((role, name)) = Role::strip(name) {
        return of_a_client(role, name);
    }
    if definition(Scope::Connector, name).is_some() {
        Reading::Dropped(IN_A_FLOW)
    } else if definition(Scope::Process, name).is_some() {
        Reading::Dropped(AT_TOP)
    } else {
        of_some_client(Level::Cluster, name).unwrap_or(Reading::Unknown)
    }
}

fn of_a_client(role: Role, name: &str) -> Reading {
    if let Some(name) = name.strip_prefix("override.") {
        let is_known = is_client_base(name) || definition(Scope::Client(role), name).is_some();
        return if is_known { Reading::Dropped(OVERRIDE) } else { Reading::Unknown };
    }
    if is_client_base(name) {
        return Reading::Read(meaning(Scope::Connector, name));
    }
    read(Scope::Client(role), name).unwrap_or(Reading::Unknown)
}

fn of_a_flow(name: &str) -> Reading {
    if let Some(reading) = read(Scope::Connector, name) {
        return reading;
    }
    if let Some(name) = name.strip_prefix("producer.override.") {
        return of_a_client(Role::Producer, name);
    }
    if let Some((role, name)) = Role::strip(name) {
        return of_a_client_of_a_flow(None, role, name);
    }
    // Before the families, of which some are beginnings of the worker's own keys.
    if definition(Scope::Worker, name).is_some() {
        return Reading::Dropped(OF_THE_WORKER);
    }
    if starts_with_any(name, &PLUGINS) || starts_with_any(name, &WORKER_FAMILIES) {
        return not_needed("there is no Connect worker");
    }
    for side in ["source.", "target."] {
        if let Some(of_side) = name.strip_prefix(side) {
            return of_a_side(side, of_side);
        }
    }
    if definition(Scope::Process, name).is_some() {
        Reading::Dropped(AT_TOP)
    } else {
        of_some_client(Level::Flow, name).unwrap_or(Reading::Unknown)
    }
}

/// Connectors read records at the source alone, and leave writing them to their worker.
fn of_a_client_of_a_flow(side: Option<&str>, role: Role, name: &str) -> Reading {
    let reading = of_a_client(role, name);
    if is_client_base(name) || !matches!(reading, Reading::Read(_)) {
        return reading;
    }
    match (role, side) {
        (Role::Producer, _) => Reading::Dropped(OF_OFFSET_SYNCS),
        (Role::Consumer, Some("target.")) => Reading::Dropped(OF_CHECKPOINTS),
        _ => reading,
    }
}

/// `source.cluster.x` reaches every client of that side if it is one of the few that all need; `source.consumer.x` one.
fn of_a_side(side: &str, name: &str) -> Reading {
    let Some(name) = name.strip_prefix("cluster.") else {
        let of_client = Role::strip(name);
        return of_client
            .map_or(Reading::Unknown, |(role, name)| of_a_client_of_a_flow(Some(side), role, name));
    };
    if is_client_base(name) {
        return Reading::Read(meaning(Scope::Connector, name));
    }
    if of_some_client(Level::Flow, name).is_some() || definition(Scope::Worker, name).is_some() {
        Reading::Dropped(
            "reaches no client: write `consumer.`, `producer.` or `admin.` in place of `cluster.`",
        )
    } else if Role::strip(name).is_some() {
        Reading::Dropped("reaches no client: leave out `cluster.`")
    } else {
        Reading::Unknown
    }
}

fn starts_with_any(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(level: Level, name: &str) -> Option<Use> {
        match read_at(level, name) {
            Reading::Read(Meaning { usage, .. }) => Some(usage),
            Reading::Dropped(_) | Reading::Unknown => None,
        }
    }

    #[test]
    fn keys_are_known_only_where_they_are_read() {
        assert_eq!(usage(Level::Top, "topics"), Some(Use::Honoured));
        assert_eq!(usage(Level::Flow, "topics"), Some(Use::Honoured));
        assert_eq!(read_at(Level::Cluster, "topics"), Reading::Dropped(IN_A_FLOW));
        assert_eq!(usage(Level::Top, "clusters"), Some(Use::Honoured));
        assert_eq!(read_at(Level::Flow, "clusters"), Reading::Dropped(AT_TOP));
        assert_eq!(usage(Level::Cluster, "bootstrap.servers"), Some(Use::Honoured));
        assert_eq!(
            read_at(Level::Cluster, "checkpoints.topic.replication.factor"),
            Reading::Dropped(IN_A_FLOW)
        );
        assert_eq!(read_at(Level::Top, "group.id"), Reading::Dropped(AT_THE_TARGET));
    }

    #[test]
    fn keys_of_each_of_the_three_connectors_are_read_at_top_level() {
        for name in ["topics", "groups", "emit.heartbeats.enabled"] {
            assert!(is_read_at_top(name), "{name}");
        }
        assert!(!is_read_at_top("xxx") && !is_read_at_top("offset.storage.topic"));
    }

    #[test]
    fn client_settings_are_read_where_mm2_reads_them() {
        for (level, name) in [
            (Level::Cluster, "producer.max.request.size"),
            (Level::Flow, "producer.override.max.request.size"),
            (Level::Flow, "consumer.fetch.max.bytes"),
            (Level::Flow, "source.consumer.fetch.max.bytes"),
        ] {
            assert_eq!(usage(level, name), Some(Use::NotNeeded), "{name}");
        }
        for (level, name) in [
            (Level::Top, "producer.max.request.size"),
            (Level::Cluster, "max.request.size"),
            (Level::Cluster, "producer.override.max.request.size"),
            (Level::Flow, "consumer.override.fetch.max.bytes"),
            (Level::Flow, "source.cluster.max.poll.records"),
            (Level::Flow, "source.cluster.consumer.max.partition.fetch.bytes"),
            (Level::Flow, "target.cluster.offset.flush.timeout.ms"),
        ] {
            assert!(matches!(read_at(level, name), Reading::Dropped(_)), "{name}");
        }
        assert_eq!(read_at(Level::Flow, "producer.cleanup.policy"), Reading::Unknown);
        assert_eq!(read_at(Level::Cluster, "producer.override.equest.timeout.ms"), Reading::Unknown);
        assert_eq!(read_at(Level::Cluster, "message.max.bytes"), Reading::Unknown);
    }

    #[test]
    fn what_only_the_worker_or_another_client_reads_is_dropped_for_a_flow() {
        for (name, place) in [
            ("offset.storage.topic", OF_THE_WORKER),
            ("offset.storage.replication.factor", OF_THE_WORKER),
            ("status.storage.partitions", OF_THE_WORKER),
            ("group.id", OF_THE_WORKER),
            ("producer.acks", OF_OFFSET_SYNCS),
            ("producer.client.id", OF_OFFSET_SYNCS),
            ("source.producer.acks", OF_OFFSET_SYNCS),
            ("target.producer.acks", OF_OFFSET_SYNCS),
            ("target.consumer.isolation.level", OF_CHECKPOINTS),
        ] {
            assert_eq!(read_at(Level::Flow, name), Reading::Dropped(place), "{name}");
        }
        for name in ["producer.security.protocol", "target.consumer.ssl.protocol", "target.admin.retries"] {
            assert!(matches!(read_at(Level::Flow, name), Reading::Read(_)), "{name}");
        }
    }

    #[test]
    fn settings_of_clients_without_their_prefix_name_it() {
        for (level, name, prefix) in [
            (Level::Top, "auto.offset.reset", "`A.consumer.` with"),
            (Level::Cluster, "auto.offset.reset", "`A.consumer.KEY`"),
            (Level::Flow, "auto.offset.reset", "`A->B.consumer.KEY`"),
            (Level::Top, "acks", "`B.producer.` with"),
            (Level::Cluster, "acks", "`B.producer.KEY`"),
            (Level::Flow, "acks", "`A->B.producer.override.KEY`"),
            (Level::Cluster, "bootstrap.controllers", "`C.admin.KEY`"),
            (Level::Flow, "bootstrap.controllers", "`A->B.admin.KEY`"),
            (Level::Cluster, "enable.metrics.push", "`C.consumer.KEY`, `C.producer.KEY` or `C.admin.KEY`"),
            (Level::Top, "source.consumer.isolation.level", "`A->B.` with"),
            (Level::Top, "target.cluster.bootstrap.servers", "`A->B.` with"),
        ] {
            let reading = read_at(level, name);
            let is_told =
                matches!(reading, Reading::Dropped(place) if place.contains(&format!("write {prefix}")));
            assert!(is_told, "{name}: {reading:?}");
        }
        assert_eq!(read_at(Level::Top, "source.bootstrap.servers"), Reading::Unknown);
    }

    #[test]
    fn tuning_of_what_is_not_there_is_not_needed() {
        for (level, name) in [
            (Level::Cluster, "config.storage.replication.factor"),
            (Level::Cluster, "offset.flush.interval.ms"),
            (Level::Top, "tasks.max"),
            (Level::Top, "dedicated.mode.enable.internal.rest"),
            (Level::Top, "listeners.https.ssl.keystore.location"),
            (Level::Top, "task.shutdown.graceful.timeout.ms"),
            (Level::Flow, "transforms.route.type"),
        ] {
            assert_eq!(usage(level, name), Some(Use::NotNeeded), "{name}");
        }
        assert_eq!(usage(Level::Cluster, "offset.storage.replication.factor"), Some(Use::Honoured));
    }

    #[test]
    fn near_misses_of_the_field_are_unknown() {
        for name in ["task.max", "topic.blacklist", "sync.topics.configs.enabled", "Replication.factor"] {
            assert_eq!(read_at(Level::Top, name), Reading::Unknown, "{name}");
            assert_eq!(read_at(Level::Flow, name), Reading::Unknown, "{name}");
        }
    }
}
