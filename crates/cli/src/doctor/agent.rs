//! What can be wrong where the library is in the process: the agent did not start, cannot be
//! reached, or has turned itself off.

use super::{Findings, Verdict, why};
use crate::client::{Client, NO_TIMERS, Status};
use crate::endpoint::Endpoint;
use crate::find::{LONG, sockets};
use crate::process::Process;
use std::time::Instant;

/// The library is there and the agent is not.
pub(super) fn did_not_start(process: &Process, findings: &mut Findings) -> Verdict {
    let (pid, name) = (process.pid, process.name());
    let set = |variable: &str| process.variable(variable).filter(|value| !value.is_empty());
    for variable in ["SWIPR_ONLY", "SWIPR_SKIP"] {
        if let Some(value) = set(variable) {
            findings.no(format!("{variable}={value} may leave this program out"));
            return why(
                format!("{variable}={value} leaves process {pid} ({name}) out"),
                format!("start it with another {variable}, or without"),
            );
        }
    }
    if process.has_own_filter() {
        findings.no("it put itself under a seccomp filter: the agent ends before that");
        return why(
            format!("process {pid} ({name}) is in a sandbox of its own (seccomp)"),
            "profile it with its sandbox off, as browsers' --no-sandbox does",
        );
    }
    if process.has_overwritten_environment() {
        findings
            .no("the agent did not start; its variables cannot be seen: it has written its title over them");
        return why(
            format!("the agent in process {pid} ({name}) did not start"),
            "start it with SWIPR_LOG=1: the agent says why on its standard error; SWIPR_ONLY and SWIPR_SKIP leave programs out, by the names of their files",
        );
    }
    if set("LD_PRELOAD").is_none() && set("SWIPR_AUTOSTART").as_deref() != Some("1") {
        findings.no("it is linked with libswipr and has not called swipr_start()");
        return why(
            format!("process {pid} ({name}) has not started swipr"),
            "call swipr_start() (include/swipr.h), or start it with LD_PRELOAD",
        );
    }
    let variables = process.environment().into_iter();
    let ours = |entry: &String| entry.starts_with("SWIPR_") && !entry.starts_with("SWIPR_TOKEN=");
    let set: Vec<String> = variables.filter(ours).collect();
    if !set.is_empty() {
        findings.note(format!("it was started with {}", set.join(" ")));
    }
    findings.no("the agent did not start: its place for the socket is taken or not writable, a variable is wrong, the program has a sandbox of its own (seccomp) or ThreadSanitizer, or an emulator runs it");
    why(
        format!("the agent in process {pid} ({name}) did not start"),
        "start it with SWIPR_LOG=1: the agent says why on its standard error; SWIPR_SOCKET=/a/writable/folder/{PID}.sock is another place for it",
    )
}

/// The agent's threads are there.
pub(super) fn listens(process: &Process, findings: &mut Findings) -> Verdict {
    for namespace in ["mnt", "net", "pid"] {
        if process.shares(namespace) == Some(false) {
            let reached = if namespace == "net" {
                "its abstract and TCP sockets cannot be reached from here"
            } else {
                "its socket is reached through /proc"
            };
            findings.note(format!("it is in another {namespace} namespace: {reached}"));
        }
    }
    if process.has_no_room_for_timers() {
        findings.no(NO_TIMERS.0);
        return why(NO_TIMERS.0, NO_TIMERS.1);
    }
    let places = sockets::of_process(process);
    let Some(first) = places.first() else {
        if let Some(uid) = process.other_user() {
            findings.no(format!("it belongs to user {uid}, and its socket is not for us"));
            return why(
                format!("it belongs to another user, {uid}"),
                format!("be user {uid} or root, or start it with SWIPR_ALLOW_UID=<your user id>"),
            );
        }
        findings.no("where it listens cannot be seen, and nothing is at the default places");
        return why(
            "its socket cannot be found: the kernel does not let us see its descriptors, or the file was removed",
            "be its user or root; or start it with SWIPR_SOCKET=/a/place/{PID}.sock and name that",
        );
    };
    let started = Instant::now();
    let mut verdict = answers(first, findings);
    for place in places.iter().skip(1) {
        // One that is silent at one place is silent at the others.
        if verdict.is_ok() || started.elapsed() > LONG {
            break;
        }
        verdict = answers(place, findings);
    }
    verdict
}

/// The status once the agent has looked for interpreters. It does so at its first recording; this
/// one is of the mappings alone.
fn with_interpreter(client: &Client, status: Status) -> Status {
    let is_unknown = status.interpreter.is_none() && status.off.is_none();
    let mut mappings = is_unknown.then(|| client.get("/maps").ok()).flatten();
    let again = mappings.as_mut().is_some_and(|mappings| mappings.bytes().is_ok());
    again.then(|| client.status_soon().ok()).flatten().unwrap_or(status)
}

/// Whether an agent answers there, and is well.
pub(super) fn answers(place: &Endpoint, findings: &mut Findings) -> Verdict {
    let client = Client::new(place.clone());
    let status = match client.status_soon().map(|status| with_interpreter(&client, status)) {
        Ok(status) => status,
        Err(error) => {
            findings.no(format!("it does not answer: {}", error.what));
            return why(error.what, error.next);
        }
    };
    findings.ok(format!("it answers at {place} (version {})", status.version));
    if let Some(reason) = status.off {
        findings.no(format!("it has turned itself off: {reason}"));
        return why(
            format!("the agent has turned itself off: {reason}"),
            "restart the program: its agent starts again",
        );
    }
    if status.stacks.timers_refused > 0 {
        if status.stacks.timers_armed == 0 {
            findings.no(NO_TIMERS.0);
            return why(NO_TIMERS.0, NO_TIMERS.1);
        }
        let (refused, armed) = (status.stacks.timers_refused, status.stacks.timers_armed);
        findings.note(format!("the kernel refused {refused} timers and made {armed} (`ulimit -i`): some running threads were not sampled"));
    }
    if status.recordings.running > 0 {
        findings.note(format!("recordings that run: {} (at most 8 at a time)", status.recordings.running));
    }
    let threads = &status.threads;
    let seen_less = [
        (&threads.run_with_our_signal_blocked, "run with the agent's signal blocked"),
        (
            &threads.must_not_be_signalled,
            "must not be signalled (small alternate stack, split stacks, or a seccomp filter)",
        ),
    ];
    if !threads.in_step_with_the_kernels_tick.is_empty() {
        let which = threads.in_step_with_the_kernels_tick.join(", ");
        findings
            .note(format!("threads that run in step with the kernel's tick, and are not sampled: {which}"));
    }
    for (which, reason) in seen_less {
        if !which.is_empty() {
            let which = which.join(", ");
            findings
                .note(format!("threads that are seen in system calls only, because they {reason}: {which}"));
        }
    }
    if threads.without_syscall_file > 0 {
        findings
            .note("the kernel does not say where threads are blocked (the process is not dumpable): what waits has no stack");
    }
    note_surroundings(&status, findings);
    findings.ok("it can be profiled");
    Ok(())
}

/// What kernel and runtime mean for its recordings.
fn note_surroundings(status: &Status, findings: &mut Findings) {
    if status.timer_signals_are_raised_by.as_deref() == Some("interrupt") {
        findings.note(
            "this kernel raises timers' signals in an interrupt: threads are hit in user mode only, so that no system call is cut short",
        );
    }
    if let Some(interpreter) = &status.interpreter {
        findings.note(format!("interpreter: {interpreter}"));
    }
}
