//! Walks over hand-made stacks.

extern crate std;

mod registers;

use super::*;
use crate::arch::{Aarch64, X86_64};
use crate::cache::Cache;
use crate::frames::{CAPACITY, EXACT, Storage, kept};
use crate::published::{Object, Range, Snapshot};
use crate::register_rules::RegisterRule;
use crate::register_table::{DESCRIBED, RegisterRow};
use crate::rule::{CfaRule, Expression, Extended, ValueRule};
use crate::table::{LOWS_PADDING, Table};
use core::sync::atomic::AtomicU64;
use std::boxed::Box;
use std::vec;
use std::vec::Vec;

const TEXT: u64 = 0x40_0000;
const STACK: u64 = 0x7fff_0000;

/// Rows of (offset from TEXT, rule) as table arrays, as the builder of the tables lays them out.
struct Built {
    index: Vec<u32>,
    lows: Vec<u8>,
    ids: Vec<u16>,
    dictionary: Vec<Rule>,
}

fn built(rows: &[(u64, Rule)]) -> Built {
    let last = rows.last().map_or(0, |row| row.0);
    let index = (0..=last / 256 + 1)
        .map(|bucket| rows.iter().filter(|row| row.0 < bucket * 256).count() as u32)
        .collect();
    let mut lows: Vec<u8> = rows.iter().map(|row| row.0 as u8).collect();
    lows.extend([0xff; LOWS_PADDING]);
    Built {
        index,
        lows,
        ids: (0..rows.len() as u16).collect(),
        dictionary: rows.iter().map(|row| row.1).collect(),
    }
}

#[derive(Clone, Default)]
struct Fake {
    /// Words from STACK upwards.
    stack: Vec<u64>,
    /// Bytes from TEXT on.
    text: Vec<u8>,
}

impl Memory for Fake {
    fn word(&mut self, address: u64) -> Option<u64> {
        let at = address.checked_sub(STACK)?;
        (at % 8 == 0).then(|| self.stack.get(at as usize / 8).copied())?
    }
    fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        let Some(at) = address.checked_sub(TEXT) else { return false };
        let Some(bytes) = self.text.get(at as usize..at as usize + buffer.len()) else { return false };
        buffer.copy_from_slice(bytes);
        true
    }
}

struct World<'a> {
    rows: &'a [(u64, Rule)],
    extended: &'a [Extended],
    expressions: &'a [u8],
    memory: Fake,
    frame_header: u64,
    saved: &'a [RegisterRow],
}

impl World<'_> {
    /// The frames' addresses and the reason of the stop.
    fn walk<A: Arch>(&self, start: Registers) -> (Vec<u64>, Stop) {
        let (words, stop) = self.walk_words::<A>(start);
        (words.iter().map(|word| word & !EXACT).collect(), stop)
    }

    fn walk_words<A: Arch>(&self, start: Registers) -> (Vec<u64>, Stop) {
        let storage: Box<Storage> = Box::new([const { AtomicU64::new(0) }; CAPACITY]);
        let mut results = vec![];
        let high = STACK + 8 * self.memory.stack.len() as u64;
        self.with_rules(|rules| {
            // The second time every rule comes from the cache.
            for _ in 0..2 {
                let mut frames = Frames::new(&storage);
                let (mut memory, mut room) = (self.memory.clone(), Workspace::new());
                let stop = walk::<A, _>(rules, &mut memory, start, high, &mut frames, &mut room);
                results.push((kept(&storage, frames.total()).collect(), stop));
            }
        });
        assert_eq!(results[0], results[1]);
        results.remove(0)
    }

    /// Bytes of the workspace's own stack that the walk of an interrupted thread uses, which has to
    /// be complete.
    fn depth<A: Arch>(&self, start: Registers) -> usize {
        let mut memory = self.memory.clone();
        let mut set = |register, value| {
            let at = start.context + A::context_offset(register).unwrap();
            memory.stack[(at - STACK) as usize / 8] = value;
        };
        set(A::PC, start.pc);
        set(A::SP, start.sp);
        let high = STACK + 8 * memory.stack.len() as u64;
        let storage: Box<Storage> = Box::new([const { AtomicU64::new(0) }; CAPACITY]);
        let mut frames = Frames::new(&storage);
        let mut room = Box::new(Workspace::painted());
        self.with_rules(|rules| {
            // SAFETY: this process has no signal handler that would run meanwhile.
            let stop = unsafe {
                walk_interrupted::<A, _>(rules, &mut memory, start.context, high, &mut frames, &mut room)
            };
            assert_eq!(stop, Stop::Root);
        });
        room.used()
    }

    fn with_rules(&self, run: impl FnOnce(&Rules)) {
        let arrays = built(self.rows);
        let text = Range { low: TEXT, high: TEXT + 0x10000 };
        let table = Table {
            base: TEXT,
            index: &arrays.index,
            lows: &arrays.lows,
            ids: &arrays.ids,
            dictionary: &arrays.dictionary,
            extended: self.extended,
            expressions: self.expressions,
            saved: self.saved,
        };
        let objects = [Object { text, table, sections: None, frame_header: self.frame_header }];
        let jit = Range { low: TEXT + 0x20000, high: TEXT + 0x30000 };
        let snapshot = Snapshot { objects: &objects, executable: &[text, jit] };
        let cache = Box::new(Cache::new());
        run(&Rules::new(&snapshot, &cache, None));
    }
}

fn world<'a>(rows: &'a [(u64, Rule)], stack: &[u64]) -> World<'a> {
    World {
        rows,
        extended: &[],
        expressions: &[],
        memory: Fake { stack: stack.to_vec(), text: vec![] },
        frame_header: 0,
        saved: &[],
    }
}

fn at(pc: u64, sp_words: u64, fp: Option<u64>) -> Registers {
    Registers { pc: TEXT + pc, sp: STACK + 8 * sp_words, fp, link: None, context: 0 }
}

fn sp(cfa: i64, fp: i64) -> Rule {
    Rule::sp(cfa, fp).unwrap()
}

fn fp(cfa: i64, fp: i64) -> Rule {
    Rule::fp(cfa, fp).unwrap()
}

#[test]
fn a_frame_pointer_frame_under_frames_without() {
    // 0x00 leaf: CFA = sp+8; 0x10: sub $24 (CFA = sp+32); 0x20: push %rbp; mov (CFA = rbp+16);
    // 0x40: the entry
    let rows = [(0, sp(8, 0)), (0x10, sp(32, 0)), (0x20, fp(16, -16)), (0x40, Rule::END)];
    let stack = [TEXT + 0x18, 0, 0, 0, TEXT + 0x30, 7, 7, STACK + 9 * 8, TEXT + 0x48, 99];
    let result = world(&rows, &stack).walk::<X86_64>(at(4, 0, Some(STACK + 7 * 8)));
    assert_eq!(result, (vec![TEXT + 4, TEXT + 0x18, TEXT + 0x30, TEXT + 0x48], Stop::Root));
}

#[test]
fn a_return_address_belongs_to_the_call_before_it() {
    // The call is the last instruction of its function (0x10..0x20, noreturn); the next function
    // has another rule.
    let rows = [(0, sp(8, 0)), (0x10, sp(16, 0)), (0x20, sp(64, 0)), (0x40, Rule::END)];
    let stack = [TEXT + 0x20, 0, TEXT + 0x41, 0];
    let result = world(&rows, &stack).walk::<X86_64>(at(0, 0, None));
    assert_eq!(result, (vec![TEXT, TEXT + 0x20, TEXT + 0x41], Stop::Root));
}

/// Go's runtime preempts a goroutine by a signal whose handler resumes in `asyncPreempt`, as if the
/// interrupted instruction had called it. Here it is the first one of its function.
#[test]
fn what_a_handler_entered_did_not_leave_its_caller_by_a_call() {
    let rows = [(0, sp(8, 0)), (0x10, sp(64, 0)), (0x20, sp(8, 0)), (0x30, Rule::END)];
    let mut world = world(&rows, &[TEXT + 0x20, TEXT + 0x34]);
    world.memory.text = vec![0xcc; 0x40];
    let words = world.walk_words::<X86_64>(at(0, 0, None));
    assert_eq!(words, (vec![TEXT | EXACT, (TEXT + 0x20) | EXACT, TEXT + 0x34], Stop::Root));
    // A call that does not return, at the end of the function before.
    world.memory.text[0x1b] = 0xe8;
    world.memory.stack = vec![TEXT + 0x20, 0, 0, 0, 0, 0, 0, 0, TEXT + 0x34];
    let words = world.walk_words::<X86_64>(at(0, 0, None));
    assert_eq!(words, (vec![TEXT | EXACT, TEXT + 0x20, TEXT + 0x34], Stop::Root));
}

#[test]
fn a_word_that_only_ends_as_an_address_is_none() {
    // Bit 63 marks addresses in the list of frames: such a word would be shown as the function's.
    let rows = [(0, sp(8, 0)), (0x40, Rule::END)];
    for high in [1 << 63, 1 << 56, 0xffff << 48] {
        let stack = [TEXT + 0x10, (TEXT + 0x44) | high];
        let result = world(&rows, &stack).walk_words::<X86_64>(at(0, 0, None));
        assert_eq!(result, (vec![TEXT | EXACT, TEXT + 0x10], Stop::OutOfBounds), "{high:#x}");
    }
}

#[test]
fn plt_stubs_have_pushed_or_not() {
    let rows = [(0, Rule::plt(11)), (0x40, Rule::END)];
    let before = world(&rows, &[TEXT + 0x41]).walk::<X86_64>(at(6, 0, None));
    assert_eq!(before, (vec![TEXT + 6, TEXT + 0x41], Stop::Root));
    let after = world(&rows, &[3, TEXT + 0x41]).walk::<X86_64>(at(11, 0, None));
    assert_eq!(after, (vec![TEXT + 11, TEXT + 0x41], Stop::Root));
}

#[test]
fn a_realigned_stack_keeps_its_cfa_in_memory() {
    // lea 8(%rsp),%r10; and $-32,%rsp; pushq -8(%r10); push %rbp; mov %rsp,%rbp; push %r10: CFA =
    // *(rbp - 8)
    let rows = [(0, Rule::deref(-8).unwrap()), (0x40, fp(16, -16)), (0x80, Rule::END)];
    let stack = [0, STACK + 6 * 8, STACK + 8 * 8, 0, 0, TEXT + 0x50, 0, 0, 1, TEXT + 0x88, 0];
    let result = world(&rows, &stack).walk::<X86_64>(at(8, 0, Some(STACK + 2 * 8)));
    assert_eq!(result, (vec![TEXT + 8, TEXT + 0x50, TEXT + 0x88], Stop::Root));
}

#[test]
fn a_signal_frame_leads_to_the_interrupted_pc_itself() {
    // The interrupted pc is the first byte of the function at 0x20, whose predecessor has another
    // rule.
    let rows = [(0, Rule::SIGNAL), (0x10, sp(4096, 0)), (0x20, sp(8, 0)), (0x40, Rule::END)];
    let mut stack = vec![0; 40];
    let mut set = |register, value| stack[X86_64::context_offset(register).unwrap() as usize / 8] = value;
    set(X86_64::PC, TEXT + 0x20);
    set(X86_64::SP, STACK + 38 * 8);
    set(X86_64::FP, 5);
    stack[38] = TEXT + 0x44;
    let result = world(&rows, &stack).walk_words::<X86_64>(at(8, 0, None));
    assert_eq!(result, (vec![(TEXT + 8) | EXACT, (TEXT + 0x20) | EXACT, TEXT + 0x44], Stop::Root));
}

#[test]
fn the_trampoline_behind_a_handler_stands_at_its_first_instruction() {
    // Its description begins one byte early, for unwinders that look up return addresses minus one
    // (glibc's does).
    let rows = [(0, Rule::SIGNAL), (0x10, sp(8, 0)), (0x40, Rule::END)];
    let mut stack = vec![0; 40];
    stack[0] = TEXT + 1;
    let mut set = |register, value| stack[1 + X86_64::context_offset(register).unwrap() as usize / 8] = value;
    set(X86_64::PC, TEXT + 0x50);
    set(X86_64::SP, STACK + 39 * 8);
    let result = world(&rows, &stack).walk_words::<X86_64>(at(0x18, 0, None));
    assert_eq!(result, (vec![(TEXT + 0x18) | EXACT, (TEXT + 1) | EXACT, (TEXT + 0x50) | EXACT], Stop::Root));
}

/// Regression: the frame pointer was followed from such code, and what the signal had interrupted
/// was missing, without a mark.
#[test]
fn code_that_returns_from_signals_is_known_without_a_description() {
    let rows = [(0, sp(8, 0)), (0x10, Rule::NONE), (0x30, sp(16, 0)), (0x40, Rule::END)];
    let mut stack = vec![0; 60];
    stack[0] = TEXT + 0x20;
    let mut set = |register, value| stack[1 + X86_64::context_offset(register).unwrap() as usize / 8] = value;
    set(X86_64::PC, TEXT + 0x30);
    set(X86_64::SP, STACK + 50 * 8);
    let segments = 1 + (X86_64::context_offset(X86_64::PC).unwrap() as usize + 16) / 8;
    stack[segments] = 0x2b_0000_0000_0033;
    stack[51] = TEXT + 0x48;
    stack[54..56].copy_from_slice(&[0, TEXT + 0x48]);
    let mut world = world(&rows, &stack);
    world.memory.text = vec![0x90; 0x80];
    let start = at(4, 0, Some(STACK + 54 * 8));
    let by_frame_pointer = (vec![TEXT + 4, TEXT + 0x20, TEXT + 0x48], Stop::Root);
    assert_eq!(world.walk::<X86_64>(start), by_frame_pointer, "other code");
    for code in [&[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05][..], &[0xb8, 15, 0, 0, 0, 0x0f, 0x05]] {
        world.memory.text[0x20..0x20 + code.len()].copy_from_slice(code);
        let words = [4 | EXACT, 0x20 | EXACT, 0x30 | EXACT, 0x48].map(|offset| TEXT + offset);
        assert_eq!(world.walk_words::<X86_64>(start), (words.to_vec(), Stop::Root));
    }
    world.memory.stack[segments] = 0;
    assert_eq!(world.walk::<X86_64>(start), by_frame_pointer, "no registers");
}

#[test]
fn code_without_a_table_is_left_by_its_frame_pointer() {
    let rows = [(0, fp(16, -16)), (0x40, Rule::END), (0x60, Rule::NONE)];
    let jit = 0x20010;
    let stack = [0, STACK + 4 * 8, TEXT + 0x8, 0, 1, TEXT + 0x48, 0];
    let result = world(&rows, &stack).walk::<X86_64>(at(jit, 0, Some(STACK + 8)));
    assert_eq!(result, (vec![TEXT + jit, TEXT + 8, TEXT + 0x48], Stop::Root));
    // A frame pointer that is data: the innermost frame has its return address on top of the stack.
    let leaf = world(&rows, &[TEXT + 0x48]).walk::<X86_64>(at(jit, 0, Some(0x1234)));
    assert_eq!(leaf, (vec![TEXT + jit, TEXT + 0x48], Stop::Root));
    // Neither: say so.
    let lost = world(&rows, &[17, 18]).walk::<X86_64>(at(jit, 0, Some(0x1234)));
    assert_eq!(lost, (vec![TEXT + jit], Stop::NoTable));
}

/// Regression: in a handler of the fault the frame pointer was followed from the null pointer that
/// was called: the caller was missing, without a mark.
#[test]
fn a_null_pointer_that_was_called_has_no_frame() {
    let rows = [(0, Rule::SIGNAL), (0x10, fp(16, -16)), (0x60, Rule::END)];
    let mut stack = vec![0; 50];
    let mut set = |register, value| stack[X86_64::context_offset(register).unwrap() as usize / 8] = value;
    set(X86_64::PC, 0);
    set(X86_64::SP, STACK + 40 * 8);
    set(X86_64::FP, STACK + 42 * 8);
    stack[40..48].copy_from_slice(&[TEXT + 0x18, 0, STACK + 45 * 8, TEXT + 0x28, 0, 17, TEXT + 0x68, 0]);
    let mut world = world(&rows, &stack);
    world.memory.text = vec![0x90; 0x80];
    world.memory.text[0x16..0x18].copy_from_slice(&[0xff, 0xd0]);
    let expected = [TEXT + 8, 0, TEXT + 0x18, TEXT + 0x28, TEXT + 0x68].to_vec();
    assert_eq!(world.walk::<X86_64>(at(8, 0, None)), (expected, Stop::Root));
}

/// Regression: lld describes no stubs of the PLT. The frame pointer was followed there, and the
/// function that had called the stub was missing, without a mark.
#[test]
fn undescribed_stubs_of_the_plt_have_no_frame() {
    let rows = [(0, fp(16, -16)), (0x40, Rule::NONE), (0x60, Rule::END)];
    let stack = [TEXT + 0x18, 0, STACK + 5 * 8, TEXT + 0x28, 0, 17, TEXT + 0x68, 0];
    let mut world = world(&rows, &stack);
    world.memory.text = vec![0x90; 0x80];
    world.memory.text[0x13] = 0xe8;
    // endbr64; bnd jmp *0x100(%rip)
    world.memory.text[0x40..0x4b].copy_from_slice(&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0, 1, 0, 0]);
    let complete = [0x18, 0x28, 0x68].map(|offset| TEXT + offset);
    for pc in [0x40, 0x44, 0x45] {
        let expected = ([&[TEXT + pc], &complete[..]].concat(), Stop::Root);
        assert_eq!(world.walk::<X86_64>(at(pc, 0, Some(STACK + 2 * 8))), expected, "{pc:#x}");
    }
}

/// Regression: on top of the stack of code that PHP compiled, or where its frame pointer pointed,
/// was a function pointer, and a zero behind that: the stack was reported as complete.
#[test]
fn a_function_pointer_is_no_return_address() {
    let rows = [(0, sp(8, 0)), (0x10, sp(8, 0)), (0x14, sp(16, 0)), (0x40, Rule::NONE)];
    let pointer = [TEXT + 0x10, 0, TEXT + 0x10, 0];
    let jit = 0x20010;
    for fp in [STACK + 8, 0x1234] {
        let mut world = world(&rows, &pointer);
        world.memory.text = vec![0x90; 0x80];
        assert_eq!(world.walk::<X86_64>(at(jit, 0, Some(fp))), (vec![TEXT + jit], Stop::NoTable));
        // Behind a call it may be one.
        world.memory.text[0xb] = 0xe8;
        let returns = (vec![TEXT + jit, TEXT + 0x10], Stop::Root);
        assert_eq!(world.walk::<X86_64>(at(jit, 0, Some(fp))), returns);
    }
}

/// Regression: libx264's assembly uses the frame pointer freely. One sample in fifty of ffmpeg
/// ended there and was reported as complete.
#[test]
fn a_frame_pointer_of_zero_does_not_complete_a_stack() {
    let rows = [(0, sp(8, 0)), (0x40, Rule::NONE), (0x60, Rule::END)];
    let result = world(&rows, &[TEXT + 0x48, 17]).walk::<X86_64>(at(8, 0, Some(0)));
    assert_eq!(result, (vec![TEXT + 8, TEXT + 0x48], Stop::NoTable));
}

#[test]
fn padding_ends_a_stack_that_returns_behind_it_and_is_unknown_code_to_who_runs_there() {
    let rows = [(0, sp(16, 0)), (0x20, Rule::PADDING), (0x28, sp(8, 0)), (0x40, Rule::END)];
    let started = world(&rows, &[0, TEXT + 0x28, TEXT + 0x48]).walk::<X86_64>(at(8, 0, Some(0x1234)));
    assert_eq!(started, (vec![TEXT + 8, TEXT + 0x28], Stop::Root));
    // A call that does not return, at a function's end.
    let last = world(&rows, &[0, TEXT + 0x20, 0, TEXT + 0x48]).walk::<X86_64>(at(8, 0, Some(0x1234)));
    assert_eq!(last, (vec![TEXT + 8, TEXT + 0x20, TEXT + 0x48], Stop::Root));
    let inside = world(&rows, &[TEXT + 0x48]).walk::<X86_64>(at(0x24, 0, Some(0x1234)));
    assert_eq!(inside, (vec![TEXT + 0x24, TEXT + 0x48], Stop::Root));
    // A small function that nothing describes, and that has called.
    let caller = world(&rows, &[0, TEXT + 0x25, 17, 18]).walk::<X86_64>(at(8, 0, Some(0x1234)));
    assert_eq!(caller, (vec![TEXT + 8, TEXT + 0x25], Stop::NoTable));
}

#[test]
fn extended_rules_use_any_register_of_an_interrupted_frame() {
    let extended = [
        // CFA = r10 + 0, as while a stack is being realigned
        Extended {
            cfa: CfaRule::Register(10, 0),
            fp: ValueRule::Same,
            return_address: ValueRule::AtCfa(-8),
            sp: ValueRule::Cfa(0),
        },
        // CFA = *(rsp + 16) + 8, as perlasm says it; fp in memory
        Extended {
            cfa: CfaRule::Expression(Expression { start: 0, length: 5 }),
            fp: ValueRule::AtCfa(-16),
            return_address: ValueRule::AtCfa(-8),
            sp: ValueRule::Cfa(0),
        },
    ];
    let rows = [(0, Rule::extended(0).unwrap()), (0x20, Rule::extended(1).unwrap()), (0x40, Rule::END)];
    let mut stack = vec![0; 64];
    let context = STACK + 20 * 8;
    stack[20 + X86_64::context_offset(10).unwrap() as usize / 8] = STACK + 4 * 8;
    stack[3] = TEXT + 0x28;
    stack[6] = STACK + 9 * 8; // *(rsp + 16), rsp = word 4
    stack[9] = TEXT + 0x48;
    let world = World {
        rows: &rows,
        extended: &extended,
        expressions: &[0x77, 16, 0x06, 0x23, 8],
        memory: Fake { stack, text: vec![] },
        frame_header: 0,
        saved: &[],
    };
    let start = Registers { context, ..at(4, 0, None) };
    assert_eq!(world.walk::<X86_64>(start), (vec![TEXT + 4, TEXT + 0x28, TEXT + 0x48], Stop::Root));
    // Without the context r10 is not known.
    assert_eq!(world.walk::<X86_64>(at(4, 0, Some(0))), (vec![TEXT + 4], Stop::Unsupported));
}

#[test]
fn garbage_stops_with_its_reason() {
    let rows = [(0, sp(8, 0)), (0x10, fp(16, -16)), (0x40, Rule::END)];
    let stops = |stack: &[u64], start| world(&rows, stack).walk::<X86_64>(start).1;
    assert_eq!(stops(&[0], at(0, 0, None)), Stop::Root, "a thread's entry without unwind information");
    assert_eq!(stops(&[12], at(0, 0, None)), Stop::OutOfBounds, "a return address in the first page");
    assert_eq!(stops(&[], at(0, 0, None)), Stop::OutOfBounds, "behind the end of the stack");
    assert_eq!(
        stops(&[1, 2, 3], at(0x18, 2, Some(STACK))),
        Stop::OutOfBounds,
        "a frame below the stack pointer"
    );
    assert_eq!(
        stops(&[1, 2, 3], at(0x18, 0, Some(STACK + 4))),
        Stop::OutOfBounds,
        "a frame that is not aligned"
    );
    assert_eq!(
        stops(&[1, 2, 3], at(0x18, 0, Some(u64::MAX - 7))),
        Stop::OutOfBounds,
        "a frame at the end of memory"
    );
    assert_eq!(stops(&[1, 2, 3], at(0x18, 0, None)), Stop::FramePointerUnknown);
    assert_eq!(stops(&[0x77_0000_0000], at(0, 0, None)), Stop::NoTable, "a return address into nowhere");
}

#[test]
fn endless_recursion_ends_at_the_limit_and_keeps_both_ends() {
    let rows = [(0, sp(8, 0)), (0x40, Rule::END)];
    let stack = vec![TEXT + 0x8; MAX_FRAMES + 10];
    let (frames, stop) = world(&rows, &stack).walk::<X86_64>(at(0, 0, None));
    assert_eq!((frames.len(), stop), (CAPACITY, Stop::TooDeep));
}

/// Go's asmcgocall: the caller's stack is elsewhere, here further down.
#[test]
fn a_stack_goes_on_elsewhere_where_a_function_has_left_it() {
    let rows = [(0, sp(16, 0)), (0x10, Rule::OTHER_STACK), (0x20, sp(16, 0)), (0x40, Rule::END)];
    let fp = STACK + 8;
    let stack = [0, fp, TEXT + 0x25, 0, TEXT + 0x45, 0, 0, TEXT + 0x15];
    let start = Registers { pc: TEXT + 4, sp: STACK + 6 * 8, fp: Some(fp), link: None, context: 0 };
    let frames = vec![TEXT + 4, TEXT + 0x15, TEXT + 0x25, TEXT + 0x45];
    assert_eq!(world(&rows, &stack).walk::<X86_64>(start), (frames, Stop::Root));
    let unknown = Registers { fp: None, ..start };
    let cut = (vec![TEXT + 4, TEXT + 0x15], Stop::FramePointerUnknown);
    assert_eq!(world(&rows, &stack).walk::<X86_64>(unknown), cut);
}

/// A caller at 0x100 with a frame pointer, blocked below it: the callee's rule is
/// sp-relative and does not save the frame pointer. `later`: what the function does last.
fn blocked_under_a_frame_pointer(call: [u8; 5], later: &[u8]) -> (Vec<u64>, Stop) {
    let rows = [
        (0, sp(8, 0)),     // the wrapper of the system call
        (0x100, sp(8, 0)), // push %rbp
        (0x101, sp(16, -16)),
        (0x104, fp(16, -16)), // mov %rsp,%rbp done
        (0x200, sp(8, 0)),
        (0x201, sp(16, -16)),
        (0x204, fp(16, -16)),
        (0x300, Rule::END),
    ];
    let mut text = vec![0x90; 0x10000];
    // push %rbp; mov %rsp,%rbp; push %rbx; sub $0x18,%rsp; call wrapper
    let function = [0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x18];
    text[0x100..0x109].copy_from_slice(&function);
    text[0x200..0x209].copy_from_slice(&function);
    text[0x140..0x140 + later.len()].copy_from_slice(later);
    text[0x240..0x245].copy_from_slice(&call); // returns to 0x245
    let stack = [
        TEXT + 0x10e, // the wrapper's return address
        0,
        0,
        0,              // sub $0x18
        0,              // push %rbx
        STACK + 12 * 8, // saved fp
        TEXT + 0x245,
        0,
        0,
        0,
        0,
        0,
        0,
        TEXT + 0x308,
    ];
    let mut world = world(&rows, &stack);
    world.memory.text = text;
    world.walk::<X86_64>(at(4, 0, None))
}

#[test]
fn an_unknown_frame_pointer_is_found_by_the_prologue() {
    let to_function = [0xe8, 0xbb, 0xfe, 0xff, 0xff]; // call 0x100
    let expected = vec![TEXT + 4, TEXT + 0x10e, TEXT + 0x245, TEXT + 0x308];
    assert_eq!(blocked_under_a_frame_pointer(to_function, &[]), (expected.clone(), Stop::Root));
    let indirect = [0x90, 0x90, 0x90, 0xff, 0xd0]; // call *%rax
    assert_eq!(blocked_under_a_frame_pointer(indirect, &[]), (expected, Stop::Root));
}

#[test]
fn a_prologue_that_does_not_fit_the_caller_is_not_believed() {
    let cut = (vec![TEXT + 4, TEXT + 0x10e], Stop::FramePointerUnknown);
    let to_another = [0xe8, 0xbb, 0xfd, 0xff, 0xff]; // call 0x0
    assert_eq!(blocked_under_a_frame_pointer(to_another, &[]), cut);
    assert_eq!(blocked_under_a_frame_pointer([0x90; 5], &[]), cut, "no call at all");
    // Regression: room on the stack that is not cleared holds return addresses of earlier calls.
    // They were taken for this call's: the stacks were wrong, and not cut.
    let indirect = [0x90, 0x90, 0x90, 0xff, 0xd0];
    assert_eq!(blocked_under_a_frame_pointer(indirect, &[0x48, 0x29, 0xc4]), cut, "sub %rax,%rsp: alloca");
}

#[test]
fn aarch64_leaves_by_link_register_then_by_frame_records() {
    // leaf: nothing saved; 0x10: stp x29,x30,[sp,#-32]!: CFA = sp+32, the record at CFA-32
    let rows = [(0, sp(0, 0)), (0x10, sp(32, -32)), (0x40, fp(16, -16)), (0x80, Rule::END)];
    let signature = 0x0025 << 48;
    let stack = [STACK + 4 * 8, (TEXT + 0x50) | signature, 0, 0, 0, TEXT + 0x88, 0];
    let start = Registers { link: Some(TEXT + 0x18), ..at(4, 0, Some(STACK)) };
    let result = world(&rows, &stack).walk::<Aarch64>(start);
    assert_eq!(result, (vec![TEXT + 4, TEXT + 0x18, TEXT + 0x50, TEXT + 0x88], Stop::Root));
    // Without the link register the leaf's caller is not known.
    assert_eq!(world(&rows, &stack).walk::<Aarch64>(at(4, 0, Some(STACK))).1, Stop::Unsupported);
}

#[test]
fn a_return_address_in_the_blocked_system_calls_first_argument_is_found() {
    // vfork pops its return address into rdi: CFA = rsp, and the child may overwrite what is below.
    let extended = [Extended {
        cfa: CfaRule::Register(7, 0),
        fp: ValueRule::Same,
        return_address: ValueRule::Register(5),
        sp: ValueRule::Cfa(0),
    }];
    let rows = [(0, Rule::extended(0).unwrap()), (0x20, sp(16, 0)), (0x40, Rule::END)];
    let world = World { extended: &extended, ..world(&rows, &[7, TEXT + 0x48, 0]) };
    let start = Registers::blocked_with_argument::<X86_64>(TEXT + 4, STACK, TEXT + 0x28);
    assert_eq!(world.walk::<X86_64>(start), (vec![TEXT + 4, TEXT + 0x28, TEXT + 0x48], Stop::Root));
    assert_eq!(world.walk::<X86_64>(Registers::blocked(TEXT + 4, STACK)).0, vec![TEXT + 4]);
    // An interrupted thread's link register is its own.
    assert_eq!(Registers::blocked_with_argument::<Aarch64>(4, 8, 1).link, None);
}
