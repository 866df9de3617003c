//! Reads call frame information in place, through a small window that guarded reads fill. The
//! object may be unloaded meanwhile, and its bytes are not trusted.

use crate::dwarf::*;
use crate::memory::Memory;

/// Bytes that are read at once: most descriptions whole, and the last steps of a search. A read
/// costs the call, not the bytes.
const WINDOW: usize = 256;
/// No instruction or header field is longer, except expressions, which are skipped.
const MAX_ITEM_BYTES: usize = 24;
/// A failed read may have reached beyond a mapping. Mappings end with a page.
const PAGE: u64 = 4096;

/// A copy of some memory, and how far it was read.
#[derive(Debug)]
pub(crate) struct CfiBytes {
    /// The next byte's address.
    at: u64,
    /// The address behind the last byte that may be read.
    end: u64,
    start: u64,
    length: usize,
    bytes: [u8; WINDOW],
}

impl CfiBytes {
    pub(crate) const fn new() -> CfiBytes {
        CfiBytes { at: 0, end: 0, start: 0, length: 0, bytes: [0; WINDOW] }
    }

    /// The bytes from `address` on.
    #[inline]
    fn from(&self, address: u64) -> &[u8] {
        let at = usize::try_from(address.wrapping_sub(self.start)).unwrap_or(usize::MAX);
        self.bytes.get(..self.length).and_then(|held| held.get(at..)).unwrap_or(&[])
    }
}

/// A position in memory and the end of what may be read. Only [`Reader::prepare`] reads memory;
/// bytes beyond what it read give `None`.
pub(crate) struct Reader<'m, M: ?Sized> {
    pub(crate) memory: &'m mut M,
    window: &'m mut CfiBytes,
}

impl<'m, M: Memory + ?Sized> Reader<'m, M> {
    /// At no place yet.
    pub(crate) fn new(memory: &'m mut M, window: &'m mut CfiBytes) -> Reader<'m, M> {
        Reader { memory, window }
    }

    /// Continues at `at`, up to `end`.
    #[inline]
    pub(crate) fn seek(&mut self, at: u64, end: u64) -> Option<()> {
        (self.window.at, self.window.end) = (at, end);
        self.prepare()
    }

    /// The next byte's address.
    pub(crate) fn at(&self) -> u64 {
        self.window.at
    }

    /// The address behind the last byte that may be read.
    pub(crate) fn end(&self) -> u64 {
        self.window.end
    }

    /// Nothing beyond `end` is read.
    pub(crate) fn limit(&mut self, end: u64) {
        self.window.end = end;
    }

    /// Whether all was read.
    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        self.window.at >= self.window.end
    }

    pub(crate) fn skip(&mut self, bytes: u64) -> Option<()> {
        self.window.at = self.window.at.checked_add(bytes).filter(|&at| at <= self.window.end)?;
        Some(())
    }

    /// Makes sure that what comes next can be read.
    #[inline]
    pub(crate) fn prepare(&mut self) -> Option<()> {
        let held = self.window.from(self.window.at).len();
        if held >= MAX_ITEM_BYTES || self.window.end.saturating_sub(self.window.at) <= held as u64 {
            Some(())
        } else {
            self.fill()
        }
    }

    #[inline(never)]
    fn fill(&mut self) -> Option<()> {
        let to_page_end = (PAGE - self.window.at % PAGE).min(WINDOW as u64);
        self.window.length = 0;
        for length in [WINDOW, to_page_end as usize] {
            if self.memory.code(self.window.at, self.window.bytes.get_mut(..length)?) {
                (self.window.start, self.window.length) = (self.window.at, length);
                return Some(());
            }
        }
        None
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = *self.window.from(self.window.at).first().filter(|_| self.window.at < self.window.end)?;
        self.window.at = self.window.at.checked_add(1)?;
        Some(byte)
    }

    pub(crate) fn four_bytes(&mut self) -> Option<[u8; 4]> {
        let bytes =
            *self.window.from(self.window.at).first_chunk().filter(|_| self.window.at < self.window.end)?;
        self.window.at = self.window.at.checked_add(4)?;
        Some(bytes)
    }

    pub(crate) fn unsigned(&mut self, size: u32) -> Option<u64> {
        let mut value = 0;
        for n in 0..size.min(8) {
            value |= u64::from(self.byte()?) << (8 * n);
        }
        Some(value)
    }

    fn signed(&mut self, size: u32) -> Option<u64> {
        let unused = 64 - 8 * size.clamp(1, 8);
        Some(((self.unsigned(size)? << unused) as i64 >> unused) as u64)
    }

    /// The value of a LEB128 number, its bits, and its last byte.
    #[inline(never)]
    fn leb(&mut self) -> Option<(u64, u32, u8)> {
        let (mut value, mut shift) = (0u64, 0u32);
        // Longer numbers are padded, and no compiler writes them.
        for _ in 0..16 {
            let byte = self.byte()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                return Some((value, shift, byte));
            }
        }
        None
    }

    pub(crate) fn uleb(&mut self) -> Option<u64> {
        Some(self.leb()?.0)
    }

    pub(crate) fn sleb(&mut self) -> Option<i64> {
        let (value, bits, last) = self.leb()?;
        let negative = last & 0x40 != 0 && bits < 64;
        Some((if negative { value | u64::MAX << bits } else { value }) as i64)
    }

    /// A number in the format of an encoded pointer, without what it is relative to.
    pub(crate) fn number(&mut self, encoding: u8) -> Option<u64> {
        match encoding & 0x0f {
            DW_EH_PE_ABSPTR | DW_EH_PE_UDATA8 | DW_EH_PE_SDATA8 => self.unsigned(8),
            DW_EH_PE_UDATA2 => self.unsigned(2),
            DW_EH_PE_UDATA4 => self.unsigned(4),
            DW_EH_PE_SDATA2 => self.signed(2),
            DW_EH_PE_SDATA4 => self.signed(4),
            DW_EH_PE_ULEB128 => self.uleb(),
            DW_EH_PE_SLEB128 => self.sleb().map(|value| value as u64),
            _ => None,
        }
    }

    /// An encoded pointer: absolute, or relative to its own place.
    pub(crate) fn pointer(&mut self, encoding: u8) -> Option<u64> {
        let place = self.window.at;
        let value = self.number(encoding)?;
        match encoding & 0xf0 {
            DW_EH_PE_ABSPTR => Some(value),
            DW_EH_PE_PCREL => Some(value.wrapping_add(place)),
            _ => None,
        }
    }
}
