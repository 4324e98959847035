//! What a file asks for expressly and this version does not do: refused, each with a sentence.
//!
//! A key whose value says what happens anyway passes. What is built later loses its line here.

use std::collections::BTreeMap;

use super::error::Fault;
use super::flows::{pair_key, pairs};
use super::form::Form;
use super::keys::{self, Role, Scope, is_client_base, is_security};
use super::properties::{Entry, Properties};
use super::resolve::{Resolver, not_boolean, parse_boolean, split_list};
use super::settings::{Settings, Side};
use super::warning::Warning;

/// Values that say what this version does anyway.
enum Passes {
    /// `false`; `true` is refused, anything else is no boolean.
    False,
    /// One of these words, in any case.
    Words(&'static [&'static str]),
    /// This class, with its package or by its own name.
    Class(&'static str, &'static str),
    /// An empty list.
    Empty,
}

/// Who defines a key, the key, what passes, and what to say of anything else.
type Rule = (Scope, &'static str, Passes, &'static str);

const MIRROR: &str = "org.apache.kafka.connect.mirror.";
const CONVERTERS: &str = "org.apache.kafka.connect.converters.";
const OWN_CLASS: &str = "classes of one's own cannot be run here";
const BYTES_ONLY: &str = "records are copied as they are, never converted";

const ADMIN: Passes = Passes::Class("org.apache.kafka.clients.admin.", "ForwardingAdmin");

const RULES: &[Rule] = &[
    (Scope::Connector, "emit.heartbeats.enabled", Passes::False, "heartbeats are not built yet"),
    (Scope::Connector, "emit.checkpoints.enabled", Passes::False, "checkpoints are not built yet"),
    (Scope::Connector, "emit.offset-syncs.enabled", Passes::False, "offset syncs are not built yet"),
    (
        Scope::Connector,
        "offset-syncs.topic.location",
        Passes::Words(&["source"]),
        "offset syncs are not built yet",
    ),
    (Scope::Connector, "sync.group.offsets.enabled", Passes::False, "syncing group offsets is not built yet"),
    (Scope::Connector, "sync.group.offsets.rewind", Passes::False, "syncing group offsets is not built yet"),
    (Scope::Connector, "sync.topic.acls.enabled", Passes::False, "syncing ACLs is not built yet"),
    (Scope::Connector, "sync.topic.acls.remove", Passes::False, "syncing ACLs is not built yet"),
    (Scope::Connector, "topic.filter.class", Passes::Class(MIRROR, "DefaultTopicFilter"), OWN_CLASS),
    (Scope::Connector, "group.filter.class", Passes::Class(MIRROR, "DefaultGroupFilter"), OWN_CLASS),
    (
        Scope::Connector,
        "config.property.filter.class",
        Passes::Class(MIRROR, "DefaultConfigPropertyFilter"),
        OWN_CLASS,
    ),
    (Scope::Connector, "forwarding.admin.class", ADMIN, OWN_CLASS),
    (Scope::Connector, "key.converter", Passes::Class(CONVERTERS, "ByteArrayConverter"), BYTES_ONLY),
    (Scope::Connector, "value.converter", Passes::Class(CONVERTERS, "ByteArrayConverter"), BYTES_ONLY),
    (Scope::Connector, "header.converter", Passes::Class(CONVERTERS, "ByteArrayConverter"), BYTES_ONLY),
    (Scope::Worker, "key.converter", Passes::Class(CONVERTERS, "ByteArrayConverter"), BYTES_ONLY),
    (Scope::Worker, "value.converter", Passes::Class(CONVERTERS, "ByteArrayConverter"), BYTES_ONLY),
    (Scope::Worker, "header.converter", Passes::Class(CONVERTERS, "ByteArrayConverter"), BYTES_ONLY),
    (
        Scope::Connector,
        "transforms",
        Passes::Empty,
        "transforms are not supported: records are copied as they are",
    ),
    (
        Scope::Connector,
        "predicates",
        Passes::Empty,
        "predicates are not supported: records are copied as they are",
    ),
    (
        Scope::Connector,
        "exactly.once",
        Passes::Words(&["on"]),
        "running without exactly once is not built yet",
    ),
    (Scope::Connector, "offsets.identical.topics", Passes::Empty, "equal offsets are not built yet"),
    (CONSUMER, "interceptor.classes", Passes::Empty, INTERCEPTORS),
    (PRODUCER, "interceptor.classes", Passes::Empty, INTERCEPTORS),
];

const CONSUMER: Scope = Scope::Client(Role::Consumer);
const PRODUCER: Scope = Scope::Client(Role::Producer);
const INTERCEPTORS: &str = "interceptors are not supported: records are copied as they are";
const SECURITY: &str = "TLS and SASL are not built yet";

/// What is said of a value of this key that does not pass; none for a key that has no rule.
pub(super) fn sentence(scope: Scope, name: &str) -> Option<&'static str> {
    RULES.iter().find(|rule| rule.0 == scope && rule.1 == name).map(|rule| rule.3)
}

/// What passes, in words, where [`sentence`] has one.
pub(super) fn passing(scope: Scope, name: &str) -> Option<String> {
    let (.., passes, _) = RULES.iter().find(|rule| rule.0 == scope && rule.1 == name)?;
    Some(match passes {
        Passes::False => "`false`".to_owned(),
        Passes::Words(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or "),
        Passes::Class(_, class) => format!("`{class}`"),
        Passes::Empty => "empty".to_owned(),
    })
}

/// Why this version would turn a value away, of a key by its name in a file, without its clusters: for advice, which must not
/// lead to what is refused then. None where it passes.
pub(super) fn turned_away(name: &str, value: &str) -> Option<&'static str> {
    let of_side = ["source.", "target."].into_iter().find_map(|side| name.strip_prefix(side));
    let of_side = of_side.map(|name| name.strip_prefix("cluster.").unwrap_or(name));
    let name = of_side.unwrap_or(name);
    let of_client =
        Role::strip(name).map(|(role, name)| (role, name.strip_prefix("override.").unwrap_or(name)));
    let name = of_client.map_or(name, |(_, name)| name);
    if is_client_base(name) {
        let is_plain = name == "bootstrap.servers"
            || name == "security.protocol" && value.trim().eq_ignore_ascii_case("PLAINTEXT");
        return (!is_plain).then_some(SECURITY);
    }
    let is_meant =
        |rule: &&Rule| rule.1 == name && of_client.is_none_or(|(role, _)| rule.0 == Scope::Client(role));
    let (.., passes, sentence) = RULES.iter().find(is_meant)?;
    (!passed(value, passes).unwrap_or(false)).then_some(sentence)
}

/// Adds a fault for everything that is asked for and not done.
pub(super) fn check(resolver: &mut Resolver<'_>) {
    let reader = resolver.connectors().of_client(Side::Source, Role::Consumer);
    let writer = resolver.connectors().of_data_producer(resolver.worker());
    for (scope, name, passes, sentence) in RULES {
        let entry = match scope {
            Scope::Connector => resolver.find(name),
            Scope::Process => resolver.properties().find(name),
            // A converter of the connectors' own overrules the worker's.
            Scope::Worker if keys::definition(Scope::Connector, name).is_some() => {
                if resolver.find(name).is_some() { None } else { resolver.worker().get(name) }
            }
            Scope::Worker => resolver.worker().get(name),
            Scope::Client(Role::Producer) => writer.get(name),
            Scope::Client(_) => reader.get(name),
        };
        // What MM2 does not take either is told with its types.
        let is_taken = |entry: &&Entry| keys::allowed(*scope, name).is_none_or(|it| it.takes(&entry.value));
        let entry = entry.filter(is_taken);
        if let Some(fault) = entry.and_then(|entry| judge(entry, passes, sentence)) {
            resolver.fault(fault);
        }
    }
    for side in Side::ALL {
        check_side(resolver, side);
    }
}

/// What MM2 does by default and we do not, as far as the file does not switch it off.
pub(super) fn not_yet(resolver: &Resolver<'_>) -> Vec<&'static str> {
    [
        ("emit.heartbeats.enabled", "heartbeats"),
        ("emit.offset-syncs.enabled", "offset syncs"),
        ("emit.checkpoints.enabled", "checkpoints of consumer groups"),
        ("sync.topic.acls.enabled", "ACLs of topics"),
    ]
    .into_iter()
    .filter(|(key, _)| resolver.find(key).and_then(|e| parse_boolean(&e.value)) != Some(false))
    .map(|(_, words)| words)
    .collect()
}

fn judge(entry: &Entry, passes: &Passes, sentence: &str) -> Option<Fault> {
    let Some(passed) = passed(&entry.value, passes) else {
        let fault = not_boolean(entry);
        // `true` would be refused next.
        return Some(fault.remedy("write `false`, or remove the key"));
    };
    let remedy = match passes {
        Passes::False => "write `false`, or remove the key".to_owned(),
        Passes::Words(words) => format!("write `{}`, or remove the key", words[0]),
        Passes::Class(package, class) => format!("write `{package}{class}`, or remove the key"),
        Passes::Empty => "remove the key".to_owned(),
    };
    (!passed).then(|| Fault::of(entry, sentence).remedy(remedy))
}

/// Whether a value says what happens anyway; none for what is no boolean where one is wanted.
fn passed(value: &str, passes: &Passes) -> Option<bool> {
    let value = value.trim();
    Some(match passes {
        Passes::False => !parse_boolean(value)?,
        Passes::Words(words) => words.iter().any(|word| value.eq_ignore_ascii_case(word)),
        Passes::Class(package, class) => value.strip_prefix(package).unwrap_or(value) == *class,
        Passes::Empty => split_list(value).next().is_none(),
    })
}

/// MM2 writes heartbeats for a pair of clusters even where its flow is not enabled. Each fault with the target of its pair.
pub(super) fn heartbeats_of_pairs<'a>(
    properties: &'a Properties,
    clusters: &'a [String],
) -> impl Iterator<Item = (Fault, &'a str)> {
    pairs(clusters).filter_map(|(source, target)| {
        let entry = properties.find(&pair_key(source, target, "emit.heartbeats.enabled"))?;
        let is_asked_for = parse_boolean(&entry.value) == Some(true);
        is_asked_for.then(|| {
            let fault = Fault::of(entry, "heartbeats are not built yet");
            (fault.remedy("write `false`, or remove the key"), target)
        })
    })
}

/// Security of any kind, in whichever of a side's clients.
fn check_side(resolver: &mut Resolver<'_>, side: Side) {
    let protocol = resolver.find_of_cluster(side, "security.protocol");
    let mut clients: Vec<Settings<'_>> =
        Role::ALL.into_iter().map(|role| resolver.connectors().of_client(side, role)).collect();
    if side == Side::Target {
        clients.push(resolver.connectors().of_data_producer(resolver.worker()));
    }
    let protocols = clients.iter().filter_map(|client| client.get("security.protocol"));
    let of_flow = resolver.find("security.protocol");
    let address = resolver.find_of_cluster(side, "bootstrap.servers");
    let is_other = |entry: &&Entry| address.is_none_or(|address| address.value.trim() != entry.value.trim());
    let addresses: Vec<&Entry> =
        clients.iter().filter_map(|client| client.get("bootstrap.servers")).filter(is_other).collect();
    let faults: Vec<Fault> = protocols.chain(protocol).chain(of_flow).filter_map(judge_protocol).collect();
    let admin = resolver.find_of_cluster(side, "forwarding.admin.class");
    let admin = admin.and_then(|entry| judge(entry, &ADMIN, OWN_CLASS));
    faults.into_iter().chain(admin).for_each(|fault| resolver.fault(fault));
    for entry in addresses {
        let reason = "one client of a cluster cannot be sent elsewhere than the others";
        let remedy =
            format!("write the address once, as `{}`", resolver.cluster_key(side, "bootstrap.servers"));
        resolver.fault(Fault::of(entry, reason).remedy(remedy));
    }
    let of_clients = clients.iter().flat_map(Settings::iter).chain(resolver.connectors().iter());
    let security = of_clients.filter(|(name, _)| is_security(name)).map(|(_, entry)| entry);
    let security: BTreeMap<usize, &Entry> = security.map(|entry| (entry.line, entry)).collect();
    check_security(resolver, side, protocol, &security.into_values().collect::<Vec<_>>());
}

/// One fault or warning for all TLS and SASL settings of a side, however many there are.
fn check_security(resolver: &mut Resolver<'_>, side: Side, protocol: Option<&Entry>, settings: &[&Entry]) {
    let Some((first, others)) = settings.split_first() else { return };
    match protocol.map(|entry| entry.value.trim().eq_ignore_ascii_case("PLAINTEXT")) {
        // The protocol has its own fault, which says it all.
        Some(false) => {}
        Some(true) => {
            let text = "without effect because `security.protocol` is PLAINTEXT";
            resolver.warn_of(Warning::of(first, text).others(others));
        }
        None => {
            let is_of_all = resolver.form() == Form::Properties && is_client_base(&first.key);
            let key = "security.protocol".to_owned();
            let key = if is_of_all { key } else { resolver.cluster_key(side, &key) };
            let plaintext = resolver.form().setting(&key, "PLAINTEXT");
            let remedy = match others {
                [] => format!("remove it, or write {plaintext} if it is left over"),
                _ => format!("remove them, or write {plaintext} if they are left over"),
            };
            resolver.fault(Fault::of(first, SECURITY).others(others).remedy(remedy));
        }
    }
}

fn judge_protocol(entry: &Entry) -> Option<Fault> {
    let protocol = entry.value.trim().to_ascii_uppercase();
    match protocol.as_str() {
        "PLAINTEXT" => None,
        "SSL" | "SASL_PLAINTEXT" | "SASL_SSL" => Some(
            Fault::of(entry, SECURITY).remedy(
                "write `PLAINTEXT` and the address of a PLAINTEXT listener; a cluster without one cannot be reached",
            ),
        ),
        _ => Some(Fault::of(entry, "not a security protocol").remedy("write `PLAINTEXT`")),
    }
}
