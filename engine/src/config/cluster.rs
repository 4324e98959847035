//! What is needed to reach a cluster.

use super::error::{Fault, Origin};
use super::resolve::{Resolver, Side, split_list};

/// One side of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// The alias that goes into topic names: the name in `clusters`, unless `source.cluster.alias` or
    /// `target.cluster.alias` says otherwise. May be empty.
    pub alias: String,
    /// The name in `clusters`. Never empty.
    pub name: String,
    /// `host:port` entries as written, at least one.
    pub bootstrap: Vec<String>,
    /// Where they were written.
    pub bootstrap_origin: Origin,
}

/// Reads one side. A fault is kept by the resolver; then there is no config.
pub(super) fn read(resolver: &mut Resolver<'_>, side: Side) -> Option<ClusterConfig> {
    let name = resolver.names().of(side).to_owned();
    let alias = resolver.string(side.alias_key()).map_or_else(|| name.clone(), |s| s.value);
    let Some(entry) = resolver.find_of_cluster(side, "bootstrap.servers") else {
        resolver.fault(
            Fault::missing(
                format!("{name}.bootstrap.servers"),
                format!("missing, so cluster `{name}` cannot be found"),
            )
            .remedy(format!("write `{name}.bootstrap.servers = host:port,…`")),
        );
        return None;
    };
    let bootstrap: Vec<String> = split_list(&entry.value).map(str::to_owned).collect();
    let bootstrap_origin = Origin { key: entry.key.clone(), line: entry.line };
    if bootstrap.is_empty() {
        resolver.fault(Fault::of(entry, "names no broker").remedy("write at least one `host:port`"));
        return None;
    }
    if let Some(fault) = super::resolve::placeholder_fault(entry) {
        resolver.fault(fault);
        return None;
    }
    Some(ClusterConfig { alias, name, bootstrap, bootstrap_origin })
}
