//! Do swipr and libgcc see the same stacks in real programs?
//!
//! `cargo run --release -p swipr-benches --bin agreement -- [SAMPLES [PROGRAM...]]`

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use swipr_benches::comparison::Findings;
use swipr_benches::figures::Table;
use swipr_benches::machine;
use swipr_benches::preloaded::{DONE, OUTPUT, SAMPLES};

/// The longest that a program is watched.
const LONGEST: Duration = Duration::from_secs(150);
/// Reasons that are printed of each program.
const REASONS: usize = 12;

const PYTHON: &str = r#"
import json, re
def deep(n):
    return deep(n - 1) + 1 if n else len(sorted(range(200), key=lambda x: -x))
class Node:
    def __init__(self, n): self.next = Node(n - 1) if n else None
    def __len__(self): return 1 + (len(self.next) if self.next else 0)
text = json.dumps({"k%d" % i: [i, str(i), {"x": i / 3}] for i in range(300)})
pattern = re.compile(r"(\w+)\D+(\d+(?:\.\d+)?)")
while True:
    for n in range(20, 400, 40):
        deep(n); len(Node(n))
    json.dumps(json.loads(text), indent=1)
    pattern.sub(lambda m: m.group(2) + m.group(1), text)
"#;

const GDB: &str = r#"
import gdb
while True:
    gdb.execute("file /usr/bin/python3")
    gdb.execute("file /usr/bin/gdb")
    for word in ("main", "print", "py_"):
        gdb.execute("info functions " + word, to_string=True)
    gdb.execute("info types a", to_string=True)
    for i in range(300):
        gdb.parse_and_eval("%d * 3 + (1 << 4)" % i)
"#;

const PERL: &str = r#"
sub deep { my $n = shift; $n ? 1 + deep($n - 1) : length(join ",", sort { $b <=> $a } 1 .. 200) }
while (1) {
    deep($_) for 5, 50, 90;
    my %h; $h{$_ % 997} .= $_ for 1 .. 5000;
    my $t = join " ", %h; $t =~ s/(\d+) (\d+)/$2-$1/g; my @w = split /-/, $t;
}
"#;

const SQL: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) \
    SELECT count(*) FROM c WHERE printf('%d', x * 7) LIKE '%77%' AND abs(x % 1000) IN (SELECT x FROM c LIMIT 50);";

const NODE: &str = r#"
function deep(n) { return n ? deep(n - 1) + 1 : JSON.stringify([...Array(200).keys()].sort()).length }
while (true) {
  for (let n = 10; n < 200; n += 10) deep(n);
  JSON.parse(JSON.stringify(Array.from({length: 300}, (_, i) => ({k: 'v' + i})))).map(o => o.k.replace(/v(\d)/, '$1'));
  require('zlib').gzipSync(Buffer.alloc(20000, 'abc')); require('crypto').createHash('sha256').update('x'.repeat(5000)).digest();
}
"#;

/// A program that never ends by itself.
struct Program {
    name: &'static str,
    command: Command,
}

fn programs() -> Vec<Program> {
    let program = |name, path: &str, arguments: &[&str]| {
        let mut command = Command::new(path);
        command.args(arguments);
        Program { name, command }
    };
    vec![
        program("python3", &real_python(), &["-c", PYTHON]),
        program("gdb", "gdb", &["-nx", "-batch", "-ex", &format!("python exec({GDB:?})")]),
        program("perl", "perl", &["-e", PERL]),
        program("sqlite3", "sqlite3", &[":memory:", SQL]),
        program("node", "node", &["-e", NODE]),
    ]
}

/// `python3` may be a script that starts another one.
fn real_python() -> String {
    let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let path = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    path.ok().filter(|path| !path.is_empty()).unwrap_or("python3".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let samples: u64 = arguments.next().map_or(Ok(3000), |text| text.parse())?;
    let wanted: Vec<String> = arguments.collect();
    let library = library()?;
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
    let mut times = Table::new(&[
        "program",
        "swipr, first touch",
        "swipr, warm",
        "libgcc",
        "`unw_backtrace`",
        "`unw_step`",
        "ns a frame, warm",
    ]);
    let mut reasons = String::new();
    for mut program in programs() {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == program.name) {
            continue;
        }
        let Some(findings) = watch(&mut program, &library, samples)? else {
            println!("{}: not installed, or it ended at once: left out\n", program.name);
            continue;
        };
        let count = findings.get("samples");
        let share = |key| format!("{:.3} %", findings.get(key) as f64 / count.max(1) as f64 * 100.0);
        let both =
            |key: &str| match (findings.get(&format!("{key} p50")), findings.get(&format!("{key} p99"))) {
                (0, _) => "–".into(),
                (median, high) => format!("{median} / {high}"),
            };
        stacks.row(vec![
            program.name.into(),
            count.to_string(),
            both("depth"),
            share("equal"),
            share("equal as far as libgcc goes"),
            share("complete"),
            findings.get("lost").to_string(),
        ]);
        let both =
            |key: &str| match (findings.get(&format!("{key} p50")), findings.get(&format!("{key} p99"))) {
                (0, _) => "–".into(),
                (median, high) => format!("{median} / {high}"),
            };
        let per_frame = findings.get("swipr warm p50") as f64 / findings.get("depth p50").max(1) as f64;
        let mut row = vec![program.name.to_string()];
        row.extend(swipr_benches::comparison::TIMES.iter().map(|key| both(key)));
        row.push(format!("{per_frame:.1}"));
        times.row(row);
        for (reason, count) in findings.reasons().into_iter().take(REASONS) {
            reasons.push_str(&format!("{}: {count} x {reason}\n", program.name));
        }
    }
    println!("{}\nWhole walks, ns, p50 / p99:\n\n{}\n{reasons}", stacks.text(), times.text());
    Ok(())
}

/// The shared library of this very crate: cargo puts it beside the program, or one folder below.
fn library() -> Result<PathBuf, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let places =
        ["libswipr_benches.so", "deps/libswipr_benches.so"].map(|place| program.with_file_name(place));
    let newest =
        places.into_iter().filter_map(|place| Some((place.metadata().ok()?.modified().ok()?, place))).max();
    Ok(newest.ok_or("libswipr_benches.so is not beside this program")?.1)
}

/// Runs a program until there are enough samples, then ends it.
fn watch(program: &mut Program, library: &Path, samples: u64) -> std::io::Result<Option<Findings>> {
    let output: PathBuf =
        std::env::temp_dir().join(format!("swipr-agreement-{}-{}", std::process::id(), program.name));
    let command = &mut program.command;
    command.env("LD_PRELOAD", library).env(OUTPUT, &output).env(SAMPLES, samples.to_string());
    command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
    let Ok(mut child) = command.spawn() else { return Ok(None) };
    let findings = wait(&mut child, &output);
    let _ = child.kill();
    let _ = child.wait();
    let _ = std::fs::remove_file(&output);
    Ok(findings)
}

/// The findings when the run is over, or the last ones when the program ended or time is up.
fn wait(child: &mut Child, output: &Path) -> Option<Findings> {
    let started = Instant::now();
    loop {
        let ended = !matches!(child.try_wait(), Ok(None)) || started.elapsed() > LONGEST;
        let findings = std::fs::read_to_string(output).ok().map(|text| Findings::parse(&text));
        if ended || findings.as_ref().is_some_and(|findings| findings.get(DONE) > 0) {
            return findings;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
