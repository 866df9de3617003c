//! What instructions say, beside other readers of the same: a disassembler, and the descriptions
//! that compilers have written.

use super::*;
use crate::{UnwindInput, build_table, described_functions};
use iced_x86::{Decoder, DecoderOptions};
use object::{Object, ObjectSection, ReadRef};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::path::PathBuf;
use swipr_unwind::x86_code::{FP, SP};

/// The C library, OpenSSL's with much assembly where it is, and this test.
fn libraries() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc =
        maps.lines().find_map(|line| Some(line.split_once('/')?.1).filter(|it| it.ends_with("libc.so.6")));
    let libc = PathBuf::from(format!("/{}", libc.expect("a process with glibc")));
    let crypto = libc.with_file_name("libcrypto.so.3");
    [libc, crypto, std::env::current_exe().unwrap()].into_iter().filter(|path| path.exists()).collect()
}

struct Library {
    path: PathBuf,
    start: u64,
    text: Vec<u8>,
    functions: Vec<Range<u64>>,
    table: OwnedTable,
}

impl Library {
    fn open(path: PathBuf) -> Library {
        let bytes = std::fs::read(&path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let section = |name: &str| {
            let section = file.section_by_name(name).unwrap();
            let (offset, length) = section.file_range().unwrap();
            (section.address(), (&*bytes).read_bytes_at(offset, length).unwrap())
        };
        let ((start, text), eh_frame) = (section(".text"), section(".eh_frame"));
        let input = UnwindInput {
            text: start..start + text.len() as u64,
            eh_frame_hdr: Some(section(".eh_frame_hdr")),
            eh_frame,
            debug_frame: None,
            main: None,
            aarch64: false,
        };
        let mut functions = described_functions(eh_frame, false);
        functions.retain(|function| start <= function.start && function.end <= input.text.end);
        Library { table: build_table(&input).unwrap(), start, text: text.to_vec(), functions, path }
    }
}

/// One function of a library, as if nothing described it.
struct Undescribed<'l>(&'l Library, Range<u64>);

impl Code for Undescribed<'_> {
    fn bytes(&mut self, address: u64) -> &[u8] {
        let from = address.checked_sub(self.0.start).map_or(usize::MAX, |from| from as usize);
        self.0.text.get(from..).unwrap_or(&[])
    }

    fn rule(&mut self, address: u64) -> Rule {
        match self.0.table.view().rule(address) {
            _ if self.1.contains(&address) => Rule::NONE,
            Rule::NONE => Rule::END,
            rule => rule,
        }
    }
}

#[test]
fn instructions_are_as_long_as_a_disassembler_says() {
    for library in libraries().into_iter().map(Library::open) {
        let mut decoder = Decoder::with_ip(64, &library.text, library.start, DecoderOptions::NONE);
        let (mut known, mut unknown) = (0, 0);
        for found in decoder.iter().filter(|found| !found.is_invalid()) {
            let at = (found.ip() - library.start) as usize;
            match decode(&library.text[at..]) {
                Some(ours) => assert_eq!(ours.length, found.len(), "{:?} {:#x}", library.path, found.ip()),
                None => unknown += 1,
            }
            known += 1;
        }
        assert!(known > 100_000 && unknown * 1000 < known, "{unknown} of {known}: {:?}", library.path);
    }
}

/// Whether both say the same, as far as they can be compared. `None`: they name different
/// registers, both of which may be right.
fn agree(ours: CodeState, described: CodeState) -> Option<bool> {
    let (Base::Register(register, plus), Base::Register(of_description, offset)) =
        (ours.base, described.base)
    else {
        return None;
    };
    // For a while a register is in both places: compilers say so behind the last push, and do not
    // say that it was popped.
    let is_popped = matches!(described.fp, FramePointer::AtCfa(fp) if fp < -offset);
    let is_pushed = described.fp == FramePointer::In(FP);
    let is_copied = matches!(ours.fp, FramePointer::In(register) if register != FP);
    let is_unknown = is_popped || is_pushed || is_copied || ours.fp == FramePointer::Unknown;
    let same_fp = ours.fp == described.fp || is_unknown;
    (register == of_description).then_some(plus == offset && same_fp)
}

/// Of functions that are entered by a call. In cold parts of others, calls that do not return lie
/// side by side.
#[test]
fn ends_of_functions_say_what_compilers_say() {
    for library in libraries().into_iter().map(Library::open) {
        let described = |at| CodeState::of_rule(library.table.view().rule(at));
        let (mut same, mut other, mut all) = (0, vec![], 0);
        for function in library.functions.iter().filter(|it| described(it.start) == Some(CodeState::AT_ENTRY))
        {
            all += function.end - function.start;
            for (range, state) in scan(function.start, &mut Undescribed(&library, function.clone())) {
                for at in range.filter(|at| function.contains(at)) {
                    match described(at).and_then(|described| agree(state, described)) {
                        Some(true) => same += 1,
                        Some(false) => other.push(at),
                        None => {}
                    }
                }
            }
        }
        let path = &library.path;
        assert!(same * 2 > all, "{same} of {all} bytes: {path:?}");
        assert!(
            other.len() as u64 * 1000 < same,
            "{} of {same} bytes: {path:?}, {:x?}",
            other.len(),
            other.first()
        );
    }
}

/// Assembly at an address, and nothing else.
struct Assembly<'c>(&'c [u8]);

const START: u64 = 0x1000;

impl Code for Assembly<'_> {
    fn bytes(&mut self, address: u64) -> &[u8] {
        address.checked_sub(START).and_then(|from| self.0.get(from as usize..)).unwrap_or(&[])
    }

    fn rule(&mut self, address: u64) -> Rule {
        if address.wrapping_sub(START) < self.0.len() as u64 { Rule::NONE } else { Rule::END }
    }
}

/// Offsets, and what holds from there on.
fn states(code: &[u8]) -> Vec<(u64, Base, FramePointer)> {
    scan(START, &mut Assembly(code)).into_iter().map(|(at, it)| (at.start - START, it.base, it.fp)).collect()
}

#[test]
fn a_realigned_stack_is_left_by_the_register_that_has_its_old_value() {
    // sub $0x60,%rsp; mov %rbx,(%rsp); mov %rbp,8(%rsp); mov %rsp,%rbx; sub $0x80,%rsp; and
    // $-4096,%rsp; dec %rax; jne 1b; mov %rbx,%rsp; mov (%rsp),%rbx; mov 8(%rsp),%rbp; add
    // $0x60,%rsp; ret
    let openblas = [
        0x48, 0x83, 0xec, 0x60, 0x48, 0x89, 0x1c, 0x24, 0x48, 0x89, 0x6c, 0x24, 8, 0x48, 0x89, 0xe3, 0x48,
        0x81, 0xec, 0x80, 0, 0, 0, 0x48, 0x81, 0xe4, 0, 0xf0, 0xff, 0xff, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0x48,
        0x89, 0xdc, 0x48, 0x8b, 0x1c, 0x24, 0x48, 0x8b, 0x6c, 0x24, 8, 0x48, 0x83, 0xc4, 0x60, 0xc3,
    ];
    let (here, saved) = (FramePointer::In(FP), FramePointer::AtCfa(8 - 0x68));
    let [entry, moved] = [8, 0x68].map(|plus| Base::Register(SP, plus));
    let expected = [
        (0, entry, here),
        (4, moved, here),
        (13, moved, saved),
        (16, Base::Register(3, 0x68), saved),
        (38, moved, saved),
        (47, moved, here),
        (51, entry, here),
    ];
    assert_eq!(states(&openblas), expected);
}

#[test]
fn a_realigned_stack_is_left_by_the_word_that_has_its_old_value() {
    // push %rbp; mov %rsp,%rax; sub $0x88,%rsp; and $-32,%rsp; mov %rax,0x40(%rsp); push %rcx; pop
    // %rcx; mov 0x40(%rsp),%rsp; pop %rbp; ret
    let x264 = [
        0x55, 0x48, 0x89, 0xe0, 0x48, 0x81, 0xec, 0x88, 0, 0, 0, 0x48, 0x83, 0xe4, 0xe0, 0x48, 0x89, 0x44,
        0x24, 0x40, 0x51, 0x59, 0x48, 0x8b, 0x64, 0x24, 0x40, 0x5d, 0xc3,
    ];
    let (here, saved) = (FramePointer::In(FP), FramePointer::AtCfa(-16));
    let slot = |slot| Base::Slot { slot, plus: 16 };
    let expected = [
        (0, Base::Register(SP, 8), here),
        (1, Base::Register(SP, 16), saved),
        (4, Base::Register(0, 16), saved),
        (20, slot(0x40), saved),
        (21, slot(0x48), saved),
        (22, slot(0x40), saved),
        (27, Base::Register(SP, 16), saved),
        (28, Base::Register(SP, 8), here),
    ];
    assert_eq!(states(&x264), expected);
}

#[test]
fn frame_pointers_and_jumps_to_either_side_are_followed() {
    // push %rbp; mov %rsp,%rbp; test %rdi,%rdi; je 2f; 1: sub $8,%rsp; leave; ret; 2: jmp 1b
    let code =
        [0x55, 0x48, 0x89, 0xe5, 0x48, 0x85, 0xff, 0x74, 6, 0x48, 0x83, 0xec, 8, 0xc9, 0xc3, 0xeb, 0xf8];
    let fp = (Base::Register(FP, 16), FramePointer::AtCfa(-16));
    let [entry, pushed] = [8, 16].map(|plus| Base::Register(SP, plus));
    let expected = [
        (0, entry, FramePointer::In(FP)),
        (1, pushed, FramePointer::AtCfa(-16)),
        (4, fp.0, fp.1),
        (14, entry, FramePointer::In(FP)),
        (15, fp.0, fp.1),
    ];
    assert_eq!(states(&code), expected);
}

#[test]
fn the_frame_pointer_may_be_in_another_register_and_a_call_may_get_the_pc() {
    // mov %rbp,%r11; push %rbx; call 1f; 1: pop %rax; pop %rbx; mov %r11,%rbp; ret
    let code = [0x49, 0x89, 0xeb, 0x53, 0xe8, 0, 0, 0, 0, 0x58, 0x5b, 0x4c, 0x89, 0xdd, 0xc3];
    let [entry, one, two] = [8, 16, 24].map(|plus| Base::Register(SP, plus));
    let (here, copied) = (FramePointer::In(FP), FramePointer::In(11));
    let expected = [
        (0, entry, here),
        (3, entry, copied),
        (4, one, copied),
        (9, two, copied),
        (10, one, copied),
        (11, entry, copied),
        (14, entry, here),
    ];
    assert_eq!(states(&code), expected);
}

/// Regression: vector instructions behind a call were taken for padding.
#[test]
fn calls_return_to_any_instruction_but_padding() {
    // push %rax; call far away; pxor %xmm0,%xmm0; pop %rax; ret
    let code = [0x50, 0xe8, 0, 0x10, 0, 0, 0x66, 0x0f, 0xef, 0xc0, 0x58, 0xc3];
    assert_eq!(states(&code)[1], (1, Base::Register(SP, 16), FramePointer::In(FP)));
}

#[test]
fn nothing_is_said_where_the_code_does_not_say_it() {
    let cases: [&[u8]; 8] = [
        &[0x50, 0xff, 0xe0],                                           // push %rax; jmp *%rax
        &[0x50, 0xeb, 0xfe],                                           // push %rax; jmp to itself
        &[0x50, 0xe8, 0, 0x10, 0, 0, 0x90, 0x58, 0xc3],                // a call, and padding
        &[0xe8, 0, 0x10, 0, 0, 0xc3],                                  // a call with sp as at the entry
        &[0x48, 0x83, 0xe4, 0xf0, 0xc3],                               // and $-16,%rsp; ret
        &[0x74, 1, 0x58, 0xc3],                                        // je 1f; pop %rax; 1: ret
        &[0x48, 0x89, 0xe1, 0x48, 0xff, 0xc1, 0x48, 0x89, 0xcc, 0xc3], // rcx is changed
        &[0xb8, 15, 0, 0, 0, 0x0f, 0x05, 0xc3],                        // rt_sigreturn; another function
    ];
    for code in cases {
        assert!(states(code).first().is_none_or(|(at, ..)| *at > 0), "{code:x?}");
    }
}

#[test]
fn functions_are_found_behind_one_another() {
    // push %rax; pop %rax; ret; padding; data; push %rbx; pop %rbx; ret
    let mut code = vec![0x50, 0x58, 0xc3];
    code.resize(16, 0x90);
    code.resize(32, 0xff);
    code.extend([0x53, 0x5b, 0xc3]);
    let found = scan_functions(&(START..START + code.len() as u64), &mut Assembly(&code));
    let pushed: Vec<_> = found.iter().filter(|it| it.1.base == Base::Register(SP, 16)).collect();
    assert_eq!(pushed.iter().map(|it| it.0.start - START).collect::<Vec<_>>(), [1, 33]);
    let table = table(&found).unwrap();
    let rules = [0, 1, 3, 33, 35].map(|at| table.view().rule(START + at));
    let [entry, pushed] = [8, 16].map(|cfa| Rule::sp(cfa, 0).unwrap());
    assert_eq!(rules, [entry, pushed, Rule::NONE, pushed, Rule::NONE]);
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes_are_scanned_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let scanned = scan(START, &mut Assembly(&bytes));
        prop_assert!(scanned.is_sorted_by(|one, next| one.0.end <= next.0.start));
        let _ = scan_functions(&(START..START + bytes.len() as u64), &mut Assembly(&bytes));
        let _ = table(&scanned);
    }
}
