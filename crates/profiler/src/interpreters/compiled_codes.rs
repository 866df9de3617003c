//! Code that V8 has compiled: the functions that it inlined get frames of their own. Each code is
//! read when a stack first leads to it, and compared again before further use.

use super::functions::{Functions, InterpretedFrame};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::Arc;
use swipr_os::process;
use swipr_runtimes::blocks::Blocks;
use swipr_runtimes::code::Code;
use swipr_runtimes::known::KnownKeys;
use swipr_runtimes::room::Chain;
use swipr_runtimes::v8::V8Layout;
use swipr_runtimes::v8::compiled::Compiled;
use swipr_unwind::frames::EXACT;

/// Memory that they may take. More: all are forgotten, and read again.
const MAX_BYTES: usize = 4 << 20;
/// For so long code that was compared is not compared again: V8 does not make other code in its
/// place so soon.
const HOLDS_NS: u64 = 10_000_000;
/// An address at which no code could be read is tried again after so many stacks.
const PATIENCE: u32 = 1000;

/// What code is read with.
pub struct CodeSource<'s> {
    pub chain: &'s mut Chain,
    pub memory: (&'s mut Blocks, i32),
    pub known: KnownKeys<'s>,
    pub functions: &'s mut Functions,
    /// Functions that are new.
    pub learned: &'s mut Vec<u64>,
}

/// All by where they start.
#[derive(Debug, Default)]
pub struct CompiledCodes {
    by_start: BTreeMap<u64, Known>,
    bytes: usize,
    misses: FxHashSet<u64>,
    stacks: u32,
}

#[derive(Debug)]
struct Known {
    code: Compiled,
    /// When it was compared last.
    compared_ns: u64,
    /// The outer one, and the inlined ones; `None`: it is not written in JavaScript.
    functions: Box<[Option<Arc<Code>>]>,
}

impl Known {
    fn is_of(&self, outer: &Arc<Code>) -> bool {
        let own = self.functions.first().and_then(Option::as_ref);
        own.is_some_and(|function| Arc::ptr_eq(function, outer))
    }
}

impl CompiledCodes {
    /// The frames, and those of inlined functions before the one in which they are. `native` are
    /// the addresses of native frames; `is_built_in`: whether one is in V8's own code.
    pub fn with_inlined(
        &mut self,
        layout: &V8Layout,
        frames: &[InterpretedFrame],
        native: &[u64],
        is_built_in: impl Fn(u64) -> bool,
        source: &mut CodeSource<'_>,
    ) -> Box<[InterpretedFrame]> {
        self.stacks += 1;
        if self.stacks >= PATIENCE {
            (self.stacks, self.misses) = <_>::default();
        }
        let mut all = Vec::with_capacity(frames.len() + 8);
        for frame in frames {
            let word = usize::try_from(frame.offset).ok().and_then(|at| native.get(at)).copied();
            let pc = word.filter(|word| !is_built_in(word & !EXACT));
            match pc.and_then(|word| self.running(layout, frame, word, source)) {
                Some(running) => all.extend(running),
                None => all.push(frame.clone()),
            }
        }
        all.into()
    }

    /// The functions that run at that frame's address; `None`: nothing is known but the frame.
    fn running(
        &mut self,
        layout: &V8Layout,
        frame: &InterpretedFrame,
        word: u64,
        source: &mut CodeSource<'_>,
    ) -> Option<Vec<InterpretedFrame>> {
        let outer = frame.code.as_ref()?;
        let mut known = self.known(layout, word & !EXACT, source)?;
        if !known.is_of(outer) {
            // Other code is there by now, or the collector has moved the function.
            known = self.read(layout, word & !EXACT, source).filter(|known| known.is_of(outer))?;
        }
        let running = known.code.running(word & !EXACT, word & EXACT != 0);
        let running = running.into_iter().filter_map(|(function, place)| {
            let code = known.functions.get(function)?.clone()?;
            Some(InterpretedFrame { code: Some(code), place, is_entry: false, offset: frame.offset })
        });
        Some(running.collect::<Vec<_>>()).filter(|running| !running.is_empty())
    }

    fn known(&mut self, layout: &V8Layout, pc: u64, source: &mut CodeSource<'_>) -> Option<&Known> {
        let (now_ns, memory) = (process::monotonic_ns(), &mut source.memory);
        let last = self.by_start.range_mut(..=pc).next_back();
        let start = last.filter(|(_, known)| pc <= known.code.range.end).and_then(|(start, known)| {
            if now_ns.saturating_sub(known.compared_ns) >= HOLDS_NS {
                let is_same = known.code.is_unchanged(layout, (&mut *memory.0, memory.1));
                known.compared_ns = if is_same { now_ns } else { 0 };
                return is_same.then_some(*start);
            }
            Some(*start)
        });
        match start {
            Some(start) => self.by_start.get(&start),
            None => self.read(layout, pc, source),
        }
    }

    fn read(&mut self, layout: &V8Layout, pc: u64, source: &mut CodeSource<'_>) -> Option<&Known> {
        if self.misses.contains(&pc) {
            return None;
        }
        let memory = (&mut *source.memory.0, source.memory.1);
        let found = Compiled::read(layout, pc, memory, source.known, source.chain);
        let mut functions = || source.functions.take(source.chain, |key| source.learned.push(key));
        let Some((code, taken)) = found.and_then(|code| Some((code, functions()?))) else {
            self.misses.insert(pc);
            return None;
        };
        if self.bytes > MAX_BYTES {
            *self = CompiledCodes::default();
        }
        self.bytes += code.bytes();
        let functions = taken.frames.iter().map(|frame| frame.code.clone()).collect();
        let (start, end) = (code.range.start, code.range.end);
        let replaced: Vec<u64> = self.by_start.range(start..end).map(|(start, _)| *start).collect();
        for replaced in replaced.iter().filter_map(|start| self.by_start.remove(start)) {
            self.bytes -= replaced.code.bytes();
        }
        self.by_start.insert(start, Known { code, compared_ns: process::monotonic_ns(), functions });
        self.by_start.get(&start)
    }
}
