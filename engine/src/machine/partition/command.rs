//! What a partition asks its driver to do, and what the driver tells it.

use std::time::Duration;

use bytes::Bytes;
use twinlog_protocol::ErrorCode;
use twinlog_protocol::batch::Forwarded;
use twinlog_protocol::fetch::AbortedTransaction;

use crate::machine::hold::{HoldReason, Side};
use crate::machine::line_up::Question;
use crate::machine::loss::Loss;
use crate::machine::partition_record::PartitionEntry;

/// Something for the driver to do. `attempt` comes back with the answer; answers of earlier attempts are ignored.
#[derive(Debug, Clone)]
pub enum Command {
    /// Ask the target's leader a question of the line-up, all of one attempt on one connection.
    Ask {
        /// Attempt to give back.
        attempt: u64,
        /// The question.
        question: Question,
        /// Leader epoch that the question is fenced with.
        leader_epoch: i32,
        /// Producer id whose state is asked for, where one is known.
        producer_id: Option<i64>,
    },
    /// Read the headers of the target's log and count the batches of ours.
    ReadTail {
        /// Attempt to give back.
        attempt: u64,
        /// First downstream offset of the stretch.
        from: i64,
        /// The offset after its last one.
        to: i64,
        /// Producer id of our batches.
        producer_id: i64,
    },
    /// Look whether the target's log, below `to`, ends with records that we copied.
    FindCopy {
        /// Attempt to give back.
        attempt: u64,
        /// The target's log end.
        to: i64,
        /// Producer id of our batches.
        producer_id: i64,
    },
    /// Ask the source where the partition's log begins and ends.
    AskSourceSpan {
        /// Attempt to give back.
        attempt: u64,
    },
    /// Look whose transaction is open at this upstream offset, the source's last stable one.
    AskOpenTransaction {
        /// The offset.
        offset: i64,
    },
    /// Read the state topic to its present end.
    ReadState {
        /// Attempt to give back.
        attempt: u64,
    },
    /// Take a new producer id for the flow and store it.
    TakeProducerId {
        /// Attempt to give back.
        attempt: u64,
    },
    /// Append to the state topic and read it back.
    Store {
        /// Attempt to give back; none where nobody waits for it.
        attempt: Option<u64>,
        /// What to append.
        entry: PartitionEntry,
    },
    /// Send a batch to the target's leader, on the partition's connection, in the order of the commands.
    Produce {
        /// Ticket to give back with the answer.
        ticket: u64,
        /// The batch, its header rewritten.
        batch: Forwarded,
        /// Whether the partition has a connection of its own.
        apart: bool,
        /// Whether it was written anew, into memory of its own: several batches as one, with other records, in another codec.
        is_new: bool,
    },
    /// Metadata of this cluster is out of date for the partition.
    RefreshMetadata(Side),
    /// Something that people and programs may want to know.
    Emit(Event),
}

/// What happened to a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The partition is copied from here on.
    Resumed {
        /// Next upstream offset.
        upstream: i64,
        /// The target's log end.
        downstream: i64,
        /// Producer epoch.
        producer_epoch: i16,
    },
    /// A first copy goes behind what others have written into the target's partition: MirrorMaker 2, perhaps.
    TargetNotEmpty {
        /// The target's log end.
        log_end: i64,
    },
    /// The source's log does not span the offset at which a first copy was to begin, which therefore begins at the log
    /// start: records were deleted before they were copied, or the log was cut back.
    StartOutOfRange {
        /// Where it was to begin.
        start: i64,
        /// The source's log.
        span: SourceSpan,
    },
    /// Records were lost, or passed over; the copy goes on. Told once, when it is in the state topic.
    Lost(Loss),
    /// The target's broker puts its own time into the records, so that its readers do not see the source's.
    BrokerTime,
    /// The partition waits.
    Held(HoldReason),
    /// Others have appended to the target's partition.
    ForeignRecords {
        /// Downstream offset at which our next record was expected.
        expected: i64,
        /// Downstream offset that it got.
        found: i64,
    },
    /// A batch of ours, late from before a line-up, got into the target's log where the broker had forgotten our producer
    /// state: its records are there twice.
    Repeated {
        /// How many.
        records: u64,
        /// First downstream offset of the stretch in which they lie.
        from: i64,
        /// The offset after its last one.
        to: i64,
    },
    /// The partition has not got on for ten seconds; it tries on.
    Waits {
        /// What failed last, in words.
        why: String,
    },
    /// The partition gets on again.
    GoesOn,
    /// Sending is in doubt: the partition lines up.
    InDoubt {
        /// What happened, in words.
        why: String,
    },
    /// Batches were acknowledged.
    Copied {
        /// Records in them.
        records: u64,
        /// Bytes of them.
        bytes: u64,
    },
}

/// Where a partition is led.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader {
    /// Node id of the leader; none while there is no leader.
    pub node: Option<i32>,
    /// Leader epoch, -1 where the broker has none.
    pub leader_epoch: i32,
    /// Topic id, 0 where the broker has none.
    pub topic_id: u128,
}

/// The last batch of a copy whose state is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyEnd {
    /// Producer id of the batch.
    pub producer_id: i64,
    /// Producer epoch of the batch.
    pub producer_epoch: i16,
    /// Upstream offset behind its last record.
    pub upstream_next: i64,
}

/// What [`Command::FindCopy`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopySearch {
    /// The target's log ends with a copy, others' records aside.
    Found(CopyEnd),
    /// Nothing in the target's tail is a copy of ours.
    Nothing,
    /// The target holds a batch of ours, but the source no longer holds its records.
    NotAtSource,
    /// The same records stand at several places of the source.
    Ambiguous,
}

/// Why a request of a partition brought no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestFailure {
    /// The broker answered with an error.
    #[error("the broker answered {0}")]
    Broker(ErrorCode),
    /// The request got no answer: connection, timeout, no leader.
    #[error("{0}")]
    Unanswered(String),
}

/// One partition's part of a Fetch response.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Upstream offset from which was fetched.
    pub offset: i64,
    /// What came.
    pub result: Result<FetchedRecords, RequestFailure>,
}

/// From where to where the source's log can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceSpan {
    /// The log start.
    pub log_start: i64,
    /// The high watermark.
    pub high_watermark: i64,
}

/// Records and watermarks of one partition.
#[derive(Debug, Clone)]
pub struct FetchedRecords {
    /// Batches as a slice of the response.
    pub records: Bytes,
    /// The source's high watermark.
    pub high_watermark: i64,
    /// Where only committed records are read, the source's last stable offset: a transaction is open there.
    pub last_stable_offset: Option<i64>,
    /// Where only committed records are read, the transactions whose records among these are void.
    pub aborted: Vec<AbortedTransaction>,
    /// The source's log start.
    pub log_start: i64,
    /// Leader epoch and end offset at which the source's log diverged from what we read.
    pub diverging: Option<(i32, i64)>,
}

impl FetchedRecords {
    /// First offset that cannot be read yet.
    #[must_use]
    pub fn readable_end(&self) -> i64 {
        self.last_stable_offset.map_or(self.high_watermark, |stable| stable.min(self.high_watermark))
    }
}

/// Whose transaction is open at the source's last stable offset, by its first batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenTransaction {
    /// Id of its producer.
    pub producer_id: i64,
    /// Epoch of its producer.
    pub producer_epoch: i16,
    /// How long ago its first record was written, by that record's timestamp; none where that is in the future.
    pub age: Option<Duration>,
}
