//! Several requests as one thing to write, so that one call of the system takes as much as there is.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Buf;

use super::link::Frame;

/// Requests in order, none of them empty. Reading them as a [`Buf`] uses them up.
#[derive(Default)]
pub(super) struct Frames {
    frames: VecDeque<Frame>,
    left: usize,
}

impl Frames {
    /// Puts a request at the end.
    pub(super) fn push(&mut self, frame: Frame) {
        if frame.has_remaining() {
            self.left += frame.remaining();
            self.frames.push_back(frame);
        }
    }
}

impl Buf for Frames {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        self.frames.front().map_or(&[], |frame| frame.chunk())
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        for frame in &self.frames {
            if filled == slices.len() {
                break;
            }
            filled += frame.chunks_vectored(&mut slices[filled..]);
        }
        filled
    }

    /// # Panics
    /// When `count` is more than is left, as every [`Buf`] does.
    fn advance(&mut self, count: usize) {
        assert!(count <= self.left, "cannot advance {count} bytes over {} that are left", self.left);
        self.left -= count;
        let mut over = count;
        while let Some(frame) = self.frames.front_mut() {
            let of_frame = over.min(frame.remaining());
            frame.advance(of_frame);
            over -= of_frame;
            if frame.has_remaining() {
                return;
            }
            self.frames.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn frames(of: &[&'static str]) -> Frames {
        let mut frames = Frames::default();
        of.iter().for_each(|frame| frames.push(Box::new(Bytes::from_static(frame.as_bytes()))));
        frames
    }

    #[test]
    fn all_frames_are_there_at_once() {
        let frames = frames(&["ab", "", "cde", "f"]);
        let mut slices = [IoSlice::new(&[]); 8];
        let filled = frames.chunks_vectored(&mut slices);
        let seen: Vec<&[u8]> = slices[..filled].iter().map(|slice| &**slice).collect();
        assert_eq!(seen, [&b"ab"[..], b"cde", b"f"]);
        assert_eq!(frames.chunks_vectored(&mut slices[..2]), 2);
    }

    #[test]
    fn they_are_used_up_in_any_pieces() {
        for piece in 1..=6 {
            let mut frames = frames(&["ab", "cde", "f"]);
            let mut seen = Vec::new();
            while frames.has_remaining() {
                let count = piece.min(frames.remaining());
                let mut slices = [IoSlice::new(&[]); 8];
                let filled = frames.chunks_vectored(&mut slices);
                seen.extend(slices[..filled].iter().flat_map(|slice| slice.to_vec()).take(count));
                assert!(frames.chunk().starts_with(&seen[seen.len() - count..][..1]));
                frames.advance(count);
            }
            assert_eq!(seen, b"abcdef");
            assert_eq!(frames.remaining(), 0);
        }
    }

    #[test]
    #[should_panic(expected = "cannot advance 7 bytes over 6")]
    fn more_than_is_left_is_refused() {
        frames(&["abcdef"]).advance(7);
    }
}
