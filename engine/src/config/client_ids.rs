//! The names by which brokers know a flow's clients: those of MM2's clients, so that quotas made for it go on to match.
//!
//! | client | id |
//! |---|---|
//! | fetches records | `A->B\|MirrorSourceConnector-0\|replication-consumer` |
//! | all else at the source | `A->B\|MirrorSourceConnector\|replication-source-admin` |
//! | all else at the target | `A->B\|MirrorSourceConnector\|replication-target-admin` |
//! | writes records | `connector-producer-MirrorSourceConnector-0` |
//!
//! A `client.id` written for one of the first three stands before it, with `|` between; one written for the last
//! replaces it.
//!
//! # References
//! `MirrorConnectorConfig#addClientId`, `Worker#baseProducerConfigs`.

use super::keys::Role;
use super::resolve::Resolver;
use super::settings::{Settings, Side};

/// The connector whose clients ours stand for.
const CONNECTOR: &str = "MirrorSourceConnector";

/// The clients' ids of one flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIds {
    /// Of what fetches records.
    pub source_consumer: String,
    /// Of everything else at the source.
    pub source_admin: String,
    /// Of what writes records.
    pub data_producer: String,
    /// Of everything else at the target.
    pub target_admin: String,
}

/// Reads what is written for each client of the flow between these aliases.
pub(super) fn read(resolver: &Resolver<'_>, source_alias: &str, target_alias: &str) -> ClientIds {
    let of_client = |side, role, task: &str, what: &str| {
        let id = format!("{source_alias}->{target_alias}|{CONNECTOR}{task}|{what}");
        match client_id(&resolver.connectors().of_client(side, role)) {
            Some(written) => format!("{written}|{id}"),
            None => id,
        }
    };
    let of_records = client_id(&resolver.connectors().of_data_producer(resolver.worker()));
    ClientIds {
        source_consumer: of_client(Side::Source, Role::Consumer, "-0", "replication-consumer"),
        source_admin: of_client(Side::Source, Role::Admin, "", "replication-source-admin"),
        data_producer: of_records.unwrap_or_else(|| format!("connector-producer-{CONNECTOR}-0")),
        target_admin: of_client(Side::Target, Role::Admin, "", "replication-target-admin"),
    }
}

/// The rack in which the flow's reader stands (`client.rack`); empty for none.
pub(super) fn source_rack(resolver: &Resolver<'_>) -> String {
    let settings = resolver.connectors().of_client(Side::Source, Role::Consumer);
    settings.get("client.rack").map(|written| written.value.trim().to_owned()).unwrap_or_default()
}

fn client_id(settings: &Settings<'_>) -> Option<String> {
    let written = settings.get("client.id")?.value.trim();
    (!written.is_empty()).then(|| written.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MirrorConfig;

    fn ids(more: &str) -> ClientIds {
        let base = "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n";
        let config = MirrorConfig::from_properties(format!("{base}{more}").as_bytes()).unwrap();
        config.flows()[0].client_ids.clone()
    }

    #[test]
    fn without_a_word_they_are_mm2s() {
        let ids = ids("");
        assert_eq!(ids.source_consumer, "A->B|MirrorSourceConnector-0|replication-consumer");
        assert_eq!(ids.source_admin, "A->B|MirrorSourceConnector|replication-source-admin");
        assert_eq!(ids.target_admin, "A->B|MirrorSourceConnector|replication-target-admin");
        assert_eq!(ids.data_producer, "connector-producer-MirrorSourceConnector-0");
    }

    #[test]
    fn the_rack_is_that_of_the_reader_at_the_source() {
        let rack = |more: &str| {
            let base = "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n";
            let config = MirrorConfig::from_properties(format!("{base}{more}").as_bytes()).unwrap();
            config.flows()[0].source_rack.clone()
        };
        assert_eq!(rack(""), "");
        assert_eq!(rack("A.consumer.client.rack = east-1 \n"), "east-1");
        assert_eq!(rack("B.consumer.client.rack=no\nA.producer.client.rack=no\n"), "");
        assert_eq!(rack("A->B.source.consumer.client.rack=near\nA.consumer.client.rack=far\n"), "near");
    }

    #[test]
    fn aliases_are_those_in_names() {
        let ids = ids("source.cluster.alias=\ntarget.cluster.alias=east\n");
        assert_eq!(ids.source_consumer, "->east|MirrorSourceConnector-0|replication-consumer");
    }

    #[test]
    fn what_is_written_for_a_reader_or_admin_stands_before_and_the_closest_key_wins() {
        let flow = "A->B.consumer.client.id=flow\nA->B.admin.client.id=flow\n";
        let cluster = "A.consumer.client.id=cluster\nA.admin.client.id=cluster\nB.admin.client.id = other \n";
        let closest = "A->B.source.consumer.client.id=closest\nA->B.target.admin.client.id=closest\n";
        let first = |text: &str| {
            let ids = ids(text);
            [ids.source_consumer, ids.source_admin, ids.target_admin]
                .map(|id| id.split_once('|').unwrap().0.to_owned())
        };
        assert_eq!(first(flow), ["flow"; 3]);
        assert_eq!(first(&format!("{flow}{cluster}")), ["cluster", "cluster", "other"]);
        assert_eq!(first(&format!("{closest}{flow}{cluster}")), ["closest", "cluster", "closest"]);
        assert_eq!(first("consumer.client.id=no\nadmin.client.id=no\nA.client.id=no\n"), ["A->B"; 3]);
        let whole = ids("A.consumer.client.id=mirror\n").source_consumer;
        assert_eq!(whole, "mirror|A->B|MirrorSourceConnector-0|replication-consumer");
    }

    #[test]
    fn what_is_written_for_the_producer_of_records_replaces_its_id() {
        let worker = "B.producer.client.id=worker\nA->B.producer.client.id=no\nA.producer.client.id=no\n";
        assert_eq!(ids(worker).data_producer, "worker");
        let both = format!("{worker}A->B.producer.override.client.id=flow\n");
        assert_eq!(ids(&both).data_producer, "flow");
        assert_eq!(
            ids("B.producer.client.id=\n").data_producer,
            "connector-producer-MirrorSourceConnector-0"
        );
    }
}
