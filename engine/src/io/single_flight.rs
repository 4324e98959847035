//! One piece of work at a time, its result shared by all who asked before it began.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

/// Coalesces callers: whoever asks while work is under way gets the result of the next one, because the one under
/// way may have looked at the world before the caller learned that it changed. A caller that is dropped while it
/// works leaves the work to the next.
#[derive(Debug)]
pub(super) struct SingleFlight<T> {
    begun: AtomicU64,
    /// Number and result of the last work that was finished. Held while working: that is the queue.
    finished: Mutex<(u64, Option<T>)>,
}

impl<T: Clone> SingleFlight<T> {
    pub(super) fn new() -> Self {
        SingleFlight { begun: AtomicU64::new(0), finished: Mutex::new((0, None)) }
    }

    /// The result of work that began after this call, done by this caller or another one.
    pub(super) async fn run(&self, work: impl AsyncFnOnce() -> T) -> T {
        let seen = self.begun.load(Ordering::SeqCst);
        let mut finished = self.finished.lock().await;
        if let (number, Some(result)) = &*finished
            && *number > seen
        {
            return result.clone();
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let result = work().await;
        *finished = (number, Some(result.clone()));
        result
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, atomic::AtomicU32},
        time::Duration,
    };

    use tokio::time::sleep;

    use super::*;

    struct Counted {
        flight: SingleFlight<u32>,
        runs: AtomicU32,
    }

    impl Counted {
        fn new() -> Arc<Self> {
            Arc::new(Counted { flight: SingleFlight::new(), runs: AtomicU32::new(0) })
        }

        async fn run(&self) -> u32 {
            self.flight
                .run(async || {
                    let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
                    sleep(Duration::from_secs(1)).await;
                    run
                })
                .await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_during_the_work_share_the_next_one() {
        let counted = Counted::new();
        let first = tokio::spawn({
            let counted = Arc::clone(&counted);
            async move { counted.run().await }
        });
        sleep(Duration::from_millis(500)).await;
        let later = futures_util::future::join_all((0..10).map(|_| counted.run())).await;
        assert_eq!(first.await.unwrap(), 1);
        assert_eq!(later, [2; 10]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_after_the_other_works_each_time() {
        let counted = Counted::new();
        assert_eq!(counted.run().await, 1);
        assert_eq!(counted.run().await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_worker_leaves_the_work_to_the_next() {
        let counted = Counted::new();
        let limit = Duration::from_millis(500);
        assert!(tokio::time::timeout(limit, counted.run()).await.is_err());
        assert_eq!(counted.run().await, 2);
    }
}
