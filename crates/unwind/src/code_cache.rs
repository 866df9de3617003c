//! Where HotSpot keeps the code of Java: what it compiles has no unwind tables, and no frame
//! pointers, but each piece of code says how large its frames are.
//!
//! A heap of code is cut into segments. For each, a byte says how many segments before it the piece
//! of code begins to which it belongs, or how many to go back at least; 255: it is free.

use crate::memory::Memory;
use crate::range::Range;
use crate::rule::Rule;

/// Heaps that there are at most.
pub const HEAPS: usize = 4;
/// Bytes of a piece's headers that are read at once.
const HEADERS: usize = 192;
/// Segments that are read at once, and how often on the way back to the start of a piece.
const SEGMENTS: usize = 64;
const MAX_WINDOWS: usize = 256;
const FREE: u8 = 255;
/// Rules that a walk remembers.
const REMEMBERED: usize = 24;

/// A heap of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeHeap {
    /// All addresses that it may have.
    pub memory: Range,
    /// Where the bytes of its segments are.
    pub segments: u64,
    /// The logarithm of a segment's size.
    pub shift: u32,
}

impl CodeHeap {
    /// No heap.
    pub const NONE: CodeHeap = CodeHeap { memory: Range { low: 0, high: 0 }, segments: 0, shift: 0 };
}

/// Where a piece of code says where some of its instructions begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeStart {
    /// Their address is in that field.
    Address(u64),
    /// The distance from the piece's start, four bytes, is in that field.
    Distance(u64),
}

/// The heaps, and fields of a piece of code in bytes from its start: `CodeBlob` of HotSpot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeCache {
    /// The heaps.
    pub heaps: [CodeHeap; HEAPS],
    /// The interpreter's code, whose frames have frame pointers.
    pub interpreter: Range,
    /// Bytes before a piece, at the start of its first segment.
    pub block_header: u64,
    /// The piece's bytes.
    pub size: u64,
    /// Where its name is.
    pub name: u64,
    /// Words of a frame, with the return address.
    pub frame_size: u64,
    /// From which distance on, behind the start of the instructions, the frame is made.
    pub frame_complete: u64,
    /// That distance has two bytes, not four.
    pub is_short: bool,
    /// Where its instructions begin.
    pub code: CodeStart,
    /// Where callees return to once the method is not valid any more; of method handles, too.
    pub deoptimized: [CodeStart; 2],
    /// Where it says how far above the stack pointer the address is to which they would have
    /// returned.
    pub original_pc: u64,
    /// To which address in the stub by which the JVM calls Java all methods return; 0: not known.
    pub call_stub: u64,
}

/// Rules of compiled code that one walk has met: a recursion has the same ones all the way. Not for
/// the next walk, when other code may be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompiledRules([(u64, Rule); REMEMBERED]);

impl Default for CompiledRules {
    fn default() -> CompiledRules {
        CompiledRules([(0, Rule::NONE); REMEMBERED])
    }
}

impl CompiledRules {
    /// See [`CodeCache::rule`].
    pub(crate) fn rule<M: Memory + ?Sized>(&mut self, cache: &CodeCache, memory: &mut M, pc: u64) -> Rule {
        let at = (pc ^ pc >> 5) as usize % REMEMBERED;
        match self.0.get(at) {
            Some((known, rule)) if *known == pc => return *rule,
            _ => {}
        }
        let rule = cache.rule(memory, pc);
        if let Some(entry) = self.0.get_mut(at) {
            *entry = (pc, rule);
        }
        rule
    }
}

/// A piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePiece {
    /// Where it begins.
    pub start: u64,
    /// Its first instruction.
    pub code: u64,
    /// Bytes of a frame with the return address; 0: its frames are not alike.
    pub frame: u64,
    /// The first instruction that has a whole frame.
    pub complete: u64,
    pub(crate) end: u64,
    /// See [`CodeCache::deoptimized`].
    deoptimized: [u64; 2],
}

impl CodeCache {
    /// Whether the interpreter's code is there.
    pub fn is_interpreter(&self, pc: u64) -> bool {
        self.interpreter.low <= pc && pc < self.interpreter.high
    }

    /// Whether it may have code at `pc`.
    pub fn may_have(&self, pc: u64) -> bool {
        self.heap(pc).is_some()
    }

    /// The rule of a frame of compiled code that has made a call: the frame pointer is saved below
    /// the return address.
    #[cold]
    #[inline(never)]
    pub(crate) fn rule<M: Memory + ?Sized>(&self, memory: &mut M, pc: u64) -> Rule {
        if self.is_interpreter(pc) || !self.may_have(pc) {
            return Rule::NONE;
        }
        let piece = self.find(memory, pc);
        let piece = piece.filter(|piece| piece.frame != 0 && !piece.deoptimized.contains(&(pc + 1)));
        piece.and_then(|piece| Rule::sp(piece.frame as i64, -16)).unwrap_or(Rule::NONE)
    }

    /// The address to which the callee of the frame would have returned, if the method has become
    /// invalid meanwhile: its methods are told by that.
    #[cold]
    #[inline(never)]
    pub(crate) fn original_pc<M: Memory + ?Sized>(
        &self,
        memory: &mut M,
        return_address: u64,
        sp: u64,
    ) -> Option<u64> {
        let piece = self.find(memory, return_address.checked_sub(1)?)?;
        if piece.frame == 0 || !piece.deoptimized.contains(&return_address) {
            return None;
        }
        let distance = memory.word(piece.start.checked_add(self.original_pc)?)? as u32;
        let pc = memory.word(sp.checked_add(distance.into())?)?;
        (piece.code < pc && pc < piece.end).then_some(pc)
    }

    /// Whether a piece is the way into a native method.
    pub(crate) fn is_native<M: Memory + ?Sized>(&self, memory: &mut M, piece: CodePiece) -> bool {
        let mut name = [0; 7];
        let text = piece.start.checked_add(self.name).and_then(|at| memory.word(at));
        text.is_some_and(|text| memory.code(text, &mut name)) && name == *b"native "
    }

    fn heap(&self, pc: u64) -> Option<&CodeHeap> {
        self.heaps.iter().find(|heap| heap.memory.low <= pc && pc < heap.memory.high)
    }

    /// The piece of code at `pc`. There is one copy of it, for all crates.
    pub fn piece(&self, memory: &mut dyn Memory, pc: u64) -> Option<CodePiece> {
        self.find(memory, pc)
    }

    /// [`CodeCache::piece`] for walks, which do not know the size of their memory.
    pub(crate) fn find<M: Memory + ?Sized>(&self, memory: &mut M, pc: u64) -> Option<CodePiece> {
        let heap = self.heap(pc)?;
        let mut segment = (pc - heap.memory.low) >> heap.shift;
        let mut window = [0; SEGMENTS];
        for _ in 0..MAX_WINDOWS {
            let first = segment.saturating_sub(SEGMENTS as u64 - 1);
            let known = window.get_mut(..=(segment - first) as usize)?;
            if !memory.code(heap.segments.checked_add(first)?, known) {
                return None;
            }
            while let Some(&back) = segment.checked_sub(first).and_then(|at| known.get(at as usize)) {
                match back {
                    0 => return self.at(memory, heap, segment, pc),
                    FREE => return None,
                    _ => segment = segment.checked_sub(back.into())?,
                }
            }
        }
        None
    }

    fn at<M: Memory + ?Sized>(
        &self,
        memory: &mut M,
        heap: &CodeHeap,
        segment: u64,
        pc: u64,
    ) -> Option<CodePiece> {
        let block = heap.memory.low.checked_add(segment.checked_shl(heap.shift)?)?;
        let start = block.checked_add(self.block_header)?;
        let mut headers = [0; HEADERS];
        if !memory.code(start, &mut headers) {
            return None;
        }
        let number =
            |at: u64| headers.get(at as usize..)?.first_chunk().map(|four| i32::from_le_bytes(*four));
        let address = |at: CodeStart| match at {
            CodeStart::Address(at) => Some(u64::from_le_bytes(*headers.get(at as usize..)?.first_chunk()?)),
            CodeStart::Distance(at) => start.checked_add_signed(number(at)?.into()),
        };
        let code = address(self.code)?;
        let [deoptimized, of_handles] = self.deoptimized.map(address);
        let complete = match self.is_short {
            false => number(self.frame_complete)?,
            true => i16::from_le_bytes(*headers.get(self.frame_complete as usize..)?.first_chunk()?).into(),
        };
        let size = u64::try_from(number(self.size)?).ok()?;
        // -1: it has none.
        let frame = 8 * u64::try_from(number(self.frame_size)?).unwrap_or(0);
        (pc.checked_sub(start)? < size && code.wrapping_sub(start) <= size).then_some(CodePiece {
            start,
            code,
            frame,
            complete: code.wrapping_add_signed(complete.into()),
            end: start.saturating_add(size),
            deoptimized: [deoptimized?, of_handles?],
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
