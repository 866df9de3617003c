//! `swipr ls`: the processes that can be profiled from here, and those behind sockets in shared
//! folders.

use crate::args::Ls;
use crate::endpoint::Endpoint;
use crate::error::{Error, Exit};
use crate::find::{self, Found, folders, sockets};
use crate::process::Process;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;
use swipr_formats::names::printable;

/// Agents that are asked at the same time.
const AT_A_TIME: usize = 64;

/// A line of the list.
#[derive(Debug, Serialize)]
struct AgentRow {
    pid: u32,
    /// Whether the process can be seen from here, or only its socket.
    visible: bool,
    uid: Option<u32>,
    name: String,
    threads: Option<u64>,
    uptime_seconds: Option<u64>,
    recordings: Option<u64>,
    socket: String,
    /// What is wrong with it, if anything.
    trouble: Option<String>,
}

/// Runs the verb.
pub fn ls(arguments: Ls) -> Result<ExitCode, Error> {
    if let Some(missing) = arguments.folders.iter().find(|folder| !folder.is_dir()) {
        let what = format!("there is no folder {}", missing.display());
        return Err(Error::new(what, "without a folder, all usual places are looked into").exit(Exit::Usage));
    }
    let mut seen = BTreeSet::new();
    let (processes, usual) = match arguments.folders.is_empty() {
        true => (Process::all(), folders::usual()),
        false => (Vec::new(), arguments.folders),
    };
    let processes = processes.into_iter().filter_map(|process| listed(process, &mut seen));
    let mut all: Vec<Listed> = processes.collect();
    for path in usual.iter().flat_map(|folder| folders::sockets_in(folder)) {
        let place = Endpoint::Path(path);
        if file_id(&place).is_some_and(|id| seen.insert(id)) {
            all.push(Listed::Socket(place));
        }
    }
    let rows = rows(&all);
    let text = if rows.is_empty() && !arguments.json {
        String::new()
    } else if arguments.json {
        let json = serde_json::to_string_pretty(&rows).unwrap_or_default();
        format!("{json}\n")
    } else {
        table(&rows)
    };
    crate::print(text.as_bytes())?;
    if rows.is_empty() {
        return Err(Error::new(
            "there is no process with swipr inside that can be seen from here",
            "`swipr run -- CMD` starts one; `swipr doctor PID` says why another is not in the list",
        )
        .exit(Exit::NotProfilable));
    }
    Ok(ExitCode::SUCCESS)
}

/// What is asked for a row.
enum Listed {
    /// An agent's process, and where it seems to listen.
    Process(Process, Vec<Endpoint>),
    /// A socket whose process was not met.
    Socket(Endpoint),
}

/// A process with an agent; its sockets are seen.
fn listed(process: Process, seen: &mut BTreeSet<(u64, u64)>) -> Option<Listed> {
    if process.agent_threads().is_empty() {
        return None;
    }
    let places = sockets::of_process(&process);
    seen.extend(places.iter().filter_map(file_id));
    Some(Listed::Process(process, places))
}

/// Asks many at a time: those that do not answer take their time together.
fn rows(all: &[Listed]) -> Vec<AgentRow> {
    let mut rows = Vec::new();
    for some in all.chunks(AT_A_TIME) {
        std::thread::scope(|scope| {
            let ask = |listed| {
                (listed, std::thread::Builder::new().spawn_scoped(scope, move || Listed::row(listed)))
            };
            let asked: Vec<_> = some.iter().map(ask).collect();
            rows.extend(asked.into_iter().filter_map(|(listed, row)| match row {
                Ok(row) => row.join().ok().flatten(),
                // Its user may have no more threads.
                Err(_) => listed.row(),
            }));
        });
    }
    rows
}

impl Listed {
    fn row(&self) -> Option<AgentRow> {
        let (process, places) = match self {
            // A socket that is nobody's, or somebody else's, has none.
            Listed::Socket(place) => return find::at(place.clone(), None).ok().map(|found| row(&found)),
            Listed::Process(process, places) => (process, places),
        };
        Some(match find::of_pid(process.pid) {
            Ok(found) => row(&found),
            Err(error) => AgentRow {
                pid: process.pid,
                visible: true,
                uid: process.uid(),
                name: process.name(),
                threads: Some(process.threads()),
                uptime_seconds: None,
                recordings: None,
                socket: places.first().map_or_else(|| "?".to_owned(), ToString::to_string),
                trouble: Some(error.what),
            },
        })
    }
}

fn row(found: &Found) -> AgentRow {
    AgentRow {
        pid: found.pid(),
        visible: found.process.is_some(),
        uid: found.process.as_ref().and_then(Process::uid),
        name: found.name(),
        threads: found.process.as_ref().map(Process::threads),
        uptime_seconds: Some(found.status.uptime_seconds),
        recordings: Some(found.status.recordings.running),
        socket: found.client.endpoint().to_string(),
        trouble: found.status.off.clone(),
    }
}

fn file_id(place: &Endpoint) -> Option<(u64, u64)> {
    let Endpoint::Path(path) = place else { return None };
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

fn table(rows: &[AgentRow]) -> String {
    let mut out = Vec::new();
    // Writing to a Vec cannot fail.
    let _ = writeln!(out, "{:>8} {:>6} {:<16} {:>7} {:>8}  SOCKET", "PID", "UID", "NAME", "THREADS", "UP");
    for row in rows {
        let pid = if row.visible { row.pid.to_string() } else { format!("({})", row.pid) };
        let number = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        let (uid, threads) = (number(row.uid.map(u64::from)), number(row.threads));
        let up = row.uptime_seconds.map_or_else(|| "?".to_owned(), age);
        let (name, socket) = (printable(&row.name), printable(&row.socket));
        let _ = write!(out, "{pid:>8} {uid:>6} {name:<16} {threads:>7} {up:>8}  {socket}");
        if let Some(running) = row.recordings.filter(|&running| running > 0) {
            let _ = write!(out, " ({running} recording)");
        }
        if let Some(trouble) = &row.trouble {
            let _ = write!(out, " ({})", printable(trouble));
        }
        out.push(b'\n');
    }
    if rows.iter().any(|row| !row.visible) {
        let _ =
            writeln!(out, "(id): as the process sees itself, in another container: name it by its socket");
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// `5s`, `12m`, `3h`, `9d`.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}
