//! Where a recording goes, and what is said once it is there.

use super::progress::{Talk, figures_line};
use crate::args::Output;
use crate::error::Error;
use crate::write::{Target, Writer};
use std::path::PathBuf;
use swipr_formats::Selection;
use swipr_formats::model::Summary;

/// What is to be written.
#[derive(Clone, Debug)]
pub struct Plan {
    selection: Selection,
    target: Target,
    /// How much is told.
    pub talk: Talk,
}

impl Plan {
    /// As the options say, for the process of that name and id.
    pub fn new(output: &Output, name: &str, pid: u32) -> Result<Plan, Error> {
        let mut selection = output.selection()?;
        let path = output.output.clone().unwrap_or_else(|| {
            let name: String = name
                .chars()
                .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' })
                .collect();
            PathBuf::from(format!("swipr-{name}-{pid}.{}", selection.format.suffix))
        });
        if selection.options.title.is_none() {
            selection.options.title = Some(format!("{name} ({pid})"));
        }
        let talk = if output.quiet { Talk::Quiet } else { Talk::Normal };
        Ok(Plan { selection, target: Target::new(&path), talk })
    }

    /// Opens the output.
    pub fn open(&self) -> Result<Writer, Error> {
        Writer::open(&self.selection, &self.target)
    }
}

/// Says on standard error what was written, and what to do with it.
pub fn tell(plan: &Plan, summary: &Summary) {
    if plan.talk == Talk::Quiet {
        return;
    }
    let figures = figures_line(summary);
    match &plan.target {
        Target::Stdout => eprintln!("swipr: {figures}"),
        Target::File(path) => {
            eprintln!("swipr: wrote {}: {figures}", path.display());
            eprintln!("next: {}", viewer(plan.selection.format.name, &path.display().to_string()));
        }
    }
}

/// What shows a file of that format.
fn viewer(format: &str, path: &str) -> String {
    match format {
        "perf" | "firefox" => {
            format!("drop {path} on https://profiler.firefox.com or https://speedscope.app")
        }
        "speedscope" => format!("drop {path} on https://speedscope.app"),
        "pprof" => format!("go tool pprof -http=: {path}"),
        "folded" => format!("drop {path} on https://speedscope.app, or pipe it through flamegraph.pl"),
        "html" | "svg" => format!("open {path} in a browser"),
        _ => format!("less {path}"),
    }
}
