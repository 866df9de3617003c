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
use swipr_unwind::rule::Rule;

const ADDRESS_BYTES: u8 = 8;

/// The functions that a `.debug_frame` describes.
pub(super) struct DebugFunctions<'a> {
    section: DebugFrame<Slice<'a>>,
    bytes: &'a [u8],
    bases: BaseAddresses,
    bias: u64,
    /// Address in the process and place in the section; by address.
    functions: Vec<Described>,
}

impl<'a> DebugFunctions<'a> {
    /// Those that begin in `text`. `bias` is what was added to the addresses in the file.
    pub(super) fn new(bias: u64, bytes: &'a [u8], aarch64: bool, text: &Range<u64>) -> DebugFunctions<'a> {
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
        functions.sort_unstable();
        functions.dedup_by_key(|function| function.start);
        DebugFunctions { section, bytes, bases, bias, functions }
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
            converter.read_from(self.bytes);
            saved.add(&description, (&self.section, &self.bases, self.bias), start..end, converter);
            machine.run(&description, &self.section, &self.bases, |pc, state| {
                let pc = pc.wrapping_add(self.bias);
                let inside = (start..end).contains(&pc);
                if inside {
                    builder.push(pc, state.map_or(Rule::NONE, |state| converter.rule(state)));
                }
                inside
            });
        }
        end
    }
}
