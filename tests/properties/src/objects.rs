//! Object files: whatever bytes one holds, its names, lines and rows come soon and within the
//! budget, and do not depend on earlier look-ups.

use std::sync::Arc;
use swipr_symbols::demangle::Names;
use swipr_symbols::elf::ElfFile;
use swipr_symbols::rows::{DebugFrameInput, UnwindInput, build_table};
use swipr_symbols::symbolizer::{Budget, Lookup, ObjectKey, Symbol, Symbolizer};

/// Addresses that are looked up in each executable section.
const MAX_ADDRESSES: u64 = 12;
const MAX_SECTIONS: usize = 4;
const MAX_BYTES: u64 = 1 << 20;
const BUDGET: Budget = Budget { memory_bytes: 1 << 20, debug_bytes: MAX_BYTES, file_bytes: MAX_BYTES };

/// See the module's text.
pub fn check(bytes: &[u8]) {
    let image: Arc<[u8]> = bytes.into();
    let Ok(file) = ElfFile::from_memory(image.clone()) else { return };
    names(&file, image);
    rows(&file);
    file.code_address(0..u64::MAX);
}

fn names(file: &ElfFile, image: Arc<[u8]>) {
    let key = ObjectKey { image: Some(image), ..ObjectKey::at("[image]", &[]) };
    let code = file.sections().iter().filter(|section| section.is_executable()).take(MAX_SECTIONS);
    let mut addresses: Vec<u64> = code
        .flat_map(|section| {
            let step = (section.size / MAX_ADDRESSES).max(1);
            (0..MAX_ADDRESSES).map(move |n| section.address.wrapping_add(n.wrapping_mul(step)))
        })
        .collect();
    addresses.extend([0, 1, u64::MAX]);
    let answers = resolved(&key, &addresses);
    addresses.reverse();
    let reversed = resolved(&key, &addresses);
    assert!(answers.chunks(2).eq(reversed.chunks(2).rev()), "the order of questions changes the answers");
}

fn resolved(key: &ObjectKey, addresses: &[u64]) -> Vec<Arc<[Symbol]>> {
    let mut symbolizer = Symbolizer::new(BUDGET);
    symbolizer.set_names(Names::Demangled);
    let mut answers = Vec::new();
    for &address in addresses {
        for lookup in [Lookup::Pc, Lookup::ReturnAddress] {
            let symbols = symbolizer.resolve(key, address, lookup);
            if let Some((outer, inlined)) = symbols.split_last() {
                assert!(!outer.inlined && inlined.iter().all(|symbol| symbol.inlined));
            }
            assert!(symbolizer.stats().bytes <= BUDGET.memory_bytes);
            answers.push(symbols);
        }
    }
    answers
}

fn rows(file: &ElfFile) {
    let section = |name| {
        let section = file.section(name)?;
        Some((section.address, file.bytes(section, MAX_BYTES).ok()?))
    };
    let Some((address, frames)) = section(".eh_frame") else { return };
    let header = section(".eh_frame_hdr");
    let debug_frame = section(".debug_frame");
    for code in file.sections().iter().filter(|section| section.is_executable()).take(MAX_SECTIONS) {
        let end = code.address.saturating_add(code.size.min(1 << 24));
        let input = UnwindInput {
            text: code.address..end,
            eh_frame_hdr: header.as_ref().map(|(address, bytes)| (*address, &bytes[..])),
            eh_frame: (address, &frames),
            debug_frame: debug_frame.as_ref().map(|(_, bytes)| DebugFrameInput {
                bias: 0,
                bytes,
                stack_switches: &[],
            }),
            main: None,
            aarch64: file.is_aarch64(),
        };
        if let Ok(table) = build_table(&input) {
            let view = table.view();
            for row in 0..table.rows() {
                let pc = view.start_of_row(row).unwrap();
                assert_eq!(view.row(pc), Some(row));
            }
        }
    }
}
