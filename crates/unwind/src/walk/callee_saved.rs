//! Registers of outer frames, one at a time and only when a rule needs one.
//!
//! The walk follows pc, sp and fp only. A few functions keep their CFA in another register (glibc's
//! `_dl_runtime_resolve`, which binds a function at its first call, in rbx; hand-written assembly
//! in r12 or r13). Its value in that frame is where the inner frames saved it. So the walk is
//! repeated from its origin, the last place where all registers were known, and each frame's
//! description is read for this one register.
//!
//! A register that a description does not mention keeps its value, even one that the ABI lets calls
//! change. OpenSSL's `aesni_gcm_encrypt` has its CFA in rax and calls assembly that leaves rax
//! alone. libgcc does the same.
//!
//! Bounded: registers from one origin; descriptions (but for cached ones) and steps of a whole
//! walk. Not recursive: a frame that needed such a register itself finds it among those recovered
//! before.

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
use core::mem::MaybeUninit;

/// Registers that are recovered at most from one origin.
const MAX_RECOVERED: usize = 4;
/// Frame descriptions that are read at most in one walk: each takes some microseconds.
const MAX_DESCRIPTIONS: u16 = 160;
/// Steps that are done again at most in one walk: some tens of nanoseconds each.
const MAX_STEPS: u16 = 4096;

/// A register's value in a frame, found or known not to be found.
#[derive(Clone, Copy)]
struct Recovered {
    /// Frames from the origin.
    frame: u32,
    register: u8,
    is_found: bool,
    value: u64,
}

/// Where a walk began or resumed behind a signal frame, and what was recovered since.
pub(super) struct Origin {
    start: Frame,
    /// Frames of the walk before this origin.
    first: usize,
    recovered: [Recovered; MAX_RECOVERED],
    count: usize,
    left: Left,
}

/// What is left of this walk's bounds.
struct Left {
    descriptions: u16,
    steps: u16,
}

impl Origin {
    pub(super) fn new(start: Frame) -> Origin {
        let none = Recovered { frame: 0, register: 0, is_found: false, value: 0 };
        Origin {
            start,
            first: 0,
            recovered: [none; MAX_RECOVERED],
            count: 0,
            left: Left { descriptions: MAX_DESCRIPTIONS, steps: MAX_STEPS },
        }
    }

    /// All registers are known again in the walk's `number`-th frame.
    pub(super) fn move_to(&mut self, start: &Frame, number: usize) {
        self.start = *start;
        (self.first, self.count) = (number, 0);
    }

    /// What was recovered for the walk's `number`-th frame.
    pub(super) fn known(&self, number: usize) -> Known<'_> {
        let frame = number.wrapping_sub(self.first) as u32;
        Known { recovered: self.recovered.get(..self.count).unwrap_or(&[]), frame }
    }

    fn note(&mut self, number: usize, register: u8, value: Option<u64>) -> bool {
        let frame = number.wrapping_sub(self.first) as u32;
        let recovered = Recovered { frame, register, is_found: value.is_some(), value: value.unwrap_or(0) };
        match self.recovered.get_mut(self.count) {
            Some(place) => {
                *place = recovered;
                self.count += 1;
                true
            }
            None => false,
        }
    }
}

/// What was recovered for one frame.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    recovered: &'a [Recovered],
    frame: u32,
}

impl Known<'_> {
    /// `None`: not tried yet; `Some(None)`: tried, and not found.
    pub(super) fn value(&self, register: u8) -> Option<Option<u64>> {
        let mut all = self.recovered.iter();
        let found = all.find(|known| known.frame == self.frame && known.register == register)?;
        Some(found.is_found.then_some(found.value))
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
    let WalkState { number, origin, again, scratch, .. } = state;
    if origin.count == MAX_RECOVERED {
        return false;
    }
    let again = Again::begin::<A, M>(again, memory, &origin.start, register);
    for inner in origin.first..*number {
        again.before = again.frame;
        let left = &mut origin.left;
        let saved = saved_in(rules, memory, again.before.look_up(), register, scratch, left);
        let Some(saved) = saved else {
            again.value = None;
            break;
        };
        if step::<A, M>(rules, memory, &mut again.frame, origin.known(inner), scratch).is_err() {
            again.value = None;
            break;
        }
        again.read::<A, M>(memory, saved, scratch);
    }
    origin.note(*number, register, again.value)
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

/// A walk that is repeated for one register.
pub(super) struct Again {
    before: Frame,
    frame: Frame,
    /// The register's value in `frame`, if known.
    value: Option<u64>,
}

impl Again {
    #[inline(never)]
    fn begin<'a, A: Arch, M: Memory + ?Sized>(
        place: &'a mut MaybeUninit<Again>,
        memory: &mut M,
        start: &Frame,
        register: u8,
    ) -> &'a mut Again {
        let context = start.at.context;
        let value = if context == 0 { None } else { of_context::<A, M>(memory, context, register) };
        place.write(Again { before: *start, frame: *start, value })
    }

    /// Follows the register through the frame that was just left.
    #[inline(always)]
    fn read<A: Arch, M: Memory + ?Sized>(&mut self, memory: &mut M, saved: Saved, scratch: &mut Scratch) {
        let cfa = self.frame.at.sp;
        self.value = match saved.how {
            RegisterRule::Same => self.value,
            RegisterRule::Undefined => None,
            RegisterRule::AtCfa => memory.word(cfa.wrapping_add(saved.value)),
            RegisterRule::Cfa => Some(cfa.wrapping_add(saved.value)),
            RegisterRule::Register => {
                u8::try_from(saved.value).ok().and_then(|number| self.before.register::<A>(number))
            }
            RegisterRule::At => match self.evaluate::<A, M>(memory, saved, scratch) {
                Some(address) => memory.word(address),
                None => None,
            },
            RegisterRule::Value => self.evaluate::<A, M>(memory, saved, scratch),
        };
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
        let register = |_: &mut M, number| self.before.register::<A>(number);
        expression::evaluate(
            code,
            Some(self.frame.at.sp),
            memory,
            scratch.stack.write(Stack::new()),
            register,
        )
    }
}

impl Frame {
    /// Of the registers that every walk follows.
    fn register<A: Arch>(&self, number: u8) -> Option<u64> {
        if number == A::SP {
            Some(self.at.sp)
        } else if number == A::FP {
            self.at.fp
        } else {
            None
        }
    }
}
