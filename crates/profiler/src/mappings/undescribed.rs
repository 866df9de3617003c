//! Code of loaded objects that nothing describes, as hand-written assembly: once a walk has come
//! to it, its instructions are read.

use super::loaded::LoadedObject;
use super::reader::Reader;
use super::unwind_info::UnwindInfo;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use swipr_formats::model::Module;
use swipr_symbols::rows::code_scan::{self, Code, CodeState};
use swipr_symbols::table::OwnedTable;
use swipr_unwind::published::interpreter;
use swipr_unwind::rule::Rule;
use swipr_unwind::table::Table;

/// Locations that walks have met: each is scanned once.
const MAX_LOCATIONS: usize = 4096;
/// Locations that are scanned at a time.
const LOCATIONS_A_TIME: usize = 64;
/// The sampler rests so many times as long as it has scanned, and at least for a few ticks.
const REST: u32 = 10;
const LEAST_REST: Duration = Duration::from_millis(10);
/// After so long no other location is scanned: the sampler has ticks to take.
const LONGEST: Duration = Duration::from_millis(4);
/// Undescribed code is searched for functions in chunks of this size.
const CHUNK: u64 = 64 << 10;
const PAGE: u64 = 4096;
/// Bytes behind a page: an instruction may reach there, and what is behind it is looked at.
const LOOK_AHEAD: u64 = 32;

/// An instruction of a stack; `inside`: an address in it, or in the call before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeLocation {
    pub address: u64,
    pub inside: u64,
}

/// What was scanned of an object, while it is loaded.
#[derive(Debug)]
struct Scanned {
    module: Arc<Module>,
    /// Sorted.
    pieces: Vec<(Range<u64>, CodeState)>,
    has_new: bool,
    tables: Vec<Arc<UnwindInfo>>,
}

/// Belongs to the sampler.
#[derive(Debug, Default)]
pub struct Undescribed {
    pending: RefCell<Vec<CodeLocation>>,
    /// What was scanned, and, as locations, the chunks that were searched for functions. Sorted.
    done: Vec<CodeLocation>,
    scanned: Vec<Scanned>,
    /// When to scan again.
    next: Option<Instant>,
}

impl Undescribed {
    /// Has the code at a location, which nothing describes, scanned.
    pub fn record(&self, at: CodeLocation) {
        let mut pending = self.pending.borrow_mut();
        if pending.len() < LOCATIONS_A_TIME && !pending.contains(&at) && self.done.binary_search(&at).is_err()
        {
            pending.push(at);
        }
    }

    /// Scans what is pending. Returns whether there are new tables.
    pub fn scan(&mut self, objects: &[Arc<LoadedObject>], memory_file: i32) -> bool {
        let is_early = self.next.is_some_and(|next| Instant::now() < next);
        if !cfg!(target_arch = "x86_64") || is_early || self.pending.get_mut().is_empty() || is_v8_here() {
            return false;
        }
        let began = Instant::now();
        for at in self.pending.take() {
            // What is left is met again.
            if began.elapsed() > LONGEST {
                break;
            }
            let object = objects.iter().find(|object| object.text().contains(&at.inside));
            if let Some(object) = object.filter(|_| self.is_new(at)) {
                self.scan_at(at, object, memory_file);
            }
        }
        let mut has_new = false;
        for scanned in self.scanned.iter_mut().filter(|scanned| scanned.has_new) {
            if let Some(object) = objects.iter().find(|object| scanned.is_of(object)) {
                scanned.build(object);
                has_new = true;
            }
        }
        self.next = Some(Instant::now() + (began.elapsed() * REST).max(LEAST_REST));
        has_new
    }

    fn is_new(&mut self, at: CodeLocation) -> bool {
        let found = self.done.binary_search(&at).err().filter(|_| self.done.len() < MAX_LOCATIONS);
        found.into_iter().for_each(|number| self.done.insert(number, at));
        found.is_some()
    }

    fn scan_at(&mut self, at: CodeLocation, object: &LoadedObject, memory_file: i32) {
        // An object whose rules are read one by one has a table soon: one is asked for.
        let table = object.unwind_info().map(|info| info.table());
        if matches!(table, Some(None)) {
            self.done.retain(|location| *location != at);
            return;
        }
        let reader = Reader { memory_file };
        let mut code = LoadedCode { text: object.text(), table: table.flatten(), reader, page: (0, vec![]) };
        let chunk = code.chunk_of_hole(at.inside);
        let is_new = self.is_new(CodeLocation { address: chunk.start, inside: chunk.end });
        let mut pieces = if is_new { code_scan::scan_functions(&chunk, &mut code) } else { vec![] };
        if !pieces.iter().any(|(range, _)| range.contains(&at.address)) {
            pieces.append(&mut code_scan::scan(at.address, &mut code));
        }
        let Some(here) = pieces.iter().find(|(range, _)| range.contains(&at.address)) else { return };
        if at.inside != at.address {
            // It is looked up by the call before it, which keeps all that is said.
            pieces.push((at.inside..at.address, here.1));
        }
        if !self.scanned.iter().any(|scanned| scanned.is_of(object)) {
            let module = object.module().clone();
            self.scanned.push(Scanned { module, pieces: vec![], has_new: true, tables: vec![] });
        }
        if let Some(scanned) = self.scanned.iter_mut().find(|scanned| scanned.is_of(object)) {
            pieces.into_iter().for_each(|(range, state)| scanned.add(range, state));
            scanned.has_new = true;
        }
    }

    /// The tables of objects that are still loaded.
    pub fn tables(&mut self, objects: &[Arc<LoadedObject>]) -> Vec<Arc<UnwindInfo>> {
        if is_v8_here() {
            self.scanned.clear();
        }
        let before = self.scanned.len();
        self.scanned.retain(|scanned| objects.iter().any(|object| scanned.is_of(object)));
        if self.scanned.len() < before {
            self.done.clear();
        }
        self.scanned.iter().flat_map(|it| it.tables.iter().cloned()).collect()
    }
}

/// V8's builtins are undescribed code, too, which is not to be scanned: its frames are known by the
/// frame pointers that were followed.
fn is_v8_here() -> bool {
    // SAFETY: this is the thread that publishes.
    let interpreter = unsafe { interpreter::current() };
    interpreter.is_some_and(|interpreter| interpreter.is_native && interpreter.code_cache.is_none())
}

impl Scanned {
    /// What was scanned first holds.
    fn add(&mut self, range: Range<u64>, state: CodeState) {
        let mut number = self.pieces.partition_point(|(known, _)| known.end <= range.start);
        let mut at = range.start;
        while at < range.end {
            let next = self.pieces.get(number).map_or(range.end..range.end, |(known, _)| known.clone());
            let end = next.start.min(range.end);
            if at < end {
                self.pieces.insert(number, (at..end, state));
                number += 1;
            }
            (at, number) = (next.end, number + 1);
        }
    }

    /// A table for each part of the object that nothing describes.
    fn build(&mut self, object: &LoadedObject) {
        let table = object.unwind_info().and_then(|info| info.table()).map_or(Table::EMPTY, OwnedTable::view);
        let is_one = |before: &(Range<u64>, _), next: &(Range<u64>, _)| {
            table.row(before.0.end - 1) == table.row(next.0.start)
        };
        let build = |run: &[(Range<u64>, CodeState)]| {
            let text = run.first()?.0.start..run.last()?.0.end;
            Some(Arc::new(UnwindInfo::new(code_scan::table(run)?, text, 0)))
        };
        self.tables = self.pieces.chunk_by(is_one).filter_map(build).collect();
        self.has_new = false;
    }

    fn is_of(&self, object: &LoadedObject) -> bool {
        Arc::ptr_eq(&self.module, object.module())
    }
}

/// The code of an object in memory.
struct LoadedCode<'o> {
    text: &'o Range<u64>,
    table: Option<&'o OwnedTable>,
    reader: Reader,
    /// What was read last, and where it begins.
    page: (u64, Vec<u8>),
}

impl LoadedCode<'_> {
    /// The undescribed code around an address, within a chunk.
    fn chunk_of_hole(&self, address: u64) -> Range<u64> {
        let table = self.table.map_or(Table::EMPTY, OwnedTable::view);
        let row = table.row(address).unwrap_or(table.ids.len().saturating_sub(1));
        let [start, end] = [row, row + 1].map(|row| table.start_of_row(row));
        let (start, end) = (start.unwrap_or(self.text.start), end.unwrap_or(self.text.end));
        let low = address & !(CHUNK - 1);
        start.max(low)..end.min(low + CHUNK)
    }
}

impl Code for LoadedCode<'_> {
    fn bytes(&mut self, address: u64) -> &[u8] {
        let (start, reader) = (address & !(PAGE - 1), &self.reader);
        if self.page.0 != start {
            let end = (start + PAGE + LOOK_AHEAD).min(self.text.end);
            self.page = (start, reader.copy(start..end).unwrap_or_default());
        }
        self.page.1.get((address - start) as usize..).unwrap_or(&[])
    }

    fn rule(&mut self, address: u64) -> Rule {
        if !self.text.contains(&address) {
            return Rule::END;
        }
        self.table.map_or(Rule::NONE, |table| table.view().rule(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_scanned_first_holds_and_the_rest_is_added() {
        let state = CodeState::AT_ENTRY;
        let other = CodeState::of_rule(Rule::sp(16, 0).unwrap()).unwrap();
        let mut scanned = Scanned {
            module: Arc::new(Module::of(swipr_formats::model::Language::Perl)),
            pieces: vec![],
            tables: vec![],
            has_new: false,
        };
        scanned.add(0x20..0x30, state);
        scanned.add(0x40..0x50, state);
        scanned.add(0x10..0x60, other);
        scanned.add(0x28..0x2c, other);
        let pieces: Vec<_> = scanned.pieces.iter().map(|(range, it)| (range.clone(), *it == state)).collect();
        let expected = [
            (0x10..0x20, false),
            (0x20..0x30, true),
            (0x30..0x40, false),
            (0x40..0x50, true),
            (0x50..0x60, false),
        ];
        assert_eq!(pieces, expected);
    }
}
