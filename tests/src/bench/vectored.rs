//! Writing a frame that lies in many places, as few calls of the system as it goes.

use std::{
    io::{self, IoSlice, Write},
    net::TcpStream,
};

use bytes::Buf;
use twinlog_protocol::produce::Gather;

/// Slices handed to the system at once, as many as it takes.
const SLICES_MAX: usize = 1024;

/// Writes all of `frames`.
pub(super) fn write_all(stream: &mut TcpStream, mut frames: Gather) -> io::Result<()> {
    while frames.has_remaining() {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let filled = frames.chunks_vectored(&mut slices);
        let written = stream.write_vectored(&slices[..filled])?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        frames.advance(written);
    }
    Ok(())
}
