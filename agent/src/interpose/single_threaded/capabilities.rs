//! Which calls of capset(2) matter to the agent's threads: those that give something up for good,
//! and those that change CAP_SETUID or CAP_SETGID. A service that raises another capability for a
//! moment, again and again, does not matter.

use std::ffi::{c_int, c_ulong, c_void};
use swipr_unwind::memory::is_unreadable;

/// `_LINUX_CAPABILITY_VERSION_1` to `_3` (linux/capability.h); the first has 32 bits a set.
const VERSIONS: [u32; 3] = [0x1998_0330, 0x2007_1026, 0x2008_0522];
/// CAP_SETGID and CAP_SETUID.
const CHANGES_USERS: u32 = 1 << 6 | 1 << 7;

#[derive(Clone, Copy)]
#[repr(C)]
struct Header {
    version: u32,
    pid: c_int,
}

/// 32 bits of each set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Whether a call with these arguments matters, as far as that is known before the call.
///
/// # Safety
/// The arguments are those of capset(2).
pub unsafe fn matter(header: *const c_void, data: *const c_void) -> bool {
    if header.is_null() || data.is_null() || is_unreadable(header as u64, size_of::<Header>()) {
        return false;
    }
    let (header, data) = (header.cast::<Header>(), data.cast::<Sets>());
    // SAFETY: the caller's contract.
    let version = unsafe { (*header).version };
    let known = VERSIONS.iter().position(|&known| known == version);
    let sets = if known == Some(0) { 1 } else { 2 };
    if is_unreadable(data as u64, sets * size_of::<Sets>()) {
        return false;
    }
    let wanted = match known {
        // SAFETY: the caller's contract; this version has one set of 32 bits.
        Some(0) => [unsafe { *data }, Sets::default()],
        // SAFETY: the same; the others have two.
        Some(_) => unsafe { [*data, *data.add(1)] },
        None => return false, // the kernel refuses it
    };
    of(0).is_none_or(|now| differ(now, wanted))
}

/// Whether a thread may not change users where the calling one may. glibc has all threads do so,
/// and aborts the process if one of them may not.
pub fn fall_behind(tid: u32) -> bool {
    let may = |sets: [Sets; 2]| sets[0].effective & CHANGES_USERS;
    let (own, its) = (of(0).map(may), of(tid).map(may));
    own.zip(its).is_some_and(|(own, its)| own & !its != 0)
}

/// A thread's; 0: the calling one's.
fn of(tid: u32) -> Option<[Sets; 2]> {
    let header = Header { version: VERSIONS[2], pid: tid as c_int };
    let mut sets = [Sets::default(); 2];
    let (header, place) = (&raw const header, &raw mut sets);
    // SAFETY: the kernel reads a header and writes two sets.
    let result = unsafe { libc::syscall(libc::SYS_capget, header as c_ulong, place as c_ulong) };
    (result == 0).then_some(sets)
}

fn differ(now: [Sets; 2], wanted: [Sets; 2]) -> bool {
    let permitted = |sets: [Sets; 2]| sets.map(|sets| sets.permitted);
    permitted(now) != permitted(wanted) || (now[0].effective ^ wanted[0].effective) & CHANGES_USERS != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_matters_and_what_is_raised_for_a_moment_does_not() {
        let all = Sets { effective: u32::MAX, permitted: u32::MAX, inheritable: 0 };
        let is_other = |wanted: Sets| differ([all, all], [wanted, all]);
        assert!(!is_other(all) && !is_other(Sets { effective: CHANGES_USERS, ..all }));
        assert!(is_other(Sets { effective: 0, ..all }));
        assert!(is_other(Sets { permitted: u32::MAX >> 1, ..all }));
    }
}
