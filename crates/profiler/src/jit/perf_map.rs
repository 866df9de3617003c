//! The process's perf map, `/tmp/perf-PID.map`, by the process id that the process itself sees. The
//! child of a fork has its parent's code: the parent's map of that time holds for the child, unless
//! the child's own map says something else.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use swipr_os::{process, stdio};
use swipr_symbols::jit::tailed_file::Consumer;
use swipr_symbols::jit::{CodeMap, TailedFile, perf_map};

/// More of a map is not read.
const MAX_BYTES: u64 = 512 << 20;

/// The nearest ancestor that had a map when it forked, and the length of that map. Written in the
/// child's fork handler, before there are other threads: that is before every read.
static PARENT: AtomicU32 = AtomicU32::new(0);
static PARENT_BYTES: AtomicU64 = AtomicU64::new(0);

/// This process is a child of `parent`, which has forked just now. For the fork handler: allocates
/// nothing.
pub fn inherit(parent: u32) {
    let mut path = [0_u8; 32];
    // One byte stays for the end of the string.
    let is_written =
        path.get_mut(..31).is_some_and(|mut room| write!(room, "/tmp/perf-{parent}.map").is_ok());
    let bytes = if is_written { process::file_bytes(&path) } else { None };
    if let Some(bytes) = bytes.filter(|&bytes| bytes > 0) {
        PARENT_BYTES.store(bytes, Relaxed);
        PARENT.store(parent, Relaxed);
    }
}

/// The process's own map and the inherited one.
#[derive(Debug)]
pub struct PerfMap {
    own: OneMap,
    inherited: Option<OneMap>,
}

#[derive(Debug)]
struct OneMap {
    file: TailedFile,
    code: CodeMap,
}

impl PerfMap {
    /// Not read yet.
    pub fn new(max_bytes: usize) -> PerfMap {
        let inherited = match PARENT.load(Relaxed) {
            0 => None,
            parent => Some(OneMap::new(parent, PARENT_BYTES.load(Relaxed).min(MAX_BYTES), max_bytes)),
        };
        PerfMap { own: OneMap::new(process::pid(), MAX_BYTES, max_bytes), inherited }
    }

    /// Reads what was added to the maps. New code may have been there since `last_ns`. Returns
    /// whether anything was new.
    pub fn refresh(&mut self, last_ns: u64) -> bool {
        let inherited = self.inherited.as_mut().is_some_and(|map| map.refresh(0));
        self.own.refresh(last_ns) | inherited
    }

    /// The functions of the maps, the process's own first.
    pub fn codes(&self) -> impl Iterator<Item = &CodeMap> {
        [Some(&self.own), self.inherited.as_ref()].into_iter().flatten().map(|map| &map.code)
    }
}

impl OneMap {
    fn new(pid: u32, file_bytes: u64, max_bytes: usize) -> OneMap {
        let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
        OneMap { file: TailedFile::new(&path, process::user(), file_bytes), code: CodeMap::new(max_bytes) }
    }

    fn refresh(&mut self, last_ns: u64) -> bool {
        let mut lines = Lines { code: &mut self.code, time_ns: last_ns };
        self.file.refresh(&mut lines, &stdio::unwritten)
    }
}

struct Lines<'a> {
    code: &'a mut CodeMap,
    time_ns: u64,
}

impl Consumer for Lines<'_> {
    fn begin(&mut self) {
        self.code.clear();
        // The file was written again: its functions may have been there all the time.
        self.time_ns = 0;
    }

    fn read(&mut self, bytes: &[u8]) -> usize {
        perf_map::read(bytes, self.time_ns, self.code)
    }

    fn max_record(&self) -> usize {
        perf_map::MAX_LINE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: workers of a server that forks had no names for JIT code from before the fork.
    #[test]
    fn a_child_has_what_its_parents_map_said_when_it_forked() {
        // No process has such an id.
        let parent = 0x7000_0000 | process::pid();
        let path = format!("/tmp/perf-{parent}.map");
        let own = format!("/tmp/perf-{}.map", process::pid());
        std::fs::write(&path, "5000 100 before\n6000 100 old\n").unwrap();
        inherit(parent);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("7000 100 later\n");
        std::fs::write(&path, text).unwrap();
        std::fs::write(&own, "6000 100 own\n").unwrap();
        let mut map = PerfMap::new(1 << 20);
        assert!(map.refresh(0));
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&own).unwrap();
        PARENT.store(0, Relaxed);
        let name =
            |address| map.codes().find_map(|code| Some(code.find(address, 0)?.function.name.to_string()));
        let names = [0x5010, 0x6010, 0x7010].map(name);
        assert_eq!(names, [Some("before".into()), Some("own".into()), None]);
    }
}
