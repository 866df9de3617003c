//! Recordings that the environment asks for: the file of a program's whole life, and the last seconds of one that goes on.

use std::process::Command;
use swipr_c_tests::agent;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::examples::built;
use swipr_c_tests::host::{Host, wait_until};
use swipr_c_tests::http;
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
    // One that was not complete in time is called so.
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
    // What was kept is what a recording would have found.
    let text = String::from_utf8_lossy(&get("/last?seconds=30&format=folded").body).into_owned();
    assert!(
        folded(&text).expect("folded text").iter().any(|sample| sample.chain().contains("burn_cpu_once"))
    );
}

/// `late=0` was said where two of three ticks were, and nothing of the 25 seconds that are not there.
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
    assert!(answer.status == 422 && text.contains("SWIPR_CONTINUOUS=49hz,60s"), "{text}");
}
