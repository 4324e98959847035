//! What a file asks for expressly and this version does not do: refused, each with a sentence.
//!
//! A key whose value says what happens anyway passes. What is built later loses its line here.

use super::error::Fault;
use super::flows::{pair_key, pairs};
use super::keys::is_security;
use super::properties::{Entry, Properties};
use super::resolve::{Resolver, Side, not_boolean, parse_boolean, split_list};

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
    /// No value at all.
    Nothing,
}

/// A key at flow or top level, what passes, and what to say of anything else.
type Rule = (&'static str, Passes, &'static str);

const MIRROR: &str = "org.apache.kafka.connect.mirror.";
const CONVERTERS: &str = "org.apache.kafka.connect.converters.";
const OWN_CLASS: &str = "classes of one's own cannot be run here";
const BYTES_ONLY: &str = "records are copied as they are, never converted";

const ADMIN: Passes = Passes::Class("org.apache.kafka.clients.admin.", "ForwardingAdmin");

const RULES: &[Rule] = &[
    ("emit.heartbeats.enabled", Passes::False, "heartbeats are not built yet"),
    ("emit.checkpoints.enabled", Passes::False, "checkpoints are not built yet"),
    ("emit.offset-syncs.enabled", Passes::False, "offset syncs are not built yet"),
    ("offset-syncs.topic.location", Passes::Words(&["source"]), "offset syncs are not built yet"),
    ("sync.group.offsets.enabled", Passes::False, "syncing group offsets is not built yet"),
    ("sync.group.offsets.rewind", Passes::False, "syncing group offsets is not built yet"),
    ("sync.topic.acls.enabled", Passes::False, "syncing ACLs is not built yet"),
    ("sync.topic.acls.remove", Passes::False, "syncing ACLs is not built yet"),
    (
        "sync.topic.configs.enabled",
        Passes::False,
        "syncing topic configs while running is not built yet (they are copied when a topic is created)",
    ),
    ("topic.filter.class", Passes::Class(MIRROR, "DefaultTopicFilter"), OWN_CLASS),
    ("group.filter.class", Passes::Class(MIRROR, "DefaultGroupFilter"), OWN_CLASS),
    ("config.property.filter.class", Passes::Class(MIRROR, "DefaultConfigPropertyFilter"), OWN_CLASS),
    ("forwarding.admin.class", ADMIN, OWN_CLASS),
    ("key.converter", Passes::Class(CONVERTERS, "ByteArrayConverter"), BYTES_ONLY),
    ("value.converter", Passes::Class(CONVERTERS, "ByteArrayConverter"), BYTES_ONLY),
    ("header.converter", Passes::Class(CONVERTERS, "ByteArrayConverter"), BYTES_ONLY),
    ("transforms", Passes::Empty, "transforms are not supported: records are copied as they are"),
    ("predicates", Passes::Empty, "predicates are not supported: records are copied as they are"),
    ("errors.tolerance", Passes::Words(&["none"]), "a record is never skipped in silence"),
    ("exactly.once.support", Passes::Words(&["requested"]), TRANSACTIONS),
    ("config.providers", Passes::Empty, "config providers are not built yet"),
    ("exactly.once", Passes::Words(&["on"]), "running without exactly once is not built yet"),
    ("offsets.identical.topics", Passes::Empty, "equal offsets are not built yet"),
    ("on.loss", Passes::Words(&["hold"]), "going on after a loss is not built yet: the partition is held"),
    ("on.target.loss", Passes::Words(&["hold"]), "this is not built yet: the partition is held"),
    ("compression.type", Passes::Words(&["keep"]), "compressing anew is not built yet"),
    ("throttle", Passes::Nothing, "throttling is not built yet"),
    ("memory.max", Passes::Nothing, "a limit of one's own for memory is not built yet"),
    ("loops.allow", Passes::False, "this is not built yet"),
];

const TRANSACTIONS: &str = "transactions around mirrored records are not built yet; every record is copied exactly \
                            once without them";

/// Adds a fault for everything that is asked for and not done.
pub(super) fn check(resolver: &mut Resolver<'_>) {
    for rule in RULES {
        if let Some(entry) = resolver.find(rule.0)
            && let Some(fault) = judge(entry, &rule.1, rule.2)
        {
            resolver.fault(fault);
        }
    }
    check_worker(resolver);
    for side in [Side::Source, Side::Target] {
        check_clients(resolver, side);
    }
}

/// What MM2 does by default and we do not, as far as the file does not switch it off.
pub(super) fn not_yet(resolver: &Resolver<'_>) -> Vec<&'static str> {
    [
        ("emit.heartbeats.enabled", "heartbeats"),
        ("emit.offset-syncs.enabled", "offset syncs"),
        ("emit.checkpoints.enabled", "checkpoints of consumer groups"),
        ("sync.topic.configs.enabled", "changes of topic configs after creation"),
        ("sync.topic.acls.enabled", "ACLs of topics"),
    ]
    .into_iter()
    .filter(|(key, _)| resolver.find(key).and_then(|e| parse_boolean(&e.value)) != Some(false))
    .map(|(_, words)| words)
    .collect()
}

fn judge(entry: &Entry, passes: &Passes, sentence: &str) -> Option<Fault> {
    let value = entry.value.trim();
    let (passed, remedy) = match passes {
        Passes::False => match parse_boolean(value) {
            Some(asked) => (!asked, "write `false`, or remove the key".to_owned()),
            None => return Some(not_boolean(entry)),
        },
        Passes::Words(words) => (
            words.iter().any(|word| value.eq_ignore_ascii_case(word)),
            format!("write `{}`, or remove the key", words[0]),
        ),
        Passes::Class(package, class) => (
            value.strip_prefix(package).unwrap_or(value) == *class,
            format!("write `{package}{class}`, or remove the key"),
        ),
        Passes::Empty => (split_list(value).next().is_none(), "remove the key".to_owned()),
        Passes::Nothing => (false, "remove the key".to_owned()),
    };
    (!passed).then(|| Fault::of(entry, sentence).remedy(remedy))
}

/// MM2 writes heartbeats for a pair of clusters even where its flow is not enabled.
pub(super) fn heartbeats_of_pairs<'a>(
    properties: &'a Properties,
    clusters: &'a [String],
) -> impl Iterator<Item = Fault> + 'a {
    pairs(clusters).filter_map(|(source, target)| {
        let entry = properties.find(&pair_key(source, target, "emit.heartbeats.enabled"))?;
        let is_asked_for = parse_boolean(&entry.value) == Some(true);
        is_asked_for.then(|| {
            Fault::of(entry, "heartbeats are not built yet").remedy("write `false`, or remove the key")
        })
    })
}

fn check_worker(resolver: &mut Resolver<'_>) {
    let Some(entry) = resolver.find_of_worker("exactly.once.source.support") else { return };
    if let Some(fault) = judge(entry, &Passes::Words(&["disabled", "preparing"]), TRANSACTIONS) {
        resolver.fault(fault);
    }
}

/// Client settings of one side: security of any kind, and for the source where and what its reader reads.
fn check_clients(resolver: &mut Resolver<'_>, side: Side) {
    let protocol = resolver.find_of_cluster(side, "security.protocol");
    let of_flow = resolver.properties().find(&resolver.names().key("security.protocol"));
    for fault in [protocol, of_flow].into_iter().flatten().filter_map(judge_protocol) {
        resolver.fault(fault);
    }
    let mut security: Vec<&Entry> = Vec::new();
    for entry in resolver.properties().effective() {
        let (role, name) = client_setting(resolver, side, entry);
        let of_reader = side == Side::Source && !matches!(role, Some("producer" | "admin"));
        let fault = match name {
            "isolation.level" if of_reader => judge(
                entry,
                &Passes::Words(&["read_uncommitted"]),
                "reading committed records only is not built yet",
            ),
            "auto.offset.reset" if of_reader => judge(
                entry,
                &Passes::Words(&["earliest"]),
                "starting anywhere but at the beginning is not built yet",
            ),
            "forwarding.admin.class" => judge(entry, &ADMIN, OWN_CLASS),
            "security.protocol" if role.is_some() => judge_protocol(entry),
            _ => {
                security.extend(is_security(name).then_some(entry));
                None
            }
        };
        if let Some(fault) = fault {
            resolver.fault(fault);
        }
    }
    check_security(resolver, protocol, &security);
}

/// One fault or warning for all TLS and SASL settings of a side, however many there are.
fn check_security(resolver: &mut Resolver<'_>, protocol: Option<&Entry>, settings: &[&Entry]) {
    let Some(first) = settings.first() else { return };
    let more = match settings.len() {
        1 => String::new(),
        count => format!(" (and {} more such keys)", count - 1),
    };
    match protocol.map(|entry| entry.value.trim().eq_ignore_ascii_case("PLAINTEXT")) {
        // The protocol has its own fault, which says it all.
        Some(false) => {}
        Some(true) => {
            resolver.warn(first, format!("without effect because `security.protocol` is PLAINTEXT{more}"));
        }
        None => {
            let remedy = "remove it, or write `security.protocol = PLAINTEXT` if it is left over";
            resolver.fault(Fault::of(first, format!("TLS and SASL are not built yet{more}")).remedy(remedy));
        }
    }
}

fn judge_protocol(entry: &Entry) -> Option<Fault> {
    let protocol = entry.value.trim().to_ascii_uppercase();
    match protocol.as_str() {
        "PLAINTEXT" => None,
        "SSL" | "SASL_PLAINTEXT" | "SASL_SSL" => Some(
            Fault::of(entry, "TLS and SASL are not built yet")
                .remedy("only PLAINTEXT listeners can be reached"),
        ),
        _ => Some(Fault::of(entry, "not a security protocol").remedy("write `PLAINTEXT`")),
    }
}

/// The client role and bare name of a setting that reaches clients of `side`, whichever of the many ways it was
/// written in. Keys of anything else keep their prefix, so that no name of a setting comes out.
fn client_setting<'e>(resolver: &Resolver<'_>, side: Side, entry: &'e Entry) -> (Option<&'e str>, &'e str) {
    let names = resolver.names();
    let key = entry.key.as_str();
    let prefixes = [
        names.key(&format!("{}cluster.", side.prefix())),
        names.key(side.prefix()),
        names.key(""),
        format!("{}.", names.of(side)),
    ];
    let rest = prefixes.iter().find_map(|prefix| key.strip_prefix(prefix.as_str())).unwrap_or(key);
    let (role, name) = match rest.split_once('.') {
        Some((role @ ("consumer" | "producer" | "admin"), name)) => (Some(role), name),
        _ => (None, rest),
    };
    (role, name.strip_prefix("override.").unwrap_or(name))
}
