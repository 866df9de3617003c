//! Compiled code: which methods run at an instruction, those that the compiler has inlined too.
//!
//! Each code (`nmethod`) has a list of the places at which the program may be stopped, sorted by
//! address, each with the methods that run there and their bytecodes, innermost first. Between two
//! of them, the next one holds. As the frame is made or left, only the outermost method can run.

use super::{JavaLayout, JavaWalk};
use crate::blocks::{BlockMemory, Blocks};
use crate::content::{HEAD, Piece, keep_with_line_in_frame, put};
use crate::known::KnownKeys;
use crate::lines::shared_bytes;
use crate::room::{Chain, End};
use swipr_unwind::code_cache::CodePiece;
use swipr_unwind::walk::is_entry_or_exit;

/// Methods in a method, bytes of a description and of a name.
const MAX_INLINED: usize = 256;
const DESCRIPTION: usize = 32;
const MAX_NAME: usize = 64;
/// Bytes of a place: where it is, and where it is described.
const PLACE: u64 = 16;

/// Where this HotSpot keeps what describes its compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JavaCodeLayout {
    /// The number that this compilation has.
    pub id: u64,
    /// The places at which it may be stopped.
    pub places: CodePart,
    /// What is behind these.
    pub places_end: CodePart,
    /// Their descriptions.
    pub descriptions: CodePart,
    /// The methods to which descriptions refer by number.
    pub methods: CodePart,
}

/// Where a part of a code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodePart {
    /// Its address is in that field.
    Address(u64),
    /// The distance from the code's start, four bytes, is in that field.
    Distance(u64),
    /// The distance, in the second field, is from the address in the first.
    From(u64, u64),
}

/// A piece of code, and which one it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JavaCode {
    piece: CodePiece,
    /// Where its name is.
    name: u64,
    /// The method, and the number of the compilation; `None`: it is a part of the machine.
    method: Option<(u64, u32)>,
}

/// What runs at an instruction.
#[derive(Debug)]
pub struct RunningMethods {
    /// The code there.
    pub code: JavaCode,
    /// The bytecodes of its methods, which the chain has, innermost first; `None`: not known.
    pub bytecodes: Vec<Option<u32>>,
}

impl JavaCode {
    /// Whether it is a method, and no part of the machine.
    pub fn is_method(&self) -> bool {
        self.method.is_some()
    }

    /// The code at `pc`; `None`: there is none.
    pub fn at(layout: &JavaLayout, pc: u64, (blocks, memory_file): (&mut Blocks, i32)) -> Option<JavaCode> {
        let mut memory = BlockMemory::new(blocks, memory_file);
        Self::read(layout, pc, &mut memory)
    }

    fn read(layout: &JavaLayout, pc: u64, memory: &mut BlockMemory<'_>) -> Option<JavaCode> {
        let compiled = layout.compiled?;
        let piece = layout.code_cache.piece(memory, pc)?;
        let name = memory.word(piece.start.checked_add(layout.code_cache.name)?)?;
        let method = match layout.method_of(piece, memory) {
            None => None,
            Some(method) => Some((method, memory.half(piece.start.checked_add(compiled.id)?)?)),
        };
        Some(JavaCode { piece, name, method })
    }
}

impl RunningMethods {
    /// What runs at `pc`, which is a return address, or the instruction itself. The chain has the
    /// methods then, or what the part of the machine is called. `None`: no code is there, or it
    /// cannot be told which.
    pub fn read(
        layout: &JavaLayout,
        (pc, is_exact): (u64, bool),
        (blocks, memory_file): (&mut Blocks, i32),
        known: KnownKeys<'_>,
        chain: &mut Chain,
    ) -> Option<RunningMethods> {
        chain.begin();
        let mut memory = BlockMemory::new(blocks, memory_file);
        let code = JavaCode::read(layout, pc - u64::from(!is_exact), &mut memory)?;
        let compiled = layout.compiled?;
        let mut walk = JavaWalk { layout, memory: &mut memory, known, chain };
        let bytecodes = match code.method {
            None => {
                let name = put(walk.chain, walk.memory, HEAD, Piece::Terminated(code.name, MAX_NAME)).ok()?;
                let part = keep_with_line_in_frame(walk.chain, known, name, 0).ok()?;
                walk.chain.push(part).then(|| vec![None])?
            }
            Some((method, _)) => {
                let offset = u32::try_from(pc.checked_sub(code.piece.code)?).ok()?;
                let is_alone = is_exact && is_entry_or_exit(walk.memory, pc, code.piece);
                let mut reading = ReadingJavaCode { layout: compiled, code, method, walk: &mut walk };
                let description = reading.description(offset.checked_add(u32::from(is_exact))?).ok()?;
                let leaves_out = is_alone && description != 0 && reading.described(description).ok()?[0] != 0;
                reading.running(if leaves_out { 0 } else { description }).ok()?
            }
        };
        chain.finish(End::Root);
        Some(RunningMethods { code, bytecodes })
    }
}

struct ReadingJavaCode<'r, 'w, 'p, 'k> {
    layout: JavaCodeLayout,
    code: JavaCode,
    method: u64,
    walk: &'r mut JavaWalk<'w, 'p, 'k>,
}

impl ReadingJavaCode<'_, '_, '_, '_> {
    fn half(&mut self, address: u64) -> Result<u32, End> {
        self.walk.memory.half(address).ok_or(End::Unreadable)
    }

    fn part(&mut self, part: CodePart) -> Result<u64, End> {
        let start = self.code.piece.start;
        let (from, distance) = match part {
            CodePart::Address(at) => return self.walk.word(start.wrapping_add(at)),
            CodePart::Distance(at) => (start, at),
            CodePart::From(from, at) => (self.walk.word(start.wrapping_add(from))?, at),
        };
        let distance = self.half(start.wrapping_add(distance))?;
        Ok(from.wrapping_add(distance.into()))
    }

    /// What describes the next place, from that distance behind the first instruction on; 0:
    /// nothing does.
    fn description(&mut self, offset: u32) -> Result<u32, End> {
        let places = self.part(self.layout.places)?;
        let end = self.part(self.layout.places_end)?;
        let count = end.checked_sub(places).ok_or(End::Inconsistent)? / PLACE;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            // The first one has a distance below 0, the last one that of no code.
            let at = self.half(places.wrapping_add(PLACE * middle))? as i32;
            if at < offset as i32 { low = middle + 1 } else { high = middle }
        }
        if low + 1 < count { self.half(places.wrapping_add(PLACE * low + 4)) } else { Ok(0) }
    }

    /// The bytecodes of the methods that are described there. Of 0 only the outermost one is known.
    fn running(&mut self, mut description: u32) -> Result<Vec<Option<u32>>, End> {
        let (mut bytecodes, mut method) = (vec![], 0);
        while description != 0 {
            let [outer, number, bytecode] = self.described(description)?;
            method = self.numbered(number)?;
            self.keep(method)?;
            // 0 is the entry, before the first one.
            bytecodes.push(bytecode.checked_sub(1));
            if bytecodes.len() > MAX_INLINED || outer >= description {
                return Err(End::Inconsistent);
            }
            description = outer;
        }
        match method {
            0 => {
                self.keep(self.method)?;
                bytecodes.push(None);
            }
            outermost if outermost != self.method => return Err(End::Inconsistent),
            _ => {}
        }
        Ok(bytecodes)
    }

    /// The place of the description of the method around it, 0 for none; the number of the method;
    /// that of the bytecode plus 1.
    fn described(&mut self, description: u32) -> Result<[u32; 3], End> {
        let all = self.part(self.layout.descriptions)?;
        let mut bytes = [0; DESCRIPTION];
        let read = self.walk.memory.copy(all.wrapping_add(description.into()), &mut bytes);
        read.ok_or(End::Unreadable)?;
        let mut rest = bytes.iter();
        let mut number = || match self.walk.layout.is_without_zero {
            true => shared_bytes::<1>(&mut rest),
            false => shared_bytes::<0>(&mut rest),
        };
        let numbers = (|| Some([number()?, number()?, number()?]))();
        numbers.ok_or(End::Inconsistent)
    }

    fn numbered(&mut self, number: u32) -> Result<u64, End> {
        let methods = self.part(self.layout.methods)?;
        let before = number.checked_sub(1).ok_or(End::Inconsistent)?;
        self.walk.word(methods.wrapping_add(8 * u64::from(before)))
    }

    fn keep(&mut self, method: u64) -> Result<(), End> {
        let frame = self.walk.method(method)?.ok_or(End::Inconsistent)?;
        if self.walk.chain.push(frame) { Ok(()) } else { Err(End::Full) }
    }
}
