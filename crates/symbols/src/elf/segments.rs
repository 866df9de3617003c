//! The sections of a file without section headers: what the loader and the unwinder find by the
//! program headers (gABI, "Dynamic Section"; LSB, "Exception Frames").

use super::image::Image;
use super::section::Section;
use object::LittleEndian as LE;
use object::elf::{self, Dyn64, ProgramHeader64};
use object::pod;
use std::ops::Range;

const MAX_DYNAMIC_BYTES: u64 = 1 << 16;
/// Linkers make one or two segments of code.
const MAX_CODE: usize = 8;

type Segments<'s> = &'s [ProgramHeader64<LE>];

/// `.dynstr`, which is the first, `.dynsym`, `.eh_frame`, and each segment of code.
pub(super) fn sections(image: &Image, segments: Segments) -> Vec<Section> {
    let mut found = SegmentSections { image, segments, sections: Vec::new() };
    found.add_symbols();
    found.add_eh_frame();
    let is_code =
        |it: &&ProgramHeader64<LE>| it.p_type.get(LE) == elf::PT_LOAD && it.p_flags.get(LE) & elf::PF_X != 0;
    for code in segments.iter().filter(is_code).take(MAX_CODE) {
        found.add("", elf::SHT_PROGBITS, elf::SHF_EXECINSTR, code.p_vaddr.get(LE)..u64::MAX);
    }
    found.sections
}

struct SegmentSections<'s> {
    image: &'s Image,
    segments: Segments<'s>,
    sections: Vec<Section>,
}

impl SegmentSections<'_> {
    fn segment(&self, kind: u32) -> Option<&ProgramHeader64<LE>> {
        self.segments.iter().find(|it| it.p_type.get(LE) == kind)
    }

    fn add_symbols(&mut self) -> Option<()> {
        let dynamic = self.segment(elf::PT_DYNAMIC)?;
        let (image, size) = (self.image, dynamic.p_filesz.get(LE));
        let bytes = image.read(image.offset_of(dynamic), size, MAX_DYNAMIC_BYTES).ok()?;
        let entries = pod::slice_from_all_bytes::<Dyn64<LE>>(&bytes).ok()?;
        let value = |tag| {
            let value = entries.iter().find(|it| it.d_tag.get(LE) == tag)?.d_val.get(LE);
            // glibc's loader writes over the section with the addresses in the process, musl's not.
            Some(value.checked_sub(image.bias()).unwrap_or(value))
        };
        let (strings, symbols) = (value(elf::DT_STRTAB)?, value(elf::DT_SYMTAB)?);
        let strings_end = strings.saturating_add(value(elf::DT_STRSZ)?);
        // Nothing says how many symbols there are. Linkers put one of these tables behind them.
        let next = [elf::DT_STRTAB, elf::DT_HASH, elf::DT_GNU_HASH, elf::DT_VERSYM];
        let end = next.into_iter().filter_map(value).filter(|&it| it > symbols).min()?;
        self.add(".dynstr", elf::SHT_STRTAB, 0, strings..strings_end)?;
        self.add(".dynsym", elf::SHT_DYNSYM, 0, symbols..end)
    }

    /// Up to the end of its segment: a description of length 0 ends it.
    fn add_eh_frame(&mut self) -> Option<()> {
        let header = self.segment(elf::PT_GNU_EH_FRAME)?;
        let mut bytes = [0; 8];
        self.image.read_exact(self.image.offset_of(header), &mut bytes).ok()?;
        // Four bytes that count from themselves, as all linkers write it.
        let [1, 0x1b, _, _, a, b, c, d] = bytes else { return None };
        let start = header.p_vaddr.get(LE).wrapping_add(4);
        let start = start.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into());
        self.add(".eh_frame", elf::SHT_PROGBITS, 0, start..u64::MAX)
    }

    /// Adds what of these addresses is in one segment of the file.
    fn add(&mut self, name: &str, kind: u32, flags: u32, addresses: Range<u64>) -> Option<()> {
        let bytes_before = |it: &ProgramHeader64<LE>| addresses.start.wrapping_sub(it.p_vaddr.get(LE));
        let holds = |it: &&ProgramHeader64<LE>| {
            it.p_type.get(LE) == elf::PT_LOAD && bytes_before(it) < it.p_filesz.get(LE)
        };
        let segment = self.segments.iter().find(holds)?;
        let before = bytes_before(segment);
        self.sections.push(Section {
            name: name.to_owned(),
            kind,
            flags: flags.into(),
            address: addresses.start,
            offset: self.image.offset_of(segment).checked_add(before)?,
            size: (addresses.end - addresses.start).min(segment.p_filesz.get(LE) - before),
            link: 0,
            entry_size: 0,
        });
        Some(())
    }
}
