//! Compressed sections: zlib, and zstd with the feature `zstd`. A small input cannot become a large
//! allocation before it has delivered.

use crate::error::Error;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use object::LittleEndian as LE;
use object::elf::{self, CompressionHeader64};
use object::pod;
#[cfg(feature = "zstd")]
use std::io::Read;

/// Before a section of the older kind (`.zdebug_info`): these letters, and 8 bytes of size, the
/// highest first.
const OLD_MAGIC: &[u8] = b"ZLIB";
/// Bytes of what stands before compressed bytes, at most.
pub(super) const HEADER_BYTES: u64 = size_of::<CompressionHeader64<LE>>() as u64;
#[cfg(feature = "zstd")]
/// So many times as large as its compressed bytes a section may well become: room for that is taken
/// at once.
const USUAL_FACTOR: u64 = 8;

/// How a section is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// As its `CompressionHeader64` has it.
    Marked,
    /// As the older sections with names of their own are.
    Old,
}

/// The size of a section once decompressed, and how many bytes stand before the compressed ones.
fn header(method: Method, bytes: &[u8]) -> Option<(u32, u64, &[u8])> {
    match method {
        Method::Marked => {
            let (header, rest) = pod::from_bytes::<CompressionHeader64<LE>>(bytes).ok()?;
            Some((header.ch_type.get(LE), header.ch_size.get(LE), rest))
        }
        Method::Old => {
            let (size, rest) = bytes.strip_prefix(OLD_MAGIC)?.split_first_chunk()?;
            Some((elf::ELFCOMPRESS_ZLIB, u64::from_be_bytes(*size), rest))
        }
    }
}

/// The size of a section once decompressed, of its first bytes.
pub(super) fn full_size(method: Method, start: &[u8]) -> Option<u64> {
    header(method, start).map(|(_, size, _)| size)
}

/// If it is compressed by zlib: its size, and how many bytes stand before the compressed ones.
pub(super) fn zlib(method: Method, start: &[u8]) -> Option<(u64, u64)> {
    let (kind, size, rest) = header(method, start)?;
    (kind == elf::ELFCOMPRESS_ZLIB).then_some((size, (start.len() - rest.len()) as u64))
}

/// Decompresses a section of at most `limit` bytes.
pub(super) fn section(method: Method, bytes: &[u8], limit: u64) -> Result<Vec<u8>, Error> {
    let malformed = Error::Malformed("compressed section");
    let Some((kind, size, compressed)) = header(method, bytes) else { return Err(malformed) };
    if size > limit {
        return Err(Error::TooLarge { what: "compressed section", bytes: size });
    }
    let out = match kind {
        elf::ELFCOMPRESS_ZLIB => decompress_to_vec_zlib_with_limit(compressed, size as usize).ok(),
        #[cfg(feature = "zstd")]
        elf::ELFCOMPRESS_ZSTD => ruzstd::decoding::StreamingDecoder::new(compressed)
            .ok()
            .and_then(|decoder| all(decoder, compressed, size)),
        _ => return Err(Error::Malformed("compressed section (zlib)")),
    };
    out.filter(|out| out.len() as u64 == size).ok_or(malformed)
}

#[cfg(feature = "zstd")]
fn all(decoder: impl Read, compressed: &[u8], at_most: u64) -> Option<Vec<u8>> {
    let usual = USUAL_FACTOR * compressed.len() as u64;
    let mut out = Vec::with_capacity(usual.min(at_most) as usize);
    decoder.take(at_most).read_to_end(&mut out).ok().map(|_| out)
}
