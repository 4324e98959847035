//! Values that cannot be what was meant: of the wrong type, or with something in them that the file's format put there.

use super::error::Fault;
use super::form::Form;
use super::keys::{self, Kind, Meaning, Role, Scope, Use};
use super::properties::{Entry, Properties};
use super::resolve::{Resolver, not_boolean, parse_boolean, parse_integer};
use super::settings::Side;
use super::warning::Warning;

/// What `ConfigDef` would refuse, of the keys that nothing else reads: MM2 does not start with them.
pub(super) fn check_types(resolver: &mut Resolver<'_>) {
    let connectors = resolver.connectors();
    let mut faults: Vec<Fault> = connectors
        .iter()
        .filter(|(name, _)| keys::meaning(Scope::Connector, name).usage != Use::Honoured)
        .filter_map(|(name, entry)| judge(Scope::Connector, name, entry))
        .collect();
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

fn judge(scope: Scope, name: &str, entry: &Entry) -> Option<Fault> {
    let Meaning { usage, .. } = keys::meaning(scope, name);
    // Keys that are honoured are read as types; of refused ones a sentence of their own tells the types.
    if usage == Use::Honoured {
        return None;
    }
    let kind = keys::definition(scope, name)?.kind;
    let of_type = if usage == Use::Refused { None } else { judge_type(kind, entry) };
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

/// What the form has put into values: notes, quotes, control characters.
pub(super) fn odd(properties: &Properties) -> impl Iterator<Item = Warning> {
    properties.effective().filter_map(|entry| oddity(entry, properties.form()))
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
    let is_odd = |c: &char| c.is_control() && !matches!(c, '\n' | '\t');
    if let Some(control) = value.chars().find(is_odd) {
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
