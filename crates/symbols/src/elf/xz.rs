//! The container of xz streams (the .xz file format, version 1.2): what is read is one stream of
//! blocks that are compressed by LZMA2 alone, as `xz` writes them by default.
//! Checks are not verified: a damaged stream gives damaged symbols, which are not trusted anyhow.

use lzma_rust2::Lzma2Reader;
use std::io::Read;

const MAGIC: &[u8] = b"\xfd7zXZ\0";
/// Flags of the stream, and their CRC-32.
const STREAM_FLAGS: usize = 6;
const LZMA2: u64 = 0x21;
/// Memory for a dictionary, at most: `xz -9` takes 64 MiB.
const MAX_DICTIONARY: u32 = 64 << 20;
/// Bytes of a check, by the kind of check.
const CHECK_BYTES: [usize; 16] = [0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64];

/// Decompresses a stream; stops when there are more than `limit` bytes.
pub(super) fn decompress(bytes: &[u8], limit: u64) -> Option<Vec<u8>> {
    let (flags, mut rest) = bytes.strip_prefix(MAGIC)?.split_at_checked(STREAM_FLAGS)?;
    let check = *CHECK_BYTES.get(usize::from(*flags.get(1)?))?;
    let mut out = Vec::new();
    // A header of no size is the index, which ends the blocks.
    while let Some(&words) = rest.first().filter(|&&words| words != 0) {
        let (header, compressed) = rest.split_at_checked((usize::from(words) + 1) * 4)?;
        let dictionary = dictionary_bytes(header)?;
        let room = limit.saturating_add(1).checked_sub(out.len() as u64)?;
        let mut reader = Lzma2Reader::new(compressed, dictionary, None);
        (&mut reader).take(room).read_to_end(&mut out).ok()?;
        if out.len() as u64 > limit {
            return Some(out);
        }
        let left = reader.into_inner();
        let padded = (compressed.len() - left.len()).checked_next_multiple_of(4)?;
        rest = compressed.get(padded + check..)?;
    }
    Some(out)
}

/// The size of the dictionary that a block header asks for.
fn dictionary_bytes(header: &[u8]) -> Option<u32> {
    let (&flags, mut rest) = header.get(1..)?.split_first()?;
    // Bits 0 and 1: further filters; 6 and 7: sizes that may be left out.
    if flags & 0x3 != 0 {
        return None;
    }
    for bit in [0x40, 0x80] {
        if flags & bit != 0 {
            number(&mut rest)?;
        }
    }
    if (number(&mut rest)?, number(&mut rest)?) != (LZMA2, 1) {
        return None;
    }
    let size = u32::from(*rest.first()?);
    let bytes = (2 | (size & 1)).checked_shl(size / 2 + 11)?;
    (size < 40 && bytes <= MAX_DICTIONARY).then_some(bytes)
}

/// A number in groups of 7 bits, the lowest first.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn compress(text: &[u8], arguments: &[&str]) -> Vec<u8> {
        let pipe = || Stdio::piped();
        let mut xz =
            Command::new("xz").args(arguments).arg("-c").stdin(pipe()).stdout(pipe()).spawn().unwrap();
        let (mut input, text) = (xz.stdin.take().unwrap(), text.to_vec());
        let writer = std::thread::spawn(move || input.write_all(&text));
        let out = xz.wait_with_output().unwrap().stdout;
        writer.join().unwrap().unwrap();
        out
    }

    #[test]
    fn what_xz_compresses_is_read_whatever_its_level_check_and_blocks() {
        let text: Vec<u8> = (0..300_000_u32).flat_map(|n| (n / 7 * 31).to_le_bytes()).collect();
        let cases: [&[&str]; 5] =
            [&[], &["-9"], &["-0", "--check=none"], &["--check=sha256"], &["--block-size=65536", "-T2"]];
        for arguments in cases {
            let bytes = compress(&text, arguments);
            assert!(bytes.len() < text.len());
            assert!(decompress(&bytes, u64::MAX).unwrap() == text, "{arguments:?}");
            assert_eq!(decompress(&bytes, 1000).unwrap().len(), 1001, "{arguments:?}");
        }
        assert_eq!(decompress(&compress(&[], &[]), 10), Some(vec![]));
        assert_eq!(decompress(&compress(&text, &["--x86", "--lzma2"]), u64::MAX), None);
    }

    #[test]
    fn damaged_streams_are_refused_or_give_something_else() {
        let bytes = compress(&b"the same again and ".repeat(50), &[]);
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = decompress(&damaged, 1 << 20);
            }
            let _ = decompress(&bytes[..at], 1 << 20);
        }
    }
}
