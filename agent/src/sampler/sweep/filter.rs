//! Which threads a recording is of: those whose name passes its filter, from when it does until it does not any more.

use super::settle::forget_ticks;
use crate::platform::process::monotonic_ns;
use crate::platform::threads::cpu_ns;
use crate::sampler::active::Active;
use crate::sampler::held::account_rest;
use crate::sampler::threads::Sampled;
use crate::sampler::told;

/// To be called when a thread is found, and when it has got another name.
pub fn apply_filter(thread: &mut Sampled, recording: &mut Active) {
    let request = recording.request();
    let (threads, tids) = (request.threads.as_ref(), &request.filter.tids);
    let passes = threads.is_none_or(|filter| filter.is_match(&thread.thread.name))
        && (tids.is_empty() || tids.contains(&thread.tid()));
    let (bit, place) = (recording.bit(), recording.place());
    let is_in = thread.recordings & bit != 0;
    if passes && !is_in && recording.is_sampling() {
        told::begin(thread, recording);
        thread.recordings |= bit;
        // Who is new has only just got its name, and what it has used belongs to that. Who is known for longer has been
        // somebody else.
        let was_other = thread.counted & bit != 0 || !thread.is_new();
        if let Some(accounted) = thread.accounted_ns.get_mut(place).filter(|_| was_other) {
            *accounted = cpu_ns(thread.thread.tid).unwrap_or(thread.cpu_ns);
        }
    } else if !passes && is_in {
        let clock_ns = cpu_ns(thread.tid()).unwrap_or(thread.cpu_ns);
        let missed = forget_ticks(thread, recording);
        recording.counters().missed.add(missed);
        account_rest(thread, recording, monotonic_ns(), clock_ns);
        told::tell_rest(thread, recording, clock_ns);
        thread.recordings &= !bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::process::tid;
    use crate::recording::{Length, Request};
    use crate::sample_queue::{QUEUE_BYTES, SampleReceiver, sample_queue};
    use crate::sampler::threads::Threads;
    use crate::stack::RawStack;
    use std::sync::Arc;
    use std::time::Duration;
    use swipr_formats::model::{Mode, Thread};

    fn recording(mode: Mode, threads: &str) -> (Active, SampleReceiver) {
        let format = swipr_formats::find("perf").unwrap();
        let request = Request {
            interval: Duration::from_millis(10),
            length: Length::Open,
            mode,
            format: swipr_formats::Selection { format, options: Default::default() },
            threads: Some(regex_lite::Regex::new(threads).unwrap()),
            filter: Default::default(),
            purpose: Default::default(),
            symbolize: crate::recording::Symbolize::Never,
        };
        let (sender, receiver) = sample_queue(QUEUE_BYTES);
        let mut recording = Active::new(
            Arc::new(request),
            sender,
            Arc::default(),
            Arc::default(),
            crate::platform::process::EpochClock::now(),
        );
        recording.start(0);
        (recording, receiver)
    }

    fn burn(ns: u64) {
        let begin = cpu_ns(tid()).unwrap();
        while cpu_ns(tid()).unwrap() < begin + ns {}
    }

    fn rename(thread: &mut Sampled, name: &str, recording: &mut Active) {
        thread.thread = Arc::new(Thread { tid: thread.tid(), name: name.into() });
        apply_filter(thread, recording);
    }

    /// The first sample after its return stood for the CPU time of its absence, too.
    #[test]
    fn a_thread_that_was_somebody_else_for_a_while_brings_no_cpu_time_of_that() {
        let (mut recording, receiver) = recording(Mode::Cpu, "^in$");
        let mut threads = Threads::new().unwrap();
        threads.refresh(&[]);
        let thread = threads.get_mut(tid()).unwrap();
        let clock = || cpu_ns(tid()).unwrap();
        let sample = |thread: &mut Sampled, recording: &mut Active| {
            let used_ns = clock() - std::mem::replace(&mut thread.accounted_ns[0], clock());
            crate::sampler::held::cpu_sample(thread, recording, 1, used_ns, &Arc::new(RawStack::none()));
        };
        let begin = clock();
        thread.accounted_ns[0] = begin;
        rename(thread, "in", &mut recording);
        thread.counted |= recording.bit();
        burn(5_000_000);
        sample(thread, &mut recording);
        burn(5_000_000);
        rename(thread, "out", &mut recording);
        let out = clock();
        burn(200_000_000);
        let back = clock();
        rename(thread, "in", &mut recording);
        burn(5_000_000);
        sample(thread, &mut recording);
        let end = clock();
        account_rest(thread, &mut recording, 2, end);
        recording.flush(3);
        drop(recording);
        let mut weights = 0;
        while let Ok(batch) = receiver.receive(Duration::ZERO) {
            weights += batch.iter().map(|event| event.weight_ns).sum::<u64>();
        }
        assert!(weights >= 15_000_000, "{weights}");
        assert!(weights <= (out - begin) + (end - back), "{weights} of {}", (out - begin) + (end - back));
    }
}
