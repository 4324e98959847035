//! Why a partition waits, in words that an operator can act on.

use std::fmt;
use std::time::Duration;

use twinlog_protocol::ErrorCode;
use twinlog_protocol::batch::Unsupported;

/// Which of the two clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The cluster that is read.
    Source,
    /// The cluster that is written.
    Target,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Target => "target",
        })
    }
}

/// Why a partition is held. Only this partition waits; everything before the held offset has been copied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HoldReason {
    /// A batch that nobody can read.
    #[error("the batch at upstream offset {offset} cannot be copied: {kind}")]
    Unsupported {
        /// First upstream offset of the batch.
        offset: i64,
        /// What is special about it.
        kind: Unsupported,
    },
    /// The source sent bytes that are not batches.
    #[error("the source's log is damaged at or after upstream offset {offset}: {fault}")]
    DamagedSource {
        /// Upstream offset from which was read.
        offset: i64,
        /// The decoder's words.
        fault: String,
    },
    /// A batch that has to be written anew takes more memory than there is for it.
    #[error(
        "the batch at upstream offset {offset} has to be written anew and unpacks to more than {bytes_max} bytes, a quarter of `memory.max`; raise it and start twinlog again"
    )]
    UnpacksTooLarge {
        /// First upstream offset of the batch.
        offset: i64,
        /// The most that a batch may unpack to.
        bytes_max: usize,
    },
    /// The target refused a batch for good.
    #[error(
        "the target refuses the batch of {bytes} bytes at upstream offset {offset} with {code}, {}{detail}; it is tried \
         again every 30 s",
        code.description()
    )]
    Refused {
        /// First upstream offset of the batch.
        offset: i64,
        /// Its size as it was sent.
        bytes: usize,
        /// The broker's error.
        code: ErrorCode,
        /// The broker's own sentence behind a colon, if it had one.
        detail: String,
    },
    /// The position to read is not in the source's log.
    #[error(
        "upstream offset {position} is out of range: the source's log spans {log_start}..{log_end}; \
         records may have been deleted before they were copied"
    )]
    OutOfRange {
        /// The next offset to copy.
        position: i64,
        /// The source's log start.
        log_start: i64,
        /// The source's high watermark.
        log_end: i64,
    },
    /// The source's log was cut back and written anew below our position.
    #[error(
        "the source's log diverged at leader epoch {leader_epoch}: it now ends at {end_offset} there, \
         {position} had been copied already (unclean leader election?)"
    )]
    Diverged {
        /// The next offset to copy.
        position: i64,
        /// Leader epoch up to which both logs agree.
        leader_epoch: i32,
        /// Where that epoch ends in the source's log.
        end_offset: i64,
    },
    /// The topic was deleted and made again, or its id is not the one that was copied.
    #[error(
        "the {side} topic was deleted and made again (its id changed); nothing is written to the new one unasked"
    )]
    Recreated {
        /// On which side.
        side: Side,
    },
    /// The topic is gone.
    #[error(
        "the {side} topic was deleted; it is not made again unasked, and copying goes on when it is back as it was"
    )]
    Deleted {
        /// On which side.
        side: Side,
    },
    /// The target's log is shorter than what was acknowledged.
    #[error(
        "the target's log ends at {log_end}, but downstream offset {known} was reached before \
         (unclean leader election, or a restored disk?)"
    )]
    TargetShorter {
        /// The target's log end.
        log_end: i64,
        /// Log end that was known before.
        known: i64,
    },
    /// Another configuration copies into this partition.
    #[error(
        "this partition is copied under another `isolation.level`, by an earlier run or by another twinlog (fingerprint \
         {theirs:016x}, ours {ours:016x}); write the level of before, and give all instances the same file"
    )]
    OtherFingerprint {
        /// The stored generation's fingerprint.
        theirs: u64,
        /// Our configuration's.
        ours: u64,
    },
    /// The broker knows a newer epoch of our producer id than the state topic does.
    #[error(
        "the target knows epoch {broker} of our producer id, the state topic only {stored}; \
         was mm2-twinlog.internal restored from a backup?"
    )]
    UnknownEpoch {
        /// Epoch in the broker's producer state.
        broker: i16,
        /// Newest epoch in the state topic.
        stored: i16,
    },
    /// Sequence, headers and log end do not agree on where we stand.
    #[error("cannot tell where the copy stands: {why}; copy the topic anew, as README says")]
    Ambiguous {
        /// What disagrees.
        why: String,
    },
    /// A right is missing, or a request is refused for another lasting reason.
    #[error("{request} on the {side} cluster is refused with {code}")]
    Denied {
        /// On which side.
        side: Side,
        /// The request by its name in the protocol.
        request: &'static str,
        /// The broker's error, by name and number.
        code: String,
    },
}

impl HoldReason {
    /// After how long to look again, for reasons that may pass by themselves or by the operator's hand at the cluster.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            // A limit, a right or an unreachable replica may be put right on the cluster.
            Self::Deleted { .. } => Some(Duration::from_secs(5)),
            // A leader that was replaced and has not heard of it looks like that.
            Self::TargetShorter { .. } => Some(Duration::from_secs(60)),
            Self::Refused { .. } | Self::Denied { .. } | Self::DamagedSource { .. } => {
                Some(Duration::from_secs(30))
            }
            Self::Unsupported { .. }
            | Self::UnpacksTooLarge { .. }
            | Self::OutOfRange { .. }
            | Self::Diverged { .. }
            | Self::Recreated { .. }
            | Self::OtherFingerprint { .. }
            | Self::UnknownEpoch { .. }
            | Self::Ambiguous { .. } => None,
        }
    }
}
