//! Perf script text and a strict reader of it: anything that is not in the grammar is
//! an error.

use swipr_formats::Options;

use crate::cases;

#[derive(Debug)]
pub struct PerfSample {
    pub comm: String,
    pub pid: u32,
    pub tid: u32,
    pub time: String,
    pub period: u64,
    pub event: String,
    pub frames: Vec<PerfFrame>,
}

#[derive(Debug)]
pub struct PerfFrame {
    pub address: u64,
    pub symbol: String,
    pub module: String,
}

/// Every sample; panics on anything that is none.
pub fn read(text: &str) -> Vec<PerfSample> {
    let mut samples = Vec::new();
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            assert_eq!(lines.next(), None, "an empty line between samples");
            break;
        }
        if line.starts_with('#') {
            continue;
        }
        let mut sample = sample_line(line);
        for line in lines.by_ref().take_while(|line| !line.is_empty()) {
            match line.strip_prefix("  ") {
                Some(source) => assert_source(source),
                None => sample.frames.push(frame_line(line)),
            }
        }
        samples.push(sample);
    }
    samples
}

fn sample_line(line: &str) -> PerfSample {
    let words: Vec<&str> = line.split(char::is_whitespace).filter(|w| !w.is_empty()).collect();
    assert!(line.starts_with(|c: char| !c.is_whitespace()));
    let (comm, ids, time, rest) = match words.as_slice() {
        [comm, ids, time, rest @ ..] => (*comm, *ids, *time, rest),
        _ => panic!("{line:?}"),
    };
    let (pid, tid) = ids.split_once('/').unwrap();
    let (period, event) = match rest {
        [period, event] => (period.parse().unwrap(), event.strip_suffix(':').unwrap()),
        [event] => (1, *event),
        _ => panic!("{line:?}"),
    };
    assert!(comm.chars().count() >= 2 && !comm.contains(';'), "{comm:?}");
    assert!(!comm.starts_with(['#', '{']), "{comm:?}");
    PerfSample {
        comm: comm.to_owned(),
        pid: pid.parse().unwrap(),
        tid: tid.parse().unwrap(),
        time: time.strip_suffix(':').unwrap().to_owned(),
        period,
        event: event.to_owned(),
        frames: Vec::new(),
    }
}

fn frame_line(line: &str) -> PerfFrame {
    let line = line.strip_prefix('\t').unwrap().trim_start();
    let (address, rest) = line.split_once(' ').unwrap();
    let (symbol, module) = rest.rsplit_once(" (").unwrap();
    let module = module.strip_suffix(')').unwrap();
    assert!(!module.contains(|c: char| c.is_whitespace() || "()".contains(c)), "{module:?}");
    assert!(!module.is_empty());
    assert!(!symbol.is_empty() && symbol.trim() == symbol, "{symbol:?}");
    let odd = |c: char| c.is_control() || (c != ' ' && c.is_whitespace());
    assert!(!symbol.contains(odd), "{symbol:?}");
    PerfFrame {
        address: u64::from_str_radix(address, 16).unwrap(),
        symbol: symbol.to_owned(),
        module: module.to_owned(),
    }
}

fn assert_source(source: &str) {
    let (file, line) = source.rsplit_once(':').unwrap();
    assert!(!file.is_empty() && !file.contains(|c: char| c.is_whitespace() || c == '('));
    assert!(line.parse::<u32>().is_ok(), "{source:?}");
}

#[test]
fn samples_carry_time_period_event_and_addresses() {
    let samples = read(&cases::cpu().text("perf", &Options::default()));
    let [first, second, _] = samples.as_slice() else {
        panic!("{samples:?}");
    };
    assert_eq!(first.comm, "app");
    assert_eq!(first.time, "1700000000.000000005");
    assert_eq!(second.time, "1700000000.010000005");
    assert_eq!((first.period, second.period), (9_999_999, 1));
    assert_eq!(first.event, "cpu-clock");
    assert_eq!(first.frames[0].address, 0x1100);
    assert_eq!(first.frames[0].symbol, "hot+0x1");
    assert_eq!(first.frames[0].module, "/usr/bin/app");
}

#[test]
fn every_sample_of_a_stream_has_the_same_event() {
    let samples = read(&cases::everything().text("perf", &Options::default()));
    assert_eq!(samples.len(), 6);
    assert!(samples.iter().all(|sample| sample.event == "wall-clock"));
}

#[test]
fn the_text_begins_with_a_sample_line_or_the_whole_header() {
    let text = cases::everything().text("perf", &Options::default());
    assert!(text.starts_with("app 77/77 1700000000."), "{text}");
    let text = cases::empty().text("perf", &Options::default());
    assert!(text.starts_with("# ========\n# "), "{text}");
    assert!(text.ends_with("\n# ========\n#\n"), "{text}");
    assert!(text.contains("threads=3 ticks=100"), "{text}");
    assert!(text.contains("missed=300"), "{text}");
}

#[test]
fn the_figures_follow_the_last_sample() {
    let text = cases::everything().text("perf", &Options::default());
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("# swipr: ") && last.contains("truncated=1 "), "{last}");
    assert!(last.contains(" truncated_by=no-unwind-information:1 held_p50_ns=1023 "), "{last}");
    // Its one reader that matters is another program's.
    let options = Options { compat: true, ..Options::default() };
    let text = cases::everything().text("perf", &options);
    assert!(!text.contains('#'), "{text}");
}
