//! One pass over the threads: who has not run keeps its stack; who is blocked has it copied; who runs is
//! asked for it by a signal and answers later.

mod ask;
mod collect;
mod copy;
mod filter;
mod look;
mod looked_after;
mod looks;
mod settle;

use super::active::Active;
use super::threads::Threads;
use crate::counters::AgentCounters;
use crate::made_code::Frames;
use crate::mappings::Tables;
use crate::not_asked;
use crate::platform::threads::cpu_ns;
use crate::platform::{process, signals};
use crate::recording::MAX_RECORDINGS;
use ask::Slots;
use copy::Copier;
use filter::apply_filter;
use look::note_signal_wait;
use looks::UnderWay;
use settle::{forget_question, forget_ticks, settle_cpu_wait, settle_end};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use swipr_formats::model::Mode;
use swipr_unwind::call_again::{doubts, note_host};
use swipr_unwind::slot::StackBounds;

/// Ticks that one unanswered signal can stand for; more are counted as missed.
const MAX_PENDING_TICKS: usize = 4096;
/// How soon after reading the mappings they may be read again because of unknown code: then,
/// while that tells nothing new, after twice that time, and so on.
const MAPS_AGAIN_NS: u64 = 20_000_000;

/// How often a tick looks for signal handlers of the host's at the most, which may take themselves away again: some microseconds each.
const HOST_AGAIN_NS: u64 = 10_000_000;

/// After a tick, how long until the answers of signalled threads are looked for.
/// The next look comes after twice that time, and so on.
pub const COLLECT_AFTER_NS: u64 = 1_000_000;

/// What a sweep needs.
#[derive(Debug)]
pub struct Sweeper {
    threads: Threads,
    tables: Tables,
    copier: Copier,
    slots: Slots,
    counters: Arc<AgentCounters>,
    signal: i32,
    maps_read_ns: u64,
    maps_again_ns: u64,
    host_noted_ns: u64,
    /// When to look for answers next, and how long after that again.
    collect_at_ns: u64,
    collect_again_ns: u64,
    unknown_code: bool,
    /// Nobody is asked before then: the process was stopped.
    calm_until_ns: u64,
    under_way: Option<UnderWay>,
    /// Threads that have ended, and those that were asked and have not answered.
    gone: Vec<u32>,
    asked: Vec<u32>,
    /// Of how many sweeps one looks at a thread that is idle for long.
    sweeps_a_look: u32,
    _memory_file: Option<File>,
}

impl Sweeper {
    /// Installs the signal handler.
    pub fn new(
        wanted_signal: Option<i32>,
        made: Arc<Frames>,
        counters: Arc<AgentCounters>,
    ) -> io::Result<Sweeper> {
        swipr_unwind::memory::set_process(process::pid() as i32);
        process::tell_what_is_readable();
        let signal = signals::install(wanted_signal)?;
        counters.signal.set(signal as u64);
        crate::life::set_signal(signal);
        let mut slots = Slots::default();
        slots.use_signal(signal);
        note_host(signal, process::what_the_kernel_does());
        let memory_file = File::open("/proc/thread-self/mem").ok();
        let fd = memory_file.as_ref().map_or(-1, |file| file.as_raw_fd());
        let sweeper = Sweeper {
            threads: Threads::new()?,
            tables: Tables::with_made_code(fd, made),
            copier: Copier::new(fd),
            slots,
            counters,
            signal,
            maps_read_ns: 0,
            maps_again_ns: MAPS_AGAIN_NS,
            host_noted_ns: 0,
            collect_at_ns: 0,
            collect_again_ns: COLLECT_AFTER_NS,
            unknown_code: false,
            calm_until_ns: 0,
            under_way: None,
            gone: vec![],
            asked: vec![],
            sweeps_a_look: 1,
            _memory_file: memory_file,
        };
        doubts::set_closed(false); // its end closes them
        Ok(sweeper)
    }

    /// Learns of new code before a sweep.
    pub fn refresh(&mut self) {
        self.tables.refresh();
        let figures = self.tables.figures();
        let values = [figures.objects, figures.rows, figures.bytes, figures.build_ns, figures.failed];
        self.counters.tables.iter().zip(values).for_each(|(counter, value)| counter.set(value));
    }

    /// Takes a new recording in.
    pub fn admit(&mut self, mut recording: Active, recordings: &mut Vec<Active>) {
        let taken = recordings.iter().fold(0u8, |bits, recording| bits | recording.bit());
        let Some(place) = (0..MAX_RECORDINGS).find(|place| taken >> place & 1 == 0) else { return };
        self.find_threads(recordings);
        note_host(self.signal, process::what_the_kernel_does());
        for thread in self.threads.iter_mut() {
            let cpu_ns = cpu_ns(thread.tid()).unwrap_or(thread.cpu_ns);
            if let Some(accounted) = thread.accounted_ns.get_mut(place) {
                *accounted = cpu_ns;
            }
            if let Some(held) = thread.held.get_mut(place) {
                *held = None;
            }
        }
        self.threads.end_rests();
        recording.start(place);
        for thread in self.threads.iter_mut() {
            thread.recordings &= !recording.bit();
            thread.counted &= !recording.bit();
            if thread.looked_ns != 0 {
                thread.refresh_name(); // else it was found just now
            }
            if recording.request().mode == Mode::Cpu {
                // In wall mode the first sweep looks at all of them.
                let activity = thread.activity();
                note_signal_wait(thread, &activity);
            }
            settle_cpu_wait(thread, recordings);
            apply_filter(thread, &mut recording);
        }
        recordings.push(recording);
    }

    /// Reads names and mappings again, and says whom the signal cannot reach.
    pub fn housekeeping(&mut self, recordings: &mut [Active]) {
        if self.read_maps() {
            self.maps_again_ns = MAPS_AGAIN_NS;
        }
        let (mut blocking, mut not_asked) = (vec![], vec![]);
        for thread in self.threads.iter_mut() {
            if thread.is_name_old() && thread.refresh_name() {
                recordings.iter_mut().for_each(|recording| apply_filter(thread, recording));
            }
            if thread.blocks_signal {
                blocking.push(thread.thread.name.clone());
            }
            if thread.is_sandboxed || not_asked::contains(thread.tid()) {
                not_asked.push(thread.thread.name.clone());
            }
            // A stack's memory may have been given back and taken for something else.
            let bounds = thread.stack_bounds;
            if self.tables.stack_of(bounds.low) != Some(bounds) {
                thread.stack_bounds = StackBounds::default();
            }
        }
        self.counters.set_signal_blockers(blocking);
        self.counters.set_not_asked(not_asked);
    }

    fn read_maps(&mut self) -> bool {
        let changed = self.tables.refresh_maps();
        self.maps_read_ns = process::monotonic_ns();
        self.unknown_code = false;
        changed
    }

    fn find_threads(&mut self, recordings: &mut [Active]) {
        let Sweeper { threads, slots, gone, counters, .. } = self;
        let ended = threads.refresh(gone);
        gone.clear();
        let newborn = threads.take_newborn();
        if ended.is_empty() && newborn.is_empty() {
            return;
        }
        for mut thread in ended {
            settle_end(&mut thread, slots, recordings);
        }
        for tid in newborn {
            if let Some(thread) = threads.get_mut(tid) {
                recordings.iter_mut().for_each(|recording| apply_filter(thread, recording));
            }
        }
        let unreadable = threads.iter().filter(|thread| !thread.is_readable()).count();
        counters.unreadable.set(unreadable as u64);
        counters.threads.set(threads.len() as u64);
    }

    /// The host may have taken our signal for itself: then another one is used, and what
    /// was asked by the old one and not answered is lost.
    fn keep_handler(&mut self, recordings: &mut [Active]) {
        if signals::is_installed(self.signal) {
            return;
        }
        let Ok(signal) = signals::install(None) else { return };
        self.signal = signal;
        self.slots.use_signal(signal);
        note_host(signal, process::what_the_kernel_does());
        self.counters.signal.set(signal as u64);
        crate::life::set_signal(signal);
        for thread in self.threads.iter_mut() {
            for recording in recordings.iter_mut() {
                let missed = forget_ticks(thread, recording);
                recording.counters().missed.add(missed);
            }
            forget_question(thread, &mut self.slots);
        }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        for thread in self.threads.iter_mut() {
            forget_question(thread, &mut self.slots);
        }
        self.end_doubts();
    }
}

fn of(recordings: &mut [Active], bits: u8) -> impl Iterator<Item = &mut Active> {
    recordings.iter_mut().filter(move |recording| recording.bit() & bits != 0)
}
