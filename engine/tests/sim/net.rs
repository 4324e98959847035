//! Connections between instances and nodes: in order inside one, unordered across them.
//!
//! A node works one request of a connection at a time. A closed connection loses its answers; of its requests a first
//! part is lost or still arrives, perhaps much later, as long as the node's process lives.

use std::collections::{BTreeMap, VecDeque};

use twinlog_engine::machine::Now;
use twinlog_engine::machine::line_up::{LastBatch, Question};
use twinlog_engine::machine::partition::CopySearch;
use twinlog_engine::machine::resume::Tail;
use twinlog_engine::machine::state_log::LogRead;
use twinlog_protocol::ErrorCode;

use super::replica::Batch;

pub(crate) type ConnId = usize;
pub(crate) type RequestId = u64;

/// A request on its way through a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    pub(crate) conn: ConnId,
    pub(crate) request: RequestId,
}

/// What kind of traffic a connection carries: requests of two lanes never wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    Shared,
    Admin,
    State,
    Apart(usize),
}

#[derive(Debug, Clone)]
pub(crate) enum Request {
    Produce { partition: usize, topic_id: u128, batch: Batch },
    LogEnd { partition: usize, epoch: i32 },
    LastBatch { partition: usize, producer_id: Option<i64> },
    HighWatermark { partition: usize, epoch: i32 },
    Tail { partition: usize, from: i64, to: i64, producer_id: i64 },
    FindCopy { partition: usize, to: i64 },
    ReadState { from: i64 },
    InitProducerId,
}

#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Appended { base_offset: i64 },
    Offset(i64),
    LastBatch(Option<LastBatch>),
    Tail(Tail),
    Copy(CopySearch),
    State(LogRead),
    ProducerId(i64),
    Error(ErrorCode),
}

/// What an instance wanted to know.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Ask { partition: usize, attempt: u64, question: Question },
    Tail { partition: usize, attempt: u64 },
    FindCopy { partition: usize, attempt: u64 },
    Produce { partition: usize, ticket: u64 },
    StateAsk { question: Question },
    StateRead,
    StateAppend,
    ProducerId,
}

#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) instance: usize,
    pub(crate) life: u64,
    pub(crate) node: usize,
    pub(crate) node_life: u64,
    pub(crate) open: bool,
    /// Answers are lost from now on.
    pub(crate) mute: bool,
    /// Requests that have not arrived.
    pub(crate) transit: VecDeque<(RequestId, Request)>,
    /// Requests that have arrived and wait for the node.
    pub(crate) inbound: VecDeque<(RequestId, Request)>,
    pub(crate) busy: Option<RequestId>,
    /// What the instance waits for.
    pub(crate) outstanding: BTreeMap<RequestId, Purpose>,
    pub(crate) last_arrival: Now,
    pub(crate) last_answer: Now,
    /// Nothing arrives before, once the connection is closed.
    pub(crate) late_until: Now,
}

#[derive(Debug, Default)]
pub(crate) struct Net {
    pub(crate) conns: Vec<Conn>,
    requests: RequestId,
}

impl Net {
    pub(crate) fn open(&mut self, instance: usize, life: u64, node: usize, node_life: u64) -> ConnId {
        self.conns.push(Conn {
            instance,
            life,
            node,
            node_life,
            open: true,
            mute: false,
            transit: VecDeque::new(),
            inbound: VecDeque::new(),
            busy: None,
            outstanding: BTreeMap::new(),
            last_arrival: Now::ZERO,
            last_answer: Now::ZERO,
            late_until: Now::ZERO,
        });
        self.conns.len() - 1
    }

    pub(crate) fn next_request(&mut self) -> RequestId {
        self.requests += 1;
        self.requests
    }

    /// Whether a batch is still under way to a node although nobody waits for it.
    pub(crate) fn has_orphans(&self) -> bool {
        self.conns.iter().any(|conn| !(conn.open || conn.transit.is_empty() && conn.inbound.is_empty()))
    }
}
