//! The function symbols of one object, sorted for look-up: `.symtab` of the object
//! and of its debug file, the symbols in `.gnu_debugdata`, `.dynsym`, and PLT stubs. Names stay
//! mangled here; lines and inlined frames are DWARF's business.
//!
//! A symbol covers its size, or where it has none the function that the unwind
//! information describes. Where there is no such information either, as in hand-written
//! assembly, it ends where the next code begins that is known of (a symbol, a described
//! function, code that is called), and after 4 KiB. An address behind
//! that has no name: a stripped library's private function must not be blamed on
//! the exported one that happens to lie before it.

mod called;
mod names;
mod nesting;
mod plt;
mod rank;
mod reading;

use crate::elf::ElfFile;
use names::{Name, SymbolNames};
use nesting::{Entry, innermost};
use object::LittleEndian as LE;
use object::elf::{self, Sym64};
use object::pod;
use std::borrow::Cow;
use std::ops::Range;

/// Bytes of names and symbols that are searched for one of them.
const MAX_SEARCHED_BYTES: u64 = 64 << 20;

/// The addresses of what has these names, exported or not: each file's table is read once.
pub(crate) fn addresses_of<const N: usize>(file: &ElfFile, names: [&str; N]) -> [Option<u64>; N] {
    let mut found = [None; N];
    let tables =
        [elf::SHT_DYNSYM, elf::SHT_SYMTAB].map(|kind| file.sections().iter().find(|it| it.kind == kind));
    for section in tables.into_iter().flatten() {
        let strings = file.sections().get(section.link as usize);
        let bytes = |section| file.bytes(section, MAX_SEARCHED_BYTES).unwrap_or_default();
        let (strings, symbols) = (strings.map(bytes).unwrap_or_default(), bytes(section));
        let symbols = pod::slice_from_all_bytes::<Sym64<LE>>(&symbols).unwrap_or_default();
        for symbol in symbols.iter().filter(|symbol| symbol.st_shndx.get(LE) != 0) {
            let text = strings.get(symbol.st_name.get(LE) as usize..).unwrap_or_default();
            let is_it = |name: &&str| {
                text.starts_with(name.as_bytes()) && text.get(name.len()).is_some_and(|&end| end == 0)
            };
            if let Some((_, address)) = names.iter().zip(&mut found).find(|(name, _)| is_it(name)) {
                address.get_or_insert(symbol.st_value.get(LE));
            }
        }
    }
    found
}

/// A function found for an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSymbol<'a> {
    /// The linker's name without a version, or `name@plt`.
    pub name: Cow<'a, str>,
    /// The function's first address, in the object's own numbering.
    pub start: u64,
}

/// Sorted functions of one object.
#[derive(Debug, Default)]
pub struct SymbolTable {
    entries: Vec<Entry>,
    /// Further names of functions, by address: those that are as good as the one that was taken.
    aliases: Vec<(u64, Name)>,
    names: SymbolNames,
    /// Called code with neither a symbol nor unwind information, where it was looked for.
    called: Vec<Range<u64>>,
    has_local_functions: bool,
    is_over_limit: bool,
}

impl SymbolTable {
    /// The innermost function that covers an address.
    pub fn find(&self, address: u64) -> Option<FoundSymbol<'_>> {
        let entry = innermost(&self.entries, address)?;
        let name = self.names.text(entry.name);
        (!name.is_empty()).then_some(FoundSymbol { name, start: entry.start })
    }

    /// Whether a found function is also called so, and the one name is as good as the other: `read`
    /// is better than `__read`, and a global name better than a local one.
    pub fn is_also(&self, found: &FoundSymbol, name: &str) -> bool {
        let first = self.aliases.partition_point(|&(start, _)| start < found.start);
        let mut of_it = self.aliases.iter().skip(first).take_while(|&&(start, _)| start == found.start);
        of_it.any(|&(_, alias)| self.names.text(alias) == name)
    }

    /// Hands over the called code with neither a symbol nor unwind information.
    pub(crate) fn take_called(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.called)
    }

    /// Whether symbols were left out because they need more memory than allowed.
    pub fn is_over_limit(&self) -> bool {
        self.is_over_limit
    }

    /// Whether a table was read that has the object's local functions too.
    pub(crate) fn is_complete(&self) -> bool {
        self.has_local_functions
    }

    /// Whether a file is held open for its names.
    pub(crate) fn has_file(&self) -> bool {
        self.names.are_in_files()
    }

    /// The number of functions.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no function at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Heap bytes in use.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.aliases.capacity() * size_of::<(u64, Name)>()
            + self.names.bytes()
    }
}

/// `memcpy` of `memcpy@@GLIBC_2.14`. What cannot be a version is part of the name: Crystal's
/// `~procProc(Int32)@a.cr:7`.
fn without_version(name: &str) -> &str {
    let is_version = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "_.+-@".contains(c));
    name.split_once('@').filter(|(_, version)| is_version(version)).map_or(name, |(name, _)| name)
}

/// The code ranges that a file's `.eh_frame` describes, sorted, without overlaps.
pub fn described_functions(object: &ElfFile, limit: u64) -> Vec<Range<u64>> {
    let Some(section) = object.section(".eh_frame") else { return Vec::new() };
    let Ok(bytes) = object.bytes(section, limit) else { return Vec::new() };
    swipr_unwind_tables::described_functions((section.address, &bytes), object.is_aarch64())
}

/// The range that an address is in, of a sorted list.
pub fn function_at(functions: &[Range<u64>], address: u64) -> Option<&Range<u64>> {
    let position = functions.partition_point(|function| function.start <= address);
    functions.get(position.checked_sub(1)?).filter(|function| function.contains(&address))
}
