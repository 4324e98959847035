//! Which clusters are named and which flows between them are enabled.
//!
//! MM2 starts a worker for each ordered pair of clusters as long as heartbeats are on; only those with `enabled`
//! copy anything. We start what is enabled.

use std::collections::BTreeSet;

use super::arrows;
use super::error::Fault;
use super::only_into::Targets;
use super::properties::{Entry, Properties};
use super::resolve::{has_empty_items, not_boolean, parse_boolean, split_list};
use super::settings::Side;
use super::warning::Warning;

/// Far above what one process can serve: a short file must not make it take all memory.
const CLUSTERS_MAX: usize = 1000;

/// Enabled flows, for the same reason; all pairs of 32 clusters.
const FLOWS_MAX: usize = 1000;

/// An enabled flow by the names in `clusters`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FlowNames {
    pub(super) source: String,
    pub(super) target: String,
}

impl FlowNames {
    /// The clusters of a connector: its aliases, and where one is empty, what the cluster will be named by.
    pub(super) fn of_connector(settings: &Properties) -> Self {
        let of = |side: Side, unwritten: &str, nameless: &str| {
            let alias = settings.find(side.alias_key()).map_or(unwritten, |entry| entry.value.trim());
            if alias.is_empty() { nameless.to_owned() } else { alias.to_owned() }
        };
        Self {
            source: of(Side::Source, "", "(source cluster's id)"),
            target: of(Side::Target, "target", "(target cluster's id)"),
        }
    }

    /// The whole name of a key at the level of this flow.
    pub(super) fn key(&self, key: &str) -> String {
        pair_key(&self.source, &self.target, key)
    }

    /// The name of the flow, such as `west->east`.
    pub(super) fn flow(&self) -> String {
        format!("{}->{}", self.source, self.target)
    }

    pub(super) fn of(&self, side: Side) -> &str {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }
}

pub(super) fn pair_key(source: &str, target: &str, key: &str) -> String {
    format!("{source}->{target}.{key}")
}

/// Every ordered pair of different clusters.
pub(super) fn pairs(clusters: &[String]) -> impl Iterator<Item = (&str, &str)> {
    clusters.iter().flat_map(move |source| {
        clusters.iter().filter(move |target| *target != source).map(move |t| (source.as_str(), t.as_str()))
    })
}

/// The switch that counts for a pair: its own, else the one of all pairs.
pub(super) fn enabling_entry<'p>(
    properties: &'p Properties,
    source: &str,
    target: &str,
) -> Option<&'p Entry> {
    properties.find(&pair_key(source, target, "enabled")).or_else(|| properties.find("enabled"))
}

/// All clusters, the enabled flows between them, and what is wrong with the switches.
#[derive(Debug, Default)]
pub(super) struct Enabled {
    pub(super) clusters: Vec<String>,
    pub(super) flows: Vec<FlowNames>,
    pub(super) faults: Vec<Fault>,
    /// Faults in switches of flows that are not run here.
    pub(super) of_left_out: Vec<Fault>,
    pub(super) warnings: Vec<Warning>,
}

/// Reads `clusters` and the switch of every pair.
pub(super) fn enabled(properties: &Properties, targets: &Targets<'_>) -> Enabled {
    if properties.entries().is_empty() {
        let fault =
            Fault::new("the file holds no settings").remedy("write at least `clusters = a, b` and a flow");
        return Enabled { faults: vec![fault], ..Enabled::default() };
    }
    let mut enabled = Enabled::default();
    let clusters = match clusters(properties, &mut enabled.warnings) {
        Ok(clusters) => clusters,
        Err(fault) => return Enabled { faults: vec![fault], ..enabled },
    };
    for (source, target) in pairs(&clusters) {
        let Some(entry) = enabling_entry(properties, source, target) else { continue };
        match parse_boolean(&entry.value) {
            Some(true) if enabled.flows.len() == FLOWS_MAX => {
                let reason = format!("more than {FLOWS_MAX} flows are enabled, too many for one process");
                enabled.faults.push(Fault::of(entry, reason).remedy("split the file"));
                break;
            }
            Some(true) => {
                enabled.flows.push(FlowNames { source: source.to_owned(), target: target.to_owned() });
            }
            Some(false) => {}
            None if targets.has(target) => enabled.faults.push(not_boolean(entry)),
            None => enabled.of_left_out.push(not_boolean(entry)),
        }
    }
    if enabled.flows.is_empty() && enabled.faults.is_empty() {
        enabled.faults.push(none_enabled(properties, &clusters));
    }
    enabled.clusters = clusters;
    enabled
}

fn clusters(properties: &Properties, warnings: &mut Vec<Warning>) -> Result<Vec<String>, Fault> {
    let remedy = "write two or more names, such as `clusters = west, east`";
    let Some(entry) = properties.find("clusters") else {
        return Err(Fault::missing("clusters", "missing, so there is nothing to copy between").remedy(remedy));
    };
    let mut clusters: Vec<String> = split_list(&entry.value).map(str::to_owned).collect();
    if has_empty_items(&entry.value) {
        warnings.push(Warning::of(entry, "an empty name is left out; MM2 4.3 does not start with one"));
    }
    if clusters.len() > CLUSTERS_MAX {
        let reason =
            format!("names {} clusters, more than the {CLUSTERS_MAX} of one process", clusters.len());
        return Err(Fault::of(entry, reason).remedy("split the file"));
    }
    // As in MM2 4.3.1.
    let mut seen = BTreeSet::new();
    clusters.retain(|name| {
        let is_first = seen.insert(name.clone());
        if !is_first {
            warnings.push(Warning::of(entry, format!("names `{name}` more than once: that counts once")));
        }
        is_first
    });
    if clusters.len() < 2 {
        return Err(Fault::of(entry, "a flow needs two clusters").remedy(remedy));
    }
    Ok(clusters)
}

/// Says that nothing would be copied, and points at a switch that was meant for it but names other clusters.
fn none_enabled(properties: &Properties, clusters: &[String]) -> Fault {
    let miswritten = properties.effective().find_map(|entry| {
        let meant = arrows::meant(entry, clusters)?;
        (meant.name == "enabled").then_some((entry, meant))
    });
    if let Some((entry, meant)) = miswritten {
        return Fault::of(entry, format!("{}, so no flow is enabled", meant.reason)).remedy(meant.remedy());
    }
    let meant = properties.effective().find(|entry| {
        entry.key.contains("->")
            && entry.key.ends_with(".enabled")
            && entry.key.matches('.').count() == 1
            && parse_boolean(&entry.value) == Some(true)
    });
    let is_one_cluster = |entry: &&Entry| {
        let pair = entry.key.trim_end_matches(".enabled").split_once("->");
        pair.is_some_and(|(source, target)| source == target && clusters.iter().any(|name| name == source))
    };
    if let Some(entry) = meant.filter(is_one_cluster) {
        return Fault::of(entry, "names one cluster twice, so no flow is enabled")
            .remedy(format!("name two of the clusters: {}", clusters.join(", ")));
    }
    if let Some(entry) = meant {
        return Fault::of(entry, "names a cluster that `clusters` does not list, so no flow is enabled")
            .remedy(format!("use the names in `clusters`: {}", clusters.join(", ")));
    }
    let key = pair_key(&clusters[0], &clusters[1], "enabled");
    Fault::missing(&key, "no flow is enabled, so nothing would be copied")
        .remedy(format!("write `{key} = true` for the direction that you want"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enabled_in(text: &str) -> Result<String, Vec<String>> {
        let found = enabled(&Properties::parse(text.as_bytes()).unwrap(), &Targets::default());
        if found.faults.is_empty() {
            return Ok(found.flows.iter().map(FlowNames::flow).collect::<Vec<_>>().join(" "));
        }
        Err(found.faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_enabled_flows_among_many_clusters_are_found() {
        assert_eq!(enabled_in("clusters=c1,c2,c3\nc3->c1.enabled=True"), Ok("c3->c1".into()));
        assert_eq!(enabled_in("clusters=a,b\na->b.enabled=true\nb->a.enabled=false"), Ok("a->b".into()));
        let both = enabled_in("clusters=a,b,c\na->b.enabled=true\nb->a.enabled=true\nc->a.enabled=true");
        assert_eq!(both, Ok("a->b b->a c->a".into()));
    }

    #[test]
    fn a_bare_enabled_means_every_pair() {
        assert_eq!(enabled_in("clusters=a,b\nenabled=true\nb->a.enabled=false"), Ok("a->b".into()));
        assert_eq!(
            enabled_in(
                "clusters=a,b
enabled=true"
            ),
            Ok("a->b b->a".into())
        );
    }

    #[test]
    fn of_six_clusters_only_the_pairs_that_are_switched_on_are_flows() {
        let text = "clusters=a, b, c, d, e, f\nemit.heartbeats.enabled=false\na->b.enabled=true\na->c.enabled=true\n\
                    a->d.enabled=true\na->e.enabled=false\na->f.enabled=false";
        assert_eq!(enabled_in(text), Ok("a->b a->c a->d".into()));
    }

    /// MM2 runs a worker for each of these pairs, which writes heartbeats and copies nothing.
    #[test]
    fn pairs_that_only_heartbeats_would_run_for_are_no_flows() {
        for heartbeats in [
            "",
            "emit.heartbeats.enabled=false\n",
            "a->b.emit.heartbeats.enabled=false\na->c.emit.heartbeats.enabled=false\n",
            "emit.heartbeats.enabled=false\nb->c.emit.heartbeats.enabled=true\n",
        ] {
            let faults = enabled_in(&format!("clusters=a, b, c\n{heartbeats}")).unwrap_err();
            assert_eq!(faults.len(), 1, "{heartbeats}: {faults:?}");
            assert!(faults[0].starts_with("`a->b.enabled`: no flow is enabled"), "{heartbeats}: {faults:?}");
        }
    }

    #[test]
    fn a_flow_is_its_two_clusters_not_its_text() {
        let names =
            |source: &str, target: &str| FlowNames { source: source.to_owned(), target: target.to_owned() };
        assert_eq!(names("a", "b"), names("a", "b"));
        assert_ne!(names("a", "b"), names("b", "a"));
        let (one, other) = (names("a->b", "c"), names("a", "b->c"));
        assert_eq!(one.flow(), other.flow());
        assert_ne!(one, other);
    }

    #[test]
    fn a_blank_at_the_end_does_not_switch_a_flow_off() {
        assert_eq!(enabled_in("clusters=a,b\na->b.enabled=true "), Ok("a->b".into()));
    }

    #[test]
    fn a_short_file_cannot_ask_for_everything() {
        let clusters =
            |count: usize| (0..count).map(|number| format!("c{number}")).collect::<Vec<_>>().join(",");
        let found = enabled_in(&format!("clusters={}\nenabled=true", clusters(32)));
        assert_eq!(found.unwrap().split(' ').count(), 32 * 31);
        for (count, sentence) in [
            (33, "line 2: `enabled = true`: more than 1000 flows are enabled"),
            (1001, "names 1001 clusters, more than the 1000 of one process"),
        ] {
            let faults = enabled_in(&format!("clusters={}\nenabled=true", clusters(count))).unwrap_err();
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].contains(sentence), "{faults:?}");
        }
    }

    #[test]
    fn a_cluster_named_twice_counts_once() {
        let found =
            enabled(&Properties::parse(b"clusters=a, b, a, , a\nenabled=true").unwrap(), &Targets::default());
        assert_eq!(found.clusters, ["a", "b"]);
        assert_eq!(found.flows.iter().map(FlowNames::flow).collect::<Vec<_>>(), ["a->b", "b->a"]);
        let warnings: Vec<String> = found.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "line 1: `clusters`: an empty name is left out; MM2 4.3 does not start with one",
                "line 1: `clusters`: names `a` more than once: that counts once",
                "line 1: `clusters`: names `a` more than once: that counts once",
            ]
        );
    }

    #[test]
    fn each_way_to_have_no_flow_has_its_sentence() {
        for (text, sentence) in [
            ("", "the file holds no settings"),
            ("# only notes\n", "the file holds no settings"),
            ("a.bootstrap.servers=x:1", "`clusters`: missing"),
            ("clusters=", "a flow needs two clusters"),
            ("clusters=a", "a flow needs two clusters"),
            ("clusters=a,a", "a flow needs two clusters"),
            ("clusters=a,b\na -> b.enabled = true", "line 2: `a = -> b.enabled = true`: the key ends here"),
            ("clusters=a,b\na=>b.enabled = true", "so no flow is enabled; write `a->b.enabled = …`"),
            ("clusters=a,b\na-&gt;b.enabled = true", "clusters are joined by `->`, so no flow is enabled"),
            ("clusters=a,b\na->a.enabled = true", "names one cluster twice, so no flow is enabled"),
            ("clusters=a,b", "`a->b.enabled`: no flow is enabled"),
            ("clusters=a,b\na->b.enabled=false", "`a->b.enabled`: no flow is enabled"),
            (
                "clusters=a,b\na->c.enabled=true",
                "line 2: `a->c.enabled = true`: names a cluster that `clusters`",
            ),
            ("clusters=a,b\na->b.enabled=yes", "neither `true` nor `false`"),
        ] {
            let faults = enabled_in(text).unwrap_err();
            assert_eq!(faults.len(), 1, "{text:?}: {faults:?}");
            assert!(faults[0].contains(sentence), "{text:?}: {faults:?}");
        }
    }
}
