//! What a format is, and what can be chosen about it. Not here: which formats
//! there are (`list.rs`).

use crate::model::{Header, Mode, Sample, Summary};

/// A writer of one recording: `begin` once, `sample` for every sample, `finish` once.
///
/// Each call appends to `out`, which the caller may empty between calls; formats
/// that aggregate write everything in `finish`. None of them can fail.
pub trait Format: Send {
    /// Starts the recording.
    fn begin(&mut self, header: &Header, out: &mut Vec<u8>);
    /// Takes one sample.
    fn sample(&mut self, sample: &Sample<'_>, out: &mut Vec<u8>);
    /// Ends the recording; nothing may be called afterwards.
    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>);
}

/// How function names are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Names {
    /// Shortened so that every reader shows them whole and none merges two
    /// functions: argument lists and return types dropped.
    #[default]
    Safe,
    /// As demangled, except what would break the format's grammar.
    Raw,
    /// As in the object file where that is known, except what would break the
    /// format's grammar.
    Mangled,
}

/// What the counts of the folded format count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weight {
    /// Samples.
    Samples,
    /// Nanoseconds: the sum of the samples' weights.
    Nanoseconds,
}

impl Weight {
    /// What is true of a recording in that mode. Wall-clock samples all represent one interval.
    /// CPU samples do not: a
    /// thread that runs for a tenth of each interval is met as often as one that runs all the time.
    pub fn of(mode: Mode) -> Weight {
        match mode {
            Mode::Wall => Weight::Samples,
            Mode::Cpu => Weight::Nanoseconds,
        }
    }
}

/// What can be chosen about a format. Formats ignore what does not concern them.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How function names are written. Raw and json have them as they are.
    pub names: Names,
    /// Perf script text: write source files and lines where they are known. Formats
    /// that have a place for them (pprof, raw, dump, json) always do.
    pub lines: bool,
    /// Show inlined functions as frames of their own.
    pub inline: bool,
    /// Merge threads: folded and pprof leave them out, perf script text has one thread with the
    /// process's name and id.
    pub merge_threads: bool,
    /// Perf script text in swift-profile-recorder's shape: without periods, and without what a
    /// thread waits for.
    pub compat: bool,
    /// Keep this many frames of a stack (at least 2), the outer and the inner half of it, and write
    /// how many were left out between them. `None` keeps all.
    pub max_depth: Option<usize>,
    /// A title, where the format has room for one.
    pub title: Option<String>,
    /// What folded counts count; `None`: what fits the recording's mode ([`Weight::of`]).
    pub weight: Option<Weight>,
    /// Folded and perf script text, which have no other place for it: a remark at the leaf says
    /// what a thread waits for (wall mode).
    pub states: bool,
    /// Pprof: one moment, with the number of threads as the only value, as Go's goroutine profile
    /// has it.
    pub snapshot: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            names: Names::Safe,
            lines: false,
            inline: true,
            merge_threads: false,
            compat: false,
            max_depth: None,
            title: None,
            weight: None,
            states: true,
            snapshot: false,
        }
    }
}
