//! Which clusters are named and which flow between them is enabled.
//!
//! MM2 starts a worker for each ordered pair of clusters as long as heartbeats are on; only those with `enabled`
//! copy anything. We start what is enabled.

use super::error::Fault;
use super::properties::{Entry, Properties};
use super::resolve::{not_boolean, parse_boolean, split_list};

/// The enabled flow by the names in `clusters`, and all those names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FlowNames {
    pub(super) source: String,
    pub(super) target: String,
    pub(super) clusters: Vec<String>,
}

impl FlowNames {
    /// The whole name of a key at the level of this flow.
    pub(super) fn key(&self, key: &str) -> String {
        pair_key(&self.source, &self.target, key)
    }

    /// The name of the flow, such as `west->east`.
    pub(super) fn flow(&self) -> String {
        format!("{}->{}", self.source, self.target)
    }

    pub(super) fn of(&self, side: super::resolve::Side) -> &str {
        match side {
            super::resolve::Side::Source => &self.source,
            super::resolve::Side::Target => &self.target,
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

/// The one enabled flow, or why there is none.
pub(super) fn enabled(properties: &Properties) -> Result<FlowNames, Vec<Fault>> {
    if properties.entries().is_empty() {
        return Err(vec![
            Fault::new("the file holds no settings").remedy("write at least `clusters = a, b` and a flow"),
        ]);
    }
    let clusters = clusters(properties).map_err(|fault| vec![fault])?;
    let mut faults = Vec::new();
    let mut found: Vec<(&str, &str, &Entry)> = Vec::new();
    for (source, target) in pairs(&clusters) {
        let entry =
            properties.find(&pair_key(source, target, "enabled")).or_else(|| properties.find("enabled"));
        let Some(entry) = entry else { continue };
        match parse_boolean(&entry.value) {
            Some(true) => found.push((source, target, entry)),
            Some(false) => {}
            None => faults.push(not_boolean(entry)),
        }
    }
    match found.as_slice() {
        [] if faults.is_empty() => faults.push(none_enabled(properties, &clusters)),
        [(source, target, _)] if faults.is_empty() => {
            let (source, target) = ((*source).to_owned(), (*target).to_owned());
            return Ok(FlowNames { source, target, clusters });
        }
        [first, .., last] => {
            let names = found.iter().map(|(s, t, _)| format!("`{s}->{t}`")).collect::<Vec<_>>().join(", ");
            let entry = if first.2.line > last.2.line { first.2 } else { last.2 };
            let reason = format!("{} flows are enabled ({names}) and this version runs one", found.len());
            faults.push(Fault::of(entry, reason).remedy("enable one flow in each file"));
        }
        _ => {}
    }
    Err(faults)
}

fn clusters(properties: &Properties) -> Result<Vec<String>, Fault> {
    let remedy = "write two or more names, such as `clusters = west, east`";
    let Some(entry) = properties.find("clusters") else {
        return Err(Fault::missing("clusters", "missing, so there is nothing to copy between").remedy(remedy));
    };
    let clusters: Vec<String> = split_list(&entry.value).map(str::to_owned).collect();
    if let Some(twice) = clusters.iter().enumerate().find(|(i, name)| clusters[..*i].contains(name)) {
        return Err(Fault::of(entry, format!("names `{}` twice", twice.1)).remedy("name each cluster once"));
    }
    if clusters.len() < 2 {
        return Err(Fault::of(entry, "a flow needs two clusters").remedy(remedy));
    }
    Ok(clusters)
}

/// Says that nothing would be copied, and points at a switch that was meant for it but names other clusters.
fn none_enabled(properties: &Properties, clusters: &[String]) -> Fault {
    let meant = properties.effective().find(|entry| {
        entry.key.contains("->")
            && entry.key.ends_with(".enabled")
            && entry.key.matches('.').count() == 1
            && parse_boolean(&entry.value) == Some(true)
    });
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
        enabled(&Properties::parse(text.as_bytes()).unwrap())
            .map(|names| names.flow())
            .map_err(|faults| faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn one_enabled_flow_among_many_clusters_is_found() {
        assert_eq!(enabled_in("clusters=c1,c2,c3\nc3->c1.enabled=True"), Ok("c3->c1".into()));
        assert_eq!(enabled_in("clusters=a,b\na->b.enabled=true\nb->a.enabled=false"), Ok("a->b".into()));
    }

    #[test]
    fn a_bare_enabled_means_every_pair() {
        assert_eq!(enabled_in("clusters=a,b\nenabled=true\nb->a.enabled=false"), Ok("a->b".into()));
        let faults = enabled_in("clusters=a,b\nenabled=true").unwrap_err();
        assert_eq!(faults.len(), 1);
        assert!(
            faults[0].starts_with("line 2: `enabled = true`: 2 flows are enabled (`a->b`, `b->a`)"),
            "{faults:?}"
        );
    }

    #[test]
    fn a_blank_at_the_end_does_not_switch_a_flow_off() {
        assert_eq!(enabled_in("clusters=a,b\na->b.enabled=true "), Ok("a->b".into()));
    }

    #[test]
    fn each_way_to_have_no_flow_has_its_sentence() {
        for (text, sentence) in [
            ("", "the file holds no settings"),
            ("# only notes\n", "the file holds no settings"),
            ("a.bootstrap.servers=x:1", "`clusters`: missing"),
            ("clusters=", "a flow needs two clusters"),
            ("clusters=a", "a flow needs two clusters"),
            ("clusters=a,b,a", "names `a` twice"),
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
