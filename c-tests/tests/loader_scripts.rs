//! `loader-scripts/`: a program that can be preloaded is, under the same process id and
//! with everything else as it was; one that cannot be is refused with the reason.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use swipr_c_tests::directory::Directory;
use swipr_c_tests::expectation::check;
use swipr_c_tests::host::{Host, record, wait_until};
use swipr_c_tests::program::{self, Program};
use swipr_c_tests::{agent, recording};

fn scripts() -> PathBuf {
    agent::checkout().join("loader-scripts")
}

/// The script with the library under test.
fn preload() -> Command {
    let mut command = Command::new(scripts().join("swipr-preload.sh"));
    command.arg("--lib").arg(agent::library());
    command.env_remove("LD_PRELOAD").stdin(Stdio::null());
    command
}

fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let directory = Directory::new();
    let Output { status, stdout, stderr } = command
        .env("SWIPR_SOCKET", directory.path().join("{PID}.sock"))
        .output()
        .expect("the script can be started");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (status.code(), text(&stdout), text(&stderr))
}

/// The script must not start `program`, and say all of `why`.
fn refuses(program: &Path, why: &[&str]) {
    let (code, out, errors) = output(preload().arg(program));
    assert_eq!((code, out.as_str()), (Some(126), ""), "{errors}");
    for part in why.iter().chain(&[&*program.to_string_lossy()]) {
        assert!(errors.contains(part), "{part:?} is not in {errors:?}");
    }
}

/// A program that prints `started`.
fn printer(directory: &Directory, name: &str, flags: &[&str]) -> PathBuf {
    let source = directory.path().join("printer.c");
    let text = "#include <stdio.h>\nint main(void) { puts(\"started\"); return 5; }\n";
    std::fs::write(&source, text).expect("a C file");
    let program = directory.path().join(name);
    let flags: Vec<String> = flags.iter().map(|flag| flag.to_string()).collect();
    program::compile(&source, &program, &flags, &[]);
    program
}

/// Copies a file that is to be executed. By another process: a file that this one has
/// open for writing could be inherited by a child that another test starts just now,
/// and could then not be executed.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg(from).arg(to).status();
    assert!(status.is_ok_and(|status| status.success()));
}

/// A script with this first line.
fn script(directory: &Directory, first_line: &str) -> PathBuf {
    let text = directory.path().join("text");
    std::fs::write(&text, format!("{first_line}\necho started\n")).expect("a script");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&text, mode).expect("an executable script");
    let script = directory.path().join("script");
    copy(&text, &script);
    script
}

#[test]
fn a_static_program_is_refused() {
    let directory = Directory::new();
    refuses(&printer(&directory, "static", &["-static"]), &["is static", "(link it dynamically)"]);
}

#[test]
fn a_script_is_refused_when_its_interpreter_would_be() {
    let directory = Directory::new();
    let interpreter = printer(&directory, "static", &["-static"]);
    let line = format!("#! {} -x", interpreter.display());
    let script = script(&directory, &line);
    let (code, _, errors) = output(preload().arg(script));
    assert_eq!(code, Some(126));
    assert!(errors.contains("static"), "{errors}");
}

#[test]
fn a_setuid_program_of_another_user_is_refused() {
    let directory = Directory::new();
    let program = printer(&directory, "setuid", &[]);
    let own = std::fs::metadata(&program).expect("the program").uid();
    let other = if chown(&program, Some(own + 1), None).is_ok() {
        let mode = std::fs::Permissions::from_mode(0o4755);
        std::fs::set_permissions(&program, mode).expect("a setuid program");
        program
    } else {
        // Without the right to give files away: one that every system has.
        ["/bin/su", "/usr/bin/su", "/usr/bin/passwd", "/bin/mount"]
            .map(PathBuf::from)
            .into_iter()
            .find(|path| path.metadata().is_ok_and(|file| file.mode() & 0o4000 != 0))
            .expect("a setuid program, or the right to make one")
    };
    refuses(&other, &["setuid"]);
}

#[test]
fn a_program_of_another_architecture_is_refused() {
    let directory = Directory::new();
    let program = printer(&directory, "foreign", &[]);
    let mut bytes = std::fs::read(&program).expect("the program");
    // e_machine of the ELF header: 243 is RISC-V.
    bytes[18] = 243;
    std::fs::write(&program, bytes).expect("the program");
    refuses(&program, &["riscv"]);
}

#[test]
fn a_musl_program_is_refused_by_a_glibc_library() {
    let directory = Directory::new();
    let flag = "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1";
    refuses(&printer(&directory, "musl", &[flag]), &["musl", "was built for glibc\n"]);
}

#[test]
fn what_is_not_there_or_not_executable_is_told_apart() {
    let directory = Directory::new();
    let (code, _, errors) = output(preload().arg(directory.path().join("none")));
    assert_eq!(code, Some(127), "{errors}");
    let (code, _, errors) = output(preload().arg("no-such-program-anywhere"));
    assert_eq!(code, Some(127), "{errors}");
    let file = directory.path().join("file");
    std::fs::write(&file, "text").expect("a file");
    refuses(&file, &["not an executable"]);
    for wrong in [&[][..], &["--socket"], &["--nonsense", "true"]] {
        let (code, _, errors) = output(preload().args(wrong));
        assert_eq!(code, Some(2), "{wrong:?}: {errors}");
    }
    let mut command = Command::new(scripts().join("swipr-preload.sh"));
    let (code, _, errors) = output(command.args(["--lib", "/no/such/lib.so", "true"]));
    assert_eq!(code, Some(2));
    assert!(errors.contains("/no/such/lib.so"), "{errors}");
}

#[test]
fn an_existing_preload_is_kept_and_comes_second() {
    let directory = Directory::new();
    let source = directory.path().join("other.c");
    std::fs::write(&source, "int swipr_test_other;\n").expect("a C file");
    let other = directory.path().join("other.so");
    let shared = ["-shared", "-fPIC"].map(str::to_string);
    program::compile(&source, &other, &shared, &[]);
    let (code, out, errors) =
        output(preload().env("LD_PRELOAD", &other).args(["sh", "-c", "echo \"$LD_PRELOAD\""]));
    let both = format!("{}:{}\n", agent::library().display(), other.display());
    assert_eq!((code, out), (Some(0), both), "{errors}");
}

#[test]
fn a_library_beside_the_script_is_found() {
    let directory = Directory::new();
    let beside = directory.path().join("swipr-preload.sh");
    copy(&scripts().join("swipr-preload.sh"), &beside);
    let mut command = Command::new(&beside);
    command.args(["sh", "-c", "echo \"$LD_PRELOAD\""]).env_remove("LD_PRELOAD");
    let (code, _, errors) = output(&mut command);
    assert_eq!(code, Some(2), "there is none yet");
    assert!(errors.contains("--lib"), "{errors}");
    let library = directory.path().join("libswipr.so");
    symlink(agent::library(), &library).expect("a link");
    let (code, out, errors) = output(&mut command);
    let wanted = std::fs::canonicalize(directory.path()).expect("a path");
    let wanted = format!("{}\n", wanted.join("libswipr.so").display());
    assert_eq!((code, out), (Some(0), wanted), "{errors}");
}

#[test]
fn the_library_is_found_when_the_script_is_started_by_a_symlink() {
    let (installed, elsewhere) = (Directory::new(), Directory::new());
    copy(&scripts().join("swipr-preload.sh"), &installed.path().join("swipr-preload.sh"));
    symlink(agent::library(), installed.path().join("libswipr.so")).expect("a link");
    symlink(installed.path(), elsewhere.path().join("swipr")).expect("a link");
    symlink("swipr/swipr-preload.sh", elsewhere.path().join("relative")).expect("a link");
    let by_link = elsewhere.path().join("by-link");
    symlink("relative", &by_link).expect("a link");
    let mut command = Command::new(&by_link);
    command.args(["sh", "-c", "echo \"$LD_PRELOAD\""]).env_remove("LD_PRELOAD");
    let (code, out, errors) = output(&mut command);
    let wanted = std::fs::canonicalize(installed.path()).expect("a path");
    let wanted = format!("{}\n", wanted.join("libswipr.so").display());
    assert_eq!((code, out), (Some(0), wanted), "{errors}");
}

#[test]
fn a_loader_started_by_hand_is_not_taken_for_a_static_program() {
    let loader = Path::new("/lib64/ld-linux-x86-64.so.2");
    let directory = Directory::new();
    let program = printer(&directory, "by-loader", &[]);
    let (code, out, errors) = output(preload().arg(loader).arg(&program));
    assert_eq!((code, out.as_str()), (Some(5), "started\n"), "{errors}");
}

#[test]
fn scripts_arguments_and_exit_statuses_go_through() {
    let directory = Directory::new();
    let (code, out, errors) = output(preload().arg(printer(&directory, "plain", &[])));
    assert_eq!((code, out.as_str()), (Some(5), "started\n"), "{errors}");
    for line in ["#!/bin/sh", "#!/usr/bin/env -S A=1 sh", "#! /bin/sh -e"] {
        let (code, out, errors) = output(preload().arg(script(&directory, line)));
        assert_eq!((code, out.as_str()), (Some(0), "started\n"), "{errors}");
    }
    let (code, out, errors) = output(preload().args(["echo", "a program and a builtin"]));
    let wanted = "a program and a builtin\n";
    assert_eq!((code, out.as_str()), (Some(0), wanted), "{errors}");
    let arguments = ["--", "sh", "-c", "printf '<%s>' \"$@\"", "0", "a b", "", "*"];
    let (code, out, errors) = output(preload().args(arguments));
    assert_eq!((code, out.as_str()), (Some(0), "<a b><><*>"), "{errors}");
}

#[test]
fn a_program_started_by_the_script_keeps_its_pid_and_is_profiled() {
    let directory = Directory::new();
    let program = Program::compile("no_frame_pointer", directory.path());
    let mut command = preload();
    command.arg(format!("--socket={}/by-{{PID}}.sock", directory.path().display())).arg(&program.executable);
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    let socket = directory.path().join(format!("by-{}.sock", host.pid()));
    wait_until("the socket", || socket.exists());
    let recording = record(&socket, "samples=200&hz=200");
    let wanted = "every sample of burner has stack burner_main;first;second;third;burn";
    assert_eq!(check(wanted, &recording), Ok(()));
    host.end();
}

#[test]
fn the_demo_shows_the_hottest_functions_and_where_its_files_are() {
    let directory = Directory::new();
    let (code, out, errors) = output(
        Command::new(scripts().join("demo.sh"))
            .arg("1")
            .env("TMPDIR", directory.path())
            .env("SWIPR_LIBRARY", agent::library()),
    );
    assert_eq!(code, Some(0), "{out}{errors}");
    // Regression: it wanted cargo also where there was nothing for cargo to do.
    assert!(out.starts_with("Building a program to profile"), "{out}");
    let table: Vec<&str> = out.lines().filter(|line| line.contains('%')).collect();
    assert!(table.iter().any(|line| line.contains("burn-cpu") && line.contains("circle_curve")), "{out}");
    // Regression: what a thread waits for was in the function's column. It has its own.
    let is_wait =
        |line: &&str| line.contains("clock_nanosleep  ") && line.contains("blocked in clock_nanosleep");
    assert!(table.iter().any(|line| is_wait(line) && line.contains("blocking")), "{out}");
    let is_remark = |line: &&str| ["%  [blocked", "%  [waiting"].iter().any(|remark| line.contains(remark));
    assert!(!table.iter().any(is_remark), "{out}");
    let file = |suffix: &str| {
        let path = out.split_whitespace().find(|word| word.ends_with(suffix));
        std::fs::read_to_string(path.expect("the file's name")).expect("the file")
    };
    let samples = recording::perf(&file(".perf")).expect("perf text");
    assert!(samples.iter().any(|sample| sample.thread == "burn-cpu"));
    assert!(recording::folded(&file(".folded")).is_ok_and(|samples| !samples.is_empty()));
}
