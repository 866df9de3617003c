//! Root directory, working directory and umask of the agent's own.
//!
//! A service that calls chroot(2) takes all threads with it that share these: the agent would find
//! neither `/proc` nor the files that have names. And one that calls umask(2) with 0 would make the
//! agent's files writable for everybody.

/// The calling thread, and threads that it starts from now on, no longer share them with the host.
/// Their working directory is the root: the host's may be on a file system that is to be unmounted.
/// Where a filter refuses the call (Docker's does), they stay shared.
pub fn unshare() {
    // SAFETY: a flag and a C string; both calls change the calling thread alone.
    unsafe {
        if libc::syscall(libc::SYS_unshare, libc::CLONE_FS) == 0 {
            libc::chdir(c"/".as_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env::current_dir;
    use std::path::Path;

    #[test]
    fn only_the_thread_that_asks_has_another_directory() {
        let before = current_dir().unwrap();
        assert_ne!(before, Path::new("/"));
        // SAFETY: a flag. The thread that asks has ended when the others begin.
        let refuses = || unsafe { libc::unshare(libc::CLONE_FS) } != 0;
        let is_refused = std::thread::spawn(refuses).join().unwrap();
        let own = std::thread::spawn(|| {
            unshare();
            std::thread::spawn(current_dir).join().unwrap().unwrap()
        });
        assert_eq!(own.join().unwrap(), if is_refused { before.as_path() } else { Path::new("/") });
        assert_eq!(current_dir().unwrap(), before);
    }
}
