//! The documentation's table of keys, made from the tables that the program reads by.

use std::fmt::Write as _;

use super::keys::{self, Meaning, Role, Scope, Use};
use super::refused;

/// Keys that MM2 does not have.
const OWN: [&str; 13] = [
    "compression.type",
    "exactly.once",
    "loops.allow",
    "memory.max",
    "offsets.fill.max",
    "offsets.identical.topics",
    "offsets.mapped.topics",
    "offsets.mode",
    "on.loss",
    "on.target.loss",
    "sync.group.offsets.rewind",
    "sync.topic.acls.remove",
    "throttle",
];

/// What MM2 gives to its flows, workers and clients where its classes have another default (`MirrorMakerConfig`).
const OF_MM2: [(Scope, &str, &str); 5] = [
    (Scope::Connector, "enabled", "false"),
    (Scope::Worker, "header.converter", BYTES),
    (Scope::Worker, "key.converter", BYTES),
    (Scope::Worker, "value.converter", BYTES),
    (Scope::Client(Role::Consumer), "auto.offset.reset", "earliest"),
];
const BYTES: &str = "org.apache.kafka.connect.converters.ByteArrayConverter";

/// One table in Markdown for each place that keys are written in.
#[must_use]
pub fn key_tables() -> String {
    let mut text = String::new();
    for (title, scope) in [
        ("At top level only", Scope::Process),
        ("Of flows: `key` for all of them, `A->B.key` for one", Scope::Connector),
        ("Of the Connect worker: `B.key`, with `B` the target", Scope::Worker),
        (
            "Of consumers: `A.consumer.key`, `A->B.consumer.key`, `A->B.source.consumer.key`",
            Scope::Client(Role::Consumer),
        ),
        ("Of producers: `B.producer.key`, `A->B.producer.override.key`", Scope::Client(Role::Producer)),
        (
            "Of admin clients: `A.admin.key`, `A->B.admin.key`, `A->B.target.admin.key`",
            Scope::Client(Role::Admin),
        ),
    ] {
        let _ = writeln!(text, "### {title}\n\n| key | default | twinlog |\n|---|---|---|");
        table(&mut text, scope);
        text.push('\n');
    }
    text
}

/// Keys that have nothing of their own to tell share one row.
fn table(text: &mut String, scope: Scope) {
    let is_told_elsewhere = |name: &&str| match scope {
        Scope::Connector | Scope::Process => false,
        Scope::Worker => keys::is_security(name) || ["config.providers", "security.protocol"].contains(name),
        Scope::Client(_) => keys::is_client_base(name) || *name == "config.providers",
    };
    let mut alike: Vec<(Meaning, Vec<&str>)> = Vec::new();
    for name in keys::names(scope).filter(|name| !is_told_elsewhere(name)) {
        let meaning = keys::meaning(scope, name);
        let is_of_many = meaning.usage == Use::NotNeeded || keys::is_security(name);
        match alike.iter_mut().find(|(known, _)| is_of_many && *known == meaning) {
            Some((_, names)) => names.push(name),
            None if is_of_many => alike.push((meaning, vec![name])),
            None => row(text, &[name], scope, meaning),
        }
    }
    for (meaning, names) in alike {
        row(text, &names, scope, meaning);
    }
}

fn row(text: &mut String, names: &[&str], scope: Scope, meaning: Meaning) {
    let keys: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let default = match names {
        [name] => match OF_MM2.iter().find(|(of, known, _)| (of, known) == (&scope, name)) {
            Some((.., default)) => default,
            None => keys::definition(scope, name).and_then(|known| known.default).unwrap_or(""),
        },
        _ => "",
    };
    let default =
        if default.is_empty() { String::new() } else { format!("`{}`", default.replace('|', "\\|")) };
    let Meaning { usage, note } = meaning;
    let is_own =
        matches!(scope, Scope::Connector | Scope::Process) && names.iter().all(|name| OWN.contains(name));
    let own = if is_own { " (twinlog's own key)" } else { "" };
    let note = format!("{}{own}", note.replace('|', "\\|"));
    let told = match usage {
        Use::Honoured => note,
        Use::Later => format!("no effect yet: {note}"),
        Use::NotNeeded => format!("not needed: {note}"),
        Use::Refused => match names.first().and_then(|name| refused::passing(scope, name)) {
            Some(passing) => format!("refused unless {passing}: {note}"),
            None => format!("refused: {note}"),
        },
    };
    let _ = writeln!(text, "| {} | {default} | {told} |", keys.join(", "));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation is this table; `TWINLOG_WRITE_DOCUMENTATION=1` writes it anew.
    #[test]
    fn the_documentation_tells_what_the_program_does() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../bin/CONFIGURATION.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (head, _) = text.split_once("### ").unwrap();
        let wanted = format!("{head}{}", key_tables());
        if std::env::var_os("TWINLOG_WRITE_DOCUMENTATION").is_some() {
            return std::fs::write(path, &wanted).unwrap();
        }
        assert!(text == wanted, "run this test with TWINLOG_WRITE_DOCUMENTATION=1");
    }

    /// A default says what happens: of what is refused as not built, that is a value that passes.
    #[test]
    fn defaults_of_own_keys_are_what_this_version_does() {
        for scope in [Scope::Connector, Scope::Process] {
            for name in keys::names(scope).filter(|name| OWN.contains(name)) {
                let Some(default) = keys::definition(scope, name).and_then(|known| known.default) else {
                    continue;
                };
                assert_eq!(
                    refused::turned_away(name, default.trim_matches(['[', ']'])),
                    None,
                    "{name} = {default}"
                );
            }
        }
    }

    #[test]
    fn every_key_of_mm2_stands_in_the_table() {
        let text = key_tables();
        for scope in [Scope::Connector, Scope::Process, Scope::Worker] {
            for name in keys::names(scope).filter(|name| !name.starts_with("sasl.")) {
                assert!(text.contains(&format!("`{name}`")), "{name}");
            }
        }
    }
}
