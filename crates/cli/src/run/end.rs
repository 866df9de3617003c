//! The end of a run: processes that still run, what the recording lacks, what the user is to know.

use super::sockets::listening;
use super::{POLL_INTERVAL, Runner};
use crate::error::{Error, Exit};
use crate::process::Process;
use crate::record::missing::Missing;
use crate::record::progress::Talk;
use crate::record::session::Session;
use crate::record::tell_recording;
use crate::record::unrecorded::{listed, report_unrecorded};
use crate::say;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the program's last samples may take to be read after its end; then its children's
/// recordings are ended.
const ENDING: Duration = Duration::from_millis(300);
/// What to do about processes that the program left running.
const FOREGROUND: &str = "have it stay in the foreground, or start it with LD_PRELOAD (see README) and `swipr record` what still runs";

/// What to do about samples that were lost at the program's end.
const FULL_END: &str = "a program that ends by exit(3) or _exit(2), and not by a signal, hands over its last samples, and a higher -r loses less; the kernel's threads for io_uring are not recorded";

/// The same where child processes are recorded.
const FULL_CHILDREN: &str = "static and setuid programs, children by clone(2), and programs in a sandbox or another root directory are not recorded; those that end by a signal, not to their end";

/// Nothing was recorded of a program that used the CPU.
fn no_sample_of(used: Duration, exit: Exit) -> Error {
    let what = format!("not a single sample came of {:.1} s of CPU time", used.as_secs_f64());
    Error::new(what, FULL_CHILDREN).exit(exit)
}

impl Runner {
    /// The program has ended: what it said last is taken, its children are left.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        let Some(session) = &mut self.session else { return Ok(()) };
        // Its own sources end with it.
        let until = Instant::now() + ENDING;
        while session.running() > 0 && Instant::now() < until {
            session.pump(POLL_INTERVAL)?;
        }
        session.stop()
    }

    /// Which processes still run after the program, as daemons do, and are not about to end.
    pub(super) fn find_left(&mut self) {
        let until = Instant::now() + ENDING;
        let place = |process: &Process| process.variable("SWIPR_SOCKET").unwrap_or_default();
        while self.session.is_some() {
            let all = Process::all().into_iter();
            let listens = listening(self.folder.path());
            // A process that is just executing a program has no environment.
            let executes = |process: &Process| {
                listens.contains(&process.pid)
                    && process.started_ticks() >= self.started_ticks
                    && process.environment().iter().all(String::is_empty)
            };
            let is_left = |process: &Process| Path::new(&place(process)).starts_with(self.folder.path());
            let left = all.filter(|process| is_left(process) || executes(process));
            // Where nobody waits for it, a process that has ended stays listed.
            let left = left.filter(|process| !process.has_ended());
            self.left = left.map(|process| (process.pid, process.name())).collect();
            if self.left.is_empty() || Instant::now() > until {
                return;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// How much of the program's CPU time is not in the recording; `None`: hardly any, or not all
    /// of it was to be recorded.
    fn missing(&self, recorded: Duration, started: u32) -> Option<Missing> {
        let sampling = &self.arguments.sampling;
        // What cannot be preloaded was reported at the start.
        let can_be = self.library.is_some() || sampling.subprocesses;
        let is_of_all = can_be && sampling.duration.is_none() && sampling.thread_name.is_none();
        Missing::of(self.used.filter(|_| is_of_all)?, recorded, started)
    }

    /// Writes the recording, once.
    pub(super) fn write(&mut self) {
        self.progress.clear();
        let Some(mut session) = self.session.take() else { return };
        let stopped = session.stop();
        let missing = self.missing(session.running_time(), session.started());
        let unrecorded = self.unrecorded(&mut session);
        let left = (!self.left.is_empty())
            .then(|| format!("the program has ended, and left running: {}", listed(&self.left)));
        // Of a program whose children work, that is said below.
        let is_told = self.arguments.sampling.is_wall() || self.has_children;
        let next_if_idle = (!is_told).then(|| "--idle records threads that wait, too".to_owned());
        let (hindrance, unread) = (session.hindrance.clone(), session.unread.clone());
        let done = stopped.and_then(|()| session.finish());
        let done = done.map(|summary| tell_recording(&self.plan, &summary, next_if_idle, hindrance, unread));
        let all_used = missing.as_ref().and_then(Missing::of_all).filter(|_| done.is_err());
        let done = done.map_err(|error| match all_used {
            Some(used) => no_sample_of(used, error.exit),
            None => error,
        });
        self.outcome = Some(done.map_err(|error| match &left {
            Some(left) => Error { what: format!("{}; {left}", error.what), next: FOREGROUND.into(), ..error },
            None => error,
        }));
        report_unrecorded(&unrecorded, self.plan.talk);
        if let Some(missing) = missing.filter(|_| all_used.is_none()) {
            match self.arguments.sampling.subprocesses {
                true => missing.report("the processes'", FULL_CHILDREN, self.plan.talk),
                false => missing.report("the program's", FULL_END, self.plan.talk),
            }
        }
        if self.plan.talk == Talk::Quiet {
            return;
        }
        match (left, self.has_children) {
            (Some(left), _) if self.outcome.as_ref().is_some_and(Result::is_ok) => {
                say(format_args!("swipr: {left}\nnext: {FOREGROUND}"));
            }
            (None, true) => {
                say("swipr: its child processes were not recorded\nnext: -s follows child processes");
            }
            _ => {}
        }
    }

    /// The processes that are not in the recording, though they should be, with their names.
    fn unrecorded(&mut self, session: &mut Session) -> BTreeMap<u32, String> {
        for arriving in self.arriving.drain(..) {
            session.unrecorded.add(arriving.pid, arriving.name);
        }
        for pid in self.left.keys() {
            session.unrecorded.leave_out(*pid);
        }
        match self.arguments.sampling.subprocesses {
            true => session.unrecorded.names().clone(),
            // Of the program alone, its recording says so.
            false => BTreeMap::new(),
        }
    }
}
