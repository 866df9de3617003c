//! Programs that were started in a sandbox: a profiled process, or one of its children, has set up
//! a seccomp(2) filter and then called execve(2). The filter knows nothing of the agent's system
//! calls, and may end the process for the first of them. A container's filter is no such sandbox:
//! all processes that can be seen have it.
//!
//! Only the system calls that the loader has made are made here: open, read, close.

use super::this_library::is_this_library;
use super::threads::Sandbox;
use std::ffi::CString;

/// So many ancestors are looked at.
const MAX_ANCESTORS: usize = 64;
/// A `status` file is shorter than this.
const STATUS_BYTES: usize = 4096;
/// Bytes of a list of mappings that are read at once.
const MAPS_BYTES: usize = 1 << 16;

/// Whether the sandbox is one that a profiled process, or the process `recorder` that started this
/// one, has not.
pub fn is_of_a_profiled_program(recorder: Option<u32>) -> bool {
    let Some((own, mut parent)) = status_of("self") else { return false };
    if own == Sandbox::default() {
        return false;
    }
    for _ in 0..MAX_ANCESTORS {
        let Some((sandbox, grandparent)) = status_of(&parent.to_string()) else { return false };
        if own.is_stricter_than(sandbox) {
            return recorder == Some(parent) || has_this_library(parent);
        }
        parent = grandparent;
    }
    false
}

/// The sandbox of a process, and its parent's id.
fn status_of(process: &str) -> Option<(Sandbox, u32)> {
    let mut text = vec![0; STATUS_BYTES];
    let file = RawFile::open(&format!("/proc/{process}/status"))?;
    let length = file.read(&mut text)?;
    let text = String::from_utf8_lossy(text.get(..length)?);
    let parent = text.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
    Some((Sandbox::of_status(&text), parent))
}

fn has_this_library(process: u32) -> bool {
    let Some(file) = RawFile::open(&format!("/proc/{process}/maps")) else { return false };
    let (mut bytes, mut kept) = (vec![0; MAPS_BYTES], 0);
    while let Some(more) = bytes.get_mut(kept..).and_then(|rest| file.read(rest)).filter(|more| *more > 0) {
        let end = kept + more;
        let lines = bytes.get(..end).unwrap_or_default();
        if lines.split(|&byte| byte == b'\n').any(is_this_library) {
            return true;
        }
        // The last line may be longer than the buffer.
        let start = lines.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        bytes.copy_within(start..end, 0);
        kept = end - start;
    }
    false
}

/// A file that the standard library would ask for more.
struct RawFile(libc::c_int);

impl RawFile {
    fn open(path: &str) -> Option<RawFile> {
        let path = CString::new(path).ok()?;
        // SAFETY: a C string; the descriptor is ours.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        (fd >= 0).then_some(RawFile(fd))
    }

    fn read(&self, bytes: &mut [u8]) -> Option<usize> {
        // SAFETY: the bytes are ours to write.
        let read = unsafe { libc::read(self.0, bytes.as_mut_ptr().cast(), bytes.len()) };
        usize::try_from(read).ok()
    }
}

impl Drop for RawFile {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours, and used no more.
        unsafe { libc::close(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn a_program_without_a_filter_is_in_no_sandbox() {
        let (sandbox, parent) = status_of("self").unwrap();
        assert_eq!(parent, process::parent());
        if sandbox == Sandbox::default() {
            assert!(!is_of_a_profiled_program(Some(parent)));
        }
        // The test program has this code in itself.
        assert!(has_this_library(process::pid()) && !has_this_library(parent));
        assert!(status_of("0").is_none());
    }
}
