//! Takes answers off a connection, one allocation of the right size for each.

use bytes::{BufMut, Bytes, BytesMut};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    time::Instant,
};
use twinlog_protocol::frame;

use super::{
    error::Fault,
    link::Link,
    memory::{MemoryBudget, Room},
};

/// Small answers come with one call of the system; large ones bypass this buffer.
const READ_AHEAD_BYTES: usize = 4096;

/// Up to this length a frame gets all its room at once.
const TRUSTED_BYTES: usize = 1024 * 1024;

/// A longer frame gets this much first, and the rest when this much has arrived: a lying length alone costs no
/// more than an honest small frame, and an honest large one is copied and allocated by at most 1/64 twice.
const FIRST_BYTES: usize = TRUSTED_BYTES / 64;

/// How a TLS server begins its answer to something that is not TLS: record type alert, major version 3.
const TLS_ALERT: [u8; 2] = [21, 3];

/// Answers up to this size do not wait for room.
const WAITS_ABOVE_BYTES: usize = 16 * 1024;

/// What is taken off a connection.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// The longest answer, in bytes.
    pub(super) answer_bytes_max: usize,
    /// Where answers need room.
    pub(super) memory: Option<MemoryBudget>,
}

/// Hands out answers until the connection ends; tells why it did.
pub(super) async fn run(socket: impl AsyncRead + Unpin, link: &Link, limits: &Limits) -> Fault {
    let mut socket = BufReader::with_capacity(READ_AHEAD_BYTES, socket);
    loop {
        match next_frame(&mut socket, link, limits).await {
            Ok(frame) => {
                if let Err(fault) = link.answered(frame, Instant::now()) {
                    return fault;
                }
            }
            Err(fault) => return fault,
        }
    }
}

async fn next_frame<S: AsyncRead + Unpin>(
    socket: &mut BufReader<S>,
    link: &Link,
    limits: &Limits,
) -> Result<Bytes, Fault> {
    match socket.fill_buf().await {
        Ok([]) => return Err(link.closed(None)),
        Ok(_) => {}
        Err(error) => return Err(link.closed(Some(error))),
    }
    let mut prefix = [0; frame::PREFIX_BYTES];
    let mut arrived = 0;
    while arrived < prefix.len() {
        match socket.read(&mut prefix[arrived..]).await {
            Ok(0) => return Err(Fault::ClosedMidFrame { arrived: 0, wanted: prefix.len() }),
            Ok(bytes) => arrived += bytes,
            Err(error) => return Err(Fault::Read(error)),
        }
    }
    match frame::frame_length(prefix, limits.answer_bytes_max) {
        Ok(length) => match &limits.memory {
            Some(memory) => {
                let room = room(memory, link, length).await;
                let buffer = room.used_buffer(length).unwrap_or_default();
                Ok(room.hold(read_body(socket, buffer, length).await?))
            }
            None => Ok(read_body(socket, BytesMut::new(), length).await?.freeze()),
        },
        Err(_) if prefix[..2] == TLS_ALERT => Err(Fault::ExpectsTls),
        Err(error) => Err(Fault::Frame(error)),
    }
}

/// Room for an answer of which only the length is known. Time that it waits here is not the broker's.
async fn room(memory: &MemoryBudget, link: &Link, length: usize) -> Room {
    if length <= WAITS_ABOVE_BYTES {
        return memory.take(length);
    }
    if let Some(room) = memory.try_take(length) {
        return room;
    }
    link.stop_the_clock();
    let room = memory.wait(length).await;
    link.go_on_from(Instant::now());
    room
}

/// Reads into an empty buffer, which grows where it is too small.
async fn read_body(
    socket: &mut (impl AsyncRead + Unpin),
    mut frame: BytesMut,
    length: usize,
) -> Result<BytesMut, Fault> {
    let first = if length <= TRUSTED_BYTES.max(frame.capacity()) { length } else { FIRST_BYTES };
    frame.reserve(first);
    read_up_to(socket, &mut frame, first, length).await?;
    if first < length {
        frame.reserve(length - first);
        read_up_to(socket, &mut frame, length, length).await?;
    }
    Ok(frame)
}

async fn read_up_to(
    socket: &mut (impl AsyncRead + Unpin),
    frame: &mut BytesMut,
    bytes: usize,
    wanted: usize,
) -> Result<(), Fault> {
    while frame.len() < bytes {
        let left = bytes - frame.len();
        match socket.read_buf(&mut (&mut *frame).limit(left)).await {
            Ok(0) => return Err(Fault::ClosedMidFrame { arrived: frame.len(), wanted }),
            Ok(_) => {}
            Err(error) => return Err(Fault::Read(error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        pin::Pin,
        task::{Context, Poll},
    };

    use tokio::io::ReadBuf;

    use super::*;

    /// Gives `left` bytes, at most `at_once` with each call, and notes the most room that it was offered.
    struct Stream {
        left: usize,
        at_once: usize,
        room_max: usize,
    }

    impl AsyncRead for Stream {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.room_max = self.room_max.max(buffer.remaining());
            let bytes = self.left.min(self.at_once).min(buffer.remaining());
            buffer.put_slice(&vec![b'x'; bytes]);
            self.left -= bytes;
            Poll::Ready(Ok(()))
        }
    }

    fn stream(left: usize) -> Stream {
        Stream { left, at_once: 10_000, room_max: 0 }
    }

    #[tokio::test]
    async fn honest_frames_take_exactly_their_length() {
        for length in [0, 1, 4096, FIRST_BYTES, TRUSTED_BYTES, TRUSTED_BYTES + 1, 9_999_999] {
            let mut socket = stream(length + 50_000);
            let frame = read_body(&mut socket, BytesMut::new(), length).await.unwrap();
            assert_eq!(frame.len(), length);
            assert_eq!(socket.left, 50_000, "the next frame stays on the wire");
            // A vector takes no less than 8.
            assert!(length == 0 || frame.capacity() == length.max(8), "{}", frame.capacity());
        }
    }

    #[tokio::test]
    async fn a_lying_length_takes_little_more_than_what_arrives() {
        let mut socket = stream(10);
        let fault = read_body(&mut socket, BytesMut::new(), 100_000_000).await.unwrap_err();
        assert!(matches!(fault, Fault::ClosedMidFrame { arrived: 10, wanted: 100_000_000 }));
        assert!(socket.room_max <= FIRST_BYTES, "{}", socket.room_max);
    }
}
