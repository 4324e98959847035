//! Fills the names that a file has into what is said of a key that is read elsewhere: advice is a key that can be written.
//!
//! In such sentences `A.`, `B.` and `C.` stand for a source, a target and any cluster, `A->B.` for a flow, and `KEY` for
//! the key without what it stands under.

use super::flows::FlowNames;
use super::keys::{Level, Scope, definition};
use super::settings::Side;

/// In a properties file, for `name` at its `level`, under the cluster or flow `owner`. At top level any flow may be meant.
pub(super) fn in_a_file(
    sentence: &str,
    (level, owner, name): (Level, &str, &str),
    flows: &[FlowNames],
) -> String {
    let with = |side: Side| flows.iter().find(|flow| flow.of(side) == owner);
    let (as_source, as_target) = (with(Side::Source), with(Side::Target));
    let [source, target, flow] = match level {
        Level::Top => ["A", "B", "A->B"].map(str::to_owned),
        Level::Cluster => [
            as_source.or(as_target).map_or(owner, |flow| &flow.source).to_owned(),
            as_target.or(as_source).map_or(owner, |flow| &flow.target).to_owned(),
            as_source.or(as_target).map_or_else(|| "A->B".to_owned(), FlowNames::flow),
        ],
        Level::Flow => {
            let (source, target) = match flows.iter().find(|flow| flow.flow() == owner) {
                Some(flow) => (flow.source.as_str(), flow.target.as_str()),
                None => owner.split_once("->").unwrap_or((owner, owner)),
            };
            [source, target, owner].map(str::to_owned)
        }
    };
    let names = [("A->B.", flow), ("A.", source), ("B.", target), ("C.", owner.to_owned())];
    filled(sentence, &names.map(|(placeholder, name)| (placeholder, format!("{name}."))), name)
}

/// In a connector's body, which has neither a top level nor names of clusters.
pub(super) fn in_a_body(sentence: &str, key: &str) -> String {
    let place = if definition(Scope::Worker, key).is_some() {
        "a setting of the Connect worker, not of a connector"
    } else if definition(Scope::Process, key).is_some() {
        "read only in a properties file"
    } else if key.contains("override.") {
        "overrides are read only as `producer.override.…`"
    } else {
        return filled(sentence, &[("A->B.", String::new())], key);
    };
    place.to_owned()
}

/// All that stands between backquotes is a key or the beginning of one.
fn filled(sentence: &str, names: &[(&str, String)], key: &str) -> String {
    let parts = sentence.split('`').enumerate().map(|(place, part)| {
        if place % 2 == 0 {
            return part.to_owned();
        }
        let named = names
            .iter()
            .find_map(|(placeholder, name)| Some(format!("{name}{}", part.strip_prefix(placeholder)?)));
        let part = named.unwrap_or_else(|| part.to_owned());
        part.strip_suffix("KEY").map_or(part.clone(), |before| format!("{before}{key}"))
    });
    parts.collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use crate::config::{Inspection, Surroundings};

    fn told(text: &str) -> Vec<String> {
        let inspection = Inspection::of_file(text.as_bytes(), Surroundings::process());
        let warnings = inspection.warnings().iter().map(ToString::to_string);
        warnings.filter_map(|told| Some(told.split_once("has no effect here: ")?.1.to_owned())).collect()
    }

    fn told_of_file(line: &str) -> String {
        let base = "clusters=B,A,z\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nB->A.enabled=true\n";
        told(&format!("{base}{line}=1\n")).concat()
    }

    #[test]
    fn a_key_of_a_cluster_or_flow_gets_a_key_that_can_be_written() {
        for (line, advice) in [
            ("A.acks", "write `A.producer.acks`"),
            ("B.acks", "write `A.producer.acks`"),
            ("B.fetch.min.bytes", "write `B.consumer.fetch.min.bytes`"),
            ("A.fetch.min.bytes", "write `B.consumer.fetch.min.bytes`"),
            ("A.bootstrap.controllers", "write `A.admin.bootstrap.controllers`"),
            ("A.enable.metrics.push", "write `A.consumer.enable.metrics.push`, `A.producer.enable"),
            ("A.topics", "write `topics`, or `B->A.topics`"),
            ("z.topics", "write `topics`, or `A->B.topics`"),
            ("A.memory.max", "read only at top level: write `memory.max`"),
            ("B->A.acks", "write `B->A.producer.override.acks`"),
            ("B->A.fetch.min.bytes", "write `B->A.consumer.fetch.min.bytes`"),
            ("B->A.group.id", "write `A.group.id`"),
            ("B->A.producer.acks", "with `B->A.producer.override.…`"),
            ("B->A.target.consumer.isolation.level", "with `B->A.consumer.…`"),
            (
                "B->A.source.cluster.max.poll.records",
                "write `consumer.`, `producer.` or `admin.` in place of `cluster.`",
            ),
            ("A.producer.override.acks", "overrides are read only as `B->A.producer.override.…`"),
            ("group.id", "write `B.` with the target's name before it"),
            ("acks", "write `B.producer.` with the target's name before it"),
        ] {
            let found = told_of_file(line);
            assert!(found.contains(advice) && !found.contains("KEY"), "{line}: {found}");
        }
    }

    #[test]
    fn a_key_of_a_body_gets_a_key_without_clusters() {
        for (key, advice) in [
            ("fetch.min.bytes", "reaches no client: write `consumer.fetch.min.bytes`"),
            ("acks", "reaches no client: write `producer.override.acks`"),
            (
                "enable.metrics.push",
                "write `consumer.enable.metrics.push`, `producer.override.enable.metrics.push` or `admin",
            ),
            ("producer.acks", "records are written with `producer.override.…`"),
            ("target.consumer.isolation.level", "records are read with `consumer.…`"),
            ("clusters", "read only in a properties file"),
        ] {
            let found =
                told(&format!("{{\"connector.class\": \"MirrorSourceConnector\", \"{key}\": \"1\"}}"));
            assert!(
                found.len() == 1 && found[0].contains(advice) && !found[0].contains("A->B"),
                "{key}: {found:?}"
            );
        }
    }
}
