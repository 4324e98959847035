//! Values that cannot be what was meant: of the wrong type, or with something in them that the file's format put there.

use super::error::Fault;
use super::form::Form;
use super::keys::{self, Kind, Meaning, Reading, Role, Scope, Use};
use super::notices;
use super::properties::{Entry, Properties};
use super::resolve::{Resolver, not_boolean, parse_boolean, parse_integer};
use super::secret::is_hidden;
use super::settings::Side;
use super::warning::Warning;

/// What `ConfigDef` would refuse, of the keys that nothing else reads: MM2 does not start with them.
pub(super) fn check_types(resolver: &mut Resolver<'_>) {
    let connectors = resolver.connectors();
    let mut faults: Vec<Fault> =
        connectors.iter().filter_map(|(name, entry)| judge(Scope::Connector, name, entry)).collect();
    let of_worker = resolver.worker().iter();
    faults.extend(of_worker.filter_map(|(name, entry)| judge(Scope::Worker, name, entry)));
    // The consumer at the target and the producer at the source are those of checkpoints and of offset syncs.
    let mut clients = Vec::new();
    for side in Side::ALL {
        clients.extend(Role::ALL.map(|role| (role, connectors.of_client(side, role))));
    }
    clients.push((Role::Producer, connectors.of_data_producer(resolver.worker())));
    for (role, settings) in &clients {
        let of_client = settings.iter();
        faults.extend(of_client.filter_map(|(name, entry)| judge(Scope::Client(*role), name, entry)));
    }
    faults.into_iter().for_each(|fault| resolver.fault(fault));
}

/// The same of the keys that count for the whole process.
pub(super) fn check_process(properties: &Properties) -> impl Iterator<Item = Fault> {
    keys::names(Scope::Process)
        .filter_map(|name| properties.find(name))
        .filter_map(|entry| judge(Scope::Process, &entry.key, entry))
}

/// Keys that are honoured and take one of the words that MM2 takes.
const WORDS: [&str; 4] =
    ["errors.tolerance", "exactly.once.source.support", "exactly.once.support", "isolation.level"];

fn judge(scope: Scope, name: &str, entry: &Entry) -> Option<Fault> {
    let Meaning { usage, .. } = keys::meaning(scope, name);
    // Keys that are honoured are read as types; of refused ones a sentence of their own tells the types.
    if usage == Use::Honoured && !WORDS.contains(&name) {
        return None;
    }
    let kind = keys::definition(scope, name)?.kind;
    let of_type = if usage == Use::NotNeeded || usage == Use::Later { judge_type(kind, entry) } else { None };
    of_type.or_else(|| {
        let allowed = keys::allowed(scope, name).filter(|allowed| !allowed.takes(&entry.value))?;
        let reason = format!("not {allowed}, so MM2 would not start");
        Some(Fault::of(entry, reason).remedy("write such a value, or remove the key"))
    })
}

fn judge_type(kind: Kind, entry: &Entry) -> Option<Fault> {
    let value = entry.value.trim();
    let integer =
        |min: i64, max: i64| parse_integer(value).is_some_and(|number| (min..=max).contains(&number));
    let what = match kind {
        Kind::Boolean => return parse_boolean(value).is_none().then(|| not_boolean(entry)),
        Kind::Short if !integer(i16::MIN.into(), i16::MAX.into()) => "a whole number from -32768 to 32767",
        Kind::Int if !integer(i32::MIN.into(), i32::MAX.into()) => "a whole number of 32 bits",
        Kind::Long if !integer(i64::MIN, i64::MAX) => "a whole number of 64 bits",
        Kind::Double if value.parse::<f64>().is_err() => "a number",
        Kind::Short | Kind::Int | Kind::Long | Kind::Double => return None,
        Kind::List | Kind::Class | Kind::String | Kind::Password => return None,
    };
    let reason = format!("not {what}, so MM2 would not start");
    Some(Fault::of(entry, reason).remedy("write the number alone, or remove the key"))
}

/// What the form has put into values: notes, quotes, control characters, an end.
pub(super) fn odd(properties: &Properties) -> impl Iterator<Item = Warning> {
    let odd = properties.effective().filter_map(|entry| oddity(entry, properties.form()));
    let odd = odd.chain(properties.swallowing().map(|(entry, line)| {
        let text = format!("{MADE} {line} a part of the value");
        Warning::of(entry, text).remedy(SWALLOWED)
    }));
    odd.chain(properties.broken_off().map(|entry| {
        Warning::of(entry, format!("{BLANK}, so the value does not go on in the next line"))
            .remedy(BROKEN_OFF)
    }))
}

/// How it is told that a value goes on in a line that has a key of its own.
const MADE: &str = "the `\\` before it has made line";

/// What to do then.
const SWALLOWED: &str = "remove that `\\`";

/// How it is told that a value does not go on in the next line.
const BLANK: &str = "a blank stands behind the last `\\`";

/// What to do then.
const BROKEN_OFF: &str = "remove the blank";

/// Whether it tells of the text that the entries were cut out of, rather than of the entries.
pub(super) fn is_of_the_text(warning: &Warning) -> bool {
    [SWALLOWED, BROKEN_OFF, BACKSLASH].contains(&&*warning.remedy)
}

/// What a fault's remedy says of the entries, without what it says of the text that they were cut out of.
pub(super) fn of_the_entries(remedy: &str) -> &str {
    let said = [MADE, BLANK].iter().filter_map(|text| remedy.find(&format!("; {text}")));
    said.min().map_or(remedy, |end| &remedy[..end])
}

/// What to do where a backslash was lost.
const BACKSLASH: &str = "write `\\\\` for a backslash";

/// Values out of which the reader took a backslash that was probably meant, of keys that somebody knows: under others a
/// secret may stand, and nothing reads them. Not where [`odd`] tells of it.
pub(super) fn lost_backslashes(properties: &Properties, clusters: &[String]) -> Vec<Warning> {
    let is_known = |entry: &Entry| !matches!(notices::best(&entry.key, clusters).2, Reading::Unknown);
    let is_told = |entry: &Entry| !super::is_secret_key(&entry.key) && odd_control(entry.typed()).is_some();
    let lost = properties.lost_backslashes().filter(|(entry, _)| is_known(entry) && !is_told(entry));
    lost.map(|(entry, behind)| {
        let value = entry.typed();
        let text = if is_hidden(&entry.key, value) {
            "a backslash is dropped from the value, as by MM2".to_owned()
        } else {
            let escapes = [('\n', "\\n"), ('\t', "\\t")].into_iter().filter(|(c, _)| value.contains(*c));
            let escapes: String =
                escapes.map(|(_, name)| format!(", in which `{name}` is one character")).collect();
            format!(
                "the backslash before `{behind}` is dropped, as by MM2, so the value is `{value}`{escapes}"
            )
        };
        Warning::of(entry, text).remedy(BACKSLASH)
    })
    .collect()
}

fn odd_control(value: &str) -> Option<char> {
    value.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Connect drops blanks around a class name; a JSON text may hold some before it.
pub(super) fn blanks_before_classes(settings: &Properties) -> impl Iterator<Item = Warning> {
    let is_class =
        |name: &str| keys::definition(Scope::Connector, name).is_some_and(|known| known.kind == Kind::Class);
    let odd =
        settings.effective().filter(move |entry| is_class(&entry.key) && entry.value != entry.value.trim());
    odd.map(|entry| Warning::of(entry, "the blank beside the class name is dropped"))
}

/// The same of one entry.
pub(super) fn oddity(entry: &Entry, form: Form) -> Option<Warning> {
    let value = entry.typed();
    // Passwords and JAAS lines may hold anything.
    if super::is_secret_key(&entry.key) {
        return None;
    }
    if let Some(control) = odd_control(value) {
        let text = format!("holds a control character (`{}`)", control.escape_default());
        return Some(Warning::of(entry, text).remedy(form.of_backslashes()));
    }
    // Nobody writes notes into JSON in this way.
    if form == Form::Connector {
        return quoted(entry, value);
    }
    if value.contains(" #") || value.contains("\t#") || value.starts_with('#') {
        let text = "holds a `#` note, which is part of the value";
        return Some(Warning::of(entry, text).remedy("notes stand on lines of their own"));
    }
    quoted(entry, value)
}

fn quoted(entry: &Entry, value: &str) -> Option<Warning> {
    let value = value.trim();
    let is_quoted =
        value.len() > 1 && ['"', '\''].into_iter().any(|q| value.starts_with(q) && value.ends_with(q));
    is_quoted.then(|| Warning::of(entry, "the quotes are part of the value").remedy("remove them"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MirrorConfig;

    fn oddities(value: &str) -> Vec<String> {
        let properties = Properties::parse(format!("topics={value}\n").as_bytes()).unwrap();
        odd(&properties).map(|warning| warning.to_string()).collect()
    }

    #[test]
    fn what_the_format_puts_into_values_is_seen() {
        for (value, sentence) in [
            (".*   # everything", "`#` note"),
            ("#all", "`#` note"),
            ("\"a,b\"", "quotes"),
            ("'a'", "quotes"),
            (".*\\replica", "control character (`\\r`)"),
        ] {
            let found = oddities(value);
            assert_eq!(found.len(), 1, "{value}");
            assert!(found[0].contains(sentence), "{value}: {found:?}");
        }
        for value in ["orders#1", "a\"b", "\"", ".*\\\\.x", "a\\tb", ""] {
            assert_eq!(oddities(value), [""; 0], "{value}");
        }
    }

    #[test]
    fn a_backslash_that_is_lost_is_told_with_what_the_value_became() {
        let clusters = ["a".to_owned(), "b".to_owned()];
        let told = |line: &str| {
            let properties = Properties::parse(line.as_bytes()).unwrap();
            let warnings = lost_backslashes(&properties, &clusters);
            warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        const FILES: &str = "config.providers.file.param.allowed.paths";
        for (line, text) in [
            (
                r"topics=orders\.eu".to_owned(),
                r"`topics`: the backslash before `.` is dropped, as by MM2, so the value is `orders.eu`",
            ),
            (
                r"a->b.topics=\d+, x\-y".to_owned(),
                "`a->b.topics`: the backslash before `d` is dropped, as by MM2, so the value is `d+, x-y`",
            ),
            (
                format!(r"{FILES}=C:\kafka\new"),
                r"`config.providers.file.param.allowed.paths`: the backslash before `k` is dropped, as by MM2, so the value is `C:kafka\new`, in which `\n` is one character",
            ),
            (
                r"a.ssl.key.password=pass\word".to_owned(),
                "`a.ssl.key.password`: a backslash is dropped from the value, as by MM2",
            ),
        ] {
            assert_eq!(told(&line), [format!(r"line 1: {text}: write `\\` for a backslash")]);
        }
        for line in [
            r"topics=orders\\.eu, a\\\\b",
            r"a.bootstrap.servers=PLAINTEXT\://a\:1",
            r"topics=a\=b\ c\#d\!e\u002ef\tg",
            "topics=a,\\\n  b",
            r#"a.sasl.jaas.config=x password=\"y\";"#,
            r"topics=.*\.x, .*\replica",
            r"a.ssl.key.pasword=pass\word",
            "topics=\\.a\ntopics=a",
            r"to\pics=a",
        ] {
            assert_eq!(told(line), [""; 0], "{line}");
        }
        const BASE: &str =
            "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n";
        let errors =
            MirrorConfig::from_properties(format!(r"{BASE}topics=\p{{L}}+(").as_bytes()).unwrap_err();
        assert!(errors.warnings().is_empty() && errors.to_string().contains("backslash is written twice"));
        let errors =
            MirrorConfig::from_properties(format!(r"{BASE}replication.factor=\x").as_bytes()).unwrap_err();
        assert_eq!(errors.warnings().len(), 1);
    }

    #[test]
    fn what_mm2_would_not_take_is_refused_whoever_reads_it() {
        const BASE: &str =
            "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n";
        for (line, words) in [
            ("offset-syncs.topic.location=sauce", "not `source` or `target`"),
            ("offset-syncs.topic.location=SOURCE", "not `source` or `target`"),
            ("b.exactly.once.source.support=on", "not `disabled`, `enabled` or `preparing`"),
            ("a.consumer.isolation.level=committed", "not `read_committed` or `read_uncommitted`"),
            ("a.consumer.auto.offset.reset=begin", "not a position to start at"),
            ("a.security.protocol=TLS", "not a security protocol"),
            ("b.producer.compression.type=zip", "not `none`, `gzip`, `snappy`, `lz4` or `zstd`"),
            ("b.producer.acks=2", "not `all`, `-1`, `0` or `1`"),
            ("a.producer.acks=2", "not `all`, `-1`, `0` or `1`"),
            ("b.consumer.max.poll.records=0", "not a number from 1"),
            ("a->b.consumer.fetch.min.bytes=-1", "not a number from 0"),
            ("errors.tolerance=some", "not `none` or `all`"),
            ("a->b.exactly.once.support=always", "not `requested` or `required`"),
            ("config.action.reload=RESTART", "not `none` or `restart`"),
            ("metric.names.formats=classic", "not `legacy` or `new`"),
            ("ssl.client.auth=yes", "not `required`, `requested` or `none`"),
            ("dedicated.mode.enable.internal.rest=yes", "neither `true` nor `false`"),
            ("tasks.max=0", "not a number from 1"),
            ("tasks.max=x", "not a whole number of 32 bits"),
        ] {
            let error = MirrorConfig::from_properties(format!("{BASE}{line}").as_bytes()).unwrap_err();
            assert_eq!(error.faults().len(), 1, "{line}: {error}");
            assert!(error.faults()[0].reason.starts_with(words), "{line}: {error}");
        }
    }

    #[test]
    fn secrets_may_hold_anything() {
        let properties =
            Properties::parse(b"ssl.key.password=\"x # y\"\na.sasl.jaas.config=p='a #1!';").unwrap();
        assert_eq!(odd(&properties).count(), 0);
    }
}
