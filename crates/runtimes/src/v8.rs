//! V8 (Node.js): which functions of JavaScript run.
//!
//! Interpreted, baseline and optimized functions alike have a native frame with a frame pointer,
//! below which lie the function and its context. So there is no chain: the native walk says where
//! frames are, and each function replaces the native frame of that number.
//!
//! The collector moves objects, also while it is interrupted: what it has moved leads to its new
//! place.

#[cfg(feature = "names")]
pub mod compiled;
mod heap;
mod names;
mod strings;

use crate::blocks::BlockMemory;
use crate::known::KnownKeys;
use crate::room::{Chain, End, Frame};
use heap::{Heap, Types};
use swipr_unwind::frame_runs::{FrameRun, NativeFrames};
use swipr_unwind::frames::EXACT;

/// Where this V8 keeps what is read, as it says itself (`v8dbg_*`): bytes from the start of each
/// structure, and types of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // V8's own names
pub struct V8Layout {
    /// From the frame pointer.
    pub frame_context: i64,
    pub frame_function: i64,
    /// The types of frames that V8's own functions have, a bit each.
    pub own_frames: u64,
    pub map: u64,
    pub map_type: u64,
    pub function_shared: u64,
    pub shared_name: u64,
    pub shared_script: u64,
    pub script_name: u64,
    pub script_source: u64,
    pub string_length: u64,
    pub string_text: u64,
    pub wide_string_text: u64,
    pub cons_first: u64,
    pub cons_second: u64,
    pub slice_parent: u64,
    pub slice_offset: u64,
    pub thin_actual: u64,
    /// In words behind the map: how many variables are in the context, and what follows.
    pub scope_locals: u64,
    pub scope_rest: u64,
    pub type_map: u16,
    /// The first and the last type of functions.
    pub types_function: (u16, u16),
    pub type_shared: u16,
    pub type_script: u16,
    pub type_scope: u16,
    /// Types below are those of strings.
    pub first_other_type: u16,
    pub one_byte: u16,
    pub representation: u16,
    pub cons: u16,
    pub sliced: u16,
    pub thin: u16,
    pub sequential: u16,
    /// `None`: it is not known.
    #[cfg(feature = "names")]
    pub compiled: Option<compiled::CompiledLayout>,
}

impl V8Layout {
    /// Whether the word is the type of one of the frames of V8's own functions.
    fn is_own_frame(&self, word: u64) -> bool {
        let kind = word >> 1;
        word & 1 == 0 && kind < 64 && self.own_frames >> kind & 1 == 1
    }
}

/// Marks the innermost function while it has no frame yet, or none any more.
const ENTERING: u8 = 1;
/// Blocks that are left for what functions are called.
const FOR_NAMES: usize = 64;
/// Functions that are read at once.
const GROUP: usize = 16;

/// Reads the functions of the thread, which stands still.
pub fn walk(
    layout: &V8Layout,
    native: NativeFrames<'_>,
    memory: &mut BlockMemory<'_>,
    known: KnownKeys<'_>,
    chain: &mut Chain,
) {
    chain.begin();
    let end = {
        let mut walk = V8Walk { heap: Heap { layout, memory, types: Types::default() }, known, chain };
        walk.run(native).unwrap_or_else(|end| end)
    };
    chain.finish(end);
}

struct V8Walk<'w, 'p, 'k> {
    heap: Heap<'w, 'p>,
    known: KnownKeys<'k>,
    chain: &'w mut Chain,
}

impl V8Walk<'_, '_, '_> {
    fn run(&mut self, native: NativeFrames<'_>) -> Result<End, End> {
        let mut end = if native.runs.are_cut() { End::Full } else { End::Root };
        for run in native.runs.kept() {
            match self.collect(native, *run) {
                Ok(()) => {}
                Err(End::Full) => {
                    end = End::Full;
                    break;
                }
                Err(other) => return Err(other),
            }
        }
        self.name_all().map(|is_cut| if is_cut { End::Full } else { end })
    }

    /// Keeps the functions of a run, each with the number of its native frame among the kept ones.
    fn collect(&mut self, native: NativeFrames<'_>, run: FrameRun) -> Result<(), End> {
        let layout = *self.heap.layout;
        let mut fp = run.frame_pointer;
        for number in run.first..run.first.saturating_add(run.length) {
            if self.heap.memory.left() < FOR_NAMES {
                return Err(End::Full);
            }
            let function_at = fp.wrapping_add_signed(layout.frame_function);
            let context = self.heap.word(fp.wrapping_add_signed(layout.frame_context))?;
            let function = self.heap.word(function_at)?;
            let word = native.word(number as usize);
            let is_innermost = number == 0;
            // Typed frames have a number there.
            let is_function = Heap::is_object(context) && Heap::is_object(function);
            // A frame that a signal interrupted further out may be half made.
            let is_sure = is_innermost || word.is_some_and(|word| word & EXACT == 0);
            // Below the frame of one of V8's own functions, which has called the innermost one.
            let is_below = is_innermost && layout.is_own_frame(context);
            let is_made = !is_innermost || native.sp <= function_at && !is_below;
            if let (true, true, Some(at)) = (is_sure, is_function || !is_made, native.kept(number as usize)) {
                let frame = match is_made {
                    true => Frame { key: function, ..Frame::default() },
                    false => Frame { mark: ENTERING, ..Frame::default() },
                };
                if !self.chain.push(Frame { offset: at as i32, ..frame }) {
                    return Err(End::Full);
                }
            }
            let caller = self.heap.word(fp.wrapping_add(8))?;
            if native.word(number as usize + 1).is_some_and(|word| word & !EXACT != caller) {
                return Err(End::Inconsistent);
            }
            fp = self.heap.word(fp)?;
        }
        Ok(())
    }

    /// Replaces the functions' addresses by what they are called; whether some were left out for
    /// want of room. A frame whose function cannot be told keeps its native name.
    fn name_all(&mut self) -> Result<bool, End> {
        let (all, mut kept, mut read_up_to) = (self.chain.frames().len(), 0, 0);
        for at in 0..all {
            if at == read_up_to {
                read_up_to = self.prefetch(at);
            }
            let Some(frame) = self.chain.get(at) else { break };
            let named = match (frame.mark, self.chain.met(frame.key)) {
                (ENTERING, _) => Some(frame),
                (_, Some(met)) => {
                    Some(met).filter(|met| met.key != 0 || met.mark == ENTERING && frame.offset == 0)
                }
                (_, None) => match self.name(frame.key) {
                    Err(End::Full) => {
                        self.chain.truncate(kept);
                        return Ok(true);
                    }
                    named => {
                        // The frame is of a function of V8's, and the innermost one has none yet.
                        let is_below = frame.offset == 0 && matches!(named, Ok(None));
                        let below = Frame { key: 0, mark: ENTERING, ..frame };
                        let named = if is_below { Some(below) } else { named.ok().flatten() };
                        self.chain.remember(frame.key, named.unwrap_or_default());
                        named
                    }
                },
            };
            if let Some(named) = named {
                self.chain.set(kept, Frame { offset: frame.offset, ..named });
                kept += 1;
            }
        }
        self.chain.truncate(kept);
        Ok(false)
    }

    /// Reads what is needed of the next functions from that frame on, step by step: of each step
    /// all at once. Returns up to which frame.
    fn prefetch(&mut self, from: usize) -> usize {
        let layout = *self.heap.layout;
        let (mut functions, mut count, mut up_to) = ([0; GROUP], 0, from);
        for frame in self.chain.frames().iter().skip(from) {
            let address = Heap::address(frame.key).unwrap_or(0);
            let is_known = functions.contains(&address) || self.chain.met(frame.key).is_some();
            if !is_known {
                let Some(place) = functions.get_mut(count) else { break };
                *place = address;
                count += 1;
            }
            up_to += 1;
        }
        self.heap.prefetch([functions]);
        let shared = self.heap.known_fields(functions, layout.function_shared);
        self.heap.prefetch([shared]);
        let scripts = self.heap.known_fields(shared, layout.shared_script);
        let scopes = self.heap.known_fields(shared, layout.shared_name);
        self.heap.prefetch([scripts, scopes]);
        let files = self.heap.known_fields(scripts, layout.script_name);
        let sources = self.heap.known_fields(scripts, layout.script_source);
        let names = scopes.map(|scope| self.known_name(scope).and_then(Heap::address).unwrap_or(0));
        self.heap.prefetch([files, sources, names]);
        up_to
    }
}

#[cfg(test)]
mod tests;
