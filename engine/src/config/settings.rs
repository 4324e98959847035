//! The settings that count: what MM2 hands to the connectors, the worker and the clients of one flow.
//!
//! Later wins, as in MM2's dedicated mode:
//!
//! | for | from |
//! |---|---|
//! | connectors | `key` where connectors define it; `a.key` as `source.cluster.key`, `b.key` as `target.cluster.key` (but `a.consumer.key` as `source.consumer.key`, and so on); `a->b.key` |
//! | worker | addresses and security at top level; `b.key`; storage topics, converters, `task…`, `worker…` at top level |
//! | a client | addresses and security of its cluster; `consumer.key` of the flow; `source.consumer.key` |
//! | the producer of records | the worker's `producer.key`; `producer.override.key` of the flow |
//!
//! Where MM2 copies a cluster's security into each client's prefix, which makes it beat a flow's own
//! `source.cluster.key`, twinlog lets the flow win.
//!
//! # References
//! `MirrorMakerConfig`, `MirrorConnectorConfig`, `Worker#producerConfigs`.

use std::collections::BTreeMap;

use super::flows::FlowNames;
use super::keys::{self, Role};
use super::properties::{Entry, Properties};

/// Settings by their names inside the thing that reads them, each with the entry that it came from.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings<'p> {
    by_name: BTreeMap<String, &'p Entry>,
}

/// Which cluster of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Target,
}

impl Side {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Source, Self::Target];

    /// The connector key that overrides the alias in names.
    pub(super) fn alias_key(self) -> &'static str {
        match self {
            Self::Source => "source.cluster.alias",
            Self::Target => "target.cluster.alias",
        }
    }

    /// How MM2 prefixes settings of this cluster inside a connector.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Source => "source.",
            Self::Target => "target.",
        }
    }
}

impl<'p> Settings<'p> {
    pub(super) fn get(&self, name: &str) -> Option<&'p Entry> {
        self.by_name.get(name).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'p Entry)> {
        self.by_name.iter().map(|(name, entry)| (name.as_str(), *entry))
    }

    fn insert(&mut self, name: impl Into<String>, entry: &'p Entry) {
        self.by_name.insert(name.into(), entry);
    }

    /// Settings whose names begin with `prefix`, without it.
    fn below(&self, prefix: &str) -> impl Iterator<Item = (&str, &'p Entry)> {
        let from = self.by_name.range(prefix.to_owned()..);
        from.map_while(move |(name, entry)| Some((name.strip_prefix(prefix)?, *entry)))
    }

    /// What a connector's own configuration holds.
    pub(super) fn of_connector(properties: &'p Properties) -> Self {
        let mut settings = Self::default();
        properties.effective().for_each(|entry| settings.insert(entry.key.as_str(), entry));
        settings
    }

    /// What MM2 hands to the connectors of a flow.
    pub(super) fn of_connectors(properties: &'p Properties, names: &FlowNames) -> Self {
        let mut settings = Self::default();
        for entry in properties.effective().filter(|entry| keys::is_read_at_top(&entry.key)) {
            settings.insert(entry.key.as_str(), entry);
        }
        for side in Side::ALL {
            for (name, entry) in Self::of_cluster(properties, names.of(side)).iter() {
                let of_clients = if Role::strip(name).is_some() { "" } else { "cluster." };
                settings.insert(format!("{}{of_clients}{name}", side.prefix()), entry);
            }
        }
        let own = names.key("");
        for entry in properties.effective() {
            if let Some(name) = entry.key.strip_prefix(own.as_str()) {
                settings.insert(name, entry);
            }
        }
        settings
    }

    /// What MM2 hands to the Connect worker that it runs beside the target.
    pub(super) fn of_worker(properties: &'p Properties, names: &FlowNames) -> Self {
        let mut settings = Self::default();
        // MM2 drops this one at top level, where many write it and mean it.
        if let Some(entry) = properties.find("exactly.once.source.support") {
            settings.insert(entry.key.as_str(), entry);
        }
        settings.by_name.extend(Self::of_cluster(properties, &names.target).by_name);
        for entry in properties.effective() {
            if keys::is_of_worker_at_top(&entry.key) {
                settings.insert(entry.key.as_str(), entry);
            }
        }
        settings
    }

    fn of_cluster(properties: &'p Properties, cluster: &str) -> Self {
        let mut settings = Self::default();
        for entry in properties.effective().filter(|entry| keys::is_client_base(&entry.key)) {
            settings.insert(entry.key.as_str(), entry);
        }
        let own = format!("{cluster}.");
        for entry in properties.effective() {
            if let Some(name) = entry.key.strip_prefix(own.as_str()) {
                settings.insert(name, entry);
            }
        }
        settings
    }

    /// What a client of a connector gets: `self` are the connector's settings.
    pub(super) fn of_client(&self, side: Side, role: Role) -> Self {
        let mut settings = Self::default();
        let cluster = format!("{}cluster.", side.prefix());
        for (name, entry) in self.below(&cluster).filter(|(name, _)| keys::is_client_base(name)) {
            settings.insert(name, entry);
        }
        for prefix in [role.prefix().to_owned(), format!("{}{}", side.prefix(), role.prefix())] {
            // Overrides are the worker's affair, and this client is none of the worker's.
            let own = self.below(&prefix).filter(|(name, _)| !name.starts_with("override."));
            own.for_each(|(name, entry)| settings.insert(name, entry));
        }
        settings
    }

    /// What the producer of records gets: `self` are the connector's settings.
    pub(super) fn of_data_producer(&self, worker: &Self) -> Self {
        let mut settings = Self::default();
        let base = self.below("target.cluster.").filter(|(name, _)| keys::is_client_base(name));
        base.for_each(|(name, entry)| settings.insert(name, entry));
        worker.below("producer.").for_each(|(name, entry)| settings.insert(name, entry));
        self.below("producer.override.").for_each(|(name, entry)| settings.insert(name, entry));
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::super::providers::{self, Surroundings};
    use super::*;

    fn names() -> FlowNames {
        FlowNames { source: "us".into(), target: "eu".into() }
    }

    fn shown(settings: &Settings<'_>) -> Vec<String> {
        settings.iter().map(|(name, entry)| format!("{name}={}", entry.value.as_str())).collect()
    }

    fn parse(text: &str) -> Properties {
        Properties::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_connector_gets_top_cluster_and_flow_in_this_order() {
        let text = "topics=a\nus->eu.topics=b\nus.topics=c\nxxx=1\nus.consumer.x=1\neu.producer.y=2\nproducer.z=3\n\
                    security.protocol=SSL\neu.security.protocol=PLAINTEXT\nus->eu.xxx=2\nreplication.policy.mine=4\n";
        let properties = parse(text);
        assert_eq!(
            shown(&Settings::of_connectors(&properties, &names())),
            [
                "replication.policy.mine=4",
                "security.protocol=SSL",
                "source.cluster.security.protocol=SSL",
                "source.cluster.topics=c",
                "source.consumer.x=1",
                "target.cluster.security.protocol=PLAINTEXT",
                "target.producer.y=2",
                "topics=b",
                "xxx=2",
            ]
        );
    }

    #[test]
    fn the_worker_prefers_the_top_level_for_its_topics_and_reads_no_flow() {
        let text = "offset.storage.topic=top\neu.offset.storage.topic=eu\neu.group.id=g\ngroup.id=no\nus.group.id=no\n\
                    us->eu.group.id=no\nexactly.once.source.support=enabled\n";
        let properties = parse(text);
        let worker = Settings::of_worker(&properties, &names());
        assert_eq!(
            shown(&worker),
            ["exactly.once.source.support=enabled", "group.id=g", "offset.storage.topic=top"]
        );
    }

    /// What MM2's own classes gave for the reported file: `tests/fixtures/configs/12-client-prefix-mix.properties`.
    #[test]
    fn clients_get_what_mm2_gives_them() {
        let text = "eu.max.request.size=2\neu.producer.max.request.size=31\neu.producer.override.max.request.size=41\n\
                    us->eu.producer.override.max.request.size=52\nproducer.max.request.size=62\n\
                    eu.producer.compression.type=zstd\nus->eu.producer.override.compression.type=lz4\n\
                    us.consumer.client.id=cluster\nus->eu.consumer.client.id=flow\n\
                    us->eu.consumer.override.fetch.max.bytes=1\nus.consumer.auto.offset.reset=latest\n";
        let properties = parse(text);
        let connector = Settings::of_connectors(&properties, &names());
        let worker = Settings::of_worker(&properties, &names());
        let data = connector.of_data_producer(&worker);
        assert_eq!(data.get("max.request.size").unwrap().value, "52");
        assert_eq!(data.get("compression.type").unwrap().value, "lz4");
        let syncs = connector.of_client(Side::Target, Role::Producer);
        assert_eq!(shown(&syncs), ["compression.type=zstd", "max.request.size=31"]);
        let reader = connector.of_client(Side::Source, Role::Consumer);
        assert_eq!(shown(&reader), ["auto.offset.reset=latest", "client.id=cluster"]);
    }

    #[test]
    fn keys_of_connectors_pass_from_the_top_level_and_others_do_not() {
        let properties = parse(
            "clusters=us, eu\nus.bootstrap.servers=servers-one\neu.bootstrap.servers=servers-two\ntasks.max=100\n\
             topics=topic-1\ngroups=group-2\nreplication.policy.separator=__\nconfig.properties.exclude=property-3\n\
             metric.reporters=Fake\ntopic.filter.class=DefaultTopicFilter\nxxx=yyy\nus->eu.tasks.max=123\n",
        );
        assert_eq!(
            shown(&Settings::of_connectors(&properties, &names())),
            [
                "config.properties.exclude=property-3",
                "groups=group-2",
                "metric.reporters=Fake",
                "replication.policy.separator=__",
                "source.cluster.bootstrap.servers=servers-one",
                "target.cluster.bootstrap.servers=servers-two",
                "tasks.max=123",
                "topic.filter.class=DefaultTopicFilter",
                "topics=topic-1",
            ]
        );
    }

    /// Each line with its references resolved: `${env:PW}` is `secret2`.
    fn resolved(text: &str) -> Properties {
        let providers = "config.providers=env\nconfig.providers.env.class=EnvVarConfigProvider\n";
        let surroundings = Surroundings {
            file: &|_| Err(std::io::ErrorKind::NotFound.into()),
            variable: &|name| (name == "PW").then(|| "secret2".to_owned()),
        };
        providers::resolve(&parse(&format!("{providers}{text}")), surroundings).0
    }

    #[test]
    fn a_client_inherits_security_with_its_secrets_and_no_other_key() {
        let properties = resolved(
            "ssl.truststore.password=secret1\nssl.key.password=${env:PW}\nsecurity.protocol=SSL\n\
             us.security.protocol=PLAINTEXT\nus.producer.security.protocol=SSL\n\
             us.bootstrap.servers=one:9092, two:9092\nmetrics.reporter=Fake\nus.metrics.reporter=Fake\n\
             us.xxx=yyy\nxxx=zzz\n",
        );
        let connector = Settings::of_connectors(&properties, &names());
        let expected = |protocol: &str| {
            let protocol = format!("security.protocol={protocol}");
            let servers = "bootstrap.servers=one:9092, two:9092";
            [servers, &protocol, "ssl.key.password=secret2", "ssl.truststore.password=secret1"]
                .map(str::to_owned)
        };
        assert_eq!(shown(&connector.of_client(Side::Source, Role::Admin)), expected("PLAINTEXT"));
        assert_eq!(shown(&connector.of_client(Side::Source, Role::Producer)), expected("SSL"));
    }

    #[test]
    fn the_worker_and_its_producer_get_storage_security_and_secrets() {
        let properties = resolved(
            "offset.storage.replication.factor=123\n\
             eu.status.storage.replication.factor=456\neu.producer.client.id=client-one\n\
             eu.security.protocol=PLAINTEXT\neu.producer.security.protocol=SASL_SSL\n\
             ssl.truststore.password=secret1\nssl.key.password=${env:PW}\n",
        );
        let connector = Settings::of_connectors(&properties, &names());
        let worker = Settings::of_worker(&properties, &names());
        for (key, value) in [
            ("offset.storage.replication.factor", "123"),
            ("status.storage.replication.factor", "456"),
            ("ssl.truststore.password", "secret1"),
            ("ssl.key.password", "secret2"),
        ] {
            assert_eq!(worker.get(key).unwrap().value, value, "{key}");
        }
        assert_eq!(
            shown(&connector.of_data_producer(&worker)),
            [
                "client.id=client-one",
                "security.protocol=SASL_SSL",
                "ssl.key.password=secret2",
                "ssl.truststore.password=secret1"
            ]
        );
        let consumer = connector.of_client(Side::Target, Role::Consumer);
        assert_eq!(consumer.get("security.protocol").unwrap().value, "PLAINTEXT");
    }

    #[test]
    fn a_prefix_of_clients_reaches_both_sides_and_one_with_a_side_only_that_side() {
        let properties = parse(
            "source.cluster.bootstrap.servers=s:1\nconsumer.max.poll.interval.ms=120000\n\
             source.consumer.auto.offset.reset=latest\nconsumer.auto.offset.reset=none\nproducer.acks=1\n\
             source.producer.acks=all\nadmin.connections.max.idle.ms=10000\ntarget.admin.retries=5\n\
             max.poll.records=7\nsource.cluster.max.poll.records=8\n",
        );
        let connector = Settings::of_connector(&properties);
        for (side, role, expected) in [
            (
                Side::Source,
                Role::Consumer,
                &["auto.offset.reset=latest", "bootstrap.servers=s:1", "max.poll.interval.ms=120000"][..],
            ),
            (Side::Target, Role::Consumer, &["auto.offset.reset=none", "max.poll.interval.ms=120000"]),
            (Side::Source, Role::Producer, &["acks=all", "bootstrap.servers=s:1"]),
            (Side::Target, Role::Producer, &["acks=1"]),
            (Side::Source, Role::Admin, &["bootstrap.servers=s:1", "connections.max.idle.ms=10000"]),
            (Side::Target, Role::Admin, &["connections.max.idle.ms=10000", "retries=5"]),
        ] {
            assert_eq!(shown(&connector.of_client(side, role)), expected, "{side:?} {role:?}");
        }
    }

    #[test]
    fn a_setting_of_a_client_beats_that_of_its_cluster() {
        let text = "security.protocol=SSL\nus.security.protocol=SASL_SSL\nus.producer.security.protocol=PLAINTEXT\n\
                    us.max.poll.records=1\n";
        let properties = parse(text);
        let connector = Settings::of_connectors(&properties, &names());
        assert_eq!(shown(&connector.of_client(Side::Source, Role::Admin)), ["security.protocol=SASL_SSL"]);
        assert_eq!(
            shown(&connector.of_client(Side::Source, Role::Producer)),
            ["security.protocol=PLAINTEXT"]
        );
        assert_eq!(shown(&connector.of_client(Side::Target, Role::Admin)), ["security.protocol=SSL"]);
    }
}
