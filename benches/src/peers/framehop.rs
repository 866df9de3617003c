//! framehop as a profiler in the process can have it: modules added beforehand, a cache that does
//! not allocate.

use ::framehop::{
    CacheNative, ExplicitModuleSectionInfo, Module, MustNotAllocateDuringUnwind, UnwindRegsNative, Unwinder,
    UnwinderNative,
};
use std::cell::UnsafeCell;
use std::ops::Range;
use swipr_os::objects::{self, Object};
use swipr_unwind::registers::Registers;

type Sections = ExplicitModuleSectionInfo<&'static [u8]>;

/// An unwinder that knows the objects of this process, and its cache.
pub struct Framehop {
    unwinder: UnwinderNative<&'static [u8], MustNotAllocateDuringUnwind>,
    cache: UnsafeCell<CacheNative<MustNotAllocateDuringUnwind>>,
}

// SAFETY: `walk` leaves it to its callers that only one of them runs at a time.
unsafe impl Sync for Framehop {}

impl std::fmt::Debug for Framehop {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Framehop")
    }
}

impl Framehop {
    /// Learns of all objects that are loaded now; they have to stay loaded. Not in a signal
    /// handler.
    pub fn of_loaded_objects() -> Framehop {
        let mut unwinder = UnwinderNative::new();
        for object in objects::list().into_iter().flatten() {
            if let Some(module) = module(&object) {
                unwinder.add_module(module);
            }
        }
        Framehop { unwinder, cache: UnsafeCell::new(CacheNative::new_in()) }
    }

    /// The stack from `start` on, whose mapping is `low..high`; returns the number of frames.
    ///
    /// # Safety
    /// The mapping is readable, the registers are those of a thread that stands on it, and nobody
    /// else walks with this unwinder meanwhile.
    #[inline(never)]
    pub unsafe fn walk(&self, start: Registers, low: u64, high: u64, frames: &mut [u64]) -> usize {
        let mut read = |address: u64| {
            let inside = address >= low && address <= high.saturating_sub(8) && address.is_multiple_of(8);
            // SAFETY: inside the stack, by the caller's contract readable.
            if inside { Ok(unsafe { (address as *const u64).read_volatile() }) } else { Err(()) }
        };
        // SAFETY: the caller vouches for being the only one.
        let cache = unsafe { &mut *self.cache.get() };
        let mut stack = self.unwinder.iter_frames(start.pc, registers(start), cache, &mut read);
        let mut count = 0;
        for place in frames {
            let Ok(Some(frame)) = stack.next() else { break };
            *place = frame.address();
            count += 1;
        }
        count
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(start: Registers) -> UnwindRegsNative {
    UnwindRegsNative::new(start.pc, start.sp, start.fp.unwrap_or(0))
}

#[cfg(target_arch = "aarch64")]
fn registers(start: Registers) -> UnwindRegsNative {
    UnwindRegsNative::new(start.link.unwrap_or(0), start.sp, start.fp.unwrap_or(0))
}

fn module(object: &Object) -> Option<Module<&'static [u8]>> {
    let code = || object.segments.iter().filter(|segment| segment.is_code()).map(|segment| segment.range());
    let text = code().map(|range| range.start).min()?..code().map(|range| range.end).max()?;
    let header = object.segments.iter().find(|segment| segment.kind == libc::PT_GNU_EH_FRAME)?.range();
    let frames = described_from(memory(&header), header.start)?;
    let loaded = object.segments.iter().filter(|segment| segment.kind == libc::PT_LOAD);
    let whole = loaded.map(|segment| segment.range()).find(|range| range.contains(&frames))?;
    let frames = frames..whole.end;
    let in_file = |range: &Range<u64>| Some(range.start - object.bias..range.end - object.bias);
    let sections = Sections {
        text_svma: in_file(&text),
        text: Some(memory(&text)),
        eh_frame_svma: in_file(&frames),
        eh_frame: Some(memory(&frames)),
        eh_frame_hdr_svma: in_file(&header),
        eh_frame_hdr: Some(memory(&header)),
        ..Sections::default()
    };
    Some(Module::new(object.name.clone(), text, object.bias, sections))
}

/// Where `.eh_frame` begins, by the `.eh_frame_hdr` at `address`: a 32-bit offset from its own
/// place, as all linkers write it (LSB, DWARF extensions).
fn described_from(header: &[u8], address: u64) -> Option<u64> {
    const VERSION: u8 = 1;
    const RELATIVE_SIGNED_32: u8 = 0x1b;
    let (&[VERSION, RELATIVE_SIGNED_32, _, _], rest) = header.split_first_chunk::<4>()? else { return None };
    let offset = i32::from_ne_bytes(*rest.first_chunk()?);
    (address + 4).checked_add_signed(offset.into())
}

/// Memory of a loaded object.
fn memory(range: &Range<u64>) -> &'static [u8] {
    // SAFETY: a loaded segment, or a part of one, of an object that stays loaded; sections for
    // unwinding and code do not change.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, (range.end - range.start) as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_descriptions_are_found_by_the_headers_offset() {
        let mut header = vec![1, 0x1b, 3, 0x3b];
        header.extend((-0x10i32).to_ne_bytes());
        assert_eq!(described_from(&header, 0x1000), Some(0xff4));
        assert_eq!(described_from(&[1, 0x1b], 0), None);
    }
}
