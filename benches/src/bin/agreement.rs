//! Do swipr and libgcc see the same stacks in real programs?
//!
//! `cargo run --release -p swipr-benches --bin agreement -- [SAMPLES [PROGRAM...]]`

use std::error::Error;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use swipr_benches::bars::figure;
use swipr_benches::children::{Directory, Running};
use swipr_benches::comparison::{Findings, WAYS};
use swipr_benches::figures::{Series, Table};
use swipr_benches::machine;
use swipr_benches::preloaded::{self, DONE, OUTPUT, SAMPLES};
use swipr_benches::programs::{self, Program};

/// The longest that a program is watched.
const LONGEST: Duration = Duration::from_secs(150);
/// Reasons that are printed of each program.
const REASONS: usize = 12;

/// What was found in the programs.
#[derive(Default)]
struct Bars {
    equal: Series,
    complete: Series,
    first: Walks,
    warm: Walks,
}

/// Whole walks, for each of [`WAYS`].
#[derive(Default)]
struct Walks {
    /// Nanoseconds a frame of swipr's walk.
    per_frame: Series,
    /// Against swipr's walk.
    ratios: [Series; WAYS.len()],
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let samples: u64 = arguments.next().map_or(Ok(3000), |text| text.parse())?;
    let wanted: Vec<String> = arguments.collect();
    let directory = Directory::new()?;
    let library = directory.path("preloaded.so");
    // Processes of other users must be able to load it.
    std::fs::copy(preloaded::library()?, &library)?;
    println!("{}\n", machine::description());
    let mut stacks = Table::new(&[
        "program",
        "samples",
        "depth p50 / p99",
        "equal to libgcc",
        "equal as far as libgcc goes",
        "complete",
        "threads without answer",
    ]);
    let headings: Vec<&str> = ["program"].into_iter().chain(WAYS).chain(["ns a frame"]).collect();
    let (mut first, mut warm) = (Table::new(&headings), Table::new(&headings));
    let mut bars = Bars::default();
    let mut reasons = String::new();
    for mut program in programs::all(&directory)? {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == program.name) {
            continue;
        }
        let Some(findings) = watch(&mut program, &library, &directory, samples)? else {
            println!("{}: not installed, or it ended at once: left out\n", program.name);
            continue;
        };
        stacks.row(stacks_of(program.name, &findings, &mut bars));
        first.row(walks_of(program.name, &findings, "first", &mut bars.first));
        warm.row(walks_of(program.name, &findings, "warm", &mut bars.warm));
        for (reason, count) in findings.reasons().into_iter().take(REASONS) {
            reasons.push_str(&format!("{}: {count} x {reason}\n", program.name));
        }
    }
    println!("{}\nWhole walks, ns, p50 / p99 (p50 / swipr's).", stacks.text());
    println!("The first walk at a sample, each way in turn being the first:\n\n{}", first.text());
    println!("Walked again at the same sample:\n\n{}\n{reasons}", warm.text());
    bars.hand_over();
    Ok(())
}

fn stacks_of(name: &str, findings: &Findings, bars: &mut Bars) -> Vec<String> {
    let count = findings.get("samples");
    let share = |key| findings.get(key) as f64 / count.max(1) as f64 * 100.0;
    let (equal, complete) = (share("equal as far as libgcc goes"), share("complete"));
    bars.equal.push(equal);
    bars.complete.push(complete);
    vec![
        name.into(),
        count.to_string(),
        both(findings, "depth"),
        format!("{:.3} %", share("equal")),
        format!("{equal:.3} %"),
        format!("{complete:.3} %"),
        findings.get("lost").to_string(),
    ]
}

fn walks_of(name: &str, findings: &Findings, when: &str, walks: &mut Walks) -> Vec<String> {
    let median = |way: &str| findings.get(&format!("{way} {when} p50")) as f64;
    let ours = median(WAYS[0]);
    let per_frame = ours / findings.get("depth p50").max(1) as f64;
    walks.per_frame.push(per_frame);
    let mut row = vec![name.to_string()];
    for (way, ratios) in WAYS.iter().zip(&mut walks.ratios) {
        let ratio = median(way) / ours;
        let text = both(findings, &format!("{way} {when}"));
        row.push(if ratio > 0.0 { format!("{text} ({ratio:.1})") } else { text });
        if ratio > 0.0 {
            ratios.push(ratio);
        }
    }
    row.push(format!("{per_frame:.1}"));
    row
}

/// Median and 99th percentile.
fn both(findings: &Findings, key: &str) -> String {
    match (findings.get(&format!("{key} p50")), findings.get(&format!("{key} p99"))) {
        (0, _) => "–".into(),
        (median, high) => format!("{median} / {high}"),
    }
}

impl Bars {
    fn hand_over(&self) {
        let lowest = |series: &Series| series.percentile(0.0);
        figure("agreement", lowest(&self.equal), &format!("{} of the programs", self.equal.spread(3)));
        figure("complete", lowest(&self.complete), &format!("{} of the programs", self.complete.spread(3)));
        for (when, walks) in [("first", &self.first), ("warm", &self.warm)] {
            for (way, ratios) in WAYS.iter().zip(&walks.ratios) {
                let spread = format!("{} of the programs", ratios.spread(1));
                figure(&format!("walk {when} {way}"), ratios.median(), &spread);
            }
            let spread = format!("{} of the programs", walks.per_frame.spread(1));
            figure(&format!("walk {when} ns a frame"), walks.per_frame.median(), &spread);
        }
    }
}

/// Runs a program until there are enough samples, then ends it.
fn watch(
    program: &mut Program,
    library: &Path,
    directory: &Directory,
    samples: u64,
) -> std::io::Result<Option<Findings>> {
    let folder = directory.path("findings");
    std::fs::create_dir_all(&folder)?;
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777))?;
    let output = folder.join(program.name.replace([' ', ','], "-"));
    program.command.env("LD_PRELOAD", library).env(OUTPUT, &output).env(SAMPLES, samples.to_string());
    let Ok(mut running) = Running::start(&mut program.command) else { return Ok(None) };
    let _load = program.start_load()?;
    Ok(wait(&mut running, &output))
}

/// The findings when the run is over, or the last ones when the program ended or time is up.
fn wait(running: &mut Running, output: &Path) -> Option<Findings> {
    let started = Instant::now();
    loop {
        let ended = !matches!(running.child().try_wait(), Ok(None)) || started.elapsed() > LONGEST;
        let findings = std::fs::read_to_string(output).ok().map(|text| Findings::parse(&text));
        if ended || findings.as_ref().is_some_and(|findings| findings.get(DONE) > 0) {
            return findings;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
