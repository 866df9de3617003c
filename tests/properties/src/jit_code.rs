//! Files of JIT compilers. Whatever is in them, reading ends, what was read is within the map's
//! memory, and it does not matter in which pieces the bytes came.

use crate::choices::Choices;
use std::sync::Arc;
use swipr_symbols::jit::code_map::{CodeMap, Found};
use swipr_symbols::jit::{jitdump, objects, perf_map};

const MAX_BYTES: usize = 64 << 10;

/// A perf map.
pub fn perf_map(bytes: &[u8]) {
    let whole = read_map(bytes, bytes.len());
    assert!(whole.bytes() <= MAX_BYTES);
    let in_pieces = read_map(bytes, 1 + bytes.len() / 7);
    for address in addresses(bytes) {
        assert_eq!(name(&whole, address), name(&in_pieces, address));
    }
}

fn read_map(bytes: &[u8], step: usize) -> CodeMap {
    let mut map = CodeMap::new(MAX_BYTES);
    in_pieces(bytes, step, |bytes| perf_map::read(bytes, 0, &mut map));
    map
}

fn name(map: &CodeMap, address: u64) -> Option<Arc<str>> {
    let found = map.find(address, 0)?;
    assert!(found.start <= address);
    Some(found.function.name)
}

/// A jitdump file.
pub fn jitdump(bytes: &[u8]) {
    let (map, frames) = read_dump(bytes, bytes.len());
    assert!(map.bytes() <= MAX_BYTES);
    let (in_pieces, same_frames) = read_dump(bytes, 1 + bytes.len() / 7);
    assert_eq!(frames, same_frames);
    for address in addresses(bytes) {
        for time in [0, 1, u64::MAX - 1] {
            let found = map.find(address, time);
            assert_eq!(found, in_pieces.find(address, time));
            found.as_ref().inspect(|found| is_sound(found, address, time));
        }
    }
}

fn is_sound(found: &Found, address: u64, time: u64) {
    assert!(found.start <= address && found.valid.contains(&time));
    let lines = &found.function.lines;
    assert!(lines.is_sorted_by_key(|entry| entry.offset));
    let _ = found.function.place(address - found.start);
}

fn read_dump(bytes: &[u8], step: usize) -> (CodeMap, Vec<jitdump::Unwinding>) {
    let (mut map, mut reader, mut frames) = (CodeMap::new(MAX_BYTES), jitdump::Reader::default(), vec![]);
    in_pieces(bytes, step, |bytes| {
        let used = reader.read(bytes, &mut map, &mut |unwinding| frames.push(unwinding));
        assert!(used <= bytes.len());
        used
    });
    (map, frames)
}

/// An object as compilers show them to debuggers.
pub fn object(bytes: &[u8]) {
    let Ok(made) = objects::read(bytes.into()) else { return };
    for (code, function) in &made.functions {
        assert!(code.start < code.end && !function.name.is_empty());
        assert!(function.lines.is_sorted_by_key(|entry| entry.offset));
    }
}

/// As a file that grows is read: what was not used comes again.
fn in_pieces(bytes: &[u8], step: usize, mut read: impl FnMut(&[u8]) -> usize) {
    let (mut at, mut end) = (0, 0);
    while end < bytes.len() {
        end = bytes.len().min(end + step);
        at += read(&bytes[at..end]);
    }
}

/// Those that the bytes may be about.
fn addresses(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).take(200);
    let mut choices = Choices::new(bytes);
    let chosen = std::array::from_fn::<u64, 8, _>(|_| u64::from(choices.byte()) << 4);
    words.chain(chosen).flat_map(|address| [address.wrapping_sub(1), address, address.wrapping_add(9)])
}
