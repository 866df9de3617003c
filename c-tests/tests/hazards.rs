//! Hosts whose surroundings are unusual: fewer rights, less memory, other libraries, calls that
//! need one thread. What cannot be tried on a machine is reported by a line, `not run: …`.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use swipr_c_tests::agent::library;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::expectation::expect;
use swipr_c_tests::host::{self, Agent, Host, Start, wait_until};
use swipr_c_tests::http;
use swipr_c_tests::program::{Program, compile, compiled, sources};

fn started(program: &Program, agent: Agent) -> Host {
    Host::start_with(Start { program, arguments: &[], agent })
}

fn not_run(what: &str) {
    println!("not run: {what}");
}

/// A process' sockets in the directory of `host`.
fn sockets(host: &Host) -> Vec<u32> {
    let files = std::fs::read_dir(host.directory()).expect("the directory of the sockets");
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.strip_suffix(".sock")?.parse().ok()).collect()
}

/// Whether a process has a thread of the agent's. The thread is there before `main` begins, but
/// sets its name itself. If one is expected this waits for the name; if none is, it checks a while
/// later.
fn has_agent(pid: u32, expected: bool) -> bool {
    let has = || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the program's threads");
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.into_iter().any(|name| name.starts_with("swipr-"))
    };
    if expected {
        wait_until("the agent's thread", has);
        return true;
    }
    std::thread::sleep(Duration::from_millis(200));
    has()
}

#[test]
fn a_daemon_that_closed_everything_is_profiled() {
    let (_directory, program) = compiled("daemon");
    let host = Host::start(&program);
    let daemon = host.heard("daemon ").trim().parse().expect("a process id");
    let recording = host::record(&host.socket_of(daemon), "samples=500&hz=500");
    expect(
        &recording,
        &[
            "every sample of worker has stack daemon_main;daemon_work",
            "every sample of worker is complete",
            "thread main has stack main;host_wait_for_end",
        ],
    );
    host.end();
}

#[test]
fn descriptors_0_to_2_that_were_closed_at_the_start_go_to_the_host() {
    let (directory, program) = compiled("starts_without_descriptors");
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$@\" 3<&0 4>&1 0<&- 1>&- 2>&-", "sh"]).arg(&program.executable);
    command.arg(directory.path().join("file")).env("LD_PRELOAD", library());
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    expect(&host.record("samples=500&hz=500"), &["share of burner with stack burner_main >= 0.9"]);
    host.end();
}

#[test]
fn calls_that_want_one_thread_answer_as_without_the_agent() {
    let (_directory, program) = compiled("needs_one_thread");
    let alone = started(&program, Agent::Absent);
    let host = started(&program, Agent::Loaded);
    for what in ["results ", "itself ", "with a thread "] {
        assert_eq!(host.heard(what), alone.heard(what), "{what}");
    }
    expect(&host.record("samples=200&hz=200"), &["every sample of late has stack late_main;late_work"]);
    host.end();
    alone.end();
}

/// Regression: SIGABRT.
#[test]
fn threads_that_end_in_exit_handlers_end_as_without_the_agent() {
    let (_directory, program) = compiled("threads_end_in_exit");
    for (what, code) in [("ends", 42), ("cancelled", 42), ("quick", 42), ("first", 0)] {
        for (variable, value) in [("LD_BIND_NOW", "1".as_ref()), ("LD_PRELOAD", library().as_os_str())] {
            let mut command = Command::new(&program.executable);
            let status = command.arg(what).env(variable, value).status().expect("it runs");
            assert_eq!(status.code(), Some(code), "{what}, {variable}");
        }
    }
}

/// It was loaded and did nothing, without a word.
#[test]
fn a_library_with_another_name_works_where_it_is_preloaded() {
    let (directory, program) = compiled("no_frame_pointer");
    let renamed = directory.path().join("profiler.so");
    std::fs::copy(library(), &renamed).expect("copied");
    let mut command = Command::new(&program.executable);
    command.env("LD_PRELOAD", &renamed);
    let host = Host::spawn(command);
    expect(&host.record("samples=400&hz=200"), &["share of burner with stack burner_main >= 0.9"]);
    host.end();
}

/// Regression: each passed the signals of the C library on to the other, for ever.
#[test]
fn of_two_copies_of_the_library_one_is_at_work() {
    let (directory, program) = compiled("changes_user");
    let copies = ["first", "second"].map(|name| directory.path().join(format!("{name}.so")));
    copies.iter().for_each(|copy| _ = std::fs::copy(library(), copy).expect("copied"));
    let mut command = Command::new(&program.executable);
    command.env("LD_PRELOAD", copies.map(|copy| copy.display().to_string()).join(":"));
    command.env("SWIPR_CONTINUOUS", "49hz,10s");
    let host = Host::spawn(command);
    expect(&host.record("seconds=1&hz=200"), &["stats threads >= 2"]);
    host.end();
}

#[test]
fn a_service_that_gives_up_root_gives_it_up_in_all_threads() {
    let (_directory, program) = compiled("drops_privileges");
    let mut host = Host::start(&program);
    host.record("samples=200&hz=200");
    host.tell("drop");
    host.wait_for("dropped");
    let recording = host.record("samples=200&hz=200");
    expect(&recording, &["share of burner with stack burner_main >= 0.9"]);
    if host.heard("") == "not root" {
        not_run("giving up root: the tests do not have it");
    }
    host.end();
}

/// Regression: no thread was found, and no name: `/proc` and the files were outside.
#[test]
fn a_service_in_another_root_directory_is_recorded_with_names() {
    let (_directory, program) = compiled("changes_root");
    let root = Directory::new();
    let arguments = [root.path().as_os_str()];
    let host = Host::start_with(Start { program: &program, arguments: &arguments, agent: Agent::Loaded });
    expect(&host.record("samples=200&hz=200"), &["share of burner with stack burner_main >= 0.9"]);
    if host.heard("") == "not root" {
        not_run("another root directory: the tests are not root");
    }
    host.end();
}

/// The agent's timers used up `RLIMIT_SIGPENDING`, and glibc's seteuid(3) changed one thread of 40.
#[test]
fn a_service_that_may_queue_few_signals_changes_its_user_in_all_threads() {
    let (_directory, program) = compiled("few_queued_signals");
    let mut host = Host::start(&program);
    host.socket(); // it is where root may make it
    host.tell("begin");
    host.wait_for("user");
    host.while_recorded("seconds=60&hz=200&format=perf", |host| {
        host.tell("change");
        host.wait_for("changed");
    });
    if host.heard("") == "not root" {
        not_run("changing the user: the tests are not root");
    }
    host.end();
}

/// Regression: haproxy could not be recorded: no thread could be started for it. Later, those that
/// were started before its limit had its root directory, in which there is no `/proc`.
#[test]
fn a_service_that_may_have_no_new_threads_is_recorded() {
    let (_directory, program) = compiled("no_new_threads");
    let root = Directory::new();
    for arguments in [&[][..], &[root.path().as_os_str()]] {
        let mut host = Host::start_with(Start { program: &program, arguments, agent: Agent::Loaded });
        let socket = host.socket(); // it is where root may make it
        host.tell("begin");
        host.wait_for("limited");
        for _ in 0..3 {
            expect(
                &host.record("samples=50&hz=200&mode=cpu"),
                &["share of burner with stack burner_main >= 0.9"],
            );
            assert_eq!(http::get(&socket, "/dump").expect("an answer").status, 200);
        }
        host.end();
    }
}

/// Regression: each of haproxy's threads sets this limit. The second one never returned.
#[test]
fn a_limit_on_threads_that_holds_already_holds_up_nobody_and_is_told() {
    let (_directory, program) = compiled("no_new_threads");
    let mut host = Host::start(&program);
    let socket = host.socket();
    host.tell("limited already");
    host.wait_for("limited");
    let answer = http::get(&socket, "/dump").expect("an answer");
    assert_eq!(answer.status, 500);
    let answer = answer.read_all().expect("all of it");
    let text = String::from_utf8_lossy(&answer.body);
    assert!(text.contains("cannot start a thread") && text.contains("ulimit -u"), "{text}");
    host.end();
}

#[test]
fn a_service_that_keeps_the_right_to_change_users_is_not_aborted() {
    let (_directory, program) = compiled("keeps_capabilities");
    let root = Directory::new();
    let in_other_root = [root.path().as_os_str()];
    for arguments in [&[][..], &in_other_root] {
        let host = Host::start_with(Start { program: &program, arguments, agent: Agent::Loaded });
        if host.heard("") == "not root" {
            not_run("keeping capabilities: the tests are not root");
        }
        host.end();
    }
}

#[test]
fn a_process_that_puts_all_threads_under_a_filter_lives_whoever_asks() {
    let (_directory, program) = compiled("sandboxed_process");
    for how in ["enter", "enter and exit"] {
        let mut host = Host::start(&program);
        let socket = host.socket();
        expect(&host.record("samples=200&hz=200"), &["every sample of burner has stack burner_main"]);
        host.tell(how);
        host.wait_for("sandboxed");
        assert!(http::get(&socket, "/dump").is_err(), "there is no agent that may answer");
        host.end();
    }
}

#[test]
fn a_program_with_more_rights_than_its_user_has_no_agent() {
    let (directory, program) = compiled("no_frame_pointer");
    let mode = std::fs::Permissions::from_mode(0o4755);
    if chown(&program.executable, Some(1), None).is_err()
        || std::fs::set_permissions(&program.executable, mode).is_err()
    {
        return not_run("setuid: the tests are not root");
    }
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).expect("a directory that others may enter");
    let host = Host::start(&program);
    assert!(!has_agent(host.pid(), false));
    host.end();
}

/// Sends a request that may never be answered.
fn ask(socket: &Path, target: &str) -> std::io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    Ok(stream)
}

/// A host with no memory left gets requests of all kinds, and must work as before.
fn lives_without_memory(limit: &str, bytes: u64, before: &[&str]) {
    let (_directory, program) = compiled("no_memory");
    let mut host = Host::start(&program);
    let socket = host.socket();
    before.iter().for_each(|query| drop(host.record(query)));
    host.tell(&format!("{limit} {bytes}"));
    host.wait_for("limited");
    for target in
        ["/status", "/profile?seconds=1&hz=1000&format=folded", "/dump", "/profile?seconds=1&mode=cpu"]
    {
        // Whether there is an answer depends on how much the agent had already.
        let asked = ask(&socket, target);
        host.tell("work");
        host.wait_for("worked");
        drop(asked);
    }
    host.end();
}

#[test]
fn a_host_without_memory_lives_whoever_asks() {
    for bytes in [0, 300_000, 3_000_000, 12_000_000] {
        lives_without_memory("address-space", bytes, &[]);
        lives_without_memory("data", bytes, &[]);
    }
    lives_without_memory("address-space", 0, &["samples=500&hz=500"]);
    lives_without_memory("data", 100_000, &["samples=500&hz=500"]);
    lives_without_memory("locked", 100_000, &[]);
    lives_without_memory("locked", 3_000_000, &[]);
}

#[test]
fn a_host_with_as_many_mappings_as_there_may_be_lives_whoever_asks() {
    let (_directory, program) = compiled("many_mappings");
    let mut host = Host::start(&program);
    let socket = host.socket();
    expect(&host.record("samples=200&hz=200"), &["share of burner with stack burner_main >= 0.9"]);
    host.tell("fill");
    host.wait_for("full");
    for target in ["/status", "/profile?seconds=1&hz=1000&format=folded", "/dump"] {
        let asked = ask(&socket, target);
        host.tell("fill");
        host.wait_for("full");
        drop(asked);
    }
    host.end();
}

#[test]
fn an_agent_loaded_by_dlopen_stays_when_it_is_unloaded() {
    let (_directory, program) = compiled("unloaded_agent");
    let library = library();
    let arguments = [library.as_os_str()];
    let host = Host::start_with(Start { program: &program, arguments: &arguments, agent: Agent::Loaded });
    expect(&host.record("samples=200&hz=200"), &["every sample of burner has stack burner_main"]);
    host.end();
}

/// A program with the agent and further variables.
fn with_variables(program: &Program, arguments: &[&str], variables: &[(&str, &OsStr)]) -> Host {
    let mut command = Command::new(&program.executable);
    command
        .args(&program.library)
        .args(arguments)
        .env("LD_PRELOAD", library())
        .envs(variables.iter().copied());
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    host
}

#[test]
fn follow_exec_leaves_copies_of_the_process_alone() {
    let (_directory, program) = compiled("fork_child");
    let mut host = with_variables(&program, &[], &[("SWIPR_FOLLOW", OsStr::new("exec"))]);
    let child: u32 = host.heard("child ").trim().parse().expect("a process id");
    host.tell("forks");
    host.wait_for("forks done");
    expect(&host.record("samples=200&hz=200"), &["every sample of burner has stack burner_main;parent_work"]);
    assert!(!has_agent(child, false));
    assert_eq!(sockets(&host), [host.pid()]);
    host.end();
}

#[test]
fn follow_none_takes_the_library_from_the_list_of_what_children_load_and_nothing_else() {
    let directory = Directory::new();
    let other = directory.path().join("other.so");
    let source = directory.path().join("other.c");
    std::fs::write(&source, "int swipr_test_other;\n").expect("a C file");
    compile(&source, &other, &["-shared", "-fPIC"].map(str::to_string), &[]);
    let lists = |follow: &str, list: &str| {
        let output = Command::new("sh")
            .args(["-c", "echo \"<$LD_PRELOAD> $ANOTHER\""])
            .envs([("SWIPR_FOLLOW", follow), ("LD_PRELOAD", list), ("ANOTHER", "kept")])
            .env("SWIPR_SOCKET", directory.path().join("{PID}.sock"))
            .output()
            .expect("a shell");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let ours = library().display().to_string();
    let both = format!("{ours}:{}", other.display());
    assert_eq!(lists("all", &both), format!("<{both}> kept\n"));
    assert_eq!(lists("exec", &ours), format!("<{ours}> kept\n"));
    assert_eq!(lists("none", &both), format!("<{}> kept\n", other.display()));
    assert_eq!(lists("none", &ours), "<> kept\n");
}

#[test]
fn only_and_skip_choose_by_the_executable() {
    let (_directory, program) = compiled("o0_blocked");
    for (variable, patterns, expected) in [
        ("SWIPR_ONLY", "other, o0_*", true),
        ("SWIPR_ONLY", "other,o0", false),
        ("SWIPR_SKIP", "other", true),
        ("SWIPR_SKIP", "*/o0_block??", false),
    ] {
        let host = with_variables(&program, &[], &[(variable, OsStr::new(patterns))]);
        assert_eq!(has_agent(host.pid(), expected), expected, "{variable}={patterns}");
        host.end();
    }
    let mut command = Command::new("/bin/true");
    command.env("LD_PRELOAD", library()).env("SWIPR_ONLY", "other").env("SWIPR_LOG", "1");
    let said = command.output().expect("true").stderr;
    assert!(String::from_utf8_lossy(&said).contains("SWIPR_ONLY and SWIPR_SKIP leave"), "{said:?}");
}

/// Chromium's first helper process gives up when it has a second thread, and no page is shown.
#[test]
fn a_zygote_has_no_agent() {
    let (_directory, program) = compiled("o0_blocked");
    for (argument, expected) in [("--type=zygote", false), ("--type=renderer", true)] {
        let host = with_variables(&program, &[argument], &[]);
        assert_eq!(has_agent(host.pid(), expected), expected, "{argument}");
        host.end();
    }
}

/// A library of the system, by its file's name.
fn system_library(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists())
}

#[test]
fn another_allocator_may_be_preloaded_before_and_behind() {
    let (_directory, program) = compiled("storms");
    for name in ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"] {
        let Some(other) = system_library(name) else {
            not_run(name);
            continue;
        };
        let (ours, other) = (library().display().to_string(), other.display().to_string());
        for list in [format!("{ours}:{other}"), format!("{other}:{ours}")] {
            let host = with_variables(&program, &[], &[("LD_PRELOAD", OsStr::new(&list))]);
            let recording = host.record("samples=300&hz=1000&format=folded");
            expect(&recording, &["thread allocating has stack storm_main;allocate"]);
            host.end();
        }
    }
}

/// Regression: the help lists child processes, and opendir(3) entered the host's malloc for that.
#[test]
fn the_help_does_not_enter_the_hosts_malloc() {
    let (_directory, program) = compiled("own_malloc");
    let host = Host::start(&program);
    for target in ["/", "/nothing"].repeat(10) {
        http::get(&host.socket(), target).and_then(http::Answer::read_all).expect("an answer");
    }
    host.end();
}

#[test]
fn a_program_under_gperftools_is_profiled_by_both() {
    let Some(other) = system_library("libprofiler.so.0") else { return not_run("libprofiler.so.0") };
    let (directory, program) = compiled("no_frame_pointer");
    let profile = directory.path().join("profile");
    let list = format!("{}:{}", library().display(), other.display());
    let variables = [
        ("LD_PRELOAD", OsStr::new(&list)),
        ("CPUPROFILE", profile.as_os_str()),
        ("CPUPROFILE_FREQUENCY", OsStr::new("1000")),
    ];
    let mut host = with_variables(&program, &[], &variables);
    let recording = host.record("seconds=1&hz=1000&format=folded");
    expect(&recording, &["samples >= 900"]);
    host.tell_end();
    host.wait_for("ok");
    // Written when the program ends; it also says so on the standard error.
    wait_until("the other profile", || std::fs::metadata(&profile).is_ok_and(|file| file.len() > 100));
}

/// Runs another tool on a program that is recorded. Returns what the tool prints, and the size of
/// its file; `None`: the tool is not installed, or is not allowed to.
fn looked_at_while_recorded(tool: &str, arguments: impl Fn(u32, &Path) -> Vec<String>) -> Option<String> {
    let (directory, program) = compiled("closed_by_client");
    let mut host = Host::start(&program);
    let file = directory.path().join("file");
    let arguments = arguments(host.pid(), &file);
    let output = host.while_recorded("seconds=60&hz=1000", |_| {
        Command::new(tool).args(arguments).env("LC_ALL", "C").output().ok()
    });
    host.end();
    let output = output.filter(|output| output.status.success())?;
    let bytes = std::fs::metadata(&file).map_or(0, |file| file.len());
    Some(format!("{} and {bytes} bytes", String::from_utf8_lossy(&output.stdout)))
}

#[test]
fn a_program_that_perf_records_is_profiled_by_both() {
    let found = looked_at_while_recorded("perf", |pid, file| {
        let options = format!("record -q -e cpu-clock -F 999 -p {pid} -o {} -- sleep 1", file.display());
        options.split(' ').map(str::to_string).collect()
    });
    let Some(found) = found else { return not_run("perf") };
    let bytes: u64 = found.split(' ').rev().nth(1).and_then(|bytes| bytes.parse().ok()).expect("a size");
    assert!(bytes > 10_000, "perf got nothing: {found}");
}

#[test]
fn a_program_that_gdb_stops_while_it_is_recorded_goes_on() {
    let found = looked_at_while_recorded("gdb", |pid, _| {
        let commands = ["-ex", "thread apply all backtrace", "-ex", "detach"].map(str::to_string);
        [vec!["-q".into(), "-batch".into(), "-p".into(), pid.to_string()], commands.to_vec()].concat()
    });
    let Some(found) = found else { return not_run("gdb") };
    assert!(found.contains("burner_main"), "{found}");
}

#[test]
fn programs_with_sanitizers_report_nothing_and_are_profiled_but_for_tsan() {
    let directory = Directory::new();
    for (sanitizer, flags) in [
        ("address", &["-fsanitize=address", "-static-libasan"][..]),
        ("undefined", &["-fsanitize=undefined"]),
        ("thread", &["-fsanitize=thread"]),
    ] {
        let probe = directory.path().join("probe.c");
        std::fs::write(&probe, "int main(void) { return 0; }\n").expect("a C file");
        let built =
            Command::new("cc").args(flags).arg("-o").arg(directory.path().join("probe")).arg(&probe).output();
        if !built.is_ok_and(|output| output.status.success()) {
            not_run(&format!("-fsanitize={sanitizer}: the compiler does not have it"));
            continue;
        }
        let executable = directory.path().join(sanitizer);
        let all: Vec<String> = ["-O1", "-pthread"].iter().chain(flags).map(|flag| flag.to_string()).collect();
        compile(&sources().join("sanitized.c"), &executable, &all, &[]);
        let mut command = Command::new(&executable);
        command.env("LD_PRELOAD", library());
        let mut host = Host::spawn(command);
        host.wait_for("ready");
        // ThreadSanitizer would take the agent's descriptors for the host's.
        let expected = sanitizer != "thread";
        assert_eq!(has_agent(host.pid(), expected), expected);
        if sanitizer != "thread" {
            let recording = host.record("seconds=1&hz=1000&format=folded");
            let wanted =
                ["thread worker has stack worker_main;work", "thread allocator has stack allocator_main"];
            expect(&recording, &wanted);
        }
        host.end();
    }
}

/// Regression: what it wrote was lost: the emulator took the agent's descriptors for the program's.
#[test]
fn a_program_that_an_emulator_runs_is_left_alone() {
    let emulator = "qemu-x86_64";
    if Command::new(emulator).arg("--version").output().is_err() {
        return not_run(&format!(
            "a program under {emulator}: it is not installed (Debian package qemu-user)"
        ));
    }
    let (_directory, program) = compiled("no_frame_pointer");
    let mut command = Command::new(emulator);
    command.arg("-E").arg(format!("LD_PRELOAD={}", library().display())).arg(&program.executable);
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    assert!(!has_agent(host.pid(), false));
    host.end();
}

#[test]
fn a_process_without_proc_lives_whoever_asks() {
    let (_directory, program) = compiled("no_frame_pointer");
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", "mount -t tmpfs none /proc && exec \"$0\" || echo refused"]);
    command.arg(&program.executable).env("LD_PRELOAD", library());
    let may = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "none", "/proc"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        return not_run("no /proc: the tests may not unmount it");
    }
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    let socket = host.socket();
    for target in ["/status", "/dump", "/profile?samples=200&hz=200&format=folded"] {
        drop(http::get(&socket, target).and_then(http::Answer::read_all));
    }
    host.end();
}

/// Regression: it was recorded, without a stack, and the advice was to look for blocked signals.
#[test]
fn a_process_that_sees_the_ids_of_another_pid_namespace_is_not_recorded_and_says_why() {
    if !Command::new("unshare").args(["-pf", "true"]).status().is_ok_and(|status| status.success()) {
        return not_run("/proc of another PID namespace: the tests may not make one");
    }
    let mut command = Command::new("unshare");
    command.args(["-pf", "sh", "-c", "echo ready; read -r line; echo ok"]).env("LD_PRELOAD", library());
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    let answer = http::get(&host.socket_of(1), "/profile?samples=200&hz=200&format=folded");
    let answer = answer.and_then(http::Answer::read_all).expect("an answer");
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(answer.status == 500 && text.contains("another PID namespace"), "{} {text}", answer.status);
    host.end();
}

/// Regression: such a child waited five seconds each time for its parent's agent to end, and
/// removed the parent's socket.
#[test]
fn a_child_with_its_parents_id_in_another_name_space_leaves_the_parents_agent_alone() {
    let namespace = ["unshare", "-pf", "--mount-proc"];
    if !Command::new(namespace[0]).args(&namespace[1..]).arg("true").status().is_ok_and(|it| it.success()) {
        return not_run("children with their parent's id: the tests may not make a PID namespace");
    }
    let (_directory, program) = compiled("children_with_the_same_id");
    let mut command = Command::new(namespace[0]);
    command.args(&namespace[1..]).arg(&program.executable).env("LD_PRELOAD", library());
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    let socket = host.socket_of(1);
    host.tell("go");
    host.wait_for("children done");
    let recording = host::record(&socket, "samples=200&hz=200");
    expect(&recording, &["every sample of burner has stack burner_main;work"]);
    host.end();
}

/// The functions of the C library that the agent calls, but for those that it needs to find these.
fn called_functions() -> Vec<String> {
    let output = Command::new("readelf").args(["-W", "--dyn-syms"]).arg(library()).output().expect("readelf");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let names =
        text.lines().filter(|line| line.contains(" UND ")).filter_map(|line| line.split_whitespace().nth(7));
    let names = names.filter_map(|name| name.split('@').next());
    let left = [
        "malloc",
        "calloc",
        "realloc",
        "posix_memalign",
        "free",
        "environ",
        "bcmp",
        "getauxval",
        "dl_iterate_phdr",
        "dlopen",
        "dlsym",
        "mprotect",
    ];
    let is_left =
        |name: &str| left.contains(&name) || ["_", "mem", "str"].iter().any(|start| name.starts_with(start));
    names.filter(|name| !is_left(name)).map(str::to_owned).collect()
}

/// Regression: a program with a function `send` or `listen` of its own ended by SIGSEGV.
#[test]
fn functions_of_the_program_with_names_of_the_c_library_are_called_by_the_program_alone() {
    let names = called_functions();
    assert!(names.len() > 60 && names.iter().any(|name| name == "bind"), "{names:?}");
    let own: String =
        names.iter().map(|name| format!("void {name}(void) {{ __builtin_trap(); }}\n")).collect();
    let text = r#"
        static long call(long number, long a, long b, long c) {
            long result;
            __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
            return result;
        }
        static volatile unsigned long sink;
        __attribute__((noinline)) static void work(void) { for (int i = 0; i < 1000000; i++) sink++; }
        int main(void) {
            struct { int descriptor; short wanted, found; } input = {0, 1, 0};
            call(1, 1, (long)"ready\n", 6);
            while (call(7, (long)&input, 1, 0) == 0)
                work();
            call(1, 1, (long)"ok\n", 3);
            return 0;
        }"#;
    let directory = Directory::new();
    let [source, program] = ["own.c", "own"].map(|name| directory.path().join(name));
    std::fs::write(&source, own + text).expect("written");
    compile(&source, &program, &["-O1", "-w", "-fno-builtin"].map(str::to_owned), &[]);
    for (variable, value) in [("SWIPR_CONTINUOUS", "250hz,10s"), ("SWIPR_OUTPUT", "life.%p.folded")] {
        let mut command = Command::new(&program);
        command.env("LD_PRELOAD", library()).env(variable, value).current_dir(directory.path());
        let mut host = Host::spawn(command);
        host.wait_for("ready");
        expect(&host.record("samples=200&hz=200"), &["share of main with stack main;work >= 0.9"]);
        let pid = host.pid();
        host.end();
        let life = std::fs::read_to_string(directory.path().join(format!("life.{pid}.folded")));
        assert!(
            variable == "SWIPR_CONTINUOUS" || life.is_ok_and(|life| life.contains("main;work")),
            "{variable}"
        );
    }
}

/// How long the storms last, in seconds; a program lives a minute.
const STORM_VARIABLE: &str = "SWIPR_STORM_SECONDS";

#[test]
fn storms_of_what_profilers_deadlock_in_go_on() {
    let seconds: u64 = std::env::var(STORM_VARIABLE).map_or(4, |text| text.parse().expect("a number"));
    let (_directory, program) = compiled("storms");
    for started in (0..seconds).step_by(40) {
        let host = Host::start(&program);
        let now = (seconds - started).min(40);
        let recording = host.record(&format!("seconds={now}&hz=1000&format=folded"));
        expect(
            &recording,
            &[
                "thread allocating has stack storm_main;allocate",
                "thread unwinding has stack storm_main;unwind",
                "thread listing has stack storm_main;list_objects",
            ],
        );
        host.end();
    }
}
