//! What can go wrong between us and a broker, below the broker's own error codes.
//!
//! A connection dies of one fault; every request that waited on it gets that same fault, each with its own answer to
//! the question that matters to a producer: may the broker have seen my request?

use std::{convert::Infallible, fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use twinlog_protocol::{
    DecodeError,
    message::EncodeError,
    versions::{Api, Unsupported},
};

use super::dial::DialError;
use crate::machine::metadata::HostPort;

/// The other end of a connection, as errors and log lines name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The cluster's alias in the configuration.
    pub cluster: Arc<str>,
    /// The broker's node id; nothing while it is only known as a bootstrap server.
    pub node: Option<i32>,
    /// The address that was dialed.
    pub server: HostPort,
    /// The IP address that answered.
    pub address: Option<SocketAddr>,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cluster {}, ", self.cluster)?;
        match self.node {
            Some(node) => write!(f, "node {node} at {}", self.server)?,
            None => write!(f, "bootstrap server {}", self.server)?,
        }
        match self.address {
            Some(address) if address.to_string() != self.server.to_string() => write!(f, " ({address})"),
            _ => Ok(()),
        }
    }
}

/// Why a connection ended, was never made, or did not take a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// No connection could be opened.
    #[error("{0}")]
    Dial(#[source] DialError),
    /// The broker closed before it answered the first request, or the first after ApiVersions.
    #[error("the broker closed the connection before it answered {unanswered}: {hint}")]
    ClosedOnFirstRead {
        /// What was not answered.
        unanswered: &'static str,
        /// What is wrong most often then.
        hint: &'static str,
    },
    /// The broker answered with a TLS alert.
    #[error("the broker answered with a TLS alert: this listener expects TLS")]
    ExpectsTls,
    /// The broker closed between two answers.
    #[error("the broker closed the connection")]
    Closed,
    /// The broker closed inside an answer.
    #[error("the broker closed the connection after {arrived} of {wanted} bytes of an answer")]
    ClosedMidFrame {
        /// Bytes that arrived, length prefix not counted.
        arrived: usize,
        /// Bytes that the length prefix named; 4 when the prefix itself was cut.
        wanted: usize,
    },
    /// The system refused to read.
    #[error("reading failed: {0}")]
    Read(#[source] io::Error),
    /// The system refused to write.
    #[error("writing failed: {0}")]
    Write(#[source] io::Error),
    /// A request had no answer in time.
    #[error("{api} had no answer within {limit:?}")]
    Timeout {
        /// The request.
        api: Api,
        /// Its time limit, counted from its first byte.
        limit: Duration,
    },
    /// An answer of an impossible length, too short to belong to a request, or belonging to another one.
    #[error("{0}")]
    Frame(#[source] DecodeError),
    /// An answer while no request waits for one.
    #[error("an answer of {bytes} bytes arrived that nothing asked for")]
    Unrequested {
        /// Its length, length prefix not counted.
        bytes: usize,
    },
    /// An answer that cannot be read.
    #[error("the answer to {api} cannot be read: {error}")]
    Undecodable {
        /// The request.
        api: Api,
        /// What is wrong with the bytes.
        error: DecodeError,
    },
    /// The broker refused ApiVersions.
    #[error("the broker refused ApiVersions with error {code}")]
    Handshake {
        /// Kafka's error code.
        code: i16,
    },
    /// We gave the connection up: its broker moved or nobody holds it. Requests under way are still answered.
    #[error("the connection was given up")]
    Retired,
    /// We closed the connection because it was not used for long, before the broker does.
    #[error("the connection was closed because it was idle")]
    Idle,
    /// The connection has as many requests under way as it may. Only the one request is refused.
    #[error("{limit} requests are under way on the connection, it takes no more")]
    Full {
        /// The most requests that may be under way.
        limit: usize,
    },
    /// The connection's task was stopped with its runtime.
    #[error("the connection's task was stopped")]
    Stopped,
}

/// A request, or the attempt to open a connection, failed below Kafka's protocol. Cheap to clone.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{peer}: {fault}")]
pub struct ConnectionError {
    peer: Arc<Peer>,
    #[source]
    fault: Arc<Fault>,
    in_doubt: bool,
}

impl ConnectionError {
    pub(super) fn new(peer: &Arc<Peer>, fault: Arc<Fault>, in_doubt: bool) -> Self {
        ConnectionError { peer: Arc::clone(peer), fault, in_doubt }
    }

    /// Whose connection it is.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// What happened. The same for all requests of one connection.
    pub fn fault(&self) -> &Fault {
        &self.fault
    }

    /// True if the broker cannot have seen a byte of this request: sending it again cannot repeat anything.
    pub fn has_no_side_effects(&self) -> bool {
        !self.in_doubt
    }
}

/// A call to a cluster failed before an answer could be read. Cheap to clone.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The broker and we have no common version.
    #[error("{peer}: {unsupported}")]
    Unsupported {
        /// The broker asked.
        peer: Arc<Peer>,
        /// The two ranges.
        unsupported: Unsupported,
    },
    /// The request cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// No broker of this id is in the metadata.
    #[error("cluster {cluster}: no broker with node id {node} is known")]
    UnknownNode {
        /// The cluster's alias.
        cluster: Arc<str>,
        /// The node id asked for.
        node: i32,
    },
    /// The metadata names no controller.
    #[error("cluster {cluster}: no controller is known")]
    NoController {
        /// The cluster's alias.
        cluster: Arc<str>,
    },
    /// The broker's metadata cannot be used.
    #[error("cluster {cluster}: the metadata cannot be used: {reason}")]
    Metadata {
        /// The cluster's alias.
        cluster: Arc<str>,
        /// What is wrong with it.
        reason: &'static str,
        /// Kafka's error code; 0 where the broker gave none.
        code: i16,
    },
}

/// So that a frame that cannot fail to be built is submitted like any other.
impl From<Infallible> for CallError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl CallError {
    /// True if no broker can have seen the request: sending it again cannot repeat anything.
    pub fn has_no_side_effects(&self) -> bool {
        match self {
            CallError::Connection(error) => error.has_no_side_effects(),
            CallError::Unsupported { .. }
            | CallError::Encode(_)
            | CallError::UnknownNode { .. }
            | CallError::NoController { .. }
            | CallError::Metadata { .. } => true,
        }
    }

    /// True if the same call may succeed later, on another connection or after a refresh of the metadata, without
    /// anybody changing the request.
    pub fn is_retriable(&self) -> bool {
        match self {
            CallError::Connection(_)
            | CallError::UnknownNode { .. }
            | CallError::NoController { .. }
            | CallError::Metadata { .. } => true,
            CallError::Unsupported { .. } | CallError::Encode(_) => false,
        }
    }
}
