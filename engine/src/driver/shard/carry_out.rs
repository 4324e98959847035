//! Commands of partitions become requests; their answers go back to the machines.

use super::{Done, Shard};
use crate::clock;
use crate::driver::ask;
use crate::driver::lanes::{LINE_UP_LANE, SOURCE_SEARCH_LANE, TARGET_TAIL_LANE};
use crate::driver::recover::{self, Sides};
use crate::driver::state_topic::{StateRequest, Waiter};
use crate::driver::stretch;
use crate::machine::Now;
use crate::machine::hold::Side;
use crate::machine::line_up::Question;
use crate::machine::partition::{Command, RequestFailure};
use crate::state::StateEntry;

impl Shard {
    pub(super) fn carry_out(&mut self, now: Now, slot: usize, command: Command) {
        match command {
            Command::Ask { attempt, question, leader_epoch, producer_id } => {
                self.ask(now, (slot, attempt), question, leader_epoch, producer_id);
            }
            Command::ReadTail { attempt, from, to, producer_id } => {
                let place = self.slots[slot].place(Side::Target, None, TARGET_TAIL_LANE);
                let target = self.parts.target.clone();
                self.errands.push(Box::pin(async move {
                    let result = match place {
                        Some(place) => stretch::read_tail(&target, &place, from, to, producer_id).await,
                        None => Err(ask::no_leader()),
                    };
                    Done::Tail { slot, attempt, result }
                }));
            }
            Command::FindCopy { attempt, to, producer_id } => self.find_copy(slot, attempt, to, producer_id),
            Command::AskSourceSpan { attempt } => {
                let place = self.slots[slot].place(Side::Source, None, LINE_UP_LANE);
                let source = self.parts.source.clone();
                self.errands.push(Box::pin(async move {
                    let result = match place {
                        Some(place) => ask::source_span(&source, &place).await,
                        None => Err(ask::no_leader()),
                    };
                    Done::SourceSpan { slot, attempt, result }
                }));
            }
            Command::AskOpenTransaction { offset } => {
                let place = self.slots[slot].place(Side::Source, None, LINE_UP_LANE);
                let source = self.parts.source.clone();
                self.errands.push(Box::pin(async move {
                    let result = match place {
                        Some(place) => ask::open_transaction(&source, &place, offset).await,
                        None => Err(ask::no_leader()),
                    };
                    Done::OpenTransaction { slot, offset, result }
                }));
            }
            Command::ReadState { attempt } => {
                let waiter = Waiter::Partition { slot, attempt, refresh: true };
                self.to_state.push_back(StateRequest::Refresh { waiter });
            }
            Command::TakeProducerId { attempt } => {
                let target = self.parts.target.clone();
                self.errands.push(Box::pin(async move {
                    Done::NewProducerId { slot, attempt, result: ask::new_producer_id(&target).await }
                }));
            }
            Command::Store { attempt, entry } => {
                let entry = StateEntry::Partition(self.slots[slot].key.clone(), entry);
                let waiter = attempt.map_or(Waiter::Nobody, |attempt| Waiter::Partition {
                    slot,
                    attempt,
                    refresh: false,
                });
                self.to_state.push_back(StateRequest::Append { entry, waiter });
            }
            Command::Produce { ticket, mut batch, apart, is_new } => {
                if is_new {
                    // What it was made of may be gone, and its room given back.
                    batch.body = self.parts.memory.hold(batch.body);
                }
                self.produce(now, slot, ticket, batch, apart);
            }
            Command::RefreshMetadata(side) => self.refresh(side),
            Command::Emit(event) => self.emit(now, slot, event),
        }
    }

    fn find_copy(&mut self, slot: usize, attempt: u64, to: i64, producer_id: i64) {
        let (source, target) = (self.parts.source.clone(), self.parts.target.clone());
        let of = &self.slots[slot];
        let source_place = of.place(Side::Source, None, SOURCE_SEARCH_LANE);
        let places = source_place.zip(of.place(Side::Target, None, TARGET_TAIL_LANE));
        self.errands.push(Box::pin(async move {
            let result = match places {
                Some((source_place, target_place)) => {
                    let sides = Sides { source: &source, source_place, target: &target, target_place };
                    recover::find_copy_of(&sides, to, producer_id).await
                }
                None => Err(ask::no_leader()),
            };
            Done::Copy { slot, attempt, result }
        }));
    }

    pub(super) fn handle_done(&mut self, done: Done) {
        let now = clock::boot_time();
        match done {
            Done::Offsets { asked, question, told } => {
                self.handle_told(now, question, asked, told, |machine, attempt, offset| {
                    machine.handle_offset(now, attempt, question, offset);
                });
            }
            Done::LastBatches { asked, told } => {
                self.handle_told(now, Question::LastBatch, asked, told, |machine, attempt, last| {
                    machine.handle_last_batch(now, attempt, last);
                });
            }
            Done::Tail { slot, attempt, result } => match result {
                Ok(tail) => self.touch(slot).handle_tail(now, attempt, tail),
                Err(why) => self.failed(now, slot, attempt, Side::Target, "Fetch", &why),
            },
            Done::Copy { slot, attempt, result } => match result {
                Ok(search) => self.touch(slot).handle_copy(now, attempt, search),
                Err(why) => {
                    // Both sides were read.
                    self.refresh(Side::Source);
                    self.failed(now, slot, attempt, Side::Target, "Fetch", &why);
                }
            },
            Done::SourceSpan { slot, attempt, result } => match result {
                Ok(span) => self.touch(slot).handle_source_span(now, attempt, span),
                Err(why) => self.failed(now, slot, attempt, Side::Source, "ListOffsets", &why),
            },
            Done::OpenTransaction { slot, offset, result } => {
                self.touch(slot).handle_open_transaction(offset, &result);
            }
            Done::NewProducerId { slot, attempt, result } => match result {
                Ok(producer_id) => self.store_producer_id(slot, attempt, producer_id),
                Err(why) => self.failed(now, slot, attempt, Side::Target, "InitProducerId", &why),
            },
            Done::Produced { tickets, answers } => {
                for ((slot, ticket), answer) in tickets.into_iter().zip(answers) {
                    self.handle_produced(now, slot, ticket, answer);
                }
            }
            Done::LaneOpened { key, result } => self.handle_lane_opened(now, key, result.ok()),
            Done::Fetched { node, lane, piece, answer } => {
                self.handle_fetch_answer(now, node, lane, piece, answer);
            }
            Done::Refreshed(side) => self.refreshing[side as usize] = false,
        }
    }

    pub(super) fn failed(
        &mut self,
        now: Now,
        slot: usize,
        attempt: u64,
        side: Side,
        request: &'static str,
        why: &RequestFailure,
    ) {
        let key = &self.slots[slot].key;
        tracing::debug!(
            flow = self.parts.flow,
            topic = key.source_topic,
            partition = key.partition,
            "{request} on the {side}: {why}"
        );
        self.touch(slot).handle_failure(now, attempt, side, request, why);
    }

    fn store_producer_id(&mut self, slot: usize, attempt: u64, producer_id: i64) {
        self.taking_id.push((slot, attempt));
        let entry = StateEntry::Identity { producer_id, replaces: self.identity.producer_id().unwrap_or(-1) };
        let waiter = Waiter::Partition { slot, attempt, refresh: false };
        self.to_state.push_back(StateRequest::Append { entry, waiter });
    }

    pub(super) fn refresh(&mut self, side: Side) {
        if std::mem::replace(&mut self.refreshing[side as usize], true) {
            return;
        }
        let cluster = match side {
            Side::Source => self.parts.source.clone(),
            Side::Target => self.parts.target.clone(),
        };
        self.errands.push(Box::pin(async move {
            // A failure shows in the client's log and at the next request.
            let _ = cluster.refresh_metadata().await;
            Done::Refreshed(side)
        }));
    }
}
