//! Every key that somebody may write, and at which level it is read.
//!
//! Only names live here; what a value may be is decided in `flow` and `refused`.
//!
//! # References
//! The `ConfigDef`s of MM2 4.3.1's three connectors, of `MirrorMakerConfig` and of Connect's worker; `MirrorClientConfig`
//! for the client settings.

/// What becomes of a known key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Read, or checked.
    Yes,
    /// Tunes a part that is not built yet.
    Later,
    /// Tunes a part of MM2 that twinlog does not have.
    NotNeeded,
}

/// Where a key stands, seen from the enabled flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// No prefix.
    Top,
    /// `a.`
    Cluster,
    /// `a->b.`
    Flow,
}

/// Keys of the connectors that mean something to twinlog. At top and flow level.
const CONNECTOR: &[&str] = &[
    "config.properties.exclude",
    "config.property.filter.class",
    "emit.checkpoints.enabled",
    "emit.heartbeats.enabled",
    "emit.offset-syncs.enabled",
    "enabled",
    "errors.tolerance",
    "exactly.once.support",
    "forwarding.admin.class",
    "group.filter.class",
    "header.converter",
    "heartbeats.replication.enabled",
    "key.converter",
    "offset-syncs.topic.location",
    "predicates",
    "refresh.topics.enabled",
    "refresh.topics.interval.seconds",
    "replication.factor",
    "replication.policy.class",
    "replication.policy.internal.topic.separator.enabled",
    "replication.policy.separator",
    "source.cluster.alias",
    "sync.group.offsets.enabled",
    "sync.topic.acls.enabled",
    "sync.topic.configs.enabled",
    "target.cluster.alias",
    "topic.filter.class",
    "topics",
    "topics.exclude",
    "transforms",
    "use.defaults.from",
    "value.converter",
];

/// Keys, MM2's and twinlog's own, that tune parts which are not built yet; the parts' own switches are refused (`refused`).
/// At top and flow level.
const LATER: &[&str] = &[
    "checkpoints.topic.replication.factor",
    "emit.checkpoints.interval.seconds",
    "emit.heartbeats.interval.seconds",
    "groups",
    "groups.blacklist",
    "groups.exclude",
    "heartbeats.topic.replication.factor",
    "offset-syncs.topic.replication.factor",
    "offset.lag.max",
    "offsets.fill.max",
    "refresh.groups.enabled",
    "refresh.groups.interval.seconds",
    "sync.group.offsets.interval.seconds",
    "sync.topic.acls.interval.seconds",
    "sync.topic.configs.interval.seconds",
];

/// Keys of the connectors that tune what twinlog does not have.
const CONNECTOR_NOT_NEEDED: &[&str] = &[
    "add.source.alias.to.metrics",
    "admin.timeout.ms",
    "config.action.reload",
    "connector.class",
    "connector.plugin.version",
    "consumer.poll.timeout.ms",
    "errors.log.enable",
    "errors.log.include.messages",
    "errors.retry.delay.max.ms",
    "errors.retry.timeout",
    "header.converter.plugin.version",
    "key.converter.plugin.version",
    "metric.names.formats",
    "metric.reporters",
    "name",
    "offsets.storage.topic",
    "tasks.max",
    "tasks.max.enforce",
    "transaction.boundary",
    "transaction.boundary.interval.ms",
    "use.incremental.alter.configs",
    "value.converter.plugin.version",
];

/// Names of before Kafka 2.7.
const OLD: &[&str] = &["config.properties.blacklist", "topics.blacklist"];

/// twinlog's own keys, at top and flow level.
const OWN: &[&str] = &[
    "compression.type",
    "exactly.once",
    "loops.allow",
    "memory.max",
    "offsets.identical.topics",
    "offsets.mapped.topics",
    "offsets.mode",
    "on.loss",
    "on.target.loss",
    "sync.group.offsets.rewind",
    "sync.topic.acls.remove",
    "throttle",
];

/// Keys of the process, at top level only.
const PROCESS: &[&str] = &["clusters", "config.providers"];

/// Keys of MM2's internal REST server, at top level only.
const PROCESS_NOT_NEEDED: &[&str] = &[
    "access.control.allow.methods",
    "access.control.allow.origin",
    "admin.listeners",
    "dedicated.mode.enable.internal.rest",
    "listeners",
    "response.http.headers.config",
    "rest.advertised.host.name",
    "rest.advertised.listener",
    "rest.advertised.port",
    "rest.extension.classes",
    "ssl.client.auth",
];

/// TLS and SASL settings that MM2 hands from cluster level to its clients (without `security.protocol`).
const SECURITY: &[&str] = &[
    "sasl.client.callback.handler.class",
    "sasl.jaas.config",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.mechanism",
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.engine.factory.class",
    "ssl.key.password",
    "ssl.keymanager.algorithm",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
];

/// Settings of the Connect worker and its clients, at cluster level (`a.key`).
const WORKER: &[&str] = &[
    "client.dns.lookup",
    "client.id",
    "client.rack",
    "connect.protocol",
    "connections.max.idle.ms",
    "connector.client.config.override.policy",
    "exactly.once.source.support",
    "group.id",
    "heartbeat.interval.ms",
    "metadata.max.age.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "offset.flush.interval.ms",
    "offset.flush.timeout.ms",
    "plugin.discovery",
    "plugin.path",
    "rebalance.timeout.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "scheduled.rebalance.max.delay.ms",
    "send.buffer.bytes",
    "session.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
    "task.shutdown.graceful.timeout.ms",
    "topic.creation.enable",
    "topic.tracking.allow.reset",
    "topic.tracking.enable",
    "worker.sync.timeout.ms",
    "worker.unsync.backoff.ms",
];

/// Settings of the Connect worker that MM2 reads at top level too.
const WORKER_AT_TOP: &[&str] = &[
    "exactly.once.source.support",
    "task.shutdown.graceful.timeout.ms",
    "worker.sync.timeout.ms",
    "worker.unsync.backoff.ms",
];

/// Topics of the Connect worker, and converters' own settings. `offset.storage.replication.factor` is read.
const WORKER_PREFIXES: &[&str] = &[
    "config.storage.",
    "header.converter.",
    "inter.worker.",
    "key.converter.",
    "offset.storage.",
    "status.storage.",
    "value.converter.",
];

/// Prefixes of client settings.
const CLIENT_PREFIXES: &[&str] = &["admin.", "consumer.", "producer."];

/// Whether `name`, without any prefix, is a TLS or SASL setting of a client.
pub(super) fn is_security(name: &str) -> bool {
    name.starts_with("sasl.oauthbearer.") || SECURITY.contains(&name)
}

/// What becomes of `name` at `level`; none for a key that nobody reads there.
pub(super) fn known(level: Level, name: &str) -> Option<Known> {
    match level {
        Level::Top => known_at_top(name).or_else(|| known_to_connectors(name)),
        Level::Cluster => known_to_a_cluster(name),
        Level::Flow => known_to_connectors(name).or_else(|| known_to_clients_of_a_flow(name)),
    }
}

fn known_at_top(name: &str) -> Option<Known> {
    let prefixes = ["listeners.https.", "config.providers."];
    if PROCESS.contains(&name) || is_client_base(name) {
        Some(Known::Yes)
    } else if PROCESS_NOT_NEEDED.contains(&name)
        || WORKER_AT_TOP.contains(&name)
        || starts_with_any(name, &prefixes)
        || starts_with_any(name, WORKER_PREFIXES)
        || starts_with_any(name, CLIENT_PREFIXES)
    {
        Some(needed_unless_state(name))
    } else {
        None
    }
}

fn known_to_connectors(name: &str) -> Option<Known> {
    let plugins = ["transforms.", "predicates.", "topic.creation."];
    if CONNECTOR.contains(&name) || OWN.contains(&name) || OLD.contains(&name) || name == "security.protocol"
    {
        Some(Known::Yes)
    } else if LATER.contains(&name) {
        Some(Known::Later)
    } else if CONNECTOR_NOT_NEEDED.contains(&name) || starts_with_any(name, &plugins) {
        Some(Known::NotNeeded)
    } else if is_security(name) {
        Some(Known::Yes)
    } else {
        None
    }
}

fn known_to_a_cluster(name: &str) -> Option<Known> {
    if is_client_base(name) || name == "forwarding.admin.class" {
        Some(Known::Yes)
    } else if WORKER.contains(&name)
        || starts_with_any(name, WORKER_PREFIXES)
        || starts_with_any(name, CLIENT_PREFIXES)
        || ["key.converter", "value.converter", "header.converter"].contains(&name)
    {
        Some(needed_unless_state(name))
    } else {
        None
    }
}

fn known_to_clients_of_a_flow(name: &str) -> Option<Known> {
    if starts_with_any(name, CLIENT_PREFIXES) {
        return Some(Known::NotNeeded);
    }
    let of_side = name.strip_prefix("source.").or_else(|| name.strip_prefix("target."))?;
    match of_side.strip_prefix("cluster.") {
        Some(name) => known_to_a_cluster(name),
        None => starts_with_any(of_side, CLIENT_PREFIXES).then_some(Known::NotNeeded),
    }
}

/// What every client needs: addresses and security.
fn is_client_base(name: &str) -> bool {
    name == "bootstrap.servers" || name == "security.protocol" || is_security(name)
}

fn needed_unless_state(name: &str) -> Known {
    if name == "offset.storage.replication.factor" || name == "exactly.once.source.support" {
        Known::Yes
    } else {
        Known::NotNeeded
    }
}

fn starts_with_any(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_only_where_they_are_read() {
        assert_eq!(known(Level::Top, "topics"), Some(Known::Yes));
        assert_eq!(known(Level::Flow, "topics"), Some(Known::Yes));
        assert_eq!(known(Level::Cluster, "topics"), None);
        assert_eq!(known(Level::Top, "clusters"), Some(Known::Yes));
        assert_eq!(known(Level::Flow, "clusters"), None);
        assert_eq!(known(Level::Cluster, "bootstrap.servers"), Some(Known::Yes));
        assert_eq!(known(Level::Cluster, "checkpoints.topic.replication.factor"), None);
    }

    #[test]
    fn tuning_of_what_is_not_there_is_not_needed() {
        for (level, name) in [
            (Level::Cluster, "producer.batch.size"),
            (Level::Cluster, "config.storage.replication.factor"),
            (Level::Flow, "producer.override.compression.type"),
            (Level::Flow, "source.cluster.group.id"),
            (Level::Flow, "source.consumer.fetch.max.bytes"),
            (Level::Top, "tasks.max"),
            (Level::Top, "dedicated.mode.enable.internal.rest"),
        ] {
            assert_eq!(known(level, name), Some(Known::NotNeeded), "{name}");
        }
        assert_eq!(known(Level::Cluster, "offset.storage.replication.factor"), Some(Known::Yes));
    }

    #[test]
    fn near_misses_of_the_field_are_unknown() {
        for name in [
            "task.max",
            "topic.blacklist",
            "sync.topics.configs.enabled",
            "Replication.factor",
            "refresh.topics.enable",
            "group.id",
            "emit.heartbeats",
        ] {
            assert_eq!(known(Level::Top, name), None, "{name}");
            assert_eq!(known(Level::Flow, name), None, "{name}");
        }
    }
}
