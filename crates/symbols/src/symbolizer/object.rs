//! One object as the symbolizer keeps it: its symbols, its DWARF, and the answers
//! given so far.

use super::names::StringInterner;
use super::{Budget, Detail, Lookup, ObjectKey, Stats, Symbol};
use crate::demangle::is_mangled;
use crate::elf::ElfFile;
use crate::error::Error;
use crate::lines::{Files, LineFrame, Lines};
use crate::separate::Finder;
use crate::symbols::{FoundSymbol, SymbolTable, described_functions, function_at};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use swipr_unwind_tables::order::sorted_by;

/// Bytes of an answer besides its symbols.
const ANSWER_BYTES: usize = 64;

/// What is known of one object. Empty if its file could not be used.
#[derive(Default)]
pub(super) struct Object {
    /// When it was last used, in look-ups.
    pub(super) last_use: u64,
    symbols: SymbolTable,
    dwarf: Dwarf,
    /// Where functions begin, for objects without a symbol table: their local functions have no
    /// name. And where code begins that is called and that no symbol's size covers.
    functions: Vec<Range<u64>>,
    /// What the names of such functions begin with.
    file_name: Box<str>,
    answers: FxHashMap<(u64, Lookup, Detail), Arc<[Symbol]>>,
    answer_bytes: usize,
}

/// What of an object's DWARF can be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Units as they were parsed, and the pages that were touched: soon read again.
    Units,
    /// Where things are in units, which are looked through for it.
    Contents,
}

/// The DWARF of an object.
#[derive(Default)]
enum Dwarf {
    /// There is none, or it cannot be used.
    #[default]
    None,
    /// Not read yet: the file that has it, and the object's path.
    Closed(Box<(ElfFile, PathBuf)>),
    /// Its units are known.
    Open(Box<Lines>),
}

impl Object {
    /// Reads what the object's file, and its debug file, have to say.
    pub(super) fn load(key: &ObjectKey, roots: &[PathBuf], budget: &Budget, stats: &mut Stats) -> Object {
        let path = Path::new(&*key.path);
        let file = match key.open(budget.file_bytes) {
            Ok(file) => file,
            Err(error) => {
                count(&error, stats);
                return Object::default();
            }
        };
        let mut finder =
            Finder { roots, max_bytes: budget.file_bytes, on_refusal: &mut |error| count(&error, stats) };
        let is_stripped = key.image.is_none() && !Lines::are_in(&file);
        let debug = if is_stripped { finder.debug_file(&file, path) } else { None };
        let memory = budget.memory_bytes as u64;
        let mut symbols = SymbolTable::read(&file, debug.as_ref(), memory);
        // What cannot be kept would be read again for every address.
        let is_over_budget = symbols.is_over_limit() || symbols.bytes() > budget.memory_bytes / 2;
        if is_over_budget {
            symbols = SymbolTable::default();
            stats.without_symbols += 1;
        }
        let mut functions =
            if symbols.is_complete() { Vec::new() } else { described_functions(&file, memory) };
        functions.extend(symbols.take_called());
        let functions = sorted_by(&functions, |function| function.start);
        let file_name =
            path.file_name().map_or_else(|| key.path.to_string(), |it| it.to_string_lossy().into());
        let source = debug.unwrap_or(file);
        let dwarf = match Lines::are_in(&source) {
            true => Dwarf::Closed(Box::new((source, path.to_owned()))),
            false => Dwarf::None,
        };
        Object { symbols, dwarf, functions, file_name: file_name.into(), ..Object::default() }
    }

    /// Whether a file is held open.
    pub(super) fn has_file(&self) -> bool {
        !matches!(self.dwarf, Dwarf::None) || self.symbols.has_file()
    }

    /// Bytes in use, parsed DWARF by estimate.
    pub(super) fn bytes(&self) -> usize {
        self.symbols.bytes()
            + self.lines().map_or(0, Lines::bytes)
            + self.functions.capacity() * size_of::<Range<u64>>()
            + self.answer_bytes
    }

    /// An answer given before.
    pub(super) fn known(&self, address: u64, lookup: Lookup, detail: Detail) -> Option<Arc<[Symbol]>> {
        self.answers.get(&(address, lookup, detail)).cloned()
    }

    fn lines(&self) -> Option<&Lines> {
        if let Dwarf::Open(lines) = &self.dwarf { Some(lines) } else { None }
    }

    /// Bytes that [`Self::shrink`] can give back.
    pub(super) fn spare_bytes(&self, part: Part) -> usize {
        self.lines().map_or(0, |lines| match part {
            Part::Units => lines.spare_bytes(),
            Part::Contents => lines.contents_bytes(),
        })
    }

    /// Forgets a part of its DWARF; answers, symbols and where units are stay.
    pub(super) fn shrink(&mut self, part: Part) {
        if let Dwarf::Open(lines) = &mut self.dwarf {
            match part {
                Part::Units => lines.shrink(),
                Part::Contents => lines.forget_contents(),
            }
        }
    }

    /// Looks at the units of the DWARF, unless that was done.
    fn open_lines(&mut self, roots: &[PathBuf], budget: &Budget, stats: &mut Stats) {
        let Dwarf::Closed(closed) = &self.dwarf else { return };
        let (main, path) = &**closed;
        let mut finder =
            Finder { roots, max_bytes: budget.file_bytes, on_refusal: &mut |error| count(&error, stats) };
        let alternate = finder.alternate(main);
        let files = Files { main, alternate: alternate.as_ref(), path };
        let room = budget.memory_bytes / 4 * 3;
        let lines = Lines::open(&files, budget.debug_bytes, budget.memory_bytes as u64);
        self.dwarf = match lines.filter(|lines| lines.bytes() + self.symbols.bytes() <= room) {
            Some(lines) => Dwarf::Open(Box::new(lines)),
            None => {
                stats.without_lines += 1;
                Dwarf::None
            }
        };
    }

    /// Finds the answer and keeps it.
    pub(super) fn resolve(
        &mut self,
        (address, lookup, detail): (u64, Lookup, Detail),
        names: &mut StringInterner,
        roots: &[PathBuf],
        budget: &Budget,
        stats: &mut Stats,
    ) -> Arc<[Symbol]> {
        if detail == Detail::Lines {
            self.open_lines(roots, budget, stats);
        }
        let probe = match lookup {
            Lookup::Pc => address,
            Lookup::ReturnAddress => match address.saturating_sub(1) {
                // makecontext(3) lets a function return to the start of another.
                before if self.start_of(before).is_none() && self.start_of(address) == Some(address) => {
                    address
                }
                before => before,
            },
        };
        let mut frames = Vec::new();
        if let (Dwarf::Open(lines), Detail::Lines) = (&mut self.dwarf, detail) {
            frames = lines.frames(probe);
            stats.refused_files += lines.take_refused();
        }
        let symbols: Arc<[Symbol]> = self.symbols_of(frames, probe, address, names).into();
        self.answer_bytes += ANSWER_BYTES + size_of_val(&*symbols);
        self.answers.insert((address, lookup, detail), symbols.clone());
        symbols
    }

    /// Where the function at an address begins.
    fn start_of(&self, address: u64) -> Option<u64> {
        let found = self.symbols.find(address).map(|found| found.start);
        found.or_else(|| function_at(&self.functions, address).map(|function| function.start))
    }

    fn symbols_of(
        &self,
        mut frames: Vec<LineFrame>,
        probe: u64,
        address: u64,
        names: &mut StringInterner,
    ) -> Vec<Symbol> {
        let found = self.symbols.find(probe);
        let outer = frames.pop().unwrap_or(LineFrame { name: None, file: None, line: None });
        let described = if found.is_none() { function_at(&self.functions, probe) } else { None };
        let unnamed = described.map(|function| format!("{}+{:#x}", self.file_name, function.start));
        let named = self.outer_name(outer.name.as_deref(), found.as_ref());
        let Some(name) = named.or(unnamed.as_deref()) else { return Vec::new() };
        let known_start =
            found.as_ref().map(|found| found.start).or(described.map(|function| function.start));
        let start = known_start.unwrap_or(address);
        let mut symbol = |name: &str, file: Option<&str>, line, offset, inlined| {
            let (name, mangled) = names.name(name);
            Symbol { name, mangled, offset, file: file.map(|file| names.share(file)), line, inlined }
        };
        let mut symbols = Vec::with_capacity(frames.len() + 1);
        for frame in &frames {
            let name = frame.name.as_deref().unwrap_or("[inlined]");
            symbols.push(symbol(name, frame.file.as_deref(), frame.line, 0, true));
        }
        symbols.push(symbol(name, outer.file.as_deref(), outer.line, address.wrapping_sub(start), false));
        symbols
    }

    /// The name of the function that has the code. DWARF's, if that is what the linker uses or one
    /// of several names that it knows. Else the symbol's, which distinguishes namespaces, clones
    /// and cold parts.
    fn outer_name<'a>(&self, dwarf: Option<&'a str>, found: Option<&'a FoundSymbol>) -> Option<&'a str> {
        match (dwarf, found) {
            (Some(dwarf), _) if is_mangled(dwarf) => Some(dwarf),
            (Some(dwarf), Some(found)) if self.symbols.is_also(found, dwarf) => Some(dwarf),
            (_, Some(found)) => Some(&found.name),
            (dwarf, None) => dwarf,
        }
    }
}

fn count(error: &Error, stats: &mut Stats) {
    match error {
        Error::Io { .. } => stats.unreadable_files += 1,
        _ => stats.refused_files += 1,
    }
}
