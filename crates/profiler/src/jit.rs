//! Names, lines and unwind tables of JIT code: from perf maps, jitdump files, and the objects that
//! compilers show to debuggers.
//!
//! Writers refresh all this when their stacks have JIT code in them: a process without JIT code
//! costs nothing. Where several sources know an address, the one that knows times and lines wins.
//! The sampler gets the unwind tables through [`JitTables`] and never waits for files.

mod dump;
mod gdb;
mod perf_map;

use crate::mappings::{JitDump, JitTables, Mappings};
use dump::Dump;
use gdb::GdbJit;
use perf_map::PerfMap;
pub use perf_map::inherit;
use std::ops::Range;
use std::sync::Arc;
use swipr_os::process;
use swipr_symbols::jit::code_map::{CodeMap, Found};

/// How often files and lists are read, at most.
const REFRESH_NS: u64 = 20_000_000;
/// jitdump files of one process.
const MAX_DUMPS: usize = 16;

/// A function at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitFunction {
    /// As its compiler calls it.
    pub name: Arc<str>,
    /// Where it begins.
    pub start: u64,
    /// The source of the instruction, where that is known.
    pub file: Option<Arc<str>>,
    /// The line in it.
    pub line: Option<u32>,
    /// Monotonic times from when to when this holds.
    pub valid: Range<u64>,
}

/// What is known of the process's JIT code. One per agent, shared by writers.
#[derive(Debug)]
pub struct JitCode {
    perf_map: PerfMap,
    dumps: Vec<Dump>,
    objects: GdbJit,
    frames: Arc<JitTables>,
    max_bytes: usize,
    looked_ns: u64,
    generation: u64,
}

impl JitCode {
    /// Nothing is known yet; `max_bytes` of memory for each source.
    pub fn new(max_bytes: usize) -> JitCode {
        let frames = Arc::<JitTables>::default();
        JitCode {
            perf_map: PerfMap::new(max_bytes),
            dumps: vec![],
            objects: GdbJit::new(max_bytes),
            frames,
            max_bytes,
            looked_ns: 0,
            generation: 0,
        }
    }

    /// The unwind tables, for the sampler.
    pub fn frames(&self) -> Arc<JitTables> {
        self.frames.clone()
    }

    /// Reads what is new. Returns a generation, which changes when answers may have.
    pub fn refresh(&mut self, mappings: &Mappings) -> u64 {
        let now = process::monotonic_ns();
        if now.saturating_sub(self.looked_ns) < REFRESH_NS {
            return self.generation;
        }
        let last = std::mem::replace(&mut self.looked_ns, now);
        let mut is_new = self.perf_map.refresh(last);
        for marker in mappings.jit_dumps() {
            self.add_dump(marker);
        }
        for dump in &mut self.dumps {
            is_new |= dump.refresh(&self.frames);
        }
        is_new |= self.objects.refresh(mappings, last, now, &self.frames);
        self.generation += u64::from(is_new);
        self.generation
    }

    fn add_dump(&mut self, marker: &JitDump) {
        if self.dumps.len() < MAX_DUMPS && !self.dumps.iter().any(|dump| dump.is_of(marker)) {
            self.dumps.push(Dump::new(marker, self.max_bytes));
        }
    }

    /// The function at an address at a monotonic time.
    pub fn find(&self, address: u64, time_ns: u64) -> Option<JitFunction> {
        let maps =
            self.dumps.iter().map(Dump::code).chain([self.objects.code()]).chain(self.perf_map.codes());
        let Found { function, start, valid } =
            maps.into_iter().find_map(|map: &CodeMap| map.find(address, time_ns))?;
        let place = function.place(address - start);
        let (file, line) = place.map_or((None, None), |(file, line)| (Some(file.clone()), Some(line)));
        Some(JitFunction { name: function.name.clone(), start, file, line, valid })
    }

    /// Memory in use, about.
    pub fn bytes(&self) -> usize {
        let dumps = self.dumps.iter().map(|dump| dump.code().bytes()).sum::<usize>();
        dumps + self.objects.code().bytes() + self.perf_map.codes().map(CodeMap::bytes).sum::<usize>()
    }

    /// Functions that were refused because the memory was used up.
    pub fn refused(&self) -> u64 {
        let dumps = self.dumps.iter().map(|dump| dump.code().refused()).sum::<u64>();
        dumps + self.objects.code().refused() + self.perf_map.codes().map(CodeMap::refused).sum::<u64>()
    }

    /// Forgets everything; [`JitCode::refresh`] reads it again.
    pub fn clear(&mut self) {
        let frames = self.frames();
        frames.clear();
        *self = JitCode { frames, generation: self.generation + 1, ..JitCode::new(self.max_bytes) };
    }
}
