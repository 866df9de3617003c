//! `swipr dump`: every thread's stack, now. Threads with the same stack are shown together.

mod equal_stacks;

use crate::args::Dump;
use crate::error::Error;
use crate::find::{self, Found};
use crate::record::Descendants;
use std::process::ExitCode;

/// Runs the verb.
pub fn dump(arguments: Dump) -> Result<ExitCode, Error> {
    let found = find::one(&arguments.target.text())?;
    let mut all = vec![found];
    if arguments.subprocesses
        && let Some(process) = all.first().and_then(|found| found.process.clone())
    {
        all.extend(Descendants::of(&process).new_ones());
    }
    let mut out = Vec::new();
    let (mut written, mut failure) = (0, None);
    for found in &all {
        match of(found, &arguments) {
            // JSON: one object a line, one a process.
            Ok(bytes) => {
                out.extend((written > 0 && !arguments.json).then_some(b'\n'));
                out.extend_from_slice(&bytes);
                written += 1;
            }
            // A child that has just ended is no reason to fail.
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    crate::print(&out)?;
    match failure {
        Some(error) if written == 0 => Err(error),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn of(found: &Found, arguments: &Dump) -> Result<Vec<u8>, Error> {
    let format = if arguments.json { "json" } else { "dump" };
    let mut target = format!("/dump?format={format}");
    if let Some(regex) = &arguments.thread_name {
        target.push_str(&format!("&threads={}", crate::args::percent(regex)));
    }
    target.push_str(arguments.frames.query());
    let client = found.client.clone().waiting();
    let dump = client.get(&target)?.bytes().map_err(|error| found.client.unreachable(&error))?;
    Ok(match arguments.json {
        true => dump,
        false => equal_stacks::together(&String::from_utf8_lossy(&dump)).into_bytes(),
    })
}
