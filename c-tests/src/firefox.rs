//! The Firefox Profiler's importer, without its window: `profiler-cli` of npm's package
//! `@firefox-devtools/profiler-cli` loads a file as the web site does, and reports what is in it. A
//! process of its own keeps the file, and answers requests over a socket, a line of JSON each way.

use crate::directory::Directory;
use crate::harness::NotRun;
use crate::host::{TIMEOUT, wait_until};
use crate::npm;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// At most so many nodes of a tree are reported.
const MAX_NODES: u32 = 100_000;

/// A file that is loaded.
#[derive(Debug)]
pub struct Loaded {
    command: PathBuf,
    home: Directory,
    socket: PathBuf,
}

/// A thread in it.
#[derive(Debug)]
pub struct Thread {
    /// As the site shows it.
    pub name: String,
    /// Its id.
    pub tid: String,
    /// Its name in requests.
    handle: String,
}

const SESSION: &str = "swipr";

impl Loaded {
    /// Loads a file, which the importer must not refuse.
    pub fn load(file: &Path) -> Result<Loaded, NotRun> {
        let installed = npm::installed("@firefox-devtools/profiler-cli")?;
        let command = installed.join("dist/profiler-cli.js");
        let home = Directory::new();
        let socket = home.path().join(format!("{SESSION}.sock"));
        let loaded = Loaded { command, home, socket };
        // On a slow machine the command stops waiting, while the process still loads the file.
        loaded.tell(&["load", &file.to_string_lossy(), "--session", SESSION])?;
        wait_until("the importer's process", || UnixStream::connect(&loaded.socket).is_ok());
        wait_until("the importer to have loaded the file", || {
            let status = loaded.exchange(&json!({"type": "status"}));
            assert!(status["type"] != "error", "the importer refuses the file: {status}");
            status["type"] == "ready"
        });
        Ok(loaded)
    }

    fn tell(&self, words: &[&str]) -> Result<(), NotRun> {
        let mut node = Command::new("node");
        node.arg(&self.command).args(words).env("HOME", self.home.path());
        node.env("PROFILER_CLI_SESSION_DIR", self.home.path()).env("PROFILER_CLI_NO_SYMBOLICATE", "1");
        let done = node.env_remove("LD_PRELOAD").stdin(Stdio::null()).output();
        done.map(|_| ()).map_err(|_| "no node (Debian package nodejs)".to_owned())
    }

    fn exchange(&self, question: &Value) -> Value {
        let mut stream = UnixStream::connect(&self.socket).expect("the importer's process listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a bound");
        stream.write_all(format!("{question}\n").as_bytes()).expect("it reads");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("it answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{question}: {error}: {line}"))
    }

    /// Sends a command for one thread, or for all.
    fn ask(&self, subcommand: &str, more: &Value) -> Value {
        let mut command = json!({"command": "thread", "subcommand": subcommand});
        if let (Some(command), Some(more)) = (command.as_object_mut(), more.as_object()) {
            command.extend(more.clone());
        }
        let mut answer = self.exchange(&json!({"type": "command", "command": command}));
        assert!(answer["type"] == "success", "{command}: {answer}");
        answer["result"].take()
    }

    /// Every thread.
    pub fn threads(&self) -> Vec<Thread> {
        let listed = self.ask("list", &json!({"threadListOptions": {}}));
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let thread = |thread: &Value| Thread {
            name: text(&thread["name"]),
            tid: text(&thread["tid"]),
            handle: text(if thread["threadHandle"].is_null() {
                &thread["handle"]
            } else {
                &thread["threadHandle"]
            }),
        };
        listed["threads"].as_array().expect("threads").iter().map(thread).collect()
    }

    /// The stacks of a thread, each from the root on, with the samples that end there.
    pub fn stacks(&self, thread: &Thread) -> Vec<(Vec<String>, f64)> {
        let more =
            json!({"thread": thread.handle, "includeIdle": true, "callTreeOptions": {"maxNodes": MAX_NODES}});
        let answer = self.ask("samples-top-down", &more);
        let mut all = Vec::new();
        walk(&answer["regularCallTree"], &mut vec![], &mut all);
        all
    }
}

fn walk(node: &Value, above: &mut Vec<String>, all: &mut Vec<(Vec<String>, f64)>) {
    for child in node["children"].as_array().into_iter().flatten() {
        above.push(child["name"].as_str().expect("a function's name").to_owned());
        let own = child["selfSamples"].as_f64().unwrap_or(0.0);
        if own > 0.0 {
            all.push((above.clone(), own));
        }
        walk(child, above, all);
        above.pop();
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // Its process would outlive the test.
        let _ = self.tell(&["stop", SESSION]);
    }
}
