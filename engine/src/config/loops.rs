//! Flows that would copy records round and round, as far as the file alone shows it.
//!
//! Under prefixed names MM2's rule by names ends every round (`ReplicationPolicy::is_cycle`). Where topics keep their
//! names nothing does, so that two ways between the same clusters, and rings of more, are refused. `loops.allow` lets
//! rings of three and more pass: somebody may see to it that their topics differ. Two names for one cluster show only
//! when both are reached (`machine::cluster_names`).

use super::error::Fault;
use super::flow::{self, FlowConfig};
use super::flows::FlowNames;
use super::properties::{Entry, Properties};
use super::resolve::{Resolver, parse_boolean};
use super::switches::enabling_entry;
use super::warning::Warning;

/// What of a flow makes rings. It is known even of flows that have faults.
#[derive(Debug)]
pub(super) struct Link {
    names: FlowNames,
    keeps_names: bool,
    is_allowed: bool,
}

impl Link {
    pub(super) fn of(resolver: &Resolver<'_>, flow: Option<&FlowConfig>) -> Self {
        let keeps_names = flow.map(|flow| flow.selection.keeps_names());
        let is_allowed = resolver.find("loops.allow").and_then(|entry| parse_boolean(&entry.value));
        Self {
            names: resolver.names().clone(),
            keeps_names: keeps_names.unwrap_or_else(|| flow::is_identity(resolver)),
            is_allowed: is_allowed == Some(true),
        }
    }
}

/// A fault for each shortest ring under equal names that some of `links` are in, with each other or with `others`, which are
/// run elsewhere; a warning instead where all of its flows allow loops.
pub(super) fn check(properties: &Properties, links: &[Link], others: &[Link]) -> (Vec<Fault>, Vec<Warning>) {
    let all: Vec<&Link> = links.iter().chain(others).filter(|link| link.keeps_names).collect();
    let mut told: Vec<&FlowNames> = Vec::new();
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    for link in links.iter().filter(|link| link.keeps_names) {
        if told.contains(&&link.names) {
            continue;
        }
        if let Some(ring) = ring(link, &all) {
            told.extend(ring.iter().map(|link| &link.names));
            let Some(entry) = last_entry(properties, &ring) else { continue };
            if ring.len() > 2 && ring.iter().all(|link| link.is_allowed) {
                warnings.push(warning(entry, &ring));
            } else {
                faults.push(refusal(entry, &ring));
            }
        }
    }
    (faults, warnings)
}

/// The shortest way from the flow's target back to its source, the flow first.
fn ring<'f>(first: &'f Link, links: &[&'f Link]) -> Option<Vec<&'f Link>> {
    // Each link that the search reached, with the place of the one before it.
    let mut reached = vec![(first, 0)];
    let mut at = 0;
    while let Some(&(link, _)) = reached.get(at) {
        if link.names.target == first.names.source {
            return Some(way_to(at, &reached));
        }
        for next in links.iter().filter(|next| next.names.source == link.names.target) {
            if !reached.iter().any(|(known, _)| known.names.target == next.names.target) {
                reached.push((next, at));
            }
        }
        at += 1;
    }
    None
}

fn way_to<'f>(mut at: usize, reached: &[(&'f Link, usize)]) -> Vec<&'f Link> {
    let mut way = vec![reached[at].0];
    while at > 0 {
        at = reached[at].1;
        way.push(reached[at].0);
    }
    way.reverse();
    way
}

/// Where the last flow of the ring is enabled.
fn last_entry<'p>(properties: &'p Properties, ring: &[&Link]) -> Option<&'p Entry> {
    let entries =
        ring.iter().filter_map(|link| enabling_entry(properties, &link.names.source, &link.names.target));
    entries.max_by_key(|entry| entry.line)
}

fn names(ring: &[&Link]) -> String {
    let names: Vec<String> = ring.iter().map(|link| format!("`{}`", link.names.flow())).collect();
    names.join(" and ")
}

fn refusal(entry: &Entry, ring: &[&Link]) -> Fault {
    let reason = format!(
        "{} keep the names of topics, so a topic that all of them mirror would be copied round and round without end \
         (their lists of topics are not compared)",
        names(ring)
    );
    let insist = if ring.len() > 2 { "; `loops.allow = true` insists" } else { "" };
    let remedy = format!(
        "disable one of them, or let topics be prefixed (DefaultReplicationPolicy with different aliases){insist}"
    );
    Fault::of(entry, reason).remedy(remedy)
}

fn warning(entry: &Entry, ring: &[&Link]) -> Warning {
    let text = format!(
        "{} keep the names of topics: a topic that all of them mirror goes round and round without end; `loops.allow` \
         lets them",
        names(ring)
    );
    Warning::of(entry, text)
}

#[cfg(test)]
mod tests {
    use crate::config::{ConfigErrors, MirrorConfig};

    const IDENTITY: &str = "replication.policy.class=IdentityReplicationPolicy\n";

    fn read(clusters: &[&str], flows: &[&str], more: &str) -> Result<MirrorConfig, ConfigErrors> {
        let mut text = format!("{more}clusters={}\n", clusters.join(","));
        clusters.iter().for_each(|name| text.push_str(&format!("{name}.bootstrap.servers={name}:1\n")));
        flows.iter().for_each(|flow| text.push_str(&format!("{flow}.enabled=true\n")));
        MirrorConfig::from_properties(text.as_bytes())
    }

    fn faults(clusters: &[&str], flows: &[&str], more: &str) -> Vec<String> {
        match read(clusters, flows, more) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.faults().iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn two_ways_under_equal_names_are_refused() {
        let found = faults(&["a", "b"], &["a->b", "b->a"], IDENTITY);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("line 6: `b->a.enabled = true`: `a->b` and `b->a` keep the names"));
        let blanked = "replication.policy.separator=\nsource.cluster.alias=\ntarget.cluster.alias=x\n";
        assert_eq!(faults(&["a", "b"], &["a->b", "b->a"], blanked).len(), 1);
    }

    #[test]
    fn a_ring_is_told_beside_what_else_is_wrong_with_its_flows() {
        for other in ["a->b.topics=(\n", "a->b.topics=${TOPICS}\n", "a->b.replication.factor=x\n"] {
            let found = faults(&["a", "b"], &["a->b", "b->a"], &format!("{IDENTITY}{other}"));
            assert_eq!(found.len(), 2, "{found:?}");
            assert!(found.iter().any(|fault| fault.contains("keep the names of topics")), "{found:?}");
        }
        let odd = format!("{IDENTITY}b->a.enabled=yes\n");
        let found = faults(&["a", "b"], &["a->b"], &odd);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn rings_are_refused_and_named_once_each() {
        let clusters = ["a", "b", "c", "d"];
        let found = faults(&clusters, &["a->b", "b->c", "c->a", "c->d"], IDENTITY);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`a->b` and `b->c` and `c->a` keep"), "{found:?}");
        assert_eq!(faults(&clusters, &["a->b", "b->a", "c->d", "d->c"], IDENTITY).len(), 2);
    }

    #[test]
    fn who_insists_gets_rings_of_three_with_one_warning_but_never_two_ways() {
        let (clusters, ring) = (["a", "b", "c"], ["a->b", "b->c", "c->a"]);
        let allowed = format!("{IDENTITY}loops.allow=true\n");
        let config = read(&clusters, &ring, &allowed).unwrap();
        let warnings: Vec<String> = config.warnings().iter().map(ToString::to_string).collect();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].starts_with("line 9: `c->a.enabled`: `a->b` and `b->c` and `c->a` keep the names")
        );
        let in_part = format!("{IDENTITY}a->b.loops.allow=true\nb->c.loops.allow=true\n");
        let found = faults(&clusters, &ring, &in_part);
        assert!(found.len() == 1 && found[0].ends_with("; `loops.allow = true` insists"), "{found:?}");
        let two = faults(&["a", "b"], &["a->b", "b->a"], &allowed);
        assert!(two.len() == 1 && two[0].ends_with("with different aliases)"), "{two:?}");
    }

    #[test]
    fn chains_trees_and_prefixed_names_pass() {
        let clusters = ["a", "b", "c"];
        for flows in [&["a->b", "b->c"][..], &["a->c", "b->c"], &["a->b", "a->c"], &["a->b", "b->c", "a->c"]]
        {
            assert_eq!(faults(&clusters, flows, IDENTITY), [""; 0], "{flows:?}");
        }
        assert_eq!(faults(&["a", "b"], &["a->b", "b->a"], ""), [""; 0]);
        let one_prefixed = "b->a.replication.policy.class=IdentityReplicationPolicy\n";
        assert_eq!(faults(&["a", "b"], &["a->b", "b->a"], one_prefixed), [""; 0]);
    }
}
