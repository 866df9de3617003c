//! A range of a section, as gimli reads it.

use super::PagedReader;
use gimli::{LittleEndian, ReaderOffsetId};
use std::borrow::Cow;

/// No name or path is longer; a section without an end of a string would be read as a whole.
const MAX_STRING_BYTES: usize = 1 << 20;

impl gimli::Reader for PagedReader {
    type Endian = LittleEndian;
    type Offset = usize;

    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    fn len(&self) -> usize {
        self.end - self.start
    }

    fn empty(&mut self) {
        self.start = self.end;
    }

    fn truncate(&mut self, len: usize) -> gimli::Result<()> {
        if len > self.len() {
            return Err(self.eof());
        }
        self.end = self.start + len;
        Ok(())
    }

    fn offset_from(&self, base: &PagedReader) -> usize {
        self.start.saturating_sub(base.start)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId(self.pages.id_base + self.start as u64)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let offset = id.0.checked_sub(self.offset_id().0)?;
        usize::try_from(offset).ok().filter(|&offset| offset <= self.len())
    }

    fn find(&self, byte: u8) -> gimli::Result<usize> {
        let mut at = self.start;
        while at < self.end && at - self.start < MAX_STRING_BYTES {
            let part = self.part(at)?;
            if let Some(found) = part.iter().position(|&candidate| candidate == byte) {
                return Ok(at + found - self.start);
            }
            at += part.len();
        }
        Err(self.eof())
    }

    fn skip(&mut self, len: usize) -> gimli::Result<()> {
        if len > self.len() {
            return Err(self.eof());
        }
        self.start += len;
        Ok(())
    }

    fn split(&mut self, len: usize) -> gimli::Result<PagedReader> {
        let mut first = self.clone();
        first.truncate(len)?;
        self.skip(len)?;
        Ok(first)
    }

    fn to_slice(&self) -> gimli::Result<Cow<'_, [u8]>> {
        if self.start == self.end {
            return Ok(Cow::Borrowed(&[]));
        }
        let part = self.part(self.start)?;
        if part.len() == self.len() {
            return Ok(Cow::Borrowed(part));
        }
        let mut whole = Vec::new();
        let mut at = self.start;
        while at < self.end {
            let part = self.part(at)?;
            whole.extend_from_slice(part);
            at += part.len();
        }
        Ok(Cow::Owned(whole))
    }

    fn to_string(&self) -> gimli::Result<Cow<'_, str>> {
        match self.to_slice()? {
            Cow::Borrowed(bytes) => {
                std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| gimli::Error::BadUtf8)
            }
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|_| gimli::Error::BadUtf8),
        }
    }

    fn to_string_lossy(&self) -> gimli::Result<Cow<'_, str>> {
        Ok(match self.to_slice()? {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        })
    }

    fn read_slice(&mut self, mut buffer: &mut [u8]) -> gimli::Result<()> {
        if buffer.len() > self.len() {
            return Err(self.eof());
        }
        while !buffer.is_empty() {
            let part = self.part(self.start)?;
            let count = part.len().min(buffer.len());
            let (now, later) = buffer.split_at_mut(count);
            now.copy_from_slice(part.get(..count).unwrap_or_default());
            self.start += count;
            buffer = later;
        }
        Ok(())
    }
}
