//! `[3]` Which batches of a Fetch answer are void under read_committed, by the list of aborted transactions beside them.
//!
//! - A1: the list names each aborted transaction that reaches into the answer, so nothing is carried from one to the next.
//! - A2: a producer has one transaction at a time in a partition, so the first marker of its behind the first offset of an
//!   aborted one ends it, and need not be read.
//!
//! # References
//! KIP-98; `CompletedFetch` of the Java client, `LogSegment.collectAbortedTxns` of the broker.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::AbortedTransaction;
use crate::batch::BatchHeader;

/// The aborted transactions of one partition's part of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbortedTransactions {
    /// Those that begin further on, the next one last.
    ahead: Vec<AbortedTransaction>,
    /// Producers whose aborted transaction has begun and not ended.
    open: BTreeSet<i64>,
}

impl AbortedTransactions {
    /// Those of a list in any order.
    #[must_use]
    pub fn new(mut listed: Vec<AbortedTransaction>) -> Self {
        listed.sort_unstable_by_key(|aborted| Reverse(aborted.first_offset));
        Self { ahead: listed, open: BTreeSet::new() }
    }

    /// Whether the records of the next batch are void. All batches of the answer have to go by, in its order.
    pub fn void(&mut self, header: &BatchHeader) -> bool {
        let has_begun = |aborted: &mut AbortedTransaction| aborted.first_offset <= header.last_offset();
        while let Some(begun) = self.ahead.pop_if(has_begun) {
            self.open.insert(begun.producer_id);
        }
        if header.attributes.is_control() {
            self.open.remove(&header.producer_id);
            return false;
        }
        header.attributes.is_transactional() && self.open.contains(&header.producer_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Attributes;

    const DATA: i16 = 0x10;
    const PLAIN: i16 = 0;
    const MARKER: i16 = 0x30;

    fn batch(base_offset: i64, producer_id: i64, attributes: i16) -> BatchHeader {
        BatchHeader {
            base_offset,
            batch_length: 49,
            partition_leader_epoch: 0,
            magic: 2,
            crc: 0,
            attributes: Attributes(attributes),
            last_offset_delta: if attributes == MARKER { 0 } else { 4 },
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id,
            producer_epoch: 0,
            base_sequence: 0,
            record_count: 5,
        }
    }

    fn voids(listed: &[(i64, i64)], batches: &[BatchHeader]) -> Vec<i64> {
        let aborted =
            |&(producer_id, first_offset): &(i64, i64)| AbortedTransaction { producer_id, first_offset };
        let mut aborted = AbortedTransactions::new(listed.iter().map(aborted).collect());
        let void = batches.iter().filter(|header| aborted.void(header));
        void.map(|header| header.base_offset).collect()
    }

    #[test]
    fn interleaved_transactions_are_told_apart_by_producer() {
        let log = [
            batch(0, 7, DATA),
            batch(5, 8, DATA),
            batch(10, 9, PLAIN),
            batch(15, 7, DATA),
            batch(20, 7, MARKER),
            batch(21, 8, DATA),
            batch(26, 8, MARKER),
            batch(27, 7, DATA),
            batch(32, 7, MARKER),
        ];
        // The second producer's, then both transactions of the first one; the list in either order.
        assert_eq!(voids(&[(8, 5)], &log), [5, 21]);
        assert_eq!(voids(&[(7, 27), (7, 0)], &log), [0, 15, 27]);
        assert_eq!(voids(&[(7, 0), (8, 5), (7, 27)], &log), [0, 5, 15, 21, 27]);
        assert_eq!(voids(&[], &log), [0; 0]);
    }

    #[test]
    fn an_answer_may_begin_inside_an_aborted_transaction() {
        let log = [batch(15, 7, DATA), batch(20, 7, MARKER), batch(21, 7, DATA)];
        assert_eq!(voids(&[(7, 3)], &log), [15]);
    }

    #[test]
    fn a_producer_that_writes_outside_transactions_is_never_void() {
        // The same id may write plain batches (a transactional producer before its first transaction never does).
        assert_eq!(voids(&[(7, 0)], &[batch(0, 7, PLAIN), batch(5, 7, DATA)]), [5]);
    }

    #[test]
    fn a_marker_that_compaction_has_emptied_still_ends_it() {
        let marker = BatchHeader { record_count: 0, ..batch(5, 7, MARKER) };
        assert_eq!(voids(&[(7, 0)], &[batch(0, 7, DATA), marker, batch(6, 7, DATA)]), [0]);
    }
}
