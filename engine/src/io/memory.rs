//! The bytes of records that a process may hold: an answer to Fetch is read only when there is room for it.
//!
//! Room belongs to the whole answer until the last batch of it is gone, for so long its memory lives. An answer that waits stays
//! in the sockets of both sides, where it costs nobody anything.
//!
//! - M1: room is given in the order in which it was asked for, so that no flow waits for ever.
//! - M2: what is larger than the whole passes alone, once all other room was given back.
//! - M3: the memory of large answers is used again: fresh pages for each would cost as much as the bytes that come into them.
//!   What is kept for that is little, and nothing once no room is used.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Memory of answers from this size on is used again …
const KEPT_BYTES_MIN: usize = 256 << 10;
/// … up to this size, …
const KEPT_BYTES_EACH: usize = 4 << 20;
/// … and no more than so much of it is kept.
const KEPT_BYTES_MAX: usize = 8 << 20;
/// How often it is told that answers have to wait.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// How much may be held, and by whom it is waited for (`memory.max`). Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    waiting: VecDeque<(usize, oneshot::Sender<Room>)>,
    /// Empty buffers.
    kept: Vec<BytesMut>,
    told_at: Option<Instant>,
}

/// Room for an answer; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    shared: Arc<Shared>,
    bytes: usize,
}

impl MemoryBudget {
    /// Room for so many bytes altogether.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { shared: Arc::new(Shared { bytes_max, state: Mutex::default() }) }
    }

    /// Bytes for which room was given.
    #[must_use]
    pub fn used(&self) -> usize {
        self.shared.state().used
    }

    /// All the room.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.shared.bytes_max
    }

    /// Room at once, whether there is any or not: for what is too small to be worth waiting.
    pub(super) fn take(&self, bytes: usize) -> Room {
        self.shared.state().used += bytes;
        Room { shared: Arc::clone(&self.shared), bytes }
    }

    /// Counts bytes that are there already, until their last slice is gone.
    #[must_use]
    pub fn hold(&self, bytes: Bytes) -> Bytes {
        let room = self.take(bytes.len());
        Bytes::from_owner(Held { bytes, _room: room })
    }

    /// Room at once, if there is room and nobody waits.
    pub(super) fn try_take(&self, bytes: usize) -> Option<Room> {
        let mut state = self.shared.state();
        let is_free = state.waiting.is_empty() && self.shared.has_room(&state, bytes);
        is_free.then(|| {
            state.used += bytes;
            Room { shared: Arc::clone(&self.shared), bytes }
        })
    }

    /// Room as soon as it is this one's turn.
    pub(super) async fn wait(&self, bytes: usize) -> Room {
        if let Some(room) = self.try_take(bytes) {
            return room;
        }
        let waiting = self.shared.join_the_queue(Instant::now(), bytes);
        // What was given back between the two looks.
        self.shared.give();
        waiting.await.unwrap_or_else(|_| self.take(bytes))
    }
}

impl Shared {
    /// No step under this lock can leave the state half changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self, state: &State, bytes: usize) -> bool {
        state.used == 0 || state.used.saturating_add(bytes) <= self.bytes_max
    }

    fn join_the_queue(&self, now: Instant, bytes: usize) -> oneshot::Receiver<Room> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        state.waiting.push_back((bytes, sender));
        if state.told_at.is_none_or(|at| now.saturating_duration_since(at) >= TOLD_EVERY) {
            state.told_at = Some(now);
            let (used_bytes, waiting) = (state.used, state.waiting.len());
            drop(state);
            tracing::info!(
                used_bytes,
                waiting,
                "memory.max is used up: answers of the source wait until the target has taken more"
            );
        }
        receiver
    }

    /// Gives room to whoever waits, in order, as far as it goes.
    fn give(self: &Arc<Self>) {
        loop {
            let mut state = self.state();
            let Some(&(bytes, _)) = state.waiting.front() else { return };
            if !self.has_room(&state, bytes) {
                return;
            }
            let Some((bytes, waiter)) = state.waiting.pop_front() else { return };
            if waiter.is_closed() {
                continue;
            }
            state.used += bytes;
            drop(state);
            // Whoever does not wait any more gives it back by this.
            drop(waiter.send(Room { shared: Arc::clone(self), bytes }));
        }
    }
}

impl Room {
    /// An empty buffer that was used before and has room for `bytes`, but not for much more than that.
    pub(super) fn used_buffer(&self, bytes: usize) -> Option<BytesMut> {
        if bytes < KEPT_BYTES_MIN / 2 {
            return None;
        }
        let mut state = self.shared.state();
        let fits = |kept: &BytesMut| (bytes..=bytes.saturating_mul(2)).contains(&kept.capacity());
        let place = state.kept.iter().position(fits)?;
        Some(state.kept.swap_remove(place))
    }

    /// The answer that the room is for; it is given back with the last slice of it.
    pub(super) fn hold(self, answer: BytesMut) -> Bytes {
        Bytes::from_owner(Answer { bytes: answer, room: self })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.used = state.used.saturating_sub(self.bytes);
        let is_waited_for = !state.waiting.is_empty();
        let unused = if state.used == 0 { std::mem::take(&mut state.kept) } else { Vec::new() };
        drop(state);
        // Not under the lock.
        drop(unused);
        if is_waited_for {
            self.shared.give();
        }
    }
}

struct Answer {
    bytes: BytesMut,
    room: Room,
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Answer {
    /// Comes before the room is given back.
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.bytes);
        if (KEPT_BYTES_MIN..=KEPT_BYTES_EACH).contains(&buffer.capacity()) {
            buffer.clear();
            let mut state = self.room.shared.state();
            let kept: usize = state.kept.iter().map(BytesMut::capacity).sum();
            if kept + buffer.capacity() <= KEPT_BYTES_MAX {
                state.kept.push(buffer);
            }
        }
    }
}

struct Held {
    bytes: Bytes,
    _room: Room,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn room_is_given_in_the_order_of_asking() {
        let budget = MemoryBudget::new(100);
        let first = budget.wait(60).await;
        let mut large = Box::pin(budget.wait(70));
        let mut small = Box::pin(budget.wait(30));
        assert!(large.as_mut().now_or_never().is_none());
        assert!(small.as_mut().now_or_never().is_none(), "there is room, but it is not its turn");
        assert!(budget.try_take(1).is_none());
        drop(first);
        let (large, small) = (large.await, small.await);
        assert_eq!(budget.used(), 100);
        drop((large, small));
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn what_is_larger_than_all_passes_alone() {
        let budget = MemoryBudget::new(100);
        let first = budget.wait(1).await;
        let mut large = Box::pin(budget.wait(500));
        assert!(large.as_mut().now_or_never().is_none());
        drop(first);
        let large = large.await;
        assert!(budget.wait(1).now_or_never().is_none());
        drop(large);
        assert_eq!(budget.wait(1).await.bytes, 1);
    }

    #[tokio::test]
    async fn who_gives_up_waiting_takes_nothing() {
        let budget = MemoryBudget::new(10);
        let first = budget.wait(10).await;
        let mut given_up = Box::pin(budget.wait(10));
        assert!(given_up.as_mut().now_or_never().is_none());
        drop(given_up);
        let mut next = Box::pin(budget.wait(4));
        assert!(next.as_mut().now_or_never().is_none());
        drop(first);
        assert_eq!(next.await.bytes, 4);
        assert_eq!(budget.used(), 0, "the room of this one was given back as well");
    }

    #[tokio::test]
    async fn an_answer_keeps_its_room_until_its_last_slice_is_gone() {
        let budget = MemoryBudget::new(10);
        let answer = budget.wait(10).await.hold(BytesMut::from(&b"0123456789"[..]));
        let slice = answer.slice(3..4);
        drop(answer);
        assert_eq!((budget.used(), &slice[..]), (10, &b"3"[..]));
        drop(slice);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_memory_of_an_answer_is_used_again_while_others_are_there() {
        let budget = MemoryBudget::new(100 << 20);
        let answer = |bytes: usize| budget.take(bytes).hold(BytesMut::zeroed(bytes));
        let (large, small) = (answer(1 << 20), answer(10));
        let place = large.as_ptr();
        drop(large);
        let room = budget.take(900 << 10);
        assert!(room.used_buffer(2 << 20).is_none() && room.used_buffer(300 << 10).is_none());
        let buffer = room.used_buffer(900 << 10).expect("the buffer of the first answer");
        assert!((buffer.len(), buffer.as_ptr()) == (0, place) && room.used_buffer(900 << 10).is_none());
        drop((room.hold(buffer), small));
        assert!(budget.take(1 << 20).used_buffer(1 << 20).is_none(), "nothing is kept when nothing is used");
    }

    #[test]
    fn little_memory_is_kept() {
        let budget = MemoryBudget::new(100 << 20);
        let _other = budget.take(1);
        let answers: Vec<Bytes> = [1 << 10, 5 << 20, 3 << 20, 3 << 20, 3 << 20, 1 << 20]
            .map(|bytes| budget.take(bytes).hold(BytesMut::zeroed(bytes)))
            .into();
        drop(answers);
        let kept: Vec<usize> = budget.shared.state().kept.iter().map(BytesMut::capacity).collect();
        assert_eq!(kept, [3 << 20, 3 << 20, 1 << 20]);
    }

    /// Nothing above the limit but a lone one, and everybody is served in the order of asking.
    #[test]
    fn whatever_comes_and_goes_the_limit_holds() {
        let mut random = fastrand::Rng::with_seed(7);
        let budget = MemoryBudget::new(1000);
        let (mut held, mut waiting) = (Vec::new(), VecDeque::new());
        let mut given = 0;
        for _ in 0..20_000 {
            if random.bool() && waiting.len() < 50 {
                let is_large = random.u8(..20) == 0;
                let bytes = if is_large { random.usize(900..2000) } else { random.usize(1..300) };
                let budget = budget.clone();
                let mut room = Box::pin(async move { budget.wait(bytes).await });
                match room.as_mut().now_or_never() {
                    Some(room) => {
                        assert!(waiting.is_empty(), "others were first");
                        held.push(room);
                        given += 1;
                    }
                    None => waiting.push_back(room),
                }
            } else if !held.is_empty() {
                drop(held.swap_remove(random.usize(..held.len())));
            }
            let mut is_served = true;
            waiting.retain_mut(|room| match room.as_mut().now_or_never() {
                Some(room) => {
                    assert!(is_served, "somebody before it still waits");
                    held.push(room);
                    given += 1;
                    false
                }
                None => {
                    is_served = false;
                    true
                }
            });
            let used: usize = held.iter().map(|room: &Room| room.bytes).sum();
            assert_eq!(budget.used(), used);
            assert!(used <= 1000 || held.len() == 1, "{used} bytes of {}", held.len());
        }
        assert!(given > 5_000, "{given}");
    }
}
