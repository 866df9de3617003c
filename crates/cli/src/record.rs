//! `swipr record`: a process that runs, until its end, the end of the time, or Ctrl-C.

mod descendants;
mod losses;
pub mod missing;
pub mod no_sample;
pub mod progress;
pub mod session;
pub mod source;
pub mod unrecorded;
mod written;

pub use descendants::Descendants;
pub use written::{Plan, tell, tell_recording};

use crate::args::{Record, Sampling};
use crate::error::{Error, Exit};
use crate::find::{self, Found};
use crate::shape::ReuseThreads;
use crate::signals::Signals;
use missing::Missing;
use no_sample::Recorder;
use progress::Progress;
use session::{Over, Session};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use unrecorded::{EarlyEnd, Member, report_early_end, report_unrecorded};

/// How long to wait for samples before signals and the clock are looked at again.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long after the deadline agents are waited for.
const GRACE: Duration = Duration::from_secs(2);

/// What to do about children that live too short for a recording that nothing waits for.
const SHORT_CHILDREN: &str = "`swipr run -s` has child processes from their beginning to their end; those that are static, setuid or in a sandbox it has not, either";

/// Runs the verb.
pub fn record(arguments: Record) -> Result<ExitCode, Error> {
    let signals = Signals::take()?;
    let found = find::one(&arguments.target.text())?;
    expect_on(&found)?;
    let plan = Plan::new(&arguments.output, &found.name(), found.pid())?;
    let (sampling, shape) = (&arguments.sampling, arguments.output.shape());
    let mut session = Session::new(plan.open()?, shape, Recorder::of_running(sampling), sampling);
    let deadline = sampling.duration.map(|duration| Instant::now() + duration);
    let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let follows = sampling.subprocesses;
    let mut descendants = follows.then(|| descendants_of(&found, session.waker())).transpose()?;
    let reuse = arguments.output.reuse();
    let own = |_| member(&found, follows, reuse);
    // Its children may have the threads that it has not.
    let query = if follows { sampling.query_of_any(left()) } else { sampling.query(left()) };
    let mut main = session.add(found.client.clone(), found.status.clone(), query, own)?;
    let mut main_ended = None;
    let mut progress = Progress::new(plan.talk);
    let what = format!("{} ({})", found.name(), found.pid());
    loop {
        match session.pump(POLL_INTERVAL)? {
            // Longer than an agent records at a time: again.
            Some((id, Over::Whole)) if id == main && deadline.is_none() => {
                let query = || sampling.query_of_any(None);
                let mut again = |status| session.add(found.client.clone(), status, query(), own);
                match found.client.status().and_then(&mut again) {
                    Ok(id) => main = id,
                    Err(_) => main_ended = Some(Over::Refused),
                }
            }
            Some((id, over)) if id == main => main_ended = Some(over),
            _ => {}
        }
        if main_ended.is_some() && (!follows || session.running() == 0) {
            break;
        }
        // The agents end by themselves at the deadline; what does not is not waited for.
        if deadline.is_some_and(|deadline| deadline.elapsed() > GRACE) || signals.ending().is_some() {
            break;
        }
        let left = left();
        match &mut descendants {
            Some(descendants) if left.is_some_and(|left| left.is_zero()) => descendants.end(),
            descendants => {
                for child in descendants.iter_mut().flat_map(Descendants::new_ones) {
                    add_child(&mut session, child, sampling.query_of_any(left), reuse);
                }
            }
        }
        progress.show(&what, || session.figures());
    }
    // With its child processes.
    let is_early = left().is_none_or(|left| !left.is_zero());
    progress.clear();
    descendants.iter_mut().for_each(Descendants::end);
    session.stop()?;
    let done = write(session, &plan, sampling, &found, descendants.as_ref());
    report_early_end(&found, &what, early_end(main_ended, is_early), done.is_ok(), plan.talk);
    done.map(|()| ExitCode::SUCCESS)
}

/// How a recording was over before its time, or without its last samples.
fn early_end(ended: Option<Over>, is_early: bool) -> Option<EarlyEnd> {
    match ended? {
        Over::Cut => Some(EarlyEnd::Cut),
        Over::Whole | Over::Refused => is_early.then_some(EarlyEnd::Whole),
    }
}

/// Writes the recording, and says what it has and lacks.
fn write(
    session: Session,
    plan: &Plan,
    sampling: &Sampling,
    found: &Found,
    descendants: Option<&Descendants>,
) -> Result<(), Error> {
    let used = descendants.and_then(Descendants::used).filter(|_| sampling.thread_name.is_none());
    let missing = used.and_then(|used| Missing::of(used, session.running_time(), session.started()));
    let unrecorded = session.unrecorded.names().clone();
    let (hindrance, unread) = (session.hindrance.clone(), session.unread.clone());
    let tell = |summary| tell_recording(plan, &summary, if_idle(sampling, found), hindrance, unread);
    let done = session.finish().map(tell);
    if descendants.is_some() {
        report_unrecorded(&unrecorded, plan.talk);
    }
    if let Some(missing) = missing {
        missing.report("the processes'", SHORT_CHILDREN, plan.talk);
    }
    done
}

/// What to do if the process hardly uses the CPU; `None`: threads that wait are recorded, too.
fn if_idle(sampling: &Sampling, found: &Found) -> Option<String> {
    let dump = format!("`swipr dump {}` shows where they are", found.pid());
    (!sampling.is_wall()).then(|| format!("--idle records threads that wait, too; {dump}"))
}

fn descendants_of(found: &Found, wake: impl Fn() + Send + 'static) -> Result<Descendants, Error> {
    let unseen = || {
        let endpoint = found.client.endpoint();
        let what = format!("the process behind {endpoint} cannot be seen from here, nor its children");
        Error::new(what, "record where the process runs, or without --subprocesses").exit(Exit::NotProfilable)
    };
    let process = found.process.as_ref().ok_or_else(unseen)?;
    Ok(Descendants::from_now_on(process, &found.client, wake))
}

/// A child that ended meanwhile is no reason to end.
fn add_child(session: &mut Session, child: Found, query: String, reuse: ReuseThreads) {
    let (pid, name) = (child.pid(), child.name());
    let process = member(&child, true, reuse);
    if session.add(child.client, child.status, query, |_| process).is_err() {
        session.unrecorded.add(pid, name);
    }
}

/// `is_one_of_several`: the stacks of the process have it for a root.
fn member(found: &Found, is_one_of_several: bool, reuse: ReuseThreads) -> Member {
    let (pid, name) = (found.pid(), found.name());
    Member { pid, root: is_one_of_several.then(|| root(&name, pid, reuse)), name }
}

/// The remark that is the outermost frame of a process's stacks. Where threads of one name are one,
/// so are processes.
pub fn root(name: &str, pid: u32, reuse: ReuseThreads) -> String {
    match reuse {
        ReuseThreads::Yes => format!("[process {name}]"),
        ReuseThreads::No => format!("[process {pid} {name}]"),
    }
}

/// The process's name in such a remark that has its number.
pub fn process_of(root: &str) -> Option<&str> {
    let (pid, name) = root.strip_prefix("[process ")?.strip_suffix(']')?.split_once(' ')?;
    pid.parse::<u32>().ok().map(|_| name)
}

/// An error if the agent has turned itself off.
fn expect_on(found: &Found) -> Result<(), Error> {
    let Some(why) = &found.status.off else { return Ok(()) };
    let what = format!("the agent in {} ({}) has turned itself off: {why}", found.name(), found.pid());
    Err(Error::new(what, "restart the program: its agent starts again").exit(Exit::NotProfilable))
}
