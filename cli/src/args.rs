//! The command line: every verb and every option, from which help, completions, manual pages and `docs/cli.md` are
//! made. Not here: what they do.

mod output;
mod push;
mod sampling;
mod span;

pub use output::Output;
pub use push::{Protocol, Push};
pub use sampling::{Sampling, longest, percent};
pub use span::span;

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

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
  swipr ls                                            who can be profiled
  swipr record 1234 -d 10 -o profile.pb.gz            ten seconds of a running process
  swipr dump 1234                                     every thread's stack, now
  swipr doctor 1234                                   why a process cannot be profiled

Exit status:
  0 done · 1 failed, or nothing was recorded · 2 wrong command line · 3 no such process, or it cannot be profiled
  run: the program's own; 125 swipr failed, 126 the program cannot be started, 127 there is no such program";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Start a program with swipr inside it, and record it until it ends.
    Run(Run),
    /// Record a process that runs.
    Record(Record),
    /// Watch a process live: functions, threads, flame graph.
    Top(Top),
    /// Show every thread's stack, now.
    Dump(Dump),
    /// List the processes that can be profiled.
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
    #[command(hide = true)]
    Man(Man),
}

/// `swipr run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr run -- ./app --its-options                 a profile of CPU time, into the current folder
  swipr run -o app.perf --idle -- ./app            where threads wait, too
  swipr run -o app.pb.gz -d 5 -r 1000 -- ./app     five seconds, a thousand times a second
  swipr run -o app.folded -s -- make -j4           with all child processes
  swipr run -o app.perf --iteration-count 10 --reuse-threads -- ./short-benchmark
                                                   ten runs, in one profile

Exit status: the program's own, or the signal that ended it; 125 swipr failed or nothing was recorded,
126 the program cannot be started, 127 there is no such program.")]
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
    /// The library to load (default: the one beside this command, in ../lib or inside it)
    #[arg(long, value_name = "PATH")]
    pub lib: Option<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
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

/// A process, given by its id, its name or its socket; as the first argument or, by habit, with -p.
#[derive(Debug, Args)]
pub struct Target {
    /// The process: its id, its name, or its agent's socket (a path, @name, HOST:PORT)
    #[arg(value_name = "PID|NAME|SOCKET", required_unless_present = "pid")]
    target: Option<String>,
    /// The process's id
    #[arg(short, long, value_name = "PID", conflicts_with = "target")]
    pid: Option<u32>,
}

impl Target {
    /// What was given.
    pub fn text(&self) -> String {
        self.pid.map(|pid| pid.to_string()).or_else(|| self.target.clone()).unwrap_or_default()
    }
}

/// A process that may be left out.
#[derive(Debug, Args)]
pub struct MaybeTarget {
    /// The process: its id, its name, or its agent's socket
    #[arg(value_name = "PID|NAME|SOCKET")]
    target: Option<String>,
    /// The process's id
    #[arg(short, long, value_name = "PID", conflicts_with = "target")]
    pid: Option<u32>,
}

impl MaybeTarget {
    /// What was given, if anything.
    pub fn given(&self) -> Option<String> {
        self.pid.map(|pid| pid.to_string()).or_else(|| self.target.clone())
    }
}

/// `swipr top`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr top 1234                    functions by their own time; ? shows the keys
  swipr top nginx --idle            with threads that wait")]
pub struct Top {
    /// Which process.
    #[command(flatten)]
    pub target: Target,
    /// Samples a second of each thread
    #[arg(short, long, value_name = "HZ", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rate: u32,
    /// Time between two pictures
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "1s")]
    pub delay: std::time::Duration,
    /// Count threads that wait, too
    #[arg(short, long)]
    pub idle: bool,
    /// Only threads whose name matches
    #[arg(long, value_name = "REGEX")]
    pub thread_name: Option<String>,
    /// Never hold the program up: so it is always, the option is there for habit's sake
    #[arg(long)]
    pub nonblocking: bool,
}

/// `swipr dump`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr dump 1234                   what every thread is doing
  swipr dump nginx --json           the same, for programs
  swipr dump 1234 -s                with its child processes")]
pub struct Dump {
    /// Which process.
    #[command(flatten)]
    pub target: Target,
    /// As JSON, one object for each process
    #[arg(short, long)]
    pub json: bool,
    /// With child processes
    #[arg(short, long)]
    pub subprocesses: bool,
    /// Only threads whose name matches
    #[arg(long, value_name = "REGEX")]
    pub thread_name: Option<String>,
    /// Never hold the program up: so it is always, the option is there for habit's sake
    #[arg(long)]
    pub nonblocking: bool,
}

/// `swipr doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr doctor                      whether `swipr run` can work here
  swipr doctor 1234                 why process 1234 is not in `swipr ls`")]
pub struct Doctor {
    /// Which process.
    #[command(flatten)]
    pub target: MaybeTarget,
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
    /// A folder with the recorded program's files or their debug files, by path, name or build id; may be given often
    #[arg(long, value_name = "DIR", alias = "debug-dir")]
    pub symbols: Vec<PathBuf>,
    /// What to write.
    #[command(flatten)]
    pub output: Output,
}

/// `swipr view`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr view app.jsonl              open profiler.firefox.com with this recording
  swipr view app.pb.gz --no-open    print the address only")]
pub struct View {
    /// The recording: raw, perf text, folded or pprof; `-` is standard input
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// The port on loopback; 0 is any that is free
    #[arg(short = 'P', long, default_value_t = 0)]
    pub port: u16,
    /// Do not open a browser
    #[arg(short, long)]
    pub no_open: bool,
}

/// `swipr proxy`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr proxy 1234 --port 6060
  go tool pprof -http=: 'http://127.0.0.1:6060/debug/pprof/profile?seconds=10'

Only programs of the same user may ask, from this machine; web pages may not.")]
pub struct Proxy {
    /// Which process.
    #[command(flatten)]
    pub target: Target,
    /// The port on loopback; 0 is any that is free
    #[arg(short = 'P', long, default_value_t = 0)]
    pub port: u16,
}

/// `swipr diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr diff app.jsonl app.pb.gz                   functions whose share has changed, the most first
  swipr diff app.jsonl app.pb.gz -o change.html    as a flame graph: red has grown, blue has shrunk")]
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
    /// So many functions in the text
    #[arg(short, long, value_name = "N", default_value_t = 30)]
    pub lines: usize,
    /// A title
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

/// `swipr completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr completions bash > ~/.local/share/bash-completion/completions/swipr
  swipr completions zsh > ~/.zfunc/_swipr
  swipr completions fish > ~/.config/fish/completions/swipr.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `swipr man`.
#[derive(Debug, Args)]
pub struct Man {
    /// The folder to write swipr.1, swipr-run.1 and the others to
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// `swipr ls`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr ls                          every process with swipr inside that can be seen from here
  swipr ls --json                   the same, for programs
  swipr ls /sockets                 sockets in a folder that containers share

Without a folder the default places and mounted volumes are looked into, too.")]
pub struct Ls {
    /// Look for sockets in these folders only
    #[arg(value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
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
