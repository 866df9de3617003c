//! The line that shows a recording's progress, on standard error where that is a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};
use swipr_formats::model::Summary;

/// How often the line changes.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// See the module's text.
#[derive(Debug)]
pub struct Progress {
    shown: bool,
    last: Option<Instant>,
}

/// Whether anything but errors is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk {
    /// It is.
    Normal,
    /// Errors only.
    Quiet,
}

impl Progress {
    /// Shown on a terminal that can take a line back, unless it is to be quiet.
    pub fn new(talk: Talk) -> Progress {
        let shown = talk == Talk::Normal && std::io::stderr().is_terminal() && !is_dumb();
        Progress { shown, last: None }
    }

    /// Shows the figures, if it is time to.
    pub fn show(&mut self, what: &str, figures: impl FnOnce() -> Summary) {
        let now = Instant::now();
        if !self.shown || self.last.is_some_and(|last| now.duration_since(last) < POLL_INTERVAL) {
            return;
        }
        self.last = Some(now);
        // \x1b[?7l: the terminal cuts a line that is too long, which would stay when the next is
        // drawn. \x1b[K: what is left of a longer line goes. Written as one piece; a terminal that
        // is gone is no reason to end.
        let figures = figures_line(&figures());
        let line = format!("\r\x1b[?7l{what} · Ctrl-C ends and keeps it · {figures}\x1b[K\x1b[?7h");
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if self.last.take().is_some() {
            let _ = std::io::stderr().lock().write_all(b"\r\x1b[K");
        }
    }
}

/// A terminal that has lines and nothing else, an editor's for example.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Less is reported in the recording only.
const SOME_CPU_NS: u64 = 10_000_000;

/// `4,096 samples of 8 threads in 10.0 s, lost 7, late ticks 0`. `losses not known` where no
/// process counted them, and `or more` where not all did.
pub fn figures_line(summary: &Summary) -> String {
    let what = if summary.are_sums { "stack" } else { "sample" };
    let plural = if summary.samples == 1 { "" } else { "s" };
    // Some files do not say.
    let time = match Duration::from_nanos(summary.duration_ns).as_secs_f64() {
        0.0 => String::new(),
        seconds => format!(" in {seconds:.1} s"),
    };
    let of_threads = match summary.threads {
        0 => String::new(),
        1 => " of 1 thread".to_owned(),
        threads => format!(" of {} threads", grouped(threads)),
    };
    let more = if summary.uncounted > 0 { " or more" } else { "" };
    let lost = match (summary.dropped, more) {
        (0, "") => Some("lost 0".to_owned()),
        (0, _) => None,
        (lost, more) => Some(format!("lost {}{more}", grouped(lost))),
    };
    let is_late = summary.late > 0 || more.is_empty();
    let late = is_late.then(|| format!("late ticks {}{more}", grouped(summary.late)));
    let mut losses: Vec<String> = lost.into_iter().chain(late).collect();
    if losses.is_empty() {
        losses.push(match summary.uncounted {
            _ if summary.is_cut => "the recording is cut: losses not known".to_owned(),
            0 | 1 => "losses not known".to_owned(),
            processes => format!("losses of {} processes not known", grouped(processes)),
        });
    }
    if summary.unsampled_cpu_ns >= SOME_CPU_NS {
        losses.push(format!("CPU time not sampled {:.2} s", summary.unsampled_cpu_ns as f64 / 1e9));
    }
    if summary.at_most_hz > 0 {
        losses.push(format!("a running thread has {} samples a second at most here", summary.at_most_hz));
    }
    format!("{} {what}{plural}{of_threads}{time}, {}", grouped(summary.samples), losses.join(", "))
}

/// `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_sampled_and_what_cannot_be_had_is_told() {
        let summary =
            Summary { samples: 496, unsampled_cpu_ns: 1_234_000_000, at_most_hz: 250, ..Summary::default() };
        let line = figures_line(&summary);
        assert!(line.contains("CPU time not sampled 1.23 s"), "{line}");
        assert!(line.ends_with("a running thread has 250 samples a second at most here"), "{line}");
    }

    #[test]
    fn figures_are_one_line_with_every_loss() {
        let mut summary =
            Summary { samples: 1_234_567, threads: 8, duration_ns: 10_040_000_000, ..Summary::default() };
        let line = figures_line(&summary);
        assert_eq!(line, "1,234,567 samples of 8 threads in 10.0 s, lost 0, late ticks 0");
        (summary.dropped, summary.late, summary.threads) = (1003, 4, 1);
        let line = figures_line(&summary);
        assert_eq!(line, "1,234,567 samples of 1 thread in 10.0 s, lost 1,003, late ticks 4");
        summary.uncounted = 1;
        assert!(figures_line(&summary).ends_with("lost 1,003 or more, late ticks 4 or more"));
        (summary.dropped, summary.late) = (0, 0);
        assert!(figures_line(&summary).ends_with("in 10.0 s, losses not known"));
        summary.uncounted = 3;
        assert!(figures_line(&summary).ends_with("in 10.0 s, losses of 3 processes not known"));
        summary.samples = 1;
        assert!(figures_line(&summary).starts_with("1 sample of 1 thread in "));
        assert_eq!([grouped(0), grouped(999), grouped(1000)], ["0", "999", "1,000"]);
    }
}
