//! Whether a thread is blocked, by its `syscall` file (proc(5)).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What the kernel says a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Running or ready to run.
    Running,
    /// Blocked in the kernel, with its user-mode registers.
    Blocked {
        /// The system call; `None` for a page fault and the like.
        system_call: Option<u32>,
        /// The system call's first argument; 0 without one.
        first_argument: u64,
        /// Stack pointer.
        sp: u64,
        /// Program counter.
        pc: u64,
    },
    /// Ended, or about to.
    Gone,
}

/// A thread's `syscall` file, kept open.
#[derive(Debug)]
pub struct ActivityFile {
    file: File,
}

impl ActivityFile {
    /// Opens it. Refused when the process is not dumpable; missing on some sandboxed kernels.
    pub fn open(tid: u32) -> io::Result<ActivityFile> {
        Ok(ActivityFile { file: File::open(format!("/proc/self/task/{tid}/syscall"))? })
    }

    /// Reads it.
    pub fn read(&self) -> io::Result<Activity> {
        let mut buffer = [0u8; 256];
        let length = self.file.read_at(&mut buffer, 0)?;
        let text = buffer.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("");
        parse(text).ok_or_else(|| io::Error::other("unknown content of a syscall file"))
    }
}

fn parse(text: &str) -> Option<Activity> {
    let text = text.trim_end();
    if text == "running" {
        return Some(Activity::Running);
    }
    let mut words = text.split(' ');
    let number: i64 = words.next()?.parse().ok()?;
    let mut from_end = words.rev().map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let (pc, sp) = (from_end.next()??, from_end.next()??);
    let first_argument = from_end.next_back().flatten().unwrap_or(0);
    if pc == 0 {
        return Some(Activity::Gone);
    }
    Some(Activity::Blocked { system_call: u32::try_from(number).ok(), first_argument, sp, pc })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;
    use crate::threads::cpu_ns;

    #[test]
    fn all_forms_of_the_syscall_file_are_understood() {
        assert_eq!(parse("running\n"), Some(Activity::Running));
        assert_eq!(
            parse("202 0x1 0x80 0x0 0x0 0x0 0x0 0x7ffd10 0x7f5a20\n"),
            Some(Activity::Blocked { system_call: Some(202), first_argument: 1, sp: 0x7ffd10, pc: 0x7f5a20 })
        );
        assert_eq!(
            parse("-1 0x7ffd10 0x7f5a20\n"),
            Some(Activity::Blocked { system_call: None, first_argument: 0, sp: 0x7ffd10, pc: 0x7f5a20 })
        );
        assert_eq!(parse("0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0"), Some(Activity::Gone));
        for broken in ["", "walking", "1", "1 0x", "x 0x1 0x2", "1 1 2"] {
            assert_eq!(parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn a_blocked_thread_tells_its_system_call_and_its_clock_stands_still() {
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let (sent, received) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            sent.send(process::tid()).unwrap();
            let _ = receive.recv();
        });
        let tid = received.recv().unwrap();
        let file = ActivityFile::open(tid).unwrap();
        let blocked = (0..100_000).find_map(|_| match file.read().unwrap() {
            Activity::Blocked { system_call, .. } => system_call,
            _ => {
                std::thread::yield_now();
                None
            }
        });
        assert_eq!(blocked, Some(libc::SYS_futex as u32));
        assert_eq!(cpu_ns(tid), cpu_ns(tid));
        drop(send);
        thread.join().unwrap();
        assert_eq!((0..100_000).find(|_| cpu_ns(tid).is_none()).map(|_| ()), Some(()));
    }
}
