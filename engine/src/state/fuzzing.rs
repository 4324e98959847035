//! Body of the fuzz target `state_record`: any bytes as a record of the state topic.
//!
//! H1 Nothing panics or reserves by a length that the input names. H2 What is read is written as it was read, but for bytes
//! behind the entry, which a newer version may have put there.

use bytes::Bytes;

use super::record::{decode, encode};

/// A record: the first byte tells how long its key is, the rest is its value.
///
/// # Panics
/// Where H1 or H2 does not hold.
pub fn state_record(input: &[u8]) {
    let Some((key_bytes, rest)) = input.split_first() else { return };
    let (key, value) = rest.split_at(usize::from(*key_bytes).min(rest.len()));
    let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
    assert_eq!(decode(key.clone(), None).ok().flatten(), None, "a record without a value is no entry");
    let Ok(Some(stored)) = decode(key, Some(value)) else { return };
    let (key, value) = encode(&stored);
    assert_eq!(decode(key, Some(value)), Ok(Some(stored)), "an entry reads back as it was");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_read(input in proptest::collection::vec(any::<u8>(), 0..300)) {
            super::state_record(&input);
        }
    }
}
