//! Small numbers for equal stacks and equal threads, in order of appearance.
//! Memory grows with distinct stacks and threads, not with samples.

use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::model::{Stack, Thread};
use crate::ptr_cache::PtrCache;

/// The number of a thing, and whether it was met for the first time.
pub(crate) struct Interned {
    pub(crate) id: usize,
    pub(crate) new: bool,
}

/// Numbers for values of one type.
#[derive(Clone, Debug)]
pub(crate) struct Interner<T> {
    ids: FxHashMap<T, usize>,
    values: Vec<T>,
}

impl<T: Hash + Eq + Clone> Interner<T> {
    pub(crate) fn new() -> Self {
        Interner { ids: FxHashMap::default(), values: Vec::new() }
    }

    pub(crate) fn intern(&mut self, value: T) -> Interned {
        if let Some(&id) = self.ids.get(&value) {
            return Interned { id, new: false };
        }
        let id = self.values.len();
        self.values.push(value.clone());
        self.ids.insert(value, id);
        Interned { id, new: true }
    }

    /// The values in the order of their numbers.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    /// The same, to keep.
    pub(crate) fn into_values(self) -> Vec<T> {
        self.values
    }
}

/// Numbers for what is handed in again and again behind the same `Arc`: quick for that.
#[derive(Clone, Debug)]
pub(crate) struct Shared<T> {
    recent: PtrCache<T, usize>,
    interner: Interner<Arc<T>>,
}

impl<T: Hash + Eq> Shared<T> {
    pub(crate) fn new() -> Self {
        Shared { recent: PtrCache::default(), interner: Interner::new() }
    }

    pub(crate) fn intern(&mut self, value: &Arc<T>) -> Interned {
        let interner = &mut self.interner;
        let mut new = false;
        let id = *self.recent.get_or_make(value, || {
            let interned = interner.intern(Arc::clone(value));
            new = interned.new;
            interned.id
        });
        Interned { id, new }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.interner.values.len()
    }

    /// Whether it has a number.
    pub(crate) fn has(&self, value: &Arc<T>) -> bool {
        self.interner.ids.contains_key(value)
    }

    /// That with the number.
    pub(crate) fn get(&self, id: usize) -> Option<&Arc<T>> {
        self.interner.values.get(id)
    }

    pub(crate) fn values(&self) -> Vec<&Arc<T>> {
        self.interner.values().iter().collect()
    }

    pub(crate) fn into_values(self) -> Vec<Arc<T>> {
        self.interner.into_values()
    }
}

/// Numbers for stacks.
pub(crate) type StackNumbers = Shared<Stack>;
/// Numbers for threads.
pub(crate) type ThreadNumbers = Shared<Thread>;
