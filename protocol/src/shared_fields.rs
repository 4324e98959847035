//! Fields that Fetch and Produce answers share: how a topic is named, who leads, where a leader lives.

use std::sync::Arc;

use crate::DecodeError;
use crate::primitives::{Reader, make_room};

/// How a message names a topic. Cloning shares the name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TopicRef {
    /// By name: Fetch and Produce up to version 12.
    Name(Arc<str>),
    /// By topic id: from version 13 on.
    Id(u128),
}

impl TopicRef {
    pub(crate) fn read(reader: &mut Reader, by_id: bool) -> Result<Self, DecodeError> {
        if by_id {
            reader.cursor.u128("topic id").map(Self::Id)
        } else {
            reader.string("topic").map(|name| Self::Name(name.into()))
        }
    }
}

/// Where a broker listens (KIP-951).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEndpoint {
    /// Node id.
    pub node_id: i32,
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: i32,
    /// Rack, where the broker has one.
    pub rack: Option<String>,
}

/// The partitions of all topics of an answer; `bytes_min` is what each takes at least.
pub(crate) fn partitions<P>(
    reader: &mut Reader,
    by_id: bool,
    bytes_min: usize,
    mut read: impl FnMut(&mut Reader, TopicRef) -> Result<P, DecodeError>,
) -> Result<Vec<P>, DecodeError> {
    let mut partitions = Vec::new();
    for _ in 0..reader.count("topics", 3)? {
        let topic = TopicRef::read(reader, by_id)?;
        let count = reader.count("partitions", bytes_min)?;
        make_room(&mut partitions, count);
        for _ in 0..count {
            partitions.push(read(reader, topic.clone())?);
        }
        reader.skip_tags()?;
    }
    Ok(partitions)
}

/// The tags of an answer, in which `known` versions name the brokers that lead its partitions.
pub(crate) fn endpoints_in_tags(reader: &mut Reader, known: bool) -> Result<Vec<NodeEndpoint>, DecodeError> {
    let mut endpoints = Vec::new();
    reader.tags(|tag, field| {
        let is_known = known && tag == 0;
        if is_known {
            endpoints = node_endpoints(field)?;
        }
        Ok(is_known)
    })?;
    Ok(endpoints)
}

fn node_endpoints(field: &mut Reader) -> Result<Vec<NodeEndpoint>, DecodeError> {
    let mut endpoints = Vec::new();
    for _ in 0..field.count("node endpoints", 11)? {
        let node_id = field.cursor.i32("node id")?;
        let host = field.string("host")?;
        let port = field.cursor.i32("port")?;
        let rack = field.nullable_string("rack")?;
        field.skip_tags()?;
        endpoints.push(NodeEndpoint { node_id, host, port, rack });
    }
    Ok(endpoints)
}

/// The tagged field with a partition's leader: node id and leader epoch; none where the broker does not know it.
pub(crate) fn current_leader(field: &mut Reader) -> Result<Option<(i32, i32)>, DecodeError> {
    let leader_id = field.cursor.i32("leader id")?;
    let leader_epoch = field.cursor.i32("leader epoch")?;
    field.skip_tags()?;
    Ok((leader_id >= 0).then_some((leader_id, leader_epoch)))
}
