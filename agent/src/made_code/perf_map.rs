//! The process's perf map, `/tmp/perf-PID.map`, by the process id that the process itself sees.

use crate::platform::{process, stdio};
use std::path::PathBuf;
use swipr_debuginfo::jit::growing_file::Consumer;
use swipr_debuginfo::jit::{CodeMap, GrowingFile, perf_map};

/// More of a map is not read.
const MAX_BYTES: u64 = 512 << 20;

/// See the module's text.
#[derive(Debug)]
pub struct PerfMap {
    file: GrowingFile,
    code: CodeMap,
}

impl PerfMap {
    /// Not read yet.
    pub fn new(max_bytes: usize) -> PerfMap {
        let pid = process::pid();
        let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
        PerfMap { file: GrowingFile::new(&path, process::user(), MAX_BYTES), code: CodeMap::new(max_bytes) }
    }

    /// Reads on; what is new may have been there since `last_ns`. Whether anything was.
    pub fn look(&mut self, last_ns: u64) -> bool {
        let mut lines = Lines { code: &mut self.code, time_ns: last_ns };
        self.file.look(&mut lines, &stdio::unwritten)
    }

    /// What it says.
    pub fn code(&self) -> &CodeMap {
        &self.code
    }
}

struct Lines<'a> {
    code: &'a mut CodeMap,
    time_ns: u64,
}

impl Consumer for Lines<'_> {
    fn begin(&mut self) {
        self.code.clear();
        // It says again what has been there all the time.
        self.time_ns = 0;
    }

    fn read(&mut self, bytes: &[u8]) -> usize {
        perf_map::read(bytes, self.time_ns, self.code)
    }

    fn max_record(&self) -> usize {
        perf_map::MAX_LINE_BYTES
    }
}
