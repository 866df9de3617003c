//! Each hazard's program, run under the agent. Most say themselves what they expect. The tests
//! written out here are those in which the client, too, does something.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;
use swipr_c_tests::agent::{self, library};
use swipr_c_tests::directory::Directory;
use swipr_c_tests::expectation::{check, has_stack};
use swipr_c_tests::host::{self, Agent, Host, Start, wait_until};
use swipr_c_tests::http::{self, Answer};
use swipr_c_tests::program::{Program, compile, sources};
use swipr_c_tests::recording;

/// Compiles a program; the directory must live as long as it is used.
fn compiled(name: &str) -> (Directory, Program) {
    let directory = Directory::new();
    let program = Program::compile(name, directory.path());
    (directory, program)
}

/// A program must end well by itself: otherwise its test would say nothing of the agent. Programs
/// hardly change, so this is a nightly check.
fn is_content_without_the_agent(program: &Program) {
    if !cfg!(feature = "nightly") {
        return;
    }
    Host::start_with(Start { program, arguments: &[], agent: Agent::Absent }).end();
}

/// One test for each program that says itself what it expects; it is tried without the agent, too.
macro_rules! programs {
    ($($test:ident => $name:literal,)*) => {
        $(#[test]
        fn $test() {
            let (_directory, program) = compiled($name);
            is_content_without_the_agent(&program);
            host::run(&program);
        })*
        /// The programs whose comments say what is expected.
        const TELLING: &[&str] = &[$($name),*];
    };
}

programs! {
    code_without_frame_pointers_is_walked_to_main => "no_frame_pointer",
    code_that_is_numbered_otherwise_than_it_lies_in_the_file_has_its_names => "numbered_otherwise",
    unoptimised_blocked_threads_have_complete_stacks => "o0_blocked",
    a_stack_of_5000_frames_keeps_both_its_ends => "deep_stack",
    each_of_2000_threads_is_seen => "many_threads",
    no_blocked_call_is_interrupted => "blocked_threads",
    no_thread_that_is_just_going_to_sleep_is_interrupted => "going_to_sleep",
    nobody_writes_below_the_stack_pointer_of_a_small_coroutine => "small_coroutine",
    a_call_that_the_kernel_remembers_goes_on_where_handlers_keep_our_signal => "goes_on",
    no_time_out_of_a_socket_is_an_interrupt => "time_outs_of_sockets",
    who_waits_for_its_own_handlers_goes_on_when_they_have_run => "waits_for_handlers",
    a_call_that_a_handler_has_cut_short_ends_however_short_the_handler_was_there => "handler_leaves_early",
    threads_that_wait_are_cancelled => "cancelled_threads",
    no_poll_that_does_not_wait_is_interrupted => "poll_without_waiting",
    errno_is_kept_across_samples => "errno_kept",
    vector_registers_and_red_zone_are_kept_across_samples => "fp_registers_kept",
    threads_that_wait_for_a_cpu_are_seen_to => "waiting_for_cpu",
    threads_that_come_and_go_are_no_danger => "thread_churn",
    a_sample_in_a_signal_handler_reaches_main => "signal_handler_stack",
    users_of_alternate_stacks_are_sampled => "alternate_stack",
    a_main_without_a_description_is_walked_through => "undescribed_main",
    a_thread_that_blocks_all_signals_is_seen_in_system_calls_and_nowhere_else => "signals_blocked",
    only_the_stack_in_use_is_read_as_if_it_were_sure => "stale_frame_pointer",
    who_waits_for_signals_gets_none_of_ours => "waits_for_signals",
    cpu_mode_shows_only_what_runs => "cpu_and_wall",
    cpu_time_is_what_folded_stacks_count_in_cpu_mode => "light_threads",
    a_program_whose_executable_was_deleted_has_names => "deleted_executable",
    threads_that_outlive_the_first_one_have_names => "first_thread_ended",
    debug_information_nested_without_end_is_no_danger => "deep_debug_info",
    who_holds_locks_is_sampled_and_never_waited_for => "locks_held",
    functions_that_are_bound_at_their_first_call_have_callers => "lazy_binding",
    frames_relative_to_any_register_are_left => "frame_in_another_register",
    frames_relative_to_any_register_are_left_without_a_search_table => "frame_without_search_table",
    frames_relative_to_any_register_are_left_by_debug_frame => "frame_in_debug_frame",
    code_made_at_run_time_is_left_by_what_the_program_registered => "registered_code",
    code_made_anew_in_the_same_place_has_its_new_frames => "registered_again",
    code_described_in_debug_frame_alone_is_left => "only_debug_frame",
    a_handler_that_interrupted_a_handler_is_walked_to_the_root => "nested_signals",
    stacks_of_coroutines_reach_their_entries => "coroutines",
    assembly_without_sizes_has_no_others_name_and_no_false_end => "assembly_without_sizes",
    the_stack_of_a_fiber_is_complete_where_it_begins => "fiber",
    cpu_time_of_a_thread_that_blocks_signals_is_told_as_not_sampled => "blocks_signals_later",
    threads_that_are_started_with_all_signals_blocked_are_recorded => "masked_workers",
    a_thread_in_step_with_the_tick_shows_all_its_functions_when_it_is_preempted => "in_step",
    large_writes_to_a_pipe_are_whole => "whole_writes",
    a_sampler_that_may_not_go_to_other_cpus_says_what_it_could_not_preempt => "pinning_refused",
    a_parent_that_waits_for_its_vfork_child_is_not_disturbed => "vfork_child",
    cold_parts_of_functions_have_callers => "hot_and_cold",
    code_in_several_segments_is_walked_through => "far_code",
    frames_of_realigned_stacks_are_left_by_their_saved_pointer => "realigned_main",
    stubs_bound_before_the_program_begins_are_walked_through => "stubs_bound_at_start",
    stubs_that_bind_at_the_first_call_are_walked_through => "stubs_bound_lazily",
    threads_have_whole_stacks_from_their_first_to_their_last_instruction => "thread_edges",
    children_of_a_host_whose_allocator_is_locked_while_it_forks_come_back => "allocator_with_fork_handlers",
    code_in_another_namespace_of_the_loader_is_walked_and_named => "other_namespace",
    who_stays_in_a_callback_of_the_loader_holds_up_nobody_and_may_fork => "loader_callback",
    a_host_that_closes_what_is_not_its_own_finds_nothing_of_ours => "closes_all_descriptors",
    faults_that_a_host_handles_itself_are_its_own => "crash_recovery",
    threads_with_alternate_stacks_that_are_too_small_are_not_asked => "small_alternate_stack",
    code_with_garbage_in_its_stack_pointer_is_no_danger => "garbage_registers",
    threads_that_may_not_make_system_calls_are_not_asked => "strict_seccomp",
    a_program_that_sandboxes_itself_lives_until_it_ends => "sandboxed_service",
    a_thread_that_took_its_thread_pointer_away_is_no_danger => "no_thread_pointer",
    a_thread_that_may_not_read_the_time_stamp_counter_is_not_killed => "no_time_stamps",
    memory_that_a_host_gives_back_is_left_free => "memory_given_back",
    the_hosts_malloc_is_not_entered_by_threads_of_ours => "own_malloc",
    a_host_whose_signals_cannot_be_queued_goes_on => "no_queued_signals",
    a_process_that_is_traced_is_recorded => "traced",
    a_host_with_a_profiler_of_its_own_gets_its_own_signals => "own_profiler",
    a_process_that_is_stopped_and_continued_goes_on => "stopped_and_continued",
    a_real_time_host_has_no_real_time_thread_of_ours => "realtime",
    a_thread_with_16_kib_of_stack_keeps_nearly_all_of_it => "small_stack",
    a_start_that_takes_long_holds_up_no_call_of_the_hosts => "slow_start",
    a_process_that_is_not_dumpable_is_recorded => "not_dumpable",
    a_thread_whose_system_calls_are_emulated_is_not_asked => "foreign_system_calls",
    threads_of_the_kernels_for_io_uring_are_left_alone => "kernels_workers",
    children_that_no_fork_handler_sees_end_and_fork => "forks_unseen",
    code_of_32_bits_in_a_program_of_64_is_no_danger => "code_of_32_bits",
    code_that_a_jitdump_file_describes_is_named_and_left => "jitdump",
    names_of_swift_are_made_readable_by_the_runtime_of_the_program => "swift_names",
}

/// The programs whose tests are written out.
const WRITTEN_OUT: &[&str] = &[
    "affinity_kept",
    "closed_by_client",
    "dlopen_late",
    "exec_chain",
    "exit_while_recording",
    "first_thread_exits",
    "last_thread_ends",
    "fork_child",
    "handler_stack",
    // In attacks.rs.
    "hostile_files",
    "hot_reload",
    "low_fds",
    // In internal_faults.rs.
    "memory_limit",
    "no_system_calls",
    "own_sigurg",
    "preloaded_api",
    "registered_before_fork",
    "sandbox_unseen",
    "stop_and_start",
    "swipr_start_api",
    // In hazards.rs.
    "daemon",
    "drops_privileges",
    "keeps_capabilities",
    "many_mappings",
    "needs_one_thread",
    "no_memory",
    "sandboxed_process",
    "sanitized",
    "starts_without_descriptors",
    "storms",
    "unloaded_agent",
    // In truth.rs.
    "truth",
    "truth_unoptimised",
];

/// Sources that are no programs.
const PARTS: &[&str] = &["late_library", "lazily_bound", "reloaded_library"];

#[test]
fn every_program_has_a_test() {
    let tested: BTreeSet<String> =
        [TELLING, WRITTEN_OUT, PARTS].concat().into_iter().map(str::to_string).collect();
    let files: BTreeSet<String> = std::fs::read_dir(sources())
        .expect("the folder of the programs")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".c").map(str::to_string))
        .collect();
    assert_eq!(files, tested);
}

#[cfg(feature = "nightly")]
#[test]
fn every_other_program_is_content_without_the_agent() {
    let needs_more = [
        "exit_while_recording",
        "first_thread_exits",
        "last_thread_ends",
        "hostile_files",
        "hot_reload",
        "preloaded_api",
        "starts_without_descriptors",
        "stop_and_start",
        "swipr_start_api",
        "unloaded_agent",
    ];
    for name in WRITTEN_OUT.iter().filter(|name| !needs_more.contains(name)) {
        let (_directory, program) = compiled(name);
        is_content_without_the_agent(&program);
    }
}

/// Fails with everything that does not hold.
fn expect(recording: &recording::Recording, lines: &[&str]) {
    let failures: Vec<_> = lines.iter().filter_map(|line| check(line, recording).err()).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Reads an answer until one of its samples has the stack.
fn read_until_stack(answer: &mut Answer, stack: &str) {
    wait_until(stack, || {
        assert!(answer.read_more().expect("more of the recording"), "the recording ended without {stack}");
        let text = String::from_utf8_lossy(&answer.body);
        let whole = text.rfind("\n\n").map_or(0, |end| end + 2);
        let samples = recording::perf(&text[..whole]).expect("perf text");
        samples.iter().any(|sample| has_stack(sample, stack))
    });
}

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

#[test]
fn a_forked_child_has_its_own_socket_and_is_sampled() {
    let (_directory, program) = compiled("fork_child");
    let host = Host::start(&program);
    let child = host.heard("child ").trim().parse().expect("a process id");
    let of_child = host::record(&host.socket_of(child), "samples=200&hz=200");
    let of_parent = host.record("samples=200&hz=200");
    expect(
        &of_child,
        &[
            "thread childworker has stack child_main;child_work",
            "every sample of childworker is complete",
            "thread burner is not sampled",
        ],
    );
    expect(
        &of_parent,
        &[
            "every sample of burner has stack burner_main;parent_work",
            "every sample of burner is complete",
            "thread childworker is not sampled",
        ],
    );
    assert!(of_child.samples.iter().all(|sample| sample.pid == child));
    host.end();
}

#[test]
fn what_a_program_registered_before_a_fork_holds_in_the_child() {
    let (_directory, program) = compiled("registered_before_fork");
    let host = Host::start(&program);
    let child = host.heard("child ").trim().parse().expect("a process id");
    let of_child = host::record(&host.socket_of(child), "samples=200&hz=200");
    expect(
        &of_child,
        &["every sample of child has stack child_main;call;burn", "every sample of child is complete"],
    );
    host.end();
}

#[test]
fn forking_and_spawning_go_on_while_recorded() {
    let (_directory, program) = compiled("fork_child");
    let mut host = Host::start(&program);
    for what in ["forks", "spawns"] {
        host.while_recorded("seconds=60&hz=1000&format=perf", |host| {
            host.tell(what);
            host.wait_for(&format!("{what} done"));
        });
        let after = host.record("samples=500&hz=500");
        expect(&after, &["every sample of burner has stack burner_main;parent_work"]);
    }
    host.end();
}

#[test]
fn a_client_that_goes_away_leaves_nothing_behind() {
    let (_directory, program) = compiled("closed_by_client");
    let host = Host::start(&program);
    let socket = host.socket();
    drop(host.record("samples=10&hz=500"));
    let count = |what: &str| {
        let path = format!("/proc/{}/{what}", host.pid());
        std::fs::read_dir(path).map_or(0, Iterator::count)
    };
    // Fifty equal readings in a row: what earlier clients held has been released.
    let mut before = (0, 0);
    let mut agreed = 0;
    wait_until("descriptors and threads to settle", || {
        let now = (count("fd"), count("task"));
        agreed = if now == before { agreed + 1 } else { 0 };
        before = now;
        agreed == 50
    });

    for _ in 0..20 {
        // More than may run at once: those that lost their client have to end first.
        wait_until("a recording to begin", || {
            let target = "/profile?seconds=60&hz=200&format=perf";
            http::get(&socket, target).expect("an answer").status == 200
        });
    }
    for half in ["", "GET /pro", "GET /profile?seconds=5 HTTP/1.1\r\nHost: a"] {
        let mut stream = UnixStream::connect(&socket).expect("a connection");
        stream.write_all(half.as_bytes()).expect("half a request");
    }
    for _ in 0..1000 {
        drop(UnixStream::connect(&socket).expect("a connection"));
    }
    let after = host.record("samples=500&hz=500");
    expect(
        &after,
        &["every sample of burner has stack burner_main;work", "every sample of burner is complete"],
    );
    wait_until("descriptors and threads to be as before", || {
        (count("fd"), count("task")) <= before && count("task") <= before.1
    });
    host.end();
}

#[test]
fn a_program_that_executes_another_is_not_killed_by_a_late_signal() {
    let (_directory, program) = compiled("exec_chain");
    let host = Host::start(&program);
    let socket = host.socket();
    for _ in 0..40 {
        // Each program of the chain ends its recording; between two of them no server listens.
        if let Err(error) = http::get(&socket, "/profile?seconds=5&hz=2000&format=perf") {
            assert!(error.kind() != ErrorKind::TimedOut, "{error}");
        }
        if std::fs::read_to_string(format!("/proc/{}/cmdline", host.pid()))
            .is_ok_and(|line| line.ends_with("\x000\0"))
        {
            break;
        }
    }
    host.end();
}

#[test]
fn the_last_threads_end_ends_the_process_with_the_hosts_files() {
    let (_directory, program) = compiled("last_thread_ends");
    let files = Directory::new();
    let file = files.path().join("file");
    let host =
        Host::start_with(Start { program: &program, arguments: &[file.as_os_str()], agent: Agent::Loaded });
    std::fs::remove_file(host.socket()).expect("the socket");
    host.end();
    assert_eq!(std::fs::read_to_string(file).expect("the file"), "main\nworker\nexit\n");
}

/// Regression: such a process never ended, because the agent's threads kept it alive. Strict
/// seccomp leaves no other way to end.
#[test]
fn a_first_thread_that_ends_by_the_system_call_ends_the_process_with_its_status() {
    let (_directory, program) = compiled("first_thread_exits");
    let mut host = Host::start(&program);
    assert_eq!(host.ended().code(), Some(5));
}

fn figure(recording: &recording::Recording, name: &str) -> u64 {
    let found = recording.stats.iter().find(|(known, _)| known == name);
    found.map_or_else(|| panic!("no figure {name}"), |&(_, value)| value)
}

/// Stops the program for so long while it is recorded.
fn record_stopped(host: &Host, query: &str, stopped: Duration) -> recording::Recording {
    let mut answer = host.begin_recording(query);
    read_until_stack(&mut answer, "burner_main;burn");
    for signal in [libc::SIGSTOP, libc::SIGCONT] {
        // SAFETY: a child of this process that has not been waited for.
        assert_eq!(unsafe { libc::kill(host.pid() as i32, signal) }, 0);
        if signal == libc::SIGSTOP {
            std::thread::sleep(stopped);
        }
    }
    host::finish_recording(answer, query)
}

/// Regression: the thread was killed at its next sample, and the host with it. (Few samples: a
/// kernel tick between the call and the wait after it kills the host, see docs/limits.md.)
#[test]
fn a_thread_that_enters_a_sandbox_by_inline_system_calls_is_not_signalled_when_it_computes_again() {
    let (_directory, program) = compiled("sandbox_unseen");
    let mut host = Host::start(&program);
    let query = "seconds=4&hz=10&format=perf";
    let mut answer = host.begin_recording(query);
    read_until_stack(&mut answer, "unseen_main;compute");
    host.tell("enter");
    let recording = host::finish_recording(answer, query);
    assert!(figure(&recording, "unsampled_cpu_ns") > 0, "{:?}", recording.stats);
    host.end();
}

/// Regression: in 4 of 60 starts on a busy machine the socket's directory became unwritable before
/// the socket was made.
#[test]
fn hosts_that_give_up_their_rights_at_once_have_their_sockets() {
    let (_directory, program) = compiled("not_dumpable");
    let hosts: Vec<Host> = (0..16).map(|_| Host::start(&program)).collect();
    for host in hosts {
        assert!(http::get(&host.socket(), "/status").is_ok());
        host.end();
    }
}

/// Regression: ticks after the recording's end were counted as late, and busy threads were shown as
/// running while their process was stopped.
#[test]
fn a_program_that_was_stopped_has_its_ticks_counted_and_did_not_run_meanwhile() {
    let (_directory, program) = compiled("cpu_and_wall");
    let host = Host::start(&program);
    let within = record_stopped(&host, "seconds=3&hz=100&format=perf", Duration::from_secs(2));
    let (ticks, late) = (figure(&within, "ticks"), figure(&within, "late"));
    assert!((299..=300).contains(&(ticks + late)) && late >= 150, "{ticks} ticks, {late} late");
    expect(&within, &["every tick is accounted for"]);
    let ran = within.samples.iter().filter(|sample| sample.thread == "burner").count() as u64;
    assert!(ran + 100 <= ticks + late, "{ran} samples of a busy thread: {:?}", within.stats);

    let beyond = record_stopped(&host, "seconds=1&hz=100&format=perf", Duration::from_secs(3));
    let ticks = figure(&beyond, "ticks") + figure(&beyond, "late");
    assert!((99..=100).contains(&ticks), "{ticks} ticks: {:?}", beyond.stats);

    let used = record_stopped(&host, "seconds=3&hz=100&mode=cpu&format=perf", Duration::from_secs(2));
    assert!(used.count() <= figure(&used, "ticks") * 2, "{:?}", used.stats);
    host.end();
}

/// Regression: each recording that began took from the others what their threads had waited since
/// their last observation.
#[test]
fn recordings_that_begin_take_nothing_of_the_waits_that_another_counts() {
    let (_directory, program) = compiled("waiting_for_cpu");
    let host = Host::start(&program);
    let query = "seconds=3&hz=2&format=folded";
    let socket = host.socket();
    let long = std::thread::spawn(move || host::record(&socket, query));
    while !long.is_finished() {
        host.record("samples=1&hz=1000&format=folded");
    }
    let long = long.join().expect("the recording");
    expect(&long, &["stats cpu_wait_ns >= 3000000000"]);
    host.end();
}

/// The threads of a host and the CPUs on which each may run, by name.
fn cpus_of_threads(host: &Host) -> Vec<(String, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", host.pid())).expect("the host's threads");
    let statuses = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
    let field = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().to_string()
    };
    statuses.map(|status| (field(&status, "Name:"), field(&status, "Cpus_allowed_list:"))).collect()
}

#[test]
fn only_the_sampler_is_pinned_to_a_cpu_and_only_while_it_preempts() {
    let (_directory, program) = compiled("affinity_kept");
    let host = Host::start(&program);
    let all = cpus_of_threads(&host)[0].1.clone();
    let preempting = host.begin_recording("seconds=60&hz=500&mode=cpu&source=preempt&format=perf");
    // A sampler that may use one CPU only cannot be pinned to fewer.
    wait_until("the sampler to be pinned", || {
        let pinned: Vec<_> = cpus_of_threads(&host).into_iter().filter(|thread| thread.1 != all).collect();
        assert!(pinned.iter().all(|thread| thread.0.contains("sampler")), "{pinned:?} of {all}");
        !pinned.is_empty() || all.parse::<u32>().is_ok()
    });
    let beside = host.begin_recording("seconds=60&hz=100&mode=cpu&format=perf");
    drop(preempting);
    wait_until("the sampler to be where it was", || {
        let threads = cpus_of_threads(&host);
        let is_there = threads.iter().any(|thread| thread.0.contains("sampler"));
        assert!(is_there, "the other recording goes on");
        threads.iter().all(|thread| thread.1 == all)
    });
    drop(beside);
    host.end();
}

/// The CPU time of a host's thread of that name.
fn cpu_ns_of(host: &Host, name: &str) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", host.pid())).expect("the host's threads");
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let mut tasks = tasks.filter_map(|task| Some(task.ok()?.path()));
    let task = tasks.find(|task| read(task.join("comm")).trim() == name).expect("the thread");
    read(task.join("schedstat")).split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds")
}

/// The recording that preempts begins first and ends last: a hit of a moment at which the other one
/// ran alone would represent all of its time.
#[test]
fn recordings_by_timers_and_by_preemption_have_all_their_samples_beside_each_other() {
    let (_directory, program) = compiled("cpu_and_wall");
    let host = Host::start(&program);
    let (of_wall, of_cpu) = ("mode=wall&format=perf", "mode=cpu&format=folded");
    for (preempting, timed) in [(of_cpu, of_wall), (of_wall, of_cpu)] {
        let preempting_query = format!("seconds=4&hz=250&source=preempt&{preempting}");
        let timed_query = format!("seconds=2&hz=250&source=timer&{timed}");
        let before_ns = cpu_ns_of(&host, "burner");
        let asked = std::time::Instant::now();
        let preempting = host.begin_recording(&preempting_query);
        let timed = host.begin_recording(&timed_query);
        let begun_ns = cpu_ns_of(&host, "burner");
        // Both recordings are still running.
        std::thread::sleep(Duration::from_millis(1980).saturating_sub(asked.elapsed()));
        let least_ns = cpu_ns_of(&host, "burner") - begun_ns;
        let timed = host::finish_recording(timed, &timed_query);
        let preempting = host::finish_recording(preempting, &preempting_query);
        let most_ns = cpu_ns_of(&host, "burner") - before_ns;
        let is_cpu_timed = timed_query.ends_with(of_cpu);
        let (wall, cpu) = if is_cpu_timed { (preempting, timed) } else { (timed, preempting) };
        expect(
            &wall,
            &[
                "every tick is accounted for",
                "every sample of sleeper has stack sleeper_main;sleep_long",
                "every sample of burner has stack burner_main;burn",
            ],
        );
        expect(&cpu, &["thread sleeper is not sampled", "every sample of burner has stack burner_main;burn"]);
        // Folded stacks of CPU time count its nanoseconds.
        let told_ns = cpu.count() + cpu.unseen;
        assert!((least_ns..=most_ns).contains(&told_ns), "{told_ns} of {least_ns} to {most_ns} ns");
        assert!(wall.unseen * 10 <= wall.count(), "{} without stack: {:?}", wall.unseen, wall.stats);
    }
    host.end();
}

#[test]
fn a_host_with_its_own_sigurg_sees_every_one() {
    let (_directory, program) = compiled("own_sigurg");
    let host = Host::start(&program);
    let recording = host.record("samples=1000&hz=1000");
    expect(&recording, &["share of raiser with stack raiser_main;raise_signals >= 0.9"]);
    host.end();
}

#[test]
fn a_host_may_take_a_signal_that_the_agent_has_used() {
    let (_directory, program) = compiled("own_sigurg");
    let mut host =
        Host::start_with(Start { program: &program, arguments: &[OsStr::new("late")], agent: Agent::Loaded });
    expect(&host.record("samples=500&hz=500"), &["samples >= 20"]);
    host.tell("install");
    host.wait_for("installed");
    // The first of these notices that the signal is no longer the agent's.
    host.record("samples=500&hz=500");
    let recording = host.record("samples=1000&hz=1000");
    expect(&recording, &["share of raiser with stack raiser_main;raise_signals >= 0.9"]);
    host.end();
}

#[test]
fn descriptors_0_to_2_are_the_hosts_and_16_are_enough() {
    let (_directory, program) = compiled("low_fds");
    let host = Host::start(&program);
    let recording = host.record("samples=1000&hz=1000");
    expect(&recording, &["share of burner with stack burner_main >= 0.9"]);
    host.end();
}

/// Ends the program in one way, with and without the agent: the status is the same.
fn ends_as_without_the_agent(how: &str) -> Host {
    let (_directory, program) = compiled("exit_while_recording");
    let start = |agent| Host::start_with(Start { program: &program, arguments: &[OsStr::new(how)], agent });
    let alone = start(Agent::Absent).ended();
    let mut host = start(Agent::Loaded);
    let answer = host.begin_recording("seconds=60&hz=500&format=perf");
    let recorded = host.ended();
    assert_eq!(
        (recorded.code(), recorded.signal()),
        (alone.code(), alone.signal()),
        "the status of a program that ends by {how}"
    );
    // The client sees the end of its connection, with a whole answer or not.
    if let Err(error) = answer.read_all() {
        let silent = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!silent, "the recording did not end: {error}");
    }
    host
}

/// No socket is left in the program's directory.
fn left_no_socket(host: &Host) {
    let left = std::fs::read_dir(host.directory()).map_or(0, Iterator::count);
    assert_eq!(left, 0, "files left in the directory of the sockets");
}

#[test]
fn exit_while_recording_keeps_the_status_and_removes_the_socket() {
    left_no_socket(&ends_as_without_the_agent("exit"));
}

#[test]
fn returning_from_main_while_recording_keeps_the_status_and_removes_the_socket() {
    left_no_socket(&ends_as_without_the_agent("return"));
}

#[test]
fn the_last_thread_ends_the_process_while_recording() {
    left_no_socket(&ends_as_without_the_agent("last-thread"));
}

#[test]
fn ending_without_handlers_while_recording_keeps_the_status() {
    ends_as_without_the_agent("_exit");
}

#[test]
fn quick_exit_while_recording_keeps_the_status() {
    ends_as_without_the_agent("quick_exit");
}

#[test]
fn an_abort_while_recording_stays_one() {
    ends_as_without_the_agent("abort");
}

#[test]
fn a_crash_while_recording_stays_one() {
    ends_as_without_the_agent("crash");
}

#[test]
fn a_crash_with_a_reporter_is_reported_and_stays_one() {
    ends_as_without_the_agent("reported");
}

#[test]
fn sigterm_ends_a_recorded_process() {
    ends_as_without_the_agent("sigterm");
}

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

/// Runs a shell whose children find the shell's socket where theirs should be; returns what is on
/// stderr.
fn errors_of_children(variable: &str, value: &str) -> String {
    errors_of_shell("(exec sleep 0.2); (exec sleep 0.2); :", variable, value)
}

fn errors_of_shell(script: &str, variable: &str, value: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", script])
        .env("LD_PRELOAD", agent::library())
        .env(variable, value)
        .output()
        .expect("a shell");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn children_of_a_process_with_a_fixed_socket_write_nothing_about_it() {
    let directory = Directory::new();
    let socket = directory.path().join("fixed.sock");
    assert_eq!(errors_of_children("SWIPR_SOCKET", &socket.to_string_lossy()), "");
}

#[test]
fn a_value_that_cannot_be_used_is_told_without_being_asked() {
    let errors = errors_of_children("SWIPR_SIGNAL", "SIGKILL");
    let told = errors.matches("not profiled: cannot use SWIPR_SIGNAL=SIGKILL: ").count();
    // Regression: every command of a script said it once more.
    assert_eq!(told, 1, "{errors}");
    let errors = errors_of_shell("SWIPR_SIGNAL=SIGKILL sleep 0; :", "SWIPR_FOLLOW", "all");
    assert_eq!(errors.matches("not profiled").count(), 1, "a value of the child's own: {errors}");
    assert!(errors_of_children("SWIPR_AUTOSTART", "x").contains("cannot use SWIPR_AUTOSTART=x"));
}

/// With a stack this small left, a thread is still safe.
const HANDLER_STACK_BYTES: u64 = 512;

#[test]
fn the_handler_needs_little_stack() {
    let (_directory, program) = compiled("handler_stack");
    let mut host = Host::start(&program);
    let recording = host.record("seconds=2&hz=2000&format=folded&inline=false&threads=runner%7Cwaiter");
    expect(&recording, &["samples >= 500"]);
    host.tell_end();
    let used: u64 = host.wait_for("used").parse().expect("a number");
    assert!(host.ended().success());
    println!("the handler used {used} bytes of stack below the kernel's frame");
    assert!(used > 0, "the handler ran somewhere else");
    assert!(used <= HANDLER_STACK_BYTES, "{used} bytes below the kernel's frame");
}

#[test]
fn the_handler_makes_no_system_call() {
    let (_directory, program) = compiled("no_system_calls");
    let mut host = Host::start(&program);
    let expected = [
        "share of closed with stack closed_main;compute;compute >= 0.9",
        "every sample of closed is complete",
    ];
    // The handler reads the stack by a system call until the sampler knows where the stack is.
    let query = "seconds=1&hz=500&format=perf";
    let mut answer = host.begin_recording(query);
    read_until_stack(&mut answer, "closed_main;compute");
    // From here on the thread may make none. Up to a second later the sampler sees that, and arms
    // its timer no more.
    host.tell("close");
    host.wait_for("done");
    expect(&host::finish_recording(answer, query), &expected);
    host.end();
}
