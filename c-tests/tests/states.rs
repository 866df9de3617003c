//! What samples say of a thread's state is what the kernel counts.

use serde_json::Value;
use std::process::Command;
use swipr_c_tests::agent;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::Host;
use swipr_c_tests::http;
use swipr_c_tests::program::Program;

/// Regression: the agent woke up on the CPU of the thread that it observed, each time, and every
/// sample said `[waiting for a CPU]` of a thread that had waited for 2 % of the time.
#[test]
fn a_busy_thread_that_shares_its_cpu_with_the_agent_waits_as_long_as_the_kernel_says() {
    let directory = Directory::new();
    let program = Program::compile("no_frame_pointer", directory.path());
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", "0"]).arg(&program.executable).env("LD_PRELOAD", agent::library());
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    let target = "/profile?seconds=2&mode=wall&threads=burner&format=raw";
    let answer = http::get(&host.socket(), target).and_then(http::Answer::read_all).expect("a recording");
    let text = String::from_utf8(answer.body).expect("text");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let sum = |state: Option<&str>| {
        let samples = lines.iter().filter(|line| line["type"] == "sample");
        let wanted = samples.filter(|line| state.is_none_or(|state| line["state"] == state));
        wanted.map(|line| line["weight_ns"].as_u64().expect("a weight")).sum::<u64>()
    };
    let (all, waiting) = (sum(None), sum(Some("runnable")));
    let counted = lines.last().and_then(|end| end["cpu_wait_ns"].as_u64()).expect("the kernel's count");
    assert!(all > 1_000_000_000, "{text}");
    assert!(waiting <= counted + all / 4, "{waiting} ns of {all} in samples, {counted} by the kernel");
    host.end();
}
