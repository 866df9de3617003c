//! Names of the Linux system calls that threads wait in. Not a full table: calls
//! that do not block are not in it.
//!
//! Numbers are from the kernel's `arch/x86/entry/syscalls/syscall_64.tbl` and
//! `include/uapi/asm-generic/unistd.h` (aarch64 uses the latter).

/// Name, number on x86-64, number on aarch64. Old calls are missing on aarch64.
const CALLS: &[(&str, Option<u32>, Option<u32>)] = &[
    ("read", Some(0), Some(63)),
    ("write", Some(1), Some(64)),
    ("open", Some(2), None),
    ("close", Some(3), Some(57)),
    ("poll", Some(7), None),
    ("ioctl", Some(16), Some(29)),
    ("pread64", Some(17), Some(67)),
    ("pwrite64", Some(18), Some(68)),
    ("readv", Some(19), Some(65)),
    ("writev", Some(20), Some(66)),
    ("select", Some(23), None),
    ("pause", Some(34), None),
    ("nanosleep", Some(35), Some(101)),
    ("sendfile", Some(40), Some(71)),
    ("connect", Some(42), Some(203)),
    ("accept", Some(43), Some(202)),
    ("sendto", Some(44), Some(206)),
    ("recvfrom", Some(45), Some(207)),
    ("sendmsg", Some(46), Some(211)),
    ("recvmsg", Some(47), Some(212)),
    ("wait4", Some(61), Some(260)),
    ("semop", Some(65), Some(193)),
    ("msgsnd", Some(69), Some(189)),
    ("msgrcv", Some(70), Some(188)),
    ("fcntl", Some(72), Some(25)),
    ("flock", Some(73), Some(32)),
    ("fsync", Some(74), Some(82)),
    ("fdatasync", Some(75), Some(83)),
    ("rt_sigtimedwait", Some(128), Some(137)),
    ("rt_sigsuspend", Some(130), Some(133)),
    ("sync", Some(162), Some(81)),
    ("futex", Some(202), Some(98)),
    ("io_getevents", Some(208), Some(4)),
    ("restart_syscall", Some(219), Some(128)),
    ("semtimedop", Some(220), Some(192)),
    ("clock_nanosleep", Some(230), Some(115)),
    ("epoll_wait", Some(232), None),
    ("mq_timedsend", Some(242), Some(182)),
    ("mq_timedreceive", Some(243), Some(183)),
    ("waitid", Some(247), Some(95)),
    ("openat", Some(257), Some(56)),
    ("pselect6", Some(270), Some(72)),
    ("ppoll", Some(271), Some(73)),
    ("splice", Some(275), Some(76)),
    ("tee", Some(276), Some(77)),
    ("sync_file_range", Some(277), Some(84)),
    ("vmsplice", Some(278), Some(75)),
    ("epoll_pwait", Some(281), Some(22)),
    ("fallocate", Some(285), Some(47)),
    ("accept4", Some(288), Some(242)),
    ("preadv", Some(295), Some(69)),
    ("pwritev", Some(296), Some(70)),
    ("recvmmsg", Some(299), Some(243)),
    ("syncfs", Some(306), Some(267)),
    ("sendmmsg", Some(307), Some(269)),
    ("getrandom", Some(318), Some(278)),
    ("io_pgetevents", Some(333), Some(292)),
    ("io_uring_enter", Some(426), Some(426)),
    ("epoll_pwait2", Some(441), Some(441)),
    ("futex_waitv", Some(449), Some(449)),
];

/// The name of a call on the architecture this is built for; `None` when the call is
/// not in the table, or the architecture has none.
pub fn name(number: u32) -> Option<&'static str> {
    name_on(std::env::consts::ARCH, number)
}

/// The name of a call on `x86_64` or `aarch64`.
pub fn name_on(architecture: &str, number: u32) -> Option<&'static str> {
    CALLS.iter().find_map(|&(name, x86_64, aarch64)| {
        let here = match architecture {
            "x86_64" => x86_64,
            "aarch64" => aarch64,
            _ => None,
        };
        (here == Some(number)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_each_architectures_numbers() {
        assert_eq!(name_on("x86_64", 202), Some("futex"));
        assert_eq!(name_on("aarch64", 98), Some("futex"));
        assert_eq!(name_on("x86_64", 98), None);
        assert_eq!(name_on("riscv64", 98), None);
    }

    #[test]
    fn no_number_stands_for_two_calls() {
        for architecture in ["x86_64", "aarch64"] {
            for (name, x86_64, aarch64) in CALLS {
                let number = if architecture == "x86_64" { x86_64 } else { aarch64 };
                if let Some(number) = number {
                    assert_eq!(name_on(architecture, *number), Some(*name));
                }
            }
        }
    }
}
