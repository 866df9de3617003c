//! Where a CPython keeps what is read of it, and how a thread is recognised.

use crate::blocks::BlockMemory;
use crate::content::LineTable;
use swipr_unwind::frame_runs::NativeFrames;
use swipr_unwind::frames::EXACT;

/// Where one minor version keeps what is read: bytes from the start of each structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the structures' own names, see generate/python.c
pub struct Row {
    pub minor: u8,
    pub interpreters: u64,
    pub interpreter_next: u64,
    pub interpreter_threads: u64,
    pub thread_next: u64,
    pub thread_ident: u64,
    /// The kernel's id of the thread; `None`: only the C library's control block has it.
    pub thread_native: Option<u64>,
    pub thread_frame: u64,
    /// Where the structure between thread and frame has the frame, if there is such a structure.
    pub c_frame: Option<u64>,
    pub frame_code: u64,
    pub frame_previous: u64,
    pub(crate) frame_instruction: Instruction,
    pub(crate) frame_entry: Entry,
    pub(crate) line_table: LineTable,
    pub code_lines: u64,
    pub code_name: u64,
    pub code_file: u64,
    /// A number that no two code objects of an interpreter have; 0: there is none.
    pub code_version: u64,
    pub code_first_line: u64,
    pub object_type: u64,
    pub text_length: u64,
    pub text_state: u64,
    /// Where in the state how wide its characters are begins.
    pub text_kind_bit: u32,
    pub text_ascii: u64,
    pub text_compact: u64,
    pub bytes_length: u64,
    pub bytes_data: u64,
}

/// How a frame says at which instruction it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    /// By its address, at `at` in the frame. The instructions begin at `code` in the code object.
    Pointer { at: u64, code: u64 },
    /// The same, where each thread has a copy of the instructions: the copy's number is at `copy`
    /// in the frame, and the code object has the list of copies at `copies`.
    PointerIntoCopy { at: u64, copy: u64, copies: u64 },
    /// By its number, at `at` in the frame; of `bytes` bytes each.
    Number { at: u64, bytes: i32 },
}

/// How a frame says whether a native call of the evaluator was made for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// There is one for each frame.
    Each,
    /// A byte of the frame says so.
    Flag(u64),
    /// There are frames of no function between the others; a byte says that it is such a shim.
    Shim(u64),
}

/// One CPython in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Of its version.
    pub row: Row,
    /// The address of `_PyRuntime`; before 3.7, of the variable that has the first interpreter's.
    pub runtime: u64,
    /// The addresses of `PyCode_Type`, `PyUnicode_Type` and `PyBytes_Type`.
    pub code_type: u64,
    /// See `code_type`.
    pub text_type: u64,
    /// See `code_type`.
    pub bytes_type: u64,
    /// The code of the function that runs frames: from, to.
    pub evaluator: [(u64, u64); 2],
    /// Where a thread's control block has the kernel's id of the thread; `None`: not known.
    pub tid_in_block: Option<u64>,
}

/// What the native walk of a thread has seen.
#[derive(Clone, Copy, Debug)]
pub struct NativeCalls {
    /// The thread's stack pointer.
    pub sp: u64,
    /// How many calls of the evaluator, at least.
    pub calls: usize,
}

/// How a thread is recognised: by the kernel's id, or by its pointer to its control block, which is
/// what the C library calls it by. A forked child's first thread has a new id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadKey {
    /// The id.
    pub tid: u32,
    /// The pointer; 0: not known.
    pub pointer: u64,
    /// Its innermost instruction; 0: not known.
    pub pc: u64,
}

impl Row {
    /// Bytes of a code object that are read.
    pub(super) fn code_bytes(&self) -> usize {
        let ends = [self.code_lines, self.code_name, self.code_file, self.code_version, self.code_first_line];
        ends.into_iter().max().unwrap_or(0) as usize + size_of::<u64>()
    }
}

impl Layout {
    /// The same of this interpreter.
    pub fn calls(&self, native: NativeFrames<'_>) -> NativeCalls {
        let runs = |word: &u64| {
            let address = word & !EXACT;
            self.evaluator.iter().any(|&(start, end)| start < address && address <= end)
        };
        NativeCalls { sp: native.sp, calls: native.words().filter(runs).count() }
    }

    /// Whether `state` is the thread's; `None`: it cannot be read.
    pub fn is_of(&self, state: u64, thread: ThreadKey, memory: &mut BlockMemory<'_>) -> Option<bool> {
        let row = &self.row;
        let ident = memory.word(state.checked_add(row.thread_ident)?)?;
        if thread.pointer != 0 && ident == thread.pointer {
            return Some(true);
        }
        let native = match (row.thread_native, self.tid_in_block) {
            (Some(at), _) => memory.word(state.checked_add(at)?)? as u32,
            (None, Some(at)) => memory.word(ident.checked_add(at)?)? as u32,
            (None, None) => 0,
        };
        Some(thread.tid != 0 && native == thread.tid)
    }
}
