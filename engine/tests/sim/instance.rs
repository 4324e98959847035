//! One process: its machines, and what it believes about the clusters.

use std::collections::{BTreeMap, VecDeque};

use twinlog_engine::machine::Now;
use twinlog_engine::machine::first_start::FirstStart;
use twinlog_engine::machine::flow_identity::FlowIdentity;
use twinlog_engine::machine::flow_starts::FlowStarts;
use twinlog_engine::machine::partition::{Leader, PartitionMachine};
use twinlog_engine::machine::partition_record::PartitionRecord;
use twinlog_engine::machine::state_log::{JobId, StateLog};
use twinlog_engine::state::PartitionKey;

use super::net::{ConnId, Lane};

/// How the flow gets its producer id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    Reading,
    Taking,
    /// Under this candidate, for the offsets at which the flow begins.
    Asking(i64),
    /// The offsets are being stored, the identity is not on its way yet.
    Starting(i64),
    Storing,
    Ready(i64),
}

/// What a job of the state log was for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Job {
    FirstRead,
    Start,
    Identity,
    ReplaceIdentity,
    Store { partition: usize, attempt: Option<u64>, polled_to: i64 },
    ReadState { partition: usize, attempt: u64 },
}

/// A running process.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) number: u64,
    pub(crate) log: StateLog,
    pub(crate) identity: Identity,
    pub(crate) flow: FlowIdentity,
    pub(crate) first_start: FirstStart,
    pub(crate) starts: FlowStarts,
    pub(crate) records: Vec<PartitionRecord>,
    pub(crate) machines: Vec<PartitionMachine>,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    pub(crate) next_job: JobId,
    /// Offset after the last entry that came out of the state log.
    pub(crate) polled_to: i64,
    pub(crate) conns: BTreeMap<(usize, Lane), ConnId>,
    /// Leaders of the target's partitions as the newest metadata has them; the state topic last.
    pub(crate) leaders: Vec<Leader>,
    pub(crate) source_ids: Vec<u128>,
    pub(crate) refreshing: bool,
    pub(crate) wake_at: Option<Now>,
    /// Produce requests under way, by partition.
    pub(crate) in_flight: Vec<usize>,
    /// Whether a line-up allows a partition to send.
    pub(crate) may_send: Vec<bool>,
    /// Partitions that ask for a new producer id.
    pub(crate) id_wanted: VecDeque<(usize, u64)>,
    pub(crate) appending: bool,
    pub(crate) stopping: bool,
}

impl Instance {
    pub(crate) fn new(number: u64, partitions: usize) -> Self {
        let mut log = StateLog::new(number);
        log.refresh(0);
        let nowhere = Leader { node: None, leader_epoch: -1, topic_id: 0 };
        Self {
            number,
            log,
            identity: Identity::Reading,
            flow: FlowIdentity::default(),
            first_start: FirstStart::new(-1, []),
            starts: FlowStarts::default(),
            records: vec![PartitionRecord::default(); partitions],
            machines: Vec::new(),
            jobs: BTreeMap::from([(0, Job::FirstRead)]),
            next_job: 1,
            polled_to: 0,
            conns: BTreeMap::new(),
            leaders: vec![nowhere; partitions + 1],
            source_ids: vec![0; partitions],
            refreshing: false,
            wake_at: None,
            in_flight: vec![0; partitions],
            may_send: vec![false; partitions],
            id_wanted: VecDeque::new(),
            appending: false,
            stopping: false,
        }
    }

    pub(crate) fn job(&mut self, job: Job) -> JobId {
        let id = self.next_job;
        self.next_job += 1;
        self.jobs.insert(id, job);
        id
    }
}

/// The key of a partition in the state topic: each is a topic of its own, which may be made again.
pub(crate) fn key_of(partition: usize) -> PartitionKey {
    PartitionKey {
        source_topic: topic_of(partition),
        target_topic: format!("west.{}", topic_of(partition)),
        partition: 0,
    }
}

/// The source topic of a partition.
pub(crate) fn topic_of(partition: usize) -> String {
    format!("orders-{partition}")
}
