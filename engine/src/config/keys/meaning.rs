//! What becomes of each key: honoured, later, not needed, or refused, and why. The documentation prints this.
//!
//! Keys whose values are turned away stand in [`crate::config::refused`], with the sentence that does it.

use super::{Role, Scope, is_security};
use crate::config::refused;

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Use {
    /// It does what it does in MM2.
    Honoured,
    /// It tunes a part that is not built yet: without effect until then.
    Later,
    /// It tunes a part of MM2 that twinlog does not have.
    NotNeeded,
    /// Only a value that says what happens anyway passes.
    Refused,
}

/// What becomes of a key, and a note: what it does, or why it does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Meaning {
    pub(in crate::config) usage: Use,
    pub(in crate::config) note: &'static str,
}

type Notes = &'static [(&'static str, &'static str)];

/// Of flows, at top or flow level.
const HONOURED: Notes = &[
    (
        "compression.type",
        "`none`, `gzip`, `snappy`, `lz4` or `zstd`: batches in another codec are packed anew, which costs the zero-copy path; \
         `keep`: each keeps the codec that its producer gave it",
    ),
    ("config.properties.blacklist", "the old name of `config.properties.exclude`"),
    (
        "config.properties.exclude",
        "configs that stay as they are on the target: names or regular expressions",
    ),
    (
        "enabled",
        "whether the flow runs; at top level it counts for every pair of clusters whose heartbeats are not off",
    ),
    (
        "errors.tolerance",
        "`all`: a record that the target refuses for its size, time or form is skipped, told and counted; `none`: it holds its \
         partition",
    ),
    (
        "exactly.once.support",
        "`required` is refused unless committed records are read and `exactly.once.source.support` is `enabled`",
    ),
    ("heartbeats.replication.enabled", "whether heartbeats topics are mirrored whatever `topics` says"),
    (
        "loops.allow",
        "`true`: rings of three and more flows that keep topic names, and a second name for a cluster, run with a warning",
    ),
    ("offsets.mode", "`auto` and `mapped` (which are the same until equal offsets are built)"),
    (
        "on.loss",
        "records that the source lost before they were copied: `continue` goes on behind them, tells and counts them once; \
         `hold` holds the partition",
    ),
    (
        "on.target.loss",
        "records that the target lost: `hold` holds the partition, `recopy` copies them again, `continue` goes on without them; \
         a deleted topic is made again with the latter two",
    ),
    ("refresh.topics.enabled", "`false`: only the topics found at start are mirrored"),
    (
        "refresh.topics.interval.seconds",
        "new topics and partitions are seen within this time, and within 30 s at most",
    ),
    (
        "replication.factor",
        "replicas of mirrored topics; the default is cut to the number of brokers, a written one never",
    ),
    ("replication.policy.class", "DefaultReplicationPolicy or IdentityReplicationPolicy"),
    ("replication.policy.internal.topic.separator.enabled", "`false`: MM2's own topics are named with `.`"),
    ("replication.policy.separator", "between alias and topic; may be empty"),
    ("source.cluster.alias", "the alias in names; may be empty"),
    (
        "throttle",
        "bytes of records that the flow may copy in a second, such as `10 MiB`; no limit if not written",
    ),
    ("sync.topic.configs.enabled", "`false`: mirrors keep the configs that they were created with"),
    (
        "sync.topic.configs.interval.seconds",
        "how often configs are compared; only differences are sent, and only what twinlog set is taken away",
    ),
    ("target.cluster.alias", "the alias in names; may be empty"),
    ("topics", "names or regular expressions that match a whole name; an empty list matches nothing"),
    ("topics.blacklist", "the old name of `topics.exclude`"),
    ("topics.exclude", "as `topics`; it wins over it"),
    (
        "use.defaults.from",
        "`source`: what the source holds by default is set on the target; at top level too, where MM2 \
                           drops it",
    ),
];

/// Of flows.
const LATER: Notes = &[
    ("checkpoints.topic.replication.factor", CHECKPOINTS),
    ("emit.checkpoints.interval.seconds", CHECKPOINTS),
    ("emit.heartbeats.interval.seconds", HEARTBEATS),
    ("groups", GROUPS),
    ("groups.blacklist", GROUPS),
    ("groups.exclude", GROUPS),
    ("heartbeats.topic.replication.factor", HEARTBEATS),
    ("offset-syncs.topic.replication.factor", OFFSET_SYNCS),
    ("offset.lag.max", OFFSET_SYNCS),
    ("offsets.fill.max", "equal offsets are not built yet"),
    ("offsets.mapped.topics", "equal offsets are not built yet: every partition is mapped"),
    ("refresh.groups.enabled", GROUPS),
    ("refresh.groups.interval.seconds", GROUPS),
    ("sync.group.offsets.interval.seconds", GROUPS),
    ("sync.topic.acls.interval.seconds", "syncing ACLs is not built yet"),
];

const CHECKPOINTS: &str = "checkpoints are not built yet";
const GROUPS: &str = "groups are not synced yet";
const HEARTBEATS: &str = "heartbeats are not built yet";
const OFFSET_SYNCS: &str = "offset syncs are not built yet";

/// Of flows and of the process.
const NOT_NEEDED: Notes = &[
    ("access.control.allow.methods", INTERNAL_REST),
    ("access.control.allow.origin", INTERNAL_REST),
    ("add.source.alias.to.metrics", METRICS),
    ("admin.timeout.ms", "no job waits for another one"),
    ("config.action.reload", CONNECT),
    ("connector.class", "every flow copies topics, as MirrorSourceConnector does"),
    ("connector.plugin.version", CONNECT),
    ("consumer.poll.timeout.ms", "nothing is polled"),
    (
        "dedicated.mode.enable.internal.rest",
        "twinlog's processes do not talk to each other: all may run the same flows",
    ),
    ("errors.log.enable", "errors are logged"),
    ("errors.log.include.messages", "records are not logged"),
    ("errors.retry.delay.max.ms", RETRIES),
    ("errors.retry.timeout", RETRIES),
    ("header.converter.plugin.version", CONNECT),
    ("key.converter.plugin.version", CONNECT),
    ("listeners", INTERNAL_REST),
    ("metric.names.formats", METRICS),
    ("metric.reporters", METRICS),
    ("name", "a flow is named by its clusters"),
    ("offsets.storage.topic", "progress is kept in `mm2-twinlog.internal`"),
    ("response.http.headers.config", INTERNAL_REST),
    ("rest.advertised.host.name", INTERNAL_REST),
    ("rest.advertised.listener", INTERNAL_REST),
    ("rest.advertised.port", INTERNAL_REST),
    ("ssl.client.auth", INTERNAL_REST),
    ("tasks.max", "partitions are not dealt to tasks"),
    ("tasks.max.enforce", "partitions are not dealt to tasks"),
    ("transaction.boundary", "records are copied exactly once without transactions"),
    ("transaction.boundary.interval.ms", "records are copied exactly once without transactions"),
    ("use.incremental.alter.configs", "configs are always altered one by one"),
    ("value.converter.plugin.version", CONNECT),
];

const CONNECT: &str = "there is no Connect worker";
const INTERNAL_REST: &str = "there is no internal REST server";
const METRICS: &str = "there is no JMX";
const RETRIES: &str = "what may pass is tried again for ever; what does not holds its partition";

/// Client settings that mean something beyond the JVM's client.
const OF_CLIENTS: &[(Role, &str, Use, &str)] = &[
    (
        Role::Consumer,
        "auto.offset.reset",
        Use::Honoured,
        "where partitions begin that are there when their flow first starts: `earliest` (if not written), `latest`, \
         `by_duration:PT1H`; later ones begin at their beginning, and later starts never use it",
    ),
    (
        Role::Consumer,
        "client.id",
        Use::Honoured,
        "stands before the id that fetches: `ID|A->B|MirrorSourceConnector-0|replication-consumer`",
    ),
    (
        Role::Producer,
        "compression.type",
        Use::NotNeeded,
        "batches keep the compression that their producers gave them, or get that of the flow's own `compression.type`",
    ),
    (
        Role::Consumer,
        "isolation.level",
        Use::Honoured,
        "`read_committed`: records of aborted transactions are left out, and an open one holds up those behind it",
    ),
    (
        Role::Consumer,
        "client.rack",
        Use::Honoured,
        "where the brokers at the source select replicas by rack, records come from the replica in this one",
    ),
    (
        Role::Producer,
        "client.id",
        Use::Honoured,
        "replaces the id that writes records, `connector-producer-MirrorSourceConnector-0`",
    ),
    (
        Role::Admin,
        "client.id",
        Use::Honoured,
        "stands before the ids of all else: `ID|A->B|MirrorSourceConnector|replication-source-admin`, `…-target-admin`",
    ),
];

/// What becomes of a key that `scope` defines.
pub(in crate::config) fn meaning(scope: Scope, name: &str) -> Meaning {
    let of = |usage, notes: Notes| {
        notes.iter().find(|(known, _)| *known == name).map(|(_, note)| Meaning { usage, note })
    };
    match scope {
        Scope::Client(role) => of_client(role, name),
        Scope::Worker => of_worker(name),
        Scope::Connector | Scope::Process => {
            let found = of(Use::Honoured, HONOURED).or_else(|| of(Use::Later, LATER));
            let found = found.or_else(|| of(Use::NotNeeded, NOT_NEEDED)).or_else(|| of_refused(scope, name));
            found.or_else(|| of_every_client(name)).unwrap_or_else(|| of_process(name))
        }
    }
}

fn of_refused(scope: Scope, name: &str) -> Option<Meaning> {
    refused::sentence(scope, name).map(|note| Meaning { usage: Use::Refused, note })
}

/// Security and addresses, wherever they stand.
fn of_every_client(name: &str) -> Option<Meaning> {
    match name {
        "bootstrap.servers" => Some(Meaning { usage: Use::Honoured, note: "the brokers to try first" }),
        "security.protocol" => {
            Some(Meaning { usage: Use::Refused, note: "only PLAINTEXT listeners can be reached yet" })
        }
        _ => is_security(name)
            .then_some(Meaning { usage: Use::Refused, note: "TLS and SASL are not built yet" }),
    }
}

fn of_process(name: &str) -> Meaning {
    let note = match name {
        "clusters" => "the aliases of the clusters, at least two",
        "memory.max" => {
            "bytes of records that all flows together may hold, such as `64 MiB`; the process needs up to 64 MiB more"
        }
        "config.providers" => {
            "FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider resolve `${…}` in every value"
        }
        _ => "",
    };
    Meaning { usage: Use::Honoured, note }
}

fn of_worker(name: &str) -> Meaning {
    match name {
        "offset.storage.replication.factor" => {
            Meaning { usage: Use::Honoured, note: "replicas of twinlog's state topic `mm2-twinlog.internal`" }
        }
        "exactly.once.source.support" => Meaning {
            usage: Use::Honoured,
            note: "`enabled`: committed records only are copied, unless `isolation.level` is written; without transactions, as \
                   every record is copied exactly once anyway",
        },
        "offset.storage.topic" => {
            Meaning { usage: Use::Later, note: "taking a copy over from MM2 is not built yet" }
        }
        _ => of_refused(Scope::Worker, name)
            .or_else(|| of_every_client(name))
            .unwrap_or(Meaning { usage: Use::NotNeeded, note: CONNECT }),
    }
}

fn of_client(role: Role, name: &str) -> Meaning {
    let own = OF_CLIENTS.iter().find(|(of, known, ..)| *of == role && *known == name);
    if let Some((.., usage, note)) = own {
        return Meaning { usage: *usage, note };
    }
    let jvm = Meaning { usage: Use::NotNeeded, note: "tunes a client of the JVM" };
    of_refused(Scope::Client(role), name).or_else(|| of_every_client(name)).unwrap_or(jvm)
}

#[cfg(test)]
mod tests {
    use super::super::names;
    use super::*;

    #[test]
    fn every_key_has_a_meaning_and_every_note_a_key() {
        for scope in [Scope::Connector, Scope::Process] {
            for name in names(scope) {
                assert_ne!(meaning(scope, name).note, "", "{name}");
            }
        }
        let is_defined = |name: &str| {
            [Scope::Connector, Scope::Process]
                .into_iter()
                .any(|scope| names(scope).any(|known| known == name))
        };
        for (name, _) in [HONOURED, LATER, NOT_NEEDED].concat() {
            assert!(is_defined(name), "{name}");
        }
        for (role, name, ..) in OF_CLIENTS {
            assert!(names(Scope::Client(*role)).any(|known| known == *name), "{name}");
        }
    }

    #[test]
    fn a_key_stands_in_one_list() {
        let all = [HONOURED, LATER, NOT_NEEDED].concat();
        for (place, (name, _)) in all.iter().enumerate() {
            assert!(!all[..place].iter().any(|(before, _)| before == name), "{name}");
            assert_eq!(refused::sentence(Scope::Connector, name), None, "{name}");
        }
    }
}
