//! Small numbers for equal stacks and equal threads, in order of appearance.
//! Memory grows with distinct stacks and threads, not with samples.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::model::{Stack, Thread};
use crate::recent::Recent;

/// The number of a thing, and whether it was met for the first time.
pub(crate) struct Interned {
    pub(crate) id: usize,
    pub(crate) new: bool,
}

/// Numbers for values of one type.
pub(crate) struct Interner<T> {
    ids: HashMap<T, usize>,
}

impl<T: Hash + Eq> Interner<T> {
    pub(crate) fn new() -> Self {
        Interner { ids: HashMap::new() }
    }

    pub(crate) fn intern(&mut self, value: T) -> Interned {
        let next = self.ids.len();
        let id = *self.ids.entry(value).or_insert(next);
        Interned { id, new: id == next }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The values in the order of their numbers.
    pub(crate) fn values(&self) -> Vec<&T> {
        let mut values: Vec<(&T, usize)> = self.ids.iter().map(|(value, &id)| (value, id)).collect();
        values.sort_unstable_by_key(|&(_, id)| id);
        values.into_iter().map(|(value, _)| value).collect()
    }

    /// The same, to keep.
    pub(crate) fn into_values(self) -> Vec<T> {
        let mut values: Vec<(T, usize)> = self.ids.into_iter().collect();
        values.sort_unstable_by_key(|&(_, id)| id);
        values.into_iter().map(|(value, _)| value).collect()
    }
}

/// Numbers for what is handed in again and again behind the same `Arc`: quick for that.
pub(crate) struct Shared<T> {
    recent: Recent<T, usize>,
    interner: Interner<Arc<T>>,
}

impl<T: Hash + Eq> Shared<T> {
    pub(crate) fn new() -> Self {
        Shared { recent: Recent::default(), interner: Interner::new() }
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

    pub(crate) fn into_values(self) -> Vec<Arc<T>> {
        self.interner.into_values()
    }
}

/// Numbers for stacks.
pub(crate) type Stacks = Shared<Stack>;
/// Numbers for threads.
pub(crate) type Threads = Shared<Thread>;
