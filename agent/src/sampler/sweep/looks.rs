//! The looks of one sweep: at every thread once, the questions among them a few at a time.

use super::look::{Look, look};
use super::settle::tell_missed;
use super::{COLLECT_AFTER_NS, HOST_AGAIN_NS, MAPS_AGAIN_NS, Sweeper, of};
use crate::platform::process::{monotonic_ns, what_the_kernel_does};
use crate::platform::threads::cpu_ns;
use crate::sampler::active::Active;
use crate::sampler::rest::sweeps_a_look;
use crate::sampler::skipped::{Before, Gap, Now};
use crate::sampler::threads::{PendingTick, Sampled};
use crate::sampler::told;
use swipr_formats::model::{Mode, State};
use swipr_unwind::call_again::note_host;
use swipr_unwind::walk::Stop;

/// Threads that are asked at a stretch: a signal to each thread of a large program at the same moment would be a
/// jolt to it. The others are asked a little later in the same tick.
const QUESTIONS: usize = 16;
const PAUSE_NS: u64 = 50_000;

/// A tick that is so late is the first after the process was stopped. (Quotas of CPU time hold a process for a tenth
/// of a second.) All its threads are just about to go back to the calls in which they were stopped: a signal now
/// would cut these short. On a busy machine not all of them get there at once.
const STOPPED_NS: u64 = 250_000_000;
const GO_BACK_NS: u64 = 100_000_000;

/// A sweep that is not over yet.
#[derive(Debug)]
pub struct UnderWay {
    number: u64,
    tick_ns: u64,
    /// The recordings whose tick it is, and those of them in wall mode.
    due: u8,
    wall: u8,
    is_after_stop: bool,
    took_ns: u64,
    go_on_at_ns: u64,
}

impl Sweeper {
    /// Begins to look at every thread for the recordings whose tick it is; see [`Sweeper::go_on_at`].
    pub fn sweep(&mut self, recordings: &mut [Active], tick_ns: u64) {
        self.counters.sweeps.add(1);
        self.find_threads(recordings);
        if self.unknown_code && tick_ns.saturating_sub(self.maps_read_ns) >= self.maps_again_ns {
            let changed = self.read_maps();
            self.maps_again_ns = if changed { MAPS_AGAIN_NS } else { self.maps_again_ns.saturating_mul(2) };
        }
        let (mut due, mut wall, mut is_after_stop) = (0, 0, false);
        for recording in recordings.iter().filter(|recording| recording.is_in_sweep()) {
            due |= recording.bit();
            is_after_stop |= recording.last_delay_ns() >= STOPPED_NS;
            wall |= if recording.request().mode == Mode::Wall { recording.bit() } else { 0 };
        }
        let now_ns = monotonic_ns();
        if is_after_stop {
            self.calm_until_ns = now_ns + GO_BACK_NS;
        }
        self.keep_handler(recordings);
        if now_ns.saturating_sub(self.host_noted_ns) >= HOST_AGAIN_NS {
            self.host_noted_ns = now_ns;
            note_host(self.signal, what_the_kernel_does());
        }
        self.collect_at_ns = tick_ns + COLLECT_AFTER_NS;
        self.collect_again_ns = COLLECT_AFTER_NS;
        let shortest_ns = recordings.iter().map(Active::interval_ns).min().unwrap_or(u64::MAX);
        self.sweeps_a_look = sweeps_a_look(self.threads.len(), shortest_ns);
        self.under_way = Some(UnderWay {
            number: self.counters.sweeps.get(),
            tick_ns,
            due,
            wall,
            is_after_stop: now_ns < self.calm_until_ns,
            took_ns: 0,
            go_on_at_ns: 0,
        });
        self.go_on(recordings, QUESTIONS);
    }

    /// When to call [`Sweeper::go_on_if_due`]; `None`: the sweep is over.
    pub fn go_on_at(&self) -> Option<u64> {
        self.under_way.as_ref().map(|under_way| under_way.go_on_at_ns)
    }

    /// Goes on with the sweep where it is time to.
    pub fn go_on_if_due(&mut self, recordings: &mut [Active]) {
        if self.go_on_at().is_some_and(|at| at <= monotonic_ns()) {
            self.go_on(recordings, QUESTIONS);
        }
    }

    /// Ends the sweep now.
    pub fn finish(&mut self, recordings: &mut [Active]) {
        self.go_on(recordings, usize::MAX);
    }

    fn go_on(&mut self, recordings: &mut [Active], questions: usize) {
        let Some(mut under_way) = self.under_way.take() else { return };
        let began_ns = monotonic_ns();
        let mut finished = self.look_at_threads(recordings, &under_way, questions);
        // A thread that ended may have made room for one that was born: the kernel's count does not tell.
        if !self.gone.is_empty() {
            self.find_threads(recordings);
            finished = self.look_at_threads(recordings, &under_way, questions);
        }
        let now_ns = monotonic_ns();
        under_way.took_ns += now_ns.saturating_sub(began_ns);
        if finished {
            self.counters.sweep.add(under_way.took_ns);
        } else {
            under_way.go_on_at_ns = now_ns + PAUSE_NS;
            self.under_way = Some(under_way);
        }
    }

    /// Looks at the threads that this tick has not seen yet, until so many were asked; returns whether it saw all.
    fn look_at_threads(&mut self, recordings: &mut [Active], at: &UnderWay, questions: usize) -> bool {
        let of_wall = recordings.iter().filter(|recording| recording.request().mode == Mode::Wall);
        let all_wall = of_wall.fold(0, |bits, recording| bits | recording.bit());
        let mut asked = 0;
        let mut place = 0;
        while let Some((rest, thread)) = self.threads.next_due(at.number, &mut place) {
            let wanted = at.due & thread.recordings;
            if wanted == 0 {
                if cpu_ns(thread.tid()).is_none() {
                    self.gone.push(thread.tid());
                }
                continue;
            }
            if is_quiet(thread, recordings, at, wanted) {
                rest.was_idle(thread.tid(), self.sweeps_a_look);
                thread.looked_ns = at.tick_ns;
                self.counters.reused.add(1);
                continue;
            }
            let before = Before::of(thread);
            // What this look finds counts for recordings too whose tick it is not: the thread may have rested at theirs.
            let others = thread.recordings & all_wall & !at.due;
            let is_owed = of(recordings, others).any(|recording| told::is_owed(thread, recording));
            let wall = is_owed || wanted & at.wall != 0;
            let found = match look(thread, wall, &mut self.copier, &self.tables, &self.counters) {
                Look::Ask(_) if at.is_after_stop => Look::Missed,
                found => found,
            };
            match &found {
                Look::Stack(..) | Look::NotWanted if thread.cpu_ns == before.cpu_ns() => {
                    rest.was_idle(thread.tid(), self.sweeps_a_look);
                }
                _ => rest.has_run(),
            }
            let stays =
                matches!(found, Look::Stack(..)) && thread.cpu_ns == before.cpu_ns() && before.was_blocked();
            if !stays {
                before.tell_seen(thread, recordings);
            }
            if matches!(found, Look::Ended) {
                // At the ticks from now on there is no such thread.
                for recording in of(recordings, wanted | others) {
                    let of_look = u64::from(recording.bit() & wanted != 0);
                    let rested = told::forget(thread, recording, of_look);
                    recording.counters().missed.add(rested);
                }
            }
            if matches!(found, Look::Ended | Look::Gone) {
                if matches!(found, Look::Gone) {
                    self.gone.push(thread.tid());
                }
                continue;
            }
            count_thread(thread, recordings, wanted);
            let bits = thread.recordings;
            let waited_ns = new_wait_ns(thread, &before, &found, at.tick_ns, of(recordings, bits));
            thread.looked_ns = at.tick_ns;
            let gap = Gap { before, tick_ns: at.tick_ns, waited_ns };
            let wall = wanted & at.wall;
            match found {
                Look::Stack(state, stack) => {
                    self.unknown_code |= stack.stop == Stop::NoTable;
                    for recording in of(recordings, wall | others) {
                        let now = Now { state, stack: Some(&stack) };
                        if recording.bit() & others != 0 {
                            match stays {
                                true => told::stays(thread, recording),
                                false => gap.tell(thread, recording, now, 0, &mut vec![]),
                            }
                            continue;
                        }
                        if stays && told::can_wait(thread, recording, at.tick_ns) {
                            continue;
                        }
                        gap.tell(thread, recording, now, 1, &mut vec![]);
                        recording.wall_sample(&thread.thread, at.tick_ns, 1, state, &stack);
                    }
                }
                Look::Ask(state) => {
                    asked += 1;
                    let was_asked = thread.pending.is_some();
                    let mut ticks = vec![];
                    for recording in of(recordings, wall | others) {
                        let now = Now { state: state.unwrap_or(State::Running), stack: None };
                        let of_look = u64::from(recording.bit() & wall != 0);
                        gap.tell(thread, recording, now, of_look, &mut ticks);
                    }
                    let cpu_ns = thread.cpu_ns;
                    ticks.push(PendingTick {
                        tick_ns: at.tick_ns,
                        ticks: 1,
                        recordings: wanted,
                        cpu_ns,
                        state,
                    });
                    for missed in self.slots.ask(thread, ticks, self.signal, &self.counters) {
                        for recording in of(recordings, missed.recordings) {
                            tell_missed(thread, recording, &missed);
                        }
                    }
                    // Not who cannot be asked: nobody would take it off the list.
                    if !was_asked && thread.pending.is_some() {
                        self.asked.push(thread.tid());
                    }
                }
                Look::Missed => {
                    let (tick_ns, cpu_ns) = (at.tick_ns, thread.cpu_ns);
                    let tick = PendingTick { tick_ns, ticks: 1, recordings: wanted, cpu_ns, state: None };
                    for recording in of(recordings, wanted) {
                        let rested = told::forget(thread, recording, 1);
                        recording.counters().missed.add(rested);
                        tell_missed(thread, recording, &tick);
                    }
                    for recording in of(recordings, others) {
                        let rested = told::forget(thread, recording, 0);
                        recording.counters().missed.add(rested);
                    }
                }
                Look::NotWanted | Look::Ended | Look::Gone => {}
            }
            if asked == questions {
                return false;
            }
        }
        true
    }
}

/// The usual look at an idle thread, and nothing more: its clock stands where it stood when its stack was taken, and nothing
/// has to be told of it yet. Where recordings differ in mode or rate, every look is a full one.
fn is_quiet(thread: &mut Sampled, recordings: &[Active], at: &UnderWay, wanted: u8) -> bool {
    let is_for_all = wanted & at.wall == thread.recordings;
    let stands_still = |thread: &Sampled| {
        let known = thread.blocked.as_ref().filter(|blocked| blocked.cpu_ns == thread.cpu_ns);
        known.is_some_and(|blocked| cpu_ns(thread.tid()) == Some(blocked.cpu_ns))
    };
    is_for_all
        && stands_still(thread)
        && recordings
            .iter()
            .filter(|recording| recording.bit() & wanted != 0)
            .all(|recording| told::can_wait(thread, recording, at.tick_ns))
}

/// How long the thread waited for a CPU since the last look, as far as that has not been seen already.
fn new_wait_ns<'a>(
    thread: &mut Sampled,
    before: &Before,
    found: &Look,
    tick_ns: u64,
    recordings: impl Iterator<Item = &'a mut Active>,
) -> u64 {
    if thread.cpu_ns != before.cpu_ns() {
        let waited_ns = thread.cpu_wait_ns();
        recordings.for_each(|recording| recording.counters().cpu_wait_ns.add(waited_ns));
        let since_last_look_ns = waited_ns + std::mem::take(&mut thread.settled_wait_ns);
        return since_last_look_ns.saturating_sub(std::mem::take(&mut thread.seen_waiting_ns));
    }
    if !matches!(found, Look::Ask(_)) {
        return 0;
    }
    if thread.looked_ns == 0 {
        thread.cpu_wait_ns(); // to be followed from now on
    } else {
        let since_ns = tick_ns.saturating_sub(thread.looked_ns);
        thread.seen_waiting_ns += if before.was_blocked() { since_ns / 2 } else { since_ns };
    }
    0
}

fn count_thread(thread: &mut Sampled, recordings: &mut [Active], wanted: u8) {
    let new = wanted & !thread.counted;
    if new != 0 {
        of(recordings, new).for_each(|recording| recording.counters().threads.add(1));
        thread.counted |= new;
    }
}
