//! What to say of a key that nobody reads: what happened, and what was probably meant.

use super::arrows;
use super::flows::FlowNames;
use super::form::Form;
use super::keys::{Level, Reading, nearest, read_at};
use super::properties::{Entry, Properties};
use super::refused;
use super::secret::is_unprintable;
use super::warning::Warning;

const NOBODY: &str = "read by nobody, neither MM2 nor twinlog";

/// Keys by which other formats include a file.
const INCLUDING: [&str; 4] = ["include", "!include", "import", "source"];

/// Of a properties file: its clusters and the flows that are enabled.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) clusters: &'a [String],
    pub(super) flows: &'a [FlowNames],
}

/// Said of a key of which nothing more is known.
pub(super) fn nobody(entry: &Entry) -> Warning {
    Warning::of(entry, NOBODY)
}

/// One warning for all lines behind a value that may be its rest, and that nobody may see.
pub(super) fn rests(properties: &Properties) -> Vec<Warning> {
    let entries: Vec<&Entry> = properties.effective().collect();
    let mut warnings = Vec::new();
    let mut owner = "a secret".to_owned();
    for run in entries.chunk_by(|entry, next| entry.is_rest == next.is_rest) {
        let [first, others @ ..] = run else { continue };
        if first.is_rest {
            let text = format!("read by nobody, and not shown: it may be the rest of {owner}");
            let remedy = "a value goes on in the next line only behind a `\\` at the very end of its line";
            warnings.push(Warning { value: None, ..Warning::of(first, text).others(others).remedy(remedy) });
        } else if let Some(last) = run.last() {
            owner = properties.form().place(&last.key, last.line);
        }
    }
    warnings
}

/// What to tell of a key of a properties file. `name` is the key at its `level`.
pub(super) fn of_file(
    properties: &Properties,
    names: Names<'_>,
    entry: &Entry,
    (level, name): (Level, &str),
) -> Warning {
    if let Some(meant) = arrows::meant(entry, names.clusters) {
        let remedy = match refused::turned_away(&meant.name, &meant.value) {
            Some(why) => refusal(&meant.key, why),
            None => meant.remedy(),
        };
        return Warning::of(entry, meant.reason).remedy(remedy);
    }
    if let Some(blank) = entry.key.chars().find(|c| is_unprintable(*c)) {
        let remedy = format!("type an ordinary blank, or none, for the `{}` in it", blank.escape_default());
        return nobody(entry).remedy(remedy);
    }
    if INCLUDING.contains(&entry.key.as_str()) && looks_like_a_path(&entry.value) {
        return nobody(entry).remedy("a properties file includes no other: write its lines into this one");
    }
    let of_names = if level == Level::Top { of_cluster_names(entry, names.clusters) } else { None };
    of_names.unwrap_or_else(|| match suggestion(&entry.key, level, name) {
        Some(meant) => nobody(entry).remedy(question(properties, names, entry, &meant)),
        None => nobody(entry),
    })
}

/// What is to be added where a key that nobody reads was to name the topics of a flow, and no other line does.
pub(super) fn copies_all(properties: &Properties, names: Names<'_>, entry: &Entry, name: &str) -> String {
    let is_meant = || {
        let last = name.rsplit('.').next().unwrap_or(name);
        let arrow = arrows::meant(entry, names.clusters);
        arrow.is_some_and(|meant| meant.name == "topics")
            || last == "topics"
            || nearest(Level::Flow, last).as_deref() == Some("topics")
    };
    let is_unnamed =
        |flow: &&FlowNames| properties.find(&flow.key("topics")).or(properties.find("topics")).is_none();
    match names.flows.iter().find(is_unnamed) {
        Some(flow) if is_meant() => {
            format!("; so no line names the topics of `{}`, and it copies all", flow.flow())
        }
        _ => String::new(),
    }
}

/// The same for a key of a connector's own configuration.
pub(super) fn of_connector(settings: &Properties, entry: &Entry) -> Warning {
    let names = Names { clusters: &[], flows: &[] };
    match nearest(Level::Flow, &entry.key) {
        Some(name) => {
            let meant = Meant { key: name.clone(), name };
            nobody(entry).remedy(question(settings, names, entry, &meant))
        }
        None => nobody(entry),
    }
}

/// The key that was probably meant: the whole of it, and its name without clusters.
struct Meant {
    key: String,
    name: String,
}

fn suggestion(key: &str, level: Level, name: &str) -> Option<Meant> {
    let prefix = &key[..key.len() - name.len()];
    match nearest(level, name) {
        Some(name) => Some(Meant { key: format!("{prefix}{name}"), name }),
        // Of flows, written for a cluster.
        None if level == Level::Cluster => {
            nearest(Level::Top, name).map(|name| Meant { key: name.clone(), name })
        }
        None => None,
    }
}

/// A key that is written already, or that every flow has of its own, would do nothing; one with a value that is not built
/// would be refused.
fn question(properties: &Properties, names: Names<'_>, entry: &Entry, meant: &Meant) -> String {
    let Meant { key: meant, name } = meant;
    if let Some(there) = properties.find(meant) {
        return match properties.form() {
            Form::Properties => format!("is `{meant}` meant, which stands in line {} already?", there.line),
            Form::Connector => format!("is `{meant}` meant, which stands there already?"),
        };
    }
    let own: Vec<_> = names.flows.iter().filter_map(|flow| properties.find(&flow.key(meant))).collect();
    match own.first() {
        Some(first) if own.len() == names.flows.len() => {
            format!("is `{meant}` meant? It would do nothing: line {} (`{}`) counts", first.line, first.key)
        }
        _ => plain_question(entry, meant, name),
    }
}

fn plain_question(entry: &Entry, meant: &str, name: &str) -> String {
    match refused::turned_away(name, &entry.value) {
        Some(why) => refusal(meant, why),
        None => format!("is `{meant}` meant?"),
    }
}

fn refusal(meant: &str, why: &str) -> String {
    format!("remove it; `{meant}` may be meant, which this version refuses: {why}")
}

fn looks_like_a_path(value: &str) -> bool {
    value.contains('/') || [".properties", ".conf", ".cfg"].iter().any(|end| value.trim_end().ends_with(end))
}

/// A key that would be read if the clusters that it names were those in `clusters`.
fn of_cluster_names(entry: &Entry, clusters: &[String]) -> Option<Warning> {
    let key = entry.key.as_str();
    let is_cluster = |name: &str| clusters.iter().any(|known| known == name);
    let listed = clusters.join(", ");
    let Some((source, rest)) = key.split_once("->") else {
        let (cluster, name) = key.split_once('.')?;
        let is_read = matches!(read_at(Level::Cluster, name), Reading::Read(_));
        let in_other_letters = clusters.iter().find(|known| known.eq_ignore_ascii_case(cluster));
        return is_read.then(|| match in_other_letters {
            Some(known) => nobody(entry).remedy(plain_question(entry, &format!("{known}.{name}"), name)),
            None => {
                let remedy = format!("no cluster is named `{cluster}` in `clusters` ({listed})");
                Warning::of(entry, "read by nobody").remedy(remedy)
            }
        });
    };
    if is_cluster(source) && is_cluster(rest) {
        let remedy = format!("write the whole key in each line, such as `{key}.topics = …`");
        return Some(Warning::of(entry, "read by nobody: it is the name of a flow alone").remedy(remedy));
    }
    if is_cluster(source) && rest.strip_prefix(source).is_some_and(|rest| rest.starts_with('.')) {
        let reason = "read by nobody: it names one cluster twice, and a flow goes from one to another";
        return Some(Warning::of(entry, reason).remedy(format!("write two of the clusters ({listed})")));
    }
    let meant = clusters.iter().find_map(|source| {
        let rest = in_other_letters(key, source)?.strip_prefix("->")?;
        clusters.iter().find_map(|target| {
            let rest = in_other_letters(rest, target).filter(|rest| rest.starts_with('.'))?;
            Some((format!("{source}->{target}{rest}"), &rest[1..]))
        })
    });
    Some(match meant {
        Some((meant, name)) => nobody(entry).remedy(plain_question(entry, &meant, name)),
        None => {
            let remedy = format!("it names a cluster that `clusters` does not list ({listed})");
            Warning::of(entry, "read by nobody").remedy(remedy)
        }
    })
}

/// What follows the name in `text`, where at most capitals differ.
fn in_other_letters<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (written, rest) = text.split_at_checked(name.len())?;
    written.eq_ignore_ascii_case(name).then_some(rest)
}

#[cfg(test)]
mod tests {
    use crate::config::Inspection;
    use crate::config::providers::Surroundings;

    const BASE: &str = "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n\
                        a->b.topics=t\n";

    fn told(more: &str) -> String {
        let inspection = Inspection::of_file(format!("{BASE}{more}").as_bytes(), Surroundings::process());
        let warnings: Vec<String> = inspection.warnings().iter().map(ToString::to_string).collect();
        assert_eq!(warnings.len(), 1, "{more}: {warnings:?}");
        warnings[0].clone()
    }

    #[test]
    fn nobody_is_led_to_a_key_that_is_refused_then() {
        const GROUPS: &str = "syncing group offsets is not built yet";
        const SECURITY: &str = "TLS and SASL are not built yet";
        for (line, meant, why) in [
            ("a->b.sync.group.offsets = true", "a->b.sync.group.offsets.enabled", GROUPS),
            ("sync.groups.enabled = true", "sync.group.offsets.enabled", GROUPS),
            ("a.sync.group.offset.enabled = true", "sync.group.offsets.enabled", GROUPS),
            ("a->b.emit.heartbeats = true", "a->b.emit.heartbeats.enabled", "heartbeats are not built yet"),
            ("A->B.sync.group.offsets.enabled = true", "a->b.sync.group.offsets.enabled", GROUPS),
            ("a -> b.sync.group.offsets.enabled = true", "a->b.sync.group.offsets.enabled", GROUPS),
            ("a-&gt;b.sync.group.offsets.enabled = true", "a->b.sync.group.offsets.enabled", GROUPS),
            ("a.security.protocl = SSL", "a.security.protocol", SECURITY),
            ("A.security.protocol = SSL", "a.security.protocol", SECURITY),
            ("a.ssl.truststore.locaton = /x", "a.ssl.truststore.location", SECURITY),
            (
                "a.consumer.interceptor.clases = x.Y",
                "a.consumer.interceptor.classes",
                "interceptors are not supported: records are copied as they are",
            ),
        ] {
            let told = told(line);
            let end = format!(": remove it; `{meant}` may be meant, which this version refuses: {why}");
            assert!(told.ends_with(&end), "{told}");
        }
        for line in [
            "a->b.sync.group.offsets = false",
            "a.security.protocl = PLAINTEXT",
            "a.consumer.isolation.levl = read_uncommitted",
            "A->B.emit.heartbeats.enabled = false",
        ] {
            assert!(told(line).ends_with(" meant?"), "{line}: {}", told(line));
        }
        assert!(
            told("a -> b.emit.checkpoints.enabled = false")
                .contains("write `a->b.emit.checkpoints.enabled = …`")
        );
    }

    #[test]
    fn a_flow_that_copies_all_for_a_slip_of_the_pen_is_told() {
        let base = BASE.replace("a->b.topics=t\n", "");
        for line in ["a->b.topcis=t", "a\u{2014}>b.topics=t", "a -> b.topics = t", "A->B.topics=t", "topic=t"]
        {
            let inspection = Inspection::of_file(format!("{base}{line}").as_bytes(), Surroundings::process());
            let warnings: Vec<String> = inspection.warnings().iter().map(ToString::to_string).collect();
            let so = "; so no line names the topics of `a->b`, and it copies all";
            assert!(warnings.iter().any(|warning| warning.contains(so)), "{line}: {warnings:?}");
        }
        assert!(!told("a->b.topcis=t").contains("copies all"));
    }

    #[test]
    fn each_kind_has_its_sentence() {
        const NOBODY: &str = "read by nobody, neither MM2 nor twinlog";
        for (line, sentence) in [
            ("frobnicate=1", format!("`frobnicate`: {NOBODY}")),
            ("clusters\\u00a0=a", format!("`clusters\\u{{a0}}`: {NOBODY}: type an ordinary blank, or none, for the `\\u{{a0}}` in it")),
            ("task.max=1", format!("`task.max`: {NOBODY}: is `tasks.max` meant?")),
            (
                "topics.include=x",
                format!("`topics.include`: {NOBODY}: is `topics` meant? It would do nothing: line 5 (`a->b.topics`) counts"),
            ),
            (
                "a->b.topic=x",
                format!("`a->b.topic`: {NOBODY}: is `a->b.topics` meant, which stands in line 5 already?"),
            ),
            ("a.sync.topic.acl.enabled=false", format!("`a.sync.topic.acl.enabled`: {NOBODY}: is `sync.topic.acls.enabled` meant?")),
            (
                "c.bootstrap.servers=c:1",
                "`c.bootstrap.servers`: read by nobody: no cluster is named `c` in `clusters` (a, b)".to_owned(),
            ),
            ("A.bootstrap.servers=c:1", format!("`A.bootstrap.servers`: {NOBODY}: is `a.bootstrap.servers` meant?")),
            ("A->B.topics=c", format!("`A->B.topics`: {NOBODY}: is `a->b.topics` meant?")),
            (
                "a->c.topics=c",
                "`a->c.topics`: read by nobody: it names a cluster that `clusters` does not list (a, b)".to_owned(),
            ),
            (
                "a->a.enabled=true",
                "`a->a.enabled`: read by nobody: it names one cluster twice, and a flow goes from one to another: write \
                 two of the clusters (a, b)"
                    .to_owned(),
            ),
            (
                "a -> b.groups = x",
                "`a`: the key ends here, at the first blank, `=` or `:`, and nobody reads it: write `a->b.groups = …`, \
                 without blanks in the key"
                    .to_owned(),
            ),
            (
                "a-&gt;b.groups = x",
                "`a-&gt;b.groups`: read by nobody: clusters are joined by `->`: write `a->b.groups = …`, without blanks in \
                 the key"
                    .to_owned(),
            ),
        ] {
            assert_eq!(told(line), format!("line 6: {sentence}"), "{line}");
        }
    }
}
