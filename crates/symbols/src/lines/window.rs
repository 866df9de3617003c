//! The bytes of a part of a section, some at a time, for what is looked through once from its begin
//! to its end: however large it is, it takes no more memory than a window.

use crate::pages::PagedReader;
use gimli::Reader;

/// Bytes in memory at a time.
const WINDOW_BYTES: usize = 256 << 10;
/// Bytes that are there behind a place, unless the part ends: enough for most of what lies at one.
const LEAST_BYTES: usize = 64;

/// See the module's text.
pub(super) struct Window {
    part: PagedReader,
    begin: usize,
    bytes: Vec<u8>,
}

impl Window {
    /// Over all of a part of a section.
    pub(super) fn new(part: PagedReader) -> Window {
        Window { part, begin: 0, bytes: Vec::new() }
    }

    /// The bytes from a place on, as many as there happen to be; none behind the end.
    pub(super) fn from(&mut self, at: usize) -> gimli::Result<&[u8]> {
        let end = self.begin + self.bytes.len();
        let is_here = self.begin <= at && (at + LEAST_BYTES <= end || at <= end && end == self.part.len());
        if !is_here {
            self.move_to(at)?;
        }
        Ok(self.bytes.get(at - self.begin..).unwrap_or_default())
    }

    /// As many bytes from a place on as there can be; whether that is more than there were.
    pub(super) fn more(&mut self, at: usize) -> bool {
        let is_more = self.begin < at && self.begin + self.bytes.len() < self.part.len();
        is_more && self.move_to(at).is_ok()
    }

    fn move_to(&mut self, at: usize) -> gimli::Result<()> {
        self.begin = at;
        self.part.copy(at, WINDOW_BYTES, &mut self.bytes)
    }
}
