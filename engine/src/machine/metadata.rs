//! What we know of a cluster: brokers, topics, partitions and their leaders. Pure.
//!
//! M1: within one topic id a partition's leader epoch never goes back, so an answer from a broker that lags
//! behind cannot undo what another one told (KIP-320, `Metadata.updateLatestMetadata`).
//! M2: within one topic id partitions never disappear.
//! M3: a topic that an answer about all topics leaves out is gone; a new topic id or cluster id starts from nothing.

use std::{collections::BTreeMap, fmt, sync::Arc};

use twinlog_protocol::message::types::{MetadataResponse, metadata_response as wire};

/// One broker address as typed or as a broker advertises it; the name may stand for several IP addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPort {
    /// Name or IP address in lower case; IPv6 without brackets, its zone after `%`.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl HostPort {
    /// Puts host and port together, the host in lower case.
    pub fn new(host: &str, port: u16) -> Self {
        HostPort { host: host.to_ascii_lowercase(), port }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The longest name that a topic may have (`Topic.MAX_NAME_LENGTH`); a broker that names a longer one lies.
const TOPIC_NAME_BYTES_MAX: usize = 249;

/// A snapshot of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterMetadata {
    /// The cluster's id; nothing before the first answer.
    pub cluster_id: Option<String>,
    /// The node to send controller requests to; any broker that forwards them counts (KIP-500).
    pub controller: Option<i32>,
    /// Brokers that are alive, by node id.
    pub brokers: BTreeMap<i32, Broker>,
    /// Topics by name.
    pub topics: BTreeMap<String, Arc<Topic>>,
}

/// A broker that is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    /// Where it listens.
    pub server: HostPort,
    /// Its rack, if it has one.
    pub rack: Option<String>,
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// The topic id; 0 where the broker has none (before 2.8).
    pub id: u128,
    /// Whether the brokers use it for themselves, such as `__consumer_offsets`.
    pub is_internal: bool,
    /// Kafka's error code for the topic, 0 for none. The partitions are the last known ones then.
    pub error_code: i16,
    /// Partitions by number.
    pub partitions: BTreeMap<i32, Partition>,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The leader's node id, if there is a leader.
    pub leader: Option<i32>,
    /// The leader's epoch; -1 where the broker does not tell.
    pub leader_epoch: i32,
    /// Node ids of all replicas.
    pub replicas: Vec<i32>,
    /// Node ids of the replicas in sync.
    pub isr: Vec<i32>,
    /// Kafka's error code for the partition, 0 for none.
    pub error_code: i16,
}

/// Where requests for a partition go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader {
    /// The leader's node id.
    pub node: i32,
    /// The leader's epoch; -1 where the broker does not tell.
    pub epoch: i32,
}

impl ClusterMetadata {
    /// The leader of a partition, if partition and leader are known.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<Leader> {
        let partition = self.topics.get(topic)?.partitions.get(&partition)?;
        Some(Leader { node: partition.leader?, epoch: partition.leader_epoch })
    }

    /// This snapshot brought up to date by an answer that was asked for all topics (see M1 to M3).
    pub fn merged(&self, answer: &MetadataResponse) -> ClusterMetadata {
        let cluster_id = answer.cluster_id.as_ref().map(ToString::to_string);
        let is_other_cluster = self.cluster_id.is_some() && self.cluster_id != cluster_id;
        let topics = answer.topics.iter().filter_map(|topic| {
            let name = topic.name.as_ref().filter(|name| name.0.len() <= TOPIC_NAME_BYTES_MAX)?.0.to_string();
            let known = self.topics.get(&name).filter(|_| !is_other_cluster);
            let topic = merged_topic(known, topic);
            Some((name, topic))
        });
        ClusterMetadata {
            cluster_id,
            controller: node(answer.controller_id.0),
            brokers: answer.brokers.iter().filter_map(broker).collect(),
            topics: topics.collect(),
        }
    }
}

/// A broker without a usable address is left out: its partitions have a leader that nobody can reach.
fn broker(broker: &wire::MetadataResponseBroker) -> Option<(i32, Broker)> {
    let port = u16::try_from(broker.port).ok().filter(|&port| port != 0)?;
    if broker.host.is_empty() {
        return None;
    }
    let server = HostPort::new(&broker.host, port);
    let rack = broker.rack.as_ref().map(ToString::to_string);
    Some((node(broker.node_id.0)?, Broker { server, rack }))
}

fn node(id: i32) -> Option<i32> {
    (id >= 0).then_some(id)
}

fn merged_topic(known: Option<&Arc<Topic>>, answer: &wire::MetadataResponseTopic) -> Arc<Topic> {
    let id = answer.topic_id.as_u128();
    // An answer with an error may come without the id.
    let known = known.filter(|known| known.id == id || (answer.error_code != 0 && id == 0));
    let mut topic = Topic {
        id: known.map_or(id, |known| known.id),
        is_internal: answer.is_internal,
        error_code: answer.error_code,
        partitions: answer.partitions.iter().map(partition).collect(),
    };
    if let Some(known) = known {
        for (number, old) in &known.partitions {
            match topic.partitions.get(number) {
                Some(new) if new.leader_epoch == -1 || new.leader_epoch >= old.leader_epoch => {}
                _ => {
                    topic.partitions.insert(*number, old.clone());
                }
            }
        }
        if topic == **known {
            return Arc::clone(known);
        }
    }
    Arc::new(topic)
}

fn partition(answer: &wire::MetadataResponsePartition) -> (i32, Partition) {
    let nodes = |ids: &[twinlog_protocol::message::types::BrokerId]| ids.iter().map(|id| id.0).collect();
    let partition = Partition {
        leader: node(answer.leader_id.0),
        leader_epoch: answer.leader_epoch,
        replicas: nodes(&answer.replica_nodes),
        isr: nodes(&answer.isr_nodes),
        error_code: answer.error_code,
    };
    (answer.partition_index, partition)
}

#[cfg(test)]
mod tests {
    use twinlog_protocol::message::types::{BrokerId, StrBytes, TopicName, Uuid};

    use super::*;

    fn answer(topics: Vec<wire::MetadataResponseTopic>) -> MetadataResponse {
        MetadataResponse::default()
            .with_cluster_id(Some(StrBytes::from_static_str("one")))
            .with_controller_id(BrokerId(1))
            .with_brokers(vec![wire_broker(1, "Broker-1", 9092)])
            .with_topics(topics)
    }

    fn wire_broker(node: i32, host: &'static str, port: i32) -> wire::MetadataResponseBroker {
        wire::MetadataResponseBroker::default()
            .with_node_id(BrokerId(node))
            .with_host(StrBytes::from_static_str(host))
            .with_port(port)
    }

    fn topic(id: u128, partitions: &[(i32, i32, i32)]) -> wire::MetadataResponseTopic {
        let partitions = partitions.iter().map(|&(number, leader, epoch)| {
            wire::MetadataResponsePartition::default()
                .with_partition_index(number)
                .with_leader_id(BrokerId(leader))
                .with_leader_epoch(epoch)
                .with_replica_nodes(vec![BrokerId(1), BrokerId(2)])
                .with_isr_nodes(vec![BrokerId(leader)])
        });
        wire::MetadataResponseTopic::default()
            .with_name(Some(TopicName(StrBytes::from_static_str("t"))))
            .with_topic_id(Uuid::from_u128(id))
            .with_partitions(partitions.collect())
    }

    fn known(partitions: &[(i32, i32, i32)]) -> ClusterMetadata {
        ClusterMetadata::default().merged(&answer(vec![topic(7, partitions)]))
    }

    #[test]
    fn the_first_answer_is_taken_whole() {
        let metadata = known(&[(0, 1, 3), (1, -1, 4)]);
        assert_eq!(metadata.cluster_id.as_deref(), Some("one"));
        assert_eq!(metadata.controller, Some(1));
        assert_eq!(metadata.brokers[&1].server, HostPort::new("broker-1", 9092));
        assert_eq!(metadata.leader("t", 0), Some(Leader { node: 1, epoch: 3 }));
        assert_eq!(metadata.leader("t", 1), None);
        assert_eq!(metadata.leader("t", 2), None);
        assert_eq!(metadata.leader("u", 0), None);
        assert_eq!(metadata.topics["t"].id, 7);
        assert_eq!(metadata.topics["t"].partitions[&0].replicas, [1, 2]);
    }

    #[test]
    fn an_older_leader_epoch_does_not_replace_a_newer_one() {
        let metadata = known(&[(0, 1, 5), (1, 1, 5)]);
        let metadata = metadata.merged(&answer(vec![topic(7, &[(0, 2, 4), (1, 2, 6)])]));
        assert_eq!(metadata.leader("t", 0), Some(Leader { node: 1, epoch: 5 }));
        assert_eq!(metadata.leader("t", 1), Some(Leader { node: 2, epoch: 6 }));
    }

    #[test]
    fn an_epoch_that_the_broker_does_not_tell_is_taken() {
        let metadata = known(&[(0, 1, 5)]).merged(&answer(vec![topic(7, &[(0, 2, -1)])]));
        assert_eq!(metadata.leader("t", 0), Some(Leader { node: 2, epoch: -1 }));
    }

    #[test]
    fn a_lagging_broker_does_not_take_partitions_away() {
        let metadata = known(&[(0, 1, 5), (1, 1, 0)]).merged(&answer(vec![topic(7, &[(0, 1, 5)])]));
        assert_eq!(metadata.topics["t"].partitions.len(), 2);
    }

    #[test]
    fn a_recreated_topic_starts_from_nothing() {
        let metadata = known(&[(0, 1, 5), (1, 1, 5)]).merged(&answer(vec![topic(8, &[(0, 2, 0)])]));
        assert_eq!(metadata.topics["t"].id, 8);
        assert_eq!(metadata.leader("t", 0), Some(Leader { node: 2, epoch: 0 }));
        assert_eq!(metadata.topics["t"].partitions.len(), 1);
    }

    #[test]
    fn a_topic_that_is_left_out_is_gone() {
        let metadata = known(&[(0, 1, 5)]).merged(&answer(vec![]));
        assert!(metadata.topics.is_empty());
        let metadata = metadata.merged(&answer(vec![topic(7, &[(0, 1, 0)])]));
        assert_eq!(metadata.leader("t", 0), Some(Leader { node: 1, epoch: 0 }));
    }

    #[test]
    fn another_cluster_starts_from_nothing() {
        let other =
            answer(vec![topic(7, &[(0, 1, 1)])]).with_cluster_id(Some(StrBytes::from_static_str("two")));
        let metadata = known(&[(0, 1, 5), (1, 1, 5)]).merged(&other);
        assert_eq!(metadata.cluster_id.as_deref(), Some("two"));
        assert_eq!(metadata.topics["t"].partitions.len(), 1);
        assert_eq!(metadata.leader("t", 0), Some(Leader { node: 1, epoch: 1 }));
    }

    #[test]
    fn errors_of_topic_and_partition_are_kept_beside_what_was_known() {
        let mut failed = topic(0, &[]);
        failed.error_code = 5;
        let metadata = known(&[(0, 1, 5)]).merged(&answer(vec![failed]));
        assert_eq!((metadata.topics["t"].error_code, metadata.topics["t"].id), (5, 7));
        assert_eq!(metadata.leader("t", 0), Some(Leader { node: 1, epoch: 5 }));

        let mut leaderless = topic(7, &[(0, -1, 6)]);
        leaderless.partitions[0].error_code = 5;
        let metadata = metadata.merged(&answer(vec![leaderless]));
        assert_eq!((metadata.topics["t"].error_code, metadata.topics["t"].partitions[&0].error_code), (0, 5));
        assert_eq!(metadata.leader("t", 0), None);
    }

    #[test]
    fn an_unchanged_topic_is_shared_between_snapshots() {
        let first = known(&[(0, 1, 5)]);
        let second = first.merged(&answer(vec![topic(7, &[(0, 1, 5)])]));
        assert!(Arc::ptr_eq(&first.topics["t"], &second.topics["t"]));
    }

    #[test]
    fn brokers_without_a_usable_address_are_left_out() {
        let brokers = vec![
            wire_broker(1, "a", 0),
            wire_broker(2, "b", 65536),
            wire_broker(3, "", 1),
            wire_broker(-1, "d", 1),
            wire_broker(5, "::1", 1),
        ];
        let metadata = ClusterMetadata::default().merged(&answer(vec![]).with_brokers(brokers));
        let servers: Vec<_> = metadata.brokers.values().map(|broker| broker.server.to_string()).collect();
        assert_eq!(servers, ["[::1]:1"]);
    }
}
