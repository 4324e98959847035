//! Reads a connector's own configuration, as it is posted to Connect: a flat JSON object, bare or below `config`.
//!
//! # References
//! `ConnectorsResource` (POST and PUT), `CreateConnectorRequest`.

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::Fault;
use super::form::Form;
use super::properties::{Entry, Properties};
use super::recognition::without_byte_order_mark;

/// Reads `{"name": …, "config": {…}}` or the inner object alone: the settings, `name` among them, each with its line.
///
/// # Errors
/// What is not JSON, with line and column; what is no text, number or truth value; two different names.
pub(super) fn parse(bytes: &[u8]) -> Result<Properties, Vec<Fault>> {
    let bytes = without_byte_order_mark(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        vec![Fault::new("not text in UTF-8").at_line(line).remedy("write the body in UTF-8")]
    })?;
    let outer: Object<'_> = serde_json::from_str(text).map_err(|error| vec![not_json(text, &error)])?;
    let lines = Lines::of(text);
    if let Some(fault) = of_another_program(&lines, &outer) {
        return Err(vec![fault]);
    }
    let config = outer.0.iter().find(|(key, _)| key == "config").map(|(_, value)| value.get());
    let Some(inner) = config.filter(|value| value.starts_with('{')) else { return settings(&lines, outer.0) };
    let beside = beside_config(&lines, &outer);
    if !beside.is_empty() {
        return Err(beside);
    }
    let inner: Object<'_> = serde_json::from_str(inner).map_err(|error| vec![not_json(text, &error)])?;
    let names: Vec<_> = outer.0.into_iter().filter(|(key, _)| key == "name").collect();
    if let Some(fault) = of_other_name(&lines, &names, &inner) {
        return Err(vec![fault]);
    }
    // Connect itself prints the name in both places.
    let is_inside = inner.0.iter().any(|(key, value)| key == "name" && value.get() != "null");
    let names = if is_inside { Vec::new() } else { names };
    settings(&lines, names.into_iter().chain(inner.0).collect())
}

/// The name inside `config` must be the one beside it, if both are written.
fn of_other_name(lines: &Lines<'_>, beside: &[(String, &RawValue)], inner: &Object<'_>) -> Option<Fault> {
    let (_, name) = beside.last()?;
    let name = lines.entry("name", name)?.value;
    let (_, inside) = inner.0.iter().rfind(|(key, _)| key == "name")?;
    let inside = lines.entry("name", inside).filter(|inside| inside.value != name.trim())?;
    let reason = format!("differs from the name beside `config`, `{}`, so Connect refuses it", name.trim());
    Some(Fault::of(&inside, reason).remedy("write one name in both places, or only beside `config`"))
}

const NOT_TAKEN: &str = "stands beside `config`, where it is read by nobody";

/// Whether a value of `initial_state` (KIP-980) says what happens anyway.
fn begins_running(state: &RawValue) -> bool {
    state.get() == "null" || as_text(state).is_some_and(|state| state.eq_ignore_ascii_case("RUNNING"))
}

/// Whether it is one of the others that Connect knows.
fn is_state(state: &RawValue) -> bool {
    let is = |state: &str| ["PAUSED", "STOPPED"].into_iter().any(|known| state.eq_ignore_ascii_case(known));
    as_text(state).is_some_and(|state| is(&state))
}

/// What stands beside `config` where only the name may stand: settings there would be lost, and so would a second `config`.
fn beside_config(lines: &Lines<'_>, outer: &Object<'_>) -> Vec<Fault> {
    // A key with an underscore before it is a note.
    let is_known = |key: &str, value: &RawValue| {
        key == "name" || key.starts_with('_') || key == "initial_state" && begins_running(value)
    };
    let mut configs = 0;
    let beside = outer.0.iter().filter(|(key, value)| {
        configs += usize::from(key == "config");
        !(is_known(key, value) || key == "config" && configs == 1)
    });
    let fault = |(key, value): &(String, &RawValue)| {
        let (reason, remedy) = match key.as_str() {
            // What Connect answers when it is asked for a connector.
            "tasks" | "type" => {
                (NOT_TAKEN, "leave it out: Connect tells it of a connector, and does not take it")
            }
            "initial_state" if is_state(value) => (
                "Connect would make the connector and not start it until it is resumed, which is not built yet",
                "write `RUNNING`, or leave it out",
            ),
            "initial_state" => (
                "not a state that a connector can begin with, so Connect refuses it",
                "write `RUNNING`, or leave it out",
            ),
            _ => (NOT_TAKEN, "write it inside `config`, once"),
        };
        let fault = match lines.entry(key, value).filter(|_| key == "initial_state") {
            Some(entry) => Fault::of(&entry, reason),
            None => Fault::missing(key, reason).at_line(lines.of_part(value.get())),
        };
        fault.remedy(remedy)
    };
    beside.map(fault).collect()
}

/// JSON that is known to be something else: its members would only be refused one by one.
fn of_another_program(lines: &Lines<'_>, outer: &Object<'_>) -> Option<Fault> {
    let find = |name: &str| outer.0.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    let kind = find("apiVersion").and(find("kind"))?;
    let fault = Fault::missing("kind", "a resource of Kubernetes, not a connector's settings");
    let remedy = "take what stands below `spec.config`, with the class as `connector.class`";
    Some(fault.at_line(lines.of_part(kind.get())).remedy(remedy))
}

/// What Connect would refuse of a connector's settings before anything else: its class.
pub(super) fn check(settings: &Properties) -> Vec<Fault> {
    const PACKAGE: &str = "org.apache.kafka.connect.mirror.";
    let class = Form::Connector.setting("connector.class", &format!("{PACKAGE}MirrorSourceConnector"));
    let Some(entry) = settings.find("connector.class") else {
        let fault = Fault::missing("connector.class", "missing, so it is not known what to run");
        return vec![fault.remedy(format!("write {class}"))];
    };
    let mut faults = Vec::new();
    if settings.find("source.cluster.alias").is_none() {
        let fault = Fault::missing("source.cluster.alias", "missing, and a connector must have it");
        let example = Form::Connector.setting("source.cluster.alias", "west");
        faults.push(fault.remedy(format!("write the source's alias, such as {example}; it may be empty")));
    }
    let named = entry.value.trim();
    let other = "topics are all that this version copies: check the body of MirrorSourceConnector".to_owned();
    let (sentence, remedy) = match named.strip_prefix(PACKAGE).unwrap_or(named) {
        "MirrorSourceConnector" => return faults,
        "MirrorCheckpointConnector" => ("positions of groups are not built yet", other),
        "MirrorHeartbeatConnector" => ("heartbeats are not built yet", other),
        _ => ("this class cannot be run here", format!("write {class}, which copies topics")),
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

fn not_json(text: &str, error: &serde_json::Error) -> Fault {
    let before = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let line = text[before..].lines().next().unwrap_or_default();
    // Columns are counted in bytes, from 1; at the end of a text it is the last one.
    let column = line.char_indices().take_while(|(at, _)| *at < error.column()).count();
    let at = line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
    let (before, rest) = text.split_at(before + at);
    let is_after_comma = before.trim_end().ends_with(',');
    // What it says ends with the place, which stands before the sentence already.
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    let (reason, remedy) = match rest.chars().next() {
        _ if !text.trim_start().starts_with('{') => {
            (said, "write one object, `{…}`, with one connector's settings")
        }
        Some('}' | ']') if is_after_comma => {
            ("trailing comma", "JSON has no comma after the last member: remove it")
        }
        Some('/' | '#') => (said, "JSON has no comments: remove it"),
        Some('\'') => (said, "JSON has double quotes alone: write `\"`"),
        _ => (said, "a quote or backslash inside a text is written with a backslash before it"),
    };
    Fault::new(format!("column {column}: not JSON: {reason}")).at_line(error.line()).remedy(remedy)
}

fn settings(lines: &Lines<'_>, members: Vec<(String, &RawValue)>) -> Result<Properties, Vec<Fault>> {
    let mut entries = Vec::new();
    let mut faults = Vec::new();
    for (key, value) in members {
        // Connect takes null for a key that was not written.
        if value.get() == "null" {
            continue;
        }
        match lines.entry(&key, value) {
            Some(entry) => entries.push(entry),
            None => faults.push(Fault {
                key: Some(key),
                line: Some(lines.of_part(value.get())),
                ..Fault::new("not a text, number or truth value").remedy(match value.get().as_bytes() {
                    [b'{', ..] => "write all settings side by side in one object, each with a text",
                    _ => "write one text; lists have commas between",
                })
            }),
        }
    }
    if faults.is_empty() { Ok(Properties::of_connector(entries)) } else { Err(faults) }
}

/// Where the lines of a text end.
struct Lines<'t> {
    text: &'t str,
    ends: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, ends: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    /// Line of `part`, which lies inside the text, from 1.
    fn of_part(&self, part: &str) -> usize {
        let at = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        1 + self.ends.partition_point(|end| *end < at)
    }

    /// A member as a setting; none where it has no text.
    fn entry(&self, key: &str, value: &RawValue) -> Option<Entry> {
        let line = self.of_part(value.get());
        let value = as_text(value)?.into();
        Some(Entry { key: key.to_owned(), value, reference: None, line, is_rest: false })
    }
}

/// Texts as they are; numbers and truth values as Connect writes them. None for null, too.
fn as_text(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok(),
        b'{' | b'[' | b'n' => None,
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
        for text in ["", "[]", "[{}]", "null", "7", "{", "{\"a\": }"] {
            assert_eq!(faults(text).len(), 1, "{text}");
        }
        assert!(parse(&[b'{', 0xff]).unwrap_err()[0].reason.contains("UTF-8"));
        let deep = format!("{}{}", "{\"config\":".repeat(100_000), "}".repeat(100_000));
        assert_eq!(faults(&deep).len(), 1);
    }

    /// Connect's reader of JSON (Jackson) drops it too.
    #[test]
    fn a_byte_order_mark_is_dropped() {
        assert_eq!(parse("\u{feff}{\"topics\": \"a\"}".as_bytes()).unwrap().entries().len(), 1);
    }

    #[test]
    fn other_json_is_recognised() {
        let strimzi =
            r#"{"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaConnector", "metadata": {}, "spec": {}}"#;
        let found = faults(strimzi);
        assert!(found.len() == 1 && found[0].contains("a resource of Kubernetes"), "{found:?}");
        assert!(faults("[{\"name\": \"m\"}]")[0].contains("write one object, `{…}`"));
        let answer = r#"{"name": "m", "config": {}, "tasks": [{"connector": "m"}], "type": "source"}"#;
        let found = faults(answer);
        assert!(found.len() == 2 && found.iter().all(|fault| fault.contains("; leave it out")), "{found:?}");
    }

    #[test]
    fn advice_for_a_body_can_be_written_into_it() {
        let body = "{\"connector.class\": \"MirrorSourceConnector\", \"topics\": \"(\", \"topics\": \"a{\",\n\
            \"clusters\": \"a\", \"group.id\": \"x\", \"consumer.override.a.b\": \"1\", \"groups\": \"'x'\",\n\
            \"source.cluster.ssl.key.password\": \"p\", \"x\": \"${A}\", \"replication.factor\": \"${B}\"}";
        let inspection = Inspection::of_connector(body.as_bytes(), Surroundings::process());
        let told =
            inspection.result().unwrap_err().faults().iter().map(ToString::to_string).collect::<Vec<_>>();
        let warned = inspection.warnings().iter().map(ToString::to_string).collect::<Vec<_>>();
        let all = [told, warned].concat().join("\n");
        for piece in [
            "write `\"source.cluster.bootstrap.servers\": \"host:port,…\"`",
            "`target.cluster.bootstrap.servers`: missing, so the target cannot be found",
            "write `\"source.cluster.security.protocol\": \"PLAINTEXT\"` if it is left over",
            "such as `\"source.cluster.alias\": \"west\"`",
            r"write `\\{` for the character `{`: in JSON a backslash is written twice",
            "`topics`: written 2 times; the last one counts",
            "`clusters`: has no effect here: read only in a properties file",
            "`group.id`: has no effect here: a setting of the Connect worker, not of a connector",
            "`groups`: the quotes are part of the value: remove them",
        ] {
            assert!(all.contains(piece), "{piece}: {all}");
        }
        assert!(!all.contains("A.") && !all.contains("properties file a") && !all.contains("(line"), "{all}");
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
        ] {
            let found = faults(body);
            assert_eq!(found.len(), 1, "{body}: {found:?}");
            assert!(found[0].starts_with(&format!("line 1: `{key}`: stands beside")), "{found:?}");
        }
    }

    #[test]
    fn a_connector_that_would_not_begin_to_run_is_told() {
        let told =
            |state: &str| faults(&format!(r#"{{"name": "a", "config": {{}}, "initial_state": {state}}}"#));
        for state in [r#""STOPPED""#, r#""paused""#] {
            let found = told(state);
            let written =
                format!("line 1: `initial_state = {}`: Connect would make", state.trim_matches('"'));
            assert!(found.len() == 1 && found[0].starts_with(&written), "{found:?}");
        }
        for state in [r#""GONE""#, "7", "{}"] {
            let found = told(state);
            assert!(found.len() == 1 && found[0].contains("so Connect refuses it"), "{found:?}");
        }
        for state in [r#""RUNNING""#, r#""running""#, "null"] {
            let body = format!(r#"{{"name": "a", "config": {{}}, "initial_state": {state}}}"#);
            assert!(parse(body.as_bytes()).is_ok(), "{state}");
        }
    }

    fn warned(more: &str) -> Vec<String> {
        let body = format!(
            r#"{{"name": "m", "config": {{"connector.class": "MirrorSourceConnector", "source.cluster.alias": "a",
            "source.cluster.bootstrap.servers": "a:1", "target.cluster.bootstrap.servers": "b:1",{more}}}}}"#
        );
        let inspection = Inspection::of_connector(body.as_bytes(), Surroundings::process());
        let told =
            |errors: super::super::ConfigErrors| errors.faults().iter().map(ToString::to_string).collect();
        let faults: Vec<String> = inspection.result().map_or_else(told, |()| Vec::new());
        faults.into_iter().chain(inspection.warnings().iter().map(ToString::to_string)).collect()
    }

    #[test]
    fn the_name_in_both_places_is_how_connect_prints_a_body() {
        assert_eq!(warned("\n\"name\": \"m\""), [""; 0]);
        assert_eq!(warned("\n\"name\": null"), [""; 0]);
        let found = warned("\n\"name\": \"m\",\n\"name\": \"m\"");
        assert_eq!(found, ["line 4: `name`: written 2 times; the last one counts"]);
    }

    #[test]
    fn a_connector_that_is_not_enabled_is_told() {
        let found = warned("\n\"enabled\": \"false\"");
        let expected = "line 3: `enabled`: the flow is not enabled, so the connector runs and copies nothing: remove the \
                        key, or write `true`";
        assert_eq!(found, [expected]);
        assert_eq!(warned("\n\"enabled\": true"), [""; 0]);
        assert_eq!(warned("\n\"enabled\": \" True \""), [""; 0]);
        let found = warned("\n\"enabled\": \"no\"");
        assert_eq!(found, ["line 3: `enabled = no`: neither `true` nor `false`; write one of them"]);
    }

    #[test]
    fn advice_about_the_class_ends() {
        for (class, piece) in [
            ("MirrorCheckpointConnector", "check the body of MirrorSourceConnector"),
            (
                "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
                "check the body of MirrorSourceConnector",
            ),
            (
                "io.debezium.Mysql",
                "write `\"connector.class\": \"org.apache.kafka.connect.mirror.MirrorSourceConnector\"`",
            ),
        ] {
            let settings =
                parse(format!(r#"{{"connector.class": "{class}", "source.cluster.alias": ""}}"#).as_bytes());
            let found: Vec<_> = check(&settings.unwrap()).iter().map(ToString::to_string).collect();
            assert!(found.len() == 1 && found[0].contains(piece), "{found:?}");
        }
        let found = check(&parse(b"{}").unwrap()).remove(0).to_string();
        assert!(found.contains("mirror.MirrorSourceConnector") && !found.contains("Heartbeat"), "{found}");
    }

    #[test]
    fn what_json_does_not_have_is_named_with_its_place() {
        for (text, expected) in [
            (
                "{\n\"a\": \"x\",\n}",
                "line 3: column 1: not JSON: trailing comma; JSON has no comma after the last member",
            ),
            ("{\"é\": \"x\",}", "line 1: column 11: not JSON: trailing comma; "),
            (
                "{\n  // note\n\"a\": 1}",
                "line 2: column 3: not JSON: key must be a string; JSON has no comments",
            ),
            (
                "{\"a\": 1, /* note */ \"b\": 1}",
                "line 1: column 10: not JSON: key must be a string; JSON has no comments",
            ),
            ("{\"a\": // note\n1}", "line 1: column 7: not JSON: expected value; JSON has no comments"),
            (
                "{\"a\": \"1\" # note\n}",
                "line 1: column 11: not JSON: expected `,` or `}`; JSON has no comments",
            ),
            (
                "{\"a\": \"1\"}\n// note",
                "line 2: column 1: not JSON: trailing characters; JSON has no comments",
            ),
            (
                "{\"config\": {\"a\": \"1\",\n}}",
                "line 2: column 1: not JSON: trailing comma; JSON has no comma",
            ),
            ("{'a': 1}", "line 1: column 2: not JSON: key must be a string; JSON has double quotes alone"),
        ] {
            let found = faults(text);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{text}: {found:?}");
        }
    }

    #[test]
    fn two_names_are_one_too_many() {
        let found = faults("{\"name\": \"a\", \"config\": {\"name\": \"b\"}}");
        assert!(
            found[0].starts_with(
                "line 1: `name = b`: differs from the name beside `config`, `a`, so Connect refuses"
            ),
            "{found:?}"
        );
        for body in
            [r#"{"name": " a ", "config": {"name": "a"}}"#, r#"{"name": null, "config": {"name": "a"}}"#]
        {
            assert!(parse(body.as_bytes()).is_ok(), "{body}");
        }
    }
}
