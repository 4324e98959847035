//! Body of the fuzz target `configuration`: any bytes as a file, what must hold of its inspection is asserted.
//!
//! G1 Nothing panics. G2 What stands under a secret key is never printed, nor what config providers give for it. G3 The
//! answer depends on the entries alone: the same ones, written otherwise, are read alike.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use super::connector;
use super::flows;
use super::inspection::Inspection;
use super::notices;
use super::only_into::Targets;
use super::properties::{Entry, Properties};
use super::providers::Surroundings;
use super::recognition::{is_connector, not_text};
use super::secret::is_secret_key;
use super::values::{is_of_the_text, of_the_entries};

/// Stands in for every secret.
const SECRET: &str = "hunter2";

/// A properties file or a connector's JSON.
///
/// # Panics
/// Where G1, G2 or G3 does not hold.
pub fn configuration(input: &[u8]) {
    let mut inspection = Inspection::of_file(input, surroundings());
    if not_text(input).is_some() {
        return assert!(inspection.result().is_err(), "what is no text is a fault");
    }
    let form = if is_connector(input) { Form::Json } else { Form::Properties };
    let typed = match form {
        Form::Json => connector::parse(input),
        Form::Properties => Properties::parse(input),
    };
    let Ok(typed) = typed else {
        return assert!(inspection.result().is_err(), "what cannot be read is a fault");
    };
    // Which characters a text is written in, and what becomes of its backslashes, is known before it is cut into entries.
    let note = typed.utf8_note();
    inspection.warnings.retain(|warning| Some(warning) != note.as_ref() && !is_of_the_text(warning));
    for fault in &mut inspection.faults {
        fault.remedy = of_the_entries(&fault.remedy).to_owned();
    }
    if let Some(text) = form.write(typed.entries()) {
        let again = Inspection::of_file(text.as_bytes(), surroundings());
        assert_eq!(inspection, again, "the same entries were read otherwise");
    }
    if let Some(text) = with_known_secrets(&typed, form).and_then(|entries| form.write(&entries)) {
        let told = format!("{:?}", Inspection::of_file(text.as_bytes(), surroundings()));
        assert!(!told.contains(SECRET), "a secret is shown: {told}");
    }
}

/// Fixed answers: a secret for every question but those for `none`.
fn surroundings() -> Surroundings<'static> {
    Surroundings {
        file: &|path: &Path| match path.to_str() {
            Some("none") | None => Err(io::ErrorKind::NotFound.into()),
            Some("bytes") => Ok(vec![0xff]),
            Some(_) => Ok(format!("key={SECRET}\n").into_bytes()),
        },
        variable: &|name| (name != "none").then(|| SECRET.to_owned()),
    }
}

#[derive(Clone, Copy)]
enum Form {
    Properties,
    Json,
}

impl Form {
    /// The text of these entries, each on its line; none where a later one stands on an earlier line.
    fn write(self, entries: &[Entry]) -> Option<String> {
        let mut text = String::new();
        let mut line = 1;
        if let Self::Json = self {
            text.push('{');
        }
        for (place, entry) in entries.iter().enumerate() {
            let line_breaks = entry.line.checked_sub(line)?;
            text.extend(std::iter::repeat_n('\n', line_breaks));
            line = entry.line;
            match self {
                Self::Json => {
                    let comma = if place > 0 { "," } else { "" };
                    let (key, value) =
                        (serde_json::Value::from(&*entry.key), serde_json::Value::from(&*entry.value));
                    let _ = write!(text, "{comma}{key}:{value}");
                }
                Self::Properties => {
                    escape(&entry.key, &mut text);
                    text.push('=');
                    escape(&entry.value, &mut text);
                }
            }
        }
        if let Self::Json = self {
            text.push('}');
        }
        Some(text)
    }
}

/// Every character but letters and digits of ASCII as UTF-16 units.
fn escape(value: &str, text: &mut String) {
    for c in value.chars() {
        if c.is_ascii_alphanumeric() {
            text.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                let _ = write!(text, "\\u{unit:04x}");
            });
        }
    }
}

/// The entries with [`SECRET`] for every word of a secret. What else a provider would resolve is left out, since its
/// answers may be shown there. None where the word is in the file already.
fn with_known_secrets(typed: &Properties, form: Form) -> Option<Vec<Entry>> {
    let is_known = |entry: &Entry| entry.key.contains(SECRET) || entry.value.contains(SECRET);
    if typed.entries().iter().any(is_known) {
        return None;
    }
    let clusters = flows::enabled(typed, &Targets::default()).clusters;
    let entries = typed.entries().iter().filter_map(|entry| {
        // A cluster may be called `token`: its addresses are no secret.
        let name = match form {
            Form::Json => &entry.key,
            Form::Properties => notices::best(&entry.key, &clusters).1,
        };
        let defines_provider = name.starts_with("config.providers");
        let is_secret = is_secret_key(name) && !defines_provider;
        let is_reference = entry.value.contains("${");
        if is_secret && !is_reference {
            return Some(Entry { value: words_replaced(&entry.value).into(), ..entry.clone() });
        }
        (is_secret || defines_provider || !is_reference).then(|| entry.clone())
    });
    Some(entries.collect())
}

fn words_replaced(value: &str) -> String {
    let mut replaced = String::new();
    let mut is_in_word = false;
    for c in value.chars() {
        if !c.is_alphabetic() {
            replaced.push(c);
        } else if !is_in_word {
            replaced.push_str(SECRET);
        }
        is_in_word = c.is_alphabetic();
    }
    replaced
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    const KEYS: &[&str] = &[
        "clusters",
        "a.bootstrap.servers",
        "b.bootstrap.servers",
        "a->b.enabled",
        "b->a.enabled",
        "enabled",
        "topics",
        "a->b.topics.exclude",
        "replication.policy.class",
        "replication.policy.separator",
        "source.cluster.alias",
        "a.sasl.jaas.config",
        "ssl.key.password",
        "a->b.producer.override.sasl.jaas.config",
        "b.token",
        "token.topics",
        "config.providers",
        "config.providers.f.class",
        "config.providers.e.class",
        "tasks.max",
        "topcis",
        "name",
        "replication.factor",
        "refresh.topics.interval.seconds",
        "security.protocol",
        "connector.class",
    ];
    const VALUES: &[&str] = &[
        "a,b",
        "a, token, b",
        "x:1",
        "pass:word",
        "true",
        "TRUE ",
        "no",
        "(",
        ".*",
        "a{1,2}",
        "\"x\"",
        "é # x",
        "-1",
        "7",
        "IdentityReplicationPolicy",
        "SSL",
        "plaintext",
        "${f:x:key}",
        "${e:none}",
        "x ${f:none:key}",
        "${LEFT}",
        "f,e",
        "FileConfigProvider",
        "EnvVarConfigProvider",
        "MirrorSourceConnector",
        "",
        "\\u00e9",
        "\\uzz",
    ];

    #[test]
    fn what_only_the_text_tells_is_no_difference() {
        // A blank behind the last backslash; a line that a backslash has made a part of the value before it, a value that
        // cannot be used because of that.
        let clusters = "clusters = a, b\na->b.enabled = true\nb.bootstrap.servers = x:1\n";
        let unusable = format!("{clusters}a.bootstrap.servers = x:1 \\\n  topics = a");
        for text in ["k \\ ", "topics = a\\\nname = b", &unusable] {
            super::configuration(text.as_bytes());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_bytes_are_inspected(input in proptest::collection::vec(any::<u8>(), 0..200)) {
            super::configuration(&input);
        }

        #[test]
        fn any_settings_are_inspected(
            settings in proptest::collection::vec((select(KEYS), select(VALUES)), 0..12), is_json: bool,
        ) {
            let members = settings.iter().map(|(key, value)| format!("{key:?}: {value:?}"));
            let lines = settings.iter().map(|(key, value)| format!("{key} = {value}"));
            let text = if is_json {
                format!("{{{}}}", members.collect::<Vec<_>>().join(",\n"))
            } else {
                lines.collect::<Vec<_>>().join("\n")
            };
            super::configuration(text.as_bytes());
        }
    }
}
