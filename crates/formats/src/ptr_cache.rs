//! What was made of stacks seen lately, found by the address of the shared stack.
//!
//! A thread that does not move hands in the same `Arc` at every tick; looking
//! at its frames again would make idle threads the dearest ones. Not an interner:
//! equal stacks behind different `Arc`s are different here, and old entries go.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Values by the identity of something shared. So many entries are kept before all are thrown away:
/// enough for the idle threads of a large program, where a value is small.
pub struct PtrCache<K, V, const CAPACITY: usize = 16_384> {
    /// The `Arc` is kept so that its address stays its own.
    entries: FxHashMap<usize, (Arc<K>, V)>,
}

impl<K, V, const CAPACITY: usize> Default for PtrCache<K, V, CAPACITY> {
    fn default() -> Self {
        PtrCache { entries: FxHashMap::default() }
    }
}

/// Knows nothing yet.
impl<K, V, const CAPACITY: usize> Clone for PtrCache<K, V, CAPACITY> {
    fn clone(&self) -> Self {
        PtrCache::default()
    }
}

impl<K, V, const CAPACITY: usize> fmt::Debug for PtrCache<K, V, CAPACITY> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PtrCache({} entries)", self.entries.len())
    }
}

impl<K, V, const CAPACITY: usize> PtrCache<K, V, CAPACITY> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of this very stack, if it is known.
    pub fn get(&self, stack: &Arc<K>) -> Option<&V> {
        self.entries.get(&Arc::as_ptr(stack).addr()).map(|(_, value)| value)
    }

    /// The value of this very stack, made by `make` when it is not known.
    pub fn get_or_make(&mut self, stack: &Arc<K>, make: impl FnOnce() -> V) -> &V {
        let address = Arc::as_ptr(stack).addr();
        if self.entries.len() >= CAPACITY && !self.entries.contains_key(&address) {
            self.entries.clear();
        }
        let (_, value) = self.entries.entry(address).or_insert_with(|| (Arc::clone(stack), make()));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Stack;

    #[test]
    fn makes_a_value_once_for_the_same_stack() {
        let mut recent = PtrCache::<_, _, 100>::default();
        let stack = Arc::new(Stack { frames: Vec::new() });
        assert_eq!(*recent.get_or_make(&stack, || 1), 1);
        assert_eq!(*recent.get_or_make(&stack, || 2), 1);
    }

    #[test]
    fn stays_bounded_and_never_mixes_up_stacks() {
        const CAPACITY: usize = 100;
        let mut recent = PtrCache::<_, _, CAPACITY>::default();
        for number in 0..3 * CAPACITY {
            let stack = Arc::new(Stack { frames: Vec::new() });
            assert_eq!(*recent.get_or_make(&stack, || number), number);
            assert!(recent.entries.len() <= CAPACITY);
        }
    }
}
