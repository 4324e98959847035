//! What of the process's memory one flow may fill with records that wait, so that a slow target does not starve the others.

/// A flow never holds more, however much memory there is: more waiting makes nothing faster.
const HELD_BYTES_MAX: usize = 128 << 20;
/// So much a flow may always hold: one answer of a usual size.
const HELD_BYTES_MIN: usize = 256 << 10;

/// A partition gets at least so much of an answer.
const PARTITION_BYTES_MIN: i32 = 128 << 10;

/// A flow's part of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    held_bytes_max: usize,
    /// Of all flows.
    memory_bytes_max: usize,
}

impl Share {
    /// The part of each of `flows` flows. Together they leave room for answers on their way.
    #[must_use]
    pub fn of(memory_bytes_max: usize, flows: usize) -> Self {
        let part = memory_bytes_max / flows.saturating_add(1);
        Self { held_bytes_max: part.clamp(HELD_BYTES_MIN, HELD_BYTES_MAX), memory_bytes_max }
    }

    /// Whether nothing more is asked for while so many bytes wait.
    #[must_use]
    pub fn is_full(self, held_bytes: usize) -> bool {
        held_bytes >= self.held_bytes_max
    }

    /// The same for answers to partitions that have nothing to catch up with: who is behind must not make them wait.
    #[must_use]
    pub fn is_full_for_tails(self, held_bytes: usize) -> bool {
        held_bytes >= self.held_bytes_max + self.held_bytes_max / 8
    }

    /// Bytes that one of `partitions` may ask for in an answer of so many bytes: little where memory is short, so that many
    /// get on.
    #[must_use]
    pub fn partition_bytes_max(answer_bytes_max: i32, partitions: usize, is_short: bool) -> i32 {
        if !is_short {
            return answer_bytes_max;
        }
        let part = answer_bytes_max / i32::try_from(partitions).unwrap_or(i32::MAX).max(1);
        part.max(PARTITION_BYTES_MIN).min(answer_bytes_max)
    }

    /// Whether memory is short while so many bytes of the flow wait, and `used_bytes` of the process are used: half is gone.
    #[must_use]
    pub fn is_short(self, held_bytes: usize, used_bytes: usize) -> bool {
        held_bytes >= self.held_bytes_max / 2 || used_bytes >= self.memory_bytes_max / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_divide_the_memory_and_leave_one_part_free() {
        let of = |mebibytes: usize, flows| Share::of(mebibytes << 20, flows).held_bytes_max;
        assert_eq!(of(256, 1), 128 << 20);
        assert_eq!(of(256, 3), 64 << 20);
        assert_eq!(of(4096, 1), HELD_BYTES_MAX);
        assert_eq!(of(1, 1000), HELD_BYTES_MIN);
        assert_eq!(of(0, usize::MAX), HELD_BYTES_MIN);
    }

    #[test]
    fn an_answer_is_for_many_where_memory_is_short() {
        let of = Share::partition_bytes_max;
        assert_eq!(of(4 << 20, 64, false), 4 << 20);
        assert_eq!(of(4 << 20, 64, true), PARTITION_BYTES_MIN);
        assert_eq!(of(4 << 20, 4, true), 1 << 20);
        assert_eq!(of(1 << 10, 0, true), 1 << 10);
    }

    #[test]
    fn memory_is_short_when_half_of_it_is_gone() {
        let share = Share::of(4 << 20, 1);
        assert!(!share.is_full((2 << 20) - 1) && share.is_full(2 << 20));
        assert!(!share.is_full_for_tails(2 << 20) && share.is_full_for_tails(3 << 20));
        assert!(!share.is_short((1 << 20) - 1, (2 << 20) - 1));
        assert!(share.is_short(1 << 20, 0) && share.is_short(0, 2 << 20));
    }
}
