//! Unwind tables: how large, how long to build, and how long a look-up takes at random places of
//! the code, beside framehop.
//!
//! `cargo run --release -p swipr-benches --bin tables -- [FILE...]`

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, Module, MustNotAllocateDuringUnwind,
    UnwindRegsNative, Unwinder, UnwinderNative,
};
use object::{Object, ObjectSection, SectionKind};
use std::error::Error;
use std::hint::black_box;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;
use swipr_benches::bars::figure;
use swipr_benches::figures::{Series, Table};
use swipr_benches::machine;
use swipr_benches::programs::{real_python, rustc_libraries};
use swipr_symbols::rows::{UnwindInput, build_table};

/// Tables built of each object.
const BUILDS: usize = 7;
/// Smaller tables say more about a clock than about rows.
const SMALLEST: usize = 10_000;
/// Random places that are looked up, and how often all of them.
const PLACES: usize = 100_000;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let named: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let files = if named.is_empty() { usual() } else { named };
    println!("{}\n", machine::description());
    let mut table = Table::new(&[
        "object",
        "rows",
        "bytes a row",
        "build, ms",
        "ms a million rows, p50",
        "of the builds",
        "look-up, ns: swipr",
        "framehop",
        "framehop / swipr",
    ]);
    let (mut bytes, mut times) = (Series::default(), Series::default());
    for path in files {
        if let Err(error) = measure(&path, &mut table, &mut bytes, &mut times) {
            println!("{}: {error}: left out\n", name(&path));
        }
    }
    figure("table bytes a row", bytes.percentile(1.0), &format!("{} of the objects", bytes.spread(2)));
    figure("table ms a million rows", times.percentile(1.0), &format!("{} of the objects", times.spread(1)));
    println!("{}", table.text());
    Ok(())
}

/// What is large, and what every process has.
fn usual() -> Vec<PathBuf> {
    let mut files = rustc_libraries();
    let folder = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    files.extend(
        ["libLLVM-15.so.1", "libLLVM-14.so.1", "libpython3.11.so.1.0", "libcrypto.so.3", "libc.so.6"]
            .map(|name| Path::new(&folder).join(name)),
    );
    files.extend(["/usr/bin/node", "/usr/bin/gdb"].map(PathBuf::from));
    files.push(real_python().into());
    files.retain(|path| path.exists());
    files
}

fn measure(
    path: &Path,
    table: &mut Table,
    bytes: &mut Series,
    times: &mut Series,
) -> Result<(), Box<dyn Error>> {
    let content = std::fs::read(path)?;
    let file = object::File::parse(&*content)?;
    let section = |name| {
        let section = file.section_by_name(name)?;
        Some((section.address(), section.data().ok()?))
    };
    let code = || file.sections().filter(|section| section.kind() == SectionKind::Text);
    let start = code().map(|section| section.address()).min().ok_or("no code")?;
    let end = code().map(|section| section.address() + section.size()).max().ok_or("no code")?;
    let input = UnwindInput {
        text: start..end,
        eh_frame_hdr: section(".eh_frame_hdr"),
        eh_frame: section(".eh_frame").ok_or("no .eh_frame")?,
        main: None,
        debug_frame: None,
        aarch64: file.architecture() == object::Architecture::Aarch64,
    };
    let built = build_table(&input)?;
    if built.rows() < SMALLEST {
        return Err("only a small table".into());
    }
    let millions = built.rows() as f64 / 1e6;
    let mut build = Series::default();
    for _ in 0..BUILDS {
        let begin = Instant::now();
        let again = build_table(&input)?;
        build.push(begin.elapsed().as_secs_f64() * 1e3);
        drop(again);
    }
    let text = file.section_by_name(".text").ok_or("no .text")?;
    let places = random_places(text.address()..text.address() + text.size());
    let view = built.view();
    let ours = ns_each(&places, |place| _ = black_box(view.rule(place)));
    let theirs = by_framehop(path, start..end, &input, &places);
    let per_row = built.bytes() as f64 / built.rows() as f64;
    let per_million: Series =
        [0.0, 0.5, 1.0].into_iter().map(|part| build.percentile(part) / millions).collect();
    bytes.push(per_row);
    times.push(per_million.median());
    table.row(vec![
        name(path),
        built.rows().to_string(),
        format!("{per_row:.2}"),
        format!("{:.2}", build.median()),
        format!("{:.1}", per_million.median()),
        per_million.spread(1),
        format!("{ours:.0}"),
        format!("{theirs:.0}"),
        format!("{:.1}", theirs / ours),
    ]);
    Ok(())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn random_places(range: Range<u64>) -> Vec<u64> {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        range.start + state % (range.end - range.start).max(1)
    };
    (0..PLACES).map(|_| next()).collect()
}

/// Of the fastest round.
fn ns_each(places: &[u64], mut look_up: impl FnMut(u64)) -> f64 {
    let mut rounds = Series::default();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        places.iter().for_each(|&place| look_up(place));
        rounds.push(begin.elapsed().as_nanos() as f64 / places.len() as f64);
    }
    rounds.percentile(0.0)
}

/// framehop finds a rule and applies it in one: its cache of 509 places does not help at random
/// ones.
fn by_framehop(path: &Path, code: Range<u64>, input: &UnwindInput<'_>, places: &[u64]) -> f64 {
    let range = |(address, data): (u64, &[u8])| address..address + data.len() as u64;
    let sections = ExplicitModuleSectionInfo {
        text_svma: Some(code.clone()),
        eh_frame_svma: Some(range(input.eh_frame)),
        eh_frame: Some(input.eh_frame.1),
        eh_frame_hdr_svma: input.eh_frame_hdr.map(range),
        eh_frame_hdr: input.eh_frame_hdr.map(|(_, data)| data),
        ..ExplicitModuleSectionInfo::default()
    };
    let mut unwinder = UnwinderNative::<&[u8], MustNotAllocateDuringUnwind>::new();
    unwinder.add_module(Module::new(path.display().to_string(), code, 0, sections));
    let mut cache = CacheNative::new_in();
    let mut read = |address: u64| Ok(address + 64);
    ns_each(places, |place| {
        let mut registers = UnwindRegsNative::new(place, 0x7000_0000, 0x7000_0100);
        let frame = FrameAddress::from_instruction_pointer(place);
        _ = black_box(unwinder.unwind_frame(frame, &mut registers, &mut cache, &mut read));
    })
}
