//! `swipr doctor`: why a process cannot be profiled, in words: one thing after the other that must
//! hold, until one does not. Without a process: what must hold for programs that are started.

mod agent;

use crate::args::Doctor;
use crate::error::{Error, Exit};
use crate::find::{self};
use crate::preload_check;
use crate::process::Process;
use crate::variables;
use crate::{endpoint::Endpoint, library};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What is found out, in order: what holds, what is worth knowing, and what does not hold.
#[derive(Debug, Default)]
pub(crate) struct Findings(String);

impl Findings {
    fn ok(&mut self, what: impl std::fmt::Display) {
        self.line("ok  ", what);
    }

    fn note(&mut self, what: impl std::fmt::Display) {
        self.line("note", what);
    }

    fn no(&mut self, what: impl std::fmt::Display) {
        self.line("NO  ", what);
    }

    fn line(&mut self, mark: &str, what: impl std::fmt::Display) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "  {mark}  {what}");
    }
}

/// Why not, and what to do.
pub(crate) struct Why {
    what: String,
    next: String,
}

pub(crate) fn why<T>(what: impl Into<String>, next: impl Into<String>) -> Result<T, Why> {
    Err(Why { what: what.into(), next: next.into() })
}

/// Runs the verb.
pub fn doctor(arguments: Doctor) -> Result<ExitCode, Error> {
    let mut findings = Findings::default();
    let (title, verdict) = match arguments.target.given() {
        None => ("programs that `swipr run` starts".to_owned(), for_starting(&mut findings)),
        Some(target) => of_target(&target, &mut findings)?,
    };
    crate::print(format!("{title}\n{}", findings.0).as_bytes())?;
    match verdict {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Why { what, next }) => Err(Error::new(what, next).exit(Exit::NotProfilable)),
    }
}

fn for_starting(findings: &mut Findings) -> Result<(), Why> {
    match library::find(None) {
        Ok(path) => findings.ok(format!("the library is {}", path.display())),
        Err(error) => {
            findings.no(&error.what);
            return why(error.what, error.next);
        }
    }
    match crate::temp_dir::Folder::new() {
        Ok(folder) => findings.ok(format!(
            "sockets can be made in {}",
            folder.path().parent().unwrap_or(Path::new("/")).display()
        )),
        Err(error) => {
            findings.no(format!("there is no folder for sockets: {error}"));
            return why("there is no folder for sockets", "set XDG_RUNTIME_DIR to one that is writable");
        }
    }
    Ok(())
}

type Verdict = Result<(), Why>;

fn of_target(target: &str, findings: &mut Findings) -> Result<(String, Verdict), Error> {
    if let Some(endpoint) = Endpoint::parse(target) {
        let endpoint = endpoint?;
        return Ok((endpoint.to_string(), agent::answers(&endpoint, findings)));
    }
    let process = match target.parse::<u32>() {
        Ok(pid) => match Process::new(pid) {
            Some(process) => process,
            None => return Err(find::no_process(pid)),
        },
        Err(_) => find::only(target)?,
    };
    let uid = process.uid().map_or_else(String::new, |uid| format!(", user {uid}"));
    let title = format!("process {} ({}){uid}", process.pid, process.name());
    Ok((title, of_process(&process, findings)))
}

fn of_process(process: &Process, findings: &mut Findings) -> Verdict {
    let pid = process.pid;
    let names =
        process.environment().into_iter().filter_map(|entry| Some(entry.split_once('=')?.0.to_owned()));
    variables::misspelt(names).iter().for_each(|what| findings.note(what));
    if process.agent_threads().is_empty() {
        loads(process, findings)?;
        return agent::did_not_start(process, findings);
    }
    findings.ok("the agent's threads are there");
    agent::listens(process, findings).map_err(|mut found| {
        found.what = format!("process {pid} cannot be profiled: {}", found.what);
        found
    })
}

/// Whether the library is in the process, and if not, why.
fn loads(process: &Process, findings: &mut Findings) -> Verdict {
    let executable = visible_executable(process, findings)?;
    if let Some(obstacle) = preload_check::obstacle_of(&process.folder().join("exe")) {
        let shown = format!("/proc/{}/exe", process.pid);
        let what = obstacle.what.replace(&shown, &executable.display().to_string());
        findings.no(&what);
        return why(what, obstacle.next);
    }
    findings.ok(format!("{} can be preloaded", executable.display()));
    if process.has_library() == Some(true) {
        findings.ok("libswipr is in its memory");
        return Ok(());
    }
    not_loaded(process, findings)
}

/// The program's file, if the process is one that can be looked at.
fn visible_executable(process: &Process, findings: &mut Findings) -> Result<PathBuf, Why> {
    let (pid, name) = (process.pid, process.name());
    let state = process.status("State").unwrap_or_default();
    if state.starts_with('Z') {
        findings.no("it has ended and waits for its parent to look (zombie)");
        return why(
            format!("process {pid} ({name}) has ended"),
            "`swipr ls` shows those that can be profiled",
        );
    }
    if process.status("VmSize").is_none() {
        findings.no("it is a thread of the kernel");
        return why(
            format!("{pid} ({name}) is a thread of the kernel"),
            "only programs can be profiled: see `perf` for the kernel",
        );
    }
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    let own = unsafe { libc::geteuid() };
    if let Some(uid) = process.other_user() {
        findings.no(format!("it belongs to user {uid}, we are user {own}"));
        return why(
            format!("process {pid} ({name}) belongs to another user, {uid}"),
            format!("be user {uid} or root"),
        );
    }
    findings.ok("it is ours to look at");
    if let Some(executable) = process.executable() {
        return Ok(executable);
    }
    findings.no("the kernel does not let us see it (it has more rights than we, or is not dumpable)");
    why(
        format!("process {pid} ({name}) may not be looked at"),
        match own {
            0 => "have CAP_SYS_PTRACE where it runs, or ask from there (docker exec, kubectl exec)",
            _ => "be root, or have CAP_SYS_PTRACE",
        },
    )
}

/// Why the library is not in its memory.
fn not_loaded(process: &Process, findings: &mut Findings) -> Verdict {
    let (pid, name) = (process.pid, process.name());
    let preload = process.variable("LD_PRELOAD").unwrap_or_default();
    let ours = preload.split([':', ' ']).find(|path| is_library(path));
    let Some(library) = ours else {
        findings.no("it was started without LD_PRELOAD=…/libswipr.so, and has not loaded it since");
        return why(
            format!("process {pid} ({name}) was started without swipr"),
            format!("start it again: swipr run -- {name} … (or with LD_PRELOAD, see README)"),
        );
    };
    findings.ok(format!("LD_PRELOAD names {library}"));
    let inside = process.folder().join("root").join(library.trim_start_matches('/'));
    if library.starts_with('/') && !inside.exists() {
        findings.no("that file is not there, as the process sees its files");
        let (why_not, next) = match process.sees_our_files() == Some(true) && !Path::new(library).exists() {
            true => (", nor for this command", "start it again with the path where the library is"),
            false => (
                ": it has another root or mount namespace",
                "mount the library's folder into its container, at that path",
            ),
        };
        return why(format!("{library} does not exist for process {pid} ({name}){why_not}"), next);
    }
    findings
        .no("the loader did not load it: it is for another C library or architecture, or may not be read");
    why(
        format!("the loader did not take {library} for process {pid} ({name})"),
        "start it with LD_DEBUG=files: the loader says why",
    )
}

fn is_library(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.starts_with("libswipr"))
}
