//! Where a recording goes, and what is said once it is there.

use super::no_sample::{hardly_any, is_unsampled};
use super::progress::{Talk, figures_line};
use crate::args::Output;
use crate::browser;
use crate::error::{Error, Exit};
use crate::say;
use crate::write::{OutputTarget, Writer};
use std::io::IsTerminal;
use std::path::PathBuf;
use swipr_formats::Selection;
use swipr_formats::model::Summary;

/// The MIME type of formats that are no text.
const BINARY: &str = "application/octet-stream";

/// What is to be written.
#[derive(Clone, Debug)]
pub struct Plan {
    selection: Selection,
    target: OutputTarget,
    /// How much is printed.
    pub talk: Talk,
    /// Whether a browser shows it.
    shown: bool,
}

impl Plan {
    /// As the options say, for the process of that name and id.
    pub fn new(output: &Output, name: &str, pid: u32) -> Result<Plan, Error> {
        let selection = output.selection()?;
        let path = output.output.clone().unwrap_or_else(|| {
            let name: String = name
                .chars()
                .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' })
                .collect();
            PathBuf::from(format!("swipr-{name}-{pid}.{}", selection.format.suffix))
        });
        let talk = if output.quiet { Talk::Quiet } else { Talk::Normal };
        let target = OutputTarget::new(&path);
        if target == OutputTarget::Stdout
            && selection.format.mime == BINARY
            && std::io::stdout().is_terminal()
        {
            let what = format!("{} is binary, and standard output a terminal", selection.format.name);
            return Err(Error::new(what, "choose a file with -o FILE").exit(Exit::Usage));
        }
        let can_be_shown = target != OutputTarget::Stdout && ["html", "svg"].contains(&selection.format.name);
        if output.open && !can_be_shown {
            let what = "--open is for files that end with .html or .svg";
            return Err(Error::new(what, "`swipr view FILE` shows others").exit(Exit::Usage));
        }
        let unused = output.unused(selection.format.name).join(", ");
        if talk == Talk::Normal && !unused.is_empty() {
            say(format_args!("swipr: {} has no use for {unused}", selection.format.name));
        }
        Ok(Plan { selection, target, talk, shown: output.open })
    }

    /// Opens the output.
    pub fn open(&self) -> Result<Writer, Error> {
        Writer::open(&self.selection, &self.target)
    }
}

/// Prints on standard error what was written, and what to do with it; shows it, if that is wanted.
pub fn tell(plan: &Plan, summary: &Summary) {
    if let (true, OutputTarget::File(path)) = (plan.shown, &plan.target) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        browser::open(&path.display().to_string());
    }
    if plan.talk == Talk::Quiet {
        return;
    }
    let figures = figures_line(summary);
    match &plan.target {
        OutputTarget::Stdout => say(format_args!("swipr: {figures}")),
        OutputTarget::File(path) => {
            // Of a device or a pipe nothing is there to be opened.
            let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
            let next = viewer(plan.selection.format.name, &path.display().to_string());
            let next = if is_file { format!("\nnext: {next}") } else { String::new() };
            say(format_args!("swipr: wrote {}: {figures}{next}", path.display()));
        }
    }
}

/// The same of a recording. With `next_if_idle`, what to do then, it is one of CPU time: if the
/// program hardly used any, that is printed, too. `hindrance`: why threads could not be sampled,
/// and what to do. `unread`: why functions of a language are missing.
pub fn tell_recording(
    plan: &Plan,
    summary: &Summary,
    next_if_idle: Option<String>,
    hindrance: Option<(String, &'static str)>,
    unread: Option<String>,
) {
    tell(plan, summary);
    if plan.talk == Talk::Quiet {
        return;
    }
    if let (Some(what), Some(next)) = (hardly_any(summary), next_if_idle) {
        say(format_args!("swipr: {what}\nnext: {next}"));
    }
    if let Some(unread) = unread {
        say(format_args!("swipr: {unread}"));
    }
    if let Some((what, next)) = hindrance.filter(|_| is_unsampled(summary)) {
        say(format_args!("swipr: not sampled: {what}\nnext: {next}"));
    }
}

/// What shows a file of that format.
fn viewer(format: &str, path: &str) -> String {
    match format {
        "perf" => format!("swipr view {path}, or drop it on https://speedscope.app"),
        "firefox" => format!("drop {path} on https://profiler.firefox.com"),
        "raw" => format!("swipr view {path}; swipr convert {path} makes every other format of it"),
        "speedscope" => format!("drop {path} on https://speedscope.app"),
        "pprof" => format!("go tool pprof -http=: {path}"),
        "folded" => format!("drop {path} on https://speedscope.app, or pipe it through flamegraph.pl"),
        "html" | "svg" => format!("open {path} in a browser"),
        _ => format!("less {path}"),
    }
}
