//! Which clusters are named and which flows between them are enabled.
//!
//! MM2 starts a worker for each ordered pair of clusters as long as heartbeats are on; only those with `enabled`
//! copy anything. We start what is enabled.

use super::arrows;
use super::clusters::Clusters;
use super::error::Fault;
use super::only_into::Targets;
use super::properties::{Entry, Properties};
use super::resolve::{not_boolean, parse_boolean};
use super::settings::Side;
use super::switches::{common, enabling_entry, may_mean_on};
use super::warning::Warning;

/// A short file must not make a process take all memory. All pairs of 32 clusters.
const FLOWS_MAX: usize = 1000;

/// Directions that are named of many.
const PAIRS_TOLD_MAX: usize = 6;

const NOT_BY_THIS: &str =
    "switches on only flows that have heartbeats, as with MM2, and these are off; so no flow is enabled";
const SOME_NOT_BY_THIS: &str = "switches on only flows that have heartbeats, as with MM2, so not all";

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
    let Clusters { names: clusters, fault, warnings } = Clusters::read(properties);
    let faults = Vec::from_iter(fault);
    let mut enabled = Enabled { faults, warnings, ..Enabled::default() };
    // Pairs for which the switch of all pairs does not count, and those for which it does.
    let (mut unswitched, mut by_common) = (Vec::new(), Vec::new());
    for (source, target) in pairs(&clusters) {
        let Some(entry) = enabling_entry(properties, source, target) else {
            unswitched.push(pair_key(source, target, "enabled"));
            continue;
        };
        let value = parse_boolean(&entry.value);
        if value.is_none() {
            let is_run = targets.has(target);
            let faults = if is_run { &mut enabled.faults } else { &mut enabled.of_left_out };
            faults.push(not_boolean(entry));
        }
        if value.unwrap_or_else(|| may_mean_on(&entry.value)) {
            if enabled.flows.len() == FLOWS_MAX {
                let reason = format!("more than {FLOWS_MAX} flows are enabled, too many for one process");
                enabled.faults.push(Fault::of(entry, reason).remedy("split the file"));
                break;
            }
            let names = FlowNames { source: source.to_owned(), target: target.to_owned() };
            if entry.key == "enabled" {
                by_common.push(names.flow());
            }
            enabled.flows.push(names);
        }
    }
    let common = common(properties).filter(|entry| parse_boolean(&entry.value) == Some(true));
    match (common, unswitched.first()) {
        (Some(entry), Some(first)) if enabled.flows.is_empty() && enabled.faults.is_empty() => {
            enabled.faults.push(
                Fault::of(entry, NOT_BY_THIS)
                    .remedy(format!("write `{first} = true` for the direction that you want")),
            );
        }
        (Some(entry), Some(_)) => {
            let remedy = format!("write for the directions that you want: {}", some_of(&unswitched));
            enabled.warnings.push(Warning::of(entry, SOME_NOT_BY_THIS).remedy(remedy));
        }
        (Some(entry), None) if by_common.len() > 1 => {
            let text =
                format!("without clusters before it, it switches on every pair: {}", some_of(&by_common));
            enabled.warnings.push(Warning::of(entry, text));
        }
        _ if enabled.flows.is_empty() && enabled.faults.is_empty() => {
            enabled.faults.push(none_enabled(properties, &clusters));
            // What else is wrong is told at once.
            enabled.flows.extend(spoken_of(properties, &clusters));
        }
        _ => {}
    }
    enabled.clusters = clusters;
    enabled
}

fn some_of(names: &[String]) -> String {
    let told: Vec<String> = names.iter().take(PAIRS_TOLD_MAX).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > PAIRS_TOLD_MAX { ", …" } else { "" };
    format!("{}{more}", told.join(", "))
}

/// The first flow that keys speak of and that nobody has switched off.
fn spoken_of(properties: &Properties, clusters: &[String]) -> Option<FlowNames> {
    properties.effective().find_map(|entry| {
        let meant = arrows::meant(entry, clusters).map(|meant| meant.key);
        let key = meant.as_deref().unwrap_or(&entry.key);
        let (source, rest) = key.split_once("->")?;
        let source = clusters.iter().find(|name| *name == source)?;
        let is_target = |name: &&String| {
            *name != source && rest.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'))
        };
        let target = clusters.iter().find(is_target)?;
        let is_off = enabling_entry(properties, source, target)
            .is_some_and(|entry| parse_boolean(&entry.value) == Some(false));
        (!is_off).then(|| FlowNames { source: source.clone(), target: target.clone() })
    })
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

    /// As MM2 4.3.1's `clusterPairs` has it: without heartbeats it makes no worker that would read the bare switch.
    #[test]
    fn a_bare_enabled_counts_only_where_heartbeats_are_on() {
        for (heartbeats, own, flows) in [
            ("", "", "a->b b->a"),
            ("", "true", "a->b b->a"),
            ("", "false", "b->a"),
            ("TRUE", "", "a->b b->a"),
            ("true", "false", "b->a"),
            ("false", "true", "a->b"),
            ("\\ true", "true", "a->b"),
        ] {
            let line = |key: &str, value: &str| {
                if value.is_empty() { String::new() } else { format!("{key}={value}\n") }
            };
            let text = format!(
                "clusters=a,b\nenabled=true\n{}{}",
                line("emit.heartbeats.enabled", heartbeats),
                line("a->b.emit.heartbeats.enabled", own)
            );
            assert_eq!(enabled_in(&text), Ok(flows.into()), "{text}");
        }
        let faults = enabled_in("clusters=a,b\nenabled=true\nemit.heartbeats.enabled=false").unwrap_err();
        assert_eq!(
            faults,
            [
                "line 2: `enabled = true`: switches on only flows that have heartbeats, as with MM2, and these are off; so no \
              flow is enabled; write `a->b.enabled = true` for the direction that you want"
            ]
        );
        let text = "clusters=a,b\nenabled=true\nemit.heartbeats.enabled=false\na->b.enabled=true";
        assert_eq!(enabled_in(text), Ok("a->b".into()));
        let found = enabled(&Properties::parse(text.as_bytes()).unwrap(), &Targets::default());
        assert_eq!(found.warnings.len(), 1);
        assert!(
            found.warnings[0].to_string().ends_with("write for the directions that you want: `b->a.enabled`")
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
                "line 2: `enabled`: without clusters before it, it switches on every pair: `a->b`, `b->a`",
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
