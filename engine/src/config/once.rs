//! A list in which nothing stands twice: a key at top level is read by every flow, and told once.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};

/// Items in the order in which they first came.
#[derive(Debug)]
pub(super) struct Once<T> {
    items: Vec<T>,
    places: HashMap<u64, Vec<usize>>,
    hasher: RandomState,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self { items: Vec::new(), places: HashMap::new(), hasher: RandomState::new() }
    }
}

impl<T: Hash + Eq> Once<T> {
    pub(super) fn push(&mut self, item: T) {
        let places = self.places.entry(self.hasher.hash_one(&item)).or_default();
        if !places.iter().any(|&place| self.items[place] == item) {
            places.push(self.items.len());
            self.items.push(item);
        }
    }

    pub(super) fn into_items(self) -> Vec<T> {
        self.items
    }
}

impl<T: Hash + Eq> Extend<T> for Once<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}
