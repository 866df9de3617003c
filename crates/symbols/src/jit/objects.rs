//! Object files that a compiler keeps in memory for debuggers (gdb's manual, "JIT Compilation
//! Interface"): functions, and lines and call frame information. Their sections have the addresses
//! that the code is at.

use super::code_map::{Function, LineEntry};
use crate::demangle::demangle;
use crate::elf::{ElfFile, Section};
use crate::error::Error;
use crate::lines::{Files, Lines};
use object::LittleEndian as LE;
use object::elf::{self, Sym64};
use object::pod;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use swipr_unwind_tables::order::sorted_by;

/// A larger section is a damaged one.
const MAX_BYTES: u64 = 16 << 20;
/// Functions of one object.
const MAX_FUNCTIONS: usize = 1 << 16;
/// Lines of one function.
const MAX_LINES: usize = 1 << 16;

/// What an object in memory says. See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JitObject {
    /// Where functions are, and what they are.
    pub functions: Vec<(Range<u64>, Function)>,
    /// From the first to behind the last byte of code.
    pub text: Range<u64>,
    /// Address and bytes of `.eh_frame`.
    pub eh_frame: Option<(u64, Vec<u8>)>,
    /// The bytes of `.debug_frame`, with which QEMU describes the code that it makes.
    pub debug_frame: Option<Vec<u8>>,
}

/// Reads an object.
pub fn read(image: Arc<[u8]>) -> Result<JitObject, Error> {
    let file = ElfFile::from_memory(image)?;
    let mut made = JitObject::default();
    let code = || file.sections().iter().filter(|section| section.is_executable() && section.size != 0);
    made.text = code().map(|section| section.address).min().unwrap_or(0)
        ..code().map(|section| section.address.saturating_add(section.size)).max().unwrap_or(0);
    for section in file.sections().iter().filter(|section| section.kind == elf::SHT_SYMTAB) {
        let found = functions(&file, section).unwrap_or_default();
        let room = MAX_FUNCTIONS.saturating_sub(made.functions.len());
        made.functions.extend(found.into_iter().take(room).map(|(code, name)| {
            let name = demangle(&name).unwrap_or(name).into();
            (code, Function { name, lines: Arc::new([]) })
        }));
    }
    let files = Files { main: &file, alternate: None, path: Path::new("") };
    if let Some(mut lines) = Lines::open(&files, MAX_BYTES, MAX_BYTES) {
        made.functions.iter_mut().for_each(|(code, function)| function.lines = entries(code, &mut lines));
    }
    let section = |name| {
        let section = file.sections().iter().find(|section| section.name == name)?;
        Some((section.address, file.bytes(section, MAX_BYTES).ok()?))
    };
    made.eh_frame = section(".eh_frame");
    made.debug_frame = section(".debug_frame").map(|(_, bytes)| bytes);
    Ok(made)
}

fn entries(code: &Range<u64>, lines: &mut Lines) -> Arc<[LineEntry]> {
    let mut file: Arc<str> = "".into();
    let mut entry = |(address, path, line): (u64, String, u32)| {
        if *file != path {
            file = path.into();
        }
        LineEntry { offset: address - code.start, line, file: file.clone() }
    };
    // PHP's word for what has no file.
    let is_file = |(_, path, _): &(u64, String, u32)| path.rsplit('/').next() != Some("unknown");
    let places = lines.places(code, MAX_LINES).into_iter().filter(is_file);
    let entries: Vec<_> = places.map(&mut entry).collect();
    sorted_by(&entries, |entry| entry.offset).into()
}

fn functions(file: &ElfFile, section: &Section) -> Result<Vec<(Range<u64>, String)>, Error> {
    let missing = Error::Malformed("symbols without names");
    let strings = file.sections().get(section.link as usize).ok_or(missing)?;
    let (symbols, strings) = (file.bytes(section, MAX_BYTES)?, file.bytes(strings, MAX_BYTES)?);
    let symbols = symbols.get(..symbols.len() - symbols.len() % size_of::<Sym64<LE>>()).unwrap_or_default();
    let symbols = pod::slice_from_all_bytes::<Sym64<LE>>(symbols)
        .map_err(|()| Error::Malformed("symbols of another size"))?;
    let function = |symbol: &Sym64<LE>| {
        let in_section = file.sections().get(usize::from(symbol.st_shndx.get(LE)))?;
        let is_function = symbol.st_info & 0xf == elf::STT_FUNC && in_section.is_executable();
        let value = symbol.st_value.get(LE);
        // Before it is linked, an object counts from its sections; these have addresses already.
        let start = if in_section.contains(value) { value } else { in_section.address.checked_add(value)? };
        let end = start.checked_add(symbol.st_size.get(LE))?;
        let name = strings.get(symbol.st_name.get(LE) as usize..)?.split(|&byte| byte == 0).next()?;
        let is_named = !name.is_empty() && start < end;
        (is_function && is_named).then(|| (start..end, String::from_utf8_lossy(name).into_owned()))
    };
    Ok(symbols.iter().filter_map(function).take(MAX_FUNCTIONS).collect())
}
