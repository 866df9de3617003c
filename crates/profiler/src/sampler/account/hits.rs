//! What hits of a thread add to its account.

use super::sample::{Hit, Kind, WEIGHT};
use super::{Account, Moment};
use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::State;

/// How many times as much as others a hit may weigh.
const MAX_TIMES: f64 = 32.0;

impl Account {
    /// Records a repeated observation for a snapshot, which found no hit before.
    pub fn found(&mut self, state: State, stack: &Arc<RawStack>, ns: u64) {
        self.hit(state, stack, 1, ns);
    }

    /// Records a hit of the running thread at a random moment (`preempt.rs`).
    pub fn was_preempted(&mut self, stack: &Arc<RawStack>, ns: u64) {
        self.hit(State::Running, stack, 1, ns);
    }

    /// Records a hit of the running thread at the kernel tick number `tick`.
    pub fn ran(&mut self, stack: &Arc<RawStack>, ns: u64, tick: u64) {
        self.rhythm.was_hit(Some(tick));
        self.hit(State::Running, stack, 1, ns);
    }

    /// Has the last hit represent `times` as much as others: it was so much rarer than theirs.
    pub fn weigh(&mut self, times: f64) {
        if let Some(hit) = self.hits.last_mut() {
            let weight = (f64::from(WEIGHT) * times.min(MAX_TIMES)) as u32;
            hit.weight = hit.weight.saturating_add(weight).saturating_sub(WEIGHT);
        }
    }

    /// Records a hit of the running thread that represents so many, as the thread could not be hit
    /// earlier. `asked`: a sweep had armed its timer.
    pub fn returned(&mut self, stack: &Arc<RawStack>, ns: u64, hits: u32, asked: bool) {
        if asked {
            self.rhythm.was_hit(None);
        }
        self.hit(State::Running, stack, hits, ns);
    }

    pub(super) fn hit(&mut self, state: State, stack: &Arc<RawStack>, count: u32, ns: u64) {
        if !stack.is_none() {
            if self.seen.is_none() && state == State::Running {
                self.place_first_waits(stack);
            }
            self.seen = Some(stack.clone());
            self.waiting.saw(state, stack);
        }
        if count == 0 {
            return;
        }
        let weight = count.saturating_mul(WEIGHT);
        match self.hits.last_mut().filter(|last| last.state == state && Arc::ptr_eq(&last.stack, stack)) {
            Some(last) => {
                last.count = last.count.saturating_add(count);
                last.weight = last.weight.saturating_add(weight);
                last.ns = ns;
            }
            None => self.hits.push(Hit { state, stack: stack.clone(), count, weight, ns, thread: None }),
        }
    }

    /// The thread has run again since it was seen blocked there. Before, it may have waited for a
    /// CPU: this is known only now. So long it was taken for blocked.
    pub(super) fn was_woken(&mut self, stack: &Arc<RawStack>, now: Moment) {
        let turns = now.turns.saturating_sub(self.last.turns);
        let delay_ns = now.delay_ns.saturating_sub(self.last.delay_ns);
        let ticks = now.ticks.saturating_sub(self.opened.ticks);
        let passed_ns = now.ns.saturating_sub(self.opened.ns);
        if turns == 0 || passed_ns == 0 {
            return;
        }
        // The first of its waits.
        let waited_ns = (delay_ns / turns).min(passed_ns);
        let weight = waited_ns as f64 / passed_ns as f64 * ticks as f64 * f64::from(WEIGHT);
        let is_there =
            |hit: &&mut Hit| Kind::of(hit.state) == Kind::Blocked && Arc::ptr_eq(&hit.stack, stack);
        let (weight, ns) = (weight as u32, self.last.ns);
        let count = weight / WEIGHT;
        if let Some(hit) = self.hits.iter_mut().rev().find(is_there) {
            hit.weight = hit.weight.saturating_sub(weight).max(1);
            hit.count = hit.count.saturating_sub(count);
        }
        if weight > 0 {
            self.waiting.waited(stack);
            let (state, stack) = (State::Runnable, stack.clone());
            self.hits.push(Hit { state, stack, count, weight, ns, thread: None });
        }
    }

    /// A new thread that had run and waited for a CPU: it continued there.
    fn place_first_waits(&mut self, stack: &Arc<RawStack>) {
        let unplaced = |hit: &&mut Hit| hit.state == State::Runnable && hit.stack.is_not_sampled();
        self.hits.iter_mut().filter(unplaced).for_each(|hit| hit.stack = stack.clone());
    }

    /// Counts an observation.
    pub(super) fn count_found(&mut self, kind: Kind) {
        self.found.get_mut(kind as usize).into_iter().for_each(|found| *found += 1);
    }

    pub(super) fn hits_of(&self, kind: Kind) -> impl Iterator<Item = &Hit> {
        self.hits.iter().filter(move |hit| Kind::of(hit.state) == kind)
    }

    pub(super) fn count_of(&self, kind: Kind) -> u64 {
        self.hits_of(kind).map(|hit| u64::from(hit.count)).sum()
    }
}
