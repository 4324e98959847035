//! Snappy in either framing: the blocks of snappy-java, or one raw block as librdkafka writes it.

use std::io::{self, Read};

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::TOO_LARGE;

/// What snappy-java writes in front of its blocks: its magic, version 1, compatible down to version 1.
pub(super) const XERIAL_HEADER: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
/// The part of it that readers recognise.
const XERIAL_MAGIC: &[u8] = XERIAL_HEADER.split_at(8).0;
/// Unpacked bytes of a snappy-java block, its default.
const XERIAL_BLOCK_BYTES: usize = 32 * 1024;
/// Snappy's densest element is 3 bytes for 64: a length beyond that ratio cannot be true.
const RATIO_MAX: usize = 22;

/// Unpacks block by block.
pub(super) struct Unpacker {
    /// What is not unpacked yet.
    packed: Packed,
    /// Of the last block, what is not read yet.
    block: Bytes,
    block_bytes_max: usize,
}

enum Packed {
    Raw(Option<Bytes>),
    /// With the header, until it was read.
    Xerial(Bytes, usize),
}

impl Unpacker {
    /// No block may unpack to more than `block_bytes_max` bytes.
    pub(super) fn new(packed: Bytes, block_bytes_max: usize) -> Self {
        let packed = if packed.starts_with(XERIAL_MAGIC) {
            Packed::Xerial(packed, XERIAL_HEADER.len())
        } else {
            Packed::Raw(Some(packed))
        };
        Self { packed, block: Bytes::new(), block_bytes_max }
    }

    fn next_block(&mut self) -> io::Result<Option<Bytes>> {
        let block = match &mut self.packed {
            Packed::Raw(block) => block.take(),
            Packed::Xerial(blocks, header_bytes) => {
                let header_bytes = std::mem::take(header_bytes);
                if blocks.len() < header_bytes {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                blocks.advance(header_bytes);
                split_block(blocks)?
            }
        };
        block.map(|block| unpack_block(&block, self.block_bytes_max)).transpose()
    }
}

impl Read for Unpacker {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.block.is_empty() {
            let Some(block) = self.next_block()? else { return Ok(0) };
            self.block = block;
        }
        let bytes = into.len().min(self.block.len());
        self.block.split_to(bytes).copy_to_slice(&mut into[..bytes]);
        Ok(bytes)
    }
}

/// The next of snappy-java's blocks.
fn split_block(blocks: &mut Bytes) -> io::Result<Option<Bytes>> {
    if blocks.is_empty() {
        return Ok(None);
    }
    let length = blocks.try_get_i32().map_err(|_| io::ErrorKind::UnexpectedEof)?;
    match usize::try_from(length) {
        Ok(length) if length <= blocks.len() => Ok(Some(blocks.split_to(length))),
        _ => {
            let left = blocks.len();
            Err(io::Error::other(format!("a block names the length {length}, {left} bytes are left")))
        }
    }
}

fn unpack_block(block: &[u8], bytes_max: usize) -> io::Result<Bytes> {
    let length = snap::raw::decompress_len(block)?;
    if length > bytes_max {
        return Err(TOO_LARGE.into());
    }
    if length > block.len().saturating_mul(RATIO_MAX) {
        return Err(io::Error::other(format!("{} bytes cannot unpack to {length}", block.len())));
    }
    let mut unpacked = BytesMut::zeroed(length);
    snap::raw::Decoder::new().decompress(block, &mut unpacked)?;
    Ok(unpacked.freeze())
}

/// In the blocks of snappy-java.
pub(super) fn pack(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = XERIAL_HEADER.to_vec();
    let mut encoder = snap::raw::Encoder::new();
    for block in plain.chunks(XERIAL_BLOCK_BYTES) {
        let block = encoder.compress_vec(block)?;
        packed.put_i32(i32::try_from(block.len()).map_err(io::Error::other)?);
        packed.put_slice(&block);
    }
    Ok(packed)
}
