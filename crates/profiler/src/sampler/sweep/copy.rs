//! The stack of a blocked thread, without touching the thread.
//!
//! The kernel says where the thread is blocked; the sampler copies its stack. The thread's CPU
//! clock, read before and after, proves that the thread did not run meanwhile.

use crate::counters::AgentCounters;
use crate::interpreters::Interpreted;
use crate::mappings::Tables;
use crate::sampler::threads::{BlockedStack, ThreadState};
use crate::stack::RawStack;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use swipr_formats::model::State;
use swipr_os::threads::cpu_ns;
use swipr_unwind::arch::Native;
use swipr_unwind::frame_runs::NativeFrames;
use swipr_unwind::frames::{CAPACITY, Frames, Storage};
use swipr_unwind::memory::OtherStack;
use swipr_unwind::published;
use swipr_unwind::registers::Registers;
use swipr_unwind::walk::{Stop, Workspace, walk};

/// Bytes of stack copied at once: most stacks of waiting threads as a whole, and little that is not
/// read. The stack of a waiting thread is in no cache: a copy of 16 KiB takes twice as long.
const WINDOW_BYTES: usize = 4 << 10;

/// A reading that no CPU clock has.
const NEVER: u64 = u64::MAX;

/// Why there is no copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCopied {
    /// The thread has run meanwhile.
    HasMoved,
    /// There are no unwind tables.
    NoTables,
    /// An unwind table is to be built first.
    WantsTable,
}

/// Room for one copy.
#[derive(Debug)]
pub struct RemoteWalker {
    window: Vec<u8>,
    frames: Box<Storage>,
    workspace: Box<Workspace>,
    memory_file: i32,
}

impl RemoteWalker {
    /// See [`swipr_unwind::memory::guarded_copy_or_file`] for `memory_file`.
    pub fn new(memory_file: i32) -> RemoteWalker {
        RemoteWalker {
            window: vec![0; WINDOW_BYTES],
            frames: Box::new([const { AtomicU64::new(0) }; CAPACITY]),
            workspace: Box::new(Workspace::new()),
            memory_file,
        }
    }

    /// Walks the stack of a thread that was blocked at `start` when its clock was at
    /// `thread.cpu_ns`.
    pub fn copy(
        &mut self,
        thread: &ThreadState,
        start: Registers,
        state: State,
        tables: &Tables,
        counters: &AgentCounters,
    ) -> Result<BlockedStack, NotCopied> {
        // SAFETY: this is the thread that publishes.
        let rules = unsafe { published::current() }.ok_or(NotCopied::NoTables)?;
        let mut memory = OtherStack::new(&mut self.window, self.memory_file);
        let mut frames = Frames::new(&self.frames);
        let high = if thread.stack_bounds.contains(start.sp) { thread.stack_bounds.high } else { 0 };
        let workspace = &mut *self.workspace;
        let sp = start.sp;
        let stop = walk::<Native, _>(&rules, &mut memory, start, high, &mut frames, workspace);
        if tables.wants_table() {
            return Err(NotCopied::WantsTable);
        }
        let (storage, total) = (&*self.frames, frames.total());
        let native = NativeFrames { storage, total, runs: self.workspace.runs(), sp };
        let stack = || tables.stack_of(sp).map_or(0..0, |bounds| sp..bounds.high);
        let interpreted = tables.interpreters().read_blocked(thread.tid(), stack, (native, stop), counters);
        if cpu_ns(thread.tid()) != Some(thread.cpu_ns) {
            counters.moved.add(1);
            return Err(NotCopied::HasMoved);
        }
        // A thread that never ran is still inside clone(2). Its stack is uninitialised: keep only
        // the top frame.
        let has_run = has_run(thread.cpu_ns, state);
        let (total, stop) =
            if has_run { (frames.total(), stop) } else { (frames.total().min(1), Stop::Root) };
        let state = if has_run { state } else { State::Runnable };
        counters.copied.add(1);
        counters.stopped(stop);
        let interpreted = if has_run { interpreted } else { Interpreted::default() };
        // What is incomplete is not kept for as long as the thread is blocked.
        let cpu_ns = if interpreted.is_unknown { NEVER } else { thread.cpu_ns };
        let stack = RawStack::new(&self.frames, total, stop, tables.mappings(), interpreted);
        Ok(BlockedStack { cpu_ns, state, stack: Arc::new(stack) })
    }
}

/// Whether a thread has been on a CPU at all. Its clock alone does not prove it: where a hypervisor
/// takes CPUs away (steal time), a run of some microseconds may not be counted.
fn has_run(cpu_ns: u64, state: State) -> bool {
    let is_made = |call: u32| [libc::SYS_clone, libc::SYS_clone3].contains(&i64::from(call));
    cpu_ns != 0 || !matches!(state, State::Blocked(Some(call)) if is_made(call))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stands_in_the_call_that_made_it_and_used_no_time_has_not_run() {
        let blocked_in = |call: i64| State::Blocked(Some(call as u32));
        assert!(!has_run(0, blocked_in(libc::SYS_clone3)) && !has_run(0, blocked_in(libc::SYS_clone)));
        assert!(has_run(1, blocked_in(libc::SYS_clone3)), "it makes one");
        assert!(has_run(0, blocked_in(libc::SYS_futex)), "its clock has left that out");
        assert!(has_run(0, State::Runnable) && has_run(0, State::Blocked(None)));
    }
}
