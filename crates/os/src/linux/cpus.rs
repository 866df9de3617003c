//! CPUs: which one a thread ran on last, and on which ones the calling thread may run
//! (sched_setaffinity(2)).

use nix::sys::prctl;
use std::io;

/// Words of a set: 8,192 CPUs, the most that Linux can be built for.
const WORDS: usize = 128;
/// `processor` in a thread's `stat` file (proc(5)), counted from the state behind the name.
const PROCESSOR: usize = 39 - 3;
/// `PR_SET_TIMERSLACK` for wake-ups at the very moment.
const NO_SLACK_NS: libc::c_ulong = 1;

/// A set of CPUs.
#[derive(Debug, PartialEq, Eq)]
pub struct Cpus([u64; WORDS]);

impl Cpus {
    /// Those on which the calling thread may run.
    pub fn of_this_thread() -> io::Result<Cpus> {
        let mut cpus = [0u64; WORDS];
        // SAFETY: the kernel writes at most the set's length; 0 is the calling thread.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&cpus), cpus.as_mut_ptr()) };
        if result > 0 { Ok(Cpus(cpus)) } else { Err(io::Error::last_os_error()) }
    }

    /// One CPU alone.
    pub fn one(cpu: u32) -> Cpus {
        let mut cpus = [0u64; WORDS];
        if let Some(word) = cpus.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
        Cpus(cpus)
    }

    /// Lets the calling thread run on these CPUs only. Refused where the process may use none of
    /// them.
    pub fn move_here(&self) -> io::Result<()> {
        // SAFETY: the kernel reads the set; 0 is the calling thread.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&self.0), self.0.as_ptr()) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// The CPU on which a thread ran last; `None`: it is gone, or not known.
pub fn last_cpu(tid: u32) -> Option<u32> {
    let stat = super::process::read_text(&format!("/proc/self/task/{tid}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    stat.rsplit(") ").next()?.split(' ').nth(PROCESSOR)?.trim_end().parse().ok()
}

/// When a thread last got a CPU, or lost it since, by that CPU's clock (`se.exec_start` in the
/// thread's `sched` file). Where one thread takes a CPU from another, both have the same time.
/// `None`: the thread is gone, or the kernel has no such file.
pub fn exec_start_ns(tid: u32) -> Option<u64> {
    let sched = super::process::read_text(&format!("/proc/self/task/{tid}/sched")).ok()?;
    let line = sched.lines().find_map(|line| line.strip_prefix("se.exec_start"))?;
    let (ms, rest) = line.split_once(':')?.1.trim().split_once('.')?;
    Some(ms.parse::<u64>().ok()? * 1_000_000 + rest.parse::<u64>().ok()?)
}

/// Bytes that a thread has written, and in how many calls (`wchar` and `syscw` in proc(5)).
pub fn written(tid: u32) -> Option<(u64, u64)> {
    let io = super::process::read_text(&format!("/proc/self/task/{tid}/io")).ok()?;
    let number = |name: &str| io.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok();
    Some((number("wchar:")?, number("syscw:")?))
}

/// Makes the calling thread's sleeps end on time: the kernel does not delay them to join other
/// timers (prctl(2)).
pub fn wake_in_time() {
    let _ = prctl::set_timerslack(NO_SLACK_NS);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tid;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::Duration;

    #[test]
    fn a_thread_is_where_it_moved_to_and_may_go_back() {
        std::thread::spawn(|| {
            let before = Cpus::of_this_thread().unwrap();
            let mut allowed =
                (0..64 * WORDS as u32).filter(|cpu| before.0[*cpu as usize / 64] >> (cpu % 64) & 1 == 1);
            let cpu = allowed.next_back().unwrap();
            Cpus::one(cpu).move_here().unwrap();
            assert_eq!(Cpus::of_this_thread().unwrap(), Cpus::one(cpu));
            assert_eq!(last_cpu(tid()), Some(cpu));
            before.move_here().unwrap();
            assert_eq!(Cpus::of_this_thread().unwrap(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn there_are_not_so_many_cpus() {
        assert!(Cpus::one(8191).move_here().is_err());
        assert_eq!(Cpus::one(u32::MAX), Cpus([0; WORDS]));
        assert_eq!(last_cpu(u32::MAX), None);
    }

    #[test]
    fn a_thread_that_lost_its_cpu_to_another_has_the_same_time_as_that_one() {
        std::thread::spawn(|| {
            let Some(_) = exec_start_ns(tid()) else { return }; // the kernel may not say it
            Cpus::one(last_cpu(tid()).unwrap()).move_here().unwrap();
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let (sent, tids) = std::sync::mpsc::channel();
                for _ in 0..2 {
                    let (sent, is_over) = (sent.clone(), &is_over);
                    scope.spawn(move || {
                        sent.send(tid()).unwrap();
                        while !is_over.load(Relaxed) {}
                    });
                }
                let busy = [tids.recv().unwrap(), tids.recv().unwrap()];
                let mut counts = [0; 3];
                for _ in 0..100 {
                    std::thread::sleep(Duration::from_millis(3));
                    let own = exec_start_ns(tid());
                    counts[busy.iter().filter(|&&tid| exec_start_ns(tid) == own).count()] += 1;
                }
                is_over.store(true, Relaxed);
                // Other processes may have had the CPU, too.
                assert!(counts[1] > 0 && counts[2] == 0, "{counts:?}");
            });
        })
        .join()
        .unwrap();
        assert_eq!(exec_start_ns(u32::MAX), None);
    }

    #[test]
    fn what_a_thread_writes_is_counted() {
        std::thread::spawn(|| {
            let Some((bytes, calls)) = written(tid()) else { return }; // the kernel may not count
            std::fs::write("/dev/null", [0; 5000]).unwrap();
            assert_eq!(written(tid()), Some((bytes + 5000, calls + 1)));
        })
        .join()
        .unwrap();
    }
}
