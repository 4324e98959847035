//! Keys of a cluster that no enabled flow reads, because they are for what happens at its other end: records are read at
//! the source, and written at the target, where the Connect worker stands.

use super::flows::FlowNames;
use super::keys::{Meaning, Role, Scope, Use, definition, is_client_base, is_of_worker_at_top};
use super::notices::though_refused;
use super::properties::{Entry, Properties};
use super::settings::Side;
use super::warning::Warning;

/// What becomes of a key that stands at the wrong end.
pub(super) enum AtWrongEnd {
    /// It was probably meant for the other one.
    Told(Warning),
    /// The other one has the key too, or nothing is lost by it.
    NotNeeded,
}

/// Looks at `name`, read for `cluster` by the meaning of the worker or of a client. None where some flow reads it.
pub(super) fn at_wrong_end(
    properties: &Properties,
    flows: &[FlowNames],
    entry: &Entry,
    (cluster, name, meaning): (&str, &str, Meaning),
) -> Option<AtWrongEnd> {
    let (end, does) = match Role::strip(name) {
        Some((_, name)) if is_client_base(name) => return None,
        Some((Role::Consumer, _)) => (Side::Source, "reads its records from"),
        Some((Role::Producer, _)) => (Side::Target, "writes its records to"),
        Some((Role::Admin, _)) => return None,
        None if definition(Scope::Worker, name).is_some() && !is_client_base(name) => {
            (Side::Target, "has its Connect worker beside")
        }
        None => return None,
    };
    if flows.iter().any(|flow| flow.of(end) == cluster) {
        return None;
    }
    // A cluster in no flow at all has no other end.
    let flow = flows.iter().find(|flow| Side::ALL.into_iter().any(|side| flow.of(side) == cluster))?;
    let other = flow.of(end);
    let key = format!("{other}.{name}");
    let is_of_worker = Role::strip(name).is_none();
    let is_written = properties.find(&key).is_some()
        || is_of_worker && is_of_worker_at_top(name) && properties.find(name).is_some();
    let is_needed = meaning.usage != Use::NotNeeded;
    if is_written || is_of_worker && !is_needed {
        return Some(AtWrongEnd::NotNeeded);
    }
    let but = if is_needed { "" } else { " (though it is not needed)" };
    let refused = though_refused(entry, name);
    let text = format!(
        "has no effect here: `{}` {does} `{other}`, so `{key}` would count{but}{refused}",
        flow.flow()
    );
    Some(AtWrongEnd::Told(Warning::of(entry, text)))
}

#[cfg(test)]
mod tests {
    use crate::config::MirrorConfig;

    const BASE: &str = "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n";

    fn told(more: &str) -> (Vec<String>, usize) {
        let config = MirrorConfig::from_properties(format!("{BASE}{more}").as_bytes()).unwrap();
        (config.warnings().iter().map(ToString::to_string).collect(), config.not_needed().len())
    }

    #[test]
    fn the_key_that_would_count_is_named() {
        for (line, rest) in [
            (
                "b.consumer.isolation.level",
                "`a->b` reads its records from `a`, so `a.consumer.isolation.level` would count",
            ),
            (
                "b.consumer.interceptor.classes",
                "`a->b` reads its records from `a`, so `a.consumer.interceptor.classes` would count (where this version \
                 refuses it: interceptors are not supported: records are copied as they are)",
            ),
            (
                "b.consumer.auto.offset.reset",
                "`a->b` reads its records from `a`, so `a.consumer.auto.offset.reset` would count",
            ),
            (
                "a.producer.acks",
                "`a->b` writes its records to `b`, so `b.producer.acks` would count (though it is not needed)",
            ),
            (
                "a.producer.client.id",
                "`a->b` writes its records to `b`, so `b.producer.client.id` would count",
            ),
            (
                "a.offset.storage.topic",
                "`a->b` has its Connect worker beside `b`, so `b.offset.storage.topic` would count",
            ),
            (
                "a.offset.storage.replication.factor",
                "`a->b` has its Connect worker beside `b`, so `b.offset.storage.replication.factor` would count",
            ),
        ] {
            let value = if line.ends_with("level") { "read_committed" } else { "1" };
            let expected = format!("line 5: `{line}`: has no effect here: {rest}");
            assert_eq!(told(&format!("{line}={value}")), (vec![expected], 0));
        }
    }

    #[test]
    fn what_is_written_at_both_ends_or_read_by_some_flow_is_no_slip() {
        for (text, not_needed) in [
            ("a.consumer.client.id=x\nb.consumer.client.id=x", 1),
            ("a.offset.storage.replication.factor=1\nb.offset.storage.replication.factor=1", 1),
            ("a.offset.storage.replication.factor=1\noffset.storage.replication.factor=1", 1),
            ("a.config.storage.replication.factor=1", 1),
            ("b->a.enabled=true\nb.consumer.client.id=x\na.producer.client.id=y", 0),
            ("b.consumer.security.protocol=PLAINTEXT\nb.admin.client.id=x", 0),
            ("a.security.protocol=PLAINTEXT", 0),
        ] {
            assert_eq!(told(text), (Vec::new(), not_needed), "{text}");
        }
    }

    #[test]
    fn storage_of_the_worker_is_no_key_of_a_flow() {
        for key in ["offset.storage.topic", "offset.storage.replication.factor", "status.storage.topic"] {
            let (warnings, not_needed) = told(&format!("a->b.{key}=1"));
            assert_eq!((warnings.len(), not_needed), (1, 0), "{key}: {warnings:?}");
            assert!(
                warnings[0].contains("read only for the Connect worker beside the target"),
                "{warnings:?}"
            );
        }
    }
}
