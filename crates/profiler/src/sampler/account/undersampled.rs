//! Undersampled threads: they have so few hits that they share their CPU time.
//!
//! A thread that runs for some milliseconds now and then, or lives no longer, is hit never or once
//! in a window. If each had its own time, most of it would have no stack. Every kernel tick at
//! which one of them runs is equally likely to be hit. So the hits of all represent the time of
//! all. Threads that have ended in their first window add their time and their hits. The others
//! keep the time of windows with a hit, and of those in which one was to be expected: the next is
//! not far. They add the time of other windows without one. The hits of windows that could as well
//! have had none are the donors of its stacks.
//!
//! In wall mode, threads that have ended have the ticks at which they were there. How much of that
//! they ran, the clock of the process says: a clock that is read once in a short life does not.

use super::{Account, Hit, Kind, LONGEST_WINDOW_NS, MANY_HITS, WEIGHT, WINDOW_NS, Weighted};
use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::{Mode, State, Thread};

/// Hits are donors for so long, and while there are no more than this.
const DONORS_KEPT_NS: u64 = 2 * LONGEST_WINDOW_NS;
const MAX_DONORS: usize = 1 << 12;
/// So many threads without a hit are known by name.
const MAX_NAMED: usize = 1 << 10;

/// The undersampled threads of one recording.
#[derive(Debug)]
pub struct Undersampled {
    /// Those that have ended soon. The clocks are sums.
    ended: Account,
    /// The hits in its last samples: they also represent what is left at the end without a hit.
    ended_hits: Vec<Hit>,
    /// CPU time of others that ended.
    unseen_ns: u64,
    /// The last moments of threads that have samples: how much of that time they are to be expected
    /// to be, and the samples for it.
    tails: Vec<Weighted>,
    of_tails: Vec<Weighted>,
    /// Windows without a hit, their donors, and the time that has none yet.
    windows: Account,
    donors: Vec<Hit>,
    unsampled_ns: u64,
    /// When the first time was added since the last [`Undersampled::close`].
    opened_ns: Option<u64>,
    /// Whose the time without a hit is, in nanoseconds of CPU mode and ticks of wall mode.
    unsampled: Vec<(Arc<Thread>, u64, u32)>,
}

impl Default for Undersampled {
    fn default() -> Undersampled {
        let shared = || Account { is_shared: true, ..Account::default() };
        let (ended, windows) = (shared(), shared());
        let (ended_hits, unseen_ns, tails, of_tails) = Default::default();
        let (donors, unsampled_ns, opened_ns, unsampled) = Default::default();
        Undersampled {
            ended,
            ended_hits,
            unseen_ns,
            tails,
            of_tails,
            windows,
            donors,
            unsampled_ns,
            opened_ns,
            unsampled,
        }
    }
}

impl Undersampled {
    /// Adds a thread that has ended in its first window, at `now_ns`.
    pub fn add_ended(&mut self, thread: &Arc<Thread>, ended: Account, now_ns: u64) {
        self.opened_ns.get_or_insert(now_ns);
        let ticks = ended.last.ticks.saturating_sub(ended.opened.ticks);
        self.name(thread, ended.last.cpu_ns.saturating_sub(ended.opened.cpu_ns), ticks as u32);
        self.ended.absorb(ended, thread);
    }

    /// Adds a hit of a thread that has ended unseen.
    pub fn add_hit(&mut self, thread: &Arc<Thread>, stack: &Arc<RawStack>, ns: u64) {
        self.opened_ns.get_or_insert(ns);
        let (state, stack, thread) = (State::Running, stack.clone(), Some(thread.clone()));
        self.ended.hits.push(Hit { state, stack, count: 1, weight: WEIGHT, ns, thread });
    }

    /// Adds the running time of a window without a hit. In wall mode each of `ticks` represents
    /// `interval_ns`, in CPU mode the time is `cpu_ns`.
    pub fn add_unsampled(&mut self, thread: &Arc<Thread>, sample: &Weighted, mode: Mode, interval_ns: u64) {
        self.opened_ns.get_or_insert(sample.ns);
        let (cpu_ns, ticks) = match mode {
            Mode::Cpu => (sample.cpu_ns, 0),
            Mode::Wall => (interval_ns.saturating_mul(sample.ticks.into()), sample.ticks),
        };
        self.name(thread, cpu_ns, ticks);
        self.unsampled_ns += cpu_ns;
    }

    /// Adds the last moments of a thread that has ended, and has samples.
    pub fn add_tail(&mut self, thread: &Arc<Thread>, ended: &Account) {
        if let Some(stack) =
            ended.ran_at.clone().filter(|_| ended.tail_ns > 0 && self.tails.len() < MAX_NAMED)
        {
            let (state, cpu_ns, ns) = (State::Running, ended.tail_ns, ended.last.ns);
            let thread = Some(thread.clone());
            self.tails.push(Weighted { state, stack, ticks: 1, cpu_ns, ns, thread, is_unsampled: false });
        }
    }

    /// Adds CPU time of threads that ended unseen, or after they were last seen. Returns how much
    /// of it was taken. `None`: it is not known.
    pub fn add_unseen(&mut self, cpu_ns: Option<u64>, mode: Mode, interval_ns: u64) -> u64 {
        match mode {
            Mode::Cpu => {
                let cpu_ns = cpu_ns.unwrap_or(0);
                self.unseen_ns += cpu_ns - self.divide_among_tails(cpu_ns);
                cpu_ns
            }
            Mode::Wall => self.ended.divide(cpu_ns, interval_ns),
        }
    }

    /// Gives the threads that have ended their last moments, as far as there is that time. Returns
    /// how much of it they got. Where there is none yet, they wait.
    fn divide_among_tails(&mut self, cpu_ns: u64) -> u64 {
        let expected_ns: u64 = self.tails.iter().map(|tail| tail.cpu_ns).sum();
        let (all, given) = (u128::from(expected_ns), u128::from(cpu_ns.min(expected_ns)));
        if given == 0 {
            return 0;
        }
        let part =
            |tail: Weighted| Weighted { cpu_ns: (u128::from(tail.cpu_ns) * given / all) as u64, ..tail };
        let first = self.of_tails.len();
        self.of_tails.extend(self.tails.drain(..).map(part));
        self.of_tails.iter().skip(first).map(|sample| sample.cpu_ns).sum()
    }

    /// Moves time without a hit to the accounts that have hits to share it.
    fn share(&mut self, mode: Mode, interval_ns: u64) {
        if self.unsampled_ns > 0 {
            self.windows.hits.append(&mut self.donors);
        }
        let to = [(&mut self.ended, &mut self.unseen_ns), (&mut self.windows, &mut self.unsampled_ns)];
        for (account, ns) in to.into_iter().filter(|(account, _)| account.count_of(Kind::Running) > 0) {
            let ns = std::mem::take(ns);
            account.last.cpu_ns += ns;
            account.last.ns += ns;
            account.last.ticks += if mode == Mode::Wall { ns / interval_ns } else { 0 };
        }
    }

    fn name(&mut self, thread: &Arc<Thread>, cpu_ns: u64, ticks: u32) {
        let has_room = self.unsampled.len() < MAX_NAMED;
        match self.unsampled.last_mut().filter(|last| last.0.tid == thread.tid) {
            Some(last) => (last.1, last.2) = (last.1 + cpu_ns, last.2 + ticks),
            None if has_room => self.unsampled.push((thread.clone(), cpu_ns, ticks)),
            None => {}
        }
    }

    /// Takes a thread's hits as donors.
    pub fn donate(&mut self, thread: &Arc<Thread>, hits: Vec<Hit>, now_ns: u64) {
        if self.donors.len() + hits.len() > MAX_DONORS {
            self.donors.clear();
        }
        self.donors.retain(|hit| now_ns.saturating_sub(hit.ns) < DONORS_KEPT_NS);
        self.donors.extend(hits.into_iter().map(|hit| Hit { thread: Some(thread.clone()), ..hit }));
    }

    /// Whether it is time for [`Undersampled::close`].
    pub fn is_full(&self, mode: Mode, now_ns: u64) -> bool {
        let Some(opened_ns) = self.opened_ns else { return false };
        let (age_ns, hits) = (now_ns.saturating_sub(opened_ns), self.hits());
        let is_enough = hits >= MANY_HITS as usize || age_ns >= LONGEST_WINDOW_NS;
        age_ns >= WINDOW_NS && is_enough && (mode == Mode::Wall || hits > 0)
    }

    /// How many hits of running threads there are.
    pub fn hits(&self) -> usize {
        self.ended.hits_of(Kind::Running).count() + self.donors.len()
    }

    /// The samples so far. `ends`: no time is carried over.
    pub fn close(&mut self, mode: Mode, interval_ns: u64, now_ns: u64, ends: bool) -> Vec<Weighted> {
        self.opened_ns = None;
        let hits: Vec<Hit> = self.ended.hits_of(Kind::Running).cloned().collect();
        match hits.is_empty() {
            true if ends => self.ended.hits.append(&mut self.ended_hits),
            true => {}
            false => self.ended_hits = hits,
        }
        self.share(mode, interval_ns);
        let mut samples = self.ended.close(mode, interval_ns, ends);
        samples.extend(self.windows.close(mode, interval_ns, ends));
        samples.append(&mut self.of_tails);
        let last = self.unsampled.last().map(|(thread, ..)| thread.clone());
        for sample in samples.iter_mut().filter(|sample| sample.thread.is_none()) {
            (sample.thread, sample.ns) = (last.clone(), now_ns);
        }
        for rest in samples.extract_if(.., |sample| sample.is_unsampled) {
            let of_tick_ns = if mode == Mode::Cpu { 0 } else { interval_ns };
            self.unsampled_ns += rest.cpu_ns + of_tick_ns * u64::from(rest.ticks);
        }
        if ends {
            samples.extend(self.by_name(mode, interval_ns, now_ns));
        } else if self.unsampled_ns == 0 {
            self.unsampled.clear();
        }
        samples
    }

    /// Divides the time without a hit among the threads whose it is.
    fn by_name(&mut self, mode: Mode, interval_ns: u64, now_ns: u64) -> Vec<Weighted> {
        let mut left_ns = std::mem::take(&mut self.unsampled_ns) + std::mem::take(&mut self.unseen_ns);
        let mut samples = vec![];
        for (thread, cpu_ns, ticks) in self.unsampled.drain(..) {
            let part_ns =
                left_ns.min(if mode == Mode::Cpu { cpu_ns } else { interval_ns * u64::from(ticks) });
            left_ns -= part_ns;
            samples.push(without_stack(thread, part_ns, mode, interval_ns, now_ns));
        }
        let thread = Arc::new(Thread { tid: swipr_os::process::pid(), name: "ended-threads".into() });
        samples.push(without_stack(thread, left_ns, mode, interval_ns, now_ns));
        samples
    }
}

fn without_stack(thread: Arc<Thread>, cpu_ns: u64, mode: Mode, interval_ns: u64, ns: u64) -> Weighted {
    let (ticks, cpu_ns) = match mode {
        Mode::Cpu => (1, cpu_ns),
        Mode::Wall => ((cpu_ns / interval_ns) as u32, 0),
    };
    let (state, stack) = (State::Running, Arc::new(RawStack::none()));
    Weighted { state, stack, ticks, cpu_ns, ns, thread: Some(thread), is_unsampled: false }
}

#[cfg(test)]
mod tests;
