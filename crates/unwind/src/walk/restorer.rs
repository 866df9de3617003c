//! Code behind signal handlers that nothing describes, as runtimes without the C library have it.

use super::Frame;
use crate::arch::Arch;
use crate::memory::Memory;
use crate::x86_code::is_signal_return;

/// `cs` of a program's code of 64 bits. It is saved in the second word behind the pc, with other
/// segments.
const CS: u16 = 0x33;
const FROM_PC: u64 = 16;

/// Whether the frame is of such code, at its first instruction. The code is read only where the
/// kernel seems to have saved registers: that takes long, and JIT code has many frames. x86-64
/// only: elsewhere the kernel has its own code for it, which is described.
#[inline(never)]
pub(super) fn is_here<A: Arch, M: Memory + ?Sized>(memory: &mut M, frame: &Frame) -> bool {
    let Some(saved) = A::context_offset(A::PC).filter(|_| A::CALL_PUSHES) else { return false };
    let segments = memory.word(frame.at.sp.wrapping_add(A::SIGNAL_CONTEXT + saved + FROM_PC));
    let mut code = [0; 9];
    segments.is_some_and(|word| word as u16 == CS)
        && memory.code(frame.at.pc, &mut code)
        && is_signal_return(&code)
}
