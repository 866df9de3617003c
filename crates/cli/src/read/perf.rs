//! Reads perf script's text, swipr's and perf's own. Periods are taken as nanoseconds. Those of
//! clock events are; for other events (cycles) the weights are what the event counts, and the
//! caller learns which events these are.

use super::input::Input;
use super::system_calls::SystemCalls;
use super::{Figures, header, named_frame};
use crate::event::{Event, OwnedSample};
use crate::shape::Shape;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use swipr_formats::model::{Frame, FrameKind, Mode, Module, State, Thread};

/// The weight of a sample whose line has no period.
const INTERVAL_NS: u64 = 10_000_000;

/// Events whose periods are nanoseconds.
const CLOCKS: [&str; 3] = ["cpu-clock", "task-clock", "wall-clock"];

/// What is as short and stands alone is a symbol, `add`, and no address.
const SYMBOL_DIGITS: usize = 5;

/// In the place of a module, of functions that perf found to be inlined. Their offsets are those of
/// the function around them.
const INLINED: &str = "inlined";

#[derive(Debug)]
struct Head {
    thread: Thread,
    /// 0: not in the text.
    pid: u32,
    time_ns: u64,
    weight_ns: u64,
    is_wall: bool,
    /// A frame stands behind it: there is no stack, or it is none.
    has_frame: bool,
    /// The event, if it is no clock's.
    counted: Option<String>,
}

pub(super) fn read(
    input: &Input,
    name: &str,
    shape: &Arc<Shape>,
    to: &mut dyn FnMut(Event) -> Result<(), String>,
) -> Result<Vec<String>, String> {
    let mut reader = Reader {
        shape,
        modules: FxHashMap::default(),
        calls: SystemCalls::new(),
        figures: Figures::default(),
        counted: BTreeSet::new(),
        open: None,
        has_header: false,
        name,
        input,
    };
    input.lines(|number, line| reader.line(number, &line, to))?;
    reader.close(to)?;
    if !reader.has_header {
        return Err("there is no sample in it".to_owned());
    }
    to(reader.figures.end())?;
    Ok(reader.counted.into_iter().collect())
}

struct Reader<'a> {
    shape: &'a Arc<Shape>,
    modules: FxHashMap<String, Arc<Module>>,
    calls: SystemCalls,
    figures: Figures,
    counted: BTreeSet<String>,
    /// The sample whose lines are being read.
    open: Option<(Head, Vec<Frame>)>,
    has_header: bool,
    name: &'a str,
    input: &'a Input,
}

impl Reader<'_> {
    fn line(
        &mut self,
        number: usize,
        line: &str,
        to: &mut dyn FnMut(Event) -> Result<(), String>,
    ) -> Result<(), String> {
        if let Some(comment) = line.strip_prefix('#') {
            let stats = comment.strip_prefix(" swipr: ").and_then(swipr_formats::read_stats_line);
            self.figures.losses = stats.or(self.figures.losses.take());
            return Ok(());
        }
        // Frames begin with a tab. Blanks may be before a thread's name, too.
        if let Some((mut head, frame)) = head(line).filter(|_| !line.starts_with('\t')) {
            self.close(to)?;
            let (mut frames, frame) = (Vec::new(), frame.trim());
            // Or else it is the text of a tracepoint.
            if is_frame(frame) || frame.ends_with(')') || !frame.is_empty() && !frame.contains(' ') {
                self.frame(frame, &mut frames);
            }
            head.has_frame = !frames.is_empty();
            self.open = Some((head, frames)).filter(|_| !line.contains(": PERF_RECORD_"));
            return Ok(());
        }
        if line.trim().is_empty() {
            return self.close(to);
        }
        let Some((mut head, mut frames)) = self.open.take().filter(|_| line.starts_with(['\t', ' '])) else {
            return Err(format!("line {number}: it is no sample of perf script's"));
        };
        match is_frame(line) {
            true => {
                if std::mem::take(&mut head.has_frame) {
                    frames.clear();
                }
                self.frame(line.trim(), &mut frames);
            }
            false => set_place(&mut frames, line.trim()),
        }
        self.open = Some((head, frames));
        Ok(())
    }

    fn close(&mut self, to: &mut dyn FnMut(Event) -> Result<(), String>) -> Result<(), String> {
        self.open.take().map_or(Ok(()), |(head, frames)| self.sample(head, frames, to))
    }

    fn sample(
        &mut self,
        head: Head,
        mut frames: Vec<Frame>,
        to: &mut dyn FnMut(Event) -> Result<(), String>,
    ) -> Result<(), String> {
        if !std::mem::replace(&mut self.has_header, true) {
            let mode = if head.is_wall { Mode::Wall } else { Mode::Cpu };
            let process = process_name(self.input, head.pid).unwrap_or_else(|| self.name.to_owned());
            let mut header = header(&process, head.pid, mode, head.time_ns);
            if head.is_wall {
                header.interval_ns = head.weight_ns;
            }
            to(Event::Header(header))?;
        }
        self.counted.extend(head.counted);
        let state = frames.first().and_then(|leaf| state(leaf, &self.calls));
        if state.is_some() {
            frames.remove(0);
        }
        let sample = OwnedSample {
            time_ns: head.time_ns,
            ticks: 1,
            thread: self.shape.thread(head.thread),
            state: state.unwrap_or(State::Running),
            weight_ns: head.weight_ns,
            stack: self.shape.stack(frames, None),
        };
        self.figures.count(&sample);
        to(Event::Sample(sample))
    }

    /// `<hex> <symbol>+0x<offset> (<module>)`. A function that was inlined has the address of the
    /// line below it, and no offset. Behind the path of a file that is gone is ` (deleted)`.
    fn frame(&mut self, line: &str, frames: &mut Vec<Frame>) {
        let (first, behind) = line.split_once(' ').unwrap_or((line, ""));
        // perf leaves out what it was not asked for. A symbol may look like a number.
        let (address, rest) = match u64::from_str_radix(first, 16) {
            Ok(address) if !behind.is_empty() || first.len() > SYMBOL_DIGITS => (address, behind),
            _ => (0, line),
        };
        let open = rest.strip_suffix(')').unwrap_or(rest);
        let open = open.strip_suffix(" (deleted)").unwrap_or(open);
        let (symbol, module) = open.rsplit_once(" (").unwrap_or((rest, ""));
        let symbol = symbol.trim();
        let (name, offset) = match symbol.rsplit_once("+0x") {
            Some((name, _)) if module == INLINED => (name, 0),
            Some((name, offset)) => (name, u64::from_str_radix(offset, 16).unwrap_or(0)),
            None => (symbol, 0),
        };
        let name = name.strip_suffix(" [inlined]").unwrap_or(name);
        let named = named_frame(name);
        if named.kind == FrameKind::Note {
            return frames.push(named);
        }
        let mut functions: Vec<_> = named.functions.to_vec();
        for function in &mut functions {
            function.offset = offset;
        }
        let kind = FrameKind::from_module(module);
        if let FrameKind::Interpreted(language) = kind {
            return frames.push(super::interpreted_frame(language, address, functions));
        }
        let known = kind == FrameKind::Native && !["", "[unknown]", INLINED].contains(&module);
        let module = known.then(|| self.module(module));
        let mut frame = Frame { address, kind, module, functions: functions.into() };
        if let Some(inner) = frames.pop_if(|inner| is_inlined_into(inner, &frame)) {
            frame.functions = inner.functions.iter().chain(frame.functions.iter()).cloned().collect();
        }
        frames.push(frame);
    }

    fn module(&mut self, path: &str) -> Arc<Module> {
        let make = || Module {
            path: path.to_owned(),
            start: 0,
            end: 0,
            file_offset: 0,
            base: 0,
            build_id: Vec::new(),
        };
        Arc::clone(self.modules.entry(path.to_owned()).or_insert_with(|| Arc::new(make())))
    }
}

/// Frames begin with a tab, or at least with an address.
fn is_frame(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    line.starts_with('\t') || u64::from_str_radix(first, 16).is_ok()
}

/// `FILE:LINE` of the frame above, and perf's mark of an inlined function. perf has an object and
/// an address there where it knows no file.
fn set_place(frames: &mut [Frame], line: &str) {
    let Some(frame) = frames.last_mut() else { return };
    let mut functions = frame.functions.to_vec();
    let Some(function) = functions.last_mut() else { return };
    let inlined = line.strip_suffix(" (inlined)");
    if inlined.is_some() {
        function.offset = 0;
    }
    let place = inlined.unwrap_or(line).rsplit_once(':');
    if let Some((file, number)) = place.and_then(|(file, number)| Some((file, number.parse().ok()?))) {
        (function.file, function.line) = (Some(file.into()), Some(number));
    }
    frame.functions = functions.into();
}

fn is_inlined_into(inner: &Frame, outer: &Frame) -> bool {
    outer.address != 0
        && !outer.functions.is_empty()
        && !matches!(inner.kind, FrameKind::Interpreted(_))
        && inner.address == outer.address
        && inner.functions.last().is_some_and(|function| function.offset == 0)
}

/// The state that the leaf of a recording by swipr shows.
fn state(leaf: &Frame, calls: &SystemCalls) -> Option<State> {
    let text = &leaf.functions.first().filter(|_| leaf.kind == FrameKind::Note)?.name;
    match text.strip_prefix('[')?.strip_suffix(']')? {
        "waiting for a CPU" => Some(State::Runnable),
        "blocked" => Some(State::Blocked(None)),
        other => {
            let call = other.strip_prefix("blocked in ")?;
            Some(State::Blocked(calls.number(call.strip_prefix("system call ").unwrap_or(call))))
        }
    }
}

/// Whether perf's text may begin with this line.
pub(super) fn is_sample(line: &[u8]) -> bool {
    head(&String::from_utf8_lossy(line)).is_some()
}

/// `comm pid/tid [cpu] seconds.fraction: period event:`; a comm may have blanks and `: `, as tmux's
/// has. Behind it, in recordings without stacks, is a frame.
fn head(line: &str) -> Option<(Head, &str)> {
    let colons = line.match_indices(": ").map(|(at, colon)| (at, at + colon.len()));
    let at_end = line.strip_suffix(':').map(|line| (line.len(), line.len() + 1));
    let mut places = colons.chain(at_end);
    places.find_map(|(end, next)| sampled(line.get(..end)?, line.get(next..)?))
}

/// What stands before the colon behind a head's time, and behind it.
fn sampled<'a>(before: &str, event: &'a str) -> Option<(Head, &'a str)> {
    let mut words: Vec<&str> = before.split_whitespace().collect();
    let (seconds, fraction) = words.pop()?.split_once('.')?;
    let fraction = format!("{fraction:0<9}");
    let time_ns =
        seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)? + fraction.get(..9)?.parse::<u64>().ok()?;
    if words.last()?.starts_with('[') {
        words.pop();
    }
    let (pid, tid) = ids(words.pop()?)?;
    let (first, rest) = word(event);
    let (second, behind) = word(rest);
    // swift-profile-recorder's own event, and the suffix that it adds to the name.
    let is_recorders = first == "swipr" || second == "swipr";
    let is_event = |word: &str| is_recorders || word.ends_with(':');
    let (weight_ns, event, frame) = match first.parse() {
        Ok(period) if is_event(second) => (period, second, behind),
        // perf has no event there if only one was recorded.
        Ok(period) if second.is_empty() || is_address(second) => (period, "", rest),
        _ if is_event(first) => (INTERVAL_NS, first, rest),
        _ => (INTERVAL_NS, "", event),
    };
    let mut name = words.join(" ");
    if is_recorders && name.ends_with(&format!("-T{tid}")) {
        name.truncate(name.len().saturating_sub(format!("-T{tid}").len()));
    }
    let is_wall = event.starts_with("wall-clock") || is_recorders;
    let is_clock = CLOCKS.contains(&event.split(':').next().unwrap_or_default());
    let counted = event.strip_suffix(':').filter(|_| !is_clock).map(str::to_owned);
    Some((
        Head { thread: Thread { tid, name }, pid, time_ns, weight_ns, is_wall, has_frame: false, counted },
        frame,
    ))
}

/// Whether it is too long for a symbol such as `add`.
fn is_address(word: &str) -> bool {
    word.len() > SYMBOL_DIGITS && u64::from_str_radix(word, 16).is_ok()
}

/// The first word, and what is behind it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

/// `pid/tid`, or only a thread's id: the process's is 0 then.
fn ids(word: &str) -> Option<(u32, u32)> {
    let (pid, tid) = word.split_once('/').unwrap_or(("0", word));
    Some((pid.parse().ok()?, tid.parse().ok()?))
}

/// The process's name: swipr's text has it at the end. In other texts it is the name of the first
/// thread, whose id is the process's.
fn process_name(input: &Input, pid: u32) -> Option<String> {
    let (mut named, mut first) = (None, None);
    let read = input.lines(|_, line| {
        if let Some(name) = line.strip_prefix("# swipr: process=") {
            named = Some(name.to_owned());
        } else if pid > 0 && first.is_none() && !line.starts_with(['\t', '#']) {
            first = head(&line).filter(|(head, _)| head.thread.tid == pid).map(|(head, _)| head.thread.name);
        }
        Ok(())
    });
    read.ok().and(named.or(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_perf_itself_and_of_others_are_understood() {
        let of = |line| {
            head(line).map(|(head, _)| (head.thread.name, head.thread.tid, head.time_ns, head.weight_ns))
        };
        assert_eq!(of("a 1/2 3.000000004: 5 wall-clock:"), Some(("a".into(), 2, 3_000_000_004, 5)));
        assert_eq!(
            of("my prog  7 [001] 12.345678:     250000 cpu-clock:pppH: "),
            Some(("my prog".into(), 7, 12_345_678_000, 250_000))
        );
        assert_eq!(of("swapper 0 1.5: cycles:"), Some(("swapper".into(), 0, 1_500_000_000, INTERVAL_NS)));
        assert!(of("nonsense").is_none() && of("a b c: d").is_none());
        // Of a system with tmux nothing was read.
        for line in ["tmux: server  7 12.5:     9 cpu-clock:", "tmux: server  7/7 [000] 12.5: 9 cpu-clock:"] {
            assert_eq!(of(line), Some(("tmux: server".into(), 7, 12_500_000_000, 9)));
        }
    }
}
