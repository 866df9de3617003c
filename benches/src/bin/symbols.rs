//! Names and places for addresses of one file, as `addr2line -afi` prints them, by swipr's
//! symbolizer, by blazesym or by the crate addr2line: for `benches/verify/symbols`, which compares
//! them with other programs' answers.
//!
//! `symbols swipr|blazesym|addr2line FILE [MEMORY_MIB] < ADDRESSES`: addresses in hexadecimal, one
//! a line, in the file's own numbering.

use addr2line::Context;
use addr2line::gimli::{self, Dwarf, EndianSlice, LittleEndian};
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolized, Symbolizer as Blazesym};
use object::{Object, ObjectSection};
use std::error::Error;
use std::io::{BufRead, BufWriter, Write};
use swipr_symbols::demangle::Names;
use swipr_symbols::symbolizer::{Budget, Lookup, ObjectKey, Symbolizer};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let memory = arguments.get(2).map(|text| text.parse::<usize>()).transpose()?;
    let lines = std::io::stdin().lock().lines();
    let mut addresses = Vec::new();
    for line in lines {
        addresses.push(u64::from_str_radix(line?.trim_start_matches("0x"), 16)?);
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    match arguments.as_slice() {
        [who, file, ..] if who == "swipr" => swipr(file, memory, &addresses, &mut out)?,
        [who, file, ..] if who == "blazesym" => blazesym(file, &addresses, &mut out)?,
        [who, file, ..] if who == "addr2line" => addr2line(file, &addresses, &mut out)?,
        _ => return Err("symbols swipr|blazesym|addr2line FILE [MEMORY_MIB] < ADDRESSES".into()),
    }
    Ok(out.flush()?)
}

fn swipr(file: &str, memory: Option<usize>, addresses: &[u64], out: &mut dyn Write) -> std::io::Result<()> {
    let standard = Budget::default();
    let memory_bytes = memory.map_or(standard.memory_bytes, |mib| mib << 20);
    let mut symbolizer = Symbolizer::new(Budget { memory_bytes, ..standard });
    symbolizer.set_names(Names::Raw);
    let key = ObjectKey::at(file, &[]);
    for &address in addresses {
        let symbols = symbolizer.resolve(&key, address, Lookup::Pc);
        writeln!(out, "{address:#x}")?;
        for symbol in symbols.iter() {
            frame(out, &symbol.name, symbol.file.as_deref(), symbol.line)?;
        }
        if symbols.is_empty() {
            frame(out, "??", None, None)?;
        }
    }
    eprintln!("{:?}", symbolizer.stats());
    Ok(())
}

fn blazesym(file: &str, addresses: &[u64], out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let symbolizer = Blazesym::builder().enable_demangling(false).build();
    let answers = symbolizer.symbolize(&Source::Elf(Elf::new(file)), Input::VirtOffset(addresses))?;
    for (address, answer) in addresses.iter().zip(answers) {
        writeln!(out, "{address:#x}")?;
        let Symbolized::Sym(symbol) = answer else {
            frame(out, "??", None, None)?;
            continue;
        };
        for inlined in symbol.inlined.iter().rev() {
            let place = inlined.code_info.as_ref();
            frame(out, &inlined.name, place.map(path).as_deref(), place.and_then(|place| place.line))?;
        }
        let place = symbol.code_info.as_deref();
        frame(out, &symbol.name, place.map(path).as_deref(), place.and_then(|place| place.line))?;
    }
    Ok(())
}

/// Of DWARF only: that crate reads no symbol tables.
fn addr2line(file: &str, addresses: &[u64], out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let bytes = std::fs::read(file)?;
    let file = object::File::parse(&*bytes)?;
    let section = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let data = file.section_by_name(id.name()).and_then(|section| section.data().ok());
        Ok(EndianSlice::new(data.unwrap_or(&[]), LittleEndian))
    };
    let context = Context::from_dwarf(Dwarf::load(section)?)?;
    for &address in addresses {
        writeln!(out, "{address:#x}")?;
        let mut found = context.find_frames(address).skip_all_loads()?;
        let mut is_known = false;
        while let Some(inlined) = found.next()? {
            let name = inlined.function.as_ref().map(|name| name.raw_name()).transpose()?;
            let place = inlined.location;
            let path = place.as_ref().and_then(|place| place.file);
            frame(out, name.as_deref().unwrap_or("??"), path, place.as_ref().and_then(|place| place.line))?;
            is_known = true;
        }
        if !is_known {
            frame(out, "??", None, None)?;
        }
    }
    Ok(())
}

fn path(place: &CodeInfo) -> String {
    place.to_path().to_string_lossy().into_owned()
}

fn frame(out: &mut dyn Write, name: &str, file: Option<&str>, line: Option<u32>) -> std::io::Result<()> {
    writeln!(out, "{name}\n{}:{}", file.unwrap_or("??"), line.unwrap_or(0))
}
