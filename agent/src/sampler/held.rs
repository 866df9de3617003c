//! CPU mode: what a sample stands for.
//!
//! Half of the CPU time since the thread's sample before it, and half of that until the one behind it. (All of the time
//! since the one before would favour moments late in the interval between two ticks: a sample that comes late in
//! it has the longer time before itself.) So a sample waits for the next one, or for the end.

use super::active::Active;
use super::threads::Sampled;
use crate::stack::RawStack;
use std::sync::Arc;

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
    let to_last = if place.is_some() { used_ns / 2 } else { 0 };
    let held = HeldSample { tick_ns, weight_ns: used_ns - to_last, stack: stack.clone() };
    if let Some(last) = place.replace(held) {
        recording.cpu_sample(&thread.thread, last.tick_ns, last.weight_ns + to_last, &last.stack);
    }
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
