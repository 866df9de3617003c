//! Functions by address and time: JIT compilers use the same memory again and again.
//!
//! What holds now is in one sorted map without overlaps: a new function replaces whatever was
//! there. Displaced code is remembered for a while, because samples are looked up a little after
//! they were taken.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Pieces of displaced code that are remembered.
const MAX_DISPLACED: usize = 8192;
/// What a piece of code occupies besides its names and lines, about.
const PIECE_BYTES: usize = 160;

/// A line of the source, for the code from an address on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineEntry {
    /// Bytes from the function's start.
    pub offset: u64,
    /// The line, from 1; 0: none.
    pub line: u32,
    /// Its file.
    pub file: Arc<str>,
}

/// A function as its compiler describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// As the compiler calls it: with its tier, and where its source is, in some way of the
    /// compiler's own.
    pub name: Arc<str>,
    /// By offset.
    pub lines: Arc<[LineEntry]>,
}

impl Function {
    /// The file and line of the instruction at an offset.
    pub fn place(&self, offset: u64) -> Option<(&Arc<str>, u32)> {
        let behind = self.lines.partition_point(|entry| entry.offset <= offset);
        let entry = self.lines.get(behind.checked_sub(1)?).filter(|entry| entry.line != 0)?;
        Some((&entry.file, entry.line))
    }

    fn bytes(&self) -> usize {
        PIECE_BYTES + self.name.len() + size_of_val(&*self.lines)
    }
}

/// What was found at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The function.
    pub function: Function,
    /// Where it begins.
    pub start: u64,
    /// From when to when this holds, in the map's time.
    pub valid: Range<u64>,
}

#[derive(Clone, Debug)]
struct Piece {
    end: u64,
    /// Where the whole function begins: another's place may have been in the middle of it.
    start: u64,
    /// Since when.
    from: u64,
    function: Function,
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct CodeMap {
    pieces: BTreeMap<u64, Piece>,
    /// The latest at the end: first address, until when, and what it was.
    displaced: VecDeque<(u64, u64, Piece)>,
    displaced_bytes: usize,
    /// With those.
    bytes: usize,
    max_bytes: usize,
    refused: u64,
}

impl CodeMap {
    /// Of about so many bytes at most.
    pub fn new(max_bytes: usize) -> CodeMap {
        CodeMap { max_bytes, ..CodeMap::default() }
    }

    /// From now on (`time`) there is this function. Nothing is there that wraps around or is empty.
    pub fn insert(&mut self, start: u64, size: u64, time: u64, function: Function) {
        let Some(end) = start.checked_add(size).filter(|&end| end > start) else { return };
        if self.bytes.saturating_add(function.bytes()) > self.max_bytes {
            self.displaced.clear();
            self.bytes -= std::mem::take(&mut self.displaced_bytes);
            if self.bytes.saturating_add(function.bytes()) > self.max_bytes {
                self.refused += 1;
                // What was there is there no more, whatever is now.
                self.remove(start..end, time);
                return;
            }
        }
        self.remove(start..end, time);
        self.put(start, Piece { end, start, from: time, function });
    }

    /// The function that began at `old` is at `new` from now on; whether there was one.
    pub fn move_to(&mut self, old: u64, new: u64, size: u64, time: u64) -> bool {
        let Some(piece) = self.pieces.get(&old).filter(|piece| piece.start == old) else { return false };
        let (function, known) = (piece.function.clone(), piece.end - old);
        self.remove(old..old.saturating_add(known), time);
        self.insert(new, if size == 0 { known } else { size }, time, function);
        true
    }

    /// The function at an address at a time; of overlapping ones the newest.
    pub fn find(&self, address: u64, time: u64) -> Option<Found> {
        let piece = self.pieces.range(..=address).next_back().map(|(_, piece)| piece);
        let now = piece.filter(|piece| address < piece.end && piece.from <= time);
        now.map(|piece| found(piece, u64::MAX)).or_else(|| self.find_displaced(address, time))
    }

    fn find_displaced(&self, address: u64, time: u64) -> Option<Found> {
        let was = |(start, until, piece): &&(u64, u64, Piece)| {
            (*start..piece.end).contains(&address) && (piece.from..*until).contains(&time)
        };
        let (_, until, piece) = self.displaced.iter().rev().find(was)?;
        Some(found(piece, *until))
    }

    /// Nothing is in that range from `time` on.
    pub fn forget(&mut self, range: Range<u64>, time: u64) {
        self.remove(range, time);
    }

    /// Functions that are not there because the map was full.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Memory in use, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = CodeMap::new(self.max_bytes);
    }

    fn remove(&mut self, range: Range<u64>, time: u64) {
        let before = self.pieces.range(..range.start).next_back().map(|(start, piece)| (*start, piece.end));
        if let Some((start, end)) = before.filter(|(_, end)| *end > range.start) {
            self.cut(start, end, &range, time);
        }
        while let Some((start, end)) =
            self.pieces.range(range.clone()).next().map(|(start, piece)| (*start, piece.end))
        {
            self.cut(start, end, &range, time);
        }
    }

    /// Takes a part out of a piece, and puts what is left of it back.
    fn cut(&mut self, start: u64, end: u64, part: &Range<u64>, time: u64) {
        let Some(piece) = self.pieces.remove(&start) else { return };
        self.bytes -= piece.function.bytes();
        if start < part.start {
            self.put(start, Piece { end: part.start, ..piece.clone() });
        }
        if end > part.end {
            self.put(part.end, piece.clone());
        }
        if piece.from < time {
            let is_full = self.displaced.len() >= MAX_DISPLACED;
            let oldest = if is_full { self.displaced.pop_front() } else { None };
            let less = oldest.map_or(0, |(_, _, oldest)| oldest.function.bytes());
            let gone = Piece { end: end.min(part.end), ..piece };
            let more = gone.function.bytes();
            self.bytes = self.bytes + more - less;
            self.displaced_bytes = self.displaced_bytes + more - less;
            self.displaced.push_back((start.max(part.start), time, gone));
        }
    }

    fn put(&mut self, start: u64, piece: Piece) {
        self.bytes += piece.function.bytes();
        self.pieces.insert(start, piece);
    }
}

fn found(piece: &Piece, until: u64) -> Found {
    Found { function: piece.function.clone(), start: piece.start, valid: piece.from..until }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Function {
        Function { name: name.into(), lines: Arc::new([]) }
    }

    fn at(map: &CodeMap, address: u64, time: u64) -> Option<String> {
        map.find(address, time).map(|found| format!("{}+{}", found.function.name, address - found.start))
    }

    #[test]
    fn the_newest_function_wins_where_several_overlap_and_the_rest_stays() {
        let mut map = CodeMap::new(1 << 20);
        map.insert(100, 100, 0, named("old"));
        map.insert(120, 10, 0, named("new"));
        for (address, expected) in [
            (99, None),
            (100, Some("old+0")),
            (119, Some("old+19")),
            (120, Some("new+0")),
            (129, Some("new+9")),
            (130, Some("old+30")),
            (199, Some("old+99")),
            (200, None),
        ] {
            assert_eq!(at(&map, address, 0).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn memory_that_is_used_again_has_the_name_of_its_time() {
        let mut map = CodeMap::new(1 << 20);
        map.insert(100, 50, 10, named("first"));
        map.insert(90, 20, 20, named("second"));
        map.insert(100, 50, 30, named("third"));
        let seen: Vec<_> = [9, 10, 19, 20, 29, 30, 1000].map(|time| at(&map, 105, time)).into();
        let seen: Vec<_> = seen.iter().map(Option::as_deref).collect();
        let [first, second, third] = [Some("first+5"), Some("second+15"), Some("third+5")];
        assert_eq!(seen, [None, first, first, second, second, third, third]);
        assert_eq!(map.find(105, 25).unwrap().valid, 20..30);
        assert_eq!(map.find(105, 30).unwrap().valid, 30..u64::MAX);
    }

    #[test]
    fn a_function_that_moves_takes_its_lines_along() {
        let mut map = CodeMap::new(1 << 20);
        let lines = Arc::new([LineEntry { offset: 4, line: 7, file: "a.js".into() }]);
        map.insert(100, 50, 10, Function { name: "f".into(), lines });
        assert!(map.move_to(100, 500, 50, 20) && !map.move_to(100, 600, 50, 21));
        assert_eq!(at(&map, 110, 15).as_deref(), Some("f+10"));
        assert_eq!((at(&map, 110, 25), at(&map, 510, 15)), (None, None));
        let found = map.find(510, 25).unwrap();
        assert_eq!(found.function.place(510 - found.start).map(|place| place.1), Some(7));
        assert_eq!(found.function.place(3), None);
    }

    #[test]
    fn a_full_map_refuses_what_is_new_and_forgets_what_was_there_instead() {
        let mut map = CodeMap::new(20 * PIECE_BYTES);
        for n in 0..1000 {
            map.insert(n * 10, 10, n, named("f"));
        }
        assert!(map.refused() > 900 && map.bytes() <= 20 * PIECE_BYTES);
        assert!(at(&map, 5, 1000).is_some() && at(&map, 9990, 1000).is_none());
        map.insert(0, 10, 2000, named(&"x".repeat(1000)));
        assert_eq!(at(&map, 5, 2001), None);
        map.forget(0..10_000, 3000);
        map.insert(0, 10, 4000, named(&"x".repeat(19 * PIECE_BYTES)));
        assert_eq!(map.bytes(), 20 * PIECE_BYTES, "what was displaced is gone");
    }

    #[test]
    fn nothing_lies_at_the_end_of_all_addresses_or_has_no_bytes() {
        let mut map = CodeMap::new(1 << 20);
        map.insert(u64::MAX - 5, 10, 0, named("wraps"));
        map.insert(100, 0, 0, named("empty"));
        assert!(map.is_empty());
        map.insert(u64::MAX - 5, 5, 0, named("last"));
        assert!(map.move_to(u64::MAX - 5, u64::MAX - 2, 10, 1));
        assert!(map.is_empty());
    }
}
