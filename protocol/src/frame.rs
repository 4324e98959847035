//! The length prefix in front of every response.
//!
//! # References
//! Kafka protocol guide, "Common Request and Response Structure".

use crate::DecodeError;

/// Bytes of the length prefix.
pub const PREFIX_BYTES: usize = 4;

/// The longest answer to anything but a Fetch that we take, in bytes: what a broker takes from a client by default
/// (`socket.request.max.bytes`). Whoever fetches adds what it asks for.
pub const ANSWER_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Reads the length prefix of a response: how many bytes follow it.
///
/// Call it before room is made for the frame. `limit` is the longest frame to take, in bytes.
///
/// # Errors
/// [`DecodeError::FrameLength`] when the prefix is negative or above `limit`. The connection is beyond saving then:
/// where the next frame starts is unknown.
pub fn frame_length(prefix: [u8; PREFIX_BYTES], limit: usize) -> Result<usize, DecodeError> {
    let length = i32::from_be_bytes(prefix);
    usize::try_from(length)
        .ok()
        .filter(|&bytes| bytes <= limit)
        .ok_or(DecodeError::FrameLength { length: i64::from(length), limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_up_to_the_limit_are_taken() {
        assert_eq!(frame_length([0, 0, 0, 0], 10), Ok(0));
        assert_eq!(frame_length([0, 0, 0, 10], 10), Ok(10));
        assert_eq!(frame_length([0x7f, 0xff, 0xff, 0xff], usize::MAX), Ok(0x7fff_ffff));
    }

    #[test]
    fn lengths_above_the_limit_and_below_zero_are_refused() {
        assert_eq!(frame_length([0, 0, 0, 11], 10), Err(DecodeError::FrameLength { length: 11, limit: 10 }));
        let negative = frame_length([0xff, 0xff, 0xff, 0xff], usize::MAX).unwrap_err();
        assert_eq!(negative, DecodeError::FrameLength { length: -1, limit: usize::MAX });
    }

    #[test]
    fn the_error_names_length_and_limit() {
        // The first four bytes of an HTTP answer: what a wrong port sends.
        let error = frame_length(*b"HTTP", ANSWER_BYTES_MAX).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the length prefix of the frame is 1213486160, at most 104857600 bytes are taken: is this a Kafka \
             listener of the right security protocol?"
        );
    }
}
