//! Room for what a walk has to remember. It lies beside the frames and not on the stack: a handler may
//! run on an alternate stack that has little more room than the kernel's own frame needs.

use super::Frame;
use super::recovery::{Again, Origin};
use crate::arch::Arch;
use crate::expression::Stack;
use crate::memory::Memory;
use crate::registers::Registers;
use crate::saved_register::Descriptions;
use core::mem::MaybeUninit;

/// Bytes of an expression that are read out of a frame description.
const EXPRESSION: usize = 32;

/// Room for one walk at a time; any memory is good for it.
#[derive(Debug)]
pub struct Workspace(MaybeUninit<State>);

impl Workspace {
    /// Nothing was written to it yet.
    pub const fn new() -> Workspace {
        Workspace(MaybeUninit::uninit())
    }

    /// Out of line: what it builds on the stack is gone before the walk goes on.
    #[inline(never)]
    pub(super) fn begin(&mut self, start: &Registers, high: u64) {
        let frame = Frame::new(*start, high);
        self.0.write(State {
            frame,
            number: 0,
            origin: Origin::new(frame),
            again: MaybeUninit::uninit(),
            scratch: Scratch {
                descriptions: MaybeUninit::uninit(),
                expression: MaybeUninit::uninit(),
                stack: MaybeUninit::uninit(),
            },
        });
    }

    /// As [`Workspace::begin`] with the registers of a `ucontext`; `false`: it cannot be read.
    #[inline(never)]
    pub(super) fn begin_interrupted<A: Arch, M: Memory>(
        &mut self,
        memory: &mut M,
        context: u64,
        high: u64,
    ) -> bool {
        let start = Registers::from_context::<A, M>(memory, context);
        start.inspect(|start| self.begin(start, high)).is_some()
    }

    /// # Safety
    /// A walk was begun.
    #[inline(always)]
    pub(super) unsafe fn state(&mut self) -> &mut State {
        // SAFETY: both ways to begin write it.
        unsafe { self.0.assume_init_mut() }
    }
}

impl Default for Workspace {
    fn default() -> Workspace {
        Workspace::new()
    }
}

/// How far a walk has come.
pub(super) struct State {
    /// The frame to be left next.
    pub(super) frame: Frame,
    /// How many were before it.
    pub(super) number: usize,
    pub(super) origin: Origin,
    pub(super) again: MaybeUninit<Again>,
    pub(super) scratch: Scratch,
}

/// Written by the step that needs it, and of no meaning for the next: most walks need none of it.
pub(super) struct Scratch {
    pub(super) descriptions: MaybeUninit<Descriptions>,
    pub(super) expression: MaybeUninit<[u8; EXPRESSION]>,
    pub(super) stack: MaybeUninit<Stack>,
}
