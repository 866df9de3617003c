//! Stacks of a thread that is blocked in turns at a few places. A copy takes so long that a thread
//! may have moved on; what the kernel has said before tells at which of these it was.

use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::State;

/// Places that are kept of one thread.
const PLACES: usize = 16;

/// Where the kernel finds a blocked thread: its stack pointer and its instruction.
pub type BlockedAt = (u64, u64);

/// The last stacks of a blocked thread, by place.
#[derive(Debug, Default)]
pub struct RecentStacks {
    stacks: Vec<(BlockedAt, State, Arc<RawStack>)>,
    /// The oldest one of as many as there may be.
    oldest: usize,
}

impl RecentStacks {
    /// Keeps one.
    pub fn keep(&mut self, at: BlockedAt, state: State, stack: &Arc<RawStack>) {
        let new = (at, state, stack.clone());
        if let Some(known) = self.stacks.iter_mut().find(|(other, of, _)| *other == at && *of == state) {
            *known = new;
        } else if self.stacks.len() < PLACES {
            self.stacks.push(new);
        } else if let Some(oldest) = self.stacks.get_mut(self.oldest) {
            *oldest = new;
            self.oldest = (self.oldest + 1) % PLACES;
        }
    }

    /// The last one that was taken there.
    pub fn find(&self, at: BlockedAt, state: State) -> Option<Arc<RawStack>> {
        let mut all = self.stacks.iter();
        let (_, _, stack) = all.find(|(other, of, _)| *other == at && *of == state)?;
        Some(stack.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_stack_of_each_of_a_few_places_is_kept() {
        let mut recent = RecentStacks::default();
        let stacks = [0; 3].map(|_| Arc::new(RawStack::none()));
        let state = State::Blocked(Some(7));
        assert!(recent.find((1, 2), state).is_none());
        stacks.iter().for_each(|stack| recent.keep((1, 2), state, stack));
        assert!(Arc::ptr_eq(&recent.find((1, 2), state).unwrap(), &stacks[2]));
        assert!(recent.find((1, 2), State::Blocked(Some(8))).is_none(), "another call");
        (1..PLACES as u64).for_each(|at| recent.keep((at + 1, 2), state, &stacks[0]));
        assert!(recent.find((1, 2), state).is_some());
        recent.keep((9, 9), state, &stacks[0]);
        assert!(recent.find((1, 2), state).is_none(), "the oldest place");
    }
}
