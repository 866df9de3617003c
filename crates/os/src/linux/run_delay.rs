//! How long a thread was ready to run and got no CPU, and how often it got one: the second number
//! of its `schedstat` file, nanoseconds, and the third (Linux'
//! Documentation/scheduler/sched-stats.rst). Both are added up when the thread gets its CPU, not
//! before.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// What the kernel counts of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// How long it was ready and got no CPU.
    pub ns: u64,
    /// How often it got one.
    pub turns: u64,
}

/// A thread's delay since it was first read.
#[derive(Debug, Default)]
pub struct RunDelay {
    file: Option<File>,
    last: Option<Delay>,
}

impl RunDelay {
    /// What was added since the last call; nothing at the first, and where the kernel does not
    /// count. `keep`: the file stays open.
    pub fn more(&mut self, tid: u32, keep: bool) -> Delay {
        let opened = if self.file.is_none() { open(tid) } else { None };
        let Some(now) = self.file.as_ref().or(opened.as_ref()).and_then(read) else {
            return Delay::default();
        };
        if keep && self.file.is_none() {
            self.file = opened;
        }
        let last = self.last.replace(now).unwrap_or(now);
        Delay { ns: now.ns.saturating_sub(last.ns), turns: now.turns.saturating_sub(last.turns) }
    }
}

fn open(tid: u32) -> Option<File> {
    File::open(format!("/proc/self/task/{tid}/schedstat")).ok()
}

fn read(file: &File) -> Option<Delay> {
    let mut buffer = [0u8; 64];
    let length = file.read_at(&mut buffer, 0).ok()?;
    let text = std::str::from_utf8(buffer.get(..length)?).ok()?;
    let mut numbers = text.split(' ').skip(1).map(|number| number.trim_end().parse().ok());
    Some(Delay { ns: numbers.next()??, turns: numbers.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tid;

    #[test]
    fn a_thread_that_shares_its_cpu_waits_for_it() {
        // One CPU for two threads that never sleep: each waits for half of the time.
        let (sent, received) = std::sync::mpsc::channel();
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
                    sent.send(tid()).unwrap();
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let tids: Vec<u32> = received.iter().take(2).collect();
            let mut delays: Vec<RunDelay> = tids.iter().map(|_| RunDelay::default()).collect();
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
            let (mut waited, mut turns) = (0, 0);
            while waited < 100_000_000 && std::time::Instant::now() < deadline {
                std::thread::sleep(std::time::Duration::from_millis(5));
                let more = delays.iter_mut().zip(&tids).map(|(delay, &tid)| delay.more(tid, tid % 2 == 0));
                let more: Vec<Delay> = more.collect();
                waited += more.iter().map(|more| more.ns).sum::<u64>();
                turns += more.iter().map(|more| more.turns).sum::<u64>();
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(waited >= 100_000_000 && turns > 1, "waited {waited} ns, got {turns} turns");
        });
    }

    #[test]
    fn a_thread_that_is_not_there_waits_for_nothing() {
        assert_eq!(RunDelay::default().more(u32::MAX, true), Delay::default());
    }
}
