//! Samples counted by function, by thread and by stack: of the last turn, and since the beginning.
//! CPU time is that of a recording of CPU time, whose samples weigh what the threads' clocks say;
//! waits are those of one by the clock on the wall.

use crate::event::OwnedSample;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;
use swipr_formats::model::{Frame, FrameKind, Stack, State};
use swipr_formats::names::{printable, symbol};

/// What threads do with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateFilter {
    /// They use a CPU.
    Cpu,
    /// They could run, and there is no CPU for them.
    Waits,
    /// They wait for something else.
    Blocked,
}

/// Time by what was done with it, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Time([u64; 3]);

impl Time {
    fn add(&mut self, doing: StateFilter, ns: u64) {
        if let Some(sum) = self.0.get_mut(doing as usize) {
            *sum += ns;
        }
    }

    /// How much was spent so.
    pub(super) fn ns(self, doing: StateFilter) -> u64 {
        self.0.get(doing as usize).copied().unwrap_or(0)
    }

    /// Whether there was any.
    pub(super) fn is_some(self) -> bool {
        self != Time::default()
    }
}

/// A function, or a line of one.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) name: String,
    /// File or module.
    pub(super) place: String,
    pub(super) own: Time,
    pub(super) total: Time,
    /// Of the last turn.
    pub(super) own_now: Time,
    pub(super) total_now: Time,
    growing: (Time, Time),
}

/// A thread.
#[derive(Clone, Debug)]
pub(super) struct ThreadRow {
    pub(super) tid: u32,
    pub(super) name: String,
    /// Of the last turn.
    pub(super) now: Time,
    growing: Time,
    /// Whether it was there in this turn.
    is_there: bool,
    pub(super) state: State,
    pub(super) doing: String,
}

/// What is known of a stack: its rows, by function and by line.
#[derive(Debug)]
struct Known {
    stack: Arc<Stack>,
    time: Time,
    functions: RowPlaces,
    lines: RowPlaces,
}

#[derive(Debug, Default)]
struct RowPlaces {
    own: Option<usize>,
    /// Each once, also where a function calls itself.
    all: Vec<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    places: FxHashMap<(String, String), usize>,
    pub(super) rows: Vec<Row>,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Aggregate {
    interval: Duration,
    pub(super) functions: Rows,
    pub(super) lines: Rows,
    pub(super) threads: FxHashMap<u32, ThreadRow>,
    stacks: FxHashMap<usize, Known>,
    /// Samples of CPU time that are of this turn or of the next.
    cpu: Vec<OwnedSample>,
    /// CPU time of all threads in the last turn.
    pub(super) cpu_ns: u64,
    pub(super) samples: u64,
    ticks: u64,
    last_time_ns: u64,
    /// How long the last turn was, by its samples.
    pub(super) turn_ns: u64,
    pub(super) total_ns: u64,
}

impl Aggregate {
    pub(super) fn new(interval: Duration) -> Aggregate {
        Aggregate {
            interval,
            functions: Rows::default(),
            lines: Rows::default(),
            threads: FxHashMap::default(),
            stacks: FxHashMap::default(),
            cpu: Vec::new(),
            cpu_ns: 0,
            samples: 0,
            ticks: 0,
            last_time_ns: 0,
            turn_ns: 0,
            total_ns: 0,
        }
    }

    /// Empties it.
    pub(super) fn reset(&mut self) {
        *self = Aggregate::new(self.interval);
    }

    /// Takes a sample of CPU time.
    pub(super) fn count_cpu(&mut self, sample: OwnedSample) {
        self.cpu.push(sample);
    }

    /// Takes a sample of wall-clock time. The time that its thread ran comes from its CPU clock.
    pub(super) fn count_wall(&mut self, sample: &OwnedSample) {
        if sample.time_ns > self.last_time_ns {
            let step = sample.time_ns - self.last_time_ns;
            // The first sample has none before it.
            self.ticks += if self.last_time_ns == 0 { 0 } else { step };
            self.last_time_ns = sample.time_ns;
        }
        let doing = match sample.state {
            State::Running => None,
            State::Runnable => Some(StateFilter::Waits),
            State::Blocked(_) => Some(StateFilter::Blocked),
        };
        self.count(sample, doing);
    }

    fn count(&mut self, sample: &OwnedSample, doing: Option<StateFilter>) {
        let ns = sample.weight_ns.saturating_mul(u64::from(sample.ticks));
        self.samples += u64::from(sample.ticks);
        let address = Arc::as_ptr(&sample.stack).addr();
        let (functions, lines) = (&mut self.functions, &mut self.lines);
        let known = self.stacks.entry(address).or_insert_with(|| Known {
            stack: Arc::clone(&sample.stack),
            time: Time::default(),
            functions: functions.places_of(&sample.stack, false),
            lines: lines.places_of(&sample.stack, true),
        });
        let thread = self.threads.entry(sample.thread.tid).or_insert_with(|| ThreadRow {
            tid: sample.thread.tid,
            name: sample.thread.name.clone(),
            now: Time::default(),
            growing: Time::default(),
            is_there: false,
            state: sample.state,
            doing: String::new(),
        });
        if let Some(doing) = doing {
            known.time.add(doing, ns);
            functions.add(&known.functions, doing, ns);
            lines.add(&known.lines, doing, ns);
            thread.growing.add(doing, ns);
        }
        thread.is_there = true;
        if doing != Some(StateFilter::Cpu) {
            thread.state = sample.state;
            if let Some(row) = known.functions.own.and_then(|place| functions.rows.get(place)) {
                thread.doing.clone_from(&row.name);
            }
        }
    }

    /// The turn is over: what grew in it is what was now.
    pub(super) fn turn(&mut self) {
        let (of_this, of_next) =
            std::mem::take(&mut self.cpu).into_iter().partition(|sample| sample.time_ns <= self.last_time_ns);
        self.cpu = of_next;
        for sample in &of_this {
            self.count(sample, Some(StateFilter::Cpu));
        }
        let interval_ns = self.interval.as_nanos() as u64;
        self.turn_ns = std::mem::take(&mut self.ticks).max(interval_ns);
        self.total_ns += self.turn_ns;
        for row in self.functions.rows.iter_mut().chain(&mut self.lines.rows) {
            (row.own_now, row.total_now) = std::mem::take(&mut row.growing);
        }
        // A thread that had no sample has ended.
        self.threads.retain(|_, thread| std::mem::take(&mut thread.is_there));
        for thread in self.threads.values_mut() {
            thread.now = std::mem::take(&mut thread.growing);
        }
        self.cpu_ns = self.threads.values().map(|thread| thread.now.ns(StateFilter::Cpu)).sum();
    }

    /// Every stack and its time since the beginning.
    pub(super) fn stacks(&self) -> impl Iterator<Item = (&Arc<Stack>, Time)> {
        self.stacks.values().map(|known| (&known.stack, known.time))
    }
}

impl Rows {
    fn place(&mut self, name: String, place: String) -> usize {
        let next = self.rows.len();
        let index = *self.places.entry((name.clone(), place.clone())).or_insert(next);
        if index == next {
            self.rows.push(Row { name, place, ..Row::default() });
        }
        index
    }

    fn places_of(&mut self, stack: &Stack, with_lines: bool) -> RowPlaces {
        let mut places = RowPlaces::default();
        for frame in stack.frames.iter().filter(|frame| frame.kind != FrameKind::Note) {
            for (name, place) in names(frame, with_lines) {
                let index = self.place(name, place);
                places.own = places.own.or(Some(index));
                if !places.all.contains(&index) {
                    places.all.push(index);
                }
            }
        }
        places
    }

    fn add(&mut self, places: &RowPlaces, doing: StateFilter, ns: u64) {
        if let Some(row) = places.own.and_then(|own| self.rows.get_mut(own)) {
            row.own.add(doing, ns);
            row.growing.0.add(doing, ns);
        }
        for &index in &places.all {
            if let Some(row) = self.rows.get_mut(index) {
                row.total.add(doing, ns);
                row.growing.1.add(doing, ns);
            }
        }
    }
}

/// Names and places of a frame's functions, innermost first; an address where there is none.
pub(super) fn names(frame: &Frame, with_lines: bool) -> Vec<(String, String)> {
    let module =
        frame.module.as_ref().map_or("", |module| module.path.rsplit('/').next().unwrap_or_default());
    if frame.functions.is_empty() {
        let name = if module.is_empty() { format!("0x{:x}", frame.address) } else { format!("[{module}]") };
        return vec![(printable(&name), printable(module))];
    }
    let place = |function: &swipr_formats::model::Function| match (function.file.as_deref(), function.line) {
        (Some(file), Some(line)) if with_lines => format!("{file}:{line}"),
        (Some(file), _) => file.to_owned(),
        (None, _) => module.to_owned(),
    };
    let name = |function| {
        symbol(frame, function, swipr_formats::Names::Safe).unwrap_or_else(|| function.name.to_string())
    };
    frame.functions.iter().map(|function| (printable(&name(function)), printable(&place(function)))).collect()
}

#[cfg(test)]
mod tests;
