//! Threads that begin during a recording and end soon, in one account for all of them.
//!
//! Most of them are hit never or once. Were each to get its own time, those without a hit would
//! have no stack, and in those with one the end of the thread would get the time of its begin.
//! Every kernel tick at which one of them runs is equally likely to be hit. So all their hits
//! together share all their time.

use super::{Account, Kind, LONGEST_WINDOW_NS, MANY_HITS, WINDOW_NS, Weighted};
use std::sync::Arc;
use swipr_formats::model::{Mode, Thread};

/// The threads of one recording that have ended before their first window was closed.
#[derive(Debug, Default)]
pub struct ShortLived {
    account: Account,
    /// When the first of them was added since the last [`ShortLived::close`].
    opened_ns: Option<u64>,
    /// The last one: time without a stack is shown as its.
    thread: Option<Arc<Thread>>,
}

impl ShortLived {
    /// Adds one of them, at `now_ns`.
    pub fn add(&mut self, thread: &Arc<Thread>, ended: Account, now_ns: u64) {
        self.opened_ns.get_or_insert(now_ns);
        self.thread = Some(thread.clone());
        self.account.absorb(ended, thread);
    }

    /// Whether it is time for [`ShortLived::close`].
    pub fn is_full(&self, mode: Mode, now_ns: u64) -> bool {
        let Some(opened_ns) = self.opened_ns else { return false };
        let (age_ns, hits) = (now_ns.saturating_sub(opened_ns), self.account.count_of(Kind::Running));
        let is_enough = hits >= u64::from(MANY_HITS) || age_ns >= LONGEST_WINDOW_NS;
        age_ns >= WINDOW_NS && is_enough && (mode == Mode::Wall || hits > 0)
    }

    /// Whether one of them was hit while it ran.
    pub fn has_run(&self) -> bool {
        self.account.count_of(Kind::Running) > 0
    }

    /// CPU time that is in no sample yet.
    pub fn pending_ns(&self) -> u64 {
        self.account.pending_ns(self.account.last.cpu_ns)
    }

    /// Adds CPU time of threads that ended unseen, or after they were last seen.
    pub fn add_unseen(&mut self, cpu_ns: u64) {
        self.account.last.cpu_ns += cpu_ns;
        self.account.last.ns += cpu_ns;
    }

    /// Their samples so far. `ends`: no time is carried over.
    pub fn close(
        &mut self,
        mode: Mode,
        interval_ns: u64,
        now_ns: u64,
        ends: bool,
    ) -> Option<(Arc<Thread>, Vec<Weighted>)> {
        let thread = self.thread.clone()?;
        self.opened_ns = None;
        let mut samples = self.account.close(mode, interval_ns, ends);
        samples.iter_mut().filter(|sample| sample.thread.is_none()).for_each(|sample| sample.ns = now_ns);
        Some((thread, samples))
    }
}

impl Account {
    /// Whether the thread ended so soon that its time is shared (`ShortLived`).
    pub fn is_short_lived(&self) -> bool {
        self.is_new && self.opened == self.began
    }

    /// CPU time that is in no sample yet, if the thread's clock is at `cpu_ns`.
    pub fn pending_ns(&self, cpu_ns: u64) -> u64 {
        cpu_ns.saturating_sub(self.opened.cpu_ns).saturating_add(self.left_ns[0] as u64)
    }

    /// Takes over the window of a thread that has ended. The own clocks become sums.
    fn absorb(&mut self, mut ended: Account, thread: &Arc<Thread>) {
        let [running_ns, waiting_ns, blocked_ns] = ended.times_ns();
        self.last.cpu_ns += running_ns;
        self.last.delay_ns += waiting_ns;
        self.last.ns += running_ns + waiting_ns + blocked_ns;
        self.last.ticks += ended.last.ticks.saturating_sub(ended.opened.ticks);
        self.unarmed_ns += ended.unarmed_ns;
        self.kernel_ns += ended.kernel_ns;
        self.was_refused |= ended.was_refused;
        self.is_blind |= ended.is_blind;
        self.seen = ended.seen.or(self.seen.take());
        self.hits.extend(ended.hits.into_iter().map(|mut hit| {
            hit.thread = Some(thread.clone());
            hit
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::account::{Found, Moment, TimerState};
    use crate::stack::RawStack;
    use swipr_formats::model::State;
    use swipr_unwind::frames::{CAPACITY, Storage};
    use swipr_unwind::walk::Stop;

    const MS: u64 = 1_000_000;
    const TICK_NS: u64 = 4 * MS;

    fn stack() -> Arc<RawStack> {
        let storage: Box<Storage> = Box::new([const { std::sync::atomic::AtomicU64::new(0) }; CAPACITY]);
        Arc::new(RawStack::new(&storage, 1, Stop::Root, &Arc::default(), Default::default()))
    }

    fn moment(ms: u64, ticks: u64) -> Moment {
        Moment { ns: ms * MS, cpu_ns: ms * MS, kernel_ns: None, delay_ns: 0, ticks, late: 0 }
    }

    fn thread(tid: u32) -> Arc<Thread> {
        Arc::new(Thread { tid, name: "request".into() })
    }

    /// A thread that computes for `ms`, with a hit there or none.
    fn ended(ms: u64, hit: Option<&Arc<RawStack>>) -> Account {
        let mut account = Account::of_new_thread(moment(0, 0));
        if let Some(stack) = hit {
            account.ran(stack, ms * MS, ms * MS / TICK_NS);
        }
        account.observe(moment(ms, ms / 10), Found::Elsewhere, TimerState::Yes(TICK_NS));
        account
    }

    /// Regression: of threads that live for 6 ms, 82 % of the CPU time had no stack.
    #[test]
    fn those_with_a_hit_stand_for_those_without() {
        let (parse, mut threads) = (stack(), ShortLived::default());
        for tid in 0..100 {
            threads.add(&thread(tid), ended(6, (tid % 5 == 0).then_some(&parse)), tid.into());
        }
        assert!(!threads.is_full(Mode::Cpu, 100 * MS) && threads.is_full(Mode::Cpu, 300 * MS));
        assert_eq!(threads.pending_ns(), 600 * MS);
        threads.add_unseen(400 * MS);
        let (_, samples) = threads.close(Mode::Cpu, 10 * MS, 300 * MS, false).unwrap();
        let hit = samples.iter().filter(|sample| sample.cpu_ns > 0).collect::<Vec<_>>();
        assert!(hit.iter().all(|sample| Arc::ptr_eq(&sample.stack, &parse) && sample.cpu_ns == 50 * MS));
        let tids = hit.iter().map(|sample| sample.thread.as_ref().unwrap().tid).collect::<Vec<_>>();
        assert_eq!(tids, (0..100).step_by(5).collect::<Vec<u32>>(), "each hit is its own thread's");
        assert_eq!(threads.pending_ns(), 0);
    }

    #[test]
    fn time_without_a_hit_waits_for_one_and_has_no_stack_at_the_end() {
        let mut threads = ShortLived::default();
        threads.add(&thread(1), ended(6, None), 0);
        assert!(!threads.has_run() && !threads.is_full(Mode::Cpu, u64::MAX));
        assert!(threads.is_full(Mode::Wall, 3000 * MS), "others may have been seen blocked");
        let unhit = threads.close(Mode::Cpu, 10 * MS, MS, false).unwrap().1;
        assert!(unhit.iter().all(|sample| sample.cpu_ns == 0), "{unhit:?}");
        let last = threads.close(Mode::Cpu, 10 * MS, 7, true).unwrap().1;
        let last = last.iter().filter(|sample| sample.cpu_ns > 0).collect::<Vec<_>>();
        assert!(last.iter().all(|sample| sample.stack.is_none() && sample.ns == 7), "{last:?}");
        assert_eq!(last.iter().map(|sample| sample.cpu_ns).sum::<u64>(), 6 * MS);
    }

    #[test]
    fn ticks_are_kept_in_wall_mode() {
        let (parse, mut threads) = (stack(), ShortLived::default());
        (0..50).for_each(|tid| threads.add(&thread(tid), ended(30, (tid % 2 == 0).then_some(&parse)), 0));
        let samples = threads.close(Mode::Wall, 10 * MS, MS, true).unwrap().1;
        assert!(samples.iter().all(|sample| sample.state == State::Running), "{samples:?}");
        assert_eq!(samples.iter().map(|sample| u64::from(sample.ticks)).sum::<u64>(), 150);
    }

    #[test]
    fn a_hit_that_few_sweeps_would_have_made_stands_for_more() {
        let (parse, render, mut threads) = (stack(), stack(), ShortLived::default());
        let mut young = ended(2, Some(&parse));
        young.was_young(MS, TICK_NS);
        let mut older = ended(8, Some(&render));
        older.was_young(7 * MS, TICK_NS);
        assert!(young.is_short_lived() && !Account::new(moment(0, 0)).is_short_lived());
        threads.add(&thread(1), young, 0);
        threads.add(&thread(2), older, 0);
        let samples = threads.close(Mode::Cpu, 10 * MS, MS, true).unwrap().1;
        let of = |stack: &Arc<RawStack>| {
            samples.iter().filter(|it| Arc::ptr_eq(&it.stack, stack)).map(|it| it.cpu_ns).sum::<u64>()
        };
        assert_eq!((of(&parse), of(&render)), (8 * MS, 2 * MS));
    }
}
