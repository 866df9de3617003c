//! Unwind tables of JIT code that the program registered (`__register_frame`).
//!
//! Two conventions: libgcc registers a whole section, up to a zero length; LLVM's libunwind
//! registers one frame description at a time. The first entry shows which one it is. The program
//! may free the memory at any time: everything is copied through the kernel, within bounds, and
//! tables that were deregistered meanwhile are dropped.

use super::unwind_info::UnwindInfo;
use crate::registered_frames::{self, Registration};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;
use swipr_symbols::rows::{UnwindInput, build_table, described_from};
use swipr_unwind::memory::guarded_copy_or_file;

/// Larger sections are read up to this size.
const MAX_BYTES: usize = 16 << 20;
/// A description of larger code is taken for damaged.
const MAX_CODE: u64 = 256 << 20;
/// How far before a description its common entry may be.
const MAX_DISTANCE: u64 = 1 << 20;
const PAGE: u64 = 4096;
/// Between functions that follow one another is less.
const PADDING: u64 = 64;

/// The tables of all registrations, as of the last refresh.
#[derive(Debug, Default)]
pub struct Registered {
    generation: u64,
    /// Each in pieces: between the functions of one may be those of another.
    tables: FxHashMap<Registration, Vec<Arc<UnwindInfo>>>,
}

impl Registered {
    /// Reads again, if anything was registered or deregistered. Returns whether it was.
    pub fn refresh(&mut self, memory_file: i32) -> bool {
        let generation = registered_frames::generation();
        if generation == self.generation {
            return false;
        }
        self.generation = generation;
        let mut old = std::mem::take(&mut self.tables);
        let of = |registration| {
            let known = old.remove(&registration);
            (registration, known.unwrap_or_else(|| tables(registration, memory_file).unwrap_or_default()))
        };
        self.tables = registered_frames::list().map(of).collect();
        let still: FxHashSet<Registration> = registered_frames::list().collect();
        self.tables.retain(|registration, _| still.contains(registration));
        true
    }

    /// The tables of code outside of `others`, which are sorted.
    pub fn outside(&self, others: &[Arc<UnwindInfo>]) -> Vec<Arc<UnwindInfo>> {
        let is_outside = |table: &&Arc<UnwindInfo>| {
            let after = others.partition_point(|other| other.text().start < table.text().end);
            after
                .checked_sub(1)
                .is_none_or(|at| others.get(at).is_none_or(|other| other.text().end <= table.text().start))
        };
        self.tables.values().flatten().filter(is_outside).cloned().collect()
    }
}

/// The tables of a registration, one for each run of functions.
fn tables(registration: Registration, memory_file: i32) -> Option<Vec<Arc<UnwindInfo>>> {
    let aarch64 = cfg!(target_arch = "aarch64");
    let copy = Copy::of(registration.address, memory_file)?;
    let eh_frame = (copy.start, copy.bytes.as_slice());
    let functions = described_from(eh_frame, registration.address, aarch64);
    let text = functions.first()?.start..functions.iter().map(|function| function.end).max()?;
    if text.end - text.start > MAX_CODE {
        return None;
    }
    let input = UnwindInput {
        text: text.clone(),
        eh_frame_hdr: None,
        eh_frame,
        debug_frame: None,
        main: None,
        aarch64,
    };
    let whole = UnwindInfo::new(build_table(&input).ok()?, text.clone(), 0);
    let mut runs: Vec<Range<u64>> = vec![];
    for function in functions {
        match runs.last_mut().filter(|run| function.start.saturating_sub(run.end) < PADDING) {
            Some(run) => run.end = run.end.max(function.end),
            None => runs.push(function),
        }
    }
    Some(runs.into_iter().map(|run| Arc::new(whole.piece(run))).collect())
}

/// A copy of frame descriptions.
struct Copy {
    start: u64,
    bytes: Vec<u8>,
}

impl Copy {
    fn of(address: u64, memory_file: i32) -> Option<Copy> {
        let mut copy = Copy { start: address, bytes: vec![] };
        let (end, distance) = (copy.entry_end(0, memory_file)?, copy.word(4)?);
        if distance != 0 {
            // One description: from its common entry to its end.
            let common = address.checked_add(4)?.checked_sub(u64::from(distance))?;
            let range = common..address.checked_add(end as u64)?;
            return (common < address && range.end - common <= MAX_DISTANCE)
                .then(|| copied(range, memory_file))?;
        }
        let mut at = end;
        while let Some(end) = copy.entry_end(at, memory_file) {
            at = end;
        }
        copy.bytes.truncate(at);
        Some(copy)
    }

    fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.bytes.get(at..)?.first_chunk::<4>()?))
    }

    /// Where the entry that begins at `at` ends; all of it is copied then.
    fn entry_end(&mut self, at: usize, memory_file: i32) -> Option<usize> {
        self.reach(at.checked_add(4)?, memory_file)?;
        let length = self.word(at).filter(|&length| length != 0 && length < 0xffff_fff0)?;
        let end = at.checked_add(4)?.checked_add(length as usize)?;
        self.reach(end, memory_file)?;
        Some(end)
    }

    /// Copies on, page by page, up to `end` bytes.
    fn reach(&mut self, end: usize, memory_file: i32) -> Option<()> {
        if end > MAX_BYTES {
            return None;
        }
        while self.bytes.len() < end {
            let at = self.start.checked_add(self.bytes.len() as u64)?;
            let mut page = [0; PAGE as usize];
            let part = page.get_mut(..(PAGE - at % PAGE) as usize)?;
            let read = guarded_copy_or_file(at, part, memory_file);
            self.bytes.extend_from_slice(part.get(..read).filter(|part| !part.is_empty())?);
        }
        Some(())
    }
}

fn copied(range: Range<u64>, memory_file: i32) -> Option<Copy> {
    let mut copy = Copy { start: range.start, bytes: vec![] };
    let length = (range.end - range.start) as usize;
    copy.reach(length, memory_file)?;
    copy.bytes.truncate(length);
    Some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A common entry, then a description of each function, then a zero; absolute pointers.
    fn section(functions: &[Range<u64>]) -> Vec<u8> {
        let mut bytes = vec![];
        let mut entry = |body: &[u8]| {
            let length = body.len().next_multiple_of(8) + 4;
            bytes.extend((length as u32).to_le_bytes());
            bytes.extend(body);
            bytes.resize(bytes.len() + length - body.len(), 0);
            bytes.len()
        };
        let mut at = entry(&[0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1]);
        for function in functions {
            let mut body = (at as u32 + 4).to_le_bytes().to_vec();
            body.extend(function.start.to_le_bytes());
            body.extend((function.end - function.start).to_le_bytes());
            body.extend([0, 0x44, 0x0e, 24]);
            at = entry(&body);
        }
        bytes.extend([0; 4]);
        bytes
    }

    fn covered(registered: &Registered, address: u64) -> bool {
        registered.outside(&[]).iter().any(|table| table.text().contains(&address))
    }

    #[test]
    fn what_is_registered_has_a_table_until_it_is_taken_back() {
        swipr_unwind::memory::set_process(swipr_os::process::pid() as i32);
        let bytes = section(&[0x1000_0000..0x1000_0040, 0x1000_0100..0x1000_0140]);
        let address = bytes.as_ptr() as u64;
        let mut registered = Registered::default();
        registered_frames::record(address);
        registered.refresh(-1);
        let tables = registered.outside(&[]);
        let table = tables.iter().find(|table| table.text() == &(0x1000_0100..0x1000_0140)).unwrap();
        assert_eq!(table.table().unwrap().rows(), 6, "two a function, and one each behind them");
        assert!(covered(&registered, 0x1000_0010) && !covered(&registered, 0x1000_0080), "another's place");
        assert!(
            !registered.outside(std::slice::from_ref(table)).iter().any(|other| other.text() == table.text())
        );
        registered_frames::forget(address);
        assert!(registered.refresh(-1));
        assert!(!covered(&registered, 0x1000_0010));
        // LLVM's convention: the second description by itself.
        let first = 4 + u64::from(u32::from_le_bytes(bytes[..4].try_into().unwrap()));
        let second = first + 4 + u64::from(bytes[first as usize]);
        registered_frames::record(address + second);
        registered.refresh(-1);
        assert!(covered(&registered, 0x1000_0110) && !covered(&registered, 0x1000_0010));
        registered_frames::forget(address + second);
    }

    /// Regression: of functions that follow one another, each registered by itself, only the first
    /// had a table.
    #[test]
    fn a_description_that_is_registered_by_itself_has_a_table_beside_its_neighbour() {
        swipr_unwind::memory::set_process(swipr_os::process::pid() as i32);
        let bytes = section(&[0x3000_0000..0x3000_0040, 0x3000_0040..0x3000_0080]);
        let first = 4 + usize::from(bytes[0]);
        let second = first + 4 + usize::from(bytes[first]);
        let at = |offset: usize| Registration { address: bytes.as_ptr() as u64 + offset as u64, serial: 0 };
        let texts = |offset| {
            let tables = tables(at(offset), -1).unwrap();
            tables.iter().map(|it| (it.text().start, it.text().end)).collect::<Vec<_>>()
        };
        assert_eq!(texts(first), [(0x3000_0000, 0x3000_0040)]);
        assert_eq!(texts(second), [(0x3000_0040, 0x3000_0080)]);
        assert_eq!(texts(0), [(0x3000_0000, 0x3000_0080)]);
    }

    #[test]
    fn garbage_and_memory_that_is_gone_have_no_table() {
        for address in [8, 0x7fff_ffff_f000, u64::MAX - 3] {
            assert!(tables(Registration { address, serial: 0 }, -1).is_none());
        }
        let mut bytes = section(&[0x2000_0000..0x2000_0040, 0x2000_0040..0x2000_0080]);
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let before = std::mem::replace(&mut bytes[at], value);
                let _ = tables(Registration { address: bytes.as_ptr() as u64, serial: 0 }, -1);
                bytes[at] = before;
            }
        }
    }
}
