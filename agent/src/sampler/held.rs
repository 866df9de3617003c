//! CPU mode: what a sample stands for.
//!
//! Half of the CPU time since the thread's sample before it, and half of that until the one behind it. (All of the time
//! since the one before would favour moments late in the interval between two ticks: a sample that comes late in
//! it has the longer time before itself.) So a sample waits for the next one, or for the end.
//!
//! A tick at which the thread ran and left no stack counts as a sample without one: its share of
//! the CPU time is nobody's, and is not given to the stacks before and behind it.

use super::active::Active;
use super::threads::Sampled;
use crate::stack::RawStack;
use std::sync::Arc;

/// What a thread used without leaving a stack is told at the latest when it is so much.
const MOST_UNSAMPLED_NS: u64 = 1_000_000_000;

/// A thread's last sample.
#[derive(Debug)]
pub struct HeldSample {
    tick_ns: u64,
    weight_ns: u64,
    stack: Arc<RawStack>,
}

/// A sample was taken after `used_ns` of CPU time.
pub fn cpu_sample(
    thread: &mut Sampled,
    recording: &mut Active,
    tick_ns: u64,
    used_ns: u64,
    stack: &Arc<RawStack>,
) {
    let Some(place) = thread.held.get_mut(recording.place()).filter(|_| used_ns > 0) else { return };
    if let Some(last) = place
        && last.stack.is_none()
        && stack.is_none()
        && last.weight_ns < MOST_UNSAMPLED_NS
    {
        (last.tick_ns, last.weight_ns) = (tick_ns, last.weight_ns + used_ns);
        return;
    }
    let to_last = if place.is_some() { used_ns / 2 } else { 0 };
    let held = HeldSample { tick_ns, weight_ns: used_ns - to_last, stack: stack.clone() };
    if let Some(last) = place.replace(held) {
        recording.cpu_sample(&thread.thread, last.tick_ns, last.weight_ns + to_last, &last.stack);
    }
}

/// The thread ran until a tick, when its clock was at `clock_ns`, and left no stack.
pub fn cpu_missed(thread: &mut Sampled, recording: &mut Active, tick_ns: u64, clock_ns: u64) {
    let Some(accounted) = thread.accounted_ns.get_mut(recording.place()) else { return };
    let used_ns = clock_ns.saturating_sub(*accounted);
    *accounted += used_ns;
    cpu_sample(thread, recording, tick_ns, used_ns, &Arc::new(RawStack::none()));
}

/// The thread or the recording ends `used_ns` after the last sample.
pub fn account_rest(thread: &mut Sampled, recording: &mut Active, now_ns: u64, clock_ns: u64) {
    let place = recording.place();
    let used_ns = thread.accounted_ns.get(place).map_or(0, |accounted| clock_ns.saturating_sub(*accounted));
    match thread.held.get_mut(place).and_then(Option::take) {
        Some(last) => {
            recording.cpu_sample(&thread.thread, last.tick_ns, last.weight_ns + used_ns, &last.stack)
        }
        None if thread.recordings & recording.bit() != 0 => {
            recording.cpu_rest(&thread.thread, now_ns, used_ns);
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::process::{EpochClock, tid};
    use crate::recording::{Length, Request, Symbolize};
    use crate::sample_queue::{QUEUE_BYTES, sample_queue};
    use crate::sampler::threads::Threads;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;
    use swipr_formats::model::Mode;
    use swipr_unwind::frames::{CAPACITY, Storage};
    use swipr_unwind::walk::Stop;

    const MS: u64 = 1_000_000;

    fn some_stack() -> RawStack {
        let storage: Box<Storage> = Box::new([const { AtomicU64::new(0) }; CAPACITY]);
        RawStack::new(&storage, 1, Stop::Root, &Arc::default())
    }

    /// xz -T2 used 4.4 s of CPU time. Its threads block all signals: a handful of samples from
    /// before stood for all of it.
    #[test]
    fn what_a_thread_uses_while_it_leaves_no_stack_is_not_given_to_its_samples() {
        let format = swipr_formats::find("perf").unwrap();
        let request = Request {
            interval: Duration::from_millis(10),
            length: Length::Open,
            mode: Mode::Cpu,
            format: swipr_formats::Selection { format, options: Default::default() },
            threads: None,
            filter: Default::default(),
            purpose: Default::default(),
            symbolize: Symbolize::Never,
        };
        let (sender, receiver) = sample_queue(QUEUE_BYTES);
        let clock = EpochClock::now();
        let mut recording = Active::new(Arc::new(request), sender, Arc::default(), Arc::default(), clock);
        recording.start(0);
        let mut threads = Threads::new().unwrap();
        threads.refresh(&[]);
        let thread = threads.get_mut(tid()).unwrap();
        thread.recordings = recording.bit();
        let seen = Arc::new(some_stack());
        for tick in 1..=400 {
            let at = tick * 10 * MS;
            if tick <= 2 {
                thread.accounted_ns[0] = at;
                cpu_sample(thread, &mut recording, at, 10 * MS, &seen);
            } else {
                cpu_missed(thread, &mut recording, at, at);
            }
        }
        account_rest(thread, &mut recording, 4010 * MS, 4010 * MS);
        recording.flush(0);
        let (mut sampled, mut unsampled) = (0, vec![]);
        while let Ok(batch) = receiver.receive(Duration::ZERO) {
            for event in batch {
                match event.stack.is_none() {
                    true => unsampled.push(event.weight_ns),
                    false => sampled += event.weight_ns,
                }
            }
        }
        assert_eq!((sampled, unsampled.iter().sum()), (25 * MS, 3985 * MS), "{unsampled:?}");
        assert!((4..=5).contains(&unsampled.len()), "{unsampled:?}");
        assert_eq!(recording.counters().unsampled_cpu_ns.get(), 3985 * MS);
    }
}
