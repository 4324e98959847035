//! What the handles and the task of one connection share: the requests under way in order, and how it ended.
//!
//! L1: correlation id, place in the queue and call order are decided under one lock, so they agree.
//! L2: an answer belongs to the oldest request; anything else ends the connection, and with it every waiter.
//! L3: the first fault wins; whoever waits or comes later gets that one.
//! L4: a request whose waiter is gone keeps its place, so its answer is still taken off the wire.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, oneshot},
    time::Instant,
};
use twinlog_protocol::{DecodeError, produce::Gather, versions::Api};

use super::error::{CallError, ConnectionError, Fault, Peer};
use super::throttle::Silence;

/// A whole request as it goes to the socket, length prefix first; its chunks are written without being joined.
pub type Frame = Gather;

/// What a request may expect.
#[derive(Debug, Clone, Copy)]
pub struct Expects {
    /// The request.
    pub api: Api,
    /// How long the answer may take from the moment the first byte is written, or the answer before it came. After that the
    /// connection ends: answers come in order, so nothing behind this one would come either.
    pub timeout: Duration,
}

/// An answer under way. Dropping it gives up the answer, not the request.
#[derive(Debug)]
#[must_use = "the answer, or why there is none, is only told here"]
pub struct Pending {
    api: Api,
    correlation_id: i32,
    answer: oneshot::Receiver<Result<Bytes, ConnectionError>>,
    peer: Arc<Peer>,
}

impl Pending {
    /// What was asked.
    pub fn api(&self) -> Api {
        self.api
    }

    /// The number that request and answer carry.
    pub fn correlation_id(&self) -> i32 {
        self.correlation_id
    }
}

impl Future for Pending {
    /// All of the answer behind its length prefix: correlation id, rest of the header, body.
    type Output = Result<Bytes, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.answer).poll(cx));
        Poll::Ready(
            answer.unwrap_or_else(|_| Err(ConnectionError::new(&self.peer, Arc::new(Fault::Stopped), true))),
        )
    }
}

/// What the writer shall do.
pub(super) enum Next {
    /// Write these.
    Write(Frame),
    /// Write nothing before this moment.
    Muted(Instant),
    /// Wait until it is woken.
    Wait,
    /// End: the connection was given up and nothing is under way.
    End,
}

pub(super) struct Link {
    pub(super) peer: Arc<Peer>,
    idle_max: Duration,
    silence: Arc<Silence>,
    /// Wakes the writer: a new request, or the connection was given up.
    pub(super) writer: Notify,
    /// Wakes the watchdog: a new time limit, or the end.
    pub(super) watchdog: Notify,
    state: Mutex<State>,
}

struct State {
    next_correlation_id: i32,
    /// Oldest first: those sent, then the `unsent` ones.
    under_way: VecDeque<Request>,
    unsent: usize,
    /// An answer is there and cannot be taken yet: no time runs.
    clock_stands: bool,
    stage: Stage,
    idle_since: Instant,
    given_up: Option<Arc<Fault>>,
    ended: Option<Arc<Fault>>,
}

/// How far the conversation got; tells a wrong listener from a broker that went away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Silent,
    AnsweredApiVersions,
    AnsweredMore,
}

struct Request {
    correlation_id: i32,
    expects: Expects,
    /// Taken by the writer.
    frame: Option<Frame>,
    /// Set when the writer takes the frame.
    deadline: Option<Instant>,
    answer: oneshot::Sender<Result<Bytes, ConnectionError>>,
    /// Given back when the request is answered.
    _room: OwnedSemaphorePermit,
}

impl Link {
    pub(super) fn new(peer: Arc<Peer>, idle_max: Duration, silence: Arc<Silence>) -> Self {
        Link {
            peer,
            idle_max,
            silence,
            writer: Notify::new(),
            watchdog: Notify::new(),
            state: Mutex::new(State {
                next_correlation_id: 0,
                under_way: VecDeque::new(),
                unsent: 0,
                clock_stands: false,
                stage: Stage::Silent,
                idle_since: Instant::now(),
                given_up: None,
                ended: None,
            }),
        }
    }

    /// No step under this lock can leave the state half changed, so a panic of a frame's builder does no harm.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn error(&self, fault: Arc<Fault>, in_doubt: bool) -> ConnectionError {
        ConnectionError::new(&self.peer, fault, in_doubt)
    }

    /// Puts a request at the end of the queue; `build` makes its frame from the correlation id.
    pub(super) fn submit<E>(
        &self,
        expects: Expects,
        room: OwnedSemaphorePermit,
        build: impl FnOnce(i32) -> Result<Frame, E>,
    ) -> Result<Pending, CallError>
    where
        CallError: From<E>,
    {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        if let Some(fault) = state.ended.as_ref().or(state.given_up.as_ref()) {
            return Err(self.error(Arc::clone(fault), false).into());
        }
        let correlation_id = state.next_correlation_id;
        let frame = Some(build(correlation_id)?);
        state.next_correlation_id = correlation_id.checked_add(1).unwrap_or(0);
        state.unsent += 1;
        state.under_way.push_back(Request {
            correlation_id,
            expects,
            frame,
            deadline: None,
            answer: sender,
            _room: room,
        });
        drop(state);
        self.writer.notify_one();
        Ok(Pending { api: expects.api, correlation_id, answer: receiver, peer: Arc::clone(&self.peer) })
    }

    /// What is to be written next: one request, and all Produce requests behind it. Their time limits run from now.
    pub(super) fn next(&self, now: Instant) -> Next {
        let mut state = self.state();
        if state.unsent == 0 {
            let is_done = state.ended.is_some() || (state.given_up.is_some() && state.under_way.is_empty());
            return if is_done { Next::End } else { Next::Wait };
        }
        if let Some(until) = self.silence.until(now) {
            return Next::Muted(until);
        }
        let oldest_unsent = state.under_way.len() - state.unsent;
        let mut frames = Frame::default();
        let mut taken = 0;
        for request in state.under_way.range_mut(oldest_unsent..) {
            // Others go one by one: whoever sent them may want to know that they were not begun.
            if taken > 0 && request.expects.api != Api::Produce {
                break;
            }
            request.deadline = Some(now + request.expects.timeout);
            frames.append(request.frame.take().expect("an unsent request has its frame"));
            taken += 1;
        }
        state.unsent -= taken;
        drop(state);
        if oldest_unsent == 0 {
            self.watchdog.notify_one();
        }
        Next::Write(frames)
    }

    /// Hands an answer to the oldest request.
    pub(super) fn answered(&self, frame: Bytes, now: Instant) -> Result<(), Fault> {
        let Some(found) = frame.first_chunk() else {
            let error =
                DecodeError::Truncated { field: "correlation id", at: 0, wanted: 4, left: frame.len() };
            return Err(Fault::Frame(error));
        };
        let found = i32::from_be_bytes(*found);
        let mut state = self.state();
        let sent = state.under_way.len() - state.unsent;
        let Some(oldest) = state.under_way.front().filter(|_| sent > 0) else {
            return Err(Fault::Unrequested { bytes: frame.len() });
        };
        if oldest.correlation_id != found {
            let expected = oldest.correlation_id;
            return Err(Fault::Frame(DecodeError::Correlation { expected, found }));
        }
        let stage = if oldest.expects.api == Api::ApiVersions {
            Stage::AnsweredApiVersions
        } else {
            Stage::AnsweredMore
        };
        state.stage = state.stage.max(stage);
        let oldest = state.under_way.pop_front();
        state.idle_since = now;
        // The broker begins with the next one: on a slow link it may have waited long behind others.
        if let Some(next) = state.under_way.front_mut() {
            let timeout = next.expects.timeout;
            next.deadline = next.deadline.map(|deadline| deadline.max(now + timeout));
        }
        let is_last = state.under_way.is_empty() && state.given_up.is_some();
        drop(state);
        if let Some(request) = oldest {
            // Fails if the waiter is gone, which is its right.
            let _ = request.answer.send(Ok(frame));
        }
        if is_last {
            self.writer.notify_one();
        }
        Ok(())
    }

    /// An answer has come and waits for room: until [`Link::go_on_from`] nothing is late.
    pub(super) fn stop_the_clock(&self) {
        self.state().clock_stands = true;
    }

    /// The answer is taken now; what is under way has its whole time again.
    pub(super) fn go_on_from(&self, now: Instant) {
        let mut state = self.state();
        state.clock_stands = false;
        for request in &mut state.under_way {
            let timeout = request.expects.timeout;
            request.deadline = request.deadline.map(|_| now + timeout);
        }
        drop(state);
        self.watchdog.notify_one();
    }

    /// Sends nothing more for so long (KIP-219), here and on all connections that share the silence. The broker does not
    /// read from this one meanwhile, so that time does not count for the requests that it has not read yet. Gives whether
    /// that is worth telling.
    pub(super) fn mute(&self, now: Instant, pause: Duration) -> bool {
        let mut state = self.state();
        for request in &mut state.under_way {
            let timeout = request.expects.timeout;
            request.deadline = request.deadline.map(|deadline| deadline.max(now + pause + timeout));
        }
        self.silence.keep(now, pause)
    }

    /// Takes no more requests and ends when those under way are answered.
    pub(super) fn give_up(&self) {
        self.state().given_up.get_or_insert_with(|| Arc::new(Fault::Retired));
        self.writer.notify_one();
    }

    pub(super) fn is_open(&self) -> bool {
        let state = self.state();
        state.ended.is_none() && state.given_up.is_none()
    }

    /// When the watchdog has to look again.
    pub(super) fn next_timeout(&self, now: Instant) -> Instant {
        let state = self.state();
        if state.clock_stands {
            return now + self.idle_max;
        }
        match state.under_way.front().and_then(|oldest| oldest.deadline) {
            Some(deadline) => deadline,
            None if state.under_way.is_empty() => state.idle_since + self.idle_max,
            // Muted; the writer wakes the watchdog when it goes on.
            None => now + self.idle_max,
        }
    }

    /// The fault that time has brought about. Also tells when somebody else ended the connection.
    pub(super) fn timed_out(&self, now: Instant) -> Option<Fault> {
        let mut state = self.state();
        if state.ended.is_some() {
            return Some(Fault::Stopped);
        }
        if state.clock_stands {
            return None;
        }
        if state.under_way.is_empty() {
            if now < state.idle_since + self.idle_max {
                return None;
            }
            // Under the same lock, so that no request slips in between this verdict and the end.
            state.given_up.get_or_insert_with(|| Arc::new(Fault::Idle));
            return Some(Fault::Idle);
        }
        let late = state.under_way.front().filter(|oldest| oldest.deadline.is_some_and(|at| at <= now))?;
        Some(Fault::Timeout { api: late.expects.api, limit: late.expects.timeout })
    }

    /// The fault behind an end of the stream between two answers, or a reset.
    pub(super) fn closed(&self, error: Option<io::Error>) -> Fault {
        let closed = error.as_ref().is_none_or(|error| {
            matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted)
        });
        let state = self.state();
        let is_awaited = state.under_way.len() > state.unsent;
        match (state.stage, error) {
            (Stage::Silent, _) if closed => Fault::ClosedOnFirstRead {
                unanswered: "the first request",
                hint: "does this listener expect TLS?",
            },
            (Stage::AnsweredApiVersions, _) if closed && is_awaited => Fault::ClosedOnFirstRead {
                unanswered: "the first request after ApiVersions",
                hint: "does this listener expect SASL?",
            },
            (_, None) => Fault::Closed,
            (_, Some(error)) => Fault::Read(error),
        }
    }

    /// Ends the connection: every waiter gets the fault. Only the first call does anything.
    pub(super) fn end(&self, fault: &Arc<Fault>) {
        let mut state = self.state();
        if state.ended.is_some() {
            return;
        }
        state.ended = Some(Arc::clone(fault));
        state.unsent = 0;
        let waiting = std::mem::take(&mut state.under_way);
        drop(state);
        self.log_end(fault, waiting.len());
        for request in waiting {
            let in_doubt = request.frame.is_none();
            let _ = request.answer.send(Err(self.error(Arc::clone(fault), in_doubt)));
        }
        self.writer.notify_one();
        self.watchdog.notify_one();
    }

    fn log_end(&self, fault: &Fault, waiting: usize) {
        let Peer { cluster, node, server, address } = &*self.peer;
        let address = address.map_or_else(|| server.to_string(), |ip| format!("{server} ({ip})"));
        match fault {
            Fault::Retired | Fault::Idle | Fault::Stopped => {
                tracing::debug!(%cluster, node, address, waiting, "connection closed: {fault}");
            }
            // A wrong listener stays wrong at each attempt; whoever opens connections says it once.
            Fault::ClosedOnFirstRead { .. } | Fault::ExpectsTls => {
                tracing::debug!(%cluster, node, address, waiting, "connection lost: {fault}");
            }
            Fault::Closed if waiting == 0 => {
                tracing::debug!(%cluster, node, address, waiting, "connection closed: {fault}");
            }
            _ => tracing::warn!(%cluster, node, address, waiting, "connection lost: {fault}"),
        }
    }
}
