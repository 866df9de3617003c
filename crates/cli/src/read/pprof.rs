//! Reads pprof profiles (profile.proto): swipr's and those of others, such as Go's, gperftools',
//! and heap profiles with bytes as weight.

mod tables;

use super::system_calls::SystemCalls;
use super::{Figures, header, of_one_sample, parts, unreadable};
use crate::error::Error;
use crate::event::{Event, OwnedSample};
use crate::shape::Shape;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use swipr_formats::model::{Frame, FrameKind, Function, Header, Measure, Mode, Module, State, Thread};
use tables::{PprofProfile, RawMapping, Sample};

/// Returns what the weights are, if they are no clock's, and whether there are counts beside them.
pub(super) fn read(
    bytes: &[u8],
    name: &str,
    shape: &Arc<Shape>,
    to: &mut dyn FnMut(Event) -> Result<(), String>,
) -> Result<(Option<Measure>, bool), Error> {
    let profile = PprofProfile::parse(bytes).map_err(unreadable)?;
    if profile.samples.is_empty() {
        return Err(unreadable("there is no sample in it, or it is no pprof profile"));
    }
    let mut values = profile.samples.iter().flat_map(|sample| &sample.values);
    if values.any(|&value| i64::try_from(value).is_err()) {
        let why = "it has negative values: it is the difference of two profiles";
        return Err(Error::new(why, "compare the two themselves: swipr diff BEFORE AFTER"));
    }
    samples(&profile, name, shape, to).map_err(unreadable)?;
    Ok((profile.measure(), profile.values().0.is_some()))
}

fn samples(
    profile: &PprofProfile<'_>,
    name: &str,
    shape: &Arc<Shape>,
    to: &mut dyn FnMut(Event) -> Result<(), String>,
) -> Result<(), String> {
    let (count, weight) = profile.values();
    let unit_ns = weight.and_then(|index| nanoseconds(&profile.types().get(index)?.1));
    let header = profile.header(name);
    to(Event::Header(header.clone()))?;
    let (modules, calls) = (profile.modules(), SystemCalls::new());
    let comments = profile.comments.iter().map(|&comment| profile.text(comment));
    let losses =
        comments.filter_map(|text| swipr_formats::read_stats_line(text.strip_prefix("swipr: ")?)).next();
    let is_wall = header.mode == Mode::Wall;
    let weights = profile.samples.iter().filter_map(|sample| sample.values.get(weight?));
    let of_one = of_one_sample(weights.map(|value| value.saturating_mul(unit_ns.unwrap_or(1))));
    let mut figures = Figures { losses, ..Figures::default() };
    for sample in &profile.samples {
        let value = |index: Option<usize>| index.and_then(|index| sample.values.get(index)).copied();
        let total = value(weight).map(|value| value.saturating_mul(unit_ns.unwrap_or(1)));
        let ticks =
            value(count).or(total.filter(|_| is_wall).map(|total| total.saturating_add(of_one / 2) / of_one));
        let ticks = ticks.unwrap_or(1).clamp(1, u64::from(u32::MAX));
        let each_ns = if header.measure.is_some() { 1 } else { header.interval_ns };
        let total = total.unwrap_or(ticks.saturating_mul(each_ns));
        if value(count) == Some(0) && total == 0 {
            continue;
        }
        let (thread, state) = profile.labels(sample, name, &calls);
        let frames = sample.locations.iter().map(|id| profile.frame(*id, &modules)).collect();
        let (thread, stack) = (shape.thread(thread), shape.stack(frames, None));
        for (ticks, weight_ns) in parts(ticks, total) {
            // A profile has sums: it does not say when its samples were.
            let (time_ns, thread, stack) = (0, Arc::clone(&thread), Arc::clone(&stack));
            let sample = OwnedSample { time_ns, ticks, thread, state, weight_ns, stack };
            figures.count(&sample);
            to(Event::Sample(sample))?;
        }
    }
    let end = match figures.end() {
        Event::End(mut summary) => {
            summary.duration_ns = profile.duration_ns;
            Event::End(summary)
        }
        other => other,
    };
    to(end)
}

impl PprofProfile<'_> {
    fn header(&self, name: &str) -> Header {
        let (types, (_, weight)) = (self.types(), self.values());
        let is_cpu = |(kind, _): &(String, String)| kind == "cpu" || kind == "cpu-time";
        let is_cpu = weight.map_or(types.iter().any(is_cpu), |index| types.get(index).is_some_and(is_cpu));
        let mode = if is_cpu { Mode::Cpu } else { Mode::Wall };
        let (process, pid) = self.process(name);
        let mut header = header(&process, pid, mode, self.time_ns);
        header.executable = self.executable().unwrap_or(header.executable);
        header.measure = self.measure();
        if self.period > 0 {
            let unit_ns = nanoseconds(&self.text(self.period_type.1)).unwrap_or(1);
            header.interval_ns = self.period.saturating_mul(unit_ns);
        }
        header
    }

    /// The kinds of a sample's values, with their units.
    fn types(&self) -> Vec<(String, String)> {
        self.sample_types.iter().map(|&(kind, unit)| (self.text(kind), self.text(unit))).collect()
    }

    /// Which of a sample's values are its count and its weight: of several weights the one that
    /// the profile names, or else the last, with the count before it.
    fn values(&self) -> (Option<usize>, Option<usize>) {
        let (types, default) = (self.types(), self.text(self.default_type));
        let is_count =
            |index: usize| types.get(index).is_some_and(|(kind, unit)| kind == "samples" || unit == "count");
        let first = (0..types.len()).find(|&index| is_count(index));
        let meant = types.iter().position(|(kind, _)| !default.is_empty() && *kind == default);
        match meant.or_else(|| types.iter().rposition(|(_, unit)| unit != "count")) {
            Some(meant) if is_count(meant) => (Some(meant), None),
            Some(meant) => (meant.checked_sub(1).filter(|&before| is_count(before)).or(first), Some(meant)),
            None => (first, None),
        }
    }

    /// What the weight is, if it is no clock's; of counts alone, if they are no samples.
    fn measure(&self) -> Option<Measure> {
        const CLOCKS: [&str; 6] = ["cpu", "cpu-time", "wall", "wall-time", "samples", "time"];
        let (count, weight) = self.values();
        let (kind, unit) = self.types().swap_remove(weight.or(count)?);
        // Times are read as nanoseconds.
        let unit = if nanoseconds(&unit).is_some() { "nanoseconds".to_owned() } else { unit };
        let is_clocks = CLOCKS.contains(&&*kind) && (weight.is_none() || unit == "nanoseconds");
        (!is_clocks).then_some(Measure { kind, unit })
    }

    /// The program's file.
    fn executable(&self) -> Option<String> {
        let file = self.text(self.mappings.get(&self.program?)?.file);
        Some(file).filter(|file| !file.is_empty())
    }

    /// The process's name and its id: swipr's own profiles have them in a comment. In others the
    /// name is that of the program's file.
    fn process(&self, otherwise: &str) -> (String, u32) {
        let comments = self.comments.iter().map(|&comment| self.text(comment));
        let mut named = comments.filter_map(|text| {
            let (pid, name) = text.strip_prefix("swipr: process ")?.split_once(' ')?;
            Some((name.to_owned(), pid.parse().ok()?))
        });
        let by_file = || {
            let name = self.executable()?.rsplit('/').next()?.to_owned();
            Some((name, 0)).filter(|(name, _)| !name.is_empty() && !name.starts_with('['))
        };
        named.next_back().or_else(by_file).unwrap_or_else(|| (otherwise.to_owned(), 0))
    }

    fn modules(&self) -> FxHashMap<u64, Arc<Module>> {
        let module = |mapping: &RawMapping| Module {
            path: self.text(mapping.file),
            start: mapping.start,
            end: mapping.end,
            file_offset: mapping.offset,
            base: mapping.start.wrapping_sub(mapping.offset),
            build_id: unhex(&self.text(mapping.build_id)),
        };
        self.mappings.iter().map(|(&id, mapping)| (id, Arc::new(module(mapping)))).collect()
    }

    fn frame(&self, id: u64, modules: &FxHashMap<u64, Arc<Module>>) -> Frame {
        let Some(location) = self.locations.get(&id) else { return super::named_frame("[unknown]") };
        let function = |&(id, line): &(u64, u64)| {
            let raw = self.functions.get(&id)?;
            let (name, system_name, file) =
                (self.text(raw.name), self.text(raw.system_name), self.text(raw.file));
            let linkers = Some(system_name.as_str()).filter(|text| !text.is_empty());
            Some(Function {
                file: Some(file).filter(|text| !text.is_empty()).map(Into::into),
                line: u32::try_from(line).ok().filter(|&line| line > 0),
                ..super::function(&name, linkers)
            })
        };
        let functions: Vec<Function> = location.lines.iter().filter_map(function).collect();
        let module = modules.get(&location.mapping).cloned();
        let kind = module.as_ref().map_or(FrameKind::Native, |module| FrameKind::from_module(&module.path));
        if let FrameKind::Interpreted(language) = kind {
            return super::interpreted_frame(language, location.address, functions);
        }
        let is_note = module.is_none()
            && location.address == 0
            && functions.first().is_some_and(|function| function.name.starts_with('['));
        let kind = if is_note { FrameKind::Note } else { kind };
        let module = module.filter(|_| kind != FrameKind::Jit);
        Frame { address: location.address, kind, module, functions: functions.into() }
    }

    fn labels(&self, sample: &Sample, name: &str, calls: &SystemCalls) -> (Thread, State) {
        let (mut thread, mut state) = (Thread { tid: 0, name: name.to_owned() }, State::Running);
        let mut call = None;
        for &(key, text, number) in &sample.labels {
            match self.text(key).as_str() {
                "thread" => thread.name = self.text(text),
                "thread_id" => thread.tid = u32::try_from(number).unwrap_or(0),
                "syscall" => call = calls.number(&self.text(text)),
                "state" => {
                    state = match self.text(text).as_str() {
                        "runnable" => State::Runnable,
                        "blocked" => State::Blocked(None),
                        _ => State::Running,
                    }
                }
                _ => {}
            }
        }
        (thread, if state == State::Blocked(None) { State::Blocked(call) } else { state })
    }
}

/// What a unit of time is in nanoseconds; `None`: it is another one, such as bytes.
fn nanoseconds(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    Some(match unit.strip_suffix("s").filter(|unit| unit.len() > 2).unwrap_or(&unit) {
        "nanosecond" | "ns" => 1,
        "microsecond" | "us" => 1_000,
        "millisecond" | "ms" => 1_000_000,
        "second" | "sec" | "s" => 1_000_000_000,
        "minute" | "min" => 60_000_000_000,
        "hour" | "hr" => 3_600_000_000_000,
        _ => return None,
    })
}

/// A build id as hexadecimal digits; empty for any other text.
fn unhex(text: &str) -> Vec<u8> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
    bytes.filter(|_| text.len().is_multiple_of(2)).unwrap_or_default()
}
