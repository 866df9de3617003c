//! Samples counted by function, by thread and by stack: of the last period, and since the begin.
//! CPU time is that of a recording of CPU time, whose samples weigh what the threads' clocks say;
//! waits are those of one by the clock on the wall.
//!
//! An agent sends the samples of a thread up to 2 s after they were taken, for some threads later
//! than for others. So a period ends before the samples that are still to come, and each sample
//! counts in it with the part of its time that lies in the period.

use crate::event::OwnedSample;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;
use swipr_formats::model::{Frame, FrameKind, Stack, State};
use swipr_formats::names::{printable, symbol};

/// How long before now a period ends: the agent's longest window, and the way here.
const LAG_NS: u64 = 2_250_000_000;
/// A recording's first windows are at most half of its age, and at most this: so much can be shown
/// before the first long ones are closed.
const FIRST_NS: u64 = 250_000_000;
/// A period is at least so long. Within a window of an agent all samples weigh the same, so nothing
/// shorter is known.
const SHORTEST_PERIOD: Duration = Duration::from_secs(2);
/// A thread has ended if it was not seen in the last three ticks of the period, or in this time.
const UNSEEN_NS: u64 = 200_000_000;

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
    /// Of the last period.
    pub(super) own_now: Time,
    pub(super) total_now: Time,
}

/// A thread.
#[derive(Clone, Debug)]
pub(super) struct ThreadRow {
    pub(super) tid: u32,
    pub(super) name: String,
    /// Of the last period.
    pub(super) now: Time,
    /// When it was last seen.
    seen_ns: u64,
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

/// A sample that may lie in a period to come.
#[derive(Debug)]
struct Recent {
    sample: OwnedSample,
    /// `None`: it says nothing of the time.
    doing: Option<StateFilter>,
}

impl Recent {
    /// How much of its time lies between these times.
    fn part_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let (end_ns, ns) = (self.sample.time_ns, whole_ns(&self.sample));
        end_ns.min(to_ns).saturating_sub(end_ns.saturating_sub(ns).max(from_ns))
    }
}

/// Whether what comes is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// It is.
    On,
    /// The picture stands still.
    Paused,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Aggregate {
    interval: Duration,
    period: Duration,
    pub(super) functions: Rows,
    pub(super) lines: Rows,
    /// Those that are there at the end of the period.
    pub(super) threads: FxHashMap<u32, ThreadRow>,
    stacks: FxHashMap<usize, Known>,
    recent: Vec<Recent>,
    /// The agent's clock, less the one here.
    ahead_ns: u64,
    /// The first sample's time.
    began_ns: Option<u64>,
    /// CPU time of all threads in the last period.
    pub(super) cpu_ns: u64,
    pub(super) samples: u64,
    /// How long samples have been counted, until the last turn.
    pub(super) counted: Duration,
    turned: Duration,
    /// How long the last period was.
    pub(super) period_ns: u64,
}

impl Aggregate {
    /// `interval`: between two looks at the threads' states; `delay`: between two pictures.
    pub(super) fn new(interval: Duration, delay: Duration) -> Aggregate {
        Aggregate {
            interval,
            period: delay.max(SHORTEST_PERIOD),
            functions: Rows::default(),
            lines: Rows::default(),
            threads: FxHashMap::default(),
            stacks: FxHashMap::default(),
            recent: Vec::new(),
            ahead_ns: 0,
            began_ns: None,
            cpu_ns: 0,
            samples: 0,
            counted: Duration::ZERO,
            turned: Duration::ZERO,
            period_ns: interval.as_nanos() as u64,
        }
    }

    /// Empties it, but for what the next period needs.
    pub(super) fn reset(&mut self) {
        let recent = std::mem::take(&mut self.recent);
        let Aggregate { ahead_ns, began_ns, turned, .. } = *self;
        let fresh = Aggregate::new(self.interval, self.period);
        *self = Aggregate { recent, ahead_ns, began_ns, turned, ..fresh };
    }

    /// Takes a sample of CPU time, at this time of the clock here.
    pub(super) fn take_cpu(&mut self, sample: OwnedSample, now: Duration, counting: Counting) {
        self.take(Recent { sample, doing: Some(StateFilter::Cpu) }, now, counting);
    }

    /// Takes a sample of wall-clock time. The time that its thread ran comes from its CPU clock.
    pub(super) fn take_wall(&mut self, sample: OwnedSample, now: Duration, counting: Counting) {
        let time_ns = sample.time_ns;
        self.began_ns = Some(self.began_ns.map_or(time_ns, |began| began.min(time_ns)));
        let doing = match sample.state {
            State::Running => None,
            State::Runnable => Some(StateFilter::Waits),
            State::Blocked(_) => Some(StateFilter::Blocked),
        };
        self.take(Recent { sample, doing }, now, counting);
    }

    fn take(&mut self, recent: Recent, now: Duration, counting: Counting) {
        let sample = &recent.sample;
        self.ahead_ns = self.ahead_ns.max(sample.time_ns.saturating_sub(now.as_nanos() as u64));
        if counting == Counting::On {
            self.samples += u64::from(sample.ticks);
            if let Some(doing) = recent.doing {
                let ns = whole_ns(sample);
                let known = known(&mut self.stacks, &mut self.functions, &mut self.lines, &sample.stack);
                known.time.add(doing, ns);
                self.functions.add(&known.functions, doing, ns);
                self.lines.add(&known.lines, doing, ns);
            }
        }
        self.recent.push(recent);
    }

    /// The period that is shown at this time of the clock here: from when to when.
    fn period_at(&self, now: Duration) -> (u64, u64) {
        let now_ns = self.ahead_ns.saturating_add(now.as_nanos() as u64);
        let began_ns = self.began_ns.unwrap_or(now_ns);
        let age_ns = now_ns.saturating_sub(began_ns);
        let to_ns = began_ns + age_ns.saturating_sub(LAG_NS).max(FIRST_NS.min(age_ns / 2));
        (to_ns.saturating_sub(self.period.as_nanos() as u64).max(began_ns), to_ns)
    }

    /// Forgets samples that are in no period any more.
    pub(super) fn forget(&mut self, now: Duration) {
        self.turned = now;
        let (from_ns, _) = self.period_at(now);
        self.recent.retain(|recent| recent.sample.time_ns > from_ns);
    }

    /// The next period is shown.
    pub(super) fn turn(&mut self, now: Duration) {
        self.counted += now.saturating_sub(self.turned);
        self.forget(now);
        let (from_ns, to_ns) = self.period_at(now);
        let period_ns = to_ns - from_ns;
        self.period_ns = period_ns.max(self.interval.as_nanos() as u64);
        self.functions.begin_period();
        self.lines.begin_period();
        self.threads.clear();
        self.cpu_ns = 0;
        let recent = std::mem::take(&mut self.recent);
        let mut sums: FxHashMap<u32, u64> = FxHashMap::default();
        for one in recent.iter().filter(|one| one.doing.is_some()) {
            *sums.entry(one.sample.thread.tid).or_default() += one.part_ns(from_ns, to_ns);
        }
        for one in &recent {
            let part_ns = one.part_ns(from_ns, to_ns);
            if part_ns == 0 {
                continue;
            }
            // A thread has no more time than the period: windows end beside it.
            let sum = sums.get(&one.sample.thread.tid).copied().unwrap_or(0).max(period_ns).max(1);
            let ns = u128::from(part_ns) * u128::from(period_ns) / u128::from(sum);
            self.show(one, ns as u64, to_ns);
        }
        self.recent = recent;
        let unseen_ns = UNSEEN_NS.max(3 * self.interval.as_nanos() as u64);
        self.threads.retain(|_, thread| thread.seen_ns.saturating_add(unseen_ns) > to_ns);
    }

    /// Counts a sample in the period that is shown.
    fn show(&mut self, one: &Recent, ns: u64, to_ns: u64) {
        let (sample, doing) = (&one.sample, one.doing);
        let known = known(&mut self.stacks, &mut self.functions, &mut self.lines, &sample.stack);
        let thread = self.threads.entry(sample.thread.tid).or_insert_with(|| ThreadRow {
            tid: sample.thread.tid,
            name: sample.thread.name.clone(),
            now: Time::default(),
            seen_ns: 0,
            state: sample.state,
            doing: String::new(),
        });
        if let Some(doing) = doing {
            self.functions.show(&known.functions, doing, ns);
            self.lines.show(&known.lines, doing, ns);
            thread.now.add(doing, ns);
        }
        if doing == Some(StateFilter::Cpu) {
            self.cpu_ns += ns;
        } else if sample.time_ns >= thread.seen_ns {
            thread.state = sample.state;
            if let Some(row) = known.functions.own.and_then(|place| self.functions.rows.get(place)) {
                thread.doing.clone_from(&row.name);
            }
        }
        thread.seen_ns = thread.seen_ns.max(sample.time_ns.min(to_ns));
    }

    /// Every stack and its time since the beginning.
    pub(super) fn stacks(&self) -> impl Iterator<Item = (&Arc<Stack>, Time)> {
        self.stacks.values().map(|known| (&known.stack, known.time))
    }
}

/// What is known of a stack.
fn known<'a>(
    stacks: &'a mut FxHashMap<usize, Known>,
    functions: &mut Rows,
    lines: &mut Rows,
    stack: &Arc<Stack>,
) -> &'a mut Known {
    stacks.entry(Arc::as_ptr(stack).addr()).or_insert_with(|| Known {
        stack: Arc::clone(stack),
        time: Time::default(),
        functions: functions.places_of(stack, false),
        lines: lines.places_of(stack, true),
    })
}

/// What a sample represents.
fn whole_ns(sample: &OwnedSample) -> u64 {
    sample.weight_ns.saturating_mul(u64::from(sample.ticks))
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
        }
        for &index in &places.all {
            if let Some(row) = self.rows.get_mut(index) {
                row.total.add(doing, ns);
            }
        }
    }

    fn begin_period(&mut self) {
        for row in &mut self.rows {
            (row.own_now, row.total_now) = <_>::default();
        }
    }

    /// Adds it to the period that is shown.
    fn show(&mut self, places: &RowPlaces, doing: StateFilter, ns: u64) {
        if let Some(row) = places.own.and_then(|own| self.rows.get_mut(own)) {
            row.own_now.add(doing, ns);
        }
        for &index in &places.all {
            if let Some(row) = self.rows.get_mut(index) {
                row.total_now.add(doing, ns);
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
