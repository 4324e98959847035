//! Sequence numbers: the broker's 31 bits on one side, the number of a record in its generation on the other.
//!
//! The broker counts 0 to 2^31 - 1 and starts over. We count records with 64 bits and translate at the edge, so that
//! nothing else has to think about the wrap.
//!
//! # References
//! KIP-98; `DefaultRecordBatch.incrementSequence`.

/// How many sequence numbers there are before they start over.
pub const SEQUENCE_SPAN: u64 = 1 << 31;

/// The broker's sequence of record `number` in a generation that began with `first_sequence`.
#[must_use]
pub fn sequence_of(first_sequence: i32, number: u64) -> i32 {
    let sequence = (u64::from(first_sequence.cast_unsigned()) + number) % SEQUENCE_SPAN;
    i32::try_from(sequence).expect("a remainder of 2^31 fits 31 bits")
}

/// The record number behind a broker's sequence: of all that fit, the one nearest to `near`.
///
/// Right as long as the truth lies within 2^30 records of `near`, which is why a partition's progress is stored at
/// least that often.
#[must_use]
pub fn number_of(first_sequence: i32, sequence: i32, near: u64) -> u64 {
    let residue = (u64::from(sequence.cast_unsigned()) + SEQUENCE_SPAN
        - u64::from(first_sequence.cast_unsigned()))
        % SEQUENCE_SPAN;
    let below = near - near % SEQUENCE_SPAN + residue;
    let half = SEQUENCE_SPAN / 2;
    if below > near + half && below >= SEQUENCE_SPAN {
        below - SEQUENCE_SPAN
    } else if below + half < near {
        below + SEQUENCE_SPAN
    } else {
        below
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sequences_start_over_after_two_billion() {
        assert_eq!(sequence_of(0, 0), 0);
        assert_eq!(sequence_of(0, SEQUENCE_SPAN - 1), i32::MAX);
        assert_eq!(sequence_of(0, SEQUENCE_SPAN), 0);
        assert_eq!(sequence_of(i32::MAX, 1), 0);
    }

    #[test]
    fn a_sequence_just_past_the_wrap_is_not_taken_for_the_first() {
        assert_eq!(number_of(0, 3, SEQUENCE_SPAN - 5), SEQUENCE_SPAN + 3);
        assert_eq!(number_of(0, i32::MAX, SEQUENCE_SPAN + 5), SEQUENCE_SPAN - 1);
        assert_eq!(number_of(0, i32::MAX, 0), SEQUENCE_SPAN - 1);
    }

    proptest! {
        #[test]
        fn a_number_survives_the_wire(first in 0..=i32::MAX, number in 0..1u64 << 40, off in 0..1u64 << 30, ahead: bool) {
            let near = if ahead { number + off } else { number.saturating_sub(off) };
            prop_assert_eq!(number_of(first, sequence_of(first, number), near), number);
        }
    }
}
