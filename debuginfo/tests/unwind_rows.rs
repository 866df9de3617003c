//! The unwind table against gimli's own rows, over real system libraries and this
//! program, and against garbage.

use gimli::{BaseAddresses, CfaRule, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection};
use object::{Object, ObjectSection};
use std::ops::Range;
use swipr_debuginfo::rows::{UnwindInput, build_table};
use swipr_unwind::rule::{self, Kind, Rule, ValueRule};
use swipr_unwind::table::Table;

type Row = gimli::UnwindTableRow<usize>;

/// The sections of one object that a table is built from.
struct Sections {
    text: Range<u64>,
    header: Option<(u64, Vec<u8>)>,
    frames: (u64, Vec<u8>),
    aarch64: bool,
}

impl Sections {
    fn of(path: &str) -> Sections {
        let bytes = std::fs::read(path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let section = |name| {
            file.section_by_name(name).map(|section| (section.address(), section.data().unwrap().to_vec()))
        };
        let code = file.sections().filter(|section| section.kind() == object::SectionKind::Text);
        let (mut start, mut end) = (u64::MAX, 0);
        for section in code {
            start = start.min(section.address());
            end = end.max(section.address() + section.size());
        }
        Sections {
            text: start..end,
            header: section(".eh_frame_hdr"),
            frames: section(".eh_frame").unwrap(),
            aarch64: file.architecture() == object::Architecture::Aarch64,
        }
    }

    fn input(&self) -> UnwindInput<'_> {
        UnwindInput {
            text: self.text.clone(),
            eh_frame_hdr: self.header.as_ref().map(|(address, bytes)| (*address, &bytes[..])),
            eh_frame: (self.frames.0, &self.frames.1),
            debug_frame: None,
            main: None,
            aarch64: self.aarch64,
        }
    }
}

/// A function's rows as gimli gives them: start, end, what must hold there.
struct Expected {
    start: u64,
    end: u64,
    rows: Vec<(u64, u64, Meaning)>,
}

/// What a caller's frame is found by, in one shape for gimli's rows and ours.
#[derive(Clone, Debug, PartialEq)]
enum Meaning {
    Signal,
    End,
    Frame { cfa: Place, fp: Place, return_address: Place },
}

#[derive(Clone, Debug, PartialEq)]
enum Place {
    Same,
    Undefined,
    Register(u64, i64),
    AtCfa(i64),
    Cfa(i64),
    At(Vec<u8>),
    Value(Vec<u8>),
}

const FP: u16 = if cfg!(target_arch = "aarch64") { 29 } else { 6 };
const SP: u16 = if cfg!(target_arch = "aarch64") { 31 } else { 7 };
const RA: u16 = if cfg!(target_arch = "aarch64") { 30 } else { 16 };

fn gimli_place(rule: Option<RegisterRule<usize>>, frames: &[u8]) -> Place {
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

fn gimli_meaning(row: &Row, signal: bool, frames: &[u8]) -> Meaning {
    if signal {
        return Meaning::Signal;
    }
    let return_address = gimli_place(row.register(gimli::Register(RA)), frames);
    if return_address == Place::Undefined {
        return Meaning::End;
    }
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Place::Register(register.0.into(), *offset),
        CfaRule::Expression(e) => Place::Value(frames[e.offset..e.offset + e.length].to_vec()),
    };
    Meaning::Frame { cfa, fp: gimli_place(row.register(gimli::Register(FP)), frames), return_address }
}

/// `breg7 8; breg16 0; lit15; and; lit<n>; ge; lit3; shl; plus`, written out again.
fn plt_expression(threshold: u64) -> Vec<u8> {
    vec![0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30 + threshold as u8, 0x2a, 0x33, 0x24, 0x22]
}

fn leb(mut value: i64) -> Vec<u8> {
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

fn our_meaning(rule: Rule, table: &Table<'_>) -> Option<Meaning> {
    let packed = |register: u16, aarch64: bool| {
        let saved = rule.fp_offset();
        let (fp, return_address) = match (saved, aarch64) {
            (0, true) => (Place::Same, Place::Same),
            (saved, true) => (Place::AtCfa(saved), Place::AtCfa(saved + 8)),
            (0, false) => (Place::Same, Place::AtCfa(-8)),
            (saved, false) => (Place::AtCfa(saved), Place::AtCfa(-8)),
        };
        Meaning::Frame { cfa: Place::Register(register.into(), rule.cfa_offset() as i64), fp, return_address }
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
        Kind::Sp => packed(SP, cfg!(target_arch = "aarch64")),
        Kind::Fp => packed(FP, cfg!(target_arch = "aarch64")),
        Kind::Plt => Meaning::Frame {
            cfa: Place::Value(plt_expression(rule.plt_threshold())),
            fp: Place::Same,
            return_address: Place::AtCfa(-8),
        },
        Kind::Deref => {
            let mut cfa = vec![0x76];
            cfa.extend(leb(rule.deref_offset()));
            cfa.push(0x06);
            let fp = Place::At(vec![0x76, 0]);
            Meaning::Frame { cfa: Place::Value(cfa), fp, return_address: Place::AtCfa(-8) }
        }
        Kind::Extended => {
            let extended = table.extended_rule(rule).unwrap();
            let cfa = match extended.cfa {
                rule::CfaRule::Register(register, offset) => Place::Register(register.into(), offset),
                rule::CfaRule::Expression(e) => Place::Value(expression(e)),
            };
            let (fp, return_address) = (value(extended.fp), value(extended.return_address));
            Meaning::Frame { cfa, fp, return_address }
        }
    })
}

/// Everything that gimli reads by walking the section, sorted by start.
fn expected(sections: &Sections) -> Vec<Expected> {
    let (address, frames) = &sections.frames;
    let mut section = EhFrame::new(frames, LittleEndian);
    if sections.aarch64 {
        section.set_vendor(gimli::Vendor::AArch64);
    }
    let bases = BaseAddresses::default().set_eh_frame(*address);
    let mut context = UnwindContext::new();
    let mut functions = Vec::new();
    let mut entries = section.entries(&bases);
    while let Some(entry) = entries.next().unwrap() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(|_, bases, offset| section.cie_from_offset(bases, offset)).unwrap();
        let mut rows = Vec::new();
        let mut table = fde.rows(&section, &bases, &mut context).unwrap();
        while let Some(row) = table.next_row().unwrap() {
            let end = row.end_address().min(fde.end_address());
            if row.start_address() < end {
                rows.push((row.start_address(), end, gimli_meaning(row, fde.is_signal_trampoline(), frames)));
            }
        }
        functions.push(Expected { start: fde.initial_address(), end: fde.end_address(), rows });
    }
    functions.retain(|function| sections.text.contains(&function.start) && function.end > function.start);
    functions.sort_by_key(|function| function.start);
    functions
}

/// A small generator with a fixed seed: the same bytes in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn agrees_with_gimli(path: &str) {
    let sections = Sections::of(path);
    let functions = expected(&sections);
    let walked = UnwindInput { eh_frame_hdr: None, ..sections.input() };
    for input in [sections.input(), walked] {
        let table = build_table(&input).unwrap();
        let view = table.view();
        let mut compared = 0;
        for (function, next) in functions.iter().zip(functions.iter().skip(1).map(Some).chain([None])) {
            let limit = next.map_or(u64::MAX, |next| next.start).min(sections.text.end);
            for (start, end, meaning) in &function.rows {
                let end = (*end).min(limit);
                if *start >= end {
                    continue;
                }
                for pc in [*start, *start + (end - *start) / 2, end - 1] {
                    let rule = view.rule(pc);
                    let ours = our_meaning(rule, &view);
                    assert_eq!(ours.as_ref(), Some(meaning), "{path}: at {pc:#x}, {rule:?}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 1000, "{path}: only {compared} rows compared");
        let mut random = Random(0x5eed);
        for _ in 0..50_000 {
            let pc = sections.text.start + random.below(sections.text.end - sections.text.start);
            let position = functions.partition_point(|function| function.start <= pc);
            let Some(function) = position.checked_sub(1).map(|position| &functions[position]) else {
                continue;
            };
            let ours = our_meaning(view.rule(pc), &view);
            if pc < function.end {
                let row = function.rows.iter().find(|(start, end, _)| (*start..*end).contains(&pc));
                assert_eq!(ours.as_ref(), row.map(|row| &row.2), "{path}: at {pc:#x}");
            } else {
                let padding = functions.get(position).is_some_and(|next| next.start - function.end < 16);
                let rule = if padding { Rule::PADDING } else { Rule::NONE };
                assert_eq!(view.rule(pc), rule, "{path}: a gap at {pc:#x}");
            }
        }
        assert!(table.bytes() <= table.rows() * 16, "{path}: {} bytes", table.bytes());
    }
}

/// The first existing file of those whose place differs between distributions.
fn first_of(paths: &[&str]) -> Option<String> {
    paths.iter().find(|path| std::path::Path::new(path).exists()).map(|path| path.to_string())
}

/// The C library that this program runs with.
fn libc() -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.contains("/libc.so") || line.contains("/ld-musl")).unwrap();
    line[line.find('/').unwrap()..].to_owned()
}

#[test]
fn every_row_of_the_c_library_is_what_gimli_says() {
    agrees_with_gimli(&libc());
}

#[test]
fn every_row_of_this_program_is_what_gimli_says() {
    agrees_with_gimli(std::env::current_exe().unwrap().to_str().unwrap());
}

#[test]
fn every_row_of_a_large_system_library_is_what_gimli_says() {
    // libcrypto has the expressions of hand-written assembly, libstdc++ landing pads.
    for paths in [
        ["/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib/aarch64-linux-gnu/libcrypto.so.3"],
        ["/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/aarch64-linux-gnu/libstdc++.so.6"],
        ["/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"],
    ] {
        if let Some(path) = first_of(&paths) {
            agrees_with_gimli(&path);
        }
    }
}

#[test]
fn garbage_gives_fewer_rows_and_never_a_panic() {
    let sections = Sections::of(&libc());
    let mut random = Random(0x1234_5678_9abc);
    let mut tables = 0;
    // A part of the section, so that thousands of rounds are quick; damage everywhere in it.
    let part = sections.frames.1.len().min(6000);
    for round in 0..6000_u32 {
        let mut frames = sections.frames.1[..part].to_vec();
        for _ in 0..1 + random.below(40) {
            let at = random.below(frames.len() as u64) as usize;
            frames[at] = random.next() as u8;
        }
        let mut header = sections.header.clone();
        if let Some((_, bytes)) = &mut header {
            bytes.truncate(12 + 8 * 200);
            // So many entries as the part has, and sometimes a wrong number.
            bytes[8..12].copy_from_slice(&(200 - u32::from(round % 5 == 0) * 100 + round % 3).to_le_bytes());
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next() as u8;
        }
        let header = header.as_ref().map(|(address, bytes)| (*address, &bytes[..]));
        let text = if round % 7 == 0 { random.next()..random.next() } else { sections.text.clone() };
        let input = UnwindInput {
            text,
            eh_frame_hdr: if round % 2 == 0 { header } else { None },
            eh_frame: (sections.frames.0, &frames),
            debug_frame: None,
            main: None,
            aarch64: round % 11 == 0,
        };
        if let Ok(table) = build_table(&input) {
            tables += 1;
            let view = table.view();
            for row in 0..table.rows() {
                let pc = view.start_of_row(row).unwrap();
                assert_eq!(view.row(pc), Some(row));
            }
        }
    }
    assert!(tables > 1000, "only {tables} of the damaged sections gave a table");
}
