//! Builds the unwind tables of the given ELF files and prints what they cost:
//!
//! ```text
//! cargo run --release -p swipr-debuginfo --example build_table -- /usr/lib/libc.so.6
//! ```

use object::{Object, ObjectSection};
use std::time::Instant;
use swipr_debuginfo::rows::{UnwindInput, build_table};

const RUNS: u32 = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("      rows      bytes  bytes/row  extended  best ms  ms per million rows  file");
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        let file = object::File::parse(&*bytes)?;
        let section = |name| {
            let section = file.section_by_name(name)?;
            Some((section.address(), section.data().ok()?))
        };
        let code: Vec<_> =
            file.sections().filter(|section| section.kind() == object::SectionKind::Text).collect();
        let start = code.iter().map(|section| section.address()).min().unwrap_or(0);
        let end = code.iter().map(|section| section.address() + section.size()).max().unwrap_or(0);
        let input = UnwindInput {
            text: start..end,
            eh_frame_hdr: section(".eh_frame_hdr"),
            eh_frame: section(".eh_frame").ok_or("no .eh_frame")?,
            debug_frame: None,
            main: None,
            aarch64: file.architecture() == object::Architecture::Aarch64,
        };
        let mut best = f64::MAX;
        for _ in 1..RUNS {
            let begin = Instant::now();
            let table = build_table(&input)?;
            best = best.min(begin.elapsed().as_secs_f64() * 1e3);
            drop(table);
        }
        let table = build_table(&input)?;
        let rows = table.rows();
        println!(
            "{rows:10} {:10} {:10.2} {:9} {best:8.1} {:20.1}  {path}",
            table.bytes(),
            table.bytes() as f64 / rows as f64,
            table.view().extended.len(),
            best * 1e6 / rows as f64,
        );
    }
    Ok(())
}
