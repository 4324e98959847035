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
}

impl Share {
    /// The part of each of `flows` flows. Together they leave room for answers on their way.
    #[must_use]
    pub fn of(memory_bytes_max: usize, flows: usize) -> Self {
        let part = memory_bytes_max / flows.saturating_add(1);
        Self { held_bytes_max: part.clamp(HELD_BYTES_MIN, HELD_BYTES_MAX) }
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

    /// Bytes that one of `partitions` may ask for in an answer of so many bytes: in the second half of the share little, so
    /// that many get on.
    #[must_use]
    pub fn partition_bytes_max(self, answer_bytes_max: i32, partitions: usize, held_bytes: usize) -> i32 {
        if held_bytes < self.held_bytes_max / 2 {
            return answer_bytes_max;
        }
        let part = answer_bytes_max / i32::try_from(partitions).unwrap_or(i32::MAX).max(1);
        part.max(PARTITION_BYTES_MIN).min(answer_bytes_max)
    }

    /// Whether a partition may ask for more while so many bytes of it and of all partitions wait: in the second half of the
    /// share only those that have nothing left, so that a few which drain slowly do not fill it alone.
    #[must_use]
    pub fn admits(self, partition_bytes: usize, held_bytes: usize) -> bool {
        partition_bytes == 0 || held_bytes < self.held_bytes_max / 2
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
    fn in_the_second_half_an_answer_is_for_many() {
        let share = Share::of(4 << 20, 1);
        assert_eq!(share.partition_bytes_max(4 << 20, 64, 0), 4 << 20);
        assert_eq!(share.partition_bytes_max(4 << 20, 64, 1 << 20), PARTITION_BYTES_MIN);
        assert_eq!(share.partition_bytes_max(4 << 20, 4, 1 << 20), 1 << 20);
        assert_eq!(share.partition_bytes_max(1 << 10, 0, 1 << 20), 1 << 10);
        assert!(!share.is_full_for_tails(2 << 20) && share.is_full_for_tails(3 << 20));
    }

    #[test]
    fn the_second_half_is_for_those_that_have_nothing() {
        let share = Share::of(4 << 20, 1);
        assert!(!share.is_full((2 << 20) - 1) && share.is_full(2 << 20));
        assert!(share.admits(7, (1 << 20) - 1) && !share.admits(7, 1 << 20) && share.admits(0, 1 << 20));
    }
}
