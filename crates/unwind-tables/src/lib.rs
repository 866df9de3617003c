//! From call frame information to an unwind table: all of an object's `.eh_frame`
//! is run once, on the sampler thread, so that the handler only looks up.
//!
//! The order of things: which frame descriptions there are (`descriptions`); what their
//! instructions say at each pc (`cfi_fast` for the usual ones, `cfi_machine` for any); what rule
//! that is (`convert`); what `main`'s code says where nothing describes it (`main_function`); where
//! the other registers are for code without a search table (`register_rows`). What other code says
//! that nothing describes (`code_scan`) is asked once a walk has met it. Debug information is
//! not read here, except `.debug_frame`, and neither is any file: the input is bytes in memory. A
//! crate of its own, so that it can be built for speed.

mod cfi_fast;
mod cfi_machine;
pub mod code_scan;
mod convert;
mod debug_frame;
mod descriptions;
pub mod error;
mod main_function;
pub mod order;
mod register_rows;
pub mod table;

pub use main_function::main_of_start;

use crate::error::Error;
use crate::table::{OwnedTable, TableBuilder};
use cfi_fast::CfiFast;
use cfi_machine::{Machine, State};
use convert::Converter;
pub use debug_frame::DebugFrameInput;
use debug_frame::DebugFunctions;
use descriptions::Descriptions;
use main_function::Function;
use register_rows::RegisterRows;
use std::ops::Range;
use swipr_unwind::rule::Rule;
use swipr_unwind::sections::PADDING;

/// Code up to which a table is built; larger ranges are garbage.
const MAX_TEXT_BYTES: u64 = 4 << 30;
/// What tables of large libraries have on average; only a first guess of the size.
const ROWS_PER_FUNCTION: usize = 6;

/// What a table is built from. Addresses are those of the running process; each
/// slice is a copy of memory from its address on and may be longer than the
/// section: a zero terminator, the search table's count, or the end stops it.
#[derive(Clone, Debug)]
pub struct UnwindInput<'a> {
    /// The object's executable memory; functions elsewhere are left out.
    pub text: Range<u64>,
    /// Address and bytes of `.eh_frame_hdr`, where the object has one. Where it has none the table
    /// also says where all other registers are saved, which a handler could not find out.
    pub eh_frame_hdr: Option<(u64, &'a [u8])>,
    /// Address and bytes of `.eh_frame`.
    pub eh_frame: (u64, &'a [u8]),
    /// For code that `.eh_frame` does not describe.
    pub debug_frame: Option<DebugFrameInput<'a>>,
    /// Address and code of the program's `main`: its instructions are read where `.eh_frame` does
    /// not describe it, as in Rust programs built with `panic=abort`.
    pub main: Option<(u64, &'a [u8])>,
    /// Whether the code is aarch64 (else x86-64).
    pub aarch64: bool,
}

/// Builds the unwind table of one object. Not async-signal-safe.
///
/// Overlapping descriptions: the later start wins, as a binary search by start
/// finds it. What cannot be parsed has no rule; the rest still has.
pub fn build_table(input: &UnwindInput) -> Result<OwnedTable, Error> {
    let text_bytes = input.text.end.saturating_sub(input.text.start);
    if text_bytes > MAX_TEXT_BYTES {
        return Err(Error::TooLarge { bytes: text_bytes });
    }
    let mut descriptions = Descriptions::new(input.eh_frame, input.aarch64).of_code_at(input.text.start);
    let functions = descriptions.sorted(input.eh_frame_hdr, &input.text);
    let debug = input.debug_frame.map(|debug| DebugFunctions::new(debug, input.aarch64, &input.text));
    let debug = debug.filter(|debug| !debug.is_empty());
    if functions.is_empty() && debug.is_none() {
        return Err(Error::NoRows);
    }
    let mut builder = TableBuilder::new(input.text.start, functions.len() * ROWS_PER_FUNCTION);
    let mut converter = Converter::new(input.eh_frame.1, input.aarch64);
    let mut machine = Machine::new(input.aarch64);
    // Rows of all registers are made of gimli's descriptions.
    let mut quick = input.eh_frame_hdr.map(|_| CfiFast::new(input.eh_frame, input.aarch64));
    let mut saved = RegisterRows::new(input.text.start, input.aarch64);
    let mut end = input.text.start;
    let main = input.main.filter(|_| !input.aarch64).map(|(start, code)| Function { start, code });
    let mut undescribed = 0;
    let starts = functions.iter().skip(1).map(|next| next.start).chain([u64::MAX]);
    for (&function, next) in functions.iter().zip(starts) {
        end = push_main(main, end..function.start, &mut builder);
        converter.is_marked = false;
        if let Some(debug) = &debug {
            end = debug.fill(end..function.start, &mut machine, &mut converter, &mut builder, &mut saved);
            converter.read_from(input.eh_frame.1);
        }
        undescribed += function.start.saturating_sub(end);
        let body = quick.as_mut().and_then(|quick| quick.body(function, &descriptions, &mut machine));
        let description = if body.is_none() { descriptions.parse(function) } else { None };
        let length = body.as_ref().map(|body| body.length).or(description.as_ref().map(|it| it.len()));
        let Some(length) = length else {
            builder.push(end.min(function.start), Rule::NONE);
            end = function.start;
            continue;
        };
        push_hole(end..function.start, &mut builder);
        end = function.start.saturating_add(length).min(next).min(input.text.end);
        converter.is_marked = description.as_ref().is_some_and(|it| it.is_signal_trampoline());
        if let (None, Some(description)) = (&quick, &description) {
            let from = (descriptions.section(), descriptions.bases(), 0);
            saved.add(description, from, function.start..end, &mut converter);
        }
        let mut covered_to = function.start;
        let mut row = |pc, state: Option<&State>| {
            let inside = pc < end;
            // Behind an unusual instruction a description is read from its beginning again.
            if inside && pc >= covered_to {
                covered_to = pc;
                builder.push(pc, state.map_or(Rule::NONE, |state| converter.rule(state)));
            }
            inside
        };
        if let (Some(quick), Some(body)) = (&mut quick, body)
            && quick.run(&body, function.start, &mut row)
        {
            continue;
        }
        let Some(description) = description.or_else(|| descriptions.parse(function)) else { continue };
        machine.run(&description, descriptions.section(), descriptions.bases(), row);
    }
    end = push_main(main, end..input.text.end, &mut builder);
    converter.is_marked = false;
    if let Some(debug) = &debug {
        end = debug.fill(end..input.text.end, &mut machine, &mut converter, &mut builder, &mut saved);
    }
    undescribed += input.text.end.saturating_sub(end);
    let (extended, expressions) = converter.finish();
    Ok(builder.finish(end, extended, expressions, undescribed).with_saved(saved.finish()))
}

/// The code ranges that descriptions at an address are of, sorted.
pub fn described_functions(eh_frame: (u64, &[u8]), aarch64: bool) -> Vec<Range<u64>> {
    Descriptions::new(eh_frame, aarch64).ranges(0)
}

/// The same of those at address `first` and behind it.
pub fn described_from(eh_frame: (u64, &[u8]), first: u64, aarch64: bool) -> Vec<Range<u64>> {
    let first = first.checked_sub(eh_frame.0).and_then(|first| usize::try_from(first).ok());
    Descriptions::new(eh_frame, aarch64).ranges(first.unwrap_or(usize::MAX))
}

/// The row of a hole in front of a function.
fn push_hole(hole: Range<u64>, builder: &mut TableBuilder) {
    match hole.end.saturating_sub(hole.start) {
        0 => {}
        1..PADDING => builder.push(hole.start, Rule::PADDING),
        _ => builder.push(hole.start, Rule::NONE),
    }
}

/// Adds the rows of `main` if it lies in this hole between functions; returns where the hole goes
/// on.
fn push_main(main: Option<Function<'_>>, hole: Range<u64>, builder: &mut TableBuilder) -> u64 {
    let states = main.map_or(vec![], |main| main.states_in(&hole));
    let mut end = hole.start;
    for (range, state) in states {
        if end != range.start {
            builder.push(end, Rule::NONE);
        }
        builder.push(range.start, state.rule(&mut vec![]).unwrap_or(Rule::NONE));
        end = range.end;
    }
    end
}
