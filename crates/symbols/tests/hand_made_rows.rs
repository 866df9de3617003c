//! Rules of hand-made call frame information: the kinds that system libraries of
//! one machine need not have, among them all of aarch64's.

use std::ops::Range;
use swipr_symbols::rows::{DebugFrameInput, UnwindInput, build_table};
use swipr_symbols::table::OwnedTable;
use swipr_unwind::rule::{CfaRule, Extended, Kind, Rule, ValueRule};

const ADDRESS: u64 = 0x10_0000;

/// One function: its code, and the instructions of its description.
type Function<'a> = (Range<u64>, &'a [u8]);

/// An `.eh_frame` at [`ADDRESS`] with one common entry, and its table.
struct Section {
    aarch64: bool,
    augmentation: &'static [u8],
    common: &'static [u8],
}

/// `def_cfa rsp, 8; offset rip, -8`, factored by -8.
const X86_64: Section =
    Section { aarch64: false, augmentation: b"zR\0", common: &[0x0c, 7, 8, 0x80 | 16, 1] };
/// `def_cfa sp, 0`, factored by -8.
const AARCH64: Section = Section { aarch64: true, augmentation: b"zR\0", common: &[0x0c, 31, 0] };

impl Section {
    fn bytes(&self, functions: &[Function]) -> Vec<u8> {
        let mut common = vec![0, 0, 0, 0, 1];
        common.extend(self.augmentation);
        // Factors 1 and -8, the return address's register, absolute pointers of 8 bytes.
        common.extend([1, 0x78, if self.aarch64 { 30 } else { 16 }, 1, 0]);
        common.extend(self.common);
        let mut section = Vec::new();
        push(&mut section, &common);
        for (code, instructions) in functions {
            let mut description = (section.len() as u32 + 4).to_le_bytes().to_vec();
            description.extend(code.start.to_le_bytes());
            description.extend((code.end - code.start).to_le_bytes());
            description.push(0);
            description.extend(*instructions);
            push(&mut section, &description);
        }
        section.extend([0; 4]);
        section
    }

    fn table(&self, functions: &[Function]) -> OwnedTable {
        self.table_with_main(functions, None)
    }

    fn table_with_main(&self, functions: &[Function], main: Option<(u64, &[u8])>) -> OwnedTable {
        let bytes = self.bytes(functions);
        let input = UnwindInput {
            text: 0x1000..0x9000,
            eh_frame_hdr: None,
            eh_frame: (ADDRESS, &bytes),
            debug_frame: None,
            main,
            aarch64: self.aarch64,
        };
        build_table(&input).unwrap()
    }

    fn rule(&self, instructions: &[u8]) -> (Rule, Option<Extended>) {
        let table = self.table(&[(0x1000..0x1100, instructions)]);
        let view = table.view();
        let rule = view.rule(0x1080);
        (rule, view.extended_rule(rule).copied().filter(|_| rule.kind() == Kind::Extended))
    }
}

fn push(section: &mut Vec<u8>, entry: &[u8]) {
    let length = entry.len().next_multiple_of(4);
    section.extend((length as u32).to_le_bytes());
    section.extend(entry);
    section.resize(section.len() + length - entry.len(), 0);
}

fn sp(cfa: i64, fp: i64) -> Rule {
    Rule::sp(cfa, fp).unwrap()
}

fn fp(cfa: i64, fp: i64) -> Rule {
    Rule::fp(cfa, fp).unwrap()
}

#[test]
fn a_prologue_is_followed_instruction_by_instruction() {
    // push rbp; mov rbp, rsp; ...; pop rbp; ret
    let code = [
        0x41,
        0x0e,
        16,
        0x80 | 6,
        2, // +1: CFA = rsp + 16, rbp at CFA - 16
        0x43,
        0x0d,
        6, // +3: CFA = rbp + 16
        0x02,
        0x40,
        0x0a,
        0x0c,
        7,
        8,
        0xc6, // +64: remembered; CFA = rsp + 8, rbp restored
        0x41,
        0x0b, // +1: as before
    ];
    let table = X86_64.table(&[(0x1000..0x1100, &code)]);
    let at = |pc| table.view().rule(pc);
    assert_eq!(
        [at(0x1000), at(0x1001), at(0x1003), at(0x1004), at(0x1043), at(0x1044), at(0x1045), at(0x10ff)],
        [sp(8, 0), sp(16, -16), sp(16, -16), fp(16, -16), fp(16, -16), sp(8, 0), fp(16, -16), fp(16, -16)],
    );
    assert_eq!(at(0x1100), Rule::NONE);
}

/// LuaJIT registers such descriptions for its JIT code: a stack that seems to end there has callers
/// that are not known.
#[test]
fn a_description_without_any_instruction_describes_nothing() {
    let section = Section { common: &[], ..X86_64 };
    let table = section.table(&[(0x1000..0x1100, &[])]);
    assert_eq!(table.view().rule(0x1010), Rule::NONE);
}

/// Rows of functions with such a common entry were seen to be shifted; where their registers are
/// saved was not.
#[test]
fn an_advance_in_what_functions_have_in_common_moves_nothing() {
    let section = Section { common: &[0x44, 0x0c, 7, 8, 0x80 | 16, 1, 0x44], ..X86_64 };
    let table = section.table(&[(0x1000..0x1100, &[0x41, 0x0e, 16])]);
    let at = |pc| table.view().rule(pc);
    assert_eq!([at(0x1000), at(0x1001), at(0x10ff)], [sp(8, 0), sp(16, 0), sp(16, 0)]);
}

#[test]
fn aarch64_rules_hold_frame_pointer_and_link_register_together() {
    // stp x29, x30, [sp, -32]!; mov x29, sp; and the way back.
    let code = [
        0x2d, // the return address is signed: moves nothing
        0x44,
        0x0e,
        32,
        0x80 | 29,
        4,
        0x80 | 30,
        3, // +4
        0x44,
        0x0d,
        29, // +4
        0x60,
        0xc0 | 29,
        0xc0 | 30,
        0x0c,
        31,
        0, // +32
    ];
    let table = AARCH64.table(&[(0x1000..0x1100, &code)]);
    let at = |pc| table.view().rule(pc);
    assert_eq!(
        [at(0x1000), at(0x1004), at(0x1008), at(0x1027), at(0x1028)],
        [sp(0, 0), sp(32, -32), fp(32, -32), fp(32, -32), sp(0, 0)],
    );
    let root = [0x07, 30];
    assert_eq!(AARCH64.rule(&root).0, Rule::END);
}

#[test]
fn aarch64_frames_of_another_shape_are_extended() {
    // The link register alone is saved, at CFA - 16.
    let leaf = Extended {
        cfa: CfaRule::Register(31, 16),
        fp: ValueRule::Same,
        return_address: ValueRule::AtCfa(-16),
        sp: ValueRule::Cfa(0),
    };
    assert_eq!(AARCH64.rule(&[0x0e, 16, 0x80 | 30, 2]).1, Some(leaf));
    // The CFA is in x19.
    let moved = Extended {
        cfa: CfaRule::Register(19, 32),
        fp: ValueRule::AtCfa(-32),
        return_address: ValueRule::AtCfa(-24),
        sp: ValueRule::Cfa(0),
    };
    assert_eq!(AARCH64.rule(&[0x0c, 19, 32, 0x80 | 29, 4, 0x80 | 30, 3]).1, Some(moved));
}

#[test]
fn the_outermost_frame_has_no_return_address_until_it_is_restored() {
    let table = X86_64.table(&[(0x1000..0x1100, &[0x07, 16, 0x44, 0xc0 | 16])]);
    // Restored to what the common entry says: below the CFA.
    assert_eq!([table.view().rule(0x1000), table.view().rule(0x1004)], [Rule::END, sp(8, 0)]);
}

#[test]
fn a_signal_frame_is_known_by_its_augmentation_and_where_its_registers_are() {
    let marked = |processor| Section { augmentation: b"zRS\0", ..processor };
    // The CFA and the return address are in the `ucontext`.
    let kernels = [0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 16, 3, 0x77, 0xa8, 1];
    assert_eq!(marked(X86_64).rule(&kernels).0, Rule::SIGNAL);
    assert_eq!(marked(X86_64).rule(&[0x0e, 32]).0, sp(32, 0), "as OCaml's runtime marks others");
    let (_, full) = marked(X86_64).rule(&[0x0f, 3, 0x77, 0, 0x06]);
    assert!(matches!(full.unwrap().cfa, CfaRule::OtherStack(_)));
    assert_eq!(marked(AARCH64).rule(&[0x0c, 29, 0]).0, Rule::SIGNAL);
}

#[test]
fn a_plt_has_its_own_rule() {
    let expression = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    let code = [&[0x0f, expression.len() as u8], &expression[..]].concat();
    assert_eq!(X86_64.rule(&code).0, Rule::plt(11));
    // One operation is another: not a PLT.
    let mut other = code;
    *other.last_mut().unwrap() = 0x1c;
    assert_eq!(X86_64.rule(&other).0.kind(), Kind::Extended);
}

#[test]
fn a_realigned_stack_has_its_own_rule() {
    // CFA = *(rbp - 8), rbp = *(rbp + 0)
    let code = [0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0];
    assert_eq!(X86_64.rule(&code).0, Rule::deref(-8).unwrap());
    // The caller's rbp elsewhere.
    let other = [0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 8];
    let (rule, extended) = X86_64.rule(&other);
    assert_eq!(rule.kind(), Kind::Extended);
    assert!(matches!(extended.unwrap().fp, ValueRule::At(place) if place.length == 2));
}

#[test]
fn what_does_not_fit_is_extended_and_kept_once() {
    // Frames of 200,000 bytes, in two functions.
    let large = [0x0e, 0xc0, 0x9a, 0x0c];
    let table = X86_64.table(&[(0x1000..0x1100, &large), (0x1200..0x1300, &large)]);
    let view = table.view();
    let expected = Extended {
        cfa: CfaRule::Register(7, 200_000),
        fp: ValueRule::Same,
        return_address: ValueRule::AtCfa(-8),
        sp: ValueRule::Cfa(0),
    };
    assert_eq!(view.extended, [expected]);
    assert_eq!(view.rule(0x1000), view.rule(0x1250));
    for (code, fp) in [
        (&[0x09, 6, 12][..], ValueRule::Register(12)),
        (&[0x07, 6], ValueRule::Undefined),
        (&[0x14, 6, 2], ValueRule::Cfa(-16)),
        (&[0x80 | 6, 0], ValueRule::AtCfa(0)),
    ] {
        assert_eq!(X86_64.rule(code).1.unwrap().fp, fp);
    }
    // The stack pointer, by val_offset: not the CFA, the CFA; and unchanged, which says nothing.
    assert_eq!(X86_64.rule(&[0x14, 7, 1]).1.unwrap().sp, ValueRule::Cfa(-8));
    assert_eq!(X86_64.rule(&[0x80 | 7, 1]).1.unwrap().sp, ValueRule::AtCfa(-8));
    for code in [&[0x14, 7, 0][..], &[0x08, 7], &[0x14, 7, 1, 0xc0 | 7]] {
        assert_eq!(X86_64.rule(code).0, sp(8, 0), "{code:x?}");
    }
    // The CFA in r10, the return address not below the CFA.
    assert_eq!(X86_64.rule(&[0x0c, 10, 0]).1.unwrap().cfa, CfaRule::Register(10, 0));
    assert_eq!(X86_64.rule(&[0x80 | 16, 3]).1.unwrap().return_address, ValueRule::AtCfa(-24));
}

#[test]
fn of_overlapping_functions_the_later_start_wins() {
    let table = X86_64.table(&[(0x1000..0x2000, &[0x0e, 16]), (0x1100..0x1200, &[0x0e, 24])]);
    let at = |pc| table.view().rule(pc);
    assert_eq!([at(0x10ff), at(0x1100), at(0x11ff)], [sp(16, 0), sp(24, 0), sp(24, 0)]);
    // A search by start finds the later function, and that it has ended.
    assert_eq!(at(0x1200), Rule::NONE);
}

/// DW_CFA_GNU_negative_offset_extended, which gimli refuses: the frame pointer was followed
/// instead.
#[test]
fn an_offset_the_other_way_is_understood() {
    let mut bytes = vec![];
    push(&mut bytes, &[&[0, 0, 0, 0, 1][..], b"zR\0", &[1, 0x78, 16, 1, 0x1b], X86_64.common].concat());
    let description = bytes.len() as u32;
    let start = 0x1000_u32.wrapping_sub(ADDRESS as u32 + description + 8);
    let fields = [description + 4, start, 0x100].map(u32::to_le_bytes).concat();
    push(&mut bytes, &[&fields[..], &[0, 0x41, 0x0e, 24, 0x2f, 6, 0x7e]].concat());
    bytes.extend([0; 4]);
    let input = UnwindInput {
        text: 0x1000..0x9000,
        eh_frame_hdr: Some((ADDRESS + 0x1000, &[])),
        eh_frame: (ADDRESS, &bytes),
        debug_frame: None,
        main: None,
        aarch64: false,
    };
    let table = build_table(&input).unwrap();
    assert_eq!([0x1000, 0x1001].map(|pc| table.view().rule(pc)), [sp(8, 0), sp(24, 8 * 0x7e)]);
}

/// A return address right behind padding is the start of a function that was not called: the C
/// library's `__start_context` under a coroutine. Regression: such stacks went past their end when
/// padding had the rule of the code before it.
#[test]
fn a_return_address_behind_padding_ends_a_stack_and_larger_holes_have_no_rule() {
    let functions: [Function; 4] = [
        (0x1000..0x1008, &[0x0e, 16]),
        (0x1010..0x1020, &[0x0e, 48]),
        (0x1030..0x103f, &[0x0e, 32, 0x44, 0x0e, 40]),
        (0x1040..0x1050, &[0x0e, 24]),
    ];
    let table = X86_64.table(&functions);
    let of_debug_frame = debug_frame(&functions);
    let debug = build_table(&UnwindInput {
        text: 0x1000..0x9000,
        eh_frame_hdr: None,
        eh_frame: (ADDRESS, &[]),
        debug_frame: Some(DebugFrameInput { bias: 0, bytes: &of_debug_frame, stack_switches: &[] }),
        main: None,
        aarch64: false,
    });
    for table in [&table, &debug.unwrap()] {
        let at = |pc| table.view().rule(pc);
        assert_eq!(
            [at(0x1007), at(0x1008), at(0x100f), at(0x1010)],
            [sp(16, 0), Rule::PADDING, Rule::PADDING, sp(48, 0)]
        );
        assert_eq!([at(0x1020), at(0x102f), at(0x1030)], [Rule::NONE, Rule::NONE, sp(32, 0)]);
        assert_eq!([at(0x103e), at(0x103f), at(0x1040)], [sp(40, 0), Rule::PADDING, sp(24, 0)]);
    }
}

#[test]
fn rows_behind_a_functions_end_are_cut_off() {
    // A row where the function ends, as one post-link optimizer writes, and one behind.
    let code = [0x48, 0x0e, 16, 0x48, 0x0e, 24, 0x48, 0x0e, 32];
    let table = X86_64.table(&[(0x1000..0x1010, &code)]);
    let at = |pc| table.view().rule(pc);
    assert_eq!(
        [at(0x1008), at(0x100f), at(0x1010), at(0x1020)],
        [sp(16, 0), sp(16, 0), Rule::NONE, Rule::NONE]
    );
}

#[test]
fn an_instruction_that_is_not_understood_ends_only_its_function() {
    let broken = [0x44, 0x0e, 16, 0x44, 0x3f];
    let table = X86_64.table(&[(0x1000..0x1100, &broken), (0x1100..0x1200, &[0x0e, 24])]);
    let at = |pc| table.view().rule(pc);
    assert_eq!(
        [at(0x1000), at(0x1004), at(0x1008), at(0x1100)],
        [sp(8, 0), sp(16, 0), Rule::NONE, sp(24, 0)]
    );
}

#[test]
fn a_main_that_nothing_describes_has_rows_only_in_a_hole_between_functions() {
    // push %rax; call far away; pop %rcx; ret
    let code = [0x50, 0xe8, 0, 0x10, 0, 0, 0x59, 0xc3];
    let functions: [Function; 2] = [(0x1000..0x1100, &[]), (0x2000..0x2100, &[])];
    let table = X86_64.table_with_main(&functions, Some((0x1800, &code)));
    let rule = |pc| table.view().rule(pc);
    assert_eq!([0x10ff, 0x1100, 0x17ff].map(rule), [sp(8, 0), Rule::NONE, Rule::NONE]);
    assert_eq!([0x1800, 0x1801, 0x1806, 0x1807].map(rule), [sp(8, 0), sp(16, 0), sp(16, 0), sp(8, 0)]);
    assert_eq!([0x1808, 0x1fff, 0x2000].map(rule), [Rule::NONE, Rule::NONE, sp(8, 0)]);
    let table = X86_64.table_with_main(&functions, Some((0x2100, &code)));
    assert_eq!([0x2101, 0x2108].map(|pc| table.view().rule(pc)), [sp(16, 0), Rule::NONE]);
    // Described already, or in part: the description holds.
    for start in [0x1040, 0x10fc, 0x1ffc] {
        let table = X86_64.table_with_main(&functions, Some((start, &code)));
        assert_eq!(table.view().rule(0x1041), sp(8, 0));
        assert_eq!(table.view().rule(0x1ffd), Rule::NONE, "{start:#x}");
    }
}

/// A `.debug_frame` of the same shape: common entries have another mark, and are named by their
/// offset.
fn debug_frame(functions: &[Function]) -> Vec<u8> {
    let mut section = Vec::new();
    push(&mut section, &[&[0xff; 4][..], &[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x80 | 16, 1]].concat());
    for (code, instructions) in functions {
        let mut description = 0_u32.to_le_bytes().to_vec();
        description.extend(code.start.to_le_bytes());
        description.extend((code.end - code.start).to_le_bytes());
        description.extend(*instructions);
        push(&mut section, &description);
    }
    section
}

fn debug_input(bias: u64, bytes: &[u8]) -> DebugFrameInput<'_> {
    DebugFrameInput { bias, bytes, stack_switches: &[] }
}

#[test]
fn debug_frame_describes_what_eh_frame_does_not() {
    let eh_frame = X86_64.bytes(&[(0x2000..0x2100, &[0x41, 0x0e, 16]), (0x3000..0x3100, &[])]);
    let pushes: &[u8] = &[0x41, 0x0e, 32];
    // In the file's own numbering, which is lower by 0x1000; one before, one in both, one between,
    // one behind, one nowhere.
    let functions = [0x100..0x180, 0x1000..0x1100, 0x1800..0x1900, 0x2400..0x2480, 0x20_0000..0x20_0020]
        .map(|code| (code, pushes));
    let debug = debug_frame(&functions);
    fn input<'a>(eh_frame: &'a [u8], debug_frame: Option<DebugFrameInput<'a>>) -> UnwindInput<'a> {
        let text = 0x1000..0x9000;
        UnwindInput {
            text,
            eh_frame_hdr: None,
            eh_frame: (ADDRESS, eh_frame),
            debug_frame,
            main: None,
            aarch64: false,
        }
    }
    let table = build_table(&input(&eh_frame, Some(debug_input(0x1000, &debug)))).unwrap();
    let at = |pc| table.view().rule(pc);
    assert_eq!(
        [at(0x1100), at(0x1101), at(0x117f), at(0x1180)],
        [sp(8, 0), sp(32, 0), sp(32, 0), Rule::NONE]
    );
    assert_eq!([at(0x2001), at(0x20ff), at(0x2100)], [sp(16, 0), sp(16, 0), Rule::NONE]);
    assert_eq!([at(0x2800), at(0x28ff), at(0x2900), at(0x3050)], [sp(8, 0), sp(32, 0), Rule::NONE, sp(8, 0)]);
    assert_eq!([at(0x3400), at(0x3401), at(0x3480)], [sp(8, 0), sp(32, 0), Rule::NONE]);
    let switches =
        DebugFrameInput { stack_switches: &[(0x1800, Rule::OTHER_STACK)], ..debug_input(0x1000, &debug) };
    let other = build_table(&input(&eh_frame, Some(switches))).unwrap();
    let at = |pc| other.view().rule(pc);
    assert_eq!(
        [at(0x2800), at(0x28ff), at(0x2900), at(0x3401)],
        [Rule::OTHER_STACK, Rule::OTHER_STACK, Rule::NONE, sp(32, 0)]
    );
    let without = build_table(&input(&eh_frame, None)).unwrap();
    assert_eq!(without.undescribed(), 0x8000 - 0x100 - 0x100);
    assert_eq!(without.view().rule(0x1101), Rule::NONE);
    let alone = build_table(&input(&[], Some(debug_input(0x1000, &debug)))).unwrap();
    assert_eq!([alone.view().rule(0x2001), alone.view().rule(0x2100)], [sp(32, 0), Rule::NONE]);
    assert!(build_table(&input(&[], Some(debug_input(0x100_0000, &debug)))).is_err());
    // Damage gives fewer rows and never a panic.
    for at in 0..debug.len() {
        let mut damaged = debug.clone();
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            damaged[at] = value;
            let _ = build_table(&input(&eh_frame, Some(debug_input(0x1000, &damaged))));
        }
    }
}
