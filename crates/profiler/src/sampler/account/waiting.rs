//! Where a thread waits for a CPU. The kernel does not say in which stack: it says that the thread
//! is ready. Either the thread was blocked and has been woken: then it is still in the call in
//! which it was blocked. Or it ran, and was made to leave the CPU. If it was seen blocked, its wait
//! behind that is known when it runs again (`hits.rs`). Of other waits the kernel counts how often
//! the thread has left a CPU either way, but not in which call it was woken (`wakes.rs`).

mod wakes;

use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::State;
use wakes::Wakes;

/// The last stacks of either kind, and what was decided.
#[derive(Debug, Default)]
pub struct WaitingPlaces {
    blocked: Option<Arc<RawStack>>,
    ran: Option<Arc<RawStack>>,
    /// Shares of waits behind a block that were not yet shown as one.
    owed: f32,
    /// The current wait is shown behind a block.
    is_woken: bool,
    wakes: Wakes,
    /// The place of the current wait behind a block, if not the last one.
    woken_at: Option<Arc<RawStack>>,
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

    /// The thread was woken there while it was observed.
    pub fn woke(&mut self, stack: &Arc<RawStack>) {
        self.wakes.add(stack);
    }

    /// The thread was seen blocked there, and then waited for a CPU.
    pub fn waited(&mut self, stack: &Arc<RawStack>) {
        self.wakes.waited(stack);
    }

    /// Where the thread waits, of whose waits this share is behind a block. `continues`: it was
    /// found to wait at the last observation, too.
    pub fn next(&mut self, share: f32, continues: bool) -> Option<Arc<RawStack>> {
        if !continues {
            self.owed += share;
            self.is_woken = self.owed >= 1.0;
            self.owed -= if self.is_woken { 1.0 } else { 0.0 };
            self.woken_at = if self.is_woken { self.wakes.next() } else { None };
        }
        let [blocked, ran] = [self.woken_at.as_ref().or(self.blocked.as_ref()), self.ran.as_ref()];
        let [first, second] = if self.is_woken { [blocked, ran] } else { [ran, blocked] };
        first.or(second).cloned()
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
        assert_eq!([count(0.0, false), count(0.8, true)], [0, 0], "one wait");
        assert_eq!([count(1.0, false), count(0.8, true)], [100, 100], "one wait");
        // Elsewhere it is woken again and again.
        let often = Arc::new(RawStack::not_begun());
        (0..20).for_each(|_| places.woke(&often));
        let waits = (0..100).filter_map(|_| places.next(1.0, false));
        assert!(waits.filter(|stack| Arc::ptr_eq(stack, &often)).count() > 90);
    }
}
