//! What was made of stacks seen lately, found by the address of the shared stack.
//!
//! A thread that does not move hands in the same `Arc<Stack>` at every tick; looking
//! at its frames again would make idle threads the dearest ones. Not an interner:
//! equal stacks behind different `Arc`s are different here, and old entries go.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::Stack;

/// Entries kept before all are thrown away.
const CAPACITY: usize = 4096;

/// Values by stack identity.
pub(crate) struct Recent<V> {
    /// The `Arc` is kept so that its address stays its own.
    entries: HashMap<usize, (Arc<Stack>, V)>,
}

impl<V> Recent<V> {
    pub(crate) fn new() -> Self {
        Recent { entries: HashMap::new() }
    }

    /// The value of this very stack, made by `make` when it is not known.
    pub(crate) fn get_or_make(&mut self, stack: &Arc<Stack>, make: impl FnOnce() -> V) -> &V {
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

    #[test]
    fn makes_a_value_once_for_the_same_stack() {
        let mut recent = Recent::new();
        let stack = Arc::new(Stack { frames: Vec::new() });
        assert_eq!(*recent.get_or_make(&stack, || 1), 1);
        assert_eq!(*recent.get_or_make(&stack, || 2), 1);
    }

    #[test]
    fn stays_bounded_and_never_mixes_up_stacks() {
        let mut recent = Recent::new();
        for number in 0..3 * CAPACITY {
            let stack = Arc::new(Stack { frames: Vec::new() });
            assert_eq!(*recent.get_or_make(&stack, || number), number);
            assert!(recent.entries.len() <= CAPACITY);
        }
    }
}
