//! What observations of a thread add to its account.

use super::sample::Kind;
use super::{Account, Found, Moment, News, TimerState};
use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::{Mode, State};

/// Two observations of a thread that are so far apart: the whole process was stopped.
const STOPPED_NS: u64 = 250_000_000;

impl Account {
    /// Records an observation. `timer`: whether the thread will be hit from now on.
    pub fn observe(&mut self, now: Moment, found: Found, timer: TimerState) {
        let ticks = u32::try_from(now.ticks.saturating_sub(self.last.ticks)).unwrap_or(u32::MAX);
        let passed_ns = now.ns.saturating_sub(self.last.ns);
        let used_ns = now.cpu_ns.saturating_sub(self.last.cpu_ns);
        let stood_still = used_ns == 0;
        let kernel_ns =
            now.kernel_ns.zip(self.last_kernel_ns).map_or(0, |(now, last)| now.saturating_sub(last));
        self.last_kernel_ns = now.kernel_ns;
        self.kernel_ns += kernel_ns;
        self.awaits_hit = timer == TimerState::Overdue;
        if let TimerState::Yes(tick_ns) = timer
            && passed_ns > 0
        {
            self.tick_ns = tick_ns;
            let running = ((used_ns as f64 - kernel_ns as f64) / passed_ns as f64).min(1.0);
            self.rhythm.expect(running * (passed_ns as f64 / tick_ns as f64).min(1.0));
        }
        self.unarmed_ns += if self.was_unarmed { used_ns } else { 0 };
        self.was_unarmed = matches!(timer, TimerState::Never | TimerState::Refused);
        self.was_refused |= timer == TimerState::Refused;
        self.is_blind |= matches!(found, Found::Unknown);
        let before = self.place.take();
        let found = match (before, found) {
            (Some((state, stack)), Found::At(..) | Found::Elsewhere | Found::Unknown) if stood_still => {
                Found::At(state, stack)
            }
            (Some((state, stack)), found) => {
                let earlier = ticks.saturating_sub(1) / 2;
                self.hit(state, &stack, earlier, self.last.ns);
                if Kind::of(state) == Kind::Blocked {
                    self.was_woken(&stack, now);
                }
                self.add(now, found, ticks - earlier, used_ns, true);
                return;
            }
            (None, found) => found,
        };
        self.add(now, found, ticks, used_ns, false);
    }

    /// The thread's clock stood still from the last observation until then: it was where it was
    /// seen last. `now` is a later moment.
    pub fn stood_still(&mut self, until_ns: u64, now: Moment) {
        let (still_ns, passed_ns) =
            (until_ns.saturating_sub(self.last.ns), now.ns.saturating_sub(self.last.ns));
        if still_ns == 0 || still_ns > passed_ns || self.place.is_none() {
            return;
        }
        let ticks = u128::from(now.ticks.saturating_sub(self.last.ticks));
        let still = (ticks * u128::from(still_ns) / u128::from(passed_ns)) as u64;
        let until = Moment { ns: until_ns, ticks: self.last.ticks + still, ..self.last };
        let was_unarmed = self.was_unarmed;
        self.observe(until, Found::Elsewhere, TimerState::No);
        self.was_unarmed = was_unarmed;
    }

    fn add(&mut self, now: Moment, found: Found, ticks: u32, used_ns: u64, was_blocked: bool) {
        // The end of its last wait, if the kernel has counted that since the last observation.
        let waited_before_ns =
            self.waits_since_ns.map_or(0, |since_ns| self.last.ns.saturating_sub(since_ns));
        let counted_ns = now.delay_ns.saturating_sub(self.last.delay_ns).saturating_sub(waited_before_ns);
        if used_ns > 0 || !matches!(found, Found::Waiting(_)) {
            self.waits_since_ns = None;
        }
        match &found {
            Found::At(state, _) | Found::Was(state, _) => self.count_found(Kind::of(*state)),
            Found::Waiting(_) => self.count_found(Kind::Waiting),
            Found::Elsewhere => self.count_found(Kind::Running),
            Found::Unknown => {}
        }
        match found {
            Found::At(state, stack) => {
                self.hit(state, &stack, ticks, now.ns);
                self.place = Some((state, stack));
            }
            Found::Was(state, stack) => {
                self.hit(state, &stack, ticks, now.ns);
                self.waiting.woke(&stack);
            }
            Found::Waiting(woken) => {
                let continues = self.waits_since_ns.is_some();
                // It was blocked and woke at an unknown time: take the middle. Or it ran first and
                // was preempted then. Or the whole process was stopped: nothing is known.
                let passed_ns = now.ns.saturating_sub(self.last.ns);
                let waits_ns = match was_blocked {
                    true => passed_ns / 2,
                    false if passed_ns < STOPPED_NS => {
                        passed_ns.saturating_sub(used_ns).saturating_sub(counted_ns)
                    }
                    false => 0,
                };
                self.waits_since_ns.get_or_insert(now.ns - waits_ns);
                let place = woken.and_then(|share| self.waiting.next(share, continues));
                let stack = place.or_else(|| self.seen.clone()).or_else(|| self.not_sampled_yet(now));
                if let Some(stack) = stack {
                    self.hit(State::Runnable, &stack, ticks, now.ns);
                }
            }
            Found::Elsewhere | Found::Unknown => {}
        }
        self.last = now;
    }

    /// In place of the stack of a new thread that has none so far. Others have one soon.
    fn not_sampled_yet(&self, now: Moment) -> Option<Arc<RawStack>> {
        let none = if now.cpu_ns == 0 { RawStack::not_begun() } else { RawStack::none() };
        self.is_new.then(|| Arc::new(none))
    }

    /// The thread was there, and has ended before it was observed again.
    pub fn was_there(&mut self, now: Moment) {
        self.unseen_ns += now.ns.saturating_sub(self.last.ns);
        (self.last.ns, self.last.ticks) = (now.ns, now.ticks);
    }

    /// The thread has ended: its clocks say nothing of the time since the last observation. In wall
    /// mode it did what it was seen doing then, if ticks have passed. CPU time is not made up.
    pub fn end(&mut self, now: Moment, mode: Mode) {
        let passed_ns = now.ns.saturating_sub(self.last.ns);
        let since_ns = self.last.ns.saturating_sub(self.opened.ns).max(1);
        let share = self.window_used_ns().min(since_ns) as f64 / since_ns as f64;
        self.tail_ns = (passed_ns as f64 * share / 2.0) as u64;
        if now.ticks <= self.last.ticks {
            return;
        }
        if self.is_short_lived() {
            return self.was_there(now); // one observation says little of the rest of its life
        }
        let waits = self.waits_since_ns.is_some();
        let ran = self.place.is_none() && !waits && mode == Mode::Wall;
        let ran_ns = if ran { now.ns.saturating_sub(self.last.ns) } else { 0 };
        let found = if waits { Found::Waiting(None) } else { Found::Elsewhere };
        self.observe(Moment { cpu_ns: now.cpu_ns + ran_ns, ..now }, found, TimerState::No);
    }

    /// What [`Account::observe`] at `now` would add.
    pub fn news(&self, now: Moment) -> News {
        let between = now.ticks.saturating_sub(self.last.ticks).saturating_sub(1);
        let stood_still = self.place.is_some() && now.cpu_ns == self.last.cpu_ns;
        News {
            late: now.late.saturating_sub(self.last.late),
            unproven: if stood_still { 0 } else { between },
            waited_ns: now.delay_ns.saturating_sub(self.last.delay_ns),
        }
    }
}
