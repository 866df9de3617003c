//! Reads folded stacks: `root;…;leaf count`. A file does not say what it counts. Counts are taken
//! as samples of wall-clock time, 10 ms each; where they are too large for that, as nanoseconds of
//! CPU time. Threads and times are not known: what was drawn as a thread is a frame here.

use super::input::Input;
use super::{header, named_frame, of_one_sample, parts};
use crate::event::{Event, OwnedSample};
use crate::shape::Shape;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use swipr_formats::model::{Mode, State, Summary, Thread};

/// No recording has more samples: larger counts are nanoseconds.
const MAX_SAMPLES: u64 = 50_000_000;
/// A recording of samples has some rarer stack. Where none is rarer, the counts are nanoseconds.
const RAREST: u64 = 20_000;
const INTERVAL_NS: u64 = 10_000_000;

pub(super) fn read(
    input: &Input,
    name: &str,
    shape: &Arc<Shape>,
    to: &mut dyn FnMut(Event) -> Result<(), String>,
) -> Result<(), String> {
    // Lines of one stack are one.
    let mut stacks = BTreeMap::<Cow<'_, str>, u64>::new();
    let (mut total, mut rarest) = (0_u64, u64::MAX);
    input.lines(|number, line| {
        let trimmed = line.trim_end();
        if trimmed.is_empty() || trimmed.starts_with("# ") {
            return Ok(());
        }
        let parsed =
            trimmed.rsplit_once(' ').and_then(|(stack, count)| Some((stack, count.parse::<u64>().ok()?)));
        let (stack, count) = parsed.ok_or_else(|| format!("line {number}: it does not end with a count"))?;
        if count == 0 {
            return Ok(());
        }
        total = total.saturating_add(count);
        rarest = rarest.min(count);
        if let Some(sum) = stacks.get_mut(stack) {
            *sum = sum.saturating_add(count);
            return Ok(());
        }
        let end = stack.len();
        let stack = match line {
            Cow::Borrowed(line) => Cow::Borrowed(line.get(..end).unwrap_or(line)),
            Cow::Owned(line) => Cow::Owned(line.get(..end).unwrap_or(&line).to_owned()),
        };
        stacks.insert(stack, count);
        Ok(())
    })?;
    let is_time = total > MAX_SAMPLES || (RAREST + 1..u64::MAX).contains(&rarest);
    let waits = stacks.keys().any(|stack| is_waiting(stack));
    let mode = if is_time && !waits { Mode::Cpu } else { Mode::Wall };
    let thread = shape.thread(Thread { tid: 0, name: name.to_owned() });
    to(Event::Header(header(name, 0, mode, 0)))?;
    let (mut samples, of_one) = (0, of_one_sample(stacks.values().copied()));
    for (stack, count) in stacks {
        let stack = shape.stack(stack.rsplit(';').map(named_frame).collect(), None);
        // Time of threads that wait is compared with samples of such.
        let (ticks, total) = match is_time {
            true if waits => ((count.saturating_add(of_one / 2) / of_one).max(1), count),
            true => (1, count),
            false => (count, count.saturating_mul(INTERVAL_NS)),
        };
        for (ticks, weight_ns) in parts(ticks, total) {
            let (time_ns, state) = (0, State::Running);
            let (thread, stack) = (Arc::clone(&thread), Arc::clone(&stack));
            samples += u64::from(ticks);
            to(Event::Sample(OwnedSample { time_ns, ticks, thread, state, weight_ns, stack }))?;
        }
    }
    to(Event::End(Summary { samples, are_sums: is_time, uncounted: 1, ..Summary::default() }))
}

/// Whether the thread waits there: recordings of CPU time have no such stacks.
pub fn is_waiting(stack: &str) -> bool {
    let leaf = stack.rsplit(';').next().unwrap_or_default();
    leaf.starts_with("[blocked") || leaf.starts_with("[waiting for")
}
