//! What the verbs take that read recordings.

use super::frames::Frames;
use super::{Output, Weighed};
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use std::path::PathBuf;

/// A folder that is there.
fn folder() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new()
        .try_map(|path| if path.is_dir() { Ok(path) } else { Err("there is no such folder") })
}

/// `swipr convert`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr convert app.jsonl -o app.pb.gz         for go tool pprof
  swipr convert app.pb.gz -o app.folded        for flame graphs
  perf script | swipr convert - -o app.pb.gz   of perf's recordings

Frames of raw recordings that have no name, as symbolize=lazy leaves them and swift-profile-recorder's
own files have them, are named from files that fit by their build id.")]
pub struct Convert {
    /// The recording: raw, perf text, folded or pprof; `-` is standard input
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// The format to read (default: what the file looks like)
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<String>,
    /// A folder with the recorded program's files or their debug files, by path, name or build id;
    /// may be given often
    #[arg(long, value_name = "DIR", alias = "debug-dir", value_parser = folder())]
    pub symbols: Vec<PathBuf>,
    /// Finds names for frames that have none: native, fake (none are found), or an installed
    /// llvm-symbolizer, by name or path
    #[arg(long, value_name = "PROGRAM", default_value = "native")]
    pub symbolizer: PathBuf,
    /// Which frames.
    #[command(flatten)]
    pub frames: Frames,
    /// What to write.
    #[command(flatten)]
    pub output: Output,
}

/// `swipr diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr diff app.jsonl app.pb.gz                   functions whose share has changed, the most first
  swipr diff app.jsonl app.pb.gz -o change.html    as a flame graph: red has grown, blue has shrunk

Recordings of CPU time are not compared with those of wall-clock time: their shares are of different wholes.")]
pub struct Diff {
    /// The earlier recording: raw, perf text, folded or pprof
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// The later one
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// A file that ends with .html, .svg or .txt (default: text to standard output)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What is compared (default: nanoseconds of CPU time, samples of wall-clock time)
    #[arg(long, value_enum, value_name = "WHAT")]
    pub weight: Option<Weighed>,
    /// So many functions in the text
    #[arg(short, long, value_name = "N", default_value_t = 30)]
    pub lines: usize,
    /// A title
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

/// `swipr view`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr view app.jsonl              open profiler.firefox.com with this recording
  swipr view app.pb.gz --no-open    print the address only

A double click on a function shows its source, where it lies on this machine.")]
pub struct View {
    /// The recording: raw, perf text, folded or pprof; `-` is standard input
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// A folder with the recorded program's files or their debug files, by path, name or build id;
    /// may be given often
    #[arg(long, value_name = "DIR", alias = "debug-dir", value_parser = folder())]
    pub symbols: Vec<PathBuf>,
    /// The port on loopback; 0 is any that is free
    #[arg(short = 'P', long, default_value_t = 0)]
    pub port: u16,
    /// Do not open a browser
    #[arg(short, long)]
    pub no_open: bool,
}
