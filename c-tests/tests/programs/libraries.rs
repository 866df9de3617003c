//! Shared objects that come, go and change while a program is recorded, and debug files.

use crate::read_until_stack;
use std::process::Command;
use swipr_c_tests::agent::library;
use swipr_c_tests::expectation::expect;
use swipr_c_tests::host::{self, Agent, Host, Start};
use swipr_c_tests::program::{compile, compiled, sources};

#[test]
fn a_library_loaded_while_recording_has_names() {
    let (_directory, program) = compiled("dlopen_late");
    let mut host = Host::start(&program);
    let mut answer = host.begin_recording("seconds=60&hz=100&format=perf");
    host.tell("open");
    host.wait_for("open done");
    read_until_stack(&mut answer, "caller_main;late_function");
    host.tell("close");
    host.wait_for("close done");
    drop(answer);
    host.end();
}

#[test]
fn libraries_that_come_and_go_while_recording_are_no_danger() {
    let (_directory, program) = compiled("dlopen_late");
    let mut host = Host::start(&program);
    host.while_recorded("seconds=60&hz=1000&format=perf", |host| {
        host.tell("cycle");
        host.wait_for("cycle done");
    });
    let after = host.record("samples=500&hz=500");
    expect(&after, &["every sample of steady has stack steady_main", "every sample of steady is complete"]);
    host.end();
}

/// Regression: two versions of a plug-in without build ids, alike in size and layout, were not
/// distinguished. Code of the second, loaded in place of the first, was walked and named as if it
/// were the first.
#[test]
fn a_library_reloaded_to_the_same_place_has_its_new_names_and_frames() {
    let (directory, program) = compiled("hot_reload");
    let library = |name: &str, flag: &str| {
        let path = directory.path().join(name);
        let flags = ["-shared", "-fPIC", "-O2", "-Wl,--build-id=none", flag].map(str::to_string);
        compile(&sources().join("reloaded_library.c"), &path, &flags, &[]);
        path
    };
    let (old, new) = (library("plugin.so", "-DOLD"), library("new.so", "-DNEW"));
    let arguments = [old.as_os_str(), new.as_os_str()];
    let mut host = Host::start_with(Start { program: &program, arguments: &arguments, agent: Agent::Loaded });
    let mut answer = host.begin_recording("seconds=60&hz=100&format=perf");
    read_until_stack(&mut answer, "caller_main;plugin_entry;old_work");
    host.tell("reload");
    host.wait_for("reload done");
    read_until_stack(&mut answer, "caller_main;plugin_entry;new_work");
    let after = host.record("samples=500&hz=500");
    expect(
        &after,
        &[
            "every sample of caller has stack caller_main;plugin_entry;new_work",
            "every sample of caller is complete",
        ],
    );
    drop(answer);
    host.end();
}

/// Regression: the kernel then names the loader as the executable, and the program had the loader's
/// names.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_started_through_the_loader_has_its_own_names() {
    let (_directory, program) = compiled("o0_blocked");
    let mut command = Command::new("/lib64/ld-linux-x86-64.so.2");
    command.arg(&program.executable).env("LD_PRELOAD", library());
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    let recording = host.record("samples=200&hz=200");
    expect(
        &recording,
        &[
            "thread main has stack _start;main;host_wait_for_end;host_line",
            "every sample of sleeper has stack sleeper_main;sleep_long",
            "share of named frames in o0_blocked >= 0.99",
        ],
    );
    host.end();
}

/// Regression: stacks of a stripped program ended where only its debug file describes the code.
#[test]
fn code_that_only_the_debug_file_describes_is_left() {
    let (_directory, program) = compiled("only_debug_frame");
    let file = program.executable.to_str().expect("a path of UTF-8");
    let split = format!(
        "objcopy --only-keep-debug {file} {file}.debug && strip --strip-all {file} && \
         objcopy --add-gnu-debuglink={file}.debug {file}"
    );
    let status = Command::new("sh").args(["-c", &split]).status();
    assert!(status.is_ok_and(|status| status.success()), "{split}");
    host::run(&program);
}
