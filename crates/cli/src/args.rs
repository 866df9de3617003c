//! The command line: every verb and every option, from which help, completions, manual pages and
//! `docs/cli.md` are made. Not here: what they do.

mod files;
mod frames;
mod look;
mod output;
mod proxy;
mod push;
mod record;
mod sample_conv;
mod sampling;
mod shell;
mod span;
mod target;

pub use files::{Convert, Diff, View};
pub use frames::ShownFrames;
pub use look::{Doctor, Dump, Ls, Top};
pub use output::{NameStyle, Output, Weighed};
pub use proxy::Proxy;
pub use push::{Protocol, Push};
pub use record::{Record, Run};
pub use sample_conv::SampleConv;
pub use sampling::{Sampling, pattern, percent};
pub use shell::{Completions, Man};
pub use span::LONGEST;
pub use target::{MaybeTarget, Target};

use clap::{Parser, Subcommand};

/// Profiles native programs from inside: every thread, on and off CPU, without privileges.
#[derive(Debug, Parser)]
#[command(name = "swipr", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = TOP_HELP, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

const TOP_HELP: &str = "\
Examples:
  swipr run -o profile.perf -- ./app --its-options    from start to end
  swipr ls                                            processes that can be profiled
  swipr record 1234 -d 10 -o profile.pb.gz            ten seconds of a running process
  swipr dump 1234                                     every thread's stack, now
  swipr doctor 1234                                   why a process cannot be profiled

Exit status:
  0 done · 1 failed, or nothing was recorded · 2 wrong command line · 3 no such process, or it cannot be profiled
  141 nobody reads its output any more (SIGPIPE)
  run: the program's own; 125 swipr could not start it, 126 the program cannot be started, 127 there is no such program";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start a program with swipr inside it, and record it until it ends.
    Run(Run),
    /// Record a process that runs.
    Record(Record),
    /// Watch a process live: functions, threads, flame graph.
    Top(Top),
    /// Show every thread's stack, now; threads with the same stack together.
    Dump(Dump),
    /// List the processes that can be profiled.
    #[command(visible_alias = "list")]
    Ls(Ls),
    /// Tell why a process cannot be profiled.
    Doctor(Doctor),
    /// Turn a recording into another format.
    Convert(Convert),
    /// Compare two recordings.
    Diff(Diff),
    /// Show a recording in profiler.firefox.com.
    View(View),
    /// Send profiles to Pyroscope or an OpenTelemetry collector, on and on.
    Push(Push),
    /// Let programs that speak TCP ask, for instance `go tool pprof`.
    Proxy(Proxy),
    /// Print completions for a shell.
    Completions(Completions),
    /// Write the manual pages.
    Man(Man),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        Cli::command().debug_assert();
    }
}
