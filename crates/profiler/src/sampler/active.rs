//! A running recording, from the sampler's side.

mod samples;

use crate::agent_threads;
use crate::counters::RecordingCounters;
use crate::sample_queue::{Batch, SampleSender};
use crate::sampler::account::{News, Undersampled};
use crate::sampler::ticks::Ticks;
use crate::sampler::timers::hit_within_ns;
use crate::stop_time::StopTime;
use samples::process_cpu_ns;
use std::sync::Arc;
use std::time::Duration;
use swipr_formats::model::Mode;
use swipr_os::cpu_timers::kernel_tick_ns;
use swipr_os::process::{EpochClock, monotonic_ns};
use swipr_server::recording::{Length, Request, SampleSource};

/// A snapshot shows threads that get no CPU for longer without a stack.
const SNAPSHOT_WITHIN_NS: u64 = 1_000_000_000;

/// So many sweeps are remembered. Fewer pass until a hit is taken (`idle_backoff.rs`).
const SWEEPS: usize = 32;
/// A sweep arms timers within this time.
const SWEEP_NS: u64 = 500_000;

/// A running recording.
#[derive(Debug)]
pub struct RunningRecording {
    request: Arc<Request>,
    output: SampleSender,
    counters: Arc<RecordingCounters>,
    /// Set by `POST /stop`, by `swipr_recording_end`, by `swipr_stop`, and at exit.
    stop: Arc<StopTime>,
    batch: Batch,
    /// When the last batch was handed to the writer.
    handed_on_ns: u64,
    /// The recording's index, 0 to 7, and the number of its bit in the threads' masks.
    place: usize,
    started_ns: u64,
    clock: EpochClock,
    ticks: Ticks,
    /// Whether the sweep under way is a tick of this recording, and whether it has listed the
    /// threads.
    due: bool,
    has_listed: bool,
    /// When it took part in the last sweeps.
    swept_ns: [u64; SWEEPS],
    /// Ticks so far, and how many of them were late.
    passed: u64,
    filled: u64,
    /// Set when the recording has ended: the last answers may come until then.
    answers_until_ns: Option<u64>,
    /// CPU time of the program's threads at the start, and since then what closed windows hold.
    program_cpu_ns: u64,
    known_cpu_ns: u64,
    undersampled: Undersampled,
}

impl RunningRecording {
    /// Starts when the sampler takes it.
    pub fn new(
        request: Arc<Request>,
        output: SampleSender,
        counters: Arc<RecordingCounters>,
        stop: Arc<StopTime>,
        clock: EpochClock,
    ) -> RunningRecording {
        RunningRecording {
            request,
            output,
            counters,
            stop,
            batch: vec![],
            handed_on_ns: 0,
            place: 0,
            started_ns: 0,
            clock,
            ticks: Ticks::new(1, 0),
            due: false,
            has_listed: false,
            swept_ns: [0; SWEEPS],
            passed: 0,
            filled: 0,
            answers_until_ns: None,
            program_cpu_ns: 0,
            known_cpu_ns: 0,
            undersampled: Undersampled::default(),
        }
    }

    /// The first tick is now. To be called after the threads' clocks were read, see
    /// [`RunningRecording::take_undersampled`].
    pub fn start(&mut self, place: usize) {
        let now = monotonic_ns();
        self.place = place;
        self.started_ns = now;
        // The agent's first, then all: the difference is too large rather than too small.
        let agent_ns = agent_threads::cpu_ns();
        self.program_cpu_ns = process_cpu_ns().saturating_sub(agent_ns);
        self.ticks = Ticks::new(self.interval_ns(), now);
    }

    /// The recording's index.
    pub fn place(&self) -> usize {
        self.place
    }

    /// This recording's bit.
    pub fn bit(&self) -> u8 {
        1 << self.place
    }

    /// What was asked for.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The recording's figures.
    pub fn counters(&self) -> &RecordingCounters {
        &self.counters
    }

    /// Time between two ticks, for which each stands. The one tick of a shorter recording stands
    /// for all of it.
    pub fn interval_ns(&self) -> u64 {
        let longest = match self.request.length {
            Length::Time(duration) => duration,
            Length::Ticks(_) | Length::Open => Duration::MAX,
        };
        (self.request.interval.min(longest).as_nanos() as u64).max(1)
    }

    /// Whether ticks are still to come.
    pub fn is_sampling(&self) -> bool {
        self.answers_until_ns.is_none()
    }

    /// When the sampler has to wake up for this recording.
    pub fn next_wake(&self) -> u64 {
        let hand_on_ns = if self.batch.is_empty() { u64::MAX } else { self.hand_on_ns() };
        self.next_tick().min(hand_on_ns)
    }

    /// When the next tick is, or the end.
    pub fn next_tick(&self) -> u64 {
        self.answers_until_ns.unwrap_or(self.ticks.next_ns().min(self.end_ns()))
    }

    /// The end of a recording of fixed duration; of others `u64::MAX`.
    fn end_ns(&self) -> u64 {
        match self.request.length {
            Length::Time(duration) => self.started_ns.saturating_add(duration.as_nanos() as u64),
            Length::Ticks(_) | Length::Open => u64::MAX,
        }
    }

    /// `now`, or the end if that is over. The sampler may be late.
    pub fn at_most_end_ns(&self, now: u64) -> u64 {
        now.min(self.end_ns()).min(self.stop.get().unwrap_or(u64::MAX))
    }

    /// Whether a tick is due at `now`.
    pub fn is_due(&self, now: u64) -> bool {
        self.is_sampling() && now >= self.ticks.next_ns() && self.ticks.next_ns() < self.end_ns()
    }

    /// Whether this recording takes part in the sweep at `now`, which is at most `early` before its
    /// tick. Ticks that are over already are counted as late.
    pub fn begin_tick(&mut self, now: u64, early: u64) -> bool {
        self.due = self.is_due(now.saturating_add(early)) && !self.is_stopped();
        if self.due {
            // After the recording's end there are no ticks, even if the program was stopped and the
            // sampler is late.
            let late = self.ticks.take(now.min(self.end_ns().saturating_sub(1)));
            self.count_late(if self.is_snapshot() { 0 } else { late });
            self.passed += 1;
            if let Some(swept_ns) = self.swept_ns.get_mut(self.counters.ticks.get() as usize % SWEEPS) {
                *swept_ns = now;
            }
            self.counters.ticks.add(1);
        }
        self.due
    }

    fn count_late(&mut self, late: u64) {
        self.counters.late.add(late);
        self.filled += late;
        self.passed += late;
    }

    /// Whether a sweep has picked the kernel's tick at `tick_ns`: a thread that ran then is hit, if
    /// the sweep knew of it. So the hits of other timers count only there.
    pub fn has_picked(&self, tick_ns: u64) -> bool {
        let before_ns = |swept_ns: &u64| tick_ns.checked_sub(*swept_ns);
        self.swept_ns.iter().filter_map(before_ns).any(|ns| ns < kernel_tick_ns())
    }

    /// As [`RunningRecording::has_picked`], of a tick at an unknown time between two. A snapshot,
    /// and a recording that wants every tick, take what comes.
    pub fn has_picked_in(&self, from_ns: u64, to_ns: u64) -> bool {
        let from_ns = from_ns.saturating_sub(SWEEP_NS);
        let swept_in = |swept_ns: &u64| (from_ns..=to_ns).contains(swept_ns);
        let takes_all = self.is_snapshot() || self.interval_ns() <= kernel_tick_ns();
        takes_all || self.has_picked(to_ns) || self.swept_ns.iter().any(swept_in)
    }

    /// Whether the recording takes part in the sweep under way.
    pub fn is_in_sweep(&self) -> bool {
        self.due
    }

    /// The sweep under way has listed the threads: those that it finds later were not there at its
    /// tick.
    pub fn has_listed_threads(&mut self) {
        self.has_listed = true;
    }

    /// The ticks before the first at which a thread was there that is found now. A sweep that lists
    /// the threads has started its tick already.
    pub fn ticks_before(&self) -> u64 {
        self.passed - u64::from(self.due && !self.has_listed)
    }

    /// The sweep is over.
    pub fn end_tick(&mut self) {
        (self.due, self.has_listed) = (false, false);
    }

    /// The ticks so far, and how many of them were late.
    pub fn passed(&self) -> (u64, u64) {
        (self.passed, self.filled)
    }

    /// Whether this is a snapshot: each thread's stack, once. A thread whose stack could not be
    /// taken is shown without one, and not counted as missed.
    pub fn is_snapshot(&self) -> bool {
        self.request.mode == Mode::Wall && self.request.length == Length::Ticks(1)
    }

    /// Whether running threads are hit by `preempt.rs`. A snapshot takes each thread once, wherever
    /// it is.
    pub fn preempts(&self) -> bool {
        self.request.source == SampleSource::Preempt && !self.is_snapshot()
    }

    /// Whether threads that start are to be hit from their first tick on.
    pub fn wants_new_threads(&self) -> bool {
        self.is_sampling() && !self.is_snapshot()
    }

    /// Counts what an observation of a thread adds.
    pub fn count(&self, news: News) {
        self.counters.filled.add(news.late);
        self.counters.inferred.add(news.unproven);
        self.counters.cpu_wait_ns.add(news.waited_ns);
    }

    /// Has it end then.
    pub fn stop_at(&self, ns: u64) {
        self.stop.set_to(ns);
    }

    fn is_stopped(&self) -> bool {
        self.stop.get().is_some() || self.is_given_up()
    }

    /// Whether the reader is gone, so that further samples are of no use.
    fn is_given_up(&self) -> bool {
        self.output.is_unread()
    }

    /// Whether the last tick is over. For a moment after it, answers may still come.
    pub fn has_ended(&mut self, now: u64) -> bool {
        let over = match self.request.length {
            Length::Ticks(ticks) => self.counters.ticks.get() >= ticks,
            Length::Time(_) => now >= self.end_ns(),
            Length::Open => false,
        };
        if self.answers_until_ns.is_none() && (over || self.is_stopped()) {
            let end_ns = self.at_most_end_ns(now);
            self.counters.duration_ns.set(end_ns.saturating_sub(self.started_ns));
            // The program was stopped in the last sweep, or the sampler got no CPU.
            if self.ticks.next_ns() < end_ns && !matches!(self.request.length, Length::Ticks(_)) {
                let late = self.ticks.take(end_ns - 1) + 1;
                self.count_late(late);
            }
            self.answers_until_ns = Some(now + hit_within_ns());
        }
        self.answers_until_ns.is_some()
    }

    /// A thread of a snapshot was neither hit nor found blocked. Returns whether to try again, and
    /// if so waits longer for answers.
    pub fn wait_on(&mut self, now: u64) -> bool {
        let ended_ns = self.started_ns.saturating_add(self.counters.duration_ns.get());
        let waits = !self.is_given_up() && now.saturating_sub(ended_ns) < SNAPSHOT_WITHIN_NS;
        if waits {
            self.answers_until_ns = Some(now + hit_within_ns());
        }
        waits
    }

    /// Whether an answer may still come.
    pub fn waits_for_answers(&self, now: u64) -> bool {
        !self.is_given_up() && self.answers_until_ns.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests;
