//! What a file is before it is read: a connector's JSON, no text at all, or the settings of another program.

use super::error::Fault;
use super::properties::{Entry, Properties};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The bytes without the mark that editors of Windows put before text in UTF-8.
pub(super) fn without_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// Whether these are JSON, as a connector's settings are: they begin with a brace, or with a list of objects.
#[must_use]
pub fn is_connector(bytes: &[u8]) -> bool {
    let begin = without_byte_order_mark(bytes).trim_ascii_start();
    match begin.split_first() {
        // `{{`, `{%` and `{#` are a template's.
        Some((b'{', rest)) => !matches!(rest.first(), Some(b'{' | b'%' | b'#')),
        Some((b'[', rest)) => matches!(rest.trim_ascii_start().first(), Some(b'{' | b']')),
        _ => false,
    }
}

/// Why these bytes are no text that a configuration is written in.
pub(super) fn not_text(bytes: &[u8]) -> Option<Fault> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Some(Fault::new("the file is written in UTF-16").remedy("save it as UTF-8"));
    }
    let fault = Fault::new("the file holds zero bytes, so it is no text, or text in UTF-16");
    bytes.contains(&0).then(|| fault.remedy("name a text file in UTF-8"))
}

const MM2: &str = "twinlog reads the file of `connect-mirror-maker.sh`: `clusters = west, east`, addresses such as \
                   `west.bootstrap.servers`, and `west->east.enabled = true`";

/// Settings without `clusters` that are known to be another program's: nothing else that may be said of them would help.
pub(super) fn of_another_program(properties: &Properties) -> Option<Fault> {
    let has = |key: &str| properties.find(key).is_some();
    let first = properties.entries().first()?;
    if let Some(what) = of_another_syntax(first) {
        let fault = Fault::new(what).at_line(first.line);
        return Some(fault.remedy(format!("give a properties file: {MM2}")));
    }
    if has("apiVersion") && has("kind") {
        let what = "missing: this is a resource of Kubernetes in YAML";
        return Some(Fault::missing("clusters", what).remedy(MM2));
    }
    if has("clusters") {
        return None;
    }
    let what = if has("connector.class") {
        return Some(
            Fault::new(
                "these are a connector's settings in a properties file, as standalone Connect takes them",
            )
            .remedy(format!("write them as JSON for `twinlog check`, or as a file for flows: {MM2}")),
        );
    } else if ["offset.storage.topic", "offset.storage.file.filename", "config.storage.topic"]
        .into_iter()
        .any(has)
        || has("bootstrap.servers") && has("key.converter")
    {
        "this is the file of a Connect worker, which twinlog does not need"
    } else if ["node.id", "broker.id", "log.dirs", "process.roles", "zookeeper.connect"].into_iter().any(has)
        && !has("group.id")
    {
        "this is the file of a broker"
    } else if ["bootstrap.servers", "zookeeper.connect", "group.id", "metadata.broker.list"]
        .into_iter()
        .any(has)
    {
        "these are settings of a single client, as MirrorMaker 1 takes them"
    } else {
        return None;
    };
    Some(Fault::missing("clusters", format!("missing: {what}")).remedy(MM2))
}

/// What the first key shows of the file's syntax.
fn of_another_syntax(first: &Entry) -> Option<&'static str> {
    let key = first.key.as_str();
    let is = |begins: &[&str]| begins.iter().any(|begin| key.starts_with(begin));
    if is(&["{{", "{%", "{#", "<%"]) {
        Some("a template was left unfilled")
    } else if is(&["<?xml", "<configuration", "<!"]) {
        Some("this is XML")
    } else if ["export", "set", "curl", "PUT", "POST"].contains(&key) {
        Some("this is a command of a shell, or a request, before the settings")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Inspection, Surroundings};
    use super::*;

    fn sentence(bytes: &[u8]) -> String {
        let errors = Inspection::of_file(bytes, Surroundings::process()).result().unwrap_err();
        assert_eq!(errors.faults().len(), 1, "{errors}");
        errors.to_string()
    }

    #[test]
    fn files_of_other_programs_are_recognised() {
        for (text, piece) in [
            ("bootstrap.servers=a:1\ngroup.id=mm\nauto.offset.reset=earliest", "as MirrorMaker 1 takes them"),
            ("zookeeper.connect=z:1\ngroup.id=mm", "as MirrorMaker 1 takes them"),
            ("bootstrap.servers=a:1\nacks=all", "as MirrorMaker 1 takes them"),
            ("bootstrap.servers=a:1\ngroup.id=c\noffset.storage.topic=o", "the file of a Connect worker"),
            ("bootstrap.servers=a:1\nkey.converter=X", "the file of a Connect worker"),
            ("name=m\nconnector.class=MirrorSourceConnector", "as standalone Connect takes them"),
            ("node.id=1\nlog.dirs=/d", "the file of a broker"),
            ("apiVersion: kafka.strimzi.io/v1\nkind: KafkaMirrorMaker2", "a resource of Kubernetes in YAML"),
            ("apiVersion: kafka.strimzi.io/v1\nkind: X\n  clusters:\n", "a resource of Kubernetes in YAML"),
            ("{{- if .Values.x }}\nclusters = a, b\n{{ end }}", "line 1: a template was left unfilled"),
            ("<?xml version=\"1.0\"?>", "this is XML"),
            ("# note\nexport clusters=a", "line 2: this is a command of a shell"),
        ] {
            let told = sentence(text.as_bytes());
            assert!(told.contains(piece) && told.contains("`west->east.enabled = true`"), "{told}");
        }
    }

    #[test]
    fn what_is_no_text_is_told() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        assert!(sentence(&utf16("\u{feff}clusters=a,b")).contains("written in UTF-16; save it as UTF-8"));
        assert!(sentence(&utf16("{\"a\": 1}")).contains("zero bytes"));
        assert!(sentence(b"\x7fELF\0\0").contains("zero bytes"));
    }

    #[test]
    fn a_connector_is_known_by_its_first_character() {
        for text in ["{}", " \n{", "\u{feff}{}", "[{}]", "[ {", "[]"] {
            assert!(is_connector(text.as_bytes()), "{text}");
        }
        for text in ["", "clusters=a", "[section]\na=b", "[", "#{"] {
            assert!(!is_connector(text.as_bytes()), "{text}");
        }
    }
}
