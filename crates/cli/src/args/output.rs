//! Options about what is written, and how.

use crate::error::Error;
use crate::shape::{Places, ReuseThreads, Shape};
use crate::write;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use swipr_formats::{Names, Options, Selection, Weight};

/// Formats that show a thread as the first frame of its stacks, or not at all. The others have a
/// place for threads.
const DRAW_THREADS: [&str; 2] = ["folded", "svg"];

/// How functions are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum NameStyle {
    /// Short: no argument lists, no return types
    #[default]
    Safe,
    /// As demangled
    Raw,
    /// As in the object file
    Mangled,
}

/// What counts are, in formats that have one for each stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Weighed {
    /// Samples
    Samples,
    /// Nanoseconds
    Ns,
}

impl From<Weighed> for Weight {
    fn from(weighed: Weighed) -> Weight {
        match weighed {
            Weighed::Samples => Weight::Samples,
            Weighed::Ns => Weight::Nanoseconds,
        }
    }
}

/// See the module's text.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// The file to write; `-` is standard output (default: swipr-NAME-PID.SUFFIX; of
    /// `convert`, the input's name with another suffix)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Open the page or picture in a browser when it is written
    #[arg(long)]
    pub open: bool,
    /// The format (default: what the file's name says)
    #[arg(short, long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Draw every thread by itself, where the format draws threads (others always tell them apart)
    #[arg(short, long)]
    pub threads: bool,
    /// Merge threads of one name, of all processes and runs
    #[arg(long)]
    pub reuse_threads: bool,
    /// Count by function, not by line
    #[arg(short = 'F', long)]
    pub function: bool,
    /// Leave line numbers out
    #[arg(long)]
    pub nolineno: bool,
    /// The paths of files, where files are written: so it is always, the option is there for
    /// habit's sake
    #[arg(long)]
    pub full_filenames: bool,
    /// Write files and lines also in perf text
    #[arg(long, conflicts_with_all = ["nolineno", "function"])]
    pub lines: bool,
    /// How functions are called
    #[arg(long, value_enum, value_name = "STYLE", default_value_t)]
    pub names: NameStyle,
    /// What folded stacks count (default: nanoseconds of CPU time, samples of wall-clock time)
    #[arg(long, value_enum, value_name = "WHAT")]
    pub weight: Option<Weighed>,
    /// Keep so many frames of a stack; the middle goes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub max_depth: Option<u32>,
    /// A title, where the format has room for one
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Say nothing but errors
    #[arg(short, long, alias = "silent")]
    pub quiet: bool,
    /// Perf text as swift-profile-recorder writes it.
    #[arg(skip)]
    pub compat: bool,
}

impl Output {
    /// The format and how it is to be written.
    pub fn selection(&self) -> Result<Selection, Error> {
        let format = write::choose(self.format.as_deref(), self.output.as_deref())?;
        let options = Options {
            names: match self.names {
                NameStyle::Safe => Names::Safe,
                NameStyle::Raw => Names::Raw,
                NameStyle::Mangled => Names::Mangled,
            },
            lines: self.lines,
            compat: self.compat,
            merge_threads: !self.threads && DRAW_THREADS.contains(&format.name),
            max_depth: self.max_depth.and_then(|depth| depth.try_into().ok()),
            title: self.title.clone(),
            weight: self.weight.map(Weight::from),
            ..Options::default()
        };
        Ok(Selection { format, options })
    }

    /// Options that were given, and that the format has no use for.
    pub fn unused(&self, format: &str) -> Vec<&'static str> {
        let options = [
            ("--names", self.names != NameStyle::Safe, ["raw", "json"].contains(&format)),
            ("--weight", self.weight.is_some(), format != "folded"),
            ("--max-depth", self.max_depth.is_some(), format == "raw"),
            ("--title", self.title.is_some(), ["folded", "perf", "raw"].contains(&format)),
        ];
        let unused = options.into_iter().filter(|(_, is_given, is_unused)| *is_given && *is_unused);
        unused.map(|(name, ..)| name).collect()
    }

    /// What is to be changed about stacks and threads.
    pub fn shape(&self) -> Shape {
        let places = match (self.function, self.nolineno) {
            (true, _) => Places::Functions,
            (false, true) => Places::Files,
            (false, false) => Places::Lines,
        };
        Shape::new(places, self.reuse())
    }

    /// Whether threads of one name become one.
    pub fn reuse(&self) -> ReuseThreads {
        if self.reuse_threads { ReuseThreads::Yes } else { ReuseThreads::No }
    }
}
