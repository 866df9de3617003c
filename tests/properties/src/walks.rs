//! Walks over any stack by any rules: bounded in frames and in reads, the same each time.
//!
//! [`any`] walks over words that only pass for a stack, on both processors, and counts what is
//! read. [`own`] walks over mapped memory between pages that are not, as a signal handler does: a
//! load outside of the given bounds is a fault.

mod world;

use crate::choices::Choices;
use std::cell::RefCell;
use std::sync::atomic::AtomicU64;
use swipr_unwind::arch::{Aarch64, Arch, Native, X86_64};
use swipr_unwind::cache::Cache;
use swipr_unwind::frames::{CAPACITY, EXACT, Frames, Storage, kept};
use swipr_unwind::memory::{self, OwnStack};
use swipr_unwind::published::Rules;
use swipr_unwind::registers::Registers;
use swipr_unwind::walk::{MAX_FRAMES, Stop, Workspace, walk, walk_interrupted};
use world::{CONTEXT_BYTES, Fake, Mapped, STACK, World};

/// Reads of a whole walk: a few words a frame, the code that is read where the frame pointer is not
/// known, and descriptions.
const MAX_READS: usize = 8 * MAX_FRAMES;

/// What a walk comes to.
#[derive(Debug, PartialEq)]
struct Walked {
    frames: Vec<u64>,
    total: usize,
    stop: Stop,
}

/// See the module's text.
pub fn any(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    match choices.byte() % 4 {
        3 => any_of::<Aarch64>(&mut choices),
        _ => any_of::<X86_64>(&mut choices),
    }
}

fn any_of<A: Arch>(choices: &mut Choices<'_>) {
    let start = world::registers(choices);
    let high = if choices.flag() { 0 } else { STACK + choices.below(0x1000) };
    let world = World::new(choices);
    let memory = Fake::new(&world);
    let cold = walked(&world, |rules, frames| {
        let mut memory = memory.clone();
        let stop = walk::<A, _>(rules, &mut memory, start, high, frames, &mut Workspace::new());
        assert!(memory.reads <= MAX_READS, "{} reads", memory.reads);
        stop
    });
    assert!(cold.total <= MAX_FRAMES);
    assert!(cold.frames.iter().skip(1).all(|word| word & !EXACT < 1 << 56), "{cold:x?}");
}

thread_local! {
    /// Of all walks, with whatever tables: what they remember may not lead the next astray.
    static ROOM: RefCell<Box<Workspace>> = RefCell::new(Box::new(Workspace::new()));
}

/// See the module's text.
pub fn own(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let start = world::registers(&mut choices);
    let world = World::new(&mut choices);
    let mapped = Mapped::of(&world, start);
    // SAFETY: getpid(2) takes nothing and cannot fail.
    memory::set_process(unsafe { libc::getpid() });
    let (low, high) = mapped.stack();
    let context = mapped.context();
    fn memory(context: u64, (sp, low, high): (u64, u64, u64), window: &mut [u8]) -> OwnStack<'_> {
        // SAFETY: the context is mapped as long as `mapped`, to its very end.
        let mut memory = unsafe { OwnStack::of_context(context, CONTEXT_BYTES, window) };
        // SAFETY: so is the stack.
        unsafe { memory.set_stack(sp, low, high) };
        memory
    }
    let plain = walked(&world, |rules, frames| {
        let mut window = [0; 512];
        let mut memory = memory(context, (start.sp, low, high), &mut window);
        let start = Registers::from_context::<Native, _>(&mut memory, context).unwrap();
        walk::<Native, _>(rules, &mut memory, start, high, frames, &mut Workspace::new())
    });
    let as_handler = walked(&world, |rules, frames| {
        let mut window = [0; 512];
        let mut memory = memory(context, (start.sp, low, high), &mut window);
        ROOM.with_borrow_mut(|room| {
            world::with_signals_blocked(|| {
                // SAFETY: no signal handler runs: all signals are blocked.
                unsafe { walk_interrupted::<Native, _>(rules, &mut memory, context, high, frames, room) }
            })
        })
    });
    assert_eq!(plain, as_handler);
}

/// With an empty cache.
fn walked(world: &World, walk: impl Fn(&Rules<'_>, &mut Frames<'_>) -> Stop) -> Walked {
    thread_local! {
        static CACHE: Box<Cache> = Box::new(Cache::new());
    }
    let storage: Box<Storage> = Box::new([const { AtomicU64::new(0) }; CAPACITY]);
    CACHE.with(|cache| {
        world.with_snapshot(|snapshot| {
            cache.clear();
            let rules = Rules::new(snapshot, cache, None);
            let run = || {
                let mut frames = Frames::new(&storage);
                let stop = walk(&rules, &mut frames);
                Walked { frames: kept(&storage, frames.total()).collect(), total: frames.total(), stop }
            };
            let cold = run();
            let warm = run();
            // What is remembered is not looked for again: such a walk may come further, not
            // elsewhere.
            let common = cold.total.min(warm.total).min(CAPACITY / 2);
            assert_eq!(cold.frames[..common], warm.frames[..common]);
            assert!(cold.total <= warm.total, "{cold:?} {warm:?}");
            cold
        })
    })
}
