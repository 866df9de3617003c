//! One object as the symbolizer keeps it: its symbols, its DWARF, and the answers
//! given so far.

use super::names::NameStore;
use super::{Budget, Lookup, ObjectKey, Stats, Symbol};
use crate::demangle::is_mangled;
use crate::elf::ElfFile;
use crate::error::Error;
use crate::lines::{LineFrame, Lines};
use crate::separate;
use crate::symbols::{FoundSymbol, SymbolTable, described_functions, function_at};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Bytes of an answer besides its symbols.
const ANSWER_BYTES: usize = 64;

/// What is known of one object. Empty if its file could not be used.
#[derive(Default)]
pub(super) struct Object {
    /// When it was last asked, in look-ups.
    pub(super) last_use: u64,
    symbols: SymbolTable,
    lines: Option<Lines>,
    /// Where functions begin, for objects with lines and without symbols.
    functions: Vec<Range<u64>>,
    answers: HashMap<(u64, Lookup), Arc<[Symbol]>>,
    answer_bytes: usize,
}

impl Object {
    /// Reads what the object's file, and its debug file, have to say.
    pub(super) fn load(key: &ObjectKey, budget: &Budget, stats: &mut Stats) -> Object {
        let path = Path::new(&*key.path);
        let opened = match &key.image {
            Some(image) => ElfFile::from_memory(image.clone()),
            None => {
                let places = key.links.iter().map(|link| Path::new(&**link)).chain([path]);
                separate::open_loaded(places, &key.build_id, key.file.as_ref(), budget.file_bytes)
            }
        };
        let file = match opened {
            Ok(file) => file,
            Err(error) => {
                count(&error, stats);
                return Object::default();
            }
        };
        let debug = if key.image.is_some() || Lines::are_in(&file) {
            None
        } else {
            separate::find(&file, path, budget.file_bytes, &mut |error| count(&error, stats))
        };
        let memory = budget.memory_bytes as u64;
        let mut symbols = SymbolTable::read(&file, debug.as_ref(), memory);
        // What cannot be kept would be read again for every address.
        let is_without = symbols.is_over_limit() || symbols.bytes() > budget.memory_bytes / 2;
        if is_without {
            symbols = SymbolTable::default();
            stats.without_symbols += 1;
        }
        let source = debug.as_ref().unwrap_or(&file);
        let lines = Lines::open(source, budget.debug_bytes, memory)
            .filter(|lines| lines.bytes() + symbols.bytes() <= budget.memory_bytes / 4 * 3);
        if lines.is_none() && Lines::are_in(source) {
            stats.without_lines += 1;
        }
        let functions = match &lines {
            Some(_) if is_without || source.section(".symtab").is_none() => {
                described_functions(&file, memory)
            }
            _ => Vec::new(),
        };
        Object { symbols, lines, functions, ..Object::default() }
    }

    /// Whether a file is held open.
    pub(super) fn has_file(&self) -> bool {
        self.lines.is_some() || self.symbols.has_file()
    }

    /// Bytes in use, parsed DWARF by estimate.
    pub(super) fn bytes(&self) -> usize {
        self.symbols.bytes()
            + self.lines.as_ref().map_or(0, Lines::bytes)
            + self.functions.capacity() * size_of::<Range<u64>>()
            + self.answer_bytes
    }

    /// An answer given before.
    pub(super) fn known(&self, address: u64, lookup: Lookup) -> Option<Arc<[Symbol]>> {
        self.answers.get(&(address, lookup)).cloned()
    }

    /// Finds the answer and keeps it.
    pub(super) fn resolve(&mut self, address: u64, lookup: Lookup, names: &mut NameStore) -> Arc<[Symbol]> {
        let probe = match lookup {
            Lookup::Pc => address,
            Lookup::ReturnAddress => address.saturating_sub(1),
        };
        let frames = self.lines.as_ref().map_or_else(Vec::new, |lines| lines.frames(probe));
        let symbols: Arc<[Symbol]> = self.symbols_of(frames, probe, address, names).into();
        self.answer_bytes += ANSWER_BYTES + size_of_val(&*symbols);
        self.answers.insert((address, lookup), symbols.clone());
        symbols
    }

    fn symbols_of(
        &self,
        mut frames: Vec<LineFrame>,
        probe: u64,
        address: u64,
        names: &mut NameStore,
    ) -> Vec<Symbol> {
        let found = self.symbols.find(probe);
        let outer = frames.pop().unwrap_or(LineFrame { name: None, file: None, line: None });
        let Some(name) = self.outer_name(outer.name.as_deref(), found.as_ref()) else { return Vec::new() };
        let start = match &found {
            Some(found) => found.start,
            None => function_at(&self.functions, probe).map_or(address, |function| function.start),
        };
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

    /// The name of the function that has the code. DWARF's, if that is what the linker uses or one of several
    /// names that it knows; else the symbol's, which tells namespaces, clones and cold parts apart.
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
