//! Which keys have an effect: their values are looked at for a flow that runs.
//!
//! Of a key that is overruled by one closer to the flow, that belongs to a flow or cluster which is not used, or that
//! nobody reads, the value does not matter.

use std::collections::HashSet;

use super::keys::{self, Kind, Meaning, Role, Scope, Use};
use super::only_into::Targets;
use super::properties::Entry;
use super::resolve::Resolver;
use super::settings::Side;

/// The whole keys whose values were looked at.
#[derive(Debug)]
pub(super) struct Effective<'c> {
    clusters: &'c [String],
    targets: &'c Targets<'c>,
    keys: HashSet<String>,
}

impl<'c> Effective<'c> {
    /// Nothing but what is looked at before any flow is read.
    pub(super) fn new(clusters: &'c [String], targets: &'c Targets<'c>) -> Self {
        Self { clusters, targets, keys: HashSet::new() }
    }

    /// Adds what is looked at for a flow.
    pub(super) fn add(&mut self, resolver: &Resolver<'_>) {
        let connectors = resolver.connectors();
        self.add_all(Scope::Connector, connectors.iter());
        self.add_all(Scope::Worker, resolver.worker().iter());
        for (side, role) in Side::ALL.into_iter().flat_map(|side| Role::ALL.map(|role| (side, role))) {
            self.add_all(Scope::Client(role), connectors.of_client(side, role).iter());
        }
        let producer = connectors.of_data_producer(resolver.worker());
        self.add_all(Scope::Client(Role::Producer), producer.iter());
    }

    fn add_all<'s>(&mut self, scope: Scope, settings: impl Iterator<Item = (&'s str, &'s Entry)>) {
        let looked_at = settings.filter(|(name, _)| is_looked_at(scope, name));
        self.keys.extend(looked_at.map(|(_, entry)| entry.key.clone()));
    }

    /// Whether the value of a key matters.
    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.contains(key) || key == "memory.max" || self.decides_what_runs(key)
    }

    /// Whether one of these keys decides what is looked at.
    pub(super) fn decides<'k>(&self, mut keys: impl Iterator<Item = &'k str>) -> bool {
        keys.any(|key| self.decides_what_runs(key))
    }

    fn decides_what_runs(&self, key: &str) -> bool {
        let pair = key
            .strip_suffix(".emit.heartbeats.enabled")
            .or_else(|| key.strip_suffix(".enabled"))
            .unwrap_or("");
        let is_cluster = |name: &str| self.clusters.iter().any(|known| known == name);
        ["clusters", "enabled", "connector.class"].contains(&key)
            || pair.match_indices("->").any(|(at, _)| {
                let (source, target) = (&pair[..at], &pair[at + 2..]);
                is_cluster(source) && is_cluster(target) && self.targets.has(target)
            })
    }
}

fn is_looked_at(scope: Scope, name: &str) -> bool {
    if keys::is_client_base(name) || name.ends_with("cluster.forwarding.admin.class") {
        return true;
    }
    let Some(known) = keys::definition(scope, name) else { return false };
    let Meaning { usage, .. } = keys::meaning(scope, name);
    // MM2 does not start with a number that is none, whatever it is for.
    let is_judged_as_type = !matches!(known.kind, Kind::List | Kind::Class | Kind::String | Kind::Password);
    matches!(usage, Use::Honoured | Use::Refused) || is_judged_as_type
}

#[cfg(test)]
mod tests {
    use crate::config::{Inspection, Surroundings};

    const BASE: &str = "clusters=a,b,c\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n\
        config.providers=env\nconfig.providers.env.class=EnvVarConfigProvider\n";

    fn told(lines: &str) -> (Vec<String>, Vec<String>) {
        let inspection = Inspection::of_file(format!("{BASE}{lines}").as_bytes(), Surroundings::process());
        let faults = inspection.result().err();
        let faults = faults.iter().flat_map(|errors| errors.faults()).map(ToString::to_string).collect();
        (faults, inspection.warnings().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_cannot_be_resolved_where_it_has_no_effect_is_a_warning() {
        for line in [
            "nobody.reads.this=${env:TWINLOG_NONE}",
            "c.bootstrap.servers=${env:TWINLOG_NONE}",
            "a->c.topics=${TOPICS}",
            "c.ssl.key.password=${env:TWINLOG_NONE}",
            "group.id=${vault:x:y}",
            "groups=${env:TWINLOG_NONE}",
            "topics=${env:TWINLOG_NONE}\na->b.topics=t",
            "topics=${env:TWINLOG_NONE}\ntopics=t",
            "b.producer.compression.type=${CODEC}",
        ] {
            let (faults, warnings) = told(line);
            assert_eq!(faults, [""; 0], "{line}");
            assert!(!warnings.is_empty(), "{line}");
        }
        let (_, warnings) = told("x=${env:TWINLOG_NONE}");
        let sentence = "line 7: `x`: environment variable `TWINLOG_NONE` is not set (which changes nothing: this key has no effect): \
                        set it";
        assert!(warnings.contains(&sentence.to_owned()), "{warnings:?}");
    }

    #[test]
    fn what_cannot_be_resolved_where_it_has_an_effect_is_a_fault() {
        for line in [
            "topics=${env:TWINLOG_NONE}",
            "a.ssl.key.password=${env:TWINLOG_NONE}",
            "a->b.source.consumer.auto.offset.reset=${RESET}",
            "tasks.max=${env:TWINLOG_NONE}",
            "b.offset.storage.replication.factor=${env:TWINLOG_NONE}",
            "c->a.enabled=${env:TWINLOG_NONE}\nc.bootstrap.servers=c:1",
            "memory.max=${env:TWINLOG_NONE}",
            "a.consumer.client.id=${env:TWINLOG_NONE}",
            "b.forwarding.admin.class=${env:TWINLOG_NONE}",
        ] {
            assert_eq!(told(line).0.len(), 1, "{line}: {:?}", told(line));
        }
        // Which flows run is not known, so that any key may matter.
        let (faults, _) = told("clusters=${env:TWINLOG_NONE}\nx=${env:TWINLOG_NONE}");
        assert!(faults.iter().any(|fault| fault.starts_with("line 8: `x = ")), "{faults:?}");
    }
}
