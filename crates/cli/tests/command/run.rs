//! `swipr run`.

use crate::support::*;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::{Host, wait_until};
use swipr_c_tests::{agent, program};

#[test]
fn a_program_is_recorded_from_start_to_end_and_keeps_its_streams_and_its_status() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &[]);
    let file = directory.path().join("hot.folded");
    let mut command = swipr(["run", "-o", &file.display().to_string(), "--"]);
    let child = command.arg(&hot).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the command");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), b"in and out").expect("written");
    let said = Said::of(child.wait_with_output().expect("its end"));
    assert_eq!((said.status, said.out.as_str()), (Some(5), "in and out"), "{said:?}");
    let text = read(&file);
    let hot = text.lines().filter(|line| line.contains(";main;hot")).count();
    assert!(hot > 0, "{text}");
    assert!(said.errors.contains("wrote ") && said.errors.contains("next: "), "{said:?}");
}

/// There was said to be no such program.
#[test]
fn without_a_path_a_program_is_looked_for_where_execvp_does() {
    let directory = Directory::new();
    let file = directory.path().join("env.folded").display().to_string();
    let said = said(swipr(["run", "-o", &file, "env"]).env_remove("PATH"));
    assert!(said.status == Some(0) && said.out.contains("\nLD_PRELOAD="), "{said:?}");
}

/// It ended by itself, with no word on its standard output: another library came before its own.
#[test]
fn a_program_with_a_shared_address_sanitizer_is_recorded() {
    let directory = Directory::new();
    let hot = short_program(&directory, "checked", &["-fsanitize=address"]);
    let file = directory.path().join("checked.folded");
    let said = said(swipr(["run", "-o", &file.display().to_string(), "--"]).arg(&hot));
    assert_eq!(said.status, Some(5), "{said:?}");
    assert!(read(&file).contains(";main;hot"), "{said:?}");
}

/// An agent that refused its configuration was said to have got no CPU, and the file of an earlier
/// recording passed for this one's.
#[test]
fn an_agent_that_did_not_start_is_told_and_so_is_the_file_of_an_earlier_recording() {
    let directory = Directory::new();
    let file = directory.path().join("earlier.folded");
    std::fs::write(&file, "earlier 1\n").expect("written");
    let path = file.display().to_string();
    let mut command = swipr(["run", "-o", &path, "--", "/bin/true"]);
    let said = said(command.env("SWIPR_CONTINUOUS", "often").env("SWIPR_FOLOW", "exec"));
    assert_eq!(said.status, Some(0), "{said:?}");
    let reason = "not profiled: cannot use SWIPR_CONTINUOUS=often";
    let unchanged = format!("or did not start (SWIPR_LOG=1 says why); {path} is left as it was\nnext: ");
    for part in [reason, &unchanged, "SWIPR_FOLLOW is"] {
        assert!(said.errors.contains(part), "{part:?} is not in {said:?}");
    }
    assert_eq!(read(&file), "earlier 1\n");
    // The same of a program that runs long enough for any agent.
    let mut command = swipr(["run", "-o", &path, "--", "/bin/sleep", "1.5"]);
    let said = crate::support::said(command.env("SWIPR_CONTINUOUS", "often"));
    assert!(said.errors.contains("its agent did not start") && !said.errors.contains("starved"), "{said:?}");
}

/// A pattern that no thread's name matches is refused; a program that has just started has not got
/// its threads yet.
#[test]
fn threads_that_come_later_can_be_asked_for_by_name() {
    let program = &burner().executable.display().to_string();
    let directory = Directory::new();
    let path = directory.path().join("later.folded");
    let file = &path.display().to_string();
    let mut command = swipr(["run", "-d", "1", "-o", file, "--thread-name", "^burner$", "--", program]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the command");
    // The program runs until its input ends.
    let input = child.stdin.take();
    wait_until("the recording", || path.exists());
    drop(input);
    let said = Said::of(child.wait_with_output().expect("its end"));
    assert!(read(&path).lines().any(|line| line.contains("burner_main")), "{said:?}");
    assert_eq!(says(["run", "--thread-name", "(", "--", program]).status, Some(2), "told before it starts");
}

/// Threads that block all signals, by a system call of their own, lost 24 of 24 s of CPU time, and
/// nothing was said to be unsampled.
#[test]
fn cpu_time_of_threads_that_cannot_be_sampled_is_told_at_the_programs_end() {
    let directory = Directory::new();
    let (source, worker) = (directory.path().join("worker.c"), directory.path().join("worker"));
    let text = r#"
        #include <pthread.h>
        #include <signal.h>
        #include <sys/syscall.h>
        #include <time.h>
        #include <unistd.h>
        static void *work(void *argument)
        {
            struct timespec used;
            unsigned long all = -1UL;
            syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all);
            do
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
            while (used.tv_sec == 0 && used.tv_nsec < 500000000);
            return argument;
        }
        int main(void)
        {
            pthread_t worker;
            pthread_create(&worker, NULL, work, NULL);
            return pthread_join(worker, NULL);
        }
    "#;
    std::fs::write(&source, text).expect("a C file");
    program::compile(&source, &worker, &["-O2".into(), "-pthread".into()], &[]);
    let said = says(["run", "-f", "raw", "-o", "-", "--", &worker.display().to_string()]).well();
    let lines = said.out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let (mut all_ns, mut unsampled_ns) = (0, 0);
    for line in lines {
        all_ns += line["weight_ns"].as_u64().unwrap_or(0);
        unsampled_ns += line["unsampled_cpu_ns"].as_u64().unwrap_or(0);
    }
    assert!(unsampled_ns >= 450_000_000 && all_ns >= unsampled_ns, "{all_ns} {unsampled_ns}: {}", said.out);
}

/// Regression: the agent's wait for the last samples was a point where threads are cancelled, and
/// the program was aborted.
#[test]
fn a_thread_that_is_being_cancelled_ends_the_program() {
    let directory = Directory::new();
    let (source, ends) = (directory.path().join("ends.c"), directory.path().join("ends"));
    let text = r#"
        #include <pthread.h>
        #include <stdlib.h>
        #include <time.h>
        #include <unistd.h>
        static volatile int ends;
        static void *end(void *argument)
        {
            while ((double)clock() / CLOCKS_PER_SEC < 0.1)
                ;
            if (argument == NULL)
                pthread_cancel(pthread_self());
            else
                pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
            ends = 1;
            exit(3);
        }
        int main(int count, char **arguments)
        {
            pthread_t thread;
            pthread_create(&thread, NULL, end, arguments[1]);
            while (!ends)
                ;
            usleep(1000);
            if (count > 1)
                pthread_cancel(thread);
            return pthread_join(thread, NULL);
        }
    "#;
    std::fs::write(&source, text).expect("a C file");
    program::compile(&source, &ends, &["-O2".into(), "-pthread".into()], &[]);
    for how in [None, Some("at any instruction")] {
        let program = ends.display().to_string();
        let said = says(["run", "-f", "folded", "-o", "-", "--", &program].into_iter().chain(how));
        assert_eq!(said.status, Some(3), "{said:?}");
        assert!(said.out.contains(";end;"), "{said:?}");
    }
}

#[test]
fn the_signal_that_ends_the_program_ends_the_command() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &[]);
    let file = directory.path().join("hot.folded");
    let script = format!("{}; kill -USR1 $$", hot.display());
    let output = swipr(["run", "-s", "-o", &file.display().to_string(), "--", "sh", "-c", &script]).output();
    assert_eq!(output.expect("its end").status.signal(), Some(libc::SIGUSR1));
    assert!(read(&file).contains("hot"), "what was recorded is there");
}

/// `lost 0` was said of a program that was killed before its last samples were there.
#[test]
fn cpu_time_that_a_killed_program_took_with_it_is_told() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &["-DKILLED"]);
    // Few samples: a window of time stays open for longer than the program lives, unless that waits
    // for a CPU most of the time.
    let mut is_told = false;
    for _ in 0..20 {
        let said = says(["run", "-r", "1", "-o", "-", "-f", "folded", "--", &hot.display().to_string()]);
        let (some, all) =
            ("s of the program's CPU time are not in the recording\nnext: ", "not a single sample came of ");
        is_told |= said.errors.contains(some) || said.errors.contains(all);
        if is_told {
            break;
        }
    }
    assert!(is_told);
    let ends = short_program(&directory, "ends", &[]);
    let said = says(["run", "-r", "3", "-o", "-", "-f", "folded", "--", &ends.display().to_string()]);
    assert!(!said.errors.contains("are not in the recording"), "{said:?}");
}

#[test]
fn signals_to_the_command_go_to_the_program_and_its_profile_is_written() {
    let directory = Directory::new();
    let file = directory.path().join("ended.perf");
    let mut command = swipr(["run", "-o", &file.display().to_string(), "--"]);
    command.arg(&burner().executable);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the command");
    // `wait` would close it, and the program ends with its input.
    let _input = child.stdin.take();
    let mut ready = [0; 5];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut ready).expect("a word");
    let program = read(std::path::Path::new(&format!("/proc/{0}/task/{0}/children", child.id())));
    let list: serde_json::Value = serde_json::from_str(&says(["ls", "--json"]).well().out).expect("JSON");
    let of_program = |row: &&serde_json::Value| row["pid"].as_u64() == program.trim().parse().ok();
    let row = list.as_array().and_then(|rows| rows.iter().find(of_program)).expect("the program");
    let socket = std::path::PathBuf::from(row["socket"].as_str().expect("a path"));
    swipr_c_tests::host::wait_until("samples", || samples_taken(&socket) > 150);
    // SAFETY: kill(2) takes no pointer; the child has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    assert_eq!(child.wait().expect("its end").signal(), Some(libc::SIGTERM));
    check_perf(&read(&file), &[BURNS]);
}

#[test]
fn a_program_that_is_executed_in_the_place_of_another_is_recorded() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &[]);
    let script = format!("exec {}", hot.display());
    let said = says(["run", "-o", "-", "-f", "folded", "--", "sh", "-c", &script]);
    assert_eq!(said.status, Some(5), "{said:?}");
    assert!(said.out.contains(";main;hot"), "{said:?}");
}

/// Regression: its agent could not make a socket in the folder of `swipr run`, which was said to be
/// a lack of CPUs.
#[test]
fn a_program_that_root_starts_as_another_user_is_recorded() {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &[]);
    let library = directory.path().join("libswipr.so");
    std::fs::copy(agent::library(), &library).expect("a copy");
    let opened = Command::new("chmod").arg("755").args([directory.path(), &hot, &library]).status();
    assert!(opened.is_ok_and(|status| status.success()));
    let arguments = ["run", "-o", "-", "-f", "folded", "--", "setpriv", "--reuid=65534", "--clear-groups"];
    let said = said(swipr(arguments).arg(&hot).env("SWIPR_LIBRARY", &library));
    assert_eq!(said.status, Some(5), "{said:?}");
    assert!(said.out.contains(";main;hot"), "{said:?}");
}

/// For recordings of wall-clock time, which have samples of what gets no CPU, too.
const SHORT: [&str; 2] = ["-DSTATUS=0", "-DSECONDS=0.2"];

#[test]
fn several_runs_are_merged_and_threads_of_one_name_with_them() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &SHORT);
    let script = format!("{}; true", hot.display());
    let runs = directory.path().join("runs");
    let script = format!("echo >> {}; {script}", runs.display());
    let tids = |more: &[&str]| {
        let arguments =
            ["run", "--iteration-count", "3", "-s", "--idle", "-f", "raw", "-o", "-"].iter().chain(more);
        let said = says(arguments.chain(&["--", "sh", "-c", &script])).well();
        let threads: Vec<String> = said
            .out
            .lines()
            .filter(|line| line.starts_with("{\"type\":\"thread\"") && line.contains("\"name\":\"hot\""))
            .map(str::to_owned)
            .collect();
        assert_eq!(said.out.matches("{\"type\":\"header\"").count(), 1, "{}", said.out);
        threads.len()
    };
    assert_eq!(tids(&[]), 3);
    assert_eq!(tids(&["--reuse-threads"]), 1);
    assert_eq!(read(&runs), "\n".repeat(6));
}

#[test]
fn processes_of_one_name_become_one_where_threads_do() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &SHORT);
    let script = format!("{}; true", hot.display());
    let roots = |more: &[&str]| {
        let arguments =
            ["run", "--iteration-count", "2", "-s", "--idle", "-f", "folded", "-o", "-"].iter().chain(more);
        let said = says(arguments.chain(&["--", "sh", "-c", &script])).well();
        let mut roots: Vec<String> = said
            .out
            .lines()
            .filter(|line| line.contains("hot"))
            .filter_map(|line| Some(line.split_once(';')?.0.to_owned()))
            .collect();
        roots.sort();
        roots.dedup();
        roots
    };
    assert_eq!(roots(&["--reuse-threads"]), ["[process hot]"]);
    assert_eq!(roots(&[]).len(), 2);
}

/// Regression: on a full disk the command ended with 125 while the program still ran, and with 101
/// when the reader of standard error was gone.
#[test]
fn the_status_is_the_programs_also_when_the_recording_fails() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &SHORT);
    let hot = hot.display().to_string();
    let full = ["--idle", "-f", "perf", "-o", "/dev/full", "--", &hot];
    says(["run"].iter().chain(&full)).refuses(0, &["/dev/full"]);
    says(["run", "--require-samples"].iter().chain(&full)).refuses(125, &["/dev/full"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = swipr(["run", "-f", "perf", "-o", "/dev/null", "--", &hot]);
    let status = command.stdout(Stdio::null()).stderr(writer).status().expect("its end");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_browser_shows_the_page_where_asked() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &["-DSTATUS=0"]);
    let browser = directory.path().join("browser");
    let script =
        format!("#!/bin/sh\necho \"$1\" > {}/.seen; mv {0}/.seen {0}/seen\n", directory.path().display());
    std::fs::write(&browser, script).expect("a script");
    assert!(Command::new("chmod").arg("+x").arg(&browser).status().is_ok_and(|status| status.success()));
    let mut command = swipr(["run", "--open", "-o", "page.html", "--"]);
    said(command.arg(&hot).env("BROWSER", &browser).current_dir(directory.path())).well();
    let seen = directory.path().join("seen");
    swipr_c_tests::host::wait_until("the browser", || seen.exists());
    assert!(read(&seen).ends_with("/page.html\n"), "{}", read(&seen));
    says(["run", "--open", "-o", "x.perf", "--", "true"]).refuses(2, &["--open", "swipr view"]);
}

#[test]
fn runs_stop_at_the_first_that_fails() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &[]);
    let runs = directory.path().join("runs");
    let script = format!("echo >> {}; exec {}", runs.display(), hot.display());
    let said = says(["run", "--iteration-count", "3", "-f", "folded", "-o", "-", "--", "sh", "-c", &script]);
    assert_eq!((said.status, read(&runs).as_str()), (Some(5), "\n"), "{said:?}");
}

#[test]
fn after_its_duration_the_recording_is_written_and_the_program_goes_on() {
    let directory = Directory::new();
    let file = directory.path().join("early.perf");
    let mut command = swipr(["run", "-d", "500ms", "-o", &file.display().to_string(), "--"]);
    command.arg(&burner().executable);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the command");
    swipr_c_tests::host::wait_until("the file", || file.exists());
    assert!(child.try_wait().expect("a child").is_none(), "the program still runs");
    check_perf(&read(&file), &[BURNS]);
    drop(child.stdin.take());
    assert!(child.wait().expect("its end").success());
}

#[test]
fn what_cannot_be_started_has_the_status_that_shells_give_it() {
    says(["run", "--", "no-such-program"]).refuses(127, &["no-such-program"]);
    // It was taken for a program's name.
    says(["run", "--rat", "100", "true"]).refuses(2, &["--rat", "--rate"]);
    says(["run", "--", "/etc/passwd"]).refuses(126, &["/etc/passwd"]);
    says(["run", "--lib", "/no/libswipr.so", "--", "true"]).refuses(125, &["/no/libswipr.so"]);
    says(["run", "--lib", "/bin/sh", "--", "true"]).refuses(125, &["must begin with libswipr"]);
    says(["run", "-f", "gif", "--", "true"]).refuses(2, &["gif"]);
    let said = says(["run"]);
    assert_eq!(said.status, Some(2), "{said:?}");
}

/// The program ran first, and then its duration was refused.
#[test]
fn a_duration_that_cannot_be_is_refused_before_the_program_runs() {
    let said = says(["run", "-d", "0", "--", "sh", "-c", "echo ran"]);
    assert_eq!((said.status, said.out.as_str()), (Some(2), ""), "{said:?}");
}

#[test]
fn a_program_too_short_for_a_sample_is_told() {
    // On a machine with much to do even this one takes longer than the default interval now and
    // then.
    says(["run", "-r", "1", "-o", "/dev/null", "-f", "perf", "--", "true"]).refuses(0, &["CPU"]);
    let strict = ["run", "--require-samples", "-r", "1", "-o", "/dev/null", "-f", "perf", "--", "true"];
    says(strict).refuses(125, &["CPU"]);
}

#[test]
fn nothing_is_left_behind_and_an_existing_preload_comes_second() {
    let directory = Directory::new();
    let source = directory.path().join("other.c");
    std::fs::write(&source, "int swipr_test_other;\n").expect("a C file");
    let other = directory.path().join("other.so");
    program::compile(&source, &other, &["-shared".into(), "-fPIC".into()], &[]);
    let mut command =
        swipr(["run", "-q", "-o", "/dev/null", "-f", "perf", "--", "sh", "-c", "echo $LD_PRELOAD"]);
    command
        .env("LD_PRELOAD", &other)
        .env("XDG_RUNTIME_DIR", directory.path())
        .env("TMPDIR", directory.path());
    command.current_dir(directory.path());
    let said = said(&mut command);
    let library = std::fs::canonicalize(swipr_c_tests::agent::library()).expect("the library");
    assert_eq!(said.out, format!("{}:{}\n", library.display(), other.display()), "{said:?}");
    let mut left: Vec<String> = std::fs::read_dir(directory.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["other.c", "other.so"]);
}

#[test]
fn a_program_that_runs_can_be_found_by_ls() {
    let mut command = swipr(["run", "-o", "/dev/null", "-f", "perf", "--"]);
    command.arg(&burner().executable);
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    swipr_c_tests::host::wait_until("the program in the list", || {
        let said = says(["ls"]);
        said.out.lines().any(|line| line.contains("no_frame_point") && line.contains("/swipr-run-"))
    });
    host.tell_end();
    host.wait_for("ok");
}

/// Regression: standard streams that were closed were open in the program, and SIGPIPE had its
/// default action where it was ignored.
#[test]
fn a_program_gets_closed_streams_and_ignored_signals_as_they_were() {
    let directory = Directory::new();
    let swipr = format!(
        "SWIPR_LIBRARY={} {} run -q -o {} --",
        agent::library().display(),
        env!("CARGO_BIN_EXE_swipr"),
        directory.path().join("x.folded").display()
    );
    let program = "sh -c 'test -e /proc/self/fd/0; echo $?; grep SigIgn /proc/self/status'";
    for redirected in ["<&-", "</dev/null"] {
        for ignored in ["trap '' PIPE;", ""] {
            let shell = |words: &str| {
                let line = format!("{ignored} {words} {program} {redirected}");
                let out = said(Command::new("sh").args(["-c", &line]).env_remove("LD_PRELOAD")).out;
                let (is_closed, signals) = out.split_once("\nSigIgn:").unwrap_or_else(|| panic!("{out}"));
                let signals = u64::from_str_radix(signals.trim(), 16).expect("a mask");
                (is_closed.to_owned(), signals >> (libc::SIGPIPE - 1) & 1 == 1)
            };
            let expected = (redirected == "<&-", !ignored.is_empty());
            for (is_closed, is_ignored) in [shell(""), shell(&swipr)] {
                assert_eq!((is_closed == "1", is_ignored), expected, "{ignored} {redirected}");
            }
        }
    }
}

/// Regression: the command waited for ever.
#[test]
fn a_program_ends_where_the_signal_of_its_end_was_ignored_and_finds_it_ignored() {
    let directory = Directory::new();
    let file = directory.path().join("x.folded").display().to_string();
    let mut command = swipr(["run", "-q", "-o", &file, "--", "grep", "SigIgn", "/proc/self/status"]);
    command.stdout(Stdio::piped());
    // SAFETY: signal(2) takes values.
    unsafe { command.pre_exec(|| Ok(_ = libc::signal(libc::SIGCHLD, libc::SIG_IGN))) };
    let mut child = command.spawn().expect("the command");
    wait_until("its end", || child.try_wait().expect("a child").is_some());
    let said = Said::of(child.wait_with_output().expect("its end"));
    let ignored = said.out.trim().strip_prefix("SigIgn:").map(|it| u64::from_str_radix(it.trim(), 16));
    let is_ignored = ignored.is_some_and(|it| it.is_ok_and(|it| it >> (libc::SIGCHLD - 1) & 1 == 1));
    assert!(said.status == Some(0) && is_ignored, "{said:?}");
}

/// Regression: a shell did not get its terminal back.
#[test]
fn a_program_that_stops_itself_stops_the_command_and_goes_on_with_it() {
    let directory = Directory::new();
    let file = directory.path().join("x.folded").display().to_string();
    let mut command = swipr(["run", "-q", "-o", &file, "--", "sh", "-c", "kill -TSTP $$; exit 4"]);
    let mut child = command.process_group(0).spawn().expect("the command");
    let id = child.id().cast_signed();
    let mut status = 0;
    wait_until("its stop", || {
        // SAFETY: waitpid(2) writes to `status`; the child has not been waited for.
        unsafe { libc::waitpid(id, &raw mut status, libc::WUNTRACED | libc::WNOHANG) == id }
    });
    assert!(libc::WIFSTOPPED(status), "{status:x}");
    // SAFETY: kill(2) takes values; the child has not been waited for.
    unsafe { libc::kill(id, libc::SIGCONT) };
    wait_until("its end", || child.try_wait().expect("a child").is_some());
    assert_eq!(child.wait().expect("its end").code(), Some(4));
}

/// Regression: the first stack of a program of few functions was cut after one frame, or callers
/// were left out: the frame pointer of one of them was followed.
#[test]
fn a_small_program_has_whole_stacks_from_its_first_sample() {
    let directory = Directory::new();
    let (source, small) = (directory.path().join("small.c"), directory.path().join("small"));
    let text = r#"
        #include <time.h>
        #define OWN __attribute__((noinline, noclone))
        static volatile unsigned long sink;
        OWN int hot(double seconds)
        {
            while ((double)clock() / CLOCKS_PER_SEC < seconds)
                sink++;
            return 1;
        }
        OWN int inner(double seconds) { return hot(seconds) + 1; }
        OWN __attribute__((optimize("no-omit-frame-pointer"))) int middle(double seconds)
        {
            return inner(seconds) + 1;
        }
        OWN int outer(double seconds) { return middle(seconds) + 1; }
        int main(void) { return outer(0.05) - 4; }
    "#;
    std::fs::write(&source, text).expect("a C file");
    program::compile(&source, &small, &["-O1".into(), "-fno-optimize-sibling-calls".into()], &[]);
    let mut stacks = 0;
    for _ in 0..5 {
        let mut run = swipr(["run", "-q", "-r", "1000", "-f", "folded", "-o", "-", "--"]);
        let said = said(run.arg(&small));
        for stack in said.out.lines().filter(|line| line.contains("hot")) {
            assert!(
                stack.contains(";main;outer;middle;inner;hot") && stack.starts_with("_start;"),
                "{said:?}"
            );
            stacks += 1;
        }
        assert!(!said.out.contains("[truncated"), "{said:?}");
    }
    assert!(stacks > 0);
}

/// Only `doctor` said it: users of `record` did not see why the functions were missing.
#[test]
fn why_an_interpreters_functions_are_not_shown_is_said_with_the_recording() {
    let directory = Directory::new();
    let (source, program) = (directory.path().join("python.c"), directory.path().join("python"));
    // The name of a function of CPython, of no version that is known.
    let text = r#"
        #include <time.h>
        void *PyInterpreterState_Head(void) {
            while (clock() < 3 * CLOCKS_PER_SEC);
            return 0;
        }
        int main(void) { return PyInterpreterState_Head() != 0; }
    "#;
    std::fs::write(&source, text).expect("a C file");
    program::compile(&source, &program, &["-O2".into(), "-rdynamic".into()], &[]);
    let program = program.display().to_string();
    let said = says(["run", "-f", "folded", "-o", "-", "--", &program]).well();
    let wanted = "structures are not known: shown as the interpreter's functions";
    assert!(said.errors.contains(wanted), "{said:?}");
}

/// Regression: the line of progress was written over what an interactive program showed.
#[test]
fn on_the_programs_own_terminal_no_line_tells_the_progress() {
    let directory = Directory::new();
    let file = directory.path().join("a.perf").display().to_string();
    let mut command = swipr(["run", "--idle", "-o", &file, "--", "sh", "-c", "printf 'name? '; sleep 1"]);
    let screen = on_a_terminal(command.env("TERM", "xterm"));
    assert!(screen.starts_with("name? swipr: wrote "), "{screen:?}");
}
