//! A transaction that stays open stops a copy of committed records: it is told, with whose it is and how old.
//!
//! - O1: a transaction stops the copy where everything below the last stable offset was fetched and there is more above it.
//!   Each transaction does so for a moment; one that does for [`TOLD_AFTER`] is looked at.
//!
//! # References
//! KIP-98 for the last stable offset, KIP-664 for transactions that hang.

use std::time::Duration;

use super::command::{FetchedRecords, OpenTransaction, RequestFailure};
use super::{Now, TOLD_AFTER};

/// Time between two looks at the same transaction, which gets older.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Watches for a transaction that stops the partition.
#[derive(Debug, Default)]
pub(super) struct TransactionWatch {
    stopped: Option<Stopped>,
}

#[derive(Debug)]
struct Stopped {
    /// The source's last stable offset.
    at: i64,
    since: Now,
    look_at: Now,
    told: Option<String>,
}

impl TransactionWatch {
    /// A Fetch was answered, and everything below `read_next` has been fetched. Tells whether a transaction has ended that
    /// was told of.
    #[must_use]
    pub(super) fn handle_fetched(&mut self, now: Now, read_next: i64, records: &FetchedRecords) -> bool {
        let is_stop = |stable: &i64| *stable < records.high_watermark && *stable <= read_next;
        let stop = records.last_stable_offset.filter(is_stop);
        if self.stopped.as_ref().map(|stopped| stopped.at) == stop {
            return false;
        }
        let begun = stop.map(|at| Stopped { at, since: now, look_at: now + TOLD_AFTER, told: None });
        std::mem::replace(&mut self.stopped, begun).is_some_and(|ended| ended.told.is_some())
    }

    /// The upstream offset of a transaction to look at now.
    pub(super) fn poll_look(&mut self, now: Now) -> Option<i64> {
        let stopped = self.stopped.as_mut().filter(|stopped| stopped.look_at <= now)?;
        stopped.look_at = now + LOOK_EVERY;
        Some(stopped.at)
    }

    /// When [`TransactionWatch::poll_look`] has something to look at.
    #[must_use]
    pub(super) fn next_look(&self) -> Option<Now> {
        Some(self.stopped.as_ref()?.look_at)
    }

    /// The transaction at this upstream offset was looked at; what to tell of it, the first time.
    pub(super) fn handle_found(
        &mut self,
        offset: i64,
        found: &Result<OpenTransaction, RequestFailure>,
    ) -> Option<String> {
        let stopped = self.stopped.as_mut().filter(|stopped| stopped.at == offset)?;
        let text = in_words(offset, found);
        stopped.told.replace(text.clone()).is_none().then_some(text)
    }

    /// The transaction that stops the partition, in words, once it was looked at.
    #[must_use]
    pub(super) fn told(&self) -> Option<&str> {
        self.stopped.as_ref()?.told.as_deref()
    }

    /// Since when it does.
    #[must_use]
    pub(super) fn stopped_since(&self) -> Option<Now> {
        Some(self.stopped.as_ref()?.since)
    }
}

fn in_words(offset: i64, found: &Result<OpenTransaction, RequestFailure>) -> String {
    match found {
        Ok(OpenTransaction { producer_id, producer_epoch, age }) => {
            let begun = age.map_or_else(String::new, |age| {
                format!(", begun {} s ago by its first record's timestamp", age.as_secs())
            });
            format!(
                "a transaction of producer id {producer_id} (epoch {producer_epoch}) is open at upstream offset {offset}{begun}; \
                 committed records end there"
            )
        }
        Err(why) => format!(
            "a transaction is open at upstream offset {offset}, where committed records end; whose it is could not be read: \
             {why}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(high_watermark: i64, last_stable_offset: i64) -> FetchedRecords {
        FetchedRecords {
            records: Vec::new().into(),
            high_watermark,
            last_stable_offset: Some(last_stable_offset),
            aborted: Vec::new(),
            log_start: 0,
            diverging: None,
        }
    }

    fn found(age_seconds: u64) -> Result<OpenTransaction, RequestFailure> {
        Ok(OpenTransaction {
            producer_id: 4711,
            producer_epoch: 3,
            age: Some(Duration::from_secs(age_seconds)),
        })
    }

    #[test]
    fn one_that_stays_open_is_told_once_and_its_age_kept_right() {
        let mut watch = TransactionWatch::default();
        assert!(!watch.handle_fetched(Now::ZERO, 120, &records(200, 120)));
        assert_eq!((watch.next_look(), watch.poll_look(TOLD_AFTER / 2)), (Some(TOLD_AFTER), None));
        // More is written behind it: the same stop.
        assert!(!watch.handle_fetched(TOLD_AFTER / 2, 120, &records(300, 120)));
        assert_eq!(watch.poll_look(TOLD_AFTER), Some(120));
        let told = watch.handle_found(120, &found(35)).unwrap();
        let expected = "a transaction of producer id 4711 (epoch 3) is open at upstream offset 120, begun 35 s ago by its first \
                        record's timestamp; committed records end there";
        assert_eq!((told.as_str(), watch.told()), (expected, Some(expected)));
        assert_eq!(watch.poll_look(TOLD_AFTER + LOOK_EVERY), Some(120));
        assert_eq!(watch.handle_found(120, &found(95)), None);
        assert!(watch.told().unwrap().contains("begun 95 s ago"));
        assert!(watch.handle_fetched(Now::ZERO, 301, &records(301, 301)));
        assert_eq!((watch.told(), watch.next_look()), (None, None));
    }

    #[test]
    fn one_after_the_other_is_no_stop_and_neither_is_what_is_still_to_be_read() {
        let mut watch = TransactionWatch::default();
        assert!(!watch.handle_fetched(Now::ZERO, 119, &records(200, 120)));
        assert_eq!(watch.next_look(), None);
        assert!(!watch.handle_fetched(Now::ZERO, 120, &records(200, 120)));
        assert!(!watch.handle_fetched(TOLD_AFTER / 2, 150, &records(200, 150)));
        assert_eq!(watch.next_look(), Some(TOLD_AFTER / 2 + TOLD_AFTER));
        assert_eq!(watch.handle_found(120, &found(1)), None, "an answer about the one before");
        let every = FetchedRecords { last_stable_offset: None, ..records(200, 0) };
        assert!(!watch.handle_fetched(Now::ZERO, 150, &every));
        assert_eq!(watch.next_look(), None);
    }

    #[test]
    fn one_that_cannot_be_looked_at_is_told_all_the_same() {
        let mut watch = TransactionWatch::default();
        assert!(!watch.handle_fetched(Now::ZERO, 120, &records(200, 120)));
        let why = Err(RequestFailure::Unanswered("no answer".to_owned()));
        let told = watch.handle_found(120, &why).unwrap();
        assert!(told.ends_with("whose it is could not be read: no answer"), "{told}");
    }
}
