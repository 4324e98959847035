//! Two names for one cluster, as far as the addresses in the file show it.
//!
//! Equal addresses are no proof: behind forwarded ports different clusters may have one address, and one cluster many. So
//! this warns, and cluster ids decide when both are reached (`machine::cluster_names`).

use std::collections::{BTreeMap, BTreeSet};

use super::cluster::ClusterConfig;
use super::flow::FlowConfig;
use super::form::Form;
use super::properties::{Entry, Properties};
use super::settings::Side;
use super::warning::Warning;

/// A cluster's addresses, in small letters, and where they are written.
#[derive(Clone)]
struct Named<'a> {
    name: &'a str,
    addresses: BTreeSet<String>,
    entry: &'a Entry,
    form: Form,
}

impl Named<'_> {
    fn place(&self) -> String {
        self.form.place(&self.entry.key, self.entry.line)
    }
}

/// A warning for each flow whose two sides have a broker in common, and for each pair of clusters of different flows that
/// have. Of flows with `loops.allow` only the first: for them second names are told when the clusters are reached.
pub(super) fn check<'f>(
    properties: &Properties,
    flows: impl Iterator<Item = &'f FlowConfig>,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    // Pairs of names that were told, the smaller one first.
    let mut told = BTreeSet::new();
    let mut is_new = |a: &Named<'_>, b: &Named<'_>| {
        let pair = if a.name < b.name { (a.name, b.name) } else { (b.name, a.name) };
        told.insert((pair.0.to_owned(), pair.1.to_owned()))
    };
    let sides = |flow| Some((flow, named_sides(properties, flow)?));
    let named: Vec<_> = flows.filter_map(sides).collect();
    for (flow, [source, target]) in &named {
        let shared = source.addresses.intersection(&target.addresses).next();
        if let Some(shared) = shared.filter(|_| is_new(source, target)) {
            warnings.push(of_one_flow(&flow.name, source, target, shared));
        }
    }
    let mut first_by_address: BTreeMap<&str, &Named<'_>> = BTreeMap::new();
    let judged = named.iter().filter(|(flow, _)| !flow.loops_allowed);
    for cluster in judged.flat_map(|(_, sides)| sides) {
        for address in &cluster.addresses {
            let first = *first_by_address.entry(address).or_insert(cluster);
            if first.name != cluster.name && is_new(first, cluster) {
                warnings.push(of_two_flows(first, cluster, address));
            }
        }
    }
    warnings
}

fn named_sides<'a>(properties: &'a Properties, flow: &'a FlowConfig) -> Option<[Named<'a>; 2]> {
    let side = |side: Side, cluster: &'a ClusterConfig| {
        let key = format!("{}cluster.bootstrap.servers", side.prefix());
        let of_flow = properties.find(&format!("{}.{key}", flow.name));
        let of_cluster = properties.find(&format!("{}.bootstrap.servers", cluster.name));
        // The third is how a connector's own configuration has it.
        let entry = of_flow.or(of_cluster).or_else(|| properties.find(&key));
        let addresses = cluster.bootstrap.iter().map(|address| address.to_string().to_ascii_lowercase());
        let entry = entry.or_else(|| properties.find("bootstrap.servers"))?;
        Some(Named { name: &cluster.name, addresses: addresses.collect(), entry, form: properties.form() })
    };
    Some([side(Side::Source, &flow.source)?, side(Side::Target, &flow.target)?])
}

fn of_one_flow(flow: &str, source: &Named<'_>, target: &Named<'_>, shared: &str) -> Warning {
    let [first, second] = in_order(source, target);
    let what = if source.addresses == target.addresses {
        "names the same brokers as".to_owned()
    } else {
        format!("shares `{shared}` with")
    };
    let so = format!(
        "`{flow}` would copy a cluster into itself, and is refused once both sides tell one cluster id; mend the address \
         that is wrong"
    );
    if std::ptr::eq(first.entry, second.entry) {
        let text = format!("is the address of both `{}` and `{}`: {so}", source.name, target.name);
        return Warning::of(first.entry, text);
    }
    Warning::of(second.entry, format!("{what} {}: {so}", first.place()))
}

fn of_two_flows(a: &Named<'_>, b: &Named<'_>, shared: &str) -> Warning {
    let [first, second] = in_order(a, b);
    let so = "a cluster with two names is refused once both tell one cluster id; name it once, or mend the address";
    if std::ptr::eq(first.entry, second.entry) {
        return Warning::of(
            first.entry,
            format!("is the address of both `{}` and `{}`: {so}", a.name, b.name),
        );
    }
    Warning::of(second.entry, format!("shares `{shared}` with {}: {so}", first.place()))
}

fn in_order<'n, 'a>(a: &'n Named<'a>, b: &'n Named<'a>) -> [&'n Named<'a>; 2] {
    if a.entry.line <= b.entry.line { [a, b] } else { [b, a] }
}

#[cfg(test)]
mod tests {
    use crate::config::Inspection;
    use crate::config::providers::Surroundings;

    fn told(text: &str) -> Vec<String> {
        let inspection = Inspection::of_file(text.as_bytes(), Surroundings::process());
        assert_eq!(inspection.result().map_err(|errors| errors.to_string()), Ok(()), "{text}");
        inspection.warnings().iter().map(ToString::to_string).collect()
    }

    fn file(a: &str, b: &str, more: &str) -> Vec<String> {
        told(&format!(
            "clusters=a,b,c\na.bootstrap.servers={a}\nb.bootstrap.servers={b}\nc.bootstrap.servers=c:1\n\
             a->b.enabled=true\n{more}"
        ))
    }

    #[test]
    fn a_flow_between_two_names_of_one_address_is_told() {
        let same = file("H1:1, h2:1", "h2:1,h1:1", "");
        assert_eq!(same.len(), 1, "{same:?}");
        assert!(
            same[0].starts_with(
                "line 3: `b.bootstrap.servers`: names the same brokers as `a.bootstrap.servers` (line 2): `a->b` would copy \
                 a cluster into itself"
            ),
            "{same:?}"
        );
        let overlap = file("h1:1, h2:1", "h3:1,h2:1", "b->a.enabled=true\n");
        assert_eq!(overlap.len(), 1, "{overlap:?}");
        assert!(overlap[0].contains("shares `h2:1` with `a.bootstrap.servers` (line 2)"), "{overlap:?}");
    }

    #[test]
    fn one_line_for_both_sides_is_told_once() {
        let top = told("clusters=a,b\nbootstrap.servers=h:1\na->b.enabled=true\n");
        assert_eq!(top.len(), 1, "{top:?}");
        assert!(
            top[0].starts_with("line 2: `bootstrap.servers`: is the address of both `a` and `b`: `a->b`")
        );
    }

    #[test]
    fn clusters_of_different_flows_are_compared_if_any_flow_has_them() {
        let text = "c.bootstrap.servers=a:2,A:1\n";
        let shared = file("a:1", "b:1", &format!("{text}c->b.enabled=true\n"));
        let about: Vec<_> = shared.iter().filter(|warning| warning.contains("shares")).collect();
        assert_eq!(about.len(), 1, "{shared:?}");
        assert!(
            about[0].starts_with(
                "line 6: `c.bootstrap.servers`: shares `a:1` with `a.bootstrap.servers` (line 2)"
            )
        );
        assert!(!file("a:1", "b:1", text).iter().any(|warning| warning.contains("shares")));
        let allowed = file("a:1", "b:1", &format!("{text}c->b.enabled=true\nloops.allow=true\n"));
        assert!(!allowed.iter().any(|warning| warning.contains("shares")), "{allowed:?}");
    }

    #[test]
    fn other_addresses_and_those_of_the_flow_itself_pass() {
        assert_eq!(file("h:1", "h:2", ""), [""; 0]);
        assert_eq!(file("h:1", "h:1", "a->b.target.cluster.bootstrap.servers=x:1\n"), [""; 0]);
    }

    #[test]
    fn a_connector_s_own_addresses_are_compared() {
        let body = "{\"connector.class\": \"MirrorSourceConnector\", \"source.cluster.alias\": \"a\",\n\
                    \"source.cluster.bootstrap.servers\": \"h:1\",\n\"target.cluster.bootstrap.servers\": \"h:1\"}";
        let warnings = told(body);
        let expected = "line 3: `target.cluster.bootstrap.servers`: names the same brokers as \
                        `source.cluster.bootstrap.servers`: `a->target` would copy";
        assert!(warnings.len() == 1 && warnings[0].starts_with(expected), "{warnings:?}");
    }
}
