//! Unwind rows and saved registers: made of sound call frame information they say what a plain
//! interpreter says at each pc; made of any bytes they say something, or nothing, and the table is
//! in order.

use crate::choices::Choices;
use crate::frame_section::{FRAMES, FrameSection, HEADER, TEXT};
use crate::meaning::{self, AARCH64, Meaning, Processor, X86_64};
use gimli::{
    BaseAddresses, EhFrame, LittleEndian, Register, RegisterRule as GimliRule, UnwindContext, UnwindSection,
};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use swipr_symbols::elf::build_id_of_notes;
use swipr_symbols::rows::{DebugFrameInput, UnwindInput, build_table, described_from, main_of_start};
use swipr_symbols::table::OwnedTable;
use swipr_unwind::arch::{Arch, Native};
use swipr_unwind::cfi_machine::Descriptions;
use swipr_unwind::memory::Memory;
use swipr_unwind::register_rules::{RegisterRule, Saved};
use swipr_unwind::rule::{Kind, Rule};
use swipr_unwind::sections::{Room, Sections as CopiedSections, TableDemand};

/// Reads for one register: the search's steps, and the windows of at most two descriptions with
/// 32,768 instructions each.
const MAX_READS: usize = 2000;
/// Rows that are compared.
const MAX_COMPARED: usize = 2000;

/// Sound sections with any instructions.
pub fn sound(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let processor = if choices.byte() % 4 == 3 { AARCH64 } else { X86_64 };
    let FrameSection { mut frames, mut header, text_end } = FrameSection::new(&mut choices, processor);
    let text = TEXT..text_end;
    let input = UnwindInput {
        text: text.clone(),
        eh_frame_hdr: None,
        eh_frame: (FRAMES, &frames),
        debug_frame: None,
        main: None,
        aarch64: processor.aarch64,
    };
    let walked = table(&input).expect("it has functions");
    agrees(&walked, &frames, &text, processor);
    let by_header = UnwindInput { eh_frame_hdr: Some((HEADER, &header)), ..input };
    let found = table(&by_header).expect("it has functions");
    agrees(&found, &frames, &text, processor);
    if processor == meaning::NATIVE {
        let plain = frames.clone();
        // What lies behind a section is mapped up to the page's end.
        frames.extend([0; 256]);
        header.extend([0; 256]);
        reads_the_same(&found, (&frames, &header), &text);
        saved_registers_agree(&mut Sections { frames: &frames, header: &header, reads: 0 }, &plain);
    }
}

/// Any bytes in the place of sections.
pub fn any(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let processor = if choices.byte() % 4 == 3 { AARCH64 } else { X86_64 };
    let text = match choices.byte() % 4 {
        0 => choices.word()..choices.word(),
        // A table's index is as large as the code.
        _ => TEXT..TEXT + choices.below(0x10000),
    };
    let bias = choices.one_of(&[0, 0x1000, u64::MAX]);
    let (has_header, has_debug, has_main) = (choices.flag(), choices.flag(), choices.flag());
    let main = has_main.then(|| (TEXT + choices.below(64), choices.some_bytes()));
    let header = has_header.then(|| choices.some_bytes());
    let debug = has_debug.then(|| choices.some_bytes());
    let frames = choices.rest();
    let input = UnwindInput {
        text: text.clone(),
        eh_frame_hdr: header.map(|header| (HEADER, header)),
        eh_frame: (FRAMES, frames),
        debug_frame: debug.map(|bytes| DebugFrameInput { bias, bytes, stack_switches: &[] }),
        main,
        aarch64: processor.aarch64,
    };
    if text.end.saturating_sub(text.start) <= 1 << 24
        && let Some(table) = table(&input)
        && header.is_none()
        && debug.is_none()
        && main.is_none()
    {
        agrees(&table, frames, &text, processor);
    }
    described_from((FRAMES, frames), FRAMES, processor.aarch64);
    build_id_of_notes(frames);
    main_of_start(TEXT, frames);
    let mut sections = Sections { frames, header: header.unwrap_or_default(), reads: 0 };
    for pc in [TEXT, TEXT + 100, text.end] {
        sections.find(pc, 3);
    }
}

/// A table whose rows are in order.
fn table(input: &UnwindInput<'_>) -> Option<OwnedTable> {
    let table = build_table(input).ok()?;
    let view = table.view();
    let mut last = None;
    for row in 0..table.rows() {
        let pc = view.start_of_row(row).unwrap();
        assert!(last.is_none_or(|last| last < pc), "row {row} begins at {pc:#x}");
        assert_eq!(view.row(pc), Some(row));
        last = Some(pc);
    }
    Some(table)
}

fn agrees(table: &OwnedTable, frames: &[u8], text: &Range<u64>, processor: Processor) {
    let functions = meaning::functions(FRAMES, frames, text, processor);
    let view = table.view();
    let mut compared = 0;
    let nexts = functions.iter().skip(1).map(|next| next.start).chain([text.end]);
    for (function, next) in functions.iter().zip(nexts) {
        for (start, end, meaning) in &function.rows {
            let end = (*end).min(next).min(text.end);
            if *start >= end || compared > MAX_COMPARED {
                continue;
            }
            compared += 1;
            for pc in [*start, *start + (end - *start) / 2, end - 1] {
                let rule = view.rule(pc);
                let ours = meaning::ours(rule, &view, processor);
                let expected = Some(meaning).filter(|meaning| **meaning != Meaning::Nothing);
                assert_eq!(ours.as_ref(), expected, "at {pc:#x}: {rule:?}");
            }
        }
    }
}

/// Where a rule can be read of the sections themselves, it is the table's, if that has one: tables
/// know no `set_loc`.
fn reads_the_same(table: &OwnedTable, (frames, header): (&[u8], &[u8]), text: &Range<u64>) {
    let (demand, any_wanted) = (TableDemand::new(u32::MAX), AtomicBool::new(false));
    let (header, frames) = ((HEADER, header), (FRAMES, frames));
    let copied = CopiedSections { header, frames, demand: &demand, any_wanted: &any_wanted };
    let view = table.view();
    for row in 0..table.rows().min(MAX_COMPARED) {
        let Some(pc) = view.start_of_row(row).filter(|pc| text.contains(pc)) else { continue };
        let (rule, expected) = (copied.rule(pc, &mut Room::new()), view.rule(pc));
        let is_full = rule.kind() == Kind::Extended;
        let is_missing = [rule, expected].contains(&Rule::NONE);
        assert!(is_missing || is_full || rule == expected, "at {pc:#x}: {rule:?}, {expected:?}");
    }
}

/// What is mapped.
struct Sections<'a> {
    frames: &'a [u8],
    header: &'a [u8],
    reads: usize,
}

impl Memory for Sections<'_> {
    fn word(&mut self, _: u64) -> Option<u64> {
        None
    }

    fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        self.reads += 1;
        let bytes = [(FRAMES, self.frames), (HEADER, self.header)].into_iter().find_map(|(start, bytes)| {
            let at = usize::try_from(address.checked_sub(start)?).ok()?;
            bytes.get(at..at.checked_add(buffer.len())?)
        });
        bytes.map(|bytes| buffer.copy_from_slice(bytes)).is_some()
    }
}

impl Sections<'_> {
    fn find(&mut self, pc: u64, register: u8) -> Option<Saved> {
        self.reads = 0;
        let found = Descriptions::new().saved(self, HEADER, pc, register);
        assert!(self.reads <= MAX_READS, "{} reads", self.reads);
        found
    }
}

fn saved_registers_agree(sections: &mut Sections<'_>, plain: &[u8]) {
    let mut section = EhFrame::new(plain, LittleEndian);
    section.set_address_size(8);
    let bases = BaseAddresses::default().set_eh_frame(FRAMES);
    let mut context = UnwindContext::new();
    let mut entries = section.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let Ok(fde) = partial.parse(|_, bases, offset| section.cie_from_offset(bases, offset)) else {
            continue;
        };
        let Ok(mut table) = fde.rows(&section, &bases, &mut context) else { continue };
        while let Ok(Some(row)) = table.next_row() {
            let end = row.end_address().min(fde.end_address());
            if row.start_address() >= end {
                continue;
            }
            for register in [3, 6, 12] {
                for pc in [row.start_address(), end - 1] {
                    let found = sections.find(pc, register);
                    let expected = row.register(Register(u16::from(register)));
                    assert!(
                        says_the_same(found, expected.as_ref(), FRAMES),
                        "{register} at {pc:#x}: {found:?}, {expected:?}"
                    );
                }
            }
        }
    }
}

/// Whether a place that was found is where gimli says, for an `.eh_frame` at that address.
pub fn says_the_same(found: Option<Saved>, expected: Option<&GimliRule<usize>>, frames: u64) -> bool {
    let Some(found) = found else { return false };
    let at = |how, code: &gimli::UnwindExpression<usize>| {
        let address = frames + code.offset as u64;
        (found.how, found.value, usize::from(found.length)) == (how, address, code.length)
    };
    match expected {
        None | Some(GimliRule::SameValue) => found.how == RegisterRule::Same,
        Some(GimliRule::Undefined) => found.how == RegisterRule::Undefined,
        Some(GimliRule::Offset(offset)) => (found.how, found.value) == (RegisterRule::AtCfa, *offset as u64),
        Some(GimliRule::ValOffset(offset)) => (found.how, found.value) == (RegisterRule::Cfa, *offset as u64),
        Some(GimliRule::Register(other)) => {
            (found.how, found.value) == (RegisterRule::Register, u64::from(other.0))
        }
        Some(GimliRule::Expression(code)) => at(RegisterRule::At, code),
        Some(GimliRule::ValExpression(code)) => at(RegisterRule::Value, code),
        Some(_) => true,
    }
}

/// Registers whose place may be looked for.
pub fn registers() -> impl Iterator<Item = u8> {
    let others = [Native::SP, Native::RETURN_ADDRESS, Native::PC];
    (0..33).filter(move |number| Native::context_offset(*number).is_some() && !others.contains(number))
}
