//! The effective value of every option of a flow and of its clients, with the key and line that it came from.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::Origin;
use super::flow::REFRESH_TOPICS_SECONDS_MAX;
use super::keys::{self, Meaning, Role, Scope, Use};
use super::properties::Entry;
use super::resolve::Resolver;
use super::settings::{Settings, Side};

/// Names of before Kafka 2.7 by their present ones.
const OLD_NAMES: [(&str, &str); 3] = [
    ("config.properties.exclude", "config.properties.blacklist"),
    ("groups.exclude", "groups.blacklist"),
    ("topics.exclude", "topics.blacklist"),
];

/// What a flow and its clients get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowOptions {
    /// The flow's name, such as `west->east`.
    pub flow: String,
    /// What the flow does: every option that twinlog honours, and whatever else was written for it.
    pub options: Vec<EffectiveOption>,
    /// The clients that MM2 would have, each with what was written for it.
    pub clients: Vec<ClientOptions>,
}

/// What a client gets beyond its defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Which client, in words.
    pub client: &'static str,
    /// Its settings by name.
    pub options: Vec<EffectiveOption>,
}

/// An option and the value that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveOption {
    /// Its name without any prefix of a cluster or flow.
    pub name: String,
    /// Its value, the whole of it, masked where it is secret.
    pub value: Arc<str>,
    /// Where it was written; none for a default.
    pub origin: Option<Origin>,
    /// What twinlog goes by instead, where that is not the value.
    pub taken_as: Option<TakenAs>,
    /// Why it does nothing here, where it does nothing.
    pub without_effect: Option<&'static str>,
}

/// What twinlog goes by instead of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenAs {
    /// The value that counts.
    pub value: String,
    /// Why, as the end of a sentence.
    pub why: String,
}

/// What is shown of each entry, made once: a thousand flows may read one long value.
#[derive(Debug, Default)]
pub(super) struct Shown<'p> {
    values: HashMap<&'p str, Arc<str>>,
}

impl<'p> Shown<'p> {
    fn of(&mut self, entry: &'p Entry) -> Arc<str> {
        self.values.entry(entry.key.as_str()).or_insert_with(|| entry.shown().into()).clone()
    }
}

/// Every option of a flow.
pub(super) fn of_flow<'p>(resolver: &Resolver<'p>, shown: &mut Shown<'p>) -> FlowOptions {
    let mut options = Vec::new();
    for side in Side::ALL {
        let name = format!("{}cluster.bootstrap.servers", side.prefix());
        options.extend(
            resolver
                .find(&name)
                .map(|entry| written(Scope::Connector, "bootstrap.servers", &name, entry, shown)),
        );
    }
    let is_old = |name: &str| OLD_NAMES.iter().any(|(_, old)| *old == name);
    options.extend(keys::names(Scope::Connector).filter(|name| !is_old(name)).filter_map(|name| {
        let old =
            OLD_NAMES.iter().find(|(present, _)| *present == name).and_then(|(_, old)| resolver.find(old));
        match resolver.find(name).or(old) {
            Some(entry) => Some(written(Scope::Connector, name, name, entry, shown)),
            None => default(resolver, name),
        }
    }));
    FlowOptions { flow: resolver.names().flow(), options, clients: clients(resolver, shown) }
}

/// The default of an option that is honoured; the others have none that would tell anything.
fn default(resolver: &Resolver<'_>, name: &str) -> Option<EffectiveOption> {
    // Providers are the file's, not the flow's.
    if name == "config.providers" || keys::meaning(Scope::Connector, name).usage != Use::Honoured {
        return None;
    }
    let alias = Side::ALL.into_iter().find(|side| side.alias_key() == name);
    let value = match alias {
        Some(side) => resolver.names().of(side),
        None => keys::definition(Scope::Connector, name)?.default?,
    };
    let value = value.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(value);
    Some(EffectiveOption {
        name: name.to_owned(),
        value: value.into(),
        origin: None,
        taken_as: taken_as(name, value),
        without_effect: None,
    })
}

fn clients<'p>(resolver: &Resolver<'p>, shown: &mut Shown<'p>) -> Vec<ClientOptions> {
    let of = |side, role| (Scope::Client(role), resolver.connectors().of_client(side, role));
    let clients = [
        ("consumer of records at the source", of(Side::Source, Role::Consumer)),
        ("admin client at the source", of(Side::Source, Role::Admin)),
        ("admin client at the target", of(Side::Target, Role::Admin)),
        (
            "producer of records at the target",
            (Scope::Client(Role::Producer), resolver.connectors().of_data_producer(resolver.worker())),
        ),
        ("producer of offset syncs", offset_syncs(resolver)),
        ("Connect worker beside the target", (Scope::Worker, resolver.worker().clone())),
    ];
    clients
        .into_iter()
        .map(|(client, (scope, settings))| ClientOptions { client, options: own(scope, &settings, shown) })
        .collect()
}

/// They lie at the source unless `offset-syncs.topic.location` says otherwise.
fn offset_syncs<'p>(resolver: &Resolver<'p>) -> (Scope, Settings<'p>) {
    let location = resolver.find("offset-syncs.topic.location");
    let is_at_target = location.is_some_and(|entry| entry.value.trim() == "target");
    let side = if is_at_target { Side::Target } else { Side::Source };
    (Scope::Client(Role::Producer), resolver.connectors().of_client(side, Role::Producer))
}

fn own<'p>(scope: Scope, settings: &Settings<'p>, shown: &mut Shown<'p>) -> Vec<EffectiveOption> {
    // The addresses are the flow's; a worker that does not run needs no login.
    let is_known = |name: &str| match (scope, name) {
        (_, "bootstrap.servers") => false,
        (Scope::Worker, _) => keys::definition(scope, name).is_some() && !keys::is_client_base(name),
        _ => keys::definition(scope, name).is_some() || keys::is_client_base(name),
    };
    settings
        .iter()
        .filter(|(name, _)| is_known(name))
        .map(|(name, entry)| written(scope, name, name, entry, shown))
        .collect()
}

fn written<'p>(
    scope: Scope,
    known_as: &str,
    name: &str,
    entry: &'p Entry,
    shown: &mut Shown<'p>,
) -> EffectiveOption {
    let Meaning { usage, note } = keys::meaning(scope, known_as);
    EffectiveOption {
        name: name.to_owned(),
        value: shown.of(entry),
        taken_as: taken_as(name, entry.value.trim()),
        origin: Some(entry.origin()),
        without_effect: matches!(usage, Use::NotNeeded | Use::Later).then_some(note),
    }
}

fn taken_as(name: &str, value: &str) -> Option<TakenAs> {
    let is_interval = name == "refresh.topics.interval.seconds";
    let longer = value.parse::<u64>().is_ok_and(|seconds| seconds > REFRESH_TOPICS_SECONDS_MAX);
    (is_interval && longer).then(|| TakenAs {
        value: REFRESH_TOPICS_SECONDS_MAX.to_string(),
        why: format!("new topics and partitions are seen within {REFRESH_TOPICS_SECONDS_MAX} s at most"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Inspection;
    use super::super::providers::Surroundings;
    use super::*;

    const BASE: &str =
        "clusters=us,eu\nus.bootstrap.servers=u:1\neu.bootstrap.servers=e:1\nus->eu.enabled=true\n";

    fn options(more: &str) -> FlowOptions {
        let inspection = Inspection::of_file(format!("{BASE}{more}").as_bytes(), Surroundings::process());
        inspection.options()[0].clone()
    }

    fn find<'o>(options: &'o [EffectiveOption], name: &str) -> &'o EffectiveOption {
        options.iter().find(|option| option.name == name).unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn each_option_has_its_value_and_its_place() {
        let flow = options("topics=a\nus->eu.topics=b, c\ntopics.blacklist=d\ntasks.max=3\n");
        assert_eq!(flow.flow, "us->eu");
        let topics = find(&flow.options, "topics");
        assert_eq!((&*topics.value, topics.origin.as_ref().unwrap().line), ("b, c", 6));
        assert_eq!(&*find(&flow.options, "topics.exclude").value, "d");
        let factor = find(&flow.options, "replication.factor");
        assert_eq!((&*factor.value, &factor.origin), ("2", &None));
        assert_eq!(&*find(&flow.options, "source.cluster.alias").value, "us");
        assert!(find(&flow.options, "tasks.max").without_effect.is_some());
        assert!(!flow.options.iter().any(|option| option.name == "topics.blacklist"));
    }

    #[test]
    fn a_value_that_is_not_gone_by_is_told_with_what_is() {
        let taken_as =
            |more| find(&options(more).options, "refresh.topics.interval.seconds").taken_as.clone();
        for more in ["", "refresh.topics.interval.seconds = 31"] {
            let TakenAs { value, why } = taken_as(more).unwrap();
            assert_eq!((&*value, &*why), ("30", "new topics and partitions are seen within 30 s at most"));
        }
        assert_eq!(taken_as("refresh.topics.interval.seconds=30"), None);
        assert_eq!(taken_as("refresh.topics.interval.seconds=-1"), None);
    }

    #[test]
    fn each_client_has_what_was_written_for_it() {
        let flow = options("eu.producer.acks=all\nus->eu.producer.override.acks=1\neu.max.request.size=5\n");
        let producer =
            flow.clients.iter().find(|client| client.client.starts_with("producer of records")).unwrap();
        let acks = find(&producer.options, "acks");
        assert_eq!(
            (&*acks.value, acks.origin.as_ref().unwrap().key.as_str()),
            ("1", "us->eu.producer.override.acks")
        );
        assert!(acks.without_effect.is_some());
        assert!(!producer.options.iter().any(|option| option.name == "max.request.size"));
    }

    #[test]
    fn a_reference_is_shown_as_typed_and_used_as_resolved() {
        let text = "config.providers=env\nconfig.providers.env.class=EnvVarConfigProvider\n\
                    us->eu.topics=pay, ${env:TOPICS}\n";
        let surroundings = Surroundings {
            file: &|_| Err(std::io::ErrorKind::NotFound.into()),
            variable: &|name| (name == "TOPICS").then(|| "orders, refunds".to_owned()),
        };
        let inspection = Inspection::of_file(format!("{BASE}{text}").as_bytes(), surroundings);
        let topics = find(&inspection.options()[0].options, "topics");
        assert_eq!(&*topics.value, "pay, ${env:TOPICS}");
        assert_eq!(inspection.flows[0].selection.filter().include(), ["pay", "orders", "refunds"]);
    }

    #[test]
    fn the_clients_of_offset_syncs_follow_their_location() {
        for (location, batch_size) in [("", "1"), ("source", "1"), ("target", "2")] {
            let flow = options(&format!(
                "us.producer.batch.size=1\neu.producer.batch.size=2\noffset-syncs.topic.location={location}\n"
            ));
            let producer = flow.clients.iter().find(|client| client.client == "producer of offset syncs");
            assert_eq!(&*find(&producer.unwrap().options, "batch.size").value, batch_size, "{location}");
        }
    }

    #[test]
    fn secrets_are_masked() {
        let flow = options("us.sasl.jaas.config=x password=\"hunter2\";\nus.ssl.key.password=hunter2\n");
        assert!(!format!("{flow:?}").contains("hunter2"));
        assert!(
            flow.clients
                .iter()
                .any(|client| client.options.iter().any(|option| option.value.contains("***")))
        );
    }
}
