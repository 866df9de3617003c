//! The process's mappings, from `/proc/self/maps` (proc(5)).

use std::fs::File;
use std::io::{self, Read};

/// What the kernel puts behind the path of a file that was deleted.
pub const DELETED: &str = " (deleted)";

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub low: u64,
    /// The address behind the last.
    pub high: u64,
    /// Can be executed.
    pub executable: bool,
    /// Can be written.
    pub writable: bool,
    /// Can be used in no way: addresses that are kept for later.
    pub reserved: bool,
    /// File offset of `low`.
    pub offset: u64,
    /// Device of the file, as in `st_dev` (stat(2)).
    pub device: u64,
    /// Inode of the file; 0 without one.
    pub inode: u64,
    /// Path or `[name]`; empty for anonymous memory.
    pub path: String,
}

impl Mapping {
    /// The path of the file that is mapped, which may have been deleted.
    pub fn file_path(&self) -> Option<&str> {
        let path = Some(&*self.path).filter(|path| self.inode != 0 && path.starts_with('/'))?;
        Some(path.strip_suffix(DELETED).unwrap_or(path))
    }

    /// The kernel's link to the file that is mapped; the kernel decides which processes may follow
    /// it.
    pub fn file_link(&self) -> String {
        format!("/proc/self/map_files/{:x}-{:x}", self.low, self.high)
    }
}

/// All mappings, sorted by address.
pub fn read() -> io::Result<Vec<Mapping>> {
    let mut text = Vec::with_capacity(64 << 10);
    let mut read = |path| File::open(path)?.take(u64::MAX).read_to_end(&mut text);
    // The first thread's, which are empty once it has ended: see [`process::open_own`].
    if read("/proc/self/maps")? == 0 {
        read("/proc/thread-self/maps")?;
    }
    let lines = text.split(|&byte| byte == b'\n');
    Ok(lines.filter_map(|line| parse(&String::from_utf8_lossy(line))).collect())
}

/// The mapping of sorted `mappings` that holds `address`.
pub fn find(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let at = mappings.partition_point(|mapping| mapping.low <= address).checked_sub(1)?;
    mappings.get(at).filter(|mapping| address < mapping.high)
}

/// Where code ends that JIT compilers may make in `mapping` and in the addresses that they have
/// kept for it behind that: V8 makes the next piece there, between two readings of the mappings.
pub fn end_of_code(mappings: &[Mapping], mapping: &Mapping) -> u64 {
    let is_kept = |next: &&Mapping| next.reserved && next.path.is_empty() && mapping.path.is_empty();
    find(mappings, mapping.high).filter(is_kept).map_or(mapping.high, |next| next.high)
}

/// Keeps anonymous memory executable that was so `before`, while it is mapped. JIT compilers take
/// execute permission from a page while they write into it, although other threads' stacks are in
/// that code.
pub fn keep_executable(mappings: &mut [Mapping], before: &[Mapping]) {
    for mapping in mappings.iter_mut().filter(|mapping| !mapping.executable && mapping.path.is_empty()) {
        let was = |at| find(before, at).is_some_and(|old| old.executable && old.path.is_empty());
        mapping.executable = was(mapping.low) && was(mapping.high - 1);
    }
}

fn parse(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (low, high) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?.as_bytes();
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let device = libc::makedev(number(major)?, number(minor)?);
    let inode = fields.next()?.parse().ok()?;
    let path = fields.next().unwrap_or("").trim_start();
    Some(Mapping {
        low: u64::from_str_radix(low, 16).ok()?,
        high: u64::from_str_radix(high, 16).ok()?,
        executable: permissions.get(2) == Some(&b'x'),
        writable: permissions.get(1) == Some(&b'w'),
        reserved: permissions.starts_with(b"---"),
        offset,
        device,
        inode,
        path: path.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_kind_are_read() {
        let file = parse("7f00-7fa0 r-xp 00001000 fd:00 1234     /usr/lib/with blank.so (deleted)").unwrap();
        assert_eq!((file.low, file.high, file.offset), (0x7f00, 0x7fa0, 0x1000));
        assert_eq!((file.executable, file.writable), (true, false));
        assert_eq!(file.path, "/usr/lib/with blank.so (deleted)");
        assert_eq!(file.file_path(), Some("/usr/lib/with blank.so"));
        assert_eq!((file.device, file.inode), (0xfd00, 1234));
        assert_eq!(file.file_link(), "/proc/self/map_files/7f00-7fa0");
        let anonymous = parse("7f00-7fa0 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!((anonymous.path.as_str(), anonymous.writable, anonymous.reserved), ("", true, false));
        assert!(parse("7fa0-7fb0 ---p 00000000 00:00 0 ").unwrap().reserved);
        assert_eq!(anonymous.file_path(), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn code_stays_code_while_it_is_being_written() {
        let mapping = |low, high, executable, path: &str| Mapping {
            low,
            high,
            executable,
            writable: !executable,
            reserved: false,
            offset: 0,
            device: 0,
            inode: 0,
            path: path.into(),
        };
        let before = [mapping(0x1000, 0x5000, true, ""), mapping(0x6000, 0x7000, true, "/lib/x.so")];
        let mut now = [
            mapping(0x1000, 0x2000, true, ""),
            mapping(0x2000, 0x3000, false, ""),
            mapping(0x4000, 0x6000, false, ""),
            mapping(0x6000, 0x7000, false, "/lib/x.so"),
        ];
        keep_executable(&mut now, &before);
        assert_eq!(now.map(|mapping| mapping.executable), [true, true, false, false]);
    }

    /// Regression: 5 % of the samples of short programs of Node.js ended at code in a new page.
    #[test]
    fn addresses_that_are_kept_for_code_belong_to_it() {
        let text = ["1000-2000 rwxp", "2000-9000 ---p", "9000-a000 r-xp", "a000-b000 rw-p", "b000-c000 ---p"];
        let mut maps: Vec<Mapping> =
            text.iter().map(|text| parse(&format!("{text} 00000000 00:00 0 ")).unwrap()).collect();
        assert_eq!([0, 2, 3].map(|at| end_of_code(&maps, &maps[at])), [0x9000, 0xa000, 0xc000]);
        maps[0].path = "/memfd:code".into();
        assert_eq!(end_of_code(&maps, &maps[0]), 0x2000);
    }

    #[test]
    fn our_own_code_and_stack_are_found() {
        let mappings = read().unwrap();
        let here = our_own_code_and_stack_are_found as *const () as u64;
        assert!(find(&mappings, here).unwrap().executable);
        let local = 0;
        assert!(find(&mappings, &raw const local as u64).unwrap().writable);
        assert_eq!(find(&mappings, 8), None);
    }
}
