//! A recording as the agent's text output has it: perf script and folded stacks, read
//! back into samples. Strict about the grammar, so that a line which other readers
//! would silently drop fails a test here.

use std::collections::BTreeSet;

/// One function of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function, without offset; a remark such as `[frames elided]`; or the
    /// module where no function is known.
    pub name: String,
    /// The file of the code; empty in folded text, which has none.
    pub module: String,
}

impl Frame {
    /// Whether the frame has a function's name.
    pub fn is_named(&self) -> bool {
        !self.name.starts_with('[') && !self.is_only_module()
    }

    /// Whether the frame is a remark, not code.
    pub fn is_note(&self) -> bool {
        self.name.starts_with("[truncated") || self.name.ends_with("elided]")
    }

    /// Or its module and where its function begins there.
    fn is_only_module(&self) -> bool {
        let name = self.name.rsplit_once("+0x").map_or(&*self.name, |(module, _)| module);
        name == self.module || Some(name) == self.module.rsplit('/').next()
    }
}

/// One stack of one thread, as often as `weight` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The thread's name.
    pub thread: String,
    /// The process; 0 in folded text.
    pub pid: u32,
    /// The thread; 0 in folded text.
    pub tid: u32,
    /// 1 in perf text.
    pub weight: u64,
    /// Outermost first.
    pub frames: Vec<Frame>,
}

impl Sample {
    /// Whether this is the process's first thread.
    pub fn is_of_main_thread(&self) -> bool {
        self.pid != 0 && self.pid == self.tid
    }

    /// The names, outermost first, on one line.
    pub fn chain(&self) -> String {
        let names: Vec<&str> = self.frames.iter().map(|frame| &*frame.name).collect();
        format!("{}: {}", self.thread, names.join(";"))
    }
}

/// Everything that came of one request.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The samples.
    pub samples: Vec<Sample>,
    /// How many more have no stack: the thread was not observed, as at ticks that came too late on
    /// a busy machine.
    pub unseen: u64,
    /// The agent's own counts, `ticks=3 samples=7 …`.
    pub stats: Vec<(String, u64)>,
}

impl Recording {
    /// Reads perf script or folded text, whichever it is.
    pub fn parse(text: &str, stats: &str) -> Result<Self, String> {
        let is_perf = text.starts_with('#') || text.contains("\n\t");
        let samples = if is_perf { perf(text)? } else { folded(text)? };
        const UNSEEN: [&str; 3] = [
            "[not sampled]",
            "[not sampled: in the kernel]",
            "[not sampled: the kernel does not say where it waits]",
        ];
        let is_unseen = |sample: &Sample| sample.frames.iter().any(|frame| UNSEEN.contains(&&*frame.name));
        let (unseen, samples): (Vec<_>, Vec<_>) = samples.into_iter().partition(is_unseen);
        Ok(Self {
            samples,
            unseen: unseen.iter().map(|sample| sample.weight).sum(),
            stats: stats
                .split_whitespace()
                .filter_map(|pair| pair.split_once('='))
                .filter_map(|(key, value)| Some((key.to_string(), value.parse().ok()?)))
                .collect(),
        })
    }

    /// How many samples.
    pub fn count(&self) -> u64 {
        self.samples.iter().map(|sample| sample.weight).sum()
    }

    /// How many threads.
    pub fn threads(&self) -> usize {
        let threads: BTreeSet<_> = self
            .samples
            .iter()
            .map(|sample| match sample.tid {
                0 => (0, sample.thread.as_str()),
                tid => (tid, ""),
            })
            .collect();
        threads.len()
    }
}

/// Reads perf script text. A last sample that is not closed by an empty line counts.
pub fn perf(text: &str) -> Result<Vec<Sample>, String> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        let fail = |what: &str| format!("line {}: {what}: {line:?}", number + 1);
        if line.is_empty() {
            open = false;
        } else if let Some(frame) = line.strip_prefix('\t') {
            let sample =
                samples.last_mut().filter(|_| open).ok_or_else(|| fail("a frame without a sample"))?;
            let frame = perf_frame(frame).ok_or_else(|| fail("not a frame"))?;
            sample.frames.insert(0, frame);
        } else if !line.starts_with('#') {
            samples.push(perf_sample(line).ok_or_else(|| fail("not a sample"))?);
            open = true;
        }
    }
    match samples.iter().find(|sample| sample.frames.is_empty()) {
        Some(empty) => Err(format!("a sample of {} has no frame", empty.thread)),
        None => Ok(samples),
    }
}

/// `comm pid/tid [cpu] seconds.nanoseconds: period event:`
fn perf_sample(line: &str) -> Option<Sample> {
    let mut words = line.split_whitespace();
    let thread = words.next()?.to_string();
    let (pid, tid) = words.next()?.split_once('/')?;
    let mut time = words.next()?;
    if time.starts_with('[') {
        time = words.next()?;
    }
    let (seconds, nanoseconds) = time.strip_suffix(':')?.split_once('.')?;
    let _: u64 = seconds.parse().ok()?;
    let _: u64 = nanoseconds.parse().ok()?;
    let _: u64 = words.next()?.parse().ok()?;
    words.next()?.strip_suffix(':')?;
    Some(Sample { thread, pid: pid.parse().ok()?, tid: tid.parse().ok()?, weight: 1, frames: Vec::new() })
}

/// `address symbol+0xoffset (module)`
fn perf_frame(line: &str) -> Option<Frame> {
    let (address, rest) = line.trim_start().split_once(' ')?;
    u64::from_str_radix(address, 16).ok()?;
    let (symbol, module) = rest.strip_suffix(')')?.rsplit_once(" (")?;
    Some(Frame { name: without_offset(symbol).to_string(), module: module.to_string() })
}

/// Reads folded text: `thread;outermost;…;leaf weight`.
pub fn folded(text: &str) -> Result<Vec<Sample>, String> {
    text.lines()
        .map(|line| {
            let (stack, weight) = line.rsplit_once(' ').ok_or_else(|| format!("no weight: {line:?}"))?;
            let mut names = stack.split(';').map(str::to_string);
            Ok(Sample {
                thread: names.next().unwrap_or_default(),
                pid: 0,
                tid: 0,
                weight: weight.parse().map_err(|_| format!("not a weight: {line:?}"))?,
                frames: names
                    .map(|name| Frame { name: without_offset(&name).to_string(), module: String::new() })
                    .collect(),
            })
        })
        .collect()
}

/// The name without `+0x1f`, and without what the compiler adds to a copy it has made
/// of a function (`.constprop.0`).
fn without_offset(symbol: &str) -> &str {
    let name = match symbol.rsplit_once("+0x") {
        Some((name, offset)) if u64::from_str_radix(offset, 16).is_ok() => name,
        _ => symbol,
    };
    [".constprop.", ".isra.", ".part.", ".cold"]
        .iter()
        .filter_map(|suffix| name.find(suffix))
        .min()
        .map_or(name, |end| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "work 10/11 1700000000.000000001: 1000000 wall-clock:\n\
        \t000000000000aaaa leaf.isra.0+0x1f (/x/app)\n\
        \t               0 [frames elided] ([unknown])\n\
        \t000000000000bbbb libc.so.6+0x89c (/lib/libc.so.6)\n\
        \n\
        app 10/10 [003] 1700000000.000000002: 1000000 wall-clock:\n\
        \t000000000000cccc main+0x0 (/x/app)\n\n";

    #[test]
    fn perf_text_becomes_samples_with_the_outermost_frame_first() {
        let recording = Recording::parse(TEXT, "ticks=2 samples=2 odd").expect("samples");
        assert_eq!((recording.count(), recording.threads()), (2, 2));
        let first = &recording.samples[0];
        assert_eq!(first.chain(), "work: libc.so.6;[frames elided];leaf");
        let named: Vec<bool> = first.frames.iter().map(Frame::is_named).collect();
        assert_eq!(named, [false, false, true]);
        assert!(first.frames[1].is_note() && !first.is_of_main_thread());
        assert!(recording.samples[1].is_of_main_thread());
        assert_eq!(recording.stats.len(), 2);
        assert_eq!(recording.unseen, 0);
    }

    #[test]
    fn folded_text_becomes_samples_with_their_weights() {
        let samples = folded("work;main;leaf 7\nidle;main 2\n").expect("samples");
        assert_eq!((samples[0].weight, samples[1].weight), (7, 2));
        assert_eq!(samples[0].chain(), "work: main;leaf");
        let seen = Recording::parse("work;main 3\nwork;[not sampled] 4\n", "").expect("samples");
        assert_eq!((seen.count(), seen.unseen), (3, 4));
    }

    #[test]
    fn text_that_readers_would_drop_is_an_error() {
        for wrong in [
            "work 1.5: 1 wall-clock:\n\taaaa f+0x1 (m)\n",
            "work 10/11 1.5: 1 wall-clock:\n\taaaa f+0x1\n",
            "work 10/11 1.5: 1 wall-clock:\n\tzzzz f+0x1 (m)\n",
            "work 10/11 1.5: 1 wall-clock:\n\n\taaaa f+0x1 (m)\n",
            "work 10/11 1.5: 1 wall-clock:\n\nwork 10/11 1.5: 1 wall-clock:\n\taa f (m)\n",
        ] {
            assert!(perf(wrong).is_err(), "{wrong:?}");
        }
        assert!(folded("a;b\n").is_err() && folded("a;b x\n").is_err());
    }
}
