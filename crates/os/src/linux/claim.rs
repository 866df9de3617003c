//! Which process this memory belongs to.
//!
//! A child that no fork handler has seen has its parent's memory, or a copy of it. Its process id
//! does not always tell: a child by clone(2) with CLONE_NEWPID of a container's process 1 has the
//! id 1, too. So a page is marked that the kernel empties in each copy (madvise(2),
//! MADV_WIPEONFORK, Linux 4.14). On older kernels only the id tells.

use super::{memory, process};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};

const PAGE: usize = 4096;
/// The page. Null: there is none.
static MARK: AtomicPtr<AtomicBool> = AtomicPtr::new(null_mut());

/// As [`claim`], with a mark from now on. Not when the library is loaded: a sandbox in which the
/// program was started may forbid the call.
pub fn claim_with_mark() -> u32 {
    if MARK.load(Acquire).is_null()
        && let Some(page) = memory::map(PAGE).map(<*mut u8>::cast::<AtomicBool>)
    {
        // SAFETY: advice for a mapping of the agent, which is zeroed and long enough for its type.
        unsafe {
            libc::madvise(page.cast(), PAGE, libc::MADV_WIPEONFORK);
            (*page).store(true, Relaxed);
        }
        MARK.store(page, Release);
    }
    claim()
}

/// This memory is the calling process's. Returns its id. Allocates nothing.
pub fn claim() -> u32 {
    mark().inspect(|mark| mark.store(true, Relaxed));
    process::pid()
}

/// Whether the calling process is the one for which [`claim`] returned `id`.
pub fn is_claimed_as(id: u32) -> bool {
    process::pid() == id && mark().is_none_or(|mark| mark.load(Relaxed))
}

fn mark() -> Option<&'static AtomicBool> {
    // SAFETY: null, or a zeroed page that is never unmapped; zero and one are valid.
    unsafe { MARK.load(Acquire).as_ref() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a container's process 1 and its child, process 1 of a name space of its own,
    /// were taken for the same.
    #[test]
    fn a_child_that_no_fork_handler_has_seen_does_not_have_its_parents_mark() {
        let id = claim_with_mark();
        assert!(is_claimed_as(id));
        // SAFETY: the child, a copy of this thread alone, reads a page and ends.
        unsafe {
            let child = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t;
            if child == 0 {
                let is_marked = mark().is_some_and(|mark| mark.load(Relaxed));
                libc::_exit(i32::from(is_marked));
            }
            let mut status = -1;
            assert_eq!((libc::waitpid(child, &raw mut status, 0), status), (child, 0));
        }
        assert!(is_claimed_as(id));
    }
}
