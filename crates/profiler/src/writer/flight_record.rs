//! Writes the flight record as if it had been a recording.

use super::late_names::LateNames;
use super::names::StackSymbolizer;
use super::sample_filter::SampleFilter;
use super::{AddressRecorder, FLUSH_BYTES, NameSources, SharedFlightRecorder};
use std::time::Duration;
use swipr_formats::model::Summary;
use swipr_formats::{FlightRecord, Format};
use swipr_os::locks::lock;
use swipr_os::process;
use swipr_server::recording::{Closed, Output, Request, Symbolize, WriterTask};

/// A flight record may be shorter than requested by this much: it begins and ends with a sample,
/// and its beginning is cut by the second.
const SLACK_NS: u64 = 2_000_000_000;

/// The body of a thread of its own. Symbolizes now, for at most `symbol_time` with lines. Drops
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
    let names = StackSymbolizer::new(sources, request.symbolize, request.frames, symbol_time);
    let end = match write(request, time, output.as_mut(), flight_recorder, LateNames::new(names)) {
        Ok(Some(summary)) => Ok(summary),
        Ok(None) => Err("there is no flight recorder any more".into()),
        Err(Closed) => return,
    };
    drop(place);
    output.finish(end);
}

/// Writes a second after the other: the flight recorder is locked while one is copied, never while
/// names are read or the output waits. `None`: there is no flight recorder.
fn write(
    request: &Request,
    time: Duration,
    output: &mut dyn Output,
    flight_recorder: &SharedFlightRecorder,
    mut late: LateNames,
) -> Result<Option<Summary>, Closed> {
    let asked_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mut format = (request.format.format.make)(&request.format.options);
    let mut passed = SampleFilter::new(&request.filter);
    let mut bytes = vec![];
    let (threads, tids) = (&request.threads, &request.filter.tids);
    let started = locked(flight_recorder, |shared| begin(shared, asked_ns, format.as_mut(), &mut bytes));
    let Some(mut record) = started else { return Ok(None) };
    while let Some(second) = locked(flight_recorder, |shared| {
        if request.symbolize == Symbolize::Now {
            late.set_places(&shared.places);
        }
        record.take(&shared.recorder)
    })
    .flatten()
    {
        record.write(
            second,
            format.as_mut(),
            &mut |stack| late.stack(stack),
            &mut |sample| {
                threads.as_ref().is_none_or(|regex| regex.is_match(&sample.thread.name))
                    && (tids.is_empty() || tids.contains(&sample.thread.tid))
                    && passed.is_wanted(sample.state, sample.stack, sample.ticks)
            },
            &mut bytes,
            |bytes| if bytes.len() < FLUSH_BYTES { Ok(()) } else { hand_on(output, bytes) },
        )?;
    }
    let mut summary = record.into_summary();
    // Samples that passed the filter are counted already.
    summary.filtered = passed.filtered();
    summary.without_lines = late.without_lines();
    if summary.duration_ns.saturating_add(SLACK_NS) < asked_ns {
        summary.asked_ns = asked_ns;
    }
    // A client gets an error if there is no sample, and no empty profile.
    if summary.samples > 0 || output.takes_empty() {
        format.finish(&summary, &mut bytes);
        hand_on(output, &mut bytes)?;
    }
    Ok(Some(summary))
}

fn begin(
    shared: &AddressRecorder,
    asked_ns: u64,
    format: &mut dyn Format,
    bytes: &mut Vec<u8>,
) -> FlightRecord {
    let now_ns = shared.clock.epoch(process::monotonic_ns());
    let behind_ns = process::epoch_ns().wrapping_sub(now_ns) as i64;
    FlightRecord::begin(&shared.recorder, now_ns.saturating_sub(asked_ns), behind_ns, format, bytes)
}

fn hand_on(output: &mut dyn Output, bytes: &mut Vec<u8>) -> Result<(), Closed> {
    output.write(bytes)?;
    bytes.clear();
    Ok(())
}

fn locked<T>(recorder: &SharedFlightRecorder, body: impl FnOnce(&AddressRecorder) -> T) -> Option<T> {
    lock(recorder)?.as_ref().map(body)
}
