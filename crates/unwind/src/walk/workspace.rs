//! Room for what a walk has to remember. It lies beside the frames, not on the thread's stack: a
//! handler may run on an alternate stack with little more room than the kernel's own frame needs.
//! For the same reason the rarer steps, which call deeper, have a stack of their own here.

use super::Frame;
use super::callee_saved::Origin;
use super::stack_cache::StackCache;
use crate::arch::Arch;
use crate::code_cache::CompiledRules;
use crate::expression::Stack;
use crate::frame_runs::FrameRuns;
use crate::memory::Memory;
use crate::registers::Registers;
use crate::sections::Room;
use core::mem::MaybeUninit;

/// Bytes of an expression that are read out of a frame description.
const EXPRESSION: usize = 32;

/// Bytes of the stack for the rarer steps and all behind the first of them. Their frames add up to
/// less than 1000 bytes in optimized builds, and to many more in others. Nothing else runs there,
/// see [`super::walk_interrupted`]. In its lower half rules are read of descriptions, from within
/// such steps and outside of them.
const STACK: usize = if cfg!(debug_assertions) { 32 * 1024 } else { 8 * 1024 };

/// Room for one walk at a time; zeroed memory is valid, too.
#[derive(Debug)]
#[repr(C)]
pub struct Workspace {
    stack: MaybeUninit<[u8; STACK]>,
    state: MaybeUninit<WalkState>,
    /// The current frame of a walk that has met the usual rules only.
    frame: MaybeUninit<Frame>,
    /// Where the current or last walk followed frame pointers.
    runs: FrameRuns,
    stack_cache: StackCache,
}

impl Workspace {
    /// Nothing was written to it yet.
    pub const fn new() -> Workspace {
        Workspace {
            stack: MaybeUninit::uninit(),
            state: MaybeUninit::uninit(),
            frame: MaybeUninit::uninit(),
            runs: FrameRuns::new(),
            stack_cache: StackCache::new(),
        }
    }

    /// Begins a walk with the usual rules: a place for its frame, and the stack cache.
    #[inline(always)]
    pub(super) fn start(&mut self, start: Frame) -> (&mut Frame, &mut StackCache) {
        self.runs.begin();
        (self.frame.write(start), &mut self.stack_cache)
    }

    /// Not inlined: its temporaries are off the stack before the walk begins.
    #[inline(never)]
    pub(super) fn begin(&mut self, start: Frame) {
        self.runs.begin();
        self.write(start, start, 0);
    }

    /// Writes the full state of the walk that began with [`Workspace::start`] and is at its
    /// `number`-th frame. `context` is where it started; `None`: that cannot be read.
    ///
    /// # Safety
    /// [`Workspace::start`] was called.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn begin_at<A: Arch, M: Memory + ?Sized>(
        &mut self,
        memory: &mut M,
        context: u64,
        high: u64,
        number: usize,
    ) -> Option<()> {
        let start = Registers::from_context::<A, M>(memory, context)?;
        // SAFETY: says the caller.
        let frame = unsafe { self.frame.assume_init() };
        self.write(Frame::new(start, high), frame, number);
        Some(())
    }

    #[inline(always)]
    fn write(&mut self, start: Frame, frame: Frame, number: usize) {
        self.state.write(WalkState {
            frame,
            number,
            origin: Origin::new(start),
            compiled: CompiledRules::default(),
            scratch: Scratch {
                cfa: None,
                room: MaybeUninit::uninit(),
                expression: MaybeUninit::uninit(),
                stack: MaybeUninit::uninit(),
            },
        });
    }

    /// The upper end of the stack for the rarer steps.
    #[inline(always)]
    pub(crate) fn stack_top(&mut self) -> *mut u8 {
        let end = self.stack.as_mut_ptr().cast::<u8>().wrapping_add(STACK);
        end.wrapping_sub(end.addr() % 16)
    }

    /// The upper end of the stack on which rules are read of descriptions.
    #[inline(always)]
    pub(crate) fn reading_stack_top(&mut self) -> *mut u8 {
        self.stack_top().wrapping_sub(STACK / 2)
    }

    /// Where the last walk followed frame pointers.
    pub fn runs(&self) -> &FrameRuns {
        &self.runs
    }

    /// The walk's state and runs, and its stack cache.
    ///
    /// # Safety
    /// A walk was started.
    #[inline(always)]
    pub(super) unsafe fn parts(&mut self) -> (&mut WalkState, &mut FrameRuns, &mut StackCache) {
        // SAFETY: both ways to begin write it.
        let state = unsafe { self.state.assume_init_mut() };
        (state, &mut self.runs, &mut self.stack_cache)
    }
}

#[cfg(test)]
impl Workspace {
    const PAINT: u8 = 0xa5;

    pub(super) fn painted() -> Workspace {
        Workspace { stack: MaybeUninit::new([Workspace::PAINT; STACK]), ..Workspace::new() }
    }

    /// Bytes of the stack that were written, from its end down to the lowest.
    pub(super) fn used(&self) -> usize {
        // SAFETY: painted.
        let stack = unsafe { self.stack.assume_init_ref() };
        STACK - stack.iter().take_while(|&&byte| byte == Workspace::PAINT).count()
    }
}

impl Default for Workspace {
    fn default() -> Workspace {
        Workspace::new()
    }
}

/// How far a walk has come.
pub(super) struct WalkState {
    /// The frame to be left next.
    pub(super) frame: Frame,
    /// How many were before it.
    pub(super) number: usize,
    pub(super) origin: Origin,
    pub(super) compiled: CompiledRules,
    pub(super) scratch: Scratch,
}

/// Each step writes what it needs of it, and reads nothing of an earlier one.
pub(super) struct Scratch {
    /// The CFA of the step, where that is not the caller's stack pointer.
    pub(super) cfa: Option<u64>,
    pub(super) room: MaybeUninit<Room>,
    pub(super) expression: MaybeUninit<[u8; EXPRESSION]>,
    pub(super) stack: MaybeUninit<Stack>,
}
