//! Every example in `--help` is run, as it stands there but for process ids, ports and times.

use crate::support::*;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::Host;
use swipr_c_tests::program::Program;

const VERBS: [&str; 12] = [
    "run",
    "record",
    "top",
    "dump",
    "ls",
    "doctor",
    "convert",
    "diff",
    "view",
    "push",
    "proxy",
    "completions",
];

/// The commands that help shows: those that begin two columns in, without what stands far behind them.
fn examples(help: &str) -> Vec<String> {
    let (_, from) = help.split_once("Examples:\n").expect(help);
    let lines = from.lines().take_while(|line| line.starts_with("  "));
    let commands = lines.filter(|line| !line.starts_with("   "));
    commands.map(|line| line.trim().split("   ").next().expect("a command").to_owned()).collect()
}

fn executable(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a script");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("executable");
}

/// A store that takes everything.
fn store() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let (mut read, mut bytes) = (0, [0; 65536]);
                // What it is sent ends with the form's boundary or a message: it answers as soon as nothing more comes.
                let _ = stream.set_read_timeout(Some(std::time::Duration::from_millis(200)));
                while let Ok(got @ 1..) = std::io::Read::read(&mut stream, &mut bytes) {
                    read += got;
                }
                assert!(read > 0);
                let _ =
                    std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            });
        }
    });
    address
}

#[test]
fn every_example_in_help_works() {
    let directory = Directory::new();
    let here = directory.path();
    for name in ["app", "short-benchmark", "make"] {
        short_program(&directory, name, &["-DSTATUS=0"]);
    }
    // A process of that name, and a socket at that place.
    let nginx = here.join("nginx");
    assert!(
        Command::new("cp")
            .arg(&burner().executable)
            .arg(&nginx)
            .status()
            .is_ok_and(|status| status.success())
    );
    swipr_c_tests::agent::library();
    let host = Host::start(&Program { executable: nginx, ..burner().clone() });
    let (pid, socket) = (host.pid().to_string(), host.socket().display().to_string());
    let sockets = host.directory().display().to_string();
    let record = |file: &str| {
        says(["record", &pid, "-d", "300ms", "-o", &here.join(file).display().to_string()]).well()
    };
    record("app.jsonl");
    record("app.pb.gz");
    let perf = says(["record", &pid, "-d", "300ms", "-f", "perf", "-o", "-"]).well().out;
    std::fs::write(here.join("perf.txt"), perf).expect("a file");
    executable(&here.join("perf"), &format!("#!/bin/sh\ncat {}/perf.txt\n", here.display()));
    for folder in [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"] {
        std::fs::create_dir_all(here.join(folder)).expect("a folder");
    }
    let bin = Path::new(env!("CARGO_BIN_EXE_swipr")).parent().expect("a folder");
    let path = format!("{}:{}:{}", here.display(), bin.display(), std::env::var("PATH").unwrap_or_default());
    let store = store();
    let mut all = examples(&says(["--help"]).well().out);
    all.extend(VERBS.iter().flat_map(|verb| examples(&says([verb, "--help"]).well().out)));
    assert!(all.len() > 30, "{all:?}");
    for example in &all {
        let mut command = example
            .replace("1234", &pid)
            .replace("/sockets/app.sock", &socket)
            .replace("/sockets", &sockets)
            .replace("localhost:4040", &store)
            .replace("localhost:4318", &store)
            .replace("-d 10", "-d 1")
            .replace("--iteration-count 10", "--iteration-count 2");
        if command.starts_with("swipr push") && !command.contains("--count") {
            command.push_str(" --count 1 -d 1");
        }
        let is_endless = command.starts_with("swipr proxy")
            || command.starts_with("swipr view")
            || (command.starts_with("swipr record") && !command.contains("-d "));
        if is_endless {
            command = format!("timeout --preserve-status -s INT 4 {command}");
        }
        let mut shell = swipr(["--version"]);
        let environment: Vec<_> =
            shell.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
        shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(&command)
            .current_dir(here)
            .envs(environment)
            .env("PATH", &path)
            .env("HOME", here);
        shell.env_remove("LD_PRELOAD").env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        shell.stdin(std::process::Stdio::null());
        let said = said(&mut shell);
        let wanted = match example.as_str() {
            // Needs a terminal, which it has in its own tests: here it has understood its options.
            text if text.starts_with("swipr top") => Some(2),
            // Serves until it is interrupted.
            text if text.starts_with("swipr proxy") || text.starts_with("swipr view") => Some(130),
            // The proxy of the line before it is gone: in its own test go asks it.
            text if text.starts_with("go tool") => continue,
            _ => Some(0),
        };
        assert_eq!(said.status, wanted, "{example}\n{command}\n{said:?}");
    }
    host.end();
}
