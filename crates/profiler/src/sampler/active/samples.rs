//! A running recording's samples, from the threads' accounts to the writer.

use super::RunningRecording;
use crate::agent_threads;
use crate::sample_queue::{Event, Refused};
use crate::sampler::account::{Account, Weighted};
use crate::sampler::timers::LastHit;
use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::{Mode, State, Thread};
use swipr_os::process::{clock_ns, monotonic_ns};

/// How long samples wait for more before they go to the writer. To wake the writer, which wakes the
/// server, which wakes the client, costs more than a tick.
pub(super) const HAND_ON_NS: u64 = 50_000_000;
/// So many samples do not wait for more.
const FLUSH_SAMPLES: usize = 1024;
/// A window lasts no longer, unless the sampler was late for as long: the process was stopped.
const LONG_NS: u64 = 4_000_000_000;
/// So many samples represent the ticks of such a window: formats have a line for each.
const MOST_OF_LONG: u32 = 1000;
/// The threads' clocks are read one after another: a smaller difference is no missing thread.
const CLOCKS_DIFFER_NS: u64 = 1_000_000;

impl RunningRecording {
    pub(super) fn hand_on_ns(&self) -> u64 {
        self.handed_on_ns.saturating_add(HAND_ON_NS)
    }

    /// Takes a thread's samples. One without a stack represents time of which there is no stack.
    pub fn take(&mut self, thread: &Arc<Thread>, samples: Vec<Weighted>) {
        for Weighted { state, stack, ticks, cpu_ns, ns, thread: own, .. } in samples {
            let (ticks, weight_ns) = match self.request.mode {
                Mode::Wall => few(ticks, self.interval_ns()),
                Mode::Cpu => (ticks, cpu_ns),
            };
            if ticks == 0 || weight_ns == 0 {
                continue;
            }
            if stack.is_none() && state == State::Running {
                self.counters.unsampled_cpu_ns.add(weight_ns.saturating_mul(ticks.into()));
            }
            // Its ticks are computed back from the last one.
            let back_ns = weight_ns.saturating_mul(u64::from(ticks) - 1);
            let ns = ns.max(self.started_ns.saturating_add(back_ns));
            let thread = own.as_ref().unwrap_or(thread);
            self.batch.push(Event { ticks, ..self.event(thread, ns, weight_ns, state, &stack) });
        }
    }

    /// What the program has used since the start; to be called before the threads' clocks are read
    /// for the last time.
    pub fn program_used_ns(&self) -> u64 {
        let process_ns = process_cpu_ns();
        process_ns.saturating_sub(agent_threads::cpu_ns()).saturating_sub(self.program_cpu_ns)
    }

    /// Closes the window of a thread's account, and takes its samples.
    pub fn close_window(&mut self, thread: &Arc<Thread>, account: &mut Account, ends: bool) {
        let (mode, interval_ns, now) = (self.request.mode, self.interval_ns(), monotonic_ns());
        self.known_cpu_ns += account.window_used_ns();
        let mut samples = account.close(mode, interval_ns, ends);
        if !self.is_snapshot() {
            self.undersampled.donate(thread, account.take_donors(), now);
            for unsampled in samples.extract_if(.., |sample| sample.is_unsampled) {
                self.undersampled.add_unsampled(thread, &unsampled, mode, interval_ns);
            }
        }
        self.take(thread, samples);
    }

    /// Takes the rest of a thread's samples.
    pub fn take_rest(&mut self, thread: &Arc<Thread>, mut account: Account, has_ended: bool) {
        if has_ended && account.is_short_lived() && !self.is_snapshot() {
            self.known_cpu_ns += account.window_used_ns();
            self.undersampled.add_ended(thread, account, monotonic_ns());
        } else {
            self.close_window(thread, &mut account, true);
            if has_ended && self.request.mode == Mode::Cpu && !self.is_snapshot() {
                self.undersampled.add_tail(thread, &account);
            }
        }
    }

    /// Takes the hit of a thread that was never seen.
    pub fn take_last_hit(&mut self, hit: &LastHit) {
        if self.wants_new_threads() && hit.hit_ns >= self.started_ns {
            self.counters.threads.add(1);
            self.undersampled.add_hit(&hit.thread, &hit.stack, hit.hit_ns);
        }
    }

    /// Whether it is time for [`RunningRecording::take_undersampled`].
    pub fn has_many_undersampled(&self, now: u64) -> bool {
        self.undersampled.is_full(self.request.mode, now)
    }

    /// Takes the samples of undersampled threads. They also represent the CPU time of threads that
    /// ended unseen, and for the last moments of others: what `program_used_ns` has more than
    /// closed windows and open ones (`pending_ns`). With it the weights sum to the program's CPU
    /// time (CPU mode). `ends`: the recording ends.
    ///
    /// The clocks cannot all be read at once. They are read in such an order that threads which run
    /// meanwhile make the difference smaller, never larger: none that ended is made up.
    pub fn take_undersampled(&mut self, now: u64, program_used_ns: u64, pending_ns: u64, ends: bool) {
        let unseen_ns = program_used_ns.saturating_sub(self.known_cpu_ns + pending_ns);
        let all = self.request.threads.is_none() && self.request.filter.tids.is_empty();
        let unseen_ns = all.then_some(if unseen_ns > CLOCKS_DIFFER_NS { unseen_ns } else { 0 });
        let (mode, interval_ns) = (self.request.mode, self.interval_ns());
        self.known_cpu_ns += self.undersampled.add_unseen(unseen_ns, mode, interval_ns);
        let samples = self.undersampled.close(mode, interval_ns, now, ends);
        for sample in samples {
            if let Some(thread) = sample.thread.clone() {
                self.take(&thread, vec![sample]);
            }
        }
    }

    fn event(
        &self,
        thread: &Arc<Thread>,
        tick_ns: u64,
        weight_ns: u64,
        state: State,
        stack: &Arc<RawStack>,
    ) -> Event {
        let time_ns = self.clock.epoch(tick_ns);
        Event { thread: thread.clone(), state, time_ns, ticks: 1, weight_ns, stack: stack.clone() }
    }

    /// Hands the samples to the writer where they have waited for long enough, or are many.
    pub fn flush_if_due(&mut self, now: u64) {
        if now >= self.hand_on_ns() || self.batch.len() >= FLUSH_SAMPLES {
            self.flush(now);
        }
    }

    /// Hands the samples to the writer, or drops and counts them when it is behind.
    pub fn flush(&mut self, now: u64) {
        if self.batch.is_empty() {
            return;
        }
        self.handed_on_ns = now;
        // The next one will be about as large.
        let next = Vec::with_capacity(self.batch.len());
        let batch = std::mem::replace(&mut self.batch, next);
        let count = batch.iter().map(|event| u64::from(event.ticks)).sum();
        match self.output.send(batch) {
            Ok(()) => self.counters.samples.add(count),
            Err(Refused::Full) => self.counters.dropped.add(count),
            Err(Refused::Gone) => {}
        }
    }
}

/// So many samples of so much time each, or fewer of more.
fn few(ticks: u32, interval_ns: u64) -> (u32, u64) {
    let ns = u64::from(ticks).saturating_mul(interval_ns);
    let is_long = ticks > MOST_OF_LONG && ns > LONG_NS;
    if is_long { (MOST_OF_LONG, ns / u64::from(MOST_OF_LONG)) } else { (ticks, interval_ns) }
}

/// CPU time of the process, the agent's threads and those that ended with it.
pub(super) fn process_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}
