//! Ruby (CRuby): which functions run, and what they say.
//!
//! A thread's execution context has a stack of values, at whose other end lie the control frames,
//! the innermost one lowest. A native call of `rb_vm_exec` runs a whole segment of frames, up to
//! one that is marked as its last. Functions that are written in C have a frame, too, and run
//! within the segment of their caller.

mod classes;
mod functions;
mod objects;
mod rows;

use crate::blocks::BlockMemory;
use crate::known::KnownKeys;
use crate::python::ThreadKey;
use crate::room::{Chain, End, Frame};
use core::ops::Range;
pub use rows::ROWS;

/// Frames that are followed.
const MAX_STEPS: usize = 16 * 1024;
/// Larger stacks of values are damaged ones, in words.
const MAX_STACK: u64 = 1 << 32;
/// What the first word of an environment says of its frame (`vm_core.h`): the same in all versions.
const KIND: u64 = 0x7fff_0001;
const C_FUNCTION: u64 = 0x5555_0001;
const DUMMY: u64 = 0x7999_0001;
const FINISH: u64 = 0x20;
const IS_OF_C: u64 = 0x80;

/// Where one version keeps what is read: bytes from the start of each structure, and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the structures' own names, see generate/ruby.c
pub struct RubyRow {
    pub major: u16,
    pub minor: u16,
    /// 0: the machine itself has the list of threads, at `ractor_threads`.
    pub machine_ractors: u16,
    pub ractor_node: u16,
    pub ractor_threads: u16,
    pub thread_node: u16,
    pub thread_context: u16,
    /// 0: the thread itself has what the system calls it by.
    pub thread_native: u16,
    pub native_pointer: u16,
    /// The kernel's id; 0: that of the C library's control block is read.
    pub native_tid: u16,
    pub context_stack: u16,
    pub context_stack_words: u16,
    pub context_frame: u16,
    pub context_thread: u16,
    pub frame_pc: u16,
    pub frame_iseq: u16,
    pub frame_environment: u16,
    pub frame_bytes: u16,
    pub iseq_body: u16,
    pub body_type: u16,
    pub body_size: u16,
    pub body_code: u16,
    pub body_path: u16,
    pub body_base_label: u16,
    pub body_label: u16,
    pub body_lines: u16,
    pub body_line_count: u16,
    pub body_index: u16,
    pub body_parent_iseq: u16,
    pub body_local_iseq: u16,
    pub line_bytes: u16,
    pub line_number: u16,
    pub method_definition: u16,
    pub method_called: u16,
    pub method_owner: u16,
    pub definition_iseq: u16,
    pub definition_name: u16,
    pub definition_serial: u16,
    /// Where a class has the rest of it; 0: behind itself.
    pub class_extra: u16,
    /// A class's variables; its path and what it is the singleton class of are among them, or else
    /// at these places.
    pub class_variables: u16,
    pub class_path: u16,
    pub class_attached: u16,
    pub id_attached: u16,
    /// Where the machine has the list of shapes, which say what variables a class has; a shape's
    /// bytes are 0: its variables are a table.
    pub machine_shapes: u16,
    pub shape_bytes: u16,
    pub shape_name: u16,
    pub shape_count: u16,
    pub shape_parent: u16,
    pub last_operator: u16,
    pub table_start: u16,
    pub table_end: u16,
    pub table_entries: u16,
    pub entry_bytes: u16,
    pub entry_key: u16,
    pub entry_value: u16,
    pub flag_singleton: u16,
    pub moved_to: u16,
    pub flag_string_outside: u16,
    pub string_pointer: u16,
    pub string_length: u16,
    pub string_inside: u16,
    /// Where the flags have a short string's length; the mask is 0: `string_length` has it.
    pub string_inside_shift: u16,
    pub string_inside_mask: u16,
    pub flag_array_inside: u16,
    pub array_pointer: u16,
    pub array_inside: u16,
}

/// Where the execution context of a running thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurrentContext {
    /// In this variable, which has that of the thread that runs Ruby.
    Global(u64),
    /// In each thread's own variable, so far from its control block.
    OfThread(i64),
    /// Only the list of threads has it.
    Unknown,
}

/// What is read of this process's Ruby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RubyLayout {
    /// Its version's structures.
    pub row: &'static RubyRow,
    /// Where the address of the virtual machine is.
    pub machine: u64,
    /// Where a running thread's execution context is.
    pub current: CurrentContext,
    /// Where the list of all names is.
    pub names: u64,
    /// The number of the name that a class's path has among its variables; 0: it is not there.
    pub id_class_path: u64,
    /// Where its code is, from and to; and the function that runs the instructions.
    pub object: (u64, u64),
    /// See `object`.
    pub inner: (u64, u64),
    /// Where a thread's control block has the kernel's id of the thread; `None`: not known.
    pub tid_in_block: Option<u64>,
}

/// Reads the frames of the thread that Ruby calls `state`, and which stands still.
pub fn walk(
    layout: &RubyLayout,
    state: u64,
    thread: ThreadKey,
    memory: &mut BlockMemory<'_>,
    known: KnownKeys<'_>,
    chain: &mut Chain,
) {
    chain.begin();
    // Threads that have just started are not in the list.
    let current = layout.current(thread, memory).unwrap_or(0);
    let mut is_of = |state: &u64| *state != 0 && layout.is_of(*state, thread, memory) == Some(true);
    let end = match [current, state].into_iter().find(&mut is_of) {
        Some(state) => RubyWalk { layout, row: layout.row, pc: thread.pc, memory, known, chain }.run(state),
        None => End::NoState,
    };
    chain.finish(end);
}

impl RubyLayout {
    /// The thread that has the current execution context.
    fn current(&self, thread: ThreadKey, memory: &mut BlockMemory<'_>) -> Option<u64> {
        let variable = match self.current {
            CurrentContext::Global(variable) => variable,
            CurrentContext::OfThread(at) if thread.pointer != 0 => thread.pointer.checked_add_signed(at)?,
            CurrentContext::OfThread(_) | CurrentContext::Unknown => return None,
        };
        let context = memory.word(variable).filter(|&context| context != 0)?;
        memory.word(context.checked_add(self.row.context_thread.into())?)
    }

    /// Where a thread's frames are, what the C library calls it, and its id, if that is there.
    pub fn native_of(&self, state: u64, word: impl Fn(u64) -> Option<u64>) -> Option<(u64, u32)> {
        let row = self.row;
        let native = match row.thread_native {
            0 => state,
            at => word(state.checked_add(at.into())?)?,
        };
        let pointer = word(native.checked_add(row.native_pointer.into())?)?;
        let tid = match (row.native_tid, self.tid_in_block) {
            (0, None) => 0,
            (0, Some(at)) => word(pointer.checked_add(at)?)? as u32,
            (at, _) => word(native.checked_add(at.into())?)? as u32,
        };
        Some((pointer, tid))
    }

    /// Whether `state` is the thread's; `None`: it cannot be read.
    fn is_of(&self, state: u64, thread: ThreadKey, memory: &mut BlockMemory<'_>) -> Option<bool> {
        let row = self.row;
        let native = match row.thread_native {
            0 => state,
            at => memory.word(state.checked_add(at.into())?)?,
        };
        let pointer = memory.word(native.checked_add(row.native_pointer.into())?)?;
        if thread.pointer != 0 && pointer == thread.pointer {
            return Some(true);
        }
        let tid = match (row.native_tid, self.tid_in_block) {
            (0, None) => 0,
            (0, Some(at)) => memory.half(pointer.checked_add(at)?)?,
            (at, _) => memory.half(native.checked_add(at.into())?)?,
        };
        Some(thread.tid != 0 && tid == thread.tid)
    }
}

struct RubyWalk<'w, 'p, 'k> {
    layout: &'w RubyLayout,
    row: &'static RubyRow,
    /// The thread's innermost native instruction.
    pc: u64,
    memory: &'w mut BlockMemory<'p>,
    known: KnownKeys<'k>,
    chain: &'w mut Chain,
}

impl RubyWalk<'_, '_, '_> {
    /// First the frames, which lie close together; then their functions, in groups.
    fn run(&mut self, thread: u64) -> End {
        let followed = self.follow(thread);
        let mut end = followed.unwrap_or_else(|end| if self.memory.is_used_up() { End::Full } else { end });
        let mut at = 0;
        while at < self.chain.frames().len() && matches!(end, End::Root | End::Full) {
            let group = at..at + functions::GROUP;
            self.prefetch(group.clone());
            for at in group {
                match self.name(at) {
                    Ok(()) => {}
                    Err(_) if self.memory.is_used_up() => {
                        self.chain.truncate(at);
                        end = End::Full;
                    }
                    Err(end) => return end,
                }
            }
            at += functions::GROUP;
        }
        end
    }

    /// Adds all frames that have a function, each with its address for the key.
    fn follow(&mut self, thread: u64) -> Result<End, End> {
        let row = self.row;
        let context = self.word(thread, row.thread_context)?;
        if self.word(context, row.context_thread)? != thread {
            return Err(End::NoState);
        }
        let words = self.word(context, row.context_stack_words)?;
        let start = self.word(context, row.context_stack)?;
        let bytes = words.checked_mul(8).filter(|_| words < MAX_STACK).ok_or(End::Inconsistent)?;
        let stack = start..start.checked_add(bytes).ok_or(End::Inconsistent)?;
        let innermost = self.word(context, row.context_frame)?;
        let mut frame = innermost;
        let frame_bytes = u64::from(row.frame_bytes);
        for _ in 0..MAX_STEPS {
            if frame == stack.end {
                return Ok(End::Root);
            }
            let is_one = stack.contains(&frame) && (stack.end - frame).is_multiple_of(frame_bytes);
            if !is_one || !frame.is_multiple_of(8) {
                return Err(End::Inconsistent);
            }
            let found = match self.frame(frame, &stack) {
                // The innermost one may be half made.
                Err(End::Inconsistent) if frame == innermost => None,
                found => found?,
            };
            if let Some(found) = found
                && !self.chain.push(Frame { mark: u8::from(frame == innermost), ..found })
            {
                return Ok(End::Full);
            }
            frame += frame_bytes;
        }
        Ok(End::Full)
    }

    /// A frame; `None`: it has no function.
    fn frame(&mut self, frame: u64, stack: &Range<u64>) -> Result<Option<Frame>, End> {
        let environment = self.environment(frame)?;
        let flags = self.word(environment, 0)?;
        let iseq = self.word(frame, self.row.frame_iseq)?;
        let kind = flags & KIND;
        let is_inside = stack.contains(&environment) && environment < frame;
        if kind & 1 == 0 || !is_inside && flags & objects::ESCAPED == 0 {
            return Err(End::Inconsistent);
        }
        let is_entry = flags & FINISH != 0;
        let is_code = iseq != 0 && flags & IS_OF_C == 0;
        Ok(match kind {
            DUMMY => None,
            _ if is_code || kind == C_FUNCTION => Some(Frame { key: frame, is_entry, ..Frame::default() }),
            _ => is_entry.then_some(Frame { is_entry, ..Frame::default() }),
        })
    }

    fn environment(&mut self, frame: u64) -> Result<u64, End> {
        let environment = self.word(frame, self.row.frame_environment)?;
        if environment.is_multiple_of(8) { Ok(environment) } else { Err(End::Inconsistent) }
    }
}

#[cfg(test)]
mod tests;
