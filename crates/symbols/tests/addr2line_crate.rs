//! The crate addr2line says the same of functions, lines and what is inlined: a second reader of
//! DWARF, which keeps all of a file in memory and has no budget.

mod support;

use addr2line::Context;
use gimli::{Dwarf, EndianSlice, LittleEndian};
use object::{Object, ObjectSection};
use std::path::Path;
use support::{compile, directory, key, section};
use swipr_symbols::demangle::Names;
use swipr_symbols::symbolizer::{Budget, Lookup, Symbol, Symbolizer};

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Function, file and line, innermost first.
type Frame = (String, Option<String>, Option<u32>);

fn context<'a>(file: &object::File<'a>) -> Context<Bytes<'a>> {
    let section = |id: gimli::SectionId| -> Result<Bytes<'a>, gimli::Error> {
        let data = file.section_by_name(id.name()).and_then(|section| section.data().ok());
        Ok(EndianSlice::new(data.unwrap_or(&[]), LittleEndian))
    };
    Context::from_dwarf(Dwarf::load(section).unwrap()).unwrap()
}

fn theirs(context: &Context<Bytes<'_>>, address: u64) -> Vec<Frame> {
    let mut found = context.find_frames(address).skip_all_loads().unwrap();
    let mut frames = Vec::new();
    while let Some(frame) = found.next().unwrap() {
        let name = frame.function.map(|name| name.raw_name().unwrap().into_owned());
        let place = frame.location;
        let file = place.as_ref().and_then(|place| place.file).map(str::to_owned);
        // Line 0: the compiler says that there is none.
        let line = place.and_then(|place| place.line).filter(|&line| line != 0);
        frames.push((name.unwrap_or_default(), file, line));
    }
    frames
}

fn ours(symbols: &[Symbol]) -> Vec<Frame> {
    let frame =
        |symbol: &Symbol| (symbol.name.to_string(), symbol.file.as_deref().map(str::to_owned), symbol.line);
    symbols.iter().map(frame).collect()
}

/// Functions of one file in C++ have no linker's name in DWARF: that crate says the plain one, and
/// we the symbol table's.
fn is_equal((ours, theirs): (&Frame, &Frame)) -> bool {
    let is_plain = !theirs.0.starts_with("_Z") && ours.0.starts_with("_Z") && ours.0.contains(&theirs.0);
    let is_name = ours.0 == theirs.0 || is_plain;
    is_name && (&ours.1, ours.2) == (&theirs.1, theirs.2)
}

/// Addresses of the program's code that both have frames with DWARF for, and those where they
/// differ.
fn compare(program: &Path) -> (usize, usize) {
    let bytes = std::fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let (context, key) = (context(&file), key(program));
    let mut symbolizer = Symbolizer::new(Budget::default());
    symbolizer.set_names(Names::Raw);
    let (start, size) = section(program, ".text");
    let step = (size / 5000).max(1);
    let (mut compared, mut different) = (0, 0);
    for address in (start..start + size).step_by(step as usize) {
        let theirs = theirs(&context, address);
        // Without a function of DWARF there is the symbol table's name, which that crate does not
        // read.
        if theirs.iter().any(|(name, ..)| name.is_empty()) || theirs.is_empty() {
            continue;
        }
        let ours = ours(&symbolizer.resolve(&key, address, Lookup::Pc));
        compared += 1;
        if ours.len() != theirs.len() || !ours.iter().zip(&theirs).all(is_equal) {
            different += 1;
            println!("{address:#x}: {ours:?} {theirs:?}");
        }
    }
    (compared, different)
}

#[test]
fn the_crate_addr2line_says_the_same() {
    let directory = directory("addr2line_crate");
    for (name, flags, at_least) in [
        ("inlines.c", &["-g", "-O2"][..], 50),
        ("names.cpp", &["-g", "-O2"], 100),
        ("modules.rs", &["-g", "-O"], 500),
    ] {
        let (compared, different) = compare(&compile(&directory, name, flags));
        println!("{name}: {different} of {compared} differ");
        assert!(compared >= at_least, "{name}: only {compared} compared");
        assert_eq!(different, 0, "{name}: of {compared}");
    }
}
