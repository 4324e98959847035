//! What can be wrong with bytes from outside.

/// A fault in bytes from a peer or a file: what was being read, where, and what was wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the field does.
    #[error("{field} at byte {at} needs {wanted} bytes, {left} are left")]
    Truncated {
        /// The field being read.
        field: &'static str,
        /// Position from the start of the buffer.
        at: usize,
        /// Bytes that the field needs.
        wanted: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// A length or count that cannot be true: negative where that has no meaning, or more than the frame can hold.
    #[error("{field} at byte {at} names the length {length}, {left} bytes are left")]
    LyingLength {
        /// The field being read.
        field: &'static str,
        /// Position from the start of the buffer.
        at: usize,
        /// The length or element count as the wire names it.
        length: i64,
        /// Bytes that are there.
        left: usize,
    },
    /// A variable-length integer longer than its type allows.
    #[error("{field} at byte {at} is a varint of more than {limit} bytes")]
    LongVarint {
        /// The field being read.
        field: &'static str,
        /// Position from the start of the buffer.
        at: usize,
        /// Bytes that the type allows.
        limit: usize,
    },
    /// A value that its field cannot have.
    #[error("{field} at byte {at} is {value}: {reason}")]
    BadValue {
        /// The field being read.
        field: &'static str,
        /// Position from the start of the buffer.
        at: usize,
        /// The value as read.
        value: i64,
        /// What the field may be.
        reason: &'static str,
    },
    /// Bytes that stay after the last field.
    #[error("{left} bytes are left after the last field of {what}")]
    TrailingBytes {
        /// The structure that ended.
        what: &'static str,
        /// Bytes after its end.
        left: usize,
    },
    /// A frame whose length prefix is negative or above the limit.
    #[error(
        "the length prefix of the frame is {length}, at most {limit} bytes are taken: is this a Kafka listener of \
         the right security protocol?"
    )]
    FrameLength {
        /// The prefix as read.
        length: i64,
        /// The longest frame to take, in bytes.
        limit: usize,
    },
    /// An answer that belongs to another request than the oldest one without an answer.
    #[error("the answer carries correlation id {found}, the request had {expected}")]
    Correlation {
        /// The correlation id of the request.
        expected: i32,
        /// The correlation id of the answer.
        found: i32,
    },
    /// Packed bytes of which nothing says that they are damaged, and that grow beyond what the caller takes.
    #[error("{what}: unpacks to more than the limit of {limit} bytes")]
    UnpacksTooLarge {
        /// The codec.
        what: &'static str,
        /// The most that the caller takes, in bytes.
        limit: usize,
    },
    /// The message crate, or a codec, refused the bytes.
    #[error("{what}: {reason}")]
    Refused {
        /// The structure being read.
        what: &'static str,
        /// The reason in the refusing crate's words.
        reason: String,
    },
}

/// A message that cannot be written as asked: a fault of the caller's or of a limit of the format, not of a peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A field longer than its length can say.
    #[error("{field} is {length} bytes or elements long, the format ends at {limit}")]
    TooLong {
        /// The field being written.
        field: &'static str,
        /// Its length.
        length: usize,
        /// The most that fits.
        limit: usize,
    },
    /// A version that this codec does not write.
    #[error("{api} version {version} is not written here: versions {first} to {last} are")]
    UnknownVersion {
        /// The kind of request.
        api: &'static str,
        /// The version asked for.
        version: i16,
        /// First version written.
        first: i16,
        /// Last version written.
        last: i16,
    },
    /// Values that do not go together.
    #[error("{what}: {reason}")]
    Invalid {
        /// What was to be written.
        what: &'static str,
        /// Why it cannot be.
        reason: String,
    },
}
