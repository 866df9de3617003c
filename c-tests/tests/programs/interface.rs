//! The C interface.

use swipr_c_tests::directory::Directory;
use swipr_c_tests::expectation::expect;
use swipr_c_tests::host::{Agent, Host, Start};
use swipr_c_tests::program::compiled;
use swipr_c_tests::recording;

#[test]
fn the_c_interface_starts_records_reports_errors_and_stops() {
    let (_directory, program) = compiled("swipr_start_api");
    let files = Directory::new();
    let host = Host::start_with(Start {
        program: &program,
        arguments: &[files.path().as_os_str()],
        agent: Agent::Loaded,
    });
    let recording = host.record("samples=200&hz=200");
    expect(&recording, &["every sample of burner has stack burner_main;api_burn"]);
    host.end();
    let text = std::fs::read_to_string(files.path().join("whole.folded")).expect("a recording");
    assert!(recording::folded(&text).is_ok_and(|samples| !samples.is_empty()));
}

#[test]
fn an_agent_that_is_stopped_and_started_again_and_again_runs_each_time() {
    let (_directory, program) = compiled("stop_and_start");
    let host = Host::start(&program);
    let left = std::fs::read_dir(host.directory()).map_or(0, Iterator::count);
    assert_eq!(left, 0, "sockets left by lives that are over");
    host.end();
}

#[test]
fn a_preloaded_program_and_its_children_may_call_the_c_interface_at_once() {
    let (_directory, program) = compiled("preloaded_api");
    let files = Directory::new();
    let host = Host::start_with(Start {
        program: &program,
        arguments: &[files.path().as_os_str()],
        agent: Agent::Loaded,
    });
    host.end();
    for name in ["started", "child-started", "child-at-once"] {
        let path = files.path().join(format!("{name}.folded"));
        let text = std::fs::read_to_string(path).expect("a recording");
        assert!(recording::folded(&text).is_ok_and(|samples| !samples.is_empty()), "{name}");
    }
}
