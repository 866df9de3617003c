//! DWARF sections of which only the touched pages are in memory, as a reader for gimli. A program
//! with a gigabyte of debug information costs what its samples need. Pages stay until the owner
//! starts over with none. They are counted, so that it can decide when. Nothing is parsed here.

mod inflated;
mod reader;

use crate::elf::{ElfFile, Section};
use crate::error::Error;
use gimli::ReaderOffsetId;
use inflated::Inflated;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

const PAGE_BYTES: usize = 4096;
/// Sections are this far apart in the numbering of gimli's offset ids.
const SECTION_STRIDE: u64 = 1 << 40;

/// How much of a section is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Residence {
    /// What is read through [`PagedReader::untouched`], and nothing by the reader itself; of a
    /// compressed section also what is before it. The file stays open.
    Touched,
    /// All of it.
    Whole,
}

/// Bytes held by all sections of one object.
pub(crate) type Counter = Arc<AtomicUsize>;

/// One section.
#[derive(Debug)]
struct Pages {
    id_base: u64,
    size: usize,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Read when touched.
    File { file: ElfFile, offset: u64, pages: Box<[OnceLock<Box<[u8]>>]>, held: Counter },
    /// Decompressed as far as it was touched.
    Inflated { inflated: Inflated, held: Counter },
    /// Here already, as those of files that do not stay open must be.
    Memory { bytes: Vec<u8>, held: Counter },
}

impl Drop for Pages {
    fn drop(&mut self) {
        let (bytes, held) = match &self.content {
            Content::File { pages, held, .. } => {
                let read = pages.iter().filter_map(OnceLock::get).map(|page| page.len());
                (read.sum::<usize>() + size_of_val(&**pages), held)
            }
            Content::Inflated { inflated, held } => (inflated.bytes(), held),
            Content::Memory { bytes, held } => (bytes.len(), held),
        };
        // Relaxed: a sum that only this object's owner reads, on this thread.
        held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Pages {
    fn of_file(
        id_base: u64,
        size: usize,
        file: &ElfFile,
        offset: u64,
        held: &Counter,
        slots: usize,
    ) -> Pages {
        let pages = std::iter::repeat_with(OnceLock::new).take(slots).collect::<Box<[_]>>();
        held.fetch_add(size_of_val(&*pages), Ordering::Relaxed);
        Pages {
            id_base,
            size,
            content: Content::File { file: file.clone(), offset, pages, held: held.clone() },
        }
    }

    /// Fills the buffer from `offset` on; no page of it stays in memory.
    fn copy(&self, offset: usize, buffer: &mut [u8]) -> gimli::Result<()> {
        match &self.content {
            Content::Memory { bytes, .. } => {
                let part = bytes.get(offset..).and_then(|rest| rest.get(..buffer.len())).ok_or_else(end)?;
                buffer.copy_from_slice(part);
            }
            Content::File { file, offset: base, .. } => {
                let at = base.checked_add(offset as u64).ok_or_else(end)?;
                file.read_exact(at, buffer).map_err(|_| end())?;
            }
            Content::Inflated { .. } => {
                let mut done = 0;
                while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
                    let part = self.from(offset + done)?;
                    let count = part.len().min(rest.len());
                    rest.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
                    done += count;
                }
            }
        }
        Ok(())
    }

    /// The bytes from `offset` to the end of their page, at least one.
    fn from(&self, offset: usize) -> gimli::Result<&[u8]> {
        let part = match &self.content {
            Content::Memory { bytes, .. } => bytes.get(offset..),
            Content::File { file, offset: base, pages, held } => {
                let slot = pages.get(offset / PAGE_BYTES).ok_or_else(end)?;
                let page = match slot.get() {
                    Some(page) => page,
                    None => {
                        let start = offset - offset % PAGE_BYTES;
                        let mut page = vec![0; PAGE_BYTES.min(self.size - start)].into_boxed_slice();
                        let at = base.checked_add(start as u64).ok_or_else(end)?;
                        file.read_exact(at, &mut page).map_err(|_| end())?;
                        // Relaxed: a sum that only this object's owner reads, on this thread.
                        held.fetch_add(page.len(), Ordering::Relaxed);
                        slot.get_or_init(|| page)
                    }
                };
                page.get(offset % PAGE_BYTES..)
            }
            Content::Inflated { inflated, held } => {
                let (page, made) = inflated.page(offset / PAGE_BYTES).ok_or_else(end)?;
                // Relaxed: a sum that only this object's owner reads, on this thread.
                held.fetch_add(made, Ordering::Relaxed);
                page.get(offset % PAGE_BYTES..)
            }
        };
        part.filter(|part| !part.is_empty()).ok_or_else(end)
    }
}

fn end() -> gimli::Error {
    gimli::Error::UnexpectedEof(ReaderOffsetId(0))
}

/// A range of one section, as gimli reads it.
#[derive(Clone, Debug)]
pub(crate) struct PagedReader {
    pages: Arc<Pages>,
    start: usize,
    end: usize,
}

impl PagedReader {
    /// A section that does not exist.
    pub(crate) fn empty() -> PagedReader {
        let content = Content::Memory { bytes: Vec::new(), held: Counter::default() };
        PagedReader::over(Pages { id_base: 0, size: 0, content })
    }

    /// The `number`-th section of an object, of at most `limit` bytes once decompressed.
    pub(crate) fn new(
        file: &ElfFile,
        section: &Section,
        number: u64,
        limit: u64,
        residence: Residence,
        held: &Counter,
    ) -> Result<PagedReader, Error> {
        let id_base = number * SECTION_STRIDE;
        let too_large = |bytes| Error::TooLarge { what: "debug section", bytes };
        if residence == Residence::Touched
            && let Some((size, header)) = file.zlib(section)
        {
            let (offset, bytes) = (section.offset + header, section.size - header);
            let inflated = Some(size).filter(|&size| size <= limit);
            let inflated = inflated.and_then(|size| Inflated::new(file, offset, bytes, size));
            let inflated = inflated.ok_or_else(|| too_large(size))?;
            let (size, held) = (size as usize, held.clone());
            return Ok(PagedReader::over(Pages {
                id_base,
                size,
                content: Content::Inflated { inflated, held },
            }));
        }
        if section.is_compressed() || residence == Residence::Whole {
            let bytes = file.bytes(section, limit)?;
            held.fetch_add(bytes.len(), Ordering::Relaxed);
            let (size, held) = (bytes.len(), held.clone());
            return Ok(PagedReader::over(Pages { id_base, size, content: Content::Memory { bytes, held } }));
        }
        let Some(size) = usize::try_from(section.size).ok().filter(|_| section.size <= limit) else {
            return Err(too_large(section.size));
        };
        Ok(PagedReader::over(Pages::of_file(id_base, size, file, section.offset, held, 0)))
    }

    /// A reader of the whole section with no page in memory; what is in memory anyhow stays.
    pub(crate) fn untouched(&self) -> PagedReader {
        match &self.pages.content {
            // A file that ends earlier gives failed reads.
            Content::File { file, offset, held, .. } => {
                let Pages { id_base, size, .. } = *self.pages;
                let slots = size.div_ceil(PAGE_BYTES);
                PagedReader::over(Pages::of_file(id_base, size, file, *offset, held, slots))
            }
            Content::Inflated { .. } | Content::Memory { .. } => {
                PagedReader { start: 0, end: self.pages.size, pages: self.pages.clone() }
            }
        }
    }

    /// At most `most` bytes from `at` on; no page of them stays in memory. For what is looked
    /// through once.
    pub(crate) fn copy(&self, at: usize, most: usize, into: &mut Vec<u8>) -> gimli::Result<()> {
        into.clear();
        into.resize(gimli::Reader::len(self).saturating_sub(at).min(most), 0);
        self.pages.copy(self.start + at, into)
    }

    fn over(pages: Pages) -> PagedReader {
        PagedReader { start: 0, end: pages.size, pages: Arc::new(pages) }
    }

    fn eof(&self) -> gimli::Error {
        gimli::Error::UnexpectedEof(gimli::Reader::offset_id(self))
    }

    /// The bytes from `at` on that lie on one page.
    fn part(&self, at: usize) -> gimli::Result<&[u8]> {
        let part = self.pages.from(at)?;
        Ok(part.get(..part.len().min(self.end.saturating_sub(at))).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::Reader;
    use object::elf;

    #[test]
    fn a_section_that_lies_at_the_end_of_all_offsets_cannot_be_read() {
        let mut image = b"\x7fELF\x02\x01\x01".to_vec();
        image.resize(64, 0);
        let file = ElfFile::from_memory(image.into()).unwrap();
        let section = Section {
            name: ".debug_info".to_owned(),
            kind: elf::SHT_PROGBITS,
            flags: 0,
            address: 0,
            offset: u64::MAX - 10,
            size: 2 * PAGE_BYTES as u64,
            link: 0,
            entry_size: 0,
        };
        let held = Counter::default();
        let reader = PagedReader::new(&file, &section, 1, u64::MAX, Residence::Touched, &held).unwrap();
        let mut reader = reader.untouched();
        reader.skip(PAGE_BYTES).unwrap();
        assert!(reader.read_u8().is_err());
    }
}
