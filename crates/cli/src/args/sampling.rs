//! Options about what is sampled, and how often.

use super::frames::Frames;
use super::span::{LONGEST, SHORTEST, rate, recording_span};
use clap::{Args, ValueEnum};
use std::fmt::Write;
use std::time::Duration;

/// What counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Threads that use the CPU, by the time they use
    Cpu,
    /// Every thread, running or not, by the clock on the wall
    Wall,
}

/// What hits running threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SampleSource {
    /// A timer on the thread's CPU clock, at the kernel's ticks
    Timer,
    /// A signal at any moment, which may end a system call early
    Preempt,
}

/// See the module's text.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub struct Sampling {
    /// How long: seconds, or 500ms, 2m, 1h (default: until the program ends, or Ctrl-C; a request
    /// by HTTP: 30 s)
    #[arg(short, long, value_name = "TIME", value_parser = recording_span, allow_negative_numbers = true)]
    pub duration: Option<Duration>,
    /// Samples a second of each thread
    #[arg(short, long, value_name = "HZ", default_value_t = 100, value_parser = rate, allow_negative_numbers = true)]
    pub rate: u32,
    /// What counts: CPU time, or wall-clock time of every thread (default: cpu, as in py-spy; a
    /// request by HTTP: wall, for what hangs uses no CPU)
    #[arg(long, value_enum, value_name = "MODE")]
    pub mode: Option<Mode>,
    /// What hits running threads: a timer at the kernel's ticks (the default), or a signal at any
    /// moment: also threads in step with the tick, but it may end a system call early
    #[arg(long, value_enum, value_name = "SOURCE")]
    pub source: Option<SampleSource>,
    /// Include threads that wait: the same as --mode wall
    #[arg(short, long, conflicts_with = "mode")]
    pub idle: bool,
    /// Only threads whose name matches
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub thread_name: Option<String>,
    /// Follow child processes and merge them; every stack begins with its process
    #[arg(short, long)]
    pub subprocesses: bool,
    /// As in py-spy: accepted, as samples never stop the whole program
    #[arg(long)]
    pub nonblocking: bool,
    /// Which frames.
    #[command(flatten)]
    pub frames: Frames,
}

impl Sampling {
    /// The query for an agent that is to sample for so long, or for as long as it can.
    pub fn query(&self, left: Option<Duration>) -> String {
        let seconds = left.map_or(LONGEST, |left| left.max(SHORTEST)).as_secs_f64();
        let mode = if self.is_wall() { "wall" } else { "cpu" };
        let mut query = format!("seconds={seconds}&hz={}&mode={mode}", self.rate);
        if self.source == Some(SampleSource::Preempt) {
            query.push_str("&source=preempt"); // agents of before do not know the other one by name
        }
        if let Some(regex) = &self.thread_name {
            let _ = write!(query, "&threads={}", percent(regex));
        }
        query + self.frames.query()
    }

    /// Whether threads that wait are recorded.
    pub fn is_wall(&self) -> bool {
        self.mode == Some(Mode::Wall) || self.idle
    }

    /// The same, for a process whose threads of that name may come later: one that has just
    /// started, or one of several.
    pub fn query_of_any(&self, left: Option<Duration>) -> String {
        let may_come = if self.thread_name.is_some() { "&may_come=true" } else { "" };
        self.query(left) + may_come
    }
}

/// A regular expression as agents read it.
pub fn pattern(text: &str) -> Result<String, String> {
    match regex_lite::Regex::new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("it is no regular expression: {error}")),
    }
}

/// Percent-encodes all but letters and digits.
pub fn percent(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(char::from(byte)),
            other => {
                let _ = write!(out, "%{other:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::frames::ShownFrames;
    use super::*;

    fn sampling() -> Sampling {
        Sampling {
            duration: None,
            rate: 100,
            mode: None,
            source: None,
            idle: false,
            thread_name: None,
            subprocesses: false,
            nonblocking: false,
            frames: Frames::default(),
        }
    }

    #[test]
    fn without_a_duration_the_agent_records_as_long_as_it_can() {
        assert_eq!(sampling().query(None), "seconds=86400&hz=100&mode=cpu");
        assert_eq!(Sampling { rate: 1000, ..sampling() }.query(None), "seconds=86400&hz=1000&mode=cpu");
    }

    #[test]
    fn agents_are_asked_for_the_source_that_is_not_theirs_anyway() {
        let query = |source| Sampling { source: Some(source), ..sampling() }.query(None);
        assert_eq!(query(SampleSource::Timer), sampling().query(None));
        assert_eq!(query(SampleSource::Preempt), "seconds=86400&hz=100&mode=cpu&source=preempt");
    }

    #[test]
    fn agents_are_asked_for_the_frames_that_are_not_theirs_anyway() {
        let query = |frames| Sampling { frames, ..sampling() }.query(None);
        let frames = |which| Frames { frames: Some(which), ..Frames::default() };
        assert_eq!(query(frames(ShownFrames::Merged)), sampling().query(None));
        assert!(query(frames(ShownFrames::Native)).ends_with("&frames=native"));
        let interpreter = [frames(ShownFrames::Interpreter), Frames { no_native: true, ..Frames::default() }];
        for frames in interpreter {
            assert!(query(frames).ends_with("&frames=interpreter"));
        }
    }

    #[test]
    fn idle_threads_and_names_are_asked_for() {
        let sampling = Sampling { idle: true, thread_name: Some("^a+ &b".into()), ..sampling() };
        let query = sampling.query(Some(Duration::from_millis(2500)));
        assert_eq!(query, "seconds=2.5&hz=100&mode=wall&threads=%5Ea%2B%20%26b");
        assert_eq!(sampling.query_of_any(Some(Duration::from_millis(2500))), query + "&may_come=true");
        // Regression: a child that came at the end was asked for 0 seconds, which is an error.
        assert!(sampling.query(Some(Duration::ZERO)).starts_with("seconds=0.001&"));
    }
}
