//! The unwind table against gimli's own rows, over real system libraries and this
//! program, and against garbage.

use object::{Object, ObjectSection};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use swipr_properties::meaning;
use swipr_symbols::rows::{UnwindInput, build_table};
use swipr_unwind::rule::{Extended, Kind, Rule};
use swipr_unwind::sections::{Room, Sections as Copied, TableDemand};
use swipr_unwind::table::Table;

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

type Full = (Extended, Vec<u8>);

/// The rule that is read of the sections themselves, and the rule in full if it has no other form.
fn read_in_place(sections: &Sections, pc: u64) -> Option<(Rule, Option<Full>)> {
    let (address, bytes) = sections.header.as_ref()?;
    let (demand, any_wanted) = (TableDemand::new(u32::MAX), AtomicBool::new(false));
    let frames = (sections.frames.0, &*sections.frames.1);
    let copied = Copied { header: (*address, bytes), frames, demand: &demand, any_wanted: &any_wanted };
    let rule = copied.rule(pc, &mut Room::new());
    let mut room = Room::new();
    let full = copied.extended(pc, &mut room).map(|(full, expressions)| (*full, expressions.to_vec()));
    let is_known = if rule.kind() == Kind::Extended { full.is_some() } else { rule != Rule::NONE };
    assert_eq!([demand.is_wanted(), any_wanted.into_inner()], [!is_known; 2], "{rule:?} at {pc:#x}");
    Some((rule, full))
}

/// What is read in place is what the table says.
fn agrees_in_place(path: &str, sections: &Sections, table: &Table<'_>, pc: u64) {
    let Some((rule, full)) = read_in_place(sections, pc) else { return };
    let by_table = table.rule(pc);
    match table.extended_rule(by_table).filter(|_| by_table.kind() == Kind::Extended) {
        // Before all functions nothing is found.
        None if by_table == Rule::NONE && full.is_none() => {
            assert!(matches!(rule.kind(), Kind::None | Kind::Extended), "{path}: {rule:?} at {pc:#x}");
        }
        None => assert_eq!((rule, full), (by_table, None), "{path}: at {pc:#x}"),
        Some(expected) => {
            let (full, expressions) = full.unwrap_or_else(|| panic!("{path}: {rule:?} at {pc:#x}"));
            let meaning = |full, expressions| {
                let table = Table { extended: &[full], expressions, ..Table::EMPTY };
                meaning::ours(Rule::extended(0).unwrap(), &table, meaning::NATIVE)
            };
            let (read, expected) = (meaning(full, &expressions), meaning(*expected, table.expressions));
            assert_eq!(read, expected, "{path}: at {pc:#x}");
        }
    }
}

/// Everything that gimli reads by walking the section, sorted by start.
fn expected(sections: &Sections) -> Vec<meaning::Function> {
    let processor = if sections.aarch64 { meaning::AARCH64 } else { meaning::X86_64 };
    meaning::functions(sections.frames.0, &sections.frames.1, &sections.text, processor)
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
                    let ours = meaning::ours(rule, &view, meaning::NATIVE);
                    assert_eq!(ours.as_ref(), Some(meaning), "{path}: at {pc:#x}, {rule:?}");
                    agrees_in_place(path, &sections, &view, pc);
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
            agrees_in_place(path, &sections, &view, pc);
            let ours = meaning::ours(view.rule(pc), &view, meaning::NATIVE);
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

/// Regression: in small objects the search table and the descriptions are read at once.
#[test]
fn rows_of_small_objects_are_read_in_place_as_tables_say() {
    let folder = std::path::Path::new(&libc()).parent().unwrap().join("gconv");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut compared = 0;
    for path in files.filter(|path| path.extension().is_some_and(|end| end == "so")) {
        let path = path.to_str().unwrap();
        let sections = Sections::of(path);
        let Ok(table) = build_table(&sections.input()) else { continue };
        let view = table.view();
        for row in 0..table.rows() - 1 {
            agrees_in_place(path, &sections, &view, view.start_of_row(row).unwrap());
            compared += 1;
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn garbage_gives_fewer_rows_and_never_a_panic() {
    let sections = Sections::of(&libc());
    let mut random = Random(0x1234_5678_9abc);
    let (mut tables, mut in_place) = (0, 0);
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
        let (demand, any_wanted) = (TableDemand::new(u32::MAX), AtomicBool::new(false));
        if let Some(header) = header {
            let frames = (sections.frames.0, &*frames);
            let copied = Copied { header, frames, demand: &demand, any_wanted: &any_wanted };
            let pc = sections.text.start + random.below(20_000);
            if !matches!(copied.rule(pc, &mut Room::new()).kind(), Kind::None | Kind::Extended) {
                in_place += 1;
            }
        }
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
    assert!(in_place > 1000, "only {in_place} of the damaged sections gave a rule");
}
