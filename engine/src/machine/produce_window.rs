//! Batches of one partition on their way to the target: at most five, in order, and what their answers mean.
//!
//! - W1: answers are taken in the order of sending; a later one waits for an earlier one.
//! - W2: the first answer that is not a plain success closes the window. Nothing is sent any more, what was sent behind
//!   it is answered or lost, and only then the partition lines up. Nothing is ever sent again blindly.
//! - W3: while an epoch has no batch in the log the window is one wide: a refused first batch must not be followed by a
//!   second one, which a broker without our state would take. The same goes for a batch that may be too large.
//!
//! # References
//! `Sender`, `TransactionManager` (client); `ProducerAppendInfo.checkSequence`: the last five batches are recognised.

use std::collections::VecDeque;
use std::time::Duration;

use twinlog_protocol::ErrorCode;

use super::Now;

/// Batches that a broker recognises when they are repeated, hence the most that may be under way.
pub const IN_FLIGHT_MAX: usize = 5;
/// An answer later than this makes its partition wait on a connection of its own.
const LATE_AFTER: Duration = Duration::from_millis(400);

/// A batch on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Number of its first record in the generation.
    pub number: u64,
    /// Records in it.
    pub records: u32,
    /// Upstream offset of its first record.
    pub upstream: i64,
    /// Upstream offset behind its last one.
    pub upstream_next: i64,
    /// Bytes of it at the source.
    pub bytes: usize,
    /// Bytes of it as it is sent.
    pub sent_bytes: usize,
    /// Those of them that take memory beside what was fetched: all where it was packed, or cut, when its turn came.
    pub anew_bytes: usize,
    /// Batches of the source in it.
    pub batches: u32,
    /// The latest timestamp of its records.
    pub max_timestamp_ms: i64,
    /// Leader epoch that the source's log has at its last batch, -1 where the log has none.
    pub leader_epoch: i32,
}

impl Sent {
    /// Number of the record behind it.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.number + u64::from(self.records)
    }
}

/// How a Produce request ended for a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProduceAnswer {
    /// Appended, or recognised as appended before.
    Acknowledged {
        /// Downstream offset of its first record.
        base_offset: i64,
        /// The broker's own time where it has put that into the records (`message.timestamp.type=LogAppendTime`), -1 where not;
        /// of a batch that was appended before the latest time of its records, wherever it comes from.
        log_append_time_ms: i64,
    },
    /// The broker answered with an error.
    Failed {
        /// Its code.
        code: ErrorCode,
        /// Its words, empty if it had none.
        detail: String,
        /// How many of the batch's records it names as the reason, each for itself (KIP-467).
        named: u32,
    },
    /// There will be no answer: it may have been appended or not.
    Lost,
}

/// Whether a refusal only says that somebody else has written meanwhile: the sequence is not the next one, or the epoch is
/// over.
#[must_use]
pub fn is_overtaken(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::OutOfOrderSequenceNumber
            | ErrorCode::DuplicateSequenceNumber
            | ErrorCode::UnknownProducerId
            | ErrorCode::InvalidProducerEpoch
    )
}

/// Why a window is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closing {
    /// An answer was not a success.
    Answer {
        /// The first answer that was not.
        answer: ProduceAnswer,
        /// The batch that it was for.
        batch: Sent,
    },
    /// The partition is to be moved to another connection, or is about to stop: nothing is wrong.
    Drain,
}

#[derive(Debug)]
struct Flight {
    ticket: u64,
    batch: Sent,
    sent_at: Now,
    answer: Option<ProduceAnswer>,
}

/// The window of one partition.
#[derive(Debug, Default)]
pub struct ProduceWindow {
    flights: VecDeque<Flight>,
    closing: Option<Closing>,
    fresh: bool,
    next_ticket: u64,
}

impl ProduceWindow {
    /// Opens the window for the next batches. It must be empty: W2.
    pub fn open(&mut self, fresh: bool) {
        assert!(self.flights.is_empty(), "a window with batches under way cannot be opened anew");
        self.closing = None;
        self.fresh = fresh;
    }

    /// Whether another batch may be sent now.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let limit = if self.fresh { 1 } else { IN_FLIGHT_MAX };
        self.closing.is_none() && self.flights.len() < limit
    }

    /// What is sent next goes alone: nothing else is sent before it is acknowledged.
    pub fn narrow(&mut self) {
        assert!(self.flights.is_empty(), "what goes alone has nothing before it");
        self.fresh = true;
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// Bytes of what is under way, at the source.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.flights.iter().map(|flight| flight.batch.bytes).sum()
    }

    /// Bytes of what is under way that were written anew when their turn came.
    #[must_use]
    pub fn anew_bytes(&self) -> usize {
        self.flights.iter().map(|flight| flight.batch.anew_bytes).sum()
    }

    /// Notes a batch as sent and gives the ticket by which its answer comes back.
    pub fn send(&mut self, now: Now, batch: Sent) -> u64 {
        assert!(self.has_room(), "sent without room in the window");
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.flights.push_back(Flight { ticket, batch, sent_at: now, answer: None });
        ticket
    }

    /// Closes the window unless it is closed for a worse reason already.
    pub fn drain(&mut self) {
        self.closing.get_or_insert(Closing::Drain);
    }

    /// Takes the answer for a ticket. Answers for tickets that are not under way are ignored.
    pub fn handle_answer(&mut self, ticket: u64, answer: ProduceAnswer) {
        if let Some(flight) = self.flights.iter_mut().find(|flight| flight.ticket == ticket) {
            flight.answer = Some(answer);
        }
    }

    /// A batch that is under way, and when it was sent.
    #[must_use]
    pub fn under_way(&self, ticket: u64) -> Option<(&Sent, Now)> {
        let flight = self.flights.iter().find(|flight| flight.ticket == ticket);
        flight.map(|flight| (&flight.batch, flight.sent_at))
    }

    /// The next acknowledged batch and its base offset, in order of sending.
    pub fn poll_acknowledged(&mut self) -> Option<(Sent, i64)> {
        loop {
            let failed = matches!(self.closing, Some(Closing::Answer { .. }));
            let flight = self.flights.front()?;
            let answer = flight.answer.clone()?;
            let batch = flight.batch;
            self.flights.pop_front();
            match answer {
                // Behind a failure a success proves nothing that the line-up does not prove better.
                _ if failed => {}
                ProduceAnswer::Acknowledged { base_offset, .. } => {
                    self.fresh = false;
                    return Some((batch, base_offset));
                }
                answer => self.closing = Some(Closing::Answer { answer, batch }),
            }
        }
    }

    /// Why the window is closed, once nothing is under way any more.
    #[must_use]
    pub fn drained(&self) -> Option<&Closing> {
        self.closing.as_ref().filter(|_| self.flights.is_empty())
    }

    /// Whether the window is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closing.is_some()
    }

    /// When the oldest batch under way becomes late.
    #[must_use]
    pub fn late_at(&self) -> Option<Now> {
        self.flights.front().map(|flight| flight.sent_at + LATE_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Duration::from_secs(9);
    const ACK: ProduceAnswer = ProduceAnswer::Acknowledged { base_offset: 40, log_append_time_ms: -1 };

    fn batch(number: u64) -> Sent {
        Sent {
            number,
            records: 1,
            upstream: 0,
            upstream_next: 1,
            bytes: 100,
            sent_bytes: 100,
            anew_bytes: 0,
            batches: 1,
            max_timestamp_ms: 0,
            leader_epoch: -1,
        }
    }

    fn window(fresh: bool, sent: u64) -> ProduceWindow {
        let mut window = ProduceWindow::default();
        window.open(fresh);
        for number in 0..sent {
            assert_eq!(window.send(NOW, batch(number)), number);
        }
        window
    }

    #[test]
    fn answers_are_taken_in_order_of_sending() {
        let mut window = window(false, 3);
        window.handle_answer(1, ACK);
        assert_eq!(window.poll_acknowledged(), None);
        window.handle_answer(0, ACK);
        assert_eq!(window.poll_acknowledged(), Some((batch(0), 40)));
        assert_eq!(window.poll_acknowledged(), Some((batch(1), 40)));
        assert_eq!(window.poll_acknowledged(), None);
    }

    #[test]
    fn five_are_under_way_at_most_and_the_first_of_an_epoch_goes_alone() {
        let full = window(false, 5);
        assert!(!full.has_room());
        assert_eq!(full.bytes(), 500);
        let mut window = window(true, 1);
        assert!(!window.has_room());
        window.handle_answer(0, ACK);
        assert!(window.poll_acknowledged().is_some());
        assert!(window.has_room());
    }

    #[test]
    fn what_is_to_go_alone_has_nothing_behind_it_until_it_is_acknowledged() {
        let mut window = window(false, 0);
        window.narrow();
        let ticket = window.send(NOW, batch(0));
        assert!(!window.has_room());
        assert_eq!(window.under_way(ticket), Some((&batch(0), NOW)));
        window.handle_answer(ticket, ACK);
        assert!(window.poll_acknowledged().is_some());
        assert!(window.has_room());
    }

    #[test]
    fn a_lost_answer_closes_the_window_until_all_are_in() {
        let mut window = window(false, 3);
        window.handle_answer(0, ProduceAnswer::Lost);
        window.handle_answer(2, ACK);
        assert_eq!(window.poll_acknowledged(), None);
        assert!(!window.has_room());
        assert_eq!(window.drained(), None);
        window.handle_answer(1, ACK);
        assert_eq!(window.poll_acknowledged(), None, "a success behind a doubt is left to the line-up");
        let closing = Closing::Answer { answer: ProduceAnswer::Lost, batch: batch(0) };
        assert_eq!(window.drained(), Some(&closing));
    }

    #[test]
    fn a_drained_window_is_no_failure_unless_an_answer_makes_it_one() {
        let mut window = window(false, 2);
        window.drain();
        window.handle_answer(0, ACK);
        assert!(window.poll_acknowledged().is_some());
        window.handle_answer(1, ProduceAnswer::Lost);
        assert_eq!(window.poll_acknowledged(), None);
        assert!(matches!(window.drained(), Some(Closing::Answer { .. })));
    }

    #[test]
    fn unknown_tickets_change_nothing() {
        let mut window = window(false, 1);
        window.handle_answer(99, ProduceAnswer::Lost);
        assert_eq!(window.poll_acknowledged(), None);
        assert!(window.has_room());
    }
}
