//! The five codecs of a batch's payload, with a limit on what unpacking may grow to.
//!
//! C1 Unpacking never gives, and never reserves, more than the caller's limit plus a codec's working memory (zstd: its
//! window, at most 8 MB or twice the limit). C2 What is packed here, every Kafka client of its format can read: snappy in
//! the blocks of snappy-java, LZ4 frames of independent 64 KB blocks, one gzip member, one zstd frame that
//! names its size (so that its reader needs no more memory than that).
//!
//! # References
//! KIP-110 (zstd), KIP-57 (LZ4 framing); `Compression` and its factories, snappy-java's `SnappyOutputStream`.

mod snappy;

use std::io::{self, Read, Write};

use bytes::{Buf, Bytes};
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use crate::batch::Compression;
use crate::{DecodeError, EncodeError};

/// How the limit is told of among the errors of codecs, none of which uses this kind.
const TOO_LARGE: io::ErrorKind = io::ErrorKind::FileTooLarge;
/// Windows of 8 MB must be accepted whatever the limit: zstd's level 19 uses them for small payloads too.
const ZSTD_WINDOW_LOG_MIN: u32 = 23;
/// The largest window that the Java client accepts.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// The unpacked payload; without compression the bytes as they are.
///
/// # Errors
/// [`DecodeError::Refused`] when the codec cannot read the bytes, [`DecodeError::UnpacksTooLarge`] when they unpack to more
/// than `bytes_max`.
pub fn decompress(compression: Compression, packed: &Bytes, bytes_max: usize) -> Result<Bytes, DecodeError> {
    if compression == Compression::None && packed.len() <= bytes_max {
        return Ok(packed.clone());
    }
    unpacker(compression, packed.clone(), bytes_max)
        .and_then(|reader| read_capped(reader, bytes_max))
        .map_err(|error| refused(compression, bytes_max, &error))
}

/// The unpacked payload, as far as it is read. Of what the codec unpacks at once, nothing is larger than `bytes_max`.
pub(super) fn unpacker(
    compression: Compression,
    packed: Bytes,
    bytes_max: usize,
) -> io::Result<Box<dyn Read + Send>> {
    Ok(match compression {
        Compression::None => Box::new(packed.reader()),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed.reader())),
        Compression::Snappy => Box::new(snappy::Unpacker::new(packed, bytes_max)),
        Compression::Lz4 => Box::new(FrameDecoder::new(packed.reader())),
        Compression::Zstd => Box::new(zstd_unpacker(packed, bytes_max)?),
    })
}

/// What is wrong with a payload that could not be unpacked into `bytes_max` bytes.
pub(super) fn refused(compression: Compression, bytes_max: usize, error: &io::Error) -> DecodeError {
    let what = match compression {
        Compression::None => "records",
        Compression::Gzip => "gzip",
        Compression::Snappy => "snappy",
        Compression::Lz4 => "lz4",
        Compression::Zstd => "zstd",
    };
    match error.kind() {
        TOO_LARGE => DecodeError::UnpacksTooLarge { what, limit: bytes_max },
        _ => DecodeError::Refused { what, reason: error.to_string() },
    }
}

/// The packed payload.
///
/// # Errors
/// [`EncodeError::Invalid`] when a codec fails, which none should on bytes in memory.
pub fn compress(compression: Compression, plain: &Bytes) -> Result<Bytes, EncodeError> {
    let (what, packed) = match compression {
        Compression::None => return Ok(plain.clone()),
        Compression::Gzip => ("gzip", pack_gzip(plain)),
        Compression::Snappy => ("snappy", snappy::pack(plain)),
        Compression::Lz4 => ("lz4", pack_lz4(plain)),
        Compression::Zstd => ("zstd", zstd::bulk::compress(plain, zstd::DEFAULT_COMPRESSION_LEVEL)),
    };
    match packed {
        Ok(packed) => Ok(packed.into()),
        Err(error) => Err(EncodeError::Invalid { what, reason: error.to_string() }),
    }
}

fn read_capped(source: impl Read, bytes_max: usize) -> io::Result<Bytes> {
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    let mut unpacked = Vec::new();
    source.take(limit.saturating_add(1)).read_to_end(&mut unpacked)?;
    if unpacked.len() > bytes_max { Err(TOO_LARGE.into()) } else { Ok(unpacked.into()) }
}

fn zstd_unpacker(packed: Bytes, bytes_max: usize) -> io::Result<impl Read + Send> {
    let window_log = bytes_max.checked_next_power_of_two().map_or(usize::BITS, usize::ilog2);
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed.reader())?;
    decoder.window_log_max(window_log.clamp(ZSTD_WINDOW_LOG_MIN, ZSTD_WINDOW_LOG_MAX))?;
    Ok(decoder)
}

fn pack_gzip(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain)?;
    encoder.finish()
}

fn pack_lz4(plain: &[u8]) -> io::Result<Vec<u8>> {
    // Java's reader refuses blocks that lean on earlier ones.
    let frame = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(frame, Vec::new());
    encoder.write_all(plain)?;
    encoder.finish().map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
