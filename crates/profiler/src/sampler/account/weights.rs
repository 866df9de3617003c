//! The samples of a closed window: how its time is divided among the hits.

use super::Account;
use super::sample::{Fate, Hit, KINDS, Kind, Weighted, in_ticks, shares};
use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::State;

/// Blocked ticks count as a moment if they are at most one in so many of the account's ticks.
const MOMENT: u64 = 20;

impl Account {
    /// How long the thread ran, waited for a CPU and was blocked in the window.
    pub(super) fn times_ns(&mut self) -> [u64; 3] {
        let (from, to) = (self.opened, self.last);
        let mut counted_ns = to.delay_ns.saturating_sub(from.delay_ns);
        let early_ns = counted_ns.min(self.attributed_early_ns);
        counted_ns -= early_ns;
        self.attributed_early_ns -= early_ns;
        let waits_ns = self.waits_since_ns.map_or(0, |since_ns| to.ns.saturating_sub(since_ns.max(from.ns)));
        self.attributed_early_ns += waits_ns;
        let running_ns = to.cpu_ns.saturating_sub(from.cpu_ns);
        // A wait that the kernel counts now may have started before the window, where it was taken
        // for blocked time, or before the recording.
        let rest_ns = to.ns.saturating_sub(from.ns).saturating_sub(running_ns);
        let waiting_ns = rest_ns.min(counted_ns + waits_ns);
        let [_, left_waiting_ns, left_blocked_ns] = &mut self.left_ns;
        let earlier_ns = ((counted_ns + waits_ns - waiting_ns) as f64).min(left_blocked_ns.max(0.0));
        *left_waiting_ns += earlier_ns;
        *left_blocked_ns -= earlier_ns;
        let blocked_ns = rest_ns - waiting_ns;
        [running_ns, waiting_ns, blocked_ns]
    }

    pub(super) fn cpu_samples(
        &mut self,
        running_ns: u64,
        missed_ns: [u64; 2],
        interval_ns: u64,
        ends: bool,
    ) -> Vec<Weighted> {
        let mut total_ns = running_ns;
        let mut samples = vec![];
        for (stack, missed_ns) in [self.unarmed(), RawStack::in_kernel()].into_iter().zip(missed_ns) {
            let missed_ns = missed_ns.min(total_ns);
            total_ns -= missed_ns;
            samples.push(self.without_stack(Kind::Running, stack, 1, missed_ns));
        }
        total_ns += std::mem::take(&mut self.left_ns[0]) as u64;
        let hits: Vec<&Hit> = self.hits_of(Kind::Running).collect();
        if self.was_in_step {
            samples.push(self.without_stack(Kind::Running, RawStack::in_step(), 1, total_ns));
        } else if !hits.is_empty() {
            samples.extend(shares(&hits, total_ns).map(|(hit, cpu_ns)| hit.sample(1, cpu_ns)));
        } else {
            let fate = self.fate_of_unhit(total_ns, interval_ns, ends);
            match self.unhit(Kind::Running, 1, total_ns, fate) {
                Some(sample) => samples.push(sample),
                None => self.left_ns[0] = total_ns as f64,
            }
        }
        samples
    }

    fn unarmed(&self) -> RawStack {
        if self.was_refused { RawStack::not_preempted() } else { RawStack::none() }
    }

    /// The sample of time without a hit; `None`: it waits for one.
    fn unhit(&self, kind: Kind, ticks: u32, cpu_ns: u64, fate: Fate) -> Option<Weighted> {
        let is_hidden = kind == Kind::Blocked && self.is_blind;
        let none = if is_hidden { RawStack::hidden() } else { RawStack::none() };
        let mut sample = self.without_stack(kind, none, ticks, cpu_ns);
        match fate {
            Fate::Waits => return None,
            Fate::At(stack) => sample.stack = stack,
            Fate::Shared => sample.is_unsampled = true,
            Fate::Unsampled => {}
        }
        Some(sample)
    }

    fn without_stack(&self, kind: Kind, stack: RawStack, ticks: u32, cpu_ns: u64) -> Weighted {
        let (state, stack, ns) = (kind.state(), Arc::new(stack), self.last.ns);
        Weighted { state, stack, ticks, cpu_ns, ns, thread: None, is_unsampled: false }
    }

    pub(super) fn wall_samples(
        &mut self,
        times_ns: [u64; 3],
        missed_ns: [u64; 2],
        interval_ns: u64,
        ends: bool,
    ) -> Vec<Weighted> {
        let ticks = self.last.ticks.saturating_sub(self.opened.ticks);
        let (mut samples, running_ns) = (vec![], times_ns[0]);
        for (kind, mut ticks) in KINDS.into_iter().zip(self.ticks_of_kinds(times_ns, ticks, interval_ns)) {
            if ticks == 0 {
                continue;
            }
            if kind == Kind::Running {
                let all = u128::from(ticks);
                for (stack, missed_ns) in [self.unarmed(), RawStack::in_kernel()].into_iter().zip(missed_ns) {
                    let missed = all * u128::from(missed_ns.min(running_ns)) / u128::from(running_ns.max(1));
                    let missed = ticks.min(missed as u64);
                    samples.push(self.without_stack(kind, stack, in_ticks(missed), 0));
                    ticks -= missed;
                }
                if self.was_in_step {
                    samples.push(self.without_stack(kind, RawStack::in_step(), in_ticks(ticks), 0));
                    continue;
                }
            }
            let hits: Vec<&Hit> = self.hits_of(kind).collect();
            // For a moment the thread neither ran nor waited, and it was never found blocked: the
            // hypervisor had its CPU.
            let is_moment = ticks.saturating_mul(MOMENT) <= self.last.ticks.saturating_sub(self.began.ticks);
            let waited =
                kind == Kind::Waiting || kind == Kind::Blocked && ends && is_moment && !self.is_blind;
            if !hits.is_empty() {
                samples.extend(shares(&hits, ticks).map(|(hit, ticks)| hit.sample(in_ticks(ticks), 0)));
            } else if let (true, Some(stack)) = (waited, &self.seen) {
                let without = self.without_stack(kind, RawStack::none(), in_ticks(ticks), 0);
                samples.push(Weighted { state: State::Runnable, stack: stack.clone(), ..without });
            } else {
                let fate = match kind {
                    Kind::Running => self.fate_of_unhit(ticks * interval_ns, interval_ns, ends),
                    _ if ends => Fate::Unsampled,
                    _ => Fate::Waits,
                };
                match (self.unhit(kind, in_ticks(ticks), 0, fate), self.left_ns.get_mut(kind as usize)) {
                    (Some(sample), _) => samples.push(sample),
                    (None, Some(left)) => *left += ticks as f64 * interval_ns as f64,
                    (None, None) => {}
                }
            }
        }
        samples
    }

    /// Divides the window's ticks as its time is divided. Fractions are carried over.
    fn ticks_of_kinds(&mut self, times_ns: [u64; 3], ticks: u64, interval_ns: u64) -> [u64; 3] {
        let passed_ns: f64 = times_ns.iter().map(|&ns| ns as f64).sum();
        let counts = KINDS.map(|kind| self.count_of(kind) as f64);
        let seen: f64 = counts.iter().sum();
        let interval_ns = interval_ns as f64;
        let owed_ns: f64 = self.left_ns.iter().sum();
        let is_first = self.last.ticks.saturating_sub(self.began.ticks) <= 1; // it has no time before it
        let shares = if seen > 0.0 && (is_first || passed_ns < interval_ns / 2.0) {
            counts.map(|count| count / seen)
        } else if passed_ns > 0.0 {
            times_ns.map(|ns| ns as f64 / passed_ns)
        } else {
            [1.0, 0.0, 0.0]
        };
        let mut of_kind = [0; 3];
        for ((left_ns, share), of_kind) in self.left_ns.iter_mut().zip(shares).zip(&mut of_kind) {
            *left_ns += share * ticks as f64 * interval_ns;
            *of_kind = (*left_ns / interval_ns).max(0.0) as u64;
            *left_ns -= *of_kind as f64 * interval_ns;
        }
        // The sum must be right. A missing tick is added to the kind with the most time left over,
        // a surplus tick is taken from the kind with the least.
        let all = ticks + (owed_ns / interval_ns).round().max(0.0) as u64;
        while of_kind.iter().sum::<u64>() != all {
            let is_short = of_kind.iter().sum::<u64>() < all;
            let by_debt = self.left_ns.iter().zip(&of_kind).enumerate();
            let found = match is_short {
                true => by_debt.max_by(|a, b| a.1.0.total_cmp(b.1.0)),
                false => by_debt.filter(|(_, (_, ticks))| **ticks > 0).min_by(|a, b| a.1.0.total_cmp(b.1.0)),
            };
            let Some(at) = found.map(|(at, _)| at) else { break };
            if is_short {
                of_kind[at] += 1;
                self.left_ns[at] -= interval_ns;
            } else {
                of_kind[at] -= 1;
                self.left_ns[at] += interval_ns;
            }
        }
        of_kind
    }
}
