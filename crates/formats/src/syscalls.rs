//! Names of the Linux system calls that threads wait in, also those that wait for a lock of the
//! kernel. Not a full table: calls that never wait are not in it.
//!
//! Numbers are from the kernel's `arch/x86/entry/syscalls/syscall_64.tbl` and
//! `include/uapi/asm-generic/unistd.h` (aarch64 uses the latter).

/// Name, number on x86-64, number on aarch64. Old calls are missing on aarch64.
const CALLS: &[(&str, Option<u32>, Option<u32>)] = &[
    ("read", Some(0), Some(63)),
    ("write", Some(1), Some(64)),
    ("open", Some(2), None),
    ("close", Some(3), Some(57)),
    ("stat", Some(4), None),
    ("fstat", Some(5), Some(80)),
    ("lstat", Some(6), None),
    ("poll", Some(7), None),
    ("mmap", Some(9), Some(222)),
    ("mprotect", Some(10), Some(226)),
    ("munmap", Some(11), Some(215)),
    ("brk", Some(12), Some(214)),
    ("ioctl", Some(16), Some(29)),
    ("pread64", Some(17), Some(67)),
    ("pwrite64", Some(18), Some(68)),
    ("readv", Some(19), Some(65)),
    ("writev", Some(20), Some(66)),
    ("select", Some(23), None),
    ("mremap", Some(25), Some(216)),
    ("msync", Some(26), Some(227)),
    ("madvise", Some(28), Some(233)),
    ("pause", Some(34), None),
    ("nanosleep", Some(35), Some(101)),
    ("sendfile", Some(40), Some(71)),
    ("connect", Some(42), Some(203)),
    ("accept", Some(43), Some(202)),
    ("sendto", Some(44), Some(206)),
    ("recvfrom", Some(45), Some(207)),
    ("sendmsg", Some(46), Some(211)),
    ("recvmsg", Some(47), Some(212)),
    ("shutdown", Some(48), Some(210)),
    ("setsockopt", Some(54), Some(208)),
    ("clone", Some(56), Some(220)),
    ("fork", Some(57), None),
    ("vfork", Some(58), None),
    ("execve", Some(59), Some(221)),
    ("exit", Some(60), Some(93)),
    ("wait4", Some(61), Some(260)),
    ("semop", Some(65), Some(193)),
    ("msgsnd", Some(69), Some(189)),
    ("msgrcv", Some(70), Some(188)),
    ("fcntl", Some(72), Some(25)),
    ("flock", Some(73), Some(32)),
    ("fsync", Some(74), Some(82)),
    ("fdatasync", Some(75), Some(83)),
    ("truncate", Some(76), Some(45)),
    ("ftruncate", Some(77), Some(46)),
    ("rename", Some(82), None),
    ("mkdir", Some(83), None),
    ("rmdir", Some(84), None),
    ("creat", Some(85), None),
    ("link", Some(86), None),
    ("unlink", Some(87), None),
    ("symlink", Some(88), None),
    ("rt_sigtimedwait", Some(128), Some(137)),
    ("rt_sigsuspend", Some(130), Some(133)),
    ("mlock", Some(149), Some(228)),
    ("munlock", Some(150), Some(229)),
    ("mlockall", Some(151), Some(230)),
    ("munlockall", Some(152), Some(231)),
    ("sync", Some(162), Some(81)),
    ("mount", Some(165), Some(40)),
    ("umount2", Some(166), Some(39)),
    ("futex", Some(202), Some(98)),
    ("io_getevents", Some(208), Some(4)),
    ("io_submit", Some(209), Some(2)),
    ("getdents64", Some(217), Some(61)),
    ("restart_syscall", Some(219), Some(128)),
    ("semtimedop", Some(220), Some(192)),
    ("clock_nanosleep", Some(230), Some(115)),
    ("exit_group", Some(231), Some(94)),
    ("epoll_wait", Some(232), None),
    ("mq_timedsend", Some(242), Some(182)),
    ("mq_timedreceive", Some(243), Some(183)),
    ("waitid", Some(247), Some(95)),
    ("openat", Some(257), Some(56)),
    ("mkdirat", Some(258), Some(34)),
    ("newfstatat", Some(262), Some(79)),
    ("unlinkat", Some(263), Some(35)),
    ("renameat", Some(264), Some(38)),
    ("linkat", Some(265), Some(37)),
    ("pselect6", Some(270), Some(72)),
    ("ppoll", Some(271), Some(73)),
    ("unshare", Some(272), Some(97)),
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
    ("setns", Some(308), Some(268)),
    ("process_vm_readv", Some(310), Some(270)),
    ("renameat2", Some(316), Some(276)),
    ("getrandom", Some(318), Some(278)),
    ("execveat", Some(322), Some(281)),
    ("membarrier", Some(324), Some(283)),
    ("copy_file_range", Some(326), Some(285)),
    ("preadv2", Some(327), Some(286)),
    ("pwritev2", Some(328), Some(287)),
    ("statx", Some(332), Some(291)),
    ("io_pgetevents", Some(333), Some(292)),
    ("io_uring_enter", Some(426), Some(426)),
    ("clone3", Some(435), Some(435)),
    ("openat2", Some(437), Some(437)),
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
        assert_eq!((name_on("x86_64", 9), name_on("aarch64", 222)), (Some("mmap"), Some("mmap")));
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
