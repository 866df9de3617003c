//! How long a thread was ready to run and got no CPU: the second number of its `schedstat` file,
//! nanoseconds (Linux' Documentation/scheduler/sched-stats.rst). It is added up when the thread
//! gets its CPU, not before.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// A thread's delay since it was first read.
#[derive(Debug, Default)]
pub struct RunDelay {
    file: Option<File>,
    last_ns: Option<u64>,
}

impl RunDelay {
    /// How much was added since the last call; 0 at the first, and where the kernel does not count.
    /// `keep`: the file stays open.
    pub fn more_ns(&mut self, tid: u32, keep: bool) -> u64 {
        let opened = if self.file.is_none() { open(tid) } else { None };
        let Some(now_ns) = self.file.as_ref().or(opened.as_ref()).and_then(read) else { return 0 };
        if keep && self.file.is_none() {
            self.file = opened;
        }
        now_ns.saturating_sub(self.last_ns.replace(now_ns).unwrap_or(now_ns))
    }
}

fn open(tid: u32) -> Option<File> {
    File::open(format!("/proc/self/task/{tid}/schedstat")).ok()
}

fn read(file: &File) -> Option<u64> {
    let mut buffer = [0u8; 64];
    let length = file.read_at(&mut buffer, 0).ok()?;
    let text = std::str::from_utf8(buffer.get(..length)?).ok()?;
    text.split(' ').nth(1)?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tid;

    #[test]
    fn a_thread_that_shares_its_cpu_waits_for_it() {
        // One CPU for two threads that never sleep: each waits for half of the time.
        let (tell, told) = std::sync::mpsc::channel();
        // SAFETY: no preconditions.
        let cpu = unsafe { libc::sched_getcpu() } as usize;
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    // SAFETY: a zeroed set is a valid one; sched_setaffinity(2) reads it.
                    unsafe {
                        let mut one: libc::cpu_set_t = std::mem::zeroed();
                        libc::CPU_SET(cpu, &mut one);
                        libc::sched_setaffinity(0, size_of_val(&one), &one);
                    }
                    tell.send(tid()).unwrap();
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let tids: Vec<u32> = told.iter().take(2).collect();
            let mut delays: Vec<RunDelay> = tids.iter().map(|_| RunDelay::default()).collect();
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
            let mut waited = 0;
            while waited < 100_000_000 && std::time::Instant::now() < deadline {
                std::thread::sleep(std::time::Duration::from_millis(5));
                let more = delays.iter_mut().zip(&tids).map(|(delay, &tid)| delay.more_ns(tid, tid % 2 == 0));
                waited += more.sum::<u64>();
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(waited >= 100_000_000, "waited {waited} ns");
        });
    }

    #[test]
    fn a_thread_that_is_not_there_waits_for_nothing() {
        assert_eq!(RunDelay::default().more_ns(u32::MAX, true), 0);
    }
}
