//! Makes a table of the symbols of an object and of its debug file.

use super::names::{Name, Strings};
use super::nesting::{Entry, nest};
use super::rank::{Binding, Rank};
use super::{SymbolTable, called, described_functions, function_at, plt};
use crate::demangle::is_mangled;
use crate::elf::{ElfFile, Section};
use object::LittleEndian as LE;
use object::elf::{self, Sym64};
use object::pod;
use std::ops::Range;

/// Bytes of a symbol section that are in memory at a time: a whole number of symbols.
const PART_BYTES: u64 = (64 << 10) * size_of::<Sym64<LE>>() as u64;
/// Code without a known size is not believed to be longer.
const MAX_UNSIZED_BYTES: u64 = 4096;
/// Where no symbol without a size covers more, code is not searched for calls.
const SHORT_BYTES: u64 = 256;
/// The part of the limit up to which a string table is read; larger ones stay in the file.
const STRINGS_SHARE: u64 = 8;

/// A symbol on its way into the table.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    start: u64,
    rank: Rank,
    size: u64,
    section_end: u64,
    name: Name,
}

impl SymbolTable {
    /// Reads the symbols of an object and of its separate debug file. Symbols that need more than
    /// `limit` bytes are left out, all of them, see [`Self::is_over_limit`].
    pub fn read(object: &ElfFile, debug: Option<&ElfFile>, limit: u64) -> SymbolTable {
        let mut table = SymbolTable::default();
        let mut candidates = Vec::new();
        let mini = object.mini_debug_file(limit).and_then(Result::ok);
        for file in debug.into_iter().chain([object]).chain(&mini) {
            for section in file.sections() {
                table.has_local_functions |= section.kind == elf::SHT_SYMTAB;
                if matches!(section.kind, elf::SHT_SYMTAB | elf::SHT_DYNSYM)
                    && !table.gather(file, section, limit, &mut candidates)
                {
                    return SymbolTable { is_over_limit: true, ..SymbolTable::default() };
                }
            }
        }
        for stub in plt::stubs(object, limit) {
            let size = stub.range.end.saturating_sub(stub.range.start);
            let rank = Rank { is_stub: true, is_untyped: false, binding: Binding::Global, is_unsized: false };
            if let Some(name) = table.names.keep(&stub.name()) {
                candidates.push(Candidate {
                    start: stub.range.start,
                    rank,
                    size,
                    section_end: stub.range.end,
                    name,
                });
            }
            if table.is_over(&candidates, limit) {
                return SymbolTable { is_over_limit: true, ..SymbolTable::default() };
            }
        }
        table.settle(candidates, object, limit);
        table
    }

    /// Whether it all stayed within the limit.
    fn gather(&mut self, file: &ElfFile, section: &Section, limit: u64, out: &mut Vec<Candidate>) -> bool {
        let strings = file.sections().get(section.link as usize);
        let strings = strings.and_then(|strings| self.names.strings(file, strings, limit / STRINGS_SHARE));
        let Some(strings) = strings else { return true };
        let symbol_bytes = size_of::<Sym64<LE>>() as u64;
        let whole = section.size - section.size % symbol_bytes;
        let mut at = 0;
        while at < whole {
            let part = Section {
                offset: section.offset.saturating_add(at),
                size: (whole - at).min(PART_BYTES),
                ..section.clone()
            };
            at += part.size;
            let Ok(bytes) = file.bytes(&part, PART_BYTES) else { return true };
            let Ok(symbols) = pod::slice_from_all_bytes::<Sym64<LE>>(&bytes) else { return true };
            for symbol in symbols {
                out.extend(self.candidate(file, &strings, symbol));
                // All may have the same long name.
                if self.is_over(out, limit) {
                    return false;
                }
            }
        }
        true
    }

    fn is_over(&self, candidates: &[Candidate], limit: u64) -> bool {
        size_of_val(candidates) as u64 + self.names.bytes() as u64 > limit
    }

    fn candidate(&mut self, file: &ElfFile, strings: &Strings, symbol: &Sym64<LE>) -> Option<Candidate> {
        let is_untyped = match symbol.st_info & 0xf {
            elf::STT_FUNC | elf::STT_GNU_IFUNC => false,
            elf::STT_NOTYPE => true,
            _ => return None,
        };
        let start = symbol.st_value.get(LE);
        let code = file.code_of_symbol(symbol.st_shndx.get(LE), start)?;
        let name = self.names.add(strings, symbol.st_name.get(LE))?;
        if is_untyped && is_mapping_symbol(&self.names.text(name)) {
            return None;
        }
        let size = symbol.st_size.get(LE);
        let binding = Binding::of(symbol.st_info >> 4);
        let rank = Rank { is_stub: false, is_untyped, binding, is_unsized: size == 0 };
        let section_end = code.address.saturating_add(code.size);
        Some(Candidate { start, rank, size, section_end, name })
    }

    /// Sorts, keeps the best name of each address and what else people call it, and gives every
    /// symbol an end.
    fn settle(&mut self, mut candidates: Vec<Candidate>, object: &ElfFile, limit: u64) {
        candidates.sort_unstable_by_key(|candidate| (candidate.start, candidate.rank.class()));
        let (mut at, mut kept) = (0, 0);
        while let Some(rest @ [first, ..]) = candidates.get(at..) {
            let same = rest.partition_point(|candidate| candidate.start == first.start);
            let best = rest.get(..same).and_then(|same| self.best(same));
            if let (Some(best), Some(place)) = (best, candidates.get_mut(kept)) {
                *place = best;
                kept += 1;
            }
            at += same;
        }
        candidates.truncate(kept);
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
        let mut open = Vec::new();
        for (candidate, next) in candidates.iter().zip(next) {
            let end = if candidate.size != 0 {
                candidate.start.saturating_add(candidate.size)
            } else if let Some(function) = function_at(&functions, candidate.start) {
                function.end
            } else {
                open.push(self.entries.len());
                next.min(candidate.section_end).min(farthest_end(candidate.start, &functions))
            };
            self.entries.push(Entry::new(candidate.start, end, candidate.name));
        }
        self.end_at_calls(&open, object, &functions);
        nest(&mut self.entries);
        self.aliases.shrink_to_fit();
        self.names.shrink();
    }

    /// Nothing says how long the symbols in `open` are: they end where called code begins. Keeps
    /// where that is.
    fn end_at_calls(&mut self, open: &[usize], object: &ElfFile, functions: &[Range<u64>]) {
        let is_long = |entry: &Entry| entry.end().saturating_sub(entry.start) > SHORT_BYTES;
        if !open.iter().filter_map(|&at| self.entries.get(at)).any(is_long) {
            return;
        }
        let starts = called::starts(object, functions);
        for &at in open {
            let Some(entry) = self.entries.get_mut(at) else { continue };
            let next = starts.partition_point(|&start| start <= entry.start);
            if let Some(&next) = starts.get(next) {
                *entry = Entry::new(entry.start, next.min(entry.end()), entry.name);
            }
        }
        let next = starts.iter().skip(1).copied().chain([u64::MAX]);
        let range = |(&start, next): (&u64, u64)| start..next.min(farthest_end(start, functions));
        self.called = starts.iter().zip(next).map(range).collect();
    }

    /// The best of the symbols of one address, with the size of the best that has one; names that
    /// are as good become aliases.
    fn best(&mut self, same: &[Candidate]) -> Option<Candidate> {
        let [first, rest @ ..] = same else { return None };
        if rest.is_empty() {
            return Some(*first);
        }
        let named = same.iter().map(|it| (it, self.names.text(it.name)));
        let named: Vec<_> =
            named.map(|(it, name)| ((it.rank.distance(&name), it.rank.is_unsized, name), it)).collect();
        let ((nearest, _, best_name), best) = named.iter().min_by(|(a, _), (b, _)| a.cmp(b))?;
        let sized = named.iter().filter(|(_, it)| it.size != 0);
        let size = sized.min_by(|(a, _), (b, _)| a.cmp(b)).map_or(0, |(_, it)| it.size);
        let best = Candidate { size, ..**best };
        let others = named.iter().filter(|((distance, _, name), _)| distance == nearest && name != best_name);
        let aliases: Vec<_> =
            others.filter(|((_, _, name), _)| !is_mangled(name)).map(|(_, it)| it.name).collect();
        self.aliases.extend(aliases.into_iter().map(|name| (first.start, name)));
        Some(best)
    }
}

/// `$x`, `$d` and their like mark code and data for disassemblers (AAELF64).
fn is_mapping_symbol(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next() == Some(b'$')
        && letters.next().is_some_and(|letter| matches!(letter, b'x' | b'd' | b'a' | b't'))
        && letters.next().is_none_or(|letter| letter == b'.')
}

/// Where code that begins at `start`, outside of the described functions, ends at the latest.
fn farthest_end(start: u64, functions: &[Range<u64>]) -> u64 {
    let next = functions.get(functions.partition_point(|function| function.start <= start));
    next.map_or(u64::MAX, |next| next.start).min(start.saturating_add(MAX_UNSIZED_BYTES))
}

#[cfg(test)]
mod tests;
