//! The names in a directory. Not by `read_dir`: that would use the host's malloc.

use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::AsRawFd;

/// Calls `take` with each name in the directory, `.` and `..` too.
pub fn for_each_name(mut directory: &File, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    directory.rewind()?;
    let mut buffer = [0u8; 8192];
    loop {
        let (fd, bytes) = (directory.as_raw_fd(), buffer.len());
        // SAFETY: the kernel writes at most the buffer's length.
        match unsafe { libc::syscall(libc::SYS_getdents64, fd, buffer.as_mut_ptr(), bytes) } {
            0 => return Ok(()),
            length if length < 0 => return Err(io::Error::last_os_error()),
            length => names(buffer.get(..length as usize).unwrap_or(&[]), &mut take),
        }
    }
}

/// The names among getdents64's records: inode 8, offset 8, length 2, type 1, name.
fn names(mut records: &[u8], take: &mut impl FnMut(&[u8])) {
    while let Some(length) = records.get(16..18) {
        let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
        let Some(record) = records.get(..length).filter(|_| length > 19) else { return };
        take(record.get(19..).unwrap_or(&[]).split(|&byte| byte == 0).next().unwrap_or(&[]));
        records = records.get(length..).unwrap_or(&[]);
    }
}
