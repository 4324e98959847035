//! One blocking connection to a broker: frames out, answers in, in order.

use std::{
    collections::VecDeque,
    io::{BufReader, Read, Write},
    net::TcpStream,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use twinlog_protocol::{
    EncodeError,
    cursor::Cursor,
    header::decode_response_header,
    message::{Request, decode_frame, encode_frame},
    produce::Gather,
    versions::Api,
};

use crate::bench::vectored::write_all;

const CLIENT_ID: &str = "raw-relay";
/// Small answers come with one call of the system; large ones bypass this buffer.
const READ_AHEAD_BYTES: usize = 4096;

/// A connection.
pub(crate) struct Wire {
    stream: BufReader<TcpStream>,
    next_correlation_id: i32,
    /// What is to be answered, in order.
    unanswered: VecDeque<(Api, i16, i32)>,
}

impl Wire {
    pub(crate) fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        let stream = BufReader::with_capacity(READ_AHEAD_BYTES, stream);
        Ok(Self { stream, next_correlation_id: 0, unanswered: VecDeque::new() })
    }

    /// Asks and waits for the answer; nothing else may be under way.
    pub(crate) fn call<R: Request>(&mut self, request: &R) -> Result<R::Response> {
        let (version, correlation_id) = (R::API.versions().max, self.next_correlation_id);
        let frame = encode_frame(request, version, correlation_id, CLIENT_ID)?;
        self.next_correlation_id += 1;
        self.stream.get_mut().write_all(&frame)?;
        let answer = self.read_frame(&mut Bytes::new())?;
        Ok(decode_frame::<R>(answer, version, correlation_id)?)
    }

    /// A frame in the newest version, to be written in the order of these calls.
    pub(crate) fn frame(
        &mut self,
        api: Api,
        build: impl FnOnce(i16, i32, &str) -> Result<Gather, EncodeError>,
    ) -> Result<Gather> {
        let (version, correlation_id) = (api.versions().max, self.next_correlation_id);
        self.next_correlation_id = self.next_correlation_id.wrapping_add(1);
        let frame = build(version, correlation_id, CLIENT_ID)?;
        self.unanswered.push_back((api, version, correlation_id));
        Ok(frame)
    }

    /// Writes frames.
    pub(crate) fn write(&mut self, frames: Gather) -> Result<()> {
        Ok(write_all(self.stream.get_mut(), frames)?)
    }

    /// Requests that wait for their answers.
    pub(in crate::bench) fn in_flight(&self) -> usize {
        self.unanswered.len()
    }

    /// The version and the body of the next answer, a slice of `room`. What nobody uses any more of `room` is used again.
    pub(crate) fn answer(&mut self, room: &mut Bytes) -> Result<(i16, Bytes)> {
        let (api, version, correlation_id) = self.unanswered.pop_front().context("nothing was asked")?;
        let mut cursor = Cursor::new(self.read_frame(room)?);
        decode_response_header(&mut cursor, api, version, correlation_id)?;
        Ok((version, cursor.rest().clone()))
    }

    fn read_frame(&mut self, room: &mut Bytes) -> Result<Bytes> {
        let mut prefix = [0; 4];
        self.stream.read_exact(&mut prefix)?;
        let length = usize::try_from(i32::from_be_bytes(prefix)).context("a frame's length")?;
        let mut bytes = std::mem::take(room).try_into_mut().unwrap_or_default();
        if bytes.len() < length {
            bytes.resize(length, 0);
        }
        self.stream.read_exact(&mut bytes[..length])?;
        *room = bytes.freeze();
        Ok(room.slice(..length))
    }
}
