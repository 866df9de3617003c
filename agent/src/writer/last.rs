//! What was kept, written as if it had been a recording.

use super::Kept;
use super::passed::Passed;
use crate::locks::lock;
use crate::platform::process;
use crate::recording::{Output, Purpose, Request};
use std::time::Duration;

/// What is kept begins and ends with a sample, and its beginning is cut by the second.
const SLACK_NS: u64 = 2_000_000_000;

/// The body of a thread of its own. Whoever keeps samples waits meanwhile; the sampler does not.
/// Drops `place` before anybody is told of the end.
pub fn write_last(request: &Request, mut output: Box<dyn Output>, kept: &Kept, place: impl Sized) {
    let Purpose::Last(time) = request.purpose else { return };
    let mut format = (request.format.format.make)(&request.format.options);
    let mut passed = Passed::new(&request.filter);
    let mut bytes = vec![];
    let asked_ns = time.min(Duration::from_secs(86_400)).as_nanos() as u64;
    let since_ns = process::epoch_ns().saturating_sub(asked_ns);
    let (threads, tids) = (&request.threads, &request.filter.tids);
    let summary = lock(kept).as_ref().and_then(|kept| kept.as_ref()).map(|ring| {
        ring.write(
            since_ns,
            format.as_mut(),
            |sample| {
                threads.as_ref().is_none_or(|regex| regex.is_match(&sample.thread.name))
                    && (tids.is_empty() || tids.contains(&sample.thread.tid))
                    && passed.is_wanted(sample.state, sample.stack, sample.ticks)
            },
            &mut bytes,
        )
    });
    let Some(mut summary) = summary else {
        return output.finish(Err("nothing is kept any more".into()));
    };
    // What passed is counted already.
    summary.filtered = passed.filtered();
    if summary.duration_ns.saturating_add(SLACK_NS) < asked_ns {
        summary.asked_ns = asked_ns;
    }
    format.finish(&summary, &mut bytes);
    // Whoever waits for what was not there is told so, and gets no empty profile.
    let has_something = summary.samples > 0 || output.takes_empty();
    if !has_something || output.write(&bytes).is_ok() {
        drop(place);
        output.finish(Ok(summary));
    }
}
