//! Names and places for addresses of one file, as `addr2line -afi` prints them, by swipr's
//! symbolizer or by blazesym: for `benches/verify/symbols`, which compares them with other
//! programs' answers.
//!
//! `symbols swipr|blazesym FILE [MEMORY_MIB] < ADDRESSES`: addresses in hexadecimal, one a line, in
//! the file's own numbering.

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolized, Symbolizer as Blazesym};
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
        _ => return Err("symbols swipr|blazesym FILE [MEMORY_MIB] < ADDRESSES".into()),
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

fn path(place: &CodeInfo) -> String {
    place.to_path().to_string_lossy().into_owned()
}

fn frame(out: &mut dyn Write, name: &str, file: Option<&str>, line: Option<u32>) -> std::io::Result<()> {
    writeln!(out, "{name}\n{}:{}", file.unwrap_or("??"), line.unwrap_or(0))
}
