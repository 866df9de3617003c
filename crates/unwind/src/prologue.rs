//! The CFA of a frame-pointer frame when the frame pointer itself is not known.
//!
//! For a thread blocked in a system call the kernel reports pc and sp only. Where the system call's
//! wrapper did not save the frame pointer, a caller whose rule is "CFA = fp + 16" (code built with
//! -O0 or -fno-omit-frame-pointer) would end the walk. But the function's first instructions show
//! how far it moves sp:
//!
//! ```text
//! push %rbp; mov %rsp,%rbp; [push …]…; [sub $N,%rsp]
//! ```
//!
//! So at a call CFA = sp + N + pushes + 16, and more by the arguments that were pushed for the
//! call, unless the function moves sp by an unknown amount later, as alloca does. In
//! that case the word taken for the return address is what earlier, deeper calls left, and that may
//! be a return address, too. So the function's code must hold no such instruction. The result is
//! believed only if a call instruction ends right before the return address. If that call names its
//! target, the target must be this very function, or a PLT stub.
//!
//! x86-64 only: on aarch64 a function with a frame record saves its registers at sp.

use crate::cfi_machine::FrameSetup;
use crate::memory::Memory;
use crate::published::Rules;
use crate::rule::{Kind, Rule};
use crate::table::Table;
use crate::x86_code::{Effect, FP, Instruction, SP, decode};

/// Rows to go back in search of the prologue.
const MAX_ROWS_BACK: usize = 64;
/// Bytes of instructions that are read behind `mov %rsp,%rbp`.
const CODE: usize = 64;
/// Code up to so many bytes behind the pc is searched for instructions that move sp: the function
/// may have run there before.
const BEHIND: u64 = 256;
/// Arguments that are pushed, and padding, at most. (syscall(2) has one for futex(2).)
const MAX_ARGUMENTS: u64 = 8;
/// Longer code is not searched, and the result is not believed.
const LONGEST: u64 = 8192;

/// The CFA of the frame at `pc` (a lookup address) with stack pointer `sp`, whose
/// `rule` is relative to the unknown frame pointer.
pub(crate) fn cfa<M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    pc: u64,
    sp: u64,
    rule: Rule,
) -> Option<u64> {
    if rule.cfa_offset() != 16 || rule.fp_offset() != -16 {
        return None;
    }
    let object = rules.snapshot.object(pc)?;
    let body = match &object.sections {
        Some(sections) => body_behind(sections.frame_setup(pc)?, memory)?,
        None => body_start(&object.table, memory, pc)?,
    };
    let mut code = [0; CODE];
    if !memory.code(body.address, &mut code) {
        return None;
    }
    if moves_sp_later(memory, body.address, pc) {
        return None;
    }
    let cfa = sp.checked_add(frame_bytes(&code)?)?.checked_add(16)?;
    let return_address = memory.word(cfa.checked_sub(8)?)?;
    if is_after_call_of(rules, memory, return_address, body.function) {
        return Some(cfa);
    }
    // Arguments of the call that is being made may have been pushed.
    (1..=MAX_ARGUMENTS).map(|count| cfa.wrapping_add(8 * count)).find(|cfa| {
        let return_address = memory.word(cfa.wrapping_sub(8));
        let target = return_address.and_then(|at| called(&code_before(rules, memory, at)?, at));
        target.is_some_and(|target| is_start(target, body.function))
    })
}

struct Body {
    /// Behind `mov %rsp,%rbp`.
    address: u64,
    /// The function's first instruction; two are possible, with and without `endbr64`.
    function: u64,
}

/// Goes back over the rows of `pc`'s function to the one that `mov %rsp,%rbp` begins.
fn body_start<M: Memory + ?Sized>(table: &Table<'_>, memory: &mut M, pc: u64) -> Option<Body> {
    let row = table.row(pc)?;
    (row.saturating_sub(MAX_ROWS_BACK)..=row).rev().find_map(|row| {
        let before = table.rule_of_row(row.checked_sub(1)?);
        if table.rule_of_row(row).kind() != Kind::Fp || before != Rule::sp(16, -16)? {
            return None;
        }
        let (pushed, moved) = (table.start_of_row(row - 1)?, table.start_of_row(row)?);
        body_behind(FrameSetup { pushed, moved }, memory)
    })
}

/// `None`: the instructions are others.
fn body_behind<M: Memory + ?Sized>(FrameSetup { pushed, moved }: FrameSetup, memory: &mut M) -> Option<Body> {
    let function = pushed.checked_sub(1)?;
    let (mut push, mut mov) = ([0; 1], [0; 3]);
    let read = memory.code(function, &mut push) && memory.code(moved.checked_sub(3)?, &mut mov);
    (read && push == [0x55] && (mov == [0x48, 0x89, 0xe5] || mov == [0x48, 0x8b, 0xec]))
        .then_some(Body { address: moved, function })
}

/// How far the instructions of a prologue move sp down after `mov %rsp,%rbp`.
fn frame_bytes(mut code: &[u8]) -> Option<u64> {
    let mut bytes = 0;
    while let Some(Instruction { length, effect }) = decode(code) {
        match effect {
            Effect::Push(Some(_)) => bytes += 8,
            Effect::Down(more) => return Some(bytes + u64::try_from(more).ok()?),
            // By an amount that is not known here, as `and $-N,%rsp`.
            Effect::Write(SP) | Effect::Copy { to: SP, .. } | Effect::Load { to: SP, .. } => return None,
            Effect::Write(FP) | Effect::Copy { to: FP, .. } | Effect::Load { to: FP, .. } => break,
            Effect::None | Effect::Write(_) | Effect::Copy { .. } | Effect::Load { .. } => {}
            Effect::Store { .. } => {}
            // The prologue is over.
            Effect::Push(None) | Effect::Pop(_) | Effect::Leave | Effect::Call(_) => break,
            Effect::Return | Effect::Jump(_) | Effect::Branch(_) | Effect::End => break,
        }
        code = code.get(length..)?;
    }
    Some(bytes)
}

/// Whether code from `start` to a little behind `pc` moves sp by an amount known only when it runs.
/// Code up to `pc` that cannot be read counts as such.
#[cold]
#[inline(never)]
fn moves_sp_later<M: Memory + ?Sized>(memory: &mut M, start: u64, pc: u64) -> bool {
    let Some(end) = pc.checked_add(BEHIND).filter(|end| end.wrapping_sub(start) <= LONGEST) else {
        return true;
    };
    // Pieces overlap, so that no instruction is cut.
    let mut piece = [0; 2 * CODE];
    let mut at = start;
    while at < end {
        let mut length = piece.len();
        // No function reaches beyond the end of what is mapped.
        while !piece.get_mut(..length).is_some_and(|piece| memory.code(at, piece)) {
            length /= 2;
            if length < 8 {
                return at <= pc;
            }
        }
        if piece.get(..length).is_some_and(|code| code.windows(4).any(moves_sp)) {
            return true;
        }
        at += length as u64 - 3;
    }
    false
}

/// Whether an instruction that writes sp, other than by a constant or from fp, begins here. Bytes
/// inside of another instruction may look like one: the stack is then cut needlessly.
fn moves_sp(code: &[u8]) -> bool {
    match *code {
        // sub, mov %reg,%rsp; but not mov %rbp,%rsp
        [0x48 | 0x4c, 0x29 | 0x89, modrm, _] => modrm & 0xc7 == 0xc4 && modrm != 0xec,
        // sub, mov, lea of a register or memory, to %rsp; but not mov %rbp,%rsp and lea
        // -N(%rbp),%rsp
        [rex @ (0x48 | 0x49), opcode @ (0x2b | 0x8b | 0x8d), modrm, _] => {
            let of_fp = rex == 0x48 && opcode != 0x2b && modrm & 7 == 5;
            modrm & 0x38 == 0x20 && !of_fp
        }
        // and $N,%rsp
        [0x48, 0x81 | 0x83, 0xe4, _] => true,
        _ => false,
    }
}

/// Whether the instruction before `return_address` is a call, and, if it names
/// its target, of `function` (or of the `endbr64` in front of it).
fn is_after_call_of<M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    return_address: u64,
    function: u64,
) -> bool {
    let Some(code) = code_before(rules, memory, return_address) else { return false };
    // A call through the PLT lands in code that begins with an indirect jump.
    let target = called(&code, return_address);
    target.is_some_and(|target| is_start(target, function) || is_plt_stub(memory, target))
        || ends_with_indirect_call(&code)
}

/// What the call before a return address names as its target.
fn called(code: &[u8; 7], return_address: u64) -> Option<u64> {
    match *code {
        [_, _, 0xe8, a, b, c, d] => {
            Some(return_address.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into()))
        }
        _ => None,
    }
}

/// Whether that is where the function begins, or `endbr64` in front of it.
fn is_start(target: u64, function: u64) -> bool {
    target == function || target.wrapping_add(4) == function
}

/// Whether the instruction before `pc` may be a call; `None`: its code cannot be read.
pub(crate) fn follows_call<M: Memory + ?Sized>(rules: &Rules<'_>, memory: &mut M, pc: u64) -> Option<bool> {
    let code = code_before(rules, memory, pc)?;
    Some(matches!(code, [_, _, 0xe8, ..]) || ends_with_indirect_call(&code))
}

/// The bytes before `pc`.
fn code_before<M: Memory + ?Sized>(rules: &Rules<'_>, memory: &mut M, pc: u64) -> Option<[u8; 7]> {
    let mut code = [0; 7];
    let may_be_code = |start: &u64| {
        rules.snapshot.is_executable(*start) || rules.code_cache.is_some_and(|cache| cache.may_have(*start))
    };
    let start = pc.checked_sub(7).filter(may_be_code)?;
    memory.code(start, &mut code).then_some(code)
}

/// call *reg, call *disp(reg), with and without a REX prefix: ff /2, 2 to 7 bytes.
fn ends_with_indirect_call(code: &[u8; 7]) -> bool {
    let indirect = |length: usize| {
        let instruction = code.get(7 - length..).unwrap_or(&[]);
        let (opcode, modrm) = match instruction {
            [0x40..=0x4f, opcode, modrm, ..] if length > 2 => (*opcode, *modrm),
            [opcode, modrm, ..] => (*opcode, *modrm),
            _ => return false,
        };
        opcode == 0xff && modrm >> 3 & 7 == 2
    };
    (2..=7).any(indirect)
}

/// Whether the code there begins with `jmp *disp(%rip)`, as stubs of the PLT do.
#[inline(never)]
pub(crate) fn is_plt_stub<M: Memory + ?Sized>(memory: &mut M, target: u64) -> bool {
    let mut code = [0; 8];
    memory.code(target, &mut code)
        && matches!(
            code,
            [0xff, 0x25, ..]
                | [0xf2, 0xff, 0x25, ..]
                | [0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, ..]
                | [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, ..]
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_that_move_sp_by_what_is_not_known_are_seen() {
        // sub %rax,%rsp; sub %r9,%rsp; sub 8(%rbx),%rsp; mov %rax,%rsp; lea (%rsp,%rax),%rsp; and
        // $-64,%rsp
        let moving: [[u8; 4]; 6] = [
            [0x48, 0x29, 0xc4, 0],
            [0x4c, 0x29, 0xcc, 0],
            [0x48, 0x2b, 0x63, 8],
            [0x48, 0x89, 0xc4, 0],
            [0x48, 0x8d, 0x24, 4],
            [0x48, 0x83, 0xe4, 0xc0],
        ];
        assert!(moving.iter().all(|code| moves_sp(code)));
        // sub $8,%rsp; mov %rbp,%rsp; lea -24(%rbp),%rsp; mov %rsp,%rdi; sub %rax,%rdx; mov
        // %rsp,%rbp
        let others: [[u8; 4]; 6] = [
            [0x48, 0x83, 0xec, 8],
            [0x48, 0x89, 0xec, 0],
            [0x48, 0x8d, 0x65, 0xe8],
            [0x48, 0x89, 0xe7, 0],
            [0x48, 0x29, 0xc2, 0],
            [0x48, 0x89, 0xe5, 0],
        ];
        assert!(!others.iter().any(|code| moves_sp(code)));
    }

    #[test]
    fn prologues_tell_their_frames_size() {
        let cases: [(&[u8], Option<u64>); 9] = [
            // sub $0x20,%rsp
            (&[0x48, 0x83, 0xec, 0x20, 0x90], Some(32)),
            // push %rbx; sub $0x18,%rsp
            (&[0x53, 0x48, 0x83, 0xec, 0x18], Some(32)),
            // push %r12; mov %edi,%r12d; push %rbx; sub $0x110,%rsp
            (&[0x41, 0x54, 0x41, 0x89, 0xfc, 0x53, 0x48, 0x81, 0xec, 0x10, 1, 0, 0], Some(288)),
            // mov %edi,-4(%rbp): a leaf's first store; je: nothing was moved
            (&[0x89, 0x7d, 0xfc, 0x74, 0], Some(0)),
            // push %rbx; mov $-1,%r8; sub $0x68,%rsp: postgres's WaitEventSetWait
            (&[0x53, 0x49, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff, 0x48, 0x83, 0xec, 0x68], Some(112)),
            // push %r15; add $-128,%rsp
            (&[0x41, 0x57, 0x48, 0x83, 0xc4, 0x80], Some(136)),
            // and $-32,%rsp: realigned
            (&[0x48, 0x83, 0xe4, 0xe0], None),
            (&[0x48, 0x8d, 0x64, 0x24, 0xf0], Some(16)),
            (&[], Some(0)),
        ];
        for (code, expected) in cases {
            assert_eq!(frame_bytes(code), expected, "{code:x?}");
        }
    }
}
