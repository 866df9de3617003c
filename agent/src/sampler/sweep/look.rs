//! What a thread is doing: what its CPU clock, then the kernel, tell of it, without touching it.

use super::copy::{Copier, NotCopied};
use crate::counters::AgentCounters;
use crate::mappings::Tables;
use crate::platform::process::{is_filtered, monotonic_ns};
use crate::platform::threads::{Activity, cpu_ns, is_awake};
use crate::sampler::threads::Sampled;
use crate::stack::RawStack;
use std::io;
use std::sync::Arc;
use swipr_formats::model::State;
use swipr_unwind::arch::Native;
use swipr_unwind::call_again::{Awake, Seen};
use swipr_unwind::registers::Registers;

/// So often at most at a thread that moves whenever it is looked at.
const LOOKS: usize = 3;

/// A look that took longer says nothing of now. When a process is stopped, all its threads are woken to stand still, and this one finds one of them
/// awake in the very call in which it is stopped itself; when it goes on, that thread sleeps again.
const LOOK_NS: u64 = 2_000_000;

/// What became of a look at a thread.
pub enum Look {
    /// A stack for this tick.
    Stack(State, Arc<RawStack>),
    /// It is to be asked: it runs, or it will before anything can disturb it. The state where it is known already.
    Ask(Option<State>),
    /// It cannot be known now.
    Missed,
    /// CPU mode does not care where it is blocked.
    NotWanted,
    /// The first thread has ended and others go on: it stays listed.
    Ended,
    Gone,
}

/// Looks at a thread; `wall`: somebody wants to know where it is blocked.
pub fn look(
    thread: &mut Sampled,
    wall: bool,
    copier: &mut Copier,
    tables: &Tables,
    counters: &AgentCounters,
) -> Look {
    // One that has moved meanwhile may be blocked again already, and must not be asked then.
    let found = (0..LOOKS).find_map(|_| look_once(thread, wall, copier, tables, counters));
    found.unwrap_or(Look::Ask(None))
}

/// `None`: it was blocked and has moved, or too much time has passed.
fn look_once(
    thread: &mut Sampled,
    wall: bool,
    copier: &mut Copier,
    tables: &Tables,
    counters: &AgentCounters,
) -> Option<Look> {
    let began_ns = monotonic_ns();
    let Some(now_ns) = cpu_ns(thread.tid()) else { return Some(Look::Gone) };
    if now_ns < thread.cpu_ns {
        return Some(Look::Gone); // another thread has got the id
    }
    let has_run = now_ns != thread.cpu_ns;
    thread.cpu_ns = now_ns;
    if let Some(blocked) = thread.blocked.as_ref().filter(|blocked| blocked.cpu_ns == now_ns) {
        counters.reused.add(1);
        return Some(Look::Stack(blocked.state, blocked.stack.clone()));
    }
    thread.blocked = None;
    thread.seen = None;
    if !wall && !has_run {
        return Some(Look::NotWanted);
    }
    let activity = thread.activity();
    note_signal_wait(thread, &activity);
    if is_answering(thread, &activity) {
        return Some(Look::Ask(None)); // the handler waits for the process' memory map; the program does not
    }
    Some(match activity {
        Ok(Activity::Gone) => Look::Ended,
        Ok(Activity::Blocked { .. }) if !wall => Look::NotWanted,
        // A page fault is not cut short by a signal, and the handler will know all registers.
        Ok(Activity::Blocked { system_call: None, .. }) => Look::Ask(Some(State::Blocked(None))),
        Ok(Activity::Blocked { system_call, first_argument, sp, pc }) => {
            let start = Registers::blocked_with_argument::<Native>(pc, sp, first_argument);
            match copier.copy(thread, start, State::Blocked(system_call), tables, counters) {
                Ok(blocked) => {
                    let found = Look::Stack(blocked.state, blocked.stack.clone());
                    thread.blocked = Some(blocked);
                    found
                }
                Err(NotCopied::HasMoved) => return None,
                Err(NotCopied::NoTables) => Look::Missed,
            }
        }
        // A thread on a CPU uses time; one that does not is waiting for a CPU.
        Ok(Activity::Running) => {
            let moving = cpu_ns(thread.tid()).filter(|&cpu_ns| cpu_ns != now_ns);
            let at_ns = monotonic_ns();
            if at_ns.saturating_sub(began_ns) > LOOK_NS {
                return None;
            }
            let awake = moving.map_or(Awake::Waits, Awake::Runs);
            thread.seen = Some(Seen { at_ns, first_cpu_ns: now_ns, awake, sent_ns: None });
            Look::Ask(moving.is_none().then_some(State::Runnable))
        }
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Look::Gone,
        // It may be blocked, and a signal would interrupt it: only where nobody can ever know is it sent.
        Err(_) if thread.is_readable() => Look::Missed,
        Err(_) if may_be_signalled(thread.tid()) => Look::Ask(None),
        Err(_) if wall => Look::Missed,
        Err(_) => Look::NotWanted,
    })
}

/// Whether a thread of which the kernel tells no registers may be signalled. Under a filter the
/// handler cannot go on with a call that the signal cuts short: only a thread that runs is, and not
/// one that has just been woken for a moment.
fn may_be_signalled(tid: u32) -> bool {
    !is_filtered() || (is_awake(tid) && is_awake(tid))
}

/// Whether it is where the handler reads memory (`guarded_copy` of `swipr_unwind`), in a thread that has not answered yet.
fn is_answering(thread: &Sampled, activity: &io::Result<Activity>) -> bool {
    const READ: u32 = libc::SYS_process_vm_readv as u32;
    let own = thread.tid() as u64;
    let reads = |activity: &Activity| matches!(activity, Activity::Blocked { system_call: Some(READ), first_argument, .. } if *first_argument == own);
    thread.pending.is_some() && activity.as_ref().is_ok_and(reads)
}

/// A thread that waits for signals must not be handed ours, see [`super::ask`].
pub fn note_signal_wait(thread: &mut Sampled, activity: &io::Result<Activity>) {
    const SIGTIMEDWAIT: u32 = libc::SYS_rt_sigtimedwait as u32;
    thread.waits_for_signals |=
        matches!(activity, Ok(Activity::Blocked { system_call: Some(SIGTIMEDWAIT), .. }));
}
