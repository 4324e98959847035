//! One connection to a broker: requests go out in call order, answers come back in the same order.
//!
//! A task owns the socket: it writes, reads and watches the time. The first thing that goes wrong ends the
//! connection for all who wait on it; a new one is somebody else's business ([`super::cluster`]). The task ends
//! by itself when the last handle is gone and the last answer is in.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Semaphore,
    time::{Instant, sleep_until},
};
use twinlog_protocol::{
    DecodeError,
    cursor::Cursor,
    frame,
    header::decode_response_header,
    message::{Request, decode_frame, encode_frame},
    versions::{Api, Unsupported},
};

pub use super::link::{Expects, Frame, Pending};
pub use super::throttle::Silence;
use super::{
    error::{CallError, ConnectionError, Fault, Peer},
    handshake::{self, Introduction},
    link::Link,
    memory::MemoryBudget,
    reader::{self, Limits},
    throttle, writer,
};

/// Limits of a connection.
#[derive(Debug, Clone)]
pub struct ConnectionOptions {
    /// The name that brokers show in logs and quotas.
    pub client_id: Arc<str>,
    /// The longest answer to take, in bytes.
    pub answer_bytes_max: usize,
    /// Where answers need room, if they do.
    pub memory: Option<MemoryBudget>,
    /// The most requests under way at once.
    pub requests_max: usize,
    /// How long ApiVersions may take.
    pub handshake_timeout: Duration,
    /// How long an unused connection is kept. Brokers close at 10 minutes (`connections.max.idle.ms`); to be
    /// earlier means that no request crosses their closing.
    pub idle_max: Duration,
    /// Shared with the other connections to this broker that carry the same client id.
    pub silence: Arc<Silence>,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        ConnectionOptions {
            client_id: Arc::from("twinlog"),
            answer_bytes_max: frame::ANSWER_BYTES_MAX,
            memory: None,
            requests_max: 4096,
            handshake_timeout: Duration::from_secs(10),
            idle_max: Duration::from_secs(9 * 60),
            silence: Arc::default(),
        }
    }
}

/// A handle to a connection; clones share it.
#[derive(Clone)]
pub struct Connection {
    handle: Arc<Handle>,
}

struct Handle {
    link: Arc<Link>,
    room: Arc<Semaphore>,
    options: ConnectionOptions,
    introduction: OnceLock<Introduction>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.link.give_up();
    }
}

impl Connection {
    /// Takes over an open stream and asks the broker which versions it speaks. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// [`ConnectionError`] when the broker closes, is silent too long, or answers something that is not Kafka's.
    pub async fn open(
        reading: impl AsyncRead + Send + Unpin + 'static,
        writing: impl AsyncWrite + Send + Unpin + 'static,
        peer: Arc<Peer>,
        options: ConnectionOptions,
    ) -> Result<Self, ConnectionError> {
        let connection = Self::start(reading, writing, peer, options);
        let introduction = handshake::introduce(&connection).await?;
        connection.handle.introduction.get_or_init(|| introduction);
        Ok(connection)
    }

    /// Takes over an open stream without a word to the broker.
    pub(super) fn start(
        reading: impl AsyncRead + Send + Unpin + 'static,
        writing: impl AsyncWrite + Send + Unpin + 'static,
        peer: Arc<Peer>,
        options: ConnectionOptions,
    ) -> Self {
        let link = Arc::new(Link::new(peer, options.idle_max, Arc::clone(&options.silence)));
        let room = Arc::new(Semaphore::new(options.requests_max));
        let limits = Limits { answer_bytes_max: options.answer_bytes_max, memory: options.memory.clone() };
        tokio::spawn(run(Arc::clone(&link), reading, writing, limits));
        Connection { handle: Arc::new(Handle { link, room, options, introduction: OnceLock::new() }) }
    }

    /// The broker at the other end.
    pub fn peer(&self) -> &Arc<Peer> {
        &self.handle.link.peer
    }

    /// The client id that requests on this connection carry.
    pub fn client_id(&self) -> &str {
        &self.handle.options.client_id
    }

    pub(super) fn options(&self) -> &ConnectionOptions {
        &self.handle.options
    }

    /// Whether it takes requests.
    pub fn is_open(&self) -> bool {
        self.handle.link.is_open()
    }

    /// The version to speak of this API: the highest that the broker and we know.
    ///
    /// # Errors
    /// [`Unsupported`] when there is none in common.
    pub fn version(&self, api: Api) -> Result<i16, Unsupported> {
        let versions = self.handle.introduction.get().map(|known| &known.versions);
        versions.map_or_else(|| Err(Unsupported::unlisted(api)), |known| known.version(api))
    }

    /// The round trip to the broker, as it was when the connection was opened.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        self.handle.introduction.get().map_or(Duration::ZERO, |known| known.round_trip)
    }

    /// Puts a request at the end of the queue, at once; requests go out in the order of these calls. `build` makes
    /// the whole frame, length prefix first, from the correlation id.
    ///
    /// # Errors
    /// [`CallError::Connection`] when the connection has ended, was given up or has no room
    /// ([`Fault::Full`]), and what `build` fails with. Nothing is sent then.
    pub fn submit<E>(
        &self,
        expects: Expects,
        build: impl FnOnce(i32) -> Result<Frame, E>,
    ) -> Result<Pending, CallError>
    where
        CallError: From<E>,
    {
        let link = &self.handle.link;
        let Ok(room) = Arc::clone(&self.handle.room).try_acquire_owned() else {
            let limit = self.handle.options.requests_max;
            return Err(link.error(Arc::new(Fault::Full { limit }), false).into());
        };
        link.submit(expects, room, build)
    }

    /// Asks in the highest common version and waits for the answer, first for room if there is none. Waits longer
    /// than `timeout` only for room and while the broker throttles us.
    ///
    /// # Errors
    /// [`CallError`]; error codes in the answer are the caller's.
    pub async fn call<R: Request>(&self, request: &R, timeout: Duration) -> Result<R::Response, CallError> {
        let version = self
            .version(R::API)
            .map_err(|unsupported| CallError::Unsupported { peer: Arc::clone(self.peer()), unsupported })?;
        self.call_in(request, version, timeout).await
    }

    /// [`Self::call`] in a version that the caller chose with [`Self::version`].
    ///
    /// # Errors
    /// [`CallError`]; error codes in the answer are the caller's.
    pub async fn call_in<R: Request>(
        &self,
        request: &R,
        version: i16,
        timeout: Duration,
    ) -> Result<R::Response, CallError> {
        let room = Arc::clone(&self.handle.room);
        let room = room.acquire_owned().await.expect("the semaphore is never closed");
        let pending = self.handle.link.submit(Expects { api: R::API, timeout }, room, |correlation_id| {
            let frame = encode_frame(request, version, correlation_id, self.client_id())?;
            Ok::<Frame, CallError>(frame.into())
        })?;
        let correlation_id = pending.correlation_id();
        let frame = pending.await?;
        let throttle_ms = throttle::throttle_time_ms(R::API, version, correlation_id, &frame);
        match decode_frame::<R>(frame, version, correlation_id) {
            Ok(response) => {
                self.throttle(throttle_ms);
                Ok(response)
            }
            Err(error) => Err(self.undecodable(R::API, error).into()),
        }
    }

    /// Waits for an answer and takes its header off, for the codecs of Fetch and Produce. The body is a slice of the
    /// answer.
    ///
    /// # Errors
    /// [`ConnectionError`]; an answer with a broken header ends the connection.
    pub async fn body(&self, pending: Pending, version: i16) -> Result<Bytes, ConnectionError> {
        let (api, correlation_id) = (pending.api(), pending.correlation_id());
        let mut cursor = Cursor::new(pending.await?);
        match decode_response_header(&mut cursor, api, version, correlation_id) {
            Ok(()) => Ok(cursor.rest().clone()),
            Err(error) => Err(self.undecodable(api, error)),
        }
    }

    /// Obeys the throttle time of an answer: nothing more is sent before it is over (KIP-219), here and on the connections
    /// that share the silence. Gives the time, if there is one. [`Self::call`] does so by itself.
    pub fn throttle(&self, throttle_time_ms: i32) -> Option<Duration> {
        let pause = throttle::pause(throttle_time_ms)?;
        let is_news = self.handle.link.mute(Instant::now(), pause);
        let Peer { cluster, node, server, .. } = &**self.peer();
        let client_id = self.client_id();
        if is_news {
            tracing::info!(%cluster, node, %server, client_id, "the broker throttles us, silent for {pause:?}");
        } else {
            tracing::debug!(%cluster, node, %server, client_id, "silent for {pause:?}");
        }
        Some(pause)
    }

    /// Ends the connection because an answer on it cannot be read: a peer that lies about one length is not
    /// trusted with the next. Gives the error to hand on; the request is in doubt.
    pub fn undecodable(&self, api: Api, error: DecodeError) -> ConnectionError {
        self.end(Fault::Undecodable { api, error })
    }

    /// Ends the connection. Gives the error for the request whose answer is to blame.
    pub(super) fn end(&self, fault: Fault) -> ConnectionError {
        let fault = Arc::new(fault);
        self.handle.link.end(&fault);
        self.handle.link.error(fault, true)
    }

    /// Takes no more requests; those under way are still answered, then the connection closes.
    pub fn give_up(&self) {
        self.handle.link.give_up();
    }
}

/// The task of a connection.
async fn run(
    link: Arc<Link>,
    reading: impl AsyncRead + Unpin,
    writing: impl AsyncWrite + Unpin,
    limits: Limits,
) {
    /// Waiters are told also if the task is dropped with its runtime.
    struct EndOnDrop(Arc<Link>);
    impl Drop for EndOnDrop {
        fn drop(&mut self) {
            self.0.end(&Arc::new(Fault::Stopped));
        }
    }
    let link = EndOnDrop(link);
    let fault = tokio::select! {
        fault = reader::run(reading, &link.0, &limits) => fault,
        fault = writer::run(writing, &link.0) => fault,
        fault = watch(&link.0) => fault,
    };
    link.0.end(&Arc::new(fault));
}

/// Ends when a request is late or the connection idle.
async fn watch(link: &Link) -> Fault {
    loop {
        if let Some(fault) = link.timed_out(Instant::now()) {
            return fault;
        }
        tokio::select! {
            () = sleep_until(link.next_timeout(Instant::now())) => {}
            () = link.watchdog.notified() => {}
        }
    }
}

#[cfg(test)]
mod tests;
