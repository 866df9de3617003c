//! Which processes of a recording gave no sample, with no figures that say why. They are named, and
//! counted as processes whose losses are unknown.

use super::progress::Talk;
use crate::find::Found;
use crate::say;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Names of processes that are printed at most.
const MAX_NAMES: usize = 8;

/// How long after its connections a process may end.
const ENDING: Duration = Duration::from_millis(300);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A process of a recording.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// A remark that becomes the outermost frame of its stacks.
    pub root: Option<String>,
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Unrecorded {
    /// Sources that gave something, or may still do so, and their processes.
    sources: BTreeMap<usize, (u32, String)>,
    names: BTreeMap<u32, String>,
}

impl Unrecorded {
    /// A source of this process has started. After exec(2) a process has another source: what the
    /// one before gave does not matter.
    pub fn started(&mut self, source: usize, pid: u32, name: String) {
        self.sources.retain(|_, (other, _)| *other != pid);
        self.names.remove(&pid);
        self.sources.insert(source, (pid, name));
    }

    /// The source has ended, and nothing came.
    pub fn gave_nothing(&mut self, source: usize) {
        self.names.extend(self.sources.remove(&source));
    }

    /// This process could not be asked.
    pub fn add(&mut self, pid: u32, name: String) {
        self.names.insert(pid, name);
    }

    /// This process is named elsewhere.
    pub fn leave_out(&mut self, pid: u32) {
        self.names.remove(&pid);
    }

    /// The processes, with their names.
    pub fn names(&self) -> &BTreeMap<u32, String> {
        &self.names
    }
}

/// Names the processes that are not in the recording, though they should be.
pub fn report_unrecorded(names: &BTreeMap<u32, String>, talk: Talk) {
    if names.is_empty() || talk == Talk::Quiet {
        return;
    }
    let (count, names) = (names.len(), listed(names));
    let processes = if count == 1 { "process" } else { "processes" };
    say(format_args!(
        "swipr: not recorded: {count} {processes} without an answer or a sample until the end: {names}\n\
         next: run it again with less beside it; a process that ends by a signal has samples \
         after its first quarter of a second"
    ));
}

/// How the recording of a process was over before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyEnd {
    /// With the agent's last samples.
    Whole,
    /// Without them.
    Cut,
}

/// Prints, unless quiet, why the recording of a process was over before its time. `what`: its name,
/// which nobody knows once it has ended, and its id. `has_samples`: where there is none, an error
/// has said that the process ended.
pub fn report_early_end(found: &Found, what: &str, end: Option<EarlyEnd>, has_samples: bool, talk: Talk) {
    let (Some(end), Some(process)) = (end.filter(|_| talk != Talk::Quiet), &found.process) else { return };
    let pid = found.pid();
    // Its files are closed a moment before it has ended.
    let until = Instant::now() + ENDING;
    while !process.has_ended() && Instant::now() < until {
        std::thread::sleep(POLL_INTERVAL);
    }
    match (end, process.has_ended()) {
        (EarlyEnd::Whole, true) if has_samples => {
            say(format_args!("swipr: the recording ended early: {what} has ended"));
        }
        (EarlyEnd::Cut, true) if has_samples => say(format_args!(
            "swipr: the recording ended early: {what} has ended, by a signal perhaps\n\
             next: samples are sent up to 2 s after they are taken, so its last ones are missing; \
             a higher -r has them sent sooner"
        )),
        (EarlyEnd::Cut, false) => say(format_args!(
            "swipr: the recording ended early: {what} executed a program, as services do to reload, or stopped its agent\n\
             next: `swipr record {pid}` records it from now on; `swipr run` continues across such calls"
        )),
        _ => {}
    }
}

/// `make (12), cc (13)`, and `…` where there are more.
pub fn listed(processes: &BTreeMap<u32, String>) -> String {
    let named = processes.iter().take(MAX_NAMES);
    // Of some that have ended, nobody knows the name.
    let name = |name: &str| if name.is_empty() { "?".to_owned() } else { name.to_owned() };
    let mut names: Vec<String> = named.map(|(pid, of)| format!("{} ({pid})", name(of))).collect();
    names.extend((processes.len() > MAX_NAMES).then(|| "…".to_owned()));
    names.join(", ")
}
