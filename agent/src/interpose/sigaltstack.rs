//! `sigaltstack`, interposed where the library is preloaded. A thread whose alternate stack is too
//! small for a signal's frame is killed by the first signal whose handler runs there, as the
//! agent's does. The agent sends it none. Once two threads have the same stack, the agent's handler
//! runs on no alternate stack any more.

pub mod shared;

use crate::interpose::real_fn::RealFn;
use profiler::for_library::lifecycle;
use profiler::for_library::signal_exclusion::{self, Reason, split_stacks};
use std::ffi::c_int;
use swipr_os::signals;
use swipr_unwind::memory::is_unreadable;

/// What the agent's signal needs: the kernel's frame for the program's own signal, whose handler
/// runs there, and that for the agent's (3.5 KiB each with AVX-512; where a program uses AMX the
/// kernel itself refuses stacks that are too small), and the handler's 512 bytes. It is less than
/// the usual size (`SIGSTKSZ`, 8 KiB): the stacks of all threads of Rust programs have that, and
/// hardly any handler ever runs there.
const LEAST_BYTES: usize = 7680;

static SIGALTSTACK: RealFn = RealFn::new(c"sigaltstack");

/// Looks up the real function.
pub fn prepare() {
    SIGALTSTACK.get();
    split_stacks::prepare();
}

type SigAltStack = unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> c_int;

/// sigaltstack(2).
///
/// # Safety
/// As the real function requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    let is_in_sandbox = signal_exclusion::is_in_sandbox();
    let is_given = !new.is_null()
        && (is_in_sandbox || !is_unreadable(new as u64, size_of::<libc::stack_t>()))
        && !lifecycle::is_unseen_child();
    // SAFETY: the caller gives null or a stack_t; a signal stack's size is nothing that another
    // thread changes meanwhile.
    let asked_for = is_given.then(|| unsafe { *new });
    let is_one = |stack: &libc::stack_t| stack.ss_flags & libc::SS_DISABLE == 0;
    let is_small = asked_for.map(|stack| is_one(&stack) && stack.ss_size < LEAST_BYTES);
    let noted = asked_for.filter(|_| !is_in_sandbox);
    let own = noted.map(|_| shared::own());
    if let Some(stack) = noted
        && shared::take(if is_one(&stack) { stack.ss_sp as u64 } else { 0 })
    {
        signals::leave_alternate_stacks();
    }
    let is_new = is_small == Some(true) && signal_exclusion::add(Reason::SmallStack);
    let next = SIGALTSTACK.get();
    if next.is_null() {
        return -1;
    }
    // SAFETY: the function of this name, called with what its caller gave.
    let result = unsafe { std::mem::transmute::<*mut std::ffi::c_void, SigAltStack>(next)(new, old) };
    if let Some(own) = own.filter(|_| result != 0) {
        // It was taken before the call, so that no signal arrives on a stack of two threads.
        shared::take(own);
    }
    let is_over = if result == 0 { is_small == Some(false) } else { is_new };
    if is_over {
        signal_exclusion::remove(Reason::SmallStack);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a stack that the kernel had refused was noted as the thread's.
    #[test]
    fn a_call_that_fails_leaves_the_thread_the_stack_that_it_had() {
        let before = shared::own();
        let too_small =
            libc::stack_t { ss_sp: std::ptr::without_provenance_mut(1 << 20), ss_flags: 0, ss_size: 1 };
        // SAFETY: the stack is refused (ENOMEM).
        assert_eq!(unsafe { sigaltstack(&too_small, std::ptr::null_mut()) }, -1);
        assert_eq!(shared::own(), before);
    }
}
