//! Where the bytes of an ELF file come from: a regular file by positioned reads,
//! a copy of memory, or what the loader has mapped of a file, read by the kernel. Never a mapping
//! itself: a mapped file that is truncated kills its reader.

use crate::error::Error;
use object::LittleEndian as LE;
use object::elf::ProgramHeader64;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use swipr_unwind::memory::guarded_copy;

/// A source of bytes with a size that was taken once.
#[derive(Debug)]
pub(crate) enum Image {
    /// An open regular file.
    File {
        /// The descriptor; its position is never used.
        file: File,
        /// For messages.
        path: PathBuf,
        /// Its size when it was opened.
        size: u64,
    },
    /// A copy of memory.
    Memory(Arc<[u8]>),
    /// What the loader has mapped, at so many bytes behind the addresses in the file, which count
    /// here as offsets. It may be gone by now, or be another object's.
    Loaded(u64),
}

impl Image {
    /// Opens a regular file of at most `max_bytes`; a fifo or device does not
    /// make this wait.
    pub(crate) fn open(path: &Path, max_bytes: u64) -> Result<Image, Error> {
        let io = |error| Error::io(path, error);
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(Error::NotAFile(path.to_owned()));
        }
        // It may have become something else since: hence the flag and the second look.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(Error::NotAFile(path.to_owned()));
        }
        let size = metadata.len();
        if size > max_bytes {
            return Err(Error::TooLarge { what: "object file", bytes: size });
        }
        Ok(Image::File { file, path: path.to_owned(), size })
    }

    /// All bytes there are.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Image::File { size, .. } => *size,
            Image::Memory(bytes) => bytes.len() as u64,
            Image::Loaded(_) => u64::MAX,
        }
    }

    /// What was added to the addresses in the file; 0 where it is not loaded.
    pub(crate) fn bias(&self) -> u64 {
        if let Image::Loaded(bias) = self { *bias } else { 0 }
    }

    /// Where a segment is in it.
    pub(crate) fn offset_of(&self, segment: &ProgramHeader64<LE>) -> u64 {
        if self.bias() == 0 { segment.p_offset.get(LE) } else { segment.p_vaddr.get(LE) }
    }

    /// Copies `length` bytes, if that is at most `limit` and inside of the image.
    pub(crate) fn read(&self, offset: u64, length: u64, limit: u64) -> Result<Vec<u8>, Error> {
        if length > limit {
            return Err(Error::TooLarge { what: "section", bytes: length });
        }
        if offset.checked_add(length).is_none_or(|end| end > self.size()) {
            return Err(Error::Malformed("ELF file: a part lies behind its end"));
        }
        let length =
            usize::try_from(length).map_err(|_| Error::TooLarge { what: "section", bytes: length })?;
        let mut buffer = vec![0; length];
        self.read_exact(offset, &mut buffer)?;
        Ok(buffer)
    }

    /// Fills the buffer from `offset` on.
    pub(crate) fn read_exact(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let is_read = match self {
            Image::File { file, path, .. } => {
                return file.read_exact_at(buffer, offset).map_err(|error| Error::io(path, error));
            }
            Image::Memory(bytes) => {
                let start = usize::try_from(offset).ok();
                let part = start.and_then(|start| bytes.get(start..start.checked_add(buffer.len())?));
                part.map(|part| buffer.copy_from_slice(part)).is_some()
            }
            Image::Loaded(bias) => guarded_copy(bias.wrapping_add(offset), buffer) == buffer.len(),
        };
        if is_read { Ok(()) } else { Err(Error::Malformed("ELF image: a part lies behind its end")) }
    }
}
