//! Registers that calls keep: where they are, and frames whose CFA or stack pointer is in them.

use super::*;

/// An `.eh_frame_hdr` at TEXT + 0x8000 and frame descriptions behind it, for functions of the code
/// before.
fn describe(text: &mut Vec<u8>, functions: &[(u64, u64, &[u8])]) -> u64 {
    const HEADER: usize = 0x8000;
    const SECTION: usize = 0x9000;
    text.resize(0x10000, 0);
    let mut put = |at: usize, bytes: &[u8]| text[at..at + bytes.len()].copy_from_slice(bytes);
    let four = |value: i64| (value as i32).to_le_bytes();
    // version 1, augmented "zR", factors 1 and -8, return address 16, pointers relative to their
    // place; CFA = rsp + 8
    let common = [1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0];
    put(SECTION, &[&four(20)[..], &four(0), &common].concat());
    put(
        HEADER,
        &[&[1, 0x1b, 3, 0x3b][..], &four((SECTION - HEADER - 4) as i64), &four(functions.len() as i64)]
            .concat(),
    );
    let mut at = SECTION + 24;
    for (number, &(start, end, instructions)) in functions.iter().enumerate() {
        let entry = [four(start as i64 - HEADER as i64), four((at - HEADER) as i64)].concat();
        put(HEADER + 12 + 8 * number, &entry);
        let mut body = [four((at + 4 - SECTION) as i64), four(start as i64 - (at as i64 + 8))].concat();
        body.extend([&four((end - start) as i64)[..], &[0], instructions].concat());
        put(at, &four(body.len() as i64));
        put(at + 4, &body);
        at += 4 + body.len();
    }
    TEXT + HEADER as u64
}

const RBX: u8 = 3;
const R12: u8 = 12;

/// A function at 0x200 whose CFA is rbx + 16, and that has called one that keeps rbx in its frame.
fn under_a_cfa_in_rbx(callee: &[u8], start: Registers) -> (Vec<u64>, Stop) {
    let mut text = vec![];
    let frame_header = describe(
        &mut text,
        &[(0, 0x100, &[]), (0x100, 0x200, callee), (0x200, 0x300, &[0x8c, 2]), (0x300, 0x400, &[])],
    );
    under_a_cfa_in_rbx_by(text, frame_header, &[], start)
}

/// As that, with what says where registers are.
fn under_a_cfa_in_rbx_by(
    text: Vec<u8>,
    frame_header: u64,
    saved: &[RegisterRow],
    start: Registers,
) -> (Vec<u64>, Stop) {
    with_a_cfa_in_rbx(text, frame_header, saved, |world| world.walk::<X86_64>(start))
}

fn with_a_cfa_in_rbx<R>(
    text: Vec<u8>,
    frame_header: u64,
    saved: &[RegisterRow],
    walk: impl FnOnce(&World) -> R,
) -> R {
    let cfa = |register, offset| Extended {
        cfa: CfaRule::Register(register, offset),
        fp: ValueRule::Same,
        return_address: ValueRule::AtCfa(-8),
        sp: ValueRule::Cfa(0),
    };
    let extended = [cfa(RBX, 16), cfa(R12, 8)];
    let rows = [
        (0, sp(8, 0)),      // a leaf
        (0x100, sp(24, 0)), // push %rbx; push %r12
        (0x200, Rule::extended(0).unwrap()),
        (0x300, Rule::extended(1).unwrap()),
        (0x400, Rule::END),
    ];
    let mut stack = vec![0; 80];
    stack[0] = TEXT + 0x108; // the leaf's return address
    stack[1] = STACK + 14 * 8; // r12, as the function at 0x200 had it
    stack[2] = STACK + 8 * 8; // rbx of the function at 0x200
    stack[3] = TEXT + 0x208;
    stack[8] = STACK + 14 * 8; // r12, saved by the function at 0x200 at CFA - 16
    stack[9] = TEXT + 0x308;
    stack[14] = TEXT + 0x408;
    // The interrupted leaf has other values in them.
    stack[30 + X86_64::context_offset(RBX).unwrap() as usize / 8] = 0x1234;
    stack[30 + X86_64::context_offset(R12).unwrap() as usize / 8] = 0x5678;
    let memory = Fake { stack, text };
    let world = World { rows: &rows, extended: &extended, expressions: &[], memory, frame_header, saved };
    walk(&world)
}

fn interrupted() -> Registers {
    Registers { context: STACK + 30 * 8, ..at(4, 0, None) }
}

/// advance 1; rbx at CFA - 16; advance 1; r12 at CFA - 24
const KEEPS_BOTH: [u8; 6] = [0x41, 0x83, 2, 0x41, 0x8c, 3];

#[test]
fn a_cfa_in_a_callee_saved_register_is_found_where_the_callee_keeps_it() {
    let complete = [4, 0x108, 0x208, 0x308, 0x408].map(|offset| TEXT + offset).to_vec();
    assert_eq!(under_a_cfa_in_rbx(&KEEPS_BOTH, interrupted()), (complete.clone(), Stop::Root));
    // Blocked: nothing but pc and sp is known.
    assert_eq!(under_a_cfa_in_rbx(&KEEPS_BOTH, at(4, 0, None)), (complete.clone(), Stop::Root));
    // remember; rbx undefined; restore; the same by expression: DW_OP_lit16, minus
    let other = [0x41, 0x0a, 0x07, 3, 0x0b, 0x10, 3, 2, 0x40, 0x1c, 0x11, 12, 3];
    assert_eq!(under_a_cfa_in_rbx(&other, interrupted()), (complete, Stop::Root));
}

/// Nothing would report an overflow: below that stack lie the slot's frames, and no guard page.
#[test]
fn rarer_steps_leave_most_of_their_own_stack_unused() {
    // rbx and r12 where expressions say; and a description that is long before it says it.
    let mut callee = vec![0x41, 0x10, 3, 2, 0x40, 0x1c, 0x10, 12, 4, 0x08, 24, 0x1c, 0x96];
    callee.extend([0x0a, 0x07, 3, 0x0b].repeat(30));
    let mut text = vec![];
    let header = describe(
        &mut text,
        &[(0, 0x100, &[]), (0x100, 0x200, &callee), (0x200, 0x300, &[0x8c, 2]), (0x300, 0x400, &[])],
    );
    let used = with_a_cfa_in_rbx(text, header, &[], |world| world.depth::<X86_64>(interrupted()));
    std::println!("{used} bytes used");
    assert!(used > 0, "the steps ran somewhere else");
    let bound = if cfg!(debug_assertions) { 16 * 1024 } else { 2 * 1024 };
    assert!(used <= bound, "{used} bytes");
}

/// Regression: stacks through OpenSSL's assembly ended in objects linked without a search table,
/// and in code of a `.debug_frame`.
#[test]
fn without_a_search_table_registers_are_where_the_tables_own_rows_say() {
    let row = |register, start, how, value| RegisterRow { start, register, how, length: 0, value };
    let described =
        [row(DESCRIBED, 0, RegisterRule::Same, 0), row(DESCRIBED, 0x400, RegisterRule::Undefined, 0)];
    let saved = [
        row(RBX, 0x101, RegisterRule::AtCfa, -16),
        row(RBX, 0x200, RegisterRule::Same, 0),
        row(R12, 0x102, RegisterRule::AtCfa, -24),
        row(R12, 0x200, RegisterRule::AtCfa, -16),
        row(R12, 0x300, RegisterRule::Same, 0),
    ];
    let complete = [4, 0x108, 0x208, 0x308, 0x408].map(|offset| TEXT + offset).to_vec();
    let rows = [&saved[..], &described].concat();
    assert_eq!(under_a_cfa_in_rbx_by(vec![], 0, &rows, interrupted()), (complete.clone(), Stop::Root));
    assert_eq!(under_a_cfa_in_rbx_by(vec![], 0, &rows, at(4, 0, None)), (complete.clone(), Stop::Root));
    let known = Registers { fp: Some(0), ..interrupted() };
    assert_eq!(under_a_cfa_in_rbx_by(vec![], 0, &saved, known).1, Stop::Unsupported, "nothing is described");
}

#[test]
fn a_register_that_calls_may_change_has_its_value_where_nothing_else_is_said() {
    let rax = Extended {
        cfa: CfaRule::Register(0, 0),
        fp: ValueRule::Same,
        return_address: ValueRule::AtCfa(-8),
        sp: ValueRule::Cfa(0),
    };
    let rows = [(0, sp(8, 0)), (0x100, Rule::extended(0).unwrap()), (0x200, Rule::END)];
    let mut text = vec![];
    let frame_header =
        describe(&mut text, &[(0, 0x100, &[]), (0x100, 0x200, &[0x0d, 0]), (0x200, 0x300, &[])]);
    let mut stack = vec![0; 80];
    stack[0] = TEXT + 0x108;
    stack[5] = TEXT + 0x208;
    stack[30 + X86_64::context_offset(0).unwrap() as usize / 8] = STACK + 6 * 8;
    let memory = Fake { stack, text };
    let world = World { rows: &rows, extended: &[rax], expressions: &[], memory, frame_header, saved: &[] };
    let complete = [4, 0x108, 0x208].map(|offset| TEXT + offset).to_vec();
    assert_eq!(world.walk::<X86_64>(interrupted()), (complete, Stop::Root));
    // Blocked: the kernel has changed it.
    assert_eq!(world.walk::<X86_64>(at(4, 0, None)).0.len(), 2);
}

#[test]
fn a_register_that_nobody_keeps_ends_the_walk() {
    let cut = |stop| ([4, 0x108, 0x208].map(|offset| TEXT + offset).to_vec(), stop);
    assert_eq!(under_a_cfa_in_rbx(&[], at(4, 0, None)), cut(Stop::FramePointerUnknown));
    assert_eq!(under_a_cfa_in_rbx(&[], interrupted()), cut(Stop::OutOfBounds), "the leaf's own value");
    let lost = [0x07, 3];
    let known = Registers { fp: Some(0), ..interrupted() };
    assert_eq!(under_a_cfa_in_rbx(&lost, known), cut(Stop::Unsupported));
    for broken in [&[0x0b][..], &[0x3f], &[0x10, 3, 0x7f], &[0x83], &[0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a]] {
        assert_eq!(under_a_cfa_in_rbx(broken, known), cut(Stop::Unsupported), "{broken:x?}");
    }
}

/// Regression: stacks were cut at the fifth frame of a recursion through such a function.
#[test]
fn a_recursion_of_cfas_in_other_registers_is_followed_to_its_end() {
    let cfa = |register| Extended {
        cfa: CfaRule::Register(register, 16),
        fp: ValueRule::Same,
        return_address: ValueRule::AtCfa(-8),
        sp: ValueRule::Cfa(0),
    };
    let extended = [cfa(RBX), cfa(R12)];
    let [rbx, r12] = [0, 1].map(|number| Rule::extended(number).unwrap());
    let rows = [(0, sp(8, 0)), (0x100, rbx), (0x200, r12), (0x300, Rule::END)];
    let mut text = vec![];
    // Each keeps its own register at CFA - 16.
    let functions: [(u64, u64, &[u8]); 3] =
        [(0, 0x100, &[]), (0x100, 0x200, &[0x83, 2]), (0x200, 0x300, &[0x8c, 2])];
    let frame_header = describe(&mut text, &functions);
    const DEPTH: usize = 24;
    // The function at 0x100 calls itself, then each calls the other.
    let callers = |number: usize| if number < DEPTH / 2 { RBX } else { [RBX, R12][number % 2] };
    let mut stack = vec![0; 4 * DEPTH + 50];
    let context = 4 * DEPTH + 10;
    let mut expected = vec![TEXT + 4];
    let mut places = [(RBX, context), (R12, context)]
        .map(|(register, at)| at + X86_64::context_offset(register).unwrap() as usize / 8);
    let mut return_place = 0;
    for number in 0..DEPTH {
        let (register, own) = (callers(number), 4 * number + 2);
        let which = usize::from(register == R12);
        stack[return_place] = TEXT + if which == 0 { 0x108 } else { 0x208 };
        expected.push(stack[return_place]);
        stack[places[which]] = STACK + 8 * own as u64;
        (places[which], return_place) = (own, own + 1);
    }
    stack[return_place] = TEXT + 0x308;
    expected.push(TEXT + 0x308);
    let memory = Fake { stack, text };
    let world =
        World { rows: &rows, extended: &extended, expressions: &[], memory, frame_header, saved: &[] };
    let start = Registers { context: STACK + 8 * context as u64, ..at(4, 0, None) };
    assert_eq!(world.walk::<X86_64>(start), (expected, Stop::Root));
}

/// Regression: a rule for rsp was not read. What lay at the CFA was shown as callers.
#[test]
fn the_callers_stack_pointer_is_where_its_own_rule_says() {
    let rule = |cfa, sp, return_address| Extended { cfa, fp: ValueRule::Same, return_address, sp };
    let extended = [
        // CFA = rsp + 32, the return address at CFA - 16, the caller's rsp behind that.
        rule(CfaRule::Register(7, 32), ValueRule::Cfa(-8), ValueRule::AtCfa(-16)),
        rule(CfaRule::Register(RBX, 16), ValueRule::Cfa(0), ValueRule::AtCfa(-8)),
        // A stack pointer that is lost.
        rule(CfaRule::Register(7, 32), ValueRule::Undefined, ValueRule::AtCfa(-16)),
    ];
    let [moved, rbx, lost] = [0, 1, 2].map(|number| Rule::extended(number).unwrap());
    let mut text = vec![];
    // It keeps rbx at CFA - 24.
    let functions: [(u64, u64, &[u8]); 2] = [(0x100, 0x200, &[0x83, 3]), (0x200, 0x300, &[])];
    let frame_header = describe(&mut text, &functions);
    let stack = vec![0, STACK + 5 * 8, TEXT + 0x208, 0, 0, 0, TEXT + 0x408, 0];
    let walk = |rule, start| {
        let rows = [(0x100, rule), (0x200, rbx), (0x400, Rule::END)];
        let memory = Fake { stack: stack.clone(), text: text.clone() };
        let world =
            World { rows: &rows, extended: &extended, expressions: &[], memory, frame_header, saved: &[] };
        world.walk::<X86_64>(start)
    };
    let complete = [0x104, 0x208, 0x408].map(|offset| TEXT + offset).to_vec();
    assert_eq!(walk(moved, at(0x104, 0, None)), (complete, Stop::Root));
    assert_eq!(walk(lost, at(0x104, 0, Some(0))), (vec![TEXT + 0x104], Stop::Unsupported));
}
