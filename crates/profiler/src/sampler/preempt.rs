//! `source=preempt`: running threads are hit at any moment, not at the kernel's ticks.
//!
//! A timer hits a thread that runs in step with the kernel's tick too often or never. For
//! recordings with this source, the sampler sleeps between two ticks on the CPU on which a thread
//! ran last. When the sampler wakes, the kernel takes the CPU from the thread that runs there. This
//! is the thread whose turn ended when the sampler's turn began, by the kernel's own times of both.
//! It gets a signal, whose handler runs before the thread does anything else. The recording's ticks
//! are at random moments, so these hits are, too.
//!
//! The sampler can wait on one CPU only: threads that run on several CPUs share the hits. Their
//! weights are exact all the same.
//!
//! The harm: a thread may lose its CPU inside a system call, which the signal then ends early. A
//! thread whose writes are so large that one could end early is left to its timer.

use super::account::TimerState;
use super::active::RunningRecording;
use super::threads::{ThreadState, Threads};
use super::ticks::mixed;
use super::timers::{TimerHit, Timers, hit_within_ns};
use crate::counters::AgentCounters;
use crate::mappings::Tables;
use swipr_os::cpus::{self, Cpus};
use swipr_os::process::{monotonic_ns, tid};
use swipr_os::threads::{Activity, cpu_ns};

/// So many threads are tried at a tick, chosen at random.
const MAX_TRIED: usize = 16;
/// If the sampler wakes later, it had to wait for the CPU, for example until a kernel tick: the
/// moment is not random.
const LATE_NS: u64 = 200_000;
/// A write of so many bytes, `PIPE_BUF`, is whole or not at all (pipe(7)).
const WHOLE_BYTES: u64 = 4096;
/// How long a thread that wrote more at once is left to its timer.
const WRITER_NS: u64 = 10_000_000_000;
/// How long the sampler stays on a CPU.
const STAY_NS: u64 = 50_000_000;
/// How long after a refusal the sampler tries again.
const AGAIN_NS: u64 = 1_000_000_000;

/// What preemption knows of a thread.
#[derive(Debug, Default)]
pub struct Preempted {
    /// Bytes and calls that it had written when last read.
    written: (u64, u64),
    /// Until when it is left to its timer, and until when its CPU is out of reach.
    writer_until_ns: u64,
    refused_until_ns: u64,
}

impl Preempted {
    /// Whether a signal could cut a write of the thread short, judged by its writes since the last
    /// call.
    fn writes_much(&mut self, written: Option<(u64, u64)>, now_ns: u64) -> bool {
        let much = written.is_none_or(|(bytes, calls)| {
            let before = std::mem::replace(&mut self.written, (bytes, calls));
            let calls = calls.saturating_sub(before.1);
            bytes.saturating_sub(before.0) > calls.saturating_mul(WHOLE_BYTES)
        });
        if much {
            self.writer_until_ns = now_ns + WRITER_NS;
        }
        much
    }
}

/// Preempts running threads at the ticks of recordings with `source=preempt`.
#[derive(Debug, Default)]
pub struct Preempter {
    /// Threads that this sweep wants to try, and those of them on whose CPU the sampler sleeps.
    asked: Vec<u32>,
    tried: Vec<u32>,
    /// The CPU that the sampler sleeps on, and the CPUs that it may otherwise use.
    there: Option<u32>,
    home: Option<Cpus>,
    /// From when on moments on that CPU are random, and until when the sampler stays.
    settled_ns: u64,
    stays_until_ns: u64,
    /// Threads that were sent a signal, and when to check for their stacks.
    raised: Vec<u32>,
    collect_ns: u64,
    /// Whether signals may be sent at all, and until when that is known.
    is_allowed: bool,
    allowed_until_ns: u64,
}

impl Preempter {
    /// Has a thread tried at the next tick; `None`: it is left to its timer.
    pub fn ask(&mut self, thread: &mut ThreadState, now_ns: u64, timers: &mut Timers) -> Option<TimerState> {
        if now_ns >= self.allowed_until_ns {
            self.is_allowed = timers.may_raise() && cpus::exec_start_ns(tid()).is_some();
            self.allowed_until_ns = now_ns + AGAIN_NS;
            cpus::wake_in_time();
        }
        if now_ns < thread.preempt.writer_until_ns {
            return None;
        }
        if !self.is_allowed || now_ns < thread.preempt.refused_until_ns {
            return Some(TimerState::Refused);
        }
        if !timers.can_be_asked(thread, now_ns) {
            return Some(TimerState::Never);
        }
        self.asked.push(thread.tid());
        Some(TimerState::AtAnyMoment)
    }

    /// To be called first of all when the sampler wakes. At the tick, and if that is not long ago:
    /// the thread whose CPU the sampler has got, and the recordings whose tick it is.
    pub fn preempted(&mut self, recordings: &[RunningRecording]) -> Option<(u32, u8)> {
        let Some(moment_ns) = next_moment(recordings) else {
            self.go_home();
            return None;
        };
        let now_ns = monotonic_ns();
        if now_ns < moment_ns {
            return None;
        }
        let tried = std::mem::take(&mut self.tried);
        if tried.is_empty() || now_ns >= moment_ns + LATE_NS || moment_ns < self.settled_ns {
            return None;
        }
        let began_ns = cpus::exec_start_ns(tid())?;
        let tid = tried.into_iter().find(|&tid| cpus::exec_start_ns(tid) == Some(began_ns))?;
        let due = recordings.iter().filter(|one| one.preempts() && one.next_tick() == moment_ns);
        Some((tid, due.fold(0, |bits, recording| bits | recording.bit())))
    }

    /// Signals the thread for these recordings, unless it has got a CPU again.
    pub fn hit(&mut self, thread: &mut ThreadState, due: u8, timers: &mut Timers, counters: &AgentCounters) {
        let (tid, now_ns) = (thread.tid(), monotonic_ns());
        if matches!(thread.activity(), Ok(Activity::Running))
            && !thread.preempt.writes_much(cpus::written(tid), now_ns)
            && let Some(cpu_ns) = stands_at(tid)
            && timers.raise(thread, due & thread.recordings, cpu_ns, counters)
        {
            self.raised.push(tid);
            self.collect_ns = now_ns + hit_within_ns();
        }
    }

    /// After a sweep: moves the sampler to the CPU of one of the threads to be tried. It sleeps
    /// there until the next tick. To get the CPU of a running thread may take until a kernel tick.
    /// Moments shortly after that are not random, so the sampler stays on the CPU for a while.
    pub fn go(&mut self, threads: &mut Threads) {
        self.tried.clear();
        if self.asked.is_empty() {
            return self.go_home();
        }
        let begin = mixed(monotonic_ns()) as usize % self.asked.len();
        let chosen = self.asked.iter().cycle().skip(begin).take(self.asked.len().min(MAX_TRIED));
        let stays = self.there.filter(|_| monotonic_ns() < self.stays_until_ns);
        let places = chosen.filter_map(|&tid| Some((tid, cpus::last_cpu(tid)?)));
        let places: Vec<(u32, u32)> = places.collect();
        if let Some(cpu) = stays.or(places.first().map(|place| place.1)) {
            self.tried.extend(places.into_iter().filter(|place| place.1 == cpu).map(|place| place.0));
            if !self.go_to(cpu) {
                let until_ns = monotonic_ns() + AGAIN_NS;
                for tid in self.tried.drain(..) {
                    if let Some(thread) = threads.get_mut(tid) {
                        thread.preempt.refused_until_ns = until_ns;
                    }
                }
            }
        }
        self.asked.clear();
    }

    /// Whether the sampler is on that CPU, and stays there.
    fn go_to(&mut self, cpu: u32) -> bool {
        if self.there == Some(cpu) {
            return true;
        }
        self.home = self.home.take().or_else(|| Cpus::of_this_thread().ok());
        let went = self.home.is_some() && Cpus::one(cpu).move_here().is_ok();
        if went {
            let now_ns = monotonic_ns();
            self.there = Some(cpu);
            (self.settled_ns, self.stays_until_ns) = (now_ns + hit_within_ns(), now_ns + STAY_NS);
        }
        went
    }

    /// The sampler may run where it could before.
    pub fn go_home(&mut self) {
        self.there = None;
        if let Some(home) = self.home.take() {
            // Where this is refused now, the kernel itself has moved the process to other CPUs.
            let _ = home.move_here();
        }
    }

    /// When to check for stacks; `None`: no signal is in flight.
    pub fn collect_at(&self) -> Option<u64> {
        (!self.raised.is_empty()).then_some(self.collect_ns)
    }

    /// Takes the stacks that threads have left.
    pub fn collect(
        &mut self,
        threads: &mut Threads,
        timers: &mut Timers,
        tables: &Tables,
        counters: &AgentCounters,
        mut take: impl FnMut(&mut ThreadState, TimerHit),
    ) {
        let now_ns = monotonic_ns();
        self.raised.retain(|&tid| {
            let Some(thread) = threads.get_mut(tid) else { return false };
            let (answer, stays) = timers.take_raised(thread, now_ns, tables, counters);
            if let Some(answer) = answer {
                take(thread, answer);
            }
            stays
        });
        self.collect_ns = now_ns + hit_within_ns();
    }
}

/// The next tick of a recording that preempts.
fn next_moment(recordings: &[RunningRecording]) -> Option<u64> {
    let preempting = recordings.iter().filter(|recording| recording.preempts() && recording.is_sampling());
    preempting.map(RunningRecording::next_tick).min()
}

/// The CPU clock of a thread; `None`: it runs.
fn stands_at(tid: u32) -> Option<u64> {
    cpu_ns(tid).filter(|&ns| cpu_ns(tid) == Some(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_writes_more_at_once_than_is_surely_whole_is_left_to_its_timer() {
        let mut thread = Preempted::default();
        assert!(!thread.writes_much(Some((40_960, 10)), 1));
        assert!(!thread.writes_much(Some((45_056, 11)), 2));
        assert_eq!(thread.writer_until_ns, 0);
        assert!(thread.writes_much(Some((49_153, 12)), 3));
        assert_eq!(thread.writer_until_ns, 3 + WRITER_NS);
        assert!(!thread.writes_much(Some((49_153, 12)), 4), "nothing since");
        assert!(thread.writes_much(None, 5), "nobody knows");
        assert!(Preempted::default().writes_much(Some((5000, 1)), 6), "all its life");
    }
}
