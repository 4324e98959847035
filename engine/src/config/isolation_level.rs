//! Which records of the source are copied: `isolation.level` of its consumer, and what `exactly.once.source.support` says of it.
//!
//! MM2 needs transactions at the target for exactly once, and there connectors have to read committed records only. Here
//! every record is copied exactly once anyway, so that of the two only the reading is left.
//!
//! # References
//! `MirrorSourceConnector.exactlyOnceSupport` and `validate`; KIP-618.

use twinlog_protocol::fetch::IsolationLevel;

use super::error::Fault;
use super::form::Form;
use super::keys::Role;
use super::properties::Entry;
use super::resolve::Resolver;
use super::settings::Side;
use super::warning::Warning;

const KEY: &str = "isolation.level";
const SUPPORT: &str = "exactly.once.source.support";
const DEMAND: &str = "exactly.once.support";
const COMMITTED: &str = "read_committed";

/// Reads the level; MM2's default where nobody wrote anything of it.
pub(super) fn read(resolver: &mut Resolver<'_>) -> IsolationLevel {
    let reader = resolver.connectors().of_client(Side::Source, Role::Consumer);
    let level = reader.get(KEY);
    let support = resolver.worker().get(SUPPORT).filter(|entry| is(entry, "enabled"));
    let demand = resolver.find(DEMAND).filter(|entry| is(entry, "required"));
    let is_committed = level.map_or(support.is_some(), |level| level.value.trim() == COMMITTED);
    // A connector's worker is somebody else's affair.
    let is_supported = support.is_some() || resolver.form() == Form::Connector;
    if let Some(demand) = demand.filter(|_| !(is_supported && is_committed)) {
        let (key, value) = match level {
            Some(level) if !is_committed => (level.key.clone(), COMMITTED),
            None if is_supported => (format!("source.consumer.{KEY}"), COMMITTED),
            _ => (resolver.cluster_key(Side::Target, SUPPORT), "enabled"),
        };
        let remedy = format!("write {}, or remove this key", resolver.form().setting(&key, value));
        let reason = "as with MM2, needs a worker that supports it and `isolation.level = read_committed`";
        resolver.fault(Fault::of(demand, reason).remedy(remedy));
    }
    if let Some(support) = support {
        resolver.warn_of(Warning::of(support, meaning(level, is_committed)));
    }
    if is_committed { IsolationLevel::ReadCommitted } else { IsolationLevel::ReadUncommitted }
}

fn is(entry: &Entry, word: &str) -> bool {
    entry.value.trim().eq_ignore_ascii_case(word)
}

/// Nobody is to look for transactions at the target.
fn meaning(level: Option<&Entry>, is_committed: bool) -> String {
    let records = match (level, is_committed) {
        (Some(level), false) => {
            return format!(
                "changes nothing: every record is copied exactly once as it is, and `{}` wants those of open and aborted \
                 transactions, too",
                level.key
            );
        }
        (Some(_), true) => "as written",
        (None, _) => "though nobody wrote `isolation.level`",
    };
    format!(
        "means here that only committed records are copied ({records}), each exactly once as all are; no transactions are \
         written"
    )
}
