//! Processes that a recording with children has no sample of are named, and their losses unknown.

use crate::support::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::{Host, begin_recording, wait_until};
use swipr_c_tests::http;

/// Says that a process of this name was not recorded, and not that nothing was lost.
fn names_the_unrecorded(said: &Said, name: &str) {
    let (_, named) = said.errors.split_once("not recorded: ").unwrap_or_else(|| panic!("{said:?}"));
    assert!(named.contains(name) && !said.errors.contains("lost 0"), "{said:?}");
    let end: serde_json::Value =
        serde_json::from_str(said.out.lines().last().expect("its end")).expect("JSON");
    assert!(end["uncounted"].as_u64() >= Some(1) && end["dropped"].is_null(), "{end}");
}

/// `swipr run -s` of a program that waits for its input's end, and where its sockets are.
fn running(program: &Path, directory: &Directory) -> (Child, PathBuf) {
    let mut command = swipr(["run", "-s", "-f", "raw", "-o", "-", "--"]);
    command.arg(program).env("XDG_RUNTIME_DIR", directory.path()).env("TMPDIR", directory.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the command");
    let folder = directory.path().join(format!("swipr-run-{}-0", child.id()));
    let has_program = || std::fs::read_dir(&folder).is_ok_and(|mut files| files.next().is_some());
    wait_until("the program's socket", has_program);
    (child, folder)
}

/// They were neither named nor counted, and `lost 0` was said.
#[test]
fn children_that_end_before_their_first_sample_is_handed_over_are_named() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &["-DSTATUS=0"]);
    let script = format!("{}; sh -c 'kill -9 $$'; true", hot.display());
    let said = says(["run", "-s", "-f", "raw", "-o", "-", "--", "sh", "-c", &script]).well();
    names_the_unrecorded(&said, ": sh (");
}

/// The same was said of those whose agent refused.
#[test]
fn children_whose_agent_refuses_are_named() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &["-DSTATUS=0"]);
    let (mut child, folder) = running(&hot, &directory);
    // It says to be this process's agent.
    let pid = std::process::id();
    let agent = UnixListener::bind(folder.join(format!("{pid}-1.sock"))).expect("a socket");
    let (mut asked, _) = agent.accept().expect("a request");
    let _ = asked.read(&mut [0; 4096]).expect("a request");
    let refusal = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nConnection: close\r\n\r\noff\n";
    asked.write_all(refusal.as_bytes()).expect("an answer");
    // The program ends with its input.
    drop(child.stdin.take());
    let said = Said::of(child.wait_with_output().expect("its end")).well();
    names_the_unrecorded(&said, &format!("({pid})"));
}

/// Any user may make a socket where root's programs do: nobody else's is asked for samples.
#[test]
fn sockets_of_strangers_are_left_alone() {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return; // the folder is closed to others
    }
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &["-DSTATUS=0"]);
    let opened = Command::new("chmod").arg("755").arg(directory.path()).status();
    assert!(opened.is_ok_and(|status| status.success()));
    let (mut child, folder) = running(&hot, &directory);
    let script = r#"
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(f"{sys.argv[1]}/{os.getpid()}-1.sock")
listener.listen()
listener.settimeout(3)
try:
    listener.accept()
    print("asked")
except TimeoutError:
    print("left alone")
"#;
    let stranger = Command::new("python3").args(["-c", script]).arg(&folder).uid(65_534).gid(65_534).output();
    assert_eq!(String::from_utf8_lossy(&stranger.expect("python3").stdout), "left alone\n");
    drop(child.stdin.take());
    let said = Said::of(child.wait_with_output().expect("its end")).well();
    assert!(!said.errors.contains("not recorded"), "{said:?}");
}

/// `swipr record -s` named nobody.
#[test]
fn children_of_a_running_process_are_named_too() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "sleep 60 & echo child $!; while :; do :; done"]);
    shell.env("LD_PRELOAD", swipr_c_tests::agent::library());
    let mut host = Host::spawn(shell);
    let child: u32 = host.wait_for("child ").trim_start_matches("child ").trim().parse().expect("an id");
    // Until then it is a copy of the shell, with an agent of its own that ends.
    wait_until("the child to be sleep", || read(Path::new(&format!("/proc/{child}/comm"))) == "sleep\n");
    let socket = host.socket_of(child);
    // Its agent makes no more than that.
    let recordings: Vec<http::Answer> = (0..8).map(|_| begin_recording(&socket, "seconds=60")).collect();
    let said = says(["record", &host.pid().to_string(), "-s", "-d", "1", "-o", "-", "-f", "raw"]).well();
    names_the_unrecorded(&said, &format!(": sleep ({child})"));
    drop(recordings);
    // SAFETY: kill(2) takes no pointer; the child is the shell's, which has not waited for it.
    unsafe { libc::kill(child.cast_signed(), libc::SIGKILL) };
}

/// A shell's copy ends its recording in order to become the program.
#[test]
fn a_process_that_becomes_another_program_is_recorded() {
    let directory = Directory::new();
    let hot = short_program(&directory, "hot", &["-DSTATUS=0"]);
    let script = format!("exec {}", hot.display());
    let said = says(["run", "-s", "-f", "raw", "-o", "-", "--", "sh", "-c", &script]).well();
    assert!(said.errors.contains("lost 0") && !said.errors.contains("not recorded"), "{said:?}");
}
