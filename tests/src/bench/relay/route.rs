//! What the relay copies along which connections: leaders on both sides, partitions dealt out to workers.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use twinlog_protocol::{
    ErrorCode,
    message::types::{
        BrokerId, CreateTopicsRequest, InitProducerIdRequest, ListOffsetsRequest, MetadataRequest,
        MetadataResponse, StrBytes, TopicName, create_topics_request, list_offsets_request, metadata_request,
    },
};

use super::{RelayConfig, wire::Wire};
use crate::deadline::Deadline;

/// How long a topic may take to get its leaders, and a producer id to be given out.
const PATIENCE: Duration = Duration::from_secs(60);
/// CreateTopics waits so long for the controller.
const CREATE_TIMEOUT_MS: i32 = 30_000;

/// ListOffsets for the high watermark.
const LATEST: i64 = -1;

/// What one worker copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// Address of the leader on the source.
    pub(super) source: String,
    /// Address of the leader on the target.
    pub(super) target: String,
    /// Topic ids on both sides.
    pub(super) topic_ids: [u128; 2],
    /// Partitions that these two lead.
    pub(super) partitions: Vec<i32>,
}

/// A topic as one cluster tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) id: u128,
    /// Addresses by partition.
    pub(crate) leaders: BTreeMap<i32, String>,
}

/// The routes of all partitions; makes the topic on the target.
pub(super) fn route(config: &RelayConfig) -> Result<Vec<Route>> {
    let mut source = Wire::connect(&config.source)?;
    let from = topic(&mut source, &config.topic)?.with_context(|| format!("no topic {}", config.topic))?;
    let mut target = Wire::connect(&config.target)?;
    create(&mut target, &config.target_topic, from.leaders.len())?;
    let what = format!("the leaders of {}", config.target_topic);
    let to = Deadline::after(PATIENCE).wait(&what, || {
        let found = topic(&mut target, &config.target_topic)?;
        let found = found.filter(|found| found.leaders.len() == from.leaders.len());
        let Some(found) = found else { return Ok(None) };
        Ok(if lead(&config.target_topic, &found)? { Some(found) } else { None })
    })?;
    Ok(deal(&from, &to, config.workers))
}

/// Partitions of the same two leaders are dealt out to so many workers at most, as evenly as it goes.
fn deal(from: &Topic, to: &Topic, workers: usize) -> Vec<Route> {
    let mut by_leaders: BTreeMap<(&String, &String), Vec<i32>> = BTreeMap::new();
    for (partition, source) in &from.leaders {
        if let Some(target) = to.leaders.get(partition) {
            by_leaders.entry((source, target)).or_default().push(*partition);
        }
    }
    let mut routes = Vec::new();
    for ((source, target), partitions) in by_leaders {
        for number in 0..workers.min(partitions.len()) {
            routes.push(Route {
                source: source.clone(),
                target: target.clone(),
                topic_ids: [from.id, to.id],
                partitions: partitions.iter().copied().skip(number).step_by(workers).collect(),
            });
        }
    }
    routes
}

/// None while the cluster does not know the topic; leaders as far as there are any.
pub(crate) fn topic(wire: &mut Wire, name: &str) -> Result<Option<Topic>> {
    let asked = metadata_request::MetadataRequestTopic::default().with_name(Some(topic_name(name)));
    let request = MetadataRequest::default().with_topics(Some(vec![asked]));
    let answer: MetadataResponse = wire.call(&request)?;
    let address = |leader| {
        let broker = answer.brokers.iter().find(|broker| broker.node_id == leader)?;
        Some(format!("{}:{}", broker.host, broker.port))
    };
    let topic = answer.topics.first().context("the answer leaves the topic out")?;
    if topic.error_code != 0 {
        return Ok(None);
    }
    let leaders = topic.partitions.iter().filter(|partition| partition.error_code == 0);
    let leaders = leaders.filter_map(|of| Some((of.partition_index, address(of.leader_id)?))).collect();
    Ok(Some(Topic { id: topic.topic_id.as_u128(), leaders }))
}

/// Whether the leaders know by now that they lead: metadata names them a little earlier.
fn lead(name: &str, topic: &Topic) -> Result<bool> {
    let mut by_leader: BTreeMap<&String, Vec<i32>> = BTreeMap::new();
    topic
        .leaders
        .iter()
        .for_each(|(partition, leader)| by_leader.entry(leader).or_default().push(*partition));
    for (leader, partitions) in by_leader {
        if !leads(&mut Wire::connect(leader)?, name, &partitions)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn leads(wire: &mut Wire, name: &str, partitions: &[i32]) -> Result<bool> {
    let partition = |number: &i32| {
        list_offsets_request::ListOffsetsPartition::default()
            .with_partition_index(*number)
            .with_timestamp(LATEST)
    };
    let asked = list_offsets_request::ListOffsetsTopic::default()
        .with_name(topic_name(name))
        .with_partitions(partitions.iter().map(partition).collect());
    let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![asked]);
    let answer = wire.call(&request)?;
    Ok(answer.topics.iter().flat_map(|topic| &topic.partitions).all(|partition| partition.error_code == 0))
}

fn create(wire: &mut Wire, name: &str, partitions: usize) -> Result<()> {
    let topic = create_topics_request::CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(i32::try_from(partitions)?)
        .with_replication_factor(1);
    let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(CREATE_TIMEOUT_MS);
    let answer = wire.call(&request)?;
    match ErrorCode::check(answer.topics.first().context("no answer about the topic")?.error_code) {
        Ok(()) | Err(ErrorCode::TopicAlreadyExists) => Ok(()),
        Err(code) => bail!("CreateTopics of {name}: {code}"),
    }
}

/// A producer id that nobody has had. A broker that has just started needs a moment.
pub(crate) fn new_producer_id(target: &str) -> Result<i64> {
    let mut wire = Wire::connect(target)?;
    let request =
        InitProducerIdRequest::default().with_transactional_id(None).with_transaction_timeout_ms(60_000);
    let answer = Deadline::after(PATIENCE).wait("a producer id", || {
        let answer = wire.call(&request)?;
        match ErrorCode::check(answer.error_code) {
            Ok(()) => Ok(Some(answer.producer_id.0)),
            Err(code) if code.is_retriable() => Ok(None),
            Err(code) => bail!("InitProducerId: {code}"),
        }
    })?;
    ensure!(answer >= 0, "producer id {answer}");
    Ok(answer)
}

fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led_by(id: u128, leaders: &[&str]) -> Topic {
        Topic { id, leaders: (0..).zip(leaders.iter().map(|leader| (*leader).to_owned())).collect() }
    }

    #[test]
    fn partitions_of_the_same_leaders_are_dealt_out_to_few_workers() {
        let from = led_by(1, &["a:1", "a:1", "b:1", "a:1", "a:1", "a:1"]);
        let to = led_by(2, &["x:1", "x:1", "x:1", "y:1", "x:1", "x:1"]);
        let routes = deal(&from, &to, 2);
        let dealt: Vec<(&str, &str, &[i32])> =
            routes.iter().map(|r| (r.source.as_str(), r.target.as_str(), r.partitions.as_slice())).collect();
        assert_eq!(
            dealt,
            [
                ("a:1", "x:1", &[0, 4][..]),
                ("a:1", "x:1", &[1, 5][..]),
                ("a:1", "y:1", &[3][..]),
                ("b:1", "x:1", &[2][..]),
            ]
        );
        assert!(routes.iter().all(|route| route.topic_ids == [1, 2]));
    }
}
