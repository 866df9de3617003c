//! Compiled code: which functions the compiler has inlined, and at which places of the source its
//! instructions are.
//!
//! Read while the program runs: what describes the code is compared before and after.

use super::heap::{Heap, HeapObject, Types};
use super::{V8Layout, V8Walk};
use crate::blocks::{BlockMemory, Blocks};
use crate::known::KnownKeys;
use crate::lines::{Distances, positions};
use crate::room::{Chain, End, Frame};
use std::ops::Range;

/// Code begins at multiples of this.
const ALIGNMENT: u64 = 32;
/// Bytes before an instruction in which its code's beginning is looked for.
const MAX_CODE: u64 = 256 << 10;
/// Bytes of a table, and functions in a function.
const MAX_TABLE: u32 = 128 << 10;
const MAX_INLINED: u32 = 1024;
/// Bytes of an inlined call: a position, and the number of a literal.
const CALL: usize = 16;
/// Elements of arrays begin behind the map and the length.
const ELEMENTS: u64 = 16;

/// Where this V8 keeps what describes its compiled code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompiledLayout {
    /// From the header to the instructions.
    pub header: u64,
    /// The type of what has the header.
    pub type_header: u16,
    /// In the description: where the instructions begin; `None`: it is the header itself.
    pub start: Option<u64>,
    /// In the description.
    pub deoptimization: u64,
    /// In the description.
    pub positions: u64,
    /// How the table at `positions` is written.
    pub distances: Distances,
    /// In the description.
    pub size: u64,
    /// In the description, the kind of code in its lowest bits.
    pub flags: u64,
    /// For the kind.
    pub kind_mask: u32,
    /// The first and the last kind that has positions.
    pub kinds: (u32, u32),
    /// Elements of what is kept for deoptimization.
    pub literals: u64,
    /// The number that this compilation has.
    pub id: u64,
    /// The outer function.
    pub function: u64,
    /// Where it is in the object that wraps it, if one does.
    pub wrapped: Option<u64>,
    /// The inlined calls.
    pub calls: u64,
    /// Types of arrays of objects and of bytes; [`CompiledLayout::NO_TYPE`] is none.
    pub types_array: [u16; 5],
    /// See there.
    pub types_bytes: [u16; 2],
}

impl CompiledLayout {
    /// No type has this number.
    pub const NO_TYPE: u16 = u16::MAX;
}

/// A place in the source: of the function itself, or of one that was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// UTF-16 units from the start of the source.
    pub place: Option<u32>,
    /// The number of the inlined call plus 1; 0: of the function itself.
    pub call: u32,
}

impl Position {
    /// Of a number in a table: a mark of places that are none of JavaScript, the place plus 1, the
    /// call.
    fn of(raw: i64) -> Option<Position> {
        let (place, call) = ((raw >> 1 & 0x3fff_ffff) as u32, (raw >> 31 & 0xffff) as u32);
        (raw & 1 == 0 && raw >= 0).then_some(Position { place: place.checked_sub(1), call })
    }
}

/// A function that runs at an instruction, and where in its source.
pub type RunningAt = (usize, Option<u32>);

/// Compiled code.
#[derive(Debug)]
pub struct Compiled {
    /// Its instructions.
    pub range: Range<u64>,
    description: Description,
    /// By the bytes from the start.
    positions: Box<[(u32, Position)]>,
    /// Which function was called, and where.
    calls: Box<[(usize, Position)]>,
}

/// What is the same as long as the code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Description {
    at: u64,
    deoptimization: u64,
    positions: u64,
    size: u32,
    flags: u32,
    id: u64,
}

impl Compiled {
    /// The code at `pc`. The chain has its functions then: first the outer one. `None`: there is
    /// none, or what describes it is not what it must be.
    pub fn read(
        layout: &V8Layout,
        pc: u64,
        (blocks, memory_file): (&mut Blocks, i32),
        known: KnownKeys<'_>,
        chain: &mut Chain,
    ) -> Option<Compiled> {
        let compiled = layout.compiled?;
        chain.begin();
        let mut memory = BlockMemory::new(blocks, memory_file);
        let heap = Heap { layout, memory: &mut memory, types: Types::default() };
        let mut reading = ReadingCode { layout: compiled, walk: V8Walk { heap, known, chain } };
        let start = reading.start_of(pc).ok()?;
        let code = reading.code(start).ok()?;
        chain.finish(End::Root);
        code.is_unchanged(layout, (blocks, memory_file)).then_some(code)
    }

    /// Whether the same code is still there.
    pub fn is_unchanged(&self, layout: &V8Layout, (blocks, memory_file): (&mut Blocks, i32)) -> bool {
        let Some(compiled) = layout.compiled else { return false };
        let mut memory = BlockMemory::new(blocks, memory_file);
        let mut heap = Heap { layout, memory: &mut memory, types: Types::default() };
        description(&mut heap, &compiled, self.range.start).ok() == Some(self.description)
    }

    /// The functions that run at `pc`, innermost first, by their numbers in the chain; the last one
    /// is the outer one. Empty: the code has no positions.
    pub fn running(&self, pc: u64, is_exact: bool) -> Vec<RunningAt> {
        let offset = pc.saturating_sub(self.range.start).saturating_sub(u64::from(!is_exact));
        let before = self.positions.partition_point(|(at, _)| u64::from(*at) <= offset);
        let Some((_, position)) = before.checked_sub(1).and_then(|last| self.positions.get(last)) else {
            return vec![];
        };
        let (mut running, mut position) = (vec![], *position);
        while let Some((function, caller)) = position.call.checked_sub(1).and_then(|call| self.call(call)) {
            running.push((function, position.place));
            position = caller;
        }
        running.push((0, position.place));
        running
    }

    fn call(&self, number: u32) -> Option<(usize, Position)> {
        self.calls.get(number as usize).copied()
    }

    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Compiled>() + size_of_val(&*self.positions) + size_of_val(&*self.calls)
    }
}

fn description(heap: &mut Heap<'_, '_>, layout: &CompiledLayout, start: u64) -> Result<Description, End> {
    let header = start.wrapping_sub(layout.header);
    heap.of_kind(header | 1, layout.type_header)?;
    let at = match layout.start {
        None => header,
        Some(field) => {
            let word = heap.word(header.wrapping_add(8))?;
            let object = heap.object(word)?;
            if heap.field(object, field)? != start {
                return Err(End::Inconsistent);
            }
            object.at
        }
    };
    let deoptimization = heap.word(at.wrapping_add(layout.deoptimization))?;
    let flags = heap.half(at.wrapping_add(layout.flags))?;
    let (first, last) = layout.kinds;
    let is_optimized = (first..=last).contains(&(flags & layout.kind_mask));
    let id = match Heap::address(deoptimization).filter(|_| is_optimized) {
        Some(data) => heap.word(data.wrapping_add(ELEMENTS + 8 * layout.id))?,
        None => 0,
    };
    Ok(Description {
        at,
        deoptimization,
        positions: heap.word(at.wrapping_add(layout.positions))?,
        size: heap.half(at.wrapping_add(layout.size))?,
        flags,
        id,
    })
}

struct ReadingCode<'w, 'p, 'k> {
    layout: CompiledLayout,
    walk: V8Walk<'w, 'p, 'k>,
}

impl ReadingCode<'_, '_, '_> {
    /// Where the code at `pc` begins: behind the nearest header, if its size says so.
    fn start_of(&mut self, pc: u64) -> Result<u64, End> {
        let nearest = pc - pc % ALIGNMENT;
        for start in (0..MAX_CODE).step_by(ALIGNMENT as usize).map(|before| nearest.wrapping_sub(before)) {
            let header = start.wrapping_sub(self.layout.header);
            let words = [self.walk.heap.word(header)?, self.walk.heap.word(header.wrapping_add(8))?];
            if words.into_iter().all(|word| Heap::is_object(word) && word >> 47 == 0)
                && let Ok(found) = description(&mut self.walk.heap, &self.layout, start)
            {
                let is_inside = pc - start <= u64::from(found.size);
                return if is_inside { Ok(start) } else { Err(End::Inconsistent) };
            }
        }
        Err(End::Full)
    }

    fn code(&mut self, start: u64) -> Result<Compiled, End> {
        let description = description(&mut self.walk.heap, &self.layout, start)?;
        let range = start..start.saturating_add(u64::from(description.size));
        let mut code = Compiled { range, description, positions: Box::default(), calls: Box::default() };
        let (first, last) = self.layout.kinds;
        if !(first..=last).contains(&(description.flags & self.layout.kind_mask)) {
            return Ok(code);
        }
        let (data, _) = self.array(description.deoptimization)?;
        let outer = self.outer(data)?;
        self.keep_function(outer)?;
        code.calls = self.calls(data)?;
        let table = self.bytes(description.positions)?;
        let distances = self.layout.distances;
        let all = positions(&table, distances, description.size).ok_or(End::Inconsistent)?;
        let is_call = |position: &Position| position.call as usize <= code.calls.len();
        let all = all.into_iter().map(|(at, raw)| Position::of(raw).filter(is_call).map(|found| (at, found)));
        code.positions = all.collect::<Option<_>>().ok_or(End::Inconsistent)?;
        Ok(code)
    }

    fn outer(&mut self, data: HeapObject) -> Result<u64, End> {
        let word = self.element(data, self.layout.function)?;
        match self.layout.wrapped {
            None => Ok(word),
            Some(field) => {
                let wrapper = self.walk.heap.object(word)?;
                self.walk.heap.field(wrapper, field)
            }
        }
    }

    /// The inlined calls, each in the function itself, or in one before it. Keeps their functions.
    fn calls(&mut self, data: HeapObject) -> Result<Box<[(usize, Position)]>, End> {
        let array = self.element(data, self.layout.calls)?;
        let bytes = self.bytes(array)?;
        let literals = self.element(data, self.layout.literals)?;
        let (literals, count) = self.array(literals)?;
        let mut kept: Vec<u32> = vec![];
        let mut calls = vec![];
        for call in bytes.as_chunks::<CALL>().0 {
            let [position, literal] = *call.as_chunks::<8>().0 else { return Err(End::Inconsistent) };
            let literal = u64::from_ne_bytes(literal) as u32;
            let position = Position::of(i64::from_ne_bytes(position)).ok_or(End::Inconsistent)?;
            if position.call as usize > calls.len() || literal >= count || calls.len() >= MAX_INLINED as usize
            {
                return Err(End::Inconsistent);
            }
            let number = kept.iter().position(|known| *known == literal).unwrap_or(kept.len());
            if number == kept.len() {
                kept.push(literal);
                let shared = self.element(literals, literal.into())?;
                self.keep_function(shared)?;
            }
            calls.push((1 + number, position));
        }
        Ok(calls.into())
    }

    /// One that is written in C++ has a number, too.
    fn keep_function(&mut self, shared: u64) -> Result<(), End> {
        let frame = self.walk.name_of_shared(shared)?.unwrap_or(Frame::default());
        if self.walk.chain.push(frame) { Ok(()) } else { Err(End::Full) }
    }

    fn element(&mut self, array: HeapObject, number: u64) -> Result<u64, End> {
        self.walk.heap.word(array.at.wrapping_add(ELEMENTS + 8 * number))
    }

    /// An array of objects that is long enough, and how long it is.
    fn array(&mut self, word: u64) -> Result<(HeapObject, u32), End> {
        self.of_kinds(word, &{ self.layout.types_array })
    }

    fn bytes(&mut self, word: u64) -> Result<Vec<u8>, End> {
        let (array, length) = self.of_kinds(word, &{ self.layout.types_bytes })?;
        if length > MAX_TABLE {
            return Err(End::Full);
        }
        let mut bytes = vec![0; length as usize];
        let read = self.walk.heap.memory.copy(array.at.wrapping_add(ELEMENTS), &mut bytes);
        read.map(|()| bytes).ok_or(End::Unreadable)
    }

    fn of_kinds(&mut self, word: u64, kinds: &[u16]) -> Result<(HeapObject, u32), End> {
        let array = self.walk.heap.object(word)?;
        let length = self.walk.heap.word(array.at.wrapping_add(8))?;
        let length = Heap::number(length).filter(|_| kinds.contains(&array.kind));
        Ok((array, length.ok_or(End::Inconsistent)?))
    }
}
