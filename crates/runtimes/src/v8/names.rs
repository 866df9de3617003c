//! What a function is called, and where its source begins.

use super::V8Walk;
use super::heap::{Heap, HeapObject};
use crate::content::{EXCERPT, EXCERPT_BEFORE, HEAD, LineTable, put_head};
use crate::hash::hash_of;
use crate::room::{End, Frame};

/// Characters of names and paths that are kept.
const MAX_NAME: u32 = 256;
const MAX_FILE: u32 = 1024;
/// More variables than functions have.
const MAX_LOCALS: u32 = 1 << 20;

/// The source of a script.
#[derive(Clone, Copy, Debug)]
struct Source {
    /// In UTF-16 units.
    length: u32,
    /// Bytes of a character.
    width: u32,
    /// Where it is, if it lies in a row.
    text: Option<u64>,
}

/// What the description of a function's scope says.
#[derive(Clone, Copy, Debug, Default)]
struct Scope {
    name: Option<u64>,
    /// Where the source of the function begins, in UTF-16 units.
    start: Option<u32>,
}

impl V8Walk<'_, '_, '_> {
    /// The function's key, and its content if that is not known. `None`: it is written in C++, or
    /// is no function.
    pub(super) fn name(&mut self, function: u64) -> Result<Option<Frame>, End> {
        let layout = *self.heap.layout;
        let function = self.heap.object(function)?;
        let (first, last) = layout.types_function;
        if !(first..=last).contains(&function.kind) {
            return Ok(None);
        }
        let shared = self.heap.field(function, layout.function_shared)?;
        self.name_of_shared(shared)
    }

    /// The same, by what all its closures share.
    pub(super) fn name_of_shared(&mut self, shared: u64) -> Result<Option<Frame>, End> {
        let layout = *self.heap.layout;
        let shared = self.heap.of_kind(shared, layout.type_shared)?;
        let script = self.heap.field(shared, layout.shared_script)?;
        let script = self.heap.object(script)?;
        if script.kind != layout.type_script {
            return Ok(None);
        }
        let scope = self.scope(shared)?;
        let mut used = HEAD;
        let mut texts = [(1, 0); 2];
        let file = self.heap.field(script, layout.script_name)?;
        for ((kind, bytes), (word, at_most)) in
            texts.iter_mut().zip([(scope.name, MAX_NAME), (Some(file), MAX_FILE)])
        {
            (*kind, *bytes) = match word {
                Some(word) => self.put_string(used, word, at_most)?,
                None => (1, 0),
            };
            used += *bytes as usize;
        }
        let start = scope.start.unwrap_or(u32::MAX);
        let source = self.source(script)?;
        let [(a, b), (c, d)] = texts;
        let table = if source.width == 2 { LineTable::WideSource } else { LineTable::Source } as u32;
        // It is known without the excerpt, which lies somewhere else for each function.
        let key = {
            let content = self.chain.free().get_mut(..used).ok_or(End::Full)?;
            put_head(content, [start, a, b, c, d, source.length, 0, table]);
            hash_of(content)
        };
        let mut content = 0;
        if !self.known.has(key) {
            let excerpt = self.put_excerpt(used, source, start)?;
            let head = self.chain.free().get_mut(..HEAD).ok_or(End::Full)?;
            put_head(head, [start, a, b, c, d, source.length, excerpt, table]);
            content = self.chain.keep(used + excerpt as usize).ok_or(End::Full)?;
        }
        Ok(Some(Frame { key, content, ..Frame::default() }))
    }

    fn scope(&mut self, shared: HeapObject) -> Result<Scope, End> {
        let layout = *self.heap.layout;
        let word = self.heap.field(shared, layout.shared_name)?;
        let object = self.heap.object(word)?;
        if object.kind < layout.first_other_type {
            return Ok(Scope { name: Some(word), start: None });
        }
        if object.kind != layout.type_scope {
            return Err(End::Inconsistent);
        }
        let field = |number: u64| object.at.wrapping_add(8 + 8 * number);
        let locals = self.heap.word(field(layout.scope_locals))?;
        let locals = Heap::number(locals).filter(|&locals| locals < MAX_LOCALS).ok_or(End::Inconsistent)?;
        let first = layout.scope_rest;
        // Many names are in a table of their own: then one word is that of all.
        let is_table = locals > 1 && Heap::number(self.heap.word(field(first + 1))?).is_some();
        let names = if is_table { 1 } else { u64::from(locals) };
        let rest = first + names + u64::from(locals);
        let mut words = [0; 5];
        for (word, number) in words.iter_mut().zip(rest..) {
            *word = self.heap.word(field(number))?;
        }
        // Newer versions have the function's place before its variables.
        let (name, start) = if first > layout.scope_locals + 1 {
            let start = self.heap.word(field(layout.scope_locals + 1))?;
            (names_of(words), Heap::number(start))
        } else {
            names_and_start(words)
        };
        Ok(Scope { name: self.chosen(name)?, start })
    }

    /// The function's own name, unless it is empty; else the one that V8 inferred.
    fn chosen(&mut self, names: [u64; 2]) -> Result<Option<u64>, End> {
        let layout = *self.heap.layout;
        for name in names.into_iter().filter(|&name| Heap::is_object(name)) {
            let string = self.heap.object(name)?;
            let is_string = string.kind < layout.first_other_type;
            if is_string && self.heap.half(string.at.wrapping_add(layout.string_length))? != 0 {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    fn source(&mut self, script: HeapObject) -> Result<Source, End> {
        let layout = *self.heap.layout;
        let source = self.heap.field(script, layout.script_source)?;
        let mut source = self.heap.object(source)?;
        if source.kind < layout.first_other_type && source.kind & layout.representation == layout.thin {
            let actual = self.heap.field(source, layout.thin_actual)?;
            source = self.heap.object(actual)?;
        }
        if source.kind >= layout.first_other_type {
            return Ok(Source { length: 0, width: 1, text: None });
        }
        let length = self.heap.half(source.at.wrapping_add(layout.string_length))?;
        let (text, width) = match source.kind & layout.one_byte {
            0 => (layout.wide_string_text, 2),
            _ => (layout.string_text, 1),
        };
        let is_flat = source.kind & layout.representation == layout.sequential;
        let text = is_flat.then(|| source.at.wrapping_add(text));
        Ok(Source { length, width, text })
    }

    /// Copies some of the source around `start`, by which the file is compared with it; returns the
    /// bytes.
    fn put_excerpt(&mut self, at: usize, source: Source, start: u32) -> Result<u32, End> {
        let Source { length, width, text } = source;
        let Some(text) = text.filter(|_| start < length) else { return Ok(0) };
        let first = start.saturating_sub(EXCERPT_BEFORE);
        let bytes = width * length.saturating_sub(first).min(EXCERPT);
        self.put_bytes(at, text.wrapping_add(u64::from(width) * u64::from(first)), bytes)?;
        Ok(bytes)
    }

    /// The word of the name in a scope's description, as far as that was read.
    pub(super) fn known_name(&self, scope: u64) -> Option<u64> {
        let layout = self.heap.layout;
        let field = |number: u64| self.heap.memory.known_word(scope.checked_add(8 + 8 * number)?);
        let locals = Heap::number(field(layout.scope_locals).filter(|_| scope != 0)?)?;
        field(layout.scope_rest + 2 * u64::from(locals))
    }
}

/// The name and the inferred name, of the words behind a scope's variables; either may be missing.
/// Behind the name is where its variable is: a number.
fn names_of([a, b, c, ..]: [u64; 5]) -> [u64; 2] {
    if Heap::number(b).is_some() { [a, c] } else { [0, a] }
}

/// The same, and where the function starts: two numbers behind the names, the start and the end.
/// Behind these is an object.
fn names_and_start(words: [u64; 5]) -> ([u64; 2], Option<u32>) {
    let [a, b, c, d, _] = words;
    match words.map(|word| Heap::number(word).is_some()) {
        // Name, place, inferred name, start, end; the name may be the number 0.
        [_, true, false, true, true] => ([a, c], Heap::number(d)),
        // Name, place, start, end.
        [_, true, true, true, _] => ([a, 0], Heap::number(c)),
        // Inferred name, start, end.
        [false, true, true, false, _] => ([0, a], Heap::number(b)),
        [true, true, ..] => ([0, 0], Heap::number(a)),
        _ => (names_of(words), None),
    }
}
