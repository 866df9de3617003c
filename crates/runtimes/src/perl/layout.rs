//! Where a Perl has what is read.

use crate::blocks::BlockMemory;
use core::ops::Range;

/// Where one version keeps what is read: bytes from the start of each structure, and a few flags.
/// Built without threads, it has all of it at the same places but the variables, which have symbols
/// of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the structures' own names, see generate/perl.c
pub struct PerlRow {
    pub version: u16,
    pub interpreter_bytes: u16,
    pub op: u16,
    pub line: u16,
    pub compiling: u16,
    pub stack_info: u16,
    pub jump: u16,
    pub info_contexts: u16,
    pub info_previous: u16,
    pub info_last: u16,
    pub info_type: u16,
    pub context_bytes: u16,
    pub context_type: u16,
    pub context_line: u16,
    pub is_sub: u8,
    pub is_format: u8,
    pub is_eval: u8,
    pub is_try: u8,
    pub sub_return: u16,
    pub sub_code: u16,
    pub sub_depth_before: u16,
    pub format_code: u16,
    pub eval_return: u16,
    /// `None`: contexts have these places themselves.
    pub returns: Option<Returns>,
    pub op_type: u16,
    pub line_number: u16,
    pub line_file: u16,
    pub value_flags: u16,
    pub value_data: u16,
    pub code_type: u16,
    pub glob_type: u16,
    pub hash_type: u16,
    pub code_start: u16,
    pub code_depth: u16,
    pub code_flags: u16,
    pub code_stash: u16,
    pub code_name: u16,
    pub is_named: u32,
    pub is_lexical: u32,
    pub glob_name: u16,
    pub glob_stash: u16,
    pub glob_effective: u16,
    pub key_bytes: u16,
    pub key_text: u16,
    pub hash_last: u16,
    pub hash_has_name: u32,
    /// `None`: behind the array.
    pub hash_extra: Option<u16>,
    pub extra_name: u16,
    /// 0: it has one name.
    pub extra_names: u16,
    /// Names of globs and packages are texts that end with a zero byte, in the bodies.
    pub has_texts: bool,
}

impl PerlRow {
    /// The type of a format, which is code, too: the next one but for that of globs (before 5.10).
    pub(super) fn format_type(&self) -> u16 {
        let next = self.code_type + 1;
        next + u16::from(next == self.glob_type)
    }

    /// What is read of a line (a COP): from where on, and how many bytes. They have the number, the
    /// package, the file and `cop_seq`.
    pub(super) fn line_bytes(&self) -> (u64, usize) {
        let from = self.line_number.min(self.line_file.saturating_sub(16)) & !7;
        (from.into(), (self.line_file + 24).saturating_sub(from).into())
    }
}

/// Before 5.10: where the ops lie at which callers continue when subs and evals return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returns {
    /// Of `PL_retstack` in the interpreter's structure.
    pub stack: u16,
    /// Of a context's `blk_oldretsp`.
    pub of_context: u16,
}

/// What is read of this process's Perl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerlLayout {
    /// Its version's structures.
    pub row: PerlRow,
    /// Where the variables `PL_op`, `PL_curcop`, `PL_curstackinfo` and, before 5.10, `PL_retstack`
    /// are, from the interpreter's structure on; without threads, their addresses.
    pub variables: [u64; 4],
    /// The same of `PL_compiling`, the line that is compiled now.
    pub compiling: u64,
    /// Where threads have their interpreters; `None`: built without threads.
    pub threads: Option<Threads>,
    /// The code of `Perl_pp_entersub`, which enters subs.
    pub entering: (u64, u64),
    /// All code of Perl's object.
    pub object: (u64, u64),
    /// The numbers of some ops.
    pub ops: Ops,
    /// The program is perl itself: its first thread has one interpreter, from begin to end.
    pub is_program: bool,
}

/// The numbers of ops, which differ in each version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ops {
    /// `entersub`.
    pub enter_sub: u32,
    /// `nextstate` and `dbstate`, with which statements begin.
    pub lines: [u32; 2],
    /// `entertry`, `entereval` and `require`, which make the contexts of evals.
    pub evals: [u32; 3],
    /// `leavesub`, `leavesublv` and `return`, which leave subs.
    pub returns: [u32; 3],
}

/// How a thread's interpreter is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// The address of `PL_thr_key`, the number under which the C library keeps it.
    pub key: u64,
    /// From a thread's control block to the value of the key 0.
    pub of_first_key: u64,
    /// The address of `PL_curinterp`: the interpreter that was made first, or changed to last.
    pub current: u64,
}

/// Keys in a row in a thread's control block, and the bytes of each.
const KEYS: u32 = 32;
const KEY_BYTES: u64 = 16;

impl PerlLayout {
    /// The interpreter of the thread with this control block; without threads, 0. `None`: it has
    /// none, or is not known.
    pub(super) fn interpreter(&self, pointer: u64, memory: &mut BlockMemory<'_>) -> Option<u64> {
        let Some(threads) = self.threads else { return Some(0) };
        let key = memory.half(threads.key).filter(|&key| key < KEYS && pointer != 0)?;
        let at = pointer.checked_add(threads.of_first_key)?.checked_add(KEY_BYTES * u64::from(key))?;
        memory.word(at).filter(|&interpreter| interpreter != 0)
    }

    /// The interpreter of a thread whose control block is not known, by its stack: the last place
    /// to which an error may go is there. 0: none.
    pub fn interpreter_by_stack(&self, stack: Range<u64>, memory: &mut BlockMemory<'_>) -> u64 {
        let current = self.threads.and_then(|threads| memory.word(threads.current)).unwrap_or(0);
        let jump = memory.word(current.wrapping_add(self.row.jump.into()));
        if jump.is_some_and(|jump| stack.contains(&jump)) { current } else { 0 }
    }
}
