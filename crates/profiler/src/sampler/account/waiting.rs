//! Where a thread waits for a CPU. The kernel does not say in which stack: it says that the thread
//! is ready. Either the thread was blocked and has been woken: then it is still in the call in
//! which it was blocked. Or it ran, and was made to leave the CPU. The kernel counts how often a
//! thread has left a CPU either way.

use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::State;

/// The last stacks of either kind, and what was decided.
#[derive(Debug, Default)]
pub struct WaitingPlaces {
    blocked: Option<Arc<RawStack>>,
    ran: Option<Arc<RawStack>>,
    /// Shares of waits behind a block that were not yet shown as one.
    owed: f32,
    /// The current wait is known to be behind a block.
    is_woken: bool,
}

impl WaitingPlaces {
    /// The thread was seen in that state.
    pub fn saw(&mut self, state: State, stack: &Arc<RawStack>) {
        match state {
            State::Runnable => {}
            State::Running => self.ran = Some(stack.clone()),
            _ => self.blocked = Some(stack.clone()),
        }
    }

    /// Where the thread waits. `woken`: which share of its waits is behind a block. `continues`: it
    /// was found to wait at the last look, too. Woken threads get a CPU soon.
    pub fn next(&mut self, woken: f32, continues: bool) -> Option<Arc<RawStack>> {
        if !continues {
            self.is_woken = woken >= 1.0;
            self.owed += woken;
        }
        let is_woken = self.is_woken || !continues && self.owed >= 1.0;
        if is_woken && !continues {
            self.owed -= 1.0;
        }
        let [first, second] = if is_woken { [&self.blocked, &self.ran] } else { [&self.ran, &self.blocked] };
        first.clone().or_else(|| second.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_divided_as_the_thread_has_left_its_cpus() {
        let [blocked, ran] = [0, 1].map(|_| Arc::new(RawStack::none()));
        let mut places = WaitingPlaces::default();
        assert!(places.next(0.5, false).is_none());
        places = WaitingPlaces::default();
        places.saw(State::Running, &ran);
        assert!(Arc::ptr_eq(&places.next(1.0, false).unwrap(), &ran), "never blocked");
        places = WaitingPlaces::default();
        places.saw(State::Running, &ran);
        places.saw(State::Blocked(Some(1)), &blocked);
        let mut count = |woken: f32, continues| {
            let all = (0..100).filter_map(|_| places.next(woken, continues));
            all.filter(|stack| Arc::ptr_eq(stack, &blocked)).count()
        };
        assert_eq!([count(0.0, false), count(1.0, false)], [0, 100]);
        assert!((78..=82).contains(&count(0.8, false)));
        assert_eq!(count(0.8, true), 0, "a long wait");
        assert_eq!([count(1.0, false), count(0.8, true)], [100, 100], "known from its beginning");
    }
}
