//! Rows from `.debug_frame`, which a debugger reads: for code that `.eh_frame` does not describe,
//! as when a program is compiled with `-fno-asynchronous-unwind-tables` and `-g`, or its assembly
//! says `.cfi_sections .debug_frame`.

use super::cfi_machine::Machine;
use super::convert::Converter;
use super::descriptions::{Described, Slice};
use super::push_hole;
use super::register_rows::RegisterRows;
use crate::table::TableBuilder;
use gimli::{BaseAddresses, DebugFrame, DebugFrameOffset, LittleEndian, UnwindSection, Vendor};
use std::ops::Range;
use swipr_unwind::rule::{Kind, Rule};

const ADDRESS_BYTES: u8 = 8;

/// What a file says of code that `.eh_frame` does not describe.
#[derive(Clone, Copy, Debug)]
pub struct DebugFrameInput<'a> {
    /// What was added to the addresses in the file.
    pub bias: u64,
    /// The bytes of `.debug_frame`.
    pub bytes: &'a [u8],
    /// Where functions of Go begin, in the file, that change stacks, but are described as if they
    /// did not, and the rules that hold in them. Empty: the code is not Go's.
    pub stack_switches: &'a [(u64, Rule)],
}

/// The functions that a `.debug_frame` describes.
pub(super) struct DebugFunctions<'a> {
    section: DebugFrame<Slice<'a>>,
    bytes: &'a [u8],
    bases: BaseAddresses,
    bias: u64,
    /// Address in the process and place in the section; by address.
    functions: Vec<Described>,
    /// As in [`DebugFrameInput`].
    stack_switches: &'a [(u64, Rule)],
}

impl<'a> DebugFunctions<'a> {
    /// Those that begin in `text`.
    pub(super) fn new(input: DebugFrameInput<'a>, aarch64: bool, text: &Range<u64>) -> DebugFunctions<'a> {
        let DebugFrameInput { bias, bytes, stack_switches } = input;
        let mut section = DebugFrame::new(bytes, LittleEndian);
        section.set_address_size(ADDRESS_BYTES);
        if aarch64 {
            section.set_vendor(Vendor::AArch64);
        }
        let bases = BaseAddresses::default();
        let mut functions = Vec::new();
        let mut entries = section.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            if let gimli::CieOrFde::Fde(partial) = entry
                && let Ok(description) =
                    partial.parse(|section, bases, at| section.cie_from_offset(bases, at))
            {
                let start = description.initial_address().wrapping_add(bias);
                if text.contains(&start) && description.len() != 0 {
                    functions.push(Described { start, offset: description.offset() });
                }
            }
        }
        functions = Described::sorted(&functions);
        functions.dedup_by_key(|function| function.start);
        DebugFunctions { section, bytes, bases, bias, functions, stack_switches }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Adds the rows of the functions in a hole that nothing else describes; returns where the rest
    /// of the hole begins.
    pub(super) fn fill(
        &self,
        hole: Range<u64>,
        machine: &mut Machine,
        converter: &mut Converter<'a>,
        builder: &mut TableBuilder,
        saved: &mut RegisterRows,
    ) -> u64 {
        let first = self.functions.partition_point(|function| function.start < hole.start);
        let in_hole = || self.functions.iter().skip(first).take_while(|function| function.start < hole.end);
        let mut end = hole.start;
        let limits = in_hole().skip(1).map(|function| function.start).chain([hole.end]);
        for (&Described { start, offset }, limit) in in_hole().zip(limits) {
            let parsed =
                self.section.fde_from_offset(&self.bases, DebugFrameOffset(offset), |section, bases, at| {
                    section.cie_from_offset(bases, at)
                });
            let Ok(description) = parsed else { continue };
            push_hole(end..start, builder);
            end = start.saturating_add(description.len()).min(limit);
            let is_here = |(function, _): &&(u64, Rule)| function.wrapping_add(self.bias) == start;
            if let Some((_, rule)) = self.stack_switches.iter().find(is_here) {
                builder.push(start, *rule);
                continue;
            }
            converter.read_from(self.bytes);
            saved.add(&description, (&self.section, &self.bases, self.bias), start..end, converter);
            let mut go_frame = GoFrame::default();
            machine.run(&description, &self.section, &self.bases, |pc, state| {
                let pc = pc.wrapping_add(self.bias);
                let inside = (start..end).contains(&pc);
                if inside {
                    let rule = state.map_or(Rule::NONE, |state| converter.rule(state));
                    if self.stack_switches.is_empty() {
                        builder.push(pc, rule);
                    } else {
                        go_frame.push(pc..end, rule, builder);
                    }
                }
                inside
            });
        }
        end
    }
}

/// A function of Go that has a frame saves its caller's frame pointer at the upper end. That is not
/// described.
#[derive(Default)]
struct GoFrame {
    /// The frame was made at once: the frame pointer is saved by the next instruction, which ends
    /// here.
    saved_at: u64,
}

impl GoFrame {
    /// The rule of the code from `code.start` on; the function ends at `code.end`.
    fn push(&mut self, code: Range<u64>, rule: Rule, builder: &mut TableBuilder) {
        let pc = code.start;
        let size = rule.cfa_offset();
        let Some(saved) = Rule::sp(size as i64, -16).filter(|_| rule.kind() == Kind::Sp && size >= 16) else {
            return builder.push(pc, rule);
        };
        if self.saved_at == 0 {
            // mov %rbp,size-16(%rsp), with one or four bytes of distance, or push.
            self.saved_at = pc
                + match size {
                    16 => 0,
                    ..144 => 5,
                    _ => 8,
                };
            builder.push(pc, rule);
        }
        let from = pc.max(self.saved_at);
        if from < code.end {
            builder.push(from, saved);
        }
    }
}
