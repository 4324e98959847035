//! Body of the fuzz target `partition_ops`: bytes are what happens to a partition, answer by answer, true or not.
//!
//! J1 Nothing panics, and nothing the machine wants grows without bound. J2 It sends in the generation that its record
//! names, and by rising sequences without a gap between two line-ups. J3 No more batches are under way than a window holds.
//! J4 No timer asks to be woken again and again at the same moment with nothing done.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use twinlog_protocol::batch::{BatchHeader, Compression, ProducerStamp};
use twinlog_protocol::fetch::AbortedTransaction;
use twinlog_protocol::record::BatchBuilder;
use twinlog_protocol::{ErrorCode, OFFSET_MAX};

use super::{
    Command, CopySearch, Fetched, FetchedRecords, Leader, MergeSizes, OpenTransaction, Packing,
    PartitionConfig, PartitionMachine, RequestFailure, Side, SourceSpan,
};
use crate::machine::Now;
use crate::machine::line_up::{LastBatch, Question};
use crate::machine::lineage::{Generation, Run};
use crate::machine::loss::{LossPolicy, OnLoss, OnTargetLoss};
use crate::machine::partition_record::{PartitionEntry, PartitionRecord};
use crate::machine::produce_window::ProduceAnswer;
use crate::machine::resume::{Tail, TailBatch};

/// Batches under way at most, as brokers keep that many of a producer in mind.
const WINDOW: usize = 5;
/// Commands that one thing may bring.
const COMMANDS_MAX: usize = 10_000;
const BACKLOG_BYTES_MAX: usize = 4_000;
/// Errors that brokers answer with, of each kind of consequence.
const CODES: [ErrorCode; 8] = [
    ErrorCode::NotLeaderOrFollower,
    ErrorCode::OffsetOutOfRange,
    ErrorCode::MessageTooLarge,
    ErrorCode::OutOfOrderSequenceNumber,
    ErrorCode::InvalidProducerEpoch,
    ErrorCode::TopicAuthorizationFailed,
    ErrorCode::CorruptMessage,
    ErrorCode::UnknownTopicId,
];

/// Any bytes.
///
/// # Panics
/// Where J1, J2, J3 or J4 does not hold.
pub fn partition_ops(input: &[u8]) {
    let mut play = Play::new(input);
    while !play.rest.is_empty() {
        play.step();
        play.take_commands();
    }
}

/// The machine, what it waits for, and the bytes that are left.
struct Play<'a> {
    rest: &'a [u8],
    machine: PartitionMachine,
    now: Now,
    waiting: VecDeque<Command>,
    under_way: VecDeque<u64>,
    /// Producer id, epoch and sequence that comes next, since the last line-up.
    next: Option<(i64, i16, i32)>,
    /// The sequence behind everything that was sent.
    sent_to: Option<i32>,
    log_end: i64,
}

fn packing(input: &[u8]) -> Packing {
    let codec = input.last().filter(|byte| **byte > 170).map(|byte| Compression::ALL[usize::from(byte % 5)]);
    Packing { codec, ..Packing::default() }
}

/// What is done about losses, by the last byte: the others mean what they meant before.
fn losses(input: &[u8]) -> LossPolicy {
    let last = input.last().copied().unwrap_or(0);
    let on_target_loss = [OnTargetLoss::Hold, OnTargetLoss::Recopy, OnTargetLoss::Continue];
    LossPolicy {
        on_loss: if last & 1 == 0 { OnLoss::Continue } else { OnLoss::Hold },
        on_target_loss: on_target_loss[usize::from(last >> 1) % on_target_loss.len()],
        skips_refused: last & 0x40 != 0,
    }
}

impl<'a> Play<'a> {
    fn new(input: &'a [u8]) -> Self {
        let config = PartitionConfig {
            fingerprint: 3,
            producer_id: 7,
            first_epoch: 5,
            first_sequence: 0,
            backlog_bytes_max: BACKLOG_BYTES_MAX,
            // Small enough that a few records go in pieces.
            merge_sizes: MergeSizes { merged_bytes_max: 120, ..MergeSizes::default() },
            losses: losses(input),
            packing: packing(input),
        };
        Self {
            rest: input,
            machine: PartitionMachine::new(config, PartitionRecord::default()),
            now: Duration::from_secs(1000),
            waiting: VecDeque::new(),
            under_way: VecDeque::new(),
            next: None,
            sent_to: None,
            log_end: 0,
        }
    }

    fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *byte
    }

    /// An offset near what is true, most of the time; none that the decoders let nobody have.
    fn near(&mut self, truth: i64) -> i64 {
        match self.byte() {
            255 => OFFSET_MAX,
            254 => 0,
            byte @ 200.. => (truth + i64::from(byte) - 226).clamp(0, OFFSET_MAX),
            _ => truth.clamp(0, OFFSET_MAX),
        }
    }

    fn step(&mut self) {
        match self.byte() % 12 {
            0 => {
                let pause = Duration::from_millis(u64::from(self.byte()) * 200);
                self.now += pause;
            }
            1 => self.leaders(),
            2..=4 => self.answer(),
            5 | 6 => self.fetch(),
            7 | 8 => self.produced(),
            9 => self.foreign_entry(),
            10 => {
                let compacts = self.byte().is_multiple_of(2);
                self.machine.handle_source_compacts(compacts);
            }
            _ => self.rare(),
        }
        self.wake();
    }

    /// J4.
    fn wake(&mut self) {
        for _ in 0..COMMANDS_MAX {
            if self.machine.wants_turn() {
                self.machine.handle_turn(self.now);
            } else if self.machine.next_timeout().is_none_or(|at| at > self.now) {
                return;
            } else {
                self.machine.handle_timeout(self.now);
            }
            self.take_commands();
        }
        panic!("J4: a timer is due for ever: {:?} at {:?}", self.machine.next_timeout(), self.now);
    }

    fn leaders(&mut self) {
        let leader = |byte: u8, topic_id: u128| match byte % 8 {
            0 => None,
            1 => Some(Leader { node: None, leader_epoch: 0, topic_id }),
            2 => Some(Leader { node: Some(1), leader_epoch: 0, topic_id: topic_id + 10 }),
            byte => Some(Leader { node: Some(1), leader_epoch: i32::from(byte / 4), topic_id }),
        };
        let (source, target) = (leader(self.byte(), 1), leader(self.byte(), 2));
        self.machine.handle_leaders(self.now, source, target);
    }

    /// Answers the oldest question.
    fn answer(&mut self) {
        let Some(command) = self.waiting.pop_front() else { return };
        let (now, fails) = (self.now, self.byte() > 230);
        let why = RequestFailure::Broker(CODES[usize::from(self.byte()) % CODES.len()]);
        match command {
            Command::Ask { attempt, .. } if fails => {
                self.machine.handle_failure(now, attempt, Side::Target, "ListOffsets", &why);
            }
            Command::Ask { attempt, question: Question::LastBatch, .. } => {
                let last = self.last_batch();
                self.machine.handle_last_batch(now, attempt, last);
            }
            Command::Ask { attempt, question, .. } => {
                let offset = self.near(self.log_end);
                self.machine.handle_offset(now, attempt, question, offset);
            }
            Command::ReadTail { attempt, from, to, .. } => {
                let last = self.last_batch().map(|batch| TailBatch { batch, next_offset: to });
                let records = u64::from(self.byte());
                self.machine.handle_tail(now, attempt, Tail { from: from.max(0), last, records });
            }
            Command::FindCopy { attempt, .. } => {
                let search = [CopySearch::Nothing, CopySearch::NotAtSource, CopySearch::Ambiguous];
                let search = search[usize::from(self.byte()) % search.len()];
                self.machine.handle_copy(now, attempt, search);
            }
            Command::AskSourceSpan { attempt } => {
                let (log_start, high_watermark) = (self.near(0), self.near(1_000));
                let span = SourceSpan { log_start, high_watermark };
                self.machine.handle_source_span(now, attempt, span);
            }
            Command::AskOpenTransaction { offset } => {
                let found = OpenTransaction { producer_id: 9, producer_epoch: 0, age: None };
                self.machine.handle_open_transaction(offset, &if fails { Err(why) } else { Ok(found) });
            }
            Command::ReadState { attempt } => self.machine.handle_state_read(now, attempt),
            Command::TakeProducerId { attempt } => self.machine.handle_producer_id(now, attempt, 8),
            Command::Store { attempt, entry } => {
                let won = !fails;
                if won {
                    self.machine.handle_state(&entry);
                }
                if let Some(attempt) = attempt {
                    self.machine.handle_stored(now, attempt, won);
                }
            }
            Command::Produce { .. } | Command::RefreshMetadata(_) | Command::Emit(_) => {}
        }
    }

    fn last_batch(&mut self) -> Option<LastBatch> {
        let generation = self.machine.record().current()?.generation;
        let pick = self.byte();
        let next = self.sent_to.filter(|_| pick < 200)?;
        let last_sequence = if pick < 100 { next - 1 } else { i32::from(pick) };
        let producer_epoch = generation.producer_epoch.saturating_add(i16::from(pick > 190));
        Some(LastBatch { producer_epoch, last_sequence })
    }

    fn fetch(&mut self) {
        let Some(offset) = self.machine.fetch_wanted(self.now) else { return };
        self.machine.handle_fetch_sent(offset);
        let result = match self.byte() {
            pick @ 240.. => Err(RequestFailure::Broker(CODES[usize::from(pick) % CODES.len()])),
            239 => Err(RequestFailure::Unanswered("closed".to_owned())),
            pick => Ok(FetchedRecords {
                records: self.records(offset),
                high_watermark: self.near(1_000),
                last_stable_offset: (pick % 4 == 0).then(|| self.near(offset)),
                aborted: (pick % 5 == 0)
                    .then_some(AbortedTransaction { producer_id: 9, first_offset: offset })
                    .into_iter()
                    .collect(),
                log_start: 0,
                diverging: (pick == 1).then_some((0, 0)),
            }),
        };
        self.machine.handle_fetched(self.now, Fetched { offset, result });
        assert!(self.machine.backlog_bytes() <= BACKLOG_BYTES_MAX + (1 << 16), "J1: the backlog grows");
    }

    /// Some batches from about there on: dense, thinned, of a transaction, or damaged.
    fn records(&mut self, offset: i64) -> Bytes {
        let mut records = Vec::new();
        let mut next = offset.saturating_sub(i64::from(self.byte() % 4)).max(0);
        for _ in 0..self.byte() % 6 {
            let stamp = ProducerStamp { producer_id: 9, producer_epoch: 0, base_sequence: 0 };
            let mut batch = BatchBuilder::new().base_offset(next).producer(stamp);
            if self.byte().is_multiple_of(3) {
                batch = batch.transactional();
            }
            for _ in 0..=self.byte() % 8 {
                let gap = u32::from(self.byte()).saturating_sub(220);
                let pushed = batch.leave_gap(gap).and_then(|()| batch.push(0, None, None, Vec::new()));
                pushed.expect("few records");
            }
            let batch = batch.build().expect("one record at least");
            next = batch.header().next_offset();
            records.extend_from_slice(batch.bytes());
        }
        let (at, flip) = (usize::from(self.byte()), self.byte());
        if let Some(byte) = records.get_mut(at).filter(|_| flip > 200) {
            *byte ^= flip;
        }
        records.into()
    }

    fn produced(&mut self) {
        let Some(ticket) = self.under_way.pop_front() else { return };
        let answer = match self.byte() {
            pick @ 240.. => {
                let code = CODES[usize::from(pick) % CODES.len()];
                ProduceAnswer::Failed { code, detail: String::new(), named: 0 }
            }
            230..=239 => ProduceAnswer::Lost,
            _ => {
                let base_offset = self.near(self.log_end);
                self.log_end = base_offset.clamp(0, 1 << 40) + 1;
                ProduceAnswer::Acknowledged { base_offset, log_append_time_ms: -1 }
            }
        };
        self.machine.handle_produced(self.now, ticket, answer);
    }

    /// Somebody else has written about the partition.
    fn foreign_entry(&mut self) {
        let Some(current) = self.machine.record().current().map(|lineage| lineage.generation) else { return };
        let Generation { producer_id, producer_epoch, .. } = current;
        let number = u64::from(self.byte());
        let run = Run { number, upstream: self.near(100), downstream: self.near(self.log_end) };
        let entry = match self.byte() % 4 {
            0 => PartitionEntry::Opened(
                Generation {
                    producer_epoch: producer_epoch.saturating_add(1),
                    upstream_start: self.near(100),
                    fingerprint: u64::from(self.byte() % 2) + 2,
                    ..current
                },
                None,
            ),
            1 => PartitionEntry::Runs { producer_id, producer_epoch, runs: vec![run] },
            _ => PartitionEntry::Progress { producer_id, producer_epoch, mark: run, epoch: None },
        };
        self.machine.handle_state(&entry);
    }

    fn rare(&mut self) {
        if self.byte() > 250 {
            self.machine.handle_stop(self.now);
        }
    }

    fn take_commands(&mut self) {
        for _ in 0..COMMANDS_MAX {
            match self.machine.poll_command() {
                None => return,
                Some(Command::Produce { ticket, batch, .. }) => {
                    let header = BatchHeader::parse(&batch.head).expect("a header of ours");
                    self.sent(ticket, &header);
                }
                Some(Command::Ask { attempt, question, leader_epoch, producer_id }) => {
                    // J2 begins anew: what was under way may or may not have arrived.
                    self.next = self.next.filter(|_| question != Question::LogEnd);
                    self.waiting.push_back(Command::Ask { attempt, question, leader_epoch, producer_id });
                }
                Some(Command::RefreshMetadata(_) | Command::Emit(_)) => {}
                Some(command) => self.waiting.push_back(command),
            }
        }
        panic!("J1: commands without end");
    }

    /// J2, J3.
    fn sent(&mut self, ticket: u64, header: &BatchHeader) {
        self.under_way.push_back(ticket);
        assert!(self.under_way.len() <= WINDOW, "J3: {} batches are under way", self.under_way.len());
        let generation = self.machine.record().current().expect("J2: sent without a generation").generation;
        let id = (header.producer_id, header.producer_epoch);
        assert_eq!(id, (generation.producer_id, generation.producer_epoch), "J2: sent in another generation");
        if let Some((producer_id, producer_epoch, next)) = self.next
            && (producer_id, producer_epoch) == id
        {
            assert_eq!(header.base_sequence, next, "J2: a gap or a repeat in the sequences");
        }
        let next = header.last_sequence().wrapping_add(1) & i32::MAX;
        self.next = Some((header.producer_id, header.producer_epoch, next));
        self.sent_to = Some(next);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_happens_is_borne(input in proptest::collection::vec(any::<u8>(), 0..2_000)) {
            super::partition_ops(&input);
        }
    }
}
