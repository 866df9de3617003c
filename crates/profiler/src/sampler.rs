//! The sampler thread: sleeps until a recording's next tick, sweeps over the threads, hands what it
//! found to the recordings' writers. It exists while there are recordings and a little longer, and
//! it never waits for an application thread or for a reader of the output.

mod account;
mod active;
mod idle_backoff;
mod phases;
mod preempt;
mod steps;
mod sweep;
mod threads;
mod ticks;
mod timers;

pub use active::RunningRecording;
#[cfg(test)]
pub use timers::acquire_slot;

use crate::counters::AgentCounters;
use crate::interpreters::Wanted;
use crate::mappings::JitTables;
use crate::stop_time::StopTime;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use sweep::Sweeper;
use swipr_os::cpu_timers::kernel_tick_ns;
use swipr_os::disabled;
use swipr_os::locks::{after_waiting, lock};
use swipr_os::process::monotonic_ns;
use swipr_os::threads::{SHORTEST_SLICE_NS, ask_for_slices};
use swipr_server::recording::MAX_RECORDINGS;

/// How long the sampler and its tables stay after the last recording.
const LINGER: Duration = Duration::from_secs(60);
/// Answers that are due so shortly before a tick are collected at the tick.
const COLLECT_BEFORE_NS: u64 = 500_000;
/// How often names and mappings are read again.
const HOUSEKEEPING_NS: u64 = 1_000_000_000;

#[derive(Debug, Default)]
struct Inbox {
    new: Vec<RunningRecording>,
    /// The thread is there and will take `new`.
    attended: bool,
    /// [`Handle::notify`] was called since the thread waited last.
    was_notified: bool,
}

/// How other threads reach the sampler.
#[derive(Debug, Default)]
pub struct Handle {
    inbox: Mutex<Inbox>,
    changed: Condvar,
    /// All recordings are to end.
    closed: StopTime,
    /// Unwind tables of JIT code, from writers.
    jit_tables: Arc<JitTables>,
    /// The interpreters whose frames are read.
    interpreters: Wanted,
}

impl Handle {
    /// No recording yet.
    /// `jit_tables`: unwind tables of JIT code. `interpreters`: whose frames are read.
    pub fn new(jit_tables: Arc<JitTables>, interpreters: Wanted) -> Handle {
        Handle { jit_tables, interpreters, ..Handle::default() }
    }

    /// Hands a recording over; `true`: the caller must start the thread with [`run`].
    pub fn add(&self, recording: RunningRecording) -> bool {
        // Allocated before the lock is taken: nothing may fail while others wait for the inbox.
        let room = Vec::with_capacity(MAX_RECORDINGS);
        let Some(mut inbox) = lock(&self.inbox) else { return false };
        if inbox.new.capacity() == 0 {
            inbox.new = room;
        }
        inbox.new.push(recording);
        self.changed.notify_all();
        !std::mem::replace(&mut inbox.attended, true)
    }

    /// The thread could not be started.
    pub fn abandon(&self) {
        self.refuse();
        if let Some(mut inbox) = lock(&self.inbox) {
            inbox.attended = false;
        }
    }

    /// Drops the recordings, which reports that to their writers.
    fn refuse(&self) {
        if let Some(mut inbox) = lock(&self.inbox) {
            inbox.new.clear();
        }
    }

    /// Wakes the sampler: something about a recording changed (it is to end).
    pub fn notify(&self) {
        if let Some(mut inbox) = lock(&self.inbox) {
            inbox.was_notified = true;
        }
        self.changed.notify_all();
    }

    /// Like [`Handle::notify`] where no lock may be taken. A sampler that is just about to wait may
    /// miss it.
    pub fn wake(&self) {
        self.changed.notify_all();
    }

    /// Ends all recordings and the thread.
    pub fn close(&self) {
        self.closed.set();
        self.notify();
    }

    /// As [`Handle::close`], in a signal handler as well; to be called until it has happened, see
    /// [`Handle::wake`].
    pub fn close_without_lock(&self) {
        self.closed.set();
        self.wake();
    }

    fn is_closed(&self) -> bool {
        self.closed.get().is_some() || disabled::is_disabled()
    }

    /// Waits until `deadline_ns` or a change; `None`: it is time to end.
    fn wait(&self, deadline_ns: u64) -> Option<Vec<RunningRecording>> {
        let mut inbox = lock(&self.inbox)?;
        if inbox.new.is_empty() && !inbox.was_notified && !self.is_closed() {
            let left = deadline_ns.saturating_sub(monotonic_ns());
            if left > 0 {
                inbox = after_waiting(self.changed.wait_timeout(inbox, Duration::from_nanos(left))).0;
            }
        }
        if self.is_closed() {
            return None;
        }
        inbox.was_notified = false;
        Some(std::mem::take(&mut inbox.new))
    }

    /// The thread has no recording any more. Returns whether it may end: nothing new came, or the
    /// agent stops.
    fn leave(&self) -> bool {
        let Some(mut inbox) = lock(&self.inbox) else { return true };
        if self.is_closed() {
            inbox.new.clear();
        }
        inbox.attended = !inbox.new.is_empty();
        self.changed.notify_all();
        !inbox.attended
    }

    /// After [`Handle::close`]: waits until the thread has left, at most so long; whether it has.
    pub fn wait_until_left(&self, at_most: Duration) -> bool {
        let Some(inbox) = lock(&self.inbox) else { return false };
        let waited = self.changed.wait_timeout_while(inbox, at_most, |inbox| inbox.attended);
        !after_waiting(waited).0.attended
    }
}

/// The thread's body. `when_idle` is called before it ends.
pub fn run(handle: &Handle, counters: &Arc<AgentCounters>, when_idle: impl Fn()) {
    ask_for_slices(SHORTEST_SLICE_NS);
    loop {
        // The sweeper, with the tables that handlers read, is gone before another thread may make
        // one.
        if let Err(error) = sample(handle, counters) {
            counters.fail(format_args!("cannot sample: {error}"));
            handle.refuse();
        }
        when_idle();
        if handle.leave() {
            return;
        }
    }
}

/// Samples until there was nothing to do for a while, or all is over.
fn sample(handle: &Handle, counters: &Arc<AgentCounters>) -> std::io::Result<()> {
    let mut sweeper = Sweeper::new(handle.jit_tables.clone(), handle.interpreters, counters.clone())?;
    let mut recordings: Vec<RunningRecording> = vec![];
    let mut housekeeping = 0;
    let mut idle_until = None;
    let mut measure_at = monotonic_ns() + HOUSEKEEPING_NS;
    loop {
        let lingering = recordings.is_empty();
        let now = monotonic_ns();
        idle_until = lingering.then(|| idle_until.unwrap_or(now + LINGER.as_nanos() as u64));
        let deadline = next_deadline(&recordings, &sweeper, idle_until, now);
        let Some(new) = handle.wait(deadline) else {
            if !disabled::is_disabled() {
                sweeper.end(&mut recordings, handle.closed.get());
            }
            recordings.iter_mut().for_each(|recording| recording.flush(monotonic_ns()));
            return Ok(());
        };
        sweeper.preempt(&mut recordings);
        if !new.is_empty() || recordings.iter().any(|recording| recording.is_due(monotonic_ns())) {
            sweeper.refresh();
        }
        if !new.is_empty() {
            // Their writers have given their places to the new ones.
            sweeper.retire(&mut recordings, monotonic_ns());
        }
        for recording in new {
            sweeper.admit(recording, &mut recordings);
        }
        let now = monotonic_ns();
        sweeper.collect(&mut recordings);
        if now >= housekeeping && !recordings.is_empty() {
            sweeper.housekeeping(&mut recordings);
            housekeeping = now + HOUSEKEEPING_NS;
        }
        if recordings.iter().any(|recording| recording.is_due(now)) {
            #[cfg(feature = "fault-injection")]
            crate::injected::may_panic(if counters.sweeps.get() > 400 { "sampler" } else { "" });
            let early = shared_sweep_ns(&recordings);
            recordings.iter_mut().for_each(|recording| _ = recording.begin_tick(now, early));
            sweeper.sweep(&mut recordings, now);
        }
        let now = monotonic_ns();
        recordings.iter_mut().for_each(|recording| recording.flush_if_due(now));
        sweeper.retire(&mut recordings, now);
        if recordings.is_empty() || now >= measure_at && has_time(&recordings) {
            sweeper.measure_delivery();
            measure_at = now + HOUSEKEEPING_NS;
        }
        if recordings.is_empty() && idle_until.is_some_and(|until| until <= now) {
            return Ok(());
        }
    }
}

/// Whether no tick is late if the sampler does something else for two ticks of the kernel.
fn has_time(recordings: &[RunningRecording]) -> bool {
    recordings.iter().all(|recording| recording.interval_ns() > 2 * kernel_tick_ns())
}

/// How early a recording joins another one's sweep: half of the shortest interval.
fn shared_sweep_ns(recordings: &[RunningRecording]) -> u64 {
    let others = recordings.len().saturating_sub(1).min(1) as u64;
    recordings.iter().map(RunningRecording::interval_ns).min().unwrap_or(0) / 2 * others
}

/// `idle_until`: when to end, without recordings.
fn next_deadline(
    recordings: &[RunningRecording],
    sweeper: &Sweeper,
    idle_until: Option<u64>,
    now: u64,
) -> u64 {
    let wake = recordings.iter().map(RunningRecording::next_wake).chain(idle_until).min().unwrap_or(now);
    // Answers are also collected at each tick: no extra wake-up shortly before one.
    let tick = recordings.iter().map(RunningRecording::next_tick).min().unwrap_or(wake);
    let collect = sweeper.collect_at().filter(|at| tick.saturating_sub(*at) > COLLECT_BEFORE_NS);
    collect.map_or(wake, |at| at.min(wake))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a notification between the sampler's last check and its wait was lost.
    #[test]
    fn who_is_notified_before_it_waits_does_not_wait() {
        let handle = Handle::default();
        handle.notify();
        let deadline_ns = monotonic_ns() + 60_000_000_000;
        assert!(handle.wait(deadline_ns).is_some() && monotonic_ns() < deadline_ns);
        let soon_ns = monotonic_ns() + 1_000_000;
        assert!(handle.wait(soon_ns).is_some() && monotonic_ns() >= soon_ns, "once");
    }
}
