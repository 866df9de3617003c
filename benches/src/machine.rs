//! What the figures were measured on, and the scheduling that they were measured with.

use std::ffi::CStr;
use std::fs::read_to_string;

/// One line: processor, cores, kernel, C library, load.
pub fn description() -> String {
    let cpu = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|pair| pair.1));
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split(' ').take(3).collect();
    // SAFETY: returns a static string.
    let libc = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    format!(
        "{}, {} cores, Linux {}, glibc {}, load {}",
        model.unwrap_or(std::env::consts::ARCH),
        allowed_cpus().len(),
        kernel.trim(),
        libc.to_string_lossy(),
        load.join(" "),
    )
}

/// The processors that the calling thread may run on.
pub fn allowed_cpus() -> Vec<usize> {
    // SAFETY: plain data, and the call only writes it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return vec![0];
        }
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    }
}

/// Keeps the calling thread on one processor.
pub fn pin(cpu: usize) {
    // SAFETY: plain data; the number comes from `allowed_cpus`.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Asks for the calling thread to run before all ordinary ones; `false`: it may not.
pub fn run_first() -> bool {
    let parameters = libc::sched_param { sched_priority: 10 };
    // SAFETY: the parameters are valid during the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0 }
}
