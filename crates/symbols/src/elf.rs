//! An ELF file, read in parts: headers when it is opened, sections when they are
//! asked for, always into owned memory and within a limit. 64-bit little-endian
//! only, as are both architectures. What the sections say is not known here.

mod compression;
mod image;
mod notes;
mod section;
mod segments;
mod xz;

pub use notes::build_id_of_notes;
pub use section::Section;

use crate::error::Error;
use crate::identity::FileIdentity;
use crc::{CRC_32_ISO_HDLC, Crc, Table};
use image::Image;
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::pod;
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// With the smallest table.
const CRC: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISO_HDLC);
/// Headers a file may have: far more than any linker writes.
const MAX_HEADERS: u64 = 1 << 16;
/// Bytes of notes and of section names that are looked at.
const MAX_SMALL_BYTES: u64 = 1 << 20;
/// Bytes of a section's name; of longer ones none is kept.
const MAX_NAME_BYTES: usize = 128;

/// An opened ELF file or image.
#[derive(Clone, Debug)]
pub struct ElfFile {
    image: Arc<Image>,
    machine: u16,
    sections: Arc<[Section]>,
    has_section_headers: bool,
    build_id: Option<Vec<u8>>,
}

impl ElfFile {
    /// Opens a regular file of at most `max_bytes` and reads its headers.
    pub fn open(path: &Path, max_bytes: u64) -> Result<ElfFile, Error> {
        ElfFile::parse(Image::open(path, max_bytes)?)
    }

    /// An ELF image in memory, for objects without a file such as the vdso.
    pub fn from_memory(bytes: Arc<[u8]>) -> Result<ElfFile, Error> {
        ElfFile::parse(Image::Memory(bytes))
    }

    /// What the loader has mapped of a file in this process, by what it has added to the addresses
    /// in the file: no symbols of local functions, no debug information.
    pub fn from_loaded(bias: u64) -> Result<ElfFile, Error> {
        ElfFile::parse(Image::Loaded(bias))
    }

    fn parse(image: Image) -> Result<ElfFile, Error> {
        let bytes = image.read(0, size_of::<FileHeader64<LE>>() as u64, MAX_SMALL_BYTES)?;
        let (header, _) =
            pod::from_bytes::<FileHeader64<LE>>(&bytes).map_err(|()| Error::Malformed("ELF header"))?;
        let ident = &header.e_ident;
        let known =
            ident.magic == elf::ELFMAG && ident.class == elf::ELFCLASS64 && ident.data == elf::ELFDATA2LSB;
        if !known {
            return Err(Error::Malformed("ELF header (64-bit, little-endian)"));
        }
        let mut file = ElfFile {
            machine: header.e_machine.get(LE),
            sections: Arc::default(),
            has_section_headers: true,
            build_id: None,
            image: Arc::new(image),
        };
        let mut sections = file.read_sections(header).unwrap_or_default();
        if sections.is_empty() {
            file.has_section_headers = false;
            sections = segments::sections(&file.image, &file.segments(header).unwrap_or_default());
        }
        file.sections = sections.into();
        file.build_id = file.find_build_id(header);
        Ok(file)
    }

    fn read_sections(&self, header: &FileHeader64<LE>) -> Result<Vec<Section>, Error> {
        let start = header.e_shoff.get(LE);
        let size = size_of::<SectionHeader64<LE>>() as u64;
        if start == 0 || self.image.bias() != 0 || u64::from(header.e_shentsize.get(LE)) != size {
            return Ok(Vec::new());
        }
        let malformed = |()| Error::Malformed("section headers");
        let first = self.image.read(start, size, size)?;
        let (first, _) = pod::from_bytes::<SectionHeader64<LE>>(&first).map_err(malformed)?;
        // Numbers that do not fit the file header are in the first section header.
        let count = match header.e_shnum.get(LE) {
            0 => first.sh_size.get(LE),
            count => u64::from(count),
        };
        let names = match header.e_shstrndx.get(LE) {
            elf::SHN_XINDEX => first.sh_link.get(LE),
            index => u32::from(index),
        };
        if count > MAX_HEADERS {
            return Err(Error::TooLarge { what: "section headers", bytes: count.saturating_mul(size) });
        }
        let bytes = self.image.read(start, count * size, MAX_HEADERS * size)?;
        let headers = pod::slice_from_all_bytes::<SectionHeader64<LE>>(&bytes).map_err(malformed)?;
        let names = headers.get(names as usize).and_then(|names| {
            self.image.read(names.sh_offset.get(LE), names.sh_size.get(LE), MAX_SMALL_BYTES).ok()
        });
        let names = names.unwrap_or_default();
        // All sections may have the same long name. None that is looked for has.
        let name = |header: &SectionHeader64<LE>| {
            let start = header.sh_name.get(LE) as usize;
            let rest = names.get(start..)?;
            string_at(rest.get(..=MAX_NAME_BYTES).unwrap_or(rest), 0)
        };
        let section = |header: &SectionHeader64<LE>| Section {
            name: name(header).unwrap_or_default().into_owned(),
            kind: header.sh_type.get(LE),
            flags: header.sh_flags.get(LE),
            address: header.sh_addr.get(LE),
            offset: header.sh_offset.get(LE),
            size: header.sh_size.get(LE),
            link: header.sh_link.get(LE),
            entry_size: header.sh_entsize.get(LE),
        };
        Ok(headers.iter().map(section).collect())
    }

    fn find_build_id(&self, header: &FileHeader64<LE>) -> Option<Vec<u8>> {
        let notes = self.sections.iter().filter(|section| section.kind == elf::SHT_NOTE);
        let by_section = notes.filter_map(|section| {
            build_id_of_notes(&self.image.read(section.offset, section.size, MAX_SMALL_BYTES).ok()?)
        });
        by_section.into_iter().next().or_else(|| self.build_id_of_segments(header))
    }

    fn segments(&self, header: &FileHeader64<LE>) -> Option<Vec<ProgramHeader64<LE>>> {
        let size = size_of::<ProgramHeader64<LE>>() as u64;
        if u64::from(header.e_phentsize.get(LE)) != size {
            return None;
        }
        let bytes = u64::from(header.e_phnum.get(LE)) * size;
        let bytes = self.image.read(header.e_phoff.get(LE), bytes, MAX_HEADERS * size).ok()?;
        pod::slice_from_all_bytes::<ProgramHeader64<LE>>(&bytes).ok().map(<[_]>::to_vec)
    }

    /// What address the first byte of a part of the file has in the object's own numbering, if
    /// there is code in that part.
    pub fn code_address(&self, part: Range<u64>) -> Option<u64> {
        let bytes = self.image.read(0, size_of::<FileHeader64<LE>>() as u64, MAX_SMALL_BYTES).ok()?;
        let (header, _) = pod::from_bytes::<FileHeader64<LE>>(&bytes).ok()?;
        let segments = self.segments(header)?;
        let code = segments.iter().find(|segment| {
            let start = segment.p_offset.get(LE);
            let is_code = segment.p_type.get(LE) == elf::PT_LOAD && segment.p_flags.get(LE) & elf::PF_X != 0;
            is_code && start < part.end && part.start < start.saturating_add(segment.p_filesz.get(LE))
        })?;
        Some(part.start.wrapping_sub(code.p_offset.get(LE)).wrapping_add(code.p_vaddr.get(LE)))
    }

    /// The address of the first code in the object's own numbering. A separate debug file has that
    /// address, but not where in the object's file the code is.
    pub fn first_code_address(&self) -> Option<u64> {
        self.first_segment(|flags| flags & elf::PF_X != 0)
    }

    /// The address of the first segment that is loaded, in the object's own numbering.
    pub fn first_address(&self) -> Option<u64> {
        self.first_segment(|_| true)
    }

    fn first_segment(&self, is_it: impl Fn(u32) -> bool) -> Option<u64> {
        let bytes = self.image.read(0, size_of::<FileHeader64<LE>>() as u64, MAX_SMALL_BYTES).ok()?;
        let (header, _) = pod::from_bytes::<FileHeader64<LE>>(&bytes).ok()?;
        let segments = self.segments(header)?;
        let mut loaded = segments.iter().filter(|segment| segment.p_type.get(LE) == elf::PT_LOAD);
        loaded.find(|segment| is_it(segment.p_flags.get(LE))).map(|segment| segment.p_vaddr.get(LE))
    }

    fn build_id_of_segments(&self, header: &FileHeader64<LE>) -> Option<Vec<u8>> {
        let segments = self.segments(header)?;
        segments.iter().filter(|segment| segment.p_type.get(LE) == elf::PT_NOTE).find_map(|segment| {
            let size = segment.p_filesz.get(LE);
            build_id_of_notes(&self.image.read(self.image.offset_of(segment), size, MAX_SMALL_BYTES).ok()?)
        })
    }

    /// The build id, where the file has one.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// Whether this was read from that file, which has not changed since.
    pub fn is_of(&self, identity: &FileIdentity) -> bool {
        matches!(&*self.image, Image::File { file, .. } if identity.is(file))
    }

    /// Where it was opened; `None` for memory.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &*self.image {
            Image::File { path, .. } => Some(path),
            Image::Memory(_) | Image::Loaded(_) => None,
        }
    }

    /// Whether the code is x86-64.
    pub fn is_x86_64(&self) -> bool {
        self.machine == elf::EM_X86_64
    }

    /// Whether the code is aarch64.
    pub fn is_aarch64(&self) -> bool {
        self.machine == elf::EM_AARCH64
    }

    /// All sections, in the file's order.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The first section of a name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The code at an address, of a symbol that names its section by that number.
    #[inline(never)]
    pub(crate) fn code_of_symbol(&self, section: u16, address: u64) -> Option<&Section> {
        let number = usize::from(section);
        let all = if self.has_section_headers { number..number + 1 } else { 0..self.sections.len() };
        let sections = self.sections.get(all).filter(|_| section != 0)?;
        sections.iter().find(|it| it.is_executable() && it.contains(address))
    }

    /// The bytes of a section, decompressed (zlib), if they are at most `limit`.
    pub fn bytes(&self, section: &Section, limit: u64) -> Result<Vec<u8>, Error> {
        if section.kind == elf::SHT_NOBITS {
            return Ok(Vec::new());
        }
        let bytes = self.image.read(section.offset, section.size, limit)?;
        match section.compression() {
            Some(method) => compression::section(method, &bytes, limit),
            None => Ok(bytes),
        }
    }

    /// The bytes of a section once decompressed, as its header has it.
    pub(crate) fn full_size(&self, section: &Section) -> u64 {
        match (section.kind, section.compression()) {
            (elf::SHT_NOBITS, _) => 0,
            (_, None) => section.size,
            (_, Some(method)) => compression::full_size(method, &self.start(section)).unwrap_or(0),
        }
    }

    /// Of a section that is compressed by zlib: the bytes once decompressed, and how many stand
    /// before the compressed ones.
    pub(crate) fn zlib(&self, section: &Section) -> Option<(u64, u64)> {
        compression::zlib(section.compression()?, &self.start(section))
    }

    /// The bytes that a compressed section begins with.
    fn start(&self, section: &Section) -> Vec<u8> {
        let bytes = section.size.min(compression::HEADER_BYTES);
        self.image.read(section.offset, bytes, bytes).unwrap_or_default()
    }

    /// The section of debug information of that name, which begins with a point; it may have the
    /// name that compressed ones had in older files.
    pub(crate) fn debug_section(&self, name: &str) -> Option<&Section> {
        let old =
            || self.sections.iter().find(|section| section.name.strip_prefix(".z") == name.strip_prefix('.'));
        self.section(name).or_else(old)
    }

    /// The file with the symbols of functions that `.gnu_debugdata` holds, if it takes at most
    /// `limit` bytes.
    pub(crate) fn mini_debug_file(&self, limit: u64) -> Option<Result<ElfFile, Error>> {
        let section = self.section(".gnu_debugdata")?;
        let whole = self.bytes(section, limit).and_then(|compressed| {
            let bytes = xz::decompress(&compressed, limit).ok_or(Error::Malformed("xz stream"))?;
            if bytes.len() as u64 > limit {
                return Err(Error::TooLarge { what: "xz stream", bytes: bytes.len() as u64 });
            }
            Ok(bytes)
        });
        Some(whole.and_then(|bytes| ElfFile::from_memory(bytes.into())))
    }

    /// Reads exactly these bytes of the file.
    pub(crate) fn read_exact(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.image.read_exact(offset, buffer)
    }

    /// The CRC-32 of the whole file, as `.gnu_debuglink` holds it.
    pub(crate) fn crc(&self) -> Result<u32, Error> {
        let mut crc = CRC.digest();
        let mut buffer = vec![0; 1 << 16];
        let mut offset = 0;
        while offset < self.image.size() {
            let part = (self.image.size() - offset).min(buffer.len() as u64);
            let Some(part) = buffer.get_mut(..part as usize) else { break };
            self.image.read_exact(offset, part)?;
            crc.update(part);
            offset += part.len() as u64;
        }
        Ok(crc.finalize())
    }
}

/// The NUL-terminated string at an offset of a string table. Assemblers take names of any bytes.
pub(crate) fn string_at(strings: &[u8], offset: usize) -> Option<Cow<'_, str>> {
    let rest = strings.get(offset..)?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    Some(String::from_utf8_lossy(rest.get(..end)?))
}

#[cfg(test)]
mod tests;
