//! A recording's thread filter, evaluated when a thread is found and when it is renamed.

use super::finalize::finalize_thread;
use crate::sampler::account::{Account, Moment};
use crate::sampler::active::RunningRecording;
use crate::sampler::threads::ThreadState;
use swipr_formats::model::Thread;
use swipr_os::process::monotonic_ns;
use swipr_os::threads::cpu_ns;
use swipr_os::timer_delivery;

/// Whether a recording's filter lets a thread through.
pub fn passes(recording: &RunningRecording, thread: &Thread) -> bool {
    let request = recording.request();
    let (threads, tids) = (request.threads.as_ref(), &request.filter.tids);
    threads.is_none_or(|filter| filter.is_match(&thread.name))
        && (tids.is_empty() || tids.contains(&thread.tid))
}

/// To be called when a thread is found, and when it is renamed. `from_cpu_ns`: the CPU time until
/// this value of its clock is not the recording's.
pub fn apply_filter(thread: &mut ThreadState, recording: &mut RunningRecording, from_cpu_ns: u64) {
    let passes = passes(recording, &thread.thread);
    let is_in = thread.recordings & recording.bit() != 0;
    if passes && !is_in && recording.is_sampling() {
        thread.recordings |= recording.bit();
        let (ticks, (_, late)) = (recording.ticks_before(), recording.passed());
        let (cpu_ns, delay_ns, turns) = (from_cpu_ns, thread.delay_ns, thread.turns);
        let kernel_ns = if cpu_ns == 0 { Some(0) } else { timer_delivery::kernel_ns(thread.tid()) };
        let now = Moment { ns: monotonic_ns(), cpu_ns, kernel_ns, delay_ns, turns, ticks, late };
        let account = if cpu_ns == 0 { Account::of_new_thread(now) } else { Account::new(now) };
        if let Some(place) = thread.accounts.get_mut(recording.place()) {
            *place = Some(Box::new(account));
        }
    } else if !passes && is_in {
        thread.cpu_ns = cpu_ns(thread.tid()).unwrap_or(thread.cpu_ns);
        finalize_thread(thread, recording, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_queue::{QUEUE_BYTES, SampleReceiver, sample_queue};
    use crate::sampler::threads::Threads;
    use std::sync::Arc;
    use std::time::Duration;
    use swipr_formats::model::Mode;
    use swipr_os::process::tid;
    use swipr_server::recording::{Length, Request};

    fn recording(mode: Mode, threads: &str) -> (RunningRecording, SampleReceiver) {
        let format = swipr_formats::find("perf").unwrap();
        let request = Request {
            interval: Duration::from_millis(10),
            length: Length::Open,
            mode,
            source: Default::default(),
            format: swipr_formats::Selection { format, options: Default::default() },
            threads: Some(regex_lite::Regex::new(threads).unwrap()),
            filter: Default::default(),
            purpose: Default::default(),
            symbolize: swipr_server::recording::Symbolize::Never,
            frames: Default::default(),
            id: None,
        };
        let (sender, receiver) = sample_queue(QUEUE_BYTES);
        let mut recording = RunningRecording::new(
            Arc::new(request),
            sender,
            Arc::default(),
            Arc::default(),
            swipr_os::process::EpochClock::now(),
        );
        recording.start(0);
        (recording, receiver)
    }

    fn burn(ns: u64) {
        let begin = cpu_ns(tid()).unwrap();
        while cpu_ns(tid()).unwrap() < begin + ns {}
    }

    fn rename(thread: &mut ThreadState, name: &str, recording: &mut RunningRecording) {
        thread.thread = Arc::new(Thread { tid: thread.tid(), name: name.into() });
        let clock_ns = cpu_ns(tid()).unwrap();
        apply_filter(thread, recording, clock_ns);
    }

    /// Regression: the first sample after its return also stood for the CPU time under another
    /// name.
    #[test]
    fn a_thread_that_was_somebody_else_for_a_while_brings_no_cpu_time_of_that() {
        let (mut recording, receiver) = recording(Mode::Cpu, "^in$");
        let mut threads = Threads::new().unwrap();
        threads.refresh(&[]);
        let thread = threads.get_mut(tid()).unwrap();
        let clock = || cpu_ns(tid()).unwrap();
        let begin = clock();
        rename(thread, "in", &mut recording);
        burn(10_000_000);
        rename(thread, "out", &mut recording);
        let out = clock();
        burn(200_000_000);
        let back = clock();
        rename(thread, "in", &mut recording);
        burn(5_000_000);
        rename(thread, "out", &mut recording);
        let end = clock();
        recording.take_undersampled(3, 0, 0, true);
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
