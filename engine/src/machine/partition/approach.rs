//! Line-up, decision, and opening of generations: everything before the first batch is sent.

use std::time::Duration;

use twinlog_protocol::Retry;

use super::{Case, Command, CopySearch, Event, PartitionMachine, Phase, RequestFailure, SourceSpan, Step};
use crate::machine::Now;
use crate::machine::flow_starts::Start;
use crate::machine::hold::{HoldReason, Side};
use crate::machine::line_up::{LastBatch, LineUp, Question};
use crate::machine::lineage::{Generation, Run};
use crate::machine::loss::{Loss, LossCause, OnLoss};
use crate::machine::partition_record::PartitionEntry;
use crate::machine::resume::{Decision, Here, Opening, Tail, decide};

use super::backlog::Backlog;
use super::copying::out_of_range;
use super::losses::STALE_LEADER_MAX;

/// How long a line-up may take before what was fetched for after it is let go of.
const BACKLOG_KEPT_MAX: Duration = Duration::from_secs(10);

impl PartitionMachine {
    pub(super) fn begin_line_up(&mut self, now: Now) {
        self.backlog.clear();
        self.line_up(now);
    }

    /// A line-up that nothing but silence calls for: what was fetched is kept, as it most likely is what comes next. Where
    /// many partitions wait for a slow target, each has not heard of it for long when its records come, and would go to the
    /// back of those that fetch, each time.
    pub(super) fn line_up_after_silence(&mut self, now: Now) {
        self.backlog_until = Some(now + BACKLOG_KEPT_MAX);
        self.line_up(now);
    }

    /// When what waits through a line-up is let go of: this one takes long, and others need the room.
    pub(super) fn drops_backlog_at(&self) -> Option<Now> {
        self.backlog_until.filter(|_| !matches!(self.phase, Phase::Copying) && !self.backlog.is_empty())
    }

    fn line_up(&mut self, now: Now) {
        let Some((_, leader)) = self.here() else { return self.wait(now) };
        self.merging.handle_line_up();
        self.next_attempt();
        self.storing = false;
        self.phase = Phase::LiningUp { machine: LineUp::new(), leader, record_changes: self.record_changes };
        self.go_on_lining_up(now);
    }

    pub(super) fn go_on_lining_up(&mut self, now: Now) {
        let Phase::LiningUp { machine, leader, record_changes } = &mut self.phase else { return };
        if self.stopping {
            self.phase = Phase::Stopped;
            return;
        }
        let generation = self.record.current().map(|lineage| lineage.generation);
        let producer_id =
            Some(generation.map_or(self.config.producer_id, |generation| generation.producer_id));
        if let Some(found) = machine.outcome() {
            let (leader, record_changes) = (*leader, *record_changes);
            let Some((here, _)) = self.here() else { return self.wait(now) };
            let case = Case { found, here, leader, tail: None, state_is_current: false, record_changes };
            return self.decide(now, case);
        }
        if let Some(question) = machine.poll_question(now) {
            let (attempt, leader_epoch) = (self.attempt, leader.leader_epoch);
            self.merging.handle_asked(now);
            self.commands.push_back(Command::Ask { attempt, question, leader_epoch, producer_id });
        }
    }

    /// The target's log end, for [`Question::LogEnd`]; its high watermark, for [`Question::HighWatermark`].
    pub fn handle_offset(&mut self, now: Now, attempt: u64, question: Question, offset: i64) {
        let Phase::LiningUp { machine, .. } = &mut self.phase else { return };
        if attempt != self.attempt {
            return;
        }
        self.heard_at = now;
        self.merging.handle_told(now);
        match question {
            Question::LogEnd => machine.handle_log_end(offset),
            Question::HighWatermark => machine.handle_high_watermark(now, offset),
            Question::LastBatch => {}
        }
        if machine.next_timeout().is_some() {
            self.note_trouble(
                now,
                &format_args!("the target's high watermark {offset} is below its log end"),
            );
        }
        self.go_on_lining_up(now);
    }

    /// The leader's state of our producer id, for [`Question::LastBatch`].
    pub fn handle_last_batch(&mut self, now: Now, attempt: u64, last_batch: Option<LastBatch>) {
        let Phase::LiningUp { machine, .. } = &mut self.phase else { return };
        if attempt != self.attempt {
            return;
        }
        self.heard_at = now;
        machine.handle_last_batch(now, last_batch);
        self.go_on_lining_up(now);
    }

    /// A request of an attempt, named `request`, brought no answer.
    pub fn handle_failure(
        &mut self,
        now: Now,
        attempt: u64,
        side: Side,
        request: &'static str,
        why: &RequestFailure,
    ) {
        if attempt != self.attempt {
            return;
        }
        if !matches!(self.phase, Phase::Held { .. }) {
            self.note_trouble(now, &format_args!("{request} on the {side}: {why}"));
        }
        match (&self.phase, why) {
            (Phase::Copying, _) if side == Side::Source => self.handle_fetch_failure(now, request, why),
            (Phase::LiningUp { .. } | Phase::Deciding { .. }, RequestFailure::Broker(code))
                if code.retry() == Retry::Never =>
            {
                self.hold(now, HoldReason::Denied { side, request, code: code.to_string() });
            }
            (Phase::LiningUp { .. } | Phase::Deciding { .. }, _) => {
                self.commands.push_back(Command::RefreshMetadata(side));
                self.wait(now);
            }
            // What slipped in before a new epoch stays unknown; the copy goes on.
            (Phase::Copying | Phase::Waiting { .. } | Phase::Held { .. } | Phase::Stopped, _) => return,
        }
        self.advance(now);
    }

    /// The headers of the target's tail were read.
    pub fn handle_tail(&mut self, now: Now, attempt: u64, tail: Tail) {
        if let Some(case) = self.waited_for(attempt, |step| step == Step::Tail) {
            self.decide(now, Case { tail: Some(tail), ..case });
        } else if attempt == self.attempt
            && matches!(self.phase, Phase::Copying)
            && let Some(last) = tail.last
        {
            let (records, from, to) = (tail.records, tail.from, last.next_offset);
            self.commands.push_back(Command::Emit(Event::Repeated { records, from, to }));
        }
    }

    /// The state topic was read to its end.
    pub fn handle_state_read(&mut self, now: Now, attempt: u64) {
        if let Some(case) = self.waited_for(attempt, |step| step == Step::State) {
            self.decide(now, Case { state_is_current: true, ..case });
        }
    }

    /// The target was searched for a copy that the state topic knows nothing of.
    pub fn handle_copy(&mut self, now: Now, attempt: u64, search: CopySearch) {
        let Phase::Deciding { case, step: Step::Copy(opening) } = self.phase else { return };
        if attempt != self.attempt {
            return;
        }
        // Whatever of ours the leader remembers is older than what comes now.
        let known = case.found.last_batch.map(|last| last.producer_epoch);
        let was_known = opening.loss.is_some();
        match search {
            CopySearch::Found(copy) => {
                let current = self.generation().map(|generation| generation.producer_epoch);
                let newest = known.into_iter().chain(current).fold(copy.producer_epoch, i16::max);
                let upstream_start = Some(copy.upstream_next);
                match newest.checked_add(1) {
                    Some(epoch) => {
                        let opening = Opening { producer_epoch: Some(epoch), upstream_start, ..opening };
                        self.open(now, case, opening);
                    }
                    // All epochs of the id are used up.
                    None => self.take_producer_id(case, Opening { upstream_start, ..opening }),
                }
            }
            CopySearch::Nothing if known.is_none() || was_known => {
                let event = Event::TargetNotEmpty { log_end: case.found.log_end };
                self.commands.push_back(Command::Emit(event));
                self.ask_source_span(case, opening);
            }
            // What the target still holds lies before everything that the source holds.
            CopySearch::NotAtSource if was_known => self.ask_source_span(case, opening),
            CopySearch::Nothing | CopySearch::NotAtSource => {
                self.hold(now, lost_state("the source no longer holds what it copied last"));
            }
            CopySearch::Ambiguous => {
                self.hold(now, lost_state("its last records stand at several places of the source"));
            }
        }
    }

    /// Where the source's log begins and ends.
    pub fn handle_source_span(&mut self, now: Now, attempt: u64, span: SourceSpan) {
        if attempt != self.attempt {
            return;
        }
        match self.phase {
            Phase::Deciding { case, step: Step::SourceSpan(opening) } => {
                match self.first_offset(now, &case.here, span) {
                    Some((_, Some(loss))) if self.config.losses.on_loss == OnLoss::Hold => {
                        self.hold(now, out_of_range(loss.from, span));
                    }
                    Some((upstream_start, loss)) => {
                        let loss = opening.loss.or(loss);
                        let upstream_start = Some(upstream_start);
                        self.open(now, case, Opening { upstream_start, loss, ..opening });
                    }
                    None => {
                        self.commands.push_back(Command::RefreshMetadata(Side::Source));
                        self.wait(now);
                    }
                }
            }
            Phase::Copying => self.handle_span_after_fetch(now, span),
            _ => {}
        }
    }

    /// Where a copy begins of which nothing is stored, and what it misses there; none while the source's log may be a replaced
    /// leader's.
    fn first_offset(&mut self, now: Now, here: &Here, span: SourceSpan) -> Option<(i64, Option<Loss>)> {
        let Some(Start { offset: start, .. }) =
            self.start.filter(|start| start.source_topic_id == here.source_topic_id)
        else {
            return Some((span.log_start, None));
        };
        if (span.log_start..=span.high_watermark).contains(&start) {
            return Some((start, None));
        }
        if start > span.high_watermark {
            let since = *self.before_start_since.get_or_insert(now);
            let end = span.high_watermark;
            self.note_trouble(now, &format_args!("the source ends at {end}, before its start at {start}"));
            if now < since + STALE_LEADER_MAX {
                return None;
            }
        }
        if start < span.log_start {
            return Some((span.log_start, Some(Loss::of(LossCause::Expired, start, span.log_start))));
        }
        self.start = None;
        self.commands.push_back(Command::Emit(Event::StartOutOfRange { start, span }));
        Some((span.log_start, None))
    }

    /// A new producer id was taken and stored.
    pub fn handle_producer_id(&mut self, now: Now, attempt: u64, producer_id: i64) {
        if attempt != self.attempt {
            return;
        }
        if let Phase::Deciding { case, step: Step::ProducerId(opening) } = self.phase {
            self.config.producer_id = producer_id;
            self.open(now, case, opening);
        }
    }

    /// What [`Command::Store`] asked for is in the state topic and was read back, or lost to another instance's entry
    /// about this partition (`won` false). Either way the partition looks again.
    pub fn handle_stored(&mut self, now: Now, attempt: u64, won: bool) {
        if attempt != self.attempt {
            return;
        }
        match self.phase {
            // P1: the target may have moved meanwhile.
            Phase::Deciding { step: Step::Stored, .. } => self.begin_line_up(now),
            Phase::Copying => self.handle_runs_stored(now, won),
            _ => {}
        }
    }

    fn waited_for(&self, attempt: u64, waits: impl Fn(Step) -> bool) -> Option<Case> {
        match self.phase {
            Phase::Deciding { case, step } if attempt == self.attempt && waits(step) => Some(case),
            _ => None,
        }
    }

    fn decide(&mut self, now: Now, case: Case) {
        if self.stopping {
            self.phase = Phase::Stopped;
            return;
        }
        if case.record_changes != self.record_changes {
            // Another instance wrote about this partition since the line-up began: what was found is too old.
            return self.wait(now);
        }
        if self.here() != Some((case.here, case.leader)) {
            // The leadership has moved, or a topic was made again.
            return self.wait(now);
        }
        let decision =
            decide(&self.record, &case.here, &case.found, case.tail.as_ref(), case.state_is_current);
        let decision = match decision {
            Decision::Go { position, .. } => self.around_obstacle(position).unwrap_or(decision),
            decision => decision,
        };
        match decision {
            Decision::Go { position, fresh } => self.begin_copying(now, position, fresh),
            Decision::Hold(reason) => self.handle_conflict(now, case, reason),
            Decision::ReadState => {
                let attempt = self.ask(case, Step::State);
                self.commands.push_back(Command::ReadState { attempt });
            }
            Decision::ReadTail { from } => {
                let attempt = self.ask(case, Step::Tail);
                let producer_id = self.generation().map_or(-1, |generation| generation.producer_id);
                self.commands.push_back(Command::ReadTail {
                    attempt,
                    from,
                    to: case.found.log_end,
                    producer_id,
                });
            }
            Decision::Open(opening) => self.prepare(now, case, opening),
        }
    }

    /// Opens a generation as soon as it is known where it begins.
    pub(super) fn prepare(&mut self, now: Now, case: Case, opening: Opening) {
        match opening.upstream_start {
            Some(_) => self.open(now, case, opening),
            // The target may hold a copy, and then ends with what was copied last; but not of a source that is another.
            None if case.found.log_end > 0 && !opening.is_of_new_source() => self.find_copy(case, opening),
            None => self.ask_source_span(case, opening),
        }
    }

    fn find_copy(&mut self, case: Case, opening: Opening) {
        let attempt = self.ask(case, Step::Copy(opening));
        let (to, producer_id) = (case.found.log_end, self.config.producer_id);
        self.commands.push_back(Command::FindCopy { attempt, to, producer_id });
    }

    fn take_producer_id(&mut self, case: Case, opening: Opening) {
        let attempt = self.ask(case, Step::ProducerId(opening));
        self.commands.push_back(Command::TakeProducerId { attempt });
    }

    fn ask_source_span(&mut self, case: Case, opening: Opening) {
        let attempt = self.ask(case, Step::SourceSpan(opening));
        self.commands.push_back(Command::AskSourceSpan { attempt });
    }

    fn ask(&mut self, case: Case, step: Step) -> u64 {
        if step != Step::State {
            // More than silence: the copy does not simply go on.
            self.backlog.clear();
        }
        self.phase = Phase::Deciding { case, step };
        self.next_attempt()
    }

    fn generation(&self) -> Option<Generation> {
        self.record.current().map(|lineage| lineage.generation)
    }

    /// Stores a generation before its first batch.
    fn open(&mut self, now: Now, case: Case, opening: Opening) {
        let Some(upstream_start) = opening.upstream_start else { return self.wait(now) };
        if case.record_changes != self.record_changes {
            // Another instance opened one while we were asking.
            return self.wait(now);
        }
        let current = self.generation();
        if opening.producer_epoch.is_none()
            && current.is_some_and(|current| current.producer_id == self.config.producer_id)
        {
            // All epochs of the id are used up.
            return self.take_producer_id(case, opening);
        }
        // One loss at a time: where the target was made again, too, the next look finds that.
        let target_topic_id = current
            .filter(|_| opening.is_of_new_source())
            .map_or(case.here.target_topic_id, |current| current.target_topic_id);
        let (producer_epoch, first_sequence) = match opening.producer_epoch {
            Some(producer_epoch) => (producer_epoch, 0),
            None => (self.config.first_epoch, self.config.first_sequence),
        };
        let generation = Generation {
            producer_id: self.config.producer_id,
            producer_epoch,
            first_sequence,
            upstream_start,
            downstream_start: opening.downstream_start,
            source_topic_id: case.here.source_topic_id,
            target_topic_id,
            fingerprint: case.here.fingerprint,
        };
        self.is_disputed = false;
        (self.readable_end, self.lost_since) = (None, None);
        let attempt = Some(self.ask(case, Step::Stored));
        self.commands
            .push_back(Command::Store { attempt, entry: PartitionEntry::Opened(generation, opening.loss) });
    }

    fn begin_copying(&mut self, now: Now, position: Run, fresh: bool) {
        self.next_attempt();
        self.phase = Phase::Copying;
        self.told = None;
        self.obstacle = None;
        self.heard_at = now;
        self.fetching = None;
        let sending = self.generation().map(|generation| (generation.producer_id, generation.producer_epoch));
        let goes_on = self.sending == sending && self.backlog.goes_on_from(position, self.source_compacts);
        if !goes_on {
            let epoch = self.record.epoch().filter(|epoch| epoch.next == position.upstream);
            self.backlog =
                Backlog::new(position, epoch.map(|epoch| epoch.leader_epoch), self.source_compacts);
        }
        self.backlog_until = None;
        self.window.open(fresh);
        self.sending = sending;
        if !fresh {
            self.record.advance(position, None);
        }
        let producer_epoch = self.generation().map_or(-1, |generation| generation.producer_epoch);
        let (upstream, downstream) = (position.upstream, position.downstream);
        self.commands.push_back(Command::Emit(Event::Resumed { upstream, downstream, producer_epoch }));
        self.go_on_copying(now);
    }
}

fn lost_state(why: &str) -> HoldReason {
    let why = format!("the state topic says nothing about a copy that the target holds, and {why}");
    HoldReason::Ambiguous { why }
}
