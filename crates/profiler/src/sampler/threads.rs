//! The threads that are sampled, and what is known of each.

mod recent_stacks;
mod thread_state;
mod woken_share;

pub use thread_state::{BlockedStack, ThreadState};

use crate::agent_threads;
use crate::sampler::idle_backoff::IdleBackoff;
use rustc_hash::FxHashMap;
use std::io;
use swipr_os::descriptors;
use swipr_os::own_threads;
use swipr_os::process::{self, monotonic_ns};
use swipr_os::threads::{self, TaskDirectory};

/// The agent's threads are unregistered for a moment at their start and exit, longer if starved of
/// CPU. A thread with such a name that is still unregistered after this time is the program's.
const PROBATION_NS: u64 = 10_000_000_000;

/// Ages at which a new thread's name is read again: its creator may name it after it has started.
const NAMED_BY_NS: [u64; 3] = [2_000_000, 20_000_000, 200_000_000];

/// Descriptors that are not used for threads' files.
const SPARE_DESCRIPTORS: usize = 24;
/// `syscall` and `schedstat`.
const FILES_OF_A_THREAD: usize = 2;

/// All threads but the agent's own.
#[derive(Debug)]
pub struct Threads {
    directory: TaskDirectory,
    known: FxHashMap<u32, ThreadState>,
    /// Not part of `known`: a sweep reads all of these, and little else of idle threads.
    visits: Vec<(u32, IdleBackoff)>,
    newborn: Vec<u32>,
    /// New threads, when they were found, and how often their names have been read again.
    young: Vec<(u32, u64, usize)>,
    count: Option<u64>,
    tids: Vec<u32>,
    /// Threads that may be the agent's, see [`PROBATION_NS`], and since when they are known.
    suspects: FxHashMap<u32, u64>,
    /// Threads whose files are kept open.
    keep: usize,
}

impl Threads {
    /// Fails where /proc is not there.
    pub fn new() -> io::Result<Threads> {
        let directory = TaskDirectory::open()?;
        let limit = descriptors::limit();
        let keep = limit.saturating_sub(SPARE_DESCRIPTORS) / FILES_OF_A_THREAD;
        let (known, visits, suspects, newborn, young) = <_>::default();
        Ok(Threads { directory, known, visits, newborn, young, count: None, tids: vec![], suspects, keep })
    }

    /// All of them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ThreadState> {
        self.known.values_mut()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &ThreadState> {
        self.known.values()
    }

    /// The next [`Threads::refresh`] looks for new threads, even if there are as many as before.
    pub fn look_again(&mut self) {
        self.count = None;
    }

    /// One of them.
    pub fn get_mut(&mut self, tid: u32) -> Option<&mut ThreadState> {
        self.known.get_mut(&tid)
    }

    /// The next thread, from `place` on, that the sweep is to observe.
    pub fn next_due(
        &mut self,
        sweep: u64,
        place: &mut usize,
    ) -> Option<(&mut IdleBackoff, &mut ThreadState)> {
        let due = self.visits.get_mut(*place..)?.iter_mut().position(|(_, backoff)| backoff.is_due(sweep))?;
        let (tid, backoff) = self.visits.get_mut(*place + due)?;
        *place += due + 1;
        Some((backoff, self.known.get_mut(tid)?))
    }

    /// The next sweep observes all threads.
    pub fn end_rests(&mut self) {
        self.visits.iter_mut().for_each(|(_, backoff)| backoff.end());
    }

    /// The threads that were found since the last call.
    pub fn take_newborn(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.newborn)
    }

    /// The new threads whose names are to be read again at `now_ns`.
    pub fn take_young(&mut self, now_ns: u64) -> Vec<u32> {
        let mut due = vec![];
        self.young.retain_mut(|(tid, found_ns, reads)| {
            let age_ns = now_ns.saturating_sub(*found_ns);
            let passed = NAMED_BY_NS.iter().filter(|&&age| age <= age_ns).count();
            if passed > *reads {
                due.push(*tid);
                *reads = passed;
            }
            passed < NAMED_BY_NS.len()
        });
        due
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// The ids of all threads, also those of the agent. Where the first is the host's only one,
    /// that is all that is said: what lists a directory in `/proc` makes the kernel keep an entry
    /// for each thread. While the last of the agent's threads forgets its own, the parent's
    /// waitpid(2) spins, on a busy machine for tenths of seconds.
    fn list(&mut self) -> io::Result<()> {
        if agent_threads::host_certainly_has_one_thread(|| self.directory.count())
            && !threads::first_has_ended()
        {
            self.tids.clear();
            self.tids.push(process::pid());
            return Ok(());
        }
        self.directory.list(&mut self.tids)
    }

    /// Finds new threads, if the number of threads changed or some are `gone`. Returns the
    /// latter.
    pub fn refresh(&mut self, gone: &[u32]) -> Vec<ThreadState> {
        let ended: Vec<ThreadState> = gone.iter().filter_map(|tid| self.known.remove(tid)).collect();
        if !ended.is_empty() {
            self.visits.retain(|(tid, _)| self.known.contains_key(tid));
        }
        let count = self.directory.count();
        let unchanged =
            ended.is_empty() && self.suspects.is_empty() && count.is_some() && count == self.count;
        if unchanged || self.list().is_err() {
            return ended;
        }
        self.count = count;
        let is_first_list = self.known.is_empty();
        let now = monotonic_ns();
        let before = std::mem::take(&mut self.suspects);
        for &tid in &self.tids {
            if self.known.contains_key(&tid) || own_threads::contains(tid) {
                continue;
            }
            let since = before.get(&tid).copied().unwrap_or(now);
            if now - since < PROBATION_NS && own_threads::has_agent_name(&threads::name(tid)) {
                self.suspects.insert(tid, since);
                continue;
            }
            if let Some(thread) = ThreadState::new(tid, self.known.len() < self.keep) {
                self.known.insert(tid, thread);
                self.visits.push((tid, IdleBackoff::default()));
                self.newborn.push(tid);
                // Of those that were there before, most have their names for long.
                if !is_first_list {
                    self.young.push((tid, now, 0));
                }
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests;
