//! What the judge does with topics, leaders and configs of one cluster.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Judge;
use crate::real::kafka::Cluster;

/// A topic to be made.
#[derive(Clone, Debug, Serialize)]
pub struct NewTopic {
    name: String,
    partitions: u32,
    replicas: Vec<Vec<u16>>,
    configs: BTreeMap<String, String>,
}

impl NewTopic {
    /// A topic with as many replicas as the cluster has brokers.
    #[must_use]
    pub fn new(name: &str, partitions: u32) -> Self {
        Self { name: name.to_owned(), partitions, replicas: Vec::new(), configs: BTreeMap::new() }
    }

    /// Places the replicas by hand: for each partition the broker ids, its first leader first.
    #[must_use]
    pub fn placed(name: &str, replicas: Vec<Vec<u16>>) -> Self {
        Self { replicas, ..Self::new(name, 0) }
    }

    /// Sets a topic config.
    #[must_use]
    pub fn config(mut self, key: &str, value: &str) -> Self {
        self.configs.insert(key.to_owned(), value.to_owned());
        self
    }
}

/// Leader and replicas of a partition as the cluster's metadata shows them.
#[derive(Clone, Debug, Deserialize)]
pub struct PartitionState {
    /// Broker id; -1 while there is none.
    pub leader: i32,
    /// All replicas, the preferred leader first.
    pub replicas: Vec<u16>,
    /// Those in sync.
    pub isr: Vec<u16>,
}

/// Log start and high watermark of a partition.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Offsets {
    /// Log start offset.
    pub start: i64,
    /// What ListOffsets calls the latest: the high watermark.
    pub end: i64,
}

/// What a partition remembers of a producer.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct ProducerState {
    /// Producer id.
    pub producer_id: i64,
    /// Its newest epoch.
    pub epoch: i32,
    /// The last sequence appended, -1 for none.
    pub last_sequence: i32,
    /// Timestamp of its last batch in ms.
    pub last_timestamp: i64,
    /// First offset of its open transaction, -1 for none.
    pub transaction_start: i64,
}

#[derive(Deserialize)]
struct Partitions<T> {
    partitions: Vec<T>,
}

impl Judge {
    /// Waits until all brokers have registered.
    ///
    /// # Errors
    /// When they have not after 90 s.
    pub fn ready(&mut self, cluster: &Cluster) -> Result<()> {
        let brokers = cluster.spec().brokers;
        self.order(&json!({"do": "ready", "bootstrap": cluster.bootstrap(), "brokers": brokers}))
    }

    /// Waits until every partition has all its replicas in sync.
    ///
    /// # Errors
    /// When it has not after 90 s.
    pub fn settled(&mut self, cluster: &Cluster) -> Result<()> {
        let brokers = cluster.spec().brokers;
        self.order(&json!({"do": "settled", "bootstrap": cluster.bootstrap(), "brokers": brokers}))
    }

    /// All topics, internal ones included, with their partition counts.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn topics(&mut self, cluster: &Cluster) -> Result<BTreeMap<String, u32>> {
        #[derive(Deserialize)]
        struct Answer {
            topics: BTreeMap<String, u32>,
        }
        let answer: Answer = self.call(&json!({"do": "topics", "bootstrap": cluster.bootstrap()}))?;
        Ok(answer.topics)
    }

    /// Makes topics and waits until their leaders answer.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn create_topics(&mut self, cluster: &Cluster, topics: &[NewTopic]) -> Result<()> {
        let replication = cluster.spec().brokers;
        self.order(&json!({
            "do": "create_topics", "bootstrap": cluster.bootstrap(), "topics": topics, "replication": replication,
        }))
    }

    /// Deletes a topic and waits until it is gone.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn delete_topic(&mut self, cluster: &Cluster, topic: &str) -> Result<()> {
        self.order(&json!({"do": "delete_topic", "bootstrap": cluster.bootstrap(), "topic": topic}))
    }

    /// Raises the partition count of a topic to `partitions`.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn grow_topic(&mut self, cluster: &Cluster, topic: &str, partitions: u32) -> Result<()> {
        self.order(&json!({
            "do": "grow_topic", "bootstrap": cluster.bootstrap(), "topic": topic, "partitions": partitions,
        }))
    }

    /// The configs that somebody set on the topic itself.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn configs(&mut self, cluster: &Cluster, topic: &str) -> Result<BTreeMap<String, String>> {
        #[derive(Deserialize)]
        struct Answer {
            configs: BTreeMap<String, String>,
        }
        let answer: Answer =
            self.call(&json!({"do": "configs", "bootstrap": cluster.bootstrap(), "topic": topic}))?;
        Ok(answer.configs)
    }

    /// Sets configs of a topic itself, and removes others.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn alter_configs(
        &mut self,
        cluster: &Cluster,
        topic: &str,
        set: &[(&str, &str)],
        remove: &[&str],
    ) -> Result<()> {
        let set: BTreeMap<&str, &str> = set.iter().copied().collect();
        let bootstrap = cluster.bootstrap();
        self.order(&json!({
            "do": "alter_configs", "bootstrap": bootstrap, "topic": topic, "set": set, "remove": remove,
        }))
    }

    /// From now on everybody may do everything with the topic but `operation`, such as `DESCRIBE_CONFIGS`; on clusters with
    /// an authorizer.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn deny(&mut self, cluster: &Cluster, topic: &str, operation: &str) -> Result<()> {
        let bootstrap = cluster.bootstrap();
        self.order(&json!({"do": "deny", "bootstrap": bootstrap, "topic": topic, "operation": operation}))
    }

    /// Leader and replicas of each partition of a topic.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn describe(&mut self, cluster: &Cluster, topic: &str) -> Result<Vec<PartitionState>> {
        let command = json!({"do": "describe", "bootstrap": cluster.bootstrap(), "topic": topic});
        Ok(self.call::<Partitions<PartitionState>>(&command)?.partitions)
    }

    /// Log start and end of each partition of a topic.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn offsets(&mut self, cluster: &Cluster, topic: &str) -> Result<Vec<Offsets>> {
        let command = json!({"do": "offsets", "bootstrap": cluster.bootstrap(), "topic": topic});
        Ok(self.call::<Partitions<Offsets>>(&command)?.partitions)
    }

    /// Gives each partition of `topics` another preferred leader and elects it; the number of leaders that moved.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn move_leaders(&mut self, cluster: &Cluster, topics: &[&str]) -> Result<u64> {
        #[derive(Deserialize)]
        struct Answer {
            moved: u64,
        }
        let command = json!({"do": "move_leaders", "bootstrap": cluster.bootstrap(), "topics": topics});
        Ok(self.call::<Answer>(&command)?.moved)
    }

    /// The producers that the leader of a partition remembers.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn producers(
        &mut self,
        cluster: &Cluster,
        topic: &str,
        partition: u32,
    ) -> Result<Vec<ProducerState>> {
        #[derive(Deserialize)]
        struct Answer {
            producers: Vec<ProducerState>,
        }
        let command = json!({
            "do": "producers", "bootstrap": cluster.bootstrap(), "topic": topic, "partition": partition,
        });
        Ok(self.call::<Answer>(&command)?.producers)
    }

    /// Sets a quota of a client id, such as `producer_byte_rate`, at the cluster behind `servers`; none takes it away.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn quota(&mut self, servers: &str, client_id: &str, key: &str, value: Option<u32>) -> Result<()> {
        self.order(&json!({
            "do": "quota", "bootstrap": servers, "client_id": client_id, "key": key, "value": value,
        }))
    }

    /// DeleteRecords: the log start of the partition becomes `before`.
    ///
    /// # Errors
    /// What the cluster answered.
    pub fn delete_records(
        &mut self,
        cluster: &Cluster,
        topic: &str,
        partition: u32,
        before: i64,
    ) -> Result<()> {
        self.order(&json!({
            "do": "delete_records", "bootstrap": cluster.bootstrap(), "topic": topic,
            "partition": partition, "before": before,
        }))
    }
}
