//! Threads that end in their first window, and the sum of them.

use super::sample::{Hit, Kind};
use super::{Account, MANY_HITS};
use std::sync::Arc;
use swipr_formats::model::Thread;

impl Account {
    /// Whether the thread ended so soon that its time is shared.
    pub fn is_short_lived(&self) -> bool {
        self.is_new && self.opened == self.began && self.count_of(Kind::Running) < u64::from(MANY_HITS)
    }

    /// CPU time in the window, if the thread's clock is at `cpu_ns`.
    pub fn used_ns(&self, cpu_ns: u64) -> u64 {
        cpu_ns.saturating_sub(self.opened.cpu_ns)
    }

    /// CPU time in the window.
    pub fn window_used_ns(&self) -> u64 {
        self.used_ns(self.last.cpu_ns)
    }

    /// Divides the window's ticks again, of threads that have ended soon: their clocks say nothing
    /// of the time after they were last seen. They have run for as long as the clock of the process
    /// says, `unseen_ns` more than their own; where that is not known, for the share of the
    /// observations that found them running. What their clocks do not say of the rest is divided
    /// like the other observations. Returns by how much the running time has grown.
    pub(super) fn divide(&mut self, unseen_ns: Option<u64>, interval_ns: u64) -> u64 {
        let all_ns = interval_ns * self.last.ticks.saturating_sub(self.opened.ticks);
        let [running, waiting, blocked] = self.found;
        let (used_ns, rest) = (self.window_used_ns(), waiting + blocked);
        let waited_ns = self.last.delay_ns.saturating_sub(self.opened.delay_ns);
        let passed_ns = self.last.ns.saturating_sub(self.opened.ns);
        let known_ns = passed_ns.saturating_sub(used_ns + std::mem::take(&mut self.unseen_ns));
        let share_of = |ns: u64, part: u64, all: u64| {
            (u128::from(ns) * u128::from(part) / u128::from(all.max(1))) as u64
        };
        let running_ns = match unseen_ns {
            _ if rest == 0 => all_ns,
            Some(unseen_ns) => all_ns.min(used_ns + unseen_ns),
            None => share_of(all_ns, running, running + rest),
        };
        let rest_ns = all_ns - running_ns;
        let unknown_ns = rest_ns.saturating_sub(known_ns);
        let waiting_ns =
            share_of(rest_ns - unknown_ns, waited_ns, known_ns) + share_of(unknown_ns, waiting, rest);
        self.last.cpu_ns = self.opened.cpu_ns + running_ns;
        self.last.delay_ns = self.opened.delay_ns + waiting_ns;
        self.last.ns = self.opened.ns + all_ns;
        running_ns.saturating_sub(used_ns)
    }

    /// Takes over the window of a thread that has ended. The own clocks become sums.
    pub(super) fn absorb(&mut self, mut ended: Account, thread: &Arc<Thread>) {
        let [running_ns, waiting_ns, blocked_ns] = ended.times_ns();
        self.last.cpu_ns += running_ns;
        self.last.delay_ns += waiting_ns;
        self.last.ns += running_ns + waiting_ns + blocked_ns;
        self.last.ticks += ended.last.ticks.saturating_sub(ended.opened.ticks);
        self.tick_ns = self.tick_ns.max(ended.tick_ns);
        self.unarmed_ns += ended.unarmed_ns;
        self.unseen_ns += ended.unseen_ns;
        self.kernel_ns += ended.kernel_ns;
        self.found.iter_mut().zip(ended.found).for_each(|(all, of_thread)| *all += of_thread);
        self.was_refused |= ended.was_refused;
        self.is_blind |= ended.is_blind;
        self.seen = ended.seen.or(self.seen.take());
        let of_thread = |hit| Hit { thread: Some(thread.clone()), ..hit };
        self.hits.extend(ended.hits.into_iter().map(of_thread));
    }
}
