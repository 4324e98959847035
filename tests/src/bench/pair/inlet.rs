//! A request off a socket, field by field: what is skipped is thrown away by the system and never copied.

use std::{
    io::{self, BufRead, BufReader, Read},
    net::TcpStream,
};

use rustix::net::{RecvFlags, recv};

/// Enough for the fields around a payload; what is read ahead of a payload has to be copied.
const READ_AHEAD_BYTES: usize = 256;
/// Thrown away with one call of the system at most.
const SKIP_BYTES: usize = 1 << 20;

/// The receiving end of a connection, and how much of the present request is left.
pub(super) struct Inlet {
    stream: BufReader<TcpStream>,
    left: usize,
    /// The system wants to see so much room and leaves it as it is.
    room: Vec<u8>,
}

impl Inlet {
    pub(super) fn new(stream: TcpStream) -> Self {
        let stream = BufReader::with_capacity(READ_AHEAD_BYTES, stream);
        Self { stream, left: 0, room: vec![0; SKIP_BYTES] }
    }

    /// Waits for the next request.
    pub(super) fn next_frame(&mut self) -> io::Result<()> {
        self.left = 4;
        let length = u32::from_be_bytes(self.array()?);
        self.left = length as usize;
        Ok(())
    }

    /// The next bytes.
    pub(super) fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.take_from_left(N)?;
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// All that is left of the request.
    pub(super) fn rest(&mut self) -> io::Result<Vec<u8>> {
        self.bytes(self.left)
    }

    /// So many bytes.
    pub(super) fn bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        self.take_from_left(count)?;
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// An unsigned varint, as compact lengths are.
    pub(super) fn uvarint(&mut self) -> io::Result<usize> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let [byte] = self.array()?;
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    /// Throws away so many bytes.
    pub(super) fn skip(&mut self, count: usize) -> io::Result<()> {
        self.take_from_left(count)?;
        let buffered = self.stream.buffer().len().min(count);
        self.stream.consume(buffered);
        throw_away(self.stream.get_ref(), &mut self.room, count - buffered)
    }

    fn take_from_left(&mut self, count: usize) -> io::Result<()> {
        self.left = self.left.checked_sub(count).ok_or(io::ErrorKind::InvalidData)?;
        Ok(())
    }
}

/// Lets the system throw away so many bytes that come in.
pub(super) fn throw_away(stream: &TcpStream, room: &mut [u8], mut count: usize) -> io::Result<()> {
    while count > 0 {
        let most = count.min(room.len());
        // On TCP this flag means: take the bytes off the queue and copy nothing.
        match recv(stream, &mut room[..most], RecvFlags::TRUNC) {
            Ok((_, 0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((_, bytes)) => count -= bytes,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
