use super::*;
use crate::blocks::Blocks;

pub(super) const ROW: Row = ROWS[ROWS.len() - 1];

/// A structure of zeroes but for these words.
pub(super) fn structure(words: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    for &(at, word) in words {
        bytes[at as usize..][..8].copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

pub(super) fn address(structure: &[u8]) -> u64 {
    structure.as_ptr() as u64
}

/// A frame of a function, called by `previous`.
fn frame(previous: u64) -> Vec<u8> {
    structure(&[(ROW.frame_code, 4096), (ROW.frame_previous, previous)])
}

/// What `judge` says of a walk through structures of this row, of the interpreters at `runtime`.
pub(super) fn with_walk<T>(row: Row, runtime: u64, judge: impl FnOnce(&mut Walk<'_, '_, '_>) -> T) -> T {
    let (code_type, text_type, bytes_type) = (0, 0, 0);
    let (tid_in_block, evaluator) = (None, [(0, 0); 2]);
    let layout = Layout { row, runtime, code_type, text_type, bytes_type, evaluator, tid_in_block };
    // SAFETY: zeroed memory is valid for both.
    let (mut blocks, mut chain): (Box<Blocks>, Box<Chain>) =
        unsafe { (Box::new_zeroed().assume_init(), Box::new_zeroed().assume_init()) };
    let mut memory = BlockMemory::new(&mut blocks, -1);
    let known = KnownKeys::new(&[]);
    judge(&mut Walk { layout: &layout, memory: &mut memory, known, chain: &mut chain, file: (0, 0) })
}

/// How the chain from this frame ends, and how many functions it has.
fn followed(frame: u64) -> (Result<End, End>, usize) {
    let c_frame = structure(&[(ROW.c_frame.unwrap(), frame)]);
    let state = structure(&[(ROW.thread_frame, address(&c_frame))]);
    with_walk(ROW, 0, |walk| (walk.follow(address(&state)), walk.chain.frames().len()))
}

/// Without the interpreter's lock each thread has a copy of a function's instructions.
#[test]
fn an_instruction_is_counted_from_the_start_of_its_threads_copy() {
    let frame_instruction = Instruction::PointerIntoCopy { at: 16, copy: 24, copies: 32 };
    let list = structure(&[(0, 2), (8, 0x4000), (16, 0x7000)]);
    let code = structure(&[(32, address(&list))]);
    let offset = |frame: &[(u64, u64)]| {
        let frame = structure(frame);
        with_walk(Row { frame_instruction, ..ROW }, 0, |walk| walk.offset(address(&frame), address(&code)))
    };
    // Other bytes lie behind the copy's number, of four bytes.
    assert_eq!(offset(&[(16, 0x7018), (24, 5 << 32 | 1)]), Ok(0x18));
    assert_eq!(offset(&[(16, 0x4006), (24, 0)]), Ok(6));
}

/// Regression: a function of which the evaluator had not noted the caller yet was shown as
/// the outermost one (1 of 737 stacks of generators).
#[test]
fn a_frame_that_is_not_linked_to_its_callers_yet_is_no_outermost_one() {
    let Entry::Shim(at) = ROW.frame_entry else { panic!("3.12 has shims") };
    let owner = u64::from(SHIM) << (8 * (at % 8));
    let shim = structure(&[(at / 8 * 8, owner)]);
    let outer = frame(address(&shim));
    assert_eq!(followed(address(&frame(address(&outer)))), (Ok(End::Root), 2));
    assert_eq!(followed(address(&frame(0))).0, Err(End::Inconsistent));
    assert_eq!(followed(0), (Ok(End::Root), 0));
}

/// Whether each frame has a function and is an entry, leaf first. `frames`: a thread's in that
/// version, `*` is a shim.
fn segments(minor: u8, frames: &str) -> Vec<(bool, bool)> {
    let row = Row { minor, ..ROW };
    let Entry::Shim(at) = row.frame_entry else { panic!("3.12 has shims") };
    let owner = u64::from(SHIM) << (8 * (at % 8));
    let mut kept = vec![];
    let mut previous = 0;
    for letter in frames.chars().rev() {
        let special = if letter == '*' { (at / 8 * 8, owner) } else { (row.frame_code, 4096) };
        let made = structure(&[special, (row.frame_previous, previous)]);
        previous = address(&made);
        kept.push(made);
    }
    with_walk(row, 0, |walk| {
        assert_eq!(walk.follow_frames(previous), Ok(End::Root));
        walk.chain.frames().iter().map(|frame| (frame.key != 0, frame.is_entry)).collect()
    })
}

/// Regression: while the outermost function of a native call was being left, what it called, as
/// `__del__`, stood as called by what it calls itself: in 98 % of the samples of a program.
#[test]
fn a_native_call_whose_functions_have_been_left_has_a_segment_of_its_own() {
    let (function, last, empty) = ((true, false), (true, true), (false, true));
    for minor in [12, 14] {
        assert_eq!(segments(minor, "f*"), [last]);
        assert_eq!(segments(minor, "f**gh*"), [last, empty, function, last]);
        assert_eq!(segments(minor, "*f**"), [empty, last, empty]);
    }
    // The base of all.
    assert_eq!(segments(15, "f**"), [last]);
    assert_eq!(segments(15, "f****"), [last, empty, empty]);
    assert_eq!(segments(15, "*"), []);
}

/// Regression: 3 % of the stacks of a program whose C code calls back had no function of Python.
#[test]
fn while_the_evaluator_is_entered_the_frames_of_its_callers_are_read() {
    let Entry::Shim(at) = ROW.frame_entry else { panic!("3.12 has shims") };
    let shim = structure(&[(at / 8 * 8, u64::from(SHIM) << (8 * (at % 8)))]);
    let (outer, current) = (frame(address(&shim)), ROW.c_frame.unwrap());
    let before = structure(&[(current, address(&outer))]);
    for not_set in [12, 4096] {
        let entered = structure(&[(current, not_set), (current + 8, address(&before))]);
        let state = structure(&[(ROW.thread_frame, address(&entered))]);
        let found = with_walk(ROW, 0, |walk| (walk.follow(address(&state)), walk.chain.frames().len()));
        assert_eq!(found, (Ok(End::Root), 1));
    }
}

/// Regression: a function compiled with such a path as its file cost all functions of the process.
#[test]
fn a_string_may_be_of_a_class_of_the_program() {
    let at_of = |flags| {
        let class = structure(&[(ROW.object_type + TYPE_FLAGS, flags)]);
        let is_one_byte = 1 << ROW.text_kind_bit;
        let words = [
            (ROW.object_type, address(&class)),
            (ROW.text_length, 3),
            (ROW.text_state, is_one_byte),
            (ROW.text_compact, 0x5000),
        ];
        let object = structure(&words);
        with_walk(ROW, 0, |walk| walk.text(address(&object), 64).map(|text| (text.at, text.bytes)))
    };
    assert_eq!(at_of(TEXT_SUBCLASS), Ok((0x5000, 3)));
    assert_eq!(at_of(0), Err(End::Inconsistent));
}
