//! Unwind tables of JIT code, on their way from a writer, which reads files, to the sampler.

use super::UnwindInfo;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use swipr_os::locks::lock;
use swipr_symbols::rows::{UnwindInput, build_table};

/// Tables at a time: handlers search all of them.
const MAX_TABLES: usize = 16 << 10;
/// A description of larger code is taken for damaged.
const MAX_CODE: u64 = 256 << 20;

/// Unwind tables of JIT code.
#[derive(Debug, Default)]
pub struct JitTables {
    tables: Mutex<BTreeMap<u64, Arc<UnwindInfo>>>,
    generation: AtomicU64,
}

impl JitTables {
    /// Adds the table of `code` by a section at `address`. It replaces older tables of the same
    /// addresses.
    pub fn add(&self, code: Range<u64>, address: u64, eh_frame: &[u8]) {
        if code.end.saturating_sub(code.start).wrapping_sub(1) >= MAX_CODE {
            return;
        }
        let input = UnwindInput {
            text: code.clone(),
            eh_frame_hdr: None,
            eh_frame: (address, eh_frame),
            debug_frame: None,
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
