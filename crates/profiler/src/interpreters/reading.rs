//! An interpreter whose frames are read, and what was learned of it.

use super::compiled_codes::{CodeSource, CompiledCodes};
use super::functions::{Functions, Interpreted};
use super::java_codes::JavaCodes;
use super::publication::ReaderPublication;
use super::thread_states::ThreadStates;
use crate::counters::AgentCounters;
use rustc_hash::FxHashMap;
use std::alloc;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use swipr_runtimes::blocks::{BlockMemory, Blocks};
use swipr_runtimes::known::KnownKeys;
use swipr_runtimes::merge::RuntimeCode;
use swipr_runtimes::perl::PerlLayout;
use swipr_runtimes::php::{PhpGlobals, PhpLayout};
use swipr_runtimes::python::{ThreadKey, thread_name};
use swipr_runtimes::room::{End, Room};
use swipr_runtimes::runtime::Runtime;
use swipr_unwind::frame_runs::NativeFrames;
use swipr_unwind::frames::EXACT;
use swipr_unwind::memory::process_id;

/// Places for known functions and their fingerprints: at the beginning, and at most for these.
const PLACES: usize = 4096;
const MAX_FINGERPRINT_PLACES: usize = 65_536;
/// Blocks that are read of a blocked thread, whose walk holds nobody.
const BLOCKED_READS: usize = 8192;
/// An interpreter is given up if most chains of so many are wrong: its structures are others. Where
/// they are right, those of a thread that switches its stacks all the time are wrong, too.
const CHECKED_WALKS: u64 = 1000;
/// Thread pointers that are remembered.
const MAX_POINTERS: usize = 8192;

/// A zeroed value on the heap, which is not built on the stack first.
///
/// # Safety
/// Zeroed memory is a valid `T`, which is not of size 0.
unsafe fn zeroed<T>() -> Box<T> {
    let layout = alloc::Layout::new::<T>();
    // SAFETY: the size is not 0, says the caller.
    let memory = unsafe { alloc::alloc_zeroed(layout) };
    if memory.is_null() {
        alloc::handle_alloc_error(layout);
    }
    // SAFETY: allocated just now with the layout of `T`, and valid, says the caller.
    unsafe { Box::from_raw(memory.cast()) }
}

/// A runtime that is read.
#[derive(Debug)]
pub struct Reading {
    runtime: Runtime,
    pub code: Arc<RuntimeCode>,
    pub publication: ReaderPublication,
    /// Places of what is published, and how many fingerprints are among it.
    places: usize,
    fingerprints: usize,
    functions: Functions,
    compiled: CompiledCodes,
    java: JavaCodes,
    threads: ThreadStates,
    /// By thread id, from the handlers.
    pointers: FxHashMap<u32, u64>,
    /// For blocked threads.
    room: Option<Box<Room>>,
    blocks: Box<Blocks>,
    memory_file: i32,
    walks: u64,
    wrong: u64,
}

impl Reading {
    /// Publishes it to the handlers.
    pub fn new(runtime: Runtime, code: RuntimeCode, memory_file: i32) -> Reading {
        let mut publication = ReaderPublication::default();
        publication.publish(runtime, &code, PLACES);
        // SAFETY: zeroed memory is a valid room, and valid blocks.
        let (room, blocks) = unsafe { (zeroed(), zeroed()) };
        Reading {
            runtime,
            code: Arc::new(code),
            publication,
            places: PLACES,
            fingerprints: 0,
            functions: Functions::default(),
            compiled: CompiledCodes::default(),
            java: JavaCodes::default(),
            threads: ThreadStates::default(),
            pointers: FxHashMap::default(),
            room: Some(room),
            blocks,
            memory_file,
            walks: 0,
            wrong: 0,
        }
    }

    /// Whether a stack with the code at `pc` may have frames of it.
    pub fn may_run(&self, pc: u64) -> bool {
        self.code.needed().iter().any(|part| part.contains(&pc))
    }

    /// Whether its frames are native ones.
    pub fn is_native(&self) -> bool {
        self.runtime.is_native()
    }

    /// Keeps what a handler said.
    pub fn remember(&mut self, tid: u32, pointer: u64) {
        if self.pointers.len() >= MAX_POINTERS {
            self.pointers.clear();
        }
        self.pointers.insert(tid, pointer);
    }

    fn key(&self, tid: u32, pc: u64) -> ThreadKey {
        ThreadKey { tid, pointer: self.pointers.get(&tid).copied().unwrap_or(0), pc }
    }

    /// See [`ThreadStates::find`]. Of Perl it is found by the thread's control block.
    pub fn state_of(&mut self, tid: u32) -> Option<u64> {
        match &self.runtime {
            Runtime::Python(layout) => self.threads.find(self.key(tid, 0), layout, self.memory_file),
            Runtime::Ruby(layout) => self.threads.find(self.key(tid, 0), layout, self.memory_file),
            Runtime::Php(PhpLayout { globals: PhpGlobals::OfThreads(threads), .. }) => {
                self.threads.find(self.key(tid, 0), threads, self.memory_file)
            }
            Runtime::Perl(_) | Runtime::Php(_) | Runtime::V8(_) | Runtime::Java(_) => None,
        }
    }

    /// See [`super::Interpreters::thread_name`].
    pub fn thread_name(&mut self, tid: u32) -> Option<String> {
        let Runtime::Python(layout) = self.runtime else { return None };
        let state = self.state_of(tid)?;
        // Not by its control block: the next thread has the same one.
        let thread = ThreadKey { tid, pointer: 0, pc: 0 };
        let mut memory = BlockMemory::new(&mut self.blocks, self.memory_file);
        thread_name(&layout, state, thread, &mut memory, &mut self.room.as_mut()?.chain)
    }

    /// See [`super::Interpreters::read_blocked`].
    pub fn read_blocked(
        &mut self,
        tid: u32,
        native: NativeFrames<'_>,
        stack: impl FnOnce() -> Range<u64>,
        counters: &AgentCounters,
    ) -> Interpreted {
        let pc = native.word(0).unwrap_or(0) & !EXACT;
        let thread = self.key(tid, pc);
        let (mut state, mut is_unknown) = (0, false);
        match &self.runtime {
            Runtime::Perl(layout) if thread.pointer == 0 => {
                let mut memory = BlockMemory::new(&mut self.blocks, self.memory_file);
                state = layout.interpreter_by_stack(stack(), &mut memory);
            }
            Runtime::Perl(_) | Runtime::V8(_) | Runtime::Java(_) => {}
            Runtime::Php(PhpLayout { globals: PhpGlobals::OfProcess(..), .. }) => {}
            Runtime::Python(_) | Runtime::Ruby(_) | Runtime::Php(_) => {
                let found = self.state_of(tid);
                (state, is_unknown) = (found.unwrap_or(0), found.is_none());
            }
        }
        let Some(mut room) = self.room.take() else { return Interpreted::default() };
        let mut memory = BlockMemory::new(&mut self.blocks, self.memory_file);
        memory.allow(BLOCKED_READS);
        let known = self.publication.known().unwrap_or(KnownKeys::new(&[]));
        self.runtime.walk(state, (thread, native), &mut memory, known, &mut room.chain);
        room.state.store(state, Relaxed);
        let interpreted = self.take(&room, counters);
        self.room = Some(room);
        Interpreted { is_unknown: is_unknown && interpreted.frames.is_empty(), ..interpreted }
    }

    /// The frames in a room, and the functions that are new.
    pub fn take(&mut self, room: &Room, counters: &AgentCounters) -> Interpreted {
        let end = room.chain.end();
        self.walks += 1;
        match end {
            End::NoState => self.threads.forget(room.state.load(Relaxed)),
            End::Unreadable | End::Inconsistent => self.wrong += 1,
            End::NotAsked | End::Root | End::Full | End::NoPages | End::Moving => {}
        }
        let mut learned = vec![];
        let taken = self.functions.take(&room.chain, |key| learned.push(key));
        if !learned.is_empty() {
            self.learn(&learned);
        }
        // A handler may have left out what was known, and is forgotten since.
        counters.interpreted(if taken.is_some() { end } else { End::Unreadable });
        taken.unwrap_or_default()
    }

    /// The same frames, and those of compiled code: functions that V8's compilers have inlined, and
    /// all methods of Java. `words` are the native frames.
    pub fn with_compiled<W: Iterator<Item = u64>>(
        &mut self,
        interpreted: Interpreted,
        words: impl Fn() -> W,
    ) -> Interpreted {
        let Some(room) = &mut self.room else { return interpreted };
        let mut learned = vec![];
        let mut source = CodeSource {
            chain: &mut room.chain,
            memory: (&mut self.blocks, self.memory_file),
            known: self.publication.known().unwrap_or(KnownKeys::new(&[])),
            functions: &mut self.functions,
            learned: &mut learned,
        };
        let native = || words().collect::<Vec<u64>>();
        let frames = match &self.runtime {
            Runtime::V8(layout) if layout.compiled.is_some() && !interpreted.frames.is_empty() => {
                let built_in = |pc: u64| self.code.object.contains(&pc);
                let frames = &interpreted.frames;
                self.compiled.with_inlined(layout, frames, &native(), built_in, &mut source)
            }
            Runtime::Java(layout) => {
                self.java.with_compiled(layout, &interpreted.frames, &native(), &mut source)
            }
            _ => return interpreted,
        };
        if !learned.is_empty() {
            self.learn(&learned);
        }
        Interpreted { frames, ..interpreted }
    }

    /// The same of a room that the handler of that thread has left: it stood still, so handlers may
    /// recognise its functions by what it has remembered, if it is the process's first.
    pub fn take_answer(&mut self, tid: u32, room: &Room, counters: &AgentCounters) -> Interpreted {
        let interpreted = self.take(room, counters);
        let is_first = tid as i32 == process_id();
        let is_perl = matches!(self.runtime, Runtime::Perl(PerlLayout { is_program: true, .. }));
        if is_first && is_perl && !interpreted.frames.is_empty() {
            for (fingerprint, key) in room.chain.remembered() {
                let known = self.publication.known().filter(|known| known.key_of(fingerprint) != Some(key));
                if known.is_some_and(|known| known.has(key) && known.add_fingerprint(fingerprint, key)) {
                    self.fingerprints += 1;
                    self.make_room();
                }
            }
        }
        interpreted
    }

    /// Tells the handlers which functions are known.
    fn learn(&mut self, keys: &[u64]) {
        if self.functions.are_too_large() {
            self.functions = Functions::default();
            self.compiled = CompiledCodes::default();
            self.java = JavaCodes::default();
            self.publish(PLACES);
        } else if let Some(known) = self.publication.known() {
            keys.iter().for_each(|&key| _ = known.add(key));
            self.make_room();
        }
    }

    /// Has half of the places free again. Fingerprints are learned again.
    fn make_room(&mut self) {
        if self.functions.len() + self.fingerprints > self.places / 2 {
            let is_small = self.places < MAX_FINGERPRINT_PLACES || self.functions.len() > self.places / 4;
            self.publish(if is_small { 2 * self.places } else { self.places });
        }
    }

    fn publish(&mut self, places: usize) {
        (self.places, self.fingerprints) = (places, 0);
        self.publication.publish(self.runtime, &self.code, places);
        if let Some(known) = self.publication.known() {
            self.functions.keys().for_each(|key| _ = known.add(key));
        }
    }

    /// Whether most of the last chains were wrong.
    pub fn is_mostly_wrong(&mut self) -> bool {
        let is_mostly_wrong = self.wrong > CHECKED_WALKS / 2;
        if self.walks >= CHECKED_WALKS {
            (self.walks, self.wrong) = (0, 0);
        }
        is_mostly_wrong
    }
}
