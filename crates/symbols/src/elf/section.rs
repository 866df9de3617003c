//! Section headers.

use super::compression::Method;
use object::elf;

/// One section header.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name, if it is of a usual length.
    pub name: String,
    /// `SHT_*`.
    pub kind: u32,
    /// `SHF_*`.
    pub flags: u64,
    /// Address in the object's own numbering.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in the file (none for `SHT_NOBITS`), or of memory.
    pub size: u64,
    /// The section that this one refers to (symbols: their strings).
    pub link: u32,
    /// Bytes of one entry, for tables.
    pub entry_size: u64,
}

impl Section {
    /// Whether it holds code.
    pub fn is_executable(&self) -> bool {
        self.flags & u64::from(elf::SHF_EXECINSTR) != 0
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.compression().is_some()
    }

    pub(super) fn compression(&self) -> Option<Method> {
        let is_marked = self.flags & u64::from(elf::SHF_COMPRESSED) != 0;
        let is_old = self.name.starts_with(".zdebug_");
        if is_marked { Some(Method::Marked) } else { is_old.then_some(Method::Old) }
    }

    pub(crate) fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.size
    }
}
