//! What is needed to reach a cluster.

use super::error::Fault;
use super::form::Form;
use super::resolve::Resolver;
use super::settings::Side;
use crate::io::bootstrap::{Bootstrap, BootstrapError, HostPort};

/// One side of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The alias that goes into topic names: the name in `clusters`, unless `source.cluster.alias` or
    /// `target.cluster.alias` says otherwise. May be empty.
    pub alias: String,
    /// The name in `clusters`. Never empty.
    pub name: String,
    /// The brokers to try first, each once, at least one.
    pub bootstrap: Vec<HostPort>,
}

/// Reads one side. A fault is kept by the resolver; then there is no config.
pub(super) fn read(resolver: &mut Resolver<'_>, side: Side) -> Option<ClusterConfig> {
    let name = resolver.names().of(side).to_owned();
    let alias = resolver.string(side.alias_key()).map_or_else(|| name.clone(), |s| s.value);
    let Some(entry) = resolver.find_of_cluster(side, "bootstrap.servers") else {
        let key = resolver.cluster_key(side, "bootstrap.servers");
        let remedy = format!("write {}", resolver.form().setting(&key, "host:port,…"));
        let reason = match (resolver.form(), side) {
            (Form::Properties, _) => format!("missing, so cluster `{name}` cannot be found"),
            (Form::Connector, Side::Source) => "missing, so the source cannot be found".to_owned(),
            (Form::Connector, Side::Target) => "missing, so the target cannot be found".to_owned(),
        };
        resolver.fault(Fault::missing(key, reason).remedy(remedy));
        return None;
    };
    match Bootstrap::parse(&entry.value) {
        Ok(Bootstrap { servers, notes }) => {
            for note in notes {
                resolver.warn(entry, note.trim_start_matches("bootstrap.servers: "));
            }
            Some(ClusterConfig { alias, name, bootstrap: servers })
        }
        Err(error) => {
            let reason = match &error {
                BootstrapError::Empty => "names no broker".to_owned(),
                BootstrapError::BadEntries(bad) => {
                    bad.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
                }
            };
            resolver.fault(Fault::of(entry, reason).remedy("write `host:port`, several with commas between"));
            None
        }
    }
}
