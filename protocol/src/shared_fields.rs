//! Fields that Fetch and Produce answers share: how a topic is named, who leads, where a leader lives.

use std::sync::Arc;

use crate::DecodeError;
use crate::primitives::Reader;

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

/// The tagged field with the brokers that the answer's leaders are.
pub(crate) fn node_endpoints(field: &mut Reader) -> Result<Vec<NodeEndpoint>, DecodeError> {
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
