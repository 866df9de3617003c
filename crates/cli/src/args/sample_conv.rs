//! The options of swift-profile-recorder's `swipr-sample-conv`, under which name this command is
//! `swipr convert`.

use super::frames::Frames;
use super::{Convert, Output};
use clap::{ArgAction, Parser, ValueEnum};
use std::path::PathBuf;

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// perf script's text
    PerfScript,
    /// A pprof profile
    Pprof,
    /// Folded stacks
    Collapsed,
}

/// Names and formats what swift-profile-recorder recorded, as its own `swipr-sample-conv` does.
#[derive(Debug, Parser)]
#[command(name = "swipr-sample-conv", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  swipr-sample-conv < /tmp/samples | swift demangle --simplified > /tmp/stacks.perf

`swipr convert` does more: it reads and writes more formats.")]
pub struct SampleConv {
    /// The recording, in swift-profile-recorder's raw format or in swipr's; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub input: PathBuf,
    /// Where to write to; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// What to write
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "perf-script")]
    pub format: Format,
    /// A folder with the recorded program's files or their debug files, by path, name or build id;
    /// may be given often
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    /// Find names without another program; false: by llvm-symbolizer
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub use_native_symbolizer: bool,
    /// Find no names
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub use_fake_symbolizer: bool,
    /// Write files and lines in perf script's text
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub enable_file_line: bool,
    /// So llvm-symbolizer is always asked: the option is there for habit's sake
    #[arg(long, value_name = "BOOL", hide = true, action = ArgAction::Set)]
    pub via_json: Option<bool>,
    /// Not needed here: the option is there for habit's sake
    #[arg(long, value_name = "BOOL", hide = true, action = ArgAction::Set)]
    pub unstucker_workaround: Option<bool>,
    /// Errors are printed, and nothing else: the option is there for habit's sake
    #[arg(long, value_name = "LEVEL", hide = true)]
    pub log_level: Option<String>,
}

impl From<SampleConv> for Convert {
    fn from(arguments: SampleConv) -> Convert {
        let format = match arguments.format {
            Format::PerfScript => "perf",
            Format::Pprof => "pprof",
            Format::Collapsed => "folded",
        };
        let symbolizer = match (arguments.use_fake_symbolizer, arguments.use_native_symbolizer) {
            (true, _) => "fake",
            (false, true) => "native",
            (false, false) => "llvm-symbolizer",
        };
        let output = Output {
            output: Some(arguments.output),
            format: Some(format.to_owned()),
            lines: arguments.enable_file_line,
            // Its text has no periods: what sums them up counts samples.
            compat: true,
            quiet: true,
            ..Output::default()
        };
        let (input, symbols) = (arguments.input, arguments.symbols);
        let (from, frames) = (Some("raw".to_owned()), Frames::default());
        Convert { input, from, symbols, symbolizer: symbolizer.into(), frames, output }
    }
}
