//! From addresses to named frames, with a cache per stack and per address.

use super::source_lines::SourceLines;
use super::{gil, interpreted};
use crate::jit::JitCode;
use crate::mappings::{Code, Mappings, Symbols};
use crate::stack::{CodeAddress, RawStack};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use swipr_formats::PtrCache;
use swipr_formats::model::{Frame, FrameKind, Function, Module, Stack};
use swipr_os::locks::lock;
use swipr_os::process::{self, EpochClock};
use swipr_server::recording::{ShownFrames, Symbolize};
use swipr_symbols::first_functions::is_first;
use swipr_symbols::symbolizer::{Detail, Lookup, Symbol, Symbolizer};
use swipr_unwind::walk::Stop;

/// Stacks and addresses that are cached. A full cache is cleared.
const MAX_STACKS: usize = 4096;
const MAX_FRAMES: usize = 65_536;
/// Memory of the mappings that cached stacks keep: a JIT compiler may change them fifty times a
/// second.
const MAX_MAPPINGS_BYTES: usize = 8 << 20;

/// Where names come from. Shared by all writers.
#[derive(Clone)]
pub struct NameSources {
    /// Of files.
    pub symbolizer: Arc<Mutex<Symbolizer>>,
    /// Of JIT code.
    pub jit_code: Arc<Mutex<JitCode>>,
    /// The mappings at the last sample, for later requests.
    pub latest: Arc<Mutex<Option<Arc<Mappings>>>>,
    /// For the times of samples.
    pub clock: EpochClock,
}

/// How long names of JIT code hold: its memory is reused.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Validity {
    /// The generation of [`JitCode`].
    generation: u64,
    times: Range<u64>,
}

/// Symbolizes the stacks of one writer.
pub struct StackSymbolizer {
    sources: NameSources,
    symbolize: Symbolize,
    shown: ShownFrames,
    /// What is left of the time that may be spent on lines and inlined functions.
    left: Duration,
    /// Addresses that were looked up without lines, because no time was left.
    without_lines: u64,
    /// Stacks without JIT code: by pointer, then by value.
    recent: PtrCache<RawStack, Arc<Stack>>,
    stacks: FxHashMap<Arc<RawStack>, Arc<Stack>>,
    /// Stacks with JIT code.
    made: FxHashMap<Arc<RawStack>, (Arc<Stack>, Validity)>,
    frames: FxHashMap<CodeAddress, Frame>,
    /// Modules of frames that were not symbolized, and where their names are found.
    new_modules: Vec<(Arc<Module>, Arc<Symbols>)>,
    /// For the lines of scripts.
    scripts: SourceLines,
    /// What `frames` holds for.
    mappings: Option<Arc<Mappings>>,
    /// The addresses of the mappings that cached stacks have, and their memory.
    kept_mappings: FxHashSet<u64>,
    kept_bytes: usize,
    /// The generation of [`JitCode`]; `None`: not refreshed since the batch began.
    generation: Option<u64>,
}

impl StackSymbolizer {
    /// `symbolize`: whose names are looked up; other frames have their module only. When this
    /// thread has run for `at_most` to find lines and inlined functions, further frames have what
    /// the symbol tables say.
    pub fn new(
        sources: NameSources,
        symbolize: Symbolize,
        shown: ShownFrames,
        at_most: Duration,
    ) -> StackSymbolizer {
        let (recent, stacks, made, frames, without_lines) = <_>::default();
        StackSymbolizer {
            sources,
            symbolize,
            shown,
            left: at_most,
            without_lines,
            recent,
            stacks,
            made,
            frames,
            new_modules: vec![],
            scripts: SourceLines::default(),
            mappings: None,
            kept_mappings: FxHashSet::default(),
            kept_bytes: 0,
            generation: None,
        }
    }

    /// Addresses whose lines were not looked up for want of time.
    pub fn without_lines(&self) -> u64 {
        self.without_lines
    }

    /// Sets the mappings to symbolize against.
    pub fn set_mappings(&mut self, mappings: &Arc<Mappings>) {
        let same_code = self.mappings.as_ref().is_some_and(|known| Arc::ptr_eq(known, mappings));
        if !same_code || self.frames.len() >= MAX_FRAMES {
            self.frames.clear();
            self.mappings = Some(mappings.clone());
            if self.kept_bytes > MAX_MAPPINGS_BYTES {
                self.forget_stacks();
            }
            if self.kept_mappings.insert(Arc::as_ptr(mappings).addr() as u64) {
                self.kept_bytes += mappings.bytes();
            }
            if let Some(mut latest) = lock(&self.sources.latest) {
                *latest = Some(mappings.clone());
            }
        }
    }

    /// The frame of an address; `None`: there are no mappings yet.
    pub fn known(&mut self, address: CodeAddress) -> Option<Frame> {
        let mappings = self.mappings.clone()?;
        if let Some(frame) = self.frame(&mappings, address) {
            return Some(frame);
        }
        let now_ns = self.sources.clock.monotonic(process::epoch_ns());
        Some(self.jit_frame(&mappings, address, now_ns, &mut None))
    }

    /// All code of the mappings.
    pub fn code(&self) -> impl Iterator<Item = &Code> {
        self.mappings.iter().flat_map(|mappings| mappings.all())
    }

    /// A batch of new samples begins: JIT code may have changed.
    pub fn begin_batch(&mut self) {
        self.generation = None;
    }

    /// The modules of frames that were not symbolized since the last call; some more than once.
    pub fn take_new_modules(&mut self) -> Vec<(Arc<Module>, Arc<Symbols>)> {
        std::mem::take(&mut self.new_modules)
    }

    /// Clears the caches if they have more than so many stacks.
    pub fn keep_at_most(&mut self, stacks: usize) {
        if self.recent.len().max(self.stacks.len()).max(self.made.len()) > stacks {
            self.forget_stacks();
        }
    }

    fn forget_stacks(&mut self) {
        (self.recent, self.stacks, self.made, self.frames) = <_>::default();
        (self.kept_mappings, self.kept_bytes) = <_>::default();
    }

    /// Symbolizes a stack that was sampled at that time since the epoch.
    pub fn of(&mut self, raw: &Arc<RawStack>, time_ns: u64) -> Arc<Stack> {
        if let Some(stack) = self.recent.get(raw) {
            return stack.clone();
        }
        let time_ns = self.sources.clock.monotonic(time_ns);
        if let Some(stack) = self.cached_jit(raw, time_ns) {
            return stack;
        }
        if let Some(stack) = self.stacks.get(raw) {
            return self.recent.get_or_make(raw, || stack.clone()).clone();
        }
        let (stack, validity) = self.named(raw, time_ns);
        if let Some(validity) = validity {
            // Formats tell stacks apart by pointer: an equal stack keeps its own.
            let same =
                self.made.get(raw).filter(|(known, _)| **known == stack).map(|(known, _)| known.clone());
            let stack = same.unwrap_or_else(|| Arc::new(stack));
            if self.made.len() >= MAX_STACKS {
                self.made.clear();
            }
            self.made.insert(raw.clone(), (stack.clone(), validity));
            return stack;
        }
        if self.stacks.len() >= MAX_STACKS {
            self.stacks.clear();
        }
        let stack = Arc::new(stack);
        self.stacks.insert(raw.clone(), stack.clone());
        self.recent.get_or_make(raw, || stack).clone()
    }

    /// A cached stack with JIT code, if its names still hold.
    fn cached_jit(&mut self, raw: &Arc<RawStack>, time_ns: u64) -> Option<Arc<Stack>> {
        if !self.made.contains_key(raw) {
            return None;
        }
        let generation = self.refresh(&raw.mappings);
        let (stack, validity) = self.made.get(raw)?;
        let holds = validity.generation == generation && validity.times.contains(&time_ns);
        holds.then(|| stack.clone())
    }

    /// Refreshes what is known of JIT code, once per batch, and returns its generation.
    fn refresh(&mut self, mappings: &Mappings) -> u64 {
        if let Some(generation) = self.generation {
            return generation;
        }
        let generation = lock(&self.sources.jit_code).map_or(0, |mut made| made.refresh(mappings));
        self.generation = Some(generation);
        generation
    }

    /// The stack, and how long its names hold if they are of JIT code.
    fn named(&mut self, raw: &RawStack, time_ns: u64) -> (Stack, Option<Validity>) {
        self.set_mappings(&raw.mappings);
        let mut validity = None;
        let mut frames: Vec<Frame> = Vec::with_capacity(raw.addresses().count() + 1);
        let mut is_complete = raw.stop == Stop::Root;
        for address in raw.addresses() {
            frames.push(match self.frame(&raw.mappings, address) {
                Some(frame) => frame,
                None => self.jit_frame(&raw.mappings, address, time_ns, &mut validity),
            });
            // A first function that has not called yet may still be on the stack of its caller.
            let function = frames.last().and_then(|frame| frame.functions.last());
            if !address.exact && function.is_some_and(|function| is_first(&function.name)) {
                is_complete = true;
                break;
            }
        }
        if self.shown == ShownFrames::Native {
            interpreted::mark_elided(raw, &mut frames);
        } else {
            interpreted::insert(raw, is_complete, &mut frames, &mut self.scripts);
            gil::insert(raw, &mut frames);
        }
        frames.extend(raw.remark().map(|remark| note(remark.into())));
        if !is_complete {
            frames.push(note(format!("[truncated: {}]", raw.stop.text())));
        }
        self.leave_shown(&mut frames);
        (Stack { frames }, validity)
    }

    /// Leaves the frames that are to be shown.
    pub fn leave_shown(&self, frames: &mut Vec<Frame>) {
        if self.shown == ShownFrames::Interpreter {
            Frame::leave_languages(frames);
        }
    }

    /// A frame of a file's code; `None`: the address is in no file's code.
    fn frame(&mut self, mappings: &Mappings, address: CodeAddress) -> Option<Frame> {
        if let Some(frame) = self.frames.get(&address) {
            return Some(frame.clone());
        }
        let code = mappings.find(address.inside()).filter(|code| code.symbols.is_some())?;
        let functions = match code.symbols.as_ref().filter(|_| self.symbolize == Symbolize::Now) {
            Some(symbols) => self.functions(symbols, address),
            None => Arc::from([]),
        };
        if self.symbolize == Symbolize::Lazy
            && let Some(symbols) = &code.symbols
            && self.new_modules.last().is_none_or(|(last, _)| !Arc::ptr_eq(last, &code.module))
        {
            self.new_modules.push((code.module.clone(), symbols.clone()));
        }
        let module = Some(code.module.clone());
        let frame = Frame { address: address.address, kind: FrameKind::Native, module, functions };
        self.frames.insert(address, frame.clone());
        Some(frame)
    }

    /// A frame of code without a file. Narrows `validity` to the time in which its name holds.
    fn jit_frame(
        &mut self,
        mappings: &Mappings,
        address: CodeAddress,
        time_ns: u64,
        validity: &mut Option<Validity>,
    ) -> Frame {
        let generation = self.refresh(mappings);
        let validity = validity.get_or_insert(Validity { generation, times: 0..u64::MAX });
        let found = lock(&self.sources.jit_code).and_then(|made| made.find(address.inside(), time_ns));
        if let Some(found) = &found {
            let times = &mut validity.times;
            *times = times.start.max(found.valid.start)..times.end.min(found.valid.end);
        } else {
            // Other code may have been there before.
            validity.times.start = validity.times.start.max(time_ns);
        }
        let code = mappings.find(address.inside());
        let is_made = code.is_some() || found.is_some();
        let function = found.filter(|_| self.symbolize != Symbolize::Never).map(|found| Function {
            name: found.name,
            mangled: None,
            offset: address.address.saturating_sub(found.start),
            file: found.file,
            line: found.line,
        });
        Frame {
            address: address.address,
            kind: if is_made { FrameKind::Jit } else { FrameKind::Native },
            module: code.map(|code| code.module.clone()),
            functions: function.into_iter().collect(),
        }
    }

    /// The functions at an address of an object, by its file.
    pub fn functions(&mut self, symbols: &Symbols, address: CodeAddress) -> Arc<[Function]> {
        let lookup = if address.exact { Lookup::Pc } else { Lookup::ReturnAddress };
        let in_file = address.address.wrapping_sub(symbols.bias);
        let detail = if self.left.is_zero() { Detail::Names } else { Detail::Lines };
        self.without_lines += u64::from(detail == Detail::Names);
        let Some(mut symbolizer) = lock(&self.sources.symbolizer) else { return Arc::from([]) };
        let started = process::thread_cpu();
        let found =
            symbolizer.resolve_with(&symbols.key, in_file, lookup, detail).iter().map(function).collect();
        self.left = self.left.saturating_sub(process::thread_cpu().saturating_sub(started));
        found
    }
}

/// Why the walk ended; [`Stop::Root`] also where the names show that it reached its thread's first
/// function.
pub fn stop_of(raw: &RawStack, stack: &Stack) -> Stop {
    match stack.frames.last() {
        Some(frame) if frame.kind != FrameKind::Note => Stop::Root,
        _ => raw.stop,
    }
}

fn function(symbol: &Symbol) -> Function {
    Function {
        name: symbol.name.clone(),
        mangled: symbol.mangled.clone(),
        offset: symbol.offset,
        file: symbol.file.clone(),
        line: symbol.line,
    }
}

/// A remark as a frame.
pub fn note(text: String) -> Frame {
    let function = Function { name: text.into(), mangled: None, offset: 0, file: None, line: None };
    Frame { address: 0, kind: FrameKind::Note, module: None, functions: Arc::from([function]) }
}

#[cfg(test)]
mod tests;
