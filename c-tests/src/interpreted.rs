//! Stacks in which functions of Python, Perl, PHP, Ruby, JavaScript or Java stand between native
//! ones, out of a recording in JSON lines.

use crate::agent::library;
use crate::host::Host;
use crate::http;
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function; empty if it has no name.
    pub name: String,
    /// `python`, `perl`, `php`, `ruby`, `javascript`, `java`, or empty for machine code, or what
    /// else the recording says.
    pub kind: String,
    /// Its file as it is written.
    pub file: String,
    /// Its line; 0: none.
    pub line: u64,
}

/// A stack, root first, and the id of its thread.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The thread.
    pub tid: u64,
    /// Whether the thread ran.
    pub is_running: bool,
    /// The frames.
    pub frames: Arc<[Frame]>,
}

impl Frame {
    /// Whether it is a function of Python.
    pub fn is_python(&self) -> bool {
        self.kind == "python"
    }
}

impl Stack {
    /// The functions of Python, root first.
    pub fn python(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter(|frame| frame.is_python())
    }

    /// The functions of Perl, root first.
    pub fn perl(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter(|frame| frame.kind == "perl")
    }

    /// The functions of PHP, root first.
    pub fn php(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter(|frame| frame.kind == "php")
    }

    /// The functions of Ruby, root first.
    pub fn ruby(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter(|frame| frame.kind == "ruby")
    }

    /// The functions of JavaScript, root first.
    pub fn javascript(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter(|frame| frame.kind == "javascript")
    }

    /// The methods of Java, root first.
    pub fn java(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter(|frame| frame.kind == "java")
    }

    /// For messages.
    pub fn text(&self) -> String {
        let frame = |frame: &Frame| match frame.line {
            0 => frame.name.clone(),
            line => format!("{} {}:{line}", frame.name, frame.file),
        };
        self.frames.iter().map(frame).collect::<Vec<_>>().join(";")
    }
}

/// Every sample of a recording.
pub fn record(host: &Host, query: &str) -> Vec<Stack> {
    record_at(&host.socket(), query)
}

/// The same of the process that has this socket.
pub fn record_at(socket: &Path, query: &str) -> Vec<Stack> {
    let answer = http::get(socket, &format!("/profile?{query}&format=raw"));
    let answer = answer.and_then(http::Answer::read_all).expect("a recording");
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let (mut threads, mut stacks, mut samples) = (HashMap::new(), HashMap::new(), vec![]);
    if text.starts_with("no sample was taken") {
        // Other processes had the CPUs.
        return samples;
    }
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
        let id = record["id"].as_u64();
        match record["type"].as_str() {
            Some("thread") => _ = threads.insert(id, record["tid"].as_u64().unwrap_or(0)),
            Some("stack") => {
                let frames = record["frames"].as_array().expect("frames");
                _ = stacks.insert(id, Arc::from_iter(frames.iter().rev().map(frame)));
            }
            Some("sample") => samples.push(Stack {
                tid: threads[&record["thread"].as_u64()],
                is_running: record["state"] == "running",
                frames: Arc::clone(&stacks[&record["stack"].as_u64()]),
            }),
            _ => {}
        }
    }
    samples
}

/// At least so many stacks of running threads that pass, in recordings of a second: other processes
/// may have the CPUs most of the time.
pub fn record_running(host: &Host, least: usize, passes: impl Fn(&Stack) -> bool) -> Vec<Stack> {
    let mut stacks = vec![];
    for _ in 0..20 + least / 10 {
        let more = record(host, "seconds=1&hz=1000&source=preempt&mode=cpu");
        stacks.extend(more.into_iter().filter(&passes));
        if stacks.len() >= least {
            break;
        }
    }
    stacks
}

/// Of a program that computes, in `computes`, below 300 functions `called_…` that call each other:
/// nine of ten stacks, at least so many, have all of them. The first ones are read in several
/// samples.
pub fn expect_300_functions(mut host: Host, least: usize, what: &Path) {
    let named = |stack: &Stack, part: &str| stack.frames.iter().filter(|it| it.name.contains(part)).count();
    let stacks = record_running(&host, least, |stack| named(stack, "computes") > 0);
    host.tell("end");
    assert!(host.ended().success());
    let whole = stacks.iter().filter(|stack| named(stack, "called_") == 300).count();
    assert!(whole * 10 > stacks.len() * 9, "{whole} of {}: {}", stacks.len(), what.display());
}

/// The function `computes` calls nothing, so `native` is nowhere behind it, unless a mark says that
/// the places of native frames are not known. Nine of ten stacks have it.
pub fn expect_nothing_called_by(computes: &str, native: &str, stacks: &[Stack], what: &Path) {
    let position = |stack: &Stack, name: &str| stack.frames.iter().rposition(|frame| frame.name == name);
    let is_marked = |stack: &Stack| position(stack, "[native frames between these unknown]").is_some();
    let computing: Vec<&Stack> = stacks.iter().filter(|stack| position(stack, computes).is_some()).collect();
    let is_wrong = |stack: &&&Stack| position(stack, native) > position(stack, computes) && !is_marked(stack);
    let wrong = computing.iter().filter(is_wrong).count();
    let marked = computing.iter().filter(|stack| is_marked(stack)).count();
    let example = computing.iter().find(is_wrong).map(|stack| stack.text());
    let what = format!("{}: {} of {}, {marked} marked", what.display(), computing.len(), stacks.len());
    println!("{what}");
    assert!(wrong == 0, "{what}, {wrong} wrong: {example:?}");
    assert!(10 * computing.len() > 9 * stacks.len(), "{what}");
}

fn frame(frame: &Value) -> Frame {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // Not the functions inlined into it.
    let function = frame["functions"].as_array().and_then(|functions| functions.last());
    let member = |name: &str| function.map_or(Value::Null, |function| function[name].clone());
    Frame {
        name: text(&member("name")),
        kind: text(&frame["kind"]),
        file: text(&member("file")),
        line: member("line").as_u64().unwrap_or(0),
    }
}

/// The Pythons of these minor versions that are in the search path or beside one of pyenv's; a line
/// reports those that are not there.
pub fn pythons(minors: impl Iterator<Item = u32>) -> Vec<(u32, PathBuf)> {
    let of_pyenv = std::env::var("HOME").map(|home| Path::new(&home).join(".pyenv/versions")).ok();
    let of_pyenv =
        of_pyenv.and_then(|versions| std::fs::read_dir(versions).ok()).into_iter().flatten().flatten();
    let mut directories: Vec<PathBuf> = of_pyenv.map(|version| version.path().join("bin")).collect();
    directories.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    // Pyenv's own scripts, which choose a version.
    directories.retain(|directory| !directory.ends_with("shims"));
    let mut found = vec![];
    for minor in minors {
        let paths = directories.iter().map(|directory| directory.join(format!("python3.{minor}")));
        let mut paths: Vec<PathBuf> = paths.filter_map(|path| path.canonicalize().ok()).collect();
        paths.sort();
        paths.dedup();
        if paths.is_empty() {
            println!("not run: python3.{minor} is not installed");
        }
        found.extend(paths.into_iter().map(|path| (minor, path)));
    }
    found
}

/// The interpreter of this name in the search path, and those that the variable names besides,
/// separated by colons.
pub fn interpreters(name: &str, variable: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).map(|directory| directory.join(name));
    let installed = installed.filter(|path| path.exists()).take(1);
    let more = std::env::var_os(variable).unwrap_or_default();
    let more = std::env::split_paths(&more).filter(|path| path.exists());
    let found: Vec<PathBuf> = installed.chain(more).collect();
    if found.is_empty() {
        println!("not run: {name} is not installed");
    }
    found
}

/// Points at which a program is stopped.
const POINTS: usize = 40;

/// Stops a program at points whose stacks it tells, `name|file|line` with tabs between, leaf first.
/// Hands out each stack, its functions of that language in the same form, and what was printed.
pub fn at_points(
    interpreter: &Path,
    script: &str,
    language: &str,
    judge: impl Fn(&Stack, &[String], &[&str]),
) {
    // Interpreters have threads of their own.
    let is_of = |stack: &Stack| stack.frames.iter().any(|frame| frame.kind == language);
    at_points_of(start(interpreter, script, &[]), language, is_of, judge);
}

/// The same, of a program that has started; `is_of`: whether a stack is of the thread that tells.
pub fn at_points_of(
    mut host: Host,
    language: &str,
    is_of: impl Fn(&Stack) -> bool,
    judge: impl Fn(&Stack, &[String], &[&str]),
) {
    for _ in 0..POINTS {
        host.tell("go");
        let printed = host.wait_for("at ");
        let reported: Vec<&str> = printed.trim().split('\t').collect();
        let stack = stack_of_waiting(&host, &is_of);
        let functions = stack.frames.iter().rev().filter(|frame| frame.kind == language);
        let seen: Vec<String> =
            functions.map(|frame| format!("{}|{}|{}", frame.name, frame.file, frame.line)).collect();
        assert!(!stack.text().contains("[native frames between"), "{}", stack.text());
        judge(&stack, &seen, &reported);
        host.tell("on");
        host.wait_for("gone");
    }
    assert!(host.ended().success());
}

/// A recording's last stack that `is_wanted`, of a program that waits. On a busy machine the first
/// recordings may have none.
pub fn stack_of_waiting(host: &Host, is_wanted: impl Fn(&Stack) -> bool) -> Stack {
    let mut recordings = (0..20).map(|_| record(host, "samples=2&hz=100&mode=wall"));
    recordings.find_map(|stacks| stacks.into_iter().rfind(|stack| is_wanted(stack))).expect("the stack")
}

/// Starts a script of `runtimes/` with the agent in it and waits for its `ready`.
pub fn start(interpreter: &Path, script: &str, arguments: &[&str]) -> Host {
    start_with(interpreter, &[], script, arguments, &[])
}

/// The same, with options of the interpreter's, and with variables.
pub fn start_with(
    interpreter: &Path,
    options: &[&str],
    script: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Host {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("runtimes").join(script);
    let mut command = Command::new(interpreter);
    command.args(options).arg(script).args(arguments);
    command.envs(variables.iter().copied());
    start_command(command)
}

/// Starts a program with the agent in it and waits for its `ready`.
pub fn start_command(mut command: Command) -> Host {
    command.env("LD_PRELOAD", library());
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    host
}
