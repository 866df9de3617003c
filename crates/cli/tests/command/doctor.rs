//! `swipr doctor`: each reason in words.

use crate::support::*;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::{Host, wait_until};
use swipr_c_tests::{agent, program};

/// A program that runs until it is dropped.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        Running(
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("started"),
        )
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_can_be_profiled_is_told_so() {
    let host = running_burner();
    let pid = host.pid().to_string();
    for target in [&pid, &host.socket().display().to_string()] {
        let said = says(["doctor", target]).well();
        assert!(said.out.contains("ok    it can be profiled"), "{said:?}");
    }
    host.end();
}

#[test]
fn without_a_process_it_tells_whether_run_can_work() {
    let said = says(["doctor"]).well();
    assert!(said.out.contains("ok    the library is "), "{said:?}");
    said_with_library("/no/such/libswipr.so").refuses(3, &["/no/such/libswipr.so"]);
}

fn said_with_library(library: &str) -> Said {
    said(swipr(["doctor"]).env("SWIPR_LIBRARY", library))
}

#[test]
fn a_program_started_without_swipr_is_told() {
    let running = Running::start(Command::new("cat").env_remove("LD_PRELOAD"));
    wait_until("its name", || {
        std::fs::read_to_string(format!("/proc/{}/comm", running.pid())).is_ok_and(|name| name == "cat\n")
    });
    says(["doctor", &running.pid()]).refuses(3, &["was started without swipr", "swipr run -- cat"]);
}

#[test]
fn a_static_program_is_told() {
    let directory = Directory::new();
    let fixed = short_program(&directory, "fixed", &["-static"]);
    let running = Running::start(Command::new(&fixed).env("LD_PRELOAD", agent::library()));
    wait_until("its name", || {
        std::fs::read_to_string(format!("/proc/{}/comm", running.pid())).is_ok_and(|name| name == "fixed\n")
    });
    says(["doctor", "fixed"]).refuses(3, &["is a static program", "link"]);
}

/// It was said to have another root or mount namespace.
#[test]
fn a_library_that_is_nowhere_is_told() {
    let running = Running::start(Command::new("cat").env("LD_PRELOAD", "/no/such/libswipr.so"));
    wait_until("its name", || {
        std::fs::read_to_string(format!("/proc/{}/comm", running.pid())).is_ok_and(|name| name == "cat\n")
    });
    let said = says(["doctor", &running.pid()]);
    said.refuses(3, &["/no/such/libswipr.so does not exist", "nor for this command", "start it again"]);
}

#[test]
fn a_program_that_variables_leave_out_is_told() {
    let running =
        Running::start(Command::new("cat").env("LD_PRELOAD", agent::library()).env("SWIPR_SKIP", "cat"));
    wait_until("the library", || {
        std::fs::read_to_string(format!("/proc/{}/maps", running.pid()))
            .is_ok_and(|maps| maps.contains("/libc.so"))
    });
    wait_until("the reason", || says(["doctor", &running.pid()]).errors.contains("SWIPR_SKIP=cat leaves"));
}

#[test]
fn an_agent_that_cannot_listen_is_told() {
    let mut command = Command::new("cat");
    command.env("LD_PRELOAD", agent::library()).env("SWIPR_SOCKET", "/no/such/folder/a.sock");
    let running = Running::start(&mut command);
    wait_until("the reason", || says(["doctor", &running.pid()]).errors.contains("did not start"));
    says(["doctor", &running.pid()]).refuses(3, &["SWIPR_LOG=1", "SWIPR_SOCKET="]);
}

/// Has the command run under a seccomp filter, one that lets every call pass.
fn filtered(command: &mut Command) -> &mut Command {
    let enter = || {
        let mut allow = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
        let program = libc::sock_fprog { len: 1, filter: &raw mut allow };
        // SAFETY: prctl(2) and seccomp(2) read one filter, which lives until they return.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) == 0
        };
        if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: two system calls, which may be made between fork(2) and exec(2).
    unsafe { command.pre_exec(enter) }
}

/// In a container every process has the container's filter: each agent that did not start was
/// called sandboxed, and the advice was to switch the sandbox off.
#[test]
fn a_filter_that_is_not_the_programs_own_is_no_reason() {
    let mut command = Command::new("cat");
    command.env("LD_PRELOAD", agent::library()).env("SWIPR_SOCKET", "/no/such/folder/a.sock");
    let running = Running::start(filtered(&mut command));
    let pid = running.pid();
    wait_until("the reason", || {
        said(filtered(&mut swipr(["doctor", &pid]))).errors.contains("did not start")
    });
    let inside = said(filtered(&mut swipr(["doctor", &pid])));
    inside.refuses(3, &["SWIPR_LOG=1"]);
    assert!(inside.out.contains("SWIPR_SOCKET=/no/such/folder/a.sock"), "{inside:?}");
    assert!(!inside.errors.contains("sandbox of its own"), "{inside:?}");
    // From outside it is not known whose filter it is: the parent here is the one without.
    says(["doctor", &pid]).refuses(3, &["seccomp"]);
}

#[test]
fn a_library_that_is_not_where_the_process_looks_is_told() {
    let running = Running::start(Command::new("cat").env("LD_PRELOAD", "/no/such/libswipr.so"));
    wait_until("the reason", || {
        says(["doctor", &running.pid()]).errors.contains("does not exist for process")
    });
}

/// Regression: it said so only after somebody had made a recording.
#[test]
fn an_interpreter_is_told_before_anybody_has_recorded() {
    let sleeps = ["-c", "import time; time.sleep(60)"];
    let running = Running::start(Command::new("python3").args(sleeps).env("LD_PRELOAD", agent::library()));
    wait_until("an interpreter", || {
        says(["doctor", &running.pid()]).out.contains("note  interpreter: CPython")
    });
    assert!(says(["doctor", &running.pid()]).out.contains("ok    it can be profiled"));
}

#[test]
fn a_socket_that_was_removed_is_told() {
    let host = running_burner();
    std::fs::remove_file(host.socket()).expect("removed");
    says(["doctor", &host.pid().to_string()]).refuses(3, &["cannot be profiled: "]);
    host.end();
}

/// The command with the library beside it, where any user may use them.
fn copy_for_everybody() -> (Directory, PathBuf) {
    let directory = Directory::new();
    let copy = directory.path().join("swipr");
    std::fs::copy(env!("CARGO_BIN_EXE_swipr"), &copy).expect("a copy");
    std::fs::copy(agent::library(), directory.path().join("libswipr.so")).expect("a copy");
    let made = Command::new("chmod").arg("755").args([directory.path(), &copy]).status();
    assert!(made.is_ok_and(|status| status.success()));
    (directory, copy)
}

/// Regression: of such a process the kernel shows neither files nor namespaces, and nothing was
/// found.
#[test]
fn a_process_with_another_group_than_its_users_is_found() {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let (directory, copy) = copy_for_everybody();
    let library = directory.path().join("libswipr.so");
    let mut sleep = Command::new("sleep");
    sleep.arg("60").env("LD_PRELOAD", &library).env_remove("SWIPR_SOCKET").uid(65_534).gid(54_321);
    let mut sleep = sleep.spawn().expect("started");
    let pid = sleep.id().to_string();
    wait_until("it is found", || {
        let said = said(Command::new(&copy).args(["dump", &pid]).uid(65_534).gid(65_534));
        said.out.contains("blocked in clock_nanosleep")
    });
    let said = said(Command::new(&copy).arg("ls").uid(65_534).gid(65_534));
    assert_eq!(said.out.matches(&format!("swipr-pid-{pid}.sock")).count(), 1, "{said:?}");
    sleep.kill().and_then(|()| sleep.wait()).expect("its end");
}

/// Regression: each verb panicked.
#[test]
fn a_user_who_may_have_no_more_threads_is_told() {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let (_directory, copy) = copy_for_everybody();
    let alone = |arguments: &[&str]| {
        let mut command = Command::new("prlimit");
        said(command.args(["--nproc=1", "--"]).arg(&copy).args(arguments).uid(65_534).gid(65_534))
    };
    // There may be nothing to list, or what other tests started.
    let listed = alone(&["ls"]);
    assert!([Some(0), Some(3)].contains(&listed.status), "{listed:?}");
    alone(&["run", "-f", "folded", "-o", "-", "--", "true"]).refuses(125, &["cannot start a thread"]);
}

#[test]
fn a_process_of_another_user_is_told() {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        for verb in ["doctor", "record", "dump", "top"] {
            says([verb, "1"]).refuses(3, &["belongs to another user"]);
        }
        return;
    }
    let (_directory, copy) = copy_for_everybody();
    let nobody_says = |arguments: &[&str]| said(Command::new(&copy).args(arguments).uid(65_534).gid(65_534));
    let host = running_burner();
    let pid = host.pid().to_string();
    // Without an agent, and with one.
    for target in ["1", &pid] {
        for verb in ["doctor", "record", "dump", "top"] {
            nobody_says(&[verb, target]).refuses(3, &["belongs to another user, 0"]);
        }
    }
    let said = nobody_says(&["ls"]);
    let row = said.out.lines().find(|line| line.trim_start().starts_with(&pid));
    assert!(row.is_some_and(|row| row.contains("belongs to another user, 0")), "{said:?}");
    host.end();
}

#[test]
fn what_is_not_there_or_has_ended_is_told() {
    says(["doctor", "4194305"]).refuses(3, &["there is no process 4194305"]);
    says(["doctor", "no-such-name"]).refuses(3, &["no process is called"]);
    says(["doctor", "/no/such.sock"]).refuses(3, &["/no/such.sock"]);
    says(["doctor", "2"]).refuses(3, &[""]);
    let mut zombie = Command::new("true").spawn().expect("started");
    let pid = zombie.id();
    wait_until("its end", || {
        std::fs::read_to_string(format!("/proc/{pid}/status"))
            .is_ok_and(|status| status.contains("State:\tZ"))
    });
    for verb in ["doctor", "record", "dump", "top"] {
        says([verb, &pid.to_string()]).refuses(3, &["has ended"]);
    }
    zombie.wait().expect("its end");
}

#[test]
fn a_program_that_sandboxed_itself_is_told() {
    let directory = Directory::new();
    let program = program::Program::compile("sandboxed_process", directory.path());
    let mut host = Host::start(&program);
    let pid = host.pid().to_string();
    says(["doctor", &pid]).well();
    host.tell("sandbox");
    host.wait_for("sandboxed");
    wait_until("the agent's end", || says(["doctor", &pid]).status != Some(0));
    says(["doctor", &pid]).refuses(3, &["is in a sandbox of its own (seccomp)", "--no-sandbox"]);
}

#[test]
fn an_agent_that_has_turned_itself_off_is_told_with_its_reason() {
    let mut command = Command::new(&burner().executable);
    command.env("LD_PRELOAD", agent::faulty_library()).env(agent::FAULT_VARIABLE, "panic:sampler");
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    let pid = host.pid().to_string();
    says(["doctor", &pid]).well();
    // The fault comes with the first recording.
    says(["record", &pid, "-d", "20", "-r", "500", "--idle", "-f", "perf", "-o", "-"]);
    says(["doctor", &pid])
        .refuses(3, &["has turned itself off: as the test wants it", "restart the program"]);
    host.end();
}

/// Doctor said that it can be profiled, and record gave advice for short programs.
#[test]
fn timers_that_the_kernel_refuses_are_told() {
    let mut command = Command::new(&burner().executable);
    command.env("LD_PRELOAD", agent::library());
    let none_pending = || {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: setrlimit(2) reads the limits, which live until it returns.
        match unsafe { libc::setrlimit(libc::RLIMIT_SIGPENDING, &raw const none) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: one system call, which may be made between fork(2) and exec(2).
    unsafe { command.pre_exec(none_pending) };
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    let pid = host.pid().to_string();
    says(["doctor", &pid]).refuses(3, &["refuses the timers", "ulimit -i"]);
    let recorded = says(["record", &pid, "-d", "2", "-f", "perf", "-o", "-"]);
    recorded.refuses(1, &["refuses the timers", "ulimit -i"]);
    host.end();
}

/// Less than the 15 seconds that an agent has for an answer.
const SOON: Duration = Duration::from_secs(12);

/// What each verb says of a process, soon; it names every way to look but itself.
fn all_say(pid: u32, parts: &[&str]) {
    let target = pid.to_string();
    let soon = |arguments: &[&str]| {
        let started = Instant::now();
        let said = says(arguments);
        assert!(started.elapsed() < SOON, "{arguments:?} took {:?}", started.elapsed());
        said
    };
    for verb in ["doctor", "record", "dump", "top"] {
        let said = soon(&[verb, &target]);
        said.refuses(3, parts);
        assert!(!said.errors.contains(&format!("swipr {verb}")), "{said:?}");
    }
    let said = soon(&["ls"]).well();
    let row = said.out.lines().find(|line| line.trim_start().starts_with(&target)).expect("its line");
    assert!(parts.iter().all(|part| row.contains(part)), "{row}");
}

/// Each verb waited for 15 seconds and said "no answer in time", and its hint was `swipr doctor`,
/// which said the same.
#[test]
fn a_process_that_is_stopped_is_told_and_answers_again_when_it_runs() {
    let host = running_burner();
    let signal = |number| {
        // SAFETY: kill(2) takes no pointer; the program has not been waited for.
        assert_eq!(unsafe { libc::kill(host.pid().cast_signed(), number) }, 0);
    };
    signal(libc::SIGSTOP);
    all_say(host.pid(), &["is stopped"]);
    says(["dump", &host.socket().display().to_string()]).refuses(3, &["is stopped", "kill -CONT"]);
    signal(libc::SIGCONT);
    says(["doctor", &host.pid().to_string()]).well();
    host.end();
}

/// A thread that is traced until this is dropped, also where the test fails: nobody could wait for
/// the end of its process.
struct Traced(i32);

impl Drop for Traced {
    fn drop(&mut self) {
        // SAFETY: ptrace(2) with this request takes no pointer.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.0, 0, 0) };
    }
}

#[test]
fn an_agent_that_does_not_answer_is_told() {
    let host = running_burner();
    let tasks = std::fs::read_dir(format!("/proc/{}/task", host.pid())).expect("its threads");
    let is_server = |path: &std::path::PathBuf| read(&path.join("comm")) == "swipr-server\n";
    let server = tasks.map(|task| task.expect("a thread").path()).find(is_server).expect("the server");
    let tid: i32 = server.file_name().and_then(|name| name.to_str()?.parse().ok()).expect("an id");
    // Held as it is for as long as it gets no CPU. It is let go with this thread.
    // SAFETY: ptrace(2) with these requests takes no pointer.
    let held = unsafe {
        libc::ptrace(libc::PTRACE_SEIZE, tid, 0, 0) == 0
            && libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0) == 0
    };
    if !held {
        eprintln!("not run: this machine does not let us trace");
        return;
    }
    let traced = Traced(tid);
    all_say(host.pid(), &["did not answer for 1.5 s", "holds its agent"]);
    drop(traced);
    host.end();
}

/// Took the first, without a word.
#[test]
fn of_two_processes_of_one_name_it_says_that_none_has_the_agent() {
    let directory = Directory::new();
    // No other process has this name.
    let name = format!("twin-{}", std::process::id());
    let path = directory.path().join(&name);
    std::os::unix::fs::symlink("/bin/sleep", &path).expect("a link"); // a copy may be busy still
    let [one, other] = [(), ()].map(|()| Running::start(Command::new(&path).arg("60")));
    for verb in ["doctor", "dump"] {
        let words = ["2 processes are called", &one.pid(), &other.pid(), "none has swipr inside"];
        says([verb, &name]).refuses(3, &words);
    }
    drop(other);
    says(["doctor", &name]).refuses(3, &["was started without swipr"]);
}
