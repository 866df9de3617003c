//! JIT code of real runtimes: names and lines from what the runtimes write for profilers and
//! debuggers. A runtime that is not installed is reported by a line, `not run: …`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use swipr_c_tests::agent::library;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::expectation::has_stack;
use swipr_c_tests::host::Host;
use swipr_c_tests::http;
use swipr_c_tests::recording::{Recording, Sample};

/// CPU samples of a program that computes in one function.
const QUERY: &str = "samples=300&hz=200&mode=cpu";

/// A runtime at work. What it leaves in the common temporary directory is removed.
struct Runtime {
    host: Host,
    _directory: Directory,
}

impl Runtime {
    /// `None`: it is not installed, which a line reports.
    fn start(program: &str, arguments: &[&str]) -> Option<Runtime> {
        Runtime::start_in(Directory::new(), program, arguments)
    }

    fn start_in(directory: Directory, program: &str, arguments: &[&str]) -> Option<Runtime> {
        if !is_installed(program) {
            return None;
        }
        let mut command = Command::new(program);
        command.args(arguments).current_dir(directory.path()).env("LD_PRELOAD", library());
        // Here they have names by what they write for profilers.
        command.env("SWIPR_RUNTIMES", "off");
        let mut host = Host::spawn(command);
        host.wait_for("ready");
        Some(Runtime { host, _directory: directory })
    }

    fn record(&self) -> Recording {
        self.host.record(QUERY)
    }

    /// The same as JSON lines, which have the lines of the source.
    fn record_raw(&self) -> String {
        let answer = http::get(&self.host.socket(), &format!("/profile?{QUERY}&format=raw"));
        let answer = answer.and_then(http::Answer::read_all).expect("a recording");
        String::from_utf8_lossy(&answer.body).into_owned()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let pid = self.host.pid();
        for left in [format!("/tmp/perf-{pid}.map"), format!("/tmp/jit-{pid}.dump")] {
            let _ = fs::remove_file(left);
        }
    }
}

fn is_installed(program: &str) -> bool {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let is_there = program.starts_with('/') && Path::new(program).is_file()
        || std::env::split_paths(&directories).any(|directory| directory.join(program).is_file());
    if !is_there {
        println!("not run: {program} is not installed");
    }
    is_there
}

fn script(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("runtimes").join(name).to_string_lossy().into_owned()
}

fn is_complete(sample: &Sample) -> bool {
    !sample.frames.iter().any(|frame| frame.name.starts_with("[truncated"))
}

/// Of the samples for which `is_of` holds, the share for which `holds` does.
fn share(recording: &Recording, holds: impl Fn(&Sample) -> bool) -> f64 {
    let all = recording.samples.iter().map(|sample| sample.weight).sum::<u64>();
    let with =
        recording.samples.iter().filter(|sample| holds(sample)).map(|sample| sample.weight).sum::<u64>();
    assert!(all >= 20, "only {all} samples");
    with as f64 / all as f64
}

/// `holds` must be true of at least this share of the samples; a failure prints the others.
fn expect_share(recording: &Recording, least: f64, what: &str, holds: impl Fn(&Sample) -> bool) {
    let found = share(recording, &holds);
    let others = recording.samples.iter().filter(|sample| !holds(sample));
    let others: Vec<String> = others.map(|sample| format!("{} {}", sample.chain(), sample.weight)).collect();
    assert!(found >= least, "{what}: {found}; the others:\n{}", others.join("\n"));
}

fn expect(recording: &Recording, stack: &str, least: f64) {
    expect_share(recording, least, stack, |sample| has_stack(sample, stack));
}

fn expect_complete(recording: &Recording) {
    expect_share(recording, 0.99, "complete", is_complete);
}

/// The lines of `file` that functions whose name begins like that have, one for each frame.
fn lines_of(raw: &str, name: &str, file: &str) -> Vec<u32> {
    let begin = format!("\"name\":\"{name}");
    let starts = raw.match_indices(&begin).map(|(at, _)| at);
    let frame = |at: usize| raw[at..].split('}').next();
    let line = |frame: &str| {
        let (_, rest) = frame.split_once(&format!("\"file\":\"{file}\",\"line\":"))?;
        rest.parse().ok()
    };
    starts.filter_map(frame).filter_map(line).collect()
}

#[test]
fn functions_of_node_have_names_from_its_perf_map() {
    let Some(node) = Runtime::start("node", &["--perf-basic-prof", &script("hot.js")]) else { return };
    let recording = node.record();
    expect(&recording, "node::Start;Builtins_JSEntry;JS:*hot*", 0.8);
    expect_complete(&recording);
}

#[test]
fn functions_of_node_have_names_and_lines_from_its_jitdump_file() {
    let file = script("hot.js");
    let Some(node) = Runtime::start("node", &["--perf-prof", &file]) else { return };
    let recording = node.record();
    expect(&recording, "Builtins_JSEntry;JS:*hot*", 0.8);
    expect_complete(&recording);
    let lines = lines_of(&node.record_raw(), "JS:*hot", &file);
    assert!(!lines.is_empty() && lines.iter().all(|line| (1..=7).contains(line)), "{lines:?}");
}

const PHP: [&str; 4] = [
    "-dopcache.enable_cli=1",
    "-dopcache.jit_buffer_size=64M",
    "-dopcache.jit=tracing",
    "-dopcache.enable=1",
];

fn php(jit_debug: &str) -> Option<Runtime> {
    let php = Runtime::start("php", &[&PHP[..], &[jit_debug, &script("hot.php")]].concat())?;
    let recording = php.record();
    if share(&recording, |sample| has_stack(sample, "zend_execute;execute_ex")) > 0.5 {
        println!("not run: this php has no compiler");
        return None;
    }
    Some(php)
}

#[test]
fn traces_of_php_have_names_from_its_perf_map_and_are_marked_where_their_callers_are_not_known() {
    let Some(php) = php("-dopcache.jit_debug=16") else { return };
    let recording = php.record();
    expect(&recording, "TRACE-*hot*", 0.9);
    assert!(share(&recording, is_complete) < 0.5);
}

#[test]
fn traces_of_php_have_callers_by_what_it_tells_debuggers() {
    let Some(php) = php("-dopcache.jit_debug=256") else { return };
    let recording = php.record();
    expect(&recording, "__libc_start_main;zend_execute;TRACE-*hot*", 0.9);
    expect_complete(&recording);
}

#[test]
fn functions_of_erlang_have_names_from_its_perf_map() {
    let directory = Directory::new();
    let Some(true) = is_installed("erl").then(|| is_installed("erlc")) else { return };
    let compiled = Command::new("erlc").arg("-o").arg(directory.path()).arg(script("hot.erl")).status();
    assert!(compiled.is_ok_and(|status| status.success()), "erlc");
    let arguments = ["+JPperf", "true", "-noshell", "-pa", ".", "-run", "hot", "main"];
    let Some(erlang) = Runtime::start_in(directory, "erl", &arguments) else { return };
    // Of 2,500 samples one is of a scheduler between two processes, whose stack cannot be walked:
    // there must be so many that it does not count.
    let recording = erlang.host.record("samples=1200&hz=200&mode=cpu");
    // Its other schedulers spin for a while in search of work.
    expect(&recording, "hot:main/0;hot:hot/2", 0.4);
    expect_complete(&recording);
}

/// Regression: two thirds of the samples of Go programs with C inside were marked as truncated,
/// behind callers that never existed. Later C had no callers.
#[test]
fn stacks_of_go_go_on_where_their_threads_change_stacks() {
    let directory = Directory::new();
    if !["go", "gcc"].into_iter().all(is_installed) {
        return;
    }
    let program = directory.path().join("hot");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(script("hot.go")).env("GOFLAGS", "");
    let built = build.env("GOCACHE", directory.path().join("cache")).status();
    assert!(built.is_ok_and(|status| status.success()), "go build");
    let Some(go) = Runtime::start_in(directory, &program.to_string_lossy(), &[]) else { return };
    let recording = go.record();
    expect(&recording, "runtime.goexit*;main.main.func*;main.hot", 0.1);
    expect(&recording, "runtime.asmcgocall*;_cgo_*_Cfunc_in_c", 0.1);
    let in_c = |sample: &Sample| sample.chain().contains("_Cfunc_in_c");
    let has_callers = |sample: &Sample| in_c(sample) && sample.chain().contains("main.main;");
    assert_eq!(share(&recording, has_callers), share(&recording, in_c));
    expect_complete(&recording);
}

#[test]
fn functions_of_java_have_names_from_its_perf_map() {
    let directory = Directory::new();
    if !["java", "javac", "jcmd"].into_iter().all(is_installed) {
        return;
    }
    let compiled = Command::new("javac").arg("-d").arg(directory.path()).arg(script("Hot.java")).status();
    assert!(compiled.is_ok_and(|status| status.success()), "javac");
    let arguments = ["-XX:+PreserveFramePointer", "-cp", ".", "Hot"];
    let Some(java) = Runtime::start_in(directory, "java", &arguments) else { return };
    let asked = Command::new("jcmd").args([&java.host.pid().to_string(), "Compiler.perfmap"]).output();
    if !asked.is_ok_and(|output| output.status.success()) {
        println!("not run: this java writes no perf map");
        return;
    }
    let recording = java.record();
    expect(&recording, "start_thread;JavaMain;Interpreter;int*Hot.hot", 0.8);
    expect_complete(&recording);
}

#[test]
fn code_of_luajit_is_marked_where_its_callers_are_not_known() {
    let Some(lua) = Runtime::start("luajit", &[&script("hot.lua")]) else { return };
    let recording = lua.record();
    assert!(share(&recording, |sample| !is_complete(sample)) > 0.9);
    assert!(
        share(&recording, |sample| sample.frames.iter().filter(|frame| !frame.is_note()).count() > 4) < 0.1
    );
}

#[test]
fn functions_of_python_have_names_and_callers_from_its_jitdump_file() {
    let Some(python) = python("-Xperf_jit", 13) else { return };
    // The first recording finds the file.
    python.record();
    let recording = python.record();
    expect(
        &recording,
        "Py_RunMain;py::<module>:*hot.py;py::hot:*hot.py;py::leaf:*hot.py;_PyEval_EvalFrameDefault",
        0.9,
    );
    expect_complete(&recording);
}

#[test]
fn functions_of_python_have_names_from_its_perf_map() {
    let Some(python) = python("-Xperf", 12) else { return };
    expect(&python.record(), "py::leaf:*hot.py;_PyEval_EvalFrameDefault", 0.9);
}

/// The first Python of at least this minor version, in the search path or beside one of pyenv's.
fn python(option: &str, least: u32) -> Option<Runtime> {
    let versions = (least..20).map(|minor| format!("python3.{minor}"));
    let of_pyenv = std::env::var("HOME").map(|home| Path::new(&home).join(".pyenv/versions")).ok();
    let of_pyenv = of_pyenv.and_then(|versions| fs::read_dir(versions).ok()).into_iter().flatten().flatten();
    let of_pyenv: Vec<PathBuf> = of_pyenv.map(|version| version.path().join("bin")).collect();
    let found = versions.into_iter().find_map(|name| {
        let beside = of_pyenv.iter().map(|directory| directory.join(&name)).find(|path| path.is_file());
        beside.map(|path| path.to_string_lossy().into_owned()).or_else(|| is_installed(&name).then_some(name))
    })?;
    Runtime::start(&found, &[option, &script("hot.py")])
}
