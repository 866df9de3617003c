//! Steps from HotSpot's stubs, most of which have no frame.

use super::code_ahead::{Return, next_return};
use super::java::{PUSH_FP, RETURN, call_target, whole_frames_sp};
use super::steps::enter_caller;
use super::{Frame, Stop};
use crate::arch::Arch;
use crate::code_cache::{CodeCache, CodePiece};
use crate::memory::Memory;
use crate::prologue::follows_call;
use crate::published::Rules;

/// Words, at most, of a method's arguments and of the frame above.
const NEAR: u64 = 48;

/// Steps to the caller of a stub; `None`: to be tried by the frame pointer.
pub(super) fn from_stub<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    cache: &CodeCache,
    piece: CodePiece,
) -> Option<Result<(), Stop>> {
    if frame.at.pc == cache.call_stub {
        return None;
    }
    if let Some(stepped) = from_return_barrier::<A, M>(rules, memory, frame, cache) {
        return Some(stepped);
    }
    let without = if frame.exact { without_frame::<A, M>(rules, memory, frame, cache) } else { None };
    without.or_else(|| to_return::<A, M>(rules, memory, frame, cache, piece))
}

/// From where methods of a virtual thread return to whose callers are still in the heap, to the
/// frame below which all of its methods run, that of the native method `enterSpecial`. It is next,
/// above the arguments of the method, and its own return address is behind a call of its code.
fn from_return_barrier<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    cache: &CodeCache,
) -> Option<Result<(), Stop>> {
    // mov distance(%r15), %rsp
    if frame.exact || !matches!(code_at(memory, frame.at.pc)?, [0x49, 0x8b, 0xa7, _]) {
        return None;
    }
    let least = frame.at.sp;
    let (pc, sp) = (0..NEAR).find_map(|at| {
        let slot = least.checked_add(8 * at)?;
        let return_address = memory.word(slot)?;
        let callee = call_target(rules, memory, cache, return_address)?;
        let callee = cache.find(memory, callee).filter(|callee| callee.frame != 0)?;
        // What aligns frames may have older ones.
        let sp = slot.checked_sub(callee.frame - 8).filter(|sp| *sp >= least)?;
        cache.is_native(memory, callee).then_some((callee.complete + 1, sp))
    })?;
    Some(enter_caller::<A>(frame, pc, sp, None))
}

/// From a stub that has no frame at this instruction. What lies on top of the stack is the return
/// address if the call before it goes to that stub; it may be what an earlier call left there.
fn without_frame<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    cache: &CodeCache,
) -> Option<Result<(), Stop>> {
    let (pc, sp, fp) = (frame.at.pc, frame.at.sp, frame.at.fp);
    let top = memory.word(sp).filter(|_| A::CALL_PUSHES)?;
    if let Some(entry) = called_stub(rules, memory, cache, top) {
        let [at_entry, at_pc] = [code_at(memory, entry)?, code_at(memory, pc)?];
        // ret, with vzeroupper before it or not
        let ends = matches!(at_pc, [RETURN, ..] | [0xc5, 0xf8, 0x77, RETURN]);
        let has_frame = makes_frame(at_entry) && pc != entry && !ends;
        return (!has_frame).then(|| enter_method::<A, M>(rules, memory, frame, cache, (top, sp + 8, fp)));
    }
    let under = memory.word(sp.checked_add(8)?)?;
    let is_pushed = called_stub(rules, memory, cache, under)? == pc.checked_sub(1)?;
    is_pushed.then(|| enter_method::<A, M>(rules, memory, frame, cache, (under, sp + 16, Some(top))))
}

/// The stub to which the call before a return address goes: of the code cache, or of the caller,
/// from which others are jumped to.
fn called_stub<M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    cache: &CodeCache,
    pc: u64,
) -> Option<u64> {
    let target = call_target(rules, memory, cache, pc)?;
    let piece = cache.find(memory, target)?;
    (piece.frame == 0 || (piece.start..piece.end).contains(&pc)).then_some(target)
}

fn code_at<M: Memory + ?Sized>(memory: &mut M, pc: u64) -> Option<[u8; 4]> {
    let mut code = [0; 4];
    memory.code(pc, &mut code).then_some(code)
}

/// Whether a stub begins with `push %rbp; mov %rsp, %rbp`.
fn makes_frame(code: [u8; 4]) -> bool {
    matches!(code, [PUSH_FP, 0x48, 0x8b, 0xec] | [PUSH_FP, 0x48, 0x89, 0xe5])
}

/// From a stub whose code ahead says where its return address is.
pub(super) fn to_return<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    cache: &CodeCache,
    piece: CodePiece,
) -> Option<Result<(), Stop>> {
    if !A::CALL_PUSHES {
        return None;
    }
    let whole = piece.start..piece.end;
    let Return { popped, sp, fp } = next_return(memory, frame.at.pc, whole, (frame.at.sp, frame.at.fp))?;
    let (at, pc) = [popped, Some(sp)].into_iter().flatten().find_map(|at| {
        let pc = memory.word(at)?;
        let is_method = cache.is_interpreter(pc) || cache.find(memory, pc)?.frame != 0;
        (is_method && follows_call(rules, memory, pc) == Some(true)).then_some((at, pc))
    })?;
    let cfa = at.checked_add(8).filter(|cfa| frame.in_stack(*cfa))?;
    Some(enter_method::<A, M>(rules, memory, frame, cache, (pc, cfa, fp)))
}

/// Goes to the method that has called a stub. It may have pushed an argument: then it pops that, or
/// a result, next.
fn enter_method<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    cache: &CodeCache,
    (pc, cfa, fp): (u64, u64, Option<u64>),
) -> Result<(), Stop> {
    let pops = matches!(code_at(memory, pc), Some([0x58..=0x5f, ..] | [0x41, 0x58..=0x5f, ..]));
    let piece = if pops { cache.find(memory, pc).filter(|piece| piece.frame != 0) } else { None };
    let sp = piece.map_or(cfa, |piece| whole_frames_sp::<A, M>(rules, memory, (pc, cfa), cache, piece));
    enter_caller::<A>(frame, pc, sp, fp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Native;
    use crate::cache::Cache;
    use crate::code_cache::tests::{CACHE, CODE, LOW, PIECE, SEGMENT, STACK, World, world};
    use crate::published::Snapshot;
    use crate::registers::Registers;

    #[test]
    fn methods_of_a_virtual_thread_run_below_the_frame_that_its_thread_has_called() {
        let mut world = world();
        const BARRIER: u64 = CODE + 0x500;
        let calls = [(LOW + 350 * SEGMENT, CODE), (LOW + 360 * SEGMENT, LOW + 370 * SEGMENT)];
        let mut put = |at: u64, code: &[u8]| {
            let at = (at - LOW) as usize;
            world.heap[at..at + code.len()].copy_from_slice(code);
        };
        for (from, to) in calls {
            put(from - 5, &[0xe8]);
            put(from - 4, &(to.wrapping_sub(from) as u32).to_le_bytes());
        }
        put(BARRIER, &[0x49, 0x8b, 0xa7, 8]);
        put(PIECE + CACHE.name, &(STACK + 15 * 8).to_le_bytes());
        // The return address of that frame, and those of other calls.
        (world.stack[14], world.stack[12], world.stack[3]) = (calls[0].0, calls[1].0, calls[0].0);
        world.stack[15] = u64::from_le_bytes(*b"native n");
        let (snapshot, known) = (Snapshot { objects: &[], executable: &[] }, Cache::new());
        let rules = Rules::new(&snapshot, &known, Some(&CACHE));
        let at = Registers { pc: BARRIER, sp: STACK + 8, fp: None, link: None, context: 0 };
        let step = |world: &mut World, exact| {
            let mut frame = Frame { exact, ..Frame::new(at, 0) };
            let stepped = from_return_barrier::<Native, _>(&rules, world, &mut frame, &CACHE);
            stepped.map(|_| (frame.at.pc, frame.at.sp))
        };
        assert_eq!(step(&mut world, false), Some((CODE + 13, STACK + 24)));
        assert_eq!(step(&mut world, true), None, "the stub runs");
        // Regression: an outer call's return address was taken for it.
        world.stack[15] = LOW;
        assert_eq!(step(&mut world, false), None, "the method is no native one");
    }
}
