//! Which producer id a flow writes under: the first one that the state topic names, and its successors.
//!
//! Two first starts take an id each and store it; both read back, and both find the same first entry. An id whose
//! epochs are used up is replaced by an entry that names it, and of those the first one counts as well.

/// The producer ids of a flow, as its state topic tells them in the order of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowIdentity {
    current: Option<i64>,
}

impl FlowIdentity {
    /// Applies an identity entry. `replaces` is the id that it follows, -1 for a first one.
    pub fn apply(&mut self, producer_id: i64, replaces: i64) {
        if self.current.unwrap_or(-1) == replaces {
            self.current = Some(producer_id);
        }
    }

    /// The id to write under.
    #[must_use]
    pub fn producer_id(&self) -> Option<i64> {
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_two_first_starts_counts() {
        let mut identity = FlowIdentity::default();
        assert_eq!(identity.producer_id(), None);
        identity.apply(7, -1);
        identity.apply(8, -1);
        assert_eq!(identity.producer_id(), Some(7));
    }

    #[test]
    fn a_used_up_id_is_followed_by_the_first_that_replaces_it() {
        let mut identity = FlowIdentity::default();
        for (producer_id, replaces) in [(7, -1), (9, 7), (10, 7), (11, 8)] {
            identity.apply(producer_id, replaces);
        }
        assert_eq!(identity.producer_id(), Some(9));
    }
}
