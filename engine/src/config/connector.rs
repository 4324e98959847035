//! Reads a connector's own configuration, as it is posted to Connect: a flat JSON object, bare or below `config`.
//!
//! # References
//! `ConnectorsResource` (POST and PUT), `CreateConnectorRequest`.

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::Fault;
use super::properties::{Entry, Properties};

/// Reads `{"name": …, "config": {…}}` or the inner object alone: the settings, `name` among them, each with its line.
///
/// # Errors
/// What is not JSON, with line and column; what is no text, number or truth value; two different names.
pub(super) fn parse(bytes: &[u8]) -> Result<Properties, Vec<Fault>> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        vec![Fault::new("not text in UTF-8").at_line(line).remedy("write the body in UTF-8")]
    })?;
    let outer: Object<'_> = serde_json::from_str(text).map_err(|error| vec![not_json(&error)])?;
    let config = outer.0.iter().find(|(key, _)| key == "config").map(|(_, value)| value.get());
    let Some(inner) = config.filter(|value| value.starts_with('{')) else { return settings(text, outer.0) };
    let beside = beside_config(text, &outer);
    if !beside.is_empty() {
        return Err(beside);
    }
    let inner: Object<'_> = serde_json::from_str(inner).map_err(|error| vec![not_json(&error)])?;
    let names = outer.0.into_iter().filter(|(key, _)| key == "name").chain(inner.0);
    let settings = settings(text, names.collect())?;
    let mut names = settings.entries().iter().filter(|entry| entry.key == "name");
    match (names.next(), names.next()) {
        (Some(outer), Some(inner)) if outer.value != inner.value => {
            let reason = format!("differs from the connector's name `{}`", outer.value.as_str());
            Err(vec![Fault::of(inner, reason).remedy("write one name in both places")])
        }
        _ => Ok(settings),
    }
}

/// What stands beside `config` where only the name may stand: settings there would be lost, and so would a second `config`.
fn beside_config(text: &str, outer: &Object<'_>) -> Vec<Fault> {
    let is_known = |key: &str, value: &RawValue| {
        // A key with an underscore before it is a note.
        key == "name"
            || key.starts_with('_')
            || key == "initial_state" && as_text(value).is_some_and(|state| state == "RUNNING")
    };
    let mut configs = 0;
    let beside = outer.0.iter().filter(|(key, value)| {
        configs += usize::from(key == "config");
        !(is_known(key, value) || key == "config" && configs == 1)
    });
    let fault = |(key, value): &(String, &RawValue)| {
        Fault::missing(key, "stands beside `config`, where it is read by nobody")
            .at_line(line_of(text, value.get()))
            .remedy("write it inside `config`, once")
    };
    beside.map(fault).collect()
}

/// What Connect would refuse of a connector's settings before anything else: its class.
pub(super) fn check(settings: &Properties) -> Vec<Fault> {
    const PACKAGE: &str = "org.apache.kafka.connect.mirror.";
    let classes =
        format!("MirrorSourceConnector, MirrorCheckpointConnector or MirrorHeartbeatConnector of {PACKAGE}*");
    let Some(entry) = settings.find("connector.class") else {
        let fault = Fault::missing("connector.class", "missing, so it is not known what to run");
        return vec![fault.remedy(format!("write {classes}"))];
    };
    let mut faults = Vec::new();
    if settings.find("source.cluster.alias").is_none() {
        let fault = Fault::missing("source.cluster.alias", "missing, and a connector must have it");
        faults.push(fault.remedy("write the source's alias; it may be empty"));
    }
    let class = entry.value.trim();
    let (sentence, remedy) = match class.strip_prefix(PACKAGE).unwrap_or(class) {
        "MirrorSourceConnector" => return faults,
        "MirrorCheckpointConnector" => ("positions of groups are not built yet", "leave it out".to_owned()),
        "MirrorHeartbeatConnector" => ("heartbeats are not built yet", "leave it out".to_owned()),
        _ => ("this class cannot be run here", format!("write {classes}")),
    };
    faults.push(Fault::of(entry, sentence).remedy(remedy));
    faults
}

/// The members of a JSON object in the order written, repeated ones included.
struct Object<'j>(Vec<(String, &'j RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object with the connector's settings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Object(members))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Err(E::invalid_type(de::Unexpected::Unit, &self))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

fn not_json(error: &serde_json::Error) -> Fault {
    // What it says ends with the place, which stands before the sentence already.
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default().to_owned();
    Fault::new(format!("column {}: not JSON: {reason}", error.column()))
        .at_line(error.line())
        .remedy("a quote or backslash inside a text is written with a backslash before it")
}

fn settings(text: &str, members: Vec<(String, &RawValue)>) -> Result<Properties, Vec<Fault>> {
    let mut entries = Vec::new();
    let mut faults = Vec::new();
    for (key, value) in members {
        let line = line_of(text, value.get());
        // Connect takes null for a key that was not written.
        if value.get() == "null" {
            continue;
        }
        match as_text(value) {
            Some(value) => entries.push(Entry { key, value: value.into(), reference: None, line }),
            None => faults.push(Fault {
                key: Some(key),
                line: Some(line),
                ..Fault::new("not a text, number or truth value")
                    .remedy("write one text; lists have commas between")
            }),
        }
    }
    if faults.is_empty() { Ok(Properties::from_entries(entries)) } else { Err(faults) }
}

/// Line of `part`, which lies inside `text`, from 1.
fn line_of(text: &str, part: &str) -> usize {
    let at = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
    1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count()
}

/// Texts as they are; numbers and truth values as Connect writes them.
fn as_text(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok(),
        b'{' | b'[' => None,
        _ => Some(value.get().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Inspection, Surroundings};
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        parse(text.as_bytes()).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn both_bodies_give_the_same_settings_with_lines() {
        let bare = "{\n\"name\": \"m\",\n\"tasks.max\": 4,\n\"enabled\": true,\n\"topics\": \"a\\\"b\", \"x\": null}";
        let shown = |text: &str| -> Vec<String> {
            let settings = parse(text.as_bytes()).unwrap();
            settings.entries().iter().map(|e| format!("{} {}={}", e.line, e.key, e.value.as_str())).collect()
        };
        assert_eq!(shown(bare), ["2 name=m", "3 tasks.max=4", "4 enabled=true", "5 topics=a\"b"]);
        assert_eq!(
            shown("{\"name\": \"m\",\n\"config\": {\n\"topics\": \"a\"}}"),
            ["1 name=m", "3 topics=a"]
        );
    }

    #[test]
    fn repeated_keys_are_kept_so_that_they_can_be_told() {
        let settings = parse(b"{\"a\": \"1\", \"a\": \"2\"}").unwrap();
        assert_eq!((settings.entries().len(), settings.find("a").unwrap().value.as_str()), (2, "2"));
    }

    #[test]
    fn what_is_no_body_says_where_and_why() {
        let found = faults("{\n\"a\": \"x\"y\"\n}");
        assert!(found[0].starts_with("line 2: column 9: not JSON: expected `,` or `}`"), "{found:?}");
        for text in ["", "[]", "null", "7", "{", "\u{feff}{}", "{\"a\": }"] {
            assert_eq!(faults(text).len(), 1, "{text}");
        }
        assert!(parse(&[b'{', 0xff]).unwrap_err()[0].reason.contains("UTF-8"));
        let deep = format!("{}{}", "{\"config\":".repeat(100_000), "}".repeat(100_000));
        assert_eq!(faults(&deep).len(), 1);
    }

    #[test]
    fn values_that_are_no_text_are_named() {
        let found = faults("{\"topics\": [\"a\"],\n\"x\": {}}");
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("line 1: `topics`: not a text, number or truth value"), "{found:?}");
    }

    #[test]
    fn a_connector_without_its_source_s_alias_is_refused_and_the_target_is_called_target() {
        let body = r#"{"connector.class": "MirrorSourceConnector", "source.cluster.bootstrap.servers": "a:1",
            "target.cluster.bootstrap.servers": "b:1"}"#;
        let inspection = Inspection::of_connector(body.as_bytes(), Surroundings::process());
        let errors = inspection.result().unwrap_err();
        assert_eq!(errors.faults().len(), 1, "{errors}");
        assert!(errors.to_string().starts_with("`source.cluster.alias`: missing"), "{errors}");
        assert_eq!(inspection.options()[0].flow, "(source cluster's id)->target");
    }

    #[test]
    fn nothing_is_lost_beside_the_config() {
        for (body, key) in [
            (r#"{"config": {"topics": "a"}, "config": {"topics": "b"}}"#, "config"),
            (r#"{"config": {}, "topics": "outer"}"#, "topics"),
            (r#"{"config": {}, "initial_state": "STOPPED"}"#, "initial_state"),
        ] {
            let found = faults(body);
            assert_eq!(found.len(), 1, "{body}: {found:?}");
            assert!(found[0].starts_with(&format!("line 1: `{key}`: stands beside")), "{found:?}");
        }
        assert!(parse(br#"{"name": "a", "config": {}, "initial_state": "RUNNING"}"#).is_ok());
    }

    #[test]
    fn two_names_are_one_too_many() {
        let found = faults("{\"name\": \"a\", \"config\": {\"name\": \"b\"}}");
        assert!(found[0].contains("differs from the connector's name `a`"), "{found:?}");
        assert!(parse(b"{\"name\": \"a\", \"config\": {\"name\": \"a\"}}").is_ok());
    }
}
