//! What a thread is doing, by its CPU clock and then by its files in /proc, without touching the
//! thread.

use super::copy::{NotCopied, RemoteWalker};
use crate::counters::AgentCounters;
use crate::mappings::Tables;
use crate::sampler::account::Found;
use crate::sampler::threads::ThreadState;
use swipr_formats::model::State;
use swipr_os::threads::{Activity, cpu_ns};
use swipr_os::timer_delivery;
use swipr_unwind::arch::Native;
use swipr_unwind::registers::Registers;

/// Attempts to observe a thread that moves at each.
const LOOKS: usize = 3;

/// The result of an observation.
pub enum Observation {
    There(Found),
    /// The first thread has ended while others still run: it stays listed.
    Ended,
    Gone,
}

/// Observes a thread; `wall`: also where it is blocked.
pub fn observe(
    thread: &mut ThreadState,
    wall: bool,
    copier: &mut RemoteWalker,
    tables: &mut Tables,
    counters: &AgentCounters,
) -> Observation {
    let found = (0..LOOKS).find_map(|_| observe_once(thread, wall, copier, tables, counters));
    found.unwrap_or(Observation::There(Found::Elsewhere))
}

/// `None`: it was blocked and has moved, or a table was built for it.
fn observe_once(
    thread: &mut ThreadState,
    wall: bool,
    copier: &mut RemoteWalker,
    tables: &mut Tables,
    counters: &AgentCounters,
) -> Option<Observation> {
    let Some(now_ns) = cpu_ns(thread.tid()) else { return Some(Observation::Gone) };
    if now_ns < thread.cpu_ns {
        return Some(Observation::Gone); // another thread has got the id
    }
    thread.cpu_ns = now_ns;
    if let Some(blocked) = thread.blocked.as_ref().filter(|blocked| blocked.cpu_ns == now_ns) {
        counters.reused.add(1);
        return Some(Observation::There(Found::At(blocked.state, blocked.stack.clone())));
    }
    if thread.blocked.take().is_some_and(|blocked| matches!(blocked.state, State::Blocked(_))) {
        thread.woken.was_seen();
    }
    if !wall {
        return Some(Observation::There(Found::Elsewhere));
    }
    Some(match thread.activity() {
        Ok(Activity::Gone) => Observation::Ended,
        Ok(activity) if is_answering(thread, activity) => Observation::There(Found::Elsewhere),
        Ok(Activity::Blocked { system_call, first_argument, sp, pc }) => {
            if system_call == Some(libc::SYS_io_uring_enter as u32) {
                timer_delivery::has_ring();
            }
            let start = Registers::blocked_with_argument::<Native>(pc, sp, first_argument);
            match copier.copy(thread, start, State::Blocked(system_call), tables, counters) {
                Ok(blocked) => {
                    let found = Found::At(blocked.state, blocked.stack.clone());
                    thread.recent.keep((sp, pc), blocked.state, &blocked.stack);
                    thread.blocked = Some(blocked);
                    Observation::There(found)
                }
                // To look again until a copy succeeds would find it where it stays for longer.
                Err(NotCopied::HasMoved) => {
                    let known = thread.recent.find((sp, pc), State::Blocked(system_call))?;
                    Observation::There(Found::Was(State::Blocked(system_call), known))
                }
                Err(NotCopied::WantsTable) => {
                    tables.build_tables();
                    return None;
                }
                Err(NotCopied::NoTables) => Observation::There(Found::Elsewhere),
            }
        }
        Ok(Activity::Running) => Observation::There(running_or_waiting(thread)),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Observation::Gone,
        Err(_) => Observation::There(Found::Unknown),
    })
}

/// What a thread does that is ready, and whose clock was read before. On a CPU it uses time; one
/// that does not is waiting for a CPU.
pub fn running_or_waiting(thread: &mut ThreadState) -> Found {
    match cpu_ns(thread.tid()) == Some(thread.cpu_ns) {
        true => Found::Waiting(thread.woken.of(thread.tid())),
        false => Found::Elsewhere,
    }
}

/// Whether the thread is in a read of the signal handler's (`guarded_copy` and `gather` of
/// `swipr_unwind`), which names the thread's own id, and waits for the lock of the memory map. The
/// program makes no such calls. Its slot cannot be used to find out: the timer may be gone by now.
fn is_answering(thread: &ThreadState, activity: Activity) -> bool {
    const READS: [u32; 2] = [libc::SYS_process_vm_readv as u32, libc::SYS_process_vm_writev as u32];
    let own = u64::from(thread.tid());
    matches!(activity, Activity::Blocked { system_call: Some(call), first_argument, .. }
        if READS.contains(&call) && first_argument == own)
}
