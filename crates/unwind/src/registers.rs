//! The registers a walk starts from.

use crate::arch::Arch;
use crate::memory::Memory;

/// What is known of a thread's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Program counter.
    pub pc: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer; not known for a thread that is blocked in a system call.
    pub fp: Option<u64>,
    /// [`Arch::LINK`]: the return address register, on processors whose calls do not push;
    /// elsewhere the first argument of the system call that a thread is blocked in, where vfork(2)
    /// keeps its return address.
    pub link: Option<u64>,
    /// Address of the `ucontext` with all registers; 0: there is none.
    pub context: u64,
}

impl Registers {
    /// Of a thread blocked in a system call, as `/proc/PID/task/TID/syscall` (proc(5)) reports it.
    pub fn blocked(pc: u64, sp: u64) -> Registers {
        Registers { pc, sp, fp: None, link: None, context: 0 }
    }

    /// As [`Registers::blocked`], with the system call's first argument.
    pub fn blocked_with_argument<A: Arch>(pc: u64, sp: u64, first_argument: u64) -> Registers {
        let link = if A::CALL_PUSHES { Some(first_argument) } else { None };
        Registers { link, ..Registers::blocked(pc, sp) }
    }

    /// From the `ucontext` at `context`, as far as it can be read.
    #[inline(always)]
    pub fn from_context<A: Arch, M: Memory + ?Sized>(memory: &mut M, context: u64) -> Option<Registers> {
        let mut register = |number| of_context::<A, M>(memory, context, number);
        let link = if A::CALL_PUSHES { None } else { register(A::RETURN_ADDRESS) };
        Some(Registers { pc: register(A::PC)?, sp: register(A::SP)?, fp: register(A::FP), link, context })
    }
}

/// A register by DWARF number out of the `ucontext` at `context`.
#[inline(always)]
pub(crate) fn of_context<A: Arch, M: Memory + ?Sized>(
    memory: &mut M,
    context: u64,
    number: u8,
) -> Option<u64> {
    memory.word(context.checked_add(A::context_offset(number)?)?)
}
