//! The steady state: what was fetched is planned, acknowledgements move the mark, what is refused is judged.

use std::mem;
use std::time::Duration;

use twinlog_protocol::{ErrorCode, Retry};

use super::losses::Obstacle;
use super::{
    Closing, Command, Event, Fetched, GONE_AFTER, OpenTransaction, PartitionMachine, Phase, RequestFailure,
    Side, SourceSpan,
};
use crate::machine::Now;
use crate::machine::backoff::doubled;
use crate::machine::hold::HoldReason;
use crate::machine::lineage::{Generation, Run};
use crate::machine::partition_record::{PartitionEntry, SourceEpoch};
use crate::machine::produce_window::{ProduceAnswer, Sent, is_overtaken};

/// Progress is stored this long after the first acknowledgement that is not covered …
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// … or this long after the last one, when the partition has become idle.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// Pause after a Fetch that brought an error; it doubles up to the longest.
const FETCH_PAUSE: Duration = Duration::from_millis(100);
const FETCH_PAUSE_MAX: Duration = Duration::from_secs(2);
/// Pause between two looks for a leader at the source.
const LEADER_PAUSE: Duration = Duration::from_secs(1);

impl PartitionMachine {
    /// The offset to fetch from, if the partition wants records now.
    #[must_use]
    pub fn fetch_wanted(&self, now: Now) -> Option<i64> {
        let wants = matches!(self.phase, Phase::Copying)
            && !self.stopping
            && !self.window.is_closed()
            && self.fetching.is_none()
            && self.fetch_not_before.is_none_or(|at| at <= now)
            && self.backlog.hold().is_none()
            && !self.backlog.is_planning()
            && self.backlog.bytes() < self.config.backlog_bytes_max
            && self.source.is_some_and(|leader| leader.node.is_some());
        wants.then(|| self.backlog.read_next())
    }

    /// The offset of the Fetch whose answer the partition waits for, if it does.
    #[must_use]
    pub fn fetching(&self) -> Option<i64> {
        self.fetching.filter(|_| matches!(self.phase, Phase::Copying))
    }

    /// Upstream offset behind everything that was fetched.
    #[must_use]
    pub fn read_next(&self) -> i64 {
        self.backlog.read_next()
    }

    /// Leader epoch of the last batch fetched, -1 where none was: the source compares it with its own log (KIP-595).
    #[must_use]
    pub fn last_fetched_epoch(&self) -> i32 {
        self.backlog.read_epoch()
    }

    /// Bytes of batches that wait to be sent.
    #[must_use]
    pub fn backlog_bytes(&self) -> usize {
        self.backlog.bytes()
    }

    /// Whether what waits for the target is merged, because the link to its leader is a long one: more of it has to wait.
    #[must_use]
    pub fn is_target_far(&self) -> bool {
        self.merging.is_far()
    }

    /// Bytes of batches that were fetched and that the target has not taken: so long they use memory.
    #[must_use]
    pub fn untaken_bytes(&self) -> usize {
        self.backlog.bytes() + self.window.bytes()
    }

    /// A Fetch from `offset` is under way.
    pub fn handle_fetch_sent(&mut self, offset: i64) {
        self.fetching = Some(offset);
    }

    /// A Fetch came back.
    pub fn handle_fetched(&mut self, now: Now, fetched: Fetched) {
        if self.fetching != Some(fetched.offset) || !matches!(self.phase, Phase::Copying) {
            return;
        }
        if matches!(&fetched.result, Err(RequestFailure::Broker(ErrorCode::OffsetOutOfRange))) {
            // Another instance may have copied on while the source's log start moved: look before holding. Until then
            // the Fetch counts as under way.
            self.commands.push_back(Command::AskSourceSpan { attempt: self.attempt });
            return;
        }
        self.fetching = None;
        match fetched.result {
            Ok(mut records) => {
                self.fetch_failures = 0;
                if records.records.is_empty() && self.window.is_empty() && self.backlog.is_empty() {
                    self.end_trouble();
                }
                self.readable_end = Some(records.readable_end());
                if let Some((leader_epoch, end_offset)) = records.diverging {
                    let position = fetched.offset;
                    self.backlog.hold_with(HoldReason::Diverged { position, leader_epoch, end_offset });
                } else {
                    self.lost_since = None;
                    let (batches, aborted) =
                        (mem::take(&mut records.records), mem::take(&mut records.aborted));
                    self.backlog.plan(batches, aborted, self.config.packing.unpacked_bytes_max);
                    if self.transaction_watch.handle_fetched(now, self.backlog.read_next(), &records) {
                        self.commands.push_back(Command::Emit(Event::GoesOn));
                    }
                }
            }
            Err(why) => {
                self.note_trouble(now, &format_args!("Fetch on the source: {why}"));
                self.handle_fetch_failure(now, "Fetch", &why);
            }
        }
        self.advance(now);
    }

    /// The transaction at this upstream offset was looked at.
    pub fn handle_open_transaction(&mut self, offset: i64, found: &Result<OpenTransaction, RequestFailure>) {
        if let Some(why) = self.transaction_watch.handle_found(offset, found) {
            self.commands.push_back(Command::Emit(Event::Waits { why }));
        }
    }

    /// The source's log was looked at because a Fetch was out of range.
    pub(super) fn handle_span_after_fetch(&mut self, now: Now, span: SourceSpan) {
        let Some(offset) = self.fetching.take() else { return };
        if offset > span.high_watermark {
            self.backlog.hold_with(out_of_range(offset, span));
        } else {
            // What was not copied by now is not there any more: the line-up tells.
            self.obstacle = Some(Obstacle::OutOfRange(span));
            self.fetch_not_before = Some(now + FETCH_PAUSE);
            self.realign();
        }
        self.advance(now);
    }

    pub(super) fn handle_fetch_failure(&mut self, now: Now, request: &'static str, why: &RequestFailure) {
        self.fetching = None;
        match why {
            RequestFailure::Broker(code) if code.retry() == Retry::Never => {
                let code = code.to_string();
                self.backlog.hold_with(HoldReason::Denied { side: Side::Source, request, code });
            }
            RequestFailure::Broker(_) | RequestFailure::Unanswered(_) => {
                let pause = doubled(FETCH_PAUSE, self.fetch_failures, FETCH_PAUSE_MAX);
                self.fetch_failures = self.fetch_failures.saturating_add(1);
                self.fetch_not_before = Some(now + pause);
                self.commands.push_back(Command::RefreshMetadata(Side::Source));
            }
        }
    }

    /// A Produce request ended for the batch with this ticket.
    pub fn handle_produced(&mut self, now: Now, ticket: u64, answer: ProduceAnswer) {
        if answer != ProduceAnswer::Lost {
            self.heard_at = now;
        }
        if let (ProduceAnswer::Acknowledged { log_append_time_ms, .. }, Some((batch, sent_at))) =
            (&answer, self.window.under_way(ticket))
        {
            self.merging.handle_taken(batch, now.saturating_sub(sent_at));
            // A batch that is there already is answered with the time of its records.
            let has_broker_time = *log_append_time_ms >= 0 && *log_append_time_ms != batch.max_timestamp_ms;
            if has_broker_time && !mem::replace(&mut self.has_broker_time, true) {
                self.commands.push_back(Command::Emit(Event::BrokerTime));
            }
        }
        self.window.handle_answer(ticket, answer);
        self.advance(now);
    }

    pub(super) fn handle_runs_stored(&mut self, now: Now, won: bool) {
        self.storing = false;
        if won {
            self.backlog.handle_stored();
        } else {
            self.realign();
        }
        self.advance(now);
    }

    /// Comes to rest and lines up: somebody else has moved the partition.
    pub(super) fn realign(&mut self) {
        self.must_line_up = true;
        self.window.drain();
    }

    pub(super) fn go_on_copying(&mut self, now: Now) {
        self.fetch_not_before = self.fetch_not_before.filter(|at| *at > now);
        while let Some((batch, base_offset)) = self.window.poll_acknowledged() {
            self.handle_acknowledged(now, batch, base_offset);
        }
        if self.turn_bytes > 0 {
            self.backlog.plan_on(self.config.packing.unpacked_bytes_max);
        }
        if !self.window.is_closed() {
            self.store_runs();
            self.send_ready(now);
            self.move_apart_if_late(now);
        }
        if !matches!(self.phase, Phase::Copying) {
            return;
        }
        // Sending may have closed the window again, with nothing under way.
        if let Some(closing) = self.window.drained().cloned() {
            return self.after_drain(now, closing);
        }
        self.store_progress_if_due(now);
        self.look_for_source(now);
        if let Some(offset) = self.transaction_watch.poll_look(now) {
            self.commands.push_back(Command::AskOpenTransaction { offset });
        }
        let source_is_gone = self.missing_since[0].is_some_and(|since| since + GONE_AFTER <= now);
        if source_is_gone {
            self.backlog.hold_with(HoldReason::Deleted { side: Side::Source });
        }
        let all_is_out = self.window.is_empty() && self.backlog.is_empty();
        if let Some(reason) = self.backlog.hold().filter(|_| all_is_out).cloned() {
            self.store_progress();
            self.leave_copying(now, reason);
        }
    }

    /// Without a leader there is no Fetch whose failure would ask for new metadata.
    fn look_for_source(&mut self, now: Now) {
        let is_led = self.source.is_some_and(|leader| leader.node.is_some());
        if !is_led && self.fetch_not_before.is_none() {
            self.fetch_not_before = Some(now + LEADER_PAUSE);
            self.commands.push_back(Command::RefreshMetadata(Side::Source));
        }
    }

    fn handle_acknowledged(&mut self, now: Now, batch: Sent, base_offset: i64) {
        self.failures = 0;
        self.end_trouble();
        let (records, bytes) = (u64::from(batch.records), batch.bytes as u64);
        self.commands.push_back(Command::Emit(Event::Copied { records, bytes }));
        let is_sending = |generation: &Generation| {
            self.sending == Some((generation.producer_id, generation.producer_epoch))
        };
        let lineage = self.record.current().filter(|lineage| is_sending(&lineage.generation));
        // A generation that another instance opened meanwhile numbers records in its own way.
        let Some(lineage) = lineage else { return };
        let expected = lineage.at(batch.number);
        let next = batch.next_number();
        // Below the mark everything is known: another instance's progress has overtaken us.
        let is_known = self.record.mark().is_some_and(|mark| batch.number < mark.number);
        if !is_known && base_offset < expected.downstream {
            // The target has this range at a place where something else of ours should be.
            return self.realign();
        }
        if !is_known && base_offset > expected.downstream {
            self.backlog.shift(base_offset - expected.downstream);
            let (from, to) = (expected.downstream, base_offset);
            let event = Event::ForeignRecords { expected: from, found: to };
            self.commands.push_back(Command::Emit(event));
            if batch.number == 0 {
                // Before a new epoch's first batch a late one of an old epoch is not refused: it may be ours.
                let (attempt, producer_id) = (self.attempt, lineage.generation.producer_id);
                self.commands.push_back(Command::ReadTail { attempt, from, to, producer_id });
            }
        }
        let downstream = base_offset + i64::from(batch.records);
        let mark = Run { downstream, ..lineage.at(next) };
        let upstream_start = lineage.generation.upstream_start;
        let epoch =
            SourceEpoch::behind(self.record.epoch(), upstream_start, batch.leader_epoch, batch.upstream_next);
        self.record.advance(mark, epoch);
        self.is_disputed = false;
        let first = self.unsaved.map_or(now, |(first, _)| first);
        self.unsaved = Some((first, now));
    }

    fn store_runs(&mut self) {
        let Some(lineage) = self.record.current() else { return };
        if self.storing || self.backlog.unstored().is_empty() {
            return;
        }
        if self.backlog.unstored().iter().any(|run| lineage.contradicts(*run)) {
            return self.dispute();
        }
        let all = self.source_compacts;
        let runs = loop {
            let mut runs = self.backlog.take_unstored();
            // Stored before, by us or by another instance.
            runs.retain(|run| {
                if all { !lineage.tells(*run) } else { lineage.at(run.number).upstream != run.upstream }
            });
            if !runs.is_empty() {
                break runs;
            }
            self.backlog.handle_stored();
            if self.backlog.unstored().is_empty() {
                return;
            }
        };
        self.storing = true;
        let Generation { producer_id, producer_epoch, .. } = lineage.generation;
        let entry = PartitionEntry::Runs { producer_id, producer_epoch, runs };
        self.commands.push_back(Command::Store { attempt: Some(self.attempt), entry });
    }

    /// P2: a stored run gives numbers to other records than the source has for them. Where that is so after a look at
    /// everything stored, the source has lost records that were numbered: another map, hence another generation.
    pub(super) fn dispute(&mut self) {
        if mem::replace(&mut self.is_disputed, true) {
            self.obstacle = Some(Obstacle::Disputed);
        }
        self.realign();
    }

    fn move_apart_if_late(&mut self, now: Now) {
        if !self.apart && self.window.late_at().is_some_and(|at| at <= now) {
            self.wants_apart = true;
            self.window.drain();
        }
    }

    fn after_drain(&mut self, now: Now, closing: Closing) {
        self.apart |= mem::take(&mut self.wants_apart);
        let must_line_up = mem::take(&mut self.must_line_up);
        match closing {
            Closing::Drain if self.stopping => {
                self.store_progress();
                self.stopped_at = self.position();
                self.phase = Phase::Stopped;
            }
            Closing::Drain if must_line_up => self.begin_line_up(now),
            Closing::Drain => {
                self.window.open(false);
                self.go_on_copying(now);
            }
            Closing::Answer { answer: ProduceAnswer::Failed { code, named, .. }, batch }
                if self.skips(&batch, code, named) =>
            {
                self.begin_line_up(now);
            }
            Closing::Answer { answer: ProduceAnswer::Failed { code, .. }, batch }
                if refuses(code) && self.goes_otherwise(now, &batch, code) =>
            {
                let why = match batch.batches {
                    1 => format!("{code} for {} bytes: they go in smaller batches", batch.sent_bytes),
                    batches => format!("{code} for {batches} batches as one"),
                };
                self.commands.push_back(Command::Emit(Event::InDoubt { why }));
                self.begin_line_up(now);
            }
            Closing::Answer { answer: ProduceAnswer::Failed { code, detail, .. }, batch }
                if refuses(code) =>
            {
                let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
                self.store_progress();
                let (offset, bytes) = (batch.upstream, batch.sent_bytes);
                self.hold(now, HoldReason::Refused { offset, bytes, code, detail });
                self.advance(now);
            }
            Closing::Answer { answer, batch } => {
                if matches!(answer, ProduceAnswer::Failed { code: ErrorCode::CorruptMessage, .. }) {
                    // Damaged on the way, or at the source already: the next look tells.
                    self.check_crc_at = Some(batch.upstream);
                }
                let why = match answer {
                    ProduceAnswer::Failed { code, .. } => code.to_string(),
                    ProduceAnswer::Lost | ProduceAnswer::Acknowledged { .. } => "no answer".to_owned(),
                };
                self.note_trouble(now, &format_args!("Produce on the target: {why}"));
                self.commands.push_back(Command::Emit(Event::InDoubt { why }));
                self.commands.push_back(Command::RefreshMetadata(Side::Target));
                self.wait(now);
                self.advance(now);
            }
        }
    }

    fn store_progress_if_due(&mut self, now: Now) {
        if self.progress_due().is_some_and(|due| due <= now) {
            self.store_progress();
        }
    }

    fn progress_due(&self) -> Option<Now> {
        let (first, last) = self.unsaved?;
        let idle = self.window.is_empty() && self.backlog.is_empty();
        let due = first + PROGRESS_EVERY;
        Some(if idle { due.min(last + IDLE_AFTER) } else { due })
    }

    fn store_progress(&mut self) {
        let generation = self.record.current().map(|lineage| lineage.generation);
        let (Some(_), Some(generation), Some(mark)) = (self.unsaved.take(), generation, self.record.mark())
        else {
            return;
        };
        let entry = PartitionEntry::Progress {
            producer_id: generation.producer_id,
            producer_epoch: generation.producer_epoch,
            mark,
            epoch: self.record.epoch(),
        };
        self.commands.push_back(Command::Store { attempt: None, entry });
    }

    pub(super) fn copying_timeout(&self) -> Option<Now> {
        if self.window.drained().is_some() {
            // Closed by what others stored, with nothing under way whose answer would wake us.
            return Some(Now::ZERO);
        }
        let late = if self.apart || self.window.is_closed() { None } else { self.window.late_at() };
        let fetch =
            self.fetch_not_before.filter(|_| self.fetching.is_none() && self.backlog.hold().is_none());
        let gone =
            self.missing_since[0].map(|since| since + GONE_AFTER).filter(|_| self.backlog.hold().is_none());
        let look = self.transaction_watch.next_look();
        [late, self.progress_due(), fetch, gone, look].into_iter().flatten().min()
    }
}

pub(super) fn out_of_range(position: i64, span: SourceSpan) -> HoldReason {
    HoldReason::OutOfRange { position, log_start: span.log_start, log_end: span.high_watermark }
}

/// Whether a Produce error says that the batch was not and will not be appended. All other errors leave it in doubt.
fn refuses(code: ErrorCode) -> bool {
    match code {
        // The line-up tells where the other one is.
        code if is_overtaken(code) => false,
        // The topic was deleted or made again: metadata and the line-up tell.
        ErrorCode::UnknownTopicId | ErrorCode::InconsistentTopicId => false,
        code => code.retry() == Retry::Never,
    }
}
