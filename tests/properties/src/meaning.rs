//! What a caller's frame is found by, in one shape for a plain interpreter of call frame
//! information (gimli's rows) and for our tables' rules.

use gimli::{BaseAddresses, CfaRule, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection};
use std::ops::Range;
use swipr_unwind::rule::{self, Kind, Rule, ValueRule};
use swipr_unwind::table::Table;

/// DWARF's numbers of the registers that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// The frame pointer.
    pub fp: u16,
    /// The stack pointer.
    pub sp: u16,
    /// The return address.
    pub return_address: u16,
    /// Whether it is aarch64.
    pub aarch64: bool,
}

/// x86-64.
pub const X86_64: Processor = Processor { fp: 6, sp: 7, return_address: 16, aarch64: false };
/// aarch64.
pub const AARCH64: Processor = Processor { fp: 29, sp: 31, return_address: 30, aarch64: true };

/// The processor that this was built for.
pub const NATIVE: Processor = if cfg!(target_arch = "aarch64") { AARCH64 } else { X86_64 };

/// A function's rows as gimli gives them.
#[derive(Debug)]
pub struct Function {
    /// First address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    /// Start, end and meaning of each row, up to where instructions cannot be followed.
    pub rows: Vec<(u64, u64, Meaning)>,
}

/// How a frame is left.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    /// By the interrupted registers.
    Signal,
    /// Not at all.
    End,
    /// No rule was ever set.
    Nothing,
    /// To a caller.
    Frame {
        /// The canonical frame address.
        cfa: Place,
        /// The caller's frame pointer.
        fp: Place,
        /// The caller's pc.
        return_address: Place,
        /// The caller's stack pointer.
        sp: Place,
    },
}

/// Where a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// Unchanged.
    Same,
    /// Lost.
    Undefined,
    /// A register plus an offset.
    Register(u64, i64),
    /// In memory at the CFA plus an offset.
    AtCfa(i64),
    /// The CFA plus an offset.
    Cfa(i64),
    /// In memory where an expression says.
    At(Vec<u8>),
    /// What an expression says.
    Value(Vec<u8>),
}

const CFA: Place = Place::Cfa(0);

type Row = gimli::UnwindTableRow<usize>;

fn gimlis_place(rule: Option<RegisterRule<usize>>, frames: &[u8]) -> Place {
    let bytes = |e: gimli::UnwindExpression<usize>| frames[e.offset..e.offset + e.length].to_vec();
    match rule {
        None | Some(RegisterRule::SameValue) => Place::Same,
        Some(RegisterRule::Undefined) => Place::Undefined,
        Some(RegisterRule::Offset(offset)) => Place::AtCfa(offset),
        Some(RegisterRule::ValOffset(offset)) => Place::Cfa(offset),
        Some(RegisterRule::Register(register)) => Place::Register(register.0.into(), 0),
        Some(RegisterRule::Expression(e)) => Place::At(bytes(e)),
        Some(RegisterRule::ValExpression(e)) => Place::Value(bytes(e)),
        Some(other) => panic!("unexpected {other:?}"),
    }
}

fn gimlis_meaning(row: &Row, signal: bool, frames: &[u8], processor: Processor) -> Meaning {
    if signal && processor.aarch64 {
        return Meaning::Signal;
    }
    let return_address = row.register(gimli::Register(processor.return_address));
    let is_lost = match return_address {
        Some(RegisterRule::Undefined) => true,
        // A call leaves it on the stack: what says nothing of it is an outermost frame.
        None | Some(RegisterRule::SameValue) => !processor.aarch64,
        _ => false,
    };
    let is_unset = |cfa: &CfaRule<usize>| matches!(cfa, CfaRule::RegisterAndOffset { register, offset: 0 } if register.0 == 0);
    if is_lost && return_address != Some(RegisterRule::Undefined) && is_unset(row.cfa()) {
        return Meaning::Nothing;
    }
    if is_lost {
        return Meaning::End;
    }
    let return_address = match gimlis_place(return_address, frames) {
        // In the register where a call leaves it; not so where the section names another one.
        Place::Same if processor.return_address != AARCH64.return_address => {
            Place::Register(processor.return_address.into(), 0)
        }
        place => place,
    };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Place::Register(register.0.into(), *offset),
        CfaRule::Expression(e) => Place::Value(frames[e.offset..e.offset + e.length].to_vec()),
    };
    let [fp, sp] = [processor.fp, processor.sp]
        .map(|number| gimlis_place(row.register(gimli::Register(number)), frames));
    let sp = if sp == Place::Same { CFA } else { sp };
    // No processor has them; a rule has no room for them.
    let has_no_such_register = |place: &Place| matches!(place, Place::Register(number, _) if *number > 255);
    if [&cfa, &fp, &return_address, &sp].into_iter().any(has_no_such_register) {
        return Meaning::Nothing;
    }
    // What switches stacks is marked as the kernel's frames are.
    if signal && matches!((&cfa, &return_address), (Place::Value(_), Place::At(_))) {
        return Meaning::Signal;
    }
    Meaning::Frame { cfa, fp, return_address, sp }
}

/// `breg7 8; breg16 0; lit15; and; lit<n>; ge; lit3; shl; plus`, written out again.
fn plt_expression(threshold: u64) -> Vec<u8> {
    vec![0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30 + threshold as u8, 0x2a, 0x33, 0x24, 0x22]
}

/// A signed LEB128 number, as short as it goes.
pub fn leb(mut value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0) {
            out.push(byte);
            return out;
        }
        out.push(byte | 0x80);
    }
}

/// What a rule of a table says; `None`: nothing.
pub fn ours(rule: Rule, table: &Table<'_>, processor: Processor) -> Option<Meaning> {
    let packed = |register: u16| {
        let saved = rule.fp_offset();
        let (fp, return_address) = match (saved, processor.aarch64) {
            (0, true) => (Place::Same, Place::Same),
            (saved, true) => (Place::AtCfa(saved), Place::AtCfa(saved + 8)),
            (0, false) => (Place::Same, Place::AtCfa(-8)),
            (saved, false) => (Place::AtCfa(saved), Place::AtCfa(-8)),
        };
        Meaning::Frame {
            cfa: Place::Register(register.into(), rule.cfa_offset() as i64),
            fp,
            return_address,
            sp: CFA,
        }
    };
    let expression = |e: rule::Expression| {
        table.expressions[e.start as usize..e.start as usize + e.length as usize].to_vec()
    };
    let value = |value| match value {
        ValueRule::Same => Place::Same,
        ValueRule::Undefined => Place::Undefined,
        ValueRule::AtCfa(offset) => Place::AtCfa(offset),
        ValueRule::Cfa(offset) => Place::Cfa(offset),
        ValueRule::Register(register) => Place::Register(register.into(), 0),
        ValueRule::At(e) => Place::At(expression(e)),
        ValueRule::Value(e) => Place::Value(expression(e)),
    };
    Some(match rule.kind() {
        Kind::None => return None,
        Kind::Signal => Meaning::Signal,
        Kind::End => Meaning::End,
        Kind::Sp => packed(processor.sp),
        Kind::Fp => packed(processor.fp),
        Kind::Plt => Meaning::Frame {
            cfa: Place::Value(plt_expression(rule.plt_threshold())),
            fp: Place::Same,
            return_address: Place::AtCfa(-8),
            sp: CFA,
        },
        Kind::Deref => {
            let mut cfa = vec![0x76];
            cfa.extend(leb(rule.deref_offset()));
            cfa.push(0x06);
            let fp = Place::At(vec![0x76, 0]);
            Meaning::Frame { cfa: Place::Value(cfa), fp, return_address: Place::AtCfa(-8), sp: CFA }
        }
        Kind::Extended => {
            let extended = table.extended_rule(rule).unwrap();
            let cfa = match extended.cfa {
                rule::CfaRule::Register(register, offset) => Place::Register(register.into(), offset),
                rule::CfaRule::Expression(e) | rule::CfaRule::OtherStack(e) => Place::Value(expression(e)),
            };
            let (fp, return_address) = (value(extended.fp), value(extended.return_address));
            let sp = value(extended.sp);
            if return_address == Place::Undefined {
                return Some(Meaning::End);
            }
            Meaning::Frame { cfa, fp, return_address, sp }
        }
    })
}

/// All functions that gimli finds by walking an `.eh_frame` at an address up to its end or the
/// first entry that cannot be read, those that begin in `text`, sorted by start; of equal starts
/// the last.
pub fn functions(address: u64, frames: &[u8], text: &Range<u64>, processor: Processor) -> Vec<Function> {
    let mut section = EhFrame::new(frames, LittleEndian);
    section.set_address_size(8);
    if processor.aarch64 {
        section.set_vendor(gimli::Vendor::AArch64);
    }
    let bases = BaseAddresses::default().set_eh_frame(address);
    let mut context = UnwindContext::new();
    let mut functions = Vec::new();
    let mut entries = section.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let Ok(fde) = partial.parse(|_, bases, offset| section.cie_from_offset(bases, offset)) else {
            continue;
        };
        let mut rows = Vec::new();
        if let Ok(mut table) = fde.rows(&section, &bases, &mut context) {
            let processor = Processor { return_address: fde.cie().return_address_register().0, ..processor };
            while let Ok(Some(row)) = table.next_row() {
                let end = row.end_address().min(fde.end_address());
                if row.start_address() < end {
                    let meaning = gimlis_meaning(row, fde.is_signal_trampoline(), frames, processor);
                    rows.push((row.start_address(), end, meaning));
                }
            }
        }
        functions.push(Function { start: fde.initial_address(), end: fde.end_address(), rows });
    }
    functions.retain(|function| text.contains(&function.start) && function.end > function.start);
    functions.reverse();
    functions.sort_by_key(|function| function.start);
    functions.dedup_by_key(|function| function.start);
    functions
}
