//! What the verbs take that show processes.

use super::frames::Frames;
use super::span::{picture_span, rate};
use super::{MaybeTarget, Target};
use clap::Args;
use std::path::PathBuf;

/// `swipr top`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  swipr top 1234                    functions by their CPU time; ? shows the keys
  swipr top nginx -r 1000           a thousand samples a second")]
pub struct Top {
    /// Which process.
    #[command(flatten)]
    pub target: Target,
    /// Samples a second of each thread
    #[arg(short, long, value_name = "HZ", default_value_t = 100, value_parser = rate, allow_negative_numbers = true)]
    pub rate: u32,
    /// Time between two pictures, at least 100ms
    #[arg(long, value_name = "TIME", value_parser = picture_span, default_value = "1s", allow_negative_numbers = true)]
    pub delay: std::time::Duration,
    /// Show what waits, too: so it is always, i hides it, the option is there for habit's sake
    #[arg(short, long)]
    pub idle: bool,
    /// Only threads whose name matches
    #[arg(long, value_name = "REGEX", value_parser = super::pattern)]
    pub thread_name: Option<String>,
    /// Show the paths of files, not their names alone
    #[arg(long)]
    pub full_filenames: bool,
    /// As in py-spy: accepted, as samples never stop the whole program
    #[arg(long)]
    pub nonblocking: bool,
    /// Which frames.
    #[command(flatten)]
    pub frames: Frames,
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
    /// The paths of files: so it is always, the option is there for habit's sake
    #[arg(long)]
    pub full_filenames: bool,
    /// Only threads whose name matches
    #[arg(long, value_name = "REGEX", value_parser = super::pattern)]
    pub thread_name: Option<String>,
    /// As in py-spy: accepted, as samples never stop the whole program
    #[arg(long)]
    pub nonblocking: bool,
    /// Which frames.
    #[command(flatten)]
    pub frames: Frames,
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
