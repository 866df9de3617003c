extern crate std;
use super::*;
use crate::arch::X86_64;
use crate::cache::Cache;
use crate::frames::{CAPACITY, Storage};
use crate::memory::{Memory, OwnStack};
use crate::published::Snapshot;
use core::sync::atomic::AtomicU64;
use std::boxed::Box;

const PC: u64 = 0x7f12_3456_7890;
/// Frames of the stack, 32 bytes each.
const FRAMES: usize = 8;

/// A stack whose return addresses are all [`PC`], and the caches of its walks.
struct World {
    words: Box<[u64; 4 * FRAMES]>,
    cache: Box<Cache>,
    stack_cache: StackCache,
}

impl World {
    fn new(rule: Rule) -> World {
        let words = Box::new(core::array::from_fn(|n| if n % 4 == 3 { PC } else { 0 }));
        let world = World { words, cache: Box::new(Cache::new()), stack_cache: StackCache::new() };
        world.is_left_by(PC, rule);
        world
    }

    /// Sets the rule of the code before the return address `pc`.
    fn is_left_by(&self, pc: u64, rule: Rule) {
        self.cache.put(pc - 1, rule);
    }

    /// Walks from this frame on; returns how many rules had to be looked up.
    fn walk(&mut self, first: usize) -> usize {
        let snapshot = Snapshot { objects: &[], executable: &[] };
        let rules = Rules::new(&snapshot, &self.cache, None);
        self.stack_cache.begin(self.cache.epoch());
        let mut source = CachedRules::new(&rules, &mut self.stack_cache);
        let low = self.words.as_ptr() as u64;
        let high = low + size_of_val(&*self.words) as u64;
        // SAFETY: there is no context.
        let mut memory = unsafe { OwnStack::of_context(0, 0, &mut []) };
        // SAFETY: the words are there.
        unsafe { memory.set_stack(low, low, high) };
        let frame = |n: usize| Frame {
            at: Registers {
                pc: if n == 0 { PC } else { self.words[4 * n - 1] },
                sp: low + 32 * n as u64,
                fp: Some(0),
                link: None,
                context: 0,
            },
            exact: false,
            limit: high,
        };
        let storage: Box<Storage> = Box::new([const { AtomicU64::new(0) }; CAPACITY]);
        let mut frames = Frames::new(&storage);
        let (mut at, mut looked_up) = (first, 0);
        while at < FRAMES {
            let mut now = frame(at);
            at += source.replay::<X86_64>(memory.plain(), &mut now, &mut frames);
            if at < FRAMES {
                assert_eq!((now.at.pc, now.at.sp), (frame(at).at.pc, frame(at).at.sp));
                source.rule(&now);
                (looked_up, at) = (looked_up + 1, at + 1);
            }
        }
        assert_eq!(frames.total() + looked_up, FRAMES - first);
        looked_up
    }
}

#[test]
fn steps_are_remembered_until_the_cache_is_cleared() {
    let mut world = World::new(Rule::sp(32, 0).unwrap());
    assert_eq!([0, 0, 3, 3, 0, 0].map(|first| world.walk(first)), [FRAMES, 0, 0, 0, 3, 0]);
    world.cache.clear();
    world.is_left_by(PC, Rule::sp(32, -16).unwrap());
    assert_eq!([0, 0].map(|first| world.walk(first)), [FRAMES, 0], "other code may be there");
}

#[test]
fn steps_are_those_of_one_address_only_and_what_lies_behind_is_met_again() {
    let rule = Rule::sp(32, 0).unwrap();
    let mut world = World::new(rule);
    world.is_left_by(PC + 1, rule);
    world.walk(0);
    for changed in [4, 2, 6] {
        world.words[4 * changed - 1] = PC + 1;
        assert_eq!([0, 0].map(|first| world.walk(first)), [1, 0], "another place of the same function");
    }
    assert_eq!([1, 0, 0].map(|first| world.walk(first)), [0, 1, 0]);
}

#[test]
fn stacks_that_are_too_deep_are_forgotten() {
    let mut stack_cache = StackCache::new();
    for (depth, remembered) in [(STEPS, STEPS), (STEPS + 1, 0)] {
        stack_cache.begin(0);
        (0..depth).for_each(|n| stack_cache.add(Step { sp: n as u32, ..Step::NONE }));
        stack_cache.begin(0);
        assert_eq!(stack_cache.length, remembered);
    }
}

#[test]
fn steps_end_where_the_stack_ends() {
    // The frame pointer's place is above, or below, the known memory.
    for (words, saved) in [(4, 8 * 28), (4, -8 * 40)] {
        let mut world = World::new(Rule::sp(8 * words, saved).unwrap());
        assert_eq!([0, 0].map(|first| world.walk(first)), [FRAMES, FRAMES]);
    }
}

#[test]
fn rules_that_say_something_of_their_table_only_are_not_remembered() {
    for rule in [Rule::extended(7).unwrap(), Rule::PADDING, Rule::SIGNAL, Rule::plt(11)] {
        let mut world = World::new(rule);
        assert_eq!([0, 0].map(|first| world.walk(first)), [FRAMES, FRAMES], "{rule:?}");
    }
}
