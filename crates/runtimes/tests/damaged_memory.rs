//! Interpreters whose memory is all wrong: words that lead anywhere. A walk must end, and leave no
//! frame of a chain that it could not read to its end. What it leaves must be readable.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use swipr_runtimes::blocks::{BlockMemory, Blocks};
use swipr_runtimes::code::Code;
use swipr_runtimes::known::KnownKeys;
use swipr_runtimes::perl::{self, Ops, PerlLayout};
use swipr_runtimes::php::{self, PhpGlobals, PhpLayout, PhpThreads};
use swipr_runtimes::python::{self, Layout, ThreadKey};
use swipr_runtimes::room::{Chain, End, MAX_FRAMES};
use swipr_runtimes::ruby::{self, CurrentContext, RubyLayout};
use swipr_runtimes::runtime::Runtime;
use swipr_runtimes::v8::V8Layout;
use swipr_unwind::frame_runs::{FrameRuns, NativeFrames};
use swipr_unwind::frames::{CAPACITY, Storage};

/// Words of memory. Few, so that structures overlap and chains meet again.
const WORDS: usize = 512;
const WALKS: usize = 20_000;
const TID: u32 = 4711;

/// Numbers without a pattern.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A word as it may be in an interpreter: mostly a pointer, with tags or without.
    fn word(&mut self, memory: u64) -> u64 {
        let inside = memory + self.next() % WORDS as u64 * 8;
        match self.next() % 24 {
            0..10 => inside,
            // Types of Python's objects, see `runtimes`.
            10..15 => memory + 8,
            15 => inside | (self.next() % 8),
            16 => 0,
            17 => u64::from(TID),
            18 => u64::MAX - self.next() % 64,
            19 => self.next(),
            20 => ((self.next() % 0x10000) << 32) | (self.next() % 0x200),
            _ => self.next() % 64,
        }
    }
}

/// One of each runtime, in all versions, that begins somewhere in the memory.
fn runtimes(begin: u64) -> Vec<Runtime> {
    let all = (0, u64::MAX);
    let python = python::ROWS.iter().map(|&row| {
        let types = begin + 8;
        Runtime::Python(Layout {
            row,
            runtime: begin,
            code_type: types,
            text_type: types,
            bytes_type: types,
            evaluator: [all, (0, 0)],
            tid_in_block: Some(16),
        })
    });
    let perl = perl::ROWS.iter().map(|&row| {
        let ops = Ops { enter_sub: 1, lines: [2, 3], evals: [4, 5, 6], returns: [7, 8, 9] };
        let variables = [begin, begin + 8, begin + 16, begin + 32];
        Runtime::Perl(PerlLayout {
            row,
            variables,
            compiling: begin + 24,
            threads: None,
            entering: all,
            object: all,
            ops,
            is_program: true,
        })
    });
    let threads = PhpThreads { table: begin, storage: 0, globals: 64, tid_in_block: Some(16) };
    let php = php::ROWS.iter().flat_map(move |&row| {
        let both = [PhpGlobals::OfProcess(begin, TID), PhpGlobals::OfThreads(threads)];
        both.map(|globals| Runtime::Php(PhpLayout { row, globals, pass_function: 0 }))
    });
    let ruby = ruby::ROWS.iter().flat_map(move |row| {
        [CurrentContext::Global(begin), CurrentContext::OfThread(8), CurrentContext::Unknown].map(|current| {
            let (machine, names, id_class_path) = (begin, begin + 64, 3);
            Runtime::Ruby(RubyLayout {
                row,
                machine,
                current,
                names,
                id_class_path,
                object: all,
                inner: all,
                tid_in_block: Some(16),
            })
        })
    });
    python.chain(perl).chain(php).chain(ruby).chain(v8()).collect()
}

/// V8 before version 13, from it on, and one that is neither.
fn v8() -> [Runtime; 3] {
    let v8 = V8Layout {
        frame_context: -8,
        frame_function: -16,
        own_frames: 1 << 17,
        map_type: 12,
        ..V8Layout::default()
    };
    [0, 3, 5].map(|scope_rest| {
        let (types_function, first_other_type, one_byte, representation) = ((0, 40), 30, 8, 7);
        let offsets = V8Layout {
            function_shared: 24,
            shared_name: 16,
            shared_script: 32,
            script_name: 16,
            script_source: 8,
            string_length: 12,
            string_text: 16,
            wide_string_text: 16,
            ..v8
        };
        let more = V8Layout {
            cons_first: 16,
            cons_second: 24,
            slice_parent: 16,
            slice_offset: 24,
            thin_actual: 16,
            scope_locals: 2,
            scope_rest,
            ..offsets
        };
        Runtime::V8(V8Layout {
            types_function,
            type_scope: 9,
            first_other_type,
            one_byte,
            representation,
            cons: 1,
            sliced: 3,
            thin: 5,
            ..more
        })
    })
}

#[test]
fn walks_of_damaged_memory_end_and_leave_nothing_that_cannot_be_read() {
    // SAFETY: zeroed memory is valid for all three.
    let (mut blocks, mut chain, mut runs): (Box<Blocks>, Box<Chain>, Box<FrameRuns>) = unsafe {
        (Box::new_zeroed().assume_init(), Box::new_zeroed().assume_init(), Box::new_zeroed().assume_init())
    };
    let storage: Box<Storage> = Box::new([const { AtomicU64::new(0) }; CAPACITY]);
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut memory = vec![0u64; WORDS];
    let (mut ends, mut found) = ([0u32; End::ALL.len()], 0);
    for _ in 0..WALKS {
        let at = memory.as_ptr() as u64;
        for _ in 0..WORDS {
            let place = numbers.next() as usize % WORDS;
            memory[place] = numbers.word(at);
        }
        let begin = at;
        let total = numbers.next() as usize % 40;
        storage.iter().take(total).for_each(|word| word.store(numbers.word(at), Relaxed));
        (0..total).for_each(|number| runs.note(number, numbers.word(at)));
        let native = NativeFrames { storage: &storage, total, runs: &runs, sp: at };
        for runtime in runtimes(begin) {
            let state = [0, begin + 32][numbers.next() as usize % 2];
            let thread = ThreadKey { tid: TID, pointer: numbers.word(at), pc: numbers.word(at) };
            chain.begin();
            let mut reader = BlockMemory::new(&mut blocks, -1);
            runtime.walk(state, (thread, native), &mut reader, KnownKeys::new(&[]), &mut chain);
            let (end, frames) = (chain.end(), chain.frames());
            assert!(
                frames.len() <= MAX_FRAMES && (frames.is_empty() || matches!(end, End::Root | End::Full))
            );
            ends[end as usize] += 1;
            found += frames.len();
            for frame in frames {
                let content = chain.content(*frame);
                assert!(frame.content == 0 || content.is_some(), "{runtime:?}");
                if let Some(code) = content.and_then(Code::read) {
                    let _ = (code.line(frame.offset), code.source(), code.bytes());
                }
            }
        }
    }
    // The memory is not so wrong that nothing is ever found.
    println!("{ends:?}, {found} frames");
    assert!(found > 0 && ends[End::Inconsistent as usize] > 0 && ends[End::Unreadable as usize] > 0);
}
