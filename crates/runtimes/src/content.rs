//! How a walk leaves what a function is called: a head of seven numbers, the name, the file, the
//! line table.

/// Bytes of the head: the first line; of name and file the width of a character and the bytes; of
/// the line table the bytes, and how many of them were kept.
pub(crate) const HEAD: usize = 28;
/// The width of characters in a text that is UTF-8, or else Latin-1.
pub(crate) const TEXT: u32 = 0;
/// Instead of a line table's length: frames have the line itself.
pub(crate) const LINE_IN_FRAME: u32 = u32::MAX;

/// Writes the head.
pub(crate) fn put_head(into: &mut [u8], numbers: [u32; HEAD / 4]) {
    for (four, number) in into.chunks_exact_mut(4).zip(numbers) {
        four.copy_from_slice(&number.to_ne_bytes());
    }
}
