//! `swipr record`.

use crate::support::*;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::{Host, wait_until};
use swipr_c_tests::{agent, http, recording};

#[test]
fn records_a_process_by_its_id_its_name_and_its_socket() {
    let host = running_burner();
    let socket = host.socket().display().to_string();
    let link = Directory::new();
    let name = "a-name-of-its-own";
    let program = link.path().join(name);
    std::fs::copy(&burner().executable, &program).expect("a copy");
    let named = Host::start(&swipr_c_tests::program::Program { executable: program, ..burner().clone() });
    named.socket();
    let pid = host.pid().to_string();
    for target in [&["--pid", &pid][..], &[&pid], &[name], &[&socket], &[&format!("unix://{socket}")]] {
        let arguments = ["record", "-d", "1s", "-o", "-", "-f", "perf"].iter().chain(target);
        let said = says(arguments).well();
        check_perf(&said.out, &[BURNS]);
        assert!(said.errors.contains(", lost "), "{said:?}");
    }
    host.end();
    named.end();
}

#[test]
fn the_files_name_says_the_format_and_f_goes_before_it() {
    let host = running_burner();
    let directory = Directory::new();
    let pid = host.pid().to_string();
    let record = |name: &str, more: &[&str]| {
        let path = directory.path().join(name);
        let file = path.display().to_string();
        let arguments = ["record", &pid, "-d", "1s", "-o", &file].into_iter().chain(more.iter().copied());
        let said = says(arguments).well();
        assert!(said.errors.contains(&format!("wrote {file}")) && said.errors.contains("next: "), "{said:?}");
        std::fs::read(path).expect("a file")
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    assert!(recording::folded(&text(record("a.folded", &[]))).is_ok_and(|samples| !samples.is_empty()));
    check_perf(&text(record("a.perf", &[])), &[BURNS]);
    assert!(record("a.pb.gz", &[]).starts_with(&[0x1f, 0x8b]));
    assert!(text(record("a.jsonl", &[])).contains("{\"type\":\"end\""));
    assert!(text(record("a.folded.perf", &["-f", "raw"])).starts_with("{\"type\":\"header\""));
    let said = says(["record", &pid, "-d", "1s", "-o", "/dev/null", "-f", "folded"]).well();
    assert!(said.errors.contains("wrote /dev/null") && !said.errors.contains("next: "), "{said:?}");
    host.end();
}

/// The rate is the same; a person with curl got time by the clock, and by the command CPU time, and
/// nothing said why.
#[test]
fn where_the_command_and_http_have_different_defaults_both_say_so() {
    let host = running_burner();
    let socket = host.socket();
    let get = |target: &str| {
        let answer = http::get(&socket, target).and_then(http::Answer::read_all).expect("an answer");
        String::from_utf8(answer.body).expect("text")
    };
    let by_command = ["record", &host.pid().to_string(), "-d", "200ms", "-o", "-", "-f", "raw"];
    for (recording, mode) in
        [(get("/profile?samples=3&format=raw"), "wall"), (says(by_command).well().out, "cpu")]
    {
        let header = recording.lines().next().unwrap_or_default();
        let header: serde_json::Value = serde_json::from_str(header).expect(header);
        assert_eq!(header["mode"], mode, "{header}");
        assert_eq!(header["interval_ns"], 10_000_000, "{header}");
    }
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let [run, record] = ["run", "record"].map(|verb| words(says([verb, "--help"]).well().out));
    for help in [run, record] {
        assert!(help.contains("default: cpu, as in py-spy; a request by HTTP: wall, for"), "{help}");
        assert!(help.contains("or Ctrl-C; a request by HTTP: 30 s"), "{help}");
    }
    let help = get("/");
    assert!(help.contains("wall, the default: ") && help.contains("the default of Go's"), "{help}");
    assert!(help.contains("30 unless `samples` is given; `swipr record`: until Ctrl-C"), "{help}");
    host.end();
}

#[test]
fn without_idle_only_threads_that_use_the_cpu_are_there() {
    let host = running_burner();
    let pid = host.pid().to_string();
    let threads = |more: &[&str]| {
        let arguments = ["record", &pid, "-d", "1s", "-o", "-", "-f", "folded", "-t"];
        says(arguments.iter().chain(more)).well().out
    };
    let main = "no_frame_pointer"; // its first thread waits for the end
    let main = &main[..15];
    assert!(!threads(&[]).contains(main), "{}", threads(&[]));
    assert!(threads(&["--idle"]).contains(main));
    assert!(threads(&["--mode", "wall"]).contains("[blocked in "));
    assert!(!threads(&["--idle", "--thread-name", "^burner$"]).contains(main));
    host.end();
}

#[test]
fn threads_are_drawn_where_asked_and_merged_where_not() {
    let host = running_burner();
    let pid = host.pid().to_string();
    let folded = |more: &[&str]| {
        let arguments = ["record", &pid, "-d", "1s", "-o", "-", "-f", "collapsed", "--silent"];
        let said = says(arguments.iter().chain(more)).well();
        assert_eq!(said.errors, "");
        said.out
    };
    assert!(folded(&["--threads"]).lines().all(|line| line.starts_with("burner;")));
    assert!(!folded(&[]).contains("burner;"));
    host.end();
}

#[test]
fn function_and_nolineno_take_lines_and_places_away() {
    let host = running_burner();
    let pid = host.pid().to_string();
    let raw = |more: &[&str]| {
        let arguments = ["record", &pid, "-d", "1s", "-o", "-", "-f", "raw"];
        says(arguments.iter().chain(more)).well().out
    };
    let whole = raw(&[]);
    assert!(whole.contains("\"line\":") && whole.contains("\"file\":"), "{whole}");
    let no_lines = raw(&["--nolineno"]);
    assert!(!no_lines.contains("\"line\":") && no_lines.contains("\"file\":"), "{no_lines}");
    let functions = raw(&["--function"]);
    assert!(!functions.contains("\"line\":"), "{functions}");
    let offsets = functions.matches("\"offset\":").count();
    assert_eq!(offsets, functions.matches("\"offset\":0").count(), "{functions}");
    assert_ne!(whole.matches("\"offset\":").count(), whole.matches("\"offset\":0").count());
    host.end();
}

#[test]
fn ctrl_c_ends_a_recording_and_keeps_it_with_its_figures() {
    let host = running_burner();
    let directory = Directory::new();
    let path = directory.path().join("kept.perf");
    let mut command = swipr(["record", &host.pid().to_string(), "-o", &path.display().to_string()]);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command");
    wait_until("some samples", || samples_taken(&host.socket()) > 30);
    assert!(!path.exists(), "the file is there when it is whole");
    // SAFETY: kill(2) takes no pointer; the child has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let said = Said::of(child.wait_with_output().expect("its end")).well();
    let text = read(&path);
    check_perf(&text, &[BURNS, "samples >= 20"]);
    let last = text.lines().last().expect("a line");
    assert!(
        last.starts_with("# swipr: threads=") && last.contains(" ticks=") && !last.contains("ticks=0"),
        "{last}"
    );
    assert!(said.errors.contains(", lost "), "{said:?}");
    assert_eq!(
        std::fs::read_dir(directory.path()).expect("a folder").count(),
        1,
        "nothing is left beside it"
    );
    host.end();
}

/// Regression: it recorded on until its next write, which formats that write at the end never make.
#[test]
fn it_ends_when_nobody_reads_its_output_any_more() {
    let host = running_burner();
    for format in ["folded", "perf"] {
        let mut command = swipr(["record", &host.pid().to_string(), "-f", format, "-o", "-"]);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command");
        let before = samples_taken(&host.socket());
        wait_until("some samples", || samples_taken(&host.socket()) > before);
        drop(child.stdout.take());
        wait_until("the end of the command", || child.try_wait().is_ok_and(|ended| ended.is_some()));
        let said = Said::of(child.wait_with_output().expect("its end"));
        assert_eq!((said.status, said.errors.as_str()), (None, ""), "by a signal: {said:?}");
    }
    host.end();
}

/// Regression: a reader got nothing until there was a quarter of a megabyte.
#[test]
fn a_pipe_gets_samples_as_they_come() {
    let host = running_burner();
    let arguments = ["record", &host.pid().to_string(), "-r", "5", "-f", "perf", "-o", "-"];
    let mut command = swipr(arguments);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    while !line.contains("burn") {
        line.clear();
        assert!(out.read_line(&mut line).expect("text") > 0, "it has ended");
    }
    assert!(samples_taken(&host.socket()) < 500, "there is no quarter of a megabyte yet");
    drop(out);
    child.wait().expect("its end");
    host.end();
}

/// Regression: under nohup(1) it ended as the terminal was closed.
#[test]
fn a_recording_goes_on_at_a_hang_up_that_is_ignored() {
    let host = running_burner();
    let mut command = swipr(["record", &host.pid().to_string(), "-r", "100", "-o", "-", "-f", "raw"]);
    // SAFETY: signal(2) takes values.
    unsafe { command.pre_exec(|| Ok(_ = libc::signal(libc::SIGHUP, libc::SIG_IGN))) };
    let child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command");
    let send = |signal| {
        // SAFETY: kill(2) takes no pointer; the child has not been waited for.
        unsafe { libc::kill(child.id() as i32, signal) };
    };
    wait_until("some samples", || samples_taken(&host.socket()) > 30);
    send(libc::SIGHUP);
    let before = samples_taken(&host.socket());
    wait_until("more samples", || samples_taken(&host.socket()) > before + 100);
    send(libc::SIGINT);
    Said::of(child.wait_with_output().expect("its end")).well();
    host.end();
}

/// Regression: what another recording had taken counted as this one's. While the flight recorder
/// ran, the command waited two seconds for samples that were not for it.
#[test]
fn ctrl_c_gives_the_figures_of_this_recording_alone() {
    let host = running_burner();
    let pid = host.pid().to_string();
    let record = |rate: &str| {
        let mut command = swipr(["record", &pid, "-r", rate, "-o", "-", "-f", "raw"]);
        command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command")
    };
    let (other, slow) = (record("1000"), record("20"));
    wait_until("samples of both", || samples_taken(&host.socket()) > 1000);
    let ended = [slow, other].map(|child| {
        // SAFETY: kill(2) takes no pointer; the child has not been waited for.
        unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
        Said::of(child.wait_with_output().expect("its end")).well()
    });
    let ticks = ended.map(|said| {
        let end = said.out.lines().last().expect("its end").to_owned();
        let ticks = end.split_once("\"ticks\":").and_then(|(_, rest)| rest.split(',').next()?.parse().ok());
        ticks.unwrap_or_else(|| panic!("{end}"))
    });
    let [slow, other]: [u64; 2] = ticks;
    assert!(slow > 0 && slow * 5 < other, "{slow} ticks, and {other} of the other one");
    host.end();
}

#[test]
fn on_a_terminal_a_line_tells_samples_losses_and_late_ticks() {
    let host = running_burner();
    let directory = Directory::new();
    let file = directory.path().join("a.perf").display().to_string();
    let mut command = swipr(["record", &host.pid().to_string(), "-d", "2", "-o", &file]);
    let screen = on_a_terminal(command.env("TERM", "xterm"));
    // Regression: a line that was longer than the terminal's stayed, five a second.
    for line in screen.split('\r').filter(|line| line.contains("Ctrl-C")) {
        assert!(line.starts_with("\x1b[?7l") && line.ends_with("\x1b[K\x1b[?7h"), "{line:?}");
    }
    let line = screen
        .split('\r')
        .find(|line| line.contains("Ctrl-C ends and keeps it") && !line.contains("losses not known"));
    let line = line.expect(&screen);
    for part in ["no_frame_pointe", " samples", "lost ", "late ticks "] {
        assert!(line.contains(part), "{part:?} is not in {line:?}");
    }
    assert!(screen.contains(&format!("wrote {file}")), "{screen:?}");
    // It cannot take a line back.
    let screen = on_a_terminal(command.env("TERM", "dumb"));
    assert!(screen.contains(&format!("wrote {file}")) && !screen.contains('\x1b'), "{screen:?}");
    host.end();
}

#[test]
fn a_process_that_ends_while_it_is_recorded_leaves_what_was_recorded() {
    let mut host = running_burner();
    let mut command = swipr(["record", &host.pid().to_string(), "-o", "-", "-f", "raw"]);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command");
    wait_until("some samples", || samples_taken(&host.socket()) > 100);
    assert!(host.ended().success());
    let said = Said::of(child.wait_with_output().expect("its end")).well();
    assert!(said.out.lines().last().is_some_and(|line| line.starts_with("{\"type\":\"end\"")), "{said:?}");
}

/// Regression: the program was called idle, after 0.0 s.
#[test]
fn a_process_that_is_killed_before_its_first_sample_is_not_called_idle() {
    let directory = Directory::new();
    let mut sleeper = std::process::Command::new("sleep");
    sleeper.arg("60").env("LD_PRELOAD", swipr_c_tests::agent::library());
    let mut host = Host::spawn(sleeper);
    let (pid, socket) = (host.pid(), host.socket());
    let file = directory.path().join("x.folded").display().to_string();
    let mut command = swipr(["record", &pid.to_string(), "-o", &file]);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command");
    let ticks = || {
        let metrics = http::get(&socket, "/metrics").and_then(http::Answer::read_all).expect("metrics");
        let text = String::from_utf8_lossy(&metrics.body).into_owned();
        let count = text.lines().find_map(|line| line.strip_prefix("swipr_ticks_total "));
        count.and_then(|count| count.parse::<u64>().ok()).expect("the count of ticks")
    };
    // The command asks for the figures every half second.
    wait_until("ticks", || ticks() > 150);
    // SAFETY: kill(2) takes no pointer; the child has not been waited for.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
    let _ = host.wait();
    let said = Said::of(child.wait_with_output().expect("its end"));
    said.refuses(1, &["the process ended, or stopped answering, after "]);
    assert!(!said.errors.contains("(idle)"), "{said:?}");
}

#[test]
fn what_cannot_be_recorded_is_told_with_what_to_do_next() {
    let host = running_burner();
    let pid = host.pid().to_string();
    says(["record", "no-such-name"]).refuses(3, &["no process is called no-such-name"]);
    says(["record", "4194305"]).refuses(3, &["there is no process 4194305"]);
    says(["record", "/no/such.sock"]).refuses(3, &["/no/such.sock"]);
    says(["record", &std::process::id().to_string()]).refuses(3, &["swipr doctor"]);
    says(["record", &pid, "-f", "gif"]).refuses(2, &["no format \"gif\"", "folded"]);
    says(["record", &pid, "-o", "x.gif"]).refuses(2, &["x.gif", ".folded"]);
    says(["record", &pid, "-o", "/no/such/folder/x.perf"]).refuses(1, &["/no/such/folder/x.perf"]);
    let said = says(["record", &pid, "-d", "600", "-o", "-", "-f", "perf", "--thread-name", "("]);
    assert!(said.status == Some(2) && said.errors.contains("it is no regular expression"), "{said:?}");
    for wrong in
        [&["record"][..], &["record", "1", "--rate", "0"], &["record", "1", "-d", "soon"], &["rekord"]]
    {
        assert_eq!(says(wrong).status, Some(2), "{wrong:?}");
    }
    for (option, value, why) in [
        ("-d", "0", "out of range"),
        ("-d", "25h", "out of range"),
        ("-d", "-1", "write a number of seconds"),
        ("-r", "foo", "write a number from 1 to 10000"),
    ] {
        let said = says(["record", &pid, option, value]);
        assert!(said.status == Some(2) && said.errors.contains(why), "{said:?}");
    }
    host.end();
}

/// Regression: for a server that is no agent, the advice was to restart its program.
#[test]
fn what_listens_and_is_no_agent_is_told() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    let server = std::thread::spawn(move || {
        for answer in [&b""[..], b"-ERR unknown command\r\n"] {
            let (mut connection, _) = listener.accept().expect("a connection");
            let mut asked = [0; 4096];
            let _ = std::io::Read::read(&mut connection, &mut asked);
            let _ = std::io::Write::write_all(&mut connection, answer);
        }
    });
    says(["record", &address]).refuses(3, &["without an answer", "no agent of swipr"]);
    says(["record", &address]).refuses(3, &["does not speak HTTP", "no agent of swipr"]);
    server.join().expect("both answers");
}

#[test]
fn where_nothing_was_recorded_there_is_no_file() {
    let host = running_burner();
    let directory = Directory::new();
    let path = directory.path().join("nothing.perf");
    let file = path.display().to_string();
    let arguments = ["record", &host.pid().to_string(), "-d", "600", "-o", &file, "--thread-name", "nobody"];
    // At once, and with the names that there are.
    let said = says(arguments);
    said.refuses(1, &["no thread's name matches \"nobody\"", "burner"]);
    assert!(!said.errors.contains("ended early"), "{said:?}");
    assert_eq!(std::fs::read_dir(directory.path()).expect("a folder").count(), 0);
    host.end();
}

/// Regression: that failed, and the file had `[not sampled]` in place of an earlier recording.
#[test]
fn a_recording_without_a_single_stack_leaves_an_earlier_file_as_it_was() {
    let directory = Directory::new();
    let source = directory.path().join("masked.c");
    let text = r#"
        #include <stdio.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(void)
        {
            const unsigned long all = ~0ul;
            syscall(SYS_rt_sigprocmask, 0, &all, 0, sizeof all);
            puts("ready");
            fflush(stdout);
            for (;;)
                ;
        }
    "#;
    std::fs::write(&source, text).expect("a C file");
    let program = directory.path().join("masked");
    swipr_c_tests::program::compile(&source, &program, &[], &[]);
    let mut masked = Command::new(program);
    masked.env("LD_PRELOAD", agent::library());
    let mut host = Host::spawn(masked);
    host.wait_for("ready");
    host.socket();
    let file = directory.path().join("earlier.folded");
    std::fs::write(&file, "earlier 1\n").expect("written");
    let path = file.display().to_string();
    let said = says(["record", &host.pid().to_string(), "-d", "1", "-o", &path]);
    said.refuses(1, &["not a single sample came: ", &format!("{path} is left as it was")]);
    assert_eq!(read(&file), "earlier 1\n");
}

#[test]
fn children_that_come_later_are_recorded_too_where_asked() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot_child", &[]);
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(format!("echo ready; read go; while :; do {}; done", hot.display()));
    shell.env("LD_PRELOAD", swipr_c_tests::agent::library());
    let mut host = Host::spawn(shell);
    host.wait_for("ready");
    host.socket();
    let mut command = swipr(["record", &host.pid().to_string(), "-s", "-d", "2", "-o", "-", "-f", "folded"]);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command");
    host.tell("go");
    let said = Said::of(child.wait_with_output().expect("its end")).well();
    assert!(
        said.out.lines().any(|line| line.starts_with("[process ") && line.contains(" hot_child];")),
        "{said:?}"
    );
}

/// A shell with the agent that waits for a line, and does something then.
fn shell_that_waits_and(then: &str) -> Host {
    let mut command = Command::new("sh");
    let script = format!("echo ready; read -r line; {then}");
    command.args(["-c", &script]).env("LD_PRELOAD", agent::library());
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    host.socket();
    host
}

/// Regression: it was said to have executed a program.
#[test]
fn a_program_that_waits_is_idle() {
    let mut host = shell_that_waits_and("true");
    let pid = host.pid().to_string();
    // On a loaded machine the agent may be too late for most ticks, and says that.
    wait_until("a recording of nothing", || {
        let said = says(["record", &pid, "-d", "1s", "-o", "/dev/null", "-f", "folded"]);
        assert_eq!(said.status, Some(1), "{said:?}");
        assert!(!said.errors.contains("ended early"), "{said:?}");
        said.errors.contains("(idle)")
    });
    host.tell("go");
}

/// Regression: a service reloaded by exec(2), which ended the recording, and nothing said so.
#[test]
fn a_program_that_is_executed_meanwhile_ends_the_recording_and_that_is_told() {
    let mut host = shell_that_waits_and("exec sleep 30");
    let pid = host.pid();
    let started = std::time::Instant::now();
    let recording = std::thread::spawn(move || {
        says(["record", &pid.to_string(), "--idle", "-d", "30s", "-o", "/dev/null", "-f", "folded"]).well()
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    host.tell("go");
    let said = recording.join().expect("a recording");
    assert!(started.elapsed().as_secs() < 20, "{said:?}");
    let expected = format!("({pid}) executed a program");
    assert!(said.errors.contains("ended early") && said.errors.contains(&expected), "{said:?}");
    // SAFETY: this test's own child, which nobody has waited for.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
}

/// Regression: a recording of 10 s that had 1 s, as its process had been killed, said nothing of
/// it.
#[test]
fn a_process_that_ends_meanwhile_is_told() {
    for (is_killed, duration) in [(true, &["-d", "600s"][..]), (false, &["-d", "600s"]), (false, &[])] {
        let mut host = running_burner();
        let (pid, socket) = (host.pid(), host.socket());
        let recording = std::thread::spawn(move || {
            let target = pid.to_string();
            says([&["record", &target, "-o", "-", "-f", "perf"], duration].concat()).well()
        });
        wait_until("samples", || samples_taken(&socket) > 100);
        if is_killed {
            // SAFETY: this test's own child, which nobody has waited for.
            unsafe { libc::kill(pid as i32, libc::SIGKILL) };
            // Regression: once nothing is left of it, it had no name.
            host.wait();
        } else {
            assert!(host.ended().success());
        }
        let said = recording.join().expect("a recording");
        check_perf(&said.out, &[BURNS]);
        let expected = format!("the recording ended early: {} ({pid}) has ended", &"no_frame_pointer"[..15]);
        assert!(said.errors.contains(&expected), "{said:?}");
        assert_eq!(said.errors.contains("by a signal perhaps"), is_killed, "{said:?}");
    }
}

/// Regression: the file had no byte.
#[test]
fn a_command_that_is_killed_leaves_what_it_got() {
    let (host, directory) = (running_burner(), Directory::new());
    let file = directory.path().join("cut.jsonl").display().to_string();
    let mut command = swipr(["record", &host.pid().to_string(), "-d", "600s", "-o", &file]);
    let mut command = command.stderr(Stdio::null()).spawn().expect("the command");
    let (mut part, mut text) = (None, String::new());
    wait_until("samples in the file", || {
        let mut files = std::fs::read_dir(directory.path()).expect("a folder").flatten();
        part = files.next().map(|file| file.path());
        text = part.as_ref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        text.contains("\"type\":\"sample\"")
    });
    assert!(text.len() < 32 << 10, "not only when there is much: {}", text.len());
    command.kill().expect("its own child");
    command.wait().expect("its end");
    let part = part.expect("a file").display().to_string();
    let said = says(["convert", &part, "-o", "-", "-f", "perf"]);
    check_perf(&said.out, &[BURNS]);
    assert!(said.errors.contains("cut"), "{said:?}");
    host.end();
}
