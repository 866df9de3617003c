//! A section that is compressed by zlib, from its beginning as far as it has been read.

use super::PAGE_BYTES;
use crate::elf::ElfFile;
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush};
use std::sync::{Mutex, OnceLock};

/// Compressed bytes that are read at once.
const INPUT_BYTES: u64 = 1 << 16;
/// zlib makes at most so many bytes of one.
const MAX_FACTOR: u64 = 1032;

pub(super) struct Inflated {
    size: usize,
    pages: Box<[OnceLock<Box<[u8]>>]>,
    progress: Mutex<Progress>,
}

/// How far the section has been decompressed.
struct Progress {
    file: ElfFile,
    /// The compressed bytes that were not read yet.
    next: u64,
    left: u64,
    /// Those that were read, and how many of them are used up.
    input: Vec<u8>,
    used: usize,
    state: Box<InflateState>,
    pages: usize,
}

impl Inflated {
    /// A section of `size` bytes, of `bytes` compressed ones in a file from `offset` on. `None`: it
    /// cannot be so large.
    pub(super) fn new(file: &ElfFile, offset: u64, bytes: u64, size: u64) -> Option<Inflated> {
        let size = usize::try_from(size).ok().filter(|_| size / MAX_FACTOR <= bytes)?;
        let pages = std::iter::repeat_with(OnceLock::new).take(size.div_ceil(PAGE_BYTES)).collect();
        let state = InflateState::new_boxed(DataFormat::Zlib);
        let (file, input) = (file.clone(), Vec::new());
        let progress = Progress { file, next: offset, left: bytes, input, used: 0, state, pages: 0 };
        Some(Inflated { size, pages, progress: Mutex::new(progress) })
    }

    /// Heap bytes of the decompressed pages.
    pub(super) fn bytes(&self) -> usize {
        self.pages.iter().filter_map(OnceLock::get).map(|page| page.len()).sum()
    }

    /// A page, and how many bytes were decompressed for it. `None`: the section ends before it, or
    /// is malformed.
    pub(super) fn page(&self, number: usize) -> Option<(&[u8], usize)> {
        let mut made = 0;
        let slot = self.pages.get(number)?;
        if slot.get().is_none() {
            let mut progress = self.progress.lock().ok()?;
            while progress.pages <= number {
                let begin = progress.pages * PAGE_BYTES;
                let mut page = vec![0; PAGE_BYTES.min(self.size - begin)].into_boxed_slice();
                progress.fill(&mut page)?;
                made += page.len();
                self.pages.get(progress.pages)?.set(page).ok()?;
                progress.pages += 1;
            }
        }
        Some((slot.get()?, made))
    }
}

impl Progress {
    fn fill(&mut self, mut out: &mut [u8]) -> Option<()> {
        while !out.is_empty() {
            if self.used == self.input.len() {
                self.input.resize(self.left.min(INPUT_BYTES) as usize, 0);
                self.file.read_exact(self.next, &mut self.input).ok()?;
                self.next += self.input.len() as u64;
                self.left -= self.input.len() as u64;
                self.used = 0;
            }
            let result = inflate(&mut self.state, self.input.get(self.used..)?, out, MZFlush::None);
            self.used += result.bytes_consumed;
            out = out.get_mut(result.bytes_written..)?;
            if result.status.is_err() || result.bytes_written == 0 && result.bytes_consumed == 0 {
                return None;
            }
        }
        Some(())
    }
}

impl std::fmt::Debug for Inflated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inflated").field("size", &self.size).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use miniz_oxide::deflate::compress_to_vec_zlib;

    const SIZE: usize = 100 * PAGE_BYTES + 100;

    fn content() -> Vec<u8> {
        (0..SIZE as u32).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect()
    }

    /// A section of so many bytes, as its header says.
    fn inflated(compressed: &[u8], size: u64) -> Option<Inflated> {
        let mut image = b"\x7fELF\x02\x01\x01".to_vec();
        image.resize(64, 0);
        image.extend_from_slice(compressed);
        let file = ElfFile::from_memory(image.into()).unwrap();
        Inflated::new(&file, 64, compressed.len() as u64, size)
    }

    #[test]
    fn only_what_is_before_a_page_is_decompressed_with_it() {
        let (content, last) = (content(), SIZE / PAGE_BYTES);
        let section = inflated(&compress_to_vec_zlib(&content, 6), SIZE as u64).unwrap();
        assert_eq!(section.page(3), Some((&content[3 * PAGE_BYTES..4 * PAGE_BYTES], 4 * PAGE_BYTES)));
        assert_eq!(section.page(1), Some((&content[PAGE_BYTES..2 * PAGE_BYTES], 0)));
        assert_eq!(section.bytes(), 4 * PAGE_BYTES);
        assert_eq!(section.page(last), Some((&content[last * PAGE_BYTES..], SIZE - 4 * PAGE_BYTES)));
        assert_eq!((section.page(last + 1), section.bytes()), (None, SIZE));
    }

    #[test]
    fn a_malformed_section_ends_where_it_is_malformed() {
        let content = content();
        let mut compressed = compress_to_vec_zlib(&content, 6);
        compressed.truncate(compressed.len() / 2);
        let section = inflated(&compressed, SIZE as u64).unwrap();
        assert!(section.page(0).is_some());
        assert_eq!((section.page(90), section.page(90)), (None, None));
        let shorter = inflated(&compress_to_vec_zlib(&content[..PAGE_BYTES], 6), SIZE as u64).unwrap();
        assert!(shorter.page(0).is_some() && shorter.page(1).is_none());
        let (short, size) = (compress_to_vec_zlib(b"short", 6), 1 << 40);
        assert!(inflated(&short, size).is_none(), "so few bytes do not become so many");
    }
}
