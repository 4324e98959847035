//! Partitions that copy, and the answers of a target and a state topic that hold nothing yet.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use twinlog_engine::machine::Now;
use twinlog_engine::machine::line_up::Question;
use twinlog_engine::machine::loss::LossPolicy;
use twinlog_engine::machine::partition::{
    Command, Fetched, FetchedRecords, Leader, MergeSizes, Packing, PartitionConfig, PartitionMachine,
    SourceSpan,
};
use twinlog_engine::machine::partition_record::PartitionRecord;
use twinlog_engine::machine::produce_window::ProduceAnswer;
use twinlog_protocol::batch::Forwarded;
use twinlog_protocol::fetch::FetchResponse;
use twinlog_protocol::produce::{Gather, ProducePartition, produce_frame};

use crate::answers::{FETCH_VERSION, PRODUCE_VERSION, TOPIC_ID};

pub(crate) const TOPIC: &str = "orders";

/// Time stands still: nothing is late, no progress is stored.
const NOW: Now = Duration::from_secs(1);

/// A batch that a partition wants to be sent.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) partition: usize,
    pub(crate) ticket: u64,
    pub(crate) batch: Forwarded,
}

impl Sending {
    /// Its Produce request.
    pub(crate) fn frame(self, correlation_id: i32) -> Gather {
        let partition = i32::try_from(self.partition).expect("few partitions");
        let topic = TOPIC.into();
        let entry = ProducePartition { topic, topic_id: TOPIC_ID, partition, batch: self.batch };
        produce_frame(PRODUCE_VERSION, correlation_id, "twinlog", -1, 5000, &[entry]).expect("short names")
    }
}

/// The partitions of one topic.
#[derive(Debug)]
pub(crate) struct Partitions {
    machines: Vec<PartitionMachine>,
    ready: VecDeque<Sending>,
}

impl Partitions {
    /// Lined up, so that they want records from offset 0.
    pub(crate) fn copying(count: i32) -> Self {
        let config = PartitionConfig {
            fingerprint: 1,
            producer_id: 1000,
            first_epoch: 1,
            first_sequence: 0,
            backlog_bytes_max: 64 << 20,
            merge_sizes: MergeSizes::default(),
            losses: LossPolicy::default(),
            packing: Packing::default(),
        };
        let leader = Some(Leader { node: Some(1), leader_epoch: 0, topic_id: TOPIC_ID });
        let machines = (0..count).map(|_| PartitionMachine::new(config.clone(), PartitionRecord::default()));
        let mut partitions = Self { machines: machines.collect(), ready: VecDeque::new() };
        for partition in 0..partitions.machines.len() {
            partitions.machines[partition].handle_leaders(NOW, leader, leader);
            partitions.settle(partition);
            assert_eq!(partitions.machines[partition].fetch_wanted(NOW), Some(0));
        }
        partitions
    }

    /// Reads a Fetch answer and gives each partition its part.
    pub(crate) fn take_fetched(&mut self, body: Bytes) {
        let response = FetchResponse::decode(FETCH_VERSION, body).unwrap();
        assert_eq!(response.partitions.len(), self.machines.len());
        for part in response.partitions {
            let partition = usize::try_from(part.partition).unwrap();
            let machine = &mut self.machines[partition];
            let offset = machine.fetch_wanted(NOW).expect("everything before was acknowledged");
            machine.handle_fetch_sent(offset);
            let records = FetchedRecords {
                records: part.records,
                high_watermark: part.high_watermark,
                last_stable_offset: None,
                aborted: Vec::new(),
                log_start: part.log_start_offset,
                diverging: part.diverging_epoch,
            };
            machine.handle_fetched(NOW, Fetched { offset, result: Ok(records) });
            self.settle(partition);
        }
    }

    pub(crate) fn take_acknowledged(&mut self, partition: usize, ticket: u64, base_offset: i64) {
        let answer = ProduceAnswer::Acknowledged { base_offset, log_append_time_ms: -1 };
        self.machines[partition].handle_produced(NOW, ticket, answer);
        self.settle(partition);
    }

    /// What wants to be sent next.
    pub(crate) fn poll_sending(&mut self) -> Option<Sending> {
        self.ready.pop_front()
    }

    /// Carries out what the partition asks for.
    fn settle(&mut self, partition: usize) {
        let machine = &mut self.machines[partition];
        while let Some(command) = machine.poll_command() {
            match command {
                Command::Ask { attempt, question: Question::LastBatch, .. } => {
                    machine.handle_last_batch(NOW, attempt, None);
                }
                Command::Ask { attempt, question, .. } => machine.handle_offset(NOW, attempt, question, 0),
                Command::AskSourceSpan { attempt } => {
                    let span = SourceSpan { log_start: 0, high_watermark: 0 };
                    machine.handle_source_span(NOW, attempt, span);
                }
                Command::ReadState { attempt } => machine.handle_state_read(NOW, attempt),
                Command::Store { attempt, entry } => {
                    machine.handle_state(&entry);
                    if let Some(attempt) = attempt {
                        machine.handle_stored(NOW, attempt, true);
                    }
                }
                Command::Produce { ticket, batch, .. } => {
                    self.ready.push_back(Sending { partition, ticket, batch });
                }
                Command::Emit(_) => {}
                other => panic!("not on this path: {other:?}"),
            }
        }
    }
}
