//! The library that `agreement` loads into a real program: it interrupts the program's threads,
//! lets swipr's handler and libgcc walk the same stack in the same handler, and writes what it
//! found to a file.
//!
//! It starts only where [`OUTPUT`] is set. (Where [`PPROF`] is, it is pprof-rs instead, as a
//! program would have it.) It is a test rig, not the agent: it may take locks in a handler (libgcc
//! and libunwind do), interrupts blocked threads too, and its waits are bounded.

mod interrupt;
mod pprof;

use crate::comparison::{Difference, Findings, WAYS, compare};
use crate::figures::Series;
use crate::ticks::Scale;
use interrupt::{Answer, Interrupter};
pub use pprof::{PPROF, PPROF_HZ};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use swipr::mappings::Tables;
use swipr_os::process;
use swipr_os::threads::{self, TaskDirectory};
use swipr_unwind::slot::StackBounds;
use swipr_unwind::walk::Stop;

/// Environment variable: the file to write.
pub const OUTPUT: &str = "SWIPR_BENCH_OUTPUT";
/// Environment variable: how many samples are enough.
pub const SAMPLES: &str = "SWIPR_BENCH_SAMPLES";
/// So many threads fail to answer before the run is given up.
const MAX_LOST: u64 = 20;
/// The file is written whenever so many samples were added.
const WRITTEN_EVERY: u64 = 250;
/// A thread that used less CPU time between two sweeps, in nanoseconds, is taken for blocked.
const BUSY_NS: u64 = 100_000;
/// No run is longer.
const LONGEST: Duration = Duration::from_secs(120);
/// The figure that says that the run is over.
pub const DONE: &str = "done";

/// The shared library of this very crate: cargo puts it beside the program, or one folder below.
pub fn library() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let places =
        ["libswipr_benches.so", "deps/libswipr_benches.so"].map(|place| program.with_file_name(place));
    let newest =
        places.into_iter().filter_map(|place| Some((place.metadata().ok()?.modified().ok()?, place))).max();
    let (_, path) =
        newest.ok_or_else(|| io::Error::other("libswipr_benches.so is not beside this program"))?;
    Ok(path)
}

#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
static ON_LOAD: extern "C" fn() = on_load;

extern "C" fn on_load() {
    pprof::start_if_asked();
    let Some(output) = std::env::var_os(OUTPUT) else { return };
    let samples = std::env::var(SAMPLES).ok().and_then(|text| text.parse().ok()).unwrap_or(1000);
    // Programs that this one starts are not measured.
    // SAFETY: the program's other threads do not exist yet.
    unsafe { std::env::remove_var(OUTPUT) };
    let start = || std::thread::Builder::new().spawn(move || run(PathBuf::from(output), samples));
    let _ = swipr_os::signals::with_signals_blocked(start);
}

struct Run {
    tables: Tables,
    findings: Findings,
    first: [Series; WAYS.len()],
    warm: [Series; WAYS.len()],
    depth: Series,
    scale: Scale,
}

fn run(output: PathBuf, samples: u64) {
    let scale = Scale::measured();
    let mut tables = Tables::new(-1);
    tables.refresh();
    let (Ok(interrupter), Ok(directory)) = (Interrupter::new(), TaskDirectory::open()) else { return };
    let mut run = Run {
        tables,
        findings: Findings::default(),
        first: Default::default(),
        warm: Default::default(),
        depth: Series::default(),
        scale,
    };
    let mut bounds: HashMap<u32, StackBounds> = HashMap::new();
    // Threads that did not answer: most block all signals.
    let mut silent: HashSet<u32> = HashSet::from([process::tid()]);
    let (started, mut written, mut objects) = (Instant::now(), 0, 0);
    while run.findings.get("samples") < samples
        && run.findings.get("lost") < MAX_LOST
        && started.elapsed() < LONGEST
    {
        // All handlers have answered (or the run is given up), so none holds the old tables.
        run.tables.refresh();
        if run.tables.figures().objects != objects {
            objects = run.tables.figures().objects;
            interrupter.objects_changed();
        }
        let mut tids = vec![];
        let _ = directory.list(&mut tids);
        // Blocked threads stand where they stood: they would only add the same stack again and
        // again.
        let before: Vec<Option<u64>> = tids.iter().map(|&tid| threads::cpu_ns(tid)).collect();
        std::thread::sleep(Duration::from_micros(700));
        let ran = |tid, before: Option<u64>| {
            before.zip(threads::cpu_ns(tid)).is_some_and(|(before, now)| now.saturating_sub(before) > BUSY_NS)
        };
        let tids = tids
            .into_iter()
            .zip(before)
            .filter(|&(tid, before)| !silent.contains(&tid) && ran(tid, before))
            .map(|(tid, _)| tid);
        let tids: Vec<u32> = tids.collect();
        for tid in tids {
            let stack = bounds.entry(tid).or_default();
            match interrupter.take(tid, *stack) {
                // The first answer of a thread only shows where its stack is.
                Some(answer) if !stack.contains(answer.sp) => {
                    run.tables.refresh_maps();
                    let bounds = run.tables.stack_of_thread(answer.sp, tid, answer.thread_pointer);
                    *stack = bounds.unwrap_or_default();
                    run.findings.count("stack not known yet");
                }
                Some(answer) => run.add(&answer),
                None => {
                    silent.insert(tid);
                    run.findings.count("lost");
                }
            }
        }
        if run.findings.get("samples") >= written + WRITTEN_EVERY {
            written = run.findings.get("samples");
            run.write(&output);
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    run.findings.count(DONE);
    run.write(&output);
}

impl Run {
    fn add(&mut self, answer: &Answer) {
        self.findings.count("samples");
        self.depth.push(answer.total as f64);
        let ticks = answer.first.iter().chain(&answer.warm);
        for (series, &ticks) in self.first.iter_mut().chain(&mut self.warm).zip(ticks) {
            if ticks != 0 {
                series.push(self.scale.ns(0, ticks));
            }
        }
        if answer.stop == Stop::Root {
            self.findings.count("complete");
        } else {
            let last = self.place(answer.frames.last().copied());
            self.findings.reason(format!("incomplete: {} after {last}", answer.stop.text()));
        }
        let difference = compare(&answer.frames, answer.total, &answer.libgcc);
        let at = |n: usize| self.place(answer.libgcc.get(n).copied());
        let reason = match difference {
            Difference::None => {
                self.findings.count("equal");
                self.findings.count("equal as far as libgcc goes");
                return;
            }
            Difference::At(n) => {
                let ours = self.place(answer.frames.get(n).copied());
                format!("different caller of {}: swipr {ours}, libgcc {}", at(n.saturating_sub(1)), at(n))
            }
            Difference::OursEnds(n) => {
                format!("swipr ends ({}) at {}", answer.stop.text(), at(n.saturating_sub(1)))
            }
            Difference::OtherEnds(n) => {
                let last = at(n.saturating_sub(1));
                self.findings.count("equal as far as libgcc goes");
                format!("libgcc ends at {last}")
            }
        };
        self.findings.reason(reason);
    }

    /// Object and offset of an address.
    fn place(&self, address: Option<u64>) -> String {
        let address = address.unwrap_or(0) & !swipr_unwind::frames::EXACT;
        match self.tables.mappings().find(address) {
            Some(code) => {
                let name = Path::new(&code.module.path).file_name().unwrap_or_default().to_string_lossy();
                let offset =
                    address.wrapping_sub(code.symbols.as_ref().map_or(code.low, |symbols| symbols.bias));
                format!("{name}+{offset:#x}")
            }
            None => format!("{address:#x}"),
        }
    }

    fn write(&mut self, output: &Path) {
        for (name, (first, warm)) in WAYS.iter().zip(self.first.iter().zip(&self.warm)) {
            self.findings.set_series(&format!("{name} first"), first);
            self.findings.set_series(&format!("{name} warm"), warm);
        }
        self.findings.set_series("depth", &self.depth);
        self.findings.set("rows", self.tables.figures().rows);
        // A reader always finds a whole file.
        let aside = output.with_extension("part");
        if std::fs::write(&aside, self.findings.text()).is_ok() {
            let _ = std::fs::rename(&aside, output);
        }
    }
}
