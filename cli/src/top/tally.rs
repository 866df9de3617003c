//! Samples counted by function, by thread and by stack: of the last turn, and since the beginning.

use crate::event::OwnedSample;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;
use swipr_formats::model::{Frame, FrameKind, Stack, State};

/// Time as it was seen in samples: running or waiting for a CPU, and blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) active_ns: u64,
    pub(super) blocked_ns: u64,
}

impl Time {
    fn add(&mut self, state: State, ns: u64) {
        match state {
            State::Blocked(_) => self.blocked_ns += ns,
            State::Running | State::Runnable => self.active_ns += ns,
        }
    }

    /// What counts, with threads that wait or without.
    pub(super) fn ns(self, idle: bool) -> u64 {
        if idle { self.active_ns + self.blocked_ns } else { self.active_ns }
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
    /// Of the last turn: on a CPU, waiting for one, blocked.
    pub(super) now: [u64; 3],
    growing: [u64; 3],
    pub(super) state: State,
    pub(super) doing: String,
}

/// What is known of a stack: its rows, by function and by line.
#[derive(Debug)]
struct Known {
    stack: Arc<Stack>,
    time: Time,
    functions: Places,
    lines: Places,
}

#[derive(Debug, Default)]
struct Places {
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
pub(super) struct Tally {
    interval: Duration,
    pub(super) functions: Rows,
    pub(super) lines: Rows,
    pub(super) threads: FxHashMap<u32, ThreadRow>,
    stacks: FxHashMap<usize, Known>,
    pub(super) samples: u64,
    ticks: u64,
    last_time_ns: u64,
    /// How long the last turn was, by its samples.
    pub(super) turn_ns: u64,
    pub(super) total_ns: u64,
}

impl Tally {
    pub(super) fn new(interval: Duration) -> Tally {
        Tally {
            interval,
            functions: Rows::default(),
            lines: Rows::default(),
            threads: FxHashMap::default(),
            stacks: FxHashMap::default(),
            samples: 0,
            ticks: 0,
            last_time_ns: 0,
            turn_ns: 0,
            total_ns: 0,
        }
    }

    /// Begins anew.
    pub(super) fn reset(&mut self) {
        *self = Tally::new(self.interval);
    }

    pub(super) fn count(&mut self, sample: &OwnedSample) {
        let ns = sample.weight_ns.saturating_mul(u64::from(sample.ticks));
        self.samples += u64::from(sample.ticks);
        if sample.time_ns > self.last_time_ns {
            let step = sample.time_ns - self.last_time_ns;
            // The first sample has none before it.
            self.ticks += if self.last_time_ns == 0 { 0 } else { step };
            self.last_time_ns = sample.time_ns;
        }
        let address = Arc::as_ptr(&sample.stack).addr();
        let (functions, lines) = (&mut self.functions, &mut self.lines);
        let known = self.stacks.entry(address).or_insert_with(|| Known {
            stack: Arc::clone(&sample.stack),
            time: Time::default(),
            functions: functions.places_of(&sample.stack, false),
            lines: lines.places_of(&sample.stack, true),
        });
        known.time.add(sample.state, ns);
        functions.add(&known.functions, sample.state, ns);
        lines.add(&known.lines, sample.state, ns);
        let thread = self.threads.entry(sample.thread.tid).or_insert_with(|| ThreadRow {
            tid: sample.thread.tid,
            name: sample.thread.name.clone(),
            now: [0; 3],
            growing: [0; 3],
            state: sample.state,
            doing: String::new(),
        });
        let which = match sample.state {
            State::Running => 0,
            State::Runnable => 1,
            State::Blocked(_) => 2,
        };
        if let Some(growing) = thread.growing.get_mut(which) {
            *growing += ns;
        }
        thread.state = sample.state;
        if let Some(row) = known.functions.own.and_then(|place| functions.rows.get(place)) {
            thread.doing.clone_from(&row.name);
        }
    }

    /// The turn is over: what grew in it is what was now.
    pub(super) fn turn(&mut self) {
        let interval_ns = self.interval.as_nanos() as u64;
        self.turn_ns = std::mem::take(&mut self.ticks).max(interval_ns);
        self.total_ns += self.turn_ns;
        for row in self.functions.rows.iter_mut().chain(&mut self.lines.rows) {
            (row.own_now, row.total_now) = std::mem::take(&mut row.growing);
        }
        for thread in self.threads.values_mut() {
            thread.now = std::mem::take(&mut thread.growing);
        }
        // A thread that had no sample has ended.
        self.threads.retain(|_, thread| thread.now.iter().any(|ns| *ns > 0));
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

    fn places_of(&mut self, stack: &Stack, with_lines: bool) -> Places {
        let mut places = Places::default();
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

    fn add(&mut self, places: &Places, state: State, ns: u64) {
        if let Some(row) = places.own.and_then(|own| self.rows.get_mut(own)) {
            row.own.add(state, ns);
            row.growing.0.add(state, ns);
        }
        for &index in &places.all {
            if let Some(row) = self.rows.get_mut(index) {
                row.total.add(state, ns);
                row.growing.1.add(state, ns);
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
        swipr_formats::names::symbol(function, swipr_formats::Names::Safe)
            .unwrap_or_else(|| function.name.to_string())
    };
    frame.functions.iter().map(|function| (printable(&name(function)), printable(&place(function)))).collect()
}

/// Names come from the program: nothing in them may move the cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use swipr_formats::model::{Function, Thread};

    fn stack(names: &[&str]) -> Arc<Stack> {
        let frame = |name: &&str| {
            let function =
                Function { name: (*name).into(), mangled: None, offset: 0, file: None, line: None };
            Frame { address: 1, kind: FrameKind::Native, module: None, functions: Arc::from([function]) }
        };
        Arc::new(Stack { frames: names.iter().map(frame).collect() })
    }

    fn sample(time_ms: u64, state: State, stack: &Arc<Stack>) -> OwnedSample {
        let thread = Arc::new(Thread { tid: 1, name: "t".into() });
        let stack = Arc::clone(stack);
        OwnedSample { time_ns: time_ms * 1_000_000, ticks: 1, thread, state, weight_ns: 10_000_000, stack }
    }

    #[test]
    fn own_time_is_the_leafs_and_a_function_that_calls_itself_counts_once() {
        let mut tally = Tally::new(Duration::from_millis(10));
        let deep = stack(&["leaf", "again", "again", "main"]);
        tally.count(&sample(1000, State::Running, &deep));
        tally.count(&sample(1010, State::Blocked(None), &deep));
        tally.turn();
        let row = |name: &str| tally.functions.rows.iter().find(|row| row.name == name).expect(name).clone();
        assert_eq!((row("leaf").own.active_ns, row("leaf").own.blocked_ns), (10_000_000, 10_000_000));
        assert_eq!((row("again").own.ns(true), row("again").total.ns(true)), (0, 20_000_000));
        assert_eq!(row("main").total_now.ns(false), 10_000_000);
        assert_eq!((tally.samples, tally.turn_ns), (2, 10_000_000));
    }

    #[test]
    fn a_turn_forgets_what_was_before_and_threads_that_are_gone() {
        let mut tally = Tally::new(Duration::from_millis(10));
        tally.count(&sample(1000, State::Running, &stack(&["a"])));
        tally.turn();
        assert_eq!(tally.threads.len(), 1);
        tally.turn();
        assert_eq!(tally.functions.rows[0].own_now.ns(true), 0);
        assert_eq!(tally.functions.rows[0].own.ns(true), 10_000_000);
        assert!(tally.threads.is_empty());
    }
}
