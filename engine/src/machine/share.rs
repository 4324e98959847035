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

    /// Most bytes that one batch may unpack to, or a record of one that is written anew in pieces: what was unpacked and what it
    /// becomes are held at once, beside what was fetched.
    #[must_use]
    pub fn unpacked_bytes_max(self) -> usize {
        self.memory_bytes_max / 4
    }

    /// Bytes that may be written anew before those who have written some wait for the target to take it.
    #[must_use]
    pub fn anew_bytes_max(self) -> usize {
        self.held_bytes_max / 4
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

    /// Bytes of one answer, where the link asks for so many: several have to fit in beside each other, as the room of each is
    /// used until the target has taken the last batch of it.
    #[must_use]
    pub fn answer_bytes_max(self, link_bytes_max: i32) -> i32 {
        let part = (self.held_bytes_max / 8).max(HELD_BYTES_MIN);
        i32::try_from(part).unwrap_or(i32::MAX).min(link_bytes_max)
    }

    /// Whether one of `behind` partitions may ask for more where memory is short and the target has not taken so many bytes of
    /// what it got: it stays below its part. What is under way to the target counts, as it uses memory like what waits; else
    /// those that come first fill their windows before others have a batch.
    #[must_use]
    pub fn admits(self, untaken_bytes: usize, behind: usize) -> bool {
        untaken_bytes == 0 || untaken_bytes < self.part_bytes(behind)
    }

    /// What each of `behind` partitions may have where memory is short.
    fn part_bytes(self, behind: usize) -> usize {
        self.held_bytes_max / behind.max(1)
    }

    /// Bytes that one of `behind` partitions may ask for in an answer of so many bytes to `asking` of them: little where
    /// memory is short, so that many get on.
    #[must_use]
    pub fn partition_bytes_max(
        self,
        answer_bytes_max: i32,
        asking: usize,
        behind: usize,
        is_short: bool,
    ) -> i32 {
        if !is_short {
            return answer_bytes_max;
        }
        let of_answer = answer_bytes_max / i32::try_from(asking).unwrap_or(i32::MAX).max(1);
        let of_memory = i32::try_from(self.part_bytes(behind)).unwrap_or(i32::MAX);
        of_answer.min(of_memory).max(PARTITION_BYTES_MIN).min(answer_bytes_max)
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
        let share = Share::of(256 << 20, 1);
        let of = |answer, asking, is_short| share.partition_bytes_max(answer, asking, asking, is_short);
        assert_eq!(of(4 << 20, 64, false), 4 << 20);
        assert_eq!(of(4 << 20, 64, true), PARTITION_BYTES_MIN);
        assert_eq!(of(4 << 20, 4, true), 1 << 20);
        assert_eq!(of(1 << 10, 0, true), 1 << 10);
        let of_many = |behind| share.partition_bytes_max(16 << 20, 64, behind, true);
        assert_eq!(of_many(512), 256 << 10);
        assert_eq!(of_many(1_000), 134_217);
        assert_eq!(of_many(2_000), PARTITION_BYTES_MIN, "one batch of a usual size");
    }

    #[test]
    fn an_answer_leaves_room_for_others() {
        let of = |mebibytes: usize, wanted| Share::of(mebibytes << 20, 1).answer_bytes_max(wanted);
        assert_eq!(of(256, 16 << 20), 16 << 20);
        assert_eq!(of(32, 16 << 20), 2 << 20);
        assert_eq!(of(32, 1 << 20), 1 << 20);
        assert_eq!(Share::of(0, 9).answer_bytes_max(i32::MAX), 256 << 10);
    }

    #[test]
    fn where_memory_is_short_each_partition_has_its_part_and_one_batch_at_least() {
        let share = Share::of(32 << 20, 1);
        assert!(share.admits((16 << 20) - 1, 1) && !share.admits(16 << 20, 1));
        assert!(share.admits((4 << 20) - 1, 4) && !share.admits(4 << 20, 4));
        assert!(share.admits(0, usize::MAX) && !share.admits(100_000, 1_000) && share.admits(1, 0));
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
