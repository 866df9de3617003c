//! Writes the flight record as if it had been a recording.

use super::late_names::LateNames;
use super::names::StackSymbolizer;
use super::sample_filter::SampleFilter;
use super::{NameSources, SharedFlightRecorder};
use std::time::Duration;
use swipr_os::locks::lock;
use swipr_os::process;
use swipr_server::recording::{Output, Request, Symbolize, WriterTask};

/// A flight record may be shorter than requested by this much: it begins and ends with a sample,
/// and its beginning is cut by the second.
const SLACK_NS: u64 = 2_000_000_000;

/// The body of a thread of its own. Symbolizes now, for at most `symbol_time` with lines. The
/// flight recorder's writer waits while its samples are written; the sampler does not. Drops
/// `place` before it reports the end.
pub fn write_flight_record(
    request: &Request,
    mut output: Box<dyn Output>,
    flight_recorder: &SharedFlightRecorder,
    sources: NameSources,
    symbol_time: Duration,
    place: impl Sized,
) {
    let WriterTask::Last(time) = request.purpose else { return };
    let mut format = (request.format.format.make)(&request.format.options);
    let mut passed = SampleFilter::new(&request.filter);
    let mut bytes = vec![];
    let asked_ns = time.min(Duration::from_secs(86_400)).as_nanos() as u64;
    let (threads, tids) = (&request.threads, &request.filter.tids);
    let names = StackSymbolizer::new(sources, request.symbolize, request.frames, symbol_time);
    let (mut late, frames) = match lock(flight_recorder).as_ref().and_then(|shared| shared.as_ref()) {
        Some(shared) if request.symbolize == Symbolize::Now => {
            (LateNames::new(names, shared.places.clone()), shared.recorder.frames())
        }
        _ => (LateNames::new(names, Default::default()), vec![]),
    };
    // Files are read before the lock is held for the samples: that takes long.
    frames.into_iter().for_each(|frame| drop(late.frame(frame, false)));
    let summary = lock(flight_recorder).as_ref().and_then(|shared| shared.as_ref()).map(|shared| {
        let now_ns = shared.clock.epoch(process::monotonic_ns());
        shared.recorder.write(
            now_ns.saturating_sub(asked_ns),
            process::epoch_ns().wrapping_sub(now_ns) as i64,
            format.as_mut(),
            |stack| late.stack(stack),
            |sample| {
                threads.as_ref().is_none_or(|regex| regex.is_match(&sample.thread.name))
                    && (tids.is_empty() || tids.contains(&sample.thread.tid))
                    && passed.is_wanted(sample.state, sample.stack, sample.ticks)
            },
            &mut bytes,
        )
    });
    let Some(mut summary) = summary else {
        return output.finish(Err("there is no flight recorder any more".into()));
    };
    // Samples that passed the filter are counted already.
    summary.filtered = passed.filtered();
    summary.without_lines = late.without_lines();
    if summary.duration_ns.saturating_add(SLACK_NS) < asked_ns {
        summary.asked_ns = asked_ns;
    }
    format.finish(&summary, &mut bytes);
    // A client gets an error if there is no sample, and no empty profile.
    let has_something = summary.samples > 0 || output.takes_empty();
    if !has_something || output.write(&bytes).is_ok() {
        drop(place);
        output.finish(Ok(summary));
    }
}
