//! Perf script text.

/// A sample.
#[derive(Debug)]
pub struct PerfSample {
    /// The thread's name.
    pub comm: String,
    /// Its process.
    pub pid: u32,
    /// Its id.
    pub tid: u32,
    /// Seconds and nanoseconds.
    pub time: String,
    /// What it represents; 1 where nothing is said.
    pub period: u64,
    /// What was counted.
    pub event: String,
    /// Leaf first.
    pub frames: Vec<PerfFrame>,
}

/// A line of its stack.
#[derive(Debug)]
pub struct PerfFrame {
    /// Its address.
    pub address: u64,
    /// Its name, with the offset.
    pub symbol: String,
    /// The file that it is in.
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
