//! `[4]` A frame as a list of slices for a vectored write: payloads stay where they were received.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// Bytes to be written in order, in pieces. Reading it as a [`Buf`] uses it up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gather {
    /// No piece is empty.
    pieces: VecDeque<Bytes>,
    left: usize,
}

impl Gather {
    /// What is left to be written, piece by piece.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.pieces.iter()
    }

    /// Puts another frame behind this one, so that both are written as one.
    pub fn append(&mut self, mut other: Self) {
        if self.pieces.is_empty() {
            // Mostly there is one, whose room serves.
            *self = other;
            return;
        }
        self.left += other.left;
        self.pieces.append(&mut other.pieces);
    }
}

impl From<Bytes> for Gather {
    fn from(bytes: Bytes) -> Self {
        std::iter::once(bytes).collect()
    }
}

impl FromIterator<Bytes> for Gather {
    fn from_iter<I: IntoIterator<Item = Bytes>>(pieces: I) -> Self {
        // By way of a vector, whose room serves the queue as well.
        let mut pieces: Vec<_> = pieces.into_iter().collect();
        pieces.retain(|piece| !piece.is_empty());
        let left = pieces.iter().map(Bytes::len).sum();
        Self { pieces: pieces.into(), left }
    }
}

impl Buf for Gather {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| piece)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(piece);
            filled += 1;
        }
        filled
    }

    /// # Panics
    /// When `count` is more than is left, as every [`Buf`] does.
    fn advance(&mut self, count: usize) {
        assert!(count <= self.left, "cannot advance {count} bytes over {} that are left", self.left);
        self.left -= count;
        let mut over = count;
        while over > 0 {
            let piece = self.pieces.front_mut().expect("pieces hold the bytes that are left");
            if over < piece.len() {
                piece.advance(over);
                return;
            }
            over -= piece.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather() -> Gather {
        ["ab", "", "cde", "f"].iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect()
    }

    #[test]
    fn bytes_come_in_order_whatever_the_steps() {
        for step in 1..=6 {
            let mut gather = gather();
            let mut seen = Vec::new();
            while gather.has_remaining() {
                let count = step.min(gather.remaining());
                let mut slices = [IoSlice::new(&[]); 3];
                let filled = gather.chunks_vectored(&mut slices);
                let ahead: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
                assert_eq!(ahead.len(), gather.remaining());
                assert!(!gather.chunk().is_empty());
                seen.extend_from_slice(&ahead[..count]);
                gather.advance(count);
            }
            assert_eq!(seen, b"abcdef");
        }
    }

    #[test]
    #[should_panic(expected = "cannot advance 7 bytes over 6")]
    fn going_past_the_end_is_a_bug() {
        gather().advance(7);
    }

    #[test]
    fn frames_one_behind_the_other_are_there_at_once() {
        let mut frames = Gather::default();
        for frame in ["ab", "", "cde", "f"] {
            frames.append(Bytes::from_static(frame.as_bytes()).into());
        }
        assert_eq!(frames, gather());
        let mut slices = [IoSlice::new(&[]); 8];
        let filled = frames.chunks_vectored(&mut slices);
        let seen: Vec<&[u8]> = slices[..filled].iter().map(|slice| &**slice).collect();
        assert_eq!(seen, [&b"ab"[..], b"cde", b"f"]);
        assert_eq!(frames.chunks_vectored(&mut slices[..2]), 2);
    }

    #[test]
    fn an_empty_frame_has_no_slices() {
        let gather = Gather::default();
        assert!(gather.chunk().is_empty() && !gather.has_remaining());
        assert_eq!(gather.chunks_vectored(&mut [IoSlice::new(&[])]), 0);
    }
}
