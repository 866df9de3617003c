//! How a walk leaves what a function is called: a head of eight numbers, the name, the file, the
//! line table.

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
}

impl LineTable {
    /// All of them.
    pub(crate) const ALL: [LineTable; 4] =
        [LineTable::InFrame, LineTable::Differences, LineTable::Ranges, LineTable::Locations];
}

/// Writes the head.
pub(crate) fn put_head(into: &mut [u8], numbers: [u32; HEAD / 4]) {
    for (four, number) in into.chunks_exact_mut(4).zip(numbers) {
        four.copy_from_slice(&number.to_ne_bytes());
    }
}
