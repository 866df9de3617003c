//! Starting the command, and programs for it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::Host;
use swipr_c_tests::program::{self, Program};
use swipr_c_tests::{agent, expectation, http, recording};

/// The command with the library under test, and nothing else of this environment that it looks at.
pub fn swipr<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_swipr"));
    command.args(arguments).env("SWIPR_LIBRARY", agent::library()).stdin(Stdio::null());
    for variable in ["LD_PRELOAD", "LD_LIBRARY_PATH", "SWIPR_SOCKET", "SWIPR_TOKEN", "BROWSER"] {
        command.env_remove(variable);
    }
    command
}

/// What it said, and how it ended.
pub struct Said {
    pub status: Option<i32>,
    pub out: String,
    pub errors: String,
}

impl std::fmt::Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let out: String = self.out.chars().take(2000).collect();
        write!(f, "status {:?}, standard output {out:?}, standard error {:?}", self.status, self.errors)
    }
}

impl Said {
    pub fn of(output: Output) -> Said {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said { status: output.status.code(), out: text(&output.stdout), errors: text(&output.stderr) }
    }

    /// It must have ended well.
    pub fn well(self) -> Said {
        assert_eq!(self.status, Some(0), "{self:?}");
        self
    }

    /// It must have failed so, said all of `parts`, and what to do next.
    pub fn refuses(&self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, Some(status), "{self:?}");
        for part in parts {
            assert!(self.errors.contains(part), "{part:?} is not in {self:?}");
        }
        assert!(self.errors.contains("\nnext: "), "{self:?}");
    }
}

/// Runs the command to its end.
pub fn said(command: &mut Command) -> Said {
    Said::of(command.output().expect("the command can be started"))
}

/// The same with these arguments.
pub fn says<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Said {
    said(&mut swipr(arguments))
}

/// Nothing can be written to it.
pub fn full_device() -> std::fs::File {
    std::fs::File::options().write(true).open("/dev/full").expect("a device")
}

/// A program that computes in `burner_main;first;second;third;burn` and runs until it is ended.
pub fn burner() -> &'static Program {
    static BURNER: OnceLock<(Directory, Program)> = OnceLock::new();
    let compile = || {
        let directory = Directory::new();
        let program = Program::compile("no_frame_pointer", directory.path());
        (directory, program)
    };
    &BURNER.get_or_init(compile).1
}

/// It, running with the agent inside.
pub fn running_burner() -> Host {
    agent::library();
    let host = Host::start(burner());
    host.socket();
    host
}

/// What every recording of it must have.
pub const BURNS: &str = "every sample of burner has stack burner_main;first;second;third;burn";

/// What perf text has, checked against what is expected.
pub fn check_perf(text: &str, expectations: &[&str]) {
    let recording = recording::Recording::parse(text, "").expect("perf text");
    let wrong: Vec<String> =
        expectations.iter().filter_map(|line| expectation::check(line, &recording).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A C program that burns CPU in a function `hot`, and exits with 5. It does so for so long that it
/// is sampled on a virtual machine whose CPUs others have most of the time, too; `-DSECONDS=` makes
/// it shorter.
pub fn short_program(directory: &Directory, name: &str, flags: &[&str]) -> PathBuf {
    let source = directory.path().join(format!("{name}.c"));
    let text = r#"
        #include <signal.h>
        #include <stdio.h>
        #include <time.h>
        #ifndef STATUS
        #define STATUS 5
        #endif
        #ifndef SECONDS
        #define SECONDS 0.7
        #endif
        static volatile unsigned long sink;
        __attribute__((noinline)) void hot(double seconds)
        {
            while ((double)clock() / CLOCKS_PER_SEC < seconds)
                for (int i = 0; i < 100000; i++)
                    sink += (unsigned long)i;
        }
        int main(void)
        {
            int c;
            hot(SECONDS);
        #ifdef KILLED
            raise(SIGKILL);
        #endif
            while ((c = getchar()) != EOF)
                putchar(c);
            return STATUS;
        }
    "#;
    std::fs::write(&source, text).expect("a C file");
    let program = directory.path().join(name);
    let flags: Vec<String> = flags.iter().map(|flag| flag.to_string()).collect();
    program::compile(&source, &program, &flags, &[]);
    program
}

/// What an agent says of itself.
pub fn status(socket: &Path) -> serde_json::Value {
    let answer = http::get(socket, "/status").and_then(http::Answer::read_all).expect("an answer");
    serde_json::from_slice(&answer.body).expect("JSON")
}

/// How many samples an agent has taken.
pub fn samples_taken(socket: &Path) -> u64 {
    status(socket)["samples"]["taken"].as_u64().expect("a number")
}

/// A file's text.
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a command writes to a terminal, until it has ended.
pub fn on_a_terminal(command: &mut Command) -> String {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::FromRawFd;
    let (mut ours, mut theirs) = (0, 0);
    let size = libc::winsize { ws_row: 30, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: openpty(3) writes the two descriptors, and reads the size.
    let status =
        unsafe { libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null(), &size) };
    assert_eq!(status, 0, "a terminal");
    // SAFETY: the descriptors are new and ours.
    let (mut ours, theirs) = unsafe { (File::from_raw_fd(ours), File::from_raw_fd(theirs)) };
    let again = || theirs.try_clone().expect("a descriptor");
    let mut child = command.stdin(again()).stdout(again()).stderr(again()).spawn().expect("the command");
    drop(theirs);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut screen = Vec::new();
    // A terminal whose other end is closed answers EIO.
    let _ = ours.read_to_end(&mut screen);
    let _ = child.wait();
    String::from_utf8_lossy(&screen).into_owned()
}
