//! The examples in `examples-c/`: they build with their Makefile and do what their first
//! lines say.

use std::process::Command;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::examples::built;
use swipr_c_tests::expectation::check;
use swipr_c_tests::host::{Host, record};
use swipr_c_tests::recording::{folded, perf};
use swipr_c_tests::{agent, program};

#[test]
fn start_listens_and_is_profiled() {
    let (_directory, executable) = built("start");
    let mut host = Host::spawn(Command::new(executable));
    let socket = host.socket();
    let hint = host.wait_for("  curl --unix-socket ");
    assert!(hint.starts_with(&*socket.to_string_lossy()), "{hint}");
    let recording = host.record("samples=200&hz=200");
    let wanted = "share of start with stack worker;count_primes >= 0.4";
    assert_eq!(check(wanted, &recording), Ok(()));
    host.tell_end();
    assert!(host.wait().success());
    assert!(!socket.exists());
}

/// An example that profiles a part of itself into a file, and has these functions on a stack in it.
fn writes_a_stack(name: &str, functions: &[&str]) {
    let (directory, executable) = built(name);
    let file = directory.path().join("part.folded");
    let mut command = Command::new(executable);
    command.arg(&file);
    let mut host = Host::spawn(command);
    host.wait_for(&file.to_string_lossy());
    assert!(host.wait().success());
    let text = std::fs::read_to_string(&file).expect("the recording");
    let chains: Vec<_> = folded(&text).expect("folded text").iter().map(|sample| sample.chain()).collect();
    let has_all = |chain: &String| functions.iter().all(|function| chain.contains(function));
    assert!(chains.iter().any(has_all), "{text}");
}

#[test]
fn start_stop_profiles_one_part_of_itself_into_a_file() {
    writes_a_stack("start_stop", &["main", "compare"]);
}

#[test]
fn scope_profiles_a_scope_of_a_cpp_program_into_a_file() {
    writes_a_stack("scope", &["main", "work::simulate", "work::sorted_median"]);
}

#[test]
fn mini_demo_runs_without_the_agent() {
    let (_directory, executable) = built("mini_demo");
    let mut command = Command::new(executable);
    command.args(["--iterations", "2", "--threads", "2"]);
    let mut host = Host::spawn(command);
    assert!(host.wait().success());
}

#[test]
fn mini_demo_refuses_what_it_does_not_understand() {
    let (_directory, executable) = built("mini_demo");
    for wrong in [&["--burn"][..], &["--threads"], &["--iterations", "x"]] {
        let result = Command::new(&executable).args(wrong).output();
        let result = result.expect("mini_demo can be started");
        assert_eq!(result.status.code(), Some(2), "{wrong:?}");
        assert!(!result.stderr.is_empty());
    }
}

#[test]
fn mini_demo_preloaded_shows_what_its_threads_do() {
    let (_directory, executable) = built("mini_demo");
    let mut command = Command::new(executable);
    command.args(["--threads", "2", "--iterations", "1000000"]).env("LD_PRELOAD", agent::library());
    let host = Host::spawn(command);
    let recording = record(&host.socket(), "samples=200&hz=200");
    for line in [
        "thread burn-cpu has stack burn_cpu;burn_cpu_once;integrate",
        "thread burn-cpu has stack burn_cpu;burn_cpu_once;checksum",
        "thread blocking has stack blocking;wait_for_slow_answer",
        "thread blocking has stack blocking;wait_for_lock_holder",
        "thread array-appends has stack array_appends;fill_array",
        "every sample of * is complete",
    ] {
        assert_eq!(check(line, &recording), Ok(()));
    }
}

#[test]
fn mini_demo_starts_the_server_and_records_itself() {
    let (directory, executable) = built("mini_demo");
    let file = directory.path().join("itself.perf");
    let library = agent::library();
    let mut command = Command::new(executable);
    command
        .args(["--burn-cpu", "--iterations", "100", "--sampling-server"])
        .arg("--output")
        .arg(&file)
        .env("LD_LIBRARY_PATH", library.parent().expect("a folder"));
    let mut host = Host::spawn(command);
    host.wait_for("curl --unix-socket ");
    host.wait_for(&file.to_string_lossy());
    assert!(host.wait().success());
    let text = std::fs::read_to_string(&file).expect("the recording");
    let samples = perf(&text).expect("perf text");
    let of_thread = samples.iter().filter(|sample| sample.thread == "burn-cpu");
    assert!(of_thread.map(|sample| sample.chain()).any(|chain| chain.contains("burn_cpu_once")));
}

#[test]
fn the_header_is_plain_c99() {
    let directory = Directory::new();
    let source = directory.path().join("header.c");
    std::fs::write(&source, "#include <swipr.h>\nint main(void) { return SWIPR_OK; }\n").expect("a C file");
    let flags: Vec<String> = ["-std=c99", "-pedantic", "-fsyntax-only"]
        .map(str::to_string)
        .into_iter()
        .chain(program::agent_flags())
        .collect();
    program::compile(&source, &directory.path().join("header"), &flags, &[]);
}

const OPEN_AT_EXIT: &str = "
#include <swipr.h>
#include <time.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void burn(void) { for (int i = 0; i < 10000; i++) sink++; }
int main(int count, char **arguments)
{
    uint64_t recording;
    if (count != 2 || swipr_start(0) || swipr_recording_begin(arguments[1], \"folded\", 1000, &recording))
        return 1;
    while (clock() < CLOCKS_PER_SEC / 4)
        burn();
    return 0;
}
";

/// Regression: there was none in 21 of 27 runs.
#[test]
fn a_recording_that_is_open_when_the_program_ends_leaves_its_file() {
    let directory = Directory::new();
    let [source, executable, file] =
        ["open.c", "open", "open.folded"].map(|name| directory.path().join(name));
    std::fs::write(&source, OPEN_AT_EXIT).expect("a C file");
    program::compile(&source, &executable, &program::agent_flags(), &["-lswipr".to_owned()]);
    for _ in 0..5 {
        let _ = std::fs::remove_file(&file);
        assert!(Command::new(&executable).arg(&file).status().is_ok_and(|status| status.success()));
        let text = std::fs::read_to_string(&file).expect("the recording");
        assert!(text.contains("main;burn"), "{text}");
    }
}
