//! The function symbols of one object, sorted for look-up: `.symtab` of the object
//! and of its debug file, `.dynsym`, and PLT stubs. Names stay mangled here; lines
//! and inlined frames are DWARF's business.
//!
//! A symbol covers its size, or where it has none the function that the unwind
//! information describes, or else the way to the next symbol. An address behind
//! that has no name: a stripped library's private function must not be blamed on
//! the exported one that happens to lie before it.

mod plt;

use crate::elf::{ElfFile, string_at};
use crate::rows::descriptions::Descriptions;
use object::LittleEndian as LE;
use object::elf::{self, Sym64};
use object::pod;
use std::ops::Range;

/// Entries before an address that are tried: how deep symbols nest in practice.
const MAX_NESTED: usize = 16;

/// A function found for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundSymbol<'a> {
    /// The linker's name without a version, or `name@plt`.
    pub name: &'a str,
    /// The function's first address, in the object's own numbering.
    pub start: u64,
}

/// Sorted functions of one object.
#[derive(Debug, Default)]
pub struct SymbolTable {
    entries: Vec<Entry>,
    names: String,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    end: u64,
    name: Name,
}

/// A part of [`SymbolTable::names`].
#[derive(Clone, Copy, Debug)]
struct Name {
    start: u32,
    length: u32,
}

/// A symbol on its way into the table. The order of the fields is the order of
/// preference among symbols of one address.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    start: u64,
    rank: Rank,
    size: u64,
    section_end: u64,
    name: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_stub: bool,
    is_untyped: bool,
    binding: u8,
    is_unsized: bool,
}

impl SymbolTable {
    /// Reads the symbols of an object and of its separate debug file. Sections of
    /// more than `limit` bytes are passed over.
    pub fn read(object: &ElfFile, debug: Option<&ElfFile>, limit: u64) -> SymbolTable {
        let mut table = SymbolTable::default();
        let mut candidates = Vec::new();
        for file in debug.into_iter().chain([object]) {
            for section in file.sections() {
                if matches!(section.kind, elf::SHT_SYMTAB | elf::SHT_DYNSYM) {
                    table.gather(file, section, limit, &mut candidates);
                }
            }
        }
        for stub in plt::stubs(object, limit) {
            let size = stub.range.end.saturating_sub(stub.range.start);
            let rank = Rank { is_stub: true, is_untyped: false, binding: 0, is_unsized: false };
            if let Some(name) = table.keep_name(&stub.name) {
                candidates.push(Candidate {
                    start: stub.range.start,
                    rank,
                    size,
                    section_end: stub.range.end,
                    name,
                });
            }
        }
        table.settle(candidates, object, limit);
        table
    }

    fn gather(
        &mut self,
        file: &ElfFile,
        section: &crate::elf::Section,
        limit: u64,
        out: &mut Vec<Candidate>,
    ) {
        let strings = file.sections().get(section.link as usize);
        let Some(strings) = strings.and_then(|strings| file.bytes(strings, limit).ok()) else { return };
        let Ok(bytes) = file.bytes(section, limit) else { return };
        let whole = bytes.len() - bytes.len() % size_of::<Sym64<LE>>();
        let Some(Ok(symbols)) = bytes.get(..whole).map(pod::slice_from_all_bytes::<Sym64<LE>>) else {
            return;
        };
        for symbol in symbols {
            let is_untyped = match symbol.st_info & 0xf {
                elf::STT_FUNC | elf::STT_GNU_IFUNC => false,
                elf::STT_NOTYPE => true,
                _ => continue,
            };
            let Some(code) = file.sections().get(usize::from(symbol.st_shndx.get(LE))) else { continue };
            let start = symbol.st_value.get(LE);
            if !code.is_executable() || !code.contains(start) {
                continue;
            }
            let name = string_at(&strings, symbol.st_name.get(LE) as usize).unwrap_or_default();
            let name = without_version(name);
            if name.is_empty() || is_mapping_symbol(name) {
                continue;
            }
            let size = symbol.st_size.get(LE);
            let binding = match symbol.st_info >> 4 {
                elf::STB_GLOBAL | elf::STB_GNU_UNIQUE => 0,
                elf::STB_LOCAL => 1,
                _ => 2,
            };
            let rank = Rank { is_stub: false, is_untyped, binding, is_unsized: size == 0 };
            let section_end = code.address.saturating_add(code.size);
            let Some(name) = self.keep_name(name) else { return };
            out.push(Candidate { start, rank, size, section_end, name });
        }
    }

    fn keep_name(&mut self, name: &str) -> Option<Name> {
        let start = u32::try_from(self.names.len()).ok()?;
        self.names.push_str(name);
        Some(Name { start, length: u32::try_from(name.len()).ok()? })
    }

    fn text(&self, name: Name) -> &str {
        let start = name.start as usize;
        self.names.get(start..start + name.length as usize).unwrap_or_default()
    }

    /// Sorts, keeps one name an address, and gives every symbol an end.
    fn settle(&mut self, mut candidates: Vec<Candidate>, object: &ElfFile, limit: u64) {
        candidates.sort_unstable_by(|a, b| {
            let key = |c: &Candidate| (c.start, c.rank);
            key(a).cmp(&key(b)).then_with(|| self.text(a.name).cmp(self.text(b.name)))
        });
        // The best name of an address, with the size of the best that has one.
        candidates.dedup_by(|next, kept| {
            let same = next.start == kept.start;
            if same && kept.size == 0 {
                kept.size = next.size;
            }
            same
        });
        // Labels inside of a function are not functions.
        let mut covered = 0;
        candidates.retain(|candidate| {
            let is_label = candidate.rank.is_untyped && candidate.size == 0 && candidate.start < covered;
            covered = covered.max(candidate.start.saturating_add(candidate.size));
            !is_label
        });
        let any_unsized = candidates.iter().any(|candidate| candidate.size == 0);
        let functions = if any_unsized { described_functions(object, limit) } else { Vec::new() };
        self.entries = Vec::with_capacity(candidates.len());
        let next = candidates.iter().skip(1).map(|next| next.start).chain([u64::MAX]);
        for (candidate, next) in candidates.iter().zip(next) {
            let end = match candidate.size {
                0 => function_at(&functions, candidate.start)
                    .map_or(next.min(candidate.section_end), |function| function.end),
                size => candidate.start.saturating_add(size),
            };
            self.entries.push(Entry { start: candidate.start, end, name: candidate.name });
        }
        self.names.shrink_to_fit();
    }

    /// The innermost function that covers an address.
    pub fn find(&self, address: u64) -> Option<FoundSymbol<'_>> {
        let position = self.entries.partition_point(|entry| entry.start <= address);
        let before = self.entries.get(..position)?;
        let entry = before.iter().rev().take(MAX_NESTED).find(|entry| address < entry.end)?;
        Some(FoundSymbol { name: self.text(entry.name), start: entry.start })
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
        self.entries.capacity() * size_of::<Entry>() + self.names.capacity()
    }
}

/// `memcpy` of `memcpy@@GLIBC_2.14`.
fn without_version(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}

/// `$x`, `$d` and their like mark code and data for disassemblers (AAELF64).
fn is_mapping_symbol(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next() == Some(b'$')
        && letters.next().is_some_and(|letter| matches!(letter, b'x' | b'd' | b'a' | b't'))
        && letters.next().is_none_or(|letter| letter == b'.')
}

/// The code ranges that a file's `.eh_frame` describes, sorted, without overlaps.
pub fn described_functions(object: &ElfFile, limit: u64) -> Vec<Range<u64>> {
    let Some(section) = object.section(".eh_frame") else { return Vec::new() };
    let Ok(bytes) = object.bytes(section, limit) else { return Vec::new() };
    Descriptions::new((section.address, &bytes), object.is_aarch64()).ranges()
}

/// The range that an address is in, of a sorted list.
pub fn function_at(functions: &[Range<u64>], address: u64) -> Option<&Range<u64>> {
    let position = functions.partition_point(|function| function.start <= address);
    functions.get(position.checked_sub(1)?).filter(|function| function.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(candidates: &[(u64, u64, Rank, &str)]) -> SymbolTable {
        let mut table = SymbolTable::default();
        let mut list = Vec::new();
        for &(start, size, rank, name) in candidates {
            let name = table.keep_name(name).unwrap();
            list.push(Candidate {
                start,
                rank: Rank { is_unsized: size == 0, ..rank },
                size,
                section_end: 0x900,
                name,
            });
        }
        let this = ElfFile::open(&std::env::current_exe().unwrap(), u64::MAX).unwrap();
        table.settle(list, &this, 0);
        table
    }

    const GLOBAL: Rank = Rank { is_stub: false, is_untyped: false, binding: 0, is_unsized: false };
    const LOCAL: Rank = Rank { binding: 1, ..GLOBAL };
    const WEAK: Rank = Rank { binding: 2, ..GLOBAL };
    const LABEL: Rank = Rank { is_untyped: true, binding: 1, ..GLOBAL };

    #[test]
    fn an_address_behind_a_symbol_has_no_name() {
        let table = table(&[(0x100, 0x10, GLOBAL, "a"), (0x200, 0, GLOBAL, "b"), (0x300, 8, GLOBAL, "c")]);
        let name = |address| table.find(address).map(|found| found.name);
        assert_eq!(name(0xff), None);
        assert_eq!(name(0x10f), Some("a"));
        assert_eq!(name(0x110), None);
        assert_eq!(name(0x2ff), Some("b"));
        assert_eq!(name(0x307), Some("c"));
        assert_eq!(name(0x308), None);
    }

    #[test]
    fn global_names_win_over_local_and_these_over_weak() {
        let table = table(&[
            (1, 4, WEAK, "weak"),
            (1, 4, LOCAL, "local"),
            (1, 4, GLOBAL, "global"),
            (9, 4, WEAK, "weak"),
            (9, 4, LOCAL, "local"),
        ]);
        assert_eq!(table.find(2).unwrap().name, "global");
        assert_eq!(table.find(9).unwrap().name, "local");
    }

    #[test]
    fn a_label_inside_of_a_function_is_not_a_function() {
        let table =
            table(&[(0x100, 0x50, GLOBAL, "outer"), (0x110, 0, LABEL, "loop"), (0x120, 8, LOCAL, "inner")]);
        assert_eq!(table.find(0x112).unwrap(), FoundSymbol { name: "outer", start: 0x100 });
        assert_eq!(table.find(0x121).unwrap().name, "inner");
        assert_eq!(table.find(0x130).unwrap().name, "outer");
    }

    #[test]
    fn versions_are_not_part_of_a_name() {
        for name in ["memcpy@@GLIBC_2.14", "memcpy@GLIBC_2.2.5", "memcpy"] {
            assert_eq!(without_version(name), "memcpy");
        }
    }

    #[test]
    fn mapping_symbols_are_known() {
        for name in ["$x", "$d", "$d.12"] {
            assert!(is_mapping_symbol(name));
        }
        for name in ["$", "$s4main", "$xyz", "x", ""] {
            assert!(!is_mapping_symbol(name));
        }
    }
}
