//! How much one Fetch asks for: less from a broker that throttles us, and slowly more again.
//!
//! A broker keeps a client id to a rate by what came within the last ten seconds or so, and answers a Fetch that would
//! bring too much with nothing but a time to wait. Whoever asks for all that ten seconds allow gets it in one piece, and
//! the next one only when that piece is forgotten: half the rate at best. Small pieces come close to the rate.

use std::collections::HashMap;

/// Bytes of one answer where nobody throttles; a single larger batch comes whole (KIP-74).
pub const FETCH_BYTES_MAX: i32 = 16 << 20;
/// Bytes that are worth a request however slow the rate is.
const FETCH_BYTES_MIN: i32 = 64 << 10;
/// By which part of itself the size shrinks to, and grows by.
const PART: i32 = 8;

/// What to ask for after a Fetch that asked for `asked` was answered with nothing but a throttle time.
#[must_use]
pub fn after_throttling(asked: i32) -> i32 {
    (asked / PART).max(FETCH_BYTES_MIN)
}

/// What to ask brokers for, by node.
#[derive(Debug, Default)]
pub struct FetchSizes {
    /// Only where it is not the most.
    throttled: HashMap<i32, i32>,
}

impl FetchSizes {
    /// Bytes to ask a node for.
    #[must_use]
    pub fn bytes_max(&self, node: i32) -> i32 {
        self.throttled.get(&node).copied().unwrap_or(FETCH_BYTES_MAX)
    }

    /// A node answered a Fetch that asked for `asked` in the end.
    pub fn handle_answered(&mut self, node: i32, asked: i32) {
        let known = self.bytes_max(node);
        let next = if asked < known { asked } else { known.saturating_add(known / PART) };
        if next < FETCH_BYTES_MAX {
            self.throttled.insert(node, next);
        } else {
            self.throttled.remove(&node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_throttling_everything_is_asked_for() {
        let mut sizes = FetchSizes::default();
        sizes.handle_answered(1, FETCH_BYTES_MAX);
        assert_eq!((sizes.bytes_max(1), sizes.throttled.len()), (FETCH_BYTES_MAX, 0));
    }

    #[test]
    fn a_throttled_node_is_asked_for_less_and_then_slowly_for_more() {
        let mut sizes = FetchSizes::default();
        let mut asked = sizes.bytes_max(1);
        for expected in [2 << 20, 256 << 10, 64 << 10, 64 << 10] {
            asked = after_throttling(asked);
            assert_eq!(asked, expected);
        }
        sizes.handle_answered(1, asked);
        assert_eq!((sizes.bytes_max(1), sizes.bytes_max(2)), (64 << 10, FETCH_BYTES_MAX));
        // A request that was under way on another lane asked for more.
        sizes.handle_answered(1, FETCH_BYTES_MAX);
        assert_eq!(sizes.bytes_max(1), 72 << 10);
        let mut answers = 0;
        while sizes.bytes_max(1) < FETCH_BYTES_MAX {
            sizes.handle_answered(1, sizes.bytes_max(1));
            answers += 1;
        }
        assert!((40..60).contains(&answers), "{answers}");
    }
}
