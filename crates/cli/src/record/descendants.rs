//! The child processes of one that is recorded, and theirs, as they come.

use crate::find::{self, Found};
use crate::process::Process;
use rustc_hash::{FxHashMap, FxHashSet};
use std::time::{Duration, Instant};

/// How often `/proc` is looked through.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// See the module's text.
#[derive(Debug)]
pub struct Descendants {
    root: u32,
    known: FxHashSet<u32>,
    looked: Option<Instant>,
}

impl Descendants {
    /// Of this process, which is not one of them.
    pub fn of(process: &Process) -> Descendants {
        Descendants { root: process.pid, known: [process.pid].into_iter().collect(), looked: None }
    }

    /// Those with an agent that were not there at the last look.
    pub fn new_ones(&mut self) -> Vec<Found> {
        if self.looked.is_some_and(|looked| looked.elapsed() < POLL_INTERVAL) {
            return Vec::new();
        }
        self.looked = Some(Instant::now());
        let mut children: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for process in Process::all() {
            if let Some(parent) = process.parent() {
                children.entry(parent).or_default().push(process.pid);
            }
        }
        let (mut found, mut open) = (Vec::new(), vec![self.root]);
        while let Some(pid) = open.pop() {
            for &child in children.get(&pid).into_iter().flatten() {
                open.push(child);
                // Its agent may be about to start: it is looked for again.
                if !self.known.contains(&child)
                    && let Ok(agent) = find::of_pid(child)
                {
                    self.known.insert(child);
                    found.push(agent);
                }
            }
        }
        found
    }
}
