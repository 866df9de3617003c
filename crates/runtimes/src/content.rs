//! How a walk leaves what a function is called: a head of eight numbers, the name, the file, the
//! line table.

use crate::blocks::BlockMemory;
use crate::hash::hash_of;
use crate::known::KnownKeys;
use crate::room::{Chain, End, Frame};

/// Bytes of the head: the first line; of name and file the width of a character and the bytes; of
/// the line table the bytes, how many of them were kept, and its [`LineTable`].
pub(crate) const HEAD: usize = 32;
/// The width of characters in a text that is UTF-8, or else Latin-1.
pub(crate) const TEXT: u32 = 0;
/// How a function's lines are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum LineTable {
    /// There is no table: frames have the line itself.
    InFrame = 0,
    /// CPython's until 3.9: differences of addresses and of lines.
    Differences = 1,
    /// CPython's 3.10: the same for ranges of instructions, some of which have no line (PEP 626).
    Ranges = 2,
    /// CPython's from 3.11 on: lines and columns (PEP 657).
    Locations = 3,
    /// Ruby's: an index of the instructions at which lines begin, and the lines.
    Indexed = 4,
    /// None: the head has where the function's source begins, in UTF-16 units, and how long all of
    /// the source is. What follows is some of it, by which the file is recognised: Latin-1.
    Source = 5,
    /// The same, with two bytes a character.
    WideSource = 6,
    /// Java's: differences of bytecodes and of lines, in numbers without bytes that are 0.
    Bytecodes = 7,
    /// The same, in numbers that may have such bytes: before 20.
    OlderBytecodes = 8,
}

#[cfg(feature = "names")]
impl LineTable {
    /// All of them.
    pub(crate) const ALL: [LineTable; 9] = [
        LineTable::InFrame,
        LineTable::Differences,
        LineTable::Ranges,
        LineTable::Locations,
        LineTable::Indexed,
        LineTable::Source,
        LineTable::WideSource,
        LineTable::Bytecodes,
        LineTable::OlderBytecodes,
    ];
}

/// Characters of the source that are kept, and how many of them are before the function's start.
pub(crate) const EXCERPT: u32 = 32;
pub(crate) const EXCERPT_BEFORE: u32 = 16;

/// A part of a name or of a path.
#[derive(Clone, Copy)]
pub(crate) enum Piece {
    /// This text.
    Text(&'static [u8]),
    /// So many bytes at an address.
    At(u64, usize),
    /// Those at an address before a zero byte, at most so many.
    Terminated(u64, usize),
}

/// Copies a piece to the free part of the arena, from `at` on; returns its length.
pub(crate) fn put(
    chain: &mut Chain,
    memory: &mut BlockMemory<'_>,
    at: usize,
    piece: Piece,
) -> Result<usize, End> {
    let free = chain.free().get_mut(at..).ok_or(End::Full)?;
    let length = match piece {
        Piece::Text(text) => text.len(),
        Piece::At(_, length) => length,
        Piece::Terminated(_, most) => free.len().min(most),
    };
    let into = free.get_mut(..length).ok_or(End::Full)?;
    match piece {
        Piece::Text(text) => into.iter_mut().zip(text).for_each(|(to, from)| *to = *from),
        Piece::At(from, _) => memory.copy(from, into).ok_or(End::Unreadable)?,
        Piece::Terminated(from, _) => return memory.text(from, into).ok_or(End::Unreadable),
    }
    Ok(length)
}

/// Keeps a function whose name and path were put behind the head, and whose frames have the line.
/// It is known by just these.
pub(crate) fn keep_with_line_in_frame(
    chain: &mut Chain,
    known: KnownKeys<'_>,
    name_bytes: usize,
    file_bytes: usize,
) -> Result<Frame, End> {
    let used = HEAD + name_bytes + file_bytes;
    let content = chain.free().get_mut(..used).ok_or(End::Full)?;
    let in_frame = LineTable::InFrame as u32;
    put_head(content, [0, TEXT, name_bytes as u32, TEXT, file_bytes as u32, 0, 0, in_frame]);
    let key = hash_of(content);
    let content = if known.has(key) { 0 } else { chain.keep(used).ok_or(End::Full)? };
    Ok(Frame { key, content, ..Frame::default() })
}

/// Writes the head.
pub(crate) fn put_head(into: &mut [u8], numbers: [u32; HEAD / 4]) {
    for (four, number) in into.chunks_exact_mut(4).zip(numbers) {
        four.copy_from_slice(&number.to_ne_bytes());
    }
}
