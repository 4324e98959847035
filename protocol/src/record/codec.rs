//! The five codecs of a batch's payload, with a limit on what unpacking may grow to.
//!
//! C1 Unpacking never gives, and never reserves, more than the caller's limit plus a codec's working memory (zstd: its
//! window, at most 8 MB or twice the limit). C2 What is packed here, every Kafka client of its format can read: snappy in
//! the blocks of snappy-java, LZ4 frames of independent 64 KB blocks, one gzip member, one zstd frame that
//! names its size (so that its reader needs no more memory than that).
//!
//! # References
//! KIP-110 (zstd), KIP-57 (LZ4 framing); `Compression` and its factories, snappy-java's `SnappyOutputStream`.

use std::io::{self, Read, Write};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use crate::batch::Compression;
use crate::{DecodeError, EncodeError};

/// How the limit is told of among the errors of codecs, none of which uses this kind.
const TOO_LARGE: io::ErrorKind = io::ErrorKind::FileTooLarge;
/// What snappy-java writes in front of its blocks: its magic, version 1, compatible down to version 1.
const XERIAL_HEADER: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
/// The part of it that readers recognise.
const XERIAL_MAGIC: &[u8] = XERIAL_HEADER.split_at(8).0;
/// Unpacked bytes of a snappy-java block, its default.
const XERIAL_BLOCK_BYTES: usize = 32 * 1024;
/// Snappy's densest element is 3 bytes for 64: a length beyond that ratio cannot be true.
const SNAPPY_RATIO_MAX: usize = 22;
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
    let (what, unpacked) = match compression {
        Compression::None if packed.len() > bytes_max => ("records", Err(TOO_LARGE.into())),
        Compression::None => ("records", Ok(packed.clone())),
        Compression::Gzip => {
            ("gzip", read_capped(flate2::bufread::MultiGzDecoder::new(&packed[..]), bytes_max))
        }
        Compression::Snappy => ("snappy", unpack_snappy(packed, bytes_max)),
        Compression::Lz4 => ("lz4", read_capped(FrameDecoder::new(&packed[..]), bytes_max)),
        Compression::Zstd => ("zstd", unpack_zstd(packed, bytes_max)),
    };
    unpacked.map_err(|error| match error.kind() {
        TOO_LARGE => DecodeError::UnpacksTooLarge { what, limit: bytes_max },
        _ => DecodeError::Refused { what, reason: error.to_string() },
    })
}

/// The packed payload.
///
/// # Errors
/// [`EncodeError::Invalid`] when a codec fails, which none should on bytes in memory.
pub fn compress(compression: Compression, plain: &Bytes) -> Result<Bytes, EncodeError> {
    let (what, packed) = match compression {
        Compression::None => return Ok(plain.clone()),
        Compression::Gzip => ("gzip", pack_gzip(plain)),
        Compression::Snappy => ("snappy", pack_snappy(plain)),
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

fn unpack_zstd(packed: &[u8], bytes_max: usize) -> io::Result<Bytes> {
    let window_log = bytes_max.checked_next_power_of_two().map_or(usize::BITS, usize::ilog2);
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
    decoder.window_log_max(window_log.clamp(ZSTD_WINDOW_LOG_MIN, ZSTD_WINDOW_LOG_MAX))?;
    read_capped(decoder, bytes_max)
}

/// Snappy in either framing: the blocks of snappy-java, or one raw block as librdkafka writes it.
fn unpack_snappy(packed: &[u8], bytes_max: usize) -> io::Result<Bytes> {
    let mut unpacked = BytesMut::new();
    if !packed.starts_with(XERIAL_MAGIC) {
        unpack_block(packed, &mut unpacked, bytes_max)?;
        return Ok(unpacked.freeze());
    }
    let Some(mut blocks) = packed.get(XERIAL_HEADER.len()..) else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    while blocks.has_remaining() {
        let length = blocks.try_get_i32().map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let block = usize::try_from(length).ok().and_then(|length| blocks.split_at_checked(length));
        let Some((block, behind)) = block else {
            let left = blocks.len();
            return Err(io::Error::other(format!(
                "a block names the length {length}, {left} bytes are left"
            )));
        };
        unpack_block(block, &mut unpacked, bytes_max)?;
        blocks = behind;
    }
    Ok(unpacked.freeze())
}

fn unpack_block(block: &[u8], unpacked: &mut BytesMut, bytes_max: usize) -> io::Result<()> {
    let length = snap::raw::decompress_len(block)?;
    if length > bytes_max - unpacked.len() {
        return Err(TOO_LARGE.into());
    }
    if length > block.len().saturating_mul(SNAPPY_RATIO_MAX) {
        return Err(io::Error::other(format!("{} bytes cannot unpack to {length}", block.len())));
    }
    let start = unpacked.len();
    unpacked.put_bytes(0, length);
    snap::raw::Decoder::new().decompress(block, &mut unpacked[start..])?;
    Ok(())
}

fn pack_gzip(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain)?;
    encoder.finish()
}

fn pack_snappy(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = XERIAL_HEADER.to_vec();
    let mut encoder = snap::raw::Encoder::new();
    for block in plain.chunks(XERIAL_BLOCK_BYTES) {
        let block = encoder.compress_vec(block)?;
        packed.put_i32(i32::try_from(block.len()).map_err(io::Error::other)?);
        packed.put_slice(&block);
    }
    Ok(packed)
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
