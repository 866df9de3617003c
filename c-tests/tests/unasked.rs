//! Recordings that environment variables start: the file of a program's whole life, and the flight
//! recorder, which keeps the last seconds of a running program.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use swipr_c_tests::agent;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::examples::built;
use swipr_c_tests::host::{Host, wait_until};
use swipr_c_tests::http;
use swipr_c_tests::program::compiled;
use swipr_c_tests::recording::folded;

fn demo(iterations: &str, variable: (&str, &str)) -> (Directory, Command) {
    let (directory, executable) = built("mini_demo");
    let mut command = Command::new(executable);
    command.args(["--burn-cpu", "--threads", "1", "--iterations", iterations]);
    command.env("LD_PRELOAD", agent::library()).env(variable.0, variable.1);
    (directory, command)
}

#[test]
fn a_program_that_ends_leaves_the_file_of_its_whole_life() {
    let directory = Directory::new();
    let pattern = directory.path().join("life.%p.folded");
    let (_built, command) = demo("100", ("SWIPR_OUTPUT", &pattern.to_string_lossy()));
    let mut host = Host::spawn(command);
    let file = directory.path().join(format!("life.{}.folded", host.pid()));
    assert!(host.wait().success());
    let text = std::fs::read_to_string(&file).expect("the file is there when the program has ended");
    let samples = folded(&text).expect("folded text");
    assert!(samples.iter().any(|sample| sample.chain().contains("burn_cpu")), "{text}");
}

/// Regression: a program whose threads work on while it exits crashed in 38 of 40 runs instead of
/// 2: the exit was held up behind the destructors of what they use.
#[test]
fn the_file_is_complete_before_exit_handlers_if_other_threads_run_and_has_them_otherwise() {
    for (what, order, has_handler) in [("works", "behind", false), ("alone", "before", true)] {
        let (directory, mut host) = exits_beside_a_thread(what);
        host.tell_end();
        assert_eq!(host.wait_for("handler "), format!("{order} the file"));
        assert_eq!(host.wait().code(), Some(3));
        let file = directory.path().join(format!("life.{}.folded", host.pid()));
        let text = std::fs::read_to_string(file).expect("the file is there when the program has ended");
        assert_eq!(text.contains("exit_handler"), has_handler, "{text}");
    }
}

/// Regression: in 9 of 15 runs it was the second one's.
#[test]
fn of_two_threads_that_exit_the_first_ones_status_is_the_programs() {
    for _ in 0..5 {
        let (_directory, mut host) = exits_beside_a_thread("exits");
        host.tell_end();
        assert_eq!(host.wait().code(), Some(3));
    }
}

/// Started; all threads of the agent have started.
fn exits_beside_a_thread(what: &str) -> (Directory, Host) {
    let (_built, program) = compiled("exits_beside_a_thread");
    let directory = Directory::new();
    let mut command = Command::new(&program.executable);
    command.arg(what).env("LD_PRELOAD", agent::library());
    command.env("SWIPR_OUTPUT", directory.path().join("life.%p.folded"));
    command.env("LIFE_DIRECTORY", directory.path());
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    let taken = || {
        let status = http::get(&host.socket(), "/status").and_then(http::Answer::read_all).expect("it");
        let status: serde_json::Value = serde_json::from_slice(&status.body).expect("JSON");
        status.pointer("/samples/taken").and_then(serde_json::Value::as_u64)
    };
    wait_until("samples to be taken", || taken() > Some(5));
    (directory, host)
}

#[test]
fn a_program_that_ends_at_once_ends_as_ever_and_its_children_have_their_own_files() {
    let directory = Directory::new();
    let pattern = directory.path().join("life.%p.html");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "/bin/true; /bin/true; exit 7"]).env("LD_PRELOAD", agent::library());
    let mut host = Host::spawn({
        command.env("SWIPR_OUTPUT", &pattern);
        command
    });
    assert_eq!(host.wait().code(), Some(7));
    let files = std::fs::read_dir(directory.path()).expect("the folder");
    // A file that was not complete in time has another name.
    for path in files
        .map_while(Result::ok)
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|end| end == "html"))
    {
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(text.ends_with("</html>"), "{} is whole", path.display());
    }
}

#[test]
fn what_happened_lately_is_told_in_any_format_without_a_new_recording() {
    let (_built, command) = demo("1000000", ("SWIPR_CONTINUOUS", "100hz,60s"));
    let host = Host::spawn(command);
    let socket = host.socket();
    let get = |target: &str| http::get(&socket, target).and_then(http::Answer::read_all).expect(target);
    wait_until("samples of burn_cpu to be kept", || {
        let answer = get("/last?seconds=30&format=folded&include=burn_cpu");
        answer.status == 200 && String::from_utf8_lossy(&answer.body).contains("burn_cpu")
    });
    for format in ["perf", "folded", "pprof", "firefox", "speedscope", "svg", "html", "raw", "dump", "json"] {
        let answer = get(&format!("/last?seconds=30&format={format}"));
        assert!(answer.status == 200 && answer.body.len() > 100, "{format}: {}", answer.status);
    }
    let answer = get("/last?seconds=30&threads=nobody");
    assert_eq!(answer.status, 422);
    // The flight recorder keeps what a recording would have found.
    let text = String::from_utf8_lossy(&get("/last?seconds=30&format=folded").body).into_owned();
    assert!(
        folded(&text).expect("folded text").iter().any(|sample| sample.chain().contains("burn_cpu_once"))
    );
}

/// Regression: the whole answer was made in the program's memory: 1.7 GB for 400 threads and a
/// minute.
#[test]
fn what_is_kept_is_written_a_piece_at_a_time() {
    let (_built, program) = compiled("many_threads");
    let host = Host::start_with_variable(&program, "SWIPR_CONTINUOUS", "49hz,60s");
    let peak_kb = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", host.pid())).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        line.trim_end_matches("kB").trim().parse::<u64>().expect("a number")
    };
    let last = |format: &str| {
        let target = format!("/last?seconds=30&format={format}");
        http::get(&host.socket(), &target).and_then(http::Answer::read_all).expect("an answer").body
    };
    let samples = || {
        let text = String::from_utf8_lossy(&last("folded")).into_owned();
        folded(&text).map_or(0, |stacks| stacks.iter().map(|stack| stack.weight).sum::<u64>())
    };
    wait_until("400,000 samples to be kept", || samples() > 400_000);
    let before_kb = peak_kb();
    let answer_kb = last("perf").len() as u64 / 1024;
    let more_kb = peak_kb() - before_kb;
    assert!(answer_kb > 50_000 && more_kb < answer_kb / 4, "{more_kb} KB more for {answer_kb} KB");
    host.end();
}

/// Regression: the flight recorder read symbols and debug information of all code that it met, and
/// kept them for ever: 18 MB that no client had requested.
#[test]
fn files_are_read_for_the_names_of_what_is_kept_when_somebody_asks() {
    let (_built, command) = demo("1000000", ("SWIPR_CONTINUOUS", "100hz,60s"));
    let host = Host::spawn(command);
    let socket = host.socket();
    let get = |target: &str| http::get(&socket, target).and_then(http::Answer::read_all).expect(target);
    let figure = |pointer: &str| {
        let status: serde_json::Value = serde_json::from_slice(&get("/status").body).expect("JSON");
        status.pointer(pointer).and_then(serde_json::Value::as_u64)
    };
    // While symbols are used the status says that they are busy.
    let number = |pointer: &str| (0..1000).find_map(|_| figure(pointer)).expect(pointer);
    wait_until("samples to be kept", || number("/samples/taken") > 50);
    assert_eq!(number("/symbols/objects"), 0, "nobody has asked for a name");
    let text = String::from_utf8_lossy(&get("/last?seconds=30&format=folded").body).into_owned();
    assert!(text.contains("burn_cpu_once"), "{text}");
    assert!(number("/symbols/objects") > 0, "somebody has");
}

/// Regression: the figures said `late=0` where two of three ticks were late, and nothing of the 25
/// seconds that were missing.
#[test]
fn what_is_kept_tells_its_losses_and_that_it_is_shorter_than_was_asked() {
    let (_built, command) = demo("1000000", ("SWIPR_CONTINUOUS", "100hz,60s"));
    let host = Host::spawn(command);
    let socket = host.socket();
    let figure = |stats: &str, name: &str| {
        let value =
            stats.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
        value.unwrap_or(0_u64)
    };
    let last = |seconds: u32| {
        let target = format!("/last?seconds={seconds}&format=html");
        let answer = http::get(&socket, &target).and_then(http::Answer::read_all).expect("an answer");
        answer.field("x-swipr-stats").unwrap_or_default().to_owned()
    };
    wait_until("a sample to be kept", || figure(&last(300), "samples") > 0);
    for signal in [libc::SIGSTOP, libc::SIGCONT] {
        // SAFETY: kill(2) takes no pointer; the program has not been waited for.
        assert_eq!(unsafe { libc::kill(host.pid().cast_signed(), signal) }, 0);
        std::thread::sleep(std::time::Duration::from_millis(1500));
    }
    wait_until("the ticks that the program was stopped at", || figure(&last(300), "late") >= 100);
    let stats = last(300);
    assert_eq!(figure(&stats, "asked_ns"), 300_000_000_000, "{stats}");
    assert!((1..60_000_000_000).contains(&figure(&stats, "kept_ns")), "{stats}");
    assert!(!last(1).contains("asked_ns"), "{stats}");
}

#[test]
fn a_program_of_which_nothing_is_kept_says_how_it_would_be() {
    let (_built, command) = demo("1000000", ("SWIPR_LOG", "0"));
    let host = Host::spawn(command);
    let answer =
        http::get(&host.socket(), "/last?seconds=5").and_then(http::Answer::read_all).expect("an answer");
    let text = String::from_utf8_lossy(&answer.body);
    assert!(answer.status == 422 && text.contains("SWIPR_CONTINUOUS=1"), "{text}");
}

/// What a shell with the agent in it writes to its standard error. The shell has a child that lives
/// for a second; `meanwhile` runs while it does.
fn said_by_shell(variable: (&str, &str), meanwhile: impl FnOnce(&Path)) -> String {
    let directory = Directory::new();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "/bin/sleep 1; exit 7"]).env("LD_PRELOAD", agent::library());
    command.env("SWIPR_SOCKET", directory.path().join("{PID}.sock")).env(variable.0, variable.1);
    command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null()).stderr(Stdio::piped());
    let shell = command.spawn().expect("a shell");
    let socket = directory.path().join(format!("{}.sock", shell.id()));
    wait_until("the shell's agent", || UnixStream::connect(&socket).is_ok());
    meanwhile(&socket);
    let output = shell.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(7));
    String::from_utf8(output.stderr).expect("UTF-8")
}

/// Regression: the program ran to its end, and then there was no file.
#[test]
fn a_file_that_cannot_be_written_is_told_at_the_start() {
    let said = said_by_shell(("SWIPR_OUTPUT", "/nosuch/life.%p.html"), |_| ());
    let lines: Vec<&str> = said.lines().collect();
    assert!(!lines.is_empty());
    for line in lines {
        assert!(line.contains("]: cannot use SWIPR_OUTPUT: cannot write /nosuch/life."), "{said}");
    }
}

/// Regression: it was written into the program's data, which had descriptor 2.
#[test]
fn what_cannot_be_written_is_not_told_where_standard_error_is_another_file() {
    let (_built, program) = compiled("descriptor_2_is_data");
    let directory = Directory::new();
    let mut command = Command::new(&program.executable);
    command.arg(directory.path()).env("LD_PRELOAD", agent::library());
    command.env("SWIPR_OUTPUT", directory.path().join("life.%p.folded"));
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    host.end();
    assert_eq!(std::fs::read_to_string(directory.path().join("data")).expect("the file"), "first\nlast\n");
}

/// Regression: each agent's flight record stayed in memory: 5.8 MB after 24 calls.
#[test]
fn what_an_agent_has_kept_is_given_back_when_it_starts_again() {
    let (_built, program) = compiled("restarts_of_the_agent");
    let mut command = Command::new(&program.executable);
    command.env("LD_PRELOAD", agent::library()).env("SWIPR_CONTINUOUS", "997hz,60s");
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    let grown: i64 = host.wait_for("grown by ").parse().expect("KiB");
    assert!(grown < 1500, "{grown} KiB");
    host.end();
}

/// Regression: nothing was said, and the half of a file was there.
#[test]
fn a_file_that_a_full_disk_cuts_is_told_at_the_end() {
    let directory = Directory::new();
    let (_built, executable) = built("mini_demo");
    // Each write to a file fails.
    let script = r#"trap '' XFSZ && ulimit -f 0 && exec env LD_PRELOAD="$2" SWIPR_OUTPUT="$1/life.%p.folded" "$3" --burn-cpu --threads 1 --iterations 100"#;
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).args([directory.path(), &agent::library(), &executable]);
    let output = command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null()).output().expect("the program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("]: SWIPR_OUTPUT: cannot write "), "{said}");
}

/// Regression: the file behind a link of that name was overwritten.
#[test]
fn a_link_that_waits_for_the_file_leads_nowhere() {
    let directory = Directory::new();
    let (_built, executable) = built("mini_demo");
    let victim = directory.path().join("victim");
    std::fs::write(&victim, "kept").expect("a file");
    // The program has the shell's process id.
    let script = r#"ln -s "$1/victim" "$1/life.$$.folded.part" && exec env LD_PRELOAD="$2" SWIPR_OUTPUT="$1/life.%p.folded" "$3" --burn-cpu --threads 1 --iterations 100"#;
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).args([directory.path(), &agent::library(), &executable]);
    let output = command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null()).output().expect("the program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_to_string(victim).expect("the file"), "kept");
    let names = std::fs::read_dir(directory.path()).expect("the folder").flatten();
    assert!(names.into_iter().any(|file| file.file_type().is_ok_and(|kind| kind.is_file())
        && file.file_name().to_string_lossy().ends_with(".folded")));
}

/// Regression: the agent listened on its socket alone, and did not say so. A child cannot have its
/// parent's port, and must say nothing.
#[test]
fn a_port_that_is_taken_is_told_once_and_in_the_help_and_in_the_status() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = taken.local_addr().expect("an address").to_string();
    let said = said_by_shell(("SWIPR_LISTEN", &place), |socket| {
        for target in ["/", "/status"] {
            let answer = http::get(socket, target).and_then(http::Answer::read_all).expect(target);
            let text = String::from_utf8(answer.body).expect("UTF-8");
            assert!(text.contains(&format!("cannot bind {place}: ")), "{target}: {text}");
        }
    });
    let lines: Vec<&str> = said.lines().collect();
    let [line] = lines[..] else { panic!("one line: {said:?}") };
    assert!(line.contains(&format!("]: SWIPR_LISTEN: cannot bind {place}: ")), "{line}");
}

/// How the agent's answer to `/health` begins.
fn health(connection: &mut (impl Read + Write)) -> String {
    let mut answer = String::new();
    connection.write_all(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n").expect("a request");
    connection.read_to_string(&mut answer).expect("an answer");
    answer.chars().take(13).collect()
}

/// Regression: the program was not profiled, and nothing was said.
#[test]
fn where_no_file_can_be_made_the_second_address_is_enough() {
    let may_mount =
        Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success());
    if !may_mount {
        return println!("not run: mounts of its own are refused here");
    }
    let name = format!("swipr-test-{}", std::process::id());
    let script = r#"for d in /run /tmp /dev/shm; do mount -o bind "$d" "$d" && mount -o remount,bind,ro "$d" || exit 9; done
        exec env -u XDG_RUNTIME_DIR LD_PRELOAD="$1" SWIPR_LISTEN="@$2" /bin/sleep 2"#;
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(agent::library()).arg(&name);
    command.env_remove("LD_LIBRARY_PATH");
    let mut program = command.spawn().expect("a shell");
    let address = SocketAddr::from_abstract_name(&name).expect("an address");
    let mut connection = None;
    wait_until("the program's agent", || {
        connection = UnixStream::connect_addr(&address).ok();
        connection.is_some()
    });
    assert_eq!(health(&mut connection.expect("a connection")), "HTTP/1.1 200 ");
    assert!(program.wait().expect("its end").success());
}

/// Regression: a line of the agent's went to the beginning of the program's log.
#[test]
fn a_line_in_the_programs_log_overwrites_nothing_there() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = taken.local_addr().expect("an address").to_string();
    for appends in [true, false] {
        let directory = Directory::new();
        let path = directory.path().join("log");
        std::fs::write(&path, if appends { "an earlier line\n" } else { "" }).expect("a log");
        let log = File::options().write(true).append(appends).open(&path).expect("the log");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo first >&2; /bin/sleep 1; echo last >&2"]);
        command.env("LD_PRELOAD", agent::library()).env("SWIPR_LISTEN", &place).stderr(log);
        command.env("SWIPR_SOCKET", directory.path().join("{PID}.sock")).env_remove("LD_LIBRARY_PATH");
        assert!(command.status().expect("a shell").success());
        let log = std::fs::read_to_string(&path).expect("the log");
        let is_whole = |line: &str| {
            ["an earlier line", "first", "last"].contains(&line)
                || line.contains("it is profiled all the same")
        };
        assert!(log.lines().all(is_whole), "{log}");
        assert_eq!(log.lines().count(), if appends { 4 } else { 3 }, "{log}");
    }
}

/// Regression: another test had got the port that was free a moment before.
#[test]
fn the_help_names_the_live_page() {
    let said = said_by_shell(("SWIPR_LISTEN", "127.0.0.1:0"), |socket| {
        let mut connection = TcpStream::connect(http::tcp_address(socket)).expect("the page");
        assert_eq!(health(&mut connection), "HTTP/1.1 200 ");
    });
    assert_eq!(said, "");
}

/// Regression: a recording of threads that do not exist lasted as long as requested, and then said
/// that it was empty.
#[test]
fn threads_that_are_not_there_are_told_at_once() {
    said_by_shell(("SWIPR_CONTINUOUS", "1"), |socket| {
        for (target, status, part) in [
            ("/profile?seconds=600&tid=4194304", 400, "there is no thread 4194304 in this process"),
            (
                "/profile?seconds=600&threads=%5Enobody",
                400,
                "no thread's name matches \"^nobody\"; there are sh",
            ),
            ("/debug/pprof/profile?seconds=600&threads=nobody", 400, "no thread's name matches"),
            ("/profile?samples=1&threads=nobody&may_come=true", 422, "no thread's name matches"),
            ("/dump?threads=%5Esh", 200, "sh"),
            // With its default.
            ("/last?threads=nobody", 422, "no sample"),
        ] {
            let answer = http::get(socket, target).and_then(http::Answer::read_all).expect(target);
            let text = String::from_utf8_lossy(&answer.body);
            assert!(answer.status == status && text.contains(part), "{target}: {} {text}", answer.status);
        }
    });
}
