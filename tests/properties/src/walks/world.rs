//! What a walk goes through: rules, code, frame descriptions and the words of a stack, all of
//! choices.

use crate::arrays::Arrays;
use crate::choices::Choices;
use crate::frame_section::{self, FrameSection};
use crate::meaning::X86_64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use swipr_unwind::arch::{Arch, Native};
use swipr_unwind::memory::Memory;
use swipr_unwind::published::{Object, Range, Snapshot};
use swipr_unwind::registers::Registers;
use swipr_unwind::rule::{CfaRule, Expression, Extended, Rule, ValueRule};
use swipr_unwind::table::Table;

/// Where the stack's memory begins.
pub const STACK: u64 = 0x2000_0001_0000;
/// Where the code that rules are of begins.
const TEXT: u64 = frame_section::TEXT + 0x40_0000;
const TEXT_BYTES: u64 = 0x1000;
/// Code without rules.
const JIT: Range = Range { low: 0x60_0000, high: 0x60_1000 };
/// Bytes of a `ucontext` that are read.
pub const CONTEXT_BYTES: u64 = 512;

const MAX_WORDS: u64 = 400;
const MAX_ROWS: u64 = 40;
const PAGE: u64 = 4096;

/// See the module's text.
#[derive(Debug)]
pub struct World {
    rows: Arrays,
    extended: Vec<Extended>,
    expressions: Vec<u8>,
    /// Of the code, from [`TEXT`] on.
    code: Vec<u8>,
    /// Descriptions of the code, as far as there are any.
    sections: Option<FrameSection>,
    words: Vec<u64>,
}

/// A word as stacks have them: an address of code or of the stack, small, or any.
fn word(choices: &mut Choices<'_>) -> u64 {
    match choices.below(8) {
        0..=2 => TEXT + choices.below(0x300),
        3 | 4 => STACK + 8 * choices.below(MAX_WORDS),
        5 => JIT.low + choices.below(0x1000),
        6 => (TEXT + choices.below(0x300)) | 1 << (40 + choices.below(24)),
        _ => choices.word(),
    }
}

/// Where a thread stands.
pub fn registers(choices: &mut Choices<'_>) -> Registers {
    let pc = word(choices);
    let sp = match choices.byte() {
        255 => choices.word(),
        _ => STACK + 8 * choices.below(64),
    };
    let fp = choices.flag().then(|| word(choices));
    let link = choices.flag().then(|| word(choices));
    Registers { pc, sp, fp, link, context: 0 }
}

fn rule(choices: &mut Choices<'_>) -> Rule {
    let rule = match choices.below(12) {
        0..=2 => Rule::sp(choices.offset(), 0),
        3 => Rule::sp(choices.offset(), choices.offset()),
        4 | 5 => Rule::fp(16, -16),
        6 => Rule::fp(choices.offset(), choices.offset()),
        7 => Some(Rule::plt(choices.byte())),
        8 => Some(choices.one_of(&[Rule::SIGNAL, Rule::END, Rule::SIGNAL])),
        9 => Rule::deref(choices.offset()),
        _ => Rule::extended(choices.below(8) as u32),
    };
    rule.unwrap_or(Rule::NONE)
}

fn extended(choices: &mut Choices<'_>) -> Extended {
    let expression = |choices: &mut Choices<'_>| Expression {
        start: choices.word() as u32 % 200,
        length: u16::from(choices.byte() % 32),
    };
    let value = |choices: &mut Choices<'_>| match choices.below(8) {
        0 => ValueRule::Same,
        1 => ValueRule::Undefined,
        2 | 3 => ValueRule::AtCfa(choices.offset()),
        4 => ValueRule::Cfa(choices.offset()),
        5 => ValueRule::Register(choices.byte() % 40),
        6 => ValueRule::At(expression(choices)),
        _ => ValueRule::Value(expression(choices)),
    };
    let cfa = match choices.below(3) {
        0 | 1 => CfaRule::Register(choices.byte() % 40, choices.offset()),
        _ => CfaRule::Expression(expression(choices)),
    };
    let sp = if choices.flag() { ValueRule::Cfa(0) } else { value(choices) };
    Extended { cfa, fp: value(choices), return_address: value(choices), sp }
}

impl World {
    /// Of these choices.
    pub fn new(choices: &mut Choices<'_>) -> World {
        let sections = choices.flag().then(|| FrameSection::new(choices, X86_64));
        let mut at = 0;
        let rows: Vec<(u64, Rule)> = (0..1 + choices.below(MAX_ROWS))
            .map(|_| {
                at += 1 + choices.below(24);
                (at, rule(choices))
            })
            .collect();
        let extended = (0..choices.below(6)).map(|_| extended(choices)).collect();
        let expressions = choices.some_bytes().to_vec();
        let mut code = choices.some_bytes().to_vec();
        code.resize(TEXT_BYTES as usize, 0x90);
        let count = choices.below(MAX_WORDS);
        let words = (0..count).map(|_| word(choices)).collect();
        World { rows: Arrays::of(&rows), extended, expressions, code, sections, words }
    }

    /// Calls `look` with the tables.
    pub fn with_snapshot<R>(&self, look: impl FnOnce(&Snapshot<'_>) -> R) -> R {
        let text = Range { low: TEXT, high: TEXT + TEXT_BYTES };
        let table =
            Table { extended: &self.extended, expressions: &self.expressions, ..self.rows.table(TEXT) };
        let frame_header = if self.sections.is_some() { frame_section::HEADER } else { 0 };
        let objects = [Object { text, table, sections: None, frame_header }];
        look(&Snapshot { objects: &objects, executable: &[text, JIT] })
    }
}

/// A world's memory without any.
#[derive(Clone, Debug)]
pub struct Fake<'a> {
    world: &'a World,
    /// How often something was read.
    pub reads: usize,
}

impl Fake<'_> {
    /// Of which nothing was read.
    pub fn new(world: &World) -> Fake<'_> {
        Fake { world, reads: 0 }
    }
}

impl Memory for Fake<'_> {
    fn word(&mut self, address: u64) -> Option<u64> {
        self.reads += 1;
        let at = address.checked_sub(STACK)?;
        (at % 8 == 0).then(|| self.world.words.get(at as usize / 8).copied())?
    }

    fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        self.reads += 1;
        let empty = &[][..];
        let (frames, header) = match &self.world.sections {
            Some(sections) => (&sections.frames[..], &sections.header[..]),
            None => (empty, empty),
        };
        let all =
            [(TEXT, &self.world.code[..]), (frame_section::FRAMES, frames), (frame_section::HEADER, header)];
        let bytes = all.into_iter().find_map(|(start, bytes)| {
            let at = usize::try_from(address.checked_sub(start)?).ok()?;
            bytes.get(at..at.checked_add(buffer.len())?)
        });
        bytes.map(|bytes| buffer.copy_from_slice(bytes)).is_some()
    }
}

/// A world's stack in memory, a page, and a page that ends with a `ucontext`. What lies before and
/// behind them is not mapped.
#[derive(Debug)]
pub struct Mapped {
    memory: *mut u8,
    _alone: MutexGuard<'static, ()>,
}

/// Held by the one user of the memory: it is always at the same address.
static ALONE: Mutex<()> = Mutex::new(());

const PAGES: u64 = 5;
const STACK_PAGE: u64 = 1;
const CONTEXT_PAGE: u64 = 3;

impl Mapped {
    /// With the registers in the context.
    pub fn of(world: &World, registers: Registers) -> Mapped {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let start = STACK - STACK_PAGE * PAGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: a new mapping, where nothing is yet.
        let memory =
            unsafe { libc::mmap(start as *mut _, (PAGES * PAGE) as usize, libc::PROT_NONE, flags, -1, 0) };
        assert_eq!(memory as u64, start);
        let memory: *mut u8 = memory.cast();
        for page in [STACK_PAGE, CONTEXT_PAGE] {
            // SAFETY: a page of the mapping just made.
            let result = unsafe {
                let page = memory.add((page * PAGE) as usize);
                libc::mprotect(page.cast(), PAGE as usize, libc::PROT_READ | libc::PROT_WRITE)
            };
            assert_eq!(result, 0);
        }
        let mapped = Mapped { memory, _alone: alone };
        for (number, &word) in world.words.iter().enumerate() {
            mapped.write(STACK + 8 * number as u64, word);
        }
        let values =
            [(Native::PC, registers.pc), (Native::SP, registers.sp), (Native::FP, registers.fp.unwrap_or(0))];
        for (number, value) in values {
            mapped.write(mapped.context() + Native::context_offset(number).unwrap(), value);
        }
        mapped
    }

    fn write(&self, address: u64, word: u64) {
        // SAFETY: the callers' addresses are aligned and in the pages made writable.
        unsafe { (address as *mut u64).write(word) };
    }

    /// Where the stack begins and ends.
    pub fn stack(&self) -> (u64, u64) {
        (STACK, STACK + PAGE)
    }

    /// The `ucontext`.
    pub fn context(&self) -> u64 {
        self.memory as u64 + (CONTEXT_PAGE + 1) * PAGE - CONTEXT_BYTES
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `of`, which nothing refers to any more.
        unsafe { libc::munmap(self.memory.cast(), (PAGES * PAGE) as usize) };
    }
}

/// Calls `body` while no signal handler runs on this thread.
pub fn with_signals_blocked<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: sets of signals that are ours, filled before they are read.
    unsafe {
        let (mut all, mut old) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        let result = body();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, std::ptr::null_mut());
        result
    }
}
