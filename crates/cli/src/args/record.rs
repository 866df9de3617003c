//! What the verbs take that make recordings.

use super::{Output, Sampling, Target};
use clap::Args;
use std::path::PathBuf;

/// `swipr run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr run -- ./app --its-options                 a profile of CPU time, into the current folder
  swipr run --open --idle -- ./app                 where threads wait, too; shown in a browser
  swipr run -o app.pb.gz -d 5 -r 1000 -- ./app     five seconds, a thousand times a second
  swipr run -o app.folded -s -- make -j4           with all child processes
  swipr run -o app.perf --iteration-count 10 --reuse-threads -- ./short-benchmark
                                                   ten runs, in one profile

Exit status: the program's own, or the signal that ended it, also when nothing was recorded (--require-samples:
125 then); 125 swipr could not start it, 126 the program cannot be started, 127 there is no such program.")]
pub struct Run {
    /// What to sample.
    #[command(flatten)]
    pub sampling: Sampling,
    /// What to write.
    #[command(flatten)]
    pub output: Output,
    /// Run the program so many times and merge the recordings
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub iteration_count: u32,
    /// End with status 125 when the program succeeds and nothing was recorded or written
    #[arg(long)]
    pub require_samples: bool,
    /// The library to load (default: the one beside this command, in ../lib or inside it)
    #[arg(long, value_name = "PATH")]
    pub lib: Option<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub command: Vec<std::ffi::OsString>,
}

/// `swipr record`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr record 1234 -d 10                          ten seconds of CPU time, into the current folder
  swipr record nginx -o nginx.perf --idle          by name, until Ctrl-C; where threads wait, too
  swipr record /sockets/app.sock -d 5 -o -         by socket, to standard output
  swipr record 1234 -s -d 10 -o tree.folded        with all child processes")]
pub struct Record {
    /// Which process.
    #[command(flatten)]
    pub target: Target,
    /// What to sample.
    #[command(flatten)]
    pub sampling: Sampling,
    /// What to write.
    #[command(flatten)]
    pub output: Output,
}
