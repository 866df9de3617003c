//! Registers of outer frames, one at a time and only when a rule needs one.
//!
//! The walk follows pc, sp and fp only. A few functions keep their CFA in another register (glibc's
//! `_dl_runtime_resolve`, which binds a function at its first call, in rbx; hand-written assembly
//! in r12 or r13). Its value in that frame is where the inner frames saved it. So the walk is
//! repeated from its origin, the last place where all registers were known, and each frame's
//! description is read for this one register. From then on the register is tracked: the next frame
//! that needs it is sought from here on.
//!
//! A register that a description does not mention keeps its value, even one that the ABI lets calls
//! change. OpenSSL's `aesni_gcm_encrypt` has its CFA in rax and calls assembly that leaves rax
//! alone. libgcc does the same.
//!
//! Bounded: registers from one origin; descriptions (but for cached ones) and steps of a whole
//! walk. Not recursive: a frame that needed such a register itself finds it among those that are
//! tracked.

use super::Frame;
use super::steps::step;
use super::workspace::{Scratch, WalkState};
use crate::arch::Arch;
use crate::expression::{self, Stack};
use crate::memory::Memory;
use crate::published::Rules;
use crate::register_rules::{RegisterRule, Saved};
use crate::registers::of_context;
use crate::sections::Room;

/// Registers that are tracked at most from one origin.
const MAX_TRACKED: usize = 4;
/// Frame descriptions that are read at most in one walk: each takes some microseconds.
const MAX_DESCRIPTIONS: u16 = 160;
/// Steps that are done again at most in one walk: some hundred nanoseconds each.
const MAX_STEPS: u16 = 128;

/// A register and its value in one frame; `None`: it is not known.
#[derive(Clone, Copy)]
struct Tracked {
    register: u8,
    value: Option<u64>,
    /// Where that frame keeps its caller's value.
    saved: Saved,
}

/// Where a walk began or resumed behind a signal frame, and what is tracked since.
pub(super) struct Origin {
    start: Frame,
    /// Frames of the walk before this origin.
    first: usize,
    tracked: [Tracked; MAX_TRACKED],
    count: usize,
    /// The frame in which they have these values.
    frame: Frame,
    /// Frames of the walk before that one.
    number: usize,
    left: Left,
}

/// What is left of this walk's bounds.
struct Left {
    descriptions: u16,
    steps: u16,
}

impl Origin {
    pub(super) fn new(start: Frame) -> Origin {
        Origin {
            start,
            first: 0,
            tracked: [Tracked { register: 0, value: None, saved: Saved::SAME }; MAX_TRACKED],
            count: 0,
            frame: start,
            number: 0,
            left: Left { descriptions: MAX_DESCRIPTIONS, steps: MAX_STEPS },
        }
    }

    /// All registers are known again in the walk's `number`-th frame.
    pub(super) fn move_to(&mut self, start: &Frame, number: usize) {
        self.start = *start;
        (self.first, self.count) = (number, 0);
    }

    /// What is tracked of the walk's `number`-th frame.
    pub(super) fn known(&self, number: usize) -> Known<'_> {
        let count = if number == self.number { self.count } else { 0 };
        Known(self.tracked.get(..count).unwrap_or(&[]))
    }

    /// Begins to track `register`, all over again from the origin, if it is not tracked; `false`:
    /// too many are.
    fn track<A: Arch, M: Memory + ?Sized>(&mut self, memory: &mut M, register: u8) -> bool {
        if self.tracked.iter().take(self.count).any(|tracked| tracked.register == register) {
            return true;
        }
        let Some(place) = self.tracked.get_mut(self.count) else { return false };
        place.register = register;
        self.count += 1;
        (self.frame, self.number) = (self.start, self.first);
        let context = self.start.at.context;
        for tracked in self.tracked.iter_mut().take(self.count) {
            let number = tracked.register;
            tracked.value = if context == 0 { None } else { of_context::<A, M>(memory, context, number) };
        }
        true
    }
}

/// What is tracked of one frame.
#[derive(Clone, Copy)]
pub(super) struct Known<'a>(&'a [Tracked]);

impl Known<'_> {
    /// `None`: not tried yet; `Some(None)`: tried, and not found.
    pub(super) fn value(&self, register: u8) -> Option<Option<u64>> {
        self.0.iter().find(|known| known.register == register).map(|known| known.value)
    }
}

/// Finds the value of `register` in the walk's current frame, or records that it cannot be found;
/// `false`: too many were sought already. Inlined, as the walk itself: what it calls then begins no
/// deeper on the handler's short stack.
#[inline(always)]
pub(super) fn recover<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    state: &mut WalkState,
    register: u8,
) -> bool {
    let WalkState { frame, number, origin, scratch, .. } = state;
    if !origin.track::<A, M>(memory, register) {
        return false;
    }
    while origin.number < *number {
        let Origin { tracked, count, frame: at, left, .. } = origin;
        let tracked = tracked.get_mut(..*count).unwrap_or(&mut []);
        let (sp, fp) = (at.at.sp, at.at.fp);
        for Tracked { register, saved, .. } in &mut *tracked {
            *saved = saved_in(rules, memory, at.look_up(), *register, scratch, left).unwrap_or(LOST);
        }
        scratch.cfa = None;
        if left.steps == 0 || step::<A, M>(rules, memory, at, Known(tracked), scratch).is_err() {
            // What frames further out have saved may still be found.
            tracked.iter_mut().for_each(|tracked| tracked.value = None);
            (*at, origin.number) = (*frame, *number);
            break;
        }
        let left = LeftFrame { sp, fp, cfa: scratch.cfa.unwrap_or(at.at.sp) };
        for Tracked { saved, value, .. } in tracked {
            *value = left.read::<A, M>(memory, *saved, *value, scratch);
        }
        origin.number += 1;
    }
    true
}

/// Where the function at `pc` saves `register`; `None`: nothing says it, or the walk's bounds are
/// reached.
fn saved_in<M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    pc: u64,
    register: u8,
    scratch: &mut Scratch,
    left: &mut Left,
) -> Option<Saved> {
    left.steps = left.steps.checked_sub(1)?;
    if let Some(saved) = rules.cache.saved(pc, register) {
        return Some(saved);
    }
    if let Some(saved) = rules.saved(pc, register) {
        return Some(saved);
    }
    left.descriptions = left.descriptions.checked_sub(1)?;
    let header = rules.frame_header(pc)?;
    let room = scratch.room.write(Room::new());
    let saved = room.descriptions.saved(memory, header, pc, register)?;
    rules.cache.put_saved(pc, register, saved);
    Some(saved)
}

const LOST: Saved = Saved { how: RegisterRule::Undefined, length: 0, value: 0 };

/// A frame that was left: the registers that every walk follows.
struct LeftFrame {
    sp: u64,
    fp: Option<u64>,
    cfa: u64,
}

impl LeftFrame {
    /// The caller's value of a register that has `value` in this frame.
    #[inline(never)]
    fn read<A: Arch, M: Memory + ?Sized>(
        &self,
        memory: &mut M,
        saved: Saved,
        value: Option<u64>,
        scratch: &mut Scratch,
    ) -> Option<u64> {
        match saved.how {
            RegisterRule::Same => value,
            RegisterRule::Undefined => None,
            RegisterRule::AtCfa => memory.word(self.cfa.wrapping_add(saved.value)),
            RegisterRule::Cfa => Some(self.cfa.wrapping_add(saved.value)),
            RegisterRule::Register => {
                u8::try_from(saved.value).ok().and_then(|number| self.register::<A>(number))
            }
            RegisterRule::At => match self.evaluate::<A, M>(memory, saved, scratch) {
                Some(address) => memory.word(address),
                None => None,
            },
            RegisterRule::Value => self.evaluate::<A, M>(memory, saved, scratch),
        }
    }

    fn evaluate<A: Arch, M: Memory + ?Sized>(
        &self,
        memory: &mut M,
        saved: Saved,
        scratch: &mut Scratch,
    ) -> Option<u64> {
        let code = scratch.expression.write([0; _]).get_mut(..usize::from(saved.length))?;
        if !memory.code(saved.value, code) {
            return None;
        }
        let mut register = |_: &mut M, number| self.register::<A>(number);
        expression::evaluate(code, Some(self.cfa), memory, scratch.stack.write(Stack::new()), &mut register)
    }

    fn register<A: Arch>(&self, number: u8) -> Option<u64> {
        if number == A::SP {
            Some(self.sp)
        } else if number == A::FP {
            self.fp
        } else {
            None
        }
    }
}
