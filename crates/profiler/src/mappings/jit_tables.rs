//! Unwind tables of JIT code, on their way from a writer, which reads files, to the sampler.

use super::UnwindInfo;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use swipr_os::locks::lock;
use swipr_symbols::rows::{DebugFrameInput, UnwindInput, build_table};

/// Tables at a time: handlers search all of them.
const MAX_TABLES: usize = 16 << 10;
/// A description of larger code is taken for damaged.
const MAX_CODE: u64 = 2 << 30;

/// Unwind tables of JIT code.
#[derive(Debug, Default)]
pub struct JitTables {
    tables: Mutex<BTreeMap<u64, Arc<UnwindInfo>>>,
    generation: AtomicU64,
}

impl JitTables {
    /// Adds the table of `code` by a section at an address, and by a `.debug_frame`. It replaces
    /// older tables of the same addresses.
    pub fn add(&self, code: Range<u64>, eh_frame: (u64, &[u8]), debug_frame: Option<&[u8]>) {
        if code.end.saturating_sub(code.start).wrapping_sub(1) >= MAX_CODE {
            return;
        }
        let input = UnwindInput {
            text: code.clone(),
            eh_frame_hdr: None,
            eh_frame,
            debug_frame: debug_frame.map(|bytes| DebugFrameInput { bias: 0, bytes, stack_switches: &[] }),
            main: None,
            aarch64: cfg!(target_arch = "aarch64"),
        };
        let table = build_table(&input).ok();
        let table = table.map(|table| Arc::new(UnwindInfo::new(table, code.clone(), 0)));
        let Some(mut tables) = lock(&self.tables) else { return };
        while let Some((&start, _)) =
            tables.range(..code.end).next_back().filter(|(_, table)| table.text().end > code.start)
        {
            tables.remove(&start);
        }
        if let Some(table) = table.filter(|_| tables.len() < MAX_TABLES) {
            tables.insert(code.start, table);
        }
        // Relaxed: the lock orders what the number is about.
        self.generation.fetch_add(1, Relaxed);
    }

    /// Changes when the tables do.
    pub fn generation(&self) -> u64 {
        // Relaxed: see `add`.
        self.generation.load(Relaxed)
    }

    /// All tables, by address.
    pub fn list(&self) -> Vec<Arc<UnwindInfo>> {
        lock(&self.tables).map(|tables| tables.values().cloned().collect()).unwrap_or_default()
    }

    /// Forgets all.
    pub fn clear(&self) {
        if let Some(mut tables) = lock(&self.tables).filter(|tables| !tables.is_empty()) {
            tables.clear();
            self.generation.fetch_add(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: code that QEMU makes ended each stack: it is described for debuggers alone.
    #[test]
    fn code_that_is_described_for_debuggers_alone_has_a_table() {
        const CODE: Range<u64> = 0x10_0000..0x4010_0000;
        let mut section = vec![];
        let mut entry = |id: u32, rest: &[u8]| {
            section.extend((4 + rest.len() as u32).to_le_bytes());
            section.extend(id.to_le_bytes());
            section.extend(rest);
        };
        // Version 1, factors 1 and -8, return address in column 16.
        entry(u32::MAX, &[1, 0, 1, 0x78, 16, 0, 0, 0]);
        let range = [CODE.start.to_le_bytes(), (CODE.end - CODE.start).to_le_bytes()].concat();
        // DW_CFA_def_cfa rsp, 96; DW_CFA_offset rbp, 2.
        entry(0, &[&range[..], &[0x0c, 7, 96, 0x86, 2, 0, 0, 0]].concat());
        let tables = JitTables::default();
        tables.add(CODE, (0, &[]), None);
        assert_eq!(tables.list().len(), 0);
        tables.add(CODE, (0, &[]), Some(&section));
        assert_eq!(tables.list().len(), 1);
    }
}
