//! Every key that somebody may write: its type and default, who reads it where, and what becomes of it.
//!
//! Types and defaults are MM2's own, printed from its classes (`mm2-4.3.1.tsv`); what those leave out stands in
//! `further.tsv`, and which values of their types MM2 takes in `allowed`. What twinlog does with a key is told in `meaning`, at which level a key is read in `levels`.
//!
//! # References
//! The `ConfigDef`s of MM2 4.3.1's three connectors, of `MirrorMakerConfig`, of Connect's distributed worker and of the
//! clients; `MirrorClientConfig` for what clusters hand to clients.

mod allowed;
mod levels;
mod meaning;
mod nearest;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(super) use self::allowed::allowed;
pub(super) use self::levels::{Level, Reading, is_of_worker_at_top, is_read_at_top, read_at};
pub(super) use self::meaning::{Meaning, Use, meaning};
pub(super) use self::nearest::{ALIKE_MIN, alike, nearest};

/// Who defines a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// One of MM2's three connectors, or twinlog for a flow.
    Connector,
    /// The process: at top level only.
    Process,
    /// The Connect worker beside the target.
    Worker,
    /// A client of one kind.
    Client(Role),
}

/// The kind of a Kafka client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Consumer,
    Producer,
    Admin,
}

impl Role {
    pub(super) const ALL: [Self; 3] = [Self::Consumer, Self::Producer, Self::Admin];

    /// The prefix of its settings.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Consumer => "consumer.",
            Self::Producer => "producer.",
            Self::Admin => "admin.",
        }
    }

    /// The role whose prefix `name` begins with, and the rest.
    pub(super) fn strip(name: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|role| Some((role, name.strip_prefix(role.prefix())?)))
    }
}

/// Types of `ConfigDef`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Short,
    Int,
    Long,
    Double,
    List,
    Class,
    String,
    Password,
}

impl Kind {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "BOOLEAN" => Self::Boolean,
            "SHORT" => Self::Short,
            "INT" => Self::Int,
            "LONG" => Self::Long,
            "DOUBLE" => Self::Double,
            "LIST" => Self::List,
            "CLASS" => Self::Class,
            "STRING" => Self::String,
            "PASSWORD" => Self::Password,
            _ => return None,
        })
    }
}

/// Type and default of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) kind: Kind,
    /// As MM2 prints it; none where there is none.
    pub(super) default: Option<&'static str>,
}

type Table = BTreeMap<Scope, BTreeMap<&'static str, Definition>>;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let lines = [include_str!("mm2-4.3.1.tsv"), include_str!("further.tsv")].into_iter().flat_map(str::lines);
    let mut table = Table::new();
    for (scope, name, definition) in lines.filter_map(row) {
        table.entry(scope).or_default().insert(name, definition);
    }
    table
});

/// One line of a table; none for a note. A test sees to it that nothing else is left out.
fn row(line: &'static str) -> Option<(Scope, &'static str, Definition)> {
    let mut cells = line.split('\t');
    let scope = scope_named(cells.next()?)?;
    let (name, kind) = (cells.next()?, Kind::parse(cells.next()?)?);
    let default = cells.next().filter(|default| !matches!(*default, "null" | "(required)"));
    Some((scope, name, Definition { kind, default }))
}

/// As the tables call it.
fn scope_named(name: &str) -> Option<Scope> {
    Some(match name {
        "connector" => Scope::Connector,
        "process" => Scope::Process,
        "worker" => Scope::Worker,
        "consumer" => Scope::Client(Role::Consumer),
        "producer" => Scope::Client(Role::Producer),
        "admin" => Scope::Client(Role::Admin),
        _ => return None,
    })
}

/// Type and default of `name`, if `scope` defines it.
pub(super) fn definition(scope: Scope, name: &str) -> Option<Definition> {
    TABLE.get(&scope)?.get(name).copied()
}

/// Whether anybody defines `name`.
pub(super) fn is_defined(name: &str) -> bool {
    TABLE.values().any(|names| names.contains_key(name))
}

/// The names that `scope` defines, in the order of the alphabet.
pub(super) fn names(scope: Scope) -> impl Iterator<Item = &'static str> {
    TABLE.get(&scope).into_iter().flat_map(|names| names.keys().copied())
}

/// Whether `name`, without any prefix, is a TLS or SASL setting of a client.
pub(super) fn is_security(name: &str) -> bool {
    (name.starts_with("ssl.") || name.starts_with("sasl.")) && definition(Scope::Connector, name).is_some()
}

/// What every client needs: addresses and security. MM2 hands these from a cluster to all its clients.
pub(super) fn is_client_base(name: &str) -> bool {
    name == "bootstrap.servers" || name == "security.protocol" || is_security(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_read() {
        for (text, count) in [(include_str!("mm2-4.3.1.tsv"), 335), (include_str!("further.tsv"), 23)] {
            let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
            assert_eq!(lines.len(), count);
            assert!(lines.into_iter().all(|line| row(line).is_some()));
        }
        let count: usize = TABLE.values().map(BTreeMap::len).sum();
        assert_eq!(count, 335 + 23, "no name twice in one scope");
    }

    #[test]
    fn what_connectors_write_for_their_tasks_is_no_key() {
        for name in ["task.assigned.partitions", "task.assigned.groups", "task.index"] {
            assert!(TABLE.values().all(|names| !names.contains_key(name)), "{name}");
        }
    }

    #[test]
    fn types_and_defaults_are_those_of_the_classes() {
        let topics = definition(Scope::Connector, "topics").unwrap();
        assert_eq!((topics.kind, topics.default), (Kind::List, Some("[.*]")));
        assert_eq!(definition(Scope::Connector, "ssl.provider").unwrap().default, None);
        assert_eq!(definition(Scope::Connector, "source.cluster.alias").unwrap().default, None);
        assert_eq!(definition(Scope::Worker, "topics"), None);
        assert!(names(Scope::Client(Role::Producer)).any(|name| name == "acks"));
        assert!(is_security("sasl.oauthbearer.scope") && !is_security("ssl.client.auth"));
    }
}
