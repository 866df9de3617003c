//! HotSpot (OpenJDK): which methods of Java run.
//!
//! Interpreted methods have a native frame with a frame pointer, below which lie the method and the
//! next bytecode. JavaCode ones have a native frame whose return address says which methods run
//! there ([`compiled`]). So there is no chain: each method replaces the native frame of a number.
//! What describes methods does not move.

#[cfg(feature = "names")]
pub mod compiled;
mod methods;

use crate::blocks::BlockMemory;
use crate::known::KnownKeys;
use crate::room::{Chain, End, Frame};
use swipr_unwind::code_cache::{CodeCache, CodePiece};
use swipr_unwind::frame_runs::{FrameRun, NativeFrames};
use swipr_unwind::frames::EXACT;
use swipr_unwind::memory::Memory;

/// Where this HotSpot keeps what is read, as it says itself (`gHotSpotVMStructs`): bytes from the
/// start of each structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // HotSpot's own names
pub struct JavaLayout {
    pub code_cache: CodeCache,
    pub code_method: u64,
    /// Below the frame pointer of the interpreter's frames: the bytecode that runs, as of the last
    /// call from there.
    pub frame_bytecode: u64,
    pub method_const: u64,
    pub const_constants: u64,
    /// The size of the structure, behind which the bytecodes are.
    pub const_bytes: u64,
    /// How many words it has with all that follows.
    pub const_size: u64,
    pub const_code_size: u64,
    pub const_name: u64,
    pub const_flags: u64,
    /// The size of the structure, behind which the constants are.
    pub pool_bytes: u64,
    pub pool_length: u64,
    pub pool_holder: u64,
    pub source_file: SourceFile,
    pub klass_name: u64,
    pub symbol_length: u64,
    pub symbol_text: u64,
    /// Numbers are written without bytes that are 0: from 20 on.
    pub is_without_zero: bool,
    #[cfg(feature = "names")]
    pub compiled: Option<compiled::JavaCodeLayout>,
}

/// Where the number of the constant is that names the source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceFile {
    /// In the constant pool.
    OfPool(u64),
    /// In the class.
    OfClass(u64),
}

/// Below the frame pointer of the interpreter's frames: the method.
const METHOD: u64 = 3 * 8;
/// Bits of [`Frame::offset`] for the number of the native frame. Those above are the bytecode's
/// number plus 1; 0: it is not known.
const NUMBER_BITS: u32 = 11;
/// Blocks that one walk may read, sixteen at once, and those that are left for what a method is
/// called.
const MAX_READS: usize = 1024;
const FOR_NAMES: usize = 16;
/// Methods that are read at once, and bytes of each structure.
const GROUP: usize = 16;
const PREFETCHED: usize = 64;

/// The number of the native frame, and of the bytecode, of what [`walk`] left as an offset.
pub fn place(offset: i32) -> (i32, Option<u32>) {
    let bytecode = (offset as u32 >> NUMBER_BITS).checked_sub(1);
    (offset & ((1 << NUMBER_BITS) - 1), bytecode)
}

/// What a piece of code is called that is a compiled method, or calls one that is written in C.
/// Others are parts of the machine.
const METHODS: [&[u8]; 2] = [b"nmethod", b"native nmethod"];

impl JavaLayout {
    /// The method of a piece of code; `None`: it is a part of the machine.
    fn method_of(&self, piece: CodePiece, memory: &mut BlockMemory<'_>) -> Option<u64> {
        let name = memory.word(piece.start.checked_add(self.code_cache.name)?)?;
        let mut kind = [0; 16];
        let length = memory.text(name, &mut kind)?;
        let is_method = METHODS.contains(&kind.get(..length)?);
        memory.word(piece.start.checked_add(self.code_method)?).filter(|_| is_method)
    }
}

impl Memory for BlockMemory<'_> {
    fn word(&mut self, address: u64) -> Option<u64> {
        BlockMemory::word(self, address)
    }

    fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        self.copy(address, buffer).is_some()
    }
}

/// Reads the interpreted methods of the thread, which stands still, and the compiled one that runs.
pub fn walk(
    layout: &JavaLayout,
    native: NativeFrames<'_>,
    memory: &mut BlockMemory<'_>,
    known: KnownKeys<'_>,
    chain: &mut Chain,
) {
    chain.begin();
    memory.allow(MAX_READS);
    let mut walk = JavaWalk { layout, memory, known, chain };
    let end = walk.run(native);
    chain.finish(end);
}

struct JavaWalk<'w, 'p, 'k> {
    layout: &'w JavaLayout,
    memory: &'w mut BlockMemory<'p>,
    known: KnownKeys<'k>,
    chain: &'w mut Chain,
}

impl JavaWalk<'_, '_, '_> {
    fn word(&mut self, address: u64) -> Result<u64, End> {
        self.memory.word(address).ok_or(End::Unreadable)
    }

    fn run(&mut self, native: NativeFrames<'_>) -> End {
        let mut end = if native.runs.are_cut() { End::Full } else { End::Root };
        self.collect_running(native);
        for run in native.runs.kept() {
            if !self.collect(native, *run) {
                end = End::Full;
                break;
            }
        }
        if self.name_all() { End::Full } else { end }
    }

    /// Keeps the compiled method that runs: other code may be in its place once the sampler looks.
    fn collect_running(&mut self, native: NativeFrames<'_>) {
        let pc = native.word(0).filter(|word| word & EXACT != 0).map(|word| word & !EXACT);
        let cache = self.layout.code_cache;
        let piece = pc.filter(|&pc| !cache.is_interpreter(pc)).and_then(|pc| cache.piece(self.memory, pc));
        if let Some(method) = piece.and_then(|piece| self.layout.method_of(piece, self.memory)) {
            self.chain.push(Frame { key: method, ..Frame::default() });
        }
    }

    /// Keeps the interpreted methods of a run by their addresses; `false`: there is no room for
    /// more.
    fn collect(&mut self, native: NativeFrames<'_>, run: FrameRun) -> bool {
        let mut fp = run.frame_pointer;
        for number in run.first..run.first.saturating_add(run.length) {
            let word = native.word(number as usize);
            let is_interpreter =
                word.is_some_and(|word| self.layout.code_cache.is_interpreter(word & !EXACT));
            let method_at = fp.wrapping_sub(METHOD);
            // A method that is being entered has not all of its frame yet.
            let is_made = number != 0 || native.sp <= method_at;
            // What is no interpreter's frame may have anything there.
            let method = self.memory.word(method_at).filter(|_| is_interpreter && is_made);
            let bytecode = self.memory.word(fp.wrapping_sub(self.layout.frame_bytecode));
            if let (Some(method), Some(bytecode), Some(at)) = (method, bytecode, native.kept(number as usize))
            {
                // While it runs, the bytecode is in a register.
                let is_known = word.is_some_and(|word| word & EXACT == 0);
                let place = if is_known { self.bytecode(method, bytecode) } else { 0 };
                let offset = (at as u32 | place << NUMBER_BITS) as i32;
                if !self.chain.push(Frame { key: method, offset, ..Frame::default() }) {
                    return false;
                }
            }
            let Some(next) = self.memory.word(fp) else { break };
            fp = next;
        }
        true
    }

    /// The number of the bytecode at that address, plus 1; 0: it is not in the method.
    fn bytecode(&mut self, method: u64, address: u64) -> u32 {
        let Ok(described) = self.pointer(method, self.layout.method_const) else { return 0 };
        let number = address.wrapping_sub(described.wrapping_add(self.layout.const_bytes));
        // A method has fewer bytes than that.
        if number < 1 << 16 { number as u32 + 1 } else { 0 }
    }

    /// Replaces the methods' addresses by what they are called; whether some were left out for want
    /// of room. Where there is something else, the native frame was none of the interpreter's.
    fn name_all(&mut self) -> bool {
        let (all, mut kept, mut read_up_to) = (self.chain.frames().len(), 0, 0);
        for at in 0..all {
            if at == read_up_to {
                read_up_to = self.prefetch(at);
            }
            let Some(frame) = self.chain.get(at) else { break };
            let named = match self.chain.met(frame.key) {
                Some(met) => Ok(Some(met)),
                None if self.memory.left() < FOR_NAMES => Err(End::Full),
                None => self.method(frame.key),
            };
            let Ok(named) = named else {
                self.chain.truncate(kept);
                return true;
            };
            if let Some(named) = named {
                self.chain.remember(frame.key, named);
                self.chain.set(kept, Frame { offset: frame.offset, ..named });
                kept += 1;
            }
        }
        self.chain.truncate(kept);
        false
    }

    /// Reads what is needed of the next methods from that frame on, step by step: of each step all
    /// at once. Returns up to which frame.
    fn prefetch(&mut self, from: usize) -> usize {
        let layout = *self.layout;
        let (mut methods, mut count, mut up_to) = ([0; GROUP], 0, from);
        for frame in self.chain.frames().iter().skip(from) {
            if !methods.contains(&frame.key) && self.chain.met(frame.key).is_none() {
                let Some(place) = methods.get_mut(count) else { break };
                *place = frame.key;
                count += 1;
            }
            up_to += 1;
        }
        let mut structures = methods;
        for field in [layout.method_const, layout.const_constants, layout.pool_holder, layout.klass_name] {
            self.memory.prefetch(structures.into_iter().filter(|&at| at != 0), PREFETCHED);
            structures = structures.map(|at| self.memory.known_word(at.wrapping_add(field)).unwrap_or(0));
        }
        self.memory.prefetch(structures.into_iter().filter(|&at| at != 0), PREFETCHED);
        up_to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Blocks;
    use core::sync::atomic::AtomicU64;
    use swipr_unwind::frame_runs::FrameRuns;
    use swipr_unwind::frames::{CAPACITY, Frames, Storage};

    /// Regression: where a stub had left another value in the frame pointer's register, the stack
    /// had no interpreted method at all.
    #[test]
    fn what_is_no_frame_of_the_interpreter_hides_no_others() {
        const METHOD_AT: u64 = 0x5000;
        let (stub, interpreter) = (0x100, 0x1000);
        // SAFETY: zeroed memory is valid for it: numbers, and enumerations that begin with 0.
        let mut layout: Box<JavaLayout> = unsafe { Box::new_zeroed().assume_init() };
        // SAFETY: zeroed memory is valid for all three.
        let (mut blocks, mut chain, mut runs): (Box<Blocks>, Box<Chain>, Box<FrameRuns>) = unsafe {
            (
                Box::new_zeroed().assume_init(),
                Box::new_zeroed().assume_init(),
                Box::new_zeroed().assume_init(),
            )
        };
        layout.code_cache.interpreter.low = stub;
        layout.code_cache.interpreter.high = interpreter + 1;
        let storage: Storage = [const { AtomicU64::new(0) }; CAPACITY];
        let mut frames = Frames::new(&storage);
        [stub, interpreter].into_iter().for_each(|word| frames.push(word));
        let words = [0, METHOD_AT, 0, 0, 0];
        runs.note(0, 8);
        runs.note(3, 8);
        runs.note(1, &raw const words[4] as u64);
        let native = NativeFrames { storage: &storage, total: frames.total(), runs: &runs, sp: 0 };
        let mut memory = BlockMemory::new(&mut blocks, -1);
        let known = KnownKeys::new(&[]);
        let mut walk = JavaWalk { layout: &layout, memory: &mut memory, known, chain: &mut chain };
        assert!(native.runs.kept().iter().all(|run| walk.collect(native, *run)));
        let methods: Vec<u64> = walk.chain.frames().iter().map(|frame| frame.key).collect();
        assert_eq!(methods, [METHOD_AT]);
    }
}
