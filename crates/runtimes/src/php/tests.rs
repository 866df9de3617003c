use super::*;
use crate::blocks::Blocks;

/// That of 8.2.
const ROW: PhpRow = ROWS[3];
const MAIN: u64 = 1 << 16;

/// A structure of zeroes but for these words.
fn structure(words: &[(u16, u64)]) -> Vec<u64> {
    let mut structure = vec![0; 64];
    for &(at, word) in words {
        structure[at as usize / 8] |= word << (8 * (at % 8));
    }
    structure
}

fn address<T>(structure: &[T]) -> u64 {
    structure.as_ptr() as u64
}

fn string(text: &str) -> Vec<u64> {
    let mut string = structure(&[(ROW.string_length, text.len() as u64)]);
    for (at, byte) in text.bytes().enumerate() {
        let at = ROW.string_text as usize + at;
        string[at / 8] |= u64::from(byte) << (8 * (at % 8));
    }
    string
}

/// The operations of a function, at lines 11, 12, and so on.
fn operations() -> Vec<u64> {
    let lines = (0..4).map(|n| (n * ROW.op_bytes + ROW.op_line, 11 + u64::from(n)));
    structure(&lines.collect::<Vec<_>>())
}

/// A function that begins in line 10.
fn function(name: &[u64], file: &[u64], operations: &[u64]) -> Vec<u64> {
    let name = if name.is_empty() { 0 } else { address(name) };
    structure(&[
        (ROW.function_type, USER.into()),
        (ROW.function_name, name),
        (ROW.function_file, address(file)),
        (ROW.function_line, 10),
        (ROW.function_ops, address(operations)),
        (ROW.function_op_count, 4),
    ])
}

fn frame(function: &[u64], previous: &[u64], op: u64, call: u64) -> Vec<u64> {
    let previous = if previous.is_empty() { 0 } else { address(previous) };
    let function = if function.is_empty() { 0 } else { address(function) };
    structure(&[
        (ROW.frame_function, function),
        (ROW.frame_previous, previous),
        (ROW.frame_op, op),
        (ROW.frame_call, call),
    ])
}

/// How the chain from this frame ends, and its lines, leaf first.
fn followed(frame: &[u64]) -> (End, Vec<i32>) {
    followed_with(frame, 0)
}

fn followed_with(frame: &[u64], pass_function: u64) -> (End, Vec<i32>) {
    let globals = structure(&[(ROW.current_frame, address(frame))]);
    // SAFETY: zeroed memory is valid for both.
    let (mut blocks, mut chain): (Box<Blocks>, Box<Chain>) =
        unsafe { (Box::new_zeroed().assume_init(), Box::new_zeroed().assume_init()) };
    let mut memory = BlockMemory::new(&mut blocks, -1);
    let layout = PhpLayout { row: ROW, globals: PhpGlobals::OfProcess(address(&globals), 7), pass_function };
    let thread = ThreadKey { tid: 7, pointer: 0, pc: 0 };
    walk(&layout, 0, thread, &mut memory, KnownKeys::new(&[]), &mut chain);
    (chain.end(), chain.frames().iter().map(|frame| frame.offset).collect())
}

#[test]
fn frames_that_only_link_others_are_left_out_and_lines_are_of_the_function() {
    let (operations, of_another) = (operations(), operations());
    let (name, file) = (string("f"), string("file.php"));
    let (script, f) = (function(&[], &file, &operations), function(&name, &file, &operations));
    let second = address(&operations) + u64::from(ROW.op_bytes);
    let main = frame(&script, &[], second, MAIN | u64::from(ROW.call_is_entry));
    assert_eq!(followed(&main), (End::Root, vec![12]));
    let caller = frame(&f, &main, address(&operations), 0);
    // Neither the frame of a callback, nor that of a generator that another one represents.
    let copy = frame(&f, &caller, 0, 0);
    let placeholder = frame(&[], &copy, 0, 0);
    let leaf = frame(&f, &placeholder, second, 0);
    assert_eq!(followed(&leaf), (End::Root, vec![12, 11, 12]));
    // Regression: a function that has noted no operation yet had the line of another one.
    let stale = frame(&f, &main, address(&of_another), 0);
    assert_eq!(followed(&stale), (End::Root, vec![10, 12]));
}

/// Regression: where a class has no constructor, what is called was taken for a fiber's start,
/// and no function was shown (3 % of a loop that made objects).
#[test]
fn what_stands_for_a_constructor_is_left_out_and_a_fibers_start_ends_the_chain() {
    let (operations, file) = (operations(), string("file.php"));
    let script = function(&[], &file, &operations);
    let main = frame(&script, &[], address(&operations), MAIN);
    let nameless = structure(&[(ROW.function_type, INTERNAL.into())]);
    let leaf = frame(&nameless, &main, 0, 0);
    assert_eq!(followed_with(&leaf, address(&nameless)), (End::Root, vec![11]));
    assert_eq!(followed_with(&leaf, 0), (End::Root, vec![]));
}

/// Regression: a generator was shown as the outermost function (5 of 13,287 stacks).
#[test]
fn a_generator_that_is_not_linked_to_who_resumed_it_is_not_the_outermost_one() {
    let operations = operations();
    let (name, file) = (string("g"), string("file.php"));
    let g = function(&name, &file, &operations);
    let flags = u64::from(ROW.call_is_entry | ROW.call_is_generator);
    assert_eq!(followed(&frame(&g, &[], address(&operations), flags)).0, End::Inconsistent);
}

/// A storage is a thread's only if the thread has it, and the storage names the thread.
#[test]
fn of_each_thread_its_own_storage_is_found() {
    let (mut block, mut storage) = (vec![0; 64], vec![0; 64]);
    block[0] = address(&block);
    (block[8], block[16], storage[2]) = (address(&storage), 4711, address(&block));
    let threads = PhpThreads { table: 0, storage: 64, globals: 128, tid_in_block: Some(128) };
    // SAFETY: zeroed memory is valid.
    let mut blocks: Box<Blocks> = unsafe { Box::new_zeroed().assume_init() };
    let globals_of = |tid, pointer, state, blocks: &mut Blocks| {
        let thread = ThreadKey { tid, pointer, pc: 0 };
        threads.globals_of(thread, state, &mut BlockMemory::new(blocks, -1))
    };
    let (own, another) = (address(&block), address(&storage));
    let globals = Some(address(&storage) + 128);
    assert_eq!(globals_of(4711, own, 0, &mut blocks), globals);
    assert_eq!(globals_of(4711, 0, address(&storage), &mut blocks), globals);
    for (tid, pointer, state) in [(4712, 0, address(&storage)), (4711, another, 0), (4711, 0, 0)] {
        assert_eq!(globals_of(tid, pointer, state, &mut blocks), None);
    }
    // SAFETY: only words of the two structures are asked for.
    let word = |at: u64| Some(unsafe { *(at as *const u64) });
    assert_eq!(threads.owner_of(address(&storage), word), Some((own, 4711)));
    block[8] = 0;
    assert_eq!(threads.owner_of(address(&storage), word), None);
}
