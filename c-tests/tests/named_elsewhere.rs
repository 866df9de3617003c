//! A recording that leaves names for later, named by another process.

use swipr_c_tests::directory::Directory;
use swipr_c_tests::expectation::check;
use swipr_c_tests::host::Host;
use swipr_c_tests::http;
use swipr_c_tests::program::Program;
use swipr_c_tests::recording::Recording;
use swipr_formats::{Options, Selection, find};
use swipr_offline::{SearchPath, read, symbolize};
use swipr_symbols::symbolizer::Budget;

#[test]
fn a_recording_without_names_gets_the_same_names_elsewhere() {
    let directory = Directory::new();
    let program = Program::compile("signal_handler_stack", directory.path());
    let host = Host::start(&program);
    let answer = http::get(&host.socket(), "/profile?samples=500&hz=500&format=raw&symbolize=lazy");
    let raw = answer.and_then(http::Answer::read_all).expect("a recording").body;
    let raw = String::from_utf8(raw).expect("text");
    assert!(!raw.contains("\"name\":\"main\",\"offset\""), "names were looked up");
    host.end();
    let mut recording = read(&raw).expect("a recording");
    let named = symbolize(&mut recording, &SearchPath::default(), Budget::default());
    assert!(named.missing.iter().all(|module| module.path == "[vdso]"), "{:?}", named.missing);
    let perf = Selection { format: find("perf").expect("a format"), options: Options::default() };
    let text = String::from_utf8(recording.write(&perf)).expect("text");
    let parsed = Recording::parse(&text, "").expect("perf text");
    let lines = program.steps[0].expectations.iter().filter(|line| line.contains(" stack "));
    let failures: Vec<_> = lines.filter_map(|line| check(line, &parsed).err()).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
